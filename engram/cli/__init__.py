"""The command line: ``engram --help`` says what there is."""

from __future__ import annotations

import errno
import gc
import io
import os
import sys
from typing import Final

_YOUNG: Final = 20_000
"""How many objects are made before those that are new are looked through; Python has 700."""
_INTERRUPTED: Final = 130
"""What :mod:`engram.cli.exits` has, before that is loaded."""


def main() -> None:
    """Run the command line; errors are a few readable lines, never a traceback.

    :mod:`engram.cli.exits` says with what codes it ends.
    """
    # What is loaded stays: looking through it again and again for garbage is a twentieth of a
    # command that asks another process.
    gc.set_threshold(_YOUNG, 10, 10)
    _prepare_streams()
    try:
        _run(sys.argv[1:])
    except KeyboardInterrupt:
        # While modules were loading; later on, commands end by themselves.
        raise SystemExit(_INTERRUPTED) from None
    except SystemExit as leaving:
        code = _flushed(leaving.code)
        if "temporalio" in sys.modules and isinstance(code, int):
            # All is closed. A thread of Temporal's client that has just answered
            # aborts an interpreter that is ending.
            os._exit(code)
        # An interpreter that ends looks through all that it is about to drop; it need not.
        gc.freeze()
        raise SystemExit(code) from None


def _run(words: list[str]) -> None:
    if words[:1] == ["up"]:
        from engram.cli import up  # noqa: PLC0415 - keeps `import engram.cli` light

        if (told := up.settings_in(words)) is not None:
            up.run_up(told)
            raise SystemExit
    from engram.cli.app import for_words  # noqa: PLC0415 - same

    # Named, so that `python -m engram.cli` is called and completed as `engram` is.
    for_words(words)(prog_name="engram")


def _prepare_streams() -> None:
    """Give a process that was started without them (`>&-`) standard streams that lead nowhere.

    The next files that are opened would take their numbers, and what some library prints would
    be written into the store. Those that are there are made to take every character.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        # What a terminal's or a pipe's encoding has no character for is escaped, as on stderr.
        sys.stdout.reconfigure(errors="backslashreplace")


def _flushed(code: object) -> object:
    """Hand over what was printed; the code to end with, another one if nobody takes it."""
    from engram.cli import exits  # noqa: PLC0415 - keeps `import engram.cli` light

    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError as error:
        # The interpreter flushes again when it ends, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return exits.UNREAD
        if error.errno == errno.ENOSPC and code == exits.DONE:
            sys.stderr.write(f"{exits.NO_ROOM}\n")
        return code or exits.FAILED
    return code
