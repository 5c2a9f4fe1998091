"""The Nexus door: answering workflows of other Temporal namespaces."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from nexusrpc import HandlerError, HandlerErrorType
from nexusrpc.handler import StartOperationContext, service_handler, sync_operation
from temporalio import nexus
from temporalio.client import Client

from engram.activities.calls import CallActivities, CallInfo, Calls
from engram.activities.runtime import to_application_error, unforeseen
from engram.client.engine import MemoryEngine
from engram.client.local import direct_engine
from engram.client.memory import MemoryStore
from engram.contracts import names
from engram.contracts.attributes import attributes
from engram.contracts.calls import (
    ConsolidateArgs,
    ContextArgs,
    EncodeArgs,
    ProfileArgs,
    RecallArgs,
    UserArgs,
)
from engram.contracts.consolidation import ConsolidationReport
from engram.domain.deeds import Door
from engram.domain.scope import Scope
from engram.errors import (
    AccessDenied,
    ConflictingMessage,
    EngramError,
    InvalidInput,
    MemoryNotFound,
    TooManyRequests,
)
from engram.operations.digests import Profile
from engram.operations.nexus import MemoryService, Recalled
from engram.operations.rates import RateLimit
from engram.operations.recall import ContextBlock
from engram.operations.turns import Receipt
from engram.ports import Embedder, MemoryRepository
from engram.settings import Settings
from engram.storage.trail import AuditTrail
from engram.system import new_id, system_clock
from engram.temporal.connection import prepare_endpoint
from engram.temporal.encryption import answer_as, data_converter, for_strangers
from engram.workflows.consolidation import AskedConsolidationWorkflow
from engram.workflows.worker import configured_worker, sandbox_runner

# What Nexus calls what went wrong; what is not here is INTERNAL, or UNAVAILABLE while it may pass.
_KINDS: Final = (
    (TooManyRequests, HandlerErrorType.RESOURCE_EXHAUSTED),
    (ConflictingMessage, HandlerErrorType.CONFLICT),
    (MemoryNotFound, HandlerErrorType.NOT_FOUND),
    (AccessDenied, HandlerErrorType.UNAUTHORIZED),
    (InvalidInput, HandlerErrorType.BAD_REQUEST),
)


@asynccontextmanager
async def answering_nexus(
    client: Client, engine: MemoryEngine, settings: Settings, *, own_server: bool = False
) -> AsyncIterator[None]:
    """Answer what comes through the Nexus endpoint while the block runs; nothing without one.

    Args:
        client: Of the namespace that the endpoint leads to.
        engine: Carries out what is asked.
        settings: The endpoint, its queue, and whether callers encrypt.
        own_server: Whether the Temporal server is ours: then the endpoint is made where it is not.
    """
    if settings.nexus_endpoint is None:
        yield
        return
    if own_server:
        await prepare_endpoint(client, settings.nexus_endpoint, settings.nexus_queue)
    scope = Scope.of(settings.namespace, "nexus")
    memory = MemoryStore(engine, scope, settings, system_clock, new_id)
    # What is kept in our own namespace through it are ids and numbers.
    converter = data_converter(None) if settings.nexus_plain else client.data_converter
    door = Client(
        client.service_client,
        namespace=client.namespace,
        data_converter=for_strangers(converter),
    )
    worker = configured_worker(
        door,
        settings,
        task_queue=settings.nexus_queue,
        nexus_service_handlers=[MemoryServiceHandler(memory, settings)],
        workflows=[AskedConsolidationWorkflow],
        activities=[CallActivities(memory, Door.NEXUS).consolidate],
        workflow_runner=sandbox_runner(),
    )
    async with worker:
        yield


@asynccontextmanager
async def nexus_door(
    client: Client,
    repository: MemoryRepository,
    embedder: Embedder,
    settings: Settings,
    trail: AuditTrail | None,
) -> AsyncIterator[None]:
    """The same for a worker, which has no engine: one is made where there is an endpoint."""
    if settings.nexus_endpoint is None:
        yield
        return
    url = settings.temporal_ui_url
    engine = direct_engine(
        client, repository, embedder, settings, system_clock, ui_url=url, trail=trail
    )
    try:
        async with answering_nexus(client, engine, settings):
            yield
    finally:
        await engine.close()


@service_handler(service=MemoryService)
class MemoryServiceHandler:
    """Answers for every user of one namespace: who may call says the Temporal server.

    A request that is delivered again has the same id, so that nothing is kept twice.

    Args:
        memory: Over whose connections, and of which namespace.
        settings: Name the store, which stands in the ids of workflows, and how often may be asked.
    """

    def __init__(self, memory: MemoryStore, settings: Settings) -> None:
        self._calls = Calls(memory, Door.NEXUS)
        self._rate = RateLimit(settings.nexus_requests_per_second, "For this user it is asked")
        self._namespace = memory.scope.namespace
        self._store = settings.collection_prefix

    @sync_operation
    async def encode(self, ctx: StartOperationContext, input: EncodeArgs) -> Receipt:  # noqa: A002 - the parameter's name belongs to Nexus
        """Keep turns."""
        async with self._admitted(input):
            return await self._calls.encode(input, CallInfo(f"nexus:{ctx.request_id}"))

    @sync_operation
    async def recall(self, ctx: StartOperationContext, input: RecallArgs) -> Recalled:  # noqa: A002 - same
        """Answer a question."""
        async with self._admitted(input):
            return Recalled(hits=tuple(await self._calls.recall(input)))

    @sync_operation
    async def context(self, ctx: StartOperationContext, input: ContextArgs) -> ContextBlock:  # noqa: A002 - same
        """Answer a question with a block for a prompt."""
        async with self._admitted(input):
            return ContextBlock(context=await self._calls.context(input))

    @sync_operation
    async def profile(self, ctx: StartOperationContext, input: ProfileArgs) -> Profile:  # noqa: A002 - same
        """Tell what is known about somebody."""
        async with self._admitted(input):
            return await self._calls.profile(input)

    @nexus.workflow_run_operation
    async def consolidate(
        self,
        ctx: nexus.WorkflowRunOperationContext,
        input: ConsolidateArgs,  # noqa: A002 - same
    ) -> nexus.WorkflowHandle[ConsolidationReport]:
        """Consolidate; what is cancelled is waited for no longer."""
        async with self._admitted(input):
            scope = Scope.of(self._namespace, input.user_id)
            workflow_id = names.asked_consolidation_workflow_id(scope, ctx.request_id)
            return await ctx.start_workflow(
                AskedConsolidationWorkflow.run,
                input,
                id=names.in_store(self._store, workflow_id),
                search_attributes=attributes("consolidation", user=scope.tenant),
                static_summary=f"consolidation of {scope.tenant}, asked for through Nexus",
            )

    @asynccontextmanager
    async def _admitted(self, asked: UserArgs) -> AsyncIterator[None]:
        """Refuse other namespaces; let errors say what they are, and nothing of what was sent.

        Raises:
            HandlerError: what went wrong, caused by the typed error as a Temporal failure.
        """
        try:
            self._check(asked)
            await self._rate.check(asked.user_id)
            # The caller's history keeps the answer: without the user's key it is noise there, too.
            scope = Scope.of(self._namespace, asked.user_id)
            answer_as(names.in_store(self._store, names.nexus_answer_id(scope)))
            yield
        except EngramError as error:
            raise _refusal(error) from to_application_error(error)
        except HandlerError:
            raise
        except Exception as error:  # noqa: BLE001 - translated, logged and raised again
            what = unforeseen(error, nexus.info().endpoint)
            raise _refusal(what) from to_application_error(what)

    def _check(self, asked: UserArgs) -> None:
        if asked.namespace not in {None, self._namespace}:
            raise AccessDenied(
                "This endpoint answers for another namespace.", allowed=self._namespace
            )


def _refusal(error: EngramError) -> HandlerError:
    other = HandlerErrorType.UNAVAILABLE if error.retryable else HandlerErrorType.INTERNAL
    kind = next((kind for one, kind in _KINDS if isinstance(error, one)), other)
    return HandlerError(str(error), type=kind, retryable_override=error.retryable)
