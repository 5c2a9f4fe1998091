"""What can be worked out about turns before any of them is stored: vectors and what they state.

The part of an import that costs most and touches nothing, so it can be done in
another process (:mod:`engram.transfer.subprocess`).
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeAlias

from engram.consolidation.reading import TurnReader
from engram.language.found import Extraction
from engram.ports import Embedder, SparseVector, TextVectors, TurnExtractor

_Flat: TypeAlias = tuple[bytes, tuple[int, ...], tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class Work:
    """One turn to be prepared.

    Attributes:
        text: What is indexed; None: its vectors are not needed.
        before: What was said just before it.
        content: Its words.
    """

    text: str | None
    before: str | None
    content: str
    role: str
    speaker: str | None
    timestamp: datetime


@dataclass(frozen=True, slots=True)
class PreparedTurns:
    """What was worked out.

    Attributes:
        vectors: Of each turn, in order; None where they were not needed.
        extractions: What each turn states.
        found: Vectors of what the turns state, by its text.
    """

    vectors: tuple[TextVectors | None, ...] = ()
    extractions: tuple[Extraction, ...] = ()
    found: dict[str, TextVectors] = field(default_factory=dict)


class Preparer(Protocol):
    """Works turns out, here or elsewhere."""

    async def prepare(self, work: Sequence[Work]) -> PreparedTurns:
        """Vectors and extractions, in order."""
        ...


class HerePreparer:
    """Prepares in this process.

    Args:
        embedder: Gives vectors; None: vectors are not asked for here.
        extractor: Finds what turns state.
    """

    def __init__(self, embedder: Embedder | None, extractor: TurnExtractor) -> None:
        self._embedder = embedder
        self._reader = TurnReader(extractor)

    async def prepare(self, work: Sequence[Work]) -> PreparedTurns:
        """See :meth:`Preparer.prepare`."""
        extractions = tuple(
            self._reader.read_here(one.content, one.role, one.speaker, one.timestamp)
            for one in work
        )
        if self._embedder is None:
            return PreparedTurns(extractions=extractions)
        return await with_vectors(self._embedder, work, extractions)


async def with_vectors(
    embedder: Embedder, work: Sequence[Work], extractions: tuple[Extraction, ...]
) -> PreparedTurns:
    """The vectors of turns, and of what they state, in two calls."""
    wanted = [n for n, one in enumerate(work) if one.text is not None]
    made = await embedder.embed_documents(
        [work[n].text or "" for n in wanted], [work[n].before for n in wanted]
    )
    by_number = dict(zip(wanted, made, strict=True))
    facts = (one.content for extraction in extractions for one in extraction.facts)
    negations = (one.content for extraction in extractions for one in extraction.negations)
    texts = list(dict.fromkeys((*facts, *negations)))
    found = dict(zip(texts, await embedder.embed_documents(texts), strict=True)) if texts else {}
    return PreparedTurns(tuple(by_number.get(n) for n in range(len(work))), extractions, found)


def packed(prepared: PreparedTurns) -> tuple[Any, ...]:
    """``prepared`` as few plain values: objects are slow to take across processes."""
    return (
        [None if one is None else _flat(one) for one in prepared.vectors],
        prepared.extractions,
        {text: _flat(one) for text, one in prepared.found.items()},
    )


def unpacked(
    vectors: Sequence[_Flat | None], extractions: tuple[Extraction, ...], found: dict[str, _Flat]
) -> PreparedTurns:
    """What :func:`packed` made it from, to the last bit."""
    return PreparedTurns(
        tuple(None if one is None else _vectors(one) for one in vectors),
        extractions,
        {text: _vectors(one) for text, one in found.items()},
    )


def _flat(vectors: TextVectors) -> _Flat:
    dense = array("d", vectors.dense).tobytes()
    return dense, vectors.sparse.indices, vectors.sparse.values


def _vectors(flat: _Flat) -> TextVectors:
    dense, indices, values = flat
    return TextVectors(tuple(array("d", dense)), SparseVector(indices, values))
