"""`engram mcp`: memory for an MCP client that starts this program and talks to it by pipe."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING

from engram.client.store import MemoryStore
from engram.client.system import new_id, system_clock
from engram.domain.scope import Scope
from engram.extras import needs_extra
from engram.settings import Settings

if TYPE_CHECKING:
    from engram.embedded.open import Running


async def serve_stdio(opener: Callable[[], AbstractAsyncContextManager[MemoryStore]]) -> None:
    """Answer the client until it closes the pipe, SIGTERM or Ctrl-C.

    Standard output belongs to the protocol; all that Engram says goes to standard error.

    Args:
        opener: Opens the memory; called again when the process that had it went away.
    """
    with needs_extra("mcp"):
        from engram.mcp.access import MemoryAccess  # noqa: PLC0415 - an optional part
        from engram.mcp.server import create_server  # noqa: PLC0415 - same

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with MemoryAccess(opener) as access:
        # A session for each start: a client starts the program once per conversation or window.
        server = create_server(access, session_id=f"mcp-{new_id()}")
        serving = asyncio.create_task(server.run_stdio_async())
        asked = asyncio.create_task(stop.wait())
        await asyncio.wait((serving, asked), return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
    if not serving.done():
        # Everything is closed; but the thread that reads standard input cannot be interrupted.
        os._exit(0)
    await serving


@asynccontextmanager
async def mcp_over_http(running: Running, settings: Settings) -> AsyncIterator[str | None]:
    """Serve MCP on loopback, for the user that the settings name; None when they name nobody.

    Raises:
        InvalidScope: the user id has a form that is refused.
        PortInUse: another program has the port.
    """
    if settings.mcp_user is None:
        yield None
        return
    with needs_extra("mcp"):
        from starlette.applications import Starlette  # noqa: PLC0415 - an optional part

        from engram.http.serve import serve_on_loopback  # noqa: PLC0415 - same
        from engram.mcp.access import MemoryAccess  # noqa: PLC0415 - same
        from engram.mcp.http import PATH, mounted  # noqa: PLC0415 - same
        from engram.mcp.server import create_server  # noqa: PLC0415 - same

    scope = Scope.of(settings.namespace, settings.mcp_user)
    memory = MemoryStore(running.engine, scope, settings, system_clock, new_id)
    app = Starlette()
    async with MemoryAccess.to(memory) as access:
        server = create_server(access, session_id=f"mcp-{new_id()}")
        async with mounted(app, server), serve_on_loopback(app, settings.mcp_port):
            yield f"http://127.0.0.1:{settings.mcp_port}{PATH}"
