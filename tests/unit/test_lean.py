"""What Engram's own processes leave out of what they load, and how little memory they keep."""

from __future__ import annotations

import asyncio
import importlib
import socket
import subprocess
import sys
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import Any

import pytest

from engram.client.http import AttachedEngine
from engram.embedding.offline import OfflineEmbedder
from engram.errors import OwnerUnavailable
from engram.server.listening import answering_when_asked
from engram.system import absent


def test_what_is_absent_cannot_be_imported_and_then_can() -> None:
    """A package that is not loaded yet is missing inside the block; one that is loaded stays."""
    assert "wave" not in sys.modules
    with absent("wave", "json"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("wave")
        assert importlib.import_module("json").loads("1") == 1
    assert importlib.import_module("wave").Error


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's")
def test_threads_share_what_they_free() -> None:
    """In a process that asks for it, no thread keeps a heap of its own."""
    code = (
        "import ctypes, threading\n"
        "from engram.system import shared_heap\n"
        "shared_heap()\n"
        "libc = ctypes.CDLL(None)\n"
        "def work(): [bytearray(4096) for _ in range(9)]; ready.wait()\n"
        "ready = threading.Barrier(9)\n"
        "threads = [threading.Thread(target=work) for _ in range(8)]\n"
        "[thread.start() for thread in threads]\n"
        "ready.wait()\n"
        "libc.malloc_stats()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [line for line in done.stderr.splitlines() if line.startswith("Arena")] == ["Arena 0:"]


async def test_who_asked_first_goes_on_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn that comes once the parts are there does not overtake one that still loads them."""
    embedder, went_on, parts = OfflineEmbedder(), list[str](), asyncio.Event()
    loop, computed = asyncio.get_running_loop(), OfflineEmbedder._vectors  # noqa: SLF001 - where it loads

    def loading(self: OfflineEmbedder, *asked: Any) -> Any:
        loop.call_soon_threadsafe(parts.set)
        return computed(self, *asked)

    monkeypatch.setattr(OfflineEmbedder, "_vectors", loading)

    async def turn(name: str) -> None:
        await embedder.load()
        went_on.append(name)

    first = asyncio.create_task(turn("first"))
    await parts.wait()
    await asyncio.gather(first, turn("second"))
    assert went_on == ["first", "second"]


async def test_a_door_that_cannot_answer_is_shut(tmp_path: Path) -> None:
    """Where what answers cannot be loaded, connections break off instead of waiting for ever."""

    def broken(_: object) -> AbstractAsyncContextManager[object]:
        raise ImportError

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        listener.setblocking(False)
        engine = AttachedEngine.over_socket(tmp_path / "s")
        found: tuple[BaseException | None, ...] = ()
        with suppress(ImportError):  # is said again when the door is left
            async with answering_when_asked(listener, broken, extra="serve", lost="nobody answers"):
                asking = asyncio.wait_for(engine.greet(), 5)
                found = await asyncio.gather(asking, return_exceptions=True)
        await engine.close()
    assert [type(one) for one in found] == [OwnerUnavailable]
