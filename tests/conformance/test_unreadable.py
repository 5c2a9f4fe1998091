"""What a newer version wrote, and what nobody can read: neither takes a user's other memories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from structlog.testing import capture_logs

from engram.consolidation.forgetting import Forgetter
from engram.domain.memories import AnyMemory, MemoryType, next_revision
from engram.domain.scope import Scope
from engram.errors import MemoryNotFound, StorageError
from engram.ports import MaintenanceRepository, Replacement, SearchRequest
from engram.storage.payload import encode
from tests.support.engines import ADA, episode, new, semantic, vectors

EPISODIC = MemoryType.EPISODIC


async def insert_with(
    repository: MaintenanceRepository,
    monkeypatch: pytest.MonkeyPatch,
    memories: list[AnyMemory],
    more: Mapping[str, Mapping[str, Any]],
) -> None:
    """Insert memories as another version would: some payloads, by id, have other fields."""

    def newer(scope: Scope, memory: AnyMemory) -> dict[str, Any]:
        return {**encode(scope, memory), **more.get(memory.id, {})}

    with monkeypatch.context() as patched:
        patched.setattr("engram.storage.base.encode", newer)
        await repository.insert(ADA, map(new, memories))


async def test_fields_of_a_newer_version_are_read_past_and_kept(
    repository: MaintenanceRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An old worker or API reads such a memory, and a change it makes loses none of them."""
    memory = episode(ADA, "turn", operation_ids=("op",))
    later = {"mood": "new in 2.0", "provenance": {"region": "north"}}
    await insert_with(repository, monkeypatch, [memory], {memory.id: later})
    found = (await repository.get(ADA, [memory.id]))[memory.id]
    assert found.content == memory.content
    after = next_revision(found, found.model_copy(update={"tags": ("seen",)}), write_id="w")
    assert await repository.replace(ADA, [Replacement(after, 0)]) == {memory.id}
    changed = (await repository.get(ADA, [memory.id]))[memory.id]
    assert changed.tags == ("seen",)
    assert changed.unknown_fields == {"mood": "new in 2.0"}


async def test_a_payload_that_cannot_be_read_costs_no_other(
    repository: MaintenanceRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is left out, counted and logged once by id; who writes by what is read is stopped."""
    turns: list[AnyMemory] = [episode(ADA, f"turn {number}") for number in range(5)]
    broken = turns[2].id
    await insert_with(repository, monkeypatch, turns, {broken: {"status": "new in 2.0"}})
    readable = {turn.id for turn in turns} - {broken}
    with capture_logs() as said:
        seen: set[str] = set()
        unreadable: list[str] = []
        cursor: str | None = None
        while True:
            page = await repository.scroll(ADA, EPISODIC, limit=2, cursor=cursor)
            seen |= {memory.id for memory in page.memories}
            unreadable += page.unreadable
            if (cursor := page.cursor) is None:
                break
        assert await repository.get(ADA, [turn.id for turn in turns]) == {
            turn.id: turn for turn in turns if turn.id != broken
        }
        request = SearchRequest(vectors=vectors(), types=(EPISODIC,), limit=10)
        found = {candidate.memory.id for candidate in await repository.search(ADA, request)}
    assert (seen, unreadable, found) == (readable, [broken], readable)
    assert (await repository.info()).details["unreadable"] == 1
    (line,) = said
    assert line["memory_id"] == broken
    assert "this is turn" not in str(line)
    with pytest.raises(StorageError, match="cannot be read"):
        await repository.get(ADA, [broken], fresh=True)


async def test_a_memory_that_cannot_be_read_can_be_forgotten(
    repository: MaintenanceRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes, with what was drawn from it; what is not there is still not found."""
    turn, other = episode(ADA, "turn"), episode(ADA, "other")
    drawn = semantic(ADA, "drawn", source_episode_ids=(turn.id, other.id))
    broken = {turn.id: {"status": "new in 2.0"}}
    await insert_with(repository, monkeypatch, [turn, other, drawn], broken)
    forgetter = Forgetter(repository, lambda: "w")
    await forgetter.apply(ADA, await forgetter.plan(ADA, turn.id))
    assert await repository.count(ADA, EPISODIC) == 1
    assert await repository.count(ADA, MemoryType.SEMANTIC) == 0
    with pytest.raises(MemoryNotFound):
        await forgetter.plan(ADA, turn.id)
