"""Every tunable number that decisions take: lifecycle, digests, ranking, health."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from engram.domain.confidence import ConfidenceWeights

# --- whether a user's memories live as they should: the four ways in which they may not


class HealthRules(BaseModel):
    """From where on something is called unhealthy.

    Attributes:
        enough: Memories below which shares say nothing.
        promoted_share: Share of what could be promoted, above which everything is.
        settled_days: Age from which something should have been promoted.
        young_days: Age up to which memories should not leave.
        young_left_share: Share of young memories that may leave.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    enough: int = Field(default=20, ge=1)
    promoted_share: float = Field(default=0.8, gt=0, le=1)
    settled_days: float = Field(default=30.0, ge=0)
    young_days: float = Field(default=14.0, gt=0)
    young_left_share: float = Field(default=0.2, gt=0, le=1)


# --- the numbers that fading goes by, as one value that decisions take

TierName = Literal["working", "short_term", "long_term"]
ProtectedCategory = Literal[
    "fact",
    "preference",
    "correction",
    "entity",
    "decision",
    "relationship",
    "principle",
    "commitment",
    "moment",
    "skill",
]


class _Rules(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RetentionRules(_Rules):
    """score = base x exp(-days since use / constant) x (1 + bonus x accesses) x importance."""

    base: float = Field(default=1.0, gt=0)
    access_bonus: float = Field(default=0.1, ge=0)
    archive_below: float = Field(default=0.05, ge=0, le=1)
    episodic_days: float = Field(default=30.0, gt=0)
    factual_days: float = Field(default=180.0, gt=0)
    semantic_days: float = Field(default=180.0, gt=0)
    procedural_days: float = Field(default=730.0, gt=0)
    negation_days: float = Field(default=180.0, gt=0)


class EnergyRules(_Rules):
    """E falls by e^(-decay x hours) and rises by ``per_access`` with each recall."""

    start: float = Field(default=1.0, gt=0)
    per_access: float = Field(default=1.0, gt=0)
    working_decay: float = Field(default=0.5, gt=0)
    short_term_decay: float = Field(default=0.05, gt=0)
    long_term_decay: float = Field(default=0.001, gt=0)
    to_short_term: float = Field(default=2.0, gt=0)
    to_long_term: float = Field(default=5.0, gt=0)
    at_session_end: float = Field(default=1.5, gt=0)
    expire_below: float = Field(default=0.1, ge=0)
    episode_tier: TierName = "working"
    conclusion_tier: TierName = "long_term"


class TimeToLive(_Rules):
    """Days after which a memory of a type expires, since it was last told; 0 for never."""

    episodic_days: float = Field(default=0.0, ge=0)
    factual_days: float = Field(default=0.0, ge=0)
    semantic_days: float = Field(default=0.0, ge=0)
    procedural_days: float = Field(default=0.0, ge=0)
    negation_days: float = Field(default=0.0, ge=0)


class ExpiryRules(_Rules):
    """When weak and finished knowledge leaves."""

    speculative_below: float = Field(default=0.40, ge=0, le=1)
    speculative_days: float = Field(default=30.0, gt=0)
    commitment_days: float = Field(default=90.0, ge=0)
    demote_below: float = Field(default=0.35, ge=0, le=1)
    demote_days: float = Field(default=90.0, ge=0)
    erase_after_days: float = Field(default=0.0, ge=0)


class ArchivalRules(_Rules):
    """Archiving what is old, unimportant and hardly used; off unless asked for."""

    enabled: bool = False
    age_days: float = Field(default=90.0, ge=0)
    importance_below: float = Field(default=0.3, ge=0, le=1)
    most_accesses: int = Field(default=2, ge=0)
    protected_categories: tuple[ProtectedCategory, ...] = (
        "commitment",
        "preference",
        "decision",
        "principle",
    )


class ValueRules(_Rules):
    """What a memory is worth keeping ready for."""

    episodic_weight: float = Field(default=0.6, ge=0, le=1)
    factual_weight: float = Field(default=0.8, ge=0, le=1)
    semantic_weight: float = Field(default=0.9, ge=0, le=1)
    procedural_weight: float = Field(default=1.0, ge=0, le=1)
    negation_weight: float = Field(default=0.8, ge=0, le=1)
    half_life_days: float = Field(default=30.0, gt=0)
    stale_at: float = Field(default=0.5, gt=0, le=1)


class PlacementRules(_Rules):
    """Hot and cold placement; off unless asked for."""

    enabled: bool = False
    cold_after_days: float = Field(default=30.0, ge=0)
    cold_at: float = Field(default=0.1, ge=0, le=1)
    hot_at: float = Field(default=0.2, ge=0, le=1)
    disputed_factor: float = Field(default=0.5, ge=0, le=1)
    correction_bonus: float = Field(default=0.1, ge=0, le=1)
    confirmed_bonus: float = Field(default=0.1, ge=0, le=1)

    @model_validator(mode="after")
    def _apart(self) -> Self:
        if self.hot_at <= self.cold_at:
            raise ValueError("hot_at must lie above cold_at, or memories would move to and fro")
        return self


class PromotionRules(_Rules):
    """When knowledge becomes a habit."""

    selectivity: float = Field(default=0.5, ge=0, le=1)
    passes: int = Field(default=2, ge=0)
    confidence: float = Field(default=0.7, ge=0, le=1)


class EdgeRules(_Rules):
    """How links weaken unless they are found again."""

    reinforcement: float = Field(default=0.1, ge=0, le=1)
    grace_days: float = Field(default=30.0, ge=0)
    window_days: float = Field(default=30.0, gt=0)
    per_window: float = Field(default=0.05, ge=0, le=1)
    floor: float = Field(default=0.1, ge=0, le=1)
    coactivations: int = Field(default=3, ge=1)
    similarity: float = Field(default=0.7, ge=0, le=1)


class LifecycleSettings(_Rules):
    """Everything about fading that can be set."""

    decay_policy: Literal["retention", "energy"] = "retention"
    energy_namespaces: tuple[str, ...] = ()
    retention_namespaces: tuple[str, ...] = ()
    retention: RetentionRules = RetentionRules()
    energy: EnergyRules = EnergyRules()
    time_to_live: TimeToLive = TimeToLive()
    expiry: ExpiryRules = ExpiryRules()
    archival: ArchivalRules = ArchivalRules()
    value: ValueRules = ValueRules()
    placement: PlacementRules = PlacementRules()
    promotion: PromotionRules = PromotionRules()
    edges: EdgeRules = EdgeRules()

    @model_validator(mode="after")
    def _one_policy_each(self) -> Self:
        if both := set(self.energy_namespaces) & set(self.retention_namespaces):
            raise ValueError(f"two decay policies for one namespace: {', '.join(sorted(both))}")
        return self

    def policy_name(self, namespace: str) -> Literal["retention", "energy"]:
        """Which decay policy a namespace goes by."""
        if namespace in self.energy_namespaces:
            return "energy"
        if namespace in self.retention_namespaces:
            return "retention"
        return self.decay_policy


class LifecycleRules(LifecycleSettings):
    """Everything that decisions about a memory's life depend on, besides the memory and the time.

    Plain data: a workflow's starter fixes it, and it crosses Temporal.
    """

    weights: ConfidenceWeights = ConfidenceWeights()

    @classmethod
    def of(cls, settings: LifecycleSettings, weights: ConfidenceWeights) -> LifecycleRules:
        """The rules that ``Settings.lifecycle`` and ``Settings.confidence_weights`` describe."""
        fields = {name: getattr(settings, name) for name in LifecycleSettings.model_fields}
        return cls(**fields, weights=weights)


# --- the numbers that digests are composed by


class DigestPolicy(BaseModel):
    """Fixed by whoever starts a consolidation, so that its passes agree.

    Attributes:
        enabled: Whether passes end with a digest stage.
        profile_lines: Lines of a profile at most.
        profile_bytes: Past so many bytes of text, lesser lines of a profile are folded
            into summarising ones, until it fits (8 KB).
        profile_memories: Memories that one profile is composed from at most.
        profile_reads: Memories that are read anew for one profile.
        topics: Topics that are kept at most.
        topic_members: Memories that make a topic.
        box_overlap: A box is sealed when the topic overlap with the next turn falls
            below this.
        box_idle_minutes: A box is sealed when nothing came for so long.
        box_turns: Turns that a box holds at most.
        box_smoothing: Content words that a turn is taken to share with the box in any
            case, so that a short reply seals nothing.
        guidance_evidence: Memories of one kind before guidance is drawn from them.
        guidance_share: Share of them that must have come to nothing.
        soon_days: A memory that is replaced within so many days was replaced soon.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    enabled: bool = True
    profile_lines: int = Field(default=40, ge=5, le=200)
    profile_bytes: int = Field(default=8 * 1024, ge=512, le=64 * 1024)
    profile_memories: int = Field(default=200, ge=10, le=1000)
    profile_reads: int = Field(default=50, ge=5, le=1000)
    topics: int = Field(default=50, ge=1, le=500)
    topic_members: int = Field(default=3, ge=2, le=50)
    box_overlap: float = Field(default=0.35, ge=0, le=1)
    box_idle_minutes: float = Field(default=30.0, gt=0)
    box_turns: int = Field(default=50, ge=1, le=500)
    box_smoothing: float = Field(default=1.5, ge=0, le=20)
    guidance_evidence: int = Field(default=10, ge=1)
    guidance_share: float = Field(default=0.5, ge=0, le=1)
    soon_days: float = Field(default=7.0, gt=0)


# --- what counts how much when memories are put in order; plain numbers, and why they are such


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
