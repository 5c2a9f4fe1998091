"""The numbers that fading goes by, as one value that decisions take."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from engram.domain.confidence import ConfidenceWeights

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
