"""Having Temporal's database forget deleted rows for good, while no server has it open."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Collection
from contextlib import closing
from pathlib import Path
from typing import Final, TypeVar
from uuid import UUID

import structlog

_log = structlog.get_logger("engram.embedded")

# A run is gone when the service has removed both what it knows of it and its events.
_RUNS: Final = (
    "SELECT DISTINCT run_id FROM executions",
    "SELECT DISTINCT tree_id FROM history_tree",
)
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


def _left(connection: sqlite3.Connection, wanted: set[bytes]) -> int:
    found: set[bytes] = set()
    for query in _RUNS:
        try:
            found.update(row[0] for row in connection.execute(query))
        except sqlite3.OperationalError as error:
            # Another version may name its tables otherwise; the service said they are gone.
            _log.warning("it cannot be checked that histories are gone", reason=str(error))
    return len(found & wanted)
