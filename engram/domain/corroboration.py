"""A further episode says the same: what changes, and what does not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from engram.domain.lifecycle.actions import told_again
from engram.domain.memories import DerivedMemory, Episode
from engram.domain.sources import folded, has_source

D = TypeVar("D", bound=DerivedMemory)


def corroborated(memory: D, episodes: Iterable[Episode]) -> D | None:
    """``memory`` with these episodes among its sources; None if they all were already.

    Re-reading the same episode corroborates nothing. ``known_at`` never moves
    later, because the memory was known since its first source; an earlier source
    that arrives late (an import) moves it earlier. What time had taken comes back.
    """
    fresh = {e.id: e for e in episodes if not has_source(memory, e.id)}
    if not fresh:
        return None
    times = [episode.timestamp for episode in fresh.values()]
    sources = (*memory.source_episode_ids, *fresh)
    confidence = memory.confidence.model_copy(
        update={
            "supporting_episodes": memory.confidence.supporting_episodes + len(fresh),
            "last_confirmed": max(memory.confidence.last_confirmed, *times),
        }
    )
    back = told_again(memory)
    more = back.model_copy(
        update={
            "source_episode_ids": sources,
            "confidence": confidence,
            "known_at": min(memory.known_at, *times),
        }
    )
    return folded(more)
