"""Starts that Engram's client would not send: other applications may start workflows, too."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import BaseModel
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

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
    async with Worker(
        temporal_client,
        task_queue="starts",
        workflows=list(WORKFLOWS),
        workflow_runner=sandbox_runner(),
    ):
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
