"""MCP over streamable HTTP, as a part of an ASGI application or as one of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mcp.server.mcpserver import MCPServer
from starlette.applications import Starlette

PATH = "/mcp"


@asynccontextmanager
async def mounted(app: Starlette, server: MCPServer[None], path: str = PATH) -> AsyncIterator[None]:
    """Let ``app`` answer MCP clients at ``path`` while the block runs.

    Requests stand for themselves: no session is kept between them, so a client
    notices nothing when Engram is started anew. Only requests to a loopback name
    are answered, so that no web page can reach it through a name of its own.

    Args:
        app: Any Starlette or FastAPI application.
        server: Serves one block only.
        path: Where clients find it.
    """
    inner = server.streamable_http_app(
        streamable_http_path=path, json_response=True, stateless_http=True
    )
    app.router.routes.extend(inner.routes)
    try:
        async with server.session_manager.run():
            yield
    finally:
        for route in inner.routes:
            app.router.routes.remove(route)
