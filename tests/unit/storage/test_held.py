"""What the in-process engine's store holds of what it wrote and read."""

from __future__ import annotations

from engram.domain.memories import Link, MemoryStatus, MemoryType, SemanticMemory
from engram.domain.scope import Scope
from engram.ports import NewMemory, SparseVector, TextVectors
from engram.storage.edge import Arrivals
from engram.storage.updates import update_memories
from tests.support.edge_stores import borrowed_store
from tests.support.recall_memories import semantic

SCOPE = Scope.of("default", "ada")
SEMANTIC = MemoryType.SEMANTIC


async def test_a_long_listing_gives_what_is_held() -> None:
    """Whatever its page size, and after a change, in order: nothing is read or decoded again."""
    async with borrowed_store() as repository:
        told = [semantic(f"Fact {day}.", day) for day in range(3)]
        vectors = TextVectors((0.1,) * 256, SparseVector((1,), (1.0,)))
        await repository.insert(SCOPE, [NewMemory(one, vectors) for one in told])
        first = await repository.get(SCOPE, [one.id for one in told])

        def linked(memory: object) -> SemanticMemory:
            assert isinstance(memory, SemanticMemory)
            at = memory.known_at
            link = Link(target_id=told[0].id, first_seen=at, last_seen=at)
            return memory.model_copy(update={"links": (link,)})

        changed = told[1].id
        await update_memories(
            repository, SCOPE, [changed], linked, new_write_id=lambda: "fresh", types=(SEMANTIC,)
        )
        page = await repository.scroll(SCOPE, SEMANTIC, limit=1000)
        held = await repository.get(SCOPE, [one.id for one in told])
        assert [one.id for one in page.memories] == [one.id for one in told]
        assert all(one is held[one.id] for one in page.memories)
        assert [one is first[one.id] for one in page.memories] == [True, False, True]
        assert held[changed] == linked(first[changed]).model_copy(
            update={"revision": 1, "write_id": "fresh"}
        )
        cursor = (await repository.scroll(SCOPE, SEMANTIC, limit=2)).cursor
        (last,) = (await repository.scroll(SCOPE, SEMANTIC, limit=2, cursor=cursor)).memories
        assert last.id == told[2].id


async def test_a_replacement_is_told_of_and_a_recall_is_not() -> None:
    """Marked as replaced, with other sources, or inserted so: to its user alone."""
    async with borrowed_store() as repository:
        (known, gone) = (semantic("Fact.", 1), semantic("Old.", 1, status="superseded"))
        vectors = TextVectors((0.1,) * 256, SparseVector((1,), (1.0,)))
        steps = [repository.replacements(SCOPE)]

        async def write(**fields: object) -> None:
            await update_memories(
                repository,
                SCOPE,
                [known.id],
                lambda memory: memory.model_copy(update=fields),
                new_write_id=lambda: "fresh",
                types=(SEMANTIC,),
            )
            steps.append(repository.replacements(SCOPE))

        await repository.insert(SCOPE, [NewMemory(known, vectors)])
        await write(access_count=1)
        await write(source_episode_ids=("another",))
        assert len(set(steps)) == 1
        await write(status=MemoryStatus.SUPERSEDED, superseded_known_at=known.known_at)
        await write(access_count=2)
        assert steps[-1] == steps[-2] > steps[-3]
        await write(source_episode_ids=("a third",))
        await repository.insert(SCOPE, [NewMemory(gone, vectors)])
        steps.append(repository.replacements(SCOPE))
        assert steps[-1] > steps[-2] > steps[-3]
        assert repository.replacements(Scope.of("default", "bob")) == 0


async def test_what_arrived_since_is_told_until_something_goes() -> None:
    """Ids of this user and type that came after a number; nobody can tell after a deletion."""
    async with borrowed_store() as repository:
        vectors = TextVectors((0.1,) * 256, SparseVector((1,), (1.0,)))
        one, two = (semantic(f"Fact {day}.", day) for day in (1, 2))
        before = repository.arrivals(SCOPE, SEMANTIC)
        assert repository.arrived(SCOPE, SEMANTIC, before) == []
        await repository.insert(SCOPE, [NewMemory(one, vectors)])
        between = repository.arrivals(SCOPE, SEMANTIC)
        await repository.insert(SCOPE, [NewMemory(two, vectors)])
        assert repository.arrived(SCOPE, SEMANTIC, before) == [one.id, two.id]
        assert repository.arrived(SCOPE, SEMANTIC, between) == [two.id]
        assert repository.arrived(SCOPE, MemoryType.FACTUAL, before) == []
        assert repository.arrived(Scope.of("default", "bob"), SEMANTIC, before) == []
        await repository.delete(SCOPE, SEMANTIC, [one.id])
        assert repository.arrived(SCOPE, SEMANTIC, between) is None


def test_arrivals_of_long_ago_are_not_told() -> None:
    """Only the latest are kept: from before them, nobody can tell; from then on, exactly."""
    arrivals = Arrivals()
    steps = []
    for number in range(1001):
        arrivals.note_new([("ada", f"id{number}")])
        steps.append(arrivals.of("ada"))
    assert arrivals.since("ada", 0) is None
    assert arrivals.since("ada", steps[0]) == [f"id{number}" for number in range(1, 1001)]
    assert arrivals.since("ada", steps[-2]) == ["id1000"]
