"""One statement, as the rules found it."""

from __future__ import annotations

from dataclasses import dataclass

from engram.agents.rules.objects import Thing
from engram.agents.rules.sentences import Sentence

NO_SENTENCE = Sentence("", 0)


@dataclass(frozen=True, slots=True)
class Stated:
    """One statement.

    Attributes:
        predicate: What it states.
        thing: Of what.
        holds: False for what is not, or no longer, so.
        begins: Whether it says that it began.
        denied: Whether it says that it is not, rather than no longer, so.
        said: The words before the object.
        at: Where in the turn it is said.
        sentence: In which sentence.
        loose: Whether the wording is less than plain: "I'll send the slides".
        corrects: Whether it takes back something said before.
    """

    predicate: str
    thing: Thing
    holds: bool = True
    begins: bool = False
    denied: bool = False
    said: str = ""
    at: int = 0
    sentence: Sentence = NO_SENTENCE
    loose: bool = False
    corrects: bool = False
