"""Fixtures that several suites share: real servers, real engines, scripted nothing."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import hypothesis
import pydantic_ai.models
import pytest
import structlog
from temporalio.client import Client

from engram.domain.scope import Scope
from engram.settings import Settings
from engram.storage.edge import EdgeRepository
from engram.system import new_secret
from engram.temporal.connection import connect_client
from engram.temporal.keys import FolderKeyStore
from tests.support.clock import NOW
from tests.support.compiled_tests import compile_all_tests
from tests.support.edge_stores import borrowed_store
from tests.support.folders import quick_folder
from tests.support.left_behind import nothing_left_behind
from tests.support.qdrant_servers import Node, cluster_of, one_server
from tests.support.stores import worker_settings
from tests.support.temporal_server import shared_server, wait_until_it_listens
from tests.support.temporary_files import keep_temporary_files_in_memory
from tests.support.weekday_share import in_share, share_of

pydantic_ai.models.ALLOW_MODEL_REQUESTS = False
# A shell that starts the suite in the background has it, and every process that tests
# start, ignore Ctrl-C; tests are about what it does.
signal.signal(signal.SIGINT, signal.default_int_handler)

keep_temporary_files_in_memory()
# As programs do. Unconfigured, the first memory that a test opens would configure it for all
# tests that come after.
structlog.configure(logger_factory=lambda *_: structlog.PrintLogger(sys.stderr))
# Said once: no loop runs between tests. Otherwise the first who asks makes one that nobody closes.
asyncio.set_event_loop(None)
hypothesis.settings.register_profile("usual", deadline=None, max_examples=50)
# The nightly run: as many examples as each property says (tests/support/sizes.py).
hypothesis.settings.register_profile("full", deadline=None, max_examples=100)
hypothesis.settings.load_profile("usual")

_SERVER = pytest.StashKey[ExitStack]()
_SHARED = pytest.StashKey[tuple[str, dict[str, str]]]()
_COMPILED = "engram/compiled"


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--seventh``: a seventh of what was chosen, each weekday another."""
    parser.addoption(
        "--seventh",
        nargs="?",
        const="today",
        choices=["today", *"0123456"],
        help="run a seventh of the chosen tests: today's, or that one",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Compile modules once for all processes, also where the environment forbids to keep that.

    Containers often set PYTHONDONTWRITEBYTECODE. Each of some hundred processes would then
    compile everything again; what they compile is kept apart from the sources instead.
    """
    # There is none with -p no:cacheprovider.
    cache: pytest.Cache | None = getattr(config, "cache", None)
    if cache is not None and os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        kept = str(cache.mkdir("compiled"))
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = kept
        sys.dont_write_bytecode = False


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Before the first run of the whole: compile what every process would else compile as well."""
    config = session.config
    cache: pytest.Cache | None = getattr(config, "cache", None)
    whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    # Those that run tests in parallel have no such number.
    if cache is None or not whole or not config.getoption("numprocesses", None):
        return
    if not cache.get(_COMPILED, default=False):
        compile_all_tests(Path(__file__).parent)
        cache.set(_COMPILED, value=True)


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the property tests, so that they can be run by themselves at full size."""
    if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        item.add_marker("property")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What has another weekday goes, and what waits long begins first."""
    share = config.getoption("seventh")
    if share is not None:
        number = share_of(datetime.now(UTC).date()) if share == "today" else int(share)
        chosen = in_share(items, number)
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is loaded stays: the collector of garbage need not go through it again and again.

    Nor, after that, as often as every 700 objects through those that tests make.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000, 20, 50)
        gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say the order, which the quiet header does not."""
    seed = terminalreporter.config.getoption("randomly_seed", None)
    if isinstance(seed, int):
        terminalreporter.write_line(f"Using --randomly-seed={seed}")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Tests mostly wait for servers: more of them at once than there are cores."""
    return 2 + len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 2


@pytest.fixture(autouse=True)
def nothing_left_by_a_test() -> Iterator[None]:
    """A test that leaves logging, the environment or the like changed fails."""
    with nothing_left_behind(with_modules=False):
        yield


@pytest.fixture(scope="module", autouse=True)
def nothing_left_by_a_module() -> Iterator[None]:
    """So does a file of tests, which must not leave a module of Engram's changed either."""
    with nothing_left_behind(with_modules=True):
        yield


@pytest.fixture
def provider_clients_go() -> Iterator[None]:
    """What is left of a provider's client goes with its test.

    As garbage it makes a task on whichever event loop runs then, which may be a workflow's.
    """
    yield
    gc.collect()


@pytest.fixture
def scope() -> Scope:
    """One user's scope."""
    return Scope.of("default", "ada")


@pytest.fixture
def now() -> datetime:
    """A fixed present: a Wednesday."""
    return NOW


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder for one store."""
    with quick_folder() as made:
        yield made


@pytest.fixture
async def repository() -> AsyncIterator[EdgeRepository]:
    """An empty store on the real engine."""
    async with borrowed_store() as opened:
        yield opened


@pytest.fixture
def settings() -> Settings:
    """Those of workers on queues of the test's own."""
    return worker_settings()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """One server for all processes, each in a namespace of its own."""
    stash, workers = node.config.stash, len(node.config.option.tx)
    if _SERVER not in stash:
        stash[_SERVER] = stack = ExitStack()
        processes = [f"gw{number}" for number in range(workers)]
        stash[_SHARED] = stack.enter_context(shared_server(processes))
    node.workerinput["temporal"] = stash[_SHARED]


def pytest_unconfigure(config: pytest.Config) -> None:
    """The server ends with the run."""
    with config.stash.get(_SERVER, ExitStack()):
        pass


@pytest.fixture(scope="session")
def temporal_server(request: pytest.FixtureRequest) -> Iterator[tuple[str, dict[str, str]]]:
    """A real Temporal server for the whole run, and the namespace of each process of it."""
    workerinput = getattr(request.config, "workerinput", None)
    with ExitStack() as stack:
        if workerinput is None:
            shared = stack.enter_context(shared_server(["default"]))
        else:
            shared = workerinput["temporal"]
        wait_until_it_listens(shared[0])
        yield shared


@pytest.fixture(scope="session")
def temporal_address(temporal_server: tuple[str, dict[str, str]]) -> str:
    """Of a development server in memory, or of the one that ENGRAM_TEST_TEMPORAL names."""
    return temporal_server[0]


@pytest.fixture(scope="session")
def temporal_namespace(temporal_server: tuple[str, dict[str, str]], worker_id: str) -> str:
    """Of this process alone."""
    return temporal_server[1]["default" if worker_id == "master" else worker_id]


@pytest.fixture(scope="session")
def encryption_keys(tmp_path_factory: pytest.TempPathFactory) -> FolderKeyStore:
    """What payloads on the development server are encrypted with."""
    folder = tmp_path_factory.mktemp("encryption")
    return FolderKeyStore.create(folder, new_secret=new_secret, since=None)


@pytest.fixture
async def temporal_client(
    temporal_address: str, temporal_namespace: str, encryption_keys: FolderKeyStore
) -> Client:
    """A client of the development server, on the test's own loop."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return await connect_client(temporal_address, temporal_namespace, encryption_keys)
        except RuntimeError as error:
            # Its port opens a moment before it answers.
            if "not healthy yet" not in str(error) or time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.05)


@pytest.fixture(scope="session")
def qdrant_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A real Qdrant server for the whole run, in memory."""
    with one_server(tmp_path_factory.mktemp("server")) as node:
        node.wait_until_ready()
        yield node


@pytest.fixture(scope="session")
def qdrant_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node of three that are a cluster, for the whole run."""
    with cluster_of(3, tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster.by_rank[-1]
