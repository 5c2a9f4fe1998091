"""Who the people around the speaker are, and what is plainly said of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from engram.agents.rules.clauses import Clause, opened
from engram.agents.rules.expressions import expression
from engram.agents.rules.sentences import Sentence, masked, sentences
from engram.agents.rules.stated import Stated
from engram.agents.rules.statements import in_clause
from engram.agents.rules.vocabulary import alternatives, vocabulary
from engram.domain.word_forms import is_past, verb_lemma

_NAME = r"(?P<name>[A-Z][\w'-]*[\w](?:\s+[A-Z][\w'-]*)*)"
_AUXILIARIES = {
    "is": "am", "'s": "am", "has": "have", "doesn't": "don't", "isn't": "am not", "was": "was",
    "had": "had", "hasn't": "haven't", "can": "can", "used": "used", "no": "no", "now": "now",
}  # fmt: skip
# What is said of somebody else in these words is told of them, not of the speaker.
_SAID_OF_OTHERS = frozenset(
    {"lives in", "works at", "works as", "studies", "speaks", "is from", "is allergic to",
     "was born", "uses", "owns", "likes", "dislikes", "has"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody close to the speaker.

    Attributes:
        name: As it was said.
        relation: What they are to the speaker: "sister".
        holds: False for what they were.
        at: Where in the turn.
        sentence: In which sentence.
        facts: What the sentence states of them.
    """

    name: str
    relation: str
    holds: bool
    at: int
    sentence: Sentence
    facts: tuple[Stated, ...] = ()


def people(text: str) -> Iterator[Person]:
    """Everybody whom a turn introduces by name and relation."""
    plain = masked(text)
    for sentence in sentences(text):
        at, said = opened(sentence)
        for pattern in _introductions():
            found = pattern.search(said)
            if found is None:
                continue
            before = found.groupdict().get("was") or ""
            yield Person(
                name=found.group("name").removesuffix("'s"),
                relation=" ".join(found.group("relation").lower().split()),
                holds=not expression("people", "over").search(before),
                at=at + found.start(),
                sentence=sentence,
                facts=tuple(_facts(said[found.end() :], at + found.end(), sentence, plain)),
            )
            break


def _facts(rest: str, at: int, sentence: Sentence, turn: str) -> Iterator[Stated]:
    """What follows, read as if they said it themselves: "lives in Porto" as "I live in Porto"."""
    found = expression("people", "verb").match(rest)
    if found is None:
        return
    verb = found.group("verb").lower()
    first = _AUXILIARIES.get(verb)
    if first is None:
        if not (is_past(verb) or verb.endswith("s")):
            return
        first = verb if is_past(verb) else verb_lemma(verb)
    clause = Clause(f"I {first}{rest[found.end() :]}", at)
    yield from (s for s in in_clause(clause, sentence, turn) if s.predicate in _SAID_OF_OTHERS)


@cache
def _introductions() -> tuple[re.Pattern[str], ...]:
    relation = rf"(?P<relation>{alternatives(vocabulary().relations)})"
    which = r"(?:(?:older|younger|big|little|new|old|twin|eldest|youngest)\s+)?"
    mine = rf"(?i:\b(?:my|our)\s+{which}{relation})"
    called = r"(?i:(?:is|are|was)\s+(?:called\s+|named\s+)?)?"
    was = r"(?P<was>(?i:is|was|used\s+to\s+be|is\s+no\s+longer)\s+)?"
    return (
        re.compile(rf"{mine}(?i:'s\s+name)?,?\s+{called}{_NAME}(?!\w),?"),
        re.compile(rf"^{_NAME},?\s+{was}{mine}(?!\w),?"),
    )
