"""Listings: complete, in order, and never a memory twice, however many moments are equal."""

from __future__ import annotations

from datetime import timedelta

import pytest

from engram.domain.memories import AnyMemory, MemoryType
from engram.domain.scope import Scope
from engram.errors import InvalidQuery, UnindexedField
from engram.ports import Filter, MemoryRepository, Missing
from tests.support.engines import ADA, BOB, T0, episode, new
from tests.support.reference_store import matches

EPISODIC = MemoryType.EPISODIC
TICK = timedelta(microseconds=1)


def _turns() -> list[AnyMemory]:
    """60 turns: one moment shared by 30, several by a few, the rest alone, a tick apart."""
    moments = [T0 + 5 * TICK] * 30 + [T0 + (number // 3) * TICK for number in range(15)]
    moments += [T0 + timedelta(days=number) for number in range(15)]
    turns: list[AnyMemory] = [
        episode(ADA, f"turn {number}", moment, consolidated_at=moment if number % 2 else None)
        for number, moment in enumerate(moments)
    ]
    # By id, and so in an order that has nothing to do with time.
    return sorted(turns, key=lambda turn: turn.id)


TURNS = _turns()


async def read_all(
    repository: MemoryRepository,
    limit: int,
    *,
    scope: Scope = ADA,
    order_by: str = "known_at",
    descending: bool = False,
    where: Filter = (),
) -> list[str]:
    """The ids of a whole listing, page by page."""
    ids: list[str] = []
    cursor: str | None = None
    while True:
        page = await repository.scroll(
            scope,
            EPISODIC,
            where=where,
            order_by=order_by,
            descending=descending,
            limit=limit,
            cursor=cursor,
        )
        assert len(page.memories) == limit or page.cursor is None
        ids += [memory.id for memory in page.memories]
        cursor = page.cursor
        if cursor is None:
            return ids


def expected(order_by: str, *, descending: bool, where: Filter = ()) -> list[str]:
    """The same listing from plain Python: by moment, ties by ascending id."""
    kept = [turn for turn in TURNS if getattr(turn, order_by) is not None and matches(turn, where)]
    by_id = sorted(kept, key=lambda turn: turn.id)
    return [
        turn.id
        for turn in sorted(by_id, key=lambda turn: getattr(turn, order_by), reverse=descending)
    ]


@pytest.mark.parametrize("descending", [False, True])
async def test_pages_of_any_size_give_the_same_listing(
    repository: MemoryRepository,
    descending: bool,
) -> None:
    """Page sizes below, at and above a tie of 30 all give the one true order."""
    await repository.insert(ADA, map(new, TURNS))
    await repository.insert(BOB, [new(episode(BOB, f"bob {n}", T0 + 5 * TICK)) for n in range(9)])
    for order_by in ("known_at", "consolidated_at"):
        right = expected(order_by, descending=descending)
        for limit in (1, 7, 29, 30, 31, 59, 60, 61, 1000):
            listed = await read_all(repository, limit, order_by=order_by, descending=descending)
            assert listed == right, (order_by, limit)


async def test_a_filtered_listing_is_paged_the_same(repository: MemoryRepository) -> None:
    """Conditions narrow each page alike."""
    await repository.insert(ADA, map(new, TURNS))
    where: Filter = (Missing("consolidated_at"),)
    right = expected("known_at", descending=False, where=where)
    assert len(right) == 30
    assert await read_all(repository, 7, where=where) == right


async def test_a_listing_goes_on_after_its_last_memory_was_deleted(
    repository: MemoryRepository,
) -> None:
    """The cursor is a position, not a memory: deleting at it and before it skips nothing."""
    await repository.insert(ADA, map(new, TURNS))
    right = expected("known_at", descending=False)
    page = await repository.scroll(ADA, EPISODIC, limit=30)
    await repository.delete(ADA, EPISODIC, right[:30])
    rest = await repository.scroll(ADA, EPISODIC, limit=200, cursor=page.cursor)
    assert [memory.id for memory in rest.memories] == right[30:]


async def test_what_is_inserted_further_on_is_listed(repository: MemoryRepository) -> None:
    """A memory that comes to lie beyond the cursor is part of the rest; one before is not."""
    await repository.insert(ADA, map(new, TURNS))
    page = await repository.scroll(ADA, EPISODIC, limit=50)
    before, after = episode(ADA, "early", T0 - TICK), episode(ADA, "late", T0 + 1000 * TICK * 10**9)
    await repository.insert(ADA, [new(before), new(after)])
    rest = await repository.scroll(ADA, EPISODIC, limit=50, cursor=page.cursor)
    ids = [memory.id for memory in rest.memories]
    assert after.id in ids
    assert before.id not in ids


async def test_cursors_of_other_listings_are_refused(repository: MemoryRepository) -> None:
    """Another order, direction or type, or no cursor at all: a typed error."""
    await repository.insert(ADA, map(new, TURNS))
    cursor = (await repository.scroll(ADA, EPISODIC, limit=3)).cursor
    assert cursor is not None
    with pytest.raises(InvalidQuery):
        await repository.scroll(ADA, EPISODIC, cursor=cursor, order_by="timestamp")
    with pytest.raises(InvalidQuery):
        await repository.scroll(ADA, EPISODIC, cursor=cursor, descending=True)
    with pytest.raises(InvalidQuery):
        await repository.scroll(ADA, MemoryType.SEMANTIC, cursor=cursor)
    for nonsense in ("", "x", "é", cursor[:-4], cursor + "AAAA", "bnVsbA", "W10"):
        with pytest.raises(InvalidQuery):
            await repository.scroll(ADA, EPISODIC, cursor=nonsense)


async def test_another_users_cursor_shows_nothing_of_hers(repository: MemoryRepository) -> None:
    """A cursor is only a position: Bob with Ada's cursor lists his own."""
    await repository.insert(ADA, map(new, TURNS))
    his = episode(BOB, "his", T0 + timedelta(days=99))
    await repository.insert(BOB, [new(his)])
    cursor = (await repository.scroll(ADA, EPISODIC, limit=3)).cursor
    page = await repository.scroll(BOB, EPISODIC, cursor=cursor)
    assert page.memories == (his,)


async def test_only_times_can_order(repository: MemoryRepository) -> None:
    """Ordering by another kind of field, or by one without index, is refused."""
    with pytest.raises(InvalidQuery, match="known_at"):
        await repository.scroll(ADA, EPISODIC, order_by="sequence")
    with pytest.raises(UnindexedField):
        await repository.scroll(ADA, EPISODIC, order_by="content")
