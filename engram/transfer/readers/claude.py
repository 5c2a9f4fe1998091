"""Claude's data export: conversations as lists of messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, BinaryIO, Final

from engram.domain.sanitize import is_visible
from engram.transfer.readers.reading import FoundTurn, LeftOut, ReadEntry, conversations, text_of

_CLAUDE_ROLES: Final = {"human": "user", "user": "user", "assistant": "assistant"}
_BLOCKS: Final = frozenset({"thinking", "tool_use", "tool_result", "token_budget", "flag"})


def read(stream: BinaryIO) -> Iterator[ReadEntry]:
    """The turns of every conversation, in order.

    Raises:
        UnreadableSource: the file is no JSON; the conversation is named by its number.
    """
    return conversations(stream, _conversation)


def _conversation(given: Any, place: str) -> Iterator[ReadEntry]:
    messages = given.get("chat_messages") if isinstance(given, dict) else None
    if not isinstance(messages, list):
        yield LeftOut("a conversation without messages", place)
        return
    session = text_of(given, "uuid") or place
    shown = _shown(messages, given.get("current_leaf_message_uuid"))
    for number, message in enumerate(messages, start=1):
        where = f"{place}, message {number}"
        if not isinstance(message, dict):
            yield LeftOut("not a message", where)
        elif shown is not None and message.get("uuid") not in shown:
            yield LeftOut("a branch that is not shown", where)
        else:
            yield from _message(message, session, where)


def _shown(messages: Sequence[Any], leaf: Any) -> frozenset[str] | None:
    """The ids of the branch that is shown; None where all messages are one branch."""
    parents = {
        one["uuid"]: one.get("parent_message_uuid")
        for one in messages
        if isinstance(one, dict) and isinstance(one.get("uuid"), str)
    }
    if not isinstance(leaf, str) or leaf not in parents:
        return None
    found: set[str] = set()
    at: Any = leaf
    while isinstance(at, str) and at in parents and at not in found:
        found.add(at)
        at = parents[at]
    return frozenset(found)


def _message(message: Mapping[str, Any], session: str, place: str) -> Iterator[ReadEntry]:
    role = _CLAUDE_ROLES.get(str(message.get("sender")))
    if role is None:
        yield LeftOut("role unknown", place)
        return
    words, other = _words(message)
    for reason in other:
        yield LeftOut(reason, place)
    if not is_visible(words):
        if not other:
            yield LeftOut("empty", place)
        return
    yield FoundTurn(
        session=session,
        place=place,
        content=words,
        role=role,
        timestamp=_moment(message.get("created_at")),
        message_id=text_of(message, "uuid"),
    )


def _words(message: Mapping[str, Any]) -> tuple[str, list[str]]:
    """What was said, and what else there is, in words of the format."""
    words: list[str] = []
    other: list[str] = []
    blocks = message.get("content")
    for block in blocks if isinstance(blocks, list) else ():
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text" and isinstance(block.get("text"), str):
            words.append(block["text"])
        else:
            other.append(f"content {kind}" if kind in _BLOCKS else "content unknown")
    for name in ("attachments", "files"):
        found = message.get(name)
        other += ["a picture or file"] * (len(found) if isinstance(found, list) else 0)
    said = "\n\n".join(one for one in words if one.strip())
    return said or text_of(message, "text") or "", other


def _moment(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
