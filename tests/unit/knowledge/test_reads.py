"""Reads that many parts share: nothing missed, nothing twice, nothing that is not there."""

from __future__ import annotations

from engram.domain.memories import MemoryType
from engram.ports import Equals, MemoryRepository
from engram.storage.updates import episodes_by_id, every_page
from tests.support.conclusions import SCOPE, keep, statement, turn


async def test_episodes_by_id_and_listings_to_their_end(repository: MemoryRepository) -> None:
    """Ids of other memories and of nobody are left out; pages are full but for the last."""
    turns = [turn(f"number {number}") for number in range(7)]
    known = statement("The user counts.", turns[0])
    await keep(repository, [*turns, known])
    ids = [turns[3].id, known.id, "nobody", turns[1].id, turns[3].id]
    assert list(await episodes_by_id(repository, SCOPE, ids)) == [turns[3].id, turns[1].id]
    assert await episodes_by_id(repository, SCOPE, []) == {}
    pages = [p async for p in every_page(repository, SCOPE, MemoryType.EPISODIC, at_once=3)]
    assert [len(page) for page in pages] == [3, 3, 1]
    assert sorted(m.id for page in pages for m in page) == sorted(one.id for one in turns)
    where = (Equals("session_id", "none"),)
    assert [p async for p in every_page(repository, SCOPE, MemoryType.EPISODIC, where=where)] == []
