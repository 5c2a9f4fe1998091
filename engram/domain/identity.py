"""Ids derived from what a memory is, so that doing a thing twice is doing it once."""

from __future__ import annotations

import json
from uuid import UUID, uuid5

from engram.domain.scope import Scope

# Fixed for ever: changing it would give every memory a new id.
_ENGRAM_IDS = UUID("6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11")


def _derive(*parts: str | int) -> str:
    # A JSON array keeps the parts apart whatever characters they hold.
    return str(uuid5(_ENGRAM_IDS, json.dumps(parts, ensure_ascii=True, separators=(",", ":"))))


def episode_id(scope: Scope, session_id: str, message_id: str) -> str:
    """The id of the turn that an application calls ``message_id`` within a session."""
    return _derive("episode", scope.namespace, scope.user_id, session_id, message_id)


def derived_id(scope: Scope, memory_type: str, identity: str, generation: int) -> str:
    """The id of a conclusion.

    Args:
        scope: Whose memory.
        memory_type: factual, semantic, procedural or negation.
        identity: What makes two conclusions the same one: a content
            hash, or category and canonical value of a pattern fact.
        generation: 0 for the first, counting up when it returns after having
            been superseded (Paris, London, Paris again).
    """
    return _derive("derived", scope.namespace, scope.user_id, memory_type, identity, generation)


def apart(identity: str, *, is_test: bool) -> str:
    """``identity``, told apart for what test turns state.

    So a test memory and a real one of the same words never meet: neither hides,
    supports nor replaces the other. Those of real memories are as they always were.
    """
    return f"test:{identity}" if is_test else identity


def operation_id(*parts: str | int) -> str:
    """An id for one effect on one memory, so that the memory can tell a repeat from a new one."""
    return _derive("operation", *parts)
