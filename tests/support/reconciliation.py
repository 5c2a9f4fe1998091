"""A memory without a store: statements in, what is known out, for tests of the pure rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from engram.consolidation.amendments import amended, retired
from engram.consolidation.keep import Circumstances
from engram.consolidation.reconcile import reconcile
from engram.domain.identity import episode_id
from engram.domain.memories import Episode, Provenance, SemanticMemory
from engram.domain.plan import ConsolidationPlan, Statement
from engram.domain.scope import Scope

SCOPE = Scope.of("default", "ada")
START = datetime(2024, 1, 1, 12, tzinfo=UTC)
NOW = datetime(2026, 3, 11, tzinfo=UTC)


def on(days: int) -> datetime:
    """So many days after the start."""
    return START + timedelta(days=days)


def said(days: int, name: str = "") -> Episode:
    """A turn said on that day."""
    message = f"{days}{name}"
    return Episode(
        id=episode_id(SCOPE, "s1", message),
        namespace=SCOPE.namespace,
        user_id=SCOPE.user_id,
        content=f"turn {message}",
        known_at=on(days),
        created_at=on(days),
        session_id="s1",
        role="user",
        timestamp=on(days),
        message_id=message,
    )


def stated(episode: Episode, predicate: str | None, what: str, **more: Any) -> Statement:
    """The user's statement in that turn."""
    ending = "" if more.get("holds", True) else "no longer "
    defaults: dict[str, Any] = {
        "content": f"The user {ending}{predicate} {what}.",
        "subject": "user",
        "confidence": 0.9,
        "episode_ids": (episode.id,),
    }
    return Statement(**{**defaults, "predicate": predicate, "object": what, **more})


@dataclass
class ReconciledKnowledge:
    """What is known, changed only by plans."""

    known: dict[str, SemanticMemory] = field(default_factory=dict)
    episodes: dict[str, Episode] = field(default_factory=dict)

    def hear(self, episode: Episode, *statements: Statement) -> ConsolidationPlan:
        """Reconcile what one turn states, and apply the plan."""
        self.episodes[episode.id] = episode
        return self.take(statements)

    def take(self, statements: Sequence[Statement]) -> ConsolidationPlan:
        """Reconcile statements, and apply the plan."""
        plan = reconcile(statements, self.known.values(), self.circumstances())
        self.apply(plan)
        return plan

    def circumstances(self) -> Circumstances:
        """For reconciling."""
        return Circumstances(
            scope=SCOPE,
            now=NOW,
            episodes=self.episodes,
            provenance=Provenance(model="rules"),
        )

    def apply(self, plan: ConsolidationPlan) -> None:
        """Do what a plan says, in the order in which it is done."""
        for memory in plan.new_memories():
            self.known.setdefault(memory.id, memory)
        for update in plan.amendments():
            before = self.known[update.memory_id]
            self.known[update.memory_id] = amended(before, update, self.episodes) or before
        for update in plan.retirements():
            assert update.supersession is not None
            before = self.known[update.memory_id]
            self.known[update.memory_id] = retired(before, update.supersession) or before

    def current(self) -> set[str]:
        """The contents that hold."""
        return {m.content for m in self.known.values() if m.superseded_by is None}

    def of(self, what: str) -> list[SemanticMemory]:
        """Everything known under that object, by generation."""
        found = [m for m in self.known.values() if m.slot and m.slot.object == what]
        return sorted(found, key=lambda m: (m.generation, m.event_at))
