"""An export that is restored where something else is known: each value has its place again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engram.contracts.importing import ExportedMemory, ImportKind, StoreBatchInput
from engram.digests.stage import Digests
from engram.digests.versions import Composer
from engram.domain.memories import (
    MEMORY_ADAPTER,
    STORED_TYPES,
    AnyMemory,
    Episode,
    MemoryForm,
    MemoryStatus,
    ProceduralMemory,
    SemanticMemory,
)
from engram.domain.rules import DigestPolicy, LifecycleRules
from engram.domain.scope import Scope
from engram.domain.slots import ends_something, is_functional, timeline_key
from engram.embedding.choice import make_embedder
from engram.errors import StorageUnavailable
from engram.lifecycle.promotion_pass import HabitMaker
from engram.storage.edge import EdgeRepository
from engram.transfer.batches import MEMORIES, batch, unpack
from engram.transfer.export import ExportedFile
from engram.transfer.store import MemoryRestorer
from tests.support.digested_memory import CountingStore
from tests.support.exports import export_lines
from tests.support.in_process_memory import InProcessMemory
from tests.support.recall_memories import day
from tests.support.sizes import examples
from tests.support.slot_stories import KINDS

NOW = day(300)
POLICY = DigestPolicy()
Told = Sequence[tuple[int, str]]
JANUARY: Told = (
    (1, "I live in Porto."),
    (2, "I work at Acme. I don't use Mongo any more."),
    (3, "My email is ada@example.org."),
    (4, "My sister Ines plays the cello in an orchestra."),
)
LATER: Told = (
    (150, "I moved to Lisbon. I work at Globex now."),
    (160, "My email is ada@example.net."),
    (180, "I use Mongo again."),
)


def new_write_id() -> str:
    """A value that no other write has."""
    return uuid4().hex


@dataclass
class Somebody:
    """A user, what they say, and what is restored to them."""

    memory: InProcessMemory
    scope: Scope = field(default_factory=lambda: Scope.of("restored", uuid4().hex))

    async def say(self, told: Told) -> None:
        """One turn after the other, each on its day; profiles follow."""
        for on, words in told:
            await self.memory.hear(self.scope, [words], on, at=day(on), session=f"s{on}")
            await self.memory.consolidate(self.scope, NOW)
        digests = Digests(self.memory.repository, make_embedder("wordllama"), new_write_id)
        ids = list(await self.everything())
        await digests.knowledge(Composer(self.scope, NOW), ids, (), POLICY)

    async def everything(self) -> dict[str, AnyMemory]:
        """All that is stored."""
        found = [
            await self.memory.repository.scroll(self.scope, k, limit=900) for k in STORED_TYPES
        ]
        return {memory.id: memory for page in found for memory in page.memories}

    async def exported(self, path: Path, target: Scope) -> list[ExportedMemory]:
        """What an export of it restores for somebody."""
        lines = export_lines(self.scope, [*(await self.everything()).values()])
        await asyncio.to_thread(path.write_text, "\n".join(lines))
        batches = ExportedFile(path, target).batches()
        return [entry for one in batches for entry in unpack(one, MEMORIES)]

    async def restore(
        self, entries: Sequence[ExportedMemory], *, at_once: int = 800, repository: Any = None
    ) -> None:
        """Store an export, so many memories at a time."""
        restorer = MemoryRestorer(
            repository or self.memory.repository,
            make_embedder("wordllama"),
            new_write_id,
            self.memory.settings.max_turn_bytes,
            digests=POLICY,
        )
        for first in range(0, len(entries), at_once):
            part = entries[first : first + at_once]
            await restorer.store(
                StoreBatchInput(
                    scope=self.scope,
                    now=NOW,
                    kind=ImportKind.MEMORIES,
                    batch=batch(first, [one.model_dump_json() for one in part]),
                    workflow_id="w",
                    run_id="r",
                )
            )

    async def standing(self) -> dict[str, list[str]]:
        """What holds: by the kind of memory."""
        found: dict[str, list[str]] = {}
        for one in (await self.everything()).values():
            if not isinstance(one, Episode) and one.status is MemoryStatus.ACTIVE:
                form = one.form.value if isinstance(one, SemanticMemory) else one.type.value
                found.setdefault(form, []).append(one.content)
        return {form: sorted(contents) for form, contents in found.items()}


@pytest.fixture
def world(repository: EdgeRepository) -> InProcessMemory:
    """Where all of them are kept."""
    return InProcessMemory(repository)


def without_writes(memories: Mapping[str, AnyMemory]) -> dict[str, Any]:
    """The memories, but for which write stored them."""
    return {key: one.model_dump(exclude={"write_id"}) for key, one in memories.items()}


@pytest.mark.parametrize("at_once", [1, 5, 800])
async def test_what_was_told_later_holds_after_restoring_what_was_told_before(
    world: InProcessMemory, tmp_path: Path, at_once: int
) -> None:
    """City, employer, address and denial are history with the times of what took their place."""
    before, ada = Somebody(world), Somebody(world)
    await before.say(JANUARY)
    await ada.say(LATER)
    entries = await before.exported(tmp_path / "x.jsonl", ada.scope)
    await ada.restore(entries, at_once=at_once)
    found = await ada.standing()
    assert found["statement"] == [
        "Ines is the user's sister.",
        "The user lives in Lisbon.",
        "The user uses Mongo.",
        "The user works at Globex.",
    ]
    assert found["factual"] == ["email address: ada@example.net"]
    assert "negation" not in found
    [own] = [one for one in found["profile"] if one.startswith("The user (user)")]
    assert "Lisbon" in own
    assert not any("Porto" in one or "Acme" in one for one in found["profile"])
    hits = await world.recall(ada.scope, "Where does the user live?", NOW, as_of=day(100))
    assert "The user lives in Porto." in [hit.memory.content for hit in hits]
    # Again: nothing is left to do.
    there = await ada.everything()
    await ada.restore(entries, at_once=at_once)
    assert await ada.everything() == there


@pytest.mark.parametrize("at_once", [1, 3, 800])
async def test_a_profile_that_stands_before_what_it_tells_keeps_all_of_it(
    world: InProcessMemory, tmp_path: Path, at_once: int
) -> None:
    """Wherever the file has them, digests come after what they are composed of."""
    before, ada = Somebody(world), Somebody(world)
    await before.say([(20, "I just started at Rise."), (40, "These days I live in Quito.")])
    await ada.say([(60, "I work at Northwind.")])
    told = sorted((await before.everything()).values(), key=lambda m: m.content[::-1])
    told.sort(key=lambda m: isinstance(m, SemanticMemory) and m.form is MemoryForm.STATEMENT)
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(export_lines(before.scope, told)))
    batches = ExportedFile(path, ada.scope).batches()
    entries = [entry for one in batches for entry in unpack(one, MEMORIES)]
    for _ in range(2):
        await ada.restore(entries, at_once=at_once)
        [own] = [one for one in (await ada.standing())["profile"] if one.startswith("The user (")]
        assert own.splitlines()[1:] == ["The user lives in Quito.", "The user works at Northwind."]


async def test_what_is_newer_in_the_export_takes_the_place_of_what_is_here(
    world: InProcessMemory, tmp_path: Path
) -> None:
    """Whichever of both is restored; of what a denial was told of here, too."""
    later, ada = Somebody(world), Somebody(world)
    await later.say(LATER)
    await ada.say(JANUARY)
    await ada.restore(await later.exported(tmp_path / "x.jsonl", ada.scope), at_once=3)
    found = await ada.standing()
    assert {"The user lives in Lisbon.", "The user works at Globex."} <= {*found["statement"]}
    assert not {"The user lives in Porto.", "The user works at Acme."} & {*found["statement"]}
    assert found["factual"] == ["email address: ada@example.net"]
    assert "negation" not in found
    assert not any("Porto" in one or "Acme" in one for one in found["profile"])


@pytest.mark.parametrize("at_once", [1, 4, 800])
async def test_an_empty_user_has_what_the_export_holds(
    world: InProcessMemory, tmp_path: Path, at_once: int
) -> None:
    """Ids, links, validity and all, however the export is cut into batches."""
    before, ada = Somebody(world), Somebody(world)
    second_job = (170, "I also work at Initech.")
    await before.say((*JANUARY, *LATER, second_job, (190, "I don't eat meat.")))
    entries = await before.exported(tmp_path / "x.jsonl", ada.scope)
    await ada.restore(entries, at_once=at_once)
    restored = without_writes(await ada.everything())
    assert restored == without_writes({one.id: one for one in map(_memory, entries)})


async def test_one_moment_in_two_conversations_is_in_dispute(
    world: InProcessMemory, tmp_path: Path
) -> None:
    """Where nothing orders what is here and what is restored, a review is to say what holds."""
    before, ada = Somebody(world), Somebody(world)
    await before.say([(5, "I live in Porto.")])
    await world.hear(ada.scope, ["I live in Oslo."], at=day(5), session="other")
    await world.consolidate(ada.scope, NOW)
    entries = await before.exported(tmp_path / "x.jsonl", ada.scope)
    asked: list[tuple[str, ...]] = []

    async def in_dispute(scope: Scope, pairs: Sequence[tuple[str, ...]]) -> None:
        asked.extend(pairs)

    restorer = MemoryRestorer(
        world.repository, make_embedder("wordllama"), new_write_id, 10_000, in_dispute=in_dispute
    )
    request = StoreBatchInput(
        scope=ada.scope,
        now=NOW,
        kind=ImportKind.MEMORIES,
        batch=batch(0, [one.model_dump_json() for one in entries]),
        workflow_id="w",
        run_id="r",
    )
    for _ in range(2):
        await restorer.store(request)
    found = (await ada.everything()).values()
    cities = {m.id for m in found if isinstance(m, SemanticMemory) and "lives in" in m.content}
    cities -= {m.id for m in found if isinstance(m, SemanticMemory) and m.detail}
    assert len(cities) == 2
    assert asked == [tuple(sorted(cities))] * 2


async def test_a_restored_denial_was_taken_back_by_a_turn_of_which_nothing_was_concluded(
    world: InProcessMemory, tmp_path: Path
) -> None:
    """When that turn was read, nothing denied what it says."""
    before, ada = Somebody(world), Somebody(world)
    await before.say([(1, "I don't drink wine.")])
    await ada.say([(9, "I drink wine again.")])
    assert "statement" not in await ada.standing()
    entries = await before.exported(tmp_path / "x.jsonl", ada.scope)
    await ada.restore(entries)
    found = await ada.standing()
    assert "negation" not in found
    assert found["statement"] == ["The user drinks wine."]
    there = await ada.everything()
    await ada.restore(entries)
    assert await ada.everything() == there
    # What is denied later than that stands.
    again = Somebody(world)
    await again.say([(9, "I drink wine again.")])
    await before.say([(12, "I don't drink wine.")])
    await again.restore(await before.exported(tmp_path / "y.jsonl", again.scope))
    assert len((await again.standing())["negation"]) == 1


@pytest.mark.parametrize("at_once", [1, 800])
async def test_a_restored_habit_holds_only_as_long_as_what_it_was_made_of(
    world: InProcessMemory, tmp_path: Path, at_once: int
) -> None:
    """Also where it comes in after what it was made of has its place."""
    before, ada = Somebody(world), Somebody(world)
    await before.say([(1, "I live in Porto.")])
    source = next(
        m
        for m in (await before.everything()).values()
        if isinstance(m, SemanticMemory) and m.form is MemoryForm.STATEMENT
    )
    maker = HabitMaker(world.repository, make_embedder("wordllama"), new_write_id)
    await maker.make(before.scope, [source], LifecycleRules(), day(2), forced=True)
    await ada.say([(9, "I moved to Lisbon.")])
    await ada.restore(await before.exported(tmp_path / "x.jsonl", ada.scope), at_once=at_once)
    [habit] = [m for m in (await ada.everything()).values() if isinstance(m, ProceduralMemory)]
    assert habit.status is MemoryStatus.SUPERSEDED


async def test_a_restoration_that_died_at_any_write_is_gone_on_with(
    world: InProcessMemory, tmp_path: Path
) -> None:
    """Between storing a memory and giving it its place, too: whoever goes on sees what is left."""
    before, ada = Somebody(world), Somebody(world)
    await before.say(JANUARY)
    await ada.say(LATER)
    entries = await before.exported(tmp_path / "x.jsonl", ada.scope)
    await ada.restore(entries)
    expected, writes = await ada.standing(), 0
    while True:
        writes += 1
        again = Somebody(world)
        await again.say(LATER)
        moved = await before.exported(tmp_path / "x.jsonl", again.scope)
        failing = CountingStore(world.repository)
        failing.fails_at = writes
        try:
            await again.restore(moved, repository=failing)
        except StorageUnavailable:
            await again.restore(moved)
            assert await again.standing() == expected
        else:
            break
    assert writes > 6


FUNCTIONAL = [kind for kind in KINDS if kind.functional and kind.ends]
SENTENCES = [
    words.format(value)
    for kind in FUNCTIONAL
    for value in kind.values
    for words in (*kind.states, *kind.ends)
]


@settings(
    max_examples=examples(30),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=4),
    st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=4),
    st.sampled_from([1, 3, 800]),
)
async def test_restoring_before_later_tellings_comes_to_what_telling_in_order_does(
    world: InProcessMemory, tmp_path: Path, earlier: list[str], later: list[str], at_once: int
) -> None:
    """One value of each slot holds at most, and it is the same; restored again, nothing changes."""
    told = [(20 * number, words) for number, words in enumerate((*earlier, *later), start=1)]
    before, ada, in_order = (Somebody(world) for _ in range(3))
    await before.say(told[: len(earlier)])
    await ada.say(told[len(earlier) :])
    await in_order.say(told)
    entries = await before.exported(tmp_path / "x.jsonl", ada.scope)
    await ada.restore(entries, at_once=at_once)
    assert await current(ada) == await current(in_order)
    there = await ada.everything()
    await ada.restore(entries, at_once=at_once)
    assert await ada.everything() == there


async def current(somebody: Somebody) -> dict[tuple[str, ...], str]:
    """What holds in each slot of one value."""
    holding = sorted(
        (timeline_key(m.slot), m.slot.object)
        for m in (await somebody.everything()).values()
        if isinstance(m, SemanticMemory)
        and m.form is MemoryForm.STATEMENT
        and m.slot is not None
        and is_functional(m.slot)
        and not ends_something(m.slot)
        and m.status is MemoryStatus.ACTIVE
    )
    found = {key: [value for _, value in same] for key, same in groupby(holding, lambda o: o[0])}
    assert all(len(values) == 1 for values in found.values()), found
    return {key: values[0] for key, values in found.items()}


def _memory(entry: ExportedMemory) -> AnyMemory:
    return MEMORY_ADAPTER.validate_python(entry.memory)
