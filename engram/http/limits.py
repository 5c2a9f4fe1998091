"""Bounds on requests: how large one may be, and how many a key may send."""

from __future__ import annotations

import math
import time

from limits import RateLimitItemPerSecond
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import SlidingWindowCounterRateLimiter
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engram.errors import TooManyRequests
from engram.http.problems import TooLarge, unforeseen


class RateLimit:
    """How often one key may ask, in this process.

    Args:
        per_second: Requests of one key in a second; None for any number.
    """

    def __init__(self, per_second: int | None) -> None:
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())
        self._allowed = RateLimitItemPerSecond(per_second) if per_second else None

    async def check(self, key_id: str) -> None:
        """Count one request of this key.

        Raises:
            TooManyRequests: it is one too many; ``retry_after`` tells how long to wait.
        """
        allowed = self._allowed
        if allowed is None or await self._limiter.hit(allowed, key_id):
            return
        window = await self._limiter.get_window_stats(allowed, key_id)
        # The library gives wall-clock times; whole seconds are what the header can say.
        wait = max(1, math.ceil(window.reset_time - time.time()))  # noqa: TID251 - see above
        raise TooManyRequests(
            "The API key asks too often.",
            allowed=f"{allowed.amount} requests a second",
            hint=f"Wait {wait} s.",
            details={"retry_after": wait},
        )


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
            await TooLarge(self._max_bytes).problem()(scope, receive, send)
            return
        read = 0
        started = False

        async def bounded() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self._max_bytes:
                raise TooLarge(self._max_bytes)
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
            await unforeseen(error)(scope, receive, send)
