"""Random stories about a dozen slots, told in random portions: what is known is what was said.

Sixty of them by default. Five hundred:
ENGRAM_SLOT_SEQUENCES=500 uv run pytest tests/workflows/test_slot_sequences.py
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from temporalio.client import Client

from engram.consolidation.verify import verify
from engram.domain.memories import (
    DERIVED_TYPES,
    DerivedMemory,
    Episode,
    MemoryForm,
    MemoryStatus,
    MemoryType,
    SemanticMemory,
)
from engram.domain.scope import Scope
from engram.domain.slots import ends_something, slot_of
from engram.ports import MemoryRepository
from tests.support.consolidation_workers import consolidating
from tests.support.edge_stores import borrowed_store
from tests.support.in_process_memory import InProcessMemory, when
from tests.support.sizes import examples
from tests.support.slot_stories import KINDS, Account, Choice, Move, told
from tests.support.stores import worker_settings

SEQUENCES = int(os.environ.get("ENGRAM_SLOT_SEQUENCES", "60"))
MOVES: tuple[Move, ...] = ("state", "state", "correct", "repeat", "end", "deny")

CHOICES = st.builds(
    Choice,
    kind=st.integers(0, len(KINDS) - 1),
    move=st.sampled_from(MOVES),
    value=st.integers(0, 3),
    wording=st.integers(0, 3),
    same_turn=st.booleans(),
)


@pytest.fixture(scope="module")
def stories() -> Iterator[tuple[asyncio.Runner, InProcessMemory]]:
    """One store for all stories, and the loop that it lives on."""
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        opening = borrowed_store()
        repository = runner.run(stack.enter_async_context(opening))
        try:
            yield runner, InProcessMemory(repository)
        finally:
            runner.run(stack.aclose())


@settings(
    max_examples=examples(SEQUENCES),
    deadline=None,
    derandomize="ENGRAM_SLOT_SEQUENCES" not in os.environ,
    suppress_health_check=list(HealthCheck),
)
@given(
    choices=st.lists(CHOICES, min_size=1, max_size=24),
    cuts=st.lists(st.integers(1, 9), min_size=1, max_size=6),
)
def test_what_is_known_is_what_was_said(
    stories: tuple[asyncio.Runner, InProcessMemory], choices: list[Choice], cuts: list[int]
) -> None:
    """Current values, histories, sources, links and quotations, against a plain reading."""
    runner, memory = stories
    runner.run(_play(memory, choices, cuts))


async def _play(memory: InProcessMemory, choices: list[Choice], cuts: list[int]) -> None:
    turns, account = told(choices)
    scope = memory.somebody()
    first = 0
    for size in (*cuts, len(turns)):
        portion = turns[first : first + size]
        if portion:
            await memory.hear(scope, portion, first)
            await memory.consolidate(scope, when(first + size))
        first += size
    await check(memory.repository, scope, turns, account)


async def check(
    repository: MemoryRepository, scope: Scope, turns: Sequence[str], account: Account
) -> None:
    """Compare what is known with the account."""
    derived = [m for kind in DERIVED_TYPES for m in await _all(repository, scope, kind)]
    memories = {m.id: m for m in derived}
    semantic = [m for m in memories.values() if isinstance(m, SemanticMemory)]
    stated = [m for m in semantic if m.form is MemoryForm.STATEMENT]
    episodes = {e.id: e for e in await _all(repository, scope, MemoryType.EPISODIC)}
    sequence = {key: e.sequence for key, e in episodes.items() if isinstance(e, Episode)}
    assert len(sequence) == len(turns)
    for kind in KINDS:
        keys = [key for key in account.timelines if key[0] == kind.predicate]
        known = _known(stated, kind.predicate)
        if not kind.functional:
            assert {m.slot.object for m in known if m.slot} >= {key[1] for key in keys}
        for key in keys:
            of_key = [m for m in known if len(key) == 1 or (m.slot and m.slot.object == key[1])]
            _check_timeline(of_key, account, key, sequence, turns)
        current = {m.slot.object for m in known if _holds(m) and m.slot}
        expected = {held.value for key in keys if (held := account.current(key)) is not None}
        assert current == expected, (kind.predicate, turns)
    assert len({(m.identity, m.generation) for m in stated}) == len(stated)
    holding = [m.content for m in stated if _holds(m)]
    assert len(set(holding)) == len(holding), turns
    for memory in memories.values():
        _check_references(memory, memories, set(episodes))
        said = {key: one for key, one in episodes.items() if isinstance(one, Episode)}
        verdict = verify(memory, said)
        assert verdict.ok, (memory.content, verdict.explanation, turns)


def _known(memories: Sequence[SemanticMemory], predicate: str) -> list[SemanticMemory]:
    slot = slot_of("user", predicate, "")
    assert slot is not None
    return [
        m
        for m in memories
        if m.slot is not None and m.slot.predicate == slot.predicate and not ends_something(m.slot)
    ]


def _holds(memory: SemanticMemory) -> bool:
    return memory.superseded_by is None and memory.status is MemoryStatus.ACTIVE


def _check_timeline(
    known: Sequence[SemanticMemory],
    account: Account,
    key: tuple[str, ...],
    sequence: dict[str, int],
    turns: Sequence[str],
) -> None:
    """The history is whole and in order, and each part of it names the turns that say so."""
    in_order = sorted(known, key=lambda m: (m.event_at, m.known_at))
    found = [
        (m.slot.object if m.slot else "", sorted(sequence[e] for e in m.source_episode_ids))
        for m in in_order
    ]
    expected = [(held.value, held.turns) for held in account.timelines[key]]
    assert found == expected, (key, found, expected, turns)
    assert all(m.valid_to is not None for m in in_order[:-1]), (key, turns)


def _check_references(
    memory: DerivedMemory, memories: Mapping[str, DerivedMemory], episodes: set[str]
) -> None:
    assert set(memory.source_episode_ids) <= episodes
    for link in memory.links:
        assert memory.id in memories[link.target_id].related_ids
    if memory.superseded_by is not None:
        assert memory.id in memories[memory.superseded_by].supersedes
        assert memory.status is MemoryStatus.SUPERSEDED
    for older in memory.supersedes:
        assert memories[older].superseded_by == memory.id


async def _all(repository: MemoryRepository, scope: Scope, kind: MemoryType) -> list[Any]:
    return list((await repository.scroll(scope, kind, limit=500)).memories)


STORIES = (
    [(0, "state", 0), (0, "state", 1), (0, "state", 0), (0, "repeat", 0), (1, "state", 0)],
    [(7, "state", 0), (7, "end", 0), (7, "state", 0), (8, "state", 1), (8, "deny", 1)],
    [(2, "state", 0), (2, "correct", 1), (2, "end", 1), (3, "state", 0), (3, "correct", 1)],
)


@pytest.mark.parametrize("story", STORIES, ids=["moves", "returns", "corrections"])
async def test_the_same_holds_through_the_workflow(
    temporal_client: Client, story: list[tuple[int, Move, int]]
) -> None:
    """A few stories take the whole way: through Temporal, in two portions."""
    worker = worker_settings(extraction_batch_turns=2)
    choices = [Choice(kind, move, value, 0, same_turn=False) for kind, move, value in story]
    turns, account = told(choices)
    async with (
        borrowed_store() as repository,
        consolidating(temporal_client, repository, worker) as memory,
    ):
        in_process = InProcessMemory(repository)
        for first in (0, 3):
            await in_process.hear(memory.scope, turns[first : first + 3], first)
            await memory.consolidate()
        await check(repository, memory.scope, turns, account)
