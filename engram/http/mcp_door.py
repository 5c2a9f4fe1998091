"""MCP beside the API, with the same keys."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog
from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.types import Scope as AsgiScope

from engram.client.engine import MemoryEngine
from engram.client.store import MemoryStore
from engram.client.system import new_id, system_clock
from engram.domain.access import Access
from engram.http.callers import USER_HEADER, caller_of
from engram.ports import Clock
from engram.settings import Settings

_log = structlog.get_logger("engram.http")


@asynccontextmanager
async def mcp_mounted(
    app: FastAPI, engine: MemoryEngine, settings: Settings, clock: Clock = system_clock
) -> AsyncIterator[str | None]:
    """Let ``app`` answer MCP clients too; where, or None without the extra ``mcp``.

    Whose memory a request is about, its key says, or the header ``Engram-User``
    where the key opens many.
    """
    try:
        from engram.mcp import http  # noqa: PLC0415 - an optional part
        from engram.mcp.visitors import Visitor  # noqa: PLC0415 - same
    except ModuleNotFoundError as error:
        _log.info("MCP is not served", missing=error.name, extra="mcp")
        yield None
        return

    def visitor_of(scope: AsgiScope) -> Visitor:
        caller = caller_of(scope)
        whose = caller.scope(Headers(scope=scope).get(USER_HEADER))
        memory = MemoryStore(engine, whose, settings, clock, new_id)
        # The same in every process, and after a restart: what is said twice is kept once.
        session_id = f"mcp-{caller.key_id}-{clock():%Y-%m-%d}"
        caller.require(Access.READ)
        return Visitor(memory, caller.access or Access.READ, session_id)

    async with http.mounted(app, visitor_of):
        yield http.PATH
