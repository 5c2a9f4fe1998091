"""What counts how much when memories are put in order; plain numbers, and why they are such."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class RankingWeights(BaseModel):
    """How much each part of a score counts, before their sum is brought to 0 to 1.

    Fitted by a listwise logistic model to questions about long conversations, each
    measured on conversations it was not fitted to, and rounded; the dense side is
    raised, for questions in other words than the answer are rarer there than
    elsewhere. ``python -m tests.benchmarks.locomo FILE --leave-one-out`` fits anew.

    Attributes:
        sparse: Words in common (BM25).
        dense: Nearness in meaning.
        around: How well the best of the same session answer.
        subject: The question names who speaks, or what a conclusion is about.
        substance: A turn of many words says more than a short one.
        cue: The turn holds what is asked for: a time, a number, a name.
        period: It was said, or happened, in the time that the question names.
        asking: Taken from a turn that itself only asks.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sparse: float = Field(default=3.8, ge=0, le=100)
    dense: float = Field(default=0.8, ge=0, le=100)
    around: float = Field(default=5.4, ge=0, le=100)
    subject: float = Field(default=2.5, ge=0, le=100)
    substance: float = Field(default=2.9, ge=0, le=100)
    cue: float = Field(default=1.5, ge=0, le=100)
    period: float = Field(default=1.0, ge=0, le=100)
    asking: float = Field(default=0.45, ge=0, le=100)


class RankingFactors(BaseModel):
    """What a score is multiplied with for what a memory is, whatever was asked.

    Attributes:
        validated: For what a second turn or the user vouches for.
        candidate: For what was concluded once and not used since, or is disputed.
        stale: For what was not used for long.
        disputed: For what somebody spoke against, on top.
        unsure: At confidence 0; 1 at full confidence, in between in proportion.
        faded: For a turn that has faded wholly; 1 for a fresh one, in between in proportion.
        unimportant: At importance 0; 1 at half importance and more.
        cold: For what is kept cold, where placement is switched on.
        outdated: For a turn all of whose conclusions were replaced.
        negated: For a turn that a later negation speaks against.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    validated: float = Field(default=1.05, ge=1, le=2)
    candidate: float = Field(default=0.97, gt=0, le=1)
    stale: float = Field(default=0.85, gt=0, le=1)
    disputed: float = Field(default=0.8, gt=0, le=1)
    unsure: float = Field(default=0.85, gt=0, le=1)
    faded: float = Field(default=0.93, gt=0, le=1)
    unimportant: float = Field(default=0.95, gt=0, le=1)
    cold: float = Field(default=0.9, gt=0, le=1)
    outdated: float = Field(default=0.7, gt=0, le=1)
    negated: float = Field(default=0.7, gt=0, le=1)
