"""Every tunable number that decisions take: lifecycle, digests, ranking, health."""

from __future__ import annotations

from typing import Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from engram.domain.confidence import ConfidenceWeights
from engram.domain.described import describe
from engram.domain.values import DAYS_TILL_NEVER, MOST_DAYS, MOST_MINUTES

MOST_PASSES: Final = 32
"""Linking passes that are counted of a memory whose selectivity is full."""


class _Rules(BaseModel):
    """Settings of one kind; the text at each field is what the user reads of it."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, json_schema_extra=describe
    )


# --- whether a user's memories live as they should: the four ways in which they may not


class HealthRules(_Rules):
    """From where on something is called unhealthy."""

    enough: int = Field(default=20, ge=1, le=1_000_000)
    """`engram health`: memories below which shares say nothing."""
    promoted_share: float = Field(default=0.8, gt=0, le=1)
    """Share of what could be promoted, above which everything is."""
    settled_days: float = Field(default=30.0, ge=0, le=MOST_DAYS)
    """Age from which something that is ready should have been promoted."""
    young_days: float = Field(default=14.0, gt=0, le=MOST_DAYS)
    """Age up to which memories should not leave."""
    young_left_share: float = Field(default=0.2, gt=0, le=1)
    """Share of young memories that may have left."""


# --- how long a dispute waits for a person, and what then

ReviewDefault = Literal["keep_newest", "keep_best_supported", "keep_both_disputed"]


class ReviewRules(_Rules):
    """What becomes of two values that nothing settles."""

    enabled: bool = True
    """Whether a workflow waits for a person to settle them. Off: they stay in dispute."""
    wait_days: float = Field(default=4.0, gt=0, le=3650)
    """Days after which nobody is waited for any more."""
    remind_days: float = Field(default=1.0, gt=0, le=3650)
    """Days between reminders; there are at most 100 of them."""
    default: ReviewDefault = "keep_newest"
    """What then holds: the value that is newest, the one that most turns say, or both, marked as
    disputed."""


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


class RetentionRules(_Rules):
    """score = base x exp(-days since use / constant) x (1 + bonus x accesses) x importance."""

    base: float = Field(default=1.0, gt=0, le=1_000_000)
    """Retention score of a fresh memory of importance 1."""
    access_bonus: float = Field(default=0.1, ge=0, le=1_000_000)
    """What each recall adds to the factor of the score."""
    archive_below: float = Field(default=0.05, ge=0, le=1)
    """Retention score below which a memory is archived."""
    episodic_days: float = Field(default=30.0, gt=0, le=DAYS_TILL_NEVER)
    """Days without use after which 36.8 % of the score of episodic memories remains."""
    factual_days: float = Field(default=180.0, gt=0, le=DAYS_TILL_NEVER)
    """Days without use after which 36.8 % of the score of factual memories remains."""
    semantic_days: float = Field(default=180.0, gt=0, le=DAYS_TILL_NEVER)
    """Days without use after which 36.8 % of the score of semantic memories remains."""
    procedural_days: float = Field(default=730.0, gt=0, le=DAYS_TILL_NEVER)
    """Days without use after which 36.8 % of the score of procedural memories remains."""
    negation_days: float = Field(default=180.0, gt=0, le=DAYS_TILL_NEVER)
    """Days without use after which 36.8 % of the score of negation memories remains."""


class EnergyRules(_Rules):
    """E falls by e^(-decay x hours) and rises by ``per_access`` with each recall."""

    start: float = Field(default=1.0, gt=0, le=1_000_000)
    """Energy of a new memory."""
    per_access: float = Field(default=1.0, gt=0, le=1_000_000)
    """What each recall, or confirmation, adds."""
    working_decay: float = Field(default=0.5, gt=0, le=1_000_000)
    """Decay per hour in the working tier."""
    short_term_decay: float = Field(default=0.05, gt=0, le=1_000_000)
    """Decay per hour in the short-term tier."""
    long_term_decay: float = Field(default=0.001, gt=0, le=1_000_000)
    """Decay per hour in the long-term tier."""
    to_short_term: float = Field(default=2.0, gt=0, le=1_000_000)
    """Energy that lifts a memory from the working to the short-term tier."""
    to_long_term: float = Field(default=5.0, gt=0, le=1_000_000)
    """Energy that lifts a memory from the short-term to the long-term tier."""
    at_session_end: float = Field(default=1.5, gt=0, le=1_000_000)
    """The first of these thresholds, when the session ends."""
    expire_below: float = Field(default=0.1, ge=0, le=1_000_000)
    """Energy below which a memory expires."""
    episode_tier: TierName = "working"
    """Tier in which turns begin."""
    conclusion_tier: TierName = "long_term"
    """Tier in which facts, knowledge, habits and negations begin."""


class TimeToLive(_Rules):
    """Days after which a memory of a type expires, since it was last told; 0 for never."""

    episodic_days: float = Field(default=0.0, ge=0, le=DAYS_TILL_NEVER)
    """Days after which episodic memories expire, since they were last told. 0: never."""
    factual_days: float = Field(default=0.0, ge=0, le=DAYS_TILL_NEVER)
    """Days after which factual memories expire, since they were last told. 0: never."""
    semantic_days: float = Field(default=0.0, ge=0, le=DAYS_TILL_NEVER)
    """Days after which semantic memories expire, since they were last told. 0: never."""
    procedural_days: float = Field(default=0.0, ge=0, le=DAYS_TILL_NEVER)
    """Days after which procedural memories expire, since they were last told. 0: never."""
    negation_days: float = Field(default=0.0, ge=0, le=DAYS_TILL_NEVER)
    """Days after which negation memories expire, since they were last told. 0: never."""


class ExpiryRules(_Rules):
    """When weak and finished knowledge leaves."""

    speculative_below: float = Field(default=0.40, ge=0, le=1)
    """Extraction confidence below which a conclusion is speculative."""
    speculative_days: float = Field(default=30.0, gt=0, le=DAYS_TILL_NEVER)
    """Days after which a speculative conclusion expires that nothing confirmed."""
    commitment_days: float = Field(default=90.0, ge=0, le=DAYS_TILL_NEVER)
    """Days after which a resolved commitment is archived."""
    demote_below: float = Field(default=0.35, ge=0, le=1)
    """Effective confidence below which an old, never recalled conclusion is archived."""
    demote_days: float = Field(default=90.0, ge=0, le=DAYS_TILL_NEVER)
    """How old it must be for that, in days."""
    erase_after_days: float = Field(default=0.0, ge=0, le=DAYS_TILL_NEVER)
    """Days after which what was archived, expired or superseded is **erased for good**; a turn
    not before the last that was concluded from it, a denial not before the last that it denies.
    0: never."""


class ArchivalRules(_Rules):
    """Archiving what is old, unimportant and hardly used; off unless asked for."""

    enabled: bool = False
    """Whether old, unimportant, hardly used knowledge is archived."""
    age_days: float = Field(default=90.0, ge=0, le=DAYS_TILL_NEVER)
    """How old it must be for that, in days."""
    importance_below: float = Field(default=0.3, ge=0, le=1)
    """How unimportant."""
    most_accesses: int = Field(default=2, ge=0, le=1_000_000)
    """How often it may have been recalled."""
    protected_categories: tuple[ProtectedCategory, ...] = (
        "commitment",
        "preference",
        "decision",
        "principle",
    )
    """Categories that this spares; corrections are always spared."""


class ValueRules(_Rules):
    """What a memory is worth keeping ready for."""

    episodic_weight: float = Field(default=0.6, ge=0, le=1)
    """Salience of episodic memories of importance 1."""
    factual_weight: float = Field(default=0.8, ge=0, le=1)
    """Salience of factual memories of importance 1."""
    semantic_weight: float = Field(default=0.9, ge=0, le=1)
    """Salience of semantic memories of importance 1."""
    procedural_weight: float = Field(default=1.0, ge=0, le=1)
    """Salience of procedural memories of importance 1."""
    negation_weight: float = Field(default=0.8, ge=0, le=1)
    """Salience of negation memories of importance 1."""
    half_life_days: float = Field(default=30.0, gt=0, le=DAYS_TILL_NEVER)
    """Days without use after which the recency part of quality halves."""
    stale_at: float = Field(default=0.5, gt=0, le=1)
    """Decay score from which a memory is stale."""


class PlacementRules(_Rules):
    """Hot and cold placement; off unless asked for."""

    enabled: bool = False
    """Whether memories move between hot and cold."""
    cold_after_days: float = Field(default=30.0, ge=0, le=DAYS_TILL_NEVER)
    """Age, in days, before which nothing becomes cold."""
    cold_at: float = Field(default=0.1, ge=0, le=1)
    """Placement value at which a memory becomes cold."""
    hot_at: float = Field(default=0.2, ge=0, le=1)
    """Placement value at which it becomes hot again; above the former."""
    disputed_factor: float = Field(default=0.5, ge=0, le=1)
    """What a dispute multiplies the placement value with."""
    correction_bonus: float = Field(default=0.1, ge=0, le=1)
    """What a correction gains in placement value."""
    confirmed_bonus: float = Field(default=0.1, ge=0, le=1)
    """What being confirmed by the user gains in placement value."""

    @model_validator(mode="after")
    def _apart(self) -> Self:
        if self.hot_at <= self.cold_at:
            raise ValueError("hot_at must lie above cold_at, or memories would move to and fro")
        return self


class PromotionRules(_Rules):
    """When knowledge becomes a habit."""

    selectivity: float = Field(default=0.5, ge=0, le=1)
    """Selectivity from which knowledge can become a habit."""
    passes: int = Field(default=2, ge=0, le=MOST_PASSES)
    """Linking passes it must have survived for that; more are not counted than can be asked for."""
    confidence: float = Field(default=0.7, ge=0, le=1)
    """Effective confidence it must have for that."""
    selectivity_step: float = Field(default=0.1, ge=0, le=1)
    """What surviving a linking pass adds to selectivity, and being pruned takes from it."""


class EdgeRules(_Rules):
    """How links weaken unless they are found again."""

    reinforcement: float = Field(default=0.1, ge=0, le=1)
    """What finding a link again adds to its confidence."""
    grace_days: float = Field(default=30.0, ge=0, le=DAYS_TILL_NEVER)
    """Days for which a link keeps its confidence."""
    window_days: float = Field(default=30.0, gt=0, le=DAYS_TILL_NEVER)
    """Then it loses a step each time so many days have passed."""
    per_window: float = Field(default=0.05, ge=0, le=1)
    """That step."""
    floor: float = Field(default=0.1, ge=0, le=1)
    """What its confidence never falls below."""
    coactivations: int = Field(default=3, ge=1, le=1_000_000)
    """Common recalls from which two memories are linked."""
    similarity: float = Field(default=0.7, ge=0, le=1)
    """Cosine similarity from which new knowledge reinforces old."""
    follow_from: float = Field(default=0.2, ge=0, le=1)
    """Confidence below which recall does not follow a link: weaker ones mostly lead astray."""
    rounds: int = Field(default=8, ge=0, le=100)
    """Rounds in the manner of PageRank that settle what links are worth to recall; 0: none, each
    link counts once."""


class LifecycleSettings(_Rules):
    """Everything about fading that can be set."""

    decay_policy: Literal["retention", "energy"] = "retention"
    """How memories fade: see [lifecycle](lifecycle.md)."""
    energy_namespaces: tuple[str, ...] = ()
    """Namespaces that go by energy whatever the default is."""
    retention_namespaces: tuple[str, ...] = ()
    """Namespaces that go by retention whatever the default is."""
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


class DigestPolicy(_Rules):
    """Fixed by whoever starts a consolidation, so that its passes agree."""

    model_config = ConfigDict(extra="ignore")

    enabled: bool = True
    """Whether passes end by rebuilding profiles, topics, boxes and guidance."""
    profile_lines: int = Field(default=40, ge=5, le=200)
    """Lines of a profile at most."""
    profile_bytes: int = Field(default=8 * 1024, ge=512, le=64 * 1024)
    """Past so many bytes, lesser lines of a profile are folded into summarising ones, until it
    fits."""
    profile_memories: int = Field(default=200, ge=10, le=1000)
    """Memories that one profile is composed from at most."""
    profile_reads: int = Field(default=50, ge=5, le=1000)
    """Memories that are read anew for one profile."""
    topics: int = Field(default=50, ge=1, le=500)
    """Topics that are kept at most."""
    topic_members: int = Field(default=3, ge=2, le=50)
    """Memories that make a topic."""
    box_overlap: float = Field(default=0.35, ge=0, le=1)
    """A box is sealed when the topic overlap with the next turn falls below."""
    box_idle_minutes: float = Field(default=30.0, gt=0, le=MOST_MINUTES)
    """A box is sealed when nothing came for so long."""
    box_turns: int = Field(default=50, ge=1, le=500)
    """Turns that a box holds at most."""
    box_smoothing: float = Field(default=1.5, ge=0, le=20)
    """Content words that a turn is taken to share with its box in any case, so that a short reply
    seals nothing."""
    guidance_evidence: int = Field(default=10, ge=1, le=1_000_000)
    """Memories of one kind before guidance is drawn from them."""
    guidance_share: float = Field(default=0.5, ge=0, le=1)
    """Share of them that must have come to nothing."""
    soon_days: float = Field(default=7.0, gt=0, le=MOST_DAYS)
    """A memory that is replaced within so many days was replaced soon."""


# --- what counts how much when memories are put in order; plain numbers, and why they are such


class RankingWeights(_Rules):
    """How much each part of a score counts, before their sum is brought to 0 to 1.

    Found by trying each part up and down over six kinds of conversations at once (two friends,
    a user and an assistant, a team, notes, preferences that are only implied, facts that
    change): a part stays where it helps more than it harms, by a paired bootstrap.
    ``python -m tests.benchmarks.recall_quality FILE... --parts`` measures it anew.
    """

    sparse: float = Field(default=3.8, ge=0, le=100)
    """Share of the score: words in common (BM25); half where a suggestion is wanted."""
    dense: float = Field(default=2.5, ge=0, le=100)
    """Share of the score: nearness in meaning; a fifth where the question names who speaks."""
    around: float = Field(default=5.0, ge=0, le=100)
    """Share of the score: how well the best of the same session match; not for suggestions."""
    subject: float = Field(default=2.4, ge=0, le=100)
    """Share of the score: the question names who speaks or is spoken of."""
    advice: float = Field(default=1.0, ge=0, le=100)
    """Share of the score: tells of whoever speaks, where a suggestion is wanted."""
    cue: float = Field(default=2.3, ge=0, le=100)
    """Share of the score: holds a time, number or name, as asked for, as few others do."""
    period: float = Field(default=2.2, ge=0, le=100)
    """Share of the score: from the time that the question names, or told soon after it."""
    asking: float = Field(default=1.9, ge=0, le=100)
    """Taken from the score of a turn that itself only asks, as few others do."""


class RankingFactors(_Rules):
    """What a score is multiplied with for what a memory is, whatever was asked."""

    validated: float = Field(default=1.05, ge=1, le=2)
    """Factor for what is confirmed or in use."""
    candidate: float = Field(default=0.97, gt=0, le=1)
    """Factor for what was concluded once and not used since, or is disputed."""
    stale: float = Field(default=0.85, gt=0, le=1)
    """Factor for what was unused for long, or has left the answers (`include_archived`)."""
    disputed: float = Field(default=0.8, gt=0, le=1)
    """Further factor for what was spoken against."""
    unsure: float = Field(default=0.85, gt=0, le=1)
    """Factor at confidence 0; in proportion above."""
    faded: float = Field(default=0.93, gt=0, le=1)
    """Factor for a turn that has wholly faded; in proportion before."""
    unimportant: float = Field(default=0.95, gt=0, le=1)
    """Factor at importance 0; 1 from 0.5 on."""
    cold: float = Field(default=0.9, gt=0, le=1)
    """Factor of what is kept cold, where placement is switched on."""
    elsewhere: float = Field(default=0.5, gt=0, le=1)
    """Factor for a habit of other circumstances than recall's `context`; in proportion to the words
    that they share."""
    outdated: float = Field(default=0.7, gt=0, le=1)
    """Factor for a turn all of whose conclusions were replaced."""
    negated: float = Field(default=0.7, gt=0, le=1)
    """Factor for a turn that a later negation speaks against."""
