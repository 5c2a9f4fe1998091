"""Topics: terms that set some memories apart from the others, and what is known under them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from engram.domain.digests.policy import DigestPolicy
from engram.domain.digests.profiles import answers
from engram.domain.digests.words import content_words, terms_of
from engram.domain.memories import SemanticMemory
from engram.domain.word_forms import stem

# A topic lists so many memories at most, the newest.
MEMBERS_LISTED = 60
# So many terms of what a pass touched are looked at.
TERMS_LOOKED_AT = 12


@dataclass(frozen=True, slots=True)
class Topic:
    """A term and what is known under it, newest first."""

    term: str
    name: str
    members: tuple[SemanticMemory, ...]


def telling_terms(memories: Sequence[SemanticMemory], most: int = TERMS_LOOKED_AT) -> list[str]:
    """The terms that set memories apart from each other, the most telling first.

    By the weight of BM25: the sum over the memories of saturated term frequency
    times inverse document frequency, counted over these memories alone, so that it
    costs what is looked at and not what is stored.
    """
    counted = [terms_of(memory.content) for memory in memories]
    spread = Counter(term for terms in counted for term in terms)
    total = len(counted)
    weights = {
        term: math.log(1 + (total - df + 0.5) / (df + 0.5))
        * sum(2.2 * terms[term] / (terms[term] + 1.2) for terms in counted)
        for term, df in spread.items()
    }
    return sorted(weights, key=lambda term: (-weights[term], term))[:most]


def topic(term: str, memories: Iterable[SemanticMemory], policy: DigestPolicy) -> Topic | None:
    """The topic of a term; None if too little is known under it."""
    under = {m.id: m for m in memories if answers(m) and term in terms_of(m.content)}
    if len(under) < policy.topic_members:
        return None
    newest = sorted(under.values(), key=lambda m: m.id)
    newest.sort(key=lambda m: m.known_at, reverse=True)
    return Topic(term=term, name=_name(term, newest), members=tuple(newest[:MEMBERS_LISTED]))


def topic_text(found: Topic) -> str:
    """The words of a topic: its name, and what is known under it."""
    return "\n".join([f"{found.name}:", *(memory.content for memory in found.members[:10])])


def least(topics: Mapping[str, int], most: int) -> list[str]:
    """Which topics are too many: those with the fewest members, ties in order of their terms."""
    ranked = sorted(topics, key=lambda term: (-topics[term], term))
    return ranked[most:]


def _name(term: str, memories: Sequence[SemanticMemory]) -> str:
    spelled: Counter[str] = Counter()
    for memory in memories:
        spelled.update(word for word in content_words(memory.content) if stem(word) == term)
    return min(spelled, key=lambda word: (-spelled[word], len(word), word), default=term)
