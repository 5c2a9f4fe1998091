"""A recall request, and which memories count for it: as a rule and as store conditions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from engram.domain.memories import (
    ANSWERING_FORMS,
    STORED_TYPES,
    DerivedMemory,
    Memory,
    MemoryForm,
    MemoryStatus,
    MemoryType,
)
from engram.domain.scope import check_identifier
from engram.errors import InvalidQuery
from engram.ports import After, AnyOf, Between, Condition, Either, Equals, Filter, Not
from engram.settings import Settings

# --- which memories count as an answer: by status, by what was known when, by what was true when
#
# The same rule as conditions for a store is in ``engram.recall.request``; a
# property test holds the two together.


@dataclass(frozen=True, slots=True)
class Visibility:
    """From when, and of when, one looks at memory.

    Attributes:
        now: The present. Without ``as_of``, what counts is what is active now.
        as_of: Only what was known then, and had not been replaced then; whatever
            became of it later.
        valid_at: Only what was true then, of what is known (``as_of`` or now).
            This brings back replaced memories for the time they were true. It
            excludes no episode: what was said was said.
        include_archived: Archived memories count too.
        include_test: Test memories count too.
    """

    now: datetime
    as_of: datetime | None = None
    valid_at: datetime | None = None
    include_archived: bool = False
    include_test: bool = False

    @property
    def moment(self) -> datetime:
        """The moment one looks from."""
        return self.as_of or self.now

    def counts(self, memory: Memory) -> bool:
        """Whether ``memory`` counts."""
        return (
            (self.include_test or not memory.is_test)
            and (memory.expires_at is None or memory.expires_at > self.moment)
            and (self._stands(memory) if self.as_of is None else self._stood(memory, self.as_of))
            and (self.valid_at is None or self._true(memory, self.valid_at))
        )

    @property
    def standing(self) -> tuple[MemoryStatus, ...]:
        """The statuses that count now."""
        archived = (MemoryStatus.ARCHIVED,) if self.include_archived else ()
        replaced = (MemoryStatus.SUPERSEDED,) if self.valid_at is not None else ()
        return (MemoryStatus.ACTIVE, *archived, *replaced)

    def _stands(self, memory: Memory) -> bool:
        if memory.status is MemoryStatus.SUPERSEDED:
            return self._was_true(memory)
        return memory.status in self.standing

    def _stood(self, memory: Memory, then: datetime) -> bool:
        if memory.known_at > then:
            return False
        replaced = memory.superseded_known_at
        return replaced is None or replaced > then or self._was_true(memory)

    def _was_true(self, memory: Memory) -> bool:
        """Whether a replaced memory counts for the time before its end."""
        return (
            self.valid_at is not None
            and isinstance(memory, DerivedMemory)
            and memory.valid_to is not None
            and memory.valid_to > self.valid_at
        )

    def _true(self, memory: Memory, when: datetime) -> bool:
        if not isinstance(memory, DerivedMemory):
            return True
        if memory.valid_from is not None and memory.valid_from > when:
            return False
        return memory.valid_to is None or memory.valid_to > when or self._end_unknown(memory)

    def _end_unknown(self, memory: DerivedMemory) -> bool:
        """Whether its end was only learnt after ``as_of``, with what replaced it."""
        replaced = memory.superseded_known_at
        return self.as_of is not None and replaced is not None and replaced > self.as_of


# --- what recall is asked, checked before anything is searched


@dataclass(frozen=True, slots=True)
class RecallRequest:
    """One question with its bounds. Built by :meth:`of`, which checks it.

    Attributes:
        query: The question.
        limit: How many answers at most.
        types: The types to search.
        min_confidence: Derived memories below this composite confidence stay out, 0 to 1.
        min_selectivity: Semantic memories below this selectivity stay out, 0 to 1.
        include_sources: Bring the episodes that each answer was concluded from.
        follow_links: Bring also what the answers are linked to.
        as_of: What was known then.
        valid_at: What was true then.
        include_archived: Bring archived memories too.
        include_test: Bring test memories too.
        session_id: Only memories of this session.
        tags: Only memories that carry at least one of these.
        explain: Explain every answer.
        forms: The forms of semantic memories that answer.
    """

    query: str
    limit: int = 10
    types: tuple[MemoryType, ...] = STORED_TYPES
    min_confidence: float | None = None
    min_selectivity: float | None = None
    include_sources: bool = False
    follow_links: bool = False
    as_of: datetime | None = None
    valid_at: datetime | None = None
    include_archived: bool = False
    include_test: bool = False
    session_id: str | None = None
    tags: tuple[str, ...] = ()
    explain: bool = False
    forms: tuple[MemoryForm, ...] = ANSWERING_FORMS

    @classmethod
    def of(
        cls,
        query: str,
        *,
        settings: Settings,
        limit: int = 10,
        memory_types: Iterable[MemoryType | str] | MemoryType | str | None = None,
        min_confidence: float | None = None,
        min_selectivity: float | None = None,
        include_sources: bool = False,
        follow_links: bool = False,
        as_of: datetime | None = None,
        valid_at: datetime | None = None,
        include_archived: bool = False,
        include_test: bool = False,
        session_id: str | None = None,
        tags: Sequence[str] | None = None,
        explain: bool = False,
        forms: Iterable[MemoryForm | str] | None = None,
    ) -> RecallRequest:
        """A request from outside input.

        Raises:
            InvalidQuery: naming the argument and what is allowed.
            InvalidScope: the session id has a form that is refused.
        """
        _check_query(query, settings.max_turn_bytes)
        _check_limit(limit, settings.recall_max_limit)
        _check_share(min_confidence, "min_confidence")
        _check_share(min_selectivity, "min_selectivity")
        _check_moment(as_of, "as_of")
        _check_moment(valid_at, "valid_at")
        if session_id is not None:
            check_identifier(session_id, "session id")
        return cls(
            query=query,
            limit=limit,
            types=_types(memory_types),
            min_confidence=min_confidence,
            min_selectivity=min_selectivity,
            include_sources=include_sources,
            follow_links=follow_links,
            as_of=as_of,
            valid_at=valid_at,
            include_archived=include_archived,
            include_test=include_test,
            session_id=session_id,
            tags=_tags(tags),
            explain=explain,
            forms=_forms(forms),
        )

    def visibility(self, now: datetime) -> Visibility:
        """From when one looks, asking at ``now``."""
        return Visibility(
            now=now,
            as_of=self.as_of,
            valid_at=self.valid_at,
            include_archived=self.include_archived,
            include_test=self.include_test,
        )


def _check_query(query: object, max_bytes: int) -> None:
    if not isinstance(query, str) or not query.strip():
        raise InvalidQuery("The query is empty.", allowed="text with a visible character")
    try:
        size = len(query.encode())
    except UnicodeEncodeError as error:
        raise InvalidQuery(
            "The query holds a lone surrogate, so it is not valid Unicode.",
            allowed="text that can be encoded as UTF-8",
        ) from error
    if size > max_bytes:
        raise InvalidQuery(
            f"The query has {size} bytes.",
            allowed=f"up to {max_bytes} bytes of UTF-8",
            details={"size": size, "limit": max_bytes},
        )


def _check_limit(limit: object, most: int) -> None:
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= most:
        raise InvalidQuery(
            "The limit is out of range.",
            allowed=f"a whole number from 1 to {most}",
            hint="ENGRAM_RECALL_MAX_LIMIT sets the upper bound.",
        )


def _check_share(value: Any, what: str) -> None:
    if value is None:
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0.0 <= value <= 1.0:
        raise InvalidQuery(f"{what} is out of range.", allowed="a number from 0 to 1, or None")


def _check_moment(moment: object, what: str) -> None:
    if moment is None:
        return
    if not isinstance(moment, datetime) or moment.utcoffset() is None:
        raise InvalidQuery(
            f"{what} is not a moment in time.",
            allowed="an aware datetime, or None",
            hint="Pass datetime(..., tzinfo=timezone.utc).",
        )


def _types(
    asked: Iterable[MemoryType | str] | MemoryType | str | None,
) -> tuple[MemoryType, ...]:
    if asked is None:
        return STORED_TYPES
    names = (asked,) if isinstance(asked, str) else tuple(asked)
    allowed = ", ".join(memory_type.value for memory_type in STORED_TYPES)
    if not names:
        raise InvalidQuery("No memory type is asked for.", allowed=f"{allowed}, or None for all")
    try:
        chosen = {MemoryType(name) for name in names}
    except ValueError as error:
        raise InvalidQuery("A memory type is unknown.", allowed=allowed) from error
    return tuple(memory_type for memory_type in STORED_TYPES if memory_type in chosen)


def _forms(asked: Iterable[MemoryForm | str] | None) -> tuple[MemoryForm, ...]:
    if asked is None:
        return ANSWERING_FORMS
    allowed = ", ".join(form.value for form in MemoryForm)
    names = (asked,) if isinstance(asked, str) else tuple(asked)
    try:
        chosen = {MemoryForm(name) for name in names}
    except ValueError as error:
        raise InvalidQuery("A form of memories is unknown.", allowed=allowed) from error
    if not chosen:
        raise InvalidQuery("No form is asked for.", allowed=f"{allowed}, or None")
    return tuple(form for form in MemoryForm if form in chosen)


def _tags(tags: Any) -> tuple[str, ...]:
    if tags is None:
        return ()
    is_list = isinstance(tags, list | tuple | set | frozenset)
    if not is_list or not tags or not all(isinstance(tag, str) and tag for tag in tags):
        raise InvalidQuery("The tags are not usable.", allowed="a list of non-empty tags, or None")
    return tuple(dict.fromkeys(tags))


# --- what a request asks for, as conditions that the store checks


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
