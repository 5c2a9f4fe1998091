"""A review waits for a person, reminds, follows the setting in the end, and outlives changes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from temporalio.client import WorkflowHandle, WorkflowUpdateFailedError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Interceptor, Replayer, Worker

from engram.agents.asking import Rules
from engram.consolidation.disputes import DisputeSettler
from engram.contracts import names
from engram.contracts.reviews import (
    AnswerReview,
    ReviewEnd,
    ReviewNote,
    ReviewOutcome,
    review_id_of,
)
from engram.domain.confidence import Confidence, ExtractionMethod, Verification
from engram.domain.memories import AnyMemory, MemoryStatus, SemanticMemory
from engram.domain.scope import Scope
from engram.embedding.choice import make_embedder
from engram.lifecycle.due import review_stamp
from engram.ports import NewMemory
from engram.settings import Settings
from engram.storage.edge import EdgeRepository
from engram.storage.updates import update_memories
from engram.temporal.reviews import ReviewGateway
from engram.workflows.reviews import DisputeReviewWorkflow
from engram.workflows.worker import WORKFLOWS, running_workers, sandbox_runner
from tests.replay.changed import SleepsOverIt
from tests.support.clock import NOW
from tests.support.consolidation_workers import Faults
from tests.support.edge_stores import borrowed_store
from tests.support.lifecycle_workers import ATTRIBUTES, knowledge
from tests.support.stores import worker_settings
from tests.support.workers import time_skipping

ADA = Scope.of("default", "ada")


def told(words: str, days: float, other: str, episodes: int = 1) -> SemanticMemory:
    """A value that another one contradicts."""
    confidence = Confidence(
        method=ExtractionMethod.EXTRACTED,
        extraction=0.9,
        last_confirmed=NOW,
        contradictions=1,
        supporting_episodes=episodes,
        verification=Verification.DISPUTED,
    )
    at = NOW - timedelta(days=days)
    return knowledge(ADA, words, at, confidence=confidence, disputed_with=(other,))


LISBON_ID = knowledge(ADA, "The user lives in Lisbon.", NOW).id
PORTO_ID = knowledge(ADA, "The user lives in Porto.", NOW).id
# Lisbon is the newest; Porto is said by more turns.
LISBON = told("The user lives in Lisbon.", 1, PORTO_ID)
PORTO = told("The user lives in Porto.", 2, LISBON_ID, episodes=3)
PAIR = tuple(sorted((LISBON_ID, PORTO_ID)))


@dataclass
class Waiting:
    """A dispute in a store, a server that skips time, and workers that come and go."""

    environment: WorkflowEnvironment
    store: EdgeRepository
    settings: Settings

    @asynccontextmanager
    async def workers(self) -> AsyncIterator[None]:
        """Work, until left."""
        async with running_workers(
            self.environment.client,
            self.store,
            make_embedder("wordllama"),
            Rules(),
            self.settings,
            new_write_id=lambda: uuid4().hex,
        ):
            yield

    async def opened(self) -> WorkflowHandle[Any, Any]:
        """A review of the dispute, opened twice."""
        reviews = ReviewGateway(self.environment.client, self.settings)
        for _ in range(2):
            await reviews.open(ADA, PAIR)
        workflow_id = names.review_workflow_id(ADA, review_id_of(PAIR))
        return self.environment.client.get_workflow_handle(workflow_id, result_type=ReviewOutcome)

    async def days(self, number: float) -> None:
        """Let so many days pass."""
        await self.environment.sleep(timedelta(days=number))

    async def now_is(self, memory_id: str) -> SemanticMemory:
        """A memory as it is stored."""
        found = (await self.store.get(ADA, [memory_id]))[memory_id]
        assert isinstance(found, SemanticMemory)
        return found


@pytest.fixture(autouse=True)
def _nothing_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server that skips time hands tasks to a worker that ended, where that cached runs."""
    monkeypatch.setattr("engram.workflows.worker._CACHED", 0)


@asynccontextmanager
async def waiting(**rules: Any) -> AsyncIterator[Waiting]:
    """Lisbon and Porto in dispute."""
    settings = worker_settings(schedules=False, reviews=rules)
    async with AsyncExitStack() as stack:
        environment = await stack.enter_async_context(time_skipping(ATTRIBUTES))
        stamp = review_stamp(settings.lifecycle_rules)
        store = await stack.enter_async_context(borrowed_store(stamp))
        vectors = await make_embedder("wordllama").embed_documents(
            [LISBON.indexed_text, PORTO.indexed_text]
        )
        new = [NewMemory(m, v) for m, v in zip((LISBON, PORTO), vectors, strict=True)]
        await store.insert(ADA, new)
        yield Waiting(environment, store, settings)


@pytest.mark.parametrize(
    ("default", "kept"),
    [("keep_newest", LISBON_ID), ("keep_best_supported", PORTO_ID), ("keep_both_disputed", None)],
)
async def test_left_alone_it_reminds_and_follows_the_setting(
    default: str, kept: str | None
) -> None:
    """After five days it was reminded of each day, decided by default, and is closed."""
    async with waiting(default=default) as here, here.workers():
        review = await here.opened()
        await here.days(5)
        outcome: ReviewOutcome = await review.result()
        assert (outcome.ended, outcome.reminders) == (ReviewEnd.DEFAULTED, 3)
        assert outcome.kept == (() if kept is None else (kept,))
        for one in PAIR:
            memory = await here.now_is(one)
            if kept is None:
                assert memory == (LISBON if one == LISBON_ID else PORTO).model_copy(
                    update={
                        "review_at": memory.review_at,
                        "policy_fingerprint": memory.policy_fingerprint,
                    }
                )
                continue
            assert (memory.disputed_with, memory.refuted_at is None) == ((), one == kept)
            stands = MemoryStatus.ACTIVE if one == kept else MemoryStatus.SUPERSEDED
            assert memory.status is stands
        if kept is not None:
            confidence = (await here.now_is(kept)).confidence
            # Nobody has confirmed it.
            assert confidence.verification is Verification.UNCHECKED
            assert confidence.contradictions == 0


async def test_answered_on_day_three_by_a_signal_and_with_workers_that_come_and_go() -> None:
    """A plain text is enough; one that is none of those allowed changes nothing."""
    async with waiting() as here:
        async with here.workers():
            review = await here.opened()
            await here.days(2.5)
        async with here.workers():
            await review.signal(names.KEEP_SIGNAL, "Porto")
            note = await review.query(names.REVIEW_QUERY, result_type=ReviewNote)
            assert (note.memory_ids, note.reminders) == (PAIR, 2)
            await here.days(0.5)
            await review.signal(names.KEEP_SIGNAL, PORTO_ID)
            outcome: ReviewOutcome = await review.result()
        assert (outcome.ended, outcome.kept) == (ReviewEnd.ANSWERED, (PORTO_ID,))
        porto, lisbon = await here.now_is(PORTO_ID), await here.now_is(LISBON_ID)
        assert porto.confidence.verification is Verification.USER_CONFIRMED
        assert (lisbon.superseded_by, lisbon.disputed_with) == (PORTO_ID, ())
        opened = note.opened_at
        assert lisbon.refuted_at is not None
        assert timedelta(days=3) <= lisbon.refuted_at - opened < timedelta(days=3.1)


async def test_it_answers_after_sixty_days_and_a_deployment_that_changed_the_workflow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What began under the version before goes on under the next one, and its history replays."""
    changed = tuple(SleepsOverIt if w is DisputeReviewWorkflow else w for w in WORKFLOWS)
    async with waiting(wait_days=90, remind_days=20) as here:
        async with here.workers():
            review = await here.opened()
            await here.days(30)
        monkeypatch.setattr("engram.workflows.worker.WORKFLOWS", changed)
        async with here.workers():
            # Past the third reminder, which is due on the sixtieth day itself.
            await here.days(30.5)
            outcome: ReviewOutcome = await review.execute_update(
                names.ANSWER_REVIEW_UPDATE, AnswerReview(keep="newest"), result_type=ReviewOutcome
            )
            assert await review.result() == outcome
        assert (outcome.ended, outcome.kept) == (ReviewEnd.ANSWERED, (LISBON_ID,))
        assert outcome.reminders == 3
        replayer = Replayer(
            workflows=list(changed),
            data_converter=here.environment.client.data_converter,
            workflow_runner=sandbox_runner(),
        )
        await replayer.replay_workflow(await review.fetch_history())


async def test_what_was_stopped_half_way_is_finished() -> None:
    """One end refuted, the other not told: the review writes what is missing, and closes."""
    async with waiting() as here, here.workers():
        review = await here.opened()
        await here.days(0.1)
        settler = DisputeSettler(
            here.store,
            here.settings.lifecycle_rules,
            lambda: uuid4().hex,
            make_embedder("wordllama"),
        )
        await settler.refute(ADA, (PORTO_ID,), LISBON_ID, NOW)
        assert (await here.now_is(LISBON_ID)).disputed_with == (PORTO_ID,)
        await review.signal(names.LOOK_SIGNAL, "settled")
        outcome: ReviewOutcome = await review.result()
        assert (outcome.ended, outcome.kept) == (ReviewEnd.SETTLED, (LISBON_ID,))
        lisbon = await here.now_is(LISBON_ID)
        assert (lisbon.disputed_with, lisbon.supersedes) == ((), (PORTO_ID,))


@pytest.mark.parametrize("left", [MemoryStatus.EXPIRED, MemoryStatus.ARCHIVED])
async def test_what_holds_no_more_is_not_kept_in_place_of_what_does(left: MemoryStatus) -> None:
    """The newest has left: nothing is refuted for it; what came to its end ends the review."""
    async with waiting() as here, here.workers():
        review = await here.opened()

        def leave(memory: AnyMemory) -> AnyMemory:
            return memory.model_copy(update={"status": left})

        await update_memories(here.store, ADA, [LISBON_ID], leave, new_write_id=lambda: uuid4().hex)
        expired = left is MemoryStatus.EXPIRED
        await here.days(1.1 if expired else 5)
        outcome: ReviewOutcome = await review.result()
        assert outcome.ended is (ReviewEnd.SETTLED if expired else ReviewEnd.DEFAULTED)
        assert outcome.kept == (PORTO_ID,)
        lisbon, porto = await here.now_is(LISBON_ID), await here.now_is(PORTO_ID)
        assert (porto.status, porto.refuted_at) == (MemoryStatus.ACTIVE, None)
        assert porto.disputed_with == lisbon.disputed_with == ()
        assert (lisbon.status is left, lisbon.refuted_at is None) == (expired, expired)


async def test_a_memory_that_is_gone_ends_the_review() -> None:
    """At the next look there is nothing to settle."""
    async with waiting() as here, here.workers():
        review = await here.opened()
        await here.store.delete(ADA, LISBON.type, (LISBON_ID,))
        await here.days(1.1)
        assert (await review.result()).ended is ReviewEnd.FORGOTTEN


async def test_an_answer_after_an_outage_is_looked_at_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who answered during the outage is told of it; who answers then does not wait for an hour."""
    faults = Faults(fatal={names.LOOK_AT_DISPUTE_ACTIVITY})

    def faulty(*args: Any, interceptors: Sequence[Interceptor] = (), **more: Any) -> Worker:
        return Worker(*args, interceptors=[*interceptors, faults], **more)

    monkeypatch.setattr("engram.workflows.worker.Worker", faulty)
    async with waiting() as here, here.workers():
        review = await here.opened()
        answer = AnswerReview(keep=PORTO_ID)
        with pytest.raises(WorkflowUpdateFailedError):
            await review.execute_update(names.ANSWER_REVIEW_UPDATE, answer)
        outcome = await review.execute_update(
            names.ANSWER_REVIEW_UPDATE, answer, result_type=ReviewOutcome
        )
        assert (outcome.ended, outcome.kept) == (ReviewEnd.ANSWERED, (PORTO_ID,))
        refuted = (await here.now_is(LISBON_ID)).refuted_at
        opened = (await review.query(names.REVIEW_QUERY, result_type=ReviewNote)).opened_at
        assert refuted is not None
        assert refuted - opened < timedelta(minutes=30)
