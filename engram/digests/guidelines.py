"""Guidelines: warnings drawn from what became of earlier memories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Final

import structlog

from engram.digests.store import DigestStore, Put
from engram.digests.versions import Composer, Draft, newest
from engram.domain.digests import ConsolidationEffect, GuidelineDetail, Tally
from engram.domain.memories import (
    MemoryForm,
    MemoryStatus,
    MemoryType,
    SemanticMemory,
    has_seen,
    remember,
)
from engram.domain.rules import DigestPolicy
from engram.domain.scope import Scope
from engram.ports import Equals, Filter, MemoryRepository
from engram.storage.updates import update_those

# --- guidance from what became of earlier memories. Conservative: it only ever warns

MAX_GUIDANCE = 8
"""Lines of guidance at most: an extraction reads them each time."""
MAX_TALLIES = 200


@dataclass(frozen=True, slots=True)
class _DeedCounts:
    stored: int = 0
    confirmed: int = 0
    superseded_soon: int = 0
    disputed: int = 0
    pruned: int = 0
    dropped_quotes: int = 0


def counted(
    tallies: Iterable[Tally],
    deeds: Iterable[tuple[ConsolidationEffect, str]],
    memories: Mapping[str, SemanticMemory],
    policy: DigestPolicy,
) -> tuple[Tally, ...]:
    """The tallies with what one pass did added.

    Args:
        tallies: So far.
        deeds: What was done with which memory.
        memories: As they are now; what is gone is not counted.
        policy: What counts as soon.
    """
    sums = {(tally.category, tally.predicate): _of(tally) for tally in tallies}
    for deed, memory_id in deeds:
        memory = memories.get(memory_id)
        if memory is None:
            continue
        predicate = memory.slot.predicate if memory.slot is not None else ""
        key = memory.category.value, predicate
        sums[key] = _sum(sums.get(key, _DeedCounts()), _one(deed, memory, policy))
    kept = sorted(sums, key=lambda key: (-sums[key].stored, key))[:MAX_TALLIES]
    return tuple(
        Tally(
            category=category,
            predicate=predicate,
            **{f.name: getattr(sums[category, predicate], f.name) for f in fields(_DeedCounts)},
        )
        for category, predicate in sorted(kept)
    )


def guidance(tallies: Iterable[Tally], policy: DigestPolicy) -> tuple[str, ...]:
    """What later extractions are told, the strongest case first."""
    given = tuple(tallies)
    # Where nothing is quoted at all, quotations are not kept; nobody dropped them.
    quoting = 2 * sum(t.dropped_quotes for t in given) < sum(t.stored for t in given)
    cases: list[tuple[float, str]] = []
    for tally in given:
        if tally.stored < policy.guidance_evidence:
            continue
        for lost, why in _losses(tally, quoting=quoting):
            share = lost / tally.stored
            if share > policy.guidance_share:
                cases.append((share, _warning(tally, share, why)))
    return tuple(line for _, line in sorted(cases, key=lambda c: (-c[0], c[1])))[:MAX_GUIDANCE]


def guideline_text(lines: Iterable[str]) -> str:
    """The words of a guideline."""
    return "\n".join(lines) or "Nothing to be careful about so far."


def _losses(tally: Tally, *, quoting: bool) -> tuple[tuple[int, str], ...]:
    return (
        (tally.pruned, "turned out not worth keeping"),
        (tally.disputed, "were contradicted"),
        (tally.superseded_soon, "were replaced within days"),
        (tally.dropped_quotes if quoting else 0, "could not be quoted from the turns"),
    )


def _warning(tally: Tally, share: float, why: str) -> str:
    what = f'"{tally.predicate}"' if tally.predicate else "no predicate"
    return (
        f"Be more careful with statements of category {tally.category} with {what}: "
        f"of {tally.stored} so far, {min(share, 1.0):.0%} {why}."
    )


def _one(deed: ConsolidationEffect, memory: SemanticMemory, policy: DigestPolicy) -> _DeedCounts:
    match deed:
        case ConsolidationEffect.STORED:
            return _DeedCounts(
                stored=1,
                disputed=int(bool(memory.disputed_with)),
                dropped_quotes=int(not memory.evidence),
            )
        case ConsolidationEffect.CONFIRMED:
            return _DeedCounts(confirmed=1)
        case ConsolidationEffect.PRUNED:
            return _DeedCounts(pruned=1)
        case ConsolidationEffect.SUPERSEDED:
            return _DeedCounts(superseded_soon=int(_soon(memory, policy)))


def _soon(memory: SemanticMemory, policy: DigestPolicy) -> bool:
    known = memory.superseded_known_at
    return (
        memory.status is MemoryStatus.SUPERSEDED
        and known is not None
        and known - memory.known_at <= timedelta(days=policy.soon_days)
    )


def _of(tally: Tally) -> _DeedCounts:
    return _DeedCounts(**{f.name: getattr(tally, f.name) for f in fields(_DeedCounts)})


def _sum(first: _DeedCounts, second: _DeedCounts) -> _DeedCounts:
    return _DeedCounts(
        **{f.name: getattr(first, f.name) + getattr(second, f.name) for f in fields(_DeedCounts)}
    )


# --- what became of earlier memories, counted once per pass, and the guidance drawn from it

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
        deeds: Sequence[tuple[ConsolidationEffect, str]],
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

        def count(memory: SemanticMemory) -> SemanticMemory | None:
            if has_seen(memory, operation):
                return None
            tallies = counted(_detail(memory).tallies, deeds, memories, policy)
            detail = GuidelineDetail(
                keys=(GUIDELINE_KEY,), tallies=tallies, guidance=_detail(memory).guidance
            )
            return remember(memory.model_copy(update={"detail": detail}), operation)

        await update_those(
            self.repository,
            scope,
            SemanticMemory,
            [guideline.id],
            count,
            new_write_id=self.store.new_write_id,
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
