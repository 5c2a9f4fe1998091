"""What a request asks for, as conditions that the store checks."""

from __future__ import annotations

from engram.domain.memories import MemoryForm, MemoryStatus, MemoryType
from engram.domain.visibility import Visibility
from engram.ports import After, AnyOf, Between, Condition, Either, Equals, Filter, Not
from engram.recall.request import RecallRequest


def where(request: RecallRequest, visibility: Visibility, memory_type: MemoryType) -> Filter:
    """All conditions of a request on one type."""
    forms: Filter = ()
    if memory_type is MemoryType.SEMANTIC and set(request.forms) != set(MemoryForm):
        forms = (AnyOf("form", tuple(form.value for form in request.forms)),)
    return (*visible(visibility, memory_type), *forms, *asked_for(request, memory_type))


def asked_for(request: RecallRequest, memory_type: MemoryType) -> Filter:
    """Those conditions that few memories may fulfil."""
    conditions: list[Condition] = []
    if request.session_id is not None:
        conditions.append(Equals("session_id", request.session_id))
    if request.tags:
        conditions.append(AnyOf("tags", request.tags))
    if request.min_selectivity is not None and memory_type is MemoryType.SEMANTIC:
        conditions.append(Between("selectivity", at_least=request.min_selectivity))
    return tuple(conditions)


def visible(visibility: Visibility, memory_type: MemoryType) -> Filter:
    """:meth:`Visibility.counts` for a store."""
    conditions: list[Condition] = []
    if not visibility.include_test:
        conditions.append(Not(Equals("is_test", value=True)))
    # "Not past" rather than "missing or to come": the same, and a third of the engine's work.
    conditions.append(Not(Between("expires_at", at_most=visibility.moment)))
    derived = memory_type is not MemoryType.EPISODIC
    if visibility.as_of is None:
        conditions.extend(_standing(visibility, derived=derived))
    else:
        conditions.extend(_stood(visibility, derived=derived))
    if visibility.valid_at is not None and derived:
        conditions.extend(_true(visibility))
    return tuple(conditions)


def _standing(visibility: Visibility, *, derived: bool) -> Filter:
    status = AnyOf("status", tuple(status.value for status in visibility.standing))
    if visibility.valid_at is None:
        return (status,)
    not_replaced = Not(Equals("status", MemoryStatus.SUPERSEDED.value))
    return (status, Either((not_replaced, *_was_true(visibility, derived=derived))))


def _stood(visibility: Visibility, *, derived: bool) -> Filter:
    then = visibility.moment
    standing = Not(Between("superseded_known_at", at_most=then))
    was_true = _was_true(visibility, derived=derived)
    return (
        Between("known_at", at_most=then),
        Either((standing, *was_true)) if was_true else standing,
    )


def _was_true(visibility: Visibility, *, derived: bool) -> Filter:
    if visibility.valid_at is None or not derived:
        return ()
    return (After("valid_to", visibility.valid_at),)


def _true(visibility: Visibility) -> Filter:
    when, then = visibility.valid_at, visibility.as_of
    assert when is not None  # noqa: S101 - for the type checker; the caller has looked
    unknown_end = () if then is None else (After("superseded_known_at", then),)
    return (
        Not(After("valid_from", when)),
        Either((Not(Between("valid_to", at_most=when)), *unknown_end)),
    )
