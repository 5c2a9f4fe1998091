"""A memory for programs without ``await``: scripts and notebooks."""

from __future__ import annotations

import asyncio
import concurrent.futures.thread  # noqa: F401 - its pools end behind what is registered below
import os
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager, suppress
from functools import wraps
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from engram.client.connect import connect
from engram.client.engine import TaskBoundContext, WaitingStore, waiting
from engram.client.memory import MemoryStore
from engram.domain.memories import AnyMemory, RunLink
from engram.domain.scope import Scope
from engram.embedded.open import open as open_embedded
from engram.errors import InvalidInput, MemoryClosed
from engram.logging import get_logger, where

# --- an event loop in a thread of its own, for programs that have none or cannot lend theirs

Result = TypeVar("Result")


class LoopThread:
    """Runs coroutines in its own thread while the caller waits.

    The thread does not keep a program from ending.
    """

    def __init__(self) -> None:
        started: Future[asyncio.AbstractEventLoop] = Future()
        self._stop = asyncio.Event()
        # A daemon: a program that is interrupted twice while it closes can still end.
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(started)), name="engram-loop", daemon=True
        )
        self._thread.start()
        self._loop = started.result()

    async def _serve(self, started: Future[asyncio.AbstractEventLoop]) -> None:
        started.set_result(asyncio.get_running_loop())
        await self._stop.wait()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run ``work`` to its end. Ctrl-C cancels it, and leaves the thread usable.

        Raises:
            MemoryClosed: the thread was closed.
            InvalidInput: the caller is this thread, which would wait for itself.
        """
        try:
            self._check()
            waited = asyncio.run_coroutine_threadsafe(work, self._loop)
        except BaseException:
            work.close()
            raise
        try:
            return waited.result()
        except CancelledError as error:
            raise MemoryClosed("The memory was closed while this was running.") from error
        finally:
            # Only what was interrupted is not done; otherwise this does nothing.
            waited.cancel()

    def _check(self) -> None:
        if threading.current_thread() is self._thread:
            raise InvalidInput(
                "A memory that waits was called from its own event loop.",
                hint="Inside coroutines, use engram.open and await.",
            )
        if not self._thread.is_alive() or self._stop.is_set():
            raise MemoryClosed(
                "This memory store is closed.", hint="Use it inside its `with` block."
            )

    def close(self) -> None:
        """Cancel what still runs, and end the thread. A second time does nothing."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()


# --- closing what is still open when the program ends

_to_close: dict[int, Callable[[], None]] = {}
_log = get_logger("engram.sync")


def _close_all() -> None:
    for close in reversed([*_to_close.values()]):
        try:
            close()
        except Exception as error:  # noqa: BLE001 - the others are closed all the same
            _log.error("a memory was not closed", kind=type(error).__name__, where=where(error))


# Not by atexit: thread pools take no more work by then, on which the worker and the store depend.
# What is registered last is called first, before the pools that the import above registered.
with suppress(RuntimeError):  # the program is ending already
    threading._register_atexit(_close_all)  # type: ignore[attr-defined]  # noqa: SLF001 - see above
# A fork has none of the threads, and none of its parent's memories to close.
os.register_at_fork(after_in_child=_to_close.clear)


# --- a memory store for programs without ``await``: scripts and notebooks


class SyncMemoryStore(WaitingStore):
    """:class:`engram.MemoryStore` without ``await``: the same methods, each of which waits.

    Get one from :func:`engram.open_sync` or :func:`engram.connect_sync`; it is
    open at once, and closed by its ``with`` block or :meth:`close`. Works inside
    a running event loop too (a notebook), which it blocks while it waits. Safe
    for use by many threads at once.
    """

    def __init__(
        self, memory: MemoryStore, thread: LoopThread, leave: Callable[[], None] | None = None
    ) -> None:
        super().__init__(memory, thread.run)
        self._memory: MemoryStore = memory
        self._thread = thread
        self._leave = leave

    @classmethod
    def opened(cls, context: AbstractAsyncContextManager[MemoryStore]) -> Self:
        """Enter ``context`` in a thread of its own, and keep it open until :meth:`close`."""
        thread = LoopThread()
        keeper = TaskBoundContext(context)
        try:
            memory = thread.run(keeper.open())
        except BaseException:
            thread.close()
            raise

        def leave() -> None:
            try:
                thread.run(keeper.close())
            finally:
                thread.close()

        store = cls(memory, thread, leave)
        # For notebooks and scripts that end without closing.
        _to_close[id(store)] = store.close
        return store

    @property
    def scope(self) -> Scope:
        """Whose memory this is."""
        return self._memory.scope

    def for_user(self, user_id: str, *, namespace: str | None = None) -> SyncMemoryStore:
        """The memory of another user, over the same connections; closed when this one is.

        Raises:
            InvalidScope: the user id or namespace has a form that is refused.
        """
        return SyncMemoryStore(self._memory.for_user(user_id, namespace=namespace), self._thread)

    def run_of(self, memory: AnyMemory) -> RunLink | None:
        """See :meth:`engram.MemoryStore.run_of`."""
        return self._memory.run_of(memory)

    def run_url(self, memory: AnyMemory) -> str | None:
        """Where the Temporal UI shows the run that wrote this memory, when there is a UI."""
        return self._memory.run_url(memory)

    encode = waiting(MemoryStore.encode)
    wait_until = waiting(MemoryStore.wait_until)
    recall = waiting(MemoryStore.recall)
    recall_at = waiting(MemoryStore.recall_at)
    context = waiting(MemoryStore.context)
    get = waiting(MemoryStore.get)
    list = waiting(MemoryStore.list)
    history = waiting(MemoryStore.history)
    stats = waiting(MemoryStore.stats)
    import_file = waiting(MemoryStore.import_file)
    import_turns = waiting(MemoryStore.import_turns)
    export_file = waiting(MemoryStore.export_file)
    consolidate = waiting(MemoryStore.consolidate)
    end_session = waiting(MemoryStore.end_session)
    working_memory = waiting(MemoryStore.working_memory)
    verify = waiting(MemoryStore.verify)
    count = waiting(MemoryStore.count)
    resolve = waiting(MemoryStore.resolve)
    profile = waiting(MemoryStore.profile)
    profiles = waiting(MemoryStore.profiles)
    topics = waiting(MemoryStore.topics)
    boxes = waiting(MemoryStore.boxes)
    guidelines = waiting(MemoryStore.guidelines)
    forget = waiting(MemoryStore.forget)
    erase = waiting(MemoryStore.erase)
    erased = waiting(MemoryStore.erased)
    compact = waiting(MemoryStore.compact)
    usage = waiting(MemoryStore.usage)
    confirm = waiting(MemoryStore.confirm)
    dispute = waiting(MemoryStore.dispute)
    reviews = waiting(MemoryStore.reviews)
    review = waiting(MemoryStore.review)
    protect = waiting(MemoryStore.protect)
    unprotect = waiting(MemoryStore.unprotect)
    demote = waiting(MemoryStore.demote)
    force_promote = waiting(MemoryStore.force_promote)
    decay = waiting(MemoryStore.decay)
    promote = waiting(MemoryStore.promote)
    briefing = waiting(MemoryStore.briefing)
    status = waiting(MemoryStore.status)
    energy = waiting(MemoryStore.energy)
    promotions = waiting(MemoryStore.promotions)
    health = waiting(MemoryStore.health)
    inspect = waiting(MemoryStore.inspect)
    validate = waiting(MemoryStore.validate)
    repair = waiting(MemoryStore.repair)
    create_test = waiting(MemoryStore.create_test)
    boost_test = waiting(MemoryStore.boost_test)
    list_tests = waiting(MemoryStore.list_tests)
    delete_tests = waiting(MemoryStore.delete_tests)
    play_scenario = waiting(MemoryStore.play_scenario)
    import_memories = waiting(MemoryStore.import_memories)
    audit = waiting(MemoryStore.audit)

    def export_lines(self, *, include_test: bool = False) -> Iterator[str]:
        """Everything of this user as lines of JSON; see :meth:`MemoryStore.export_lines`."""
        lines = self._memory.export_lines(include_test=include_test)

        async def following() -> str | None:
            return await anext(lines, None)

        while (line := self._thread.run(following())) is not None:
            yield line

    def close(self) -> None:
        """Refuse further use; what :func:`engram.open_sync` opened is closed, and waited for."""
        self._memory.close()
        leave, self._leave = self._leave, None
        if leave is not None:
            _to_close.pop(id(self), None)
            leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


# --- opening a memory without ``await``: for scripts and notebooks

Given = ParamSpec("Given")


def _opening(
    opener: Callable[Given, AbstractAsyncContextManager[MemoryStore]],
) -> Callable[Given, SyncMemoryStore]:
    @wraps(opener)
    def opened(*args: Given.args, **kwargs: Given.kwargs) -> SyncMemoryStore:
        return SyncMemoryStore.opened(opener(*args, **kwargs))

    return opened


open_sync = _opening(open_embedded)
"""As :func:`engram.open`; what it returns is open, and closes with its ``with`` block."""
connect_sync = _opening(connect)
"""As :func:`engram.connect`; what it returns is open, and closes with its ``with`` block."""
