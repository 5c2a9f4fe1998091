"""Finding the users for whom a pass has something to do, from what is due over all of them.

The listings are searched one after the other, each in order of the moment at which
something was due first. Who was found and stays due is skipped by name, or, past a
position in that order, because something of theirs is due before it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from engram.contracts.maintenance import (
    DuePosition,
    FindDueUsersInput,
    FindDueUsersOutput,
    PassKind,
)
from engram.domain.lifecycle.decisions import fingerprint
from engram.domain.lifecycle.rules import LifecycleRules
from engram.domain.memories import STORED_TYPES, AnyMemory, MemoryType
from engram.domain.scope import Scope
from engram.ports import (
    AnyOf,
    Between,
    Condition,
    Equals,
    Filter,
    MaintenanceRepository,
    Missing,
    Not,
)
from engram.writing.walks import due_by, judged_otherwise, of_population, to_consider

# Who was found before is told too, and answers are bounded.
_MOST_PASSED = 1000
_OTHERS = ""  # Stands for every namespace that no setting names.


class _Listing(NamedTuple):
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
    before: list[_Listing] = []
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
    listing: _Listing
    before: Sequence[_Listing]
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
) -> AsyncIterator[_Listing]:
    rules, whose = request.rules, of_population(request.population)
    match request.kind:
        case PassKind.CONSOLIDATION:
            where: Filter = (Missing("consolidated_at"), whose)
            yield _Listing(0, MemoryType.EPISODIC, where, "known_at")
        case PassKind.DECAY:
            due = due_by(request.now)
            for stage, memory_type in enumerate(STORED_TYPES):
                yield _Listing(stage, memory_type, (due, whose), "review_at")
            async for listing in _judged_otherwise(repository, rules, whose):
                yield listing
        case PassKind.PROMOTION:
            yield _Listing(0, MemoryType.SEMANTIC, (*to_consider(rules), whose), "known_at")
            tiers = _under_energy(rules)
            if tiers is not None:
                due = due_by(request.now)
                for stage, memory_type in enumerate(STORED_TYPES, start=1):
                    yield _Listing(stage, memory_type, (due, *tiers, whose), "review_at")


async def _judged_otherwise(
    repository: MaintenanceRepository, rules: LifecycleRules, whose: Condition
) -> AsyncIterator[_Listing]:
    exceptions = (*rules.energy_namespaces, *rules.retention_namespaces)
    stage = len(STORED_TYPES)
    for memory_type in STORED_TYPES:
        for namespace in (_OTHERS, *exceptions):
            # No namespace is called that, so it goes by the policy of all others.
            current = fingerprint(rules, namespace)
            foreign = await judged_otherwise(repository, memory_type, current)
            if foreign is not None:
                where = (foreign, *_within(namespace, exceptions), whose)
                yield _Listing(stage, memory_type, where, "known_at")
            stage += 1


def _within(namespace: str, exceptions: tuple[str, ...]) -> tuple[Condition, ...]:
    if namespace != _OTHERS:
        return (Equals("namespace", namespace),)
    return (Not(AnyOf("namespace", exceptions)),) if exceptions else ()


def _under_energy(rules: LifecycleRules) -> Filter | None:
    """Where memories have tiers; None if nowhere."""
    if rules.decay_policy == "energy":
        others = rules.retention_namespaces
        return (Not(AnyOf("namespace", others)),) if others else ()
    return (AnyOf("namespace", rules.energy_namespaces),) if rules.energy_namespaces else None
