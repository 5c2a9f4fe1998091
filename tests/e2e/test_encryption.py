"""Whoever reaches Temporal's port reads no word, and starts and changes nothing."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import re
import shlex
import shutil
import sys
import zlib
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio
from temporalio.client import Client, WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.common import RawValue
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.exceptions import ApplicationError

import engram
from engram import MemoryStore, Settings
from engram.contracts import names
from engram.contracts.removal import ErasureInput
from engram.domain.memories import MemoryType
from engram.embedded.keys import folder_keys
from engram.errors import EncryptionKeysUnusable, InvalidInput, PayloadRefused
from engram.temporal.retry import what_holds_up
from engram.workflows.replaying import one_history, replayed
from tests.support.payloads import payloads
from tests.support.raw_files import holders
from tests.support.temporal_server import client_of

# What runs is started once, in one process.
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("encryption")]

TURNS = 50
CANARY = "zanzibarian"
QUEUE = Settings.load().store_queue


@asynccontextmanager
async def opened(folder: Path, **settings: Any) -> AsyncIterator[MemoryStore]:
    """An embedded memory by the default settings, but without schedules."""
    chosen = Settings.load(data_dir=folder, **{"schedules": False, **settings})
    async with engram.open(user_id="ada", settings=chosen) as memory:
        yield memory


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def home(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[MemoryStore, Path]]:
    """A running memory, and its folder."""
    folder = tmp_path_factory.mktemp("home")
    async with opened(folder) as memory:
        yield memory, folder


@pytest.fixture
def folder(home: tuple[MemoryStore, Path]) -> Path:
    """Where it runs."""
    return home[1]


@pytest.fixture
def memory(home: tuple[MemoryStore, Path]) -> MemoryStore:
    """The memory of somebody new."""
    return home[0].for_user(f"u-{uuid4().hex[:8]}")


@pytest_asyncio.fixture(loop_scope="module")
async def intruder(folder: Path) -> Client:
    """What another user of the machine has: the port, and no key."""
    port = json.loads((folder / "server.json").read_text())["port"]
    return await Client.connect(f"127.0.0.1:{port}", data_converter=pydantic_data_converter)


def listened_on(pid: int) -> set[int]:
    """The TCP ports that a process waits for connections on."""
    links = (str(one.readlink()) for one in Path(f"/proc/{pid}/fd").iterdir() if one.is_symlink())
    sockets = {link[8:-1] for link in links if link.startswith("socket:[")}
    lines = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]
    ]
    return {
        int(fields[1].rsplit(":", 1)[1], 16)
        for fields in lines
        if fields[3] == "0A" and fields[9] in sockets
    }


def canaries(beginning: str = CANARY) -> list[str]:
    """Words that stand nowhere else, and begin alike: one search finds any of them."""
    return [f"{beginning}{uuid4().hex[:12]}" for _ in range(TURNS)]


async def live(memory: MemoryStore, words: Iterable[str]) -> None:
    """Say each word, and let everything run that works on what was said."""
    for word in words:
        await memory.encode(f"My password for the {word} archive is {word}.", session_id="s1")
    await memory.consolidate()
    await memory.decay()
    await memory.promote()


def in_base64(word: str) -> Iterator[str]:
    """What a word looks like in base64, wherever it begins; without what its neighbours change."""
    for before in range(3):
        yield b64encode(b"\0" * before + word.encode()).decode()[(before * 8 + 5) // 6 + 1 : -4]


def unpacked(folder: Path) -> Iterator[bytes]:
    """Whatever can be decompressed in the folder's files beside the store."""
    for path in folder.rglob("*"):
        if not path.is_file() or path.is_relative_to(folder / "store"):
            continue
        content = path.read_bytes()
        for magic in (b"\x78\x01", b"\x78\x9c", b"\x78\xda", b"\x1f\x8b\x08"):
            at = -1
            while (at := content.find(magic, at + 1)) >= 0:
                try:
                    yield zlib.decompressobj(47).decompress(content[at : at + 8192], 1 << 16)
                except zlib.error:
                    continue


async def test_no_file_but_the_store_holds_a_word_of_what_was_said(
    home: tuple[MemoryStore, Path], memory: MemoryStore
) -> None:
    """Turns, statements, plans and summaries: in no database page, log or file, in no spelling."""
    folder, words = home[1], canaries()
    await live(memory, words)
    found = holders(folder, [CANARY, *in_base64(CANARY)])
    assert {name for name in found if not name.startswith("store/")} == set()
    assert not any(CANARY.encode() in text for text in unpacked(folder))
    # The search finds what is there.
    assert found


async def test_who_reaches_the_port_reads_nothing(intruder: Client, memory: MemoryStore) -> None:
    """No history, query, summary, memo or stack trace of any workflow shows a word."""
    (word, *_) = canaries()
    await live(memory, [word])
    seen = 0
    async for run in intruder.list_workflows():
        handle = intruder.get_workflow_handle(run.id, run_id=run.run_id)
        history = await handle.fetch_history()
        seen += len(history.events)
        assert word not in history.to_json()
        assert b64encode(word.encode()).decode()[:-4] not in history.to_json()
        assert word.encode() not in (await handle.describe()).raw_description.SerializeToString()
    assert seen > 20
    session = intruder.get_workflow_handle(names.session_workflow_id(memory.scope, "s1"))
    for query in (names.WORKING_MEMORY_QUERY, "__stack_trace", "__temporal_workflow_metadata"):
        with pytest.raises(KeyError, match="binary/encrypted"):
            await session.query(query)
    assert [turn.content for turn in await memory.working_memory("s1")] != []


@pytest.mark.slow
async def test_what_stays_readable_is_what_the_page_lists(
    intruder: Client, memory: MemoryStore
) -> None:
    """Of all payloads only search attributes and the SDK's own markers are plain, with no words."""
    await live(memory, canaries()[:2])
    attributes, markers, encrypted = set(), set(), 0
    own = f"{names.USER_ATTRIBUTE} = '{memory.scope.tenant}'"
    async for run in intruder.list_workflows(own):
        handle = intruder.get_workflow_handle(run.id, run_id=run.run_id)
        for event in json.loads((await handle.fetch_history()).to_json())["events"]:
            for place, payload in payloads(event):
                if b64decode(payload["metadata"]["encoding"]) == b"binary/encrypted":
                    encrypted += 1
                    continue
                assert CANARY not in b64decode(payload.get("data", "")).decode()
                if "indexedFields" in place:
                    attributes.add(place[-1])
                else:
                    assert place[0] == "markerRecordedEventAttributes"
                    markers.add(event[place[0]]["markerName"])
    assert encrypted > 20
    assert attributes == {"EngramUser", "EngramSession", "EngramStage", "TemporalChangeVersion"}
    assert markers == {"core_local_activity", "core_patch"}


async def test_who_has_no_key_changes_nothing_in_a_session(
    intruder: Client, memory: MemoryStore
) -> None:
    """Plain or empty, updates are rejected and signals dropped; the session goes on."""
    receipt = await memory.encode("I moved to Lisbon.", session_id="s1")
    session = intruder.get_workflow_handle(names.session_workflow_id(memory.scope, "s1"))
    plain = {"calls": [{"turns": [{"role": "user", "content": "I hate my job."}]}]}
    for update in (names.ENCODE_UPDATE, names.END_SESSION_UPDATE):
        for brought in ([plain], []):
            with pytest.raises((WorkflowUpdateFailedError, KeyError)):
                await session.execute_update(update, args=brought)
    for brought_signal in ([receipt.episode_ids], []):
        await session.signal(names.FORGET_TURNS_SIGNAL, args=brought_signal)
    await memory.encode("I like tea.", session_id="s1")
    remembered = [turn.content for turn in await memory.working_memory("s1")]
    assert remembered == ["I moved to Lisbon.", "I like tea."]
    assert (await memory.stats()).counts[MemoryType.EPISODIC] == 2


async def test_who_has_no_key_starts_and_erases_nothing(
    folder: Path, intruder: Client, memory: MemoryStore
) -> None:
    """Workflows that are started plain, or with nothing, fail typed; ids are free afterwards."""
    await memory.encode("I moved to Lisbon.", session_id="s1")
    erasure = ErasureInput(scope=memory.scope, store_timeout=Settings.load().store_timeout)
    keyed, refused = await client_of(folder), []
    for name, workflow_id in (
        (names.ERASURE_WORKFLOW, names.erasure_workflow_id(memory.scope)),
        (names.SESSION_WORKFLOW, names.session_workflow_id(memory.scope, "s2")),
        (names.IMPORT_WORKFLOW, names.import_workflow_id(memory.scope, "i1")),
    ):
        for brought in ([erasure], []):
            await intruder.start_workflow(name, args=brought, id=workflow_id, task_queue=QUEUE)
            with pytest.raises(WorkflowFailureError) as failed:
                await keyed.get_workflow_handle(workflow_id).result()
            cause = failed.value.cause
            assert isinstance(cause, ApplicationError)
            refused.append(cause.type)
            # Not for want of the same keys: who has them, and met that run, asks again.
            assert await what_holds_up(keyed, workflow_id) is None
    assert refused == [PayloadRefused.code, InvalidInput.code] * 3
    await memory.encode("I like tea.", session_id="s2")
    assert (await memory.consolidate()).failures == ()
    assert (await memory.stats()).counts[MemoryType.EPISODIC] == 2


async def test_a_ciphertext_of_one_session_is_nothing_to_another(
    folder: Path, intruder: Client, memory: MemoryStore
) -> None:
    """What was recorded of one workflow is refused by the next, of the same user too."""
    await memory.encode("I moved to Lisbon.", session_id="s1")
    source = intruder.get_workflow_handle(names.session_workflow_id(memory.scope, "s1"))
    (started, *_) = (await source.fetch_history()).events
    recorded = started.workflow_execution_started_event_attributes.input.payloads
    workflow_id = names.session_workflow_id(memory.scope, "copied")
    await intruder.start_workflow(
        names.SESSION_WORKFLOW,
        args=[RawValue(payload) for payload in recorded],
        id=workflow_id,
        task_queue=QUEUE,
    )
    with pytest.raises(WorkflowFailureError):
        await (await client_of(folder)).get_workflow_handle(workflow_id).result()


async def test_what_is_terminated_loses_nothing_acknowledged(
    intruder: Client, memory: MemoryStore
) -> None:
    """What comes next starts a new run; what was acknowledged is there, and is consolidated."""
    await memory.encode("I live in Porto.", session_id="s1")
    handle = intruder.get_workflow_handle(names.session_workflow_id(memory.scope, "s1"))
    await handle.terminate()
    await memory.encode("My sister Ines plays the cello.", session_id="s1")
    report = await memory.consolidate()
    assert (report.episodes, report.failures) == (2, ())
    assert (await memory.stats()).waiting == 0


@pytest.mark.slow
async def test_a_replay_reads_encrypted_histories_with_the_key(
    folder: Path, memory: MemoryStore
) -> None:
    """`engram replay` fits the present code to what only the key opens."""
    await live(memory, canaries()[:3])
    client = await client_of(folder)
    for workflow_id in (
        names.session_workflow_id(memory.scope, "s1"),
        names.consolidation_workflow_id(memory.scope),
        names.decay_workflow_id(memory.scope),
    ):
        async for history in one_history(client, workflow_id):
            came = await replayed(history, client.data_converter)
            assert (came.fits, came.failure) == (True, None)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux says what a process listens on")
async def test_no_web_page_is_answered_by_the_server_s_http_api(folder: Path) -> None:
    """Whatever name it calls the machine by: the port is of the program's own choice, and open."""
    server = json.loads((folder / "server.json").read_text())
    ports = listened_on(server["pid"]) - {server["port"]}
    answers = list[str]()
    async with httpx.AsyncClient() as web:
        for port, host in itertools.product(ports, ("127.0.0.1", "localhost", "page.example")):
            with contextlib.suppress(httpx.HTTPError):
                url = f"http://127.0.0.1:{port}/api/v1/namespaces"
                answers.append((await web.get(url, headers={"Host": f"{host}:{port}"})).text)
    assert any("Host not allowed" in answer for answer in answers)
    assert not any("namespaces" in answer for answer in answers)


async def test_a_new_folder_never_held_anything_plain(home: tuple[MemoryStore, Path]) -> None:
    """Its keys are there before its runs: none of them is taken for one from before."""
    assert folder_keys(home[1], Settings.load()).since is None


async def test_the_ui_is_off_by_default(folder: Path, memory: MemoryStore) -> None:
    """Every user and web page of the machine could open it."""
    assert json.loads((folder / "server.json").read_text())["ui_port"] is None
    receipt = await memory.encode("I moved to Lisbon.", session_id="s1")
    assert memory.run_url(await memory.get(receipt.episode_ids[0])) is None


@pytest.mark.slow
async def test_without_its_keys_a_folder_is_not_opened_and_makes_no_new_ones(
    tmp_path: Path,
) -> None:
    """Lost keys are an error that says what to do; put back, everything goes on."""
    async with opened(tmp_path / "data") as memory:
        await memory.encode("I moved to Lisbon.", session_id="s1")
    kept, away = tmp_path / "data" / "encryption", tmp_path / "away"
    kept.rename(away)
    with pytest.raises(EncryptionKeysUnusable):
        async with opened(tmp_path / "data"):
            pass
    assert not kept.exists()
    away.rename(kept)
    async with opened(tmp_path / "data") as memory:
        assert len(await memory.working_memory("s1")) == 1


@pytest.mark.slow
async def test_keys_that_are_put_back_after_a_failed_start_open_the_folder(
    tmp_path: Path,
) -> None:
    """With their record lost as well: the start that was refused left nothing in their way."""
    data, away = tmp_path / "data", tmp_path / "away"
    async with opened(data) as memory:
        await memory.encode("I moved to Lisbon.", session_id="s1")
    (data / "encryption").rename(away)
    (data / "encryption.json").unlink()
    with pytest.raises(EncryptionKeysUnusable, match="are missing") as refused:
        async with opened(data):
            pass
    assert "audit trail" in str(refused.value.hint)
    assert not (data / "encryption").exists()
    assert not (data / "encryption.json").exists()
    away.rename(data / "encryption")
    async with opened(data) as memory:
        assert len(await memory.working_memory("s1")) == 1
    assert (data / "encryption.json").exists()


def lost_keys_page() -> list[str]:
    """What docs/encryption.md has moved out of a data folder whose keys are lost."""
    page = (Path(__file__).parents[2] / "docs" / "encryption.md").read_text("utf-8")
    told = page.partition("## When keys are lost")[2].partition("- Embedded:")[2]
    return re.findall(r"`([^`]+)`", told.partition("out of the data folder")[0])


@pytest.mark.slow
@pytest.mark.checkout
async def test_without_its_keys_a_folder_is_used_on_as_the_page_says(tmp_path: Path) -> None:
    """Memories are all there, and turns that waited are consolidated."""
    data, away = tmp_path / "data", tmp_path / "away"
    async with opened(data) as memory:
        await memory.encode("I live in Porto.", session_id="s1")
        await memory.consolidate()
        waiting = await memory.encode("My sister Ines plays the cello.", session_id="s1")
    shutil.rmtree(data / "encryption")
    (data / "encryption").mkdir()
    away.mkdir()
    for name in lost_keys_page():
        for path in data.glob(f"{name}*" if name.endswith(".sqlite") else name):
            path.rename(away / path.name)
    async with opened(data) as memory:
        asked = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "engram.cli", "consolidate", "--all", "-d", str(data)),
            stdout=asyncio.subprocess.PIPE,
        )
        assert await asked.wait() == 0
        await memory.wait_until(waiting, "extracted", ask=False)
        found = [one.content for one in (await memory.list(memory_types=["semantic"])).memories]
    assert any("Porto" in content for content in found)
    assert any("cello" in content for content in found)


def lost_key_commands() -> list[list[str]]:
    """What docs/encryption.md has typed where one user's key is lost for good."""
    page = (Path(__file__).parents[2] / "docs" / "encryption.md").read_text("utf-8")
    told = page.partition("### One user's key")[2].partition("```sh\n")[2].partition("```")[0]
    return [shlex.split(line) for line in told.splitlines()]


async def typed_in(data: Path, command: list[str]) -> tuple[int | None, str]:
    """The exit code and the output of a command on a data folder."""
    running = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "engram.cli", *command[1:]),
        env={**os.environ, "ENGRAM_DATA_DIR": str(data)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await running.communicate()
    return running.returncode, said.decode()


@pytest.mark.slow
@pytest.mark.checkout
async def test_a_user_whose_key_is_lost_goes_on_as_the_page_says(tmp_path: Path) -> None:
    """Each call says what ends the run that waits, the doctor lists them; no memory is lost."""
    data = tmp_path / "data"
    async with opened(data) as memory:
        first = await memory.encode("Remember that I live in Porto.", session_id="s1")
        # Asked for in the background, it waits for more afterwards.
        await memory.wait_until(first, "extracted")
        waiting = await memory.encode("Ines is my sister.", session_id="s1")
    owner = sha256(memory.scope.tenant.encode()).hexdigest()
    (data / "encryption" / "owners" / f"{owner}.json").unlink()
    async with opened(data, encode_timeout=timedelta(seconds=3)) as memory:
        for ask, run in (
            (partial(memory.working_memory, "s1"), "session/default/ada/s1"),
            (partial(memory.encode, "I like tea.", session_id="s1"), "session/default/ada/s1"),
            (partial(memory.end_session, "s1"), "session/default/ada/s1"),
            (memory.consolidate, "consolidation/default/ada"),
        ):
            with pytest.raises(EncryptionKeysUnusable, match=f"terminate --workflow-id {run}"):
                await ask()
        await memory.for_user("bob").encode("I live in Rome.", session_id="s1")
        (looked, *ended) = lost_key_commands()
        code, said = await typed_in(data, looked)
        assert code == 1
        for command in ended[:2]:
            assert shlex.join(command) in said
        for command in ended:
            assert (await typed_in(data, command))[0] == 0
        assert "missing" not in (await typed_in(data, looked))[1]
        await memory.encode("I like tea.", session_id="s1")
        await memory.wait_until(waiting, "extracted")
        found = [one.content for one in (await memory.list(memory_types=["semantic"])).memories]
    assert any("Porto" in content for content in found)
    assert any("Ines" in content for content in found)


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_erasing_leaves_no_key_and_no_word(tmp_path: Path) -> None:
    """Histories that Temporal keeps are noise, and who comes back has a key of their own."""
    words, others = canaries(), canaries("otherwise")
    async with opened(tmp_path / "data") as memory:
        await asyncio.gather(live(memory, words), live(memory.for_user("bob"), others))
        keys = folder_keys(tmp_path / "data", Settings.load())
        old = await keys.current(memory.scope.tenant)
        receipt = await memory.erase()
        assert receipt.complete
        keys = folder_keys(tmp_path / "data", Settings.load())
        assert await keys.find(memory.scope.tenant, old.id) is None
        done = await memory.erased()
        assert done is not None
        assert (done.complete, done.scrubbed) == (True, True)
        assert holders(tmp_path / "data", [CANARY, *in_base64(CANARY)]) == {}
        await memory.encode("I am back.", session_id="s1")
        assert len(await memory.working_memory("s1")) == 1
        assert (await keys.current(memory.scope.tenant)).secret != old.secret
        bob = memory.for_user("bob")
        assert (await bob.stats()).counts[MemoryType.EPISODIC] == TURNS
        assert len(await bob.working_memory("s1")) == TURNS
