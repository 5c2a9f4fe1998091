"""Which episodes say so: bounded, and yet each counts once.

A thing can be said a thousand times. Kept whole are the first sources and the
latest ones; of those between only a fingerprint remains, by which reading them
again is recognised. Past the last bound the oldest fingerprints go as well: by
then an episode counted twice would change the corroboration by less than 1e-90.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final, TypeVar

from engram.domain.memories import DerivedMemory, SemanticMemory, Telling

FIRST_KEPT: Final = 16
LATEST_KEPT: Final = 48
MOST_FINGERPRINTS: Final = 2048
# Hexadecimal digits. Two of 2,000 episodes share one with a probability of 5e-4.
_LENGTH: Final = 8

D = TypeVar("D", bound=DerivedMemory)


def has_source(memory: DerivedMemory, episode_id: str) -> bool:
    """Whether the episode is among all that ever confirmed the memory, as far as is known."""
    if episode_id in memory.source_episode_ids:
        return True
    return bool(memory.folded_sources) and _fingerprint(episode_id) in _fingerprints(memory)


def has_read(memory: DerivedMemory, episode_ids: Iterable[str]) -> bool:
    """Whether the memory rests on all these episodes already."""
    return all(has_source(memory, episode_id) for episode_id in episode_ids)


def folded(memory: D) -> D:
    """``memory`` with no more sources and tellings than are kept; the same if it has no more."""
    sources = memory.source_episode_ids
    if len(sources) <= FIRST_KEPT + LATEST_KEPT:
        return memory
    between = sources[FIRST_KEPT:-LATEST_KEPT]
    kept = (*sources[:FIRST_KEPT], *sources[-LATEST_KEPT:])
    prints = (*_fingerprints(memory), *map(_fingerprint, between))
    newest = tuple(dict.fromkeys(reversed(prints)))[:MOST_FINGERPRINTS][::-1]
    changes: dict[str, object] = {"source_episode_ids": kept, "folded_sources": "".join(newest)}
    if isinstance(memory, SemanticMemory):
        changes["tellings"] = _with_sources(memory.tellings, frozenset(kept))
    return memory.model_copy(update=changes)


def _with_sources(tellings: tuple[Telling, ...], kept: frozenset[str]) -> tuple[Telling, ...]:
    return tuple(one for one in tellings if not kept.isdisjoint(one.episode_ids))


def _fingerprints(memory: DerivedMemory) -> tuple[str, ...]:
    text = memory.folded_sources
    return tuple(text[start : start + _LENGTH] for start in range(0, len(text), _LENGTH))


def _fingerprint(episode_id: str) -> str:
    return hashlib.sha256(episode_id.encode()).hexdigest()[:_LENGTH]
