"""BM25 term weights, made here so that every engine holds the same vectors.

The engine multiplies the inverse document frequency in (modifier IDF); what is
stored is the saturated, length-normalised term frequency.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b

from engram.embedding.terms import terms_of
from engram.ports import SparseVector

K = 1.2
B = 0.5
# Terms per text that count as ordinary length. A constant, because a running
# average would give the same text other weights on another day. A chat turn has
# 15 to 30 words, about half of them function words; about four more terms come
# from the speaker and the date that are indexed with it, and about ten from the
# turn before it.
AVERAGE_TERMS = 32.0
# What a word of the turn before counts: "a greyhound" answers "which dog did you
# adopt?", and only both together hold the words of a question about it. Measured
# on long conversations, 0.5 to 1 do alike.
BEFORE_WEIGHT = 0.65
# A long answer before a short turn would drown it; what leads over stands at its end.
BEFORE_TERMS = 48

ENCODING = "bm25.2"
"""Names this encoding; whatever changes a weight or a term id changes it."""


def encode_document(text: str, before: str | None = None) -> SparseVector:
    """Term weights of a text to be stored; empty only where it holds no letter, digit or symbol.

    Args:
        text: The text itself.
        before: What was said just before it; found by its words too, with less weight.
    """
    counts: dict[str, float] = dict(Counter(terms_of(text)))
    if before:
        for term in terms_of(before)[-BEFORE_TERMS:]:
            counts[term] = counts.get(term, 0.0) + BEFORE_WEIGHT
    norm = K * (1.0 - B + B * sum(counts.values()) / AVERAGE_TERMS)
    return _vector((term, count * (K + 1.0) / (count + norm)) for term, count in counts.items())


def encode_query(text: str) -> SparseVector:
    """Term weights of a question: 1 for each term, however often it is repeated."""
    return _vector((term, 1.0) for term in dict.fromkeys(terms_of(text)))


@lru_cache(maxsize=65_536)
def term_id(term: str) -> int:
    """The stable 32-bit id of a term, the same in every process and on every machine."""
    digest = blake2b(term.encode("utf-8", "surrogatepass"), digest_size=4).digest()
    return int.from_bytes(digest, "big")


def _vector(weights: Iterable[tuple[str, float]]) -> SparseVector:
    summed: dict[int, float] = {}
    for term, weight in weights:
        number = term_id(term)
        summed[number] = summed.get(number, 0.0) + weight
    indices = tuple(sorted(summed))
    return SparseVector(indices=indices, values=tuple(summed[index] for index in indices))
