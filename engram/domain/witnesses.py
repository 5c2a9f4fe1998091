"""Whose turns speak for the user, and whose are only context."""

from __future__ import annotations

import re

from engram.domain.context_block import without_context_blocks
from engram.domain.memories import Episode

_USER = "user"
_ASSISTANT = "assistant"
# A speaker's name of this kind is a machine's, and what it says is no testimony.
_MACHINE = re.compile(r"\b(?:assistant|bot|ai|agent|system|tool|model)\b", re.IGNORECASE)


def testifies(episode: Episode) -> bool:
    """Whether what the turn says is said by a person about themselves.

    Users do. Of the assistant's turns only those of a named person do: a recorded
    conversation of two people has one of them in that role. Tools and system
    messages never do.
    """
    if episode.role == _USER:
        return True
    named = episode.speaker is not None and not _MACHINE.search(episode.speaker)
    return episode.role == _ASSISTANT and named


def own_words(episode: Episode) -> Episode:
    """The turn without recalled memories that stand in it: those are no news of anybody."""
    return episode.model_copy(update={"content": without_context_blocks(episode.content)})
