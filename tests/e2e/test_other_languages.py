"""The examples in other languages, compiled and run beside one `engram up`.

``uv run poe languages`` gets what they are compiled with by their lock files first. A missing
toolchain fails them.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.ports import free_port
from tests.support.running_up import Up, running_up

# What runs is started once, in one process; compiling takes minutes.
pytestmark = [
    pytest.mark.toolchains,
    pytest.mark.timeout(1800),
    pytest.mark.xdist_group("other_languages"),
]
EXAMPLES = Path(__file__).parents[2] / "examples"
TEXT = "I live in Porto."


@dataclass
class Served:
    """An Engram that offers memory through Nexus and over HTTP, its own histories encrypted."""

    up: Up
    environment: dict[str, str]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """As the head of each example says, on ports of its own."""
    temporal, http = free_port(), free_port()
    with running_up(
        tmp_path_factory.mktemp("languages"),
        ENGRAM_NEXUS_ENDPOINT="engram",
        ENGRAM_NEXUS_PLAIN="true",
        ENGRAM_TEMPORAL_PORT=str(temporal),
        ENGRAM_HTTP_ENABLED="true",
        ENGRAM_HTTP_PORT=str(http),
    ) as up:
        made = up.program("keys", "create", "example", "--access", "write")
        assert made.returncode == 0, made.stderr
        key = re.search(r"engram_\S+?(?=[\"\s]|$)", made.stdout)
        assert key is not None, made.stdout
        yield Served(
            up,
            {
                **os.environ,
                "TEMPORAL_ADDRESS": f"127.0.0.1:{temporal}",
                "ENGRAM_URL": f"http://127.0.0.1:{http}",
                "ENGRAM_API_KEY": key.group(),
            },
        )


def run(served: Served, folder: str, *command: str) -> str:
    """What a program prints."""
    done = subprocess.run(
        command,
        cwd=EXAMPLES / folder,
        env=served.environment,
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.mark.parametrize(
    ("folder", "built", "program"),
    [
        ("go", ["go", "build", "-o", os.devnull, "."], ["go", "run", "."]),
        ("typescript", ["npm", "run", "build"], ["npm", "start", "--silent", "--"]),
    ],
    ids=["go", "typescript"],
)
def test_a_program_in_another_language_keeps_and_recalls(
    served: Served, folder: str, built: list[str], program: list[str]
) -> None:
    """What it keeps through Nexus it recalls there and over HTTP, and so does the shell."""
    run(served, folder, *built)
    user = f"of-{folder}"
    printed = run(served, folder, *program, user, TEXT)
    # Temporal's SDK for Go logs to standard output, too.
    answers = [line for line in printed.splitlines() if line.startswith(("nexus:", "http:"))]
    assert answers == [f"nexus: {TEXT}", f"http: {TEXT}"]
    served.up.user = user
    hits = served.up.json("recall", TEXT, "--limit", "1")
    assert isinstance(hits, list)
    assert hits[0]["memory"]["content"] == TEXT
