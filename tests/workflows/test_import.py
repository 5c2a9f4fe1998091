"""The importing workflow on a real server and a real engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from temporalio import activity
from temporalio.client import Client, WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from engram.activities.importing import ImportActivitiesImpl
from engram.activities.runtime import TypedErrorInterceptor
from engram.activities.session import SessionActivitiesImpl
from engram.contracts import names
from engram.contracts.attributes import attributes
from engram.contracts.importing import (
    ExportedMemory,
    FinishImport,
    ImportBatch,
    ImportedTurn,
    ImportKind,
    ImportPolicy,
    ImportState,
    ImportTally,
    StoreBatchInput,
)
from engram.contracts.session import EncodeCall, StoreTurnsInput
from engram.domain.confidence import SEED_IMPORTED
from engram.domain.memories import Episode, Fact, MemoryType, NegationFact
from engram.domain.scope import Scope
from engram.domain.turns import Turn
from engram.embedding.choice import make_embedder
from engram.errors import ImportOutOfStep, InvalidInput, StorageUnavailable
from engram.language.extractor import Extractor
from engram.settings import Settings
from engram.storage.edge import EdgeRepository
from engram.temporal.importing import ImportGateway
from engram.transfer.batches import batch
from engram.transfer.memories import life_before
from engram.transfer.preparing import HerePreparer
from engram.transfer.store import MemoryRestorer, TurnImporter
from engram.workflows import importing as workflows
from engram.workflows.importing import ImportWorkflow
from engram.workflows.worker import sandbox_runner
from tests.support.clock import NOW
from tests.support.edge_stores import borrowed_store
from tests.support.stores import turn_store, worker_settings
from tests.support.workers import Requests

KIND = ImportKind.TURNS


def turn(number: int, text: str = "", session: str = "old", **more: Any) -> ImportedTurn:
    """A turn of long ago."""
    return ImportedTurn(
        session_id=session,
        message_id=f"m{number}",
        role="user",
        content=text or f"Turn number {number} of a long talk about gardens.",
        timestamp=NOW - timedelta(days=900) + timedelta(minutes=number),
        sequence=number,
        place=f"line {number + 1}",
        **more,
    )


def packed(first: int, *turns: ImportedTurn) -> ImportBatch:
    """A batch."""
    return batch(first, [one.model_dump_json() for one in turns])


class Importing:
    """An import under test."""

    def __init__(
        self,
        gateway: ImportGateway,
        settings: Settings,
        repository: EdgeRepository,
        asked: Requests,
        worker: Callable[..., Worker],
    ) -> None:
        self.gateway = gateway
        self.worker = worker
        self.settings = settings
        self.repository = repository
        self.asked = asked
        self.scope = Scope.of("default", f"u-{uuid4().hex[:8]}")

    async def begin(self, **options: Any) -> int:
        """Begin; where sending goes on."""
        begun = await self.gateway.begin(self.scope, "i1", KIND, **{"consolidate": True, **options})
        return begun.position

    async def send(self, sent: ImportBatch) -> Any:
        """Have a batch stored."""
        return await self.gateway.send(self.scope, "i1", sent)

    async def finish(self, total: int, **options: Any) -> Any:
        """End it."""
        return await self.gateway.finish(self.scope, "i1", FinishImport(total=total, **options))

    async def episodes(self) -> list[Episode]:
        """What is stored, in order."""
        page = await self.repository.scroll(self.scope, MemoryType.EPISODIC, limit=1000)
        found = [memory for memory in page.memories if isinstance(memory, Episode)]
        return sorted(found, key=lambda one: (one.session_id or "", one.sequence))


class Failing:
    """A store that is down at first."""

    def __init__(self, inner: TurnImporter, failures: int) -> None:
        self.inner = inner
        self.failures = failures

    async def store(self, request: StoreBatchInput) -> Any:
        """Fail, or store."""
        if self.failures:
            self.failures -= 1
            raise StorageUnavailable("The store is down.")
        return await self.inner.store(request)


class Overtime:
    """A store that the local attempt waits for in vain, and others until it is told."""

    def __init__(self) -> None:
        self.waiting = asyncio.Event()
        self.open = asyncio.Event()

    async def store(self, request: StoreBatchInput) -> ImportTally:
        """Run out of time, or wait."""
        if activity.info().is_local:
            await asyncio.Event().wait()
        self.waiting.set()
        await self.open.wait()
        return ImportTally(stored=request.batch.count)


@asynccontextmanager
async def importing(
    client: Client,
    *,
    failures: int = 0,
    store: Any = None,
    idle: timedelta = timedelta(days=1),
    **values: Any,
) -> AsyncIterator[Importing]:
    """A worker, a store, and an import of a user of its own."""
    settings = worker_settings(**values)
    asked = Requests()
    embedder, extractor = make_embedder("wordllama"), Extractor(settings)
    async with borrowed_store() as repository:

        def new_write_id() -> str:
            return uuid4().hex

        importer = TurnImporter(
            repository,
            embedder,
            HerePreparer(embedder, extractor),
            new_write_id,
            settings.max_turn_bytes,
        )
        activities = ImportActivitiesImpl(
            store or (Failing(importer, failures) if failures else importer),  # type: ignore[arg-type]  # stand in for it
            MemoryRestorer(repository, embedder, new_write_id, settings.max_turn_bytes),
        )
        sessions = SessionActivitiesImpl(turn_store(repository, settings), asked)

        def worker(**more: Any) -> Worker:
            return Worker(
                client,
                task_queue=settings.store_queue,
                workflows=[ImportWorkflow],
                activities=[activities.store_batch, sessions.request_consolidation],
                interceptors=[TypedErrorInterceptor()],
                **{"workflow_runner": sandbox_runner(), **more},
            )

        gateway = ImportGateway(client, settings, idle=idle)
        one = Importing(gateway, settings, repository, asked, worker)
        if store is not None:
            # The test says when somebody works.
            yield one
            return
        async with worker():
            yield one


async def ended(client: Client, one: Importing) -> Any:
    """Wait for the workflow's own result."""
    workflow_id = names.import_workflow_id(one.scope, "i1")
    return await client.get_workflow_handle(workflow_id).result()


async def test_batches_in_any_order_over_several_runs(temporal_client: Client) -> None:
    """Each entry is stored once, position and counts are carried on, consolidation is asked for."""
    async with importing(temporal_client, updates_per_run=3) as one:
        assert await one.begin() == 0
        batches = [packed(n, turn(n), turn(n + 1)) for n in range(0, 16, 2)]
        for sent in (batches[1], batches[0], batches[0], batches[3], *batches):
            progress = await one.send(sent)
        assert (progress.position, progress.tally.stored, progress.tally.known) == (16, 16, 0)
        assert progress.runs > 1
        assert await one.begin() == 16
        done = await one.finish(16)
        assert done.complete
        assert (await ended(temporal_client, one))["position"] == 16
        assert [e.sequence for e in await one.episodes()] == list(range(16))
        assert [request.reason for request in one.asked.seen] == ["imported"]
        # An import that ended still tells what came of it, and its end can be told again.
        told = await one.gateway.progress(one.scope, "i1")
        assert told is not None
        assert told.tally == done.tally
        assert (await one.finish(16)).complete
        assert await one.gateway.progress(one.scope, "other") is None


async def test_an_import_that_no_client_would_start_is_refused(temporal_client: Client) -> None:
    """Another's id, no user to be found by, more than what it is about: typed, and none stored."""
    async with importing(temporal_client) as one:
        policy = ImportPolicy(
            updates_per_run=500, store_timeout=timedelta(seconds=30), idle_time=timedelta(days=1)
        )
        fresh = ImportState(scope=one.scope, import_id="i1", policy=policy)
        own = names.import_workflow_id(one.scope, "i1")
        others = names.import_workflow_id(Scope.of("default", "bob"), uuid4().hex)
        whose = attributes("import", user=one.scope.tenant)
        for workflow_id, described_by, state in (
            (others, whose, fresh),
            (own, attributes("import"), fresh),
            (own, whose, fresh.model_copy(update={"position": 7})),
        ):
            handle = await temporal_client.start_workflow(
                names.IMPORT_WORKFLOW,
                state,
                id=workflow_id,
                task_queue=one.settings.store_queue,
                search_attributes=described_by,
            )
            with pytest.raises((WorkflowUpdateFailedError, RPCError)):
                await handle.execute_update(names.IMPORT_BATCH_UPDATE, packed(0, turn(0)))
            with pytest.raises(WorkflowFailureError) as failed:
                await handle.result()
            assert isinstance(failed.value.cause, ApplicationError)
            assert failed.value.cause.type == InvalidInput.code
        assert await one.episodes() == []


async def test_what_does_not_follow_is_refused(temporal_client: Client) -> None:
    """Far ahead, ended too early, or sent after the end: typed, and nothing is stored."""
    async with importing(temporal_client) as one:
        await one.begin()
        with pytest.raises(ImportOutOfStep):
            await one.send(packed(5000, turn(0)))
        await one.send(packed(0, turn(0)))
        with pytest.raises(ImportOutOfStep) as refused:
            await one.finish(7)
        assert refused.value.details["position"] == 1
        await one.finish(1, consolidate=False)
        with pytest.raises(ImportOutOfStep):
            await one.send(packed(1, turn(1)))
        assert len(await one.episodes()) == 1
        assert one.asked.seen == []


async def test_an_outage_delays_the_acknowledgement(temporal_client: Client) -> None:
    """Past the local attempt the batch goes on as a regular activity, and is stored."""
    async with importing(temporal_client, failures=3) as one:
        await one.begin()
        progress = await one.send(packed(0, turn(0)))
        assert progress.tally.stored == 1


async def test_another_worker_goes_on_when_local_attempts_ran_out_of_time(
    temporal_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped with one batch past its local time and one not, the import is not stuck."""
    monkeypatch.setattr(workflows, "_LOCAL_LIMIT", timedelta(seconds=0.5))
    # Outside of the sandbox the changed limit is seen.
    outside = {"workflow_runner": UnsandboxedWorkflowRunner()}
    store = Overtime()
    async with importing(temporal_client, store=store) as one, asyncio.timeout(60):
        async with one.worker(**outside):
            await one.begin()
            sent = [asyncio.create_task(one.send(packed(n, turn(n)))) for n in range(2)]
            await store.waiting.wait()
        store.open.set()
        async with one.worker(**outside):
            told = await asyncio.gather(*sent)
            assert max(progress.position for progress in told) == 2
            assert (await one.finish(2)).tally.stored == 2


async def test_a_bad_batch_is_refused_and_the_import_goes_on(temporal_client: Client) -> None:
    """What cannot be read names its position and quotes nothing; the right one still fits."""
    async with importing(temporal_client) as one:
        await one.begin()
        right = packed(0, turn(0))
        for packed_wrongly in ("???", "c2VjcmV0", right.packed[:-8]):
            with pytest.raises(InvalidInput) as refused:
                await one.send(ImportBatch(first=0, count=1, packed=packed_wrongly))
            assert "secret" not in str(refused.value)
        with pytest.raises(InvalidInput, match="says 3"):
            await one.send(right.model_copy(update={"count": 3}))
        assert (await one.send(right)).position == 1


async def test_an_import_that_nobody_goes_on_with_ends(temporal_client: Client) -> None:
    """It ends after a while, asks for consolidation, and beginning again finds all known."""
    idle = timedelta(milliseconds=300)
    async with importing(temporal_client, idle=idle) as one:
        await one.begin()
        await one.send(packed(0, turn(0), turn(1)))
        result = await ended(temporal_client, one)
        assert (result["complete"], result["position"]) == (False, 2)
        assert len(one.asked.seen) == 1
        one.gateway = ImportGateway(temporal_client, one.settings)
        assert await one.begin() == 0
        progress = await one.send(packed(0, turn(0), turn(1)))
        assert (progress.tally.stored, progress.tally.known) == (0, 2)
        await one.finish(2)


TALK: Sequence[str] = (
    "My email is ada@example.org and I was born on 3 May 1990.",
    "I don't use Mongo any more.",
    "Write to ada@example.org, not to anybody else.",
    "We had a long walk by the river.",
)


async def test_imported_is_as_if_encoded_then(temporal_client: Client) -> None:
    """The same memories under the same ids as when encoded, less sure, with a life behind them."""
    async with importing(temporal_client) as one:
        turns = [turn(n, text) for n, text in enumerate(TALK)]
        await one.begin()
        await one.send(packed(0, *turns))
        other = Scope.of("default", f"u-{uuid4().hex[:8]}")
        store = turn_store(one.repository, worker_settings())
        sent = StoreTurnsInput.model_validate(
            {
                "scope": other,
                "now": NOW,
                "session_id": "old",
                "calls": (EncodeCall.model_validate({"turns": [t.model_dump() for t in turns]}),),
                "first_sequence": 0,
                "workflow_id": "w",
                "run_id": "r",
            }
        )
        await store.store(sent)
        own = {"id", "user_id", "created_at", "derived_at", "write_id", "provenance", "revision"}
        for kind in (MemoryType.EPISODIC, MemoryType.FACTUAL, MemoryType.NEGATION):
            both = []
            for scope in (one.scope, other):
                page = await one.repository.scroll(scope, kind, limit=100)
                memories = sorted(page.memories, key=lambda m: (m.known_at, m.content))
                both.append([m.model_dump(exclude=own) for m in memories])
            imported, encoded = both
            assert len(imported) == len(encoded) > 0
            for left, right in zip(imported, encoded, strict=True):
                if kind is MemoryType.EPISODIC:
                    began = left["vitals"]["energy_at"]
                    past = life_before(right["known_at"], began)
                    right |= {**past, "vitals": past["vitals"].model_dump()}
                if kind is not MemoryType.EPISODIC:
                    assert left["confidence"].pop("seed") == SEED_IMPORTED
                    right["confidence"].pop("seed")
                    for named in ("source_episode_ids", "occasions"):
                        assert len(left.pop(named)) == len(right.pop(named))
                assert left == right


async def test_conflicts_are_counted_and_named(temporal_client: Client) -> None:
    """An id that is taken keeps its words; what wanted it is counted with its place."""
    async with importing(temporal_client) as one:
        await one.begin()
        twice = turn(0, "Other words.").model_copy(update={"place": "line 9"})
        progress = await one.send(packed(0, turn(0), twice, turn(1)))
        tally = progress.tally
        assert (tally.stored, tally.conflicts, tally.conflict_places) == (2, 1, ("line 9",))
        assert [e.content for e in await one.episodes()] == [turn(0).content, turn(1).content]


async def test_what_stands_twice_in_an_export_is_restored_once(temporal_client: Client) -> None:
    """Each id counts as stored once, whatever the batch; other words under it overwrite nothing."""
    async with importing(temporal_client) as one:
        await one.begin()
        await one.send(packed(0, turn(0), turn(1)))
        first, second = await one.episodes()
        await one.repository.delete(one.scope, MemoryType.EPISODIC, [first.id, second.id])
        changed = second.model_copy(update={"content": "Other words."})
        sent = [
            ExportedMemory(memory=memory.model_dump(mode="json"), place=f"line {number}")
            for number, memory in enumerate((first, first, second, changed, first, changed), 2)
        ]
        lines = [entry.model_dump_json() for entry in sent]
        await one.gateway.begin(one.scope, "i2", ImportKind.MEMORIES, consolidate=False)
        for start in (0, 4):
            progress = await one.gateway.send(one.scope, "i2", batch(start, lines[start:][:4]))
        tally = progress.tally
        assert (tally.stored, tally.known, tally.conflicts) == (2, 2, 2)
        assert tally.conflict_places == ("line 5", "line 7")
        assert [e.content for e in await one.episodes()] == [first.content, second.content]


async def test_a_test_does_not_stand_for_the_turn_that_is_imported(
    temporal_client: Client,
) -> None:
    """Its id is taken, which is said: told as known, the turn would be in no answer."""
    async with importing(temporal_client) as one:
        said = Turn(**turn(0).model_dump(include={"message_id", "role", "content", "timestamp"}))
        await turn_store(one.repository, worker_settings()).store(
            StoreTurnsInput(
                scope=one.scope,
                now=NOW,
                session_id="old",
                calls=(EncodeCall(turns=(said,), is_test=True),),
                first_sequence=0,
                workflow_id="w",
                run_id="r",
            )
        )
        await one.begin()
        tally = (await one.send(packed(0, turn(0), turn(1)))).tally
        assert (tally.stored, tally.known, tally.conflict_places) == (1, 0, ("line 1",))


async def test_facts_gain_the_sources_of_all_batches(temporal_client: Client) -> None:
    """Said in two batches and twice in one: one fact with every turn, known since the first."""
    async with importing(temporal_client) as one:
        await one.begin()
        mail = "My email is ada@example.org."
        await one.send(packed(0, turn(0, mail), turn(1), turn(2, mail)))
        progress = await one.send(packed(3, turn(3, mail), turn(4, "I don't use Mongo any more.")))
        await one.send(packed(0, turn(0, mail), turn(1), turn(2, mail)))
        page = await one.repository.scroll(one.scope, MemoryType.FACTUAL)
        (fact,) = page.memories
        assert isinstance(fact, Fact)
        assert len(fact.source_episode_ids) == 3
        # In one conversation, on one day.
        assert fact.confidence.supporting_episodes == 1
        assert fact.known_at == turn(0).timestamp
        denied = await one.repository.scroll(one.scope, MemoryType.NEGATION)
        assert isinstance(denied.memories[0], NegationFact)
        assert progress.tally.negations == 1
