"""The audit trail: the operation that reads it, and the one place that notes what is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, Field

from engram.domain.access import Access
from engram.domain.deeds import Actor, AuditEntry, AuditFilter, Outcome
from engram.domain.scope import Scope
from engram.domain.turns import check_moment
from engram.errors import AuditUnwritable, EngramError, InvalidQuery
from engram.operations.registry import (
    Answer,
    Answered,
    Asked,
    Handlers,
    Operation,
    Question,
    handles,
)
from engram.storage.chain import BreakKind

if TYPE_CHECKING:
    # Reads and writes files; whoever only asks another process needs none of it.
    from engram.storage.trail import AuditTrail

# --- who asks

DOOR_HEADER: Final = "Engram-Door"
"""Says by which way an attached process was asked; believed from the data folder's owner only."""
_acting: ContextVar[Actor | None] = ContextVar("engram_acting", default=None)


_LIBRARY: Final = Actor()


@contextmanager
def acting(actor: Actor) -> Iterator[None]:
    """Let what is asked in the block be asked by ``actor``."""
    token = _acting.set(actor)
    try:
        yield
    finally:
        _acting.reset(token)


def who_acts() -> Actor:
    """Who asks; a program that says nothing is one that uses the library."""
    return _acting.get() or _LIBRARY


# --- noting what is asked, and what comes of it

# Where ids of memories stand in answers and requests. What has an id is taken whole: what a
# memory itself names, it names to whoever reads it.
_IDS: Final = frozenset(
    {"id", "memory_id", "other_id", "habit_id", "source_id", "target_id", "episode_id"}
    | {"episode_ids", "fact_ids", "negation_ids", "forgotten_ids", "memory_ids", "member_ids"}
    | {"source_ids", "missing_sources", "negated_by", "linked_from", "promoted", "omitted"}
    | {"kept", "refuted", "examples"}
)
_PARTS: Final = frozenset(
    {"memory", "memories", "sources", "evidence", "missing_evidence", "lines", "merges", "links"}
    | {"explanation", "changes", "faintest", "diagnoses", "findings", "problems"}
    | {"found", "mended", "candidates"}
)


def ids_in(found: Any) -> list[str]:
    """The ids of the memories that an answer or a request is about, as they are met in it."""
    ids: list[str] = []
    _collect(found, ids)
    return ids


def _collect(found: Any, ids: list[str]) -> None:
    if isinstance(found, str):
        ids.append(found)
    elif isinstance(found, list | tuple):
        for one in found:
            _collect(one, ids)
    elif isinstance(found, BaseModel):
        held = found.__dict__
        for name in _places(type(found)):
            _collect(held[name], ids)


@cache
def _places(kind: type[BaseModel]) -> tuple[str, ...]:
    """The fields of a model that are ids, or have some."""
    fields = kind.model_fields
    if "id" in fields:
        return ("id",)
    # What is explained may be in words.
    parts = {name for name in _PARTS & fields.keys() if fields[name].annotation is not str}
    return tuple(name for name in fields if name in _IDS or name in parts)


class Auditor:
    """Carries operations out, and notes them in the trail.

    What is more than reading is noted before it is done as well: should the process die
    over it, the trail says that it was begun.

    Args:
        handlers: Carry them out.
        trail: Where it is noted.
        new_id: Makes a fresh id.
    """

    def __init__(self, handlers: Handlers, trail: AuditTrail, new_id: Callable[[], str]) -> None:
        self._handlers = handlers
        self._trail = trail
        self._new_id = new_id

    async def call(
        self, scope: Scope, operation: Operation[Asked, Answer], request: Asked
    ) -> Answer:
        """Carry ``operation`` out for one user.

        Raises:
            AuditUnwritable: the trail is required, and cannot be written to. What only reads
                may have been done; the answer is withheld.
            EngramError: what the handler raises.
        """
        entry_id, asked = self._new_id(), ids_in(request)
        changes = operation.access is not Access.READ and operation is not AUDIT
        if changes:
            self._note(entry_id, scope, operation.name, Outcome.BEGUN, memory_ids=asked)
        try:
            answer = await self._handlers.call(scope, operation, request)
        except BaseException as error:
            outcome, code = _outcome_of(error)
            # What cannot be noted is logged; why it was not done matters more to who asked.
            with suppress(AuditUnwritable):
                self._note(entry_id, scope, operation.name, outcome, memory_ids=asked, error=code)
            raise
        found = [] if operation is AUDIT else ids_in(answer)
        self._note(
            entry_id,
            scope,
            operation.name,
            Outcome.DONE,
            memory_ids=(*asked, *found),
            # Who has no memory shall not be named: a stranger to whoever guesses, or erased.
            keep_name=changes and bool(found),
        )
        return answer

    def refused(self, scope: Scope, action: str, error: EngramError) -> None:
        """Note what a door refused before it came here.

        Raises:
            AuditUnwritable: the trail is required, and cannot be written to.
        """
        outcome, code = _outcome_of(error)
        self._note(self._new_id(), scope, action, outcome, error=code)

    def _note(
        self,
        entry_id: str,
        scope: Scope,
        action: str,
        outcome: Outcome,
        *,
        memory_ids: Iterable[str] = (),
        error: str | None = None,
        keep_name: bool = False,
    ) -> None:
        self._trail.record(
            entry_id,
            who_acts(),
            action,
            scope,
            outcome,
            memory_ids=memory_ids,
            error=error,
            keep_name=keep_name,
        )


def _outcome_of(error: BaseException) -> tuple[Outcome, str]:
    if isinstance(error, EngramError):
        return (Outcome.FAILED if error.retryable else Outcome.REFUSED), error.code
    return Outcome.FAILED, type(error).__name__


# --- reading the trail


class AskAudit(Question):
    """Which entries of the audit trail are asked for, the newest first.

    Attributes:
        everybody: Of every user of every namespace, instead of this one.
        action: Of this operation only.
        key_id: Of this API key only.
        memory_id: About this memory only.
        since: From then on.
        until: Before that.
        limit: 1 to 1000.
        cursor: Of the page before.
    """

    everybody: bool = False
    action: str | None = None
    key_id: str | None = None
    memory_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    limit: int = Field(default=100, ge=1, le=1000)
    cursor: str | None = None


class AuditBreak(Answered):
    """A place where the trail is not as it was written.

    Attributes:
        file: Its name in the folder of the trail.
        line: Counted from 1; 0: the file as a whole.
        kind: What is wrong.
    """

    file: str
    line: int
    kind: BreakKind


class AuditPage(Answered):
    """Entries of the audit trail, the newest first.

    Attributes:
        entries: That were asked for.
        breaks: Where what was read for them was changed, cut or taken away; every file of the
            trail is missed, also those that were not read.
        cursor: Brings the next page; None at the end.
    """

    entries: tuple[AuditEntry, ...] = ()
    breaks: tuple[AuditBreak, ...] = ()
    cursor: str | None = None


AUDIT: Final = Operation(
    "audit",
    AskAudit,
    AuditPage,
    "Who read, changed or removed what, by id; no API key opens this.",
    access=Access.ADMIN,
    operator_only=True,
)


class AuditHandlers:
    """Carries out the operations of this module.

    Args:
        trail: What is read; None where none is kept.
    """

    def __init__(self, trail: AuditTrail | None) -> None:
        self._trail = trail

    @handles(AUDIT)
    async def audit(self, scope: Scope, asked: AskAudit) -> AuditPage:
        """Who did what.

        Raises:
            InvalidQuery: no trail is kept here, or the cursor or a moment cannot be used.
        """
        if self._trail is None:
            raise InvalidQuery(
                "No audit trail is kept here.",
                allowed="ENGRAM_AUDIT_DAYS of 1 or more, and in the connected mode "
                "ENGRAM_AUDIT_FOLDER",
            )
        for moment in (asked.since, asked.until):
            if moment is not None:
                check_moment(moment)
        wanted = AuditFilter(
            scope=None if asked.everybody else scope,
            **asked.model_dump(include={"action", "key_id", "memory_id", "since", "until"}),
        )
        found = await asyncio.to_thread(
            self._trail.read, wanted, limit=asked.limit, cursor=asked.cursor
        )
        return AuditPage(
            entries=found.entries,
            breaks=tuple(
                AuditBreak(file=one.file, line=one.line, kind=one.kind) for one in found.breaks
            ),
            cursor=found.cursor,
        )
