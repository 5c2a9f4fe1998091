"""The query vocabulary means the same on every engine, and the same as plain Python."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from engram.domain.memories import Category, Link, MemoryStatus, MemoryType, Slot
from engram.errors import InvalidQuery
from engram.ports import (
    After,
    AnyOf,
    Between,
    Condition,
    Either,
    Equals,
    Filter,
    HasId,
    MemoryRepository,
    Missing,
    Not,
    SearchRequest,
)
from tests.support.engines import ADA, BOB, T0, memory_id, new, semantic, vectors
from tests.support.reference_store import matches

SEMANTIC = MemoryType.SEMANTIC
TICK = timedelta(microseconds=1)


def _knowledge() -> list[Any]:
    made = []
    for number in range(24):
        known_at = T0 + number // 2 * TICK
        values: dict[str, Any] = {
            "tags": ("even", "all") if number % 2 == 0 else (),
            "session_id": None if number % 5 == 0 else f"s{number % 3}",
            "status": MemoryStatus.SUPERSEDED if number % 4 == 0 else MemoryStatus.ACTIVE,
            "superseded_known_at": known_at + 3 * TICK if number % 4 == 0 else None,
            "is_test": number % 6 == 0,
            "importance": number / 24,
            "selectivity": 1.0 if number == 7 else 0.0,
            "revision": number % 4,
            "category": Category.PREFERENCE if number % 2 else Category.FACT,
            "slot": Slot(subject="ada", predicate=f"p{number % 2}", object="x")
            if number % 3
            else None,
            "entities": ("ada", f"e{number}"),
            "links": (Link(target_id=memory_id("hub"), first_seen=T0, last_seen=T0),)
            if number % 7 == 0
            else (),
            "valid_to": known_at if number % 2 else None,
        }
        made.append(semantic(ADA, f"known {number}", known_at, **values))
    return made


KNOWLEDGE = _knowledge()
LISBON = timezone(timedelta(hours=1))

FILTERS: list[Filter] = [
    (),
    (Equals("status", "active"),),
    (Equals("status", "Active"),),
    (Equals("is_test", value=True),),
    (Equals("is_test", value=False),),
    (Equals("revision", 0),),
    (Equals("revision", 3),),
    (Equals("tags", "even"),),
    (Equals("slot.subject", "ada"), Equals("slot.predicate", "p1")),
    (Equals("related_ids", memory_id("hub")),),
    (Equals("entities", "e11"),),
    (AnyOf("session_id", ("s0", "s2", "none such")),),
    (AnyOf("category", ("preference",)),),
    (AnyOf("tags", ("all", "even")),),
    (AnyOf("status", ()),),
    (Between("importance", at_least=0.25),),
    (Between("importance", at_least=0.25, at_most=0.5),),
    (Between("revision", at_least=3, at_most=3),),
    (Between("revision", at_most=2.5),),
    (Between("selectivity", at_least=1.0),),
    (Between("known_at", at_least=T0 + 2 * TICK),),
    (Between("known_at", at_most=T0 + 2 * TICK),),
    (Between("known_at", at_least=T0 + 2 * TICK, at_most=T0 + 2 * TICK),),
    (Between("known_at", at_least=T0 + 3 * TICK, at_most=T0 + 2 * TICK),),
    (Between("known_at", at_least=(T0 + 2 * TICK).astimezone(LISBON)),),
    (After("known_at", T0 + 2 * TICK),),
    (After("importance", 0.25),),
    (After("revision", 22),),
    (Missing("session_id"),),
    (Missing("tags"),),
    (Missing("slot.subject"),),
    (Missing("valid_to"),),
    (Missing("related_ids"),),
    (Missing("known_at"),),
    (Not(Missing("superseded_known_at")),),
    (Not(Equals("tags", "even")),),
    (Not(Not(Equals("tags", "even"))),),
    (Not(Between("superseded_known_at", at_most=T0 + 5 * TICK)),),
    (Not(Either((Equals("tags", "even"), Equals("category", "preference")))),),
    (Not(Either(())),),
    (Not(AnyOf("status", ())),),
    (Either(()),),
    (Either((Equals("revision", 3), Equals("revision", 4))),),
    (
        Either((Missing("superseded_known_at"), After("superseded_known_at", T0 + 8 * TICK))),
        Between("known_at", at_most=T0 + 8 * TICK),
        Not(Equals("is_test", value=True)),
    ),
    (Either((Not(Missing("valid_to")), Either((Equals("revision", 0),)))),),
    (HasId((memory_id("known 3"), memory_id("unknown"), "no id")),),
    (HasId(()),),
    (Not(HasId((memory_id("known 3"),))),),
    (Not(HasId(())),),
    (Either((HasId((memory_id("known 3"),)), Equals("revision", 4))),),
]


async def test_every_filter_finds_what_plain_python_finds(repository: MemoryRepository) -> None:
    """Counting, listing and searching agree with the definition, for each kind of condition."""
    await repository.insert(ADA, map(new, KNOWLEDGE))
    others = [semantic(BOB, f"bob {number}", tags=("even",)) for number in range(5)]
    await repository.insert(BOB, map(new, others))
    seen = 0
    for where in FILTERS:
        expected = {memory.id for memory in KNOWLEDGE if matches(memory, where)}
        page = await repository.scroll(ADA, SEMANTIC, where=where, limit=100)
        request = SearchRequest(vectors(), (SEMANTIC,), 100, {SEMANTIC: where})
        found = await repository.search(ADA, request)
        assert await repository.count(ADA, SEMANTIC, where) == len(expected), where
        assert {memory.id for memory in page.memories} == expected, where
        assert {hit.memory.id for hit in found} == expected, where
        seen += 0 < len(expected) < len(KNOWLEDGE)
    # Filters that hold for all or none prove little: most must cut in between.
    assert seen > len(FILTERS) * 0.6


UNFIT: list[Condition] = [
    Equals("known_at", "2025-06-01T12:00:00Z"),
    Equals("importance", 1),
    Equals("status", 1),
    Equals("status", value=True),
    Equals("revision", "1"),
    Equals("revision", value=True),
    Equals("is_test", 1),
    AnyOf("revision", ("1",)),
    AnyOf("known_at", ()),
    AnyOf("status", (1,)),  # type: ignore[arg-type]  # the mistake under test
    Between("known_at"),
    Between("known_at", at_least=datetime(2025, 6, 1)),  # noqa: DTZ001  # the mistake under test
    Between("known_at", at_least=1.0),
    Between("status", at_least=1.0),
    Between("importance", at_least=T0),
    Between("importance", at_most=math.nan),
    Between("importance", at_most=math.inf),
    After("is_test", 0),
    Not(After("is_test", 0)),
    Either((Missing("status"), After("is_test", 0))),
]


async def test_conditions_that_do_not_fit_their_field_are_refused(
    repository: MemoryRepository,
) -> None:
    """Engines would answer each of these differently: a typed error names what is allowed."""
    for unfit in UNFIT:
        with pytest.raises(InvalidQuery) as refused:
            await repository.count(ADA, SEMANTIC, (unfit,))
        assert refused.value.allowed, unfit
