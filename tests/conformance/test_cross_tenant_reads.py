"""What passes over everybody ask: who has such memories, and which values there are."""

from __future__ import annotations

from datetime import timedelta

import pytest

from engram.domain.memories import MemoryType
from engram.domain.scope import Scope
from engram.errors import InvalidQuery, UnindexedField
from engram.ports import Between, Equals, MaintenanceRepository, MemoryRepository
from tests.support.engines import ADA, BOB, T0, episode, new

CAROL = Scope.of("other", "carol")


async def _reviewed(repository: MemoryRepository, scope: Scope, *hours: int) -> None:
    memories = [
        episode(
            scope,
            f"{scope.user_id}-{hour}",
            review_at=T0 + timedelta(hours=hour),
            policy_fingerprint="one",
        )
        for hour in hours
    ]
    await repository.insert(scope, map(new, memories))


async def test_scopes_come_in_order_of_their_first_match(repository: MaintenanceRepository) -> None:
    """However many memories of one user match, each user is named once, the earliest first."""
    await _reviewed(repository, ADA, *range(10, 150))
    await _reviewed(repository, BOB, 5, 200)
    await _reviewed(repository, CAROL, 7, 300)
    due = (Between("review_at", at_most=T0 + timedelta(hours=160)),)

    async def users(limit: int = 10, skip: tuple[Scope, ...] = ()) -> tuple[Scope, ...]:
        return await repository.scopes(
            MemoryType.EPISODIC, due, order_by="review_at", limit=limit, skip=skip
        )

    assert await users() == (BOB, CAROL, ADA)
    assert await users(limit=2) == (BOB, CAROL)
    assert await users(skip=(BOB,)) == (CAROL, ADA)
    assert await users(skip=(ADA, BOB, CAROL)) == ()


async def test_scopes_can_be_of_one_namespace(repository: MaintenanceRepository) -> None:
    """The namespace is a field that conditions can name."""
    await _reviewed(repository, ADA, 1)
    await _reviewed(repository, CAROL, 2)
    where = (Equals("namespace", "other"),)
    assert await repository.scopes(MemoryType.EPISODIC, where, order_by="review_at", limit=5) == (
        CAROL,
    )


async def test_scopes_refuse_what_has_no_index(repository: MaintenanceRepository) -> None:
    """The rules of listings hold without a scope too."""
    with pytest.raises(UnindexedField):
        await repository.scopes(MemoryType.EPISODIC, (), order_by="created_at", limit=5)
    with pytest.raises(InvalidQuery):
        await repository.scopes(MemoryType.EPISODIC, (), order_by="review_at", limit=0)


async def test_values_span_users_and_tell_of_memories_without_one(
    repository: MaintenanceRepository,
) -> None:
    """Which rules memories were judged by is known without reading them."""
    assert await repository.values(MemoryType.EPISODIC, "policy_fingerprint") == frozenset()
    await _reviewed(repository, ADA, 1, 2)
    assert await repository.values(MemoryType.EPISODIC, "policy_fingerprint") == {"one"}
    other = episode(BOB, "other", policy_fingerprint="two")
    await repository.insert(BOB, map(new, [other, episode(BOB, "none")]))
    assert await repository.values(MemoryType.EPISODIC, "policy_fingerprint") == {
        "one",
        "two",
        None,
    }


async def test_values_are_of_indexed_keywords_only(repository: MaintenanceRepository) -> None:
    """A time or an unknown field is refused."""
    with pytest.raises(InvalidQuery):
        await repository.values(MemoryType.EPISODIC, "review_at")
    with pytest.raises(UnindexedField):
        await repository.values(MemoryType.EPISODIC, "content")


async def test_deleting_spares_what_changed_since(repository: MaintenanceRepository) -> None:
    """A memory that was written after the decision to remove it stays; other users' always do."""
    kept, gone = episode(ADA, "kept", revision=3), episode(ADA, "gone", revision=3)
    await repository.insert(ADA, map(new, [kept, gone]))
    revisions = {kept.id: 2, gone.id: 3}
    await repository.delete_unchanged(BOB, MemoryType.EPISODIC, revisions)
    assert await repository.count(ADA, MemoryType.EPISODIC) == 2
    await repository.delete_unchanged(ADA, MemoryType.EPISODIC, revisions)
    assert set(await repository.get(ADA, revisions)) == {kept.id}
