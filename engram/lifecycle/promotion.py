"""From knowledge to habit: which semantic memories become procedural ones."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from engram.domain.identity import derived_id
from engram.domain.memories import (
    Category,
    LifecycleState,
    LinkKind,
    MemoryForm,
    MemoryStatus,
    MemoryType,
    PolicyClass,
    ProceduralMemory,
    Provenance,
    SemanticMemory,
    Tier,
    Vitals,
)
from engram.domain.rules import LifecycleRules
from engram.lifecycle.decisions import told_again
from engram.lifecycle.links import Observed, linked
from engram.lifecycle.policies import is_disputed, policy_class, tier_of, told_at, trust

# Words that say that somebody does so as a rule, not once.
_HABIT: Final = re.compile(
    r"\b(?:always|usually|generally|normally|typically|habitually|routinely|regularly"
    r"|often|never|rarely|seldom|whenever|every (?:day|morning|afternoon|evening|night|week|month"
    r"|year|time|(?:mon|tues|wednes|thurs|fri|satur|sun)day)"
    r"|on (?:mon|tues|wednes|thurs|fri|satur|sun)days"
    r"|prefers?|likes? to|loves? to|hates? to|tends? to|makes? (?:it )?a habit of"
    r"|in the habit of|would rather|insists? on|avoids?)\b",
    re.IGNORECASE,
)
_TRIGGER: Final = re.compile(
    r"\b(?:when(?:ever)?|if|before|after|while|during|every|each time|at|on|in the|for)\b"
    r"\s+(?P<then>[^,.;]+)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Promotability:
    """Whether a semantic memory can become a habit, and what is missing.

    Attributes:
        missing: Conditions that do not hold, in words; empty if it can.
    """

    missing: tuple[str, ...]

    def __bool__(self) -> bool:
        """Whether nothing is missing."""
        return not self.missing


@dataclass(frozen=True, slots=True)
class Promotion:
    """A habit, and the knowledge it came from with the link to it.

    Written in this order: the habit is stored and read back, then the source changes.
    """

    habit: ProceduralMemory
    source: SemanticMemory


def is_habit(content: str) -> bool:
    """Whether a sentence tells a behavioural pattern: prefers, always, tends to ..."""
    return _HABIT.search(content) is not None


def promotable(
    memory: SemanticMemory, now: datetime, rules: LifecycleRules, *, forced: bool = False
) -> Promotability:
    """Whether ``memory`` can become a habit at ``now``.

    Args:
        memory: As it is stored.
        now: For the effective confidence.
        rules: The thresholds.
        forced: Only what would make no sense at all stands in the way.
    """
    wanted, score = rules.promotion, trust(memory, now, rules)
    state = {
        f"active (is {memory.status})": memory.status is MemoryStatus.ACTIVE,
        f"a statement (is a {memory.form})": memory.form is MemoryForm.STATEMENT,
        "not disputed": not is_disputed(memory),
        "not promoted already": not habits_of(memory),
    }
    earned = {
        "a behavioural pattern": is_habit(memory.content),
        f"selectivity {wanted.selectivity:g} (is {memory.selectivity:g})": memory.selectivity
        >= wanted.selectivity,
        f"{wanted.passes} passes (has {memory.consolidation_passes})": memory.consolidation_passes
        >= wanted.passes,
        f"confidence {wanted.confidence:g} (is {score:.2f})": score >= wanted.confidence,
        "not ephemeral": policy_class(memory, rules) is not PolicyClass.EPHEMERAL,
        "no commitment": memory.category is not Category.COMMITMENT,
        "not denied when it was looked at": not _was_denied(memory),
    }
    asked = state if forced else {**state, **earned}
    return Promotability(tuple(name for name, holds in asked.items() if not holds))


def _was_denied(memory: SemanticMemory) -> bool:
    # Only what tells no habit, which is said of itself, and what is denied are ever refused.
    refused = memory.vitals is not None and memory.vitals.refused_at is not None
    return refused and is_habit(memory.content)


def habits_of(memory: SemanticMemory) -> tuple[str, ...]:
    """The ids of the habits that a piece of knowledge became; none if it was not promoted."""
    kinds = {LinkKind.PROMOTED_TO, LinkKind.CRYSTALLIZED_INTO}
    return tuple(link.target_id for link in memory.links if link.kind in kinds)


def promoted(
    memory: SemanticMemory,
    now: datetime,
    rules: LifecycleRules,
    provenance: Provenance | None = None,
) -> Promotion:
    """The habit that ``memory`` becomes, and ``memory`` with a link to it.

    The habit's id follows from the knowledge, so promoting twice gives one habit.
    """
    kind = (
        LinkKind.CRYSTALLIZED_INTO
        if tier_of(memory, rules) is Tier.SHORT_TERM
        else LinkKind.PROMOTED_TO
    )
    habit_id = derived_id(memory.scope, MemoryType.PROCEDURAL, memory.identity, memory.generation)
    habit = ProceduralMemory(
        id=habit_id,
        namespace=memory.namespace,
        user_id=memory.user_id,
        content=memory.content,
        known_at=memory.known_at,
        created_at=now,
        session_id=memory.session_id,
        importance=memory.importance,
        tags=memory.tags,
        metadata=memory.metadata,
        expires_at=memory.expires_at,
        is_test=memory.is_test,
        provenance=provenance or memory.provenance,
        source_episode_ids=memory.source_episode_ids,
        event_at=memory.event_at,
        derived_at=now,
        confidence=memory.confidence,
        identity=memory.identity,
        generation=memory.generation,
        valid_from=memory.valid_from,
        trigger_context=trigger_context(memory),
        lifecycle=LifecycleState.VALIDATED,
        vitals=Vitals(promoted_from=memory.id, tier=Tier.LONG_TERM),
    )
    observed = Observed.between(memory, habit)
    linked_habit = linked(habit, memory.id, kind, 1.0, observed)
    vitals = memory.vitals or Vitals()
    noted = memory.model_copy(
        update={
            "vitals": vitals.model_copy(
                update={
                    "last_promotion": now,
                    "promotion_attempts": vitals.promotion_attempts + 1,
                }
            )
        }
    )
    # Always: by this link it is known that there is a habit already.
    source = linked(noted, habit_id, kind, 1.0, observed, past_the_bound=True) or noted
    assert isinstance(linked_habit, ProceduralMemory)  # noqa: S101 - for the type checker
    assert isinstance(source, SemanticMemory)  # noqa: S101 - same
    return Promotion(linked_habit, source)


def trigger_context(memory: SemanticMemory) -> str:
    """When a habit applies, in its own words: "when ...", "every ..."; else what it is about."""
    found = _TRIGGER.search(memory.content)
    if found is not None:
        return found.group(0).strip()
    if memory.slot is not None and memory.slot.object:
        return memory.slot.object
    return ", ".join(memory.entities) or memory.content


def circumstances_of(habit: ProceduralMemory) -> str | None:
    """The circumstances that a habit is bound to; None for one that is so at all times."""
    found = _TRIGGER.match(habit.trigger_context)
    return None if found is None else found["then"]


# What a habit has of its source for as long as both exist. By the sources it is forgotten.
_OF_ITS_SOURCE: Final[tuple[str, ...]] = (
    "source_episode_ids",
    "folded_sources",
    "occasions",
    "confidence",
    "known_at",
    "importance",
    "tags",
    "metadata",
)
_WHETHER_IT_HOLDS: Final = (
    "status",
    "superseded_by",
    "valid_to",
    "superseded_known_at",
    "refuted_at",
    "left_by",
)


def following(habit: ProceduralMemory, source: SemanticMemory) -> ProceduralMemory | None:
    """``habit`` as what its source says it is; None if nothing changes.

    It rests on the same turns, holds only as long, and is as true: where the source is refuted
    or replaced, so is the habit, and where that holds after all, the habit does. Time takes it
    later than its source; told again after that, it comes back. An end of its own the source
    gives it, unless it is protected, which drops any.
    """
    if habit.vitals is None or habit.vitals.promoted_from != source.id:
        return None
    ended, answers = source.status is MemoryStatus.SUPERSEDED, source.status is MemoryStatus.ACTIVE
    after, names = habit, _OF_ITS_SOURCE
    if ended or (answers and habit.status is MemoryStatus.SUPERSEDED):
        names = (*_OF_ITS_SOURCE, *_WHETHER_IT_HOLDS)
    elif answers and _is_told_since(source, habit.archived_at or habit.expired_at):
        after = told_again(habit)
    told = source.vitals.told_at if source.vitals is not None else None
    vitals = (after.vitals or Vitals()).model_copy(update={"told_at": told})
    if habit.policy_class is not PolicyClass.PROTECTED:
        names = (*names, "expires_at")
    said = {name: getattr(source, name) for name in names}
    after = after.model_copy(update={**said, "vitals": vitals})
    return after if after != habit else None


def _is_told_since(source: SemanticMemory, left_at: datetime | None) -> bool:
    return left_at is not None and told_at(source) >= left_at
