"""The HTTP application: everything a memory engine does, for any scope, under ``/v1``."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime
from importlib.metadata import version
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Depends, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException

from engram.client.engine import MemoryEngine
from engram.client.models import MemoryPage, MemoryStats, Receipt
from engram.client.operations import OPERATIONS, Operation, Question
from engram.client.system import system_clock
from engram.contracts.consolidation import ConsolidationReport
from engram.contracts.sessions import EncodeCall, RememberedTurn, SessionSummary
from engram.domain.memories import STORED_TYPES, AnyMemory, MemoryStatus, MemoryType
from engram.domain.scope import Scope, check_identifier
from engram.domain.turns import Turn, check_turn
from engram.errors import EngramError
from engram.http.problems import (
    BoundedBody,
    on_engram_error,
    on_http_exception,
    on_invalid_request,
)
from engram.ports import Clock
from engram.recall.models import RecallHit
from engram.recall.request import RecallRequest
from engram.settings import Settings

MAX_BODY_BYTES = 32 * 1024 * 1024
# Stand for the ids in the addresses that health gives; attached processes put theirs in.
WORKFLOW_PLACE = "WORKFLOW-ID"
RUN_PLACE = "RUN-ID"

_VERSION = version("engram-memory")

EngineProvider: TypeAlias = Callable[[], MemoryEngine]


class Health(BaseModel):
    """Who answers.

    Attributes:
        version: Of Engram.
        pid: The process.
        workflow_url: Where the Temporal UI shows a workflow, with a place for its id.
        run_url: The same for a run.
    """

    version: str
    pid: int
    workflow_url: str | None = None
    run_url: str | None = None


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


def create_app(
    engine_provider: EngineProvider,
    *,
    settings: Settings | None = None,
    clock: Clock = system_clock,
    max_body_bytes: int = MAX_BODY_BYTES,
) -> FastAPI:
    """The application.

    Args:
        engine_provider: Gives the engine to every request.
        settings: Limits on what is accepted; from the environment when absent.
        clock: The present, to tell absurd timestamps.
        max_body_bytes: Largest request body accepted.
    """
    app = FastAPI(title="Engram", version=_VERSION, docs_url=None, redoc_url=None)
    app.state.engine_provider = engine_provider
    app.state.settings = settings or Settings.load()
    app.state.clock = clock
    app.add_exception_handler(EngramError, on_engram_error)
    app.add_exception_handler(RequestValidationError, on_invalid_request)
    app.add_exception_handler(HTTPException, on_http_exception)
    app.include_router(_router)
    for operation in OPERATIONS:
        _offer(app, operation)
    app.add_middleware(BoundedBody, max_bytes=max_body_bytes)
    return app


def _offer(app: FastAPI, operation: Operation[Any, Any]) -> None:
    """One address for an operation, typed by its description."""

    async def perform(engine: Engine, scope: Whose, asked: Question) -> Any:
        return await engine.perform(scope, operation, asked)

    # FastAPI reads the type of the body from here; it differs by operation.
    perform.__annotations__["asked"] = operation.asked
    app.add_api_route(
        f"/v1{_USER}/{operation.name}",
        perform,
        methods=["POST"],
        name=operation.name.replace("-", "_"),
        description=operation.about,
        response_model=operation.answer,
    )


async def _engine(request: Request) -> MemoryEngine:
    provider: EngineProvider = request.app.state.engine_provider
    return provider()


async def _scope(namespace: str, user_id: str) -> Scope:
    return Scope.of(namespace, user_id)


async def _session(session_id: str) -> str:
    return check_identifier(session_id, "session id")


async def _app_settings(request: Request) -> Settings:
    settings: Settings = request.app.state.settings
    return settings


Engine = Annotated[MemoryEngine, Depends(_engine)]
Whose = Annotated[Scope, Depends(_scope)]
Session = Annotated[str, Depends(_session)]
Limits = Annotated[Settings, Depends(_app_settings)]

_router = APIRouter(prefix="/v1")
_USER = "/namespaces/{namespace}/users/{user_id}"
_SESSION = _USER + "/sessions/{session_id}"


@_router.get("/health")
async def health(engine: Engine) -> Health:
    """Whether somebody answers, and who."""
    return Health(
        version=_VERSION,
        pid=os.getpid(),
        workflow_url=engine.run_url(WORKFLOW_PLACE),
        run_url=engine.run_url(WORKFLOW_PLACE, RUN_PLACE),
    )


@_router.post(_SESSION + "/turns")
async def encode(
    request: Request,
    engine: Engine,
    scope: Whose,
    session: Session,
    limits: Limits,
    call: EncodeCall,
) -> Receipt:
    """Store turns; answers when they are stored and searchable."""
    now = request.app.state.clock()
    for turn in call.turns:
        plain = Turn.model_validate(turn.model_dump())
        check_turn(plain, now=now, max_bytes=limits.max_turn_bytes)
    return await engine.encode(scope, session, call)


@_router.post(_SESSION + "/end")
async def end_session(engine: Engine, scope: Whose, session: Session) -> SessionSummary | None:
    """End a session; null if it was not running."""
    return await engine.end_session(scope, session)


@_router.get(_SESSION + "/working-memory")
async def working_memory(
    engine: Engine, scope: Whose, session: Session, include_test: bool = False
) -> list[RememberedTurn]:
    """The recent turns of a running session."""
    return await engine.working_memory(scope, session, include_test=include_test)


@_router.post(_USER + "/recall")
async def recall(
    engine: Engine, scope: Whose, limits: Limits, asked: RecallBody
) -> list[RecallHit]:
    """The memories that answer, best first."""
    request = RecallRequest.of(settings=limits, **asked.model_dump())
    return await engine.recall(scope, request)


@_router.get(_USER + "/memories")
async def list_memories(
    engine: Engine,
    scope: Whose,
    memory_type: Annotated[list[MemoryType] | None, Query()] = None,
    status: MemoryStatus | None = None,
    limit: int = 100,
    cursor: str | None = None,
    include_test: bool = False,
) -> MemoryPage:
    """Memories type by type, oldest known first."""
    return await engine.list_memories(
        scope,
        memory_types=tuple(memory_type) if memory_type else STORED_TYPES,
        status=status,
        limit=limit,
        cursor=cursor,
        include_test=include_test,
    )


@_router.get(_USER + "/memories/{memory_id}")
async def get_memory(engine: Engine, scope: Whose, memory_id: str) -> AnyMemory:
    """One memory."""
    return await engine.get(scope, memory_id)


@_router.get(_USER + "/memories/{memory_id}/history")
async def history(engine: Engine, scope: Whose, memory_id: str) -> list[AnyMemory]:
    """What a memory replaced and what replaced it, oldest first."""
    return await engine.history(scope, memory_id)


@_router.get(_USER + "/stats")
async def stats(engine: Engine, scope: Whose) -> MemoryStats:
    """How much is kept."""
    return await engine.stats(scope)


@_router.post(_USER + "/consolidate")
async def consolidate(
    engine: Engine, scope: Whose, test_only: bool = False, dry_run: bool = False
) -> ConsolidationReport:
    """Consolidate now; answers when it is done."""
    return await engine.consolidate(scope, test_only=test_only, dry_run=dry_run)
