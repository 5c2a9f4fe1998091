"""Kill -9 at random moments of a stream of encodes: nothing acknowledged is lost or doubled.

Nine rounds by default, three of each kind; each kills once while work goes on, and then
while what was killed comes back, which takes a quarter of the time. More of them:
ENGRAM_CHAOS_ROUNDS=51 uv run pytest -n 0 -m chaos tests/chaos -s
Another order of events: ENGRAM_CHAOS_SEED=7
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from temporalio.client import Client

import engram
from engram import MemoryStore, Settings
from engram.client.http import AttachedEngine
from engram.contracts.session import EncodeCall, EncodeRequest
from engram.domain.scope import Scope
from engram.domain.turns import Turn
from engram.embedded.folder import DataFolder
from engram.embedded.server import TemporalDevServer
from engram.system import new_id, system_clock
from engram.temporal.gateway import WorkflowGateway
from tests.support import numbered_turns
from tests.support.durability_checks import assert_kept, assert_sound, end_sessions, unfinished
from tests.support.process_trace import Ledger, Trace
from tests.support.programs import (
    SMALL,
    Program,
    environment,
    module,
    servers_of,
    started,
    until,
)
from tests.support.temporal_server import client_of

ROUNDS = -(-int(os.environ.get("ENGRAM_CHAOS_ROUNDS", "9")) // 3)
"""Of each of the three tests; of one kill alone it is luck whether it is inside something."""
FOLDERS = range(-(-ROUNDS // 20))
"""Each round looks at all turns of its folder: a few rounds in a folder cost what one costs."""
COMING_BACK = 3
"""Kills of each round before the next may come back and work on."""
SEED = int(os.environ.get("ENGRAM_CHAOS_SEED", "20260311"))
SESSIONS = 4
# Far more than it takes: a machine may be busy.
PATIENCE = 90.0
# A workflow task that died with its worker is given out anew after ten seconds.
FINISH = 120.0

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.timeout(150 + 60 * -(-ROUNDS // len(FOLDERS))),
    pytest.mark.parametrize("part", FOLDERS),
]


def dice(part: int) -> random.Random:
    """The same numbers in every run with the same seed."""
    return random.Random(SEED + part)  # noqa: S311 - chooses moments, guards nothing


def rounds(part: int) -> range:
    """The rounds of one folder."""
    return range(ROUNDS // len(FOLDERS) + (part < ROUNDS % len(FOLDERS)))


class Report:
    """Where kills fell, and how long coming back took.

    Args:
        what: What is killed.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self.kills: list[tuple[str, ...]] = []
        self.back: list[float] = []
        self.coming_back = 0

    def share_inside(self) -> float:
        """The share of kills inside encode, consolidation, continue-as-new or shutdown."""
        return sum(bool(kill) for kill in self.kills) / len(self.kills)

    def say(self, capsys: pytest.CaptureFixture[str], turns: int) -> None:
        """Print it."""
        fell = Counter(phase for kill in self.kills for phase in kill)
        where = ", ".join(f"{phase} {count}" for phase, count in fell.most_common())
        with capsys.disabled():
            print(  # noqa: T201 - the figures are what the test is run for
                f"\n{self.what}: seed {SEED}, {len(self.kills)} kills, "
                f"{self.share_inside():.0%} inside something ({where}), "
                f"and {self.coming_back} while it came back; {turns} acknowledged "
                f"turns, each there once; next acknowledgement after "
                f"{sorted(self.back)[len(self.back) // 2]:.1f} s (median), "
                f"{max(self.back):.1f} s (worst)"
            )


def done(trace: Path) -> int:
    """How many acknowledgements the trace holds."""
    return trace.read_text().count(" turn done ")


async def more_acknowledged(trace: Path, count: int, *programs: Program) -> float:
    """Wait for so many more acknowledgements; seconds it took."""
    began, goal = time.monotonic(), done(trace) + count
    came = await until(lambda: done(trace) >= goal, PATIENCE, *programs)
    assert came, f"no acknowledgement: {[program.said() for program in programs]}"
    return time.monotonic() - began


async def ready(trace: Path, program: Program, name: str) -> None:
    """Wait until the program says that it is."""
    line = f"{program.pid} ready done {name}\n"
    came = await until(lambda: line in trace.read_text(), PATIENCE, program)
    assert came, program.said()


async def killed_coming_back(
    command: Callable[[str], list[str]], name: str, chance: random.Random, report: Report, to: Path
) -> None:
    """Start it again and kill it before it is ready or soon after, a few times."""
    for number in range(COMING_BACK):
        once = f"{name}b{number}"
        with started(command(once), to / f"{once}.log") as program:
            await asyncio.sleep(chance.uniform(0.0, 2.0))
            program.kill()
        report.coming_back += 1


@asynccontextmanager
async def temporal_of(folder: Path) -> AsyncIterator[Client]:
    """A client of the server that works on the folder."""
    yield await client_of(folder)


async def finish(memory: MemoryStore, trace: Path, client: Client, *programs: Program) -> int:
    """Once all is acknowledged and ended: every workflow ends, every turn is there once, sound."""
    answered = await until(lambda: not Ledger(trace).unanswered(), PATIENCE, *programs)
    assert answered, f"never acknowledged: {Ledger(trace).unanswered()}"
    await end_sessions(memory, Ledger(trace))
    assert await unfinished(client, FINISH) == []
    await assert_sound(memory)
    return await assert_kept(memory, trace)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder that does not exist yet."""
    return tmp_path / "data"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """An empty trace."""
    (path := tmp_path / "trace").touch()
    return path


async def test_the_whole_process(
    part: int, folder: Path, trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The embedded process killed, every fourth time while it shuts down: it comes back whole."""
    chance, report = dice(part), Report("embedded process")
    settings = Settings.load(data_dir=folder, attach_timeout="PT60S")

    def owner(name: str, sessions: int = SESSIONS) -> list[str]:
        return module("tests.support.killed_owner", folder, trace, name, sessions)

    for number in rounds(part):
        with started(owner(f"r{number}"), tmp_path / f"owner{number}.log") as program:
            began = time.monotonic()
            await ready(trace, program, f"r{number}")
            await more_acknowledged(trace, 1, program)
            if number:
                report.back.append(time.monotonic() - began)
            async with engram.open(user_id=numbered_turns.USER, settings=settings) as memory:
                await assert_kept(memory, trace)
            assert len(servers_of(folder)) == 1
            await asyncio.sleep(chance.uniform(0.1, 1.5))
            if number % 4 == 3:
                program.signal(signal.SIGTERM)
                await asyncio.sleep(chance.uniform(0.0, 1.0))
            assert program.alive() or number % 4 == 3, program.said()
            program.kill()
        report.kills.append(Ledger(trace).phases(program.pid))
        await killed_coming_back(owner, f"r{number}", chance, report, tmp_path)
    with started(owner("last", 0), tmp_path / "last.log") as program:
        began = time.monotonic()
        await ready(trace, program, "last")
        report.back.append(time.monotonic() - began)
        async with (
            engram.open(user_id=numbered_turns.USER, settings=settings) as memory,
            temporal_of(folder) as client,
        ):
            turns = await finish(memory, trace, client, program)
        assert len(servers_of(folder)) == 1
    assert await until(lambda: not servers_of(folder), 10)
    report.say(capsys, turns)
    assert report.share_inside() >= 0.3


async def test_only_its_server(
    part: int, folder: Path, trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Temporal's server killed under a living process: it is started again, encodes go on."""
    chance, report = dice(part), Report("only its Temporal server")
    settings = Settings.load(data_dir=folder, attach_timeout="PT60S")
    command = module("tests.support.killed_owner", folder, trace, "s", SESSIONS)
    with started(command, tmp_path / "owner.log") as program:
        await ready(trace, program, "s")
        async with engram.open(user_id=numbered_turns.USER, settings=settings) as memory:
            for _ in rounds(part):
                await more_acknowledged(trace, SESSIONS, program)
                await asyncio.sleep(chance.uniform(0.1, 1.0))
                (server,) = servers_of(folder)
                os.kill(server, signal.SIGKILL)
                report.kills.append(Ledger(trace).phases(program.pid))
                for _ in range(COMING_BACK):
                    await asyncio.sleep(chance.uniform(0.0, 0.6))
                    for early in set(servers_of(folder)) - {server}:
                        server = early
                        os.kill(server, signal.SIGKILL)
                        report.coming_back += 1
                report.back.append(await more_acknowledged(trace, 2 * SESSIONS, program))
                (another,) = servers_of(folder)
                assert another != server
                await assert_kept(memory, trace)
            program.signal(signal.SIGTERM)
            assert await until(lambda: not program.alive(), PATIENCE)
            assert program.process.returncode == 0, program.said()
    with started(
        module("tests.support.killed_owner", folder, trace, "last", 0), tmp_path / "last.log"
    ) as program:
        await ready(trace, program, "last")
        async with (
            engram.open(user_id=numbered_turns.USER, settings=settings) as memory,
            temporal_of(folder) as client,
        ):
            turns = await finish(memory, trace, client, program)
    report.say(capsys, turns)
    assert report.share_inside() >= 0.3


class Clients:
    """Clients that go on whatever happens to the worker.

    Args:
        gateway: Reaches the sessions.
        trace: Where they note what they sent and what was acknowledged.
    """

    def __init__(self, gateway: WorkflowGateway, trace: Trace) -> None:
        self._gateway = gateway
        self._trace = trace
        self.stopping = False

    async def talk_on(self, session: str) -> None:
        """One turn after the other, until asked to stop; the last one is waited for."""
        number = 0
        while not self.stopping:
            message_id = f"{session}-{number}"
            number += 1
            call = EncodeCall(
                turns=(
                    Turn(
                        message_id=message_id,
                        role="user",
                        content=numbered_turns.content(message_id),
                        timestamp=system_clock(),
                    ),
                )
            )
            key = f"{session}/{message_id}"
            self._trace.mark("turn", "begin", key)
            reply = await self._gateway.encode(
                Scope.of("default", numbered_turns.USER), session, EncodeRequest(calls=(call,))
            )
            assert reply.outcomes[0].error is None
            self._trace.mark("turn", "done", key)


@asynccontextmanager
async def reading(socket: Path, settings: Settings) -> AsyncIterator[MemoryStore]:
    """The memory of the worker's store."""
    reader = AttachedEngine.over_socket(socket)
    try:
        yield MemoryStore(
            reader, Scope.of("default", numbered_turns.USER), settings, system_clock, new_id
        )
    finally:
        await reader.close()


async def test_only_its_worker(
    part: int,
    folder: Path,
    trace: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Worker and store killed; Temporal and clients live on and wait for the next worker."""
    for name, value in (environment() | SMALL).items():
        monkeypatch.setenv(name, value)
    chance, report = dice(part), Report("only its worker (with its store)")
    data = DataFolder(folder)
    assert data.try_lock()
    socket = tmp_path / "w.sock"
    async with AsyncExitStack() as stack:
        stack.callback(data.release)
        settings = Settings.load(data_dir=folder)
        server = await TemporalDevServer.start(data, settings)
        stack.push_async_callback(server.stop)
        client = await server.connect()
        clients = Clients(WorkflowGateway(client, settings), Trace(trace))
        talks = [asyncio.create_task(clients.talk_on(f"w.{n}")) for n in range(SESSIONS)]

        async def give_up() -> None:
            for task in talks:
                task.cancel()
            await asyncio.gather(*talks, return_exceptions=True)

        stack.push_async_callback(give_up)

        def worker(name: str) -> list[str]:
            return module(
                "tests.support.killed_worker", data.store, server.address, socket, trace, name
            )

        for number in rounds(part):
            with started(worker(f"w{number}"), tmp_path / f"worker{number}.log") as program:
                began = time.monotonic()
                await ready(trace, program, f"w{number}")
                # Sessions of their own, beside those that recover.
                talks.append(asyncio.create_task(clients.talk_on(f"n{number}")))
                await more_acknowledged(trace, 2, program)
                if number:
                    report.back.append(time.monotonic() - began)
                async with reading(socket, settings) as memory:
                    await assert_kept(memory, trace)
                await asyncio.sleep(chance.uniform(0.1, 1.5))
                if number % 4 == 3:
                    program.signal(signal.SIGTERM)
                    await asyncio.sleep(chance.uniform(0.0, 1.0))
                program.kill()
            report.kills.append(Ledger(trace).phases(program.pid))
            await killed_coming_back(worker, f"w{number}", chance, report, tmp_path)
            assert len(servers_of(folder)) == 1
        clients.stopping = True
        with started(worker("last"), tmp_path / "last.log") as program:
            began = time.monotonic()
            await ready(trace, program, "last")
            await asyncio.wait_for(asyncio.gather(*talks), FINISH)
            report.back.append(time.monotonic() - began)
            async with reading(socket, settings) as memory:
                turns = await finish(memory, trace, client, program)
    report.say(capsys, turns)
    assert report.share_inside() >= 0.3
