"""When memories are due: stamped at every write, listed in order, found over all users."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Final, NamedTuple

from engram.contracts.lifecycle import (
    DuePosition,
    FindDueUsersInput,
    FindDueUsersOutput,
    PassKind,
    WalkPosition,
)
from engram.contracts.messages import Population
from engram.domain.memories import STORED_TYPES, AnyMemory, MemoryStatus, MemoryType, Tier
from engram.domain.rules import LifecycleRules
from engram.domain.scope import Scope
from engram.lifecycle.decisions import Rulebook, fingerprint, rulebook
from engram.ports import (
    AnyOf,
    Between,
    Condition,
    Either,
    Equals,
    Filter,
    MaintenanceRepository,
    Missing,
    Not,
    Stamp,
)

# --- when each memory is to be looked at next (decisions.Rulebook.review_at), noted at every write
#
# The store applies this stamp to all that is written, so no caller can forget to:
# ``review_at`` is what passes read by, and the fingerprint tells them which memories
# were judged by other rules.

# Namespaces whose rulebooks are kept; each costs a few kilobytes.
_RULEBOOKS_KEPT: Final = 1000


def review_stamp(rules: LifecycleRules) -> Stamp:
    """Return the stamp that says when each memory is to be looked at next under ``rules``."""

    @lru_cache(maxsize=_RULEBOOKS_KEPT)
    def book(namespace: str) -> Rulebook:
        return rulebook(rules, namespace)

    def stamp(memory: AnyMemory) -> AnyMemory:
        return book(memory.namespace).stamped(memory)

    return stamp


# --- walking over what is due, in order: what it costs follows from what is due, not from what is

# Of each type first what is due by time, then what was judged by other rules.
STAGES: Final = 2 * len(STORED_TYPES)
_FINGERPRINT: Final = "policy_fingerprint"


def of_population(population: Population) -> Condition:
    """Only test memories, or none of them."""
    tests = Equals("is_test", value=True)
    return tests if population is Population.TEST else Not(tests)


def due_by(now: datetime) -> Condition:
    """A rule could act on it by now."""
    return Between("review_at", at_most=now)


def to_consider(rules: LifecycleRules) -> Filter:
    """Knowledge that may be ready to become a habit, and was not promoted or refused before."""
    ready: Filter = (
        Between("selectivity", at_least=rules.promotion.selectivity),
        Equals("status", MemoryStatus.ACTIVE.value),
    )
    if rules.energy.conclusion_tier != Tier.LONG_TERM.value:
        return ready  # Rising through the tiers counts as an attempt too.
    return (*ready, Not(Between("vitals.promotion_attempts", at_least=1)))


async def judged_otherwise(
    repository: MaintenanceRepository, memory_type: MemoryType, current: str
) -> Condition | None:
    """Judged by other rules than the current; None if no memory of anybody was.

    Which fingerprints there are is asked first, for "another one than this" would
    make the engine look at every memory.
    """
    present = await repository.values(memory_type, _FINGERPRINT)
    others = sorted(one for one in present if one is not None and one != current)
    found: list[Condition] = [AnyOf(_FINGERPRINT, tuple(others))] if others else []
    if None in present:
        found.append(Missing(_FINGERPRINT))
    return Either(tuple(found)) if found else None


@dataclass(frozen=True, slots=True)
class _DueListing:
    memory_type: MemoryType
    where: Filter
    order_by: str


@dataclass(slots=True)
class DueScan:
    """What is due of one user, page by page.

    Args:
        repository: Where memories are kept.
        scope: Whose they are.
        rules: Which fingerprint is the current one.
        now: What is due by then.
        population: Test memories, or all others.
    """

    repository: MaintenanceRepository
    scope: Scope
    rules: LifecycleRules
    now: datetime
    population: Population
    _listings: dict[int, _DueListing | None] = field(default_factory=dict)

    async def page(
        self, position: WalkPosition, limit: int
    ) -> tuple[tuple[AnyMemory, ...], WalkPosition | None]:
        """The next memories, all of one type, and where to go on; None at the end.

        What is written meanwhile is not due any more, and is not met again.
        """
        stage, cursor = position.stage, position.cursor
        while stage < STAGES:
            listing = await self._listing(stage)
            if listing is not None:
                page = await self.repository.scroll(
                    self.scope,
                    listing.memory_type,
                    where=listing.where,
                    order_by=listing.order_by,
                    limit=limit,
                    cursor=cursor,
                )
                # Where none of a page can be read, what stands behind it can.
                if page.memories or page.cursor is not None:
                    return page.memories, _after(stage, page.cursor)
            stage, cursor = stage + 1, None
        return (), None

    async def _listing(self, stage: int) -> _DueListing | None:
        if stage not in self._listings:
            self._listings[stage] = await self._made(stage)
        return self._listings[stage]

    async def _made(self, stage: int) -> _DueListing | None:
        memory_type, whose = STORED_TYPES[stage // 2], of_population(self.population)
        due = due_by(self.now)
        if stage % 2 == 0:
            return _DueListing(memory_type, (due, whose), "review_at")
        current = fingerprint(self.rules, self.scope.namespace)
        foreign = await judged_otherwise(self.repository, memory_type, current)
        if foreign is None:
            return None
        return _DueListing(memory_type, (foreign, Not(due), whose), "known_at")


def _after(stage: int, cursor: str | None) -> WalkPosition | None:
    if cursor is not None:
        return WalkPosition(stage=stage, cursor=cursor)
    return WalkPosition(stage=stage + 1) if stage + 1 < STAGES else None


# --- finding the users for whom a pass has something to do, from what is due over all of them
#
# The listings are searched one after the other, each in order of the moment at which
# something was due first. Who was found and stays due is skipped by name, or, past a
# position in that order, because something of theirs is due before it.

# Who was found before is told too, and answers are bounded.
_MOST_PASSED = 1000
_OTHER_NAMESPACES = ""  # Stands for every namespace that no setting names.


class _UserListing(NamedTuple):
    """What is due of one type; ``stage`` is the same for it at every search."""

    stage: int
    memory_type: MemoryType
    where: Filter
    order_by: str


async def due_users(
    repository: MaintenanceRepository, request: FindDueUsersInput
) -> FindDueUsersOutput:
    """Users with something due, those whose turn came first before others of the same kind."""
    found: dict[Scope, None] = {}
    passed: dict[Scope, None] = {}
    reached = request.position
    before: list[_UserListing] = []
    async for listing in _listings(repository, request):
        if listing.stage < request.position.stage:
            before.append(listing)
            continue
        since = request.position.since if listing.stage == request.position.stage else None
        search = _Search(repository, listing, tuple(before), since)
        while (wanted := request.most - len(found)) > 0 and len(passed) < _MOST_PASSED:
            users = await search.users(wanted, (*request.skip, *found, *passed))
            if not users:
                break
            for user in users:
                known = request.position != DuePosition() and await search.found_before(user)
                (passed if known else found)[user] = None
            reached = DuePosition(stage=listing.stage, since=await search.first_of(users[-1]))
        if len(found) >= request.most or len(passed) >= _MOST_PASSED:
            break
        before.append(listing)
    return FindDueUsersOutput(users=tuple(found), passed=tuple(passed), reached=reached)


@dataclass(frozen=True, slots=True)
class _Search:
    """A search of one listing, from a moment on."""

    repository: MaintenanceRepository
    listing: _UserListing
    before: Sequence[_UserListing]
    since: datetime | None

    async def users(self, most: int, skip: Sequence[Scope]) -> tuple[Scope, ...]:
        """Users with something in the listing, the earliest first."""
        _, memory_type, where, order_by = self.listing
        if self.since is not None:
            where = (*where, Between(order_by, at_least=self.since))
        return await self.repository.scopes(
            memory_type, where, order_by=order_by, limit=most, skip=skip
        )

    async def first_of(self, user: Scope) -> datetime | None:
        """The moment by which a user stands where they do in the listing."""
        _, memory_type, where, order_by = self.listing
        if self.since is not None:
            where = (*where, Between(order_by, at_least=self.since))
        page = await self.repository.scroll(
            user, memory_type, where=where, order_by=order_by, limit=1
        )
        return _moment(page.memories[0], order_by) if page.memories else self.since

    async def found_before(self, user: Scope) -> bool:
        """Whether something of theirs is due in an earlier listing, or earlier in this one."""
        asked = [(one.memory_type, one.where) for one in self.before]
        if self.since is not None:
            earlier = Not(Between(self.listing.order_by, at_least=self.since))
            asked.append((self.listing.memory_type, (*self.listing.where, earlier)))
        for memory_type, where in asked:
            if await self.repository.count(user, memory_type, where):
                return True
        return False


def _moment(memory: AnyMemory, order_by: str) -> datetime | None:
    moment: datetime | None = getattr(memory, order_by)
    return moment


async def _listings(
    repository: MaintenanceRepository, request: FindDueUsersInput
) -> AsyncIterator[_UserListing]:
    rules, whose = request.rules, of_population(request.population)
    match request.kind:
        case PassKind.CONSOLIDATION:
            where: Filter = (Missing("consolidated_at"), whose)
            yield _UserListing(0, MemoryType.EPISODIC, where, "known_at")
        case PassKind.DECAY:
            due = due_by(request.now)
            for stage, memory_type in enumerate(STORED_TYPES):
                yield _UserListing(stage, memory_type, (due, whose), "review_at")
            async for listing in _judged_otherwise(repository, rules, whose):
                yield listing
        case PassKind.PROMOTION:
            yield _UserListing(0, MemoryType.SEMANTIC, (*to_consider(rules), whose), "known_at")
            tiers = _under_energy(rules)
            if tiers is not None:
                due = due_by(request.now)
                for stage, memory_type in enumerate(STORED_TYPES, start=1):
                    yield _UserListing(stage, memory_type, (due, *tiers, whose), "review_at")


async def _judged_otherwise(
    repository: MaintenanceRepository, rules: LifecycleRules, whose: Condition
) -> AsyncIterator[_UserListing]:
    exceptions = (*rules.energy_namespaces, *rules.retention_namespaces)
    stage = len(STORED_TYPES)
    for memory_type in STORED_TYPES:
        for namespace in (_OTHER_NAMESPACES, *exceptions):
            # No namespace is called that, so it goes by the policy of all others.
            current = fingerprint(rules, namespace)
            foreign = await judged_otherwise(repository, memory_type, current)
            if foreign is not None:
                where = (foreign, *_within(namespace, exceptions), whose)
                yield _UserListing(stage, memory_type, where, "known_at")
            stage += 1


def _within(namespace: str, exceptions: tuple[str, ...]) -> tuple[Condition, ...]:
    if namespace != _OTHER_NAMESPACES:
        return (Equals("namespace", namespace),)
    return (Not(AnyOf("namespace", exceptions)),) if exceptions else ()


def _under_energy(rules: LifecycleRules) -> Filter | None:
    """Where memories have tiers; None if nowhere."""
    if rules.decay_policy == "energy":
        others = rules.retention_namespaces
        return (Not(AnyOf("namespace", others)),) if others else ()
    return (AnyOf("namespace", rules.energy_namespaces),) if rules.energy_namespaces else None
