"""What Engram says in a program that never set structlog up."""

from __future__ import annotations

import logging
import sys

import structlog


def quiet_unless_configured() -> None:
    """Say what is wrong, on standard error, and no more.

    Unconfigured, structlog prints every line on standard output, which belongs to
    the program. A program that configures structlog, before or later, decides itself.
    """
    if not structlog.is_configured():
        structlog.configure(
            wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
            # Asked for with each line: a program may exchange its standard error.
            logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
        )
