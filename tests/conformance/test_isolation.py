"""Two users do random things to a store; each sees exactly what a plain dict would show."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engram.domain.memories import STORED_TYPES, Episode, MemoryType, next_revision
from engram.domain.scope import Scope
from engram.ports import (
    Between,
    Condition,
    Either,
    Equals,
    HasId,
    MemoryRepository,
    Missing,
    Not,
    Replacement,
    SearchRequest,
)
from tests.support.engines import T0, Store, episode, new, vectors
from tests.support.reference_store import matches
from tests.support.sizes import examples

EPISODIC = MemoryType.EPISODIC
_examples = count()
SLOTS = st.integers(0, 5)
USERS = st.integers(0, 1)
MOMENTS = st.integers(0, 3).map(lambda ticks: T0 + timedelta(microseconds=ticks))

ACTIONS = st.one_of(
    st.tuples(st.just("insert"), USERS, USERS, st.lists(SLOTS, max_size=4), MOMENTS),
    st.tuples(st.just("replace"), USERS, USERS, SLOTS, st.integers(0, 2)),
    st.tuples(st.just("delete"), USERS, USERS, st.lists(SLOTS, max_size=3)),
    st.tuples(st.just("erase"), USERS),
)


@dataclass
class Twin:
    """The store and the dict it is compared with."""

    repository: MemoryRepository
    example: int
    kept: dict[str, Episode] = field(default_factory=dict)
    writes: Iterator[int] = field(default_factory=count)

    def scope(self, user: int) -> Scope:
        return Scope.of(f"example-{self.example}", f"user-{user}")

    def turn(self, as_user: int, owner: int, slot: int, **more: Any) -> Episode:
        """``owner``'s turn in this slot, as ``as_user`` would write it."""
        name = f"{self.example}/{owner}/{slot}"
        return episode(self.scope(as_user), name, **more)

    def of(self, user: int) -> dict[str, Episode]:
        scope = self.scope(user)
        return {key: memory for key, memory in self.kept.items() if memory.scope == scope}

    async def insert(self, user: int, owner: int, slots: list[int], moment: Any) -> None:
        turns = [
            self.turn(user, owner, slot, known_at=moment, write_id=f"w{next(self.writes)}")
            for slot in dict.fromkeys(slots)
        ]
        await self.repository.insert(self.scope(user), map(new, turns))
        for turn in turns:
            self.kept.setdefault(turn.id, turn)

    async def replace(self, user: int, owner: int, slot: int, revision: int) -> None:
        base = self.turn(user, owner, slot, revision=revision, tags=("replaced",))
        after = next_revision(base, base, write_id=f"w{next(self.writes)}")
        won = await self.repository.replace(self.scope(user), [Replacement(after, revision)])
        current = self.of(user).get(base.id)
        if current is not None and current.revision == revision:
            self.kept[base.id] = after
            assert won == {base.id}
        else:
            assert won == frozenset()

    async def delete(self, user: int, owner: int, slots: list[int]) -> None:
        ids = [self.turn(user, owner, slot).id for slot in slots]
        await self.repository.delete(self.scope(user), EPISODIC, ids)
        for memory_id in set(ids) & set(self.of(user)):
            del self.kept[memory_id]

    async def erase(self, user: int) -> None:
        mine = self.of(user)
        erased = await self.repository.erase(self.scope(user))
        assert erased == {**dict.fromkeys(STORED_TYPES, 0), EPISODIC: len(mine)}
        for memory_id in mine:
            del self.kept[memory_id]

    async def compare(self, where: tuple[Condition, ...]) -> None:
        every = [self.turn(0, owner, slot).id for owner in (0, 1) for slot in range(6)]
        for user in (0, 1):
            scope, mine = self.scope(user), self.of(user)
            assert await self.repository.get(scope, every) == mine
            wanted = {key for key, memory in mine.items() if matches(memory, where)}
            page = await self.repository.scroll(scope, EPISODIC, where=where)
            assert [memory.id for memory in page.memories] == sorted(
                wanted, key=lambda key: (mine[key].known_at, key)
            )
            assert await self.repository.count(scope, EPISODIC, where) == len(wanted)
            request = SearchRequest(vectors(), STORED_TYPES, 20, {EPISODIC: where})
            found = await self.repository.search(scope, request)
            assert {hit.memory.id: hit.memory for hit in found} == {
                key: mine[key] for key in wanted
            }


def conditions() -> st.SearchStrategy[Condition]:
    """Any condition over a few fields, nested."""
    ids = st.lists(SLOTS, max_size=3).map(
        lambda slots: HasId(tuple(episode(Scope.of("n", "u"), f"{s}").id for s in slots))
    )
    leaves: st.SearchStrategy[Condition] = st.one_of(
        st.sampled_from(
            [Equals("tags", "replaced"), Missing("tags"), Equals("revision", 1), Missing("speaker")]
        ),
        MOMENTS.map(lambda moment: Between("known_at", at_least=moment)),
        ids,
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            inner.map(Not), st.lists(inner, max_size=3).map(lambda found: Either(tuple(found)))
        ),
        max_leaves=5,
    )


def test_two_users_never_meet(unopened: Store) -> None:
    """Random writes by two users, also under each other's ids, against a plain dict."""
    with asyncio.Runner() as runner:
        repository = runner.run(unopened.open())

        @settings(
            max_examples=examples(40),
            deadline=None,
            derandomize=True,
            suppress_health_check=[HealthCheck.too_slow],
        )
        @given(actions=st.lists(ACTIONS, max_size=12), where=st.tuples(conditions()))
        def play(actions: list[tuple[Any, ...]], where: tuple[Condition, ...]) -> None:
            async def run() -> None:
                twin = Twin(repository, next(_examples))
                for name, *arguments in actions:
                    await getattr(twin, name)(*arguments)
                await twin.compare(())
                await twin.compare(where)

            runner.run(run())

        play()
        runner.run(repository.close())
        runner.run(unopened.remove())
