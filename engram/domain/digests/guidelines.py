"""Guidance from what became of earlier memories. Conservative: it only ever warns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from enum import StrEnum

from engram.domain.digests.details import Tally
from engram.domain.digests.policy import DigestPolicy
from engram.domain.memories import MemoryStatus, SemanticMemory

MAX_GUIDANCE = 8
"""Lines of guidance at most: an extraction reads them each time."""
MAX_TALLIES = 200


class Deed(StrEnum):
    """What consolidation did with a memory."""

    STORED = "stored"
    CONFIRMED = "confirmed"
    SUPERSEDED = "superseded"
    PRUNED = "pruned"


@dataclass(frozen=True, slots=True)
class _Counts:
    stored: int = 0
    confirmed: int = 0
    superseded_soon: int = 0
    disputed: int = 0
    pruned: int = 0
    dropped_quotes: int = 0


def counted(
    tallies: Iterable[Tally],
    deeds: Iterable[tuple[Deed, str]],
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
        sums[key] = _sum(sums.get(key, _Counts()), _one(deed, memory, policy))
    kept = sorted(sums, key=lambda key: (-sums[key].stored, key))[:MAX_TALLIES]
    return tuple(
        Tally(
            category=category,
            predicate=predicate,
            **{f.name: getattr(sums[category, predicate], f.name) for f in fields(_Counts)},
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


def _one(deed: Deed, memory: SemanticMemory, policy: DigestPolicy) -> _Counts:
    match deed:
        case Deed.STORED:
            return _Counts(
                stored=1,
                disputed=int(bool(memory.disputed_with)),
                dropped_quotes=int(not memory.evidence),
            )
        case Deed.CONFIRMED:
            return _Counts(confirmed=1)
        case Deed.PRUNED:
            return _Counts(pruned=1)
        case Deed.SUPERSEDED:
            return _Counts(superseded_soon=int(_soon(memory, policy)))


def _soon(memory: SemanticMemory, policy: DigestPolicy) -> bool:
    known = memory.superseded_known_at
    return (
        memory.status is MemoryStatus.SUPERSEDED
        and known is not None
        and known - memory.known_at <= timedelta(days=policy.soon_days)
    )


def _of(tally: Tally) -> _Counts:
    return _Counts(**{f.name: getattr(tally, f.name) for f in fields(_Counts)})


def _sum(first: _Counts, second: _Counts) -> _Counts:
    return _Counts(
        **{f.name: getattr(first, f.name) + getattr(second, f.name) for f in fields(_Counts)}
    )
