"""What a failed activity means, as data that reports and updates can carry."""

from __future__ import annotations

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

from engram.contracts import names
from engram.contracts.consolidation import Failure
from engram.errors import (
    EngramError,
    ModelAnswerUnusable,
    ModelRejected,
    ModelUnavailable,
    SchemaMismatch,
    StorageError,
    StorageUnavailable,
    UnforeseenFailure,
    UnindexedField,
    WrongVectorSize,
)

# A marker that runs of before the first release have in their histories; it goes with the next.
_OUTLIVES = "consolidation-outlives-failures"
_MODEL_ACTIVITIES = frozenset({names.EXTRACT_ACTIVITY, names.LINK_ACTIVITY})
_OF_THE_MODEL = frozenset({ModelRejected.code, ModelAnswerUnusable.code})
# What is wrong with the whole store is wrong for every batch.
_OF_THE_STORE = frozenset(
    kind.code for kind in (StorageError, SchemaMismatch, WrongVectorSize, UnindexedField)
)


def failure_of(error: ActivityError) -> Failure:
    """The typed error behind an activity's failure.

    What ran out of time may succeed later; an error that no part of Engram
    raised on purpose keeps its own name as code.
    """
    cause = error.cause
    if not isinstance(cause, ApplicationError):
        kind: type[EngramError] = (
            ModelUnavailable if error.activity_type in _MODEL_ACTIVITIES else StorageUnavailable
        )
        late = kind(f"{error.activity_type} did not end in time.")
        return Failure(code=late.code, message=late.message, error=late.as_dict())
    details = cause.details[0] if cause.details else None
    code = cause.type or "unknown"
    described = details if isinstance(details, dict) else {}
    return Failure(
        code=code,
        message=cause.message,
        error=described or {"code": code, "message": cause.message},
    )


def is_of_the_model(failure: Failure) -> bool:
    """Whether the model turned down what it was asked: asking for less may succeed."""
    return failure.code in _OF_THE_MODEL and is_of_the_batch(failure)


def is_of_the_batch(failure: Failure) -> bool:
    """Whether another batch could fare better: no outage, no refused key, no foreign store."""
    if failure.code in {ModelAnswerUnusable.code, UnforeseenFailure.code}:
        return True
    if failure.code == ModelRejected.code:
        details = failure.error.get("details")
        return isinstance(details, dict) and details.get("refused") == "request"
    return not failure.error.get("retryable") and failure.code not in _OF_THE_STORE


def is_outage(failure: Failure) -> bool:
    """Whether the same pass can succeed later without anybody changing anything."""
    return bool(failure.error.get("retryable")) and failure.code != ModelAnswerUnusable.code


def mark_outlived() -> None:
    """Note in the history that this run does more after a failure than end its pass."""
    workflow.deprecate_patch(_OUTLIVES)
