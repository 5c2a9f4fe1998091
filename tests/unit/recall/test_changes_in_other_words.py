"""Changes told in other words than what they change, and what holds once a change is refuted."""

from __future__ import annotations

from uuid import uuid4

import pytest

from engram.consolidation.disputes import DisputeSettler
from engram.domain.memories import (
    Fact,
    MemoryStatus,
    MemoryType,
    SemanticMemory,
)
from engram.domain.rules import LifecycleRules
from engram.domain.scope import Scope
from engram.embedding.choice import make_embedder
from engram.lifecycle import decisions
from engram.ports import Equals
from engram.storage.edge import EdgeRepository
from engram.storage.updates import every_page, update_memories
from tests.support.in_process_memory import InProcessMemory
from tests.support.recall_memories import NOW, day

RULES = LifecycleRules()
FACTS = MemoryType.FACTUAL


async def heard(memory: InProcessMemory, scope: Scope, *turns: tuple[int, str]) -> None:
    """Each turn in a conversation of its own, and what is concluded from it."""
    for number, (at, words) in enumerate(turns, start=1):
        ids = await memory.hear(
            scope, [words], at=day(at), session=f"s{at}", first=100 * at + number
        )
        await memory.conclude(scope, ids, day(at))


async def stored(
    repository: EdgeRepository, scope: Scope, kind: MemoryType = MemoryType.SEMANTIC
) -> dict[str, SemanticMemory | Fact]:
    """Everything of one kind, by what it says."""
    found = [m async for page in every_page(repository, scope, kind) for m in page]
    return {m.content: m for m in found if isinstance(m, SemanticMemory | Fact)}


def settler_of(repository: EdgeRepository) -> DisputeSettler:
    """What settles disputes in it."""
    return DisputeSettler(repository, RULES, lambda: uuid4().hex, make_embedder("wordllama"))


async def refute(repository: EdgeRepository, scope: Scope, one: SemanticMemory | Fact) -> None:
    """The user says that it is not so: as the operation does it."""
    await settler_of(repository).bring_back(scope, (one,))
    await update_memories(
        repository,
        scope,
        [one.id],
        lambda memory: decisions.dispute(memory, day(30), RULES).memory,
        new_write_id=lambda: uuid4().hex,
    )


@pytest.fixture
def memory(repository: EdgeRepository) -> InProcessMemory:
    """A memory over the shared store."""
    return InProcessMemory(repository)


@pytest.mark.parametrize(
    ("first", "then", "holds"),
    [
        pytest.param(
            "The design review is held in room 4.12.",
            "They moved the design review to the Birch room.",
            "The design review is held in the Birch room.",
            id="a place by who moves it",
        ),
        pytest.param(
            "The design review takes place on Monday.",
            "The design review was rescheduled to Wednesday.",
            "The design review takes place on Wednesday.",
            id="a day",
        ),
        pytest.param(
            "Hassan plays for the Comets.",
            "Hassan signed with Fenwick United this week.",
            "Hassan plays for Fenwick United.",
            id="a team",
        ),
        pytest.param(
            "Corner Books is owned by Wiebke.",
            "Ramón Solís bought Corner Books.",
            "Corner Books is owned by Ramón Solís.",
            id="an owner by buying",
        ),
        pytest.param(
            "Priya lives in Leicester, near the canal",
            "Priya finally relocated, she's in Utrecht these days",
            "Priya lives in Utrecht.",
            id="a pronoun in the same sentence",
        ),
    ],
)
async def test_a_change_replaces_what_is_known_of_its_subject(
    memory: InProcessMemory, repository: EdgeRepository, first: str, then: str, holds: str
) -> None:
    """It is worded as what it replaces, which becomes history; read twice is read once."""
    scope = Scope.of("changes", uuid4().hex)
    await heard(memory, scope, (1, first), (20, then))
    found = await stored(repository, scope)
    standing = [m.content for m in found.values() if m.status is MemoryStatus.ACTIVE]
    assert standing == [holds]
    ids = await memory.hear(scope, [then], at=day(20), session="s20", first=2002)
    await memory.conclude(scope, ids, day(20))
    assert (await stored(repository, scope)).keys() == found.keys()


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("Tom works at Acme.", "Tom switched to tea."),
        ("Tom lives in Oslo.", "Tom moved to the marketing team."),
        ("Tom works as a nurse.", "Tom is a father now."),
        ("Gridline is written in Kotlin.", "Gridline switched to Postgres."),
        ("The review takes place on Monday.", "They moved the review to the annex."),
        ("Tom plays for Rovers.", "Tom signed with a literary agency."),
    ],
)
async def test_a_change_of_something_else_ends_nothing(
    memory: InProcessMemory, repository: EdgeRepository, first: str, then: str
) -> None:
    """What is of another kind than all that is known of the subject leaves that alone."""
    scope = Scope.of("changes", uuid4().hex)
    await heard(memory, scope, (1, first), (20, then))
    assert (await stored(repository, scope))[first].status is MemoryStatus.ACTIVE


@pytest.mark.parametrize(
    ("first", "named_then", "then"),
    [
        ("Ana's manager is Bo.", "reports to", "Ana's manager is Cy."),
        ("The ticket costs 20 euros.", "price is", "The ticket costs 25 euros."),
        ("The barn is owned by Bo.", "is owned by", "The barn is owned by Cy."),
    ],
)
async def test_what_was_stored_under_an_earlier_name_gives_way_to_what_is_told_now(
    memory: InProcessMemory, repository: EdgeRepository, first: str, named_then: str, then: str
) -> None:
    """An older store holds the predicates of then; a new telling meets them all the same."""
    scope = Scope.of("changes", uuid4().hex)
    await heard(memory, scope, (1, first))
    (old,) = (await stored(repository, scope)).values()
    assert isinstance(old, SemanticMemory)
    assert old.slot is not None
    before = old.slot.model_copy(update={"predicate": named_then})
    await update_memories(
        repository,
        scope,
        [old.id],
        lambda one: one.model_copy(update={"slot": before}),
        new_write_id=lambda: uuid4().hex,
    )
    where = (Equals("slot.predicate", named_then),)
    page = await repository.scroll(scope, MemoryType.SEMANTIC, where=where, order_by="known_at")
    assert [one.id for one in page.memories] == [old.id]
    await heard(memory, scope, (20, then))
    found = await stored(repository, scope)
    assert found[first].status is MemoryStatus.SUPERSEDED
    assert found[then].status is MemoryStatus.ACTIVE
    assert found[first].superseded_by == found[then].id


async def test_what_a_refuted_value_had_replaced_holds_again_at_once(
    memory: InProcessMemory, repository: EdgeRepository
) -> None:
    """Before anything is told anew; where the new value comes back, the old one gives way again."""
    scope = Scope.of("changes", uuid4().hex)
    await heard(memory, scope, (1, "Hassan plays for Rovers."), (20, "Hassan plays for Dynamo."))
    found = await stored(repository, scope)
    new = found["Hassan plays for Dynamo."]
    assert found["Hassan plays for Rovers."].superseded_by == new.id
    await refute(repository, scope, new)
    (best, *_) = await memory.recall(scope, "Which team does Hassan play for?", NOW)
    assert best.memory.content == "Hassan plays for Rovers."
    found = await stored(repository, scope)
    assert found["Hassan plays for Rovers."].status is MemoryStatus.ACTIVE
    settler = settler_of(repository)
    refuted = found["Hassan plays for Dynamo."]
    assert isinstance(refuted, SemanticMemory)
    assert found["Hassan plays for Rovers."].id not in await settler.rivals(scope, refuted)
    await update_memories(
        repository,
        scope,
        [refuted.id],
        lambda memory: decisions.confirm(memory, day(31), RULES).memory,
        new_write_id=lambda: uuid4().hex,
    )
    await settler.place_again(scope, [refuted.id], day(31))
    old = (await stored(repository, scope))["Hassan plays for Rovers."]
    assert (old.superseded_by, old.refuted_at) == (new.id, None)


async def test_a_refuted_address_takes_no_other_addresss_place(
    memory: InProcessMemory, repository: EdgeRepository
) -> None:
    """The one before it holds again, also once an older turn that says so comes in late."""
    scope = Scope.of("changes", uuid4().hex)
    await heard(
        memory, scope, (1, "My email is kim@old.example."), (5, "My email is kim@new.example.")
    )

    async def addresses() -> dict[str, Fact]:
        found = await stored(repository, scope, MemoryType.FACTUAL)
        return {m.value: m for m in found.values() if isinstance(m, Fact)}

    there = await addresses()
    await refute(repository, scope, there["kim@new.example"])
    await heard(memory, scope, (3, "My email is kim@old.example."))
    assert (await addresses())["kim@old.example"].status is MemoryStatus.ACTIVE


async def test_a_turn_is_marked_where_it_is_asked_for_what_the_user_disputed_of_it(
    memory: InProcessMemory, repository: EdgeRepository
) -> None:
    """It says more that holds: marked, not lowered, and unmarked for who asks for the rest."""
    scope = Scope.of("changes", uuid4().hex)
    turn = "My email is kim@acme.example. I live in Porto."
    await heard(memory, scope, (1, turn))

    async def answer(question: str) -> tuple[float, bool]:
        hits = await memory.recall(scope, question, NOW, memory_types=MemoryType.EPISODIC)
        (hit,) = [hit for hit in hits if hit.memory.content == turn]
        return hit.score, hit.disputed

    home, email = "Where does the user live?", "What is the user's email address?"
    before = [await answer(question) for question in (home, email)]
    assert [disputed for _, disputed in before] == [False, False]
    await refute(repository, scope, (await stored(repository, scope))["The user lives in Porto."])
    after = [await answer(question) for question in (home, email)]
    assert [disputed for _, disputed in after] == [True, False]
    assert [score for score, _ in after] == [score for score, _ in before]


async def test_as_of_before_a_dispute_what_had_given_way_does_not_answer(
    memory: InProcessMemory, repository: EdgeRepository
) -> None:
    """It came back since; then, what is disputed now stood in its place."""
    scope = Scope.of("changes", uuid4().hex)
    await heard(memory, scope, (1, "I live in Porto."), (5, "I moved to Oslo."))
    await refute(repository, scope, (await stored(repository, scope))["The user lives in Oslo."])
    for as_of, known in ((day(3), "Porto"), (day(9), "Oslo"), (day(40), "Porto")):
        asked = {"as_of": as_of, "memory_types": MemoryType.SEMANTIC}
        hits = await memory.recall(scope, "Where does the user live?", day(50), **asked)
        assert [hit.memory.content for hit in hits] == [f"The user lives in {known}."]


async def test_an_address_that_was_history_is_refuted_for_good(
    memory: InProcessMemory, repository: EdgeRepository
) -> None:
    """The next one that is told does not undo it; confirmed, it is history again."""
    scope = Scope.of("changes", uuid4().hex)
    turns = [(n, f"My email is {name}@x.example.") for n, name in ((1, "a"), (5, "b"), (9, "c"))]
    await heard(memory, scope, *turns)
    there = {m.content[-11:]: m for m in (await stored(repository, scope, FACTS)).values()}
    middle = there["b@x.example"]
    await refute(repository, scope, middle)
    await heard(memory, scope, (12, "My email is d@x.example."))

    async def ends() -> dict[str, str | None]:
        found = (await stored(repository, scope, FACTS)).values()
        names = {m.id: m.content[-11:][0] for m in found}
        return {names[m.id]: names.get(m.superseded_by or "") for m in found}

    assert await ends() == {"a": "c", "b": None, "c": "d", "d": None}
    await update_memories(
        repository,
        scope,
        [middle.id],
        lambda one: decisions.confirm(one, day(31), RULES).memory,
        new_write_id=lambda: uuid4().hex,
    )
    await settler_of(repository).place_again(scope, [middle.id], day(31))
    assert await ends() == {"a": "b", "b": "c", "c": "d", "d": None}
