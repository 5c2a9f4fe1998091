"""The real development server: starts, keeps its data, and never outlives its owner."""

import asyncio
import json
import os
import signal
import socket
import sqlite3
import stat
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path

import pytest
import structlog.testing
from temporalio import workflow
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import WorkflowExecutionStatus
from temporalio.worker import Worker

import engram
from engram.domain.memories import MemoryType
from engram.embedded import program
from engram.embedded import server as serving
from engram.embedded.folder import DataFolder, ServerRecord, find_by_marker, find_process
from engram.embedded.program import (
    Ports,
    end_leftover,
    find_temporal,
    marker,
    server_arguments,
)
from engram.embedded.server import TemporalDevServer
from engram.errors import DataFolderUnusable, EmbeddedStartFailed, PortInUse, TemporalUnavailable
from engram.settings import Settings
from engram.temporal.connection import quiet_runtime
from tests.support.owned_server import QUIET, nothing_left, start_owner

PATIENCE = 60.0


@workflow.defn(name="test.echo", sandboxed=False)
class Echo:
    """Answers with its input."""

    @workflow.run
    async def run(self, text: str) -> str:
        """The workflow."""
        return text


@pytest.fixture
async def folder(tmp_path: Path) -> AsyncIterator[DataFolder]:
    """A locked data folder, whose name has a meaning in URLs; what a failed test left is ended."""
    data = DataFolder(tmp_path / "o dd#a?b%20é;c")
    assert data.try_lock()
    yield data
    await end_leftover(data)
    data.release()


def only_entry(path: Path) -> Path:
    """The one thing that a folder holds."""
    (entry,) = path.iterdir()
    return entry


def bystander() -> subprocess.Popen[bytes]:
    """A process that has nothing to do with anything."""
    return subprocess.Popen(["sleep", "60"], process_group=0)


async def eventually(holds: Callable[[], bool]) -> bool:
    """Whether it comes true at all: some seconds, much more on a busy machine."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.01)
    return True


async def test_runs_workflows_and_keeps_them(folder: DataFolder) -> None:
    """A run's result is there after a restart on the same folder, and nothing lies beside that.

    Clients run where the SDK writes errors only to standard output.
    """
    server = await TemporalDevServer.start(folder, QUIET)
    client = await server.connect()
    assert client.service_client.config.runtime is quiet_runtime()
    async with Worker(client, task_queue="q", workflows=[Echo]):
        said = await client.execute_workflow(Echo.run, "hello", id="w", task_queue="q")
    await server.stop()
    assert nothing_left(folder)
    server = await TemporalDevServer.start(folder, QUIET)
    client = await server.connect()
    kept = await client.get_workflow_handle("w").describe()
    await server.stop()
    assert (said, kept.status) == ("hello", WorkflowExecutionStatus.COMPLETED)
    assert folder.temporal_db.stat().st_size > 100_000
    assert only_entry(folder.path.parent) == folder.path


@pytest.mark.parametrize("whole", [0, 100])
async def test_a_damaged_database_is_named_and_memories_need_none(
    folder: DataFolder, whole: int
) -> None:
    """Trying again cannot help, so the error does not say so; moved aside, it is made anew."""
    with sqlite3.connect(folder.temporal_db) as made:
        made.execute("CREATE TABLE anything (a)")
    made.close()
    content = folder.temporal_db.read_bytes()
    folder.temporal_db.write_bytes(content[:whole] + b"x" * (len(content) - whole))
    with pytest.raises(DataFolderUnusable, match="sqlite, is damaged") as caught:
        await TemporalDevServer.start(folder, QUIET)
    assert not caught.value.retryable
    folder.temporal_db.unlink()
    await (await TemporalDevServer.start(folder, QUIET)).stop()


@pytest.mark.parametrize("tables", [(), ("schema_version",)], ids=["empty", "without its tables"])
async def test_a_database_that_lacks_its_tables_is_damaged(
    folder: DataFolder, tables: tuple[str, ...]
) -> None:
    """A restore that a full disk ended left an empty file: no later start mends it."""
    folder.temporal_db.touch()
    with sqlite3.connect(folder.temporal_db) as made:
        for table in tables:
            made.execute(f"CREATE TABLE {table} (a)")
    made.close()
    with pytest.raises(DataFolderUnusable, match="sqlite, is damaged") as caught:
        await TemporalDevServer.start(folder, QUIET)
    assert not caught.value.retryable


async def test_prepares_the_namespace(folder: DataFolder) -> None:
    """Retention and search attributes are as asked, also when settings change later.

    A log that others could read is put aside, and theirs no more.
    """
    log = folder.server_log
    log.touch(0o644)
    for days in (90, 30):
        chosen = Settings.load(temporal_ui=False, temporal_retention=timedelta(days=days))
        server = await TemporalDevServer.start(folder, chosen)
        client = await server.connect()
        described = await client.workflow_service.describe_namespace(
            DescribeNamespaceRequest(namespace="default")
        )
        listed = await client.operator_service.list_search_attributes(
            ListSearchAttributesRequest(namespace="default")
        )
        await server.stop()
        kept = described.config.workflow_execution_retention_ttl.ToTimedelta()
        assert kept == timedelta(days=days)
        assert {"EngramUser", "EngramSession", "EngramStage"} <= set(listed.custom_attributes)
        for kept_log in (log, log.with_name(f"{log.name}.1")):
            assert kept_log.stat().st_mode & 0o777 == 0o600


async def test_registers_attributes_on_an_older_folder(
    folder: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder made without an attribute, by an earlier version, gets it at the next start."""
    with monkeypatch.context() as older:
        for module in ("embedded.program", "temporal.connection"):
            older.setattr(f"engram.{module}.SEARCH_ATTRIBUTES", ("EngramUser",))
        await (await TemporalDevServer.start(folder, QUIET)).stop()
    server = await TemporalDevServer.start(folder, QUIET)
    client = await server.connect()
    listed = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace="default")
    )
    await server.stop()
    assert "EngramStage" in listed.custom_attributes


async def test_tasks_that_wait_in_all_parts_of_a_queue_are_done(
    folder: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an earlier version spread over four parts is read; a folder without it has one."""
    assert set(program.ONE_PART) < set(server_arguments(folder, QUIET, Ports(1, None)))
    with monkeypatch.context() as older:
        soon = 'history.transferProcessorUpdateAckInterval="1s"'
        older.setattr(program, "CONFIGURED", ("--dynamic-config-value", soon))
        older.setattr(program, "ONE_PART", ())
        server = await TemporalDevServer.start(folder, QUIET)
        client = await server.connect()
        for number in range(30):
            await client.start_workflow(Echo.run, "hello", id=f"w{number}", task_queue="q")
        # Until the server has noted what it put there, it would put it there again.
        await asyncio.sleep(3)
        await server.stop()
    server = await TemporalDevServer.start(folder, QUIET)
    client = await server.connect()
    async with Worker(client, task_queue="q", workflows=[Echo]), asyncio.timeout(PATIENCE):
        for number in range(30):
            await client.get_workflow_handle(f"w{number}").result()
    await server.stop()


async def test_serves_its_pages_on_request(folder: DataFolder) -> None:
    """With the UI there is a URL that answers on the asked port; without, there is none."""
    server = await TemporalDevServer.start(folder, Settings.load(temporal_ui=True))
    url = server.temporal_ui_url
    assert url is not None
    port = int(url.rpartition(":")[2])
    assert await eventually(lambda: _listens(port))
    await server.stop()
    server = await TemporalDevServer.start(folder, QUIET)
    assert server.temporal_ui_url is None
    await server.stop()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def test_dies_with_a_killed_parent(tmp_path: Path) -> None:
    """After kill -9 of the owner, neither server nor guard is left."""
    data = DataFolder(tmp_path)
    owner, server = start_owner(tmp_path, "stay")
    assert find_process(server) is not None
    owner.kill()
    owner.wait()
    assert await eventually(lambda: nothing_left(data))


async def test_the_next_owner_ends_an_orphan(tmp_path: Path) -> None:
    """With parent and guard killed the server lives on, until the next start ends it."""
    data = DataFolder(tmp_path)
    owner, orphan = start_owner(tmp_path, "stay")
    record = ServerRecord.read(data.server_record)
    assert record is not None
    assert record.pid == orphan
    os.kill(record.guard_pid, signal.SIGSTOP)
    owner.kill()
    os.kill(record.guard_pid, signal.SIGKILL)
    owner.wait()
    assert await eventually(lambda: find_process(record.guard_pid) is None)
    assert find_process(orphan) is not None
    assert data.try_lock()
    server = await TemporalDevServer.start(data, QUIET)
    assert find_process(orphan) is None
    assert [process.pid for process in find_by_marker(marker(data))] == [server.pid]
    await server.stop()
    assert nothing_left(data)
    data.release()


@pytest.mark.parametrize("damage", ["missing", "another process"])
async def test_an_orphan_is_found_without_its_record(tmp_path: Path, damage: str) -> None:
    """A lost or wrong record neither hides an orphan nor gets an innocent process killed."""
    data = DataFolder(tmp_path)
    owner, orphan = start_owner(tmp_path, "stay")
    text = json.loads(data.server_record.read_text())
    os.kill(text["guard_pid"], signal.SIGSTOP)
    owner.kill()
    os.kill(text["guard_pid"], signal.SIGKILL)
    owner.wait()
    with bystander() as innocent:
        text |= {"pid": innocent.pid, "guard_pid": innocent.pid}
        data.server_record.write_text(json.dumps(text))
        if damage == "missing":
            data.server_record.unlink()
        assert data.try_lock()
        assert await end_leftover(data)
        assert find_process(orphan) is None
        assert innocent.poll() is None
        innocent.kill()
    assert not await end_leftover(data)
    data.release()


@pytest.mark.parametrize("then", ["stop", "leave"])
async def test_leaves_nothing_at_clean_exits(tmp_path: Path, then: str) -> None:
    """With and without stopping first: exit code 0, nothing left running."""
    data = DataFolder(tmp_path)
    owner, _ = start_owner(tmp_path, then)
    assert await asyncio.to_thread(owner.wait, 20) == 0
    assert await eventually(lambda: nothing_left(data))


@pytest.mark.parametrize("victims", [["server"], ["guard"], ["server", "guard"]], ids="+".join)
async def test_comes_back_when_killed(folder: DataFolder, victims: list[str]) -> None:
    """Server or guard killed: one server runs again, and connected clients and workers go on."""
    server = await TemporalDevServer.start(folder, QUIET)
    client = await server.connect()
    async with Worker(client, task_queue="q", workflows=[Echo]):
        await client.execute_workflow(Echo.run, "before", id="w1", task_queue="q")
        record = ServerRecord.read(folder.server_record)
        assert record is not None
        pids = {"server": record.pid, "guard": record.guard_pid}
        for victim in victims:
            os.kill(pids[victim], signal.SIGKILL)
        assert await eventually(lambda: _replaced(folder, record))
        said = await client.execute_workflow(Echo.run, "after", id="w2", task_queue="q")
    assert said == "after"
    assert [process.pid for process in find_by_marker(marker(folder))] == [server.pid]
    await server.stop()
    assert nothing_left(folder)


@pytest.mark.slow
async def test_a_server_that_cannot_start_for_long_is_tried_until_it_can(
    folder: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty failed starts, more than it once took to give up: then it runs, at its address."""
    monkeypatch.setattr(serving, "_WATCH_SECONDS", 0.01)
    monkeypatch.setattr(serving, "_LONGEST_PAUSE_SECONDS", 0.02)
    monkeypatch.setattr(serving, "_SAID_EVERY_SECONDS", 0.0)
    binary = tmp_path / "temporal"
    binary.symlink_to(find_temporal())
    with structlog.testing.capture_logs() as said:
        server = await TemporalDevServer.start(folder, QUIET, binary=binary)
        binary.unlink()
        os.kill(server.pid, signal.SIGKILL)
        assert await eventually(lambda: any(line.get("failures") == 20 for line in said))
        binary.symlink_to(find_temporal())
        assert await eventually(lambda: said[-1]["event"].endswith("runs again"))
        await server.connect()
        await server.stop()


@pytest.mark.slow
async def test_encodes_go_on_by_themselves_after_a_minute_without_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is away for a minute; what was asked meanwhile is acknowledged when it is back."""
    binary = tmp_path / "temporal"
    binary.symlink_to(find_temporal())
    monkeypatch.setattr(program, "find_temporal", lambda: binary)
    data = tmp_path / "data"
    async with engram.open(data, user_id="ada", settings=QUIET) as memory:
        await memory.encode("Before.", session_id="s1")
        record = ServerRecord.read(DataFolder(data).server_record)
        assert record is not None
        binary.unlink()
        os.kill(record.pid, signal.SIGKILL)
        said = [
            asyncio.create_task(memory.encode(f"Meanwhile {n}.", session_id=session))
            for n, session in enumerate(("s1", "s2"))
        ]
        await asyncio.sleep(60)
        assert not any(one.done() for one in said)
        binary.symlink_to(find_temporal())
        await asyncio.gather(*said)
        assert (await memory.stats()).counts[MemoryType.EPISODIC] == 3


def _replaced(folder: DataFolder, before: ServerRecord) -> bool:
    """Whether another server, and another guard, are on record."""
    now = ServerRecord.read(folder.server_record)
    return now is not None and now.pid != before.pid and now.guard_pid != before.guard_pid


async def test_stops_while_it_comes_back(folder: DataFolder) -> None:
    """Stopped at any moment after a kill, nothing is left and nothing starts again."""
    for delay in (0.0, 0.1, 0.2, 0.4):
        server = await TemporalDevServer.start(folder, QUIET)
        os.kill(server.pid, signal.SIGKILL)
        await asyncio.sleep(delay)
        await server.stop()
        assert nothing_left(folder)


async def test_stopping_twice_is_stopping(folder: DataFolder) -> None:
    """A second stop does nothing; a stopped server says so."""
    server = await TemporalDevServer.start(folder, QUIET)
    await asyncio.gather(server.stop(), server.stop())
    await server.stop()
    with pytest.raises(TemporalUnavailable):
        await server.connect()
    assert not folder.server_record.exists()


async def test_an_aborted_start_leaves_nothing(folder: DataFolder) -> None:
    """Cancelled at any moment of its start, the server is gone when the cancellation arrives."""
    for delay in (0.0, 0.02, 0.05, 0.1, 0.2):
        starting = asyncio.create_task(TemporalDevServer.start(folder, QUIET))
        await asyncio.sleep(delay)
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        if not starting.cancelled():
            await starting.result().stop()
        assert nothing_left(folder)


@pytest.mark.parametrize("setting", ["temporal_port", "temporal_ui_port"])
async def test_a_taken_port_is_refused(folder: DataFolder, setting: str) -> None:
    """A port that settings ask for and another program has is named; nothing is started."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PortInUse, match=f"{port}.*ENGRAM_{setting.upper()}"):
            await TemporalDevServer.start(
                folder, Settings.load(temporal_ui=True, **{setting: port})
            )
    assert nothing_left(folder)


async def test_a_lost_port_is_replaced(folder: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """When another program takes a free port first, others are tried; an asked one is refused."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        answers = iter([(port, 1), (port, 1)])

        def lost_twice(count: int) -> tuple[int, ...]:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                return next(answers, (free.getsockname()[1], 1))[:count]

        with monkeypatch.context() as races:
            races.setattr("engram.embedded.program.free_ports", lost_twice)
            server = await TemporalDevServer.start(folder, QUIET)
        assert server.address != f"127.0.0.1:{port}"
        await server.stop()
        monkeypatch.setattr("engram.embedded.program.require_free", lambda *_: None)
        with pytest.raises(PortInUse, match="ENGRAM_TEMPORAL_PORT"):
            await TemporalDevServer.start(
                folder, Settings.load(temporal_ui=False, temporal_port=port)
            )


async def test_says_why_it_did_not_start(folder: DataFolder, tmp_path: Path) -> None:
    """A program that ends at once, and one that cannot be run, are reported with their reason."""
    broken = tmp_path / "broken"
    # As Go programs do: a stack of any length behind the reason.
    stack = "goroutine 1 [running]:\n" + "main.main()\n\t/main.go:18 +0x8e\n" * 99
    broken.write_text(f"#!/bin/sh\ncat >&2 <<'END'\nthe disk is on fire\n{stack}END\nexit 3\n")
    broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
    with pytest.raises(EmbeddedStartFailed, match="disk is on fire"):
        await TemporalDevServer.start(folder, QUIET, binary=broken)
    with pytest.raises(EmbeddedStartFailed, match=r"cannot run .*nowhere"):
        await TemporalDevServer.start(folder, QUIET, binary=tmp_path / "nowhere")
    assert nothing_left(folder)


async def test_gives_up_on_one_that_stays_silent(folder: DataFolder, tmp_path: Path) -> None:
    """A program that never answers, and ignores SIGTERM, is given up and ended for sure."""
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\ntrap '' TERM\nwhile true; do sleep 0.1; done\n")
    silent.chmod(silent.stat().st_mode | stat.S_IXUSR)
    chosen = Settings.load(temporal_ui=False, start_timeout=timedelta(seconds=0.3))
    with pytest.raises(EmbeddedStartFailed, match=r"within 0\.3 seconds"):
        await TemporalDevServer.start(folder, chosen, binary=silent)
    assert nothing_left(folder)


async def test_needs_the_lock(tmp_path: Path) -> None:
    """Starting a server on a folder that is not ours is refused."""
    with pytest.raises(RuntimeError, match="lock the data folder"):
        await TemporalDevServer.start(DataFolder(tmp_path), QUIET)
