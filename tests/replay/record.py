"""Record new histories for the replay tests: uv run python -m tests.replay.record NAME.

Plays the scenario against a development server and writes its histories to
tests/replay/histories/NAME-*.json. A history that is there is never written
again: it stands for workflows that run somewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic_ai.exceptions import ModelHTTPError, UnexpectedModelBehavior
from pydantic_ai.models import Model
from temporalio import activity
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowUpdateFailedError,
)
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.exceptions import ApplicationError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Interceptor, Worker

from engram.activities.removal import ErasureActivitiesImpl
from engram.agents.asking import Rules
from engram.consolidation.disputes import DisputeSettler
from engram.consolidation.turns import TurnStore
from engram.contracts import names
from engram.contracts.attributes import attributes
from engram.contracts.calls import ConsolidateArgs
from engram.contracts.consolidation import (
    ConsolidationPolicy,
    ConsolidationReport,
    ConsolidationState,
)
from engram.contracts.importing import (
    FinishImport,
    ImportedTurn,
    ImportKind,
    ImportTally,
    StoreBatchInput,
)
from engram.contracts.lifecycle import DuePosition, PassKind
from engram.contracts.messages import Population
from engram.contracts.removal import ErasureInput
from engram.contracts.reviews import AnswerReview, review_id_of
from engram.contracts.session import (
    ConsolidationRequest,
    EncodeCall,
    EncodeRequest,
    StoreTurnsInput,
)
from engram.digests.stage import Digests
from engram.digests.versions import Composer
from engram.domain.memories import AnyMemory, MemoryStatus, MemoryType
from engram.domain.scope import Scope
from engram.domain.turns import Turn
from engram.embedding.choice import make_embedder
from engram.errors import EngramError, StorageError, StorageUnavailable, UnknownFailure
from engram.lifecycle import promotion_pass, review
from engram.lifecycle.accesses import Recalls, accessed
from engram.lifecycle.due import review_stamp
from engram.ports import MemoryRepository, NewMemory
from engram.settings import Settings
from engram.storage.updates import update_memories
from engram.temporal.gateway import WorkflowGateway
from engram.temporal.importing import ImportGateway
from engram.temporal.passes import PassRunner, maintenance_state
from engram.temporal.reviews import ReviewGateway
from engram.transfer.batches import batch
from engram.transfer.store import TurnImporter
from engram.workflows import worker as workers
from engram.workflows.consolidation import AskedConsolidationWorkflow
from engram.workflows.lifecycle import MOST_SKIPPED
from engram.workflows.worker import running_workers, sandbox_runner
from tests.support.clock import NOW
from tests.support.consolidation_workers import Faults, Picky
from tests.support.deciding_model import Deciding, using_replaces_having
from tests.support.edge_stores import borrowed_store
from tests.support.lifecycle_workers import knowledge, turn
from tests.support.stores import turn_store, worker_settings
from tests.support.workers import time_skipping

HISTORIES = Path(__file__).parent / "histories"
_MACHINE = re.compile(r"\d+@")
SCOPE = Scope.of("default", "ada")


class Stage:
    """A server, a worker and a gateway for one scenario."""

    def __init__(
        self,
        environment: WorkflowEnvironment,
        settings: Settings,
        repository: MemoryRepository,
        faults: Faults,
    ) -> None:
        self.environment = environment
        self.client = environment.client
        self.gateway = WorkflowGateway(self.client, settings)
        self.passes = PassRunner(self.client, settings)
        self.importing = ImportGateway(self.client, settings)
        self.store = turn_store(repository, settings)
        self.repository = repository
        self.rules = settings.lifecycle_rules
        self.settings = settings
        self.faults = faults
        self.reviews: list[str] = []
        self.said = 0

    def turn(self, text: str, days: int = 0) -> Turn:
        """What somebody says next."""
        self.said += 1
        return Turn(
            message_id=f"m{self.said}",
            role="user",
            content=text,
            timestamp=NOW + timedelta(days=days, minutes=self.said),
        )

    async def recalled(self, times: int) -> None:
        """Recall every turn so often."""
        page = await self.repository.scroll(SCOPE, MemoryType.EPISODIC)
        noted = Recalls(count=times, at=datetime.now(UTC), instance_id="recorded", batch=1)
        await update_memories(
            self.repository,
            SCOPE,
            [memory.id for memory in page.memories],
            lambda memory: accessed(memory, noted, self.rules),
            new_write_id=lambda: f"recall-{time.monotonic_ns()}",
        )

    async def keep(self, *memories: AnyMemory) -> None:
        """Store memories as they are."""
        vectors = await make_embedder("wordllama").embed_documents(
            [memory.indexed_text for memory in memories]
        )
        new = [NewMemory(m, v) for m, v in zip(memories, vectors, strict=True)]
        await self.repository.insert(SCOPE, new, stamp=review_stamp(self.rules))

    async def remember(self, *texts: str, session: str = "s1") -> None:
        """Store turns without a session running."""
        await self.store.store(
            StoreTurnsInput(
                scope=SCOPE,
                now=NOW,
                session_id=session,
                calls=(EncodeCall(turns=tuple(self.turn(text) for text in texts)),),
                first_sequence=0,
                workflow_id="recorded",
                run_id="recorded",
            )
        )

    async def say(self, *texts: str, days: int = 0) -> None:
        """Encode each text as an update of its own."""
        for text in texts:
            turn = self.turn(text, days)
            await self.gateway.encode(
                SCOPE, "s1", EncodeRequest(calls=(EncodeCall(turns=(turn,)),))
            )

    async def dispute(self, about: str) -> tuple[str, str, WorkflowHandle[Any, Any]]:
        """Two memories that contradict each other, and a review that waits for a person."""
        one, other = [
            knowledge(SCOPE, f"The user likes {what} {about}.", NOW) for what in ("loud", "quiet")
        ]
        for memory, rival in ((one, other), (other, one)):
            await self.keep(memory.model_copy(update={"disputed_with": (rival.id,)}))
        ids = (one.id, other.id)
        await ReviewGateway(self.client, self.settings).open(SCOPE, ids)
        self.reviews.append(names.review_workflow_id(SCOPE, review_id_of(ids)))
        return (*ids, self.client.get_workflow_handle(self.reviews[-1]))

    async def consolidate(self, **how: Any) -> None:
        """Have a pass run, and wait for its report."""
        await self.gateway.consolidate(SCOPE, ConsolidationRequest(reason="asked for"), **how)

    async def request(self, reason: str) -> None:
        """Ask for a pass as sessions do, and wait until there is nothing left to do."""
        await self.gateway.request_consolidation(SCOPE, ConsolidationRequest(reason=reason))
        handle = self.client.get_workflow_handle(names.consolidation_workflow_id(SCOPE))
        await handle.result()

    async def end(self) -> None:
        """End the session and wait for it and for consolidation."""
        await self.gateway.end_session(SCOPE, "s1")
        await self.client.get_workflow_handle(names.session_workflow_id(SCOPE, "s1")).result()
        await self.consolidate()


async def conversation(stage: Stage) -> None:
    """Facts, a correction, a negation, and the end of a session."""
    await stage.say("I live in Paris and I use Mongo.", "My email is ada@example.org.")
    await stage.consolidate()
    await stage.say("I moved to London.", "I don't use Mongo any more.", days=30)
    await stage.end()


async def long_session(stage: Stage) -> None:
    """A session of several runs, with urgent turns between quiet ones."""
    await stage.say(*(f"Quiet turn number {n}." for n in range(6)))
    await stage.say("Remember that I am allergic to peanuts!")
    await stage.say(*(f"Another quiet turn, {n}." for n in range(6)))
    await stage.end()


async def idle_session(stage: Stage) -> None:
    """A session whose turn waits long enough, and which then goes idle."""
    await stage.say("I like tea.")
    await stage.client.get_workflow_handle(names.session_workflow_id(SCOPE, "s1")).result()
    await stage.consolidate()


async def outage(stage: Stage) -> None:
    """Storing that fails past the local attempt and goes on as a regular activity."""
    await stage.say("I have a dog called Rex.")
    await stage.end()


async def busy_session(stage: Stage) -> None:
    """A session in which every turn makes something due, also the one that fills a run."""
    await stage.say(*(f"Quiet turn number {n}." for n in range(7)))
    await stage.end()


async def refused_trigger(stage: Stage) -> None:
    """A session that fills up while it waits to ask for consolidation again."""
    await stage.say("Remember that I am allergic to peanuts!")
    await stage.say(*(f"Quiet turn number {n}." for n in range(4)))
    await stage.end()


async def turn_after_end(stage: Stage) -> None:
    """A conversation that goes on under its id while the run that was ended is not over yet."""
    await stage.say("I like tea.")
    said, texts = asyncio.Event(), iter(["I like jazz."])

    async def go_on() -> None:
        for text in texts:
            await stage.say(text)
            said.set()

    stage.faults.during[names.REQUEST_CONSOLIDATION_ACTIVITY] = go_on
    await stage.gateway.end_session(SCOPE, "s1")
    await said.wait()
    await stage.end()


async def refusal(stage: Stage) -> None:
    """A pass in which the model refuses one turn of several, and a pass after it."""
    await stage.say("I use Bombs.", "I use Trello.", "I live in Paris.")
    await stage.consolidate()
    await stage.say("I moved to London.", days=30)
    await stage.gateway.end_session(SCOPE, "s1")
    await stage.client.get_workflow_handle(names.session_workflow_id(SCOPE, "s1")).result()
    await stage.client.get_workflow_handle(names.consolidation_workflow_id(SCOPE)).result()


async def stubborn_model(stage: Stage) -> None:
    """A pass in which a model answers nothing in the asked form, until it is given up."""
    await stage.say(*(f"I like tea number {n}." for n in range(8)))
    with contextlib.suppress(EngramError):
        await stage.consolidate()
    await stage.client.get_workflow_handle(names.consolidation_workflow_id(SCOPE)).result()


async def passes(stage: Stage) -> None:
    """Every kind of pass over one user, then over everybody; a session's end under energy."""
    await stage.say("I always drink tea when I work late.", "I live in Paris.")
    await stage.end()
    await stage.client.get_workflow_handle(names.promotion_workflow_id(SCOPE)).result()
    await stage.passes.decay(SCOPE, dry_run=True)
    await stage.passes.decay(SCOPE)
    await stage.passes.promote(SCOPE, population=Population.TEST)
    await stage.passes.promote(SCOPE)
    await stage.remember("I have a dog called Rex.")
    for kind in PassKind:
        await stage.passes.maintain(kind)
    await stage.consolidate()


async def session_end(stage: Stage) -> None:
    """Two sessions that end lively: their turns rise a tier, in runs of promotion of their own."""
    for session in ("s1", "s2"):
        turns = tuple(stage.turn(text) for text in ("I like tea.", f"I met Bob in {session}."))
        await stage.gateway.encode(SCOPE, session, EncodeRequest(calls=(EncodeCall(turns=turns),)))
    await stage.recalled(2)
    for session in ("s1", "s2"):
        await stage.gateway.end_session(SCOPE, session)
        handle = stage.client.get_workflow_handle(names.session_workflow_id(SCOPE, session))
        await handle.result()
    await stage.client.get_workflow_handle(names.promotion_workflow_id(SCOPE)).result()
    await stage.consolidate()


async def ended_again(stage: Stage) -> None:
    """A session that is taken up and ends again while what it left before is promoted."""
    session = stage.client.get_workflow_handle(names.session_workflow_id(SCOPE, "s1"))
    took_up: list[str] = []

    async def take_up() -> None:
        if not took_up:
            took_up.append(session.id)
            await stage.say("I like coffee.")
            await stage.gateway.end_session(SCOPE, "s1")
            await session.result()

    stage.faults.during[names.PROMOTE_SESSION_ACTIVITY] = take_up
    await stage.say("I like tea.")
    await stage.gateway.end_session(SCOPE, "s1")
    await stage.client.get_workflow_handle(session.id).result()
    await stage.client.get_workflow_handle(names.promotion_workflow_id(SCOPE)).result()


async def failing_ending(stage: Stage) -> None:
    """Two sessions that end, of which the first cannot be promoted."""
    ended = [
        ConsolidationRequest(reason="session ended", session_id=session) for session in ("s1", "s2")
    ]
    others = iter(ended[1:])

    async def trip() -> None:
        for other in others:
            await stage.passes.session_ended(SCOPE, other)
            raise ApplicationError("a memory trips a bug", type="crash", non_retryable=True)

    stage.faults.during[names.PROMOTE_SESSION_ACTIVITY] = trip
    await stage.passes.session_ended(SCOPE, ended[0])
    await stage.client.get_workflow_handle(names.promotion_workflow_id(SCOPE)).result()


async def tests_apart(stage: Stage) -> None:
    """Test turns between others, consolidated apart; passes over either population."""
    tried = EncodeCall(turns=(stage.turn("I live in Rome. I am allergic to nuts!"),), is_test=True)
    await stage.gateway.encode(SCOPE, "s1", EncodeRequest(calls=(tried,)))
    await stage.say("I live in Paris.", "I use Mongo.")
    await stage.end()
    for kind in PassKind:
        await stage.passes.maintain(kind, population=Population.TEST)
    request = ConsolidationRequest(reason="asked for", population=Population.TEST)
    await stage.gateway.consolidate(SCOPE, request)


async def model_outage(stage: Stage) -> None:
    """A pass that an outage stops, tried again by the timer (on a server that skips time)."""
    await stage.remember("I work at Rise.", "I use Rise to buy flour.")
    await stage.gateway.request_consolidation(SCOPE, ConsolidationRequest(reason="session ended"))
    handle = stage.client.get_workflow_handle(names.consolidation_workflow_id(SCOPE))
    while (await handle.describe()).status is WorkflowExecutionStatus.RUNNING:
        await stage.environment.sleep(timedelta(minutes=1))


async def cancellation(stage: Stage) -> None:
    """A consolidation that is cancelled while it waits for the model."""
    await stage.remember("I work at Rise.")
    await stage.gateway.request_consolidation(SCOPE, ConsolidationRequest(reason="session ended"))
    handle = stage.client.get_workflow_handle(names.consolidation_workflow_id(SCOPE))
    while not (await handle.describe()).raw_description.pending_activities:  # noqa: ASYNC110 - a script
        await asyncio.sleep(0.05)
    await handle.cancel()
    with contextlib.suppress(WorkflowFailureError):
        await handle.result()


async def digests(stage: Stage) -> None:
    """A pass that ends with profiles, boxes and guidelines, one after it, and a session's end."""
    await stage.say("I live in Paris and I like green tea.", "Everyone calls Robert Bob.")
    await stage.consolidate()
    await stage.say("I moved to London.", "I like black tea too.", days=30)
    await stage.end()


async def judgement(stage: Stage) -> None:
    """Artifacts and a summary, and a model's judgement that retires a memory."""
    await stage.remember(
        "I like tea and I have a bike.",
        "I like milk.",
        "I like mead. I run `uv sync --frozen` first.",
        "I like cider.",
        "Just so you know: `git push --force` is forbidden here.",
    )
    await stage.consolidate()
    await stage.say("I use a bike to commute, and I don't like milk any more.", days=30)
    await stage.end()


async def importing(stage: Stage) -> None:
    """Imports over several runs: batches out of order and twice, and one begun again."""
    turns = [
        ImportedTurn(
            session_id="old",
            message_id=f"m{number}",
            role="user",
            content=text,
            timestamp=NOW - timedelta(days=900, minutes=-number),
            sequence=number,
        )
        for number, text in enumerate(("I live in Paris.", "My email is ada@example.org.", "Hi."))
    ]
    batches = [batch(n, [turn.model_dump_json()]) for n, turn in enumerate(turns)]
    for import_id, order in (("several", (0, 2, 1, 1, 2)), ("single", (0, 1, 2))):
        await stage.importing.begin(SCOPE, import_id, ImportKind.TURNS, consolidate=True)
        for number in order:
            await stage.importing.send(SCOPE, import_id, batches[number])
        await stage.importing.begin(SCOPE, import_id, ImportKind.TURNS, consolidate=True)
        await stage.importing.finish(SCOPE, import_id, FinishImport(total=3))
        await stage.client.get_workflow_handle(names.import_workflow_id(SCOPE, import_id)).result()
    await stage.consolidate()


async def overtime(stage: Stage) -> None:
    """A turn, and two batches at once, whose local attempt runs out of time."""

    async def locally_for_ever() -> None:
        if activity.info().is_local:
            await asyncio.Event().wait()

    slow = dict.fromkeys((names.STORE_TURNS_ACTIVITY, names.STORE_BATCH_ACTIVITY), locally_for_ever)
    stage.faults.during |= slow
    await stage.say("I have a dog called Rex.")
    await stage.end()
    turns = [
        ImportedTurn(
            session_id="old",
            message_id=f"m{number}",
            role="user",
            content=f"I walked to harbour number {number}.",
            timestamp=NOW - timedelta(days=900),
            sequence=number,
        )
        for number in range(2)
    ]
    await stage.importing.begin(SCOPE, "slow", ImportKind.TURNS, consolidate=False)
    await asyncio.gather(
        *(
            stage.importing.send(SCOPE, "slow", batch(n, [turn.model_dump_json()]))
            for n, turn in enumerate(turns)
        )
    )
    await stage.importing.finish(SCOPE, "slow", FinishImport(total=2))
    await stage.client.get_workflow_handle(names.import_workflow_id(SCOPE, "slow")).result()


async def forgetting(stage: Stage) -> None:
    """A turn is forgotten, and what was drawn from it; profiles are composed again."""
    await stage.say("I am allergic to penicillin.", "I live in Lisbon. My sister Eva is a nurse.")
    await stage.end()
    page = await stage.repository.scroll(SCOPE, MemoryType.EPISODIC)
    await stage.gateway.forget(SCOPE, page.memories[0].id)


async def reviews(stage: Stage) -> None:
    """A dispute that nobody answers, one that a signal answers, and one that still waits."""
    for number, told in enumerate(("tea", "music", "sport")):
        one, _, handle = await stage.dispute(told)
        await stage.environment.sleep(timedelta(days=(5.0, 3.0, 2.5)[number]))
        if number == 1:
            await handle.signal(names.KEEP_SIGNAL, "neither of them")
            await handle.signal(names.KEEP_SIGNAL, one)
            await stage.environment.sleep(timedelta(hours=1))


async def erasing(stage: Stage) -> None:
    """A user is erased while a session runs; histories go behind the receipt."""
    await stage.say("I live in Lisbon.", "I like tea.")
    await stage.gateway.erase(SCOPE)
    await stage.gateway.erased(SCOPE)


async def asked(stage: Stage) -> None:
    """A consolidation that a workflow of another namespace asks for, and one that it cancels."""

    @activity.defn(name=names.CONSOLIDATE_CALL)
    async def consolidate(given: ConsolidateArgs) -> ConsolidationReport:
        if given.test_only:
            await asyncio.Event().wait()
        return ConsolidationReport(passes=1)

    worker = Worker(
        stage.client,
        task_queue="asked",
        workflows=[AskedConsolidationWorkflow],
        activities=[consolidate],
        workflow_runner=sandbox_runner(),
    )
    async with worker:
        for number in range(2):
            handle = await stage.client.start_workflow(
                names.ASKED_CONSOLIDATION_WORKFLOW,
                ConsolidateArgs(user_id=SCOPE.user_id, test_only=bool(number)),
                id=names.asked_consolidation_workflow_id(SCOPE, str(number)),
                task_queue="asked",
            )
            if number:
                await asyncio.sleep(1)
                await handle.cancel()
            with contextlib.suppress(WorkflowFailureError):
                await handle.result()


async def few_steps(stage: Stage) -> None:
    """Batches of a backlog, some of which the model may refuse, and links between what they say."""
    told = [(f"I use Tool{n}." if n % 5 == 0 else f"Was it {n} or {n + 1}?") for n in range(43)]
    await stage.remember(*told, "I use Bombs.", "I live in Paris.", "I moved to London.")
    await stage.consolidate()


async def long_backlog(stage: Stage) -> None:
    """A backlog that takes several runs."""
    await stage.remember(*(f"I use Tool{n}." for n in range(4)))
    await stage.request("session ended")


async def quiet(stage: Stage) -> None:
    """What is left over after a pass is linked when nobody has spoken for long."""
    await stage.remember("I work at Rise.", "I use Rise to buy flour.")
    await stage.request("turns waited long enough")


async def trial(stage: Stage) -> None:
    """A dry run, which compares what it read with what is known and writes nothing."""
    await stage.remember("I live in Porto.")
    await stage.consolidate(dry_run=True)


async def disputed_homes(stage: Stage) -> None:
    """Two conversations of one moment contradict each other; a review waits for a person."""
    for session, city in (("s1", "Lisbon"), ("s2", "Porto")):
        stage.said = 0
        await stage.remember(f"I live in {city}.", session=session)
    await stage.consolidate()


async def alone(stage: Stage) -> None:
    """Turns that cannot be taken up: one by itself, and of several those that are at fault."""
    stage.faults.during[names.CONSOLIDATE_TURNS_ACTIVITY] = _failing_for_good(3)
    await stage.remember("I use Bombs.")
    with contextlib.suppress(EngramError):
        await stage.consolidate()
    await stage.remember("I live in Paris.", "I like tea.")
    await stage.consolidate()


async def let_go(stage: Stage) -> None:
    """A store that fails for good while the next batch is being read."""
    stage.faults.during[names.CONSOLIDATE_TURNS_ACTIVITY] = _failing_for_good(1, StorageError.code)
    await stage.remember("I live in Paris.", "I use Bombs.")
    with contextlib.suppress(EngramError):
        await stage.consolidate()


async def long_passes(stage: Stage) -> None:
    """Passes over all users and over one, which take several stretches and several runs."""
    pace = 10
    for module in (review, promotion_pass):
        module.MOST_AT_ONCE = pace  # type: ignore[attr-defined]  # staged in a process of its own
    at = datetime.now(UTC) - timedelta(days=100)
    ready = {"selectivity": 0.6, "consolidation_passes": 3}
    habits = [f"The user always drinks tea {n} when working late" for n in range(pace + 1)]
    await stage.keep(*(knowledge(SCOPE, habit, at, **ready) for habit in habits))
    await stage.keep(*(turn(SCOPE, f"Turn {n}.", at) for n in range(pace + 1)))
    await stage.passes.maintain(PassKind.PROMOTION)
    await stage.passes.maintain(PassKind.DECAY)


async def faded(stage: Stage) -> None:
    """A pass of decay that takes knowledge out of the answers, which profiles follow."""
    old = datetime.now(UTC) - timedelta(days=500)
    await stage.keep(knowledge(SCOPE, "The user likes tea.", old))
    await stage.passes.decay(SCOPE)


async def erased(stage: Stage) -> None:
    """A pass of decay that erases a turn, whose box is made again of the others."""
    ended = datetime.now(UTC) - timedelta(days=20)
    left = {"status": MemoryStatus.ARCHIVED, "archived_at": ended}
    turns = [turn(SCOPE, "I like tea.", ended, **left), turn(SCOPE, "I like black tea.", ended)]
    await stage.keep(*turns)
    digests = Digests(stage.repository, make_embedder("wordllama"), lambda: "recorded")
    ids = [one.id for one in turns]
    await digests.sessions(Composer(SCOPE, ended), ids, ["s1"], stage.settings.digests)
    await stage.passes.decay(SCOPE)


async def given_up(stage: Stage) -> None:
    """A run that goes on from one that waited out as many outages as it may, and meets another."""
    kept = [knowledge(SCOPE, f"The user works at {where}.", NOW) for where in ("Rise", "Flour")]
    await stage.keep(*kept)
    carried = ConsolidationState(
        scope=SCOPE,
        policy=ConsolidationPolicy.fixed_by(stage.settings),
        unlinked=tuple(memory.id for memory in kept),
        linking_due=True,
        outages=11,
        runs=2,
    )
    handle = await stage.client.start_workflow(
        names.CONSOLIDATION_WORKFLOW,
        carried,
        id=names.consolidation_workflow_id(SCOPE),
        task_queue=stage.settings.store_queue,
        search_attributes=attributes("consolidation", user=SCOPE.tenant),
    )
    await handle.result()


async def many_skipped(stage: Stage) -> None:
    """A pass over all users that goes on from one that has seen to very many.

    Recorded by commit c57d23c, whose runs depend on the marker.
    """
    seen = [Scope.of("n", f"{n}") for n in range(MOST_SKIPPED)]
    state = maintenance_state(stage.settings, PassKind.PROMOTION)
    carried = {"skip": seen, "reached": DuePosition(stage=1)}
    handle = await stage.client.start_workflow(
        names.MAINTENANCE_WORKFLOW,
        state.model_copy(update=carried),
        id=names.maintenance_workflow_id(PassKind.PROMOTION.value),
        task_queue=stage.settings.store_queue,
    )
    await handle.result()


async def written_meanwhile(stage: Stage) -> None:
    """What is drawn from a turn while it is forgotten goes as well; profiles follow."""
    await stage.remember("I live in Lisbon.", "I like tea.")
    await stage.consolidate()
    page = await stage.repository.scroll(SCOPE, MemoryType.EPISODIC)
    told = page.memories[0].id
    late = knowledge(SCOPE, "The user is at home there.", NOW, source_episode_ids=(told,))
    applied: list[str] = []

    async def write_late() -> None:
        if not applied:
            applied.append(late.id)
            await stage.keep(late)

    stage.faults.during[names.APPLY_FORGETTING_ACTIVITY] = write_late
    await stage.gateway.forget(SCOPE, told)


async def long_erasing(stage: Stage) -> None:
    """A user whose memories are not gone at once, and whose histories take several runs."""
    await stage.remember("I live in Lisbon.")
    await stage.consolidate()
    await stage.gateway.erase(SCOPE)
    erasure = names.history_erasure_workflow_id(names.erasure_workflow_id(SCOPE))
    await stage.client.get_workflow_handle(erasure).result()


async def disturbed_reviews(stage: Stage) -> None:
    """Reviews that a store holds up, one until an hour has passed, and some that others settle."""
    settler = DisputeSettler(
        stage.repository,
        stage.rules,
        lambda: f"settled-{stage.said}",
        make_embedder("wordllama"),
    )
    one, other, held_up = await stage.dispute("tea")
    stage.faults.fatal.add(names.LOOK_AT_DISPUTE_ACTIVITY)
    await held_up.signal(names.LOOK_SIGNAL, "recorded")
    await stage.environment.sleep(timedelta(hours=2))
    await settler.settle(SCOPE, NOW, kept=(one,), refuted=(other,), confirmed=True)
    await held_up.signal(names.LOOK_SIGNAL, "settled")
    await held_up.result()
    one, other, answered = await stage.dispute("music")
    stage.faults.fatal.add(names.LOOK_AT_DISPUTE_ACTIVITY)
    with contextlib.suppress(WorkflowUpdateFailedError):
        await answered.execute_update(names.ANSWER_REVIEW_UPDATE, AnswerReview(keep=one))
    await answered.execute_update(names.ANSWER_REVIEW_UPDATE, AnswerReview(keep=one))
    await answered.result()
    one, other, half_way = await stage.dispute("sport")
    await settler.refute(SCOPE, (one,), other, NOW)
    await half_way.signal(names.LOOK_SIGNAL, "settled")
    await half_way.result()


def _failing_for_good(times: int, code: str = "staged") -> Callable[[], Awaitable[None]]:
    """An activity that fails at its first calls, each time so that no attempt follows."""
    left = iter(range(times))

    async def fail() -> None:
        if next(left, None) is not None:
            raise ApplicationError("staged", type=code, non_retryable=True)

    return fail


async def many_endings(stage: Stage) -> None:
    """Sessions that end close together, more of them than a pass names reasons."""
    await stage.remember("I walked to the harbour.")
    ended = [
        ConsolidationRequest(reason="session ended", session_id=f"s{number}")
        for number in range(1, 25)
    ]
    await asyncio.gather(*(stage.gateway.request_consolidation(SCOPE, one) for one in ended))
    await stage.client.get_workflow_handle(names.consolidation_workflow_id(SCOPE)).result()


SCENARIOS: dict[str, tuple[Callable[[Stage], Awaitable[None]], dict[str, Any]]] = {
    "conversation": (conversation, {}),
    "long_session": (long_session, {"updates_per_run": 5, "buffer_turns": 3}),
    "idle_session": (idle_session, {"buffer_minutes": 0.01, "session_idle_minutes": 0.03}),
    "outage": (outage, {}),
    "busy_session": (busy_session, {"updates_per_run": 3, "buffer_turns": 1}),
    "refused_trigger": (refused_trigger, {"updates_per_run": 3}),
    "turn_after_end": (turn_after_end, {}),
    "refusal": (refusal, {}),
    "model_outage": (model_outage, {}),
    "cancellation": (cancellation, {}),
    "digests": (digests, {}),
    "judgement": (judgement, {}),
    "session_end": (session_end, {"lifecycle": {"decay_policy": "energy"}}),
    "ended_again": (ended_again, {"lifecycle": {"decay_policy": "energy"}}),
    "failing_ending": (failing_ending, {"lifecycle": {"decay_policy": "energy"}}),
    "tests_apart": (tests_apart, {"buffer_turns": 2}),
    "importing": (importing, {"updates_per_run": 4}),
    "forgetting": (forgetting, {}),
    "erasing": (erasing, {}),
    "reviews": (reviews, {}),
    "asked": (asked, {}),
    "import_outage": (importing, {}),
    "overtime": (overtime, {}),
    "few_steps": (few_steps, {}),
    "reading_ahead": (few_steps, {}),
    "stubborn_model": (stubborn_model, {}),
    "many_endings": (many_endings, {}),
    "passes": (passes, {"lifecycle": {"decay_policy": "energy"}}),
    "long_backlog": (long_backlog, {"extraction_batch_turns": 1}),
    "quiet": (quiet, {"session_idle_minutes": 0.02}),
    "trial": (trial, {}),
    "disputed_homes": (disputed_homes, {}),
    "alone": (alone, {"extraction_batch_turns": 1}),
    "let_go": (let_go, {"extraction_batch_turns": 1}),
    "given_up": (given_up, {}),
    "long_passes": (long_passes, {"decay_batch": 10}),
    "faded": (faded, {}),
    "erased": (erased, {"lifecycle": {"expiry": {"erase_after_days": 10}}}),
    "many_skipped": (many_skipped, {}),
    "written_meanwhile": (written_meanwhile, {}),
    "long_erasing": (long_erasing, {}),
    "disturbed_reviews": (disturbed_reviews, {}),
}
TIME_SKIPPING = {"model_outage", "reviews", "given_up", "disturbed_reviews"}
# At how many events a server suggests that a run goes on in a new one, where that is not 4,096.
LONGEST = {"long_backlog": 40, "long_passes": 8, "long_erasing": 40}
MODELS: dict[str, Model] = {
    "judgement": Deciding(using_replaces_having),
    "refusal": Picky({"Bombs": ModelHTTPError(400, "staged")}),
    "reading_ahead": Picky({"Bombs": ModelHTTPError(400, "staged")}),
    "model_outage": Picky({}, [ModelHTTPError(503, "staged") for _ in range(20)]),
    "stubborn_model": Picky({"content": UnexpectedModelBehavior("staged")}),
    "cancellation": Picky({"content": ModelHTTPError(503, "staged")}),
    "long_backlog": Picky({}),
    "let_go": Picky({"Bombs": ModelHTTPError(503, "staged")}),
    "given_up": Picky({"content": ModelHTTPError(503, "staged")}),
}
# The first histories are of consolidations that took many steps; these, of what runs since.
_AGAIN = ("conversation", "refusal", "model_outage", "cancellation", "judgement", "session_end")
SCENARIOS |= {f"again_{name}": SCENARIOS[name] for name in (*_AGAIN, "forgetting", "reviews")}
TIME_SKIPPING |= {f"again_{name}" for name in TIME_SKIPPING}
MODELS |= {f"again_{name}": MODELS[name] for name in _AGAIN if name in MODELS}


def _refusing_at_first() -> None:
    """Make Temporal refuse the first trigger for good."""
    refused: list[ConsolidationRequest] = []
    real = WorkflowGateway.request_consolidation

    async def request(self: WorkflowGateway, scope: Scope, request: ConsolidationRequest) -> None:
        if not refused:
            refused.append(request)
            raise UnknownFailure("Temporal refused the call (permission_denied).")
        await real(self, scope, request)

    WorkflowGateway.request_consolidation = request  # type: ignore[method-assign]  # staged in a process of its own


def _failing_at_first(failures: int) -> None:
    """Make the first attempts to store fail, as during an outage."""
    real, left = TurnStore.store, [failures]

    async def store(self: TurnStore, request: StoreTurnsInput) -> Any:
        if left[0]:
            left[0] -= 1
            raise StorageUnavailable("The store is down.")
        return await real(self, request)

    TurnStore.store = store  # type: ignore[method-assign]  # staged in a process of its own
    bring_in, imports = TurnImporter.store, [failures]

    async def store_batch(self: TurnImporter, request: StoreBatchInput) -> ImportTally:
        if imports[0]:
            imports[0] -= 1
            raise StorageUnavailable("The store is down.")
        return await bring_in(self, request)

    TurnImporter.store = store_batch  # type: ignore[method-assign]  # same


def _erasing_late() -> None:
    """Make the first look after deleting find a memory that was on its way."""
    real, looks = ErasureActivitiesImpl._erase, iter((1,))  # noqa: SLF001 - staged in a process of its own

    async def erase(self: ErasureActivitiesImpl, asked: ErasureInput) -> Any:
        deleted, left = await real(self, asked)
        return deleted, left + next(looks, 0)

    ErasureActivitiesImpl._erase = erase  # type: ignore[method-assign]  # noqa: SLF001 - same


def _with(faults: Interceptor) -> None:
    """Have workers meet these faults."""

    def faulty(*given: Any, interceptors: Sequence[Interceptor] = (), **more: Any) -> Worker:
        return Worker(*given, interceptors=[*interceptors, faults], **more)

    workers.Worker = faulty  # type: ignore[assignment,attr-defined]  # staged in a process of its own


async def record(name: str, settings: Settings) -> list[Path]:
    """Play a scenario and write each of its runs."""
    scenario, _ = SCENARIOS[name]
    if name.endswith("outage") and name not in TIME_SKIPPING:
        _failing_at_first(3)
    if name == "refused_trigger":
        _refusing_at_first()
    if name == "long_erasing":
        _erasing_late()
    _with(faults := Faults())
    async with AsyncExitStack() as stack:
        environment = await stack.enter_async_context(_server(name))
        client = environment.client
        repository = await stack.enter_async_context(borrowed_store())
        counter = iter(range(1_000_000))
        await stack.enter_async_context(
            running_workers(
                client,
                repository,
                make_embedder("wordllama"),
                MODELS.get(name) or Rules(),
                settings,
                new_write_id=lambda: f"write-{next(counter)}",
            )
        )
        stage = Stage(environment, settings, repository, faults)
        await scenario(stage)
        ids: list[tuple[str, str | None]]
        if name in TIME_SKIPPING:  # That server cannot list; it ran nothing but this.
            ran = stage.reviews or [names.consolidation_workflow_id(SCOPE)]
            ids = [(workflow_id, None) for workflow_id in ran]
        else:
            ids = [(run.id, run.run_id) async for run in client.list_workflows()]
        return [await _write(client, name, *run) for run in ids]


@asynccontextmanager
async def _server(name: str) -> AsyncIterator[WorkflowEnvironment]:
    attributes = [names.USER_ATTRIBUTE, names.SESSION_ATTRIBUTE, names.STAGE_ATTRIBUTE]
    if name in TIME_SKIPPING:
        async with time_skipping(attributes) as environment:
            yield environment
        return
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=str(Path(sys.executable).parent / "temporal"),
        data_converter=pydantic_data_converter,
        search_attributes=[],
        dev_server_extra_args=[
            part
            for attribute in attributes
            for part in ("--search-attribute", f"{attribute}=Keyword")
        ]
        + _suggesting(LONGEST.get(name)),
    ) as environment:
        yield environment


def _suggesting(events: int | None) -> list[str]:
    """What a server is told, so that histories are long with so many events."""
    suggest = f"limit.historyCount.suggestContinueAsNew={events}"
    return [] if events is None else ["--dynamic-config-value", suggest]


async def _write(client: Client, name: str, workflow_id: str, run_id: str | None) -> Path:
    handle = client.get_workflow_handle(workflow_id, run_id=run_id)
    kind = workflow_id.partition("/")[0]
    path = next(
        path
        for path in (HISTORIES / f"{name}-{kind}-{n}.json" for n in range(1, 100))
        if not path.exists()
    )
    history = json.loads((await handle.fetch_history()).to_json())
    # Not every server repeats the id there, and replaying needs it.
    started = history["events"][0]["workflowExecutionStartedEventAttributes"]
    started.setdefault("workflowId", workflow_id)
    path.write_text(json.dumps(_anonymous(history), indent=1), "utf-8")
    return path


def _anonymous(value: Any, key: str = "") -> Any:
    """A history without what only says on which machine it was recorded."""
    if isinstance(value, dict):
        return {name: _anonymous(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_anonymous(inner) for inner in value]
    if key == "stackTrace":
        return ""
    # A worker's own queue is named after its process and machine.
    machine = isinstance(value, str) and _MACHINE.match(value) is not None
    return "recorded" if key == "identity" or machine else value


def main() -> None:
    """Record what is named on the command line."""
    for name in sys.argv[1:]:
        if any(HISTORIES.glob(f"{name}-*.json")):
            print(f"{name} is recorded already; give a new scenario a new name.")  # noqa: T201 - a script
            continue
        written = asyncio.run(record(name, worker_settings(**SCENARIOS[name][1])))
        print(*(path.name for path in written))  # noqa: T201 - a script


if __name__ == "__main__":
    main()
