"""Routes that say what access they take, and look before they read."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final

from fastapi import Request, Response
from fastapi.routing import APIRoute

from engram.domain.access import Access
from engram.http.callers import caller_of

ACCESS: Final = "x-engram-access"
OPEN: Final = "none"


class GuardedRoute(APIRoute):
    """A route whose description says which access it takes.

    Checked before the body is read, so that nobody learns from a refused
    body what they may not reach. A route that does not say it cannot be made.
    """

    @property
    def access(self) -> Access | None:
        """What a caller must be allowed; None for everybody, without a key."""
        said = (self.openapi_extra or {})[ACCESS]
        return None if said == OPEN else Access(said)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """As FastAPI makes it, behind the check."""
        needed = self.access
        handle = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            if needed is not None:
                caller = caller_of(request.scope)
                whose = request.path_params
                caller.reach(whose["namespace"], whose["user_id"])
                caller.require(needed)
            return await handle(request)

        return guarded


def takes(access: Access | None) -> dict[str, str]:
    """What a route's ``openapi_extra`` says about access."""
    return {ACCESS: OPEN if access is None else access.value}
