"""Several notes of one kind come as the one sentence that sums them up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast
from uuid import uuid4

from engram.domain.memories import MemoryType, is_summary
from engram.domain.scope import Scope
from engram.operations.recall import ContextRequest, RecallHandlers
from engram.recall.context import Briefing, block_of
from engram.storage.edge import EdgeRepository
from tests.support.in_process_memory import InProcessMemory
from tests.support.recall_memories import day

if TYPE_CHECKING:
    from engram.lifecycle.accesses import AccessLog

LIKED = ("jazz", "tea", "chess", "opera", "dogs", "hiking")
ASKED = "What does the user like?"
SENTENCE = "The user likes jazz, tea, chess, opera, dogs and hiking."
NOTE = "The user likes opera."
LATER = day(7)


async def who_likes(
    repository: EdgeRepository, *liked: str, also: str = ""
) -> tuple[InProcessMemory, Scope]:
    """A user who told of one of these a day, and of something else."""
    memory, scope = InProcessMemory(repository), Scope.of("summed", uuid4().hex)
    said = [*(f"I like {what}." for what in liked), *filter(None, [also])]
    for number, words in enumerate(said):
        ids = await memory.hear(scope, [words], number, at=day(number), session=f"s{number}")
        await memory.conclude(scope, ids, day(number))
    return memory, scope


async def context(memory: InProcessMemory, scope: Scope, tokens: int, limit: int = 0) -> list[str]:
    """The lines that answer what is liked, in so much room."""
    accesses = cast("AccessLog", SimpleNamespace(note=lambda *_: None))
    handlers = RecallHandlers(memory.recaller, lambda: LATER, accesses, lambda *_: None)
    options = {"limit": limit} if limit else {}
    asked = ContextRequest.within(ASKED, tokens, memory.settings, options)
    lines = (await handlers.context(scope, asked)).context.splitlines()[1:-1]
    return [line.removeprefix("- ").partition(" (")[0] for line in lines]


def notes_in(lines: list[str]) -> list[str]:
    """Those of the lines that say one thing that is liked."""
    return [line for line in lines if line in {f"The user likes {what}." for what in LIKED}]


async def test_a_context_says_a_list_once_and_in_the_shortest_way(
    repository: EdgeRepository,
) -> None:
    """The sentence has it all, also where there is room for two notes or few answers are asked."""
    memory, scope = await who_likes(repository, *LIKED)
    hits = await memory.recall(scope, ASKED, LATER, limit=30)
    order = [hit.memory.content for hit in hits]
    assert order.index(NOTE) < order.index(SENTENCE)
    for tokens, limit in ((1000, 0), (1000, 3), (60, 0)):
        lines = await context(memory, scope, tokens, limit)
        assert lines[0] == SENTENCE
        assert notes_in(lines) == []
        assert not limit or len(lines) == limit


async def test_notes_come_where_their_sentence_has_no_room(repository: EdgeRepository) -> None:
    """Some of a list is more than nothing of it."""
    memory, scope = await who_likes(repository, *LIKED)
    hits = await memory.recall(scope, ASKED, LATER, memory_types=MemoryType.SEMANTIC)
    assert SENTENCE not in block_of(hits, tokens=40)
    assert "The user likes" in block_of(hits, tokens=40)


async def test_a_note_in_dispute_keeps_its_line_and_those_beside_it(
    repository: EdgeRepository,
) -> None:
    """Only its own line can say that it is disputed; the sentence then says no more than they."""
    memory, scope = await who_likes(repository, *LIKED)
    hits = await memory.recall(scope, ASKED, LATER, limit=30)
    torn = [hit.model_copy(update={"disputed": hit.memory.content == NOTE}) for hit in hits]
    block = block_of(torn, tokens=1000)
    doubted = [line for line in block.splitlines() if "disputed" in line]
    assert [line.startswith(f"- {NOTE}") for line in doubted] == [True]
    assert all(f"The user likes {what}." in block for what in LIKED)
    assert SENTENCE not in block


async def test_a_briefing_says_a_list_once_and_has_room_for_the_rest(
    repository: EdgeRepository,
) -> None:
    """Six notes take one place of a briefing, not each its own and one for their sentence."""
    memory, scope = await who_likes(repository, *LIKED, also="I live in Porto.")
    rules, negations = memory.settings.lifecycle_rules, memory.recaller.negations
    briefing = Briefing(memory.repository, rules, negations, 100)
    told = [one.memory for one in await briefing.of(scope, LATER, 3)]
    assert {one.content for one in told} == {SENTENCE, "The user lives in Porto."}
    assert sum(map(is_summary, told)) == 1
