"""The command line: ``engram --help`` says what there is."""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def main() -> None:
    """Run the command line; errors are one readable paragraph, never a traceback.

    Exit codes: 0 done, 1 a typed error, 2 wrong usage, 130 interrupted.
    """
    from engram.cli.app import app  # noqa: PLC0415 - keeps `import engram.cli` light
    from engram.cli.output import print_error  # noqa: PLC0415 - same
    from engram.errors import EngramError  # noqa: PLC0415 - same

    try:
        app()
    except EngramError as error:
        print_error(error)
        _leave(1)
    except KeyboardInterrupt:
        _leave(130)
    except SystemExit as leaving:
        if "temporalio" not in sys.modules or not isinstance(leaving.code, int):
            raise
        _leave(leaving.code)


def _leave(code: int) -> NoReturn:
    """End now, as everything is closed.

    A thread of Temporal's client that has just answered aborts an interpreter that is ending.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
