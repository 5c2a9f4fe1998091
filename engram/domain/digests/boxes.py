"""Boxes: a session cut into runs of turns on one topic. Pure and incremental.

Whether a turn still belongs to the open box depends on that box and the turn
alone, and every box starts empty. So cutting what follows the last sealed box
gives the same boxes as cutting the whole session at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta

from engram.domain.digests.details import SealReason
from engram.domain.digests.policy import DigestPolicy
from engram.domain.digests.words import content_words, terms_of

_WORDS_THAT_RECUR = 2


@dataclass(frozen=True, slots=True)
class Said:
    """A turn, as far as boxes look at it."""

    id: str
    at: datetime
    text: str
    sequence: int = 0


@dataclass(frozen=True, slots=True)
class Box:
    """A run of turns on one topic; ``sealed`` is None for the one that is still open."""

    turns: tuple[Said, ...]
    terms: frozenset[str]
    sealed: SealReason | None

    @property
    def opened(self) -> datetime:
        """When its first turn was said."""
        return self.turns[0].at

    @property
    def last(self) -> datetime:
        """When its last turn was said."""
        return self.turns[-1].at


def overlap(box: Set[str], turn: Set[str], smoothing: float = 0.0) -> float:
    """How much of the topic of one is found in the other, 0 to 1.

    The overlap coefficient |A and B| / min(|A|, |B|) of Szymkiewicz and Simpson over
    stemmed content words, names among them. ``smoothing`` counts as so many shared
    words on both sides of the fraction: what says little decides little, and what has
    no content word at all ("ok", "yes, please") overlaps fully.
    """
    smaller = min(len(box), len(turn)) + smoothing
    return (len(box & turn) + smoothing) / smaller if smaller else 1.0


def segment(
    turns: Iterable[Said], policy: DigestPolicy, *, ended: SealReason | None = None
) -> list[Box]:
    """The boxes of these turns, in order; every turn is in exactly one.

    Args:
        turns: Of one session, none of them in a sealed box.
        policy: The thresholds.
        ended: Why the last box takes no further turn; None if it may.
    """
    boxes: list[Box] = []
    run: list[Said] = []
    terms: frozenset[str] = frozenset()
    for turn in sorted(turns, key=in_order):
        words = frozenset(terms_of(turn.text))
        reason = _why_sealed(run, terms, turn, words, policy)
        if reason is not None:
            boxes.append(Box(tuple(run), terms, reason))
            run, terms = [], frozenset()
        run.append(turn)
        terms |= words
    if run:
        boxes.append(Box(tuple(run), terms, ended))
    return boxes


def in_order(turn: Said) -> tuple[datetime, int, str]:
    """The order of turns within a session."""
    return turn.at, turn.sequence, turn.id


def topic_words(turns: Sequence[Said], most: int = 8) -> tuple[str, ...]:
    """The words that tell what the turns are about: those of most turns first."""
    spread: Counter[str] = Counter()
    for turn in turns:
        spread.update(content_words(turn.text).keys())
    ranked = sorted(spread, key=lambda word: (-spread[word], -len(word), word))
    seen: dict[str, str] = {}
    for word in ranked:
        seen.setdefault(next(iter(terms_of(word)), word), word)
    return tuple(seen.values())[:most]


def recurs(terms: Set[str], earlier: Set[str], policy: DigestPolicy) -> float:
    """How much of an earlier box's topic comes back; 0 below the threshold.

    Without smoothing, and never by a single word: that a topic comes back needs words
    that do.
    """
    if len(terms & earlier) < _WORDS_THAT_RECUR:
        return 0.0
    share = overlap(terms, earlier)
    return share if share >= policy.box_overlap else 0.0


def _why_sealed(
    run: Sequence[Said],
    terms: Set[str],
    turn: Said,
    words: Set[str],
    policy: DigestPolicy,
) -> SealReason | None:
    if not run:
        return None
    if turn.at - run[-1].at >= timedelta(minutes=policy.box_idle_minutes):
        return SealReason.IDLE
    if len(run) >= policy.box_turns:
        return SealReason.FULL
    if overlap(terms, words, policy.box_smoothing) < policy.box_overlap:
        return SealReason.TOPIC
    return None
