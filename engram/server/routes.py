"""The routes under ``/v1`` and of health, with the access that each takes."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from typing import Annotated, Any, Final, Literal, TypeAlias

from fastapi import Depends, FastAPI, Path, Query, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field

from engram.client.engine import MemoryEngine, MemoryPage, MemoryStats, Receipt
from engram.client.session_writer import TurnIntake
from engram.contracts.consolidation import ConsolidationReport
from engram.contracts.session import EncodeCall, SessionSummary
from engram.domain.access import Access
from engram.domain.buffer import RememberedTurn
from engram.domain.memories import STORED_TYPES, AnyMemory, MemoryStatus, MemoryType
from engram.domain.scope import Scope, check_identifier
from engram.domain.turns import Turn
from engram.errors import EngramError, StorageUnavailable, TemporalNotSetUp, TemporalUnavailable
from engram.operations.catalogue import OPERATIONS
from engram.operations.registry import Operation, Question
from engram.ports import Clock
from engram.recall.request import RecallRequest
from engram.recall.results import RecallHit
from engram.server.middleware import caller_of
from engram.settings import Settings

# --- routes that say what access they take, and look before they read

ACCESS: Final = "x-engram-access"
OPEN: Final = "none"


class GuardedRoute(APIRoute):
    """A route whose description says which access it takes.

    Checked before the body is read, so that nobody learns from a refused
    body what they may not reach. A route that does not say it cannot be made.
    """

    @property
    def access(self) -> Access | None:
        """What a caller must be allowed; None for everybody, without a key."""
        said = (self.openapi_extra or {})[ACCESS]
        return None if said == OPEN else Access(said)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """As FastAPI makes it, behind the check."""
        needed = self.access
        handle = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            if needed is not None:
                caller = caller_of(request.scope)
                whose = request.path_params
                caller.reach(whose["namespace"], whose["user_id"])
                caller.require(needed)
            return await handle(request)

        return guarded


def takes(access: Access | None) -> dict[str, str]:
    """What a route's ``openapi_extra`` says about access."""
    return {ACCESS: OPEN if access is None else access.value}


# --- what routes ask for: the engine, whose memory it is, which session, which limits

EngineProvider: TypeAlias = Callable[[], MemoryEngine]
NewId: TypeAlias = Callable[[], str]

USER: Final = "/v1/namespaces/{namespace}/users/{user_id}"
SESSION: Final = USER + "/sessions/{session_id}"
MEMORY: Final = USER + "/memories/{memory_id}"

_FORM = " 1 to 80 ASCII letters, digits and . _ @ + : = | ~ -, beginning with a letter or digit."
NamespaceName = Annotated[
    str, Path(description="Keeps applications apart." + _FORM, examples=["default"])
]
UserName = Annotated[str, Path(description="Whose memory." + _FORM, examples=["ada"])]
SessionName = Annotated[str, Path(description="The conversation." + _FORM, examples=["monday"])]
MemoryId = Annotated[
    str,
    Path(
        description="As receipts, recall and listings give it.",
        examples=["6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11"],
    ),
]


async def _engine(request: Request) -> MemoryEngine:
    provider: EngineProvider = request.app.state.engine_provider
    return provider()


async def _scope(namespace: NamespaceName, user_id: UserName) -> Scope:
    return Scope.of(namespace, user_id)


async def _session(session_id: SessionName) -> str:
    return check_identifier(session_id, "session id")


async def _settings(request: Request) -> Settings:
    settings: Settings = request.app.state.settings
    return settings


async def _clock(request: Request) -> Clock:
    clock: Clock = request.app.state.clock
    return clock


async def _new_id(request: Request) -> NewId:
    new_id: NewId = request.app.state.new_id
    return new_id


Engine = Annotated[MemoryEngine, Depends(_engine)]
Whose = Annotated[Scope, Depends(_scope)]
Session = Annotated[str, Depends(_session)]
Limits = Annotated[Settings, Depends(_settings)]
Present = Annotated[Clock, Depends(_clock)]
Ids = Annotated[NewId, Depends(_new_id)]


# --- the addresses under ``/v1`` that every engine answers; operations add theirs

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


# --- whether somebody answers, and whether what is behind them does

VERSION: Final = version("engram-memory")
# Stand for the ids in the addresses that health gives; attached processes put theirs in.
WORKFLOW_PLACE: Final = "WORKFLOW-ID"
RUN_PLACE: Final = "RUN-ID"


class Health(BaseModel):
    """Who answers. All but the version is told to callers with a key only.

    Attributes:
        version: Of Engram.
        pid: The process.
        workflow_url: Where the Temporal UI shows a workflow, with a place for its id.
        run_url: The same for a run.
    """

    version: str
    pid: int | None = None
    workflow_url: str | None = None
    run_url: str | None = None


class Readiness(BaseModel):
    """What answers."""

    temporal: Literal["answers"] = "answers"
    store: Literal["answers"] = "answers"


async def health(request: Request, engine: Engine) -> Health:
    """Whether the process answers; says nothing about what is behind it."""
    if caller_of(request.scope).access is None:
        return Health(version=VERSION)
    return Health(
        version=VERSION,
        pid=os.getpid(),
        workflow_url=engine.run_url(WORKFLOW_PLACE),
        run_url=engine.run_url(WORKFLOW_PLACE, RUN_PLACE),
    )


class ReadinessCheck:
    """Asks Temporal and the store, once for all who ask within a second.

    Args:
        holds: Seconds for which an answer holds: everybody may ask, and asking costs.
        patience: Seconds in which what is behind has to answer.
    """

    def __init__(self, *, holds: float = 1.0, patience: float = 3.0) -> None:
        self._holds = holds
        self._patience = patience
        self._asking = asyncio.Lock()
        self._asked_at: float | None = None
        self._missing: EngramError | None = None

    async def ready(self, engine: Engine) -> Readiness:
        """Whether Temporal and the store answer; 503 if one of them does not."""
        async with self._asking:
            if self._asked_at is None or time.monotonic() - self._asked_at >= self._holds:
                self._missing = await _missing(engine, self._patience)
                self._asked_at = time.monotonic()
        if self._missing is not None:
            raise self._missing
        return Readiness()


async def _missing(engine: Engine, patience: float) -> EngramError | None:
    try:
        async with asyncio.timeout(patience):
            await engine.check()
    except TimeoutError:
        return StorageUnavailable("What is behind this server does not answer in time.")
    # Not their own words: they may hold addresses, and everybody may ask.
    except (TemporalUnavailable, TemporalNotSetUp):
        return TemporalUnavailable("Temporal does not answer.")
    except EngramError:
        return StorageUnavailable("The store does not answer.")
    return None


def add_health(app: FastAPI, readiness: ReadinessCheck) -> None:
    """Offer health and readiness; they need no key."""
    app.add_api_route(
        "/v1/health",
        health,
        operation_id="service_health",
        summary="Health",
        tags=["service"],
        openapi_extra=takes(None),
    )
    app.add_api_route(
        "/v1/ready",
        readiness.ready,
        operation_id="service_ready",
        summary="Ready",
        tags=["service"],
        openapi_extra=takes(None),
    )
