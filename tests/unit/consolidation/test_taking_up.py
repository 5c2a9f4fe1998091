"""Taking up many batches in one step comes to what one step after the other comes to."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from engram.consolidation.apply import PlanWriter
from engram.consolidation.known import KnownMemories
from engram.contracts.consolidation import ConsolidateTurnsInput, ExtractInput
from engram.domain.memories import MemoryForm, MemoryType, SemanticMemory
from engram.domain.scope import Scope
from engram.errors import StorageUnavailable
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


LIKED = ("tea", "milk", "mead", "cider", "perry", "water", "juice", "cocoa", "sake", "rum")


async def _step(memory: InProcessMemory, scope: Scope) -> ConsolidateTurnsInput:
    """Everything that is due, read, as one step that is to take it up."""
    common: dict[str, Any] = {"scope": scope, "now": NOW}
    due = await run(memory.storing.select_due, memory.selecting(scope, NOW))
    first, *further = due.batches
    read = await run(
        memory.thinking.extract,
        ExtractInput(episode_ids=first.episode_ids, further=tuple(further), **common),
    )
    parts = tuple(
        answer.of(batch.episode_ids)
        for batch, answer in zip(due.batches, (read, *read.further), strict=True)
    )
    return ConsolidateTurnsInput(parts=parts, workflow_id="w", run_id="r", **common)


async def _summaries(memory: InProcessMemory, scope: Scope) -> list[SemanticMemory]:
    page = await memory.repository.scroll(scope, MemoryType.SEMANTIC, limit=500)
    found = (m for m in page.memories if isinstance(m, SemanticMemory))
    return [m for m in found if m.form is MemoryForm.SUMMARY]


async def test_a_step_makes_a_summary_once() -> None:
    """Over three batches: one generation, which says what the last of one after the other says."""
    scope = Scope.of("default", "ada")
    told = [f"I like {drink}." for drink in LIKED]
    async with borrowed_store() as repository:
        memory = InProcessMemory(repository)
        await memory.hear(scope, told)
        await memory.consolidate(scope, NOW)
        one_by_one = await _summaries(memory, scope)
    async with borrowed_store() as repository:
        memory = InProcessMemory(repository)
        await memory.hear(scope, told)
        await run(memory.storing.consolidate_turns, await _step(memory, scope))
        (at_once,) = await _summaries(memory, scope)
    assert len(one_by_one) > 1
    last = max(one_by_one, key=lambda summary: summary.generation)
    assert (at_once.content, at_once.source_episode_ids) == (last.content, last.source_episode_ids)


@pytest.mark.parametrize("ending_in", ["summed_up_with", "_change"])
async def test_a_step_that_ended_before_its_summary_was_whole_is_made_again(
    ending_in: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its turns stay due, and the next attempt leaves one summary, linked at both ends."""
    scope = Scope.of("default", "ada")
    owner = KnownMemories if ending_in == "summed_up_with" else PlanWriter
    as_it_is = getattr(owner, ending_in)

    async def ends(*given: Any, **named: Any) -> Any:
        if ending_in == "summed_up_with" or any(given[4]):
            raise StorageUnavailable("The process ended.")
        return await as_it_is(*given, **named)

    async with borrowed_store() as repository:
        memory = InProcessMemory(repository)
        await memory.hear(scope, [f"I like {drink}." for drink in LIKED])
        step = await _step(memory, scope)
        with monkeypatch.context() as patched:
            patched.setattr(owner, ending_in, ends)
            with pytest.raises(StorageUnavailable):
                await run(memory.storing.consolidate_turns, step)
        assert len(await _summaries(memory, scope)) == int(ending_in == "_change")
        assert (await _step(memory, scope)).parts == step.parts
        await run(memory.storing.consolidate_turns, step.model_copy(update={"repeated": True}))
        (summary,) = await _summaries(memory, scope)
        assert len(summary.links) == len(LIKED)
        members = await repository.get(scope, {link.target_id for link in summary.links})
        assert len(members) == len(LIKED)
        for member in members.values():
            assert isinstance(member, SemanticMemory)
            assert [link.target_id for link in member.links] == [summary.id]
        assert not (await run(memory.storing.select_due, memory.selecting(scope, NOW))).batches
