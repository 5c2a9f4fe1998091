"""Why a plan does what it does: as a code for counting, and in words for people."""

from __future__ import annotations

from engram.domain.memories import MemoryKind, SemanticMemory
from engram.domain.plan import Action, Reason, StoreEpisode, StoreNote, eligibility_of
from engram.domain.slots import is_functional


def storing(memory: SemanticMemory, contents: dict[str, str]) -> Action:
    """Storing a memory: what happened is an episode, what holds is a note."""
    kind = StoreEpisode if memory.kind is MemoryKind.EPISODE else StoreNote
    reason = Reason.HOLDS_AGAIN if memory.generation else Reason.NEW
    return kind(
        why=_why_new(memory, contents),
        reason=reason,
        eligibility=eligibility_of(memory),
        memory=memory,
    )


def why_changed(
    before: SemanticMemory, after: SemanticMemory, contents: dict[str, str]
) -> tuple[Reason, str]:
    """What an update that makes one of the other is for."""
    if after.superseded_by is not None and after.superseded_by != before.superseded_by:
        why = f"replaced by what began to hold then: {contents[after.superseded_by]}"[:500]
        return Reason.REPLACED, why
    if after.superseded_by is None and before.superseded_by is not None:
        return Reason.REINSTATED, "holds after all, by everything that was said"
    if set(after.disputed_with) - set(before.disputed_with):
        return Reason.DISPUTED, "another value was told of the same moment, and nothing orders them"
    if after.disputed_with != before.disputed_with:
        return Reason.SETTLED, "a later telling says which value holds"
    if len(after.tellings) > len(before.tellings):
        return Reason.SAID_AGAIN, "said again"
    return Reason.PLACED, "its place in the history became known"


def _why_new(memory: SemanticMemory, contents: dict[str, str]) -> str:
    if memory.superseded_by is not None:
        return f"history already, replaced by: {contents[memory.superseded_by]}"[:500]
    if memory.supersedes and memory.supersedes[-1] in contents:
        return f"replaces what held before: {contents[memory.supersedes[-1]]}"[:500]
    if memory.generation:
        return "holds again after it had been replaced"
    if memory.slot is None:
        return "not known before"
    kind = "one value at a time" if is_functional(memory.slot) else "not known before"
    return f"{memory.slot.subject}, {memory.slot.predicate}: {kind}"[:500]
