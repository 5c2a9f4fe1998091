"""The examples in other languages, compiled and run beside one `engram up`, encrypted as always.

``uv run poe languages`` gets what they are compiled with by their lock files first. A missing
toolchain fails them.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from temporalio.client import Client

from tests.support.ports import free_port
from tests.support.running_up import Up, running_codec, running_up

# What runs is started once, in one process; compiling takes minutes.
pytestmark = [
    pytest.mark.toolchains,
    pytest.mark.timeout(1800),
    pytest.mark.xdist_group("other_languages"),
]
EXAMPLES = Path(__file__).parents[2] / "examples"
SHARED = "I live in Porto."
OF_THE_SHELL = "My sister is called Mia."
PROGRAMS = {"go": ["go", "run", "."], "typescript": ["npm", "start", "--silent", "--"]}


@dataclass
class Served:
    """A running Engram, and the environment that the head of each example asks for."""

    up: Up
    address: str
    environment: dict[str, str]

    def run(self, folder: str, *command: str) -> str:
        """What a program prints."""
        done = subprocess.run(
            command,
            cwd=EXAMPLES / folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=1500,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    def stored_by_the_shell(self, user: str, text: str) -> str:
        """Send a turn by `temporal`, as docs/workflows.md does; its id in memory."""
        session = f"session/default/{user}/examples"
        turn = {
            "role": "user",
            "content": text,
            "message_id": hashlib.sha256(text.encode()).hexdigest()[:16],
            "timestamp": "2026-05-01T09:00:00Z",
        }
        scope = {"namespace": "default", "user_id": user}
        printed = subprocess.run(
            [
                *(sys.executable, "-m", "engram.cli", "temporal", "-d", str(self.up.folder), "--"),
                *("workflow", "execute-update-with-start", "--workflow-id", session),
                *("--type", "engram.session", "--task-queue", "engram-store"),
                *("--id-conflict-policy", "UseExisting", "--output", "json"),
                *("--search-attribute", f'EngramUser="default/{user}"'),
                *("--search-attribute", 'EngramSession="examples"'),
                *("--search-attribute", 'EngramStage="session"'),
                *("--input", json.dumps({"scope": scope, "session_id": "examples"})),
                *("--update-name", "encode"),
                *("--update-input", json.dumps({"calls": [{"turns": [turn]}]})),
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert printed.returncode == 0, printed.stdout + printed.stderr
        found = re.search(r'"?episode_id"?:\s*"?([0-9a-f-]{36})', printed.stdout)
        assert found is not None, printed.stdout
        return found[1]

    async def in_histories(self) -> bytes:
        """All that the Temporal server has of all runs."""
        client = await Client.connect(self.address)
        histories = [
            await client.get_workflow_handle(run.id, run_id=run.run_id).fetch_history()
            async for run in client.list_workflows()
        ]
        return b"".join(
            event.SerializeToString() for history in histories for event in history.events
        )


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """On ports of its own."""
    temporal, http = free_port(), free_port()
    with running_up(
        tmp_path_factory.mktemp("languages"),
        ENGRAM_NEXUS_ENDPOINT="engram",
        ENGRAM_TEMPORAL_PORT=str(temporal),
        ENGRAM_HTTP_ENABLED="true",
        ENGRAM_HTTP_PORT=str(http),
    ) as up:
        made = up.program("keys", "create", "example", "--access", "write")
        assert made.returncode == 0, made.stderr
        key = re.search(r"engram_\S+?(?=[\"\s]|$)", made.stdout)
        assert key is not None, made.stdout
        with running_codec(up) as codec:
            address = f"127.0.0.1:{temporal}"
            told = {
                "TEMPORAL_ADDRESS": address,
                "ENGRAM_URL": f"http://127.0.0.1:{http}",
                "ENGRAM_CODEC": codec,
                "ENGRAM_API_KEY": key.group(),
            }
            running = Served(up, address, {**os.environ, **told})
            running.run("typescript", "npm", "run", "build")
            yield running


def test_the_shell_and_other_languages_keep_and_recall_the_same_turn(served: Served) -> None:
    """Stored by update and Nexus, encrypted, it is kept once; each recalls what one stored."""
    user = "ada"
    kept = served.stored_by_the_shell(user, SHARED)
    served.stored_by_the_shell(user, OF_THE_SHELL)
    for folder, program in PROGRAMS.items():
        printed = served.run(folder, *program, user, SHARED, "What is my sister called?")
        # Temporal's SDK for Go logs to standard output, too.
        told = [line.split(": ", 1) for line in printed.splitlines() if ": " in line]
        answers = {name: rest for name, rest in told if name in {"session", "nexus", "http"}}
        assert answers == {"session": kept, "nexus": OF_THE_SHELL, "http": OF_THE_SHELL}, folder
    assert served.up.json("count", "-t", "episodic") == {"count": 2}
    histories = asyncio.run(served.in_histories())
    assert b"engram-go-" in histories
    assert b"engram-typescript-" in histories
    assert SHARED.encode() not in histories
    assert OF_THE_SHELL.encode() not in histories


@pytest.mark.parametrize("folder", PROGRAMS)
def test_what_a_program_in_another_language_stores_the_shell_recalls(
    served: Served, folder: str
) -> None:
    """It starts the session itself, and reads back what it stored, by both ways."""
    text = f"My favourite dish at the harbour in {folder} is caldo verde."
    printed = served.run(
        folder, *PROGRAMS[folder], f"of-{folder}", text, "Which dish is my favourite?"
    )
    assert f"nexus: {text}" in printed
    assert f"http: {text}" in printed
    served.up.user = f"of-{folder}"
    found = served.up.json("recall", "favourite dish", "-t", "episodic", "--limit", "1")
    assert isinstance(found, list)
    assert [hit["memory"]["content"] for hit in found] == [text]
    served.up.user = "ada"
