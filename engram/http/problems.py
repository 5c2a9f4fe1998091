"""Typed errors as HTTP answers (RFC 9457) and the bound on what is read."""

from __future__ import annotations

import json
import traceback
from collections.abc import Sequence

import structlog
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engram.errors import (
    ConflictingMessage,
    EngramError,
    InvalidInput,
    MemoryNotFound,
    SessionBusy,
    UnknownFailure,
)

MEDIA_TYPE = "application/problem+json"

_log = structlog.get_logger("engram.http")
_STATUS: Sequence[tuple[type[EngramError], int]] = (
    (InvalidInput, 422),
    (MemoryNotFound, 404),
    (ConflictingMessage, 409),
    (SessionBusy, 429),
)
_NO_SUCH_PLACE = (404, 405)


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
        **error.as_dict(),
    }
    # What details hold is plain by contract; a slip must not hide the error itself.
    return Response(json.dumps(body, default=str), status_code=chosen, media_type=MEDIA_TYPE)


async def on_engram_error(_: Request, error: Exception) -> Response:
    """Answer a typed error."""
    assert isinstance(error, EngramError)  # noqa: S101 - registered for this class only
    return problem(error)


async def on_invalid_request(_: Request, error: Exception) -> Response:
    """Answer a request that does not have the right form, without repeating what it held."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this class only
    wrong = "; ".join(
        f"{'.'.join(str(part) for part in found['loc'])}: {found['type']}"
        for found in error.errors()
    )
    return problem(InvalidInput(f"The request cannot be used: {wrong}."))


async def on_http_exception(_: Request, error: Exception) -> Response:
    """Answer for addresses and methods that do not exist, and for bodies that cannot be read."""
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this class only
    if isinstance(error, _TooLarge):
        return error.problem()
    if error.status_code in _NO_SUCH_PLACE:
        return problem(UnknownFailure("There is no such address or method."), error.status_code)
    return problem(InvalidInput("The request cannot be read."), error.status_code)


class _TooLarge(HTTPException):
    """More was sent than is accepted."""

    def __init__(self, limit: int) -> None:
        # FastAPI lets this class through where it reads a body, and no other.
        super().__init__(413)
        self.limit = limit

    def problem(self) -> Response:
        error = InvalidInput(
            "The request is too large, or does not say how large it is.",
            allowed=f"up to {self.limit} bytes",
            hint="Send fewer turns at once.",
            details={"limit": self.limit},
        )
        return problem(error, 413)


class BoundedBody:
    """ASGI middleware: refuses large bodies, and answers what nobody foresaw.

    Args:
        app: The application.
        max_bytes: Largest body accepted.
    """

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        if not announced.isdigit() or int(announced) > self._max_bytes:
            await _TooLarge(self._max_bytes).problem()(scope, receive, send)
            return
        read = 0
        started = False

        async def bounded() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self._max_bytes:
                raise _TooLarge(self._max_bytes)
            return message

        async def noticed(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, bounded, noticed)
        except Exception as error:
            if started:
                raise
            await _unforeseen(error)(scope, receive, send)


def _unforeseen(error: Exception) -> Response:
    # Neither its text nor the values in its frames: both may hold what is remembered.
    where = "".join(traceback.format_tb(error.__traceback__))
    _log.error("a request failed in an unforeseen way", kind=type(error).__name__, where=where)
    return problem(UnknownFailure(f"The request failed: {type(error).__name__}."))
