"""`engram up` loads what it needs when somebody needs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

import engram
from tests.support.ports import free_port

WATCHED = (
    *("typer", "rich", "click", "pygments", "grpc", "fastapi", "uvicorn", "mcp", "mcp_types"),
    *("pydantic_ai", "genai_prices.data", "numpy", "wordllama"),
)
PROGRAM = f"""
import os, signal, sys

def tell(*_):
    # Not by print, which may be what it interrupts.
    found = " ".join(name for name in {WATCHED!r} if sys.modules.get(name))
    os.write(1, f"loaded: {{found}}\\n".encode())

signal.signal(signal.SIGUSR1, tell)
from engram.cli import main
main()
"""
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@dataclass
class Up:
    """A running `engram up` that tells what it has loaded."""

    folder: Path
    url: str
    process: subprocess.Popen[str]

    def loaded(self) -> set[str]:
        """Which of the packages that are watched are there."""
        self.process.send_signal(signal.SIGUSR1)
        assert self.process.stdout is not None
        line = next(line for line in self.process.stdout if line.startswith("loaded:"))
        return set(line.split()[1:])


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    """One with its HTTP door, stopped with SIGTERM."""
    folder, port = tmp_path / "data", free_port()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "up", "-d", str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "ENGRAM_HTTP_PORT": str(port), "ENGRAM_LOG_LEVEL": "error"},
    )
    assert process.stdout is not None
    with process.stdout as told:
        said = []
        for line in told:
            said.append(line)
            if "Ctrl-C stops" in line:
                break
        assert f"HTTP: http://127.0.0.1:{port}\n" in said
        yield Up(folder, f"http://127.0.0.1:{port}", process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


async def test_nothing_is_loaded_before_somebody_asks_for_it(up: Up) -> None:
    """First nothing; then the API, MCP, and what reads and embeds turns, each when it is asked."""
    assert up.loaded() == set()
    async with httpx.AsyncClient(base_url=up.url, timeout=60) as web:
        assert (await web.get("/v1/health")).status_code == 200
        assert up.loaded() == (api := {"fastapi", "uvicorn", "click"})
        refused = await web.post("/mcp", json=INITIALIZE)
        assert refused.status_code == 401
        assert up.loaded() == api
        key = _key(up.folder)
        accepted = {"Authorization": f"Bearer {key}", "Accept": "application/json"}
        greeted = await web.post("/mcp", json=INITIALIZE, headers=accepted)
        assert greeted.json()["result"]["serverInfo"]["name"] == "engram"
    assert up.loaded() == (doors := {*api, "mcp", "mcp_types", "rich"})
    async with engram.open(up.folder, user_id="ada") as memory:
        assert await memory.count() == 0
        assert up.loaded() == doors
        await memory.encode("I live in Oslo.", session_id="s")
        assert up.loaded() == {*doors, "numpy", "wordllama"}
        assert (await memory.consolidate()).failures == ()
        (hit, *_) = await memory.recall("Where does the user live?")
        assert "Oslo" in hit.memory.content
    # Rules are no model of Pydantic AI.
    assert up.loaded() == {*doors, "numpy", "wordllama"}


def _key(folder: Path) -> str:
    made = subprocess.run(
        [
            *(sys.executable, "-m", "engram.cli", "keys", "create", "mcp", "--json"),
            *("--access", "read", "--user", "ada", "-d", str(folder)),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    token: str = json.loads(made.stdout)["token"]
    return token
