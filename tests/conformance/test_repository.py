"""What every engine must do, in the same words for each.

Where the client's ``:memory:`` stand-in differs from the real engines, by design:

- It has no payload indexes (``test_every_listed_field_is_indexed`` says so).
- It lives in one process and one task at a time, so races between processes are
  shown on Edge by tasks and on a server by requests, here only by tasks.
- It searches everything by brute force: nothing here says anything about speed.
"""

from __future__ import annotations

import asyncio
import math
from datetime import timedelta

import pytest

from engram.domain.memories import (
    STORED_TYPES,
    AnyMemory,
    MemoryType,
    Provenance,
    next_revision,
)
from engram.domain.scope import Scope
from engram.errors import (
    InvalidInput,
    InvalidQuery,
    MemoryClosed,
    SchemaMismatch,
    UnindexedField,
    WrongVectorSize,
)
from engram.ports import (
    Equals,
    MemoryRepository,
    Missing,
    NewMemory,
    Replacement,
    SearchRequest,
    SparseVector,
    Stamp,
    TextVectors,
)
from engram.storage.payload import SCHEMA_VERSION, TENANT, indexed_fields
from tests.support.engines import (
    ADA,
    BOB,
    DIMENSIONS,
    EMBEDDER,
    T0,
    Store,
    episode,
    memory_id,
    new,
    one_of_each,
    semantic,
    vectors,
)

EPISODIC = MemoryType.EPISODIC


def successor(memory: AnyMemory, write_id: str, content: str | None = None) -> Replacement:
    """The next revision of a memory, with another content if given."""
    changed = memory if content is None else memory.model_copy(update={"content": content})
    return Replacement(next_revision(memory, changed, write_id=write_id), memory.revision)


async def all_of(repository: MemoryRepository, scope: Scope) -> dict[str, AnyMemory]:
    """Everything a scope holds, by listing it."""
    found: dict[str, AnyMemory] = {}
    for memory_type in STORED_TYPES:
        page = await repository.scroll(scope, memory_type, limit=1000)
        found |= {memory.id: memory for memory in page.memories}
    return found


# --- writing --------------------------------------------------------------------------


async def test_every_field_of_every_type_comes_back(repository: MemoryRepository) -> None:
    """What is stored is what is read, microseconds and metadata included."""
    memories = one_of_each(ADA, T0 + timedelta(microseconds=123_456))
    await repository.insert(ADA, map(new, memories))
    found = await repository.get(ADA, [memory.id for memory in memories])
    assert list(found.values()) == memories


async def test_inserting_twice_is_inserting_once(repository: MemoryRepository) -> None:
    """An insert of what is there leaves content, revision and vectors untouched."""
    first = episode(ADA, "turn")
    await repository.insert(ADA, [new(first, vectors((1, 0, 0, 0)))])
    again = episode(ADA, "turn", content="something else", revision=5, tags=("late",))
    await repository.insert(ADA, [new(again, vectors((0, 1, 0, 0)))])
    assert await repository.get(ADA, [first.id]) == {first.id: first}
    assert await repository.count(ADA, EPISODIC) == 1
    (hit,) = await repository.search(ADA, SearchRequest(vectors((1, 0, 0, 0)), (EPISODIC,), 5))
    assert hit.dense == pytest.approx(1.0)


async def test_the_same_id_twice_in_one_insert_keeps_the_first(
    repository: MemoryRepository,
) -> None:
    """Within one call, too, what came first stays."""
    first, second = episode(ADA, "turn"), episode(ADA, "turn", content="later")
    await repository.insert(ADA, [new(first)])
    await repository.insert(ADA, [new(second), new(episode(ADA, "other"))])
    assert (await repository.get(ADA, [first.id]))[first.id] == first


async def test_a_replacement_wins_at_its_revision_only(repository: MemoryRepository) -> None:
    """The write at the stored revision wins; one at an older revision changes nothing."""
    memory = episode(ADA, "turn", tags=("old",), summary="gone after this")
    await repository.insert(ADA, [new(memory)])
    changed = memory.model_copy(update={"tags": (), "summary": None})
    winner = Replacement(next_revision(memory, changed, write_id="second"), 0)
    assert await repository.replace(ADA, [winner]) == {memory.id}
    assert await repository.replace(ADA, [successor(memory, "late")]) == frozenset()
    assert await repository.get(ADA, [memory.id]) == {memory.id: winner.memory}
    assert await repository.count(ADA, EPISODIC, (Equals("tags", "old"),)) == 0


async def test_a_replacement_keeps_the_vectors(repository: MemoryRepository) -> None:
    """Replacing writes the payload alone: the memory is found as before."""
    memory = episode(ADA, "turn")
    await repository.insert(ADA, [new(memory, vectors((0, 0, 1, 0), {7: 2.0}))])
    await repository.replace(ADA, [successor(memory, "second")])
    request = SearchRequest(vectors((0, 0, 1, 0), {7: 1.0}), (EPISODIC,), 5)
    (hit,) = await repository.search(ADA, request)
    assert hit.memory.revision == 1
    assert hit.dense == pytest.approx(1.0)
    assert hit.sparse is not None


async def test_of_concurrent_replacements_exactly_one_wins(repository: MemoryRepository) -> None:
    """Twenty writers at one revision: one hears that it won, and its write is what is there."""
    memory = episode(ADA, "turn")
    await repository.insert(ADA, [new(memory)])
    writers = [successor(memory, f"writer {number}", f"by {number}") for number in range(20)]
    answers = await asyncio.gather(*(repository.replace(ADA, [writer]) for writer in writers))
    winners = [writer for writer, won in zip(writers, answers, strict=True) if won]
    assert len(winners) == 1
    assert (await repository.get(ADA, [memory.id]))[memory.id] == winners[0].memory


async def test_many_replacements_in_one_call_are_judged_one_by_one(
    repository: MemoryRepository,
) -> None:
    """A batch over two types and past the batch size: those at the right revision win."""
    turns = [episode(ADA, f"turn {number}") for number in range(150)]
    known = [semantic(ADA, f"known {number}") for number in range(3)]
    everything: list[AnyMemory] = [*turns, *known]
    await repository.insert(ADA, map(new, everything))
    stale = [
        Replacement(successor(memory, "stale").memory.model_copy(update={"revision": 9}), 8)
        for memory in turns[:50]
    ]
    good = [successor(memory, "good") for memory in everything[50:]]
    won = await repository.replace(ADA, [*stale, *good])
    assert won == {item.memory.id for item in good}


async def test_two_steps_of_one_memory_in_one_call_both_win(repository: MemoryRepository) -> None:
    """A chain of revisions in one call is applied in order."""
    memory = episode(ADA, "turn")
    await repository.insert(ADA, [new(memory)])
    first = successor(memory, "one")
    second = successor(first.memory, "two")
    assert await repository.replace(ADA, [first, second]) == {memory.id}
    assert (await repository.get(ADA, [memory.id]))[memory.id] == second.memory


async def test_a_replacement_never_brings_back_what_was_deleted(
    repository: MemoryRepository,
) -> None:
    """A late writer loses against a deletion, and inserts nothing."""
    memory = episode(ADA, "turn")
    await repository.insert(ADA, [new(memory)])
    await repository.delete(ADA, EPISODIC, [memory.id])
    assert await repository.replace(ADA, [successor(memory, "late")]) == frozenset()
    assert await repository.replace(ADA, [successor(episode(ADA, "never"), "x")]) == frozenset()
    assert await all_of(repository, ADA) == {}


async def test_a_replacement_that_cannot_be_told_apart_is_refused(
    repository: MemoryRepository,
) -> None:
    """Without a write id or a higher revision nobody could say who won."""
    memory = episode(ADA, "turn")
    await repository.insert(ADA, [new(memory)])
    for unusable in (
        memory.model_copy(update={"revision": 1, "write_id": ""}),
        memory.model_copy(update={"write_id": "x"}),
    ):
        with pytest.raises(InvalidInput):
            await repository.replace(ADA, [Replacement(unusable, 0)])
    assert await repository.get(ADA, [memory.id]) == {memory.id: memory}


BROKEN_VECTORS = [
    vectors((1.0, 0.0)),
    vectors((1.0,) * (DIMENSIONS + 1)),
    vectors((math.nan, 0, 0, 0)),
    vectors((math.inf, 0, 0, 0)),
    vectors((math.inf, -math.inf, 0, 0)),
    vectors(terms={1: math.nan}),
    vectors(terms={-1: 1.0}),
    vectors(terms={2**32: 1.0}),
    TextVectors((1, 0, 0, 0), SparseVector((3, 1), (1.0, 1.0))),
    TextVectors((1, 0, 0, 0), SparseVector((1, 1), (1.0, 1.0))),
    TextVectors((1, 0, 0, 0), SparseVector((1, 2), (1.0,))),
]


async def test_broken_vectors_are_refused_before_anything_is_written(
    repository: MemoryRepository,
) -> None:
    """Wrong sizes, numbers that are none, unsorted terms: an error, and an empty store."""
    good = [new(episode(ADA, f"turn {number}")) for number in range(100)]
    for broken in BROKEN_VECTORS:
        with pytest.raises(WrongVectorSize):
            await repository.insert(ADA, [*good, NewMemory(episode(ADA, "bad"), broken)])
        with pytest.raises(WrongVectorSize):
            await repository.search(ADA, SearchRequest(broken, (EPISODIC,), 5))
    assert await repository.count(ADA, EPISODIC) == 0


UNUSABLE = {
    "another user's": episode(BOB, "turn"),
    "id": episode(ADA, "turn", id="turn-1"),
    "id in capitals": episode(ADA, "turn", id=memory_id("turn").upper()),
    "surrogate": episode(ADA, "turn", content="half a \ud83d face"),
    "naive time": episode(ADA, "turn", known_at=T0.replace(tzinfo=None)),
    "metadata": episode(ADA, "turn", metadata={"what": object()}),
}


async def test_what_cannot_be_stored_faithfully_is_refused(repository: MemoryRepository) -> None:
    """Refused before anything is written, without quoting the content."""
    for unusable in UNUSABLE.values():
        with pytest.raises(InvalidInput) as refused:
            await repository.insert(ADA, [new(episode(ADA, "good")), new(unusable)])
        assert "face" not in str(refused.value)
    assert await all_of(repository, ADA) == {}


async def test_a_vector_of_zeros_and_a_text_without_terms_can_be_stored(
    repository: MemoryRepository,
) -> None:
    """They are kept, and are found by the side that says something."""
    nothing, wordless = episode(ADA, "nothing"), episode(ADA, "wordless")
    await repository.insert(
        ADA, [new(nothing, vectors((0, 0, 0, 0), {3: 1.0})), new(wordless, vectors(terms={}))]
    )
    found = await repository.search(ADA, SearchRequest(vectors(terms={3: 1.0}), (EPISODIC,), 5))
    scores = {hit.memory.id: hit for hit in found}
    assert scores[nothing.id].sparse is not None
    assert scores[wordless.id].dense == pytest.approx(1.0)
    assert scores[wordless.id].sparse is None
    silent = SearchRequest(vectors((0, 0, 0, 0), {}), (EPISODIC,), 5)
    assert await repository.search(ADA, silent) == []


# --- scopes ---------------------------------------------------------------------------


async def test_no_method_reaches_into_another_scope(repository: MemoryRepository) -> None:
    """Bob asks for, replaces, inserts over and deletes what is Ada's: nothing happens."""
    hers = one_of_each(ADA)
    ids = [memory.id for memory in hers]
    await repository.insert(ADA, map(new, hers))
    stolen = [memory.model_copy(update={"user_id": BOB.user_id}) for memory in hers]

    assert await repository.get(BOB, ids) == {}
    await repository.insert(BOB, map(new, stolen))
    assert await repository.replace(BOB, [successor(memory, "bob") for memory in stolen]) == set()
    for memory_type in STORED_TYPES:
        await repository.delete(BOB, memory_type, ids)
        assert await repository.count(BOB, memory_type) == 0
        assert (await repository.scroll(BOB, memory_type)).memories == ()
    assert await repository.search(BOB, SearchRequest(vectors(), STORED_TYPES, 10)) == []
    assert await repository.erase(BOB) == dict.fromkeys(STORED_TYPES, 0)

    assert await all_of(repository, ADA) == {memory.id: memory for memory in hers}


async def test_scopes_that_look_alike_are_kept_apart(repository: MemoryRepository) -> None:
    """Case, prefixes and the other namespace do not match."""
    memory = episode(ADA, "turn")
    await repository.insert(ADA, [new(memory)])
    for namespace, user in (("default", "Ada"), ("default", "ad"), ("other", "ada")):
        assert await repository.get(Scope.of(namespace, user), [memory.id]) == {}
        assert await repository.count(Scope.of(namespace, user), EPISODIC) == 0


async def test_erase_removes_one_scope_and_counts_it(repository: MemoryRepository) -> None:
    """Everything of Ada goes, past one batch; everything of Bob stays."""
    turns = [episode(ADA, f"turn {number}") for number in range(300)]
    await repository.insert(ADA, map(new, turns))
    await repository.insert(ADA, map(new, one_of_each(ADA)))
    await repository.insert(BOB, map(new, one_of_each(BOB)))
    erased = await repository.erase(ADA)
    assert erased == {**dict.fromkeys(STORED_TYPES, 1), EPISODIC: 301}
    assert await all_of(repository, ADA) == {}
    assert len(await all_of(repository, BOB)) == len(STORED_TYPES)
    assert await repository.erase(ADA) == dict.fromkeys(STORED_TYPES, 0)


# --- reading --------------------------------------------------------------------------


async def test_get_takes_any_ids_and_keeps_their_order(repository: MemoryRepository) -> None:
    """Unknown ids, repeated ones and ids that are none are left out; types narrow it."""
    turn, known = episode(ADA, "turn"), semantic(ADA, "known")
    await repository.insert(ADA, [new(turn), new(known)])
    asked = [known.id, memory_id("unknown"), "no id at all", turn.id, known.id, ""]
    assert list(await repository.get(ADA, asked)) == [known.id, turn.id]
    assert await repository.get(ADA, asked, [EPISODIC]) == {turn.id: turn}
    assert await repository.get(ADA, []) == {}
    assert await repository.get(ADA, [turn.id.upper()]) == {}


async def test_deleting_is_final_and_may_be_repeated(repository: MemoryRepository) -> None:
    """Deleted memories are gone everywhere; unknown ids are no error."""
    keep, drop = episode(ADA, "keep"), episode(ADA, "drop")
    await repository.insert(ADA, [new(keep), new(drop)])
    for _ in range(2):
        await repository.delete(ADA, EPISODIC, [drop.id, memory_id("unknown"), "none"])
    await repository.delete(ADA, MemoryType.SEMANTIC, [keep.id])
    await repository.delete(ADA, EPISODIC, [])
    assert await all_of(repository, ADA) == {keep.id: keep}


async def test_counts_are_exact(repository: MemoryRepository) -> None:
    """Counting agrees with what is there, with and without conditions."""
    turns = [
        episode(ADA, f"turn {number}", consolidated_at=T0 if number % 3 else None)
        for number in range(100)
    ]
    await repository.insert(ADA, map(new, turns))
    assert await repository.count(ADA, EPISODIC) == 100
    assert await repository.count(ADA, EPISODIC, (Missing("consolidated_at"),)) == 34


async def test_a_field_without_index_is_refused_everywhere(repository: MemoryRepository) -> None:
    """The error names the field and what is allowed; the tenant cannot be named at all."""
    for field in ("content", "summary", "metadata.a", TENANT, "valid_from", "slot.object"):
        where = (Equals(field, "x"),)
        with pytest.raises(UnindexedField) as refused:
            await repository.count(ADA, EPISODIC, where)
        assert field in str(refused.value)
        assert "known_at" in str(refused.value)
        with pytest.raises(UnindexedField):
            await repository.scroll(ADA, EPISODIC, where=where)
        request = SearchRequest(vectors(), (EPISODIC,), 5, {EPISODIC: where})
        with pytest.raises(UnindexedField):
            await repository.search(ADA, request)


async def test_every_listed_field_is_indexed(store: Store) -> None:
    """Of a type with memories, the engine reports an index for each field that queries may name."""
    repository = await store.open()
    await repository.insert(ADA, map(new, one_of_each(ADA)))
    for memory_type in STORED_TYPES:
        expected = {TENANT, *indexed_fields(memory_type)}
        # The stand-in has no indexes at all: its answers show semantics, not speed.
        assert await store.indexes(memory_type) == (set() if store.engine == "local" else expected)
    await repository.close()


async def test_what_a_run_wrote_is_found_by_the_run(repository: MemoryRepository) -> None:
    """Of every type, by its id alone; a change by another run leaves it where it was."""
    run, other = memory_id("one run"), memory_id("another")
    by_run = Provenance(workflow_id="session/default/ada/s1", run_id=run, model="m")
    mine = [one.model_copy(update={"provenance": by_run}) for one in one_of_each(ADA)]
    by_other = by_run.model_copy(update={"run_id": other})
    later = episode(ADA, "later", provenance=by_other)
    await repository.insert(ADA, map(new, [*mine, later, episode(ADA, "of no run")]))
    await repository.insert(BOB, [new(episode(BOB, "bob's", provenance=by_run))])
    changed = next_revision(mine[0], mine[0].model_copy(update={"tags": ("x",)}), write_id="w")
    assert await repository.replace(ADA, [Replacement(changed, 0)])
    for memory in (changed, *mine[1:]):
        page = await repository.scroll(ADA, memory.type, where=(Equals("run_id", run),))
        assert page.memories == (memory,)
    assert await repository.count(ADA, EPISODIC, (Equals("run_id", other),)) == 1
    assert await repository.count(ADA, EPISODIC, (Missing("run_id"),)) == 1


async def test_a_memory_that_was_read_before_is_replaced_as_a_whole(store: Store) -> None:
    """What was added, changed within or taken out is stored as if all had been written anew."""
    repository = await store.empty()
    memories = one_of_each(ADA)
    await repository.insert(ADA, map(new, memories))
    wanted = [
        memory.model_copy(update={"summary": None, "tags": ("z",), "metadata": {"deep": {"x": 1}}})
        for memory in memories
    ]
    ids = [memory.id for memory in memories]
    for number in range(2):
        read = await repository.get(ADA, ids)
        changed = [
            one.model_copy(update={"last_accessed_at": T0, "access_count": number + 1})
            for one in (wanted if number else list(read.values()))
        ]
        replacements = [
            Replacement(next_revision(read[one.id], one, write_id=f"w{number}"), number)
            for one in changed
        ]
        assert await repository.replace(ADA, replacements) == set(ids)
        found = await repository.get(ADA, ids)
        assert [found[one.memory.id] for one in replacements] == [
            one.memory for one in replacements
        ]
    await repository.close()


# --- opening --------------------------------------------------------------------------


async def test_a_store_opened_again_holds_the_same(store: Store) -> None:
    """Closing and opening loses nothing: memories, revisions, vectors, deletions."""
    memories: list[AnyMemory] = [*one_of_each(ADA), episode(ADA, "dropped")]
    repository = await store.open()
    await repository.insert(ADA, map(new, memories))
    changed = successor(memories[0], "second")
    await repository.replace(ADA, [changed])
    await repository.delete(ADA, EPISODIC, [memories[-1].id])
    await repository.close()

    repository = await store.open()
    expected = [changed.memory, *memories[1:-1]]
    assert await all_of(repository, ADA) == {memory.id: memory for memory in expected}
    assert len(await repository.search(ADA, SearchRequest(vectors(), STORED_TYPES, 9))) == 5
    await repository.close()


async def test_everything_written_bears_the_stamp(store: Store) -> None:
    """The store's stamp is on what is inserted and replaced; a call's own takes its place."""

    def marked(mark: str) -> Stamp:
        return lambda memory: memory.model_copy(update={"policy_fingerprint": mark})

    repository = await store.open(stamp=marked("own"))
    first, second = episode(ADA, "first"), episode(ADA, "second")
    await repository.insert(ADA, [new(first)])
    await repository.insert(ADA, [new(second)], stamp=marked("given"))

    async def marks() -> list[str | None]:
        found = await repository.get(ADA, [first.id, second.id])
        return [memory.policy_fingerprint for memory in found.values()]

    assert await marks() == ["own", "given"]
    await repository.replace(ADA, [successor(first, "w1")], stamp=marked("given"))
    await repository.replace(ADA, [successor(second, "w1")])
    assert await marks() == ["given", "own"]
    await repository.close()


async def test_another_embedder_is_refused(store: Store) -> None:
    """Another identity or size is a typed error that names both and says what to do."""
    await (await store.open()).close()
    for embedder, dimensions in (("other:2", DIMENSIONS), (EMBEDDER, DIMENSIONS + 1)):
        with pytest.raises(SchemaMismatch) as refused:
            await store.open(embedder=embedder, dimensions=dimensions)
        assert EMBEDDER in str(refused.value)
        assert embedder in str(refused.value)
        assert "ENGRAM_EMBEDDER" in str(refused.value)
    await (await store.open()).close()


async def test_another_schema_version_is_refused(store: Store) -> None:
    """A store of a newer Engram is left alone, with both versions named."""
    await (await store.open()).close()
    await store.set_schema_version(SCHEMA_VERSION + 1)
    with pytest.raises(SchemaMismatch, match=f"version {SCHEMA_VERSION + 1}"):
        await store.open()


async def test_info_says_what_the_store_is(store: Store) -> None:
    """Engine, schema version and embedder."""
    repository = await store.open()
    info = await repository.info()
    assert (info.engine, info.schema_version, info.embedder) == (
        store.engine,
        SCHEMA_VERSION,
        EMBEDDER,
    )
    await repository.close()


async def test_a_closed_store_says_so(store: Store) -> None:
    """Every method of a closed store raises MemoryClosed; closing again is fine."""
    repository = await store.open()
    await repository.close()
    await repository.close()
    memory = episode(ADA, "turn")
    calls = [
        repository.insert(ADA, [new(memory)]),
        repository.get(ADA, [memory.id]),
        repository.replace(ADA, [successor(memory, "x")]),
        repository.search(ADA, SearchRequest(vectors(), (EPISODIC,), 1)),
        repository.scroll(ADA, EPISODIC),
        repository.count(ADA, EPISODIC),
        repository.delete(ADA, EPISODIC, [memory.id]),
        repository.erase(ADA),
        repository.info(),
        repository.flush(),
    ]
    for call in calls:
        with pytest.raises(MemoryClosed):
            await call


async def test_flushing_at_any_time_changes_nothing(repository: MemoryRepository) -> None:
    """A flush before, between and after writes is harmless."""
    await repository.flush()
    memory = episode(ADA, "turn")
    await repository.insert(ADA, [new(memory)])
    await repository.flush()
    await repository.flush()
    assert await all_of(repository, ADA) == {memory.id: memory}


async def test_limits_out_of_range_are_refused(repository: MemoryRepository) -> None:
    """A page or a search of nothing, or of everything at once, is bad input."""
    for limit in (0, -1, 1_000_000):
        with pytest.raises(InvalidQuery):
            await repository.scroll(ADA, EPISODIC, limit=limit)
        with pytest.raises(InvalidQuery):
            await repository.search(ADA, SearchRequest(vectors(), (EPISODIC,), limit))
