"""Histories without what was said in them, for keeping where code is kept.

What is left is what decides a replay: the order of events, times, numbers, the names of
Engram's own fields and words. Every other text becomes a mark, the same for the same text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from temporalio.api.common.v1 import Payload, Payloads
from temporalio.api.history.v1 import History
from temporalio.api.sdk.v1 import UserMetadata

# Of what the server writes: names that code has, and ids that server and SDK made. Texts of
# every other field become marks, those of fields that a later server brings included.
_KEPT_FIELDS: Final = frozenset(
    {
        *("name", "signal_name", "query_type", "marker_name", "encoding", "type", "namespace"),
        *("namespace_id", "activity_id", "timer_id", "sdk_name", "sdk_version", "build_id"),
        *("deployment_name", "worker_deployment_name", "workflow_type", "cron_schedule"),
    }
)
_EMPTIED_FIELDS: Final = frozenset(
    {"identity", "stack_trace", "fairness_key", "binary_checksum", "reason", "source"}
)
# What the SDK itself wrote for its replays: which patch, and which local activity, when.
_OF_THE_SDK: Final = frozenset({"patch-data", "data"})
_PATCHES: Final = "TemporalChangeVersion"
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z", re.I)
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)\Z")
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d\Z")
_SOME_DAY: Final = "2000-01-01"
_DURATION: Final = re.compile(
    r"-?P(?=[\dT])(?:\d+Y)?(?:\d+M)?(?:\d+W)?(?:\d+D)?"
    r"(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?\Z"
)
# What code counts; longer ones are telephone numbers, cards, and names of users.
_NUMBER: Final = re.compile(r"\d{1,3}\Z")
_KEPT_METADATA: Final = frozenset({"encoding", "type"})
_MARK_BYTES: Final = 5


def payloads_of(message: Message) -> Iterator[Payload]:
    """Every payload in what a server tells, to be changed in place."""
    for field, value in message.ListFields():
        inner = field.message_type
        if inner is None:
            continue
        if inner.GetOptions().map_entry:
            parts = value.values() if inner.fields_by_name["value"].message_type else ()
        else:
            parts = value if field.is_repeated else (value,)
        for one in parts:
            if isinstance(one, Payload):
                yield one
            else:
                yield from payloads_of(one)


class Redactor:
    """Takes the words out of histories.

    Args:
        known: Texts that the code itself has, and may compare with: they stay.
        fields: Names of the fields of Engram's messages; other keys are somebody's own.
        salt: Random, and thrown away: without it nobody tries out which text a mark is of.
    """

    def __init__(self, known: Iterable[str], fields: Iterable[str], salt: bytes) -> None:
        self._known = frozenset(known)
        self._fields = frozenset(fields)
        self._salt = salt

    def history(self, given: History) -> History:
        """A copy without words.

        Args:
            given: Readable: what is encrypted was decrypted before.
        """
        taken = History()
        taken.CopyFrom(given)
        self._message(taken)
        return taken

    def id(self, given: str) -> str:
        """The mark of a workflow's id: part by part, so that ids that are made of others agree."""
        return "/".join(map(self._text, given.split("/")))

    def _message(self, message: Message) -> None:
        for field, value in message.ListFields():
            if field.message_type is None:
                self._plain(message, field, value)
            elif field.message_type.GetOptions().map_entry:
                self._entries(value)
            elif field.is_repeated:
                for one in value:
                    self._one(one)
            else:
                self._one(value)

    def _one(self, value: Any) -> None:
        if isinstance(value, Payload):
            self._payload(value)
        elif isinstance(value, UserMetadata):
            value.Clear()
        else:
            self._message(value)

    def _entries(self, value: Any) -> None:
        for key in list(value):
            if key == _PATCHES or (key in _OF_THE_SDK and isinstance(value[key], Payloads)):
                continue
            if isinstance(value[key], Message):
                self._one(value[key])
            elif isinstance(value[key], str):
                value[key] = self.id(value[key])

    def _plain(self, message: Message, field: FieldDescriptor, value: Any) -> None:
        if field.name in _KEPT_FIELDS or field.type != field.TYPE_STRING:
            return
        if field.name in _EMPTIED_FIELDS:
            message.ClearField(field.name)
        elif field.is_repeated:
            value[:] = [self.id(one) for one in value]
        else:
            setattr(message, field.name, self.id(value))

    def _payload(self, payload: Payload) -> None:
        for name in payload.metadata.keys() - _KEPT_METADATA:
            del payload.metadata[name]
        if not payload.data:
            return
        try:
            read = json.loads(payload.data)
        except ValueError:
            # Of no message of Engram's.
            payload.data = b""
            return
        payload.data = json.dumps(self._value(read), separators=(",", ":")).encode()

    def _value(self, value: Any, *, foreign: bool = False) -> Any:
        match value:
            case dict():
                return {
                    key if key in self._fields else self.id(key): self._value(
                        inner, foreign=foreign or key not in self._fields
                    )
                    for key, inner in value.items()
                }
            case list():
                return [self._value(one, foreign=foreign) for one in value]
            case str():
                return self.id(value) if value not in self._known else value
            case bool() | None:
                return value
            case _:
                # A number under a key of somebody's own may be anything.
                return 0 if foreign else value

    def _text(self, text: str) -> str:
        if not text or text in self._known or any(kept(text) for kept in _KEPT_TEXTS):
            return text
        if _DAY.match(text):
            return _SOME_DAY
        mark = blake2b(text.encode(), key=self._salt[:64], digest_size=_MARK_BYTES)
        return f"x{mark.hexdigest()}"


_KEPT_TEXTS: Final[tuple[Callable[[str], Any], ...]] = (
    _UUID.match,
    _MOMENT.match,
    _DURATION.match,
    _NUMBER.match,
)
