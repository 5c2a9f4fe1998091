"""The Temporal Schedules that run passes over all users."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import structlog
from pydantic import BaseModel, ConfigDict
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleBackfill,
    ScheduleDescription,
    ScheduleHandle,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.exceptions import TemporalError
from temporalio.service import RPCError, RPCStatusCode

from engram.contracts import names
from engram.contracts.attributes import attributes, precedence
from engram.contracts.lifecycle import PassKind
from engram.errors import EngramError, InvalidQuery, RunEnded
from engram.settings import Settings
from engram.temporal.passes import maintenance_state
from engram.temporal.retry import asked_again, being_cancelled, typed

_RECENT: Final = 5
# How long a schedule may take to tell how it stands; it takes some milliseconds.
_ANSWERED: Final = timedelta(seconds=3)
# What Temporal's client says then.
_TOO_LATE: Final = frozenset({RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED})
# Seconds between two tries to make the schedules.
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 300.0
_MOST_DOUBLINGS: Final = 10

_log = structlog.get_logger("engram.schedules")
_ABOUT: Final = {
    PassKind.CONSOLIDATION: "Asks for the consolidation of every user with turns that wait.\n\n"
    "`engram schedules pause consolidation` stops it, `engram consolidate --all` is one by hand.",
    PassKind.DECAY: "Reviews memories whose time has come, of every user who has some.\n\n"
    "`engram schedules pause decay` stops it, `engram decay --all --dry-run` only looks.",
    PassKind.PROMOTION: "Makes habits of what proved itself, of every user who has candidates.\n\n"
    "`engram schedules pause promotion` stops it, `engram promote --all` is one by hand.",
}
"""Of each kind of pass, what people read of it in the Temporal UI."""


@asynccontextmanager
async def keeping_schedules(client: Client, settings: Settings) -> AsyncIterator[None]:
    """Bring the schedules up to date beside the block, which does not wait for it."""

    async def ensure() -> None:
        for number in itertools.count():
            try:
                await Schedules(client, settings).ensure()
            except EngramError as error:
                # Search attributes that were just registered are unknown for a minute, and may
                # be registered at any time: without schedules, nobody else asks for passes.
                pause = min(_FIRST_PAUSE * 2 ** min(number, _MOST_DOUBLINGS), _LONGEST_PAUSE)
                _log.warning(
                    "the schedules could not be brought up to date; it is tried again",
                    code=error.code,
                    reason=error.message,
                    seconds=pause,
                )
                await asyncio.sleep(pause)
            else:
                return

    ensuring = asyncio.create_task(ensure())
    try:
        yield
    finally:
        ensuring.cancel()
        with suppress(asyncio.CancelledError):
            await ensuring


class ScheduleInfo(BaseModel):
    """How one schedule stands.

    Attributes:
        kind: What its passes do for each user.
        schedule_id: As the Temporal UI names it.
        exists: Whether Temporal has it; a worker or ``engram up`` makes it.
        paused: Whether it waits to be resumed.
        note: Why it was paused.
        every: Time from one pass to the next.
        next_at: The next pass; None while it is paused.
        recent: Workflow ids of the last passes it started, oldest first.
        missed: Passes that were too old to be made up for.
        skipped: Passes left out because the one before still ran.
    """

    model_config = ConfigDict(frozen=True)

    kind: PassKind
    schedule_id: str
    exists: bool = False
    paused: bool = False
    note: str | None = None
    every: timedelta | None = None
    next_at: datetime | None = None
    recent: tuple[str, ...] = ()
    missed: int = 0
    skipped: int = 0


class Schedules:
    """Keeps the schedules as the settings say, and lets an operator handle them.

    Args:
        client: Connected, with the pydantic data converter.
        settings: Intervals, jitter, catch-up, and what passes are started with.
    """

    def __init__(self, client: Client, settings: Settings) -> None:
        self._client = client
        self._settings = settings

    async def ensure(self) -> None:
        """Make the schedules, or bring them up to date; remove them where they are off.

        May be called by any number of workers at once. What an operator paused
        stays paused.

        Raises:
            TemporalUnavailable: Temporal cannot be reached.
        """
        for kind in PassKind:
            if not self._settings.schedules:
                await self.delete(kind)
                continue
            wanted = self._schedule(kind)
            try:
                await self._client.create_schedule(self.id_of(kind), wanted)
            except ScheduleAlreadyRunningError:
                await self._call(kind, _updating(wanted))
            except (RPCError, TemporalError) as error:
                raise typed(error) from error

    async def list(self) -> list[ScheduleInfo]:
        """How each schedule stands.

        Raises:
            TemporalUnavailable: Temporal cannot be reached.
        """
        return [await self.describe(kind) for kind in PassKind]

    async def describe(self, kind: PassKind) -> ScheduleInfo:
        """How one schedule stands."""

        async def attempt() -> ScheduleInfo:
            try:
                return _info(kind, await self._handle(kind).describe(rpc_timeout=_ANSWERED))
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND:
                    return ScheduleInfo(kind=kind, schedule_id=self.id_of(kind))
                _ask_again_where_left_open(error)
                raise

        return await asked_again(attempt)

    async def check_keys(self) -> bool:
        """Read what the worker that started last put there; False where there are no schedules.

        Raises:
            PayloadRefused: that worker has other encryption keys than we, or one of us has none.
            TemporalUnavailable: Temporal cannot be reached.
        """

        async def attempt() -> bool:
            try:
                found = await self._handle(PassKind.CONSOLIDATION).describe(rpc_timeout=_ANSWERED)
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND:
                    return False
                _ask_again_where_left_open(error)
                raise
            started_with = found.raw_description.schedule.action.start_workflow.input
            await self._client.data_converter.decode(started_with.payloads)
            return True

        return await asked_again(attempt)

    async def pause(self, kind: PassKind, *, note: str = "paused by an operator") -> None:
        """Start no passes until it is resumed; a pass that runs goes on.

        Raises:
            InvalidQuery: there is no such schedule.
        """
        await self._call(kind, lambda handle: handle.pause(note=note))

    async def resume(self, kind: PassKind) -> None:
        """Start passes again.

        Raises:
            InvalidQuery: there is no such schedule.
        """
        await self._call(kind, lambda handle: handle.unpause(note="resumed by an operator"))

    async def trigger(self, kind: PassKind) -> None:
        """Start a pass now, as the schedule would; left out if one runs.

        Raises:
            InvalidQuery: there is no such schedule.
        """
        await self._call(kind, lambda handle: handle.trigger())

    async def backfill(self, kind: PassKind, start: datetime, end: datetime) -> None:
        """Start what the schedule would have started in a past stretch of time.

        Passes see what is due now, so of several that overlap one is enough: the
        others are left out.

        Raises:
            InvalidQuery: the stretch is empty or has no timezone, or there is no such schedule.
        """
        if start.utcoffset() is None or end.utcoffset() is None or start >= end:
            raise InvalidQuery(
                "The stretch of time is not usable.",
                allowed="a start before an end, both with timezone",
            )
        fill = ScheduleBackfill(start_at=start, end_at=end, overlap=ScheduleOverlapPolicy.SKIP)
        await self._call(kind, lambda handle: handle.backfill(fill))

    async def delete(self, kind: PassKind) -> bool:
        """Remove the schedule; whether there was one. A worker that starts makes it again.

        Raises:
            TemporalUnavailable: Temporal cannot be reached.
        """
        try:
            await self._handle(kind).delete()
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return False
            raise typed(error) from error
        return True

    def id_of(self, kind: PassKind) -> str:
        """The schedule's id: one set of schedules for each store."""
        return f"{self._settings.collection_prefix}-{kind.value}"

    async def _call(
        self, kind: PassKind, action: Callable[[ScheduleHandle], Awaitable[None]]
    ) -> None:
        async def attempt() -> None:
            try:
                await action(self._handle(kind))
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND:
                    raise _unknown(self.id_of(kind)) from error
                raise

        await asked_again(attempt)

    def _handle(self, kind: PassKind) -> ScheduleHandle:
        return self._client.get_schedule_handle(self.id_of(kind))

    def _schedule(self, kind: PassKind) -> Schedule:
        settings = self._settings
        return Schedule(
            action=ScheduleActionStartWorkflow(
                names.MAINTENANCE_WORKFLOW,
                maintenance_state(settings, kind),
                # Temporal appends the time of each run.
                id=names.in_store(
                    settings.collection_prefix, names.maintenance_workflow_id(kind.value)
                ),
                task_queue=settings.store_queue,
                typed_search_attributes=attributes("maintenance"),
                priority=precedence(attributes("maintenance")),
                static_summary=f"{kind.value} of all users",
                static_details=_ABOUT[kind],
            ),
            spec=ScheduleSpec(
                intervals=[ScheduleIntervalSpec(every=self._intervals[kind])],
                jitter=settings.schedule_jitter,
            ),
            policy=SchedulePolicy(
                overlap=ScheduleOverlapPolicy.SKIP, catchup_window=settings.schedule_catchup
            ),
        )

    @property
    def _intervals(self) -> Mapping[PassKind, timedelta]:
        return {
            PassKind.CONSOLIDATION: self._settings.consolidation_interval,
            PassKind.DECAY: self._settings.decay_interval,
            PassKind.PROMOTION: self._settings.promotion_interval,
        }


def _updating(wanted: Schedule) -> Callable[[ScheduleHandle], Awaitable[None]]:
    def brought_to(there: ScheduleUpdateInput) -> ScheduleUpdate:
        # Whether it is paused is the operator's.
        return ScheduleUpdate(replace(wanted, state=there.description.schedule.state))

    async def update(handle: ScheduleHandle) -> None:
        try:
            # Temporal's client asks first how it stands.
            await handle.update(brought_to, rpc_timeout=_ANSWERED)
        except RPCError as error:
            _ask_again_where_left_open(error)
            raise

    return update


def _ask_again_where_left_open(error: RPCError) -> None:
    """Temporal leaves a question open that meets the schedule's removal: ask it once more."""
    if error.status in _TOO_LATE and not being_cancelled():
        raise RunEnded("The schedule did not tell how it stands.") from error


def _info(kind: PassKind, found: ScheduleDescription) -> ScheduleInfo:
    state, info = found.schedule.state, found.info
    intervals = found.schedule.spec.intervals
    started = [action.action for action in info.recent_actions[-_RECENT:]]
    return ScheduleInfo(
        kind=kind,
        schedule_id=found.id,
        exists=True,
        paused=state.paused,
        note=state.note or None,
        every=intervals[0].every if intervals else None,
        next_at=info.next_action_times[0] if info.next_action_times and not state.paused else None,
        recent=tuple(str(getattr(action, "workflow_id", "")) for action in started),
        missed=info.num_actions_missed_catchup_window,
        skipped=info.num_actions_skipped_overlap,
    )


def _unknown(schedule_id: str) -> EngramError:
    return InvalidQuery(
        f"There is no schedule {schedule_id!r}.",
        hint="A worker or `engram up` makes the schedules when it starts, unless "
        "ENGRAM_SCHEDULES is off.",
    )
