"""Which denials stand, and what they speak against."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from engram.domain.memories import (
    AnyMemory,
    MemoryStatus,
    MemoryType,
    NegationFact,
    SemanticMemory,
)
from engram.domain.scope import Scope
from engram.embedding.bm25 import encode_query
from engram.language.negation_scope import covers
from engram.ports import (
    Either,
    Embedder,
    Equals,
    Filter,
    MemoryRepository,
    Missing,
    Not,
    SearchRequest,
    TextVectors,
)
from engram.storage.updates import all_of

# One that faded, or was put aside, is offered no more: nobody took it back. One that was told
# with an end is over by then.
_STANDING: Final[Filter] = (
    Not(Equals("status", MemoryStatus.SUPERSEDED.value)),
    Either((Not(Equals("status", MemoryStatus.EXPIRED.value)), Missing("expires_at"))),
)
_ACTIVE: Final[Filter] = (Equals("status", MemoryStatus.ACTIVE.value),)
# A turn that is denied is told all the same, as what was said.
_ANSWERING: Final = (MemoryType.FACTUAL, MemoryType.SEMANTIC, MemoryType.PROCEDURAL)
# So many are looked through as they are; of more, those that share words with each thing said.
_FEW = 128
_EACH = 32


async def standing_denials(
    repository: MemoryRepository, embedder: Embedder, scope: Scope, said: Sequence[AnyMemory]
) -> list[NegationFact]:
    """The denials that hold: all where they are few, else what shares words with what was said."""
    known = await repository.count(scope, MemoryType.NEGATION) if said else 0
    if known > _FEW:
        return denials_among(
            await sharing_words(repository, embedder, scope, MemoryType.NEGATION, said, _STANDING)
        )
    if not known:
        return []
    return denials_among(await all_of(repository, scope, NegationFact, where=_STANDING))


async def denied_since(
    repository: MemoryRepository,
    embedder: Embedder,
    scope: Scope,
    knowledge: Sequence[SemanticMemory],
) -> frozenset[str]:
    """The ids of what a standing denial speaks against, that was told later than it.

    Args:
        repository: Where denials are.
        embedder: Knows how long vectors are.
        scope: Whose.
        knowledge: What may be denied.
    """
    standing = await standing_denials(repository, embedder, scope, knowledge)
    return frozenset(one.id for one in knowledge for denial in standing if _denies(denial, one))


async def still_denying(
    repository: MemoryRepository,
    embedder: Embedder,
    scope: Scope,
    denials: Sequence[NegationFact],
) -> frozenset[str]:
    """The ids of those without which something would answer that they speak against.

    Args:
        repository: Where memories are kept.
        embedder: Knows how long vectors are.
        scope: Whose.
        denials: Those that may go.
    """
    found: set[str] = set()
    for denial in filter(_stands, denials):
        for kind in _ANSWERING:
            alike = await sharing_words(repository, embedder, scope, kind, [denial], _ACTIVE)
            if any(_denies(denial, one) for one in alike):
                found.add(denial.id)
    return frozenset(found)


def _stands(denial: NegationFact) -> bool:
    """What ``_STANDING`` asks a store for."""
    if denial.status is MemoryStatus.EXPIRED:
        return denial.expires_at is None
    return denial.status is not MemoryStatus.SUPERSEDED


def _denies(denial: NegationFact, memory: AnyMemory) -> bool:
    told = max(denial.known_at, denial.confidence.last_confirmed)
    same = denial.is_test == memory.is_test
    return same and told > memory.known_at and covers(denial, memory)


def denials_among(memories: Iterable[AnyMemory]) -> list[NegationFact]:
    """The negations among these, but for those that are refuted."""
    return [m for m in memories if isinstance(m, NegationFact) and m.refuted_at is None]


async def sharing_words(
    repository: MemoryRepository,
    embedder: Embedder,
    scope: Scope,
    kind: MemoryType,
    those: Iterable[AnyMemory],
    where: Filter,
) -> list[AnyMemory]:
    """What shares words with any of these."""
    # By words only: a denial is of words, and the other side would bring up strangers.
    nothing = (0.0,) * await embedder.dimensions()
    found: set[str] = set()
    for one in those:
        request = SearchRequest(
            vectors=TextVectors(nothing, encode_query(one.content)),
            types=(kind,),
            limit=_EACH,
            where={kind: where},
        )
        found |= {m.memory_id for m in await repository.rank(scope, request)}
    read = await repository.get(scope, sorted(found), (kind,)) if found else {}
    return list(read.values())
