"""The OpenAPI document: what each address takes, answers and refuses, with examples."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, Field

from engram.http.examples import ANSWERS, QUESTIONS
from engram.http.guarded import ACCESS, OPEN
from engram.http.problems import MEDIA_TYPE
from engram.http.requests import HEADER

_KEY: Final = "key"
_ABOUT: Final = (
    "Durable memory for LLM applications. Every address but health, readiness and this "
    "document takes an API key: `engram keys create` makes one. Its access is read, write or "
    "admin, each of which includes the ones before; `x-engram-access` says which one an "
    "address takes. What a key does not reach answers as if it did not exist."
)
# What any address can answer instead of what was asked for, with or without a key.
_ALWAYS: Final = {
    400: "The request cannot be read.",
    401: "The API key is unknown, revoked or expired.",
    413: "The request is too large.",
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
    code: str = Field(description="For programs; a code is never renamed.")
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
    return document


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
        "description": f"{HTTPStatus(status).phrase}. {why}",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        answer["headers"] = {
            "Retry-After": {"description": "Seconds.", "schema": {"type": "integer"}}
        }
    return answer
