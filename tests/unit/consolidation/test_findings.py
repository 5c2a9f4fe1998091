"""What a batch of turns says one after another of the same thing: each gave way to the next."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from itertools import pairwise
from random import Random
from typing import Any
from uuid import NAMESPACE_OID, uuid4, uuid5

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.consolidation.findings import FindingsStore, ReadEpisode
from engram.consolidation.forgetting import without_sources
from engram.contracts.importing import ImportBatch, ImportKind, StoreBatchInput
from engram.domain.memories import Episode, Fact, MemoryStatus, MemoryType
from engram.domain.scope import Scope
from engram.embedding.choice import make_embedder
from engram.language.extractor import Extractor
from engram.ports import NewMemory
from engram.settings import Settings
from tests.support.clock import NOW
from tests.support.edge_stores import borrowed_store
from tests.support.sizes import examples

SCOPE = Scope.of("default", "ada")
ADDRESSES = [f"ada{number}@example.org" for number in range(6)]
REQUEST = StoreBatchInput(
    scope=SCOPE,
    now=NOW,
    kind=ImportKind.TURNS,
    batch=ImportBatch(first=0, count=1, packed=""),
    workflow_id="w",
    run_id="r",
)
TELLINGS = ["My email address is {}.", "My new email is {}.", "Don't use {} any more."]


def read(number: int, address: str, words: str = "My email address is {}.") -> ReadEpisode:
    """A turn that tells an address, and what the rules find in it."""
    at = NOW - timedelta(days=10 - number)
    words = words.format(address)
    turn = Episode(
        id=str(uuid5(NAMESPACE_OID, f"m{number}")),
        namespace=SCOPE.namespace,
        user_id=SCOPE.user_id,
        content=words,
        known_at=at,
        created_at=NOW,
        timestamp=at,
        role="user",
        message_id=f"m{number}",
    )
    return turn, Extractor(Settings.load()).extract(words, "user", None, at)


async def test_what_gave_way_in_a_batch_is_noted_in_two_writes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not in two for each of them; and what is noted is neither read nor written once more."""
    embedder = make_embedder("wordllama")
    told = [read(number, address) for number, address in enumerate(ADDRESSES)]
    writes: list[int] = []
    async with borrowed_store() as repository:
        vectors = await embedder.embed_documents([turn.content for turn, _ in told])
        pairs = zip(told, vectors, strict=True)
        await repository.insert(SCOPE, [NewMemory(turn, vector) for (turn, _), vector in pairs])
        replace = repository.replace

        async def counted(scope, replacements, *, stamp=None):  # type: ignore[no-untyped-def]  # as the store's own
            given = list(replacements)
            writes.append(len(given))
            return await replace(scope, given, stamp=stamp)

        monkeypatch.setattr(repository, "replace", counted)
        store = FindingsStore(repository, embedder, lambda: uuid4().hex)
        await store.store(REQUEST, told)
        assert writes == [5, 5]
        await store.store(REQUEST, told)
        assert writes == [5, 5]
        page = await repository.scroll(SCOPE, MemoryType.FACTUAL, limit=10)
    facts = sorted((m for m in page.memories if isinstance(m, Fact)), key=lambda m: m.value)
    assert [fact.value for fact in facts] == ADDRESSES
    for old, new in pairwise(facts):
        assert (old.status, old.superseded_by) == (MemoryStatus.SUPERSEDED, new.id)
        assert new.supersedes == (old.id,)
    assert facts[-1].status is MemoryStatus.ACTIVE


async def test_facts_and_denials_have_the_tags_of_every_turn_that_says_so() -> None:
    """Also what is told again under another tag; and without a forgotten turn, no more its tag."""
    words = "My email address is {}. I don't use Mongo."
    told = []
    for number, tag in enumerate(("work", "home")):
        turn, found = read(number, ADDRESSES[0], words)
        told.append((turn.model_copy(update={"tags": (tag,)}), found))
    embedder = make_embedder("wordllama")
    async with borrowed_store() as repository:
        vectors = await embedder.embed_documents([turn.content for turn, _ in told])
        pairs = zip(told, vectors, strict=True)
        await repository.insert(SCOPE, [NewMemory(turn, vector) for (turn, _), vector in pairs])
        store = FindingsStore(repository, embedder, lambda: uuid4().hex)
        for one in (*told, told[0]):
            await store.store(REQUEST, [one])
        pages = [
            await repository.scroll(SCOPE, kind, limit=10)
            for kind in (MemoryType.FACTUAL, MemoryType.NEGATION)
        ]
    kept = [memory for page in pages for memory in page.memories]
    assert [memory.tags for memory in kept] == [("home", "work")] * 2
    (first, _), (second, _) = told
    left = [without_sources(m, {first.id}, {second.id: second}) for m in kept]  # type: ignore[arg-type]  # both are derived
    assert [memory and memory.tags for memory in left] == [("home",)] * 2


async def facts_of(
    told: Sequence[ReadEpisode], cuts: Collection[int], order: Sequence[int] | None = None
) -> set[tuple[object, ...]]:
    """The facts of turns that arrive in batches, which end before these numbers.

    Args:
        told: The turns, in order of time.
        cuts: Where a new batch begins.
        order: In which the turns arrive, by number; without it, that of their time.
    """
    arriving = [told[number] for number in order] if order is not None else told
    embedder = make_embedder("wordllama")
    async with borrowed_store() as repository:
        vectors = await embedder.embed_documents([turn.content for turn, _ in told])
        pairs = zip(told, vectors, strict=True)
        await repository.insert(SCOPE, [NewMemory(turn, vector) for (turn, _), vector in pairs])
        store = FindingsStore(repository, embedder, lambda: uuid4().hex)
        for first, end in pairwise([0, *sorted(cuts), len(told)]):
            # As an attempt after one that died: each batch twice.
            for _ in range(2):
                await store.store(REQUEST, arriving[first:end])
        page = await repository.scroll(SCOPE, MemoryType.FACTUAL, limit=100)
    return {
        (
            m.id,
            m.value,
            m.status,
            m.known_at,
            m.superseded_known_at,
            m.superseded_by,
            frozenset(m.source_episode_ids),
        )
        for m in page.memories
        if isinstance(m, Fact)
    }


@settings(max_examples=examples(30))
@given(
    st.lists(st.tuples(st.sampled_from(ADDRESSES[:3]), st.sampled_from(TELLINGS)), max_size=8),
    st.sets(st.integers(1, 7)),
)
async def test_the_same_comes_of_turns_however_they_arrive_together(
    story: list[tuple[str, str]], cuts: set[int]
) -> None:
    """An address that is told again after another one begins anew, in one batch as in several."""
    told = [read(number, *telling) for number, telling in enumerate(story)]
    alone = await facts_of(told, range(1, len(told)))
    assert await facts_of(told, {cut for cut in cuts if cut < len(told)}) == alone


NAMES = ["Ann", "Ann Lee", "Bea Cole"]


@settings(max_examples=examples(30))
@given(st.lists(st.sampled_from([*ADDRESSES[:2], *NAMES]), max_size=8), st.sets(st.integers(1, 7)))
async def test_the_same_comes_of_names_and_addresses_told_in_turn(
    story: list[str], cuts: set[int]
) -> None:
    """A fuller form takes no name's place; what is told between two slots changes neither."""
    told = [
        read(number, what, "My name is {}." if what in NAMES else "My email address is {}.")
        for number, what in enumerate(story)
    ]
    alone = await facts_of(told, range(1, len(told)))
    assert await facts_of(told, {cut for cut in cuts if cut < len(told)}) == alone


READS_AND_WRITES = ("get", "scroll", "insert", "replace")


@pytest.mark.parametrize("values", [1000, 2, 3], ids=["ever new", "back and forth", "in a circle"])
async def test_what_a_batch_asks_of_the_store_does_not_grow_with_its_turns(
    monkeypatch: pytest.MonkeyPatch, values: int
) -> None:
    """Whatever each turn replaces, a batch is stored in few calls, the first time and again."""
    embedder = make_embedder("wordllama")
    told = [read(number, f"ada{number % values}@example.org") for number in range(60)]
    calls: list[str] = []
    async with borrowed_store() as repository:
        vectors = await embedder.embed_documents([turn.content for turn, _ in told])
        pairs = zip(told, vectors, strict=True)
        await repository.insert(SCOPE, [NewMemory(turn, vector) for (turn, _), vector in pairs])
        for name in READS_AND_WRITES:
            monkeypatch.setattr(repository, name, _noting(getattr(repository, name), name, calls))
        store = FindingsStore(repository, embedder, lambda: uuid4().hex)
        first = await store.store(REQUEST, told)
        # One read of the slot before, one after; reads by id, of generations and for writing.
        assert calls.count("scroll") <= 2
        assert len(calls) <= 16
        calls.clear()
        assert await store.store(REQUEST, told) == first
        assert calls.count("scroll") <= 2
        assert len(calls) <= 16
        assert not {"insert", "replace"} & set(calls)


def _noting(real: Callable[..., Any], name: str, calls: list[str]) -> Callable[..., Any]:
    """A method of the store that notes its calls."""

    async def noted(*given: Any, **more: Any) -> Any:
        calls.append(name)
        return await real(*given, **more)

    return noted


@settings(max_examples=examples(30))
@given(
    st.lists(st.integers(1, 3), min_size=1, max_size=3),
    st.sets(st.integers(1, 8)),
    st.randoms(use_true_random=False),
)
async def test_the_same_comes_of_turns_in_whichever_order_they_arrive(
    times: list[int], cuts: set[int], chance: Random
) -> None:
    """Of addresses that each gave way for good, also where an older conversation comes later."""
    values = [
        address for address, often in zip(ADDRESSES, times, strict=False) for _ in range(often)
    ]
    told = [
        read(number, address, chance.choice(TELLINGS[:2])) for number, address in enumerate(values)
    ]
    order = list(range(len(told)))
    chance.shuffle(order)
    alone = await facts_of(told, range(1, len(told)))
    assert await facts_of(told, {cut for cut in cuts if cut < len(told)}, order) == alone


async def test_what_is_told_again_in_one_batch_has_a_history_of_its_own() -> None:
    """One address, another one, the first again: at each time one holds."""
    old, new, *_ = ADDRESSES
    told = [read(number, address) for number, address in enumerate([old, new, old])]
    times = [turn.timestamp for turn, _ in told]
    found = {(value, since, until) for _, value, _, since, until, *_ in await facts_of(told, ())}
    assert found == {(old, times[0], times[1]), (new, times[1], times[2]), (old, times[2], None)}


@pytest.mark.parametrize("cuts", [(), (1,)], ids=["together", "one after another"])
async def test_what_a_test_tells_takes_the_place_of_nothing_real(cuts: Collection[int]) -> None:
    """Nor does what is real end what a test told, in one batch or in several."""
    real, (turn, found) = read(0, ADDRESSES[0]), read(1, ADDRESSES[1])
    told = [real, (turn.model_copy(update={"is_test": True}), found)]
    for order in (told, told[::-1]):
        facts = await facts_of(order, cuts)
        assert len(facts) == 2
        assert not any(MemoryStatus.SUPERSEDED in fact for fact in facts)
