"""Why an answer came back."""

from __future__ import annotations

from collections.abc import Iterator

from engram.domain.confidence import ConfidenceWeights
from engram.domain.memories import DerivedMemory, MemoryType, SemanticMemory
from engram.recall.models import RecallExplanation
from engram.recall.ranked import Ranked
from engram.recall.search import Question


def explain(one: Ranked, question: Question, weights: ConfidenceWeights) -> RecallExplanation:
    """Score parts, the way there, filters passed, and provenance of one answer."""
    memory = one.memory
    confidence = (
        memory.confidence.explain(question.visibility.now, weights)
        if isinstance(memory, DerivedMemory)
        else None
    )
    return RecallExplanation(
        parts=one.parts,
        filters=tuple(_filters(one, question)),
        linked_from=one.links[-1].source_id if one.links else None,
        links=one.links,
        confidence=confidence,
        provenance=memory.provenance,
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
    if isinstance(one.memory, SemanticMemory):
        yield f"form={one.memory.form.value}"
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
