"""The routes under ``/v1`` and of health, with the access that each takes."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Collection, Coroutine, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
from inspect import Parameter, Signature
from typing import Annotated, Any, Final, Literal, TypeAlias

from fastapi import APIRouter, Depends, FastAPI, Path, Query, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, create_model
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import BaseRoute

from engram.client.engine import MemoryEngine
from engram.distribution import VERSION
from engram.domain.access import Access
from engram.domain.deeds import Actor
from engram.domain.scope import Scope, check_identifier
from engram.errors import (
    AccessDenied,
    EngramError,
    InvalidInput,
    InvalidQuery,
    InvalidScope,
    NoSuchAddress,
    StorageUnavailable,
    TemporalNotSetUp,
    TemporalUnavailable,
)
from engram.operations.audit import acting
from engram.operations.catalogue import OPERATIONS
from engram.operations.registry import Intake, Operation
from engram.server.middleware import actor_of, caller_of

# --- routes that say what access they take, and look before they read

ACCESS: Final = "x-engram-access"
OPEN: Final = "none"
OPERATOR: Final = "operator"


class GuardedRoute(APIRoute):
    """A route whose description says which access it takes.

    Checked before the body is read, so that nobody learns from a refused
    body what they may not reach. A route that does not say it cannot be made.
    """

    @property
    def access(self) -> Access | None:
        """What a caller must be allowed; None for everybody, without a key."""
        said = (self.openapi_extra or {})[ACCESS]
        if said == OPERATOR:
            return Access.ADMIN
        return None if said == OPEN else Access(said)

    @property
    def operator_only(self) -> bool:
        """Whether no API key opens it, because it acts on everybody's memory."""
        return bool((self.openapi_extra or {})[ACCESS] == OPERATOR)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """As FastAPI makes it, behind the check."""
        needed, operator_only = self.access, self.operator_only
        action = self.name.replace("_", "-")
        handle = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            if needed is not None:
                caller = caller_of(request.scope)
                whose = {one: request.path_params[one] for one in ("namespace", "user_id")}
                try:
                    caller.reach(**whose)
                    caller.require(needed)
                    if operator_only:
                        caller.require_operator()
                except (AccessDenied, NoSuchAddress) as error:
                    engine = request.app.state.engine_provider()
                    note_refused(engine, actor_of(request.scope), action, error, **whose)
                    raise
            return await handle(request)

        return guarded


def note_refused(
    engine: MemoryEngine,
    actor: Actor,
    action: str,
    error: EngramError,
    *,
    namespace: str,
    user_id: str,
) -> None:
    """Note in the audit trail what somebody was refused before the engine was asked.

    Raises:
        AuditUnwritable: the trail is required, and cannot be written to.
    """
    # Where a request names nobody, nobody's memory was asked for.
    with suppress(InvalidScope), acting(actor):
        engine.refused(Scope.of(namespace, user_id), action, error)


def takes(access: Access | None, *, operator_only: bool = False) -> dict[str, str]:
    """What a route's ``openapi_extra`` says about access."""
    if operator_only:
        return {ACCESS: OPERATOR}
    return {ACCESS: OPEN if access is None else access.value}


# --- what routes ask for: the engine, whose memory it is, which session, which limits

EngineProvider: TypeAlias = Callable[[], MemoryEngine]

USER_PATH: Final = "/v1/namespaces/{namespace}/users/{user_id}"

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


async def _session(session_id: SessionName) -> str:
    return check_identifier(session_id, "session id")


async def _engine(request: Request) -> MemoryEngine:
    provider: EngineProvider = request.app.state.engine_provider
    return provider()


Engine = Annotated[MemoryEngine, Depends(_engine)]
# mypy takes no type that is made while the program runs.
_ANNOTATED: Any = Annotated
# What the names in an address stand for.
PLACES: Final[dict[str, Any]] = {
    "session_id": Annotated[str, Depends(_session)],
    "memory_id": MemoryId,
}


# Some clients send an object along with every POST.
_SAYS_NOTHING: Final = frozenset({b"", b"{}"})


# --- the addresses under ``/v1``: one for each operation, typed by its description


def add_routes(app: FastAPI) -> None:
    """Offer everything that is asked of one user's memory."""
    app.router.routes.extend(_routes())


@cache
def _routes() -> tuple[BaseRoute, ...]:
    # What differs between applications lies in their state; building the routes takes longer
    # than all else about an application.
    router = APIRouter(route_class=GuardedRoute)
    for operation in OPERATIONS:
        name = operation.name.replace("-", "_")
        router.add_api_route(
            address_of(operation),
            _route(operation),
            methods=[operation.http.method],
            operation_id=name,
            name=name,
            summary=operation.http.summary or name.replace("_", " ").capitalize(),
            description=operation.about,
            tags=[operation.http.tag],
            response_model=operation.answer,
            openapi_extra=takes(operation.access, operator_only=operation.operator_only),
        )
    return tuple(router.routes)


def address_of(operation: Operation[Any, Any]) -> str:
    """The address of an operation, with names in braces."""
    return f"{USER_PATH}/{operation.path}"


def _route(operation: Operation[Any, Any]) -> Callable[..., Any]:
    """What FastAPI calls; the fields of the request stand in its signature.

    What every route takes is looked up here: as dependencies of FastAPI's, which are put together
    anew for each request, it took longer than many an answer.
    """
    parameters: dict[str, Any] = {"request": Request, "namespace": NamespaceName}
    parameters |= {"user_id": UserName, **{name: PLACES[name] for name in operation.placed}}

    async def route(request: Request, namespace: str, user_id: str, **given: Any) -> Any:
        scope = Scope.of(namespace, user_id)
        _check_parameters(request, operation.queried)
        if not operation.has_body:
            await _refuse_body(request, operation)
        state = request.app.state
        provider: EngineProvider = state.engine_provider
        measures = Intake(state.settings, state.clock, state.new_id, namespace)
        asked = operation.accept(_request(operation, given), measures)
        with acting(actor_of(request.scope)):
            return await provider().call(scope, operation, asked)

    signature = [
        Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation)
        for name, annotation in parameters.items()
    ]
    if operation.has_body:
        signature.append(_body_parameter(_body_of(operation)))
    # FastAPI reads what a route takes from here; it differs by operation.
    route.__signature__ = Signature([*signature, *_queried(operation)])  # type: ignore[attr-defined]  # inspect documents it
    return route


def _check_parameters(request: Request, known: Collection[str]) -> None:
    """A misspelt filter would leave nothing out.

    Raises:
        InvalidQuery: the address has another parameter than these.
    """
    if not request.query_params.keys() <= set(known):
        raise InvalidQuery(
            "A parameter in the address means nothing here.", allowed=", ".join(known) or "none"
        )


async def _refuse_body(request: Request, operation: Operation[Any, Any]) -> None:
    """Nobody reads a body here: what it asks for would be left out, and look as if it was done.

    Raises:
        InvalidInput: there is one, and it says something.
    """
    try:
        body = await request.body()
    except ClientDisconnect:
        raise HTTPException(HTTPStatus.BAD_REQUEST) from None
    if body.strip() not in _SAYS_NOTHING:
        parameters = ", ".join(operation.queried)
        raise InvalidInput(
            "This address takes no body.",
            allowed=f"parameters in the address: {parameters}" if parameters else "no body",
        )


def _body_parameter(body: type[BaseModel]) -> Parameter:
    """The body, which may be left out where nothing in it has to be told."""
    told = any(field.is_required() for field in body.model_fields.values())
    left_out: Any = Parameter.empty if told else body()
    return Parameter("body", Parameter.KEYWORD_ONLY, annotation=body, default=left_out)


def _queried(operation: Operation[Any, Any]) -> Iterator[Parameter]:
    for name in operation.queried:
        field = operation.asked.model_fields[name]
        annotation = _ANNOTATED[
            (field.annotation, *field.metadata, Query(description=field.description))
        ]
        yield Parameter(name, Parameter.KEYWORD_ONLY, default=field.default, annotation=annotation)


def _body_of(operation: Operation[Any, Any]) -> type[BaseModel]:
    """The request without what stands elsewhere, under the name that the document has for it."""
    asked = operation.asked
    if operation.http.body is None and len(operation.sent) == len(asked.model_fields):
        return asked
    fields: dict[str, Any] = {
        name: (asked.model_fields[name].annotation, asked.model_fields[name])
        for name in operation.sent
    }
    name = operation.http.body or f"{asked.__name__}Body"
    return create_model(
        name, __config__=ConfigDict(extra="forbid"), __doc__=asked.__doc__, **fields
    )


def _request(operation: Operation[Any, Any], given: dict[str, Any]) -> Any:
    """The request, of values that FastAPI has checked by the fields of its model."""
    body = given.pop("body", None)
    if isinstance(body, operation.asked):
        return body
    return operation.asked.model_construct(**given, **dict(body or ()))


# --- whether somebody answers, and whether what is behind them does

# Stand for the ids in the addresses that health gives; attached processes put theirs in.
WORKFLOW_PLACE: Final = "WORKFLOW-ID"
RUN_PLACE: Final = "RUN-ID"
READY: Final = "service_ready"


class Health(BaseModel):
    """Who answers. All but the version is told to callers with a key only.

    Attributes:
        version: Of Engram.
        pid: The process.
        collection_prefix: The name of its store.
        workflow_url: Where the Temporal UI shows a workflow, with a place for its id.
        run_url: The same for a run.
    """

    version: str
    pid: int | None = None
    collection_prefix: str | None = None
    workflow_url: str | None = None
    run_url: str | None = None


class Readiness(BaseModel):
    """What answers; what was not asked is left out."""

    temporal: Literal["answers"] = "answers"
    store: Literal["answers"] = "answers"


async def health(request: Request, engine: Engine) -> Health:
    """Whether the process answers; says nothing about what is behind it."""
    _check_parameters(request, ())
    if caller_of(request.scope).access is None:
        return Health(version=VERSION)
    return Health(
        version=VERSION,
        pid=os.getpid(),
        collection_prefix=request.app.state.settings.collection_prefix,
        workflow_url=engine.run_url(WORKFLOW_PLACE),
        run_url=engine.run_url(WORKFLOW_PLACE, RUN_PLACE),
    )


@dataclass
class _Asked:
    """What came of asking last, and when that was."""

    asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    at: float | None = None
    missing: EngramError | None = None


class ReadinessCheck:
    """Asks the store and Temporal, once for all who ask the same within a second.

    Args:
        holds: Seconds for which an answer holds: everybody may ask, and asking costs.
        patience: Seconds in which what is behind has to answer.
    """

    def __init__(self, *, holds: float = 1.0, patience: float = 3.0) -> None:
        self._holds = holds
        self._patience = patience
        self._both, self._store = _Asked(), _Asked()

    async def ready(
        self,
        request: Request,
        engine: Engine,
        only: Annotated[
            Literal["store"] | None,
            Query(description="Ask the store alone: memories are read without Temporal."),
        ] = None,
    ) -> Readiness:
        """Whether Temporal and the store answer; 503 if one of them does not."""
        _check_parameters(request, ("only",))
        last = self._both if only is None else self._store
        async with last.asking:
            if last.at is None or time.monotonic() - last.at >= self._holds:
                last.missing = await _missing(engine, self._patience, store_only=only is not None)
                last.at = time.monotonic()
        if last.missing is not None:
            raise last.missing
        if only is not None:
            return Readiness(store="answers")
        return Readiness(temporal="answers", store="answers")


async def _missing(engine: Engine, patience: float, *, store_only: bool) -> EngramError | None:
    try:
        async with asyncio.timeout(patience):
            await engine.check(store_only=store_only)
    except TimeoutError:
        if store_only:
            return StorageUnavailable("The store does not answer in time.")
        # Which of both is silent: the store is asked once more, alone.
        silent_store = await _missing(engine, patience, store_only=True)
        return silent_store or TemporalUnavailable("Temporal does not answer in time.")
    # Not their own words: they may hold addresses, and everybody may ask.
    except (TemporalUnavailable, TemporalNotSetUp):
        return TemporalUnavailable("Temporal does not answer.")
    except EngramError:
        return StorageUnavailable("The store does not answer.")
    return None


def add_health(app: FastAPI, readiness: ReadinessCheck) -> None:
    """Offer health and readiness; they need no key."""
    asked = (
        ("/v1/health", health, "service_health", "Health"),
        ("/v1/ready", readiness.ready, READY, "Ready"),
    )
    for path, answer, operation_id, summary in asked:
        app.add_api_route(
            path,
            answer,
            operation_id=operation_id,
            summary=summary,
            tags=["service"],
            openapi_extra=takes(None),
            # What was not asked is left out; what health does not tell everybody is null.
            response_model_exclude_unset=path == "/v1/ready",
        )
        # Some monitors want the status alone.
        app.add_api_route(
            path, answer, methods=["HEAD"], include_in_schema=False, openapi_extra=takes(None)
        )
