"""Taking up many batches in one step comes to what one step after the other comes to."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from engram.contracts.consolidation import ConsolidateTurnsInput, ExtractInput
from engram.domain.memories import MemoryType
from engram.domain.scope import Scope
from engram.giving_way import awaited
from engram.ports import MemoryRepository
from tests.support.edge_stores import borrowed_store
from tests.support.in_process_memory import InProcessMemory, run, when

TOLD = (
    *("I live in Paris.", "I use Trello.", "I like tea.", "I moved to London.", "I like milk."),
    *("I'll send Ann the notes by Friday.", "I like mead.", "I switched from Trello to Linear."),
    *("I moved back to Paris.", "I like cider.", "I no longer use Linear.", "I like tea."),
    *("I sent Ann the notes.", "I moved to London.", "I use Trello.", "I live in Paris."),
)
OF_THE_RUN = {"created_at", "derived_at", "write_id", "revision", "provenance", "review_at"}
NOW = when(len(TOLD))


async def _concluded(memory: InProcessMemory, scope: Scope) -> dict[str, Any]:
    page = await memory.repository.scroll(scope, MemoryType.SEMANTIC, limit=500)
    return {m.id: m.model_dump(mode="json", exclude=OF_THE_RUN) for m in page.memories}


async def _one_by_one(repository: MemoryRepository, scope: Scope) -> dict[str, Any]:
    memory = InProcessMemory(repository)
    await memory.hear(scope, TOLD)
    due = await run(memory.storing.select_due, memory.selecting(scope, NOW))
    for batch in due.batches:
        await memory.conclude(scope, batch.episode_ids, NOW)
    return await _concluded(memory, scope)


async def _at_once(repository: MemoryRepository, scope: Scope, batches: int) -> dict[str, Any]:
    """So many batches in a step, each of which is repeated, as after a crash at its end."""
    memory = InProcessMemory(repository)
    await memory.hear(scope, TOLD)
    common: dict[str, Any] = {"scope": scope, "now": NOW}
    due = await run(memory.storing.select_due, memory.selecting(scope, NOW))
    for start in range(0, len(due.batches), batches):
        first, *further = due.batches[start : start + batches]
        asked = ExtractInput(episode_ids=first.episode_ids, further=tuple(further), **common)
        read = await run(memory.thinking.extract, asked)
        answers = (read, *read.further)
        assert len(answers) == 1 + len(further)
        step = ConsolidateTurnsInput(
            parts=tuple(
                answer.of(batch.episode_ids)
                for batch, answer in zip((first, *further), answers, strict=True)
            ),
            workflow_id="w",
            run_id="r",
            scope=scope,
            # By its moment, a step knows what it stored itself.
            now=NOW + timedelta(seconds=start),
        )
        done = await run(memory.storing.consolidate_turns, step)
        again = await run(
            memory.storing.consolidate_turns, step.model_copy(update={"repeated": True})
        )
        assert again.marked == done.marked
        assert set(again.effect.stored) == set(done.effect.stored)
        assert set(again.effect.retired) >= set(done.effect.retired) - set(done.effect.stored)
    return await _concluded(memory, scope)


@pytest.mark.parametrize("batches", [2, 4])
async def test_larger_steps_come_to_the_same_conclusions(batches: int) -> None:
    """The same ids, sources, places in time and links, whatever one step takes up."""
    scope = Scope.of("default", "ada")
    async with borrowed_store() as repository:
        one_by_one = await _one_by_one(repository, scope)
    async with borrowed_store() as repository:
        assert await _at_once(repository, scope, batches) == one_by_one


@pytest.mark.parametrize("asked", [False, True])
async def test_a_pass_takes_what_comes_until_a_lull(asked: bool) -> None:
    """A pass that nobody asked for begins in a lull, with turns of before it; another at once."""
    scope = Scope.of("default", "ada")
    async with borrowed_store() as repository:
        memory = InProcessMemory(repository)
        early = await memory.hear(scope, TOLD[:2])
        with awaited():
            question = memory.selecting(scope, NOW).model_copy(update={"asked": asked})
            selecting = asyncio.ensure_future(run(memory.storing.select_due, question))
            if asked:
                await asyncio.wait_for(asyncio.shield(selecting), 10)
            late = await memory.hear(scope, TOLD[2:4], first=2)
        due = await asyncio.wait_for(selecting, 10)
    read = [one for batch in due.batches for one in batch.episode_ids]
    assert read == [*early, *(() if asked else late)]
