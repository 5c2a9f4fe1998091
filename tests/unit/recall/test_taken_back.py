"""What a turn takes back of the turns before it: its own user's, or the assistant's."""

from __future__ import annotations

from uuid import uuid4

import pytest

from engram.domain.memories import MemoryStatus, MemoryType, SemanticMemory
from engram.domain.scope import Scope
from engram.language.negation import find_negations
from engram.storage.edge import EdgeRepository
from engram.storage.updates import every_page
from tests.support.in_process_memory import InProcessMemory
from tests.support.recall_memories import day

USES = "Since you use MongoDB, you could add an index."


async def learnt(
    repository: EdgeRepository, said: list[tuple[str, str]], *, apart: bool = False
) -> set[tuple[str, bool]]:
    """What holds after these turns of one session: slots as words, and whether they hold.

    ``apart``: each turn is read in a pass of its own, when those before it are read already.
    """
    memory, scope = InProcessMemory(repository), Scope.of("corrections", uuid4().hex)
    ids: list[str] = []
    for number, (role, words) in enumerate(said):
        ids += await memory.hear(scope, [words], number, role, at=day(number + 1), session="s")
    for batch in [(one,) for one in ids] if apart else [tuple(ids)]:
        await memory.conclude(scope, batch, day(30))
    found: set[tuple[str, bool]] = set()
    async for page in every_page(repository, scope, MemoryType.SEMANTIC):
        for one in page:
            assert isinstance(one, SemanticMemory)
            if one.status is MemoryStatus.ACTIVE and one.slot is not None:
                held = one.slot.predicate.removeprefix("no longer ")
                holds = held == one.slot.predicate
                found.add((f"{one.slot.subject} {held} {one.slot.object}", holds))
    return found


@pytest.mark.parametrize("apart", [False, True], ids=["together", "one by one"])
@pytest.mark.parametrize(
    ("said", "holds", "not_so"),
    [
        ([("assistant", USES), ("user", "It's Postgres, not MongoDB.")], "Postgres", "MongoDB"),
        (
            [("assistant", USES), ("user", "No, I meant Postgres, not MongoDB.")],
            "Postgres",
            "MongoDB",
        ),
        (
            [("assistant", USES), ("user", "No, that's wrong. I use Postgres.")],
            "Postgres",
            "MongoDB",
        ),
        (
            [("user", "I use MongoDB."), ("user", "It's Postgres, not MongoDB.")],
            "Postgres",
            "MongoDB",
        ),
        ([("user", "It's Postgres, not MongoDB.")], "Postgres", "MongoDB"),
    ],
)
async def test_a_correction_says_what_holds_and_what_does_not(
    repository: EdgeRepository, said: list[tuple[str, str]], holds: str, not_so: str, apart: bool
) -> None:
    """Of what the assistant or the user said before, read in one pass or in several."""
    found = await learnt(repository, said, apart=apart)
    assert (f"user uses {holds.casefold()}", True) in found
    assert (f"user uses {not_so.casefold()}", False) in found
    assert (f"user uses {not_so.casefold()}", True) not in found


@pytest.mark.parametrize(
    "words", ["I never said that.", "That's not true.", "No, you got that wrong."]
)
async def test_what_the_assistant_claimed_is_denied_where_the_user_says_it_is_wrong(
    repository: EdgeRepository, words: str
) -> None:
    """The turn before names it, and the user's words say that it is wrong."""
    found = await learnt(
        repository, [("assistant", "You live in Porto, so take the ferry."), ("user", words)]
    )
    assert found == {("user lives in porto", False)}


async def test_a_correction_takes_the_predicate_of_what_was_said(
    repository: EdgeRepository,
) -> None:
    """Of a home, of an employer, and of a thing that neither of them is."""
    porto = [
        ("assistant", "As you live in Porto, go by tram."),
        ("user", "It's Lisbon, not Porto."),
    ]
    assert ("user lives in lisbon", True) in await learnt(repository, porto)
    nokia = [("user", "I work at Nokia."), ("user", "Sorry, it's Ikea, not Nokia.")]
    assert ("user works at ikea", True) in await learnt(repository, nokia)
    key = [("user", "The spare key is in the shed."), ("user", "No, it's the attic, not the shed.")]
    assert ("spare key is located in attic", True) in await learnt(repository, key)


@pytest.mark.parametrize(
    "said",
    [
        [("assistant", "MongoDB is popular."), ("user", "That's not right.")],
        [("assistant", "You live in Porto. You use Vim."), ("user", "I never said that.")],
        [("user", "It's raining, not snowing.")],
        [("user", "It's Tuesday, not Wednesday.")],
        [("user", "No, I meant Postgres, not Postgres.")],
        [("assistant", USES), ("user", "Thanks, that's right.")],
    ],
)
async def test_what_nobody_can_tell_is_left_alone(
    repository: EdgeRepository, said: list[tuple[str, str]]
) -> None:
    """No claim, or more than one: which of them is wrong, the turn does not say."""
    assert await learnt(repository, said) == set()


@pytest.mark.parametrize(
    "words",
    [
        "It's Postgres, not MongoDB.",
        "No, I meant Postgres, not MongoDB.",
        "I never said I use MongoDB.",
        "I never said that I use MongoDB.",
    ],
)
def test_corrections_are_negations_at_once(words: str) -> None:
    """Two tools, or what one never said, need no turn before them."""
    (found,) = find_negations(words)
    assert (found.negates_pattern, found.subject) == ("use mongodb", "user")
