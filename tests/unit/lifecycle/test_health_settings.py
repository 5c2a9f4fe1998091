"""Each setting of health decides where something begins to be unhealthy."""

from __future__ import annotations

from typing import Any

import pytest

from engram.domain.memories import AnyMemory, Link, LinkKind, MemoryStatus
from engram.domain.rules import HealthRules, LifecycleRules
from engram.lifecycle.checks import Ailment, Census
from engram.lifecycle.decisions import Rulebook
from engram.transfer.memories import migrated
from tests.support.lifecycle_memories import ENERGY, RULES, T0, day, episode, recalled, semantic

HABIT = "The user always drinks tea"
PROMOTED = (
    Link(target_id="h", kind=LinkKind.PROMOTED_TO, confidence=1.0, first_seen=T0, last_seen=T0),
)
_READY: dict[str, Any] = {"content": HABIT, "selectivity": 0.9, "consolidation_passes": 5}


def ailments(
    memories: list[AnyMemory], at: float, under: LifecycleRules = RULES, **given: Any
) -> set[Ailment]:
    """What is not well on that day, under these settings."""
    census = Census(HealthRules(**given), Rulebook(under, "default"), day(at))
    for memory in memories:
        census.count(memory, orphan=False)
    return {one.ailment for one in census.diagnose()}


@pytest.mark.parametrize(
    ("memories", "at", "found", "setting", "lenient"),
    [
        (
            [semantic(**_READY, links=PROMOTED)] * 9 + [semantic(), *[episode()] * 40],
            1,
            Ailment.EVERYTHING_PROMOTES,
            {"promoted_share": 0.8, "enough": 9},
            {"promoted_share": 0.95, "enough": 9},
        ),
        (
            [semantic(**_READY)],
            20,
            Ailment.NOTHING_PROMOTES,
            {"settled_days": 10},
            {"settled_days": 30},
        ),
        (
            [episode(status=MemoryStatus.ARCHIVED)] * 3 + [episode()] * 7,
            3,
            Ailment.EAGER_DECAY,
            {"young_left_share": 0.2, "enough": 5, "young_days": 7},
            {"young_left_share": 0.5, "enough": 5, "young_days": 7},
        ),
        (
            [episode(status=MemoryStatus.ARCHIVED)] * 3 + [episode()] * 7,
            3,
            Ailment.EAGER_DECAY,
            {"young_left_share": 0.2, "enough": 5, "young_days": 7},
            {"young_left_share": 0.2, "enough": 5, "young_days": 2},
        ),
        (
            [episode(status=MemoryStatus.ARCHIVED)] * 3 + [episode()] * 7,
            3,
            Ailment.EAGER_DECAY,
            {"young_left_share": 0.2, "enough": 5, "young_days": 7},
            {"young_left_share": 0.2, "enough": 50, "young_days": 7},
        ),
    ],
)
def test_each_setting_moves_its_bound(
    memories: list[AnyMemory],
    at: float,
    found: Ailment,
    setting: dict[str, Any],
    lenient: dict[str, Any],
) -> None:
    """The same memories are unhealthy on one side of the bound, and well on the other."""
    assert found in ailments(memories, at, **setting)
    assert found not in ailments(memories, at, **lenient)
    assert set(HealthRules.model_fields) == {
        *("promoted_share", "settled_days", "young_days", "young_left_share", "enough")
    }


@pytest.mark.parametrize(
    "refused",
    [
        {"disputed_with": ("x",)},
        {"category": "commitment"},
        {"vitals": {"promotion_attempts": 1, "refused_at": T0}},
    ],
)
def test_what_promotion_refuses_does_not_wait_for_it(refused: dict[str, Any]) -> None:
    """Nothing is stuck that would not be promoted if passes ran."""
    assert ailments([semantic(**_READY)], 40) == {Ailment.NOTHING_PROMOTES}
    assert ailments([semantic(**{**_READY, **refused})], 40) == set()


def test_energy_finds_no_fault_with_what_it_is_meant_for() -> None:
    """Turns that nobody recalled leave within hours; what was imported never had to rise."""
    ordinary: list[AnyMemory] = [episode(status=MemoryStatus.EXPIRED)] * 25
    imported: list[AnyMemory] = [migrated(episode(), T0)] * 25
    used: list[AnyMemory] = [recalled(semantic(), day(1), under=ENERGY)] * 25
    assert ailments([*ordinary, *imported, *used], 1, ENERGY) == set()
    lifted = episode(status=MemoryStatus.EXPIRED, vitals={"tier": "short_term"})
    assert ailments([lifted] * 25, 1, ENERGY) == {Ailment.EAGER_DECAY}
    working = recalled(episode(), day(1), under=ENERGY)
    assert ailments([working] * 25, 1, ENERGY) == {Ailment.NOTHING_PROMOTES}
    risen = episode(access_count=1, vitals={"tier": "long_term", "promotion_attempts": 2})
    assert ailments([risen] * 25, 1, ENERGY) == {Ailment.EVERYTHING_PROMOTES}
