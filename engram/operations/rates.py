"""How often one caller may ask, at the doors that others come through."""

from __future__ import annotations

import math
import time

from limits import RateLimitItemPerSecond
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import SlidingWindowCounterRateLimiter

from engram.errors import TooManyRequests


class RateLimit:
    """How often each one may ask, in this process.

    Args:
        per_second: Requests of one in a second; 0 for any number.
        who: Begins the sentence that says so: ``The API key asks``.
    """

    def __init__(self, per_second: int, who: str) -> None:
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())
        self._allowed = RateLimitItemPerSecond(per_second) if per_second else None
        self._who = who

    async def check(self, one: str) -> None:
        """Count one request.

        Args:
            one: Who asks: the id of a key, a user.

        Raises:
            TooManyRequests: it is one too many; ``retry_after`` tells how long to wait.
        """
        allowed = self._allowed
        if allowed is None or await self._limiter.hit(allowed, one):
            return
        window = await self._limiter.get_window_stats(allowed, one)
        # The library gives wall-clock times; whole seconds are what a header can say.
        wait = max(1, math.ceil(window.reset_time - time.time()))  # noqa: TID251 - see above
        raise TooManyRequests(
            f"{self._who} too often.",
            allowed=f"{allowed.amount} requests a second",
            hint=f"Wait {wait} s.",
            details={"retry_after": wait},
        )
