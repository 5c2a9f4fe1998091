"""What a memory store gives to a prompt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from engram.errors import InvalidQuery
from engram.recall.context import block_of
from engram.recall.models import RecallHit

LEAST_TOKENS = 32
_MOST_HITS = 50
# A line has hardly fewer than so many tokens, so more hits than this never fit.
_TOKENS_OF_A_LINE = 15


async def context_of(
    recall: Callable[..., Awaitable[Sequence[RecallHit]]],
    query: str,
    tokens: object,
    options: Mapping[str, Any],
) -> str:
    """See :meth:`engram.MemoryStore.context`."""
    if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < LEAST_TOKENS:
        raise InvalidQuery(
            "The number of tokens is out of range.",
            allowed=f"a whole number from {LEAST_TOKENS} on",
        )
    asked = {
        "limit": min(_MOST_HITS, max(1, tokens // _TOKENS_OF_A_LINE)),
        "include_sources": True,
        **options,
    }
    return block_of(await recall(query, **asked), tokens=tokens)
