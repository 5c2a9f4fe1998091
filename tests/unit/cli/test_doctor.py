"""`engram doctor`: each check on an installation that is well, and on one that is broken."""

from __future__ import annotations

import errno
import importlib.metadata
import json
import os
import platform
import shutil
import socket
import sys
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path

import pydantic_ai.models
import pytest

from engram.cli.doctor import commands, installation, local
from engram.cli.doctor.installation import CheckContext, CheckResult, State
from engram.domain.learning import LearningRules
from engram.embedded.folder import DataFolder, ServerRecord
from engram.embedded.parts import serve_on_socket
from engram.embedding.choice import make_embedder
from engram.errors import EmbeddedPartMissing, PortInUse
from engram.server.listening import public_listener
from engram.settings import Settings
from engram.storage.payload import identity_record
from engram.system import FileLock
from tests.support.cli import engram
from tests.support.doctor_results import around, says
from tests.support.fake_engine import FakeEngine
from tests.support.model_server import Reply, answering, provider
from tests.support.ports import free_port


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """An empty data folder."""
    path = tmp_path / "data"
    path.mkdir(mode=0o700)
    return path


# --- the installation


def test_python(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This interpreter will do; an older one does not, nor Windows unless servers are used."""
    says(installation.python(around(data)), State.OK, "3.")
    monkeypatch.setattr(platform, "system", lambda: "Windows")
    says(installation.python(around(data)), State.FAILED, "--connected")
    says(installation.python(around(data, connected=True)), State.OK)
    monkeypatch.setattr(sys, "version_info", (3, 10, 1))
    says(installation.python(around(data)), State.FAILED, "3.11 or newer")


def test_extras(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the embedded parts that mode fails; a worker's are only missed by workers."""
    says(installation.needed_extra(around(data)), State.OK)
    says(installation.optional_extras(around(data)), State.OK, "MCP clients: installed")
    real = importlib.metadata.version

    def version(name: str) -> str:
        if name in ("qdrant-edge-py", "phonenumbers", "mcp"):
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    says(installation.needed_extra(around(data)), State.FAILED, "qdrant-edge-py", "[embedded]")
    says(installation.needed_extra(around(data, connected=True)), State.WARNING, "phonenumbers")
    says(installation.optional_extras(around(data)), State.OK, "pip install '.[mcp]'")


def test_temporal_program(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The installed program runs; a broken one and a missing one are told apart."""
    says(installation.temporal_program(around(data)), State.OK, "temporal version")
    broken = tmp_path / "temporal"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o700)
    monkeypatch.setattr(installation, "find_temporal", lambda: broken)
    says(installation.temporal_program(around(data)), State.FAILED, "does not run")

    def missing() -> Path:
        raise EmbeddedPartMissing("The Temporal CLI is not installed.")

    monkeypatch.setattr(installation, "find_temporal", missing)
    says(installation.temporal_program(around(data)), State.FAILED, "not installed")
    says(installation.temporal_program(around(data, connected=True)), State.OK)


# --- settings and models


def test_settings(data: Path) -> None:
    """A value out of range fails; a misspelt variable is a warning with the right name."""
    says(local.settings(around(data)), State.OK, "1 set")
    wrong = around(data, {"ENGRAM_BUFFER_TURNS": "0"})
    says(local.settings(wrong), State.FAILED, "ENGRAM_BUFFER_TURNS")
    says(local.variables(around(data)), State.OK)
    misspelt = around(data, {"ENGRAM_MODLE": "rules"})
    says(local.variables(misspelt), State.WARNING, "mean ENGRAM_MODEL")


def test_models_that_are_set(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The defaults can be used; an unknown name and a missing key are told without a request."""
    says(local.embedder(around(data)), State.OK, "wordllama")
    says(local.model(around(data)), State.OK, "rules")
    unknown = around(data, {"ENGRAM_EMBEDDER": "nobody:knows", "ENGRAM_MODEL": "nobody:knows"})
    says(local.embedder(unknown), State.FAILED, "nobody:knows")
    says(local.model(unknown), State.FAILED, "nobody:knows")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    without_key = around(data, {"ENGRAM_MODEL": "openai:gpt-5-mini"})
    says(local.model(without_key), State.FAILED, "OPENAI_API_KEY")


def test_rules_that_cannot_follow_what_a_namespace_asks_to_learn(data: Path) -> None:
    """They are told with the parts; a language model follows all of it, and has its version."""
    asked = {"ENGRAM_LEARNING_BY_NAMESPACE": '{"clinic": {"entity_types": ["drug"]}}'}
    says(local.learning(around(data)), State.OK, "no namespace")
    says(local.learning(around(data, asked)), State.WARNING, "clinic: entity_types", "MODEL")
    by_model = around(data, {**asked, "ENGRAM_MODEL": "openai:gpt-5-mini"})
    version = LearningRules(entity_types=("drug",)).version
    says(local.learning(by_model), State.OK, f"clinic {version}")


@pytest.mark.usefixtures("provider_clients_go")
async def test_the_model_is_asked_only_when_asked_for(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without --ask-model nothing is sent; with it, one that answers is well, one away is not."""
    port = free_port()
    monkeypatch.setenv("OPENAI_API_KEY", "not a key")
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{port}/v1")
    away = {"ENGRAM_MODEL": "openai-chat:gpt-5-mini"}
    says(await local.model_answers(around(data, away)), State.OK, "not asked")
    with pydantic_ai.models.override_allow_model_requests(True):
        found = await local.model_answers(around(data, away, ask_model=True))
    says(found, State.FAILED, "cannot answer now", f"127.0.0.1:{port}")
    there = around(data, {"ENGRAM_MODEL": "test"}, ask_model=True)
    says(await local.model_answers(there), State.OK, "answered")


async def test_a_model_that_answers_in_no_asked_form_is_not_well(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it is asked is what consolidation asks: that it answers at all says too little."""
    async with provider() as server:
        monkeypatch.setenv("OPENAI_API_KEY", "not a key")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        asking = around(data, {"ENGRAM_MODEL": "openai-chat:gpt-5-mini"}, ask_model=True)
        with pydantic_ai.models.override_allow_model_requests(True):
            server.script(Reply(arguments="{{"))
            says(await local.model_answers(asking), State.FAILED, "could not be used")
            server.script(answering({"reasoning": "", "statements": []}))
            says(await local.model_answers(asking), State.OK, "in the asked form")


def test_keys(data: Path) -> None:
    """No file is well; one that others may read, one they may write and a damaged one are not."""
    says(local.keys(around(data)), State.OK, "none")
    file = data / "keys.json"
    file.write_text('{"version": 1, "keys": []}')
    file.chmod(0o600)
    says(local.keys(around(data)), State.OK, "0 in")
    file.chmod(0o644)
    says(local.keys(around(data)), State.WARNING, "chmod 600")
    file.chmod(0o666)
    says(local.keys(around(data)), State.FAILED, "written by other users")
    file.chmod(0o600)
    file.write_text("{")
    says(local.keys(around(data)), State.FAILED, "damaged")


# --- the data folder


def test_folder(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Missing is fine and stays so; a file, a stranger's, a closed and an open one are not."""
    says(local.folder(around(data)), State.OK)
    missing = tmp_path / "not" / "yet"
    says(local.folder(around(missing)), State.OK, "will be made")
    assert not missing.parent.exists()
    file = tmp_path / "file"
    file.touch()
    says(local.folder(around(file)), State.FAILED, "is a file")
    says(local.folder(around(file / "below")), State.FAILED, "cannot be made")
    data.chmod(0o755)
    says(local.folder(around(data)), State.WARNING, f"chmod 700 {data}")
    with monkeypatch.context() as patched:
        patched.setattr(os, "access", lambda *_: False)
        says(local.folder(around(data)), State.FAILED, "cannot be written to")
        mounted = os.statvfs_result((*os.statvfs(data)[:8], os.ST_RDONLY, 255))
        patched.setattr(os, "statvfs", lambda _: mounted)
        says(local.folder(around(data)), State.FAILED, "mounted read-only", "mount it writable")
    stranger = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: stranger)
    says(local.folder(around(data)), State.FAILED, f"not to {stranger}")


def test_space(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Little space is a warning, none a failure, also for a folder that is still to be made."""
    usage = namedtuple("usage", "total used free")
    for free, state in (
        (local.LITTLE_SPACE, State.OK),
        (local.LITTLE_SPACE - 1, State.WARNING),
        (local.NO_SPACE - 1, State.FAILED),
    ):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: usage(free, 0, free))
        says(local.space(around(data / "not" / "yet")), state)


@pytest.fixture
def held(data: Path) -> Iterator[DataFolder]:
    """The folder, owned by somebody who does not answer."""
    owned = DataFolder(data)
    assert owned.try_lock()
    yield owned
    owned.release()


async def test_owner(data: Path, held: DataFolder) -> None:
    """Who holds the folder and does not answer is named; after its end all is well."""
    says(await local.owner(around(data)), State.FAILED, f"process {os.getpid()}")
    held.release()
    says(await local.owner(around(data)), State.OK, "nobody")
    says(await local.owner(around(data / "not" / "yet")), State.OK, "nobody")


def record_of(data: Path, port: int) -> None:
    """Word of a Temporal server."""
    ServerRecord(4711, None, "engram-temporal:x", 4712, port, None, "x").write(data / "server.json")


async def test_server(data: Path, held: DataFolder) -> None:
    """A server that does not answer its owner fails; one without an owner was left behind."""
    says(await local.server(around(data)), State.OK, "does not run")
    record_of(data, free_port())
    lock = FileLock(data / "server.lock")
    assert lock.try_acquire()
    says(await local.server(around(data)), State.FAILED, "process 4711", "temporal.log")
    held.release()
    says(await local.server(around(data)), State.WARNING, "left behind", "process 4711")
    lock.release()
    says(await local.server(around(data)), State.OK)


async def test_a_database_that_is_none(data: Path) -> None:
    """The next start would fail over it; what is not there yet will be made."""
    (data / "temporal.sqlite").touch()
    says(await local.server(around(data)), State.FAILED, "temporal.sqlite is damaged", "backup")
    (data / "temporal.sqlite").write_bytes(b"SQLite format 3\0" + bytes(84))
    says(await local.server(around(data)), State.OK, "does not run")


async def test_an_owner_of_another_store(data: Path, held: DataFolder) -> None:
    """It answers, and would refuse every command with these settings."""
    settings = Settings.load(collection_prefix="staging")
    async with serve_on_socket(FakeEngine(), held.socket, settings=settings):
        found = await local.owner(around(data))
        says(found, State.FAILED, "'staging'", "'engram'", "ENGRAM_COLLECTION_PREFIX=staging")
        same = around(data, {"ENGRAM_COLLECTION_PREFIX": "staging"})
        says(await local.owner(same), State.OK, "answers")


async def test_a_server_that_answers(data: Path, held: DataFolder) -> None:
    """A server that listens under its owner is named with its address."""
    assert held.locked
    with socket.create_server(("127.0.0.1", 0)) as listening:
        record_of(data, listening.getsockname()[1])
        lock = FileLock(data / "server.lock")
        assert lock.try_acquire()
        says(await local.server(around(data)), State.OK, "process 4711 answers")
        lock.release()


async def test_a_store_that_is_missing_is_no_empty_one(data: Path) -> None:
    """Where there was one it must be restored; another collection prefix begins a new one."""
    DataFolder(data).note_store("engram")
    says(await local.store(around(data)), State.FAILED, "missing", "backup")
    says(await local.store(around(data, {"ENGRAM_COLLECTION_PREFIX": "other"})), State.OK, "empty")


async def test_a_store_that_may_not_be_written_to_is_no_empty_one(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What can be read of it is told; what cannot is not called empty, and the file is named."""
    record = DataFolder(data).store_record("engram")
    record.parent.mkdir()
    ours = identity_record(embedder=make_embedder("wordllama").identity, dimensions=256)
    record.write_text(json.dumps(ours))
    (data / "lock").touch()
    monkeypatch.setattr(os, "access", lambda _, rights: not rights & os.W_OK)
    says(await local.owner(around(data)), State.OK, "nobody")
    says(await local.store(around(data)), State.OK, "wordllama")
    monkeypatch.setattr(os, "access", lambda *_: False)
    says(await local.store(around(data)), State.WARNING, "data folder")
    monkeypatch.undo()

    def refused(*_: object) -> bool:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(record))

    monkeypatch.setattr(DataFolder, "has_lost_store", refused)
    says(await local.store(around(data)), State.FAILED, str(record), "Permission denied", "chown")


async def test_store(data: Path) -> None:
    """Of this version and embedder it is well; of others, without its record, or less, not."""
    says(await local.store(around(data)), State.OK, "empty")
    record = data / "store" / "engram.store.json"
    record.parent.mkdir()
    ours = identity_record(embedder=make_embedder("wordllama").identity, dimensions=256)
    record.write_text(json.dumps(ours))
    says(await local.store(around(data)), State.OK, "wordllama")
    counts = data / "store" / "engram.points.json"
    counts.write_text(json.dumps({"points": {"episodic": 3}, "missing": {"episodic": 2}}))
    says(await local.store(around(data)), State.FAILED, "2 memories are missing", "backup")
    counts.write_text(json.dumps({"points": {"episodic": 3}, "missing": {}}))
    says(await local.store(around(data)), State.OK, "wordllama")
    record.write_text(json.dumps({**ours, "embedder": "openai:small"}))
    says(await local.store(around(data)), State.FAILED, "openai:small", "ENGRAM_EMBEDDER")
    record.write_text(json.dumps({**ours, "schema_version": 99}))
    says(await local.store(around(data)), State.FAILED, "schema version 99")
    record.write_text("{")
    says(await local.store(around(data)), State.FAILED, "backup")


def test_ports(data: Path) -> None:
    """Ports that are free, or nobody's wish, are well; a taken one is named with its setting."""
    quiet = {"ENGRAM_HTTP_ENABLED": "false"}
    says(local.ports(around(data, quiet)), State.OK, "chosen")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = str(listening.getsockname()[1])
        taken = around(data, {"ENGRAM_TEMPORAL_PORT": port, **quiet})
        says(local.ports(taken), State.FAILED, port, "ENGRAM_TEMPORAL_PORT")
        owned = DataFolder(data)
        assert owned.try_lock()
        says(local.ports(taken), State.OK, "by the process that runs")
        owned.release()
    says(local.ports(taken), State.OK, f"free: {port}")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2"])
def test_a_taken_port_of_the_http_api_is_advised_on_as_it_starts(data: Path, host: str) -> None:
    """The HTTP API never chooses a port itself: what helps is what `engram up` says."""
    with socket.create_server((host, 0)) as listening:
        port = listening.getsockname()[1]
        given = around(data, {"ENGRAM_HTTP_PORT": str(port), "ENGRAM_HTTP_HOST": host})
        with pytest.raises(PortInUse) as refused, public_listener(given.settings):
            pass
        found = local.ports(given)
    says(found, State.FAILED, str(port))
    assert (found.found, found.advice) == (refused.value.message, refused.value.hint)
    says(local.ports(given), State.OK, f"free: {port}")


# --- the command


def test_the_command(tmp_path: Path) -> None:
    """On a fresh folder all is well, and nothing was made; with something broken it ends in 1."""
    fresh = tmp_path / "fresh"
    quiet = {"ENGRAM_HTTP_ENABLED": "false"}
    done = engram("doctor", "-d", str(fresh), env=quiet)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert lines[0] == ["state", "check", "found", "advice"]
    assert len(lines) == 1 + len(commands.checks(connected=False))
    assert {line[0] for line in lines[1:]} <= {"ok", "warning"}
    assert done.code == 0
    assert not fresh.exists()
    fresh.touch()
    broken = engram("doctor", "-d", str(fresh), "--json", env=quiet)
    assert broken.code == 1
    told = json.loads(broken.stdout)
    assert told["ok"] is False
    broken_ones = [each["check"] for each in told["checks"] if each["state"] == "failed"]
    assert broken_ones == ["data folder", "keys"]


def test_a_check_that_breaks_does_not_end_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault in one check is told as its finding, and every other check is made."""

    def python(_: CheckContext) -> CheckResult:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(installation, "python", python)
    told = json.loads(engram("doctor", "-d", str(tmp_path / "x"), "--json").stdout)
    assert len(told["checks"]) == len(commands.checks(connected=False))
    assert told["checks"][0]["state"] == "failed"
    assert "ZeroDivisionError: on purpose" in told["checks"][0]["found"]
