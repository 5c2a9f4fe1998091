"""A session's buffer, and how due work is cut into bounded batches."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from pydantic import Field

from engram.domain.memories import Episode
from engram.domain.values import StoredValue

# --- a session's buffer: what is being talked about, what waits for extraction, and since when
#
# When a buffer is due, and working memory: volatile, bounded, and gone
# when the session is.


class Signal(StrEnum):
    """How urgently a turn wants to be consolidated."""

    NONE = "none"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"

    @property
    def rank(self) -> int:
        """0 for NONE to 3 for HIGH."""
        return list(Signal).index(self)


class RememberedTurn(StoredValue):
    """A turn in working memory.

    Attributes:
        episode_id: As what it is stored.
        role: Of whoever said it.
        speaker: Who that was, where it is known.
        content: Its words.
        timestamp: When it was said.
        is_test: Whether it is there for a trial.
        expires_at: From when on it is no longer held in mind; None for as long as the session.
    """

    episode_id: str
    role: str
    speaker: str | None = None
    content: str
    timestamp: datetime
    is_test: bool = False
    expires_at: datetime | None = None

    def has_expired(self, now: datetime) -> bool:
        """Whether it is over by now."""
        return self.expires_at is not None and self.expires_at <= now


class BufferPolicy(StoredValue):
    """When a buffer is full, overdue or idle, and how much working memory holds."""

    turns: int = Field(default=10, ge=1)
    time: timedelta = Field(default=timedelta(minutes=5), gt=timedelta(0))
    idle_time: timedelta = Field(default=timedelta(minutes=30), gt=timedelta(0))
    working_memory_turns: int = Field(default=50, ge=1, le=500)
    working_memory_bytes: int = Field(default=256 * 1024, ge=1, le=256 * 1024)


class Buffer(StoredValue):
    """What a session holds in mind.

    Attributes:
        working_memory: The recent turns, oldest first.
        waiting: Turns that no extraction was asked for yet.
        waiting_since: When the first of them came.
        touched_at: When the session last did something.
        due: Why extraction is to be asked for now; None when it is not.
        closed: Whether consolidation was asked for since the last turn, at the
            session's end.
    """

    working_memory: tuple[RememberedTurn, ...] = ()
    waiting: int = 0
    waiting_since: datetime | None = None
    touched_at: datetime | None = None
    due: str | None = None
    closed: bool = True

    def touched(self, now: datetime) -> Buffer:
        """The session did something; what has expired leaves working memory."""
        held = tuple(turn for turn in self.working_memory if not turn.has_expired(now))
        return self.model_copy(update={"touched_at": now, "working_memory": held})

    def absorbed(
        self,
        turns: Sequence[RememberedTurn],
        strongest: Signal,
        *,
        now: datetime,
        policy: BufferPolicy,
    ) -> Buffer:
        """The buffer with these turns in it; due if one is urgent or it is full.

        Turns that are in working memory already (sent again) change nothing. Test
        turns wait for no extraction, because passes take them only when asked to.

        Args:
            turns: What was said.
            strongest: The strongest signal of those that count.
            now: The present.
            policy: When the buffer is full, and how much it holds in mind.
        """
        known = {turn.episode_id for turn in self.working_memory}
        fresh = {turn.episode_id: turn for turn in turns if turn.episode_id not in known}
        if not fresh:
            return self.touched(now)
        touched = self.touched(now)
        held = _bounded((*touched.working_memory, *fresh.values()), policy)
        mindful = touched.model_copy(update={"working_memory": held})
        counting = sum(not turn.is_test for turn in fresh.values())
        if not counting:
            return mindful
        grown = mindful.model_copy(
            update={
                "waiting": self.waiting + counting,
                "waiting_since": self.waiting_since or now,
                "closed": False,
            }
        )
        if strongest is Signal.HIGH:
            return grown.drained("an urgent turn")
        if grown.waiting >= policy.turns:
            return grown.drained(f"{grown.waiting} turns wait")
        return grown

    def without(self, episode_ids: Collection[str]) -> Buffer:
        """The buffer without turns that are forgotten. What waits is only a count, and stays."""
        kept = tuple(t for t in self.working_memory if t.episode_id not in episode_ids)
        return self.model_copy(update={"working_memory": kept})

    def drained(self, reason: str) -> Buffer:
        """Nothing waits any more; extraction is due if something did."""
        if not self.waiting:
            return self
        return self.model_copy(update={"waiting": 0, "waiting_since": None, "due": reason})

    def closing(self, reason: str) -> Buffer:
        """The session ends: consolidation is due once more, whatever waits."""
        if self.closed:
            return self
        return self.model_copy(
            update={"waiting": 0, "waiting_since": None, "due": reason, "closed": True}
        )

    def dispatched(self) -> Buffer:
        """Extraction was asked for."""
        return self.model_copy(update={"due": None})

    def overdue(self, now: datetime, policy: BufferPolicy) -> bool:
        """Whether something has waited for long enough."""
        return self.waiting_since is not None and now >= self.waiting_since + policy.time

    def idle(self, now: datetime, policy: BufferPolicy) -> bool:
        """Whether nothing happened for so long that the session is over."""
        return self.touched_at is not None and now >= self.touched_at + policy.idle_time

    def deadline(self, policy: BufferPolicy) -> datetime | None:
        """The earliest moment at which waiting or idling ends; None before anything happened."""
        ends = []
        if self.waiting_since is not None:
            ends.append(self.waiting_since + policy.time)
        if self.touched_at is not None:
            ends.append(self.touched_at + policy.idle_time)
        return min(ends, default=None)


def _bounded(turns: tuple[RememberedTurn, ...], policy: BufferPolicy) -> tuple[RememberedTurn, ...]:
    """The latest turns within both bounds; test turns take no place of others."""
    kept = {
        turn.episode_id
        for is_test in (False, True)
        for turn in _latest([turn for turn in turns if turn.is_test is is_test], policy)
    }
    return tuple(turn for turn in turns if turn.episode_id in kept)


def _latest(turns: Sequence[RememberedTurn], policy: BufferPolicy) -> list[RememberedTurn]:
    """The latest turns within both bounds; at least the very last one."""
    kept: list[RememberedTurn] = []
    size = 0
    for turn in reversed(turns[-policy.working_memory_turns :]):
        size += len(turn.content.encode())
        if kept and size > policy.working_memory_bytes:
            break
        kept.append(turn)
    return kept


# --- cutting work into bounded pieces: due episodes by session, in order; ids by number


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
