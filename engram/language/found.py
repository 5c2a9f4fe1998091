"""The text that language rules look at, and what they find in one turn."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from engram.domain.buffer import Signal
from engram.domain.memories import FactCategory, Slot
from engram.language.text import fold, plain

# --- the text a pattern looks at, and what it reports

_MASK = "\ufffc"


class FoundSpan(NamedTuple):
    """A find: offsets into the turn, canonical value, and how to label it."""

    start: int
    end: int
    value: str
    event_at: datetime | None = None


class Masked:
    """A turn whose already explained stretches are hidden from later patterns.

    Attributes:
        text: Plain form, original case.
        low: The same in lower case.
    """

    __slots__ = ("low", "text")

    def __init__(self, text: str) -> None:
        self.text = plain(text)
        self.low = fold(self.text)

    def hide(self, spans: list[FoundSpan]) -> None:
        """Make the stretches of ``spans`` invisible."""
        if not spans:
            return
        for which in ("text", "low"):
            parts: list[str] = []
            at = 0
            source: str = getattr(self, which)
            for span in sorted(spans):
                if span.end <= at:
                    continue
                start = max(span.start, at)
                parts += (source[at:start], _MASK * (span.end - start))
                at = span.end
            parts.append(source[at:])
            setattr(self, which, "".join(parts))


# --- what the language rules find in one turn


@dataclass(frozen=True, slots=True)
class PatternFact:
    """Something that a pattern recognises by its form alone.

    Attributes:
        category: What kind of thing it is.
        value: Canonical form: lower-cased address, E.164 (with ";ext=5"), absolute URL, ISO 8601
            (day, minute, month, year or week), a name as written, or currency
            code and amount ("USD 12.50").
        evidence: The words of the turn, verbatim.
        content: A short readable sentence, "email address: ada@example.org".
        event_at: When the thing named lies in time, aware, in the zone of the
            turn; the start of it where it is longer than a moment. None for
            everything but dates.
        slot: Whose it is said to be, and which of theirs: "work email is". None where the
            turn only mentions it.
        over: Whether it is said not to be so any more.
    """

    category: FactCategory
    value: str
    evidence: str
    content: str
    event_at: datetime | None = None
    slot: Slot | None = None
    over: bool = False


@dataclass(frozen=True, slots=True)
class FoundNegation:
    """Something a turn says is not so.

    Attributes:
        negates_pattern: Lemma of the verb, then the object's words case-folded
            and without leading article or preposition: "use mongo", "live lyon",
            "be allergic to penicillin". Words are not stemmed here;
            ``negation_scope.pattern_terms`` does that, in one place.
        subject: "user" for the speaker (I, we), else the noun phrase, case-folded.
        content: A readable sentence: "The user does not use Mongo."
        evidence: The words of the turn, verbatim.
        of_turn_before: Whether what is denied is named in the turn before it only.
    """

    negates_pattern: str
    subject: str
    content: str
    evidence: str
    of_turn_before: bool = False


@dataclass(frozen=True, slots=True)
class Extraction:
    """All that one turn yields without a language model.

    Attributes:
        unread: Why the rules gave up on the turn, and nothing else is known of it; None
            where they read it.
    """

    facts: tuple[PatternFact, ...] = ()
    negations: tuple[FoundNegation, ...] = ()
    signal: Signal = Signal.NONE
    unread: str | None = None
