"""The HTTP application over a memory engine, and its OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from engram.distribution import VERSION
from engram.errors import EngramError, error_codes
from engram.ports import Clock
from engram.server.middleware import (
    HEADER,
    MEDIA_TYPE,
    Admission,
    AtOnceMiddleware,
    AuthMiddleware,
    BodyLimitMiddleware,
    OwnerOnly,
    RequestLogMiddleware,
    on_engram_error,
    on_http_exception,
    on_invalid_request,
)
from engram.server.routes import (
    ACCESS,
    OPEN,
    READY,
    EngineProvider,
    GuardedRoute,
    ReadinessCheck,
    add_health,
    add_routes,
)
from engram.settings import Settings
from engram.system import new_id, system_clock

# --- examples in the OpenAPI document: what is asked, and what comes back

_EPISODE: Final = "850d6e4c-1f0e-5b57-9a7e-0c3c2f6f1b4d"
_FACT: Final = "4f0c1a52-7c0b-5a2e-8a55-3a1d1f2c9a9a"
_TURN: Final = {
    "id": _EPISODE,
    "namespace": "default",
    "user_id": "ada",
    "type": "episodic",
    "content": "My e-mail is ada@example.org.",
    "session_id": "monday",
    "role": "user",
    "timestamp": "2026-05-20T08:15:00Z",
    "message_id": "m1",
    "known_at": "2026-05-20T08:15:00Z",
    "created_at": "2026-05-20T08:15:01Z",
}

QUESTIONS: Final[dict[str, Any]] = {
    "encode": {
        "turns": [
            {
                "role": "user",
                "content": "My e-mail is ada@example.org.",
                "message_id": "m1",
                "timestamp": "2026-05-20T08:15:00Z",
            }
        ]
    },
    "recall": {"query": "How can I reach Ada?", "limit": 5, "include_sources": True},
    "forget": {"memory_id": _EPISODE},
    "verify": {"memory_id": _FACT},
    "confirm": {"memory_id": _FACT},
    "profile": {"name": "Ada"},
    "briefing": {"limit": 5},
}
ANSWERS: Final[dict[str, Any]] = {
    "encode": {
        "episode_ids": [_EPISODE],
        "fact_ids": [_FACT],
        "negation_ids": [],
        "signal": "none",
        "buffered": 1,
        "workflow_id": "session/default/ada/monday",
    },
    "recall": [{"memory": _TURN, "score": 0.71, "sources": []}],
    "get_memory": _TURN,
    "list_memories": {"memories": [_TURN], "cursor": f"episodic:{_EPISODE}"},
    "stats": {
        "counts": {"episodic": 1, "factual": 1, "semantic": 0, "procedural": 0, "negation": 0},
        "active": {"episodic": 1, "factual": 1, "semantic": 0, "procedural": 0, "negation": 0},
        "waiting": 1,
    },
    "service_health": {"version": "0.1.0"},
    READY: {"temporal": "answers", "store": "answers"},
}


# --- the OpenAPI document: what each address takes, answers and refuses, with examples

_KEY: Final = "key"
_ABOUT: Final = (
    "Durable memory for LLM applications. Every address but health, readiness and this "
    "document takes an API key: `engram keys create` makes one. Its access is read, write or "
    "admin, each of which includes the ones before; `x-engram-access` says which one an "
    "address takes, and `operator` that no key opens it. What a key does not reach answers as if "
    "it did not exist."
)
# What any address can answer instead of what was asked for, with or without a key.
_ALWAYS: Final = {
    400: "The request cannot be read.",
    401: "The API key is unknown, revoked or expired.",
    413: "The request is too large.",
    415: "The body of the request is compressed.",
    422: "Something in the request is not as it must be; nothing was stored.",
    429: "Too much at once; `Retry-After` says how long to wait, where it is known.",
    500: "It failed, and will fail again.",
    503: "What is needed does not answer now; asking again later helps.",
}
_WITH_KEY: Final = {
    401: "No API key was given, or one that is unknown, revoked or expired.",
    403: "The API key does not allow this, or a page of another site asks.",
    404: "There is no such memory or address, or the API key does not reach it.",
    409: "A message id was used before with other content, or a part of an import is out of step.",
    421: "The host that the request names is not served here.",
}


class Problem(BaseModel):
    """Why a request was refused or failed (RFC 9457)."""

    type: str = Field(description="`urn:engram:error:` and the code.")
    title: str = Field(description="What such an error means.")
    status: int
    detail: str = Field(description="What was wrong, what is allowed and what to do, in words.")
    request_id: str | None = Field(description=f"Also in the header {HEADER}, and in the log.")
    code: str = Field(
        description="For programs; a code is never renamed, and new ones may be added.",
        json_schema_extra={"enum": [*sorted(error_codes())]},
    )
    message: str = Field(description="What was wrong.")
    allowed: str | None = Field(description="What would have been accepted.")
    hint: str | None = Field(description="What to do about it.")
    details: dict[str, Any] = Field(description="Plain values that help a program.")
    retryable: bool = Field(description="Whether the same request can succeed later.")


def add_document(app: FastAPI, *, locked: bool) -> None:
    """Let ``app`` describe itself.

    Args:
        app: All its routes are there.
        locked: Whether it takes keys.
    """
    made: dict[str, Any] = {}

    def document() -> dict[str, Any]:
        if not made:
            made.update(_document(app, locked))
        return made

    # FastAPI's own way to have another document.
    app.openapi = document  # type: ignore[method-assign] # documented by FastAPI


def _document(app: FastAPI, locked: bool) -> dict[str, Any]:
    document = get_openapi(
        title=app.title, version=app.version, description=_ABOUT, routes=app.routes
    )
    components = document["components"]
    for name in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(name, None)
    components["schemas"]["Problem"] = Problem.model_json_schema()
    if locked:
        components["securitySchemes"] = {_KEY: {"type": "http", "scheme": "bearer"}}
    for operation in _operations(document):
        _complete(operation, locked)
    _require_what_is_answered(document)
    return document


def asked_schemas(document: dict[str, Any]) -> set[str]:
    """The names of schemas that requests are made of."""
    return _reached(document, [one.get("requestBody") for one in _operations(document)])


def _require_what_is_answered(document: dict[str, Any]) -> None:
    """Say of what is only answered that all of it is there: what has a default is sent, too."""
    schemas = document["components"]["schemas"]
    # What readiness did not ask for, it leaves out.
    told = [one["responses"] for one in _operations(document) if one["operationId"] != READY]
    for name in _reached(document, told) - asked_schemas(document):
        if "properties" in schemas[name]:
            schemas[name]["required"] = [*schemas[name]["properties"]]


def _reached(document: dict[str, Any], begin: Sequence[Any]) -> set[str]:
    """The names of schemas that stand in some part of the document, or in one that does."""
    found, waiting = set[str](), [*begin]
    while waiting:
        match waiting.pop():
            case {"$ref": str(place)} if (name := place.rpartition("/")[2]) not in found:
                found.add(name)
                waiting.append(document["components"]["schemas"][name])
            case dict() as part:
                waiting.extend(part.values())
            case list() as parts:
                waiting.extend(parts)
    return found


def _operations(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for methods in document["paths"].values():
        yield from methods.values()


def _complete(operation: dict[str, Any], locked: bool) -> None:
    is_open = operation[ACCESS] == OPEN
    refusals = _ALWAYS if is_open else {**_ALWAYS, **_WITH_KEY}
    answers = operation["responses"]
    answers["200"].setdefault("headers", {})[HEADER] = {
        "description": "The request's own, or one made for it.",
        "schema": {"type": "string"},
    }
    for status, why in sorted(refusals.items()):
        answers[str(status)] = _refusal(status, why)
    if locked:
        # The empty one says that a key may be left out.
        operation["security"] = [{}, {_KEY: []}] if is_open else [{_KEY: []}]
    name = operation["operationId"]
    if name in QUESTIONS:
        operation["requestBody"]["content"]["application/json"]["example"] = QUESTIONS[name]
    if name in ANSWERS:
        answers["200"]["content"]["application/json"]["example"] = ANSWERS[name]


def _refusal(status: int, why: str) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "description": why,
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        answer["headers"] = {
            "Retry-After": {"description": "Seconds.", "schema": {"type": "integer"}}
        }
    return answer


# --- the HTTP application: everything a memory engine does, for any scope, under ``/v1``

MAX_BODY_BYTES = 32 * 1024 * 1024


def create_app(
    engine_provider: EngineProvider,
    *,
    admission: Admission,
    settings: Settings | None = None,
    clock: Clock = system_clock,
    max_body_bytes: int = MAX_BODY_BYTES,
    readiness: ReadinessCheck | None = None,
) -> FastAPI:
    """The application.

    Args:
        engine_provider: Gives the engine to every request.
        admission: Decides who gets in. No request reaches anything before it did.
        settings: Limits on what is accepted; from the environment when absent.
        clock: The present, to date turns and to tell absurd timestamps.
        max_body_bytes: Largest request body accepted.
        readiness: Asks what is behind, with other times than the usual ones.
    """
    app = FastAPI(
        title="Engram",
        version=VERSION,
        docs_url=None,
        redoc_url=None,
        # Every other address than those in the document is unknown.
        redirect_slashes=False,
    )
    app.router.route_class = GuardedRoute
    app.state.engine_provider = engine_provider
    app.state.settings = settings or Settings.load()
    app.state.clock = clock
    app.state.new_id = new_id
    app.add_exception_handler(EngramError, on_engram_error)
    app.add_exception_handler(RequestValidationError, on_invalid_request)
    app.add_exception_handler(HTTPException, on_http_exception)
    add_health(app, readiness or ReadinessCheck())
    add_routes(app)
    public = not isinstance(admission, OwnerOnly)
    add_document(app, locked=public)
    # The last one is the outermost.
    if public:
        app.add_middleware(AtOnceMiddleware, most=app.state.settings.http_connections)
    app.add_middleware(AuthMiddleware, admission=admission)
    app.add_middleware(BodyLimitMiddleware, max_bytes=max_body_bytes)
    app.add_middleware(RequestLogMiddleware, new_id=new_id, quietly=not public)
    return app
