"""Kill -9 half-way through an import: the same command goes on, all is there, none twice."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from temporalio.service import RPCError

import engram
from engram import Settings
from engram.contracts import names
from engram.contracts.importing import ImportProgress
from engram.domain.memories import DerivedMemory
from engram.errors import EncryptionKeysUnusable
from tests.support.durability_checks import assert_sound, episodes
from tests.support.programs import SMALL, Program, servers_of, started, until
from tests.support.temporal_server import client_of

TURNS = 4800
USER = "ada"
BEGAN = datetime(2020, 5, 1, tzinfo=UTC)
# Far more than it takes: a machine may be busy.
PATIENCE = 120.0
KINDS = ["factual", "negation"]

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(600)]


def words(number: int) -> str:
    """What turn so-and-so says: every turn something of its own, some of them facts."""
    match number % 10:
        case 3:
            return f"My e-mail address number {number} is ada{number}@example.org."
        case 6:
            return f"I don't use Tool{number} any more."
        case _:
            return f"This is what was said in turn {number} about gardens and rivers."


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of many turns."""
    file = tmp_path_factory.mktemp("source") / "talk.jsonl"
    with file.open("w") as lines:
        for number in range(TURNS):
            line = {
                "content": words(number),
                "session_id": f"s{number // 50}",
                "timestamp": (BEGAN + timedelta(minutes=number)).isoformat(),
            }
            lines.write(json.dumps(line) + "\n")
    return file


def command(name: str, folder: Path, *more: object) -> list[str]:
    """A command of Engram's."""
    return [sys.executable, "-m", "engram.cli", name, *map(str, more), "-d", str(folder)]


def importing(source: Path, folder: Path) -> list[str]:
    """The command that is killed, and given again."""
    return command("import", folder, source, "-u", USER, "--no-consolidate", "--json")


async def reaches(folder: Path, wanted: int, *programs: Program) -> int:
    """Wait until the import has acknowledged more turns than so many; how many."""
    record = folder / "server.json"
    assert await until(record.exists, PATIENCE, *programs), programs[-1].said()
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and all(program.alive() for program in programs):
        # The server is named before the keys are made that its answers are read with.
        with contextlib.suppress(
            RPCError, RuntimeError, ValueError, OSError, EncryptionKeysUnusable
        ):
            position = await acknowledged(folder)
            if position > wanted:
                return position
        await asyncio.sleep(0.02)
    pytest.fail(f"too little was imported: {programs[-1].said()}")


async def acknowledged(folder: Path) -> int:
    """How far the import of the folder has come, by its workflow; 0 when there is none yet."""
    client = await client_of(folder)
    query = f"WorkflowType = '{names.IMPORT_WORKFLOW}'"
    async for run in client.list_workflows(query):
        handle = client.get_workflow_handle(run.id)
        told: ImportProgress = await handle.query(
            names.IMPORT_PROGRESS_QUERY, result_type=ImportProgress
        )
        return told.position
    return 0


async def assert_all_once(folder: Path, settings: Settings) -> None:
    """Every turn once, in its session and order; every fact once, from its own turn; all sound."""
    async with engram.open(folder, user_id=USER, settings=settings) as memory:
        kept = await episodes(memory)
        assert Counter(one.content for one in kept) == Counter(words(n) for n in range(TURNS))
        by_session: dict[str | None, list[int]] = {}
        for one in sorted(kept, key=lambda one: one.timestamp):
            by_session.setdefault(one.session_id, []).append(one.sequence)
        assert set(map(tuple, by_session.values())) == {tuple(range(50))}
        found = []
        cursor = None
        while True:
            page = await memory.list(memory_types=KINDS, limit=500, cursor=cursor)
            found += [one for one in page.memories if isinstance(one, DerivedMemory)]
            cursor = page.cursor
            if cursor is None:
                break
        assert len(found) == TURNS // 5
        ids = {one.id for one in kept}
        assert all(len(one.source_episode_ids) == 1 for one in found)
        assert {source for one in found for source in one.source_episode_ids} <= ids
        await assert_sound(memory)


async def again(source: Path, folder: Path, log: Path) -> dict[str, object]:
    """The same command once more, to its end; what it says."""
    with started(importing(source, folder), log, SMALL) as program:
        assert await until(lambda: not program.alive(), PATIENCE)
        assert program.process.returncode == 0, program.said()
    said = program.said()
    told: dict[str, object] = json.loads(said[said.index("{\n") :])
    return told


async def test_everything_killed(source: Path, tmp_path: Path) -> None:
    """Client, worker, server and store die at once; the same command brings in the rest."""
    folder = tmp_path / "data"
    settings = Settings.load(data_dir=folder, attach_timeout="PT60S")
    with started(importing(source, folder), tmp_path / "first.log", SMALL) as program:
        count = await reaches(folder, 0, program)
        program.kill()
    assert count < TURNS
    assert await until(lambda: not servers_of(folder), 30)
    told = await again(source, folder, tmp_path / "second.log")
    assert told["total"] == TURNS
    resumed = told["resumed_at"]
    assert isinstance(resumed, int)
    # What was acknowledged is not sent again.
    assert count <= resumed < TURNS
    await assert_all_once(folder, settings)


@pytest.mark.slow
async def test_client_killed_then_server_killed(source: Path, tmp_path: Path) -> None:
    """The client dies, then whoever it talked to: each time the next command goes on."""
    folder = tmp_path / "data"
    settings = Settings.load(data_dir=folder, attach_timeout="PT60S")
    quiet = {**SMALL, "ENGRAM_HTTP_ENABLED": "false"}
    with started(command("up", folder), tmp_path / "up.log", quiet) as up:
        assert await until((folder / "owner.json").exists, PATIENCE, up), up.said()
        with started(importing(source, folder), tmp_path / "first.log", SMALL) as program:
            first = await reaches(folder, 0, up, program)
            program.kill()
        with started(importing(source, folder), tmp_path / "second.log", SMALL) as program:
            assert await reaches(folder, first, up, program) < TURNS
            up.kill()
            # Its client cannot go on without it, and says so.
            assert await until(lambda: not program.alive(), PATIENCE)
    told = await again(source, folder, tmp_path / "third.log")
    assert told["total"] == TURNS
    await assert_all_once(folder, settings)
