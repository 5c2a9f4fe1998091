"""A process beside this one that calls functions, and can be ended.

What holds the interpreter lock keeps everybody waiting, in a thread as well; and nothing ends
a thread. The process is a program of its own (``python -m engram.aside``) and not one of
``multiprocessing``, which would run the application's main module again. It ends when its
input does, so it never outlives who started it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import signal
import struct
import sys
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, BinaryIO, Final

_LENGTH_HEAD: Final = struct.Struct(">I")
# Seconds without work after which the process is let go: it holds 50 to 150 MB.
_IDLE: Final = 30.0


class CallFailed(Exception):
    """What was called raised an exception.

    Args:
        kind: The name of its class; its message may quote what was read.
    """

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


class CallTookTooLong(Exception):
    """What was called used more time than it was given, and was ended."""


@dataclass(slots=True, eq=False)
class _Child:
    """One process, and who waits for its answers, in the order in which they asked."""

    process: asyncio.subprocess.Process
    waiting: deque[asyncio.Future[Any]] = field(default_factory=deque)
    reading: asyncio.Task[None] | None = None
    loading: asyncio.Task[Any] | None = None


class ProcessAside:
    """Calls functions in a process that is started when first needed and let go when idle.

    Args:
        seconds: Processor time that one call may take; None for as much as it needs. With
            a bound, one call is made at a time, so that each has its own.
        patience: So many times as long it may take by the clock: a machine may be busy.
        load: Called there before anything else, without a bound; for what is made once.
    """

    def __init__(
        self,
        seconds: float | None = None,
        *,
        patience: float = 12,
        load: Callable[[], object] | None = None,
    ) -> None:
        self._seconds = seconds
        self._patience = patience
        self._load = load
        self._child: _Child | None = None
        self._ended: set[_Child] = set()
        self._starting = asyncio.Lock()
        self._calling = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None
        self._closed = asyncio.Event()

    @property
    def pid(self) -> int | None:
        """The process, while there is one."""
        return None if self._child is None else self._child.process.pid

    @property
    def closed(self) -> bool:
        """Whether it takes no calls any more."""
        return self._closed.is_set()

    async def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """What ``function`` returns there.

        Args:
            function: One that can be imported by name, or a method of what can be pickled.
            args: Values that can be pickled.

        Raises:
            CallFailed: the function raised.
            CallTookTooLong: it was ended.
            EOFError: the process went away, for whatever reason, or this was closed.
            OSError: it could not be started.
        """
        if self._seconds is None:
            return await self._asked(await self._started(), function, args)
        async with self._calling:
            child = await self._started()
            try:
                async with asyncio.timeout(self._seconds * self._patience):
                    return await self._asked(child, function, args)
            except TimeoutError:
                # Stuck where no signal is looked at.
                self._kill(child)
                raise CallTookTooLong from None
            except asyncio.CancelledError:
                # Nobody waits for it any more, and the next one shall not wait for it either.
                self._kill(child)
                raise

    async def _started(self) -> _Child:
        async with self._starting:
            if self._closed.is_set():
                raise EOFError
            child = self._child or await self._begun()
            if child.loading is not None and not child.loading.done():
                # Who gives up meanwhile leaves it to the next one, who would begin anew else.
                await asyncio.shield(child.loading)
            return child

    async def _begun(self) -> _Child:
        child = self._child = _Child(
            await asyncio.create_subprocess_exec(
                # Without the current folder on its path: what lies there is not ours.
                *(sys.executable, "-P", "-m", __name__),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
        )
        child.reading = asyncio.create_task(self._read(child))
        if self._closed.is_set():
            # While it was being started: nobody else knows of it.
            self._kill(child)
            await child.reading
            raise EOFError
        # A loaded machine may take its time over starting: that counts for no call.
        loading = self._asked(child, self._load or _nothing, (), loading=True)
        child.loading = asyncio.create_task(loading)
        child.loading.add_done_callback(_looked_at)
        return child

    async def _asked(
        self,
        child: _Child,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        *,
        loading: bool = False,
    ) -> Any:
        if self._idle is not None:
            self._idle.cancel()
        pipe = child.process.stdin
        if pipe is None or child is not self._child:
            raise EOFError
        asked = (function, args, None if loading else self._seconds)
        # Before it counts as asked: what cannot be pickled has no answer.
        data = pickle.dumps(asked, pickle.HIGHEST_PROTOCOL)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        child.waiting.append(answer)
        # In one piece and without a pause before it, so that answers come in this order.
        pipe.write(_LENGTH_HEAD.pack(len(data)) + data)
        try:
            await pipe.drain()
            return await answer
        except ConnectionError as error:
            raise EOFError from error

    async def _read(self, child: _Child) -> None:
        """Hand answers to those who wait, in the order in which they asked."""
        answers = child.process.stdout
        try:
            while answers is not None:
                (size,) = _LENGTH_HEAD.unpack(await answers.readexactly(_LENGTH_HEAD.size))
                # What comes back was pickled by our own child from our own types.
                found, raised = pickle.loads(await answers.readexactly(size))  # noqa: S301 - see above
                _answer(child.waiting.popleft(), found, raised)
                if not child.waiting and child is self._child:
                    # Here, for whoever asked may not have waited for it.
                    self._idle = asyncio.get_running_loop().call_later(_IDLE, self._let_go)
        except (asyncio.IncompleteReadError, OSError, pickle.UnpicklingError):
            # It ended: whoever still waits hears of it.
            pass
        except asyncio.CancelledError:
            # The loop ends, and nobody could let the process go any more.
            self._kill(child)
            raise
        finally:
            if self._child is child:
                self._child = None
            self._ended.discard(child)
            for waiting in child.waiting:
                if not waiting.done():
                    waiting.set_exception(EOFError("the other process ended"))
            child.waiting.clear()
            await _gone(child.process)

    def _kill(self, child: _Child) -> None:
        if self._child is child:
            self._child = None
            self._ended.add(child)
        with contextlib.suppress(ProcessLookupError):
            child.process.kill()

    def _let_go(self) -> None:
        child, self._child = self._child, None
        if child is not None and child.process.stdin is not None:
            self._ended.add(child)
            child.process.stdin.close()

    async def close(self) -> None:
        """Let the process go, and wait until it went."""
        self._closed.set()
        if self._idle is not None:
            self._idle.cancel()
        self._let_go()
        for child in tuple(self._ended):
            if child.reading is not None:
                try:
                    async with asyncio.timeout(5):
                        await asyncio.shield(child.reading)
                except TimeoutError:
                    self._kill(child)
                    await child.reading


async def _gone(process: asyncio.subprocess.Process) -> None:
    """Wait until it ended, and until no pipe to it is open any more."""
    if process.stdin is not None:
        process.stdin.close()
        with contextlib.suppress(ConnectionError):
            await process.stdin.wait_closed()
    try:
        await process.wait()
    except asyncio.CancelledError:
        # The loop ends while it takes its time over ending.
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise
    finally:
        # Its transport takes note of that in the loop's next step.
        await asyncio.sleep(0)


def _looked_at(loading: asyncio.Task[Any]) -> None:
    """Whoever waits hears of a failure; without anybody asyncio would report it."""
    if not loading.cancelled():
        loading.exception()


def _answer(waiting: asyncio.Future[Any], found: Any, raised: str | None) -> None:
    if waiting.done():
        return
    if raised is None:
        waiting.set_result(found)
    elif raised == _OutOfTime.__name__:
        waiting.set_exception(CallTookTooLong())
    else:
        waiting.set_exception(CallFailed(raised))


# --- the program


class _OutOfTime(BaseException):
    """Not an ``Exception``: what is called may catch those."""


def _stop(number: int, frame: FrameType | None) -> None:
    raise _OutOfTime


def _nothing() -> None:
    """What is asked where nothing is to be loaded."""


def _frames(source: BinaryIO) -> Iterator[Any]:
    while len(head := source.read(_LENGTH_HEAD.size)) == _LENGTH_HEAD.size:
        (size,) = _LENGTH_HEAD.unpack(head)
        # Only whoever started this process writes here.
        yield pickle.loads(source.read(size))  # noqa: S301 - see above


def _called(function: Callable[..., Any], args: tuple[Any, ...], seconds: float | None) -> Any:
    if seconds is None:
        return function(*args)
    # Python looks for signals between two steps of a program and within long matches of a
    # pattern. It is processor time that is counted: a loaded machine ends nothing.
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        return function(*args)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def main() -> None:
    """Answer until the input ends. Whatever libraries print goes to standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    signal.signal(signal.SIGPROF, _stop)
    # Ctrl-C goes to a terminal's whole group of processes; this one ends with its input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for function, args, seconds in _frames(sys.stdin.buffer):
        try:
            data = pickle.dumps((_called(function, args, seconds), None), pickle.HIGHEST_PROTOCOL)
        except (Exception, _OutOfTime) as error:  # noqa: BLE001 - the other side types it
            data = pickle.dumps((None, type(error).__name__), pickle.HIGHEST_PROTOCOL)
        answers.write(_LENGTH_HEAD.pack(len(data)) + data)
        answers.flush()


if __name__ == "__main__":
    # The types that are pickled live in importable modules, never in this one.
    main()
