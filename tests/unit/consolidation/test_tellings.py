"""What tells a memory."""

from __future__ import annotations

from datetime import UTC, datetime

from engram.consolidation.amendments import tellings_of
from engram.domain.memories import Telling
from tests.support.lifecycle_memories import semantic

MARCH, JUNE = datetime(2024, 3, 1, tzinfo=UTC), datetime(2024, 6, 1, tzinfo=UTC)


def test_a_memory_whose_tellings_are_forgotten_says_itself_when_it_was_told() -> None:
    """What it gained from a duplicate without a slot is a source, and no telling of it."""
    own = Telling(event_at=MARCH, known_at=JUNE, episode_ids=("own",))
    memory = semantic(
        event_at=MARCH, known_at=JUNE, tellings=(own,), source_episode_ids=("own", "gained")
    )
    assert tellings_of(memory) == (own,)
    forgotten = memory.model_copy(update={"source_episode_ids": ("gained",)})
    assert tellings_of(forgotten) == (own.model_copy(update={"episode_ids": ("gained",)}),)
