"""Forgetting beside consolidation and a late retry, in every order: no forgotten word is left."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from uuid import uuid4

import pytest

from engram.consolidation.apply import PlanWriter
from engram.consolidation.forgetting import Forgetter
from engram.digests.stage import Digests
from engram.digests.versions import Composer
from engram.domain.memories import STORED_TYPES, Evidence, MemoryType, SemanticMemory
from engram.domain.plan import ConsolidationPlan, StoreNote, UpdateNote
from engram.domain.rules import DigestPolicy
from engram.domain.scope import Scope
from engram.embedding.choice import make_embedder
from engram.storage.edge import EdgeRepository
from tests.support.conclusions import EMBEDDER, SCOPE, keep, statement, turn
from tests.support.in_process_memory import InProcessMemory, when
from tests.support.interleaving import Interleaving, retried

BEFORE = ("I live in Lisbon.", "My sister Maria works at Acme.")
FORGOTTEN = "My sister Zenobia is allergic to penicillin, and I work at Umbrella."
TURNS = ("I like green tea.", FORGOTTEN, "My sister Maria lives in Porto.")
WORDS = ("zenobia", "penicillin", "umbrella", "allergic")
NOW = when(9)
POLICY = DigestPolicy()


class Story:
    """One user, who says something and wants a part of it forgotten.

    Args:
        memory: Stores and consolidates.
    """

    def __init__(self, memory: InProcessMemory) -> None:
        self.memory = memory
        self.scope: Scope = memory.somebody()
        embedder = make_embedder("wordllama")
        self.digests = Digests(memory.repository, embedder, lambda: uuid4().hex)
        self.forgetter = Forgetter(memory.repository, lambda: uuid4().hex)
        self.composer = Composer(self.scope, NOW)
        self.ids: tuple[str, ...] = ()

    async def begin(self) -> None:
        """Say it; what was said before is known."""
        await self.memory.hear(self.scope, BEFORE, session="s0")
        await self.consolidate()
        self.ids = await self.memory.hear(self.scope, TURNS, 3, session="s1")

    async def consolidate(self) -> None:
        """A pass, and the digests of all there is, each step until it succeeds."""
        await retried(partial(self.memory.consolidate, self.scope, NOW))
        page = await self.memory.repository.scroll(self.scope, MemoryType.SEMANTIC, limit=500)
        ids = [m.id for m in page.memories]
        await self._digest([*ids, *self.ids], self.ids)

    async def forget(self) -> None:
        """What the workflow of forgetting does, step by step."""
        forgetter = self.forgetter
        plan = await forgetter.plan(self.scope, self.ids[1])
        await retried(partial(forgetter.apply, self.scope, plan))
        while (further := await forgetter.look_again(self.scope, plan)).ids:
            await retried(partial(forgetter.apply, self.scope, further))
            plan = plan.plus(further)
        await self._digest(plan.composed, plan.boxed)

    async def send_again(self) -> None:
        """The application sends its turns once more."""
        await retried(partial(self.memory.hear, self.scope, TURNS, 3, session="s1"))

    async def _digest(self, ids: tuple[str, ...] | list[str], episodes: tuple[str, ...]) -> None:
        digests, composer = self.digests, self.composer
        await retried(lambda: digests.knowledge(composer, ids, ids, POLICY))
        await retried(lambda: digests.sessions(composer, episodes, ("s1",), POLICY))

    async def left(self) -> list[str]:
        """Every place in which a forgotten word, or what was forgotten, still stands."""
        found: list[str] = []
        for kind in STORED_TYPES:
            page = await self.memory.repository.scroll(self.scope, kind, limit=500)
            for memory in page.memories:
                text = memory.model_dump_json().casefold()
                found += [f"{kind}: {word} in {memory.content}" for word in WORDS if word in text]
                if self.ids[1] in text:
                    found.append(f"{kind}: its id in {memory.content}")
        for question in ("Who is Zenobia?", "Where do I work?"):
            hits = await self.memory.recall(self.scope, question, NOW + timedelta(days=1))
            text = " ".join(hit.memory.model_dump_json() for hit in hits).casefold()
            found += [f"answer: {word}" for word in WORDS if word in text]
        return found


async def play(repository: EdgeRepository, seeds: range) -> None:
    """One user after another, each in an order of their own."""
    memory, scheduler = InProcessMemory(repository), Interleaving(repository)
    for seed in seeds:
        story = Story(memory)
        await story.begin()
        work = {"consolidate": story.consolidate, "forget": story.forget}
        if seed % 3 == 0:
            work["send again"] = story.send_again
        order = await scheduler.run(seed, work)
        assert await story.left() == [], (seed, order)
        page = await repository.scroll(story.scope, MemoryType.SEMANTIC, limit=500)
        kept = [m for m in page.memories if isinstance(m, SemanticMemory)]
        assert any("Lisbon" in m.content for m in kept), seed


async def test_no_order_of_forgetting_and_writing_a_plan_leaves_a_forgotten_word(
    repository: EdgeRepository,
) -> None:
    """Sixty orders of applying a plan that was made before, which quotes the turn thrice."""
    scheduler = Interleaving(repository)
    writer = PlanWriter(repository, EMBEDDER, lambda: uuid4().hex)
    forgetter = Forgetter(repository, lambda: uuid4().hex)
    for seed in range(60):
        one, two = turn(f"tea {seed}"), turn(f"Zenobia {seed}")
        known = statement(f"The user is well, for the {seed}th time.", one)
        await keep(repository, [one, two, known])
        quote = Evidence(episode_id=two.id, words=two.content)
        new = [
            statement(f"{words} {seed}.", *sources).model_copy(update={"evidence": (quote,)})
            for words, sources in (("Zenobia came", (two,)), ("Zenobia stayed", (one, two)))
        ]
        again = UpdateNote(
            why="again", memory_id=known.id, add_sources=(two.id,), add_evidence=(quote,)
        )
        notes = (StoreNote(why="said", memory=memory) for memory in new)
        plan = ConsolidationPlan(actions=(*notes, again))

        async def forget(of: str = two.id) -> None:
            found = await forgetter.plan(SCOPE, of)
            while found.ids:
                await forgetter.apply(SCOPE, found)
                found = await forgetter.look_again(SCOPE, found)

        order = await scheduler.run(
            seed, {"write": partial(writer.write, SCOPE, plan), "forget": forget}
        )
        ids = [one.id, two.id, known.id, *(memory.id for memory in new)]
        left = await repository.get(SCOPE, ids)
        # What the plan confirmed with the turn may go with it: the other turn is read again.
        assert {one.id} <= left.keys() <= {one.id, known.id}, (seed, order)
        assert not any("Zenobia" in m.model_dump_json() for m in left.values()), (seed, order)


async def test_no_order_of_forgetting_and_consolidating_leaves_a_forgotten_word(
    repository: EdgeRepository,
) -> None:
    """Six orders, stopped at each call of the engine; a late retry in every third."""
    await play(repository, range(6))


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_five_hundred_orders_leave_no_forgotten_word(repository: EdgeRepository) -> None:
    """The same, five hundred times."""
    await play(repository, range(100, 600))
