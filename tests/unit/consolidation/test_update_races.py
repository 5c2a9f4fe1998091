"""Changing memories while others change them too, on a store that can be told who wins."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import cast

import pytest

from engram.domain.memories import AnyMemory, Episode, Fact, MemoryType
from engram.domain.scope import Scope
from engram.errors import LostUpdate
from engram.ports import MemoryRepository, Replacement, Stamp, unstamped
from engram.storage.updates import (
    DEFAULT_ATTEMPTS,
    MemoryChange,
    Updated,
    existing,
    update_memories,
    update_those,
)
from tests.support.reconciliation import SCOPE, said


@dataclass
class Shelf:
    """Memories in a dict, written on condition.

    Attributes:
        faster: Ids of which somebody else writes first, and how often still.
        gone: Ids that somebody else deletes at the first write.
        asked: Each read: of which ids, of which types, and whether it was fresh.
        written: Each write, by id.
        stamps: What each write was to be stamped by.
    """

    kept: dict[str, AnyMemory]
    faster: dict[str, int] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    asked: list[tuple[frozenset[str], Sequence[MemoryType] | None, bool]] = field(
        default_factory=list
    )
    written: list[list[str]] = field(default_factory=list)
    scopes: set[Scope] = field(default_factory=set)
    stamps: list[Stamp | None] = field(default_factory=list)

    async def get(
        self,
        scope: Scope,
        ids: Iterable[str],
        types: Sequence[MemoryType] | None = None,
        *,
        fresh: bool = False,
    ) -> dict[str, AnyMemory]:
        """Those that exist, in the order in which they were put there."""
        wanted = list(ids)
        self.scopes.add(scope)
        self.asked.append((frozenset(wanted), types, fresh))
        return {key: memory for key, memory in self.kept.items() if key in wanted}

    async def replace(
        self, scope: Scope, replacements: Iterable[Replacement], *, stamp: Stamp | None = None
    ) -> frozenset[str]:
        """Write those whose revision is still the expected one, after who is faster."""
        self.scopes.add(scope)
        self.stamps.append(stamp)
        pending = list(replacements)
        self.written.append([one.memory.id for one in pending])
        return frozenset(one.memory.id for one in pending if self._wins(one))

    def _wins(self, one: Replacement) -> bool:
        key = one.memory.id
        if key in self.gone:
            self.kept.pop(key, None)
            return False
        if self.faster.get(key, 0) > 0:
            self.faster[key] -= 1
            other = self.kept[key]
            tags = (*other.tags, "other")
            self.kept[key] = other.model_copy(update={"tags": tags, "revision": other.revision + 1})
        if self.kept[key].revision != one.expected_revision:
            return False
        self.kept[key] = one.memory
        return True


def shelf(*episodes: Episode) -> Shelf:
    """These on a shelf."""
    return Shelf({one.id: one for one in episodes})


def tagged(memory: AnyMemory) -> AnyMemory | None:
    """With a tag, unless it has it."""
    if "mine" in memory.tags:
        return None
    return memory.model_copy(update={"tags": (*memory.tags, "mine")})


def write_ids() -> Callable[[], str]:
    """Fresh values: w0, w1 and so on."""
    counter = itertools.count()
    return lambda: f"w{next(counter)}"


async def update(
    store: Shelf,
    ids: Iterable[str],
    *,
    attempts: int | None = None,
    types: Sequence[MemoryType] | None = None,
    change: MemoryChange = tagged,
) -> Updated:
    """Change these, with the usual number of attempts where none is given."""
    repository = cast("MemoryRepository", store)
    most = DEFAULT_ATTEMPTS if attempts is None else attempts
    return await update_memories(
        repository, SCOPE, ids, change, new_write_id=write_ids(), types=types, attempts=most
    )


TURNS = [said(day) for day in range(3)]


async def test_each_is_written_once_over_the_revision_that_was_read() -> None:
    """The next revision, under a fresh write id each; read freshly, of the types that are given."""
    first = TURNS[0].model_copy(update={"revision": 6})
    store = shelf(first, TURNS[1])
    done = await update(store, [first.id, TURNS[1].id], types=(MemoryType.EPISODIC,))
    assert done == Updated(changed=frozenset({first.id, TURNS[1].id}))
    assert store.scopes == {SCOPE}
    assert store.asked == [(frozenset(store.kept), (MemoryType.EPISODIC,), True)]
    assert {one.revision for one in store.kept.values()} == {7, 1}
    assert {one.write_id for one in store.kept.values()} == {"w0", "w1"}
    assert all(one.tags == ("mine",) for one in store.kept.values())


@pytest.mark.parametrize("stamp", [None, unstamped])
async def test_a_stamp_that_is_given_reaches_each_write(stamp: Stamp | None) -> None:
    """In place of the repository's own, which is used where none is given."""
    store = shelf(TURNS[0])
    repository = cast("MemoryRepository", store)
    await update_memories(
        repository, SCOPE, [TURNS[0].id], tagged, new_write_id=write_ids(), stamp=stamp
    )
    assert store.stamps == [stamp]


async def test_without_types_it_is_looked_for_everywhere() -> None:
    """The store is not told where."""
    store = shelf(TURNS[0])
    await update(store, [TURNS[0].id])
    assert [types for _, types, _ in store.asked] == [None]


async def test_what_becomes_of_each_is_told_apart() -> None:
    """Changed, with nothing to do, and missing; what needs no writing is not written."""
    new, had = TURNS[0], TURNS[1].model_copy(update={"tags": ("mine",)})
    store = shelf(had, new)
    done = await update(store, [new.id, had.id, "nowhere"])
    assert done == Updated(frozenset({new.id}), frozenset({had.id}), frozenset({"nowhere"}))
    assert store.written == [[new.id]]
    again = await update(store, [new.id, "nowhere"])
    assert again == Updated(unchanged=frozenset({new.id}), missing=frozenset({"nowhere"}))
    assert store.written == [[new.id]]


async def test_who_loses_a_race_reads_again_and_changes_what_won() -> None:
    """Only the one that lost is tried again, and both changes are there at the end."""
    store = shelf(*TURNS)
    lost = TURNS[1].id
    store.faster = {lost: 1}
    done = await update(store, [turn.id for turn in TURNS])
    assert done == Updated(changed=frozenset(turn.id for turn in TURNS))
    assert store.kept[lost].tags == ("other", "mine")
    assert [ids for ids, _, _ in store.asked] == [frozenset(store.kept), frozenset({lost})]
    assert store.kept[lost].write_id == "w3"


async def test_a_race_that_leaves_nothing_to_do_is_no_change() -> None:
    """The winner did the same: the second look finds it done."""
    store = shelf(TURNS[0])

    def once(memory: AnyMemory) -> AnyMemory | None:
        return None if "other" in memory.tags else tagged(memory)

    store.faster = {TURNS[0].id: 1}
    done = await update(store, [TURNS[0].id], change=once)
    assert done == Updated(unchanged=frozenset({TURNS[0].id}))


async def test_what_is_deleted_meanwhile_is_missing_and_not_brought_back() -> None:
    """A lost write of something that is gone ends as missing."""
    store = shelf(TURNS[0])
    store.gone = {TURNS[0].id}
    done = await update(store, [TURNS[0].id])
    assert done == Updated(missing=frozenset({TURNS[0].id}))
    assert not store.kept


@pytest.mark.parametrize(("attempts", "tries"), [(None, 8), (3, 3), (1, 1)])
async def test_a_writer_that_always_loses_gives_up_after_its_attempts(
    attempts: int | None, tries: int
) -> None:
    """Eight unless told otherwise; the error tells what to do, how often, and of which ids."""
    turns = [said(day) for day in range(12)]
    store = shelf(*turns)
    store.faster = {turn.id: 99 for turn in turns[:11]}
    with pytest.raises(LostUpdate) as lost:
        await update(store, [turn.id for turn in turns], attempts=attempts)
    assert len(store.written) == tries
    assert lost.value.message == "11 memories kept changing while they were being updated."
    assert lost.value.hint == (
        "Other writers were faster each time; the same call can succeed later."
    )
    losers = sorted(turn.id for turn in turns[:11])
    assert lost.value.details == {"attempts": tries, "ids": losers[:10]}
    assert store.kept[turns[11].id].tags == ("mine",)


async def test_winning_the_last_attempt_is_winning() -> None:
    """No more races than attempts are lost."""
    store = shelf(TURNS[0])
    store.faster = {TURNS[0].id: 2}
    assert (await update(store, [TURNS[0].id], attempts=3)).changed == {TURNS[0].id}


async def test_many_are_changed_by_the_hundred_and_each_of_them_once() -> None:
    """The ids of one call, without repeats, in portions; what became of all is told together."""
    turns = [said(day) for day in range(230)]
    store = shelf(*turns)
    ids = [turn.id for turn in turns]
    done = await update(store, [*ids, *ids[:50], "nowhere"])
    assert done == Updated(changed=frozenset(ids), missing=frozenset({"nowhere"}))
    read = [asked for asked, _, _ in store.asked]
    assert read == [frozenset(ids[:100]), frozenset(ids[100:200]), {*ids[200:], "nowhere"}]
    assert {one.revision for one in store.kept.values()} == {1}


async def test_nothing_asked_for_reads_nothing() -> None:
    """An update of no memories touches no store."""
    store = shelf(TURNS[0])
    assert await update(store, []) == Updated()
    assert not store.asked
    assert not store.written


def test_two_updates_together_keep_what_became_of_each() -> None:
    """Sets of the same kind are joined, and not mixed up with the others."""
    first = Updated(frozenset("a"), frozenset("b"), frozenset("c"))
    second = Updated(frozenset("d"), frozenset("e"), frozenset("f"))
    assert first.plus(second) == Updated(frozenset("ad"), frozenset("be"), frozenset("cf"))


async def test_what_exists_is_read_freshly_of_the_types_that_are_given() -> None:
    """Of many ids those that are there, in one read; of none, without any."""
    store = shelf(TURNS[0], TURNS[1])
    repository, types = cast("MemoryRepository", store), (MemoryType.EPISODIC,)
    asked = [TURNS[0].id, "not there"]
    assert await existing(repository, SCOPE, asked, types) == {TURNS[0].id}
    assert await existing(repository, SCOPE, [], types) == frozenset()
    assert store.scopes == {SCOPE}
    assert store.asked == [(frozenset(asked), types, True)]


async def test_of_one_class_only_its_types_are_read_and_only_it_is_changed() -> None:
    """What is of another class stays as it is, also where it is among the ids."""
    store = shelf(TURNS[0])
    (turn,) = store.kept.values()
    ids = tuple(store.kept)
    untouched = await update_those(
        cast("MemoryRepository", store), SCOPE, Fact, ids, lambda _: None, new_write_id=write_ids()
    )
    assert untouched.changed == set()
    assert store.kept == {turn.id: turn}

    def mine(episode: Episode) -> Episode | None:
        return cast("Episode | None", tagged(episode))

    done = await update_those(
        cast("MemoryRepository", store), SCOPE, Episode, ids, mine, new_write_id=write_ids()
    )
    assert done.changed == {turn.id}
    assert store.kept[turn.id].tags == ("mine",)
    assert [types for _, types, _ in store.asked[:2]] == [
        (MemoryType.FACTUAL,),
        (MemoryType.EPISODIC,),
    ]
