"""ChatGPT's data export: conversations as trees, of which one branch is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, BinaryIO, Final

from engram.domain.sanitize import is_visible
from engram.transfer.readers.reading import FoundTurn, LeftOut, ReadEntry, conversations, text_of

_SPOKEN: Final = frozenset({"text", "multimodal_text"})
_CHATGPT_ROLES: Final = frozenset({"user", "assistant"})
_SHORT_WORD: Final = re.compile(r"[a-z_]{1,40}\Z")


def read(stream: BinaryIO) -> Iterator[ReadEntry]:
    """The turns of every conversation's visible branch, in order.

    Raises:
        UnreadableSource: the file is no JSON; the conversation is named by its number.
    """
    return conversations(stream, _conversation)


def _conversation(given: Any, place: str) -> Iterator[ReadEntry]:
    mapping = given.get("mapping") if isinstance(given, dict) else None
    if not isinstance(mapping, dict):
        yield LeftOut("a conversation without messages", place)
        return
    session = text_of(given, "conversation_id") or text_of(given, "id")
    began = _moment(given.get("create_time"))
    shown = _branch(mapping, given.get("current_node"))
    for number, node_id in enumerate(shown, start=1):
        where = f"{place}, message {number}"
        for entry in _message(mapping[node_id], session or place, where, began):
            if isinstance(entry, FoundTurn):
                # What has no time of its own and comes later follows the turn before.
                began = None
            yield entry
    kept = frozenset(shown)
    for number, (node_id, node) in enumerate(mapping.items(), start=1):
        if node_id not in kept and _has_words(node):
            yield LeftOut("a branch that is not shown", f"{place}, node {number}")


def _branch(mapping: Mapping[str, Any], current: Any) -> list[str]:
    """The nodes from the root to the one that is shown last."""
    node_id = current if isinstance(current, str) and current in mapping else _last(mapping)
    found: dict[str, None] = {}
    # A tree that a program has broken may lead round in a circle.
    while isinstance(node_id, str) and node_id in mapping and node_id not in found:
        found[node_id] = None
        node = mapping[node_id]
        node_id = node.get("parent") if isinstance(node, dict) else None
    return list(reversed(found))


def _last(mapping: Mapping[str, Any]) -> str | None:
    """The newest node without children."""
    leaves = [
        (created if isinstance(created := _created(node), int | float) else 0.0, number, node_id)
        for number, (node_id, node) in enumerate(mapping.items())
        if isinstance(node, dict) and not node.get("children")
    ]
    return max(leaves)[2] if leaves else None


def _created(node: Mapping[str, Any]) -> Any:
    message = node.get("message")
    return message.get("create_time") if isinstance(message, dict) else None


def _message(node: Any, session: str, place: str, began: datetime | None) -> Iterator[ReadEntry]:
    message = node.get("message") if isinstance(node, dict) else None
    if not isinstance(message, dict):
        # The root of each tree has none.
        return
    reason = _why_not(message)
    words, other = _words(message)
    if reason is None and other:
        yield LeftOut("a picture or file", place)
    if reason is None and not is_visible(words):
        reason = None if other else "empty"
        if other:
            return
    if reason is not None:
        yield LeftOut(reason, place)
        return
    yield FoundTurn(
        session=session,
        place=place,
        content=words,
        role=_role(message),
        timestamp=_moment(message.get("create_time")) or began,
        message_id=text_of(message, "id"),
    )


def _why_not(message: Mapping[str, Any]) -> str | None:
    role = _role(message)
    if role not in _CHATGPT_ROLES:
        return f"role {role}"
    metadata = message.get("metadata")
    if isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation"):
        return "hidden"
    if message.get("recipient") not in {None, "all"}:
        return "said to a tool"
    content = message.get("content")
    kind = content.get("content_type") if isinstance(content, dict) else None
    if kind not in _SPOKEN:
        return f"content {_word(kind)}"
    return None


def _words(message: Mapping[str, Any]) -> tuple[str, int]:
    """What was said, and how many parts are something else."""
    content = message.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    if not isinstance(parts, list):
        return "", 0
    words: list[str] = []
    other = 0
    for part in parts:
        # What was spoken aloud comes as an object with its transcription.
        said = part if isinstance(part, str) else part.get("text") if _is(part, dict) else None
        if isinstance(said, str):
            words.append(said)
        else:
            other += 1
    return "\n\n".join(one for one in words if one.strip()), other


def _has_words(node: Any) -> bool:
    message = node.get("message") if isinstance(node, dict) else None
    if not isinstance(message, dict) or _why_not(message) is not None:
        return False
    return bool(_words(message)[0].strip())


def _role(message: Mapping[str, Any]) -> str:
    author = message.get("author")
    return _word(author.get("role") if isinstance(author, dict) else None)


def _word(value: Any) -> str:
    """A name of the format itself; whatever else stands there is not repeated."""
    return value if isinstance(value, str) and _SHORT_WORD.match(value) else "unknown"


def _moment(seconds: Any) -> datetime | None:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        # Far beyond every calendar: it is refused, and counted, with the turn.
        return datetime.max.replace(tzinfo=UTC)


def _is(value: Any, kind: type) -> bool:
    return isinstance(value, kind)
