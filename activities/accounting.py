"""What a step asked of models, carried from attempt to attempt so that failed ones count.

An attempt that fails leaves no result. What it spent goes along with its
heartbeats, which Temporal hands to the next attempt, and with the failure that
ends the last one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError
from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.errors import unforeseen
from activities.heartbeats import beating
from engram.agents.metering import Meter, metering
from engram.contracts.usage import ModelSpent, by_model, in_all
from engram.errors import EngramError, ModelUnavailable

SPENT: Final = "spent"
"""Under this key an error's details say what all attempts spent."""

_PARTS: TypeAdapter[tuple[ModelSpent, ...]] = TypeAdapter(tuple[ModelSpent, ...])
# An attempt ends itself this much before Temporal gives it up: then it can still say why.
_MARGIN = timedelta(seconds=5)
_MARGIN_SHARE = 0.2


class Account:
    """What all attempts at this step asked of models so far.

    Args:
        before: What earlier attempts left.
        meter: What this one asks.
        attempt: Its number, from 1.
    """

    def __init__(self, before: tuple[ModelSpent, ...], meter: Meter, attempt: int) -> None:
        self._before = before
        self._meter = meter
        self._attempt = attempt

    def succeeded(self) -> tuple[ModelSpent, ...]:
        """Everything, when this attempt gave what was asked."""
        return self._with_attempts(failed=self._uncounted() - 1)

    def failed(self) -> tuple[ModelSpent, ...]:
        """Everything, when this attempt gives nothing."""
        return self._with_attempts(failed=self._uncounted())

    def _uncounted(self) -> int:
        """Attempts since the last one that left a count; a killed worker left none."""
        return self._attempt - in_all(self._before).attempts

    def _with_attempts(self, *, failed: int) -> tuple[ModelSpent, ...]:
        asked = self._meter.spent
        if not asked:
            # Nothing was asked of a model this time: only what went before counts.
            return self._before
        here = ModelSpent(model=asked[-1].model, attempts=self._uncounted(), failed_attempts=failed)
        return by_model((*self._before, *asked, here))


@asynccontextmanager
async def accounted() -> AsyncIterator[Account]:
    """Heartbeat, count what is asked of models, and end in time to say what became of it.

    Raises:
        ModelUnavailable: the block took as long as an attempt may.
        EngramError: what the block raised, with what was spent in its details.
    """
    info = activity.info()
    with metering() as meter:
        account = Account(_left_behind(info.heartbeat_details), meter, info.attempt)
        async with beating(lambda: _as_data(account.failed())):
            try:
                async with asyncio.timeout(_seconds(info.start_to_close_timeout)):
                    yield account
            except TimeoutError:
                late = ModelUnavailable("The model did not answer in time (timeout).")
                raise _noted(late, account) from None
            except EngramError as error:
                _noted(error, account)
                raise
            except ApplicationError:
                raise
            except asyncio.CancelledError:
                activity.heartbeat(_as_data(account.failed()))
                raise
            except Exception as error:  # noqa: BLE001 - translated, logged and raised again
                what = unforeseen(error, info.activity_type)
                raise _noted(what, account) from None


def _noted(error: EngramError, account: Account) -> EngramError:
    spent = _as_data(account.failed())
    activity.heartbeat(spent)
    error.details[SPENT] = spent
    return error


def _seconds(limit: timedelta | None) -> float | None:
    if limit is None:
        return None
    return (limit - min(_MARGIN, limit * _MARGIN_SHARE)).total_seconds()


def _as_data(parts: Sequence[ModelSpent]) -> list[dict[str, Any]]:
    return [part.model_dump(mode="json", exclude_defaults=True) for part in parts]


def _left_behind(details: Sequence[Any]) -> tuple[ModelSpent, ...]:
    """What earlier attempts left; nothing when they left something else (another version)."""
    try:
        return _PARTS.validate_python(details[0]) if details else ()
    except ValidationError:
        return ()
