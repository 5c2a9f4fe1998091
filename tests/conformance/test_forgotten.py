"""What was forgotten is not inserted again, on every engine; nor what began before an erasure."""

from __future__ import annotations

from uuid import uuid4

import pytest

from engram.domain.identity import episode_id
from engram.domain.memories import MemoryType, SemanticMemory
from engram.errors import UserErased
from engram.ports import Equals, MaintenanceRepository, Missing, Not
from engram.storage.base import EngineRepository
from engram.storage.points import NewPoint
from tests.support.engines import ADA, BOB, new, one_of_each

KEY = uuid4().hex


async def test_a_buried_turn_is_not_inserted_again(repository: MaintenanceRepository) -> None:
    """The same id is refused and named; another user's turn, and other turns, are stored."""
    turn, *_ = one_of_each(ADA)
    theirs, *_ = one_of_each(BOB)
    await repository.bury(ADA, {turn.id}, drawn={}, key=KEY)
    assert await repository.insert(ADA, [new(turn)]) == {turn.id}
    assert await repository.insert(BOB, [new(theirs)]) == frozenset()
    assert await repository.get(ADA, [turn.id]) == {}
    assert (await repository.get(BOB, [theirs.id])).keys() == {theirs.id}


async def test_what_rests_on_a_buried_turn_is_refused(repository: MaintenanceRepository) -> None:
    """Conclusions, habits and facts that name it among others are not stored either."""
    memories = one_of_each(ADA)
    derived = [m for m in memories if m.type is not MemoryType.EPISODIC]
    gone = derived[0].source_episode_ids[0]
    await repository.bury(ADA, {gone}, drawn={}, key=KEY)
    assert await repository.insert(ADA, [new(m) for m in derived]) == {m.id for m in derived}


async def test_a_buried_conclusion_may_be_drawn_again_from_another_turn(
    repository: MaintenanceRepository,
) -> None:
    """Not from the turn that it was drawn from then; what is said later is a new statement."""
    known = next(m for m in one_of_each(ADA) if isinstance(m, SemanticMemory))
    sources = known.source_episode_ids
    await repository.bury(ADA, {known.id}, drawn={known.id: sources}, key=KEY)
    assert await repository.insert(ADA, [new(known)]) == {known.id}
    later = episode_id(ADA, "s9", "said again")
    again = known.model_copy(update={"source_episode_ids": (later,)})
    assert await repository.insert(ADA, [new(again)]) == frozenset()
    assert (await repository.get(ADA, [known.id])).keys() == {known.id}


async def test_marks_hold_no_word_and_no_id(repository: MaintenanceRepository) -> None:
    """Two users' marks of one id differ, and nobody's listing, count or erasure meets them."""
    turn, *_ = one_of_each(ADA)
    await repository.bury(ADA, {turn.id}, drawn={}, key=KEY)
    await repository.bury(BOB, {turn.id}, drawn={}, key=uuid4().hex)
    for scope in (ADA, BOB):
        assert await repository.count(scope, MemoryType.EPISODIC) == 0
        assert (await repository.scroll(scope, MemoryType.EPISODIC)).memories == ()
    assert not any((await repository.erase(ADA)).values())
    assert await repository.insert(ADA, [new(turn)]) == {turn.id}


async def test_an_insert_that_began_before_an_erasure_is_refused(
    repository: MaintenanceRepository,
) -> None:
    """The epoch that it carries is older; what begins afterwards is stored, buried ids too."""
    turn, *_ = one_of_each(ADA)
    began = await repository.epoch(ADA)
    await repository.bury(ADA, {turn.id}, drawn={}, key=KEY)
    assert await repository.raise_epoch(ADA, "one", key=uuid4().hex) == began + 1
    assert await repository.raise_epoch(ADA, "other", key=uuid4().hex) == began + 2
    assert await repository.raise_epoch(ADA, "one", key=uuid4().hex) == began + 1
    with pytest.raises(UserErased):
        await repository.insert(ADA, [new(turn)], epoch=began)
    assert await repository.count(ADA, MemoryType.EPISODIC) == 0
    now = await repository.epoch(ADA)
    assert await repository.insert(ADA, [new(turn)], epoch=now) == frozenset()
    assert await repository.epoch(BOB) == 0


async def test_an_insert_on_its_way_when_the_fence_rises_is_taken_back(
    repository: MaintenanceRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It passed the fence before that rose, and reached the engine after everything was gone."""
    turn, *_ = one_of_each(ADA)
    assert isinstance(repository, EngineRepository)
    insert = repository._insert  # noqa: SLF001 - the moment between two calls of the engine

    async def late(kind: MemoryType, points: list[NewPoint]) -> None:
        monkeypatch.undo()
        await repository.raise_epoch(ADA, "one", key=uuid4().hex)
        await repository.erase(ADA)
        await insert(kind, points)

    monkeypatch.setattr(repository, "_insert", late)
    with pytest.raises(UserErased):
        await repository.insert(ADA, [new(turn)])
    assert await repository.count(ADA, MemoryType.EPISODIC) == 0


async def test_a_turn_forgotten_while_it_is_inserted_is_taken_back(
    repository: MaintenanceRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forgetting noted and deleted between the look at the marks and the write."""
    turn, *_ = one_of_each(ADA)
    assert isinstance(repository, EngineRepository)
    insert = repository._insert  # noqa: SLF001 - the moment between two calls of the engine

    async def late(kind: MemoryType, points: list[NewPoint]) -> None:
        monkeypatch.undo()
        await repository.bury(ADA, {turn.id}, drawn={}, key=uuid4().hex)
        await insert(kind, points)

    monkeypatch.setattr(repository, "_insert", late)
    assert await repository.insert(ADA, [new(turn)]) == {turn.id}
    assert await repository.count(ADA, MemoryType.EPISODIC) == 0


async def test_marks_are_no_memories_to_whoever_reads_across_users(
    repository: MaintenanceRepository,
) -> None:
    """They are no one's turns, are not in need of judgement, and nobody lists or counts them."""
    turn = one_of_each(ADA)[0]
    judged = turn.model_copy(update={"policy_fingerprint": "one"})
    await repository.insert(ADA, [new(judged)])
    await repository.bury(ADA, {episode_id(ADA, "s", "a")}, drawn={}, key=KEY)
    await repository.raise_epoch(BOB, "an erasure", key=KEY)
    kind = MemoryType.EPISODIC
    assert await repository.values(kind, "policy_fingerprint") == {"one"}
    for where in ((), (Missing("policy_fingerprint"),), (Not(Equals("status", "deleted")),)):
        found = await repository.scopes(kind, where, order_by="known_at", limit=10)
        assert set(found) <= {ADA}
    page = await repository.scroll(ADA, kind)
    assert ([one.id for one in page.memories], page.unreadable) == ([turn.id], ())
    assert await repository.count(ADA, kind) == 1
