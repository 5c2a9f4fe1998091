"""What was said in an agent's run, as text, and where recalled memories stand in a request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    TextContent,
    UserContent,
    UserPromptPart,
)
from pydantic_core import to_json

# Half of the largest turn that a store keeps by default, in bytes of UTF-8.
PIECE_BYTES = 16 * 1024
# Characters from either end: a question stands at the beginning or at the end of a long prompt.
_QUERY_END = 2000

Prompt = str | Sequence[UserContent] | None


def prompt_text(prompt: Prompt) -> str:
    """The words of a prompt; images, sounds and files have none."""
    if prompt is None:
        return ""
    parts: Iterable[UserContent] = (prompt,) if isinstance(prompt, str) else prompt
    return _clean("\n".join(filter(None, map(_words, parts))))


def output_text(output: Any) -> str:
    """The words of a run's result; what is not text is told as JSON."""
    return _clean(output if isinstance(output, str) else to_json(output, fallback=str).decode())


def query_text(text: str) -> str:
    """What to ask memory about a prompt: all of it, or both of its ends."""
    if len(text) <= 2 * _QUERY_END:
        return text
    return f"{text[:_QUERY_END]}\n{text[-_QUERY_END:]}"


def pieces(text: str) -> list[str]:
    """The text in turns that a store accepts; nothing of it is lost."""
    found: list[str] = []
    rest = text.encode()
    while rest:
        # Cut between characters: what does not decode belongs to the next piece.
        piece = rest[:PIECE_BYTES].decode(errors="ignore")
        found.append(piece)
        rest = rest[len(piece.encode()) :]
    return [piece for piece in found if piece.strip()]


def with_block(
    messages: Sequence[ModelMessage], block: str, run_id: str | None
) -> list[ModelMessage]:
    """The messages with the block right before what the user said in this run.

    Late in the conversation, so that a provider's cache of what comes before it
    stays good. Nothing is changed where this run has no user prompt: a block
    between a tool's call and its answer would be refused by some providers.
    """
    shown = list(messages)
    for at, message in enumerate(shown):
        if isinstance(message, ModelRequest) and message.run_id == run_id:
            for place, part in enumerate(message.parts):
                if isinstance(part, UserPromptPart):
                    parts = [*message.parts]
                    parts.insert(place, UserPromptPart(block, timestamp=part.timestamp))
                    shown[at] = replace(message, parts=parts)
                    return shown
    return shown


def _words(part: UserContent) -> str:
    if isinstance(part, TextContent):
        return part.content
    return part if isinstance(part, str) else ""


def _clean(text: str) -> str:
    """Without what no store keeps: NUL, and halves of characters."""
    return text.replace("\x00", "").encode(errors="replace").decode().strip()
