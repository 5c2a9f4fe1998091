"""The addresses under ``/v1`` that every engine answers; operations add theirs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import FastAPI, Query
from pydantic import BaseModel, ConfigDict, Field

from engram.client.intake import TurnIntake
from engram.client.models import MemoryPage, MemoryStats, Receipt
from engram.client.operations import OPERATIONS, Operation, Question
from engram.contracts.consolidation import ConsolidationReport
from engram.contracts.sessions import EncodeCall, RememberedTurn, SessionSummary
from engram.domain.access import Access
from engram.domain.memories import STORED_TYPES, AnyMemory, MemoryStatus, MemoryType
from engram.domain.turns import Turn
from engram.http.guarded import takes
from engram.http.parts import (
    MEMORY,
    SESSION,
    USER,
    Engine,
    Ids,
    Limits,
    MemoryId,
    Present,
    Session,
    Whose,
)
from engram.recall.models import RecallHit
from engram.recall.request import RecallRequest

IncludeTest = Annotated[bool, Query(description="Bring test memories too.")]


class EncodeBody(BaseModel):
    """Turns of one session; all of them are stored, or none.

    Attributes:
        turns: In the order in which they were said. A turn without a timestamp was said
            now; one without a message id is stored anew whenever it is sent.
        extract_facts: Whether e-mails, dates and the like are taken out at once.
        is_test: Whether they are test turns, which no real recall brings.
    """

    model_config = ConfigDict(extra="forbid")

    turns: tuple[Turn, ...] = Field(min_length=1)
    extract_facts: bool = True
    is_test: bool = False


class RecallBody(BaseModel):
    """A question; the fields are those of ``MemoryStore.recall``."""

    model_config = ConfigDict(extra="forbid")

    query: str
    limit: int = 10
    memory_types: tuple[str, ...] | None = None
    min_confidence: float | None = None
    min_selectivity: float | None = None
    include_sources: bool = False
    follow_links: bool = False
    as_of: datetime | None = None
    valid_at: datetime | None = None
    include_archived: bool = False
    include_test: bool = False
    session_id: str | None = None
    tags: tuple[str, ...] | None = None
    explain: bool = False
    forms: tuple[str, ...] | None = None


async def encode(
    engine: Engine,
    scope: Whose,
    session: Session,
    limits: Limits,
    clock: Present,
    new_id: Ids,
    body: EncodeBody,
) -> Receipt:
    """Answers when they are stored and searchable; a message id that is known stores nothing."""
    intake = TurnIntake(clock, new_id, max_bytes=limits.max_turn_bytes)
    call = EncodeCall(
        turns=intake.accept(body.turns), extract_facts=body.extract_facts, is_test=body.is_test
    )
    return await engine.encode(scope, session, call)


async def end_session(engine: Engine, scope: Whose, session: Session) -> SessionSummary | None:
    """Its consolidation follows in the background; null if it was not running."""
    return await engine.end_session(scope, session)


async def working_memory(
    engine: Engine, scope: Whose, session: Session, include_test: IncludeTest = False
) -> list[RememberedTurn]:
    """The recent turns of a running session, oldest first; empty if it does not run."""
    return await engine.working_memory(scope, session, include_test=include_test)


async def recall(
    engine: Engine, scope: Whose, limits: Limits, asked: RecallBody
) -> list[RecallHit]:
    """The memories that answer, best first, with sources and reasons where asked for."""
    request = RecallRequest.of(settings=limits, **asked.model_dump())
    return await engine.recall(scope, request)


async def list_memories(
    engine: Engine,
    scope: Whose,
    memory_type: Annotated[
        list[MemoryType] | None, Query(description="Only these types; may be repeated.")
    ] = None,
    status: Annotated[MemoryStatus | None, Query(description="Only this status.")] = None,
    limit: Annotated[int, Query(description="Memories of one page, 1 to 1000.")] = 100,
    cursor: Annotated[
        str | None, Query(description="As the page before gives it; the first has none.")
    ] = None,
    include_test: Annotated[bool, Query(description="Test memories too.")] = False,
) -> MemoryPage:
    """One page, type by type, oldest known first; its cursor leads to the next."""
    return await engine.list_memories(
        scope,
        memory_types=tuple(memory_type) if memory_type else STORED_TYPES,
        status=status,
        limit=limit,
        cursor=cursor,
        include_test=include_test,
    )


async def get_memory(engine: Engine, scope: Whose, memory_id: MemoryId) -> AnyMemory:
    """With everything that is known of it."""
    return await engine.get(scope, memory_id)


async def history(engine: Engine, scope: Whose, memory_id: MemoryId) -> list[AnyMemory]:
    """What it replaced and what replaced it, oldest first."""
    return await engine.history(scope, memory_id)


async def stats(engine: Engine, scope: Whose) -> MemoryStats:
    """By type: all, and those that are active."""
    return await engine.stats(scope)


async def consolidate(
    engine: Engine,
    scope: Whose,
    test_only: Annotated[bool, Query(description="Test turns only, instead of others.")] = False,
    dry_run: Annotated[bool, Query(description="Only say how many turns wait.")] = False,
) -> ConsolidationReport:
    """Answers when it is done."""
    return await engine.consolidate(scope, test_only=test_only, dry_run=dry_run)


@dataclass(frozen=True, slots=True)
class Offer:
    """One address: how it is asked, what it does, and which access it takes."""

    method: str
    path: str
    does: Callable[..., Any]
    access: Access
    summary: str


OFFERS: Final = (
    Offer("POST", SESSION + "/turns", encode, Access.WRITE, "Store turns"),
    Offer("POST", SESSION + "/end", end_session, Access.WRITE, "End a session"),
    Offer("GET", SESSION + "/working-memory", working_memory, Access.READ, "Recent turns"),
    Offer("POST", USER + "/recall", recall, Access.READ, "Ask what is remembered"),
    Offer("GET", USER + "/memories", list_memories, Access.READ, "List memories"),
    Offer("GET", MEMORY, get_memory, Access.READ, "Read one memory"),
    Offer("GET", MEMORY + "/history", history, Access.READ, "A memory's versions"),
    Offer("GET", USER + "/stats", stats, Access.READ, "How much is kept"),
    Offer("POST", USER + "/consolidate", consolidate, Access.ADMIN, "Consolidate now"),
)


def add_routes(app: FastAPI) -> None:
    """Offer everything that is asked of one user's memory."""
    for offer in OFFERS:
        app.add_api_route(
            offer.path,
            offer.does,
            methods=[offer.method],
            operation_id=offer.does.__name__,
            name=offer.does.__name__,
            summary=offer.summary,
            tags=["memory"],
            openapi_extra=takes(offer.access),
        )
    for operation in OPERATIONS:
        _add_operation(app, operation)


def _add_operation(app: FastAPI, operation: Operation[Any, Any]) -> None:
    """One address for an operation, typed by its description."""

    async def perform(engine: Engine, scope: Whose, asked: Question) -> Any:
        return await engine.perform(scope, operation, asked)

    # FastAPI reads the type of the body from here; it differs by operation.
    perform.__annotations__["asked"] = operation.asked
    name = operation.name.replace("-", "_")
    app.add_api_route(
        f"{USER}/{operation.name}",
        perform,
        methods=["POST"],
        operation_id=name,
        name=name,
        summary=operation.name.replace("-", " ").capitalize(),
        description=operation.about,
        tags=["operations"],
        response_model=operation.answer,
        openapi_extra=takes(operation.access),
    )
