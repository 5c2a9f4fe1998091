"""Files are rewritten for everybody: rarely, together, and at once for who operates the folder."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from engram.contracts.removal import ErasureReceipt
from engram.embedded.erase import FolderScrubber, drop_timers
from engram.embedded.folder import DataFolder
from tests.support.clock import NOW

SECONDS = 0.1


class Rewriting:
    """Stands for the store and the server: notes when it was at work."""

    def __init__(self) -> None:
        self.began: list[float] = []
        self.ended: list[float] = []

    async def rebuild(self) -> int:
        """Take some time."""
        self.began.append(time.monotonic())
        await asyncio.sleep(SECONDS)
        self.ended.append(time.monotonic())
        return 1

    async def list_workflows(self, _: str) -> AsyncIterator[Any]:
        """It stands for Temporal's client, too, which knows of no erasures."""
        nothing: tuple[Any, ...] = ()
        for run in nothing:
            yield run

    @asynccontextmanager
    async def paused(self) -> AsyncIterator[None]:
        """There is no server to pause."""
        yield


@pytest.fixture
async def rewriting(tmp_path: Path) -> AsyncIterator[tuple[Rewriting, FolderScrubber]]:
    """A scrubber of an empty folder."""
    work: Any = Rewriting()
    scrubber = FolderScrubber(DataFolder(tmp_path / "data"), work, work, work)
    yield work, scrubber
    await scrubber.close()


async def erase(scrubber: FolderScrubber, who: str = "nobody") -> None:
    """Erase somebody who has nothing, and ask what became of it."""

    async def erasing() -> ErasureReceipt:
        return receipt_of(who)

    await scrubber.erase(receipt_of(who).workflow_id, erasing, erasing)
    await ask(scrubber, who)


async def ask(scrubber: FolderScrubber, who: str) -> None:
    """Ask what became of an erasure."""

    async def erased() -> ErasureReceipt:
        return receipt_of(who)

    receipt = await scrubber.erased(receipt_of(who).workflow_id, erased)
    assert receipt is not None
    assert receipt.rewritten == ("store", "temporal")


def receipt_of(who: str) -> ErasureReceipt:
    """What erasing somebody who has nothing answers."""
    return ErasureReceipt(
        namespace="default",
        user_id=who,
        erased_at=NOW,
        memories={},
        workflows_stopped=0,
        histories_deleted=0,
        histories_kept=0,
        workflow_id=f"erasure/default/{who}",
    )


async def test_erasing_in_a_loop_leaves_time_for_others(
    rewriting: tuple[Rewriting, FolderScrubber],
) -> None:
    """After one rewriting the next waits four times as long, and is shared by who waits."""
    work, scrubber = rewriting
    await erase(scrubber)
    await asyncio.gather(*(erase(scrubber) for _ in range(5)))
    assert len(work.began) == 2
    assert work.began[1] - work.ended[0] >= 4 * SECONDS


async def test_the_operator_waits_for_no_rest(
    rewriting: tuple[Rewriting, FolderScrubber],
) -> None:
    """Compacting by hand rewrites at once, and takes along what waits."""
    work, scrubber = rewriting
    await erase(scrubber)
    waiting = asyncio.create_task(erase(scrubber))
    # The rest is four times as long as this.
    await asyncio.sleep(SECONDS)
    await scrubber.compact()
    await waiting
    assert len(work.began) == 2
    assert work.began[1] - work.ended[0] < 4 * SECONDS


async def test_outcomes_are_kept_for_who_asks_again_and_not_for_ever(
    rewriting: tuple[Rewriting, FolderScrubber], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the last so many erasures; of an earlier one files are rewritten again, to be sure."""
    work, scrubber = rewriting
    monkeypatch.setattr("engram.embedded.erase._REST", 0.0)
    monkeypatch.setattr("engram.embedded.erase._MOST_OUTCOMES", 2)
    for who in ("ada", "bob", "eve"):
        await erase(scrubber, who)
    await ask(scrubber, "bob")
    await ask(scrubber, "eve")
    assert len(work.began) == 3
    await ask(scrubber, "ada")
    assert len(work.began) == 4


async def test_what_is_due_outlasts_a_loss_of_power(
    rewriting: tuple[Rewriting, FolderScrubber], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Word of an erasure is on the disk before anything is deleted."""
    _, scrubber = rewriting
    synced: list[str] = []
    sync = os.fsync

    def noting(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noting)
    await erase(scrubber)
    assert "scrub.json" in Path(synced[0]).name


async def test_timers_go_with_their_histories(tmp_path: Path) -> None:
    """They name the workflow, and the service keeps them for as long as its retention.

    Those of others stay, of a run that is still there, and what is not told as it was.
    """
    database, session = tmp_path / "temporal.sqlite", f"session/default/ada/{'x' * 200}"
    erased, kept, other = (str(UUID(int=n)) for n in (1, 2, 3))
    timers = [_timer(session, one) for one in (erased, kept, other)]
    # A workflow can be named like the rest of a timer.
    timers += [_timer(f"x\x1a${erased}", other), b"told otherwise"]
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE executions (run_id)")
        connection.execute("CREATE TABLE history_tree (tree_id)")
        connection.execute("CREATE TABLE timer_tasks (data)")
        connection.execute("INSERT INTO executions VALUES (?)", (UUID(kept).bytes,))
        connection.executemany("INSERT INTO timer_tasks VALUES (?)", [(one,) for one in timers])
    await drop_timers(database, [erased, kept])
    with closing(sqlite3.connect(database)) as connection:
        left = [data for (data,) in connection.execute("SELECT data FROM timer_tasks")]
    assert left == timers[1:]


def _timer(workflow: str, run: str) -> bytes:
    """A timer as Temporal's server 1.32 writes it."""
    length = len(workflow)
    size = bytes([length] if length < 128 else [length & 0x7F | 0x80, length >> 7])
    named = b"\n$" + str(UUID(int=9)).encode() + b"\x12" + size + workflow.encode()
    return named + b"\x1a$" + run.encode() + b" \x0fP\x82\x80@"
