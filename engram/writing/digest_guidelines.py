"""What became of earlier memories, counted once per pass, and the guidance drawn from it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from engram.domain.digests.details import GuidelineDetail
from engram.domain.digests.guidelines import Deed, counted, guidance, guideline_text
from engram.domain.digests.policy import DigestPolicy
from engram.domain.digests.versions import Composer, Draft, newest
from engram.domain.memories import (
    AnyMemory,
    MemoryForm,
    MemoryStatus,
    MemoryType,
    SemanticMemory,
)
from engram.domain.revisions import has_seen, remember
from engram.domain.scope import Scope
from engram.ports import Equals, Filter, MemoryRepository
from engram.writing.digest_store import DigestStore, Put
from engram.writing.updates import update_memories

GUIDELINE_KEY: Final = "guideline"
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class GuidelineWriter:
    """Keeps the tallies and the guidance. Everything may run twice.

    Args:
        repository: Where memories are kept.
        store: Where the guideline is kept.
    """

    repository: MemoryRepository
    store: DigestStore

    async def learn(
        self,
        composer: Composer,
        deeds: Sequence[tuple[Deed, str]],
        operation: str,
        policy: DigestPolicy,
    ) -> Put:
        """Count what a pass did, once, and say what follows from it.

        Args:
            composer: Whose, when, and by which run.
            deeds: What was done with which memory.
            operation: Names the pass, so that a repeat of it counts once.
            policy: When guidance is drawn.
        """
        scope = composer.scope
        found = await self.store.by_id(scope, (memory_id for _, memory_id in deeds))
        memories = {key: memory for key, memory in found.items() if not memory.is_test}
        if not memories:
            return Put()
        current = await self.store.current(scope, MemoryForm.GUIDELINE, [GUIDELINE_KEY])
        begun = Put()
        if not current:
            begun = await self.store.put(composer, [_first(memories.values())], ())
            current = list(begun.written)
        guideline = newest(current)
        assert guideline is not None  # noqa: S101 - for the type checker; there is one by now

        def count(memory: AnyMemory) -> AnyMemory | None:
            if not isinstance(memory, SemanticMemory) or has_seen(memory, operation):
                return None
            tallies = counted(_detail(memory).tallies, deeds, memories, policy)
            detail = GuidelineDetail(
                keys=(GUIDELINE_KEY,), tallies=tallies, guidance=_detail(memory).guidance
            )
            return remember(memory.model_copy(update={"detail": detail}), operation)

        await update_memories(
            self.repository,
            scope,
            [guideline.id],
            count,
            new_write_id=self.store.new_write_id,
            types=(MemoryType.SEMANTIC,),
        )
        return begun.plus(await self._say(composer, current, policy))

    async def _say(
        self, composer: Composer, current: Sequence[SemanticMemory], policy: DigestPolicy
    ) -> Put:
        """A new version where the guidance changed; it takes the counts along."""
        there = await self.store.by_id(composer.scope, (m.id for m in current))
        last = newest(list(there.values()))
        if last is None:
            return Put()
        lines = guidance(_detail(last).tallies, policy)
        draft = Draft(
            form=MemoryForm.GUIDELINE,
            content=guideline_text(lines),
            detail=GuidelineDetail(
                keys=(GUIDELINE_KEY,), tallies=_detail(last).tallies, guidance=lines
            ),
            sources=last.source_episode_ids,
            known_at=last.known_at,
            event_at=last.event_at,
            operation_ids=last.operation_ids,
        )
        return await self.store.put(composer, [draft], list(there.values()))


async def current_guidance(
    repository: MemoryRepository, scope: Scope
) -> tuple[tuple[str, ...], bool]:
    """What extractions are told, and whether that could be read.

    Never raises: an extraction without guidance is better than none.
    """
    where: Filter = (
        Equals("form", MemoryForm.GUIDELINE.value),
        Equals("status", MemoryStatus.ACTIVE.value),
    )
    try:
        page = await repository.scroll(scope, MemoryType.SEMANTIC, where=where, limit=4)
        last = newest([m for m in page.memories if isinstance(m, SemanticMemory)])
        return (_detail(last).guidance if last is not None else ()), True
    except Exception as error:  # noqa: BLE001 - logged, counted by the caller, and gone on without
        _log.warning("guidance could not be read", kind=type(error).__name__)
        return (), False


def _detail(memory: SemanticMemory) -> GuidelineDetail:
    if isinstance(memory.detail, GuidelineDetail):
        return memory.detail
    return GuidelineDetail(keys=(GUIDELINE_KEY,))


def _first(memories: Iterable[SemanticMemory]) -> Draft:
    told = sorted(memories, key=lambda m: (m.known_at, m.id))
    return Draft(
        form=MemoryForm.GUIDELINE,
        content=guideline_text(()),
        detail=GuidelineDetail(keys=(GUIDELINE_KEY,)),
        sources=told[0].source_episode_ids,
        known_at=told[0].known_at,
        event_at=told[0].event_at,
    )
