"""Whatever is said, links lead both ways, or nowhere: summaries come and go, memories fill up."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import uuid4

import pytest
import structlog
from temporalio.testing import ActivityEnvironment

from engram.activities.models import ConsolidationModelActivitiesImpl
from engram.agents.asking import Rules
from engram.agents.extraction import ExtractionAgent
from engram.agents.linking import LinkingAgent
from engram.consolidation.apply import PlanWriter
from engram.consolidation.forgetting import Forgetter
from engram.contracts.consolidation import LinkInput, LinkOutput
from engram.contracts.messages import Population
from engram.domain.memories import (
    AnyMemory,
    DerivedMemory,
    Episode,
    Link,
    LinkKind,
    MemoryForm,
    MemoryStatus,
    MemoryType,
    SemanticMemory,
)
from engram.domain.plan import ConsolidationPlan, LinkGraph
from engram.domain.scope import Scope
from engram.embedding.choice import make_embedder
from engram.lifecycle.checks import Finding, Problem
from engram.lifecycle.decisions import rulebook
from engram.lifecycle.links import MAX_LINKS
from engram.lifecycle.repairs import Repairer, validate
from engram.ports import MemoryRepository
from engram.storage.updates import update_memories
from tests.support.conclusions import keep
from tests.support.edge_stores import borrowed_store
from tests.support.in_process_memory import START, InProcessMemory
from tests.support.lifecycle_memories import RULES, day
from tests.support.lifecycle_workers import knowledge

ADA = Scope.of("default", "ada")
THINGS = (
    "tea bread chess jazz hiking pottery sailing cycling opera gardening databases compilers "
    "poems kites stamps"
).split()


def write_id() -> str:
    """No other write has it."""
    return uuid4().hex


async def _nothing(_: float) -> None:
    """Nobody else writes."""


async def problems(
    repository: MemoryRepository,
    scope: Scope,
    now: datetime,
    rest: Callable[[float], Awaitable[None]] = _nothing,
) -> list[Finding]:
    """What validating says, with what happens while it rests."""
    book = rulebook(RULES, scope.namespace)
    return (await validate(repository, scope, Population.REAL, now, book, rest))[1]


async def known(repository: MemoryRepository, scope: Scope) -> list[SemanticMemory]:
    """All that was concluded."""
    page = await repository.scroll(scope, MemoryType.SEMANTIC, limit=500)
    return [m for m in page.memories if isinstance(m, SemanticMemory)]


async def likes(memory: InProcessMemory, scope: Scope, things: list[str], moment: int) -> datetime:
    """Somebody likes these things, all said at one moment, and it is consolidated."""
    now = START + timedelta(minutes=moment)
    said = [f"I like {thing}, as I said at {moment}." for thing in things]
    await memory.hear(scope, said, 20 * moment, at=now)
    await memory.consolidate(scope, now)
    return now


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
async def test_a_memory_is_sound_after_any_load(seed: int) -> None:
    """Repeated, added and withdrawn likes: nothing is wrong, no summary says what the last did."""
    chance = random.Random(seed)  # noqa: S311 - what is said, and nothing secret
    told: Counter[str] = Counter()
    async with borrowed_store() as repository:
        memory = InProcessMemory(repository)
        for moment in range(10):
            things = chance.choices(THINGS, k=chance.randint(1, 5))
            told.update(things)
            now = await likes(memory, ADA, things, moment)
            if moment % 6 == 5:
                no_more = f"I don't like {things[0]} any more."
                await memory.hear(ADA, [no_more], 20 * moment + 10, at=now)
        found = await known(repository, ADA)
        assert await problems(repository, ADA, now) == []
    made = [m for m in found if m.form is MemoryForm.SUMMARY]
    contents = [m.content for m in sorted(made, key=lambda m: m.generation)]
    assert len(contents) > 3
    assert all(before != after for before, after in pairwise(contents))
    outdated = {m.id for m in made if m.status is MemoryStatus.SUPERSEDED}
    assert len(outdated) == len(made) - 1
    for one in found:
        assert outdated.isdisjoint(one.related_ids)
        if one.form is MemoryForm.STATEMENT and one.slot is not None:
            # Each telling, each linking pass, and twice each summary: it comes, and it goes.
            times = told[one.slot.object] + one.consolidation_passes + 2 * len(made)
            assert one.revision <= times


async def test_which_notes_are_summed_up_hangs_on_nothing_else() -> None:
    """More things than a summary names, some learnt at one moment, told again: it stays."""
    async with borrowed_store() as repository:
        memory = InProcessMemory(repository)
        await likes(memory, ADA, THINGS[:4], 0)
        await likes(memory, ADA, THINGS[4:], 1)
        before = {m.id for m in await known(repository, ADA) if m.form is MemoryForm.SUMMARY}
        for moment, thing in enumerate(THINGS[:6], start=2):
            await likes(memory, ADA, [thing], moment)
        after = {m.id for m in await known(repository, ADA) if m.form is MemoryForm.SUMMARY}
    assert after == before


async def test_a_summary_that_holds_again_is_led_to_again() -> None:
    """Forgetting what only the newest summary names brings back the one before, both ways."""
    async with borrowed_store() as repository:
        memory = InProcessMemory(repository)
        await likes(memory, ADA, THINGS[:5], 0)
        now = await likes(memory, ADA, THINGS[5:6], 1)
        newest = next(m for m in await known(repository, ADA) if THINGS[5] in m.content)
        forgetter = Forgetter(repository, write_id)
        plan = await forgetter.plan(ADA, newest.id)
        for _ in range(2):
            await forgetter.apply(ADA, plan)
        assert await problems(repository, ADA, now) == []
        summaries = [m for m in await known(repository, ADA) if m.form is MemoryForm.SUMMARY]
    (standing,) = [m.content for m in summaries if m.status is MemoryStatus.ACTIVE]
    assert THINGS[4] in standing
    assert THINGS[5] not in standing


async def test_a_link_to_a_summary_that_is_no_more_is_mended() -> None:
    """A note that fell out of the summary led to it on, as an earlier version left it."""
    async with borrowed_store() as repository:
        memory = InProcessMemory(repository)
        await likes(memory, ADA, THINGS[:5], 0)
        await likes(memory, ADA, THINGS[5:6], 1)
        first = next(m for m in await known(repository, ADA) if m.superseded_by is not None)
        note = next(m for m in await known(repository, ADA) if THINGS[0] in m.content)
        await _lead(repository, note, first)
        (found,) = await problems(repository, ADA, day(1))
        assert (found.problem, found.memory_id) == (Problem.BROKEN_LINK, note.id)
        repairer = Repairer(repository, rulebook(RULES, ADA.namespace), write_id)
        assert await repairer.repair(ADA, note.id, day(1)) == [found]
        assert await problems(repository, ADA, day(1)) == []


async def test_what_is_half_written_is_no_fault() -> None:
    """A link whose other half follows, and one of two equal conclusions that is retired then."""
    one, other, again = (
        knowledge(ADA, words, day(0)) for words in ("It rains", "It is wet", "It rains")
    )
    again = again.model_copy(update={"id": "00000000-0000-4000-8000-000000000000"})
    async with borrowed_store() as repository:
        await keep(repository, [one, other, again])
        await _lead(repository, other, one, LinkKind.ENTITY)
        staying = await problems(repository, ADA, day(1))

        async def finish(_: float) -> None:
            await _lead(repository, one, other, LinkKind.ENTITY)
            await repository.delete(ADA, MemoryType.SEMANTIC, [again.id])

        left = await problems(repository, ADA, day(1), finish)
    half = {Problem.ONE_WAY_LINK, Problem.DUPLICATE}
    assert half <= {one.problem for one in staying}
    assert half.isdisjoint(one.problem for one in left)
    # Nobody kept their turns, which is a fault that stays.
    assert {finding.memory_id for finding in left} == {one.id, other.id}


# --- a memory that has no room for a further link


def full(memory: SemanticMemory, others: int = MAX_LINKS) -> SemanticMemory:
    """With links to as many others."""
    links = tuple(
        Link(target_id=f"00000000-0000-4000-8000-{n:012}", first_seen=day(0), last_seen=day(0))
        for n in range(others)
    )
    return memory.model_copy(update={"links": links})


def link(first: SemanticMemory, second: SemanticMemory) -> ConsolidationPlan:
    """A plan that links two memories."""
    linking = LinkGraph(why="told", first_id=first.id, second_id=second.id, kind=LinkKind.ENTITY)
    return ConsolidationPlan(actions=(linking,))


def between(memories: list[SemanticMemory], *ids: str) -> list[str]:
    """Which of these have a link to another one of them."""
    return [m.id for m in memories if m.id in ids and not set(ids).isdisjoint(m.related_ids)]


async def test_a_link_that_one_end_has_no_room_for_is_at_neither() -> None:
    """It is counted, and logged without words; also where an earlier version left a half of it."""
    one, other = (knowledge(ADA, words, day(0)) for words in ("It rains", "It is wet"))
    async with borrowed_store() as repository:
        await keep(repository, [full(one), other])
        writer = PlanWriter(repository, make_embedder("wordllama"), write_id)
        with structlog.testing.capture_logs() as lines:
            written = await writer.write(ADA, link(one, other))
        assert (written.links, written.refused_links) == (0, 1)
        assert [line["links"] for line in lines if line["log_level"] == "warning"] == [1]
        assert between(await known(repository, ADA), one.id, other.id) == []
        await _lead(repository, other, one, LinkKind.ENTITY)
        assert Problem.ONE_WAY_LINK in {f.problem for f in await problems(repository, ADA, day(1))}
        await writer.write(ADA, link(one, other))
        assert between(await known(repository, ADA), one.id, other.id) == []


async def test_a_link_names_the_instructions_by_which_a_model_found_it() -> None:
    """At both ends; a rule that finds it again leaves them, a later model gives its own."""
    one, other = (knowledge(ADA, words, day(0)) for words in ("It rains", "It is wet"))

    async def named(version: str | None) -> set[str | None]:
        plan = link(one, other)
        found = plan.actions[0].model_copy(update={"instructions_version": version})
        await writer.write(ADA, plan.model_copy(update={"actions": (found,)}))
        return {edge.instructions_version for m in await known(repository, ADA) for edge in m.links}

    async with borrowed_store() as repository:
        await keep(repository, [one, other])
        writer = PlanWriter(repository, make_embedder("wordllama"), write_id)
        assert await named("linking-3") == {"linking-3"}
        assert await named(None) == {"linking-3"}
        assert await named("linking-4") == {"linking-4"}


async def test_room_that_somebody_else_took_meanwhile_leaves_no_half() -> None:
    """The last place is taken between reading and writing: the link is at neither end."""
    one, other = (knowledge(ADA, words, day(0)) for words in ("It rains", "It is wet"))
    async with borrowed_store() as repository:
        await keep(repository, [full(one, MAX_LINKS - 1), other])
        taken: Any = _Meanwhile(repository, full(one))
        writer = PlanWriter(taken, make_embedder("wordllama"), write_id)
        written = await writer.write(ADA, link(one, other))
        assert (written.links, written.refused_links) == (0, 1)
        assert between(await known(repository, ADA), one.id, other.id) == []


async def test_repairing_ends_a_link_that_the_other_end_has_no_room_for() -> None:
    """It is found, it goes where it is, and the full memory stays as it is."""
    one, other = (knowledge(ADA, words, day(0)) for words in ("It rains", "It is wet"))
    async with borrowed_store() as repository:
        await keep(repository, [full(one), other])
        await _lead(repository, other, one)
        repairer = Repairer(repository, rulebook(RULES, ADA.namespace), write_id)
        mended = await repairer.repair(ADA, other.id, day(1))
        assert Problem.ONE_WAY_LINK in {finding.problem for finding in mended}
        now = {m.id: m for m in await known(repository, ADA)}
        assert (now[other.id].links, len(now[one.id].links)) == ((), MAX_LINKS)


class _Meanwhile:
    """A store in which somebody writes a memory right after it was first read."""

    def __init__(self, inner: MemoryRepository, after: SemanticMemory) -> None:
        self._inner, self._after, self._done = inner, after, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def get(self, *args: Any, **more: Any) -> Any:
        """As the store has it; then it changes."""
        found = await self._inner.get(*args, **more)
        if self._after.id in found and not self._done:
            self._done = True
            links = self._after.links
            await update_memories(
                self._inner,
                ADA,
                [self._after.id],
                lambda memory: memory.model_copy(update={"links": links}),
                new_write_id=write_id,
            )
        return found


async def _lead(
    repository: MemoryRepository,
    memory: SemanticMemory,
    target: SemanticMemory,
    kind: LinkKind = LinkKind.BELONGS_TO,
) -> None:
    """Let a memory have a link that the target does not know."""
    edge = Link(target_id=target.id, kind=kind, first_seen=day(0), last_seen=day(0))

    def change(before: AnyMemory) -> AnyMemory | None:
        assert isinstance(before, DerivedMemory)
        return before.model_copy(update={"links": (*before.links, edge)})

    await update_memories(repository, ADA, [memory.id], change, new_write_id=write_id)


# --- answers of a linking pass, written together


def _turn(memory: SemanticMemory) -> Episode:
    """The turn that a memory was drawn from."""
    return Episode(
        id=memory.source_episode_ids[0],
        namespace=ADA.namespace,
        user_id=ADA.user_id,
        content=memory.content,
        known_at=memory.known_at,
        created_at=memory.created_at,
        session_id="s1",
        role="user",
        timestamp=memory.known_at,
        message_id=memory.content,
    )


async def _linked_by_rules(
    monkeypatch: pytest.MonkeyPatch, *, together: bool
) -> tuple[list[tuple[SemanticMemory, frozenset[Link]]], int, LinkOutput]:
    """What a pass of small requests leaves, how often memories were written, and its answer."""
    words = [f"The user likes {thing} with Mira {n}" for n, thing in enumerate(THINGS)]
    told = [knowledge(ADA, said, day(n), entities=("Mira",)) for n, said in enumerate(words)]
    # The same words in another form: one of both is retired, which the next request must see.
    told.insert(4, knowledge(ADA, "The user liked bread with Mira 1", day(1), entities=("Mira",)))
    embedder = make_embedder("wordllama")
    async with borrowed_store() as repository:
        await keep(repository, [*told, *(_turn(memory) for memory in told)])
        activities = ConsolidationModelActivitiesImpl(
            repository,
            embedder,
            ExtractionAgent(Rules()),
            LinkingAgent(Rules()),
            writer=PlanWriter(repository, embedder, write_id),
        )
        asked = LinkInput(
            scope=ADA,
            now=day(30),
            memory_ids=tuple(memory.id for memory in told),
            at_once=3,
            fresh_ids=(told[0].id,),
            candidates_per_memory=4,
            operation="linking-1",
        )
        with monkeypatch.context() as patched:
            if not together:
                patched.setattr("engram.activities.models._decides", lambda _: True)
            environment = ActivityEnvironment()
            limit = timedelta(minutes=5)
            environment.info = replace(environment.info, start_to_close_timeout=limit)
            answer = await environment.run(activities.link, asked)
        left = await known(repository, ADA)
    drop = {"write_id": "", "revision": 0}
    links = {m.id: frozenset(m.links) for m in left}
    return (
        [(m.model_copy(update={**drop, "links": ()}), links[m.id]) for m in left],
        sum(memory.revision for memory in left),
        answer,
    )


async def test_answers_that_are_written_together_leave_what_one_after_another_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same memories, links and counts, by fewer writes."""
    one_by_one, writes, answer = await _linked_by_rules(monkeypatch, together=False)
    left, fewer, same = await _linked_by_rules(monkeypatch, together=True)
    assert left == one_by_one
    assert any(memory.status is MemoryStatus.SUPERSEDED for memory, _ in left)
    assert fewer < writes * 0.8
    assert answer.applied is not None
    assert same.applied == answer.applied
    assert answer.applied.links
