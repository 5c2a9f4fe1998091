"""Search: both sides with their own scores, counted over one user's memories alone."""

from __future__ import annotations

import math

import pytest

from engram.domain.memories import STORED_TYPES, MemoryType
from engram.ports import Equals, MemoryRepository, SearchRequest, SparseVector
from tests.support.engines import ADA, BOB, episode, new, one_of_each, semantic, vectors

EPISODIC = MemoryType.EPISODIC


def idf(count: int, of: int) -> float:
    """BM25's inverse document frequency of a term that ``count`` of ``of`` memories hold."""
    return math.log((of - count + 0.5) / (count + 0.5) + 1)


async def test_scores_are_cosine_and_bm25(repository: MemoryRepository) -> None:
    """The dense score is the cosine; the sparse one weights by the rarity of each term."""
    near, far, rare = (episode(ADA, name) for name in ("near", "far", "rare"))
    await repository.insert(
        ADA,
        [
            new(near, vectors((3.0, 4.0, 0, 0), {1: 2.0})),
            new(far, vectors((0, 0, 1.0, 0), {1: 1.0})),
            new(rare, vectors((-2.0, 0, 0, 0), {1: 1.0, 9: 0.5})),
        ],
    )
    request = SearchRequest(vectors((1.0, 0, 0, 0), {1: 1.0, 9: 1.0}), (EPISODIC,), 10)
    hits = {hit.memory.id: hit for hit in await repository.search(ADA, request)}
    assert hits[near.id].dense == pytest.approx(0.6, abs=1e-5)
    assert hits[far.id].dense == pytest.approx(0.0, abs=1e-5)
    assert hits[rare.id].dense == pytest.approx(-1.0, abs=1e-5)
    assert hits[near.id].sparse == pytest.approx(2.0 * idf(3, 3), rel=1e-4)
    assert hits[far.id].sparse == pytest.approx(idf(3, 3), rel=1e-4)
    assert hits[rare.id].sparse == pytest.approx(idf(3, 3) + 0.5 * idf(1, 3), rel=1e-4)


async def test_another_users_writes_change_no_score(repository: MemoryRepository) -> None:
    """Bob stores hundreds of memories with the same words: Ada's answers stay bit for bit."""
    hers = [
        new(
            episode(ADA, f"turn {number}"),
            vectors((1, number, 0, 0), {number % 5: 1.5, 50 + number: 1.0}),
        )
        for number in range(40)
    ]
    await repository.insert(ADA, hers)
    request = SearchRequest(vectors((1, 3, 0, 0), {0: 1.0, 3: 1.0, 53: 1.0}), (EPISODIC,), 40)
    before = await repository.search(ADA, request)
    assert sum(hit.sparse is not None for hit in before) > 10
    his = [
        new(episode(BOB, f"bob {number}"), vectors((1, 3, 0, 0), {0: 3.0, number: 1.0}))
        for number in range(200)
    ]
    await repository.insert(BOB, his)
    assert await repository.search(ADA, request) == before
    await repository.erase(BOB)
    assert await repository.search(ADA, request) == before


async def test_filters_narrow_what_is_found_but_not_the_corpus(
    repository: MemoryRepository,
) -> None:
    """A term's rarity is that among all of the user's memories, whatever is asked for."""
    turns = [
        new(episode(ADA, f"turn {number}", session_id=f"s{number % 2}"), vectors(terms={1: 1.0}))
        for number in range(6)
    ]
    others = [new(episode(ADA, f"other {number}"), vectors(terms={2: 1.0})) for number in range(10)]
    await repository.insert(ADA, [*turns, *others])
    where = {EPISODIC: (Equals("session_id", "s0"),)}
    request = SearchRequest(vectors(terms={1: 1.0}), (EPISODIC,), 10, where)
    found = [hit.sparse for hit in await repository.search(ADA, request)]
    assert found == [pytest.approx(idf(6, 16), rel=1e-4)] * 3


async def test_only_the_asked_types_answer_each_with_its_limit(
    repository: MemoryRepository,
) -> None:
    """Types come in their fixed order, then ids; the limit holds per type and side."""
    await repository.insert(ADA, map(new, one_of_each(ADA)))
    await repository.insert(ADA, [new(semantic(ADA, f"known {number}")) for number in range(9)])
    found = await repository.search(ADA, SearchRequest(vectors(), tuple(STORED_TYPES[::-1]), 4))
    types = [hit.memory.type for hit in found]
    assert types == sorted(types, key=STORED_TYPES.index)
    assert types.count(MemoryType.SEMANTIC) == 4
    assert len(types) == 4 + 4
    some = await repository.search(ADA, SearchRequest(vectors(), (MemoryType.FACTUAL,), 4))
    assert [hit.memory.type for hit in some] == [MemoryType.FACTUAL]
    assert await repository.search(ADA, SearchRequest(vectors(), (), 4)) == []


async def test_each_side_brings_up_its_own(repository: MemoryRepository) -> None:
    """A memory that one side alone brings up has no score on the other."""
    turns = [new(episode(ADA, f"near {n}"), vectors((1, n / 10, 0, 0), {2: 1})) for n in range(3)]
    worded = episode(ADA, "worded")
    await repository.insert(ADA, [*turns, new(worded, vectors((-1, 0, 0, 0), {1: 1.0}))])
    request = SearchRequest(vectors((1, 0, 0, 0), {1: 1.0}), (EPISODIC,), 2)
    hits = {hit.memory.id: hit for hit in await repository.search(ADA, request)}
    assert hits[worded.id].dense is None
    assert hits[worded.id].sparse is not None
    assert sum(hit.sparse is None for hit in hits.values()) == 2
    assert len(hits) == 3


async def test_ties_at_the_cut_are_decided_by_id(repository: MemoryRepository) -> None:
    """Of 200 equally good memories the lowest ids are returned, in whatever order they came."""
    turns = [episode(ADA, f"turn {number}") for number in range(200)]
    for start in range(0, 200, 40):
        await repository.insert(ADA, [new(turn) for turn in turns[start : start + 40]])
    lowest = sorted(turn.id for turn in turns)[:10]
    for _ in range(3):
        found = await repository.search(ADA, SearchRequest(vectors(), (EPISODIC,), 10))
        assert [hit.memory.id for hit in found] == lowest


async def test_a_memory_is_found_by_other_words_once_it_has_them(
    repository: MemoryRepository,
) -> None:
    """The other side stays; what is not there, or is somebody else's, is left out."""
    turn, theirs, gone = episode(ADA, "a"), episode(BOB, "b"), episode(ADA, "c")
    await repository.insert(ADA, [new(turn, vectors((1.0, 0, 0, 0), {1: 1.0}))])
    await repository.insert(BOB, [new(theirs, vectors((1.0, 0, 0, 0), {1: 1.0}))])
    other = SparseVector((2,), (1.0,))
    await repository.reword(ADA, EPISODIC, {one.id: other for one in (turn, theirs, gone)})
    request = SearchRequest(vectors((1.0, 0, 0, 0), {1: 1.0}), (EPISODIC,), 10)
    (hers,) = await repository.search(ADA, request)
    assert (hers.memory.id, hers.sparse) == (turn.id, None)
    assert hers.dense == pytest.approx(1.0)
    (his,) = await repository.search(BOB, request)
    assert his.sparse is not None
    again = SearchRequest(vectors((1.0, 0, 0, 0), {2: 1.0}), (EPISODIC,), 10)
    assert [one.sparse is not None for one in await repository.search(ADA, again)] == [True]
    assert await repository.count(ADA, EPISODIC) == 1
