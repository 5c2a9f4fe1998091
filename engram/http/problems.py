"""Typed errors as HTTP answers (RFC 9457)."""

from __future__ import annotations

import json
import math
import re
import traceback
from collections.abc import Sequence

import structlog
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from engram.errors import (
    AccessDenied,
    ConflictingMessage,
    EngramError,
    HostRefused,
    ImportOutOfStep,
    InvalidInput,
    KeyRefused,
    MemoryNotFound,
    NoSuchAddress,
    SessionBusy,
    TooManyRequests,
    UnknownFailure,
)
from engram.http.callers import no_such_address
from engram.http.requests import request_id

MEDIA_TYPE = "application/problem+json"

_log = structlog.get_logger("engram.http")
_STATUS: Sequence[tuple[type[EngramError], int]] = (
    (InvalidInput, 422),
    (KeyRefused, 401),
    (AccessDenied, 403),
    (MemoryNotFound, 404),
    (NoSuchAddress, 404),
    (ConflictingMessage, 409),
    (ImportOutOfStep, 409),
    (HostRefused, 421),
    (SessionBusy, 429),
    (TooManyRequests, 429),
)
_NO_SUCH_PLACE = 404
_NOT_ALLOWED = 405
_MOST_NAMED = 10
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,39}\Z")


def status_of(error: EngramError) -> int:
    """The HTTP status of a typed error: what trying again helps with is 503."""
    for kind, status in _STATUS:
        if isinstance(error, kind):
            return status
    return 503 if error.retryable else 500


def problem(error: EngramError, status: int | None = None) -> Response:
    """The answer that carries a typed error whole."""
    chosen = status or status_of(error)
    body = {
        "type": f"urn:engram:error:{error.code}",
        "title": (type(error).__doc__ or "").strip().splitlines()[0],
        "status": chosen,
        "detail": str(error),
        "request_id": request_id(),
        **error.as_dict(),
    }
    # What details hold is plain by contract; a slip must not hide the error itself.
    return Response(
        json.dumps(body, default=str),
        status_code=chosen,
        headers=_headers(error),
        media_type=MEDIA_TYPE,
    )


def _headers(error: EngramError) -> dict[str, str]:
    if isinstance(error, KeyRefused):
        return {"WWW-Authenticate": "Bearer"}
    wait = error.details.get("retry_after")
    return {"Retry-After": str(math.ceil(wait))} if isinstance(wait, int | float) else {}


async def on_engram_error(_: Request, error: Exception) -> Response:
    """Answer a typed error."""
    assert isinstance(error, EngramError)  # noqa: S101 - registered for this class only
    return problem(error)


async def on_invalid_request(_: Request, error: Exception) -> Response:
    """Answer a request that does not have the right form, without repeating what it held."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this class only
    found = error.errors()
    wrong = "; ".join(f"{_place(one['loc'])}: {one['type']}" for one in found[:_MOST_NAMED])
    more = f"; and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    return problem(InvalidInput(f"The request cannot be used: {wrong}{more}."))


def _place(parts: Sequence[int | str]) -> str:
    """Where something is wrong. Names of fields are the sender's: anything may stand there."""
    return ".".join(
        str(part) if isinstance(part, int) or _NAME.match(part) else "(a name)" for part in parts
    )


async def on_http_exception(_: Request, error: Exception) -> Response:
    """Answer for addresses and methods that do not exist, and for bodies that cannot be read."""
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this class only
    if isinstance(error, TooLarge):
        return error.problem()
    if error.status_code in (_NO_SUCH_PLACE, _NOT_ALLOWED):
        answer = problem(no_such_address(), error.status_code)
        # Which methods there are, where only the method was wrong.
        answer.headers.update(error.headers or {})
        return answer
    return problem(InvalidInput("The request cannot be read."), error.status_code)


class TooLarge(HTTPException):
    """More was sent than is accepted.

    Args:
        limit: Bytes that are accepted.
    """

    def __init__(self, limit: int) -> None:
        # FastAPI lets this class through where it reads a body, and no other.
        super().__init__(413)
        self.limit = limit

    def problem(self) -> Response:
        """The answer."""
        error = InvalidInput(
            "The request is too large, or does not say how large it is.",
            allowed=f"up to {self.limit} bytes",
            hint="Send fewer turns at once.",
            details={"limit": self.limit},
        )
        return problem(error, 413)


def unforeseen(error: Exception) -> Response:
    """The answer where something failed that has no type; the log says where."""
    # Neither its text nor the values in its frames: both may hold what is remembered.
    where = "".join(traceback.format_tb(error.__traceback__))
    _log.error("a request failed in an unforeseen way", kind=type(error).__name__, where=where)
    return problem(UnknownFailure(f"The request failed: {type(error).__name__}."))
