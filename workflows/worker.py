"""Workers: what runs Engram's workflows and activities."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path

from pydantic_ai.models import Model
from temporalio.client import Client
from temporalio.worker import Worker

import activities
import workflows
from activities.consolidation import ConsolidationModelActivities, ConsolidationStoreActivities
from activities.digests import DigestActivities
from activities.erasure import ErasureActivities
from activities.errors import TypedErrorInterceptor
from activities.forgetting import ForgettingActivities
from activities.importing import ImportActivities
from activities.lifecycle import LifecycleActivities
from activities.sessions import SessionActivities
from engram.agents.extraction import ExtractionAgent
from engram.agents.linking import LinkingAgent
from engram.client.passes import PassRunner
from engram.client.temporal import WorkflowGateway
from engram.contracts.sessions import ConsolidationRequest
from engram.domain.scope import Scope
from engram.errors import EmbeddedPartMissing
from engram.extraction.extractor import Extractor
from engram.ports import Embedder, MemoryRepository
from engram.settings import Settings
from engram.transfer.aside import preparing
from engram.transfer.restoring import MemoryRestorer
from engram.transfer.storing import TurnImporter
from engram.writing.digests import Digests
from engram.writing.episodes import TurnStore
from engram.writing.forgetting import Forgetter
from workflows.consolidation import ConsolidationWorkflow
from workflows.decay import DecayWorkflow
from workflows.erasure import ErasureWorkflow
from workflows.forgetting import ForgettingWorkflow
from workflows.importing import ImportWorkflow
from workflows.maintenance import MaintenanceWorkflow
from workflows.promotion import PromotionWorkflow
from workflows.sandbox import sandbox_runner
from workflows.session import SessionWorkflow

WORKFLOWS = (
    SessionWorkflow,
    ConsolidationWorkflow,
    ErasureWorkflow,
    ForgettingWorkflow,
    DecayWorkflow,
    PromotionWorkflow,
    MaintenanceWorkflow,
    ImportWorkflow,
)
# How long activities may go on when a worker is asked to stop.
_GRACE = timedelta(seconds=10)


@asynccontextmanager
async def running_workers(
    client: Client,
    repository: MemoryRepository,
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

    Raises:
        EmbeddedPartMissing: another package's ``workflows`` or ``activities`` was imported.
    """
    check_packages()
    _let_late_cancellations_pass()
    gateway = WorkflowGateway(client, settings)
    sessions = SessionActivities(
        TurnStore(repository, embedder, Extractor(settings), new_write_id),
        closing_sessions(gateway, PassRunner(client, settings)),
    )
    erasing = ErasureActivities(client, repository)
    forgetting = ForgettingActivities(client, Forgetter(repository, new_write_id))
    storing = ConsolidationStoreActivities(repository, embedder, new_write_id)
    living = LifecycleActivities(repository, embedder, new_write_id)
    digesting = DigestActivities(Digests(repository, embedder, new_write_id))
    thinking = ConsolidationModelActivities(
        repository, embedder, ExtractionAgent(model), LinkingAgent(model)
    )
    async with AsyncExitStack() as stack:
        preparer = await stack.enter_async_context(preparing(embedder, settings))
        importing = ImportActivities(
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
                    erasing.erase_memories,
                    forgetting.plan_forgetting,
                    forgetting.apply_forgetting,
                    importing.store_batch,
                ],
                workflow_runner=sandbox_runner(),
                interceptors=[TypedErrorInterceptor()],
                graceful_shutdown_timeout=_GRACE,
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


def closing_sessions(
    gateway: WorkflowGateway, passes: PassRunner
) -> Callable[[Scope, ConsolidationRequest], Awaitable[None]]:
    """What a session asks for: consolidation, and at its end the promotion of what is lively."""

    async def request(scope: Scope, asked: ConsolidationRequest) -> None:
        await gateway.request_consolidation(scope, asked)
        await passes.session_ended(scope, asked)

    return request


def check_packages() -> None:
    """Refuse to work with a ``workflows`` or ``activities`` package that is not ours.

    Raises:
        EmbeddedPartMissing: naming what was imported instead.
    """
    ours = Path(__file__).parent.parent
    for package in (workflows, activities):
        found = Path(str(package.__file__)).parent.parent
        if found != ours:
            raise EmbeddedPartMissing(
                f"The package {package.__name__!r} that was imported is not Engram's.",
                hint=(
                    "Another distribution ships a top-level package of that name; "
                    "give Engram's worker an environment of its own."
                ),
                details={"found": str(found), "expected": str(ours)},
            )
