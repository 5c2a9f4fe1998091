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
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic_ai.exceptions import ModelHTTPError, UnexpectedModelBehavior
from pydantic_ai.models import Model
from temporalio import activity
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from engram.agents.asking import Rules
from engram.consolidation.turns import TurnStore
from engram.contracts import names
from engram.contracts.calls import ConsolidateArgs
from engram.contracts.consolidation import ConsolidationReport
from engram.contracts.importing import (
    FinishImport,
    ImportedTurn,
    ImportKind,
    ImportTally,
    StoreBatchInput,
)
from engram.contracts.lifecycle import PassKind
from engram.contracts.messages import Population
from engram.contracts.reviews import review_id_of
from engram.contracts.session import (
    ConsolidationRequest,
    EncodeCall,
    EncodeRequest,
    StoreTurnsInput,
)
from engram.domain.memories import MemoryType
from engram.domain.scope import Scope
from engram.domain.turns import Turn
from engram.embedding.choice import make_embedder
from engram.errors import EngramError, StorageUnavailable, UnknownFailure
from engram.lifecycle.accesses import Recalls, accessed
from engram.ports import MemoryRepository, NewMemory
from engram.settings import Settings
from engram.storage.updates import update_memories
from engram.temporal.gateway import WorkflowGateway
from engram.temporal.importing import ImportGateway
from engram.temporal.passes import PassRunner
from engram.temporal.reviews import ReviewGateway
from engram.transfer.batches import batch
from engram.transfer.store import TurnImporter
from engram.workflows.consolidation import AskedConsolidationWorkflow
from engram.workflows.worker import running_workers, sandbox_runner
from tests.support.clock import NOW
from tests.support.consolidation_workers import Picky
from tests.support.deciding_model import Deciding, using_replaces_having
from tests.support.edge_stores import borrowed_store
from tests.support.lifecycle_workers import knowledge
from tests.support.stores import turn_store, worker_settings
from tests.support.workers import time_skipping

HISTORIES = Path(__file__).parent / "histories"
_MACHINE = re.compile(r"\d+@")
SCOPE = Scope.of("default", "ada")


class Stage:
    """A server, a worker and a gateway for one scenario."""

    def __init__(
        self, environment: WorkflowEnvironment, settings: Settings, repository: MemoryRepository
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

    async def remember(self, *texts: str) -> None:
        """Store turns without a session running."""
        await self.store.store(
            StoreTurnsInput(
                scope=SCOPE,
                now=NOW,
                session_id="s1",
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

    async def end(self) -> None:
        """End the session and wait for it and for consolidation."""
        await self.gateway.end_session(SCOPE, "s1")
        await self.client.get_workflow_handle(names.session_workflow_id(SCOPE, "s1")).result()
        await self.gateway.consolidate(SCOPE, ConsolidationRequest(reason="asked for"))


async def conversation(stage: Stage) -> None:
    """Facts, a correction, a negation, and the end of a session."""
    await stage.say("I live in Paris and I use Mongo.", "My email is ada@example.org.")
    await stage.gateway.consolidate(SCOPE, ConsolidationRequest(reason="asked for"))
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
    await stage.gateway.consolidate(SCOPE, ConsolidationRequest(reason="asked for"))


async def outage(stage: Stage) -> None:
    """Storing that fails past the local attempts and goes on as a regular activity."""
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


async def refusal(stage: Stage) -> None:
    """A pass in which the model refuses one turn of several, and a pass after it."""
    await stage.say("I use Bombs.", "I use Trello.", "I live in Paris.")
    await stage.gateway.consolidate(SCOPE, ConsolidationRequest(reason="asked for"))
    await stage.say("I moved to London.", days=30)
    await stage.gateway.end_session(SCOPE, "s1")
    await stage.client.get_workflow_handle(names.session_workflow_id(SCOPE, "s1")).result()
    await stage.client.get_workflow_handle(names.consolidation_workflow_id(SCOPE)).result()


async def stubborn_model(stage: Stage) -> None:
    """A pass in which a model answers nothing in the asked form, until it is given up."""
    await stage.say(*(f"I like tea number {n}." for n in range(8)))
    with contextlib.suppress(EngramError):
        await stage.gateway.consolidate(SCOPE, ConsolidationRequest(reason="asked for"))
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
    await stage.gateway.consolidate(SCOPE, ConsolidationRequest(reason="asked for"))


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
    await stage.gateway.consolidate(SCOPE, ConsolidationRequest(reason="asked for"))


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
    await stage.gateway.consolidate(SCOPE, ConsolidationRequest(reason="asked for"))
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
    await stage.gateway.consolidate(SCOPE, ConsolidationRequest(reason="asked for"))
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
    await stage.gateway.consolidate(SCOPE, ConsolidationRequest(reason="asked for"))


async def forgetting(stage: Stage) -> None:
    """A turn is forgotten, and what was drawn from it; profiles are composed again."""
    await stage.say("I am allergic to penicillin.", "I live in Lisbon. My sister Eva is a nurse.")
    await stage.end()
    page = await stage.repository.scroll(SCOPE, MemoryType.EPISODIC)
    await stage.gateway.forget(SCOPE, page.memories[0].id)


async def reviews(stage: Stage) -> None:
    """A dispute that nobody answers, one that a signal answers, and one that still waits."""
    gateway = ReviewGateway(stage.client, stage.settings)
    for number, told in enumerate(("tea", "music", "sport")):
        one, other = [
            knowledge(SCOPE, f"The user likes {what} {told}.", NOW) for what in ("loud", "quiet")
        ]
        pair = [
            memory.model_copy(update={"disputed_with": (rival.id,)})
            for memory, rival in ((one, other), (other, one))
        ]
        vectors = await make_embedder("wordllama").embed_documents([m.indexed_text for m in pair])
        await stage.repository.insert(
            SCOPE, [NewMemory(m, v) for m, v in zip(pair, vectors, strict=True)]
        )
        ids = (one.id, other.id)
        await gateway.open(SCOPE, ids)
        stage.reviews.append(names.review_workflow_id(SCOPE, review_id_of(ids)))
        handle = stage.client.get_workflow_handle(stage.reviews[-1])
        await stage.environment.sleep(timedelta(days=(5.0, 3.0, 2.5)[number]))
        if number == 1:
            await handle.signal(names.KEEP_SIGNAL, "neither of them")
            await handle.signal(names.KEEP_SIGNAL, one.id)
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
    await stage.gateway.consolidate(SCOPE, ConsolidationRequest(reason="asked for"))


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
    "refusal": (refusal, {}),
    "model_outage": (model_outage, {}),
    "cancellation": (cancellation, {}),
    "digests": (digests, {}),
    "judgement": (judgement, {}),
    "session_end": (session_end, {"lifecycle": {"decay_policy": "energy"}}),
    "tests_apart": (tests_apart, {"buffer_turns": 2}),
    "importing": (importing, {"updates_per_run": 4}),
    "forgetting": (forgetting, {}),
    "erasing": (erasing, {}),
    "reviews": (reviews, {}),
    "asked": (asked, {}),
    "import_outage": (importing, {}),
    "few_steps": (few_steps, {}),
    "reading_ahead": (few_steps, {}),
    "stubborn_model": (stubborn_model, {}),
    "many_endings": (many_endings, {}),
    "passes": (passes, {"lifecycle": {"decay_policy": "energy"}}),
}
TIME_SKIPPING = {"model_outage", "reviews"}
MODELS: dict[str, Model] = {
    "judgement": Deciding(using_replaces_having),
    "refusal": Picky({"Bombs": ModelHTTPError(400, "staged")}),
    "reading_ahead": Picky({"Bombs": ModelHTTPError(400, "staged")}),
    "model_outage": Picky({}, [ModelHTTPError(503, "staged") for _ in range(20)]),
    "stubborn_model": Picky({"content": UnexpectedModelBehavior("staged")}),
    "cancellation": Picky({"content": ModelHTTPError(503, "staged")}),
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


async def record(name: str, settings: Settings) -> list[Path]:
    """Play a scenario and write each of its runs."""
    scenario, _ = SCENARIOS[name]
    if name.endswith("outage") and name not in TIME_SKIPPING:
        _failing_at_first(3)
    if name == "refused_trigger":
        _refusing_at_first()
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
        stage = Stage(environment, settings, repository)
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
        ],
    ) as environment:
        yield environment


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
