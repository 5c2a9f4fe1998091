"""Links weaken at read time unless they are found again."""

from __future__ import annotations

import math
from datetime import datetime

from engram.domain.lifecycle.policies import days_between
from engram.domain.lifecycle.rules import EdgeRules
from engram.domain.memories import Link, LinkKind

# What happened stays so: these say how a memory came about.
_LASTING = frozenset({LinkKind.PROMOTED_TO, LinkKind.CRYSTALLIZED_INTO, LinkKind.BELONGS_TO})


def edge_confidence(link: Link, now: datetime, rules: EdgeRules | None = None) -> float:
    """How sure a link is at ``now``, 0 to 1; nothing stored changes.

    A step down for each whole window past the grace period since it was last
    found, never below the floor. A link that was weaker than the floor stays as
    weak. Links that say how a memory came about do not weaken.
    """
    rules = rules or EdgeRules()
    if link.kind in _LASTING:
        return link.confidence
    late = days_between(link.last_seen, now) - rules.grace_days
    if late <= 0:
        return link.confidence
    lost = rules.per_window * math.floor(late / rules.window_days)
    return max(link.confidence - lost, min(link.confidence, rules.floor))


def reinforced(link: Link, now: datetime, rules: EdgeRules | None = None) -> Link:
    """The link, found again at ``now``: surer by one step, at most 1, and stamped.

    Finding it twice at the same moment, as a repeated write does, counts once.
    """
    rules = rules or EdgeRules()
    if now <= link.last_seen:
        return link
    surer = min(edge_confidence(link, now, rules) + rules.reinforcement, 1.0)
    return link.model_copy(update={"confidence": surer, "last_seen": now})


def reinforces(similarity: float, rules: EdgeRules | None = None) -> bool:
    """Whether new knowledge is so like old that it strengthens it (from 0.7)."""
    return similarity >= (rules or EdgeRules()).similarity
