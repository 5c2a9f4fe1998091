"""Killed at any step, before or after its effect, consolidation leaves the very same memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal
from uuid import uuid4

import pytest
from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
)

from engram.contracts import names
from engram.domain.memories import STORED_TYPES, AnyMemory
from engram.domain.scope import Scope
from engram.errors import StorageUnavailable
from engram.ports import MemoryRepository
from engram.settings import Settings
from tests.support.consolidation_workers import Faults, Memory, consolidating, day

SAID = (
    ("s1", "I live in Paris and I use Trello.", day(1)),
    ("s1", "I work at Rise as a baker.", day(2)),
    ("s2", "I moved to London in March.", day(20, 3)),
    ("s2", "I switched from Trello to Linear, and I still work at Rise.", day(21, 3)),
)
# Which run wrote a memory, when the machine did, and how often.
OF_THE_RUN = {
    *("created_at", "derived_at", "consolidated_at", "write_id", "revision"),
    *("operation_ids", "review_at", "first_seen", "last_seen", "workflow_id", "run_id"),
}
AT_ONCE = timedelta(milliseconds=10)
Moment = Literal["before", "after"]


@dataclass
class Kill(Faults):
    """Ends activities of a run, before or after their effect.

    Attributes:
        places: Which ones, counted from 0 with every attempt, and when; each once.
        hangs: Whether they hang there until they are cancelled, rather than fail.
        reached: Set when all have been there.
    """

    places: set[tuple[int, Moment]] = field(default_factory=set)
    hangs: bool = False
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002 - the parameter's name belongs to Temporal's interface
        """See the base class."""
        return _Killed(next, self)

    async def here(self, number: int, moment: Moment) -> None:
        """End what runs, if this is a place."""
        if (number, moment) not in self.places:
            return
        self.places.discard((number, moment))
        if not self.places:
            self.reached.set()
        if self.hangs:
            await asyncio.Event().wait()
        raise ApplicationError("killed", type="kill", next_retry_delay=AT_ONCE)


class _Killed(ActivityInboundInterceptor):
    def __init__(self, inner: ActivityInboundInterceptor, kill: Kill) -> None:
        super().__init__(inner)
        self._kill = kill

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002 - the parameter's name belongs to Temporal's interface
        number = len(self._kill.calls)
        self._kill.calls.append(activity.info().activity_type)
        await self._kill.here(number, "before")
        result = await super().execute_activity(input)
        await self._kill.here(number, "after")
        return result


async def _say(memory: Memory) -> None:
    for session in ("s1", "s2"):
        turns = [(words, at) for where, words, at in SAID if where == session]
        await memory.say(*turns, session=session)


async def points(memory: Memory) -> dict[str, Any]:
    """Every stored point, without what tells one run from another."""
    found: list[AnyMemory] = []
    for kind in STORED_TYPES:
        found += (await memory.repository.scroll(memory.scope, kind, limit=500)).memories
    return {m.id: _without(m.model_dump(mode="json"), OF_THE_RUN) for m in found}


def _without(value: Any, left_out: Iterable[str]) -> Any:
    if isinstance(value, dict):
        return {k: _without(v, left_out) for k, v in value.items() if k not in left_out}
    if isinstance(value, list):
        return [_without(one, left_out) for one in value]
    return value


async def _consolidated(memory: Memory) -> dict[str, Any]:
    """What one pass over everything makes of an empty memory."""
    await memory.repository.erase(memory.scope)
    await _say(memory)
    report = await memory.consolidate()
    assert report.failures == ()
    assert [e.consolidated_at for e in await memory.episodes()].count(None) == 0
    return await points(memory)


@pytest.mark.slow
async def test_killed_at_every_step_it_leaves_the_same_memory(
    temporal_client: Client, repository: MemoryRepository, settings: Settings
) -> None:
    """Each activity fails before its effect, then after it; every point is the same."""
    kill = Kill()
    async with consolidating(temporal_client, repository, settings, faults=kill) as memory:
        undisturbed = await _consolidated(memory)
        steps = list(kill.calls)
        assert set(steps) >= {
            *(names.SELECT_DUE_ACTIVITY, names.EXTRACT_ACTIVITY, names.LINK_ACTIVITY),
            *(names.CONSOLIDATE_TURNS_ACTIVITY, names.DIGEST_ACTIVITY),
        }
        for number, step in enumerate(steps):
            # The attempt after the one that was killed before it did anything is killed
            # when it has done everything.
            kill.places |= {(number, "before"), (number + 1, "after")}
            kill.calls.clear()
            after = await _consolidated(memory)
            assert kill.places == set()
            assert kill.calls[number : number + 3] == [step] * 3
            assert after == undisturbed, (number, step)


class Stumbling:
    """Lets the store fail once, in or just after one of its writes.

    Attributes:
        at: Which write, counted from 0; None: none.
        half: Whether it writes only the first half of what it is given.
        writes: How many there were.
    """

    def __init__(self, repository: MemoryRepository, patch: pytest.MonkeyPatch) -> None:
        self.at: int | None = None
        self.half = False
        self.writes = 0
        for name in ("insert", "replace", "delete"):
            patch.setattr(repository, name, self._counted(getattr(repository, name)))

    def _counted(self, write: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def counted(*args: Any, **named: Any) -> Any:
            fails = self.writes == self.at
            if fails and self.half:
                *where, given = args
                given = list(given)
                args = (*where, given[: len(given) // 2])
            result = await write(*args, **named)
            self.writes += 1
            if fails:
                self.at = None
                raise StorageUnavailable("killed")
            return result

        return counted


async def _stumbles_everywhere(
    client: Client,
    repository: MemoryRepository,
    settings: Settings,
    patch: pytest.MonkeyPatch,
    places: slice,
    *,
    half: bool = False,
) -> None:
    store = Stumbling(repository, patch)
    store.half = half
    async with consolidating(client, repository, settings) as memory:
        await _say(memory)
        said = store.writes
        undisturbed = await _consolidated(memory)
        for place in range(store.writes - 2 * said)[places]:
            store.writes, store.at = -said, place
            assert await _consolidated(memory) == undisturbed, place
            assert store.at is None, place


@pytest.mark.slow
@pytest.mark.parametrize("half", [False, True], ids=["whole", "half"])
async def test_killed_between_any_two_writes_it_leaves_the_same_memory(
    temporal_client: Client,
    repository: MemoryRepository,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    *,
    half: bool,
) -> None:
    """The store fails once after or in each write: nothing is lost, twice, or unlinked."""
    await _stumbles_everywhere(
        temporal_client, repository, settings, monkeypatch, slice(None), half=half
    )


async def test_killed_between_writing_and_retiring_it_leaves_the_same_memory(
    temporal_client: Client,
    repository: MemoryRepository,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the first attempt stored is linked and digested by the one after it."""
    await _stumbles_everywhere(temporal_client, repository, settings, monkeypatch, slice(0, 2))


@pytest.mark.parametrize(
    ("step", "moment"),
    [
        (names.EXTRACT_ACTIVITY, "before"),
        (names.CONSOLIDATE_TURNS_ACTIVITY, "after"),
    ],
)
async def test_another_worker_goes_on_where_one_was_stopped(
    temporal_client: Client,
    repository: MemoryRepository,
    settings: Settings,
    step: str,
    moment: Moment,
) -> None:
    """A worker stops in the middle of an activity; what another makes of it is the same."""
    scope = Scope.of("default", f"user-{uuid4().hex[:8]}")
    kill = Kill()
    async with consolidating(
        temporal_client, repository, settings, scope=scope, faults=kill
    ) as memory:
        undisturbed = await _consolidated(memory)
        kill.places, kill.hangs = {(kill.calls.index(step), moment)}, True
        kill.calls.clear()
        await repository.erase(scope)
        await _say(memory)
        # Whoever waits for an update waits on, whatever becomes of workers.
        asked = asyncio.create_task(memory.consolidate())
        await kill.reached.wait()
    assert not asked.done()
    async with consolidating(temporal_client, repository, settings, scope=scope) as memory:
        report = await asked
        assert report.failures == ()
        assert await points(memory) == undisturbed
