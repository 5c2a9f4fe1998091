"""Rewriting the files of a data folder, so that what was deleted is in none of them."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Coroutine
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias, TypeVar
from uuid import UUID

import structlog
from temporalio.client import Client, WorkflowFailureError
from temporalio.service import RPCError

from engram.contracts import names
from engram.contracts.removal import FOLDER_MAY_KEEP, CompactReceipt, ErasureReceipt
from engram.embedded.folder import DataFolder, read_record, write_record
from engram.embedded.server import TemporalDevServer
from engram.errors import EngramError
from engram.temporal.gateway import erased_runs

# --- having Temporal's database forget deleted rows for good, while no server has it open

_log = structlog.get_logger("engram.embedded")

# A run is gone when the service has removed both what it knows of it and its events.
_RUNS: Final = (
    "SELECT DISTINCT run_id FROM executions",
    "SELECT DISTINCT tree_id FROM history_tree",
)
# A timer of a run (Temporal's TimerTaskInfo) begins with the id of the namespace, the length of
# the workflow's id and this id; then comes the run's.
_TIMER: Final = re.compile(rb"\n\$[0-9a-f-]{36}\x12([\x80-\xff]?)([\x00-\x7f])", re.DOTALL)
_TIMED_RUN: Final = re.compile(rb"\x1a\$([0-9a-f-]{36})")
_BUSY_SECONDS: Final = 5.0

Result = TypeVar("Result")


async def runs_left(database: Path, runs: Collection[str]) -> int:
    """How many of these runs the database still holds.

    The service deletes some time after it was asked to, and lists a run no more before that.

    Raises:
        sqlite3.Error: the database cannot be read.
    """
    if not runs or not await asyncio.to_thread(database.exists):
        return 0
    wanted = {UUID(run).bytes for run in runs}
    return await _working(database, lambda connection: _left(connection, wanted))


async def drop_timers(database: Path, runs: Collection[str]) -> None:
    """Delete the timers of those of these runs that are gone; no server may have it open.

    The service keeps one until it is due, for the end of a retention that is over, and it names
    the workflow.

    Raises:
        sqlite3.Error: the database cannot be read or written.
    """
    if not runs or not await asyncio.to_thread(database.exists):
        return
    wanted = {UUID(run).bytes for run in runs}
    await _working(database, lambda connection: _drop_timers(connection, wanted))


async def vacuum(database: Path) -> None:
    """Write the database anew with the rows it has: what was deleted is in no page any more.

    A crash leaves it as it was, or done. Needs the room of a second copy meanwhile.

    Raises:
        sqlite3.Error: the disk is full, or another process has it open.
    """
    if await asyncio.to_thread(database.exists):
        await _working(database, _vacuum)


async def _working(database: Path, work: Callable[[sqlite3.Connection], Result]) -> Result:
    """Work in a thread; when cancelled, only after that has come to its end."""
    with closing(
        sqlite3.connect(
            database, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
    ) as connection:
        working = asyncio.create_task(asyncio.to_thread(work, connection))
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            connection.interrupt()
            await asyncio.wait((working,))
            raise


def _vacuum(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("VACUUM")
    # Of importance only should a server ever keep a write-ahead log.
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _drop_timers(connection: sqlite3.Connection, wanted: set[bytes]) -> None:
    gone = wanted - _held(connection)
    try:
        timers = connection.execute("SELECT rowid, data FROM timer_tasks")
        over = [(row,) for row, data in timers if _timed_run(data) in gone]
        connection.execute("BEGIN")
        connection.executemany("DELETE FROM timer_tasks WHERE rowid = ?", over)
        connection.execute("COMMIT")
    except sqlite3.OperationalError as error:
        _log.warning("timers of erased histories stay until they are due", reason=str(error))


def _timed_run(data: bytes) -> bytes | None:
    """The run that a timer is of; None where it is not told as it was."""
    if (timer := _TIMER.match(data)) is None:
        return None
    low, high = timer.groups()
    size = (low[0] & 0x7F) + (high[0] << 7) if low else high[0]
    run = _TIMED_RUN.match(data, timer.end() + size)
    return None if run is None else UUID(run[1].decode()).bytes


def _left(connection: sqlite3.Connection, wanted: set[bytes]) -> int:
    return len(_held(connection) & wanted)


def _held(connection: sqlite3.Connection) -> set[bytes]:
    """The runs that the service knows anything of."""
    found: set[bytes] = set()
    for query in _RUNS:
        try:
            found.update(row[0] for row in connection.execute(query))
        except sqlite3.OperationalError as error:
            # Another version may name its tables otherwise; the service said they are gone.
            _log.warning("it cannot be checked that histories are gone", reason=str(error))
    return found


# --- rewriting the files of a data folder, so that what was deleted is in none of them
#
# Deleting leaves words in the logs and pages of both databases. After an erasure
# the memories are copied into fresh files, and Temporal's database is vacuumed
# while its server is paused. A small file says that this is due until it is
# done: whatever dies meanwhile, the next process that opens the folder does it.

# How long Temporal may take to delete what it was told to.
_PATIENCE_SECONDS: Final = 120.0
_FIRST_WAIT_SECONDS: Final = 2.0
# How long closing waits for what runs; the next start goes on with it.
_CLOSING_SECONDS: Final = 30.0
# After rewriting, so many times as long as it took nothing is rewritten again: while it goes
# on Temporal stands still for everybody, and whoever may erase one user may ask for it.
_REST: Final = 4.0
# Outcomes of so many erasures are kept; who asks for another has files rewritten once more.
_MOST_OUTCOMES: Final = 1000
_AGAIN: Final = "Engram tries again when the folder is opened next, or with the next erase."


Erasing: TypeAlias = Callable[[], Awaitable[ErasureReceipt]]
Erased: TypeAlias = Callable[[], Awaitable[ErasureReceipt | None]]


class Rebuilds(Protocol):
    """A store that can write its files anew."""

    async def rebuild(self) -> int:
        """Copy what is there into fresh files; how many memories that is."""
        ...


class FolderScrubber:
    """:class:`engram.ports.Scrubber` of the process that owns a data folder.

    Args:
        folder: Locked by this process.
        store: Its memories.
        server: Its development server.
        client: Connected to that.
    """

    def __init__(
        self, folder: DataFolder, store: Rebuilds, server: TemporalDevServer, client: Client
    ) -> None:
        self._folder = folder
        self._store = store
        self._server = server
        self._client = client
        self._tasks: set[asyncio.Task[Any]] = set()
        self._one = asyncio.Lock()
        self._waiting: set[str] = set()
        self._erasing: Counter[str] = Counter()
        self._next: asyncio.Task[CompactReceipt] | None = None
        self._rests_until = 0.0
        self._at_once = asyncio.Event()
        # By erasure, the last of each: what goes on behind it, or its outcome.
        self._behind: dict[str, asyncio.Task[ErasureReceipt | None]] = {}

    async def erase(self, workflow_id: str, erasing: Erasing, erased: Erased) -> ErasureReceipt:
        """See :meth:`engram.ports.Scrubber.erase`."""
        self._record(self._due() | {workflow_id})
        return await asyncio.shield(self._begin(self._erase(workflow_id, erasing, erased)))

    async def erased(self, workflow_id: str, erased: Erased) -> ErasureReceipt | None:
        """See :meth:`engram.ports.Scrubber.erased`."""
        known = self._behind.get(workflow_id)
        if known is None or (known.done() and (known.cancelled() or known.exception())):
            # A former process erased; what it left due is being done, or was.
            known = self._follow(workflow_id, erased)
        return await asyncio.shield(known)

    async def compact(self) -> CompactReceipt:
        """See :meth:`engram.ports.Scrubber.compact`. Who operates the folder waits for no rest."""
        self._at_once.set()
        return await self._scrubbed(())

    def resume(self) -> None:
        """Go on, in the background, with what a process before this one left undone."""
        for workflow_id in self._due():
            _log.warning("an erasure was interrupted; finishing it", workflow_id=workflow_id)
            self._begin(self._finish(workflow_id))

    async def close(self) -> None:
        """Wait some seconds for what runs; the next process that opens the folder does the rest."""
        self._at_once.set()
        if self._tasks:
            _log.info("finishing an erasure before closing")
            await asyncio.wait(self._tasks, timeout=_CLOSING_SECONDS)
        late = [task for task in self._tasks if task.cancel()]
        await asyncio.gather(*late, return_exceptions=True)

    def _begin(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # Whoever waits gets it; nobody may.
            _log.error("an erasure was not finished", reason=type(error).__name__)

    async def _erase(self, workflow_id: str, erasing: Erasing, erased: Erased) -> ErasureReceipt:
        self._erasing[workflow_id] += 1
        try:
            receipt = await erasing()
        finally:
            self._erasing[workflow_id] -= 1
        self._follow(workflow_id, erased)
        return receipt

    def _follow(self, workflow_id: str, erased: Erased) -> asyncio.Task[ErasureReceipt | None]:
        """Scrub behind an erasure, and keep what comes of it for whoever asks."""
        self._behind.pop(workflow_id, None)
        self._behind[workflow_id] = task = self._begin(self._scrub_behind(workflow_id, erased))
        for one in [*self._behind][:-_MOST_OUTCOMES]:
            if self._behind[one].done():
                del self._behind[one]
        return task

    async def _scrub_behind(self, workflow_id: str, erased: Erased) -> ErasureReceipt | None:
        receipt = await erased()
        if receipt is None:
            return None
        done = await self._scrubbed((workflow_id,))
        return receipt.model_copy(
            update={
                "complete": receipt.complete and not done.may_remain,
                "rewritten": done.rewritten,
                "may_remain": (*receipt.may_remain, *done.may_remain, *FOLDER_MAY_KEEP),
            }
        )

    async def _finish(self, workflow_id: str) -> None:
        """Wait for an erasure that a former process started, then scrub."""
        for one in (workflow_id, names.history_erasure_workflow_id(workflow_id)):
            try:
                await self._client.get_workflow_handle(one).result()
            except (RPCError, WorkflowFailureError) as error:
                # It was never started, or failed: what was deleted leaves the files all the same.
                _log.warning("an erasure has no result", reason=type(error).__name__)
        await self._scrubbed((workflow_id,))

    async def _scrubbed(self, workflow_ids: Collection[str]) -> CompactReceipt:
        """Scrub after this call; those that wait share one."""
        self._waiting.update(workflow_ids)
        if self._next is None:
            self._next = self._begin(self._scrub_next())
        return await asyncio.shield(self._next)

    async def _scrub_next(self) -> CompactReceipt:
        async with self._one:
            await self._rested()
            self._next = None
            erasures, self._waiting = self._waiting, set()
            began = time.monotonic()
            try:
                return await self._scrub(erasures)
            finally:
                ended = time.monotonic()
                self._rests_until = ended + _REST * (ended - began)

    async def _rested(self) -> None:
        """Wait until files may be rewritten again; erasures that end meanwhile share it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(self._rests_until - time.monotonic(), 0)):
                await self._at_once.wait()
        self._at_once.clear()

    async def _scrub(self, erasures: set[str]) -> CompactReceipt:
        memories, problems, rewritten = 0, [], []
        try:
            runs = {run for one in erasures for run in await erased_runs(self._client, one)}
            memories = await self._store.rebuild()
            rewritten.append("store")
            left = await self._rewrite_histories(runs)
        except (EngramError, OSError, sqlite3.Error, RPCError) as error:
            # The error may quote what it failed on; its kind says enough here.
            _log.error("files could not be rewritten", reason=type(error).__name__)
            problems.append(f"Files could not be rewritten ({type(error).__name__}). {_AGAIN}")
        else:
            rewritten.append("temporal")
            if left:
                problems.append(f"Temporal has not deleted {left} histories yet. {_AGAIN}")
        if not problems:
            # One that runs again meanwhile is scrubbed again.
            self._record(self._due() - {one for one in erasures if not self._erasing[one]})
        return CompactReceipt(
            memories=memories, rewritten=tuple(rewritten), may_remain=tuple(problems)
        )

    async def _rewrite_histories(self, runs: Collection[str]) -> int:
        """Vacuum once these runs are gone; how many were not gone in time."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        wait = _FIRST_WAIT_SECONDS
        while True:
            async with self._server.paused():
                left = await runs_left(self._folder.temporal_db, runs)
                if not left or time.monotonic() > deadline:
                    await drop_timers(self._folder.temporal_db, runs)
                    await vacuum(self._folder.temporal_db)
                    self._folder.drop_server_logs()
                    return left
            await asyncio.sleep(wait)
            wait *= 2

    def _due(self) -> set[str]:
        found = read_record(self._folder.scrub_record) or {}
        return {str(workflow_id) for workflow_id in found.get("erasures", ())}

    def _record(self, due: set[str]) -> None:
        if due:
            # Lost with the power, words that were erased would stay in the files for ever.
            write_record(self._folder.scrub_record, {"erasures": sorted(due)}, durable=True)
        else:
            self._folder.scrub_record.unlink(missing_ok=True)
