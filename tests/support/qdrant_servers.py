"""Real Qdrant servers on loopback: one, or a cluster whose nodes are killed and come back.

ENGRAM_TEST_QDRANT is the path of a ``qdrant`` program. It is started with free ports and a
temporary folder, tells nobody anything, and ends with the block that started it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.support.ports import free_port
from tests.support.programs import Program

PROGRAM: Final = "ENGRAM_TEST_QDRANT"
# A node that others hear nothing of for a second or so is voted about; beside other work, more.
PATIENCE: Final = 120.0
_BLOCK: Final = 1 << 16


def qdrant_program() -> str:
    """Where the program lies; without one the test fails, because it was asked for."""
    found = shutil.which(os.environ.get(PROGRAM, ""))
    if found is None:
        pytest.fail(
            f"These tests start Qdrant servers: set {PROGRAM} to the path of a `qdrant` program, "
            "of a version that deploy/README.md names.",
            pytrace=False,
        )
    return found


class Node:
    """A server of its own, or one of a cluster.

    Args:
        folder: Where it keeps everything.
        clustered: Whether it has, or will have, peers.
        settings: More of Qdrant's environment.
        scheme: https for one whose settings say so.
    """

    def __init__(
        self,
        folder: Path,
        *,
        clustered: bool = False,
        scheme: str = "http",
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._folder = folder
        self._clustered = clustered
        self._ports = [free_port() for _ in range(3)]
        self._settings = settings or {}
        self._program: Program | None = None
        self.uri = f"http://127.0.0.1:{self._ports[2]}"
        self.port = self._ports[0]
        self.url = f"{scheme}://127.0.0.1:{self.port}"

    def start(self, first: Node | None = None) -> None:
        """Start it, for the first time or again.

        Args:
            first: Of the cluster that it joins; it goes by what it remembers afterwards.
        """
        self._folder.mkdir(exist_ok=True)
        http, grpc, between = map(str, self._ports)
        chosen = {
            "QDRANT__SERVICE__HOST": "127.0.0.1",
            "QDRANT__SERVICE__HTTP_PORT": http,
            "QDRANT__SERVICE__GRPC_PORT": grpc,
            "QDRANT__SERVICE__ENABLE_STATIC_CONTENT": "false",
            "QDRANT__STORAGE__STORAGE_PATH": str(self._folder / "storage"),
            "QDRANT__STORAGE__SNAPSHOTS_PATH": str(self._folder / "snapshots"),
            # A few memories need no more, and a node that comes back has less to open.
            "QDRANT__STORAGE__OPTIMIZERS__DEFAULT_SEGMENT_NUMBER": "1",
            "QDRANT__STORAGE__WAL__WAL_CAPACITY_MB": "1",
            "QDRANT__CLUSTER__ENABLED": str(self._clustered).lower(),
            "QDRANT__CLUSTER__P2P__PORT": between,
            "QDRANT__TELEMETRY_DISABLED": "true",
            "QDRANT__LOG_LEVEL": "WARN",
            "QDRANT_INIT_FILE_PATH": str(self._folder / "initialised"),
        }
        command = [qdrant_program(), "--disable-telemetry"]
        if self._clustered:
            command += ["--uri", self.uri]
        if first is not None:
            command += ["--bootstrap", first.uri]
        self._program = Program(command, self._folder / "output", {**chosen, **self._settings})

    def alive(self) -> bool:
        """Whether it runs."""
        return self._program is not None and self._program.alive()

    def kill(self) -> None:
        """End it without a word; a second time does nothing."""
        if self._program is not None:
            self._program.kill()

    def ask(self, path: str, **options: Any) -> Any:
        """What it answers to a GET; None while it does not."""
        with suppress(httpx.TransportError):
            answer = httpx.get(self.url + path, timeout=5, **options)
            if answer.is_success:
                return answer.json()["result"] if answer.text.startswith("{") else answer.text
        return None

    def wait(self, holds: Callable[[], object], what: str) -> None:
        """Return once something holds.

        Raises:
            AssertionError: it does not come true, or the server ended.
        """
        deadline = time.monotonic() + PATIENCE
        while not holds():
            said = self._program.said() if self._program is not None else ""
            assert self.alive(), f"the server ended: {said}"
            assert time.monotonic() < deadline, f"{self.url} is not {what}: {said}"
            time.sleep(0.1)

    def wait_until_ready(self) -> None:
        """Return once it says that it serves all that it should."""
        self.wait(lambda: self.ask("/readyz") is not None, "ready")


class Cluster:
    """Nodes that hold copies of each other's memories, and one address in front of them.

    Args:
        nodes: All of them; they run.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self._peers = {node: node.ask("/cluster")["peer_id"] for node in nodes}

    @property
    def by_rank(self) -> list[Node]:
        """Highest peer id first: the server has the highest put writes in order."""
        return sorted(self.nodes, key=lambda node: self._peers[node], reverse=True)

    def wait_until_whole(self) -> None:
        """Return once every node says that every copy on every node is complete."""
        for node in self.nodes:
            node.wait_until_ready()
            node.wait(lambda node=node: self._sees_all_whole(node), "whole")  # type: ignore[misc]  # mypy has no type for a default of a lambda

    def _sees_all_whole(self, node: Node) -> bool:
        found = node.ask("/collections")
        if found is None:
            return False
        for collection in found["collections"]:
            seen = node.ask(f"/collections/{collection['name']}/cluster")
            if seen is None or seen["shard_transfers"]:
                return False
            copies = [*seen["local_shards"], *seen["remote_shards"]]
            if any(copy["state"] != "Active" for copy in copies):
                return False
        return True


@contextmanager
def one_server(
    folder: Path, *, scheme: str = "http", settings: Mapping[str, str] | None = None
) -> Iterator[Node]:
    """A server by itself, which is gone when the block is left."""
    node = Node(folder / "node", scheme=scheme, settings=settings)
    node.start()
    try:
        yield node
    finally:
        node.kill()


@contextmanager
def cluster_of(count: int, folder: Path) -> Iterator[Cluster]:
    """Nodes that know each other; all are gone when the block is left."""
    nodes = [Node(folder / f"node{number}", clustered=True) for number in range(count)]
    with ExitStack() as stack:
        for node in nodes:
            stack.callback(node.kill)
            node.start(None if node is nodes[0] else nodes[0])
            node.wait_until_ready()
        for node in nodes:
            node.wait(
                lambda node=node: len((node.ask("/cluster") or {}).get("peers", ())) == count,  # type: ignore[misc]  # as above
                "one of a cluster",
            )
        yield Cluster(nodes)


class Entrance:
    """One address for a cluster, as the load balancer that people put in front of theirs.

    Each connection goes to the next node that says it is ready.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = list(nodes)
        self._server: asyncio.Server | None = None
        self._running: set[asyncio.Task[None]] = set()
        self.url = ""

    async def __aenter__(self) -> Entrance:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running)

    async def _connected(self, caller: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        # The end of the block cancels it; a stream would report that as a fault.
        with suppress(asyncio.CancelledError), closing(answer):
            for _ in self._nodes:
                node = self._nodes.pop(0)
                self._nodes.append(node)
                if await _ready(node):
                    with suppress(OSError):
                        there, ask = await asyncio.open_connection("127.0.0.1", node.port)
                        await asyncio.gather(_copy(caller, ask), _copy(there, answer))
                    break


async def _ready(node: Node) -> bool:
    with suppress(OSError):
        there, ask = await asyncio.open_connection("127.0.0.1", node.port)
        ask.write(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        said = await there.readline()
        ask.close()
        return b" 200 " in said
    return False


async def _copy(source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while block := await source.read(_BLOCK):
            to.write(block)
            await to.drain()
    to.close()
