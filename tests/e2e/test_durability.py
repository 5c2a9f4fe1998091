"""What was acknowledged is there once, whoever sends, however often, whatever breaks meanwhile."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowExecutionStatus

import engram
from engram import MemoryStore, Settings, Turn
from engram.agents.asking import thinker
from engram.client.local import direct_engine
from engram.contracts import names
from engram.domain.memories import AnyMemory, MemoryType
from engram.domain.scope import Scope
from engram.embedded.open import run
from engram.embedding.choice import make_embedder
from engram.errors import StorageUnavailable
from engram.ports import MaintenanceRepository, MemoryRepository, NewMemory, Replacement, Stamp
from engram.system import new_id, system_clock
from engram.workflows.worker import running_workers
from tests.support import numbered_turns
from tests.support.durability_checks import assert_kept, episodes
from tests.support.edge_stores import borrowed_store
from tests.support.process_trace import Ledger
from tests.support.programs import Program, module, processes_of, servers_of, started, until
from tests.support.stores import worker_settings
from tests.support.temporal_server import client_of

PATIENCE = 90.0

# Kills in small are in tests/chaos; these take three minutes.
pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(240)]


class Outage:
    """A store that can be down: everything done through it fails until it is up again.

    Args:
        inner: The store.
        answers_lost: Whether what it is asked is done all the same, and only the
            answer is lost.
    """

    def __init__(self, inner: MemoryRepository, *, answers_lost: bool) -> None:
        self._inner = inner
        self._answers_lost = answers_lost
        self.down = False
        self.failed: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def insert(
        self,
        scope: Scope,
        memories: Iterable[NewMemory],
        *,
        stamp: Stamp | None = None,
        epoch: int | None = None,
    ) -> frozenset[str]:
        """Store, or fail."""
        given = tuple(memories)
        refused: frozenset[str] = frozenset()
        if not self.down or self._answers_lost:
            refused = await self._inner.insert(scope, given, stamp=stamp, epoch=epoch)
        self._fail("insert")
        return refused

    async def replace(
        self, scope: Scope, replacements: Iterable[Replacement], *, stamp: Stamp | None = None
    ) -> frozenset[str]:
        """Replace, or fail."""
        given = tuple(replacements)
        won: frozenset[str] = frozenset()
        if not self.down or self._answers_lost:
            won = await self._inner.replace(scope, given, stamp=stamp)
        self._fail("replace")
        return won

    async def get(
        self,
        scope: Scope,
        ids: Iterable[str],
        types: Sequence[MemoryType] | None = None,
        *,
        fresh: bool = False,
    ) -> dict[str, AnyMemory]:
        """Read, or fail."""
        if not self._answers_lost:
            self._fail("get")
        return await self._inner.get(scope, ids, types, fresh=fresh)

    def _fail(self, what: str) -> None:
        if self.down:
            self.failed[what] += 1
            raise StorageUnavailable("The store is down.")


@asynccontextmanager
async def memory_over(
    client: Client, repository: MaintenanceRepository, settings: Settings
) -> AsyncIterator[MemoryStore]:
    """One user's memory over a store of the test's own, with workers beside it."""
    embedder = make_embedder(settings.embedder)
    model = thinker(settings.model)
    async with running_workers(client, repository, embedder, model, settings, new_write_id=new_id):
        engine = direct_engine(client, repository, embedder, settings, system_clock, ui_url=None)
        scope = Scope.of(settings.namespace, numbered_turns.USER)
        yield MemoryStore(engine, scope, settings, system_clock, new_id)
        await engine.close()


@pytest.mark.parametrize("answers_lost", [False, True], ids=["refuses", "answers are lost"])
async def test_an_outage_of_the_store_delays_and_loses_nothing(
    temporal_client: Client, answers_lost: bool
) -> None:
    """Encodes and a consolidation that meet an outage end after it; every turn is there once."""
    settings = worker_settings(buffer_turns=3, namespace=f"n{new_id()[:8]}")
    async with borrowed_store() as inner:
        store = Outage(inner, answers_lost=answers_lost)
        async with memory_over(temporal_client, store, settings) as memory:
            await memory.encode(numbered_turns.turn("before-0"), session_id="s0")
            store.down = True
            ids = {f"{s}-{n}": s for s in ("s0", "s1", "s2") for n in range(4)}
            sending = [
                asyncio.create_task(memory.encode(numbered_turns.turn(each), session_id=session))
                for each, session in ids.items()
            ]
            consolidating = asyncio.create_task(memory.consolidate())
            # Each session has used up its local attempt, and consolidation met it too.
            assert await until(lambda: store.failed.total() >= 12, PATIENCE)
            # A lost answer is found out by asking again; a refusal lasts as long as it lasts.
            assert answers_lost or not any(task.done() for task in sending)
            store.down = False
            await asyncio.wait_for(asyncio.gather(*sending), PATIENCE)
            report = await asyncio.wait_for(consolidating, PATIENCE)
            after = await memory.consolidate()
            kept = Counter(e.content for e in await episodes(memory))
            assert kept == Counter(numbered_turns.content(each) for each in ("before-0", *ids))
            assert report.failures == after.failures == ()
            assert (await memory.stats()).waiting == 0
            for session in ("s0", "s1", "s2"):
                await memory.end_session(session)


@asynccontextmanager
async def owner(folder: Path, **settings: Any) -> AsyncIterator[MemoryStore]:
    """This process owns the folder."""
    chosen = Settings.load(data_dir=folder, temporal_ui=False, **settings)
    async with engram.open(user_id=numbered_turns.USER, settings=chosen) as memory:
        yield memory


@asynccontextmanager
async def clients(
    folder: Path, tmp_path: Path, session: str, commands: Sequence[Sequence[object]]
) -> AsyncIterator[tuple[Path, list[Program]]]:
    """Programs that attach and do what they are told; and the trace they share."""
    trace = tmp_path / "trace"
    trace.touch()
    async with AsyncExitStack() as stack:
        programs = [
            stack.enter_context(
                started(
                    module("tests.support.killed_client", folder, trace, session, *command),
                    tmp_path / f"client{number}.log",
                )
            )
            for number, command in enumerate(commands)
        ]
        yield trace, programs


async def all_done(programs: Sequence[Program]) -> None:
    """Wait until every program has ended well."""
    assert await until(lambda: not any(p.alive() for p in programs), PATIENCE), [
        p.said() for p in programs
    ]
    assert [p.process.returncode for p in programs] == [0] * len(programs), [
        p.said() for p in programs
    ]


async def ends_of(folder: Path, session: str) -> Counter[WorkflowExecutionStatus | None]:
    """How the runs of a session stand."""
    client = await client_of(folder)
    wanted = names.session_workflow_id(Scope.of("default", numbered_turns.USER), session)
    return Counter([run.status async for run in client.list_workflows() if run.id == wanted])


@pytest.mark.parametrize(
    ("settings", "wait", "between"),
    [
        ({"updates_per_run": 2}, "no", WorkflowExecutionStatus.CONTINUED_AS_NEW),
        ({"session_idle_minutes": 0.01}, "idle", WorkflowExecutionStatus.COMPLETED),
    ],
    ids=["continue-as-new", "idle end"],
)
async def test_the_same_messages_five_times_by_three_processes(
    tmp_path: Path, settings: dict[str, Any], wait: str, between: WorkflowExecutionStatus
) -> None:
    """Acknowledged each time, stored once, though the session's runs end in between."""
    folder = tmp_path / "data"
    ids = ["same-0", "same-1", "same-3"]
    async with (
        owner(folder, **settings) as memory,
        clients(folder, tmp_path, "s", [["again", 5, wait, *ids]] * 3) as (trace, programs),
    ):
        await all_done(programs)
        assert Ledger(trace).acknowledgements() == dict.fromkeys(ids, 15)
        assert await assert_kept(memory, trace) == 3
        assert len(await episodes(memory)) == 3
        assert (await ends_of(folder, "s"))[between] >= 2


async def test_four_processes_talk_into_one_session(tmp_path: Path) -> None:
    """4 processes x 20 encodes at once: each acknowledged, there once, with a place of its own."""
    folder = tmp_path / "data"
    commands = [["parallel", f"p{number}", 20] for number in range(4)]
    async with (
        owner(folder, buffer_turns=3, updates_per_run=7) as memory,
        clients(folder, tmp_path, "shared", commands) as (trace, programs),
    ):
        await all_done(programs)
        assert await assert_kept(memory, trace) == 80
        kept = await episodes(memory)
        assert len({episode.sequence for episode in kept}) == len(kept) == 80


async def test_five_thousand_encodes_through_one_session(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Handed over at once, they are batched; all are there in order, over several runs."""
    texts = [f"We saw painting number {number} in the hall." for number in range(5000)]
    async with owner(tmp_path / "data", updates_per_run=25) as memory:
        began = time.monotonic()
        receipts = await asyncio.gather(*(memory.encode(t, session_id="s") for t in texts))
        took = time.monotonic() - began
        kept = sorted(await episodes(memory), key=lambda episode: episode.sequence)
        assert [episode.content for episode in kept] == texts
        assert [receipt.episode_ids for receipt in receipts] == [(e.id,) for e in kept]
        ends = await ends_of(tmp_path / "data", "s")
        assert ends[WorkflowExecutionStatus.CONTINUED_AS_NEW] >= 2
    with capsys.disabled():
        print(f"\n5,000 encodes through one session: {5000 / took:.0f} turns/s")  # noqa: T201 - the figure is what it is run for


async def test_a_hundred_turns_of_the_largest_size_in_one_call(tmp_path: Path) -> None:
    """100 turns of 32 KB through the socket, some grow sixfold on the wire: verbatim, in order."""
    size = Settings.load().max_turn_bytes
    letters = ["a b", "é", "\u0001", '"\\']
    contents = []
    for number in range(100):
        fill = letters[number % len(letters)]
        begin = f"{number} "
        room = size - len(begin.encode())
        text = begin + fill * (room // len(fill.encode()))
        contents.append(text + "." * (size - len(text.encode())))
    assert {len(content.encode()) for content in contents} == {size}
    turns = [Turn(content=content, message_id=f"m{n}") for n, content in enumerate(contents)]
    folder = tmp_path / "data"
    attaching = Settings.load(data_dir=folder)
    async with (
        owner(folder),
        engram.open(user_id=numbered_turns.USER, settings=attaching) as memory,
    ):
        receipt = await memory.encode(turns, session_id="s")
        kept = {episode.id: episode.content for episode in await episodes(memory)}
        assert [kept[key] for key in receipt.episode_ids] == contents
        assert len(kept) == 100


async def test_who_comes_while_the_first_starts_waits_and_attaches(tmp_path: Path) -> None:
    """A second opener finds the folder locked and nobody answering yet; it gets its answer."""
    folder = tmp_path / "data"
    trace = tmp_path / "trace"
    settings = Settings.load(data_dir=folder, attach_timeout="PT60S")
    with started(
        module("tests.support.killed_owner", folder, trace, "first", 1), tmp_path / "log"
    ) as first:
        assert await until((folder / "owner.json").exists, PATIENCE, first), first.said()
        assert " ready " not in trace.read_text()
        async with run(settings) as running:
            assert running.attached
            scope = Scope.of("default", numbered_turns.USER)
            memory = MemoryStore(running.engine, scope, settings, system_clock, new_id)
            await memory.encode("We saw the harbour.", session_id="second")
            assert "We saw the harbour." in [e.content for e in await episodes(memory)]
        assert len(servers_of(folder)) == 1


def _holds(trace: Path, line: str) -> bool:
    return line in trace.read_text()


async def test_two_open_a_fresh_folder_at_once(tmp_path: Path) -> None:
    """One becomes the owner, one attaches, both encode; one server; both end well."""
    folder, trace = tmp_path / "data", tmp_path / "trace"
    trace.touch()

    def opener(name: str) -> list[str]:
        return module("tests.support.killed_owner", folder, trace, name, 1)

    with (
        started(opener("a"), tmp_path / "a.log") as one,
        started(opener("b"), tmp_path / "b.log") as two,
    ):
        for program, name in ((one, "a"), (two, "b")):
            marked = f" turn done {name}.0/{name}.0-2\n"
            came = await until(partial(_holds, trace, marked), PATIENCE, one, two)
            assert came, program.said()
        assert len(servers_of(folder)) == 1
        owning = json.loads((folder / "owner.json").read_text())["pid"]
        assert owning in {one.pid, two.pid}
        settings = Settings.load(data_dir=folder)
        async with engram.open(user_id=numbered_turns.USER, settings=settings) as memory:
            await assert_kept(memory, trace)
        # Who attached leaves first: its owner lives on.
        for program in sorted((one, two), key=lambda program: program.pid == owning):
            assert program.alive()
            program.signal(signal.SIGTERM)
            await all_done([program])
    assert processes_of(folder) == {}
