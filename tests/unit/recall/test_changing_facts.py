"""What changed answers with what holds now: addresses by pattern, statements about anybody.

The turns go through the real parts in this process: stored as the storing activity
stores them, read by the rules model, reconciled, planned, written, retired.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

import pytest

from engram.domain.memories import Fact, MemoryStatus, MemoryType, NegationFact
from engram.domain.scope import Scope
from engram.recall.results import RecallHit
from engram.storage.edge import EdgeRepository
from engram.storage.updates import every_page
from tests.support.in_process_memory import InProcessMemory
from tests.support.recall_memories import NOW, day

CHANGES = {
    "email": (
        "My email is ada@old.org.",
        "I changed my email: my new email is ada@new.org. Don't use the old one.",
        "What is my email?",
        "ada@old.org",
        "ada@new.org",
    ),
    "phone": (
        "My phone number is +1 415 555 2671.",
        "My new number is +1 415 555 2672 now.",
        "What is my phone number?",
        "2671",
        "2672",
    ),
    "site": (
        "My website is https://ada.example.org",
        "My site has moved: my website is now https://lovelace.example.org",
        "What is my website?",
        "ada.example",
        "lovelace.example",
    ),
    "name": (
        "My name is Ada Byron.",
        "I got married: my name is now Ada Lovelace.",
        "What is my name?",
        "Ada Byron",
        "Ada Lovelace",
    ),
    "name by its change": (
        "My name is Ada Byron.",
        "I've finally changed my name to Ada Lovelace.",
        "What is my name?",
        "Ada Byron",
        "Ada Lovelace",
    ),
    "of somebody else": (
        "Tom's email is tom@old.org.",
        "Tom's email is tom@new.org.",
        "What is Tom's email?",
        "tom@old.org",
        "tom@new.org",
    ),
    "instead of": (
        "You can write to me at ada@old.org, my email is ada@old.org.",
        "Please write to ada@new.org instead of ada@old.org from now on.",
        "What is my email?",
        "ada@old.org",
        "ada@new.org",
    ),
}


async def heard(memory: InProcessMemory, said: Sequence[tuple[int, str]]) -> Scope:
    """A user who said these things, each on its day, in a session of its own, read as they came."""
    scope = Scope.of("changing", uuid4().hex)
    for number, (on, words) in enumerate(said):
        ids = await memory.hear(scope, [words], at=day(on), session=f"s{number}")
        await memory.conclude(scope, ids, day(on))
    return scope


async def facts(memory: InProcessMemory, scope: Scope) -> list[Fact]:
    """Every pattern fact of the user, in the order of time."""
    pages = every_page(memory.repository, scope, MemoryType.FACTUAL)
    return [one async for page in pages for one in page if isinstance(one, Fact)]


def place(hits: Sequence[RecallHit], words: str) -> int:
    """Where the words are first said; past the end if nowhere."""
    said = [words in hit.memory.content for hit in hits]
    return said.index(True) if True in said else len(said)


@pytest.mark.parametrize("kind", sorted(CHANGES))
@pytest.mark.parametrize("late", [False, True], ids=["in order", "older one told later"])
async def test_a_changed_address_answers_with_the_new_one(
    repository: EdgeRepository, kind: str, late: bool
) -> None:
    """The newest of the conversation's time is first, of all types and of turns alone."""
    first, then, question, old, new = CHANGES[kind]
    memory = InProcessMemory(repository)
    said = [(1, first), (20, then)]
    scope = await heard(memory, said[::-1] if late else said)
    now = await memory.recall(scope, question, NOW)
    assert new in now[0].memory.content
    assert not [hit for hit in now if old in hit.memory.content and isinstance(hit.memory, Fact)]
    turns = await memory.recall(scope, question, NOW, memory_types=MemoryType.EPISODIC)
    assert new in turns[0].memory.content
    assert place(turns, old) < len(turns)
    before = await memory.recall(scope, question, NOW, as_of=day(10))
    assert place(before, old) == 0


@pytest.mark.parametrize(
    ("on", "home"), [(15, "Turin"), (22, "Kyoto")], ids=["before that", "at about that time"]
)
async def test_a_move_that_is_told_late_goes_by_the_time_that_it_names(
    repository: EdgeRepository, on: int, home: str
) -> None:
    """Who lives in Turin on the tenth, and moved "two weeks ago" on the first, came back to it."""
    memory = InProcessMemory(repository)
    moved = "We moved from Turin to Kyoto two weeks ago."
    scope = await heard(memory, [(10, "I live in Turin now."), (on, moved)])
    hits = await memory.recall(
        scope, "Where do I live?", NOW, memory_types=MemoryType.SEMANTIC, min_score=0
    )
    homes = [hit.memory.content for hit in hits if "lives in" in hit.memory.content]
    assert homes[0] == f"The user lives in {home}."


async def test_the_old_one_is_understood_and_not_noted_down(repository: EdgeRepository) -> None:
    """After "Don't use the old one", no memory says that the user does not use "the old one"."""
    memory = InProcessMemory(repository)
    first, then, *_ = CHANGES["email"]
    scope = await heard(memory, [(1, first), (20, then), (21, "I don't use the old one any more.")])
    for kind in (MemoryType.SEMANTIC, MemoryType.NEGATION):
        async for page in every_page(repository, scope, kind):
            assert not [one for one in page if "old one" in one.content]


async def test_what_is_over_without_another_in_its_place_answers_no_more(
    repository: EdgeRepository,
) -> None:
    """An address that is no longer in use is history, ended by the denial."""
    memory = InProcessMemory(repository)
    scope = await heard(
        memory, [(1, "My email is ada@old.org."), (9, "My email is no longer ada@old.org.")]
    )
    (fact,) = await facts(memory, scope)
    assert fact.status is MemoryStatus.SUPERSEDED
    found = await repository.get(scope, [fact.superseded_by or ""])
    (by,) = found.values()
    assert isinstance(by, NegationFact)
    assert fact.id in by.supersedes
    hits = await memory.recall(scope, "What is my email?", NOW)
    assert not [hit for hit in hits if isinstance(hit.memory, Fact)]


async def test_an_address_that_comes_back_holds_again(repository: EdgeRepository) -> None:
    """Old, new, old again: the old one is a new generation, and a mention revives nothing."""
    memory = InProcessMemory(repository)
    said = [
        (1, "My email is ada@old.org."),
        (5, "My email is ada@new.org."),
        (7, "A letter to ada@old.org bounced."),
    ]
    scope = await heard(memory, said)
    assert [f.value for f in await facts(memory, scope) if f.status is MemoryStatus.ACTIVE] == [
        "ada@new.org"
    ]
    ids = await memory.hear(scope, ["My email is ada@old.org again."], at=day(9), session="back")
    assert ids
    active = [f for f in await facts(memory, scope) if f.status is MemoryStatus.ACTIVE]
    assert [(f.value, f.generation) for f in active] == [("ada@old.org", 1)]


@pytest.mark.parametrize(
    "said",
    [
        ("My work email is ada@work.org.", "My email is ada@home.org."),
        ("My email is ada@home.org.", "My other email is ada@spare.org."),
        ("My blog is https://ada.example.org", "My portfolio is https://work.example.org"),
        ("Tom's email is tom@x.org.", "Ann's email is ann@x.org."),
        ("My email is ada@home.org.", "Please write to bob@x.org about it."),
        ("My email is ada@home.org.", "For billing questions use billing@x.org."),
        ("My phone is 415-555-2671.", "In an emergency call 212-555-0187."),
        ("My name is Ann.", "My name is Ann Lee."),
        ("My email is ada@home.org and my email is ada@spare.org.", "Thanks."),
    ],
)
async def test_addresses_that_are_not_the_same_one_end_nothing(
    repository: EdgeRepository, said: tuple[str, str]
) -> None:
    """Of work and of home, of two people, a mention, a fuller name: all stand."""
    memory = InProcessMemory(repository)
    scope = await heard(memory, [(1, said[0]), (2, said[1])])
    known = await facts(memory, scope)
    assert len(known) == 2
    assert {one.status for one in known} == {MemoryStatus.ACTIVE}
