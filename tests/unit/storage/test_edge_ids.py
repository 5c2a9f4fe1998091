"""Ids of what the in-process engine finds, spelled as memories have them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from engram.domain.memories import MemoryType
from engram.storage.edge_engine import engine, spelled
from tests.support.engines import ADA, episode, new, open_engine_at


@dataclass(frozen=True)
class OtherPoint:
    """A point that another version of the engine shows in another way."""

    id: UUID
    score: float = 1.0


async def test_ids_are_read_off_what_the_engine_shows_of_a_point(folder: Path) -> None:
    """They are those that the engine gives as UUIDs, in the order of its answer."""
    repository = await open_engine_at(folder)
    turns = [episode(ADA, f"turn {number}") for number in range(20)]
    await repository.insert(ADA, map(new, turns))
    shard = repository.shards[MemoryType.EPISODIC]
    found = shard.query(engine.QueryRequest(limit=50))
    assert spelled(found) == [str(point.id) for point in found]
    assert sorted(spelled(found)) == sorted(turn.id for turn in turns)
    assert spelled([]) == []
    await repository.close()


def test_a_point_that_looks_otherwise_is_asked_for_its_id() -> None:
    """What the engine shows is for people, and may change with any version."""
    points = [OtherPoint(UUID(int=number)) for number in (7, 3)]
    assert spelled(points) == [str(UUID(int=7)), str(UUID(int=3))]
