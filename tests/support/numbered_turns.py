"""The turns that the tests send: what a message says follows from its id."""

from __future__ import annotations

from engram import Turn

USER = "ada"
# One of eight is urgent, some state facts, negations, or something to consolidate.
_TALK = (
    "We walked along the river and talked about the plan called {key}.",
    "You can mail {mail}@example.org about it.",
    "I like the soup called {key}.",
    "Remember that I am allergic to the medicine {key}!",
    "What would you cook for the feast of {key}?",
    "I don't use the tool {key} any more.",
    "My sister works at {key} and likes it.",
    "Thanks, that helps with {key}.",
)


def content(message_id: str) -> str:
    """What the message with this id says; no two say the same."""
    number = int(message_id.rpartition("-")[2])
    return _TALK[number % len(_TALK)].format(key=message_id, mail=message_id.lower())


def turn(message_id: str) -> Turn:
    """The message as a turn."""
    return Turn(content=content(message_id), message_id=message_id)
