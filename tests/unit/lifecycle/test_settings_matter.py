"""Each lifecycle setting changes what is decided or computed; none is only a word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from engram.consolidation.amendments import survived
from engram.domain.memories import AnyMemory, Link, Resolution, Together
from engram.domain.plan import Survival
from engram.domain.rules import LifecycleRules, LifecycleSettings
from engram.lifecycle.accesses import Recalls, accessed
from engram.lifecycle.decisions import Rulebook, end_session, settle
from engram.lifecycle.links import edge_confidence, reinforced, reinforces
from engram.lifecycle.policies import placement_value, policy_for, quality, tier_of
from engram.lifecycle.promotion import promotable
from engram.settings import Settings
from tests.support.lifecycle_memories import (
    T0,
    day,
    episode,
    fact,
    habit,
    negation,
    recalled,
    rules,
    semantic,
)

Probe = Callable[[LifecycleRules], object]
ENERGETIC = {"decay_policy": "energy"}
ALL_ON = {"archival": {"enabled": True}, "placement": {"enabled": True}}
KINDS: dict[str, AnyMemory] = {
    "episodic": episode(),
    "factual": fact(),
    "semantic": semantic(),
    "procedural": habit(),
    "negation": negation(),
}
EDGE = Link(target_id="x", confidence=0.5, first_seen=T0, last_seen=T0)
DEBRIS = semantic(confidence={"method": "inferred", "contradictions": 9}, importance=1.0)
DRINKS = semantic("The user drinks tea.")
COLD = semantic(placement="cold")


def review(memory: AnyMemory) -> Probe:
    """When a memory is looked at next."""
    return lambda under: Rulebook(under, "default").review_at(memory)


def fate(memory: AnyMemory, at: float) -> Probe:
    """What time does to a memory by that day."""
    return lambda under: [step.rule for step in settle(memory, day(at), under).transitions]


def leaves(memory: AnyMemory) -> Probe:
    """When a memory leaves under the decay policy."""
    return lambda under: policy_for(under, "default").leaves_at(memory)


def linked_after_two(under: LifecycleRules) -> object:
    """Whether two common recalls make a link."""
    together = (Together(memory_id="x", count=2),)
    recalls = Recalls(count=2, at=T0, instance_id="p", batch=1, together=together)
    return accessed(semantic(), recalls, under)


def ended(under: LifecycleRules) -> object:
    """What a session's end does to a fresh turn."""
    return [step.rule for step in end_session(episode(), T0, under).transitions]


def counted(under: LifecycleRules) -> object:
    """What surviving a linking pass adds."""
    return survived(semantic(), Survival(operation="p", step=under.promotion.selectivity_step))


CASES: list[tuple[str, object, Probe, dict[str, Any]]] = [
    ("decay_policy", "energy", lambda r: r.policy_name("default"), {}),
    ("energy_namespaces", ("default",), lambda r: r.policy_name("default"), {}),
    ("retention_namespaces", ("default",), lambda r: r.policy_name("default"), ENERGETIC),
    ("retention.base", 2.0, leaves(episode()), {}),
    ("retention.access_bonus", 0.5, leaves(recalled(episode(), T0)), {}),
    ("retention.archive_below", 0.1, leaves(episode()), {}),
    *((f"retention.{kind}_days", 10.0, leaves(m), {}) for kind, m in KINDS.items()),
    ("energy.start", 2.0, leaves(episode()), ENERGETIC),
    ("energy.per_access", 2.0, lambda r: recalled(episode(), T0, under=r).vitals, ENERGETIC),
    ("energy.working_decay", 1.0, leaves(episode()), ENERGETIC),
    ("energy.short_term_decay", 1.0, leaves(episode(vitals={"tier": "short_term"})), ENERGETIC),
    ("energy.long_term_decay", 1.0, leaves(fact()), ENERGETIC),
    ("energy.to_short_term", 9.0, fate(recalled(episode(), T0), 0), ENERGETIC),
    ("energy.to_long_term", 9.0, fate(recalled(episode(), T0, 5), 0), ENERGETIC),
    ("energy.at_session_end", 0.5, ended, ENERGETIC),
    ("energy.expire_below", 0.5, leaves(episode()), ENERGETIC),
    ("energy.episode_tier", "long_term", lambda r: tier_of(episode(), r), ENERGETIC),
    ("energy.conclusion_tier", "working", lambda r: tier_of(fact(), r), ENERGETIC),
    *((f"time_to_live.{kind}_days", 3.0, review(m), {}) for kind, m in KINDS.items()),
    ("expiry.speculative_below", 0.95, fate(semantic(), 31), {}),
    ("expiry.speculative_days", 40.0, fate(semantic(confidence={"extraction": 0.2}), 31), {}),
    (
        "expiry.commitment_days",
        9.0,
        fate(semantic(category="commitment", resolved_at=T0, resolution=Resolution.FULFILLED), 10),
        {},
    ),
    ("expiry.demote_below", 0.6, fate(DEBRIS, 100), {}),
    ("expiry.demote_days", 200.0, fate(DEBRIS, 150), {"expiry": {"demote_below": 0.6}}),
    ("expiry.erase_after_days", 5.0, fate(fact(status="archived", archived_at=T0), 6), {}),
    ("archival.enabled", True, fate(fact(importance=0.2), 91), {}),
    ("archival.age_days", 99.0, fate(fact(importance=0.2), 91), ALL_ON),
    ("archival.importance_below", 0.1, fate(fact(importance=0.2), 91), ALL_ON),
    ("archival.most_accesses", 0, fate(fact(importance=0.2, access_count=1), 91), ALL_ON),
    ("archival.protected_categories", ("fact",), fate(semantic(importance=0.2), 91), ALL_ON),
    *(
        (f"value.{kind}_weight", 0.1, lambda r, m=m: quality(m, T0, r), {})
        for kind, m in KINDS.items()
    ),
    ("value.half_life_days", 3.0, lambda r: quality(fact(), day(9), r), {}),
    ("value.stale_at", 0.9, review(episode()), {}),
    ("placement.enabled", True, fate(fact(), 100), {}),
    ("placement.cold_after_days", 300.0, fate(fact(), 100), ALL_ON),
    ("placement.cold_at", 0.001, fate(fact(), 100), ALL_ON),
    ("placement.hot_at", 0.9, fate(COLD, 0), ALL_ON),
    (
        "placement.disputed_factor",
        0.1,
        lambda r: placement_value(semantic(disputed_with=("x",)), T0, r),
        {},
    ),
    ("placement.correction_bonus", 0.5, lambda r: placement_value(negation(), T0, r), {}),
    (
        "placement.confirmed_bonus",
        0.5,
        lambda r: placement_value(fact(confidence={"verification": "user_confirmed"}), T0, r),
        {},
    ),
    ("promotion.selectivity", 0.1, lambda r: promotable(semantic(), T0, r), {}),
    ("promotion.passes", 1, lambda r: promotable(semantic(), T0, r), {}),
    ("promotion.confidence", 0.99, lambda r: promotable(semantic(), T0, r), {}),
    ("edges.reinforcement", 0.3, lambda r: reinforced(EDGE, day(1), r.edges), {}),
    ("edges.grace_days", 90.0, lambda r: edge_confidence(EDGE, day(100), r.edges), {}),
    ("edges.window_days", 10.0, lambda r: edge_confidence(EDGE, day(70), r.edges), {}),
    ("edges.per_window", 0.1, lambda r: edge_confidence(EDGE, day(70), r.edges), {}),
    ("edges.floor", 0.3, lambda r: edge_confidence(EDGE, day(9000), r.edges), {}),
    ("edges.coactivations", 2, linked_after_two, {}),
    (
        "edges.similarity",
        0.5,
        lambda r: reinforces(semantic(), semantic("The user drinks tea."), 0.6, r.edges),
        {},
    ),
    ("promotion.selectivity_step", 0.3, counted, {}),
]


OF_RECALL = {"edges.follow_from", "edges.rounds"}
"""What these change is shown where links are followed, in ``tests/unit/recall/test_stages.py``."""


def with_setting(name: str, value: object, others: dict[str, Any]) -> LifecycleRules:
    """The rules with one setting changed."""
    group, _, field = name.partition(".")
    if not field:
        return rules(**{**others, group: value})
    return rules(**{**others, group: {**others.get(group, {}), field: value}})


@pytest.mark.parametrize(
    ("name", "value", "probe", "others"),
    CASES,
    ids=[f"{number}-{case[0]}" for number, case in enumerate(CASES)],
)
def test_each_setting_changes_something(
    name: str, value: object, probe: Probe, others: dict[str, Any]
) -> None:
    """With the setting changed, and nothing else, another number or decision comes out."""
    assert probe(with_setting(name, value, others)) != probe(rules(**others)), name


def test_every_setting_is_tried() -> None:
    """No lifecycle setting is missing above."""
    names: set[str] = set()
    for group, field in LifecycleSettings.model_fields.items():
        inner = field.annotation
        nested = isinstance(inner, type) and issubclass(inner, BaseModel)
        names |= {f"{group}.{n}" for n in inner.model_fields} if nested else {group}  # type: ignore[union-attr]  # a model class
    assert names == {name for name, *_ in CASES} | OF_RECALL


def test_rules_come_from_the_settings() -> None:
    """One value with every number, the confidence weights among them."""
    loaded = Settings.load(
        lifecycle={"retention": {"episodic_days": 5}}, confidence_weights={"decay_days": 9}
    )
    assert loaded.lifecycle_rules.retention.episodic_days == 5
    assert loaded.lifecycle_rules.weights.decay_days == 9
    assert LifecycleRules.model_validate_json(loaded.lifecycle_rules.model_dump_json()) == (
        loaded.lifecycle_rules
    )
