"""How a memory changes safely: revisions, write ids and remembered operations."""

from __future__ import annotations

from typing import TypeVar

from engram.domain.memories import Memory

# Old operation ids are dropped past this many. An operation is only ever retried
# within its activity's retry window, which is hours, never hundreds of changes.
REMEMBERED_OPERATIONS = 64

M = TypeVar("M", bound=Memory)


def next_revision(before: M, after: M, *, write_id: str) -> M:
    """``after`` as the successor of ``before``: one revision up, under a fresh ``write_id``."""
    return after.model_copy(update={"revision": before.revision + 1, "write_id": write_id})


def has_seen(memory: Memory, operation: str) -> bool:
    """Whether this operation has already had its effect on ``memory``."""
    return operation in memory.operation_ids


def remember(memory: M, operation: str) -> M:
    """``memory`` with ``operation`` noted, oldest forgotten first."""
    kept = (*memory.operation_ids, operation)[-REMEMBERED_OPERATIONS:]
    return memory.model_copy(update={"operation_ids": kept})
