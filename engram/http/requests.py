"""Every request has an id, and leaves one line in the log."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any, Final

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engram.http.callers import Caller, known_caller

HEADER: Final = "X-Request-ID"
_WELL_FORMED: Final = re.compile(r"[A-Za-z0-9._-]{1,128}\Z")
# Addresses that are no routes of the API.
_PLAIN: Final = frozenset({"/mcp", "/openapi.json"})
_log = structlog.get_logger("engram.http")


class Requests:
    """ASGI middleware: names each request, in its answer and in every line of the log.

    The line at the end says the method, the address as it is documented, the
    status, the time taken and the name of the key: whose memory it was, what was
    asked and what was answered stay out.

    Args:
        app: The application.
        new_id: Makes an id where a request brings none that can be used.
        quietly: Whether the line is for debugging only.
    """

    def __init__(self, app: ASGIApp, new_id: Callable[[], str], quietly: bool) -> None:
        self._app = app
        self._new_id = new_id
        self._quietly = quietly

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER, "")
        name = given if _WELL_FORMED.match(given) else self._new_id()
        began = time.monotonic()
        status = 0

        async def named(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])
                MutableHeaders(scope=message)[HEADER] = name
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=name):
            try:
                await self._app(scope, receive, named)
            finally:
                self._tell(scope, status, time.monotonic() - began)

    def _tell(self, scope: Scope, status: int, seconds: float) -> None:
        caller: Caller | None = known_caller(scope)
        # Looked up with every line: a program may set its logging up later than this.
        say = _log.debug if self._quietly else _log.info
        say(
            "answered",
            method=scope["method"],
            route=_route(scope),
            status=status,
            ms=round(seconds * 1000, 1),
            key=caller.name if caller is not None else None,
        )


def request_id() -> str | None:
    """The id of the request that is being served."""
    found: Any = structlog.contextvars.get_contextvars().get("request_id")
    return found if isinstance(found, str) else None


def _route(scope: Scope) -> str | None:
    """The address as documented: with places for names and ids, never with them."""
    if scope["path"] in _PLAIN:
        return str(scope["path"])
    return getattr(scope.get("route"), "path", None)
