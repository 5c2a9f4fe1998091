"""Encrypting what passes through Temporal, and refusing what is not encrypted by us.

Whose key it is, the workflow's id says. The decision is docs/decisions/0020-encryption.md.
"""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import Any, Final, Protocol, Self

import structlog
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from google.protobuf.message import DecodeError
from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError
from temporalio.api.common.v1 import Payload
from temporalio.contrib.pydantic import (
    PydanticJSONPlainPayloadConverter,
    PydanticPayloadConverter,
)
from temporalio.converter import (
    ActivitySerializationContext,
    DataConverter,
    DefaultFailureConverter,
    DefaultFailureConverterWithEncodedAttributes,
    EncodingPayloadConverter,
    PayloadCodec,
    SerializationContext,
    WithSerializationContext,
    WorkflowSerializationContext,
)
from temporalio.exceptions import ApplicationError

from engram.contracts.names import SHARED_KEY_OWNER, key_owner_of
from engram.contracts.refusals import refused
from engram.errors import EngramError, InvalidSettings, PayloadRefused
from engram.ports import DataKey, KeyStore
from engram.system import new_secret
from engram.temporal.keys import NONCE_BYTES

# What a schedule appends to the id of each run it starts.
_SCHEDULED: Final = re.compile(r"-\d{4}-\d\d-\d\dT[0-9:.]+Z\Z")


# --- payloads that are refused, and the converter that says so where somebody reads them

_ENCODING: Final = b"binary/encrypted"
_REFUSED_ENCODING: Final = b"engram/refused"
_SAME_KEYS: Final = "Client and workers need the same ENGRAM_ENCRYPTION_KEYS."


def refused_payload() -> Payload:
    """What stands for a payload that is refused: whoever reads it gets the typed error.

    The codec raises nothing itself. It would end the workflow task, which is tried again
    for ever: one plain signal would stop a session. So a start fails, an update is rejected,
    a signal is dropped, and an activity fails.
    """
    return Payload(metadata={"encoding": _REFUSED_ENCODING})


def is_refused(payload: Payload) -> bool:
    """Whether this stands for a payload that is refused."""
    return payload.metadata.get("encoding") == _REFUSED_ENCODING


def is_unread(payload: Payload) -> bool:
    """Whether its words are still hidden: it was refused, or nothing has tried to open it."""
    return is_refused(payload) or payload.metadata.get("encoding") == _ENCODING


_BROUGHT: Final = "engram-brought"
_JSON: Final = b"json/plain"
# What is encrypted, or was refused, says so itself where it is read.
_READABLE: Final = frozenset({_JSON, _ENCODING, _REFUSED_ENCODING})


def refuse_misfits(brought: Any) -> None:
    """Have what a start, an update or a signal brings refused by a typed error if it does not fit.

    The SDK would end the workflow task, which is tried again for ever: a typing mistake would
    block the id of a session. What does not fit is found where it is parsed, and only there.

    Args:
        brought: The payloads, of which Engram's take one each; changed in place.
    """
    if len(brought) != 1 or brought[0].metadata.get("encoding") not in _READABLE:
        del brought[:]
        # No JSON at all, which is what the error says.
        brought.append(Payload(metadata={"encoding": _JSON}))
    brought[0].metadata[_BROUGHT] = b""


def _misfit(error: ValidationError) -> ApplicationError:
    found = refused(
        error.errors(include_input=False, include_url=False),
        "What was sent",
        hint="docs/workflows.json has the schema of what each start and update takes.",
    )
    return _as_failure(found)


def _as_failure(error: EngramError) -> ApplicationError:
    return ApplicationError(
        str(error), error.as_dict(), type=error.code, non_retryable=not error.retryable
    )


class _RefusedConverter(EncodingPayloadConverter):
    """Raises the typed error for what was refused."""

    @property
    def encoding(self) -> str:
        """See the base class."""
        return _REFUSED_ENCODING.decode()

    def to_payload(self, value: Any) -> Payload | None:
        """See the base class."""
        return None

    def from_payload(self, payload: Payload, type_hint: type | None = None) -> Any:
        """See the base class."""
        error = PayloadRefused(
            "What was sent is not encrypted with a key of Engram.",
            allowed="what a client with the same encryption keys sends",
            hint=_SAME_KEYS,
        )
        raise _as_failure(error)


class _WithoutKeys(_RefusedConverter):
    """Raises the typed error for what is encrypted, in a process that has no keys at all.

    Not as a failure of Temporal's, which would end a run: the task is tried again, and a worker
    that has the keys goes on with it.
    """

    @property
    def encoding(self) -> str:
        """See the base class."""
        return _ENCODING.decode()

    def from_payload(self, payload: Payload, type_hint: type | None = None) -> Any:
        """See the base class."""
        raise PayloadRefused(
            "What came is encrypted, and this process has no encryption keys.", hint=_SAME_KEYS
        )


class _QuietJsonConverter(PydanticJSONPlainPayloadConverter):
    """Pydantic's, with errors that do not repeat what they are about.

    Temporal writes what cannot be read into logs and failures, for callers without keys in plain.
    """

    def from_payload(self, payload: Payload, type_hint: type | None = None) -> Any:
        """See the base class."""
        try:
            return super().from_payload(payload, type_hint)
        except ValidationError as error:
            raise (
                _misfit(error) if _BROUGHT in payload.metadata else _without_input(error)
            ) from None


def _without_input(error: ValidationError) -> ValidationError:
    """The same error, without what was sent."""
    found = [
        InitErrorDetails(
            type=PydanticCustomError(one["type"], one["msg"]), loc=one["loc"], input=None
        )
        for one in error.errors(include_input=False, include_url=False, include_context=False)
    ]
    return ValidationError.from_exception_data(error.title, found, "json", hide_input=True)


@cache
def _converters() -> Mapping[bytes, EncodingPayloadConverter]:
    own = (_QuietJsonConverter(), _RefusedConverter(), _WithoutKeys())
    given = PydanticPayloadConverter().converters
    return {**given, **{one.encoding.encode(): one for one in own}}


class EngramPayloadConverter(PydanticPayloadConverter):
    """Pydantic's, whose errors quote nothing, and the typed error for what cannot be read."""

    def __init__(self) -> None:
        # Not the base class's: Temporal makes one for almost every payload, and each would
        # build its serializer and its type adapters again. These keep nothing of a payload.
        self.converters = _converters()


class _RefusedAtDoor(_RefusedConverter):
    """Says it in words alone: details would be encrypted, for somebody who has no key."""

    def from_payload(self, payload: Payload, type_hint: type | None = None) -> Any:
        """See the base class."""
        try:
            return super().from_payload(payload, type_hint)
        except ApplicationError as error:
            raise ApplicationError(error.message, type=error.type, non_retryable=True) from None


class _DoorPayloadConverter(EngramPayloadConverter):
    def __init__(self) -> None:
        super().__init__()
        self.converters = {**_converters(), _REFUSED_ENCODING: _RefusedAtDoor()}


# --- the codec

_KEY_FIELD: Final = "engram-key"
_WORKFLOW_FIELD: Final = "engram-workflow"
# Seconds for which it is not asked again about a workflow whose run began later.
_REMEMBERED: Final = 10.0
_MOST_REMEMBERED: Final = 10_000

_log = structlog.get_logger("engram.temporal")

_answered_as: ContextVar[str | None] = ContextVar("engram_answered_as", default=None)


def answer_as(workflow_id: str) -> None:
    """Encrypt what this task answers, where nobody says whose it is, as if a workflow did.

    For a door through which others are answered: it knows the user, the codec does not.

    Args:
        workflow_id: Says whose key it is; it stands readable beside what is encrypted.
    """
    _answered_as.set(workflow_id)


class Runs(Protocol):
    """Knows when runs began."""

    async def began(self, workflow_id: str) -> datetime | None:
        """When the latest run of a workflow began, by the server; None if there is none."""
        ...


@dataclass
class Common:
    """What all copies of a codec have together."""

    runs: Runs | None = None
    refused: int = 0
    replays: bool = False
    later: OrderedDict[str, float] = field(default_factory=OrderedDict)


class EncryptionCodec(PayloadCodec, WithSerializationContext):
    """Encrypts payloads by AES-256-GCM, and reads only what it encrypted.

    Each is bound to its key and to its workflow. What is plain is read in one case: the
    workflow's latest run began before encryption was switched on.

    Args:
        keys: Shared by all clients and workers.
        workflow_id: Whose payloads they are; None where nobody says.
        common: Of the codec that this one is a copy of.
    """

    def __init__(
        self, keys: KeyStore, workflow_id: str | None = None, common: Common | None = None
    ) -> None:
        self._keys = keys
        self._common = common or Common()
        self._workflow_id = workflow_id
        self._plain = self._common.replays

    @property
    def keys(self) -> KeyStore:
        """The keys that it uses."""
        return self._keys

    @property
    def refused(self) -> int:
        """How many payloads it has refused."""
        return self._common.refused

    def ask(self, runs: Runs) -> None:
        """Ask there when a run began, of whatever comes plain."""
        self._common.runs = runs

    def with_context(self, context: SerializationContext) -> EncryptionCodec:
        """See the base class."""
        workflow_id = None
        if isinstance(context, WorkflowSerializationContext | ActivitySerializationContext):
            workflow_id = context.workflow_id
        return EncryptionCodec(self._keys, workflow_id, self._common)

    def for_replays(self) -> EncryptionCodec:
        """One that reads what is plain, too, and encrypts nothing: it only looks."""
        return EncryptionCodec(self._keys, common=Common(replays=True))

    async def lacks_key_of(self, payload: Payload) -> bool:
        """Whether a payload is encrypted with a data key that is not there, or not any more.

        Raises:
            EncryptionKeysUnusable: the keys cannot be read now.
        """
        if payload.metadata.get("encoding") != _ENCODING:
            return False
        owner = key_owner_of(_read(payload, _WORKFLOW_FIELD))
        return await self._keys.find(owner, _read(payload, _KEY_FIELD)) is None

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """See the base class."""
        if self._common.replays:
            return list(payloads)
        bound = self._workflow_id or _answered_as.get() or ""
        key = await self._keys.current(key_owner_of(bound))
        return [_sealed(payload, key, bound) for payload in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """See the base class.

        Raises:
            EncryptionKeysUnusable: the keys cannot be read now; nothing is refused for that.
            temporalio.service.RPCError: it cannot be asked now when the run began.
        """
        return [await self._decoded(payload) for payload in payloads]

    async def _decoded(self, payload: Payload) -> Payload:
        if payload.metadata.get("encoding") != _ENCODING:
            if await self._began_plain():
                return payload
            return self._refuse("not encrypted")
        key_id, bound = _read(payload, _KEY_FIELD), _read(payload, _WORKFLOW_FIELD)
        if not self._is_bound_here(bound):
            return self._refuse("of another workflow")
        key = await self._keys.find(key_owner_of(bound), key_id)
        if key is None:
            return self._refuse("of an unknown key")
        opened = _opened(payload, key, bound)
        return self._refuse("changed") if opened is None else opened

    def _is_bound_here(self, bound: str) -> bool:
        here = self._workflow_id
        if here is None or bound == here:
            return True
        # A schedule holds one payload for all runs it will start, and hands each the
        # result of the one before.
        return key_owner_of(here) == SHARED_KEY_OWNER and (
            _SCHEDULED.sub("", bound) == _SCHEDULED.sub("", here)
        )

    async def _began_plain(self) -> bool:
        """Whether the latest run of this workflow is from before everything was encrypted."""
        if self._plain:
            return True
        since, common, here = self._keys.since, self._common, self._workflow_id
        if since is None or common.runs is None or not here:
            return False
        if time.monotonic() - common.later.get(here, -_REMEMBERED) < _REMEMBERED:
            return False
        # What one step of a run brings is asked for once; the next step may be another run's.
        began = await common.runs.began(here)
        self._plain = began is not None and began < since
        if not self._plain:
            # For good: runs that are still to come begin later.
            common.later[here] = time.monotonic()
            while len(common.later) > _MOST_REMEMBERED:
                common.later.popitem(last=False)
        return self._plain

    def _refuse(self, why: str) -> Payload:
        self._common.refused += 1
        if self._common.refused.bit_count() == 1:
            # The first, the second, the fourth: somebody who sends without end fills no log.
            _log.warning(
                "a payload was refused",
                why=why,
                workflow_id=self._workflow_id,
                refused=self._common.refused,
            )
        return refused_payload()


def _sealed(payload: Payload, key: DataKey, bound: str) -> Payload:
    nonce = new_secret()[:NONCE_BYTES]
    data = AESGCM(key.secret).encrypt(nonce, payload.SerializeToString(), _about(key.id, bound))
    metadata = {
        "encoding": _ENCODING,
        _KEY_FIELD: key.id.encode(),
        _WORKFLOW_FIELD: bound.encode(),
    }
    return Payload(metadata=metadata, data=nonce + data)


def _opened(payload: Payload, key: DataKey, bound: str) -> Payload | None:
    nonce, data = payload.data[:NONCE_BYTES], payload.data[NONCE_BYTES:]
    try:
        return Payload.FromString(AESGCM(key.secret).decrypt(nonce, data, _about(key.id, bound)))
    except (InvalidTag, ValueError, DecodeError):
        return None


def _about(key_id: str, bound: str) -> bytes:
    """What a payload is bound to, beside its key."""
    return f"engram-payload/1\0{key_id}\0{bound}".encode()


def _read(payload: Payload, name: str) -> str:
    return payload.metadata.get(name, b"").decode("utf-8", "replace")


# --- the converter of every client


class _EngramConverter(DataConverter):
    def with_context(self, context: SerializationContext) -> Self:
        """The same for one workflow: only the codec asks for whom a payload is.

        The base class would make all of its parts anew, a dozen times for each update.
        """
        codec = self.payload_codec
        if not isinstance(codec, EncryptionCodec):
            return self
        bound = object.__new__(type(self))
        vars(bound).update(vars(self), payload_codec=codec.with_context(context))
        return bound


def data_converter(codec: EncryptionCodec | None) -> DataConverter:
    """How values become payloads.

    Args:
        codec: Encrypts them, and failures' messages; None leaves both readable.
    """
    plain = _EngramConverter(payload_converter_class=EngramPayloadConverter)
    if codec is None:
        return plain
    return replace(
        plain,
        payload_codec=codec,
        failure_converter_class=DefaultFailureConverterWithEncodedAttributes,
    )


def for_strangers(converter: DataConverter) -> DataConverter:
    """A client's converter for answering callers of other namespaces, who may have no keys.

    What they ask and are answered is encrypted as before. What went wrong stays readable: a
    workflow that cannot read its failure tries to for ever. Errors hold no content.
    """
    return replace(
        converter,
        payload_converter_class=_DoorPayloadConverter,
        failure_converter_class=DefaultFailureConverter,
    )


def reading_codec(converter: DataConverter) -> EncryptionCodec:
    """What reads whatever a client's converter reads, for people who look at it.

    Raises:
        InvalidSettings: nothing is encrypted there.
    """
    codec = converter.payload_codec
    if not isinstance(codec, EncryptionCodec):
        raise InvalidSettings(
            "No encryption keys are set, so nothing there is encrypted by this Engram.",
            allowed="ENGRAM_ENCRYPTION_KEYS, the folder that clients and workers share",
            hint="Without it the Temporal UI itself shows everything.",
        )
    return codec.for_replays()


def for_replays(converter: DataConverter) -> DataConverter:
    """A client's converter for replaying a history, encrypted or not."""
    codec = converter.payload_codec
    if not isinstance(codec, EncryptionCodec):
        return converter
    return replace(converter, payload_codec=codec.for_replays())
