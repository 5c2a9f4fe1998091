"""The command line: ``engram --help`` says what there is."""

from __future__ import annotations

import sys


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
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
