"""Finding the users for whom a pass has something to do, from what is due over all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator

from engram.contracts.maintenance import FindDueUsersInput, PassKind
from engram.domain.lifecycle.decisions import fingerprint
from engram.domain.lifecycle.rules import LifecycleRules
from engram.domain.memories import STORED_TYPES, MemoryType
from engram.domain.scope import Scope
from engram.ports import AnyOf, Condition, Equals, Filter, MaintenanceRepository, Missing, Not
from engram.writing.walks import due_by, judged_otherwise, of_population, to_consider

_Question = tuple[MemoryType, Filter, str]
_OTHERS = ""  # Stands for every namespace that no setting names.


async def due_users(
    repository: MaintenanceRepository, request: FindDueUsersInput
) -> tuple[Scope, ...]:
    """Users with something due, those whose turn came first before others of the same kind."""
    found: dict[Scope, None] = {}
    async for memory_type, where, order_by in _questions(repository, request):
        wanted = request.most - len(found)
        if wanted <= 0:
            break
        scopes = await repository.scopes(
            memory_type,
            (*where, of_population(request.population)),
            order_by=order_by,
            limit=wanted,
            skip=(*request.skip, *found),
        )
        found.update(dict.fromkeys(scopes))
    return tuple(found)


async def _questions(
    repository: MaintenanceRepository, request: FindDueUsersInput
) -> AsyncIterator[_Question]:
    rules = request.rules
    match request.kind:
        case PassKind.CONSOLIDATION:
            yield MemoryType.EPISODIC, (Missing("consolidated_at"),), "known_at"
        case PassKind.DECAY:
            for memory_type in STORED_TYPES:
                yield memory_type, (due_by(request.now),), "review_at"
            async for question in _judged_otherwise(repository, rules):
                yield question
        case PassKind.PROMOTION:
            yield MemoryType.SEMANTIC, to_consider(rules), "known_at"
            where = _under_energy(rules)
            if where is not None:
                for memory_type in STORED_TYPES:
                    yield memory_type, (due_by(request.now), *where), "review_at"


async def _judged_otherwise(
    repository: MaintenanceRepository, rules: LifecycleRules
) -> AsyncIterator[_Question]:
    exceptions = (*rules.energy_namespaces, *rules.retention_namespaces)
    for memory_type in STORED_TYPES:
        for namespace in (_OTHERS, *exceptions):
            # No namespace is called that, so it goes by the policy of all others.
            current = fingerprint(rules, namespace)
            foreign = await judged_otherwise(repository, memory_type, current)
            if foreign is not None:
                yield memory_type, (foreign, *_within(namespace, exceptions)), "known_at"


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
