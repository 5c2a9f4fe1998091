"""What the operating system gives: the real clock, the real randomness, locks on files."""

from __future__ import annotations

import ctypes
import errno
import gc
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import TextIO
from uuid import uuid4
from weakref import WeakSet

from engram.errors import EmbeddedPartMissing, InvalidInput

if sys.platform != "win32":
    import fcntl

# --- clock and randomness, handed in where a program is put together


def system_clock() -> datetime:
    """The present, in UTC."""
    return datetime.now(UTC)


def local_time(moment: datetime | None = None) -> datetime:
    """The present, or a moment that names no zone, in the zone of this machine.

    Raises:
        OverflowError, ValueError: the moment lies at an end of the calendar.
    """
    return (moment or datetime.now(UTC)).astimezone()


def local_zone(link: Path = Path("/etc/localtime")) -> str | None:
    """The name of the zone of this machine, as the IANA database has it.

    Args:
        link: Leads to the zone where ``TZ`` names none.

    Returns:
        The name; None where the system does not tell one, as Windows.
    """
    from engram.domain.values import zone_named  # noqa: PLC0415 - only what is used loads

    try:
        told = os.environ.get("TZ") or str(link.readlink())
        return zone_named(told.removeprefix(":").rpartition("zoneinfo/")[2]).key
    except (OSError, InvalidInput):
        return None


def new_id() -> str:
    """A fresh random id."""
    return str(uuid4())


def new_secret() -> bytes:
    """256 random bits that nobody can guess."""
    return secrets.token_bytes(32)


def seeded_draw(seed: int) -> Callable[[Sequence[float], int], Sequence[float]]:
    """Draws so many of some numbers, with replacement; the same ones for the same seed."""
    random = Random(seed)  # noqa: S311 - nothing is kept secret with it
    return lambda values, count: random.choices(values, k=count)


# --- the collector of garbage

# As Python has it; commands look less often while they load.
_YOUNG, _MIDDLE = 700, 10
# More young collections than a process has.
_NEVER = 2**31 - 1
_COLLECTED_EVERY = timedelta(minutes=5)
_COLLECTED_EVERY_UNMEASURED = timedelta(seconds=30)
_MOST_GROWTH = 256 * 2**20
# As malloc.h numbers what can be tuned.
_ARENA_MAX = -8


@contextmanager
def full_collections_put_off(
    every: timedelta = _COLLECTED_EVERY, most_growth: int = _MOST_GROWTH
) -> Iterator[Callable[[], bool]]:
    """Have the collector of garbage leave alone what has lasted, while the block runs.

    It would go through everything that is loaded and cached again and again, every few dozen
    recalls, for a tenth to a fifth of a second each time in which nobody is answered. What is
    young is collected as ever. What is loaded by now, or with the next of them, stays for good.
    Only for processes that are Engram's own: an application decides for itself.

    Args:
        every: Time between full collections; half a minute at most where the system does not say
            what a process has of the memory.
        most_growth: Bytes that the process may grow by until one is made before its time.

    Yields:
        What collects if it is due, and says whether it was; to be called every second or so.
    """
    before = gc.get_threshold()
    _give_back()
    gc.freeze()
    gc.set_threshold(_YOUNG, _MIDDLE, _NEVER)
    try:
        yield _FullCollections(every, most_growth).collect_if_due
    finally:
        gc.set_threshold(*before)


class _FullCollections:
    def __init__(self, every: timedelta, most_growth: int) -> None:
        self._least = _own_memory()
        if self._least is None:
            every = min(every, _COLLECTED_EVERY_UNMEASURED)
        self._every, self._most_growth = every.total_seconds(), most_growth
        self._last = time.monotonic()
        self._loaded = len(sys.modules)

    def collect_if_due(self) -> bool:
        now, memory = time.monotonic(), _own_memory()
        if memory is not None and self._least is not None:
            # What was given back may be taken again: garbage counts from the least there was.
            self._least = min(self._least, memory)
            grown = memory - self._least > self._most_growth
        else:
            grown = False
        if not grown and now - self._last < self._every:
            return False
        gc.collect()
        if len(sys.modules) > self._loaded:
            # What was loaded since stays as well.
            gc.freeze()
            self._loaded = len(sys.modules)
        _give_back()
        self._last, self._least = now, _own_memory()
        return True


def _give_back() -> None:
    """Hand what is free back to the system: glibc keeps it, for each thread on its own.

    Of what importing modules leaves, and a large pass, that is a tenth. Takes some milliseconds,
    without the interpreter lock.
    """
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
        trim(0)


def shared_heap() -> None:
    """Have all threads that start from now on take memory from one heap, where glibc has several.

    What one of them frees is free for all: each heap of its own keeps some megabytes, with what
    lasts strewn in. For processes that are Engram's own, before they start threads.
    """
    if sys.platform == "linux" and (tune := getattr(ctypes.CDLL(None), "mallopt", None)):
        tune(_ARENA_MAX, 1)


def _own_memory() -> int | None:
    """Bytes that this process holds, without files it looks into; None if nobody says."""
    try:
        _, resident, shared, *_ = Path("/proc/self/statm").read_text("ascii").split()
    except (OSError, ValueError):
        return None
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def absent(*packages: str) -> Iterator[None]:
    """Have imports go as if these packages were not installed, while the block runs.

    For what others load if it is there and never use here. Only in processes that are Engram's
    own, and where no other thread may need them meanwhile. What is loaded already stays.

    Args:
        packages: Names of packages or modules.
    """
    hidden = [name for name in packages if name not in sys.modules]
    # How Python itself marks what cannot be imported.
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type] # documented by importlib
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


# --- whose turn it is in Python

# A tenth of what Python has.
_SHORT_TURN = 0.0005


@contextmanager
def short_turns() -> Iterator[None]:
    """Have threads that compute hand Python over ten times as often, while the block runs.

    Each time the event loop wakes up it waits for its turn, for 5 ms as Python has it, and an
    encode wakes it up some ten times. Only for processes that are Engram's own: an application
    decides for itself.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SHORT_TURN)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


# --- files that only their owner reads


def private(path: str, flags: int) -> int:
    """An ``opener`` for :func:`open`: a new file is its owner's alone, and no link is followed.

    Raises:
        OSError: as :func:`os.open`, also where ``path`` is a symbolic link.
    """
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)


@contextmanager
def private_draft(target: Path, *, durable: bool = False) -> Iterator[TextIO]:
    """Write a file beside ``target``, which it becomes when the block ends without an error.

    What a process that was killed left of a draft goes; a link that others put there is
    removed, not followed.

    Args:
        target: Replaced if it is there.
        durable: Whether it survives a loss of power once the block has ended.

    Raises:
        FileExistsError: another process writes the same file.
        OSError: it cannot be written, or what lies there is no file and would be gone: whoever
            reads a pipe would wait for ever.
    """
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "a folder lies there", str(target))
    if _is_no_file(target):
        raise OSError(errno.EINVAL, "a device or a pipe lies there", str(target))
    draft = draft_of(target)
    draft.unlink(missing_ok=True)
    with open(draft, "x", encoding="utf-8", newline="\n", opener=private) as file:
        own = os.fstat(file.fileno())
        try:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
            _put_in_place(draft, own, target)
        except BaseException:
            if _lies_at(draft, own):
                draft.unlink(missing_ok=True)
            raise
    if durable:
        sync_folder(target.parent)


def _is_no_file(target: Path) -> bool:
    # /dev/stdout is a link to what a process has open, which may be a file.
    of_a_process = target.is_symlink() and target.readlink().is_relative_to("/proc")
    return of_a_process or (target.exists() and not target.is_file())


def _put_in_place(draft: Path, own: os.stat_result, target: Path) -> None:
    if not _lies_at(draft, own):
        raise FileExistsError(f"{target} is written by another process, too")
    draft.replace(target)


def draft_of(target: Path) -> Path:
    """Where :func:`private_draft` writes what becomes ``target``."""
    return target.with_name(target.name + ".part")


def sync_folder(folder: Path) -> None:
    """Make lasting which files are in a folder.

    Raises:
        OSError: it cannot be read.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _lies_at(path: Path, file: os.stat_result) -> bool:
    try:
        return os.path.samestat(file, path.lstat())
    except OSError:
        return False


# --- locks that end with their holder


class FileLock:
    """An exclusive lock on a file, held by an open descriptor.

    The lock is the kernel's (``flock``): it ends with the process that holds it, however
    that process ends, so nothing is ever locked by the dead. A forked child does not hold
    it: it lets go of what it inherited before it does anything else.

    Args:
        path: The file, made if it is not there.
        guarded: Folder whose files an engine locks by itself while this lock is held; a
            forked child lets go of those as well.
    """

    def __init__(self, path: Path, guarded: Path | None = None) -> None:
        self._path = path
        self._guarded = guarded
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._descriptor is not None

    def try_acquire(self, *, wait: bool = False) -> bool:
        """Take the lock if nobody has it; also True when this object has it already.

        Args:
            wait: Until whoever has it lets go of it; blocks the thread.

        Raises:
            EmbeddedPartMissing: this platform has no such locks.
            OSError: the file cannot be opened.
        """
        if sys.platform == "win32":
            raise EmbeddedPartMissing(
                "The embedded mode does not run on Windows.",
                allowed="Linux and macOS",
                hint="Use engram.connect() with a Temporal and a Qdrant server.",
            )
        if self._descriptor is not None:
            return True
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(descriptor)
            return False
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        _held.add(self)
        return True

    def release(self) -> None:
        """Let go of it; nothing happens when it is not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            _held.discard(self)

    def forget(self) -> None:
        """Let go of what was inherited, in a child that was forked while this was held."""
        self.release()
        if self._guarded is None:
            return
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in _open_below(self._guarded.resolve()):
            # The engine still has the number, and may close it: it must not be another file's.
            os.dup2(nothing, descriptor, inheritable=False)
        os.close(nothing)


@contextmanager
def file_locked(path: Path) -> Iterator[None]:
    """Hold the lock on a file while the block runs, as soon as nobody else does.

    It cannot be taken twice by one thread: the second waits for ever.

    Raises:
        EmbeddedPartMissing: this platform has no such locks.
        OSError: the file cannot be opened.
    """
    lock = FileLock(path)
    lock.try_acquire(wait=True)
    try:
        yield
    finally:
        lock.release()


_held: WeakSet[FileLock] = WeakSet()


def _after_fork() -> None:
    # A lock belongs to the open file, which the child shares: it would outlive its holder.
    for lock in tuple(_held):
        lock.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _open_below(folder: Path) -> Iterator[int]:
    """The descriptors of this process that are files in the folder, or folders in it."""
    for descriptor in [int(name) for name in os.listdir("/dev/fd")]:  # noqa: PTH208 - pathlib would hold one more open
        # The listing's own is closed by now.
        with suppress(OSError):
            if Path(_path_of(descriptor)).is_relative_to(folder):
                yield descriptor


def _path_of(descriptor: int) -> str:
    if sys.platform == "darwin":
        found = fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(1024))
        return os.fsdecode(found.rstrip(b"\0"))
    return str(Path(f"/proc/self/fd/{descriptor}").readlink())
