"""MCP over streamable HTTP, as a part of an ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from engram.mcp.server import create_server
from engram.mcp.visitors import Visitor, Visitors, announce

PATH = "/mcp"


class _Endpoint:
    """An ASGI application that finds out who calls before MCP sees the request."""

    def __init__(
        self,
        visitor_of: Callable[[Scope], Visitor],
        handle: ASGIApp,
    ) -> None:
        self._visitor_of = visitor_of
        self._handle = handle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        announce(scope, self._visitor_of(scope))
        await self._handle(scope, receive, send)


@asynccontextmanager
async def mounted(
    app: Starlette, visitor_of: Callable[[Scope], Visitor], path: str = PATH
) -> AsyncIterator[None]:
    """Let ``app`` answer MCP clients at ``path`` while the block runs.

    Requests stand for themselves: no session is kept between them, so a client
    notices nothing when Engram is started anew, and any process can answer it.

    Args:
        app: Any Starlette or FastAPI application. It admits requests, and checks the
            host and the page that they come from, before they arrive here.
        visitor_of: Who sends a request; raises a typed error where that is not known.
        path: Where clients find it.
    """
    visitors = Visitors()
    server = create_server(
        visitors, session_id=visitors.session_id, middleware=(visitors.identify,)
    )
    server.streamable_http_app(
        json_response=True,
        stateless_http=True,
        # The application does that, for all its addresses and by its settings.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    manager = server.session_manager
    route = Route(path, endpoint=_Endpoint(visitor_of, manager.handle_request))
    app.router.routes.append(route)
    try:
        async with manager.run():
            yield
    finally:
        app.router.routes.remove(route)
