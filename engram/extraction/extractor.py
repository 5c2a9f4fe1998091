"""One call for all that a turn yields without a language model."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime

from engram.contracts.sessions import Signal
from engram.domain.memories import FactCategory
from engram.extraction.models import Extraction, FoundNegation, PatternFact
from engram.extraction.negations import find_negations
from engram.extraction.patterns import extract_facts
from engram.extraction.signals import scan
from engram.settings import Settings


class Extractor:
    """Applies the deterministic rules to turns. Stateless, safe to share between threads.

    Args:
        settings: ``phone_region`` is read.
    """

    def __init__(self, settings: Settings) -> None:
        self._phone_region = settings.phone_region

    def extract(self, text: str, role: str, speaker: str | None, timestamp: datetime) -> Extraction:
        """Facts, negations and signal of one turn.

        Only what the user says yields facts and negations: an assistant's,
        system's or tool's words are context, not knowledge about the user.

        Args:
            text: The turn, verbatim.
            role: user, assistant, system or tool.
            speaker: The speaker's name where known: a sentence about them by
                name is then one about the user.
            timestamp: When it was said, aware; dates are resolved against it.
        """
        signal = scan(text, role)
        if role != "user":
            return Extraction(signal=signal)
        facts = extract_facts(text, timestamp, phone_region=self._phone_region)
        negations = find_negations(text, user_name=speaker)
        if speaker is not None:
            negations = tuple(_said_by(negation, speaker) for negation in negations)
        return Extraction(facts, negations, _at_least(signal, facts, negations))


def _said_by(negation: FoundNegation, speaker: str) -> FoundNegation:
    """The negation with the speaker's name for "the user".

    Where speakers have names there may be several of them under one user, and
    what one of them denies says nothing about the others.
    """
    if negation.subject != "user":
        return negation
    return replace(
        negation,
        subject=speaker.casefold(),
        content=re.sub(r"\bthe user\b", lambda _: speaker, negation.content, flags=re.IGNORECASE),
    )


def _at_least(
    signal: Signal, facts: tuple[PatternFact, ...], negations: tuple[FoundNegation, ...]
) -> Signal:
    """The signal, raised by what was found: a denial or a name weighs more than wording tells."""
    if negations or any(fact.category is FactCategory.NAME for fact in facts):
        return Signal.HIGH
    if facts and signal in {Signal.NONE, Signal.LOW}:
        return Signal.MEDIUM
    return signal
