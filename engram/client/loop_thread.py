"""An event loop in a thread of its own, for programs that have none or cannot lend theirs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

from engram.errors import InvalidInput, MemoryClosed

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
