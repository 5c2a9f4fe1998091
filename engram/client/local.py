"""The engine of a process with its own connections, and how it is put together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import quote

from temporalio.client import Client

from engram.domain.scope import Scope
from engram.errors import EngramError, MemoryClosed
from engram.language.guarding import PersonalDataGuard
from engram.language.negation_scope import covers
from engram.lifecycle.accesses import AccessLog
from engram.operations.admin import InspectionHandlers
from engram.operations.audit import AuditHandlers, Auditor
from engram.operations.digests import DigestHandlers
from engram.operations.lifecycle import LifecycleHandlers
from engram.operations.memories import CommitmentHandlers, MemoryHandlers, UsageHandlers
from engram.operations.progress import ProgressHandlers
from engram.operations.recall import RecallHandlers
from engram.operations.registry import Answer, Asked, Handlers, Operation
from engram.operations.removal import ForgettingHandlers
from engram.operations.reviews import ReviewHandlers
from engram.operations.transfer import TransferHandlers
from engram.operations.trials import TrialHandlers
from engram.operations.turns import TurnHandlers
from engram.ports import Clock, Embedder, MemoryRepository, Reranker, Scrubber
from engram.recall.context import Briefing
from engram.recall.pipeline import Recaller
from engram.settings import Settings
from engram.system import new_id
from engram.temporal.gateway import SpendingReader, WorkflowGateway
from engram.temporal.importing import ImportGateway
from engram.temporal.passes import PassRunner
from engram.temporal.retry import being_cancelled
from engram.temporal.reviews import ReviewGateway

if TYPE_CHECKING:
    from pydantic_ai import Embedder as AgentEmbedder
    from pydantic_ai.embeddings import EmbeddingModel

    from engram.storage.trail import AuditTrail

# --- the engine of a process that holds its own connections to Temporal and the store


class RunLinks:
    """Where the Temporal UI shows a run.

    Args:
        ui_url: Base URL of the UI, when there is one.
        temporal_namespace: Whose runs.
    """

    def __init__(self, ui_url: str | None, temporal_namespace: str) -> None:
        namespace = quote(temporal_namespace, safe="")
        self._base = ui_url and f"{ui_url}/namespaces/{namespace}/workflows"

    def __call__(self, workflow_id: str, run_id: str | None = None) -> str | None:
        """The address of a run, or of a workflow; None without a UI."""
        if not self._base:
            return None
        workflow = f"{self._base}/{quote(workflow_id, safe='')}"
        return f"{workflow}/{run_id}/history" if run_id else workflow


# Seconds for what is no turn: an answer from the store takes less, and work such as a pass more.
_CALLS_PATIENCE = 2.0


class RunningCalls:
    """The calls that run, none of which outlives what it is carried out over."""

    def __init__(self) -> None:
        self._ends: set[asyncio.Timeout] = set()
        self._all_over = asyncio.Event()
        self._closed = False

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """While the block runs, a call does.

        Raises:
            MemoryClosed: there are no more, or it was not done when they were closed.
        """
        self._check_open()
        try:
            async with asyncio.timeout(None) as end:
                self._ends.add(end)
                try:
                    yield
                finally:
                    self._ends.discard(end)
                    if not self._ends:
                        self._all_over.set()
        except TimeoutError as error:
            if end.expired():
                raise _closed_meanwhile() from error
            raise
        except asyncio.CancelledError as error:
            # Of turns that nobody has acknowledged by then, and not of whoever waits for them.
            if self._closed and not being_cancelled():
                raise _closed_meanwhile() from error
            raise

    def _check_open(self) -> None:
        if self._closed:
            raise MemoryClosed(
                "This memory store is closed.", hint="Use it inside its `async with` block."
            )

    def refuse_more(self) -> None:
        """From now on there are none but those that run."""
        self._closed = True

    async def close(self, patience: float) -> None:
        """Wait for those that run; what takes longer than ``patience`` seconds is ended."""
        if not self._ends:
            return
        self._all_over.clear()
        when = asyncio.get_running_loop().time() + patience
        for end in self._ends:
            end.reschedule(when)
        await self._all_over.wait()


def _closed_meanwhile() -> MemoryClosed:
    return MemoryClosed(
        "The memory was closed while this was running.",
        hint="Wait for calls before you close it. A run that was begun, such "
        "as a consolidation, goes on by itself; in a data folder, when it is opened again.",
    )


class DirectEngine:
    """Carries operations out in this process. See :class:`engram.client.engine.MemoryEngine`.

    Args:
        gateway: Reaches the workflows.
        repository: Where memories are read.
        handlers: Carry out the operations.
        turns: What it has submitted is waited for at the end.
        recalls: What it has noted is written down at the end.
        links: Addresses in the Temporal UI.
        auditor: Notes what is asked; None: nothing is noted.
    """

    def __init__(
        self,
        gateway: WorkflowGateway,
        repository: MemoryRepository,
        handlers: Handlers,
        turns: TurnHandlers,
        recalls: RecallHandlers,
        links: RunLinks,
        auditor: Auditor | None = None,
    ) -> None:
        self._gateway = gateway
        self._repository = repository
        self._handlers = handlers
        self._turns = turns
        self._recalls = recalls
        self._links = links
        self._auditor = auditor
        self._calls = RunningCalls()

    async def call(
        self, scope: Scope, operation: Operation[Asked, Answer], request: Asked
    ) -> Answer:
        """See :meth:`engram.client.engine.MemoryEngine.call`."""
        async with self._calls.one():
            return await (self._auditor or self._handlers).call(scope, operation, request)

    def refused(self, scope: Scope, action: str, error: EngramError) -> None:
        """See :meth:`engram.client.engine.MemoryEngine.refused`."""
        if self._auditor is not None:
            self._auditor.refused(scope, action, error)

    def run_url(self, workflow_id: str, run_id: str | None = None) -> str | None:
        """See :meth:`engram.client.engine.MemoryEngine.run_url`."""
        return self._links(workflow_id, run_id)

    async def check(self, *, store_only: bool = False) -> None:
        """See :meth:`engram.client.engine.MemoryEngine.check`."""
        async with self._calls.one():
            await self._repository.info()
            if not store_only:
                await self._gateway.check()

    async def close(self) -> None:
        """Refuse what is new, wait a few seconds for what was submitted, and end what is left."""
        self._calls.refuse_more()
        await self._turns.close()
        await self._calls.close(_CALLS_PATIENCE)
        await self._recalls.close()


# --- putting an engine together from its parts, the same way wherever it runs

EmbedderSpec: TypeAlias = "str | EmbeddingModel | AgentEmbedder"
"""What names an embedder: a setting's string, or an object of Pydantic AI."""


def direct_engine(
    client: Client,
    repository: MemoryRepository,
    embedder: Embedder,
    settings: Settings,
    clock: Clock,
    *,
    ui_url: str | None,
    scrubber: Scrubber | None = None,
    trail: AuditTrail | None = None,
    ready: Callable[[], Awaitable[None]] | None = None,
) -> DirectEngine:
    """The engine of a process that is connected to Temporal and to a store.

    What is asked for with ``ready`` is loaded before the first turn is handed on.
    """
    gateway, passes = WorkflowGateway(client, settings), PassRunner(client, settings)
    reviews = ReviewGateway(client, settings)
    rules, links = settings.lifecycle_rules, RunLinks(ui_url, settings.temporal_namespace)
    recaller = Recaller(
        repository, embedder, settings.confidence_weights, settings, covers, _reranker(settings)
    )
    briefing = Briefing(repository, rules, recaller.negations, settings.briefing_candidates)
    imports = ImportGateway(client, settings)
    transfers = TransferHandlers(imports, repository, embedder, clock, settings.max_running_imports)
    turns = TurnHandlers(gateway, repository, settings, clock, embedder.identity, links, ready)
    recalls = RecallHandlers(recaller, clock, _access_log(repository, settings), links)
    handlers = Handlers(
        turns,
        recalls,
        MemoryHandlers(repository),
        ProgressHandlers(gateway, repository, clock),
        CommitmentHandlers(repository, clock, new_id),
        DigestHandlers(repository, recaller.negations, clock, settings.digests),
        UsageHandlers(SpendingReader(client, settings.collection_prefix)),
        ForgettingHandlers(gateway, scrubber, (turns.running, transfers.running)),
        LifecycleHandlers(
            repository, embedder, passes, briefing, rules, clock, new_id, reviews, settings.digests
        ),
        ReviewHandlers(reviews, repository),
        InspectionHandlers(repository, rules, settings.health, clock, new_id),
        AuditHandlers(trail),
        TrialHandlers(
            repository,
            embedder,
            passes,
            rules,
            clock,
            new_id,
            settings.max_turn_bytes,
            PersonalDataGuard.of(settings),
        ),
        transfers,
    )
    auditor = None if trail is None else Auditor(handlers, trail, new_id)
    return DirectEngine(gateway, repository, handlers, turns, recalls, links, auditor)


def _reranker(settings: Settings) -> Reranker | None:
    if not settings.reranker:
        return None
    from engram.agents.reranking import make_reranker  # noqa: PLC0415 - only what is used loads

    return make_reranker(settings.reranker)


def _access_log(repository: MemoryRepository, settings: Settings) -> AccessLog:
    return AccessLog(
        repository,
        settings.lifecycle_rules,
        instance_id=new_id(),
        new_write_id=new_id,
        interval=settings.access_flush_interval,
        most=settings.access_flush_memories,
    )
