"""The memory store without await: complete, typed, interruptible, closed at the end."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, assert_type

import pytest

import engram
from engram.client.memory import MemoryStore
from engram.errors import InvalidInput, InvalidQuery, InvalidScope, MemoryClosed
from engram.operations.memories import MemoryPage
from engram.operations.turns import Receipt
from engram.recall.results import RecallHit
from engram.sync import LoopThread, SyncMemoryStore
from tests.support.opened_store import opening

MAY = datetime(2026, 5, 1, tzinfo=UTC)


def public(kind: type) -> dict[str, Any]:
    """What a class offers, its bases included."""
    return {name: value for name, value in inspect.getmembers(kind) if not name.startswith("_")}


@pytest.fixture
def memory() -> Iterator[SyncMemoryStore]:
    """An open memory."""
    with SyncMemoryStore.opened(opening()) as store:
        yield store


def test_no_method_is_missing() -> None:
    """Each public method of MemoryStore is there, with its parameters and its documentation."""
    waiting, asynchronous = public(SyncMemoryStore), public(MemoryStore)
    missing = [f"{name} = waiting(...{name})" for name in asynchronous.keys() - waiting]
    assert missing == [], "add these lines to SyncMemoryStore"
    assert waiting.keys() - asynchronous.keys() == {"opened"}
    for name, method in asynchronous.items():
        if inspect.isfunction(method):
            assert not inspect.iscoroutinefunction(waiting[name]), name
            assert (
                inspect.signature(waiting[name]).parameters.keys()
                == inspect.signature(method).parameters.keys()
            ), name
            assert inspect.getdoc(waiting[name]), name


def test_openers_take_what_theirs_take() -> None:
    """open_sync and connect_sync have the parameters of open and connect."""
    assert inspect.signature(engram.open_sync) == inspect.signature(engram.open)
    assert inspect.signature(engram.connect_sync) == inspect.signature(engram.connect)


def test_methods_wait_and_are_typed(memory: SyncMemoryStore) -> None:
    """Answers come back as they are, with the types that the checker sees too."""
    receipt = memory.encode("I live in Porto.", session_id="s1")
    assert_type(receipt, Receipt)
    hits = memory.recall("Where?", limit=3)
    assert_type(hits, Sequence[RecallHit])
    page = memory.list(limit=10)
    assert_type(page, MemoryPage)
    assert_type(memory.recall_at("Where?", as_of=MAY), Sequence[RecallHit])
    assert_type(memory.for_user("bob"), SyncMemoryStore)
    assert receipt.episode_ids == (page.memories[0].id,)
    assert memory.get(receipt.episode_ids[0]).content == "I live in Porto."
    assert memory.scope.user_id == "ada"
    assert memory.for_user("bob").list().memories == ()


def test_errors_come_through(memory: SyncMemoryStore) -> None:
    """A typed error is raised to the caller as it is."""
    with pytest.raises(InvalidQuery, match="limit is out of range"):
        memory.recall("Where?", limit=0)


async def test_works_inside_a_running_loop(memory: SyncMemoryStore) -> None:
    """In a notebook, whose loop runs already, it waits all the same."""
    assert memory.encode("I live in Porto.", session_id="s1").episode_ids


def test_many_threads_may_use_it(memory: SyncMemoryStore) -> None:
    """Calls from several threads at once all get their answers."""
    names = [f"m{number}" for number in range(8)]
    receipts: dict[str, Receipt] = {}

    def say(name: str) -> None:
        receipts[name] = memory.encode(f"I am {name}.", session_id=name)

    threads = [threading.Thread(target=say, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({receipt.episode_ids for receipt in receipts.values()}) == len(names)


def loops() -> set[threading.Thread]:
    """The threads in which memories without await live."""
    return {thread for thread in threading.enumerate() if thread.name == "engram-loop"}


def test_the_end_of_the_block_closes_everything() -> None:
    """Leaving happens in the task that entered; later use says that it is closed."""
    left: list[str] = []
    before = loops()
    with SyncMemoryStore.opened(opening(left)) as memory:
        other = memory.for_user("bob")
        (thread,) = loops() - before
    assert left == ["same task"]
    assert not thread.is_alive()
    for store in (memory, other):
        with pytest.raises(MemoryClosed):
            store.stats()
    memory.close()  # a second time does nothing


def test_closing_one_user_leaves_the_others() -> None:
    """What for_user gave can be closed by itself."""
    with SyncMemoryStore.opened(opening()) as memory:
        other = memory.for_user("bob")
        other.close()
        with pytest.raises(MemoryClosed):
            other.stats()
        assert memory.list().memories == ()


def test_opening_that_fails_leaves_no_thread() -> None:
    """An error while opening is raised, and nothing of the attempt stays."""
    before = threading.active_count()
    with pytest.raises(InvalidScope):
        engram.open_sync(user_id="a/b")
    assert threading.active_count() == before


def test_ctrl_c_cancels_what_runs_and_nothing_else() -> None:
    """The interrupted call ends, the work it waited for too, and the next call works."""
    thread = LoopThread()
    ended = threading.Event()

    async def work() -> None:
        # Only now is the caller sure to wait for it.
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with pytest.raises(KeyboardInterrupt):
        thread.run(work())
    assert ended.wait(60)
    assert thread.run(asyncio.sleep(0, "next")) == "next"
    thread.close()


def test_a_call_from_its_own_loop_is_refused() -> None:
    """It would wait for itself; it says so instead."""
    thread = LoopThread()

    async def work() -> None:
        thread.run(asyncio.sleep(0))

    with pytest.raises(InvalidInput, match="own event loop"):
        thread.run(work())
    thread.close()


def test_closing_while_a_call_runs_ends_the_call() -> None:
    """A call that another thread's closing cuts short ends with MemoryClosed."""
    thread = LoopThread()
    running = threading.Event()
    raised: list[BaseException] = []

    async def work() -> None:
        running.set()
        await asyncio.Event().wait()

    def call() -> None:
        try:
            thread.run(work())
        except MemoryClosed as error:
            raised.append(error)

    caller = threading.Thread(target=call)
    caller.start()
    assert running.wait(60)
    thread.close()
    caller.join(60)
    assert len(raised) == 1


def test_a_program_that_forgets_to_close_is_closed() -> None:
    """At the end of the program the memory is left in order."""
    code = (
        "from engram.sync import SyncMemoryStore\n"
        "from tests.support.opened_store import opening\n"
        "class Said(list):\n"
        "    def append(self, word): print(word, flush=True)\n"
        "memory = SyncMemoryStore.opened(opening(Said()))\n"
        "memory.encode('I live in Porto.', session_id='s1')\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "same task\n", "")


# Leaving works in a pool, as the embedded mode's worker and store do.
LEAVING_IN_A_POOL = """
import asyncio, multiprocessing, sys
from contextlib import asynccontextmanager
from engram.sync import SyncMemoryStore
from tests.support.opened_store import opening

@asynccontextmanager
async def pooled(name):
    async with opening() as memory:
        yield memory
        await asyncio.to_thread(print, name, flush=True)
        if name == "faulty":
            raise OSError

"""


starts_threads_at_its_end = pytest.mark.skipif(
    (3, 12, 0) <= sys.version_info < (3, 12, 2),
    reason="the interpreter refuses new threads too early there (gh-113964), and so what closes",
)


def ended(code: str) -> tuple[int, str]:
    """How a program with this code ends, and what it says."""
    done = subprocess.run(
        [sys.executable, "-c", LEAVING_IN_A_POOL + code],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout


@starts_threads_at_its_end
def test_what_a_program_forgets_is_closed_while_pools_take_work() -> None:
    """A worker that still runs something ends in order, and so does the program: no hang."""
    code = "memory = SyncMemoryStore.opened(pooled('closed'))"
    assert ended(code) == (0, "closed\n")


@starts_threads_at_its_end
def test_all_that_is_forgotten_is_closed_the_latest_first() -> None:
    """One that cannot be closed is logged, and the others are closed all the same."""
    code = "kept = [SyncMemoryStore.opened(pooled(name)) for name in ('first', 'faulty', 'last')]"
    status, said = ended(code)
    assert status == 0
    assert [word for word in said.split() if word in {"first", "faulty", "last"}] == [
        "last",
        "faulty",
        "first",
    ]


@starts_threads_at_its_end
def test_a_forked_process_leaves_its_parents_memory_alone() -> None:
    """It has none of the threads: it ends without closing what its parent has open."""
    code = (
        "memory = SyncMemoryStore.opened(pooled('closed'))\n"
        "child = multiprocessing.get_context('fork').Process(target=int)\n"
        "child.start(); child.join(); print(child.exitcode, flush=True)\n"
    )
    assert ended(code) == (0, "0\nclosed\n")
