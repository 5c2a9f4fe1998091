"""What the user, an operator or a further turn does to a memory's life: memory to memory."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from engram.domain.confidence import Verification
from engram.domain.lifecycle.decisions import Transition, rulebook
from engram.domain.lifecycle.rules import LifecycleRules
from engram.domain.lifecycle.states import PolicyClass
from engram.domain.lifecycle.table import Event
from engram.domain.memories import (
    AnyMemory,
    Category,
    DerivedMemory,
    Episode,
    Resolution,
    SemanticMemory,
)
from engram.errors import InvalidInput

D = TypeVar("D", bound=DerivedMemory)
# The row of being told again does not depend on any number.
_ANY_RULES = LifecycleRules()


@dataclass(frozen=True, slots=True)
class Changed:
    """A memory as an action leaves it, and the steps of its life in that."""

    memory: AnyMemory
    transitions: tuple[Transition, ...] = ()


def confirm(memory: AnyMemory, now: datetime, rules: LifecycleRules) -> Changed:
    """The user says that it is so: it is validated, and comes back if it had left.

    Raises:
        InvalidInput: it is a turn, which was said whatever one thinks of it.
    """
    derived = _derived(memory, "confirmed")
    fired = rulebook(rules, memory.namespace).fire(memory, Event.CONFIRMED, now)
    confidence = derived.confidence.model_copy(
        update={
            "verification": Verification.USER_CONFIRMED,
            "last_confirmed": max(derived.confidence.last_confirmed, now),
        }
    )
    changes: dict[str, Any] = {"confidence": confidence}
    if isinstance(memory, SemanticMemory):
        changes["disputed_with"] = ()
    return _changed(fired.memory or memory, changes, fired.transitions)


def dispute(memory: AnyMemory, now: datetime, rules: LifecycleRules) -> Changed:
    """The user says that it is not so: it counts for less, and stays readable.

    Raises:
        InvalidInput: it is a turn, which was said whatever one thinks of it.
    """
    derived = _derived(memory, "disputed")
    fired = rulebook(rules, memory.namespace).fire(memory, Event.DISPUTED, now)
    confidence = derived.confidence.model_copy(update={"verification": Verification.DISPUTED})
    return _changed(fired.memory or memory, {"confidence": confidence}, fired.transitions)


def protect(memory: AnyMemory, now: datetime, rules: LifecycleRules) -> Changed:
    """No rule may take it away any more; it comes back if one had. New knowledge still replaces it.

    Its own expiry date is dropped, for that would end it all the same.
    """
    fired = rulebook(rules, memory.namespace).fire(memory, Event.PROTECTED, now)
    changes = {"policy_class": PolicyClass.PROTECTED, "expires_at": None}
    return _changed(fired.memory or memory, changes, fired.transitions)


def unprotect(memory: AnyMemory, now: datetime, rules: LifecycleRules) -> Changed:
    """Rules apply to it again, from when it was last used."""
    fired = rulebook(rules, memory.namespace).fire(memory, Event.UNPROTECTED, now)
    return _changed(fired.memory or memory, {"policy_class": None}, fired.transitions)


def demote(memory: AnyMemory, now: datetime, rules: LifecycleRules) -> Changed:
    """Archive it by hand; nothing happens to what is protected or has left."""
    fired = rulebook(rules, memory.namespace).fire(memory, Event.DEMOTED, now)
    return Changed(fired.memory or memory, fired.transitions)


def force_promote(memory: AnyMemory, now: datetime, rules: LifecycleRules) -> Changed:
    """Lift it one tier by hand; nothing happens at the top."""
    fired = rulebook(rules, memory.namespace).fire(memory, Event.FORCED, now)
    return Changed(fired.memory or memory, fired.transitions)


def end_session(memory: AnyMemory, now: datetime, rules: LifecycleRules) -> Changed:
    """Its session ended: what is lively enough leaves the working tier."""
    fired = rulebook(rules, memory.namespace).fire(memory, Event.SESSION_ENDED, now)
    return Changed(fired.memory or memory, fired.transitions)


def resolve(memory: AnyMemory, how: Resolution, now: datetime) -> Changed:
    """A commitment ended. Saying it again changes nothing; saying otherwise does.

    Raises:
        InvalidInput: it is no commitment.
    """
    if not isinstance(memory, SemanticMemory) or memory.category is not Category.COMMITMENT:
        raise InvalidInput(
            "Only commitments can be resolved.",
            allowed="a semantic memory of the category commitment",
            details={"id": memory.id},
        )
    if memory.resolution is how and memory.resolved_at is not None:
        return Changed(memory)
    return Changed(memory.model_copy(update={"resolution": how, "resolved_at": now}))


def told_again(memory: D) -> D:
    """A further turn says the same: what had left comes back.

    Takes no clock and no rules, for whoever adds the source has neither.
    """
    book = rulebook(_ANY_RULES, "")
    fired = book.fire(memory, Event.TOLD_AGAIN, memory.created_at)  # type: ignore[arg-type]  # every derived memory is an AnyMemory
    return fired.memory or memory  # type: ignore[return-value]  # a copy of what was given


def _derived(memory: AnyMemory, what: str) -> DerivedMemory:
    if isinstance(memory, Episode):
        raise InvalidInput(
            f"A turn cannot be {what}: it was said.",
            allowed="a conclusion: factual, semantic, procedural or negation",
            hint="Use protect to keep a turn; or name a conclusion drawn from it.",
            details={"id": memory.id},
        )
    return memory


def _changed(
    memory: AnyMemory, changes: dict[str, Any], transitions: tuple[Transition, ...]
) -> Changed:
    return Changed(memory.model_copy(update=changes), transitions)
