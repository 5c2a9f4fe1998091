"""Every error Engram raises on purpose.

Each says what was wrong, what is allowed, and what to do; ``retryable`` tells
whether the same call can succeed later without being changed. ``code`` is the
name that crosses process borders (Temporal failures, HTTP problems) and is
therefore compatibility data: a code is never renamed.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final

if TYPE_CHECKING:
    from pathlib import Path

from engram.distribution import how_to_install

LONGEST_DELAY: Final = 3600.0
"""Seconds. Who asks for more is asked again after it all the same: nobody waits so long."""


class EngramError(Exception):
    """Base of all typed errors.

    Args:
        message: What was wrong, without any memory content.
        allowed: What would have been accepted, in words.
        hint: What to do about it.
        details: Plain values that help a program (limits, ids, ports).
    """

    code: ClassVar[str] = "engram"
    retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        allowed: str | None = None,
        hint: str | None = None,
        details: dict[str, Any] | None = None,
    ) -> None:
        self.message = message
        self.allowed = allowed
        self.hint = hint
        self.details = dict(details or {})
        super().__init__(str(self))

    @property
    def retry_after(self) -> float | None:
        """Seconds that a provider or server asked to wait, an hour at most; None: it did not."""
        wait = self.details.get("retry_after")
        # "Now" is no delay: who asks at once again and again is refused again and again.
        if not isinstance(wait, int | float) or wait <= 0:
            return None
        return min(float(wait), LONGEST_DELAY)

    def __str__(self) -> str:
        parts = [self.message]
        if self.allowed:
            parts.append(f"Allowed: {self.allowed}.")
        if self.hint:
            parts.append(self.hint)
        return " ".join(parts)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.code, self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        """The error as plain data; :func:`error_from_dict` turns it back."""
        return {
            "code": self.code,
            "message": self.message,
            "allowed": self.allowed,
            "hint": self.hint,
            "details": self.details,
            "retryable": self.retryable,
        }


class InvalidInput(EngramError, ValueError):
    """Something handed in cannot be accepted; nothing was stored."""

    code = "invalid_input"


class InvalidTurn(InvalidInput):
    """A conversation turn is empty, too large, wrongly dated or not text."""

    code = "invalid_turn"


class UnmaskedPersonalData(InvalidTurn):
    """Something holds personal data and goes to a namespace that masks it; none is quoted."""

    code = "unmasked_personal_data"


class InvalidScope(InvalidInput):
    """A namespace, user id or session id has characters or a length that is refused."""

    code = "invalid_scope"


class InvalidQuery(InvalidInput):
    """A recall or listing asks for something outside its ranges."""

    code = "invalid_query"


class InvalidSettings(InvalidInput):
    """A setting, from the environment or the constructor, is out of range."""

    code = "invalid_settings"


class UnreadableSource(InvalidInput):
    """A file that is to be imported is not in its format; the place is named, nothing quoted."""

    code = "unreadable_source"


class ImportOutOfStep(EngramError):
    """A part of an import does not follow what is stored; the same import can be begun again."""

    code = "import_out_of_step"


class ConflictingMessage(EngramError):
    """A message id was used before in this session, for another turn."""

    code = "conflicting_message"


class StageNotReached(EngramError):
    """Turns are stored, and did not get as far as was waited for; details say where they stand."""

    code = "stage_not_reached"
    retryable = True


class MemoryNotFound(EngramError, LookupError):
    """No memory with that id belongs to this user."""

    code = "memory_not_found"


class ReviewNotFound(EngramError, LookupError):
    """No review with that id of this user waits for an answer."""

    code = "review_not_found"


class UserErased(EngramError):
    """Everything of the user was erased after this work began: none of it is written any more."""

    code = "user_erased"


class BasisForgotten(EngramError):
    """What was being composed rests on something that was forgotten meanwhile; again, without."""

    code = "basis_forgotten"
    retryable = True


class SessionBusy(EngramError):
    """A session refused work because too much is waiting."""

    code = "session_busy"
    retryable = True


class StorageError(EngramError):
    """The memory store answered in a way that Engram cannot use."""

    code = "storage"


class StorageUnavailable(StorageError):
    """The memory store cannot be reached, or is starting; trying again helps."""

    code = "storage_unavailable"
    retryable = True


class SchemaMismatch(StorageError):
    """The store was written by another schema version or another embedder."""

    code = "schema_mismatch"


class WrongVectorSize(StorageError):
    """A vector does not have the size its collection was created with."""

    code = "wrong_vector_size"


class UnindexedField(StorageError):
    """A query names a field that has no index, so engines would disagree on it."""

    code = "unindexed_field"


class LostUpdate(StorageError):
    """A conditional write kept losing to other writers; trying again helps."""

    code = "lost_update"
    retryable = True


class EmbeddingFailed(EngramError):
    """The embedding model gave no usable vector."""

    code = "embedding_failed"
    retryable = True


class ModelRejected(EngramError):
    """The language model refused the request for good: bad key, bad model name, bad request."""

    code = "model_rejected"


class ModelUnavailable(EngramError):
    """The language model cannot answer now: rate limit, overload, timeout."""

    code = "model_unavailable"
    retryable = True


class ModelAnswerUnusable(EngramError):
    """The language model answered, and the answer could not be mended into the asked form."""

    code = "model_answer_unusable"
    retryable = True


class TemporalUnavailable(EngramError):
    """Temporal cannot be reached, or is starting; trying again helps."""

    code = "temporal_unavailable"
    retryable = True


class TemporalNotSetUp(EngramError):
    """The Temporal namespace lacks something that Engram registers or needs."""

    code = "temporal_not_set_up"


class DataFolderInUse(EngramError):
    """Another process owns the data folder and does not answer on its socket."""

    code = "data_folder_in_use"
    retryable = True


class OwnerUnavailable(EngramError):
    """The process that this one works through does not answer, or went away."""

    code = "owner_unavailable"
    retryable = True


class DataFolderUnusable(EngramError):
    """The data folder is a file, or cannot be created or written to."""

    code = "data_folder_unusable"


class PortInUse(EngramError):
    """A port that settings ask for is taken by another program."""

    code = "port_in_use"


class EmbeddedPartMissing(EngramError):
    """The embedded mode needs a part that is not installed on this machine."""

    code = "embedded_part_missing"


class EmbeddedStartFailed(EngramError):
    """A part of the embedded mode did not start in time."""

    code = "embedded_start_failed"
    retryable = True


class KeyRefused(EngramError):
    """No API key was given, or one that is unknown, revoked or expired."""

    code = "key_refused"


class AccessDenied(EngramError):
    """Who asks may not do this: by their API key, or because of the page that asks."""

    code = "access_denied"


class NoSuchAddress(EngramError, LookupError):
    """There is no such address, or the API key does not reach it."""

    code = "no_such_address"


class HostRefused(EngramError):
    """A request names a host that is not served here."""

    code = "host_refused"


class TooManyRequests(EngramError):
    """More was asked than is allowed at a time, of an API key or for a user; later it may be."""

    code = "too_many_requests"
    retryable = True


class KeysUnusable(EngramError):
    """The file of API keys cannot be read or written, or others may write it."""

    code = "keys_unusable"
    retryable = True


class EncryptionKeysUnusable(EngramError):
    """The keys that Temporal payloads are encrypted with are missing or cannot be read."""

    code = "encryption_keys_unusable"
    retryable = True


class AuditUnwritable(EngramError):
    """The audit trail is required, and cannot be written to now."""

    code = "audit_unwritable"
    retryable = True


class PayloadRefused(EngramError):
    """What came through Temporal is not encrypted, or not with a key of Engram; nobody read it."""

    code = "payload_refused"


class MemoryClosed(EngramError):
    """The store was used after it was closed, or was closed before a call was done."""

    code = "memory_closed"


class UnforeseenFailure(EngramError):
    """Something failed in a way nobody has typed; it is tried three times: it may pass."""

    code = "unforeseen"
    retryable = True


class RunEnded(TemporalUnavailable):
    """The run that was to answer ended first; asking again reaches the next one."""

    code = "run_ended"


class UnknownFailure(EngramError):
    """An error crossed a process border under a code this version does not know."""

    code = "unknown"


def _registry() -> dict[str, type[EngramError]]:
    found: dict[str, type[EngramError]] = {}
    waiting: list[type[EngramError]] = [EngramError]
    while waiting:
        current = waiting.pop()
        found[current.code] = current
        waiting.extend(current.__subclasses__())
    return found


def error_codes() -> Set[str]:
    """All codes that an error can have; the base of them is none."""
    return _registry().keys() - {EngramError.code}


def error_from_dict(data: dict[str, Any]) -> EngramError:
    """Rebuild a typed error from :meth:`EngramError.as_dict`."""
    kind = _registry().get(str(data.get("code")), UnknownFailure)
    return kind(
        str(data.get("message", "The other side failed without a message.")),
        allowed=data.get("allowed"),
        hint=data.get("hint"),
        details=data.get("details"),
    )


def _rebuild(code: str, data: dict[str, Any]) -> EngramError:
    return error_from_dict({**data, "code": code})


@contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Imports inside need the packages of this extra.

    Raises:
        EmbeddedPartMissing: naming the package and how to install it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise EmbeddedPartMissing(
            f"The package {error.name!r} is not installed.",
            allowed=how_to_install(extra),
            hint="A program that only talks to servers uses engram.connect and needs no extra.",
            details={"extra": extra, "package": error.name},
        ) from error


@contextmanager
def written_into(folder: Path) -> Iterator[None]:
    """What is done inside is to make this folder, or to write into it.

    Raises:
        InvalidInput: saying why the system refused that.
    """
    try:
        yield
    except OSError as error:
        raise InvalidInput(
            f"The folder {folder} cannot be written to: {error.strerror or error}.",
            allowed="a folder, there or yet to be made, that this user can write to and that has "
            "room",
        ) from error


def clock_refused(why: str) -> InvalidSettings:
    """The error for a clock that would not move what is decided elsewhere."""
    return InvalidSettings(
        f"{why}, and decides by its own clock.",
        allowed="no clock; or engram.open(clock=...) on a folder that nobody else owns",
        hint="Turn(timestamp=...) dates what is said; as_of and valid_at ask of earlier moments.",
    )
