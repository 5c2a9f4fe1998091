"""What recall gives back."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from engram.domain.memories import AnyMemory, Episode, Provenance


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ScorePart(_Value):
    """One part of a score.

    Attributes:
        name: dense, sparse, link or negated.
        raw: What was measured: cosine similarity, BM25 score, confidence of the
            link, number of negations. None where that side did not find the memory.
        value: The same, brought to 0 to 1.
        weight: What it was multiplied with.
        contribution: What it added to the score, or took from it.
    """

    name: str
    raw: float | None
    value: float
    weight: float
    contribution: float


class RecallExplanation(_Value):
    """Why a memory came back, and came back where it did (row R6).

    Attributes:
        parts: What the score is made of; their contributions sum up to it.
        filters: What the request asked for and this memory passed, in words.
        linked_from: The hit whose link led here, where one did.
        confidence: The composite confidence in one sentence; None for episodes.
        provenance: The run that wrote the memory.
    """

    parts: tuple[ScorePart, ...]
    filters: tuple[str, ...]
    linked_from: str | None = None
    confidence: str | None = None
    provenance: Provenance = Provenance()


class RecallHit(_Value):
    """One answer.

    Attributes:
        memory: What is remembered. A hit of an episode is that turn, nothing wider.
        score: 0 to 1, best first. Comparable within one answer only.
        confidence: The composite score at the time of asking, 0 to 1; None for episodes.
        sources: The episodes it was concluded from, when asked for.
        negated_by: Negations, known later, that speak against this episode.
        explanation: When asked for.
    """

    memory: AnyMemory
    score: float = Field(ge=0, le=1)
    confidence: float | None = Field(default=None, ge=0, le=1)
    sources: tuple[Episode, ...] = ()
    negated_by: tuple[str, ...] = ()
    explanation: RecallExplanation | None = None
