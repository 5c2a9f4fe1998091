"""Workers: what runs Engram's workflows and activities, and the sandbox they run in."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

from pydantic_ai.models import Model
from temporalio.client import Client
from temporalio.worker import Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from engram.activities.consolidation import (
    ConsolidationModelActivitiesImpl,
    ConsolidationStoreActivitiesImpl,
    DigestActivitiesImpl,
)
from engram.activities.importing import ImportActivitiesImpl
from engram.activities.lifecycle import LifecycleActivitiesImpl
from engram.activities.removal import ErasureActivitiesImpl, ForgettingActivitiesImpl
from engram.activities.runtime import TypedErrorInterceptor
from engram.activities.session import SessionActivitiesImpl
from engram.agents.extraction import ExtractionAgent
from engram.agents.linking import LinkingAgent
from engram.consolidation.forgetting import Forgetter
from engram.consolidation.turns import TurnStore
from engram.digests.stage import Digests
from engram.language.extractor import Extractor
from engram.ports import Embedder, MaintenanceRepository
from engram.settings import Settings
from engram.temporal.gateway import WorkflowGateway
from engram.transfer.store import MemoryRestorer, TurnImporter
from engram.transfer.subprocess import preparing
from engram.workflows.consolidation import ConsolidationWorkflow
from engram.workflows.importing import ImportWorkflow
from engram.workflows.lifecycle import DecayWorkflow, MaintenanceWorkflow, PromotionWorkflow
from engram.workflows.removal import (
    ErasureWorkflow,
    ForgettingWorkflow,
    HistoryErasureWorkflow,
)
from engram.workflows.session import SessionWorkflow

# --- the one sandbox that workers, tests and replays run workflows in

# What workflows import of Engram (contracts, domain, errors) is pure, which the
# linter enforces; passing it through saves 70 ms for each workflow.
_PASSED_THROUGH = (
    *("engram.contracts", "engram.domain", "engram.errors"),
    *("pydantic", "pydantic_core", "structlog", "annotated_types"),
)


def sandbox_runner() -> SandboxedWorkflowRunner:
    """A runner whose workflows can reach no clock, no randomness and no I/O."""
    return SandboxedWorkflowRunner(
        restrictions=SandboxRestrictions.default.with_passthrough_modules(*_PASSED_THROUGH)
    )


# --- workers: what runs Engram's workflows and activities

WORKFLOWS = (
    SessionWorkflow,
    ConsolidationWorkflow,
    ErasureWorkflow,
    HistoryErasureWorkflow,
    ForgettingWorkflow,
    DecayWorkflow,
    PromotionWorkflow,
    MaintenanceWorkflow,
    ImportWorkflow,
)
# As often as activities heartbeat: else the service hears of them every 0.8 of their timeout,
# and they as late that their workflow was terminated.
_HEARTBEATS = timedelta(seconds=4)
# How long activities may go on when a worker is asked to stop.
_GRACE = timedelta(seconds=10)


@asynccontextmanager
async def running_workers(
    client: Client,
    repository: MaintenanceRepository,
    embedder: Embedder,
    model: Model,
    settings: Settings,
    *,
    new_write_id: Callable[[], str],
) -> AsyncIterator[tuple[Worker, Worker]]:
    """Work on both queues until left; then let what runs finish.

    The store queue carries workflows and everything that reads or writes
    memories; the model queue carries language models, at the rate that
    ``model_requests_per_second`` allows over all workers together.
    """
    _let_late_cancellations_pass()
    sessions = SessionActivitiesImpl(
        TurnStore(repository, embedder, Extractor(settings), new_write_id),
        WorkflowGateway(client, settings).request_consolidation,
    )
    erasing = ErasureActivitiesImpl(client, repository, new_write_id)
    forgetting = ForgettingActivitiesImpl(client, Forgetter(repository, new_write_id))
    storing = ConsolidationStoreActivitiesImpl(repository, embedder, new_write_id)
    living = LifecycleActivitiesImpl(repository, embedder, new_write_id)
    digesting = DigestActivitiesImpl(Digests(repository, embedder, new_write_id))
    thinking = ConsolidationModelActivitiesImpl(
        repository, embedder, ExtractionAgent(model), LinkingAgent(model)
    )
    async with AsyncExitStack() as stack:
        preparer = await stack.enter_async_context(preparing(embedder, settings))
        importing = ImportActivitiesImpl(
            TurnImporter(repository, embedder, preparer, new_write_id),
            MemoryRestorer(repository, embedder, new_write_id),
        )
        store_worker = await stack.enter_async_context(
            Worker(
                client,
                task_queue=settings.store_queue,
                workflows=WORKFLOWS,
                activities=[
                    sessions.store_turns,
                    sessions.request_consolidation,
                    storing.select_due,
                    storing.reconcile,
                    storing.write_plan,
                    storing.retire,
                    storing.mark_consolidated,
                    digesting.digest_knowledge,
                    digesting.digest_sessions,
                    digesting.learn_guidelines,
                    living.review,
                    living.promote,
                    living.promote_session,
                    living.find_due_users,
                    erasing.erase_workflows,
                    erasing.raise_fence,
                    erasing.erase_memories,
                    forgetting.plan_forgetting,
                    forgetting.apply_forgetting,
                    forgetting.look_again,
                    importing.store_batch,
                ],
                workflow_runner=sandbox_runner(),
                interceptors=[TypedErrorInterceptor()],
                graceful_shutdown_timeout=_GRACE,
                max_heartbeat_throttle_interval=_HEARTBEATS,
            )
        )
        model_worker = await stack.enter_async_context(
            Worker(
                client,
                task_queue=settings.model_queue,
                activities=[thinking.extract, thinking.link],
                interceptors=[TypedErrorInterceptor()],
                max_task_queue_activities_per_second=settings.model_requests_per_second,
                graceful_shutdown_timeout=_GRACE,
                max_heartbeat_throttle_interval=_HEARTBEATS,
            )
        )
        yield store_worker, model_worker


def _let_late_cancellations_pass() -> None:
    """A cancellation that reaches an activity just after its end is no fault.

    The SDK warns of it inside its poll loop: in a program that makes warnings
    errors, the whole worker would end with it.
    """
    warnings.filterwarnings(
        "ignore", message="Cannot find activity to cancel", category=UserWarning
    )
