"""Everything of one user goes: memories, running workflows, histories; nobody else's does."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from temporalio.api.common.v1 import WorkflowExecution as ExecutionId
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import (
    Client,
    WorkflowExecution,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import ActivityEnvironment
from temporalio.worker import Worker

from engram.activities.removal import ErasureActivitiesImpl
from engram.agents.asking import thinker
from engram.client.local import direct_engine
from engram.client.memory import MemoryStore
from engram.contracts import names
from engram.contracts.attributes import attributes
from engram.contracts.removal import (
    BEING_SCRUBBED,
    SERVERS_MAY_KEEP,
    ErasureInput,
    ErasureReceipt,
    WorkflowRound,
)
from engram.domain.memories import STORED_TYPES, MemoryType
from engram.domain.scope import Scope
from engram.domain.turns import Turn
from engram.embedding.choice import make_embedder
from engram.errors import PayloadRefused, TooManyRequests
from engram.storage.edge import EdgeRepository
from engram.system import new_id, system_clock
from engram.temporal.gateway import erased_runs, list_workflows, remove
from engram.temporal.keys import FolderKeyStore
from engram.workflows.removal import ErasureWorkflow
from engram.workflows.worker import running_workers, sandbox_runner
from tests.support.edge_stores import borrowed_store
from tests.support.running_session import call, running_session, turn
from tests.support.stores import worker_settings


async def _left(client: Client, scope: Scope) -> set[str]:
    return {execution.id async for execution in list_workflows(client, scope)}


@asynccontextmanager
async def _worked_for(
    client: Client, keys: FolderKeyStore, **limits: int
) -> AsyncIterator[tuple[MemoryStore, EdgeRepository]]:
    """A user's memory, with workers, and where it is kept."""
    settings = worker_settings(namespace=f"n{new_id()[:8]}", **limits)
    embedder, model = make_embedder(settings.embedder), thinker(settings.model)
    async with (
        borrowed_store() as repository,
        running_workers(
            *(client, repository, embedder, model, settings), new_write_id=new_id, keys=keys
        ),
    ):
        engine = direct_engine(client, repository, embedder, settings, system_clock, ui_url=None)
        scope = Scope.of(settings.namespace, "ada")
        yield MemoryStore(engine, scope, settings, system_clock, new_id), repository
        await engine.close()


@pytest.mark.long
async def test_erasing_leaves_nothing_of_the_user_and_all_of_the_others(
    temporal_client: Client, encryption_keys: FolderKeyStore
) -> None:
    """Collections count zero, sessions are stopped, histories are gone; a second user keeps all."""
    async with _worked_for(temporal_client, encryption_keys) as (ada, repository):
        scope, bob = ada.scope, ada.for_user("bob")
        for memory in (ada, bob):
            await memory.encode("I live in Lisbon. I don't use Mongo.", session_id="s1")
            await memory.encode("Write to me@example.org.", session_id="s2")
            await memory.consolidate()
        kept = (await bob.stats()).counts
        keys = {one: await encryption_keys.current(one.scope.tenant) for one in (ada, bob)}
        began = time.monotonic()
        receipt = await ada.erase()
        print(f"erased within {time.monotonic() - began:.2f} s")  # noqa: T201 - the figure
        assert receipt == ErasureReceipt.model_validate_json(receipt.model_dump_json())
        assert receipt.memories["episodic"] == 2
        assert (receipt.complete, receipt.scrubbed) == (True, False)
        assert receipt.may_remain == BEING_SCRUBBED
        counts = [await repository.count(scope, kind) for kind in STORED_TYPES]
        assert counts == [0] * len(STORED_TYPES)
        # What anybody still has of the user's histories is noise.
        assert await encryption_keys.find(scope.tenant, keys[ada].id) is None
        assert await encryption_keys.find(bob.scope.tenant, keys[bob].id) == keys[bob]
        # Whoever comes back meanwhile is not taken for what was erased.
        await ada.encode("Hello again.", session_id="s3")
        done = await ada.erased()
        print(f"scrubbed within {time.monotonic() - began:.2f} s")  # noqa: T201 - the figure
        assert done is not None
        assert (done.complete, done.scrubbed) == (True, True)
        assert done.workflows_stopped >= 2
        assert done.histories_deleted == 3
        assert done.histories_kept == 0
        # Nobody here owns the files: what may be in them is said.
        assert (done.rewritten, done.may_remain) == ((), SERVERS_MAY_KEEP)
        assert "Lisbon" not in done.model_dump_json()
        # The service lists what erased, which holds no content, and what was begun since.
        behind = names.history_erasure_workflow_id(receipt.workflow_id)
        since = names.session_workflow_id(scope, "s3")
        assert await _left(temporal_client, scope) == {receipt.workflow_id, behind, since}
        found = {hit.memory.content for hit in await ada.recall("Where do I live?")}
        assert found <= {"Hello again."}
        assert (await bob.stats()).counts == kept
        assert (await bob.recall("Where do I live?")) != []
        await ada.encode("And again.", session_id="s1")
        assert (await ada.stats()).counts[MemoryType.EPISODIC] == 2


class _Erasures:
    """Notes on a client how often erasures are asked for, and what is waited for then."""

    def __init__(self, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked = 0
        self.asked_four_times = asyncio.Event()
        self.awaited: list[WorkflowHandle[Any, Any]] = []
        self._start = client.start_workflow
        monkeypatch.setattr(client, "start_workflow", self._noted)

    async def _noted(self, workflow: str, request: object, **options: Any) -> Any:
        erasure = isinstance(request, ErasureInput)
        try:
            handle = await self._start(workflow, request, **options)
            self.awaited += [handle] if erasure else []
            return handle
        finally:
            self.asked += erasure
            if self.asked == 4:
                self.asked_four_times.set()


async def test_what_is_said_while_an_erasure_runs_goes_with_the_next(
    temporal_client: Client, encryption_keys: FolderKeyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks while one runs that has passed by it waits for one more, the same for all."""
    erasures = _Erasures(temporal_client, monkeypatch)

    async def held_up(*of_user: Any) -> AsyncIterator[WorkflowExecution]:
        await erasures.asked_four_times.wait()
        async for one in list_workflows(*of_user):
            yield one

    monkeypatch.setattr("engram.activities.removal.list_workflows", held_up)
    async with _worked_for(temporal_client, encryption_keys) as (ada, repository):
        await ada.encode("I live in Lisbon.", session_id="s1")
        first = asyncio.create_task(ada.erase())
        # Raised when it begins, when the last memory is gone, and when that is over.
        await _until_epoch(3, repository, ada.scope)
        await ada.encode("I moved to Porto.", session_id="s2")
        receipts = await asyncio.gather(first, *(ada.erase() for _ in range(3)))
        assert await ada.count() == 0
    assert [(one.complete, one.memories["episodic"]) for one in receipts] == [(True, 1)] * 4
    assert len({one.result_run_id for one in erasures.awaited}) == 2


async def _until_epoch(number: int, repository: EdgeRepository, scope: Scope) -> None:
    async with asyncio.timeout(30):
        while True:
            if await repository.epoch(scope) == number:
                return
            await asyncio.sleep(0.02)


async def test_an_erasure_whose_answer_is_lost_is_waited_for_again(
    temporal_client: Client, encryption_keys: FolderKeyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not taken for one of before, so that no other follows."""
    erasures, lost = _Erasures(temporal_client, monkeypatch), list[str]()
    answer = WorkflowHandle.result

    async def losing_one(handle: WorkflowHandle[Any, Any]) -> Any:
        if handle in erasures.awaited and not lost:
            lost.append(handle.id)
            raise RPCError("gone away", RPCStatusCode.UNAVAILABLE, b"")
        return await answer(handle)

    monkeypatch.setattr(WorkflowHandle, "result", losing_one)
    async with _worked_for(temporal_client, encryption_keys) as (ada, _):
        await ada.encode("I live in Lisbon.", session_id="s1")
        receipt = await ada.erase()
    assert receipt.memories["episodic"] == 1
    assert (len(lost), erasures.asked) == (1, 1)


@pytest.mark.long
async def test_what_goes_on_behind_an_erasure_is_waited_for_when_another_takes_over(
    temporal_client: Client, encryption_keys: FolderKeyStore
) -> None:
    """Who waits gets the receipt of the last one, and what any of them deleted is known."""
    async with _worked_for(temporal_client, encryption_keys) as (ada, _):
        await ada.encode("I live in Lisbon.", session_id="s1")
        sessions = {one.run_id async for one in list_workflows(temporal_client, ada.scope)}
        await ada.erase()
        behind = asyncio.create_task(ada.erased())
        last = await ada.erase()
        done = await behind
        assert done is not None
        assert (done.scrubbed, done.erased_at) == (True, last.erased_at)
        assert sessions <= await erased_runs(temporal_client, last.workflow_id)


async def test_what_an_erasure_ended_takes_no_room_any_more(
    temporal_client: Client, encryption_keys: FolderKeyStore
) -> None:
    """After it, as many sessions and imports may be begun as before the first of them."""

    def interrupt(*_: object) -> None:
        raise KeyError

    async def begin(memory: MemoryStore, name: str) -> None:
        await memory.encode("I live in Lisbon.", session_id=name)
        with pytest.raises(KeyError):
            await memory.import_turns([(name, Turn(content=name))], on_progress=interrupt)

    limits = {"max_running_sessions": 1, "max_running_imports": 1}
    async with _worked_for(temporal_client, encryption_keys, **limits) as (ada, _):
        await begin(ada, "before")
        with pytest.raises(TooManyRequests, match="1 sessions of this user were begun here"):
            await ada.encode("I live in Lisbon.", session_id="another")
        with pytest.raises(TooManyRequests, match="1 imports of this user were begun here"):
            await ada.import_turns([("another", Turn(content="another"))])
        await ada.erase()
        await begin(ada, "since")


@pytest.mark.parametrize("first_run", ["listed", "gone"])
async def test_what_goes_on_in_new_runs_is_erased_by_when_its_first_run_began(
    temporal_client: Client, first_run: str
) -> None:
    """Of a session of before, runs that began behind the fence go as well; none of one since."""
    async with running_session(temporal_client, updates_per_run=1) as session:
        for session_id in ("before", "since"):
            for _ in range(2):
                said = call(turn("I live in Lisbon."))
                await session.gateway.encode(session.scope, session_id, said)
        runs = await _runs_left(temporal_client, session.scope, 6)
        if first_run == "gone":
            await remove(temporal_client, runs[0])
            await _runs_left(temporal_client, session.scope, 5)
        erasing = ErasureActivitiesImpl(temporal_client, session.repository, new_id)
        asked = ErasureInput(scope=session.scope, before=runs[0].start_time)
        await ActivityEnvironment().run(erasing.erase_workflows, asked)
        left = await _runs_left(temporal_client, session.scope, 3)
    assert [one.run_id for one in left] == [one.run_id for one in runs[3:]]


async def _runs_left(client: Client, scope: Scope, count: int) -> list[WorkflowExecution]:
    """The user's runs, the first to begin first, once as many are listed."""
    async with asyncio.timeout(30):
        while True:
            runs = [one async for one in list_workflows(client, scope)]
            if len(runs) == count:
                return sorted(runs, key=lambda one: one.start_time)
            await asyncio.sleep(0.05)


async def test_a_recorded_erasure_that_is_sent_again_erases_nothing(
    temporal_client: Client, scope: Scope
) -> None:
    """Its ciphertext stays good for the user's next life; the time it was asked at does not."""
    queue, minute = f"erasing-{new_id()}", timedelta(minutes=1)
    asked = ErasureInput(
        scope=scope, store_timeout=minute, asked_at=system_clock() - timedelta(hours=2)
    )
    async with Worker(
        temporal_client,
        task_queue=queue,
        workflows=[ErasureWorkflow],
        workflow_runner=sandbox_runner(),
    ):
        with pytest.raises(WorkflowFailureError) as failed:
            await temporal_client.execute_workflow(
                names.ERASURE_WORKFLOW,
                asked,
                id=names.erasure_workflow_id(scope),
                task_queue=queue,
                search_attributes=attributes("erasure", user=scope.tenant),
            )
    cause = failed.value.cause
    assert isinstance(cause, ApplicationError)
    assert cause.type == PayloadRefused.code


@pytest.mark.long
async def test_an_erasure_that_is_over_deletes_nothing_when_it_is_reset(
    temporal_client: Client, encryption_keys: FolderKeyStore
) -> None:
    """Whichever of its tasks it goes back to, memories and the session since stay as they are."""
    async with _worked_for(temporal_client, encryption_keys) as (ada, repository):
        await ada.encode("I live in Lisbon.", session_id="before")
        erased = await ada.erase()
        await ada.erased()
        await ada.encode("I live in Porto.", session_id="since")
        over = temporal_client.get_workflow_handle(erased.workflow_id)
        run_id = (await over.describe()).run_id
        session = temporal_client.get_workflow_handle(
            names.session_workflow_id(ada.scope, "since"), run_id=None
        )
        began = (await session.describe()).run_id
        tasks = [
            event.event_id
            async for event in over.fetch_history_events()
            if event.HasField("workflow_task_completed_event_attributes")
        ]
        for task in tasks:
            await _reset(temporal_client, erased.workflow_id, run_id, task)
            with contextlib.suppress(WorkflowFailureError):
                await over.result()
            await ada.erased()
        assert await repository.count(ada.scope, MemoryType.EPISODIC) == 1
        found = await session.describe()
        assert (found.run_id, found.status) == (began, WorkflowExecutionStatus.RUNNING)


async def _reset(client: Client, workflow_id: str, run_id: str, task: int) -> None:
    """Have a run go back to the end of one of its tasks."""
    await client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=client.namespace,
            workflow_execution=ExecutionId(workflow_id=workflow_id, run_id=run_id),
            reason="a test",
            workflow_task_finish_event_id=task,
            request_id=new_id(),
        )
    )


async def test_a_run_whose_history_may_not_be_deleted_is_ended(
    temporal_client: Client, scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the service does not let histories be deleted, the run still ends, and is counted."""

    async def refused(*_: object) -> None:
        raise RPCError("not for this client", RPCStatusCode.PERMISSION_DENIED, b"")

    monkeypatch.setattr(temporal_client.workflow_service, "delete_workflow_execution", refused)
    handle = await temporal_client.start_workflow(
        names.SESSION_WORKFLOW, id=f"session/{new_id()}", task_queue=f"nobody-{new_id()}"
    )
    run = await handle.describe()
    assert await remove(temporal_client, run) == WorkflowRound(stopped=1, kept=1)
    assert (await handle.describe()).status is WorkflowExecutionStatus.TERMINATED
    # Seen as running, and ended meanwhile.
    assert await remove(temporal_client, run) == WorkflowRound(kept=1)


async def test_a_run_is_deleted_without_being_ended_first(
    temporal_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One call ends and deletes it; what was terminated before stays for up to a minute."""
    handle = await temporal_client.start_workflow(
        names.SESSION_WORKFLOW, id=f"session/{new_id()}", task_queue=f"nobody-{new_id()}"
    )
    run = await handle.describe()

    async def terminated(*_: object, **__: object) -> None:
        pytest.fail("terminated first")

    monkeypatch.setattr(
        temporal_client.workflow_service, "terminate_workflow_execution", terminated
    )
    assert await remove(temporal_client, run) == WorkflowRound(stopped=1, deleted=(run.run_id,))

    async def watched() -> None:
        while True:
            await handle.describe()
            await asyncio.sleep(0.02)

    with pytest.raises(RPCError) as gone:
        await asyncio.wait_for(watched(), 20)
    assert gone.value.status is RPCStatusCode.NOT_FOUND
    assert await remove(temporal_client, run) == WorkflowRound(deleted=(run.run_id,))
