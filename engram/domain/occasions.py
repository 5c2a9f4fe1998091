"""How many sources of a conclusion are independent: one of each conversation and day.

Whoever says a thing eight times in one conversation knows it no better than after the first
time. All eight are sources; what counts for confidence are the occasions, and their number does
not hang on the order in which the sources arrive.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from engram.domain.memories import DerivedMemory, Episode, Telling

# Past this bound an occasion that counts twice changes the corroboration by less than 1e-3.
MOST_OCCASIONS: Final = 64
# Hexadecimal digits. Two of 64 occasions share one with a probability of 5e-7.
_LENGTH: Final = 8
FOLDED: Final = ""
"""Stands for the sources of an occasion that are no longer kept whole."""

Occasions: TypeAlias = Mapping[str, tuple[str, ...]]


def occasions_of(episodes: Iterable[Episode]) -> Occasions:
    """The episodes' ids by occasion: one conversation, on one day (UTC) of its own time."""
    return _grouped((_occasion(one.session_id, one.timestamp), one.id) for one in episodes)


def occasions_told(tellings: Iterable[Telling]) -> Occasions:
    """The same from tellings, where the episodes are not at hand.

    Of one that does not say in which conversation, each episode counts by itself.
    """
    return _grouped(
        (_occasion(one.session_id, one.known_at) if one.session_id else source, source)
        for one in tellings
        for source in one.episode_ids
    )


def occasions_among(occasions: Occasions, sources: Iterable[str]) -> Occasions:
    """The occasions of these sources; a source whose occasion was never noted is its own."""
    known = {source: key for key, group in occasions.items() for source in group}
    return _grouped((known.get(source, source), source) for source in sources)


def with_occasions(memory: DerivedMemory, fresh: Occasions) -> dict[str, Any]:
    """What changes with further sources: ``occasions``, and the ``supporting_episodes``.

    Args:
        memory: Has none of these sources yet.
        fresh: They, by occasion.
    """
    before = memory.occasions
    return {
        "occasions": _grouped(
            (key, one) for some in (before, fresh) for key, group in some.items() for one in group
        ),
        "supporting_episodes": memory.confidence.supporting_episodes
        + len(fresh.keys() - before.keys()),
    }


def without_occasions(memory: DerivedMemory, gone: Collection[str]) -> dict[str, Any]:
    """What changes without these of its sources; an occasion goes with the last of its own.

    ``FOLDED`` among them stands for all that are not kept whole.
    """
    lost = {source for source in (*memory.source_episode_ids, FOLDED) if source in gone}
    noted = {source for group in memory.occasions.values() for source in group}
    left = {
        key: kept
        for key, group in memory.occasions.items()
        if (kept := tuple(source for source in group if source not in lost))
    }
    ended = len(memory.occasions) - len(left) + len(lost - noted - {FOLDED})
    return {
        "occasions": left,
        "supporting_episodes": max(memory.confidence.supporting_episodes - ended, 1),
    }


def folded_occasions(occasions: Occasions, between: Collection[str]) -> Occasions:
    """The occasions when these of their sources are no longer kept whole; bounded."""
    marked = _grouped(
        (key, FOLDED if source in between else source)
        for key, group in occasions.items()
        for source in group
    )
    bare = [key for key, group in marked.items() if group == (FOLDED,)]
    surplus = frozenset(bare[: max(len(marked) - MOST_OCCASIONS, 0)])
    return {key: group for key, group in marked.items() if key not in surplus}


def _occasion(session_id: str | None, said_at: datetime) -> str:
    named = f"{said_at.astimezone(UTC).date()} {session_id or ''}"
    return hashlib.sha256(named.encode()).hexdigest()[:_LENGTH]


def _grouped(pairs: Iterable[tuple[str, str]]) -> Occasions:
    made: dict[str, set[str]] = {}
    for key, source in pairs:
        made.setdefault(key, set()).add(source)
    return {key: tuple(sorted(group)) for key, group in made.items()}
