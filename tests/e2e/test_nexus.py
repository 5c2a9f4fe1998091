"""Memory through Nexus, called by workflows of another Temporal namespace of a real server."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
import pytest_asyncio
from google.protobuf.duration_pb2 import Duration
from nexusrpc import HandlerError, HandlerErrorType
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest, RegisterNamespaceRequest
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
)
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.exceptions import (
    ApplicationError,
    CancelledError,
    FailureError,
    NexusOperationError,
)
from temporalio.exceptions import (
    TimeoutError as TemporalTimeoutError,
)
from temporalio.worker import Replayer, Worker

from engram.activities.calls import CallInfo, Calls
from engram.client.memory import MemoryStore
from engram.contracts.calls import ConsolidateArgs, EncodeArgs
from engram.contracts.consolidation import ConsolidationReport
from engram.distribution import VERSION
from engram.domain.deeds import Door
from engram.domain.scope import Scope
from engram.embedded.keys import folder_keys
from engram.embedded.open import run
from engram.operations.turns import Receipt
from engram.settings import Settings
from engram.system import new_id, system_clock
from engram.temporal.connection import connect_client, prepare_endpoint
from engram.temporal.encryption import EncryptionCodec, is_refused, reading_codec
from tests.support.nexus_caller import CALLERS, ENDPOINT, Calling, Keeping, Waiting

# Each starts a server, or waits for one; what runs is started once, in one process.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.xdist_group("nexus"),
]
OTHERS = "others"
LIMIT = timedelta(seconds=90)


@dataclass
class Setup:
    """A running Engram, and a client of another namespace on its server."""

    memory: MemoryStore
    own: Client
    caller: Client
    plain: bool
    folder: Path


async def namespace_of_others(client: Client) -> None:
    """Make one, and wait until it is known."""
    await client.workflow_service.register_namespace(
        RegisterNamespaceRequest(
            namespace=OTHERS, workflow_execution_retention_period=Duration(seconds=86400)
        )
    )


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["encrypted", "plain"])
async def setup(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Setup]:
    """Callers have Engram's keys, or need none."""
    folder = tmp_path_factory.mktemp("nexus") / "data"
    plain = request.param == "plain"
    settings = Settings.load(
        data_dir=folder, temporal_ui=False, nexus_endpoint=ENDPOINT, nexus_plain=plain
    )
    async with run(settings) as running:
        assert running.address is not None
        keys = folder_keys(folder, settings)
        own = await connect_client(running.address, "default", keys)
        await namespace_of_others(own)
        if plain:
            caller = await Client.connect(
                running.address, namespace=OTHERS, data_converter=pydantic_data_converter
            )
        else:
            caller = await connect_client(running.address, OTHERS, keys)
        memory = MemoryStore(
            running.engine, Scope.of("default", "nobody"), settings, system_clock, new_id
        )
        async with Worker(caller, task_queue="calls", workflows=CALLERS):
            yield Setup(memory, own, caller, plain, folder)


async def contents(memory: MemoryStore) -> list[str]:
    """What was said."""
    return [turn.content for turn in (await memory.list(memory_types=["episodic"])).memories]


async def calling(setup: Setup, user: str) -> WorkflowHandle[Calling, list[str]]:
    """A caller's workflow that uses every operation for somebody who lives in Porto."""
    return await setup.caller.start_workflow(
        Calling.run,
        args=[user, "I live in Porto."],
        id=user,
        task_queue="calls",
        execution_timeout=LIMIT,
    )


async def test_a_workflow_of_another_namespace_uses_every_operation(
    setup: Setup, user: str
) -> None:
    """It keeps, consolidates, recalls; and what it did replays."""
    handle = await calling(setup, user)
    read, block, kind = await handle.result()
    assert (read, kind) == ("1", "user")
    assert "The user lives in Porto." in block
    assert await contents(setup.memory.for_user(user)) == ["I live in Porto."]
    history = await handle.fetch_history()
    converter = setup.caller.data_converter
    await Replayer(workflows=[Calling], data_converter=converter).replay_workflow(history)


async def test_what_an_erased_user_s_callers_were_told_is_noise(setup: Setup, user: str) -> None:
    """The callers' histories are not ours to delete: the user's key is, with which they open."""
    if setup.plain:
        pytest.skip("callers without keys keep what they were told readable")
    handle = await calling(setup, user)
    await handle.result()
    told = [
        event.nexus_operation_completed_event_attributes.result
        for event in (await handle.fetch_history()).events
        if event.HasField("nexus_operation_completed_event_attributes")
    ]
    words = [
        one
        for one in told
        if one.metadata.get("engram-workflow") == f"nexus/default/{user}".encode()
    ]
    assert len(words) == 4
    codec = reading_codec(setup.caller.data_converter)
    assert any(b"Porto" in one.data for one in await codec.decode(words))
    erasing = setup.memory.for_user(user)
    assert (await erasing.erase()).complete
    # Whoever opened it before knows the key for two seconds more.
    opened_now = EncryptionCodec(folder_keys(setup.folder, Settings.load(data_dir=setup.folder)))
    assert all(map(is_refused, await opened_now.decode(words)))
    # The server stands still while its files are rewritten: not while the next test calls.
    assert await erasing.erased() is not None


async def test_what_cannot_succeed_is_refused_at_once_by_its_code(setup: Setup, user: str) -> None:
    """A refused user and another namespace fail the operation, with kind and code."""
    for asked, kind, code in (
        (["no/body", None], "BAD_REQUEST", "invalid_scope"),
        ([user, "elsewhere"], "UNAUTHORIZED", "access_denied"),
    ):
        with pytest.raises(WorkflowFailureError) as failed:
            await setup.caller.execute_workflow(
                Keeping.run,
                args=asked,
                id=uuid4().hex,
                task_queue="calls",
                execution_timeout=LIMIT,
            )
        operation = failed.value.cause
        assert isinstance(operation, NexusOperationError)
        refused = operation.cause
        assert isinstance(refused, HandlerError)
        assert refused.type is HandlerErrorType[kind]
        assert isinstance(refused.__cause__, ApplicationError)
        assert refused.__cause__.type == code


async def test_the_worker_at_the_door_says_which_release_it_is(setup: Setup) -> None:
    """As those of the other queues do: Temporal shows what an operation was carried out by."""
    for kind in (TaskQueueType.TASK_QUEUE_TYPE_NEXUS, TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW):
        found = await setup.own.workflow_service.describe_task_queue(
            DescribeTaskQueueRequest(
                namespace="default",
                task_queue=TaskQueue(name=Settings.load().nexus_queue),
                task_queue_type=kind,
            )
        )
        releases = {poller.deployment_options.build_id for poller in found.pollers}
        assert releases == {VERSION}, kind


async def test_a_caller_without_keys_gets_in_where_that_is_allowed_only(
    setup: Setup, user: str
) -> None:
    """By default what is not encrypted with Engram's keys is refused at once, and nothing kept."""
    address = setup.caller.service_client.config.target_host
    client = await Client.connect(address, namespace=OTHERS, data_converter=pydantic_data_converter)
    async with Worker(client, task_queue=user, workflows=CALLERS):
        calling = client.execute_workflow(
            Keeping.run, args=[user, None], id=user, task_queue=user, execution_timeout=LIMIT
        )
        if setup.plain:
            assert await calling
            return
        with pytest.raises(WorkflowFailureError) as failed:
            await calling
    operation = failed.value.cause
    assert isinstance(operation, NexusOperationError)
    assert isinstance(operation.cause, HandlerError)
    assert operation.cause.type is HandlerErrorType.BAD_REQUEST
    assert await contents(setup.memory.for_user(user)) == []


async def test_a_handler_that_dies_is_asked_again_and_nothing_is_kept_twice(
    setup: Setup, user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stored the turn and never answered; the next one answers with the same id."""
    asked: list[str] = []
    real = Calls.encode

    async def once_dead(self: Calls, args: EncodeArgs, call: CallInfo) -> Receipt:
        receipt = await real(self, args, call)
        asked.append(call.id)
        if len(asked) == 1:
            await asyncio.Event().wait()
        return receipt

    monkeypatch.setattr(Calls, "encode", once_dead)
    (kept,) = await setup.caller.execute_workflow(
        Keeping.run, args=[user, None], id=user, task_queue="calls", execution_timeout=LIMIT
    )
    assert len(asked) > 1
    assert len(set(asked)) == 1
    turns = (await setup.memory.for_user(user).list(memory_types=["episodic"])).memories
    assert [turn.id for turn in turns] == [kept]


async def test_a_handler_s_process_that_is_killed_is_replaced_and_nothing_is_kept_twice(
    tmp_path: Path, user: str
) -> None:
    """Kill -9 between what was stored and the answer, twice; the third process answers."""
    settings = Settings.load(data_dir=tmp_path / "data", temporal_ui=False, schedules=False)
    async with run(settings) as running:
        assert running.address is not None
        keys = folder_keys(settings.data_dir, settings)
        own = await connect_client(running.address, "default", keys)
        await namespace_of_others(own)
        await prepare_endpoint(own, ENDPOINT, settings.nexus_queue)
        caller = await connect_client(running.address, OTHERS, keys)
        memory = MemoryStore(
            running.engine, Scope.of("default", user), settings, system_clock, new_id
        )

        async def handler(*how: str) -> asyncio.subprocess.Process:
            module = "tests.support.nexus_handler"
            where = (str(running.address), str(settings.data_dir))
            return await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", module, *where, *how), cwd=Path(__file__).parents[2]
            )

        async with Worker(caller, task_queue="calls", workflows=CALLERS):
            handle = await caller.start_workflow(
                Keeping.run,
                args=[user, None],
                id=user,
                task_queue="calls",
                execution_timeout=LIMIT * 2,
            )
            for _ in range(2):
                killed = await handler("die")
                assert await asyncio.wait_for(killed.wait(), 90) == -signal.SIGKILL
                assert len(await contents(memory)) == 1
            last = await handler()
            try:
                (kept,) = await handle.result()
            finally:
                last.terminate()
                await last.wait()
        turns = (await memory.list(memory_types=["episodic"])).memories
        assert [turn.id for turn in turns] == [kept]


async def test_what_is_asked_through_nexus_is_noted_as_having_come_by_it(
    setup: Setup, user: str
) -> None:
    """Also a consolidation, which a workflow's activity asks for in the caller's stead."""
    await setup.caller.execute_workflow(
        Waiting.run, args=[user, 60], id=user, task_queue="calls", execution_timeout=LIMIT
    )
    trail = await setup.memory.for_user(user).audit(action="consolidate")
    asked = [entry.actor.door for entry in trail.entries if entry.actor.workflow is None]
    assert set(asked) == {Door.NEXUS}


@pytest.mark.parametrize("how", ["cancel", "timeout"])
async def test_waiting_for_a_consolidation_ends_by_cancel_and_by_timeout(
    setup: Setup, user: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller hears of it; where it cancels, nobody goes on waiting in Engram's namespace."""
    waits = asyncio.Event()

    async def never(self: Calls, asked: ConsolidateArgs) -> ConsolidationReport:
        waits.set()
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(Calls, "consolidate", never)
    handle = await setup.caller.start_workflow(
        Waiting.run,
        args=[user, 60 if how == "cancel" else 3],
        id=user,
        task_queue="calls",
        execution_timeout=LIMIT,
    )
    await asyncio.wait_for(waits.wait(), 60)
    waiting = [
        one
        async for one in setup.own.list_workflows(
            f"WorkflowId STARTS_WITH 'asked' AND EngramUser = 'default/{user}'"
        )
    ]
    if how == "cancel":
        await handle.cancel()
    with pytest.raises(WorkflowFailureError) as failed:
        await handle.result()
    cause: BaseException | None = failed.value.cause
    if how == "cancel":
        assert isinstance(cause, CancelledError | NexusOperationError)
        (one,) = waiting
        ended = await setup.own.get_workflow_handle(one.id).describe()
        assert ended.status is WorkflowExecutionStatus.CANCELED
    else:
        assert isinstance(cause, FailureError)
        assert isinstance(cause.cause, TemporalTimeoutError)
