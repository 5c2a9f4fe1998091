"""Typed errors: their words, their way across process borders, their codes."""

from __future__ import annotations

import pickle
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from engram.activities.runtime import TypedErrorInterceptor, to_application_error
from engram.errors import (
    LONGEST_DELAY,
    ConflictingMessage,
    EmbeddingFailed,
    EngramError,
    InvalidTurn,
    MemoryClosed,
    ModelUnavailable,
    StorageUnavailable,
    TemporalUnavailable,
    UnknownFailure,
    error_from_dict,
)


def every_error() -> list[type[EngramError]]:
    """All typed errors."""
    found: list[type[EngramError]] = []
    waiting = [EngramError]
    while waiting:
        kind = waiting.pop()
        found.append(kind)
        waiting.extend(kind.__subclasses__())
    return found


@pytest.mark.parametrize("kind", every_error(), ids=lambda kind: kind.__name__)
def test_an_error_survives_the_border(kind: type[EngramError]) -> None:
    """As data, and pickled, an error comes back as the same type with the same words."""
    error = kind("It broke.", allowed="whole things", hint="Mend it.", details={"limit": 3})
    for back in (error_from_dict(error.as_dict()), pickle.loads(pickle.dumps(error))):  # noqa: S301 - our own bytes
        assert type(back) is kind
        assert str(back) == "It broke. Allowed: whole things. Mend it."
        assert back.details == {"limit": 3}


def test_codes_are_unique() -> None:
    """No two errors share a code: it is what rebuilds them."""
    codes = [kind.code for kind in every_error()]
    assert len(codes) == len(set(codes))


def test_an_unknown_code_is_not_lost() -> None:
    """An error of a newer version keeps its words."""
    back = error_from_dict({"code": "from_the_future", "message": "It broke."})
    assert isinstance(back, UnknownFailure)
    assert "It broke." in str(back)


@pytest.mark.parametrize(
    ("error", "retries"),
    [
        (InvalidTurn("no"), False),
        (ConflictingMessage("no"), False),
        (StorageUnavailable("later"), True),
        (ModelUnavailable("later"), True),
        # In the next worker it is open.
        (MemoryClosed("here"), True),
    ],
)
def test_temporal_retries_what_a_retry_helps(error: EngramError, retries: bool) -> None:
    """The one translation marks as non-retryable what cannot get better."""
    failure = to_application_error(error)
    assert isinstance(failure, ApplicationError)
    assert failure.non_retryable is not retries
    assert failure.type == error.code


@pytest.mark.parametrize("kind", [ModelUnavailable, EmbeddingFailed, StorageUnavailable])
def test_who_asks_for_patience_gets_it(kind: type[EngramError]) -> None:
    """Retry-after of a model, an embedder and a store delays Temporal's next attempt."""
    failure = to_application_error(kind("busy", details={"retry_after": 7}))
    assert failure.next_retry_delay == timedelta(seconds=7)


@pytest.mark.parametrize(("told", "waits"), [(0, None), (1.5, 1.5), (999_999, LONGEST_DELAY)])
def test_patience_has_bounds(told: float, waits: float | None) -> None:
    """A delay of nothing is none: our own pauses hold. Nobody waits longer than an hour."""
    assert ModelUnavailable("busy", details={"retry_after": told}).retry_after == waits


class _Refused(ActivityInboundInterceptor):
    """An activity that asks a Temporal which has too much to do."""

    def __init__(self) -> None:
        return

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002 - the parameter's name belongs to Temporal's interface
        raise RPCError("slow down", RPCStatusCode.RESOURCE_EXHAUSTED, b"")


async def test_an_activity_that_temporal_turns_away_is_tried_again_in_every_attempt() -> None:
    """An erasure is not given up in its third attempt because the service is busy."""
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, attempt=9)
    activity = TypedErrorInterceptor().intercept_activity(_Refused())
    with pytest.raises(ApplicationError) as failed:
        await environment.run(activity.execute_activity, cast("ExecuteActivityInput", None))
    assert (failed.value.type, failed.value.non_retryable) == (TemporalUnavailable.code, False)
