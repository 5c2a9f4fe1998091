"""What recall is asked, checked before anything is searched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from engram.domain.memories import ANSWERING_FORMS, STORED_TYPES, MemoryForm, MemoryType
from engram.domain.scope import check_identifier
from engram.domain.visibility import Visibility
from engram.errors import InvalidQuery
from engram.settings import Settings


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
