"""One score out of what a question asks for and what a memory is: a weighted sum of parts.

Every part lies in 0 to 1. The sum is divided by what it could be at most.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from engram.domain.memories import AnyMemory, DerivedMemory, Episode
from engram.domain.ranking import RankingWeights
from engram.recall.analysis import Analysis
from engram.recall.cues import holds_cue
from engram.recall.ranked import Part, Ranked, by_score
from engram.recall.search import Found

_WORD = re.compile(r"[^\W_]+")
# With so many words a turn says as much as turns of a conversation do.
_MANY_WORDS = 80
# A conclusion names what it is about among its first words.
_SUBJECT_WORDS = 4
# How many of a session's best tell how well it answers.
_BEST_OF_SESSION = 3
_NO_SUBJECT = frozenset(
    "a an the is are was were do does did has have had what who where when which how why of in on "
    "at to for with and or".split()
)


def score(found: Sequence[Found], analysis: Analysis, weights: RankingWeights) -> list[Ranked]:
    """Every candidate with its score and the parts it is made of, best first, ties by id."""
    around = _around(found)
    scored = [_scored(one, analysis, weights, around) for one in found]
    return by_score(scored)


def _scored(
    one: Found, analysis: Analysis, weights: RankingWeights, around: Mapping[str, float]
) -> Ranked:
    memory, sides = one.memory, one.sides
    # A conclusion is as good as its own match: it stands alone, whatever was said beside it.
    beside = around.get(memory.id, sides.both)
    given = (
        ("sparse", sides.words, weights.sparse, sides.match.sparse),
        ("dense", sides.near, weights.dense, sides.match.dense),
        ("around", beside, weights.around, None),
        ("subject", _subject(memory, analysis), weights.subject, None),
        ("substance", _substance(memory), weights.substance, None),
        ("cue", float(holds_cue(memory.content, analysis.asked)), weights.cue, None),
        ("period", _period(memory, analysis), weights.period, None),
        ("asking", _asking(memory), -weights.asking, None),
    )
    total = sum(weight for _, _, weight, _ in given if weight > 0) or 1.0
    parts = tuple(Part(name, value, weight / total, raw) for name, value, weight, raw in given)
    whole = sum(part.contribution for part in parts)
    shown = tuple(part for part in parts if part.value or part.name in {"dense", "sparse"})
    ranked = Ranked(memory=memory, score=whole, parts=shown)
    return ranked if whole >= 0.0 else ranked.moved_to(0.0, "floor")


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


def _subject(memory: AnyMemory, analysis: Analysis) -> float:
    asked = analysis.words - _NO_SUBJECT
    if isinstance(memory, Episode):
        who = memory.speaker if memory.speaker is not None else memory.role
        return float(not asked.isdisjoint(_WORD.findall(who.casefold())))
    begins = _WORD.findall(memory.content.casefold())[:_SUBJECT_WORDS]
    return float(not asked.isdisjoint(begins))


def _substance(memory: AnyMemory) -> float:
    if isinstance(memory, DerivedMemory):
        # Nothing in it is idle talk.
        return 1.0
    words = memory.content.count(" ") + 1
    return min(1.0, math.log1p(words) / math.log1p(_MANY_WORDS))


def _period(memory: AnyMemory, analysis: Analysis) -> float:
    if analysis.period is None:
        return 0.0
    moment = memory.event_at if isinstance(memory, DerivedMemory) else memory.timestamp
    return float(analysis.period.holds(moment))


def _asking(memory: AnyMemory) -> float:
    return float(isinstance(memory, Episode) and memory.content.rstrip().endswith("?"))
