"""With what codes commands end; docs/cli.md tells them to the reader."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from engram.errors import EngramError, MemoryNotFound, ReviewNotFound

DONE: Final = 0
FAILED: Final = 1
"""A typed error, or a check that found something wrong."""
WRONG_USAGE: Final = 2
NOT_FOUND: Final = 3
TRY_AGAIN: Final = 4
"""A typed error of the passing kind: the same command can succeed later, unchanged."""
INTERRUPTED: Final = 130
UNREAD: Final = 141
"""Whoever read the output went away; what a shell reports of a program that SIGPIPE ended."""

MEANINGS: Final = {
    DONE: "done",
    FAILED: "a typed error; a check found something wrong; a question was answered with no",
    WRONG_USAGE: "wrong usage: unknown command or option, missing or malformed argument",
    NOT_FOUND: "no memory with this id belongs to this user",
    TRY_AGAIN: "something is away, starting or busy: the same command can succeed later",
    INTERRUPTED: "interrupted (Ctrl-C)",
    UNREAD: "whoever read the output went away (`engram list | head`)",
}


def code_of(error: EngramError) -> int:
    """The exit code that a typed error ends a command with."""
    if isinstance(error, MemoryNotFound | ReviewNotFound):
        return NOT_FOUND
    return TRY_AGAIN if error.retryable else FAILED


NO_ROOM: Final = "error: The answer cannot be written: no space is left where it goes."


@contextmanager
def ending(as_json: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Turn what is raised on purpose into words, and leave with its exit code.

    Args:
        as_json: Whether the command was asked for JSON, as known by then.

    Raises:
        SystemExit: something was raised.
    """
    try:
        yield
    except EngramError as error:
        from engram.cli import output  # noqa: PLC0415 - slow; what goes well needs none of it

        output.print_error(error, as_json=as_json())
        raise SystemExit(code_of(error)) from error
    except BrokenPipeError as error:
        raise SystemExit(UNREAD) from error
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        sys.stderr.write(f"{NO_ROOM}\n")
        raise SystemExit(FAILED) from error
