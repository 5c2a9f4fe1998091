"""Forgetting takes a memory and what rests only on it, and leaves no trace of it in the rest."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from temporalio.client import Client

from engram.domain.memories import (
    AnyMemory,
    DerivedMemory,
    MemoryStatus,
    MemoryType,
    SemanticMemory,
)
from engram.errors import MemoryNotFound, StorageUnavailable
from engram.storage.edge import EdgeRepository
from tests.support.remembering import everything, remembering, said


def about(memories: dict[str, AnyMemory], word: str) -> list[SemanticMemory]:
    """Statements that hold a word, replaced ones too."""
    found = [m for m in memories.values() if isinstance(m, SemanticMemory) and m.detail is None]
    return [memory for memory in found if word in memory.content]


def assert_no_trace(memories: dict[str, AnyMemory], *gone: str) -> None:
    """Nothing that is left refers to what was forgotten."""
    for memory in memories.values():
        for one in gone:
            # What guided earlier passes counts turns by their ids alone.
            # The run that composed a profile again is named after what was forgotten.
            text = memory.model_dump_json(exclude={"provenance"})
            where = text.find(one)
            assert where < 0, (memory.type, memory.content, text[max(0, where - 80) : where])


async def test_a_forgotten_turn_takes_what_only_it_supports(temporal_client: Client) -> None:
    """Conclusions of the turn go, shared ones stay with their other source, profiles follow."""
    async with remembering(temporal_client) as (memory, repository):
        secret = await memory.encode(
            said("I am allergic to penicillin. I live in Lisbon.", 0), session_id="s1"
        )
        await memory.encode(said("I live in Lisbon. I use Postgres.", 3), session_id="s2")
        await memory.consolidate()
        before = await everything(repository, memory.scope)
        assert about(before, "penicillin")
        (shared,) = about(before, "Lisbon")
        assert len(shared.source_episode_ids) == 2
        receipt = await memory.forget(secret.episode_ids[0])
        after = await everything(repository, memory.scope)
        assert receipt.forgotten[MemoryType.EPISODIC] == 1
        assert receipt.forgotten[MemoryType.SEMANTIC] >= 1
        assert receipt.amended >= 1
        assert not [m for m in after.values() if "penicillin" in m.model_dump_json()]
        assert_no_trace(after, secret.episode_ids[0], *(before.keys() - after.keys()))
        (kept,) = about(after, "Lisbon")
        assert kept.id == shared.id
        assert kept.source_episode_ids == shared.source_episode_ids[1:]
        assert kept.confidence.supporting_episodes == 1
        assert (await memory.verify(kept.id)).ok
        assert await memory.recall("What is the user allergic to?", memory_types="episodic")
        assert [t.content for t in await memory.working_memory("s1")] == []
        report = await memory.consolidate()
        assert report.stored == 0
        with pytest.raises(MemoryNotFound):
            await memory.forget(secret.episode_ids[0])


async def test_what_a_forgotten_value_had_replaced_holds_again(temporal_client: Client) -> None:
    """Without the move, the user lives where they lived before."""
    async with remembering(temporal_client) as (memory, repository):
        await memory.encode(said("I live in Paris.", 0), session_id="s1")
        await memory.encode(said("I moved to London.", 9), session_id="s2")
        await memory.consolidate()
        stored = await everything(repository, memory.scope)
        (london,) = [m for m in about(stored, "London") if m.status is MemoryStatus.ACTIVE]
        (paris,) = about(stored, "Paris")
        assert paris.superseded_by == london.id
        await memory.forget(london.id)
        after = await everything(repository, memory.scope)
        assert_no_trace(after, london.id)
        again = after[paris.id]
        assert isinstance(again, DerivedMemory)
        assert (again.status, again.superseded_by, again.valid_to) == (
            MemoryStatus.ACTIVE,
            None,
            None,
        )
        best = (await memory.recall("Where does the user live?", memory_types="semantic"))[0]
        assert best.memory.id == paris.id


async def test_another_users_memory_is_not_found(temporal_client: Client) -> None:
    """Whose id it is, nobody else can tell, let alone delete."""
    async with remembering(temporal_client) as (ada, repository):
        receipt = await ada.encode(said("I live in Lisbon.", 0), session_id="s1")
        with pytest.raises(MemoryNotFound):
            await ada.for_user("bob").forget(receipt.episode_ids[0])
        assert receipt.episode_ids[0] in await everything(repository, ada.scope)


@pytest.mark.parametrize("work", ["forget", "consolidate", "decay"])
async def test_who_waits_for_work_hears_why_the_store_takes_none(
    temporal_client: Client, monkeypatch: pytest.MonkeyPatch, work: str
) -> None:
    """A full disk is named as it is for encode; with room again the same call ends the work."""

    async def full(*_: object, **__: object) -> Any:
        raise StorageUnavailable("The disk of the store has 8 MB left.", hint="Make room.")

    async with remembering(temporal_client, encode_timeout=timedelta(seconds=2)) as (memory, _):
        turn = (await memory.encode("I live in Lisbon.", session_id="s1")).episode_ids[0]
        for method in ("replace", "insert", "delete", "scroll"):
            monkeypatch.setattr(EdgeRepository, method, full)

        async def ask() -> Any:
            return await (memory.forget(turn) if work == "forget" else getattr(memory, work)())

        with pytest.raises(StorageUnavailable, match=r"8 MB left.*Make room.*goes on by itself"):
            await ask()
        monkeypatch.undo()
        assert await ask()


async def test_work_that_failed_once_and_now_takes_long_is_waited_for(
    temporal_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that was away for a moment is not blamed for what its next attempt takes."""
    scroll, calls = EdgeRepository.scroll, count()

    async def slow(*given: Any, **named: Any) -> Any:
        number = next(calls)
        if number == 0:
            raise StorageUnavailable("The store was away.")
        if number == 1:
            await asyncio.sleep(5)
        return await scroll(*given, **named)

    async with remembering(temporal_client, encode_timeout=timedelta(seconds=2)) as (memory, _):
        await memory.encode("I live in Lisbon.", session_id="s1")
        monkeypatch.setattr(EdgeRepository, "scroll", slow)
        assert (await memory.consolidate()).stored == 1
