"""Why an answer came back (row R6, first cut)."""

from __future__ import annotations

from collections.abc import Iterator

from engram.domain.confidence import ConfidenceWeights
from engram.domain.memories import DerivedMemory, MemoryType
from engram.recall.models import RecallExplanation, ScorePart
from engram.recall.ranked import Ranked, SideScore
from engram.recall.search import Question


def explain(one: Ranked, question: Question, weights: ConfidenceWeights) -> RecallExplanation:
    """Score parts, filters passed, and provenance of one answer."""
    memory = one.memory
    confidence = (
        memory.confidence.explain(question.visibility.now, weights)
        if isinstance(memory, DerivedMemory)
        else None
    )
    return RecallExplanation(
        parts=tuple(_parts(one)),
        filters=tuple(_filters(one, question)),
        linked_from=one.link.source_id if one.link else None,
        confidence=confidence,
        provenance=memory.provenance,
    )


def _parts(one: Ranked) -> Iterator[ScorePart]:
    for name, side in (("dense", one.dense), ("sparse", one.sparse)):
        if side is not None:
            yield _side(name, side)
    if one.link is not None:
        yield ScorePart(
            name="link",
            raw=one.link.confidence,
            value=one.link.contribution,
            weight=1.0,
            contribution=one.link.contribution,
        )
    if one.adjustment:
        yield ScorePart(
            name="negated" if one.negated_by else "adjusted",
            raw=float(len(one.negated_by)) if one.negated_by else None,
            value=abs(one.adjustment),
            weight=1.0 if one.adjustment > 0 else -1.0,
            contribution=one.adjustment,
        )


def _side(name: str, side: SideScore) -> ScorePart:
    return ScorePart(
        name=name,
        raw=side.raw,
        value=side.value,
        weight=side.weight,
        contribution=side.value * side.weight,
    )


def _filters(one: Ranked, question: Question) -> Iterator[str]:
    request = question.request
    yield f"type={one.memory.type.value}"
    if request.as_of is not None:
        yield f"known at {request.as_of.isoformat()}, not replaced then"
    else:
        yield f"status={one.memory.status.value}"
    if request.valid_at is not None:
        yield f"true at {request.valid_at.isoformat()}"
    if request.session_id is not None:
        yield f"session={request.session_id}"
    if request.tags:
        yield f"tag in {', '.join(request.tags)}"
    if request.min_confidence is not None and one.is_derived:
        yield f"confidence>={request.min_confidence:g}"
    if request.min_selectivity is not None and one.memory.type is MemoryType.SEMANTIC:
        yield f"selectivity>={request.min_selectivity:g}"
    if one.memory.type is not MemoryType.NEGATION and not one.negated_by:
        yield "no negation in force"
