"""The episodes that answers were concluded from."""

from __future__ import annotations

from collections.abc import Sequence

from engram.domain.memories import AnyMemory, DerivedMemory, Episode, MemoryType
from engram.ports import MemoryRepository
from engram.recall.search import Question


async def sources_of(
    repository: MemoryRepository, question: Question, memories: Sequence[AnyMemory]
) -> dict[str, tuple[Episode, ...]]:
    """Source episodes by memory id, in one read, each memory's in the order it names them.

    Archived and expired episodes are shown: they are the evidence, not answers.
    Under ``as_of``, an episode that came later is not shown.
    """
    derived = [memory for memory in memories if isinstance(memory, DerivedMemory)]
    wanted = {episode for memory in derived for episode in memory.source_episode_ids}
    if not wanted:
        return {}
    found = await repository.get(question.scope, sorted(wanted), (MemoryType.EPISODIC,))
    as_of = question.visibility.as_of
    return {
        memory.id: tuple(
            episode
            for episode_id in memory.source_episode_ids
            if isinstance(episode := found.get(episode_id), Episode)
            and (as_of is None or episode.known_at <= as_of)
        )
        for memory in derived
    }
