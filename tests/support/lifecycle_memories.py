"""Memories at every stage of life, short to write."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from engram.domain.confidence import Confidence, ExtractionMethod
from engram.domain.memories import (
    AnyMemory,
    Episode,
    Fact,
    FactCategory,
    NegationFact,
    ProceduralMemory,
    SemanticMemory,
)
from engram.domain.rules import LifecycleRules
from engram.lifecycle.accesses import Recalls, accessed

T0 = datetime(2026, 1, 1, 12, tzinfo=UTC)
RULES = LifecycleRules()


def day(number: float) -> datetime:
    """So many days after the start."""
    return T0 + timedelta(days=number)


def rules(**changes: Any) -> LifecycleRules:
    """The default rules with these fields changed; groups as dictionaries."""
    return LifecycleRules.model_validate(changes)


ENERGY = rules(decay_policy="energy")


def _id(name: str) -> str:
    return str(uuid5(NAMESPACE_URL, name))


def _common(name: str, more: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": _id(name),
        "namespace": "default",
        "user_id": "ada",
        "content": name,
        "known_at": T0,
        "created_at": T0,
        **more,
    }


def _derived(name: str, more: dict[str, Any]) -> dict[str, Any]:
    confidence = {
        "method": ExtractionMethod.EXTRACTED,
        "extraction": 0.9,
        "last_confirmed": T0,
        **more.pop("confidence", {}),
    }
    return {
        **_common(name, {}),
        "source_episode_ids": (_id("source"),),
        "event_at": T0,
        "derived_at": T0,
        "confidence": Confidence.model_validate(confidence),
        "identity": name,
        **more,
    }


def episode(name: str = "a turn", **more: Any) -> Episode:
    """A turn said at the start."""
    values = {"role": "user", "timestamp": T0, "message_id": name, "session_id": "s1"}
    return Episode.model_validate({**_common(name, {}), **values, **more})


def semantic(name: str = "The user prefers tea.", **more: Any) -> SemanticMemory:
    """A conclusion made at the start; ``confidence`` as changes to the usual one."""
    return SemanticMemory.model_validate(_derived(name, more))


def fact(**more: Any) -> Fact:
    """An address found at the start."""
    values = {"category": FactCategory.EMAIL, "value": "a@b.org", "evidence": "a@b.org"}
    return Fact.model_validate({**_derived("email: a@b.org", more), **values, **more})


def negation(**more: Any) -> NegationFact:
    """A negation found at the start."""
    values = {"negates_pattern": "use mongodb", "evidence": "I don't use MongoDB"}
    return NegationFact.model_validate({**_derived("no mongodb", more), **values})


def habit(**more: Any) -> ProceduralMemory:
    """A habit."""
    return ProceduralMemory.model_validate(
        {**_derived("tea in the morning", more), "trigger_context": "in the morning"}
    )


def recalled(
    memory: AnyMemory,
    now: datetime,
    count: int = 1,
    under: LifecycleRules = RULES,
    *,
    batch: int | None = None,
    instance_id: str = "process",
) -> AnyMemory:
    """``memory`` after being recalled so often at ``now``."""
    number = memory.access_count + 1 if batch is None else batch
    recalls = Recalls(count=count, at=now, instance_id=instance_id, batch=number)
    after = accessed(memory, recalls, under)
    assert after is not None
    return after
