"""Cutting work into bounded pieces: due episodes by session, in order; ids by number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from engram.domain.memories import Episode


def batches(
    episodes: Iterable[Episode], *, max_turns: int, max_bytes: int
) -> list[tuple[Episode, ...]]:
    """Episodes in batches of one session each, sessions in order of their first episode.

    Args:
        episodes: Oldest first.
        max_turns: Episodes in a batch at most.
        max_bytes: UTF-8 bytes of content in a batch at most; a single episode
            that is larger is a batch of its own.
    """
    sessions: dict[tuple[str | None, bool], list[Episode]] = {}
    for episode in episodes:
        # Test turns are read apart, or one statement could rest on both.
        sessions.setdefault((episode.session_id, episode.is_test), []).append(episode)
    return [
        batch
        for members in sessions.values()
        for batch in _cut(
            sorted(members, key=lambda e: (e.timestamp, e.sequence, e.id)), max_turns, max_bytes
        )
    ]


def portions(ids: tuple[str, ...], size: int) -> tuple[tuple[str, ...], ...]:
    """The ids in order, so many at a time; none of none."""
    return tuple(ids[start : start + size] for start in range(0, len(ids), size))


def _cut(
    episodes: Sequence[Episode], max_turns: int, max_bytes: int
) -> Iterator[tuple[Episode, ...]]:
    batch: list[Episode] = []
    size = 0
    for episode in episodes:
        weight = len(episode.content.encode())
        if batch and (len(batch) >= max_turns or size + weight > max_bytes):
            yield tuple(batch)
            batch, size = [], 0
        batch.append(episode)
        size += weight
    if batch:
        yield tuple(batch)
