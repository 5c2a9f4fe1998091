"""Reading turns by rule: here or in a process that can be ended, and never to the store's harm.

Each rule's work grows with the turn and not faster. What stands here is for the one that will
not: it costs its own turn its facts, and nobody else anything.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import structlog

from engram.aside import CallFailed, CallTookTooLong, ProcessAside
from engram.domain.buffer import Signal
from engram.language.found import Extraction
from engram.ports import TurnExtractor

READ_HERE: Final = 4096
"""Characters up to which text is read where it arrives. That takes a few milliseconds at the
most, whatever it consists of; taking it to another process and back takes as long."""
SECONDS: Final = 2.0
"""Processor time for what is read in another process: several times what the largest turn, and a
full batch of turns, takes."""
RULES_TOO_COSTLY: Final = "too_costly"
RULES_FAILED: Final = "failed"
_log = structlog.get_logger("engram.consolidation")


class TurnReader:
    """Reads turns, the long ones in another process.

    Args:
        extractor: Finds pattern facts, negations and the signal of a turn.
        aside: The other process; None: every turn is read here.
    """

    def __init__(self, extractor: TurnExtractor, aside: ProcessAside | None = None) -> None:
        self._extractor = extractor
        self._aside = aside

    async def read(
        self,
        text: str,
        role: str,
        speaker: str | None,
        timestamp: datetime,
        before: str | None = None,
    ) -> Extraction:
        """What a turn yields; of one that the rules give up on, that they did."""
        if self._aside is None or len(text) <= READ_HERE:
            return self.read_here(text, role, speaker, timestamp, before)
        try:
            found: Extraction = await within_bounds(
                self._aside, self._extractor.extract, text, role, speaker, timestamp, before
            )
        except CallTookTooLong:
            return _unread(RULES_TOO_COSTLY)
        except CallFailed as error:
            return _unread(RULES_FAILED, kind=error.kind)
        return found

    def read_here(
        self,
        text: str,
        role: str,
        speaker: str | None,
        timestamp: datetime,
        before: str | None = None,
    ) -> Extraction:
        """The same in this process, however long it takes."""
        try:
            return self._extractor.extract(text, role, speaker, timestamp, before)
        except Exception as error:  # noqa: BLE001 - whatever it is, it comes again with this turn
            return _unread(RULES_FAILED, kind=type(error).__name__)


async def within_bounds(aside: ProcessAside, function: Callable[..., Any], *args: Any) -> Any:
    """Call it in the other process; once more, should that go away for a reason of its own.

    Raises:
        CallTookTooLong: it was ended.
        CallFailed: it raised, or ended the process twice.
    """
    for _ in range(2):
        try:
            return await aside.call(function, *args)
        except (EOFError, OSError) as error:
            _log.warning("the process that reads turns went away", kind=type(error).__name__)
    raise CallFailed(EOFError.__name__)


def _unread(why: str, *, kind: str | None = None) -> Extraction:
    _log.warning("the language rules gave up on a turn", why=why, kind=kind)
    return Extraction(signal=Signal.LOW, unread=why)
