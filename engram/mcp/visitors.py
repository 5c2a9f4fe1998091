"""Whoever calls over HTTP: each request has its own memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from starlette.types import Scope as AsgiScope

from engram.client.store import MemoryStore
from engram.domain.access import Access
from engram.errors import AccessDenied
from engram.mcp.access import Answer

_PLACE: Final = "engram.mcp.visitor"


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who calls, as the HTTP door has found out.

    Attributes:
        memory: Theirs.
        access: What they may do.
        session_id: The session that what they have remembered belongs to.
    """

    memory: MemoryStore
    access: Access
    session_id: str


class Visitors:
    """:class:`engram.mcp.access.Memories` of whoever sends the message that is being served."""

    def __init__(self) -> None:
        self._serving: ContextVar[Visitor] = ContextVar("engram_mcp_visitor")

    async def identify(
        self, ctx: ServerRequestContext[None, Any], call_next: CallNext
    ) -> HandlerResult:
        """Middleware of the server: takes the visitor from the message's own HTTP request.

        Nothing is taken from the surroundings of the task that happens to serve it.
        """
        token = self._serving.set(visitor_of(getattr(ctx.request, "scope", {})))
        try:
            return await call_next(ctx)
        finally:
            self._serving.reset(token)

    async def ask(
        self, work: Callable[[MemoryStore], Awaitable[Answer]], *, needs: Access = Access.READ
    ) -> Answer:
        """Do ``work`` with the visitor's memory.

        Raises:
            AccessDenied: their key does not allow it.
            EngramError: whatever the work raises.
        """
        visitor = self._serving.get()
        if not visitor.access.includes(needs):
            raise AccessDenied(
                "The API key does not allow this.", allowed=f"a key with access {needs}"
            )
        return await work(visitor.memory)

    def session_id(self) -> str:
        """Of the visitor."""
        return self._serving.get().session_id


def announce(scope: AsgiScope, visitor: Visitor) -> None:
    """Note on a request who calls."""
    scope[_PLACE] = visitor


def visitor_of(scope: Mapping[str, Any]) -> Visitor:
    """Who calls; a request without a visitor is not served."""
    visitor = scope.get(_PLACE)
    if not isinstance(visitor, Visitor):
        raise AccessDenied("The request has not been admitted.")
    return visitor
