"""What keeps nobody waiting: flushing the engine, collecting garbage, handing Python over."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import sys
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any, cast
from weakref import ref

import pytest

from engram.embedded.parts import _BUSY_AT_MOST, _flushing
from engram.settings import Settings
from engram.storage.edge import EdgeRepository
from engram.system import _own_memory, full_collections_put_off, short_turns


class Watched:
    """A store that is written to for so many intervals, and notes what is asked of it."""

    def __init__(self, busy: int) -> None:
        self.busy, self.asked, self.done = busy, "", asyncio.Event()

    async def sync(self) -> bool:
        """Whether anything was written."""
        self.asked += "s"
        self.busy -= 1
        return self.busy >= 0

    async def flush(self) -> None:
        """The engine's own."""
        self.asked += "F"
        if self.busy < 0:
            self.done.set()


async def test_the_engine_is_flushed_when_nobody_writes_and_else_rarely() -> None:
    """Each interval syncs the log; whoever writes all the time has a flush in twelve."""
    store: Any = Watched(busy=2 * _BUSY_AT_MOST + 3)
    settings = Settings.load(flush_interval=timedelta(milliseconds=1))
    async with _flushing(cast("EdgeRepository", store), settings):
        await asyncio.wait_for(store.done.wait(), 10)
    busy = "s" * _BUSY_AT_MOST + "F"
    assert store.asked.startswith(busy + busy + "ssss" + "F")


def test_what_is_loaded_later_is_left_alone_from_the_next_full_collection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Modules that come when they are first needed are gone through once, and others never."""
    try:
        with full_collections_put_off(every=timedelta()) as collect_if_due:
            frozen = gc.get_freeze_count()
            assert collect_if_due()
            assert gc.get_freeze_count() <= frozen
            monkeypatch.setitem(sys.modules, "loaded_later", ModuleType("loaded_later"))
            kept = [[number] for number in range(1000)]
            assert collect_if_due()
            assert gc.get_freeze_count() >= frozen + len(kept)
    finally:
        gc.unfreeze()


def test_full_collections_wait_for_their_time() -> None:
    """While a process serves, only what is young is collected by itself; then all is as before."""
    before = gc.get_threshold()
    with full_collections_put_off() as collect_if_due:
        done = gc.get_stats()[2]["collections"]
        kept = [[number] for number in range(200_000)]
        assert not collect_if_due()
        assert gc.get_stats()[2]["collections"] == done
        del kept
    assert gc.get_threshold() == before
    with full_collections_put_off(every=timedelta()) as collect_if_due:
        assert collect_if_due()
        assert gc.get_stats()[2]["collections"] == done + 1


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="glibc's own")
def test_what_was_freed_is_given_back_when_serving_begins() -> None:
    """The C library keeps what stands below something that is still in use, until it is asked."""
    held = [ctypes.create_string_buffer(64 * 1024) for _ in range(512)]
    del held[:-1]
    before = _own_memory()
    with full_collections_put_off():
        after = _own_memory()
    assert before is not None
    assert after is not None
    assert before - after > 16 * 2**20


class Held:
    """What holds itself and a lot of memory: only the collector of garbage frees it.

    Blocks of more than 32 MiB are the allocator's own maps (M_MMAP_THRESHOLD_MAX of glibc's
    mallopt): they take up new memory, whatever lies free from before, and give it back at once.
    """

    def __init__(self, mebibytes: int) -> None:
        self.itself, self.memory = self, bytes(range(256)) * (mebibytes * 4096)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="asks the system for its memory")
def test_garbage_of_so_much_memory_is_collected_before_its_time() -> None:
    """A process that grows by more than it may gives it back; one that does not is left alone."""
    with full_collections_put_off(most_growth=48 * 2**20) as collect_if_due:
        little = ref(Held(1))
        assert not collect_if_due()
        much = [ref(Held(36)), ref(Held(36))]
        assert little()
        assert all(one() for one in much)
        assert collect_if_due()
        assert not little()
        assert not any(one() for one in much)
        assert not collect_if_due()


def test_threads_hand_python_over_more_often_while_serving() -> None:
    """Who computes keeps the event loop waiting a tenth as long; then all is as before."""
    before = sys.getswitchinterval()
    with short_turns():
        assert sys.getswitchinterval() <= before / 5
    assert sys.getswitchinterval() == pytest.approx(before)
