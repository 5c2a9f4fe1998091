"""One score out of what a question asks for and what a memory is: a weighted sum of parts.

Every part lies in 0 to 1. The sum is divided by what it could be at most.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from engram.domain.memories import AnyMemory, DerivedMemory, Episode
from engram.domain.ranking import RankingWeights
from engram.recall.analysis import Analysis
from engram.recall.cues import holds_cue
from engram.recall.ranked import Ranked, by_score, part_of
from engram.recall.search import Found

_WORD = re.compile(r"[^\W_]+")
# With so many words a turn says as much as turns of a conversation do.
_MANY_WORDS = 80
# A conclusion names what it is about among its first words.
_SUBJECT_WORDS = 4
_SUBJECT_CHARACTERS = 80
_LOG_OF_MANY = math.log1p(_MANY_WORDS)
# How many of a session's best tell how well it answers.
_BEST_OF_SESSION = 3


def score(found: Sequence[Found], analysis: Analysis, weights: RankingWeights) -> list[Ranked]:
    """Every candidate with its score and the parts it is made of, best first, ties by id."""
    around = _around(found)
    shares = _shares(weights)
    return by_score([_scored(one, analysis, shares, around) for one in found])


def _scored(one: Found, analysis: Analysis, shares: _Shares, around: Mapping[str, float]) -> Ranked:
    memory, sides = one.memory, one.sides
    # A conclusion is as good as its own match: it stands alone, whatever was said beside it.
    beside = around.get(memory.id, sides.both)
    match = sides.match
    parts = [
        part_of("sparse", sides.words, shares.sparse, match.sparse),
        part_of("dense", sides.near, shares.dense, match.dense),
        part_of("around", beside, shares.around),
        part_of("substance", _substance(memory), shares.substance),
    ]
    if _is_subject(memory, analysis.subjects):
        parts.append(part_of("subject", 1.0, shares.subject))
    if analysis.asked and holds_cue(memory.content, analysis.asked):
        parts.append(part_of("cue", 1.0, shares.cue))
    if analysis.period is not None and analysis.period.holds(_moment(memory)):
        parts.append(part_of("period", 1.0, shares.period))
    if isinstance(memory, Episode) and memory.content.rstrip().endswith("?"):
        parts.append(part_of("asking", 1.0, -shares.asking))
    whole = sum([part.value * part.weight for part in parts])
    ranked = Ranked(memory=memory, score=whole, parts=tuple(parts))
    return ranked if whole >= 0.0 else ranked.moved_to(0.0, "floor")


@dataclass(frozen=True, slots=True)
class _Shares:
    """The weights, so that a memory with everything that speaks for it has a score of 1."""

    sparse: float
    dense: float
    around: float
    subject: float
    substance: float
    cue: float
    period: float
    asking: float


def _shares(weights: RankingWeights) -> _Shares:
    given = weights.model_dump()
    total = sum(given.values()) - weights.asking or 1.0
    return _Shares(**{name: weight / total for name, weight in given.items()})


def _around(found: Sequence[Found]) -> dict[str, float]:
    """For each turn, how well the best of its session match: what belongs together helps."""
    sessions: dict[str, list[float]] = {}
    for one in found:
        if one.memory.session_id is not None and isinstance(one.memory, Episode):
            sessions.setdefault(one.memory.session_id, []).append(one.sides.both)
    worth = {
        session: sum(sorted(values, reverse=True)[:_BEST_OF_SESSION]) / _BEST_OF_SESSION
        for session, values in sessions.items()
    }
    return {
        one.memory.id: worth[one.memory.session_id]
        for one in found
        if one.memory.session_id is not None and isinstance(one.memory, Episode)
    }


def _is_subject(memory: AnyMemory, subjects: frozenset[str]) -> bool:
    """Whether the question names who speaks or, of a conclusion, what it is about."""
    if isinstance(memory, Episode):
        who = memory.speaker if memory.speaker is not None else memory.role
        return not subjects.isdisjoint(_words_of(who))
    begins = memory.content[:_SUBJECT_CHARACTERS].casefold()
    return not subjects.isdisjoint(_WORD.findall(begins)[:_SUBJECT_WORDS])


@lru_cache(maxsize=4096)
def _words_of(name: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(name.casefold()))


def _substance(memory: AnyMemory) -> float:
    if isinstance(memory, DerivedMemory):
        # Nothing in it is idle talk.
        return 1.0
    words = memory.content.count(" ") + 1
    return min(1.0, math.log1p(words) / _LOG_OF_MANY)


def _moment(memory: AnyMemory) -> datetime:
    return memory.event_at if isinstance(memory, DerivedMemory) else memory.timestamp
