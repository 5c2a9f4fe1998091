"""Starting workflows without Engram's client: the commands of docs/workflows.md, and misuse."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.running_up import Up, running_codec, running_up

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("by-hand")]

PAGE = (Path(__file__).parents[2] / "docs" / "workflows.md").read_text("utf-8")
COMMANDS = [
    block for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) if "temporal --" in block
]


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """`engram up`, encrypted as always, without passes of its own."""
    with running_up(tmp_path_factory.mktemp("hand"), ENGRAM_SCHEDULES="false") as running:
        yield running


def shell(up: Up, script: str) -> subprocess.CompletedProcess[str]:
    """Run it as somebody who pastes it does."""
    programs = str(Path(sys.executable).parent)
    return subprocess.run(
        ["bash", "-e", "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={
            **{name: value for name, value in os.environ.items() if "ENGRAM_" not in name},
            "PATH": f"{programs}:{os.environ['PATH']}",
            "ENGRAM_DATA_DIR": str(up.folder),
        },
    )


def test_the_page_s_commands_store_and_recall(up: Up) -> None:
    """A turn sent by `temporal` from the page is stored, consolidated and recalled, encrypted."""
    said = []
    for command in COMMANDS:
        done = shell(up, command)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        said.append(done.stdout)
    assert "episode_id" in said[0]
    assert "I live in Porto." in said[1]
    assert "episodes" in said[2]
    found = up.json("recall", "Where does Ada live?", "-u", "ada")
    assert "Porto" in json.dumps(found)
    # Twice is once: the same id with the same words.
    again = shell(up, COMMANDS[0])
    assert again.returncode == 0
    assert up.json("count", "-t", "episodic", "-u", "ada") == {"count": 1}


def start(session: str, **state: object) -> str:
    """A start by hand of Ada's session s1, that brings this, and a turn."""
    given = {"scope": {"namespace": "default", "user_id": "ada"}, "session_id": "s1", **state}
    turn = {
        "role": "user",
        "content": "I am not to be stored.",
        "message_id": "wrong",
        "timestamp": "2026-05-01T09:00:00Z",
    }
    return (
        f"engram temporal -- workflow execute-update-with-start --workflow-id {session} "
        "--type engram.session --task-queue engram-store --id-conflict-policy UseExisting "
        "--search-attribute 'EngramUser=\"default/ada\"' "
        f"--input '{json.dumps(given)}' --update-name encode "
        f"--update-input '{json.dumps({'calls': [{'turns': [turn]}]})}'"
    )


@pytest.mark.parametrize(
    ("script", "code"),
    [
        (start("session/default/bob/s1"), "invalid_input"),
        (start("session/default/ada/other"), "invalid_input"),
        (start("session/default/ada/x y", session_id="x y").replace("x y", "'x y'", 1), "scope"),
        (start("session/default/ada/full", session_id="full", turns_accepted=3), "invalid_input"),
    ],
)
def test_a_start_that_a_client_would_not_send_is_refused(up: Up, script: str, code: str) -> None:
    """Ids of others, names that are none, more than whose memory it is: a typed error."""
    done = shell(up, script)
    assert done.returncode != 0
    assert code in done.stdout + done.stderr
    listed = json.dumps(up.json("list", "-u", "bob")) + json.dumps(up.json("list", "-u", "ada"))
    assert "not to be stored" not in listed


def test_a_plain_start_is_refused(up: Up) -> None:
    """Without the codec a worker takes nothing, whoever reaches the server."""
    port = json.loads((up.folder / "server.json").read_text())["port"]
    plain = start("session/default/ada/plain", session_id="plain")
    done = shell(
        up, plain.replace("engram temporal --", "temporal") + f" --address localhost:{port}"
    )
    assert done.returncode != 0
    assert "not to be stored" not in json.dumps(up.json("list", "-u", "ada"))


def test_a_run_says_in_the_ui_how_to_list_what_it_wrote(up: Up) -> None:
    """The command in its current details, as it stands there, lists its turns and no others."""
    up.json("encode", "I keep bees.", "-u", "ida", "-s", "s1")
    up.json("encode", "I keep goats.", "-u", "ida", "-s", "s2")
    asked = "engram temporal -- workflow metadata --workflow-id session/default/ida/s1"
    details = shell(up, asked).stdout
    told = re.search(r"engram list -u ida --run-id [0-9a-f-]{36}", details)
    assert told is not None, details
    listed = shell(up, told.group() + " --json")
    assert listed.returncode == 0, listed.stderr
    assert [one["content"] for one in json.loads(listed.stdout)["memories"]] == ["I keep bees."]


def test_the_codec_lets_in_who_knows_its_address(up: Up) -> None:
    """`engram codec` encodes for one workflow, decodes, and answers no page and no guess."""
    with running_codec(up) as address:
        base = address.removesuffix("WORKFLOW-ID")
        plain = {"payloads": [{"metadata": {"encoding": "anNvbi9wbGFpbg=="}, "data": "Inl1Ig=="}]}
        at = f"{base}session%2Fdefault%2Fada%2Fs9"
        with httpx.Client(trust_env=False) as client:
            sealed = client.post(f"{at}/encode", json=plain).json()
            assert "Inl1Ig==" not in json.dumps(sealed)
            assert client.post(f"{at}/decode", json=sealed).json() == plain
            guessed = base.rstrip("/").rpartition("/")[0] + f"/{'0' * 64}/x/encode"
            assert client.post(guessed, json=plain).status_code == 404
            page = {"Origin": "http://evil.example"}
            assert client.post(f"{at}/encode", json=plain, headers=page).status_code == 403
            rebound = {"Host": "evil.example"}
            assert client.post(f"{at}/decode", json=sealed, headers=rebound).status_code == 421
            assert client.post(f"{at}/decode", content=b"{").status_code == 422
