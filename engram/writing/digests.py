"""The digest stage: what is derived from memories follows what a pass touched."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from engram.domain.digests.guidelines import Deed
from engram.domain.digests.policy import DigestPolicy
from engram.domain.digests.profiles import DIGESTED
from engram.domain.digests.versions import Composer
from engram.domain.memories import Episode, MemoryForm
from engram.domain.scope import Scope
from engram.ports import Embedder, MemoryRepository
from engram.writing.digest_boxes import BoxWriter
from engram.writing.digest_guidelines import GuidelineWriter, current_guidance
from engram.writing.digest_profiles import ProfileWriter, Touched
from engram.writing.digest_store import DigestStore, Put
from engram.writing.digest_topics import TopicWriter
from engram.writing.plans import PlanWriter
from engram.writing.reads import episodes_by_id
from engram.writing.updates import NewWriteId

__all__ = ["Digested", "Digests"]


@dataclass(frozen=True, slots=True)
class Digested:
    """How many digests of each form were written, and what else happened."""

    profiles: int = 0
    topics: int = 0
    boxes: int = 0
    guidelines: int = 0
    retired: int = 0
    linked: int = 0


class Digests:
    """Rebuilds digests. Every method may run twice, in parts, and beside itself.

    Args:
        repository: Where memories are kept.
        embedder: Gives digests their vectors.
        new_write_id: Makes a fresh value for each write.
    """

    def __init__(
        self, repository: MemoryRepository, embedder: Embedder, new_write_id: NewWriteId
    ) -> None:
        self._repository = repository
        self._store = DigestStore(repository, embedder, new_write_id)
        plans = PlanWriter(repository, embedder, new_write_id)
        self._boxes = BoxWriter(repository, self._store, plans)
        self._profiles = ProfileWriter(self._store)
        self._topics = TopicWriter(repository, embedder, self._store)
        self._guidelines = GuidelineWriter(repository, self._store)

    async def knowledge(
        self,
        composer: Composer,
        memory_ids: Iterable[str],
        episode_ids: Iterable[str],
        policy: DigestPolicy,
        progress: Callable[[str], None] = lambda _: None,
    ) -> Digested:
        """Profiles and topics of these memories and turns."""
        memories = await self._store.by_id(composer.scope, memory_ids)
        # A digest is made from memories, never from a digest.
        memories = {key: m for key, m in memories.items() if m.form in DIGESTED and not m.is_test}
        episodes = await self._episodes(composer.scope, episode_ids)
        touched = Touched(memories, {e.id: e for e in episodes if not e.is_test})
        profiles = await self._profiles.rebuild(composer, touched, policy)
        progress("profiles")
        topics = await self._topics.rebuild(composer, memories, policy)
        progress("topics")
        both = profiles.plus(topics)
        return Digested(
            profiles=_count(both, MemoryForm.PROFILE),
            topics=_count(both, MemoryForm.TOPIC),
            retired=len(both.retired),
        )

    async def sessions(
        self,
        composer: Composer,
        episode_ids: Sequence[str],
        ended: Iterable[str],
        policy: DigestPolicy,
        progress: Callable[[str], None] = lambda _: None,
    ) -> Digested:
        """Boxes of the sessions that these turns belong to, and of those that ended.

        Test turns are in none.
        """
        closed = frozenset(ended)
        by_session: dict[str, list[str]] = {session: [] for session in sorted(closed)}
        for episode in await self._episodes(composer.scope, episode_ids):
            if episode.session_id is not None:
                by_session.setdefault(episode.session_id, []).append(episode.id)
        boxes = linked = 0
        for session, ids in by_session.items():
            sealed = await self._boxes.seal(composer, session, ids, policy, ended=session in closed)
            boxes += len(sealed.boxes)
            linked += sealed.linked
            progress("box")
        return Digested(boxes=boxes, linked=linked)

    async def learn(
        self,
        composer: Composer,
        deeds: Sequence[tuple[Deed, str]],
        operation: str,
        policy: DigestPolicy,
    ) -> Digested:
        """The guidance that follows from what became of memories."""
        put = await self._guidelines.learn(composer, deeds, operation, policy)
        return Digested(guidelines=len(put.written), retired=len(put.retired))

    async def guidance(self, scope: Scope) -> tuple[tuple[str, ...], bool]:
        """What extractions are told, and whether that could be read; never raises."""
        return await current_guidance(self._repository, scope)

    async def _episodes(self, scope: Scope, ids: Iterable[str]) -> list[Episode]:
        return list((await episodes_by_id(self._repository, scope, ids)).values())


def _count(put: Put, form: MemoryForm) -> int:
    return sum(memory.form is form for memory in put.written)
