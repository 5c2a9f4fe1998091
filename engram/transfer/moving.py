"""An export for another user: every id derived anew, and every reference with it.

Ids are derived from whose a memory is. Kept as they are, they would name nothing
where the same conversation is told again; so each memory gets the id it would
have had if it had been made there, wherever an id stands.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from engram.domain.identity import derived_id, episode_id
from engram.domain.memories import MemoryType
from engram.domain.scope import Scope
from engram.errors import UnreadableSource

_UUID: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_PRINT: Final = 8
# Fields that hold words, names of the application or what other systems call things.
_WORDS: Final = frozenset(
    {"content", "summary", "metadata", "tags", "message_id", "session_id", "speaker", "value"}
    | {"words", "text", "name", "negates_pattern", "subject", "slot", "provenance", "write_id"}
    | {"role", "identity", "folded_sources", "entities"}
)


class Mover:
    """Ids of one user as another user's.

    Args:
        source: Whose the memories were.
        target: Whose they become.
    """

    def __init__(self, source: Scope, target: Scope) -> None:
        self._source = source
        self._target = target
        self._ids: dict[str, str] = {}
        self._prints: dict[str, str] = {}

    @property
    def moves(self) -> bool:
        """Whether anything changes at all."""
        return self._source != self._target

    def learn(self, fields: Mapping[str, Any], place: str) -> None:
        """Take a memory's id in; turns have to come before what rests on them.

        Raises:
            UnreadableSource: the id is not derived from what the memory is.
        """
        old, new = self._both(fields, place)
        if old != fields.get("id"):
            raise UnreadableSource(
                f"The memory of {place} has an id that is not derived from what it is.",
                hint="The export was changed by another program.",
            )
        if not self.moves:
            return
        self._ids[old] = new
        if fields.get("type") == MemoryType.EPISODIC:
            self._prints[_print(old)] = _print(new)

    def moved(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The memory as the other user's; all ids have to be known."""
        if not self.moves:
            return dict(fields)
        made = {
            name: value if _is_words(name, value) else self._replaced(value)
            for name, value in fields.items()
        }
        made["namespace"] = self._target.namespace
        made["user_id"] = self._target.user_id
        if "identity" in fields:
            made["identity"] = self._identity(fields)
        if folded := fields.get("folded_sources"):
            made["folded_sources"] = "".join(
                self._prints.get(folded[at : at + _PRINT], folded[at : at + _PRINT])
                for at in range(0, len(folded), _PRINT)
            )
        return made

    def _both(self, fields: Mapping[str, Any], place: str) -> tuple[str, str]:
        try:
            if fields["type"] == MemoryType.EPISODIC:
                named = (fields.get("session_id") or "", fields["message_id"])
                return episode_id(self._source, *named), episode_id(self._target, *named)
            kind, generation = fields["type"], fields.get("generation", 0)
            return (
                derived_id(self._source, kind, fields["identity"], generation),
                derived_id(self._target, kind, self._identity(fields), generation),
            )
        except (KeyError, TypeError) as error:
            raise UnreadableSource(
                f"The memory of {place} lacks what its id is derived from."
            ) from error

    def _identity(self, fields: Mapping[str, Any]) -> str:
        """What the memory is, there. Of a digest it says by which key, which can be a turn's."""
        identity = str(fields["identity"])
        keys = (fields.get("detail") or {}).get("keys", ())
        for key in keys:
            if identity == _digest(fields, key) and (there := self._within(key)) != key:
                return _digest(fields, there)
        return identity

    def _replaced(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._within(value) if len(value) < 100 else value  # noqa: PLR2004 - keys and ids are short
        if isinstance(value, dict):
            return {
                name: one if _is_words(name, one) else self._replaced(one)
                for name, one in value.items()
            }
        if isinstance(value, list):
            return [self._replaced(one) for one in value]
        return value

    def _within(self, text: str) -> str:
        return _UUID.sub(lambda found: self._ids.get(found[0], found[0]), text)


def _is_words(name: str, value: Any) -> bool:
    # The evidence of a pattern fact is a text, that of a statement names turns.
    return name in _WORDS or (name == "evidence" and isinstance(value, str))


def _digest(fields: Mapping[str, Any], key: str) -> str:
    """As :mod:`engram.domain.digests.versions` identifies digests."""
    parts = json.dumps([fields.get("form"), key, fields.get("content")], ensure_ascii=True)
    return hashlib.sha256(parts.encode()).hexdigest()


def _print(memory_id: str) -> str:
    """As :mod:`engram.domain.sources` remembers sources that it does not keep whole."""
    return hashlib.sha256(memory_id.encode()).hexdigest()[:_PRINT]
