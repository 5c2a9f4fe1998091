"""Plain fusion, the floor of every figure: BM25 and the same embedder, by reciprocal ranks.

Nothing in it is Engram's: words by a plain tokeniser and Lucene's stop words, one list of turns,
no session, no turn before. What Engram does more has to be worth it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
import Stemmer  # type: ignore[import-not-found]  # an extension module without stubs
from numpy.typing import NDArray

from engram.evaluation.metrics import DEPTH
from engram.evaluation.talks import Talk
from engram.ports import Embedder

Numbers = NDArray[np.float64]

_K1, _B = 1.5, 0.75
_RANK_CONSTANT, _FUSED = 60, 100
_WORDS = re.compile(r"\b\w\w+\b")
_STOP_WORDS = frozenset(
    """a an and are as at be but by for if in into is it no not of on or such that the their then
    there these they this to was will with""".split()
)
_STEMMER = Stemmer.Stemmer("english")


async def plain_rankings(talk: Talk, embedder: Embedder) -> list[list[str]]:
    """The turns that plain fusion finds for each question, best first."""
    turns = [turn for session in talk.sessions for turn in session.turns]
    texts = [
        f"{turn.timestamp:%I:%M %p on %d %B, %Y} {turn.speaker}: {turn.content}"
        if turn.speaker
        else turn.content
        for turn in turns
    ]
    queries = [one.text for one in talk.questions]
    documents = [vector.dense for vector in await embedder.embed_documents(texts)]
    asked = [(await embedder.embed_query(query)).dense for query in queries]
    near = np.asarray(asked) @ np.asarray(documents).T
    total = np.zeros((len(queries), len(texts)))
    depth = min(_FUSED, len(texts))
    for side in (_bm25(texts, queries), near):
        ranks = np.argsort(-side, axis=1, kind="stable")[:, :depth]
        total[np.arange(len(queries))[:, None], ranks] += 1 / (
            _RANK_CONSTANT + 1 + np.arange(depth)
        )
    orders = np.argsort(-total, axis=1, kind="stable")[:, :DEPTH]
    return [[str(turns[place].message_id) for place in order] for order in orders]


def _bm25(texts: Sequence[str], queries: Sequence[str]) -> Numbers:
    documents = [Counter(_terms(text)) for text in texts]
    lengths = np.array([one.total() for one in documents], dtype=np.float64)
    norms = _K1 * (1 - _B + _B * lengths / max(lengths.mean(), 1e-9))
    postings: dict[str, list[tuple[int, int]]] = {}
    for place, counts in enumerate(documents):
        for term, count in counts.items():
            postings.setdefault(term, []).append((place, count))
    scores = np.zeros((len(queries), len(texts)))
    for row, query in enumerate(queries):
        for term in _terms(query):
            found = postings.get(term, [])
            rare = np.log(1 + (len(texts) - len(found) + 0.5) / (len(found) + 0.5))
            for place, count in found:
                scores[row, place] += rare * count * (_K1 + 1) / (count + norms[place])
    return scores


def _terms(text: str) -> list[str]:
    words = (word for word in _WORDS.findall(text.lower()) if word not in _STOP_WORDS)
    return [str(_STEMMER.stemWord(word)) for word in words]
