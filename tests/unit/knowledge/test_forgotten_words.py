"""Nothing that is stored has words that only a forgotten turn said."""

from __future__ import annotations

from uuid import uuid4

import pytest

from engram.consolidation.forgetting import Forgetter
from engram.domain.memories import STORED_TYPES, MemoryStatus, MemoryType
from engram.storage.edge import EdgeRepository
from engram.storage.updates import every_page
from tests.support.in_process_memory import InProcessMemory, when

TALKS = [
    ("I have a cat called Miso.", "Our cat died.", "Miso"),
    ("I have a cat called Miso.", "Miso died.", " cat "),
    ("I'm engaged to Ann.", "We got married.", "Ann"),
    ("My fiancée is Ann.", "We got married.", "Ann"),
    ("I'm married to Ann.", "We split up.", "Ann"),
    ("I use Vim.", "I switched to Neovim.", " Vim"),
    ("I study physics.", "I graduated.", "physics"),
    ("I owe Tom 20 euros.", "I paid Tom back.", "euros"),
    ("I work as a nurse.", "I got fired.", "nurse"),
    ("We're going to Portugal in June.", "The trip got cancelled.", "Portugal"),
    ("Hassan plays for Rovers in Fenwick.", "Hassan signed with Dynamo.", "Fenwick"),
    ("I'll send Mira the slides tomorrow.", "I sent the slides.", "Mira"),
]


@pytest.mark.parametrize(("said", "then", "word"), TALKS)
async def test_what_another_turn_ended_goes_with_the_turn_that_told_it(
    repository: EdgeRepository, said: str, then: str, word: str
) -> None:
    """Whatever was concluded of the second turn with words of the first; the second one stays."""
    memory = InProcessMemory(repository)
    scope = memory.somebody()
    first, second = [
        (await memory.hear(scope, [words], first=number))[0]
        for number, words in enumerate((said, then))
    ]
    for number, turn in enumerate((first, second)):
        await memory.conclude(scope, (turn,), when(number))
    forgetter = Forgetter(repository, lambda: uuid4().hex)
    await forgetter.apply(scope, await forgetter.plan(scope, first))
    await memory.consolidate(scope, when(3))
    left = [
        one.model_dump_json()
        for kind in STORED_TYPES
        async for page in every_page(repository, scope, kind)
        for one in page
    ]
    assert any(then in one for one in left)
    assert not [one for one in left if word in one]


async def test_forgetting_the_turn_that_ended_it_takes_the_ending(
    repository: EdgeRepository,
) -> None:
    """The turn whose words that has does not state it."""
    memory = InProcessMemory(repository)
    scope = memory.somebody()
    ids = [
        (await memory.hear(scope, [words], first=number))[0]
        for number, words in enumerate(("I have a cat called Miso.", "Our cat died."))
    ]
    for number, turn in enumerate(ids):
        await memory.conclude(scope, (turn,), when(number))
    forgetter = Forgetter(repository, lambda: uuid4().hex)
    await forgetter.apply(scope, await forgetter.plan(scope, ids[1]))
    pages = every_page(repository, scope, MemoryType.SEMANTIC)
    left = {m.content: m.status async for page in pages for m in page}
    assert left == {"The user has a cat called Miso.": MemoryStatus.ACTIVE}
