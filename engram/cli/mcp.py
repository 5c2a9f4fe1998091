"""`engram mcp`: memory for an MCP client that starts this program and talks to it by pipe."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from engram.client.store import MemoryStore
from engram.client.system import new_id
from engram.extras import needs_extra


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
