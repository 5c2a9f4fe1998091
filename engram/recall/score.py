"""The score of a candidate: relevance to the question, weight of the memory, and why."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeGuard

from engram.domain.confidence import ConfidenceWeights
from engram.domain.kept import kept
from engram.domain.memories import (
    AnyMemory,
    Category,
    DerivedMemory,
    Episode,
    LifecycleState,
    MemoryType,
    ProceduralMemory,
    SemanticMemory,
)
from engram.domain.rules import LifecycleRules, RankingFactors, RankingWeights
from engram.domain.values import Period
from engram.language.query import (
    ASSISTANT,
    USER,
    Analysis,
    holds_cue,
    says_nothing_more,
    speaks_of_oneself,
    tells_of_oneself,
)
from engram.language.text import BARE_WORDS, bare_stems
from engram.lifecycle.policies import (
    DecayPolicy,
    dispute_of,
    is_cold,
    is_disputed,
    policy_for,
    trust,
)
from engram.lifecycle.promotion import circumstances_of
from engram.recall.request import RecallRequest
from engram.recall.results import Part, Ranked, RecallExplanation, by_score, change
from engram.recall.search import FoundMemory, PreparedQuery, Sides

# --- one score out of what a question asks for and what a memory is: a weighted sum of parts
#
# Every part lies in 0 to 1. The sum is divided by what it could be at most. No part knows
# an absolute size: what is measured is measured against the other candidates, which are
# this user's own memories. What nearly all of them have tells nothing between them.

# A conclusion names what it is about among its first words.
_SUBJECT_WORDS = 4
_SUBJECT_CHARACTERS = 80
# How many of a session's best tell how well it answers.
_BEST_OF_SESSION = 3
# A name in the question is near to every text that holds it. Where it is that of somebody who
# speaks, what he said counts by the part for the subject, and nearness counts for so much less.
_NEAR_BESIDE_A_VOICE = 1 / 5
# What bears on advice was said in passing, between other things and in other words than are asked
# for: words in common count for so much less, and what was said around it not at all.
_WORDS_OF_ADVICE = 1 / 2
# What people want and do holds for what they are to be advised.
_OF_LASTING_USE = frozenset({Category.PREFERENCE, Category.PRINCIPLE})
# What happened within a day is told for some days.
_TOLD_FOR_AT_LEAST = timedelta(weeks=1)


def score(
    found: Sequence[FoundMemory],
    analysis: Analysis,
    weights: RankingWeights,
    *,
    explained: bool = True,
) -> list[Ranked]:
    """Every candidate with its score, best first, ties by type and id.

    Args:
        found: The candidates.
        analysis: Of the question.
        weights: Of the parts.
        explained: Whether the parts are kept: a recall makes a hundred, and mostly nobody asks.
    """
    memories = [one.memory for one in found]
    asks = {place: one for place, one in enumerate(memories) if _is_question(one)}
    # The question itself, asked before: it is like itself, which says nothing.
    echoes = {place for place, one in asks.items() if says_nothing_more(one.content, analysis)}
    found = [_unlike(one) if place in echoes else one for place, one in enumerate(found)]
    named = any(_is_named_voice(memory, analysis.subjects) for memory in memories)
    shares = _shares(weights, named=named, advice=analysis.advice)
    around: dict[int, float] = {}
    cue: dict[int, float] = {}
    if not analysis.advice:
        around = dict(enumerate(_around(memories, [shares.matching(one.sides) for one in found])))
        if analysis.asked:
            held = [n for n, one in enumerate(memories) if holds_cue(one.content, analysis.asked)]
            cue = _telling(held, len(memories))
    of_assistant = ASSISTANT in analysis.subjects
    silent = [n for n, one in asks.items() if n in echoes or of_assistant or not _tells(one)]
    asking = _telling(silent, len(memories))
    return by_score(
        [
            _scored(
                one,
                analysis,
                shares,
                (around.get(place), cue.get(place), asking.get(place)),
                explained=explained,
            )
            for place, one in enumerate(found)
        ]
    )


def _scored(
    one: FoundMemory,
    analysis: Analysis,
    shares: _Shares,
    telling: tuple[float | None, float | None, float | None],
    *,
    explained: bool,
) -> Ranked:
    memory, (match, near, words) = one.memory, one.sides
    beside, cue, asking = telling
    # As the fields of Part.
    parts: list[tuple[str, float, float, float | None]] = [
        ("sparse", words, shares.sparse, match.sparse),
        ("dense", near, shares.dense, match.dense),
    ]
    if beside is not None:
        parts.append(("around", beside, shares.around, None))
    if _is_subject(memory, analysis.subjects):
        parts.append(("subject", 1.0, shares.subject, None))
    if analysis.advice and _is_of_use(memory):
        parts.append(("advice", 1.0, shares.advice, None))
    if cue is not None:
        parts.append(("cue", cue, shares.cue, None))
    if analysis.period is not None and (then := _of_that_time(memory, analysis.period)):
        parts.append(("period", then, shares.period, None))
    if asking is not None:
        parts.append(("asking", asking, -shares.asking, None))
    whole = sum([value * weight for _, value, weight, _ in parts])
    told = tuple(map(Part._make, parts)) if explained else ()
    less = 0.0 if asking is None else asking * -shares.asking
    ranked = Ranked(memory, whole, told, asking=less, explained=explained)
    return ranked if whole >= 0.0 else ranked.moved_to(0.0, "floor")


@dataclass(frozen=True, slots=True)
class _Shares:
    """The weights, so that a memory with everything that speaks for it has a score of 1."""

    sparse: float
    dense: float
    around: float
    subject: float
    advice: float
    cue: float
    period: float
    asking: float

    def matching(self, sides: Sides) -> float:
        """What words and nearness say together, 0 to 1, by their shares."""
        both = self.sparse + self.dense
        return (self.sparse * sides.words + self.dense * sides.near) / both if both else 0.0


def _shares(weights: RankingWeights, *, named: bool, advice: bool) -> _Shares:
    given: dict[str, float] = {**vars(weights)}
    if advice:
        given["sparse"] *= _WORDS_OF_ADVICE
        given["around"] = 0.0
    if named:
        given["dense"] *= _NEAR_BESIDE_A_VOICE
    total = sum(given.values()) - weights.asking or 1.0
    return _Shares(**{name: weight / total for name, weight in given.items()})


def _telling(having: Sequence[int], count: int) -> dict[int, float]:
    """For each of so many candidates that has something, by place, the share of the others."""
    rare = 1.0 - len(having) / max(count, 1)
    return dict.fromkeys(having, rare) if rare else {}


def _around(memories: Sequence[AnyMemory], matching: Sequence[float]) -> list[float]:
    """For each turn, how well the best of its session match: what belongs together helps.

    A conclusion is as good as its own match: it stands alone, whatever was said beside it.
    """
    sessions: dict[str, list[float]] = {}
    for memory, match in zip(memories, matching, strict=True):
        if memory.session_id is not None and isinstance(memory, Episode):
            sessions.setdefault(memory.session_id, []).append(match)
    best = {name: sorted(all_, reverse=True)[:_BEST_OF_SESSION] for name, all_ in sessions.items()}
    worth = {name: sum(values) / len(values) for name, values in best.items()}
    return [
        worth[memory.session_id]
        if memory.session_id is not None and isinstance(memory, Episode)
        else match
        for memory, match in zip(memories, matching, strict=True)
    ]


def _is_named_voice(memory: AnyMemory, subjects: frozenset[str]) -> bool:
    """Whether it is a turn of somebody whose name the question holds."""
    return (
        isinstance(memory, Episode)
        and memory.speaker is not None
        and not subjects.isdisjoint(_words_of(memory.speaker))
    )


def _is_subject(memory: AnyMemory, subjects: frozenset[str]) -> bool:
    """Whether the question names who speaks or, of a conclusion, what it is about."""
    if isinstance(memory, Episode):
        who = memory.speaker if memory.speaker is not None else memory.role
        return not subjects.isdisjoint(_words_of(who))
    begins = memory.content[:_SUBJECT_CHARACTERS].casefold()
    return not subjects.isdisjoint(BARE_WORDS.findall(begins)[:_SUBJECT_WORDS])


@kept(4096)
def _words_of(name: str) -> tuple[str, ...]:
    return tuple(BARE_WORDS.findall(name.casefold()))


def _is_of_use(memory: AnyMemory) -> bool:
    """Whether it tells how somebody is or what he wants, whatever it is about."""
    if isinstance(memory, Episode):
        return memory.role == USER and tells_of_oneself(memory.content)
    return isinstance(memory, ProceduralMemory) or (
        isinstance(memory, SemanticMemory) and memory.category in _OF_LASTING_USE
    )


def _unlike(one: FoundMemory) -> FoundMemory:
    """It, as if neither its words nor what it means were those of the question."""
    return one._replace(sides=one.sides._replace(near=0.0, words=0.0))


def _is_question(memory: AnyMemory) -> TypeGuard[Episode]:
    return isinstance(memory, Episode) and memory.content.rstrip().endswith("?")


def _tells(question: Episode) -> bool:
    """Whether a turn that asks also tells something.

    What a user asks an assistant often tells of him: "What do I cook with my new wok?"
    """
    to_assistant = question.speaker is None and question.role == USER
    return to_assistant and speaks_of_oneself(question.content)


def _of_that_time(memory: AnyMemory, period: Period) -> float:
    """Whether it is of that time, 0 to 1.

    What happened is told when it happens or afterwards, sooner rather than later, so that a turn
    counts less the more of the period's lengths lie in between.
    """
    if isinstance(memory, DerivedMemory):
        return float(_happened_in(period, memory))
    moment, end = memory.timestamp, period.end
    if end is None or moment < end:
        return float(period.holds(moment))
    length = timedelta() if period.begin is None else end - period.begin
    return math.exp(-((moment - end) / max(length, _TOLD_FOR_AT_LEAST)))


def _happened_in(period: Period, memory: DerivedMemory) -> bool:
    at = memory.event_at
    if period.holds(at):
        return True
    # Of no time but the turn's, it is that moment; of a day that was told, that day anywhere.
    return at != memory.known_at and period.holds_by_the_clock(at)


# --- what a memory is, whatever was asked: its life, how sure Engram is, how fresh

_NEUTRAL_IMPORTANCE = 0.5


def weighted(
    found: Sequence[Ranked],
    now: datetime,
    rules: LifecycleRules,
    factors: RankingFactors,
    context: str | None = None,
    *,
    looking_back: bool = False,
) -> list[Ranked]:
    """The candidates with their scores weighted, best first; habits by the circumstances, too.

    Looking back, no state in life counts: memories have it of now, and not of then.
    """
    if not found:
        return []
    policy = policy_for(rules, found[0].memory.namespace)
    by_state = not looking_back
    weighed = [_weighted(one, now, policy, rules, factors, by_state=by_state) for one in found]
    if context is not None:
        here = bare_stems(context)
        weighed = [_placed(one, here, factors.elsewhere) for one in weighed]
    return by_score(weighed)


def _placed(one: Ranked, here: frozenset[str], elsewhere: float) -> Ranked:
    """A habit by how much of its circumstances is here; anything else as it is."""
    memory = one.memory
    bound = circumstances_of(memory) if isinstance(memory, ProceduralMemory) else None
    wanted = frozenset() if bound is None else bare_stems(bound)
    if wanted <= here:
        return one
    return one.times(elsewhere + (1.0 - elsewhere) * len(wanted & here) / len(wanted), "context")


def lifecycle_weight(memory: AnyMemory, factors: RankingFactors, *, by_state: bool = True) -> float:
    """What its state in life multiplies a score with; 1 for a memory that has none."""
    match memory.lifecycle if by_state else None:
        case LifecycleState.VALIDATED | LifecycleState.ACTIVE:
            weight = factors.validated
        case LifecycleState.CANDIDATE:
            weight = factors.candidate
        case LifecycleState.STALE | LifecycleState.ARCHIVED:
            weight = factors.stale
        case _:
            weight = 1.0
    if isinstance(memory, Episode) or not is_disputed(memory):
        return weight
    return weight * factors.disputed


def _weighted(
    one: Ranked,
    now: datetime,
    policy: DecayPolicy,
    rules: LifecycleRules,
    factors: RankingFactors,
    *,
    by_state: bool,
) -> Ranked:
    memory, whole, parts = one.memory, one.score, one.parts
    for name, factor in _factors(memory, now, policy, rules, factors, by_state=by_state):
        if factor == 1.0:
            continue
        after = min(1.0, whole * factor)
        if one.explained:
            parts = (*parts, change(name, after - whole, factor))
        whole = after
    return Ranked(
        memory,
        whole,
        parts,
        one.links,
        one.negated_by,
        asking=one.asking,
        explained=one.explained,
    )


def _factors(
    memory: AnyMemory,
    now: datetime,
    policy: DecayPolicy,
    rules: LifecycleRules,
    factors: RankingFactors,
    *,
    by_state: bool,
) -> Iterator[tuple[str, float]]:
    yield "lifecycle", lifecycle_weight(memory, factors, by_state=by_state)
    if by_state and is_cold(memory, rules):
        # Never more than behind what is hot: cold memories may be the only answer.
        yield "cold", factors.cold
    if isinstance(memory, Episode):
        worth = min(1.0, policy.value(memory, now))
        yield "faded", factors.faded + (1.0 - factors.faded) * worth
    else:
        sure = trust(memory, now, rules)
        yield "confidence", factors.unsure + (1.0 - factors.unsure) * sure
    if memory.importance < _NEUTRAL_IMPORTANCE:
        missing = 1.0 - memory.importance / _NEUTRAL_IMPORTANCE
        yield "importance", 1.0 - (1.0 - factors.unimportant) * missing


# --- why an answer came back


def explain(one: Ranked, question: PreparedQuery, weights: ConfidenceWeights) -> RecallExplanation:
    """Score parts, the way there, filters passed, and provenance of one answer."""
    memory = one.memory
    confidence = (
        memory.confidence.explain(
            question.visibility.moment, weights, recalled_at=question.visibility.recalled(memory)
        )
        if isinstance(memory, DerivedMemory)
        else None
    )
    return RecallExplanation(
        parts=tuple(part.shown for part in one.parts),
        filters=tuple(_filters(one, question)),
        linked_from=one.links[-1].source_id if one.links else None,
        links=one.links,
        confidence=confidence,
        dispute=dispute_of(memory),
        period=question.analysis.period,
        provenance=memory.provenance,
    )


def _filters(one: Ranked, question: PreparedQuery) -> Iterator[str]:
    request = question.request
    yield f"type={one.memory.type.value}"
    if request.as_of is not None:
        yield _known_then(one.memory, request.as_of)
    else:
        yield f"status={one.memory.status.value}"
    # What was said was said: of a turn nobody asks whether it was true.
    if request.valid_at is not None and isinstance(one.memory, DerivedMemory):
        unknown = " (since when is not known)" if one.memory.valid_from is None else ""
        yield f"true at {request.valid_at.isoformat()}{unknown}"
    if isinstance(one.memory, SemanticMemory):
        yield f"form={one.memory.form.value}"
    yield from _asked(request, one.memory)
    if one.memory.type is not MemoryType.NEGATION and not one.negated_by:
        yield "no negation in force"


def _known_then(memory: AnyMemory, then: datetime) -> str:
    """What was replaced by then comes only where it is asked for what was true before."""
    replaced = memory.superseded_known_at
    stood = replaced is None or replaced > then
    return f"known at {then.isoformat()}{', not replaced then' if stood else ''}"


def _asked(request: RecallRequest, memory: AnyMemory) -> Iterator[str]:
    """What the request itself asked for."""
    said = (
        (request.session_id, f"session={request.session_id}"),
        (request.tags, f"tag in {', '.join(request.tags or ())}"),
        (request.without_tags, f"no tag of {', '.join(request.without_tags or ())}"),
        (
            request.roles and isinstance(memory, Episode),
            f"role in {', '.join(request.roles or ())}",
        ),
        (request.metadata, f"metadata {', '.join(request.metadata or ())}"),
        (not request.include_stale and request.as_of is None, "not stale"),
    )
    yield from (words for asked, words in said if asked)
    least = (
        ("score", request.min_score, True),
        ("confidence", request.min_confidence, not isinstance(memory, Episode)),
        ("selectivity", request.min_selectivity, isinstance(memory, SemanticMemory)),
    )
    yield from (f"{what}>={bound:g}" for what, bound, has in least if has and bound is not None)
