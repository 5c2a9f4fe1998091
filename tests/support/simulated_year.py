"""A year of one user's life: done to the real parts, and told to a plain account."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import uuid4

from temporalio.testing import WorkflowEnvironment

from engram.agents.asking import Rules
from engram.contracts.session import EncodeCall, EncodeRequest
from engram.domain.confidence import Confidence, ExtractionMethod
from engram.domain.memories import AnyMemory, MemoryType
from engram.domain.scope import Scope
from engram.domain.turns import Turn
from engram.embedding.choice import make_embedder
from engram.lifecycle.accesses import AccessLog
from engram.lifecycle.decisions import confirm, protect
from engram.lifecycle.due import review_stamp
from engram.ports import NewMemory
from engram.settings import Settings
from engram.storage.edge import EdgeRepository
from engram.storage.updates import update_memories
from engram.temporal.gateway import WorkflowGateway
from engram.temporal.passes import PassRunner
from engram.workflows.worker import running_workers
from tests.support.edge_stores import borrowed_store
from tests.support.lifecycle_workers import ATTRIBUTES, knowledge
from tests.support.reference_lifecycle import ReferenceLife
from tests.support.stores import worker_settings
from tests.support.workers import time_skipping

WEEKS = 52
SCOPE = Scope.of("default", "ada")
LEAVING = ("retention", "speculation")


def fresh() -> str:
    """A write id."""
    return uuid4().hex


@dataclass
class Year:
    """What happens to the user, done to the real parts and told to the plain account."""

    environment: WorkflowEnvironment
    store: EdgeRepository
    settings: Settings
    dice: random.Random = field(default_factory=lambda: random.Random(1))  # noqa: S311 - a script
    lives: dict[str, ReferenceLife] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    left: int = 0
    points: int = 0

    def __post_init__(self) -> None:
        self.rules = self.settings.lifecycle_rules
        self.gateway = WorkflowGateway(self.environment.client, self.settings)
        self.passes = PassRunner(self.environment.client, self.settings)
        self.log = AccessLog(
            self.store,
            self.rules,
            instance_id="one",
            new_write_id=fresh,
            interval=timedelta(days=1),
            most=100_000,
        )

    async def week(self, number: int) -> None:
        """Seven days: what happens on the first, then silence, then a pass."""
        now = await self.environment.get_current_time()
        talking = number < 20 or number > 40  # In between the user is silent.
        if talking and number % 3 == 0:
            await self.say(number, now)
        if talking and number % 2 == 0:
            await self.learn(number, now)
        if talking:
            await self.recall(now)
        if number % 8 == 7:
            await self.by_hand(number, now)
        await self.environment.sleep(timedelta(days=7))
        now = await self.environment.get_current_time()
        report = await self.passes.decay(SCOPE)
        for life in self.lives.values():
            life.reviewed(now)
        ours = [change for change in report.changes if change.memory_id in self.lives]
        self.left += sum(change.rule in LEAVING for change in ours)
        # Nothing is erased by time: there are never fewer points than before.
        counts = [await self.store.count(SCOPE, kind) for kind in MemoryType]
        assert sum(counts) >= self.points
        self.points = sum(counts)

    async def say(self, number: int, now: datetime) -> None:
        """Two turns, through a session that ends."""
        turns = tuple(
            Turn(
                message_id=f"{number}-{n}",
                role="user",
                content=f"Nothing much, {number} {n}.",
                timestamp=now,
            )
            for n in range(2)
        )
        request = EncodeRequest(calls=(EncodeCall(turns=turns),))
        with self.environment.auto_time_skipping_disabled():
            reply = await self.gateway.encode(SCOPE, f"w{number}", request)
            await self.gateway.end_session(SCOPE, f"w{number}")
        for turn in reply.outcomes[0].turns:
            stored = (await self.store.get(SCOPE, [turn.episode_id]))[turn.episode_id]
            self.lives[turn.episode_id] = ReferenceLife("episodic", stored.created_at)
            self.said.append(turn.episode_id)

    async def learn(self, number: int, now: datetime) -> None:
        """A conclusion, sure or speculative."""
        sure = self.dice.choice((0.3, 0.9))
        confidence = Confidence(
            method=ExtractionMethod.EXTRACTED, extraction=sure, last_confirmed=now
        )
        memory = knowledge(
            SCOPE,
            f"The user knows thing {number}",
            now,
            confidence=confidence,
            source_episode_ids=(self.said[-1],),
        )
        (vector,) = await make_embedder("wordllama").embed_documents([memory.indexed_text])
        await self.store.insert(SCOPE, [NewMemory(memory, vector)])
        self.lives[memory.id] = ReferenceLife("semantic", now, extraction=sure)

    async def recall(self, now: datetime) -> None:
        """Some of what answers is recalled."""
        answering = [key for key, life in self.lives.items() if life.status == "active"]
        chosen = self.dice.sample(answering, min(3, len(answering)))
        found = await self.store.get(SCOPE, chosen)
        self.log.note(SCOPE, list(found.values()), now)
        await self.log.flush()
        for key in chosen:
            self.lives[key].recalled(now)

    async def by_hand(self, number: int, now: datetime) -> None:
        """The user confirms a conclusion, or protects one, wherever it is in its life."""
        known = [key for key, life in self.lives.items() if life.kind == "semantic"]
        # In turn: dice could leave one of them out.
        key, action = self.dice.choice(known), (confirm, protect)[number // 8 % 2]

        def change(memory: AnyMemory) -> AnyMemory:
            return action(memory, now, self.rules).memory

        await update_memories(self.store, SCOPE, [key], change, new_write_id=fresh)
        if action is confirm:
            self.lives[key].confirm(now)
        else:
            self.lives[key].protect()


@asynccontextmanager
async def new_year() -> AsyncIterator[Year]:
    """A user, everything that works for them, and a server that skips time."""
    settings = worker_settings()
    async with (
        borrowed_store(review_stamp(settings.lifecycle_rules)) as store,
        time_skipping(ATTRIBUTES) as environment,
        running_workers(
            environment.client,
            store,
            make_embedder("wordllama"),
            Rules(),
            settings,
            new_write_id=fresh,
        ),
    ):
        yield Year(environment, store, settings)
