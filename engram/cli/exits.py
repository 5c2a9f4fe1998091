"""With what codes commands end; docs/cli.md tells them to the reader."""

from __future__ import annotations

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
