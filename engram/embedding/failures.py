"""What a provider's errors mean for the caller: try again, or change something."""

from __future__ import annotations

from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, UserError

from engram.errors import EmbeddingFailed, EngramError, ModelRejected

# 402 is a spent quota and 422 a request in the wrong form: as lasting as a bad key.
_LASTING = frozenset({400, 401, 402, 403, 404, 422})


def translate(error: Exception, identity: str) -> EngramError:
    """The typed error for what an embedding provider raised. Never quotes the texts."""
    if isinstance(error, EngramError):
        return error
    if isinstance(error, UserError):
        return ModelRejected(
            f"The embedding model {identity} is not set up: {error}.",
            hint="Check the key and address of the provider, and ENGRAM_EMBEDDER.",
        )
    if isinstance(error, ModelHTTPError):
        return _of_status(error, identity)
    if isinstance(error, TimeoutError):
        return _retry(f"The embedding model {identity} did not answer in time.", error)
    if isinstance(error, ModelAPIError):
        return _retry(f"The embedding model {identity} could not be reached.", error)
    return _retry(f"The embedding model {identity} failed with {type(error).__name__}.", error)


def _of_status(error: ModelHTTPError, identity: str) -> EngramError:
    status = error.status_code
    if status in _LASTING:
        return ModelRejected(
            f"The embedding model {identity} refused the request with status {status}.",
            hint="Check the provider's key, the model's name and its limits.",
            details={"status": status},
        )
    return _retry(f"The embedding model {identity} answered with status {status}.", error, status)


def _retry(message: str, error: Exception, status: int | None = None) -> EmbeddingFailed:
    details = {"status": status, "retry_after": getattr(error, "retry_after", None)}
    return EmbeddingFailed(
        message,
        hint="Trying again helps.",
        details={name: value for name, value in details.items() if value is not None},
    )
