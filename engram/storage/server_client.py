"""Talking to a Qdrant server: the client, its errors, and its way of writing conditions down."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import httpx
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from engram.errors import StorageError, StorageUnavailable
from engram.settings import Settings
from engram.storage.filters import Range

OLDEST_SERVER: Final = (1, 19)
"""The first that counts IDF per user; an older one ignores the wish without a word."""

_UNAUTHORISED: Final = frozenset({401, 403})
_NOT_FOUND: Final = 404
_TOO_MANY: Final = 429
_SERVER_FAULT: Final = 500
_TIMED_OUT: Final = 408


def connect_qdrant(settings: Settings) -> AsyncQdrantClient:
    """A client for the server that the settings name. Sends nothing yet."""
    key = settings.qdrant_api_key
    return AsyncQdrantClient(
        url=settings.qdrant_url,
        api_key=key.get_secret_value() if key is not None else None,
        timeout=settings.qdrant_timeout,  # type: ignore[arg-type]  # rounded up by the client
        # Its own check runs in a thread and warns; ours is made on opening and raises.
        check_compatibility=False,
    )


@contextmanager
def server_errors(doing: str) -> Iterator[None]:
    """Turn the client's errors into typed ones.

    Args:
        doing: What was being done, in words, for the message.

    Raises:
        StorageUnavailable: unreachable, timed out, overloaded or failing: try again.
        StorageError: refused for good.
    """
    try:
        yield
    except ResponseHandlingException as error:
        raise _unanswered(doing, error) from error
    except ResourceExhaustedResponse as error:
        raise StorageUnavailable(
            f"The Qdrant server is over its rate limit while {doing}.",
            details={"retry_after": error.retry_after_s},
        ) from error
    except UnexpectedResponse as error:
        raise _refused(doing, error.status_code) from error


def _unanswered(doing: str, error: ResponseHandlingException) -> StorageError:
    if isinstance(error.source, httpx.TransportError):
        late = isinstance(error.source, httpx.TimeoutException)
        return StorageUnavailable(
            f"The Qdrant server {'did not answer in time' if late else 'was not reached'} "
            f"while {doing}.",
            hint="Is it running, and is ENGRAM_QDRANT_URL right? It may still be starting.",
            details={"reason": type(error.source).__name__},
        )
    return StorageError(
        f"The Qdrant server gave an answer that could not be understood while {doing}.",
        hint="Is ENGRAM_QDRANT_URL the address of a Qdrant server?",
        details={"reason": type(error.source).__name__},
    )


def _refused(doing: str, status: int | None) -> StorageError:
    details = {"status": status}
    if status in _UNAUTHORISED:
        return StorageError(
            f"The Qdrant server refused access while {doing} (HTTP {status}).",
            hint="Check ENGRAM_QDRANT_API_KEY: it is missing, wrong, or may only read.",
            details=details,
        )
    if status is not None and (status >= _SERVER_FAULT or status in {_TOO_MANY, _TIMED_OUT}):
        return StorageUnavailable(
            f"The Qdrant server failed while {doing} (HTTP {status}).", details=details
        )
    if status == _NOT_FOUND:
        return StorageError(
            f"The Qdrant server does not know the collection any more, while {doing}.",
            hint="It was removed since the store was opened; open it again to make it anew.",
            details=details,
        )
    return StorageError(
        f"The Qdrant server refused while {doing} (HTTP {status}).", details=details
    )


def check_server_version(version: str) -> None:
    """Refuse a server that is too old to keep users' scores apart.

    Raises:
        StorageError: naming both versions.
    """
    parts = version.split(".")
    if not all(part.isdigit() for part in parts[:2]) or len(parts) < len(OLDEST_SERVER):
        return  # A build of someone's own: they know what it can do.
    if tuple(map(int, parts[:2])) < OLDEST_SERVER:
        raise StorageError(
            f"The Qdrant server has version {version}.",
            allowed=f"{'.'.join(map(str, OLDEST_SERVER))} or newer",
            hint="Upgrade it: older versions mix all users' texts into each user's scores.",
            details={"version": version},
        )


class ServerDialect:
    """Conditions as the client's models."""

    def equals(self, field: str, value: str | int) -> models.Filter:
        """The field holds the value."""
        return _one(models.FieldCondition(key=field, match=models.MatchValue(value=value)))

    def any_of(self, field: str, values: list[str]) -> models.Filter:
        """The field holds one of the values."""
        return _one(models.FieldCondition(key=field, match=models.MatchAny(any=values)))

    def within(self, field: str, bounds: Range, *, time: bool) -> models.Filter:
        """The field lies within the bounds."""
        given: dict[str, Any] = {
            name: value
            for name in ("gte", "lte", "gt", "lt")
            if (value := getattr(bounds, name)) is not None
        }
        limits = models.DatetimeRange(**given) if time else models.Range(**given)
        return _one(models.FieldCondition(key=field, range=limits))

    def missing(self, field: str) -> models.Filter:
        """The field is absent, null or empty."""
        return _one(models.IsEmptyCondition(is_empty=models.PayloadField(key=field)))

    def ids(self, ids: list[str]) -> models.Filter:
        """The point is one of these."""
        return _one(models.HasIdCondition(has_id=[*ids]))

    def every(self, filters: Sequence[models.Filter]) -> models.Filter:
        """All of these hold; plain conjunctions are flattened."""
        must: list[Any] = []
        for inner in filters:
            plain = inner.should is None and inner.must_not is None and inner.min_should is None
            if plain and isinstance(inner.must, list):
                must.extend(inner.must)
            else:
                must.append(inner)
        return models.Filter(must=must)

    def either(self, filters: Sequence[models.Filter]) -> models.Filter:
        """At least one of these holds."""
        return models.Filter(should=[*filters])

    def negation(self, inner: models.Filter) -> models.Filter:
        """This does not hold."""
        return models.Filter(must_not=[inner])


def _one(condition: Any) -> models.Filter:
    return models.Filter(must=[condition])
