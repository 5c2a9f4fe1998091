"""The one place where Temporal's failures become typed errors again."""

from __future__ import annotations

from temporalio.client import (
    WorkflowFailureError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import ActivityError, ApplicationError, FailureError
from temporalio.service import RPCError, RPCStatusCode

from engram.contracts import names
from engram.errors import (
    EngramError,
    RunEnded,
    TemporalNotSetUp,
    TemporalUnavailable,
    UnknownFailure,
    error_from_dict,
)

# What the server answers when an update meets a run that is just ending; the
# next attempt starts or finds the next run.
_RUN_ENDED = {"AcceptedUpdateCompletedWorkflow", "WorkflowUpdateAborted"}
# What it answers to a query that waited for a run's first task when the run was ended.
_ENDED_FIRST = "closed before workflowtaskstarted"
_TRY_AGAIN = {
    RPCStatusCode.ABORTED,
    RPCStatusCode.CANCELLED,
    RPCStatusCode.DEADLINE_EXCEEDED,
    RPCStatusCode.INTERNAL,
    RPCStatusCode.FAILED_PRECONDITION,
    RPCStatusCode.NOT_FOUND,
    RPCStatusCode.RESOURCE_EXHAUSTED,
    RPCStatusCode.UNAVAILABLE,
    RPCStatusCode.UNKNOWN,
}


def typed(error: BaseException) -> EngramError:
    """The typed error behind what Temporal's client raised."""
    if isinstance(error, EngramError):
        return error
    if isinstance(error, RPCError):
        return _from_rpc(error)
    if isinstance(error, WorkflowUpdateRPCTimeoutOrCancelledError):
        return TemporalUnavailable("Temporal did not answer in time.")
    if isinstance(error, WorkflowUpdateFailedError | WorkflowFailureError):
        return _from_failure(error.cause)
    return UnknownFailure(f"Temporal failed: {type(error).__name__}.")


def _from_rpc(error: RPCError) -> EngramError:
    if "search attribute" in error.message.lower():
        attributes = (names.USER_ATTRIBUTE, names.SESSION_ATTRIBUTE, names.STAGE_ATTRIBUTE)
        return TemporalNotSetUp(
            "Temporal does not know Engram's search attributes.",
            allowed=f"{', '.join(attributes)}, each of type Keyword",
            hint="Register them in the Temporal namespace; deploy/README.md shows how.",
        )
    if error.status is RPCStatusCode.NOT_FOUND and "namespace" in error.message.lower():
        return TemporalNotSetUp(
            "Temporal does not know the namespace that Engram is to use.",
            hint="Create it, or set ENGRAM_TEMPORAL_NAMESPACE to one that exists.",
        )
    if error.status is RPCStatusCode.FAILED_PRECONDITION and _ENDED_FIRST in error.message.lower():
        return RunEnded("The workflow ended before it could answer.")
    if error.status in _TRY_AGAIN:
        return TemporalUnavailable(
            f"Temporal cannot answer now ({error.status.name.lower()}).",
            hint="It may be starting or unreachable; the same call can be made again.",
        )
    return UnknownFailure(f"Temporal refused the call ({error.status.name.lower()}).")


def _from_failure(cause: BaseException | None) -> EngramError:
    while isinstance(cause, ActivityError) and cause.cause is not None:
        cause = cause.cause
    if isinstance(cause, ApplicationError):
        if cause.type in _RUN_ENDED:
            return RunEnded("The workflow ended before it could answer.")
        if cause.details and isinstance(cause.details[0], dict):
            return error_from_dict(cause.details[0])
        return error_from_dict({"code": cause.type, "message": cause.message})
    if isinstance(cause, FailureError):
        return UnknownFailure(f"The workflow failed: {type(cause).__name__}.")
    return UnknownFailure("The workflow failed without saying why.")
