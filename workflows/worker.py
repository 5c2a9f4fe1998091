"""Workers: what runs Engram's workflows and activities, and the sandbox they run in."""

from __future__ import annotations

import sys
import warnings
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from functools import cache, partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any, Final

from temporalio import workflow
from temporalio.api.enums.v1 import CommandType
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.client import Client
from temporalio.common import WorkerDeploymentVersion
from temporalio.converter import StorageDriverStoreContext, WorkflowSerializationContext
from temporalio.worker import (
    HandleUpdateInput,
    Interceptor,
    Worker,
    WorkerDeploymentConfig,
    WorkflowInboundInterceptor,
    WorkflowInstance,
    WorkflowInstanceDetails,
    WorkflowInterceptorClassInput,
)
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions
from temporalio.workflow import Info

from engram.activities.consolidation import (
    ConsolidationStoreActivitiesImpl,
    DigestActivitiesImpl,
    ModelActivitiesWhenAsked,
)
from engram.activities.importing import ImportActivitiesImpl
from engram.activities.lifecycle import LifecycleActivitiesImpl
from engram.activities.removal import ErasureActivitiesImpl, ForgettingActivitiesImpl
from engram.activities.reviews import DisputeActivitiesImpl
from engram.activities.runtime import AuditInterceptor, ClockInterceptor, TypedErrorInterceptor
from engram.activities.session import SessionActivitiesImpl
from engram.agents.asking import Rules, Thinker, followed
from engram.aside import ProcessAside
from engram.consolidation.apply import PlanWriter
from engram.consolidation.disputes import DisputeSettler
from engram.consolidation.forgetting import Forgetter
from engram.consolidation.reading import SECONDS
from engram.consolidation.turns import TurnStore
from engram.contracts.activities import ConsolidationModelActivities
from engram.contracts.importing import ImportBatch
from engram.contracts.session import EncodeRequest
from engram.digests.stage import Digests
from engram.distribution import VERSION
from engram.domain.rules import EdgeRules
from engram.domain.scope import Scope
from engram.errors import InvalidInput
from engram.language.extractor import Extractor
from engram.language.guarding import PersonalDataGuard
from engram.ports import Clock, Embedder, KeyStore, MaintenanceRepository
from engram.settings import Settings
from engram.storage.trail import AuditTrail
from engram.temporal.encryption import refuse_misfits
from engram.temporal.gateway import WorkflowGateway
from engram.temporal.reviews import ReviewGateway
from engram.transfer.batches import check_masked
from engram.transfer.store import MemoryRestorer, TurnImporter
from engram.transfer.subprocess import preparing
from engram.workflows.consolidation import AskedConsolidationWorkflow, ConsolidationWorkflow
from engram.workflows.importing import ImportWorkflow
from engram.workflows.lifecycle import DecayWorkflow, MaintenanceWorkflow, PromotionWorkflow
from engram.workflows.removal import (
    ErasureWorkflow,
    ForgettingWorkflow,
    HistoryErasureWorkflow,
)
from engram.workflows.reviews import DisputeReviewWorkflow
from engram.workflows.session import SessionWorkflow
from engram.workflows.support import refusal

# --- the one sandbox that workers, tests and replays run workflows in

# What workflows import of Engram (contracts, domain, errors) is pure, which the
# linter enforces; passing it through saves 70 ms for each workflow.
_PASSED_THROUGH = (
    *("engram.contracts", "engram.domain", "engram.errors"),
    *("pydantic", "pydantic_core", "structlog", "annotated_types"),
)

_SCHEDULE_ACTIVITY: Final = CommandType.COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK


def sandbox_runner() -> SandboxedWorkflowRunner:
    """A runner whose workflows can reach no clock, no randomness and no I/O."""
    _share_code()
    return _GuardedRunner(
        restrictions=SandboxRestrictions.default.with_passthrough_modules(*_PASSED_THROUGH)
    )


class _SharedCode(SourceFileLoader):
    """Reads the code of a module once. Nobody can change it: only what it makes is a run's own."""

    def get_code(self, fullname: str) -> CodeType | None:
        """See the base class."""
        return _code_of(fullname, self.path)


@cache
def _code_of(module: str, path: str) -> CodeType | None:
    return SourceFileLoader(module, path).get_code(module)


class _WorkflowModules(MetaPathFinder):
    """Finds Engram's modules for runs of workflows, each of which loads its own.

    Of what a run holds for as long as it is cached, its code would be the half.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See the base class; None, so that others look, outside of the sandbox."""
        if not (workflow.unsafe.in_sandbox() and f"{fullname}.".startswith("engram.")):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = _SharedCode(spec.loader.name, spec.loader.path)
        return spec


@cache
def _share_code() -> None:
    sys.meta_path.insert(0, _WorkflowModules())


class _GuardedRunner(SandboxedWorkflowRunner):
    """Refuses starts and updates that do not fit, and signals that bring not one argument.

    What they raise would end the workflow task, which is tried again for ever: anybody could
    stop a session.
    """

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """See the base class."""
        made = super().create_instance(det)
        return _Guarded(made) if det.defn.cls in WORKFLOWS else made


class _Guarded(WorkflowInstance):
    def __init__(self, instance: WorkflowInstance) -> None:
        self._instance = instance
        info = instance.get_info()
        self._own_context = WorkflowSerializationContext(
            namespace=info.namespace, workflow_id=info.workflow_id
        )

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        """Have what does not fit refused, then do what the base class says."""
        for job in act.jobs:
            if job.HasField("do_update"):
                refuse_misfits(job.do_update.input)
            elif job.HasField("signal_workflow"):
                refuse_misfits(job.signal_workflow.input)
            elif job.HasField("initialize_workflow"):
                start = job.initialize_workflow
                # What an earlier run hands on is right: a worker that cannot read it is of
                # another version, and leaves it to those that can.
                if not start.continued_from_execution_run_id:
                    refuse_misfits(start.arguments)
        return self._instance.activate(act)

    def get_info(self) -> Info:
        return self._instance.get_info()

    def get_thread_id(self) -> int | None:
        return self._instance.get_thread_id()

    # Temporal does not export the type of what identifies a command.
    def get_serialization_context(self, command_info: Any) -> Any:
        # Asked three times for each activity and once for every other payload; each look into
        # the sandbox takes a third of a millisecond. What encrypts asks for the workflow alone.
        if command_info is None or command_info.command_type == _SCHEDULE_ACTIVITY:
            return self._own_context
        return self._instance.get_serialization_context(command_info)

    def get_external_store_context(self, command_info: Any) -> StorageDriverStoreContext:
        # As often. Engram's clients keep no payload elsewhere, so that nobody looks at it.
        return StorageDriverStoreContext()


# --- what is refused before it is part of a history


class PersonalDataInterceptor(Interceptor):
    """Rejects updates whose words a namespace would have masked: they are in no history.

    What a worker is set to is no part of a workflow, and may differ from the worker that a
    history was made by. That is why it is asked here: for new updates, and never in a replay.

    Args:
        guard: Looks for personal data.
    """

    def __init__(self, guard: PersonalDataGuard) -> None:
        self._guard = guard

    def workflow_interceptor_class(
        self,
        input: WorkflowInterceptorClassInput,  # noqa: A002 - the parameter's name belongs to Temporal's interface
    ) -> type[WorkflowInboundInterceptor] | None:
        """See the base class."""
        del input
        guard = self._guard
        if not guard.masks_anywhere:
            return None

        class Rejecting(WorkflowInboundInterceptor):
            def handle_update_validator(self, input: HandleUpdateInput) -> None:  # noqa: A002 - same
                asked = input.args[0] if input.args else None
                if isinstance(asked, EncodeRequest | ImportBatch):
                    # Looking is pure; the library behind it loads its tables when it needs them.
                    with (
                        workflow.unsafe.sandbox_unrestricted(),
                        workflow.unsafe.imports_passed_through(),
                    ):
                        _reject_unmasked(guard, asked, workflow.instance())
                super().handle_update_validator(input)

        return Rejecting


def _reject_unmasked(
    guard: PersonalDataGuard, asked: EncodeRequest | ImportBatch, running: Any
) -> None:
    namespace = running.scope.namespace
    if not guard.masks(namespace):
        return
    try:
        if isinstance(asked, EncodeRequest):
            for call in asked.calls:
                for turn in call.turns:
                    guard.check(namespace, turn)
        else:
            check_masked(guard, namespace, running.kind, asked)
    except InvalidInput as error:
        raise refusal(error) from None


# --- workers: what runs Engram's workflows and activities

WORKFLOWS = (
    SessionWorkflow,
    ConsolidationWorkflow,
    AskedConsolidationWorkflow,
    ErasureWorkflow,
    HistoryErasureWorkflow,
    ForgettingWorkflow,
    DecayWorkflow,
    PromotionWorkflow,
    MaintenanceWorkflow,
    ImportWorkflow,
    DisputeReviewWorkflow,
)
# As often as activities heartbeat: else the service hears of them every 0.8 of their timeout,
# and they as late that their workflow was terminated.
_HEARTBEATS = timedelta(seconds=4)
# Runs of workflows that are kept between their steps, 120 to 160 KB each; the SDK would keep 1,000.
# One that was let go costs its next step some 8 ms of processor time, and more with its history.
_CACHED = 250
# How long activities may go on when a worker is asked to stop.
_GRACE = timedelta(seconds=10)


@asynccontextmanager
async def running_workers(
    client: Client,
    repository: MaintenanceRepository,
    embedder: Embedder,
    asked: Thinker,
    settings: Settings,
    *,
    new_write_id: Callable[[], str],
    keys: KeyStore | None = None,
    trail: AuditTrail | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[tuple[Worker, Worker]]:
    """Work on both queues until left; then let what runs finish.

    The store queue carries workflows and everything that reads or writes
    memories; the model queue carries language models, at the rate that all workers together
    may ask them. What the rules consist of is loaded when there is something to read.
    ``keys`` are those of the client: erasing a user deletes theirs. ``clock``
    is the present, where it is not the machine's. ``trail`` is told what is done.
    """
    clocked = () if clock is None else (ClockInterceptor(clock),)
    watching = (*clocked, AuditInterceptor(trail))
    _let_late_cancellations_pass()
    aside = ProcessAside(SECONDS, load=_load_rules)
    lives = settings.lifecycle
    thinking = _of_models(repository, embedder, asked, aside, settings, new_write_id)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(aside.close)
        preparer = await stack.enter_async_context(preparing(embedder, settings))
        most, guard = settings.max_turn_bytes, PersonalDataGuard.of(settings)
        rules = Extractor(settings)
        turns = TurnStore(repository, embedder, rules, new_write_id, most, aside, guard)
        importer = TurnImporter(repository, embedder, preparer, new_write_id, most, guard)
        asks = partial(_have_settled, client, repository, settings, new_write_id, embedder)
        restorer = MemoryRestorer(
            repository, embedder, new_write_id, most, guard, asks, settings.digests
        )
        activities = [
            *_of_sessions(turns, client, settings),
            *_of_memories(repository, embedder, new_write_id, lives.edges),
            *_of_disputes(client, repository, settings, new_write_id, embedder),
            *_of_removal(client, repository, settings, new_write_id, keys, trail),
            ImportActivitiesImpl(importer, restorer).store_batch,
        ]
        store_worker = await stack.enter_async_context(
            configured_worker(
                client,
                settings,
                *(*watching, PersonalDataInterceptor(guard)),
                task_queue=settings.store_queue,
                workflows=WORKFLOWS,
                activities=activities,
                workflow_runner=sandbox_runner(),
            )
        )
        model_worker = await stack.enter_async_context(
            _model_worker(client, settings, thinking, watching)
        )
        yield store_worker, model_worker


def _model_worker(
    client: Client,
    settings: Settings,
    thinking: ConsolidationModelActivities,
    watching: Sequence[Interceptor],
) -> Worker:
    return configured_worker(
        client,
        settings,
        *watching,
        task_queue=settings.model_queue,
        activities=[thinking.extract, thinking.link],
        max_task_queue_activities_per_second=settings.model_requests_per_second,
    )


def _of_sessions(turns: TurnStore, client: Client, settings: Settings) -> list[Callable[..., Any]]:
    sessions = SessionActivitiesImpl(turns, WorkflowGateway(client, settings).request_consolidation)
    return [sessions.store_turns, sessions.request_consolidation]


def _of_models(
    repository: MaintenanceRepository,
    embedder: Embedder,
    asked: Thinker,
    aside: ProcessAside,
    settings: Settings,
    new_write_id: Callable[[], str],
) -> ConsolidationModelActivities:
    def load() -> ConsolidationModelActivities:
        from engram.activities.models import ConsolidationModelActivitiesImpl  # noqa: PLC0415 - see there
        from engram.agents.extraction import ExtractionAgent  # noqa: PLC0415 - same
        from engram.agents.linking import LinkingAgent  # noqa: PLC0415 - same

        return ConsolidationModelActivitiesImpl(
            repository,
            embedder,
            ExtractionAgent(asked, aside),
            LinkingAgent(asked, lives.promotion.selectivity_step),
            lives.edges,
            learning,
            PlanWriter(repository, embedder, new_write_id, lives.edges),
        )

    lives, learning = settings.lifecycle, followed(asked, settings.learning_by_namespace)
    return ModelActivitiesWhenAsked(load) if isinstance(asked, Rules) else load()


def _load_rules() -> None:
    """What the process beside this one, which reads long turns, begins with."""
    from engram.agents.rules import load  # noqa: PLC0415 - see engram.activities.models

    load()


def _of_memories(
    repository: MaintenanceRepository,
    embedder: Embedder,
    new_write_id: Callable[[], str],
    edges: EdgeRules,
) -> list[Callable[..., Any]]:
    storing = ConsolidationStoreActivitiesImpl(repository, embedder, new_write_id, edges)
    digesting = DigestActivitiesImpl(Digests(repository, embedder, new_write_id))
    living = LifecycleActivitiesImpl(repository, embedder, new_write_id)
    return [
        storing.select_due,
        storing.reconcile,
        storing.write_plan,
        storing.retire,
        storing.mark_consolidated,
        storing.consolidate_turns,
        storing.apply_plan,
        digesting.digest,
        digesting.digest_knowledge,
        digesting.digest_sessions,
        digesting.learn_guidelines,
        living.review,
        living.promote,
        living.promote_session,
        living.find_due_users,
    ]


def _of_disputes(
    client: Client,
    repository: MaintenanceRepository,
    settings: Settings,
    new_write_id: Callable[[], str],
    embedder: Embedder,
) -> list[Callable[..., Any]]:
    settler = DisputeSettler(repository, settings.lifecycle_rules, new_write_id, embedder)
    settling = DisputeActivitiesImpl(settler, ReviewGateway(client, settings).open)
    return [settling.open_reviews, settling.look_at_dispute, settling.settle_dispute]


async def _have_settled(
    client: Client,
    repository: MaintenanceRepository,
    settings: Settings,
    new_write_id: Callable[[], str],
    embedder: Embedder,
    scope: Scope,
    pairs: Sequence[tuple[str, ...]],
) -> None:
    """Let a review wait for each of these pairs that is in dispute."""
    settler = DisputeSettler(repository, settings.lifecycle_rules, new_write_id, embedder)
    opened = await settler.in_dispute(scope, pairs)
    await ReviewGateway(client, settings).changed(scope, (), opened)


def _of_removal(
    client: Client,
    repository: MaintenanceRepository,
    settings: Settings,
    new_write_id: Callable[[], str],
    keys: KeyStore | None,
    trail: AuditTrail | None,
) -> list[Callable[..., Any]]:
    erasing = ErasureActivitiesImpl(client, repository, new_write_id, keys, trail)
    forgetting = ForgettingActivitiesImpl(
        client, Forgetter(repository, new_write_id), ReviewGateway(client, settings).changed
    )
    return [
        erasing.raise_fence,
        erasing.erase_workflows,
        erasing.erase_memories,
        forgetting.plan_forgetting,
        forgetting.apply_forgetting,
        forgetting.look_again,
    ]


def configured_worker(
    client: Client, settings: Settings, *interceptors: Interceptor, **of_this_one: Any
) -> Worker:
    """A worker with what all have alike."""
    return Worker(
        client,
        interceptors=[
            TypedErrorInterceptor(settings.collection_prefix),
            *interceptors,
        ],
        graceful_shutdown_timeout=_GRACE,
        deployment_config=_deployment(),
        max_cached_workflows=_CACHED,
        max_heartbeat_throttle_interval=_HEARTBEATS,
        **of_this_one,
    )


def _deployment() -> WorkerDeploymentConfig:
    """What a worker says of its code; the SDK would hash all loaded modules to have something."""
    release = WorkerDeploymentVersion(deployment_name="engram", build_id=VERSION)
    return WorkerDeploymentConfig(version=release, use_worker_versioning=False)


def _let_late_cancellations_pass() -> None:
    """A cancellation that reaches an activity just after its end is no fault.

    The SDK warns of it inside its poll loop: in a program that makes warnings
    errors, the whole worker would end with it.
    """
    warnings.filterwarnings(
        "ignore", message="Cannot find activity to cancel", category=UserWarning
    )
