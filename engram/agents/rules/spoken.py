"""Where an object is looked for, and what is known of it by name."""

from __future__ import annotations

from dataclasses import dataclass

from engram.agents.rules.objects import Thing
from engram.agents.rules.vocabulary import vocabulary

NOTHING_NAMED = Thing("", "")
"""The object of "I quit my job": whichever it was."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """Where an object is looked for.

    Attributes:
        said: The words of the pattern.
        rest: What follows them, to the end of the sentence.
        sentence: All of it.
    """

    said: str
    rest: str
    sentence: str

    @property
    def lower(self) -> bool:
        """Whether the speaker writes everything, names too, in lower case."""
        return self.sentence == self.sentence.lower()


def is_product(thing: Thing) -> bool:
    """Whether it is a tool by name."""
    return thing.name.casefold() in vocabulary().products


def is_place(thing: Thing) -> bool:
    """Whether it is a place by name."""
    return thing.name.casefold() in vocabulary().places
