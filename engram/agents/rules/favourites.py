"""Favourites: "my favourite author is Zadie Smith", "the Anchor is my favourite pub"."""

from __future__ import annotations

from collections.abc import Iterator

from engram.agents.rules import objects
from engram.agents.rules.expressions import expression
from engram.agents.rules.sentences import Sentence
from engram.agents.rules.stated import Stated

_TABLE = "favourites"


def favourites(sentence: Sentence) -> Iterator[Stated]:
    """What a sentence calls the speaker's favourite, or no longer does."""
    if not expression(_TABLE, "maybe").search(sentence.text):
        return
    for said in ("is", "inverted"):
        for found in expression(_TABLE, said).finditer(sentence.text):
            thing = objects.titled(found.group("it"))
            if thing is None:
                continue
            verb = " ".join((found.group("verb") or "is").split())
            yield Stated(
                f"favourite {' '.join(found.group('what').split()).lower()}",
                thing,
                holds=expression(_TABLE, "over").match(verb) is None,
                at=sentence.start + found.start(),
                sentence=sentence,
            )
