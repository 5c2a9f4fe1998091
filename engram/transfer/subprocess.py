"""A second process that prepares turns, so that an import uses two cores.

The engine of the embedded mode holds the interpreter lock, and so do the
patterns and the embedder; threads would gain nothing. The process is a program
of its own (``python -m engram.transfer.subprocess``) and not one of
``multiprocessing``, which would run the application's main module again. It
ends when its input does, so it never outlives who started it.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import struct
import sys
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, BinaryIO, Final

import structlog

from engram.embedding.embedder import make_embedder
from engram.language.extractor import Extractor
from engram.ports import Embedder
from engram.settings import Settings
from engram.transfer.preparing import HerePreparer, Prepared, Preparer, Work, packed, unpacked

_HEAD: Final = struct.Struct(">I")
_HELLO: Final = b"ready"
# Seconds without work after which the process is let go: it holds some 150 MB.
_IDLE: Final = 30.0
_MOST_FAILURES: Final = 3
_LEAST_CORES: Final = 2
_OFFLINE: Final = "wordllama"
_ANY_TIME: Final = datetime(2000, 1, 1, tzinfo=UTC)
_log = structlog.get_logger("engram.transfer")


class PreparationSubprocess:
    """Prepares in a second process; in this one where that is not to be had.

    Args:
        spec: The embedder's setting, for one that works offline; None: the other
            process only extracts, and ``here`` embeds.
        phone_region: As in the settings.
        here: Prepares in this process when the other fails.
    """

    def __init__(self, spec: str | None, phone_region: str, here: Preparer) -> None:
        self._asked = (spec, phone_region)
        self._here = here
        self._process: asyncio.subprocess.Process | None = None
        self._waiting: deque[asyncio.Future[Prepared]] = deque()
        self._starting = asyncio.Lock()
        self._reading: asyncio.Task[None] | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._failures = 0
        self._ready = False

    @property
    def ready(self) -> bool:
        """Whether the other process has loaded what it needs, and does the work."""
        return self._ready

    @property
    def pid(self) -> int | None:
        """The other process, while there is one."""
        return None if self._process is None else self._process.pid

    async def prepare(self, work: Sequence[Work]) -> Prepared:
        """See :meth:`engram.transfer.preparing.Preparer.prepare`."""
        if self._failures >= _MOST_FAILURES:
            return await self._here.prepare(work)
        try:
            async with self._starting:
                process = self._process or await self._start()
            # Loading takes a second or two, in which this process can do as much.
            if not self._ready:
                return await self._here.prepare(work)
            return await self._ask(process, list(work))
        except (OSError, EOFError) as error:
            self._failures += 1
            _log.warning(
                "the process beside this one failed; going on in this one",
                reason=type(error).__name__,
            )
            return await self._here.prepare(work)

    async def _ask(self, process: asyncio.subprocess.Process, work: list[Work]) -> Prepared:
        if self._idle is not None:
            self._idle.cancel()
        pipe = process.stdin
        if pipe is None:
            raise EOFError
        answer: asyncio.Future[Prepared] = asyncio.get_running_loop().create_future()
        self._waiting.append(answer)
        # In one piece and without a pause before it, so that answers come in this order.
        data = pickle.dumps(work, pickle.HIGHEST_PROTOCOL)
        pipe.write(_HEAD.pack(len(data)) + data)
        await pipe.drain()
        try:
            return await answer
        finally:
            if not self._waiting:
                self._idle = asyncio.get_running_loop().call_later(_IDLE, self._let_go)

    async def _start(self) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            # -P: what lies in the current folder, an unpacked export perhaps, is no code of ours.
            *(sys.executable, "-P", "-m", __name__),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        data = pickle.dumps(self._asked)
        if process.stdin is not None:
            process.stdin.write(_HEAD.pack(len(data)) + data)
        self._process, self._ready = process, False
        self._reading = asyncio.create_task(self._read(process))
        return process

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        """Hand answers to those who wait, in the order in which they asked."""
        answers = process.stdout
        try:
            if answers is not None:
                await answers.readexactly(len(_HELLO))
                self._ready = True
            while answers is not None:
                (size,) = _HEAD.unpack(await answers.readexactly(_HEAD.size))
                # What comes back was pickled by our own child from our own types.
                found = pickle.loads(await answers.readexactly(size))  # noqa: S301 - see above
                waiting = self._waiting.popleft()
                if waiting.done():
                    continue
                if isinstance(found, tuple):
                    waiting.set_result(unpacked(*found))
                else:
                    waiting.set_exception(OSError("the other process could not do it"))
        except (asyncio.IncompleteReadError, OSError, pickle.UnpicklingError):
            self._lost()
        finally:
            if self._process is process:
                self._process, self._ready = None, False

    def _lost(self) -> None:
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_exception(EOFError("the other process ended"))

    def _let_go(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.stdin.close()

    async def close(self) -> None:
        """Let the process go, and wait until it went."""
        if self._idle is not None:
            self._idle.cancel()
        process, reading = self._process, self._reading
        self._let_go()
        if process is not None:
            try:
                async with asyncio.timeout(5):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()
        if reading is not None:
            await reading


def _cores() -> int:
    # Only Linux knows which of them this process may use.
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1


def _names(spec: str) -> str:
    return make_embedder(spec).identity


@asynccontextmanager
async def preparing(embedder: Embedder, settings: Settings) -> AsyncIterator[Preparer]:
    """A preparer for imports: beside this process where there is a core for it."""
    extractor = Extractor(settings)
    offline = settings.embedder == _OFFLINE and _names(settings.embedder) == embedder.identity
    here = HerePreparer(embedder if offline else None, extractor)
    if _cores() < _LEAST_CORES:
        yield here
        return
    aside = PreparationSubprocess(
        settings.embedder if offline else None, settings.phone_region, here
    )
    try:
        yield aside
    finally:
        await aside.close()


def _frames(source: BinaryIO) -> Any:
    while len(head := source.read(_HEAD.size)) == _HEAD.size:
        (size,) = _HEAD.unpack(head)
        # Only whoever started this process writes here.
        yield pickle.loads(source.read(size))  # noqa: S301 - see above


async def _serve(source: BinaryIO, answers: BinaryIO) -> None:
    frames = _frames(source)
    spec, phone_region = next(frames)
    preparer = HerePreparer(
        make_embedder(spec) if spec else None, Extractor(Settings.load(phone_region=phone_region))
    )
    if spec:
        # Loads the model.
        await preparer.prepare([Work("Hello.", None, "Hello.", "user", None, _ANY_TIME)])
    answers.write(_HELLO)
    answers.flush()
    for work in frames:
        try:
            answer: tuple[Any, ...] | str = packed(await preparer.prepare(work))
        except Exception as error:  # noqa: BLE001 - the other side does it again, and types it
            answer = type(error).__name__
        data = pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
        answers.write(_HEAD.pack(len(data)) + data)
        answers.flush()


def main() -> None:
    """Answer until the input ends. Whatever libraries print goes to standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    asyncio.run(_serve(sys.stdin.buffer, answers))


if __name__ == "__main__":
    # The types that are pickled live in importable modules, never in this one.
    main()
