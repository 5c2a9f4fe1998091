"""What a store should answer, said in plain Python over a dict."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from engram.domain.memories import AnyMemory
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


def value_of(memory: AnyMemory, path: str) -> Any:
    """The value of a dotted field; None where it has none."""
    value: Any = memory
    for part in path.split("."):
        value = getattr(value, part, None)
    return value


def _values(memory: AnyMemory, path: str) -> tuple[Any, ...]:
    value = value_of(memory, path)
    if value is None:
        return ()
    return value if isinstance(value, tuple) else (value,)


def _inside(value: Any, low: datetime | float | None, high: datetime | float | None) -> bool:
    return (low is None or value >= low) and (high is None or value <= high)


def holds(memory: AnyMemory, condition: Condition) -> bool:
    """Whether a condition is true of a memory."""
    match condition:
        case Not(inner):
            return not holds(memory, inner)
        case Either(inners):
            return any(holds(memory, inner) for inner in inners)
        case HasId(ids):
            return memory.id in ids
        case _:
            return _field_holds(_values(memory, condition.field), condition)


def _field_holds(
    values: tuple[Any, ...], condition: Equals | AnyOf | Between | After | Missing
) -> bool:
    match condition:
        case Equals(_, wanted):
            return wanted in values
        case AnyOf(_, choices):
            return any(value in choices for value in values)
        case Between(_, low, high):
            return any(_inside(value, low, high) for value in values)
        case After(_, bound):
            return any(value > bound for value in values)
        case Missing():
            return not values


def matches(memory: AnyMemory, where: Filter) -> bool:
    """Whether all conditions are true of a memory."""
    return all(holds(memory, condition) for condition in where)
