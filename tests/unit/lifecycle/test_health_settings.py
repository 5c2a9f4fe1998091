"""Each setting of health decides where something begins to be unhealthy."""

from __future__ import annotations

from typing import Any

import pytest

from engram.domain.memories import AnyMemory, Link, LinkKind, MemoryStatus
from engram.domain.rules import HealthRules
from engram.lifecycle.audit import Ailment, Census
from engram.lifecycle.decisions import Rulebook
from tests.support.lifecycle_memories import T0, day, episode, rules, semantic

HABIT = "The user always drinks tea"
PROMOTED = (
    Link(target_id="h", kind=LinkKind.PROMOTED_TO, confidence=1.0, first_seen=T0, last_seen=T0),
)
_READY: dict[str, Any] = {"content": HABIT, "selectivity": 0.9, "consolidation_passes": 5}


def ailments(memories: list[AnyMemory], at: float, **given: Any) -> set[Ailment]:
    """What is not well on that day, under these settings."""
    census = Census(HealthRules(**given), Rulebook(rules(), "default"), day(at))
    for memory in memories:
        census.count(memory, orphan=False)
    return {one.ailment for one in census.diagnose()}


@pytest.mark.parametrize(
    ("memories", "at", "found", "setting", "lenient"),
    [
        (
            [semantic(**_READY, links=PROMOTED)] * 9 + [episode()] * 1,
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
    setting: dict[str, float],
    lenient: dict[str, float],
) -> None:
    """The same memories are unhealthy on one side of the bound, and well on the other."""
    assert found in ailments(memories, at, **setting)
    assert found not in ailments(memories, at, **lenient)
    assert set(HealthRules.model_fields) == {
        *("promoted_share", "settled_days", "young_days", "young_left_share", "enough")
    }
