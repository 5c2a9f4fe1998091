"""The one place where Engram's typed errors become Temporal failures."""

from __future__ import annotations

import asyncio
import traceback
from datetime import timedelta
from typing import Any

import structlog
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
)

from engram.errors import (
    ConflictingMessage,
    EngramError,
    InvalidInput,
    MemoryNotFound,
    ModelUnavailable,
    UnforeseenFailure,
)

_log = structlog.get_logger("engram.activities")
# What was asked was wrong, not the work on it: no warning with a traceback in a log.
_OF_THE_ASKER = (InvalidInput, MemoryNotFound, ConflictingMessage)


def to_application_error(error: EngramError) -> ApplicationError:
    """The Temporal failure for a typed error: its code as type, its data as details."""
    wait = error.retry_after if isinstance(error, ModelUnavailable) else None
    benign = isinstance(error, _OF_THE_ASKER)
    return ApplicationError(
        str(error),
        error.as_dict(),
        type=error.code,
        non_retryable=not error.retryable,
        next_retry_delay=timedelta(seconds=wait) if wait is not None else None,
        category=ApplicationErrorCategory.BENIGN
        if benign
        else ApplicationErrorCategory.UNSPECIFIED,
    )


def unforeseen(error: Exception, doing: str) -> UnforeseenFailure:
    """The typed error for what nobody has typed; where it came from goes to the log."""
    where = traceback.format_tb(error.__traceback__)
    _log.error("an activity failed unforeseen", kind=type(error).__name__, where=where)
    return UnforeseenFailure(
        f"{doing} failed with {type(error).__name__}.",
        hint="The worker's log has the traceback.",
    )


class TypedErrorInterceptor(Interceptor):
    """Installed on every worker, so that no activity translates errors itself."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002 - the parameter's name belongs to Temporal's interface
        """See the base class."""
        return _TypedErrors(next)


class _TypedErrors(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002 - the parameter's name belongs to Temporal's interface
        try:
            return await super().execute_activity(input)
        except EngramError as error:
            # Without its cause: an engine's own message can quote what was stored, and
            # Temporal keeps every message of the chain.
            raise to_application_error(error) from None
        except (ApplicationError, asyncio.CancelledError):
            raise
        except Exception as error:  # noqa: BLE001 - translated, logged and raised again
            raise to_application_error(unforeseen(error, input.fn.__qualname__)) from None
