"""Starts that Engram's client would not send: other applications may start workflows, too."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import BaseModel
from temporalio import workflow
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowUpdateFailedError,
)
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker
from temporalio.workflow import _Definition

from engram.contracts import names
from engram.contracts.attributes import attributes
from engram.contracts.lifecycle import DecayState, PromotionState
from engram.contracts.removal import (
    ErasureInput,
    ErasureReceipt,
    ForgetInput,
    HistoryErasureInput,
)
from engram.contracts.reviews import ReviewState, review_id_of
from engram.domain.rules import ReviewRules
from engram.domain.scope import Scope
from engram.errors import InvalidInput
from engram.workflows.worker import WORKFLOWS, sandbox_runner
from tests.support.running_session import call, running_session, turn
from tests.support.stores import worker_settings

ADA, BOB = Scope.of("default", "ada"), Scope.of("default", "bob")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
ID = "b2f5ff47-4366-5bc8-8be2-4a5f2c4d8c11"
SETTINGS = worker_settings()
STATES: dict[str, BaseModel] = {
    names.DECAY_WORKFLOW: DecayState(scope=ADA),
    names.PROMOTION_WORKFLOW: PromotionState(scope=ADA),
    names.FORGETTING_WORKFLOW: ForgetInput(scope=ADA, memory_id=ID, digests=SETTINGS.digests),
    names.ERASURE_WORKFLOW: ErasureInput(scope=ADA, store_timeout=SETTINGS.store_timeout),
    names.HISTORY_ERASURE_WORKFLOW: HistoryErasureInput(
        scope=ADA,
        receipt=ErasureReceipt(
            namespace=ADA.namespace,
            user_id=ADA.user_id,
            erased_at=NOW,
            memories={},
            workflows_stopped=0,
            histories_deleted=0,
            histories_kept=0,
            workflow_id="erasure/default/ada",
        ),
        fenced_at=NOW,
        store_timeout=SETTINGS.store_timeout,
    ),
    names.REVIEW_WORKFLOW: ReviewState(
        scope=ADA,
        memory_ids=(ID,),
        rules=ReviewRules(),
        store_timeout=SETTINGS.store_timeout,
        digests=SETTINGS.digests,
    ),
}
IDS = {
    names.DECAY_WORKFLOW: names.decay_workflow_id(ADA),
    names.PROMOTION_WORKFLOW: names.promotion_workflow_id(ADA),
    names.FORGETTING_WORKFLOW: names.forgetting_workflow_id(ADA, ID),
    names.ERASURE_WORKFLOW: names.erasure_workflow_id(ADA),
    names.HISTORY_ERASURE_WORKFLOW: names.history_erasure_workflow_id(
        names.erasure_workflow_id(ADA)
    ),
    names.REVIEW_WORKFLOW: names.review_workflow_id(ADA, review_id_of((ID,))),
}


@pytest.mark.parametrize("kind", STATES)
@pytest.mark.parametrize("wrong", ["id", "attribute"])
async def test_a_start_under_another_name_is_refused(
    kind: str, wrong: str, temporal_client: Client
) -> None:
    """No run about a user hides from that user's erasure, which looks by id and attribute."""
    of_somebody = attributes("review", user=BOB.tenant if wrong == "attribute" else ADA.tenant)
    async with _worker(temporal_client):
        with pytest.raises(WorkflowFailureError) as failed:
            await temporal_client.execute_workflow(
                kind,
                STATES[kind],
                id="anything" if wrong == "id" else IDS[kind],
                task_queue="starts",
                search_attributes=of_somebody,
            )
    assert isinstance(failed.value.cause, ApplicationError)
    assert failed.value.cause.type == InvalidInput.code
    assert ("id of the workflow" if wrong == "id" else names.USER_ATTRIBUTE) in str(
        failed.value.cause
    )


@pytest.mark.parametrize("kind", [_Definition.must_from_class(one).name for one in WORKFLOWS])
@pytest.mark.parametrize(
    ("brought", "said"),
    [
        (["hello"], "object"),
        ([{"scope": {"namespace": "default", "user": "PLUMBUS"}}], "field required"),
        ([{}, {}], "JSON"),
        ([None], "JSON"),
        ([], "JSON"),
    ],
    ids=["a text", "a field is missing", "two of them", "null", "none"],
)
async def test_a_start_that_does_not_parse_fails_by_a_typed_error(
    kind: str, brought: list[Any], said: str, temporal_client: Client
) -> None:
    """Its task would fail for ever, and the id of a session, or of an erasure, be blocked."""
    async with _worker(temporal_client):
        with pytest.raises(WorkflowFailureError) as failed:
            await temporal_client.execute_workflow(
                kind,
                args=brought,
                id=f"misfit/{kind}",
                task_queue="starts",
                execution_timeout=timedelta(seconds=20),
            )
    cause = failed.value.cause
    assert isinstance(cause, ApplicationError), cause
    assert (cause.type, cause.non_retryable) == (InvalidInput.code, True)
    assert said in cause.message
    assert "PLUMBUS" not in str(cause.details)


@pytest.mark.parametrize(
    ("kind", "policy", "where"),
    [
        (names.SESSION_WORKFLOW, {"updates_per_run": 0}, "policy.updates_per_run"),
        (names.SESSION_WORKFLOW, {"updates_per_run": 2000}, "policy.updates_per_run"),
        (names.SESSION_WORKFLOW, {"store_timeout": "PT0S"}, "policy.store_timeout"),
        (names.SESSION_WORKFLOW, {"buffer": {"turns": 0}}, "policy.buffer.turns"),
        (names.SESSION_WORKFLOW, {"buffer": {"time": "PT0S"}}, "policy.buffer.time"),
        (names.SESSION_WORKFLOW, {"buffer": {"idle_time": "-PT5S"}}, "policy.buffer.idle_time"),
        (names.MAINTENANCE_WORKFLOW, {"store_timeout": "P2D"}, "policy.store_timeout"),
        (names.CONSOLIDATION_WORKFLOW, {"model_timeout": "PT0S"}, "policy.model_timeout"),
    ],
)
async def test_a_start_with_numbers_that_nothing_can_run_by_fails_by_a_typed_error(
    kind: str, policy: dict[str, Any], where: str, temporal_client: Client
) -> None:
    """Runs would follow each other without end, or a task fail for ever."""
    brought = {
        "scope": ADA.model_dump(),
        "session_id": "s1",
        "kind": "decay",
        "request": {"reason": "asked for"},
        "policy": policy,
    }
    async with _worker(temporal_client):
        with pytest.raises(WorkflowFailureError) as failed:
            await temporal_client.execute_workflow(
                kind,
                brought,
                id=f"misfit/{kind}",
                task_queue="starts",
                execution_timeout=timedelta(seconds=20),
            )
    cause = failed.value.cause
    assert isinstance(cause, ApplicationError), cause
    assert cause.type == InvalidInput.code
    assert f"{where}: input should be" in cause.message


@pytest.mark.parametrize("brought", [[{"calls": 5}], [{}, {}], [None], []])
async def test_an_update_that_does_not_parse_is_rejected_by_a_typed_error(
    temporal_client: Client, brought: list[Any]
) -> None:
    """The session goes on, and takes the next one."""
    async with running_session(temporal_client) as session:
        await session.gateway.encode(session.scope, "s1", call(turn("I like tea.")))
        handle = temporal_client.get_workflow_handle(names.session_workflow_id(session.scope, "s1"))
        with pytest.raises(WorkflowUpdateFailedError) as rejected:
            await handle.execute_update(names.ENCODE_UPDATE, args=brought)
        assert isinstance(rejected.value.cause, ApplicationError)
        assert rejected.value.cause.type == InvalidInput.code
        reply = await session.gateway.encode(session.scope, "s1", call(turn("I like figs.")))
    assert [one.error for one in reply.outcomes] == [None]


@workflow.defn(name=names.DECAY_WORKFLOW, sandboxed=False)
class _OfAnotherVersion:
    @workflow.run
    async def run(self) -> None:
        workflow.continue_as_new("hello", task_queue="starts")


async def test_what_an_earlier_run_hands_on_waits_for_a_worker_that_can_read_it(
    temporal_client: Client,
) -> None:
    """A worker of another version ends no run: its task is tried again."""
    async with Worker(temporal_client, task_queue="others", workflows=[_OfAnotherVersion]):
        handle = await temporal_client.start_workflow(
            names.DECAY_WORKFLOW, id="decay/default/ada", task_queue="others"
        )
        async with _worker(temporal_client), asyncio.timeout(30):
            while True:
                found = await handle.describe()
                if found.raw_description.pending_workflow_task.attempt > 1:
                    break
                await asyncio.sleep(0.05)
    assert found.run_id != handle.first_execution_run_id
    assert found.status is WorkflowExecutionStatus.RUNNING
    await handle.terminate()


def _worker(client: Client) -> Worker:
    return Worker(
        client,
        task_queue="starts",
        workflows=list(WORKFLOWS),
        workflow_runner=sandbox_runner(),
    )
