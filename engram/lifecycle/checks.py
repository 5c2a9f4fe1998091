"""Checks of stored memories, and the health of a user's memory as a whole."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict

from engram.domain.identity import content_hash, operation_id
from engram.domain.memories import (
    AnyMemory,
    DerivedMemory,
    Fact,
    LifecycleState,
    Link,
    LinkKind,
    Memory,
    MemoryForm,
    MemoryStatus,
    PolicyClass,
    SemanticMemory,
    Tier,
    is_summary,
)
from engram.domain.occasions import occasions_among, with_occasions
from engram.domain.rules import HealthRules
from engram.lifecycle.decisions import Rulebook
from engram.lifecycle.links import Observed, link_to, linked, without_links
from engram.lifecycle.policies import Energy, tier_of
from engram.lifecycle.promotion import habits_of, promotable

# --- what can be wrong with stored memories, and what mends it: pure, no words quoted

# Clocks of machines differ by less.
_CLOCKS_DIFFER = timedelta(days=1)


class Problem(StrEnum):
    """What can be wrong with a memory."""

    ORPHAN = "orphan"
    """None of the turns that an active conclusion names exists."""
    BROKEN_LINK = "broken_link"
    """A link leads to a memory that does not exist, or to a summary that was replaced."""
    ONE_WAY_LINK = "one_way_link"
    """A link that the other end does not know."""
    DUPLICATE = "duplicate"
    """Two conclusions say the same; normalising should have made them one."""
    BAD_FIELD = "bad_field"
    """A field has a value that nothing writes."""


class Finding(BaseModel):
    """One thing that is wrong.

    Attributes:
        problem: Which kind.
        memory_id: The memory.
        memory_type: Its type.
        other_id: The other memory that this is about.
        what: In words, without any of the memory's content.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    problem: Problem
    memory_id: str
    memory_type: str
    other_id: str | None = None
    what: str


def references(memory: AnyMemory) -> set[str]:
    """The memories that a check of this one has to look at."""
    found: set[str] = set()
    if isinstance(memory, DerivedMemory):
        found.update(memory.source_episode_ids, memory.related_ids, memory.supersedes)
        if memory.superseded_by is not None:
            found.add(memory.superseded_by)
    if memory.promoted_from is not None:
        found.add(memory.promoted_from)
    return found


def check(
    memory: AnyMemory, known: Mapping[str, AnyMemory], now: datetime, book: Rulebook
) -> list[Finding]:
    """Everything that is wrong with one memory, duplicates aside.

    Args:
        memory: As it is stored.
        known: Those of its :func:`references` that exist.
        now: To tell moments that have not come.
        book: By which its ``review_at`` should have been computed.
    """
    found = [_finding(memory, Problem.BAD_FIELD, what) for what in bad_fields(memory, now, book)]
    if not isinstance(memory, DerivedMemory):
        return found
    answers = memory.status is MemoryStatus.ACTIVE
    if answers and not any(source in known for source in memory.source_episode_ids):
        found.append(_finding(memory, Problem.ORPHAN, "none of its source turns exists"))
    found += [
        _finding(memory, Problem.BROKEN_LINK, f"{what} leads nowhere", other)
        for what, other in _broken(memory, known)
    ]
    found += [
        _finding(memory, Problem.ONE_WAY_LINK, f"{link.kind} is not known at the other end", other)
        for link, other in ((link, link.target_id) for link in one_way(memory, known))
    ]
    return found


def same_as(memory: AnyMemory) -> str | None:
    """What two conclusions have in common only if they should be one; None if they may repeat."""
    if not isinstance(memory, DerivedMemory) or memory.status is not MemoryStatus.ACTIVE:
        return None
    if isinstance(memory, SemanticMemory) and (
        memory.form is not MemoryForm.STATEMENT or memory.resolution is not None
    ):
        # A promise that was kept can be made once more.
        return None
    said = content_hash(memory.content)
    if isinstance(memory, Fact):
        said = f"{memory.category}:{memory.value}"
    return f"{memory.type}:{memory.is_test}:{said}"


def duplicate(memory: AnyMemory, first: str) -> Finding:
    """The finding that ``memory`` says what the memory ``first`` says."""
    return _finding(memory, Problem.DUPLICATE, "says the same as another one", first)


def one_way(memory: DerivedMemory, known: Mapping[str, AnyMemory]) -> list[Link]:
    """Links whose other end exists, and does not know them.

    A summary that was replaced notes what it was made of, and nothing leads to it.
    """
    if _is_outdated(memory):
        return []
    found: list[Link] = []
    for link in memory.links:
        other = known.get(link.target_id)
        # What was recalled together is noted at each end in its own time.
        if not isinstance(other, DerivedMemory) or link.kind is LinkKind.COACTIVATED:
            continue
        if not _is_outdated(other) and link_to(other, memory.id, link.kind) is None:
            found.append(link)
    return found


def bad_fields(memory: AnyMemory, now: datetime, book: Rulebook) -> list[str]:
    """Fields with values that nothing writes, in words."""
    checks = {
        "archived without a moment": memory.status is MemoryStatus.ARCHIVED
        and memory.archived_at is None,
        "expired without a moment": memory.status is MemoryStatus.EXPIRED
        and memory.expired_at is None,
        "written in the future": memory.created_at > now + _CLOCKS_DIFFER,
        "recalled in the future": memory.last_accessed_at is not None
        and memory.last_accessed_at > now + _CLOCKS_DIFFER,
        "recalls without a moment": memory.access_count > 0 and memory.last_accessed_at is None,
        "ends before it begins": isinstance(memory, DerivedMemory) and _turned(memory),
        "reviewed at the wrong moment": memory.policy_fingerprint == book.fingerprint
        and memory.review_at != book.review_at(memory),
        **_bad_energy(memory),
    }
    return [what for what, wrong in checks.items() if wrong]


def mended(
    memory: AnyMemory, known: Mapping[str, AnyMemory], now: datetime, book: Rulebook
) -> AnyMemory | None:
    """``memory`` with everything put right that lies in itself; None if nothing is wrong.

    An orphan is archived, unless it is protected: what it rested on is gone.
    """
    wrong = check(memory, known, now, book)
    changes: dict[str, Any] = {}
    for finding in wrong:
        match finding.problem:
            case Problem.ORPHAN if memory.policy_class is not PolicyClass.PROTECTED:
                changes |= {"status": MemoryStatus.ARCHIVED, "archived_at": now}
                changes |= {"lifecycle": LifecycleState.ARCHIVED}
            case Problem.BROKEN_LINK:
                changes |= _without_broken(memory, known)
            case Problem.BAD_FIELD:
                changes |= _mended_fields(memory, now)
    if not changes and not any(f.problem is Problem.BAD_FIELD for f in wrong):
        return None
    # Writing it stamps its next review anew, whatever else is changed.
    return memory.model_copy(update=changes)


def linked_back(other: DerivedMemory, memory: DerivedMemory) -> DerivedMemory | None:
    """``other`` with the links back to ``memory`` that it lacks and has room for; None if none.

    For one to a summary there always is room: by it, forgetting finds what has its words.
    """
    after, observed = other, Observed.between(memory, other)
    always = is_summary(memory)
    for link in one_way(memory, {other.id: other}):  # type: ignore[dict-item]  # every derived memory is an AnyMemory
        further = linked(
            after, memory.id, link.kind, link.confidence, observed, past_the_bound=always
        )
        after = further or after
    return None if after is other else after


def without_one_way(memory: DerivedMemory, known: Mapping[str, AnyMemory]) -> DerivedMemory | None:
    """``memory`` without the links that the other end has no room for; None if there are none."""
    ends = one_way(memory, known)
    return without_links(memory, lambda link: link in ends) if ends else None


def merged(kept: DerivedMemory, other: DerivedMemory) -> DerivedMemory | None:
    """``kept`` with what a duplicate adds to it; None if that was added before."""
    operation = operation_id("merge", kept.id, other.id)
    if operation in kept.operation_ids:
        return None
    sources = tuple(dict.fromkeys((*kept.source_episode_ids, *other.source_episode_ids)))
    fresh = [source for source in sources if source not in kept.source_episode_ids]
    more = with_occasions(kept, occasions_among(other.occasions, fresh))
    confidence = kept.confidence.model_copy(
        update={
            "supporting_episodes": more["supporting_episodes"],
            "last_confirmed": max(kept.confidence.last_confirmed, other.confidence.last_confirmed),
        }
    )
    times = [t for t in (kept.last_accessed_at, other.last_accessed_at) if t is not None]
    return kept.model_copy(
        update={
            "source_episode_ids": sources,
            "occasions": more["occasions"],
            "confidence": confidence,
            "known_at": min(kept.known_at, other.known_at),
            "access_count": kept.access_count + other.access_count,
            "last_accessed_at": max(times) if times else None,
            "supersedes": tuple(dict.fromkeys((*kept.supersedes, other.id))),
            "operation_ids": (*kept.operation_ids, operation),
        }
    )


def folded_into(other: DerivedMemory, kept: DerivedMemory) -> DerivedMemory | None:
    """A duplicate as replaced by the one that is kept; None if it is already."""
    if other.superseded_by == kept.id:
        return None
    return other.model_copy(
        update={
            "status": MemoryStatus.SUPERSEDED,
            "superseded_by": kept.id,
            "superseded_known_at": max(kept.known_at, other.known_at),
        }
    )


def _finding(memory: AnyMemory, problem: Problem, what: str, other: str | None = None) -> Finding:
    return Finding(
        problem=problem,
        memory_id=memory.id,
        memory_type=memory.type.value,
        other_id=other,
        what=what,
    )


def _broken(memory: DerivedMemory, known: Mapping[str, AnyMemory]) -> Iterable[tuple[str, str]]:
    for link in memory.links:
        if not _leads_somewhere(link, known):
            yield link.kind.value, link.target_id
    for other in memory.supersedes:
        if other not in known:
            yield "supersedes", other
    if memory.superseded_by is not None and memory.superseded_by not in known:
        yield "superseded_by", memory.superseded_by


def _leads_somewhere(link: Link, known: Mapping[str, AnyMemory]) -> bool:
    other = known.get(link.target_id)
    return other is not None and not _is_outdated(other)


def _is_outdated(memory: Memory) -> bool:
    return is_summary(memory) and memory.status is MemoryStatus.SUPERSEDED


def _without_broken(memory: AnyMemory, known: Mapping[str, AnyMemory]) -> dict[str, Any]:
    if not isinstance(memory, DerivedMemory):
        return {}
    by = memory.superseded_by
    return {
        "links": tuple(link for link in memory.links if _leads_somewhere(link, known)),
        "supersedes": tuple(other for other in memory.supersedes if other in known),
        "superseded_by": by if by in known else None,
    }


def _mended_fields(memory: AnyMemory, now: datetime) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if memory.status is MemoryStatus.ARCHIVED and memory.archived_at is None:
        changes["archived_at"] = now
    if memory.status is MemoryStatus.EXPIRED and memory.expired_at is None:
        changes["expired_at"] = now
    if memory.created_at > now + _CLOCKS_DIFFER:
        changes["created_at"] = now
    late = memory.last_accessed_at is not None and memory.last_accessed_at > now + _CLOCKS_DIFFER
    if late or (memory.access_count and memory.last_accessed_at is None):
        changes["last_accessed_at"] = min(memory.created_at, now)
    if isinstance(memory, DerivedMemory) and _turned(memory):
        changes["valid_to"] = memory.valid_from
    vitals = memory.vitals
    if vitals is not None and any(_bad_energy(memory).values()):
        if vitals.energy is not None and (vitals.energy_at is None or vitals.energy_at > now):
            vitals = vitals.model_copy(update={"energy_at": now})
        peak = max(vitals.peak_energy or 0.0, vitals.energy or 0.0)
        changes["vitals"] = vitals.model_copy(update={"peak_energy": peak})
    return changes


def _bad_energy(memory: AnyMemory) -> dict[str, bool]:
    vitals = memory.vitals
    if vitals is None or vitals.energy is None:
        return {}
    return {
        "energy without a moment": vitals.energy_at is None,
        "energy above its peak": (vitals.peak_energy or 0.0) < vitals.energy,
    }


def _turned(memory: DerivedMemory) -> bool:
    begins, ends = memory.valid_from, memory.valid_to
    return begins is not None and ends is not None and ends < begins


# --- whether a user's memories live as they should: the four ways in which they may not


class Ailment(StrEnum):
    """The ways in which memories may not live as they should."""

    MISSING = "missing"
    WRONG_ENERGIES = "wrong_energies"
    ORPHANS = "orphans"
    EVERYTHING_PROMOTES = "everything_promotes"
    NOTHING_PROMOTES = "nothing_promotes"
    EAGER_DECAY = "eager_decay"


class Diagnosis(BaseModel):
    """One thing that is not well.

    Attributes:
        ailment: Which.
        memories: How many memories it concerns.
        what: In words.
        hint: What to look at.
        examples: The first few of them.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    ailment: Ailment
    memories: int
    what: str
    hint: str
    examples: tuple[str, ...] = ()


class Census:
    """Counts what health is told from, memory by memory.

    Args:
        rules: From where on something is unhealthy.
        book: By which the memories live.
        now: The present.
        missing: Of the whole store's memories, how many are gone without having been deleted.
    """

    def __init__(self, rules: HealthRules, book: Rulebook, now: datetime, missing: int = 0) -> None:
        self._missing = missing
        self._rules = rules
        self._book = book
        self._now = now
        self.seen = 0
        self._young = self._left_young = 0
        self._knowledge = self._ready = self._promoted = self._risen = self._used = 0
        self._oldest_ready: datetime | None = None
        self._energies: list[str] = []
        self._orphans: list[str] = []
        self._eager: list[str] = []

    def count(self, memory: AnyMemory, *, orphan: bool) -> None:
        """One more memory; ``orphan``: it is active, and none of the turns it names exists."""
        self.seen += 1
        if self._is_wrong(memory):
            self._energies.append(memory.id)
        if orphan:
            self._orphans.append(memory.id)
        young = memory.created_at > self._now - timedelta(days=self._rules.young_days)
        if young and not self._is_fleeting(memory):
            self._young += 1
            if memory.status in {MemoryStatus.ARCHIVED, MemoryStatus.EXPIRED}:
                self._left_young += 1
                self._eager.append(memory.id)
        self._count_promotion(memory)

    def diagnose(self, *, unreadable: int = 0) -> list[Diagnosis]:
        """What is not well; empty if everything is. ``unreadable``: memories beside the counted."""
        lost = bool(self._missing or unreadable)
        found = [*self._of_missing(), *self._of_energies(), *self._of_orphans(lost=lost)]
        return [*found, *self._of_promotion(), *self._of_decay()]

    def _is_wrong(self, memory: AnyMemory) -> bool:
        value = Energy(self._book.rules.energy).value(memory, self._now)
        if not math.isfinite(value) or value < 0:
            return True
        return any(what.startswith("energy") for what in bad_fields(memory, self._now, self._book))

    def _is_fleeting(self, memory: AnyMemory) -> bool:
        """Whether it is meant to leave soon: by a date of its own, or unlifted under energy."""
        if memory.expires_at is not None and memory.expires_at <= self._now:
            return True
        energy = self._book.policy.name == "energy"
        return energy and tier_of(memory, self._book.rules) is Tier.WORKING

    def _count_promotion(self, memory: AnyMemory) -> None:
        if self._book.policy.name == "energy":
            self._count_rise(memory)
        if not isinstance(memory, SemanticMemory) or memory.form is not MemoryForm.STATEMENT:
            return
        promoted = bool(habits_of(memory))
        self._promoted += promoted
        self._knowledge += promoted or memory.status is MemoryStatus.ACTIVE
        if promotable(memory, self._now, self._book.rules):
            self._ready += 1
            oldest = self._oldest_ready or memory.created_at
            self._oldest_ready = min(oldest, memory.created_at)

    def _count_rise(self, memory: AnyMemory) -> None:
        """Of what was recalled and began below the long-term tier, how much rose."""
        vitals = memory.vitals
        rose = vitals is not None and vitals.tier is not None and vitals.promotion_attempts > 0
        began_below = rose or tier_of(memory, self._book.rules) is not Tier.LONG_TERM
        self._used += began_below and bool(memory.access_count)
        self._risen += rose

    def _of_missing(self) -> list[Diagnosis]:
        if not self._missing:
            return []
        return [
            Diagnosis(
                ailment=Ailment.MISSING,
                memories=self._missing,
                what=f"{self._missing} memories of the store, of all its users, are missing: "
                "files were damaged.",
                hint="Restore a backup of the whole data folder; docs/operations.md says how to go "
                "on without them.",
            )
        ]

    def _of_energies(self) -> list[Diagnosis]:
        if not self._energies:
            return []
        return [
            Diagnosis(
                ailment=Ailment.WRONG_ENERGIES,
                memories=len(self._energies),
                what=f"{len(self._energies)} memories have an energy that nothing writes.",
                hint="engram validate names the fields, engram repair ID mends them.",
                examples=tuple(self._energies[:5]),
            )
        ]

    def _of_orphans(self, *, lost: bool) -> list[Diagnosis]:
        if not self._orphans:
            return []
        return [
            Diagnosis(
                ailment=Ailment.ORPHANS,
                memories=len(self._orphans),
                what=f"{len(self._orphans)} active conclusions name turns that do not exist.",
                hint="Restore a backup before any is archived: their turns are missing, or cannot "
                "be read."
                if lost
                else "engram repair ID archives one; forgetting a turn should have taken it along.",
                examples=tuple(self._orphans[:5]),
            )
        ]

    def _of_promotion(self) -> list[Diagnosis]:
        rules, ready, promoted = self._rules, self._ready, self._promoted
        found: list[Diagnosis] = []
        risen_share = self._risen / self._used if self._used >= rules.enough else 0.0
        all_habits = self._knowledge and promoted / self._knowledge > rules.promoted_share
        if (all_habits and promoted >= rules.enough) or risen_share > rules.promoted_share:
            found.append(
                Diagnosis(
                    ailment=Ailment.EVERYTHING_PROMOTES,
                    memories=max(promoted, self._risen),
                    what="Nearly everything is promoted, so that being promoted says nothing.",
                    hint="Raise ENGRAM_LIFECYCLE__PROMOTION__SELECTIVITY or the energy thresholds.",
                )
            )
        settled = self._now - timedelta(days=rules.settled_days)
        waits = self._oldest_ready is not None and self._oldest_ready < settled
        stuck = self._used >= rules.enough and not self._risen
        if (ready and not promoted and waits) or stuck:
            found.append(
                Diagnosis(
                    ailment=Ailment.NOTHING_PROMOTES,
                    memories=ready or self._used,
                    what="Memories have what promotion asks for, and none was promoted.",
                    hint="Do passes run? engram schedules list; engram promote --dry-run.",
                )
            )
        return found

    def _of_decay(self) -> list[Diagnosis]:
        if self._young < self._rules.enough:
            return []
        if self._left_young / self._young <= self._rules.young_left_share:
            return []
        return [
            Diagnosis(
                ailment=Ailment.EAGER_DECAY,
                memories=self._left_young,
                what=(
                    f"{self._left_young} of {self._young} memories younger than "
                    f"{self._rules.young_days:g} days have left the answers already."
                ),
                hint="Compare the decay settings with docs/lifecycle.md; "
                "engram decay --dry-run says what comes next.",
                examples=tuple(self._eager[:5]),
            )
        ]
