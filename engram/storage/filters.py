"""The query vocabulary, checked against the schema and said in an engine's own words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from engram.domain.memories import MemoryType
from engram.domain.scope import Scope
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
    Missing,
    Not,
)
from engram.storage.ledger import ASIDE
from engram.storage.payload import TENANT, FieldKind, field_kind, format_time, is_memory_id

EngineFilter = TypeVar("EngineFilter")
"""An engine's filter, which both engines also accept as a condition inside a filter."""


@dataclass(frozen=True, slots=True)
class Range:
    """Bounds on a number, or on a time in the store's text form."""

    gte: float | str | None = None
    lte: float | str | None = None
    gt: float | str | None = None
    lt: float | str | None = None


class Dialect(Protocol[EngineFilter]):
    """How one engine writes conditions down. Each method gives a whole filter."""

    def equals(self, field: str, value: str | int) -> EngineFilter:
        """The field holds the value."""
        ...

    def any_of(self, field: str, values: list[str]) -> EngineFilter:
        """The field holds one of the values, of which there is at least one."""
        ...

    def within(self, field: str, bounds: Range, *, time: bool) -> EngineFilter:
        """The field lies within the bounds."""
        ...

    def missing(self, field: str) -> EngineFilter:
        """The field is absent, null or empty."""
        ...

    def ids(self, ids: list[str]) -> EngineFilter:
        """The point is one of these; none at all if the list is empty."""
        ...

    def every(self, filters: Sequence[EngineFilter]) -> EngineFilter:
        """All of these hold."""
        ...

    def either(self, filters: Sequence[EngineFilter]) -> EngineFilter:
        """At least one of these holds."""
        ...

    def negation(self, inner: EngineFilter) -> EngineFilter:
        """This does not hold."""
        ...


class Translator(Generic[EngineFilter]):
    """Turns the vocabulary into an engine's filters; the one place that adds a filter's tenant."""

    def __init__(self, dialect: Dialect[EngineFilter]) -> None:
        self._dialect = dialect

    def tenant(self, scope: Scope) -> EngineFilter:
        """All of one user's memories and nobody else's."""
        return self._dialect.equals(TENANT, scope.tenant)

    def within(
        self, scope: Scope, memory_type: MemoryType, where: Filter = (), *more: Condition
    ) -> EngineFilter:
        """The conditions, confined to the scope.

        Raises:
            UnindexedField: a condition names a field without an index.
            InvalidQuery: a condition does not fit the kind of its field.
        """
        conditions = [self.condition(memory_type, condition) for condition in (*where, *more)]
        mine = self.tenant(scope)
        return self._dialect.every([mine, *conditions]) if conditions else mine

    def across_tenants(
        self, memory_type: MemoryType, where: Filter, *, without: Sequence[Scope]
    ) -> EngineFilter:
        """The conditions over all users but these; for reads that answer with scopes only."""
        say = self._dialect
        found = [self.condition(memory_type, condition) for condition in where]
        if memory_type is MemoryType.EPISODIC:
            found.append(say.negation(self.aside()))
        if without:
            tenants = [scope.tenant for scope in without]
            found.append(say.negation(say.any_of(TENANT, tenants)))
        return say.every(found)

    def aside(self) -> EngineFilter:
        """What a store keeps of the forgotten, of all users; none of it is a memory."""
        return self._dialect.equals("namespace", ASIDE)

    def condition(self, memory_type: MemoryType, condition: Condition) -> EngineFilter:
        """One condition, without the tenant."""
        say = self._dialect
        match condition:
            case HasId(ids):
                # What is not a UUID names nothing, and engines refuse to be asked.
                return say.ids([memory_id for memory_id in ids if is_memory_id(memory_id)])
            case Not(inner):
                return say.negation(self.condition(memory_type, inner))
            case Either(conditions):
                # Engines take an empty "should" for "anything".
                found = [self.condition(memory_type, inner) for inner in conditions]
                return say.either(found) if found else say.ids([])
            case _:
                return self._on_field(field_kind(memory_type, condition.field), condition)

    def _on_field(
        self, kind: FieldKind, condition: Equals | AnyOf | Between | After | Missing
    ) -> EngineFilter:
        say = self._dialect
        match condition:
            case Missing(field):
                return say.missing(field)
            case Equals(field, value):
                _check_value(kind, field, value)
                return say.equals(field, int(value) if kind is FieldKind.BOOL else value)
            case AnyOf(field, values):
                for one in values:
                    _check_value(kind, field, one)
                if kind is not FieldKind.KEYWORD:
                    raise _unfit(kind, field, "is asked for one of several values")
                return say.any_of(field, list(values)) if values else say.ids([])
            case Between(field, at_least, at_most):
                if at_least is None and at_most is None:
                    raise _unfit(kind, field, "is compared with no bound at all")
                bounds = Range(gte=_bound(kind, field, at_least), lte=_bound(kind, field, at_most))
                return say.within(field, bounds, time=kind is FieldKind.DATETIME)
            case After(field, bound):
                bounds = Range(gt=_bound(kind, field, bound))
                return say.within(field, bounds, time=kind is FieldKind.DATETIME)

    def at(
        self, scope: Scope, memory_type: MemoryType, where: Filter, field: str, moment: str
    ) -> EngineFilter:
        """The conditions, and the time field at exactly this moment."""
        return self._with_bounds(scope, memory_type, where, field, Range(gte=moment, lte=moment))

    def beyond(
        self,
        scope: Scope,
        memory_type: MemoryType,
        where: Filter,
        field: str,
        moment: str | None,
        *,
        descending: bool,
    ) -> EngineFilter:
        """The conditions, and the time field strictly past a moment in this direction."""
        if moment is None:
            return self.within(scope, memory_type, where)
        bounds = Range(lt=moment) if descending else Range(gt=moment)
        return self._with_bounds(scope, memory_type, where, field, bounds)

    def _with_bounds(
        self, scope: Scope, memory_type: MemoryType, where: Filter, field: str, bounds: Range
    ) -> EngineFilter:
        confined = self.within(scope, memory_type, where)
        return self._dialect.every([confined, self._dialect.within(field, bounds, time=True)])


_VALUES = {FieldKind.KEYWORD: str, FieldKind.INTEGER: int, FieldKind.BOOL: bool}
_QUESTIONS = {
    FieldKind.KEYWORD: "Equals or AnyOf with text, Missing",
    FieldKind.INTEGER: "Equals with an integer, Between, After, Missing",
    FieldKind.FLOAT: "Between or After with finite numbers, Missing",
    FieldKind.BOOL: "Equals with True or False, Missing",
    FieldKind.DATETIME: "Between or After with aware datetimes, Missing",
}


def _unfit(kind: FieldKind, field: str, what: str) -> InvalidQuery:
    return InvalidQuery(
        f"The field {field!r} ({kind.value}) {what}.",
        allowed=_QUESTIONS[kind],
        details={"field": field, "kind": kind.value},
    )


def _check_value(kind: FieldKind, field: str, value: object) -> None:
    expected = _VALUES.get(kind)
    fits = expected is not None and isinstance(value, expected)
    # bool is an int to Python, and is not to engines.
    if not fits or (kind is FieldKind.INTEGER and isinstance(value, bool)):
        raise _unfit(kind, field, f"is compared with a {type(value).__name__}")
    if isinstance(value, str) and not _is_text(value):
        raise InvalidQuery(
            f"What the field {field!r} is compared with is not valid Unicode.",
            allowed="text that can be encoded as UTF-8",
            details={"field": field},
        )


def _is_text(value: str) -> bool:
    """Whether engines can read it: a lone surrogate they cannot."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _bound(kind: FieldKind, field: str, value: datetime | float | None) -> float | str | None:
    if value is None:
        return None
    if isinstance(value, datetime):
        if kind is not FieldKind.DATETIME:
            raise _unfit(kind, field, "is compared with a time")
        if value.utcoffset() is None:
            raise _unfit(kind, field, "is compared with a time without timezone")
        return format_time(value)
    is_number = kind in {FieldKind.INTEGER, FieldKind.FLOAT} and not isinstance(value, bool)
    if is_number and math.isfinite(value):
        return value
    raise _unfit(kind, field, f"is compared with {'an infinite' if is_number else 'this'} number")
