"""`engram replay` and `engram save-histories`: over files, and over what a server keeps."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from temporalio.client import Client, WorkflowHistory

from engram.errors import InvalidInput
from engram.temporal.encryption import EncryptionCodec, data_converter
from engram.temporal.keys import FolderKeyStore
from engram.temporal.redaction import Redactor
from engram.workflows import replaying
from tests.replay.changed import ForgetsItsUpdates, OtherOrder
from tests.support import cli
from tests.support.payloads import payloads
from tests.support.running_session import call, running_session, turn

HISTORIES = Path(__file__).parent / "histories"
# One of a type that says what was said, what was concluded, what a person was asked.
SOME = ("conversation-session-1", "conversation-consolidation-1", "reviews-review-1")
REST = sorted({file.stem for file in HISTORIES.glob("*.json")} - set(SOME))


def recorded(name: str) -> WorkflowHistory:
    """A committed history."""
    ((_, history),) = replaying.histories_in([HISTORIES / f"{name}.json"])
    return history


def words(document: str) -> set[str]:
    """Every text in the payloads of a history."""

    def texts(value: Any) -> set[str]:
        match value:
            case str():
                return {value}
            case list():
                return set().union(*map(texts, value))
            case dict():
                return set().union(*map(texts, value.values()))
            case _:
                return set()

    found = [b64decode(one.get("data", "")) for _, one in payloads(json.loads(document))]
    return set().union(*(texts(json.loads(data)) for data in found if data))


async def bare(name: str, folder: Path) -> replaying.Saved:
    """Save a committed history as one of a server is saved."""

    async def one() -> Any:
        yield recorded(name)

    return await replaying.save(one(), data_converter(None), folder)


async def check_that_it_is_bare(name: str, folder: Path) -> None:
    """It replays, and has no sentence and no user's name."""
    saved = await bare(name, folder)
    assert saved.left_out == ()
    (file,) = saved.files
    written = await asyncio.to_thread((folder / file).read_text, "utf-8")
    assert "/ada" not in written
    assert '"identity"' not in written
    left = words(written)
    assert "ada" not in left
    assert not [text for text in left if " " in text and text not in replaying.code_words()]


@pytest.mark.parametrize("name", SOME)
async def test_a_saved_history_replays_and_holds_no_words(name: str, tmp_path: Path) -> None:
    """What is saved for one's own CI still fits the code, and nobody's sentence is in it."""
    await check_that_it_is_bare(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", REST)
async def test_every_saved_history_replays_and_holds_no_words(name: str, tmp_path: Path) -> None:
    """The same of all that is recorded, of every type of workflow."""
    await check_that_it_is_bare(name, tmp_path)


async def test_a_folder_that_cannot_be_written_to_is_a_typed_error(tmp_path: Path) -> None:
    """Where none can be made, or a file is in the way, it is named with the system's reason."""
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match=r"file cannot be written to: File exists\."):
        await bare(SOME[0], tmp_path / "file")
    saved = await bare(SOME[0], tmp_path / "kept")
    (tmp_path / "kept" / saved.files[0]).unlink()
    (tmp_path / "kept" / saved.files[0]).mkdir()
    with pytest.raises(InvalidInput, match=r"kept cannot be written to: Is a directory\."):
        await bare(SOME[0], tmp_path / "kept")


@pytest.mark.parametrize("text", ["491711234567", "4711", "P1234567", "48213"])
def test_numbers_of_somebody_s_become_marks(text: str) -> None:
    """Users are named by telephone and customer numbers, and passports look like durations."""
    redactor = Redactor(replaying.code_words(), ["content"], b"salt")
    assert text not in redactor.id(f"session/default/{text}/{text}")
    assert redactor.id("import/12/P7DT3H/PT0.5S") == "import/12/P7DT3H/PT0.5S"


def test_two_saves_share_no_marks(tmp_path: Path) -> None:
    """Marks are of a random salt, so that nobody finds a text by trying texts out."""
    for folder in ("a", "b"):
        asyncio.run(bare(SOME[0], tmp_path / folder))
    one, other = (
        {text for text in words(next((tmp_path / folder).iterdir()).read_text()) if marked(text)}
        for folder in ("a", "b")
    )
    assert one
    assert not one & other


def marked(text: str) -> bool:
    """Whether it stands for another text."""
    return text.startswith("x") and len(text) == 11


async def test_the_message_names_workflow_event_and_what_to_do() -> None:
    """A change of the order of commands is refused in words that somebody can act on."""
    came = await replaying.replayed(
        recorded("conversation-session-1"), data_converter(None), workflows=[OtherOrder]
    )
    assert (came.fits, came.event, came.event_type) == (False, 5, "WorkflowExecutionUpdateAccepted")
    assert came.failure is not None
    assert "engram.session (session/default/ada/s1)" in came.failure
    assert "event 5, WorkflowExecutionUpdateAccepted" in came.failure
    assert "workflow.patched" in came.failure
    assert "do not deploy" in came.failure
    assert "Traceback" not in came.failure


async def test_an_event_that_nobody_names_is_found() -> None:
    """Where the SDK says only that something failed, the shortest part that fails tells where."""
    history = recorded("conversation-session-1")
    came = await replaying.replayed(history, data_converter(None), workflows=[ForgetsItsUpdates])
    assert not came.fits
    assert came.event is not None
    assert 4 <= came.event <= 7


def test_files_are_replayed_without_a_server(tmp_path: Path) -> None:
    """A folder of histories, and a single one; what is none is refused by name."""
    (tmp_path / "one.json").write_text((HISTORIES / f"{SOME[0]}.json").read_text())
    done = cli.engram("replay", "--file", str(tmp_path), "--json", "-d", str(tmp_path / "none"))
    assert done.code == 0, done.stderr
    assert json.loads(done.stdout) == {
        "replayed": 1,
        "workflow_types": {"engram.session": 1},
        "misfits": [],
        "unreadable": 0,
        "left_out": 0,
    }
    (tmp_path / "two.json").write_text("{}")
    done = cli.engram("replay", "--file", str(tmp_path / "two.json"), "--json")
    assert done.code == 1
    assert "two.json is no history" in done.stdout
    assert cli.engram("replay").code == cli.engram("replay", "--open", "--recent").code == 2


def environment(client: Client, address: str, store: str, folder: Path) -> dict[str, str]:
    """The settings of a process that replays what runs there."""
    codec = client.data_converter.payload_codec
    assert isinstance(codec, EncryptionCodec)
    assert isinstance(codec.keys, FolderKeyStore)
    return {
        "ENGRAM_ENCRYPTION_KEYS": str(codec.keys.folder),
        "ENGRAM_TEMPORAL_ADDRESS": address,
        "ENGRAM_TEMPORAL_NAMESPACE": client.namespace,
        "ENGRAM_COLLECTION_PREFIX": store,
        "ENGRAM_DATA_DIR": str(folder),
    }


async def replay(env: dict[str, str], *arguments: str) -> cli.Said:
    """What the command comes to."""
    return await asyncio.to_thread(cli.engram, "replay", *arguments, "--connected", env=env)


async def listed(client: Client, workflow_id: str) -> None:
    """Wait until a run is in listings."""
    while not (await client.count_workflows(f"WorkflowId = '{workflow_id}'")).count:  # noqa: ASYNC110 - nothing tells that a listing has caught up
        await asyncio.sleep(0.05)


async def test_a_limit_below_what_runs_is_told_and_fails(
    temporal_client: Client, temporal_address: str, tmp_path: Path
) -> None:
    """`--open` is for all that run: one that was left out might be the one that does not fit."""
    store = f"st-{uuid4().hex[:8]}"
    env = environment(temporal_client, temporal_address, store, tmp_path)
    async with running_session(temporal_client, collection_prefix=store) as session:
        for name in ("s1", "s2", "s3"):
            await session.gateway.encode(session.scope, name, call(turn("I live in Porto.")))
            await listed(temporal_client, session.gateway.session_id(session.scope, name))
        done = await replay(env, "--open", "--limit", "2", "--json")
        came = json.loads(done.stdout)
        assert (done.code, came["replayed"], came["left_out"]) == (1, 2, 1)
        assert came["misfits"] == []
        assert "2 of 3 replayed" in (await replay(env, "--open", "--limit", "2")).stderr
        assert (await replay(env, "--open", "--limit", "3")).code == 0
        assert (await replay(env, "--recent", "--limit", "2")).code == 0
        for name in ("s2", "s3"):
            await session.gateway.end_session(session.scope, name)


async def test_a_staged_change_is_caught_by_recent(
    temporal_client: Client,
    temporal_address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`--recent` and `--open` fit today; with the changed code they fail before it is deployed."""
    store = f"st-{uuid4().hex[:8]}"
    env = environment(temporal_client, temporal_address, store, tmp_path)
    keys = env["ENGRAM_ENCRYPTION_KEYS"]

    async def asked(*arguments: str) -> tuple[int, Any]:
        done = await replay(env, *arguments, "--json")
        return done.code, json.loads(done.stdout)

    async with running_session(temporal_client, collection_prefix=store) as session:
        await session.encode(turn("I live in Porto."))
        workflow_id = session.gateway.session_id(session.scope, "s1")
        await listed(temporal_client, workflow_id)
        for way in ("--recent", "--open"):
            code, came = await asked(way)
            assert (code, came["workflow_types"]) == (0, {"engram.session": 1})
        del env["ENGRAM_ENCRYPTION_KEYS"]
        assert (await asked("--open"))[1]["unreadable"] == 1
        env["ENGRAM_ENCRYPTION_KEYS"] = keys
        monkeypatch.setattr(replaying, "WORKFLOWS", (OtherOrder,))
        code, came = await asked("--recent", "--limit", "3")
        assert code == 1
        (misfit,) = came["misfits"]
        assert misfit["workflow_id"] == workflow_id
        assert misfit["event"] == 5
        assert "workflow.patched" in misfit["failure"]
