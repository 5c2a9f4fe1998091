"""How sure Engram is of a conclusion: a composite score that can be audited."""

from __future__ import annotations

import math
from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field, model_validator

from engram.domain.described import describe
from engram.domain.values import DAYS_TILL_NEVER, Moment, StoredValue


class ExtractionMethod(StrEnum):
    """How a conclusion was reached."""

    VERBATIM = "verbatim"
    EXTRACTED = "extracted"
    INFERRED = "inferred"


class Verification(StrEnum):
    """Whether anything beyond the extraction speaks for it."""

    EVIDENCE_FOUND = "evidence_found"
    UNCHECKED = "unchecked"
    USER_CONFIRMED = "user_confirmed"
    DISPUTED = "disputed"


VERIFICATION_PART: dict[Verification, float] = {
    Verification.EVIDENCE_FOUND: 1.0,
    Verification.USER_CONFIRMED: 1.0,
    Verification.UNCHECKED: 0.5,
    Verification.DISPUTED: 0.0,
}
# Below this the extraction itself was not sure.
SPECULATIVE_BELOW = 0.40
# What is stored for where corroboration starts: these two stand for the settings of the same name.
SEED_FRESH = 0.4
SEED_IMPORTED = 0.25
# How sure the extraction by a deterministic pattern is.
PATTERN_EXTRACTION = 0.9


class ConfidenceWeights(BaseModel):
    """What confidence is computed by; the four weights sum to 1.

    Nothing computed is stored: a change holds for all that is remembered, at once.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, json_schema_extra=describe
    )

    extraction: float = Field(default=0.50, ge=0, le=1)
    """Weight of how it was extracted. The four sum to 1."""
    corroboration: float = Field(default=0.25, ge=0, le=1)
    """Weight of how many episodes say so."""
    recency: float = Field(default=0.15, ge=0, le=1)
    """Weight of when it was last confirmed."""
    verification: float = Field(default=0.10, ge=0, le=1)
    """Weight of what checking found."""
    decay_days: float = Field(default=365.0, gt=0, le=DAYS_TILL_NEVER)
    """Days without confirmation after which recency is 36.8 %."""
    base_verbatim: float = Field(default=1.0, ge=0, le=1)
    """What counts as extraction of words that are kept as they were said."""
    base_extracted: float = Field(default=0.9, ge=0, le=1)
    """The same of what a quotation or a pattern shows."""
    base_inferred: float = Field(default=0.6, ge=0, le=1)
    """The same of what is concluded without a quotation."""
    seed_fresh: float = Field(default=SEED_FRESH, ge=0, le=1)
    """Corroboration of what was told once."""
    seed_imported: float = Field(default=SEED_IMPORTED, ge=0, le=1)
    """Corroboration of what was imported and told once."""
    gap_closed: float = Field(default=0.1, ge=0, le=1)
    """Part of the gap between corroboration and 1 that each further, independent episode closes."""

    @model_validator(mode="after")
    def _sum_to_one(self) -> ConfidenceWeights:
        total = self.extraction + self.corroboration + self.recency + self.verification
        if not math.isclose(total, 1.0, abs_tol=1e-6):
            raise ValueError(f"the four confidence weights must sum to 1, not {total:g}")
        return self

    def base(self, method: ExtractionMethod) -> float:
        """What counts as extraction, 0 to 1."""
        match method:
            case ExtractionMethod.VERBATIM:
                return self.base_verbatim
            case ExtractionMethod.EXTRACTED:
                return self.base_extracted
            case ExtractionMethod.INFERRED:
                return self.base_inferred

    def start(self, seed: float) -> float:
        """Where the corroboration starts of what is stored with ``seed``."""
        if seed == SEED_FRESH:
            return self.seed_fresh
        return self.seed_imported if seed == SEED_IMPORTED else seed


class Confidence(StoredValue):
    """What the score of a derived memory is computed from.

    Attributes:
        method: verbatim, extracted or inferred.
        extraction: What the extraction itself said, 0 to 1; 0.9 for deterministic patterns.
        supporting_episodes: How many independent episodes say so; at least 1. Those of one
            conversation and one day are not independent, and count once.
        last_confirmed: When an episode or the user last said so.
        contradictions: How many episodes spoke against it.
        verification: What checking found.
        seed: Where corroboration starts: ``SEED_FRESH`` and ``SEED_IMPORTED`` stand for what
            the settings say, any other is meant as it is.
    """

    method: ExtractionMethod
    extraction: float = Field(ge=0, le=1)
    supporting_episodes: int = Field(default=1, ge=1)
    last_confirmed: Moment
    contradictions: int = Field(default=0, ge=0)
    verification: Verification = Verification.UNCHECKED
    seed: float = Field(default=SEED_FRESH, ge=0, le=1)

    def score(
        self,
        now: datetime,
        weights: ConfidenceWeights | None = None,
        *,
        recalled_at: datetime | None = None,
    ) -> float:
        """The composite score at ``now``, 0 to 1; nothing stored changes.

        Args:
            now: The present.
            weights: Of the four parts.
            recalled_at: When it was last recalled: recency counts from then, if that is later.
        """
        weights = weights or ConfidenceWeights()
        return (
            weights.extraction * weights.base(self.method)
            + weights.corroboration * self.corroboration(weights)
            + weights.recency * self.recency(now, weights.decay_days, recalled_at)
            + weights.verification * VERIFICATION_PART[self.verification]
        )

    def refreshed(self, recalled_at: datetime | None) -> datetime:
        """When it was last confirmed or, if that was later, recalled."""
        confirmed = self.last_confirmed
        return confirmed if recalled_at is None else max(confirmed, recalled_at)

    def corroboration(self, weights: ConfidenceWeights) -> float:
        """Grows with each independent episode, halved by each contradiction."""
        closed = (1.0 - weights.gap_closed) ** (self.supporting_episodes - 1)
        gap = (1.0 - weights.start(self.seed)) * closed
        return float((1.0 - gap) * 0.5**self.contradictions)

    def recency(
        self, now: datetime, decay_days: float, recalled_at: datetime | None = None
    ) -> float:
        """exp(-days since confirmed or recalled / decay_days); 1 for a moment in the future."""
        days = max((now - self.refreshed(recalled_at)).total_seconds(), 0.0) / 86_400
        return math.exp(-days / decay_days)

    def explain(
        self,
        now: datetime,
        weights: ConfidenceWeights | None = None,
        *,
        recalled_at: datetime | None = None,
    ) -> str:
        """The effective score in one sentence with its parts.

        Args:
            now: The present.
            weights: Of the four parts.
            recalled_at: When the memory was last recalled; see :func:`effective_confidence`.
        """
        weights = weights or ConfidenceWeights()
        episodes, since = self.supporting_episodes, self.refreshed(recalled_at)
        recalled = "" if since is self.last_confirmed else f"recalled {_ago(now, since)}, "
        return (
            f"{self.score(now, weights, recalled_at=recalled_at):.2f}: {self.method} "
            f"({weights.base(self.method):.2f} base), "
            f"{episodes} supporting episode{'s' if episodes != 1 else ''}, "
            f"last confirmed {_ago(now, self.last_confirmed)}, {recalled}"
            + (
                f"{self.contradictions} contradiction{'s' if self.contradictions != 1 else ''}"
                if self.contradictions
                else "no contradictions"
            )
        )


def effective_confidence(
    confidence: Confidence | None,
    now: datetime,
    weights: ConfidenceWeights | None = None,
    *,
    recalled_at: datetime | None = None,
) -> float:
    """How far to trust a memory at ``now``, 0 to 1, from what was last written.

    Args:
        confidence: None for a memory that has none; such a one is fully trusted.
        now: The present.
        weights: Of the four parts.
        recalled_at: When it was last recalled, which refreshes recency as being
            confirmed does.
    """
    return 1.0 if confidence is None else confidence.score(now, weights, recalled_at=recalled_at)


def is_speculative(confidence: Confidence | None, below: float = SPECULATIVE_BELOW) -> bool:
    """Whether the extraction itself was not sure; never without a confidence.

    Asked of what the extraction said, not of the composite: that of an
    uncontradicted memory never falls so low.
    """
    return confidence is not None and confidence.extraction < below


def _ago(now: datetime, then: datetime) -> str:
    days = (now - then).days
    for size, unit in ((365, "year"), (30, "month"), (7, "week"), (1, "day")):
        if days >= size:
            count = days // size
            return f"{count} {unit}{'s' if count != 1 else ''} ago"
    return "today"
