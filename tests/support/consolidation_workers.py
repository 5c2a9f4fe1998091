"""A user's memory with consolidation running on it, for the tests of the workflow."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from temporalio import activity
from temporalio.client import Client, WithStartWorkflowOperation, WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import ApplicationError
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
    Worker,
)

from engram.activities.consolidation import (
    ConsolidationStoreActivitiesImpl,
    DigestActivitiesImpl,
)
from engram.activities.models import ConsolidationModelActivitiesImpl
from engram.activities.runtime import TypedErrorInterceptor
from engram.agents.asking import Rules, Thinker, followed
from engram.agents.extraction import ExtractionAgent
from engram.agents.linking import LinkingAgent
from engram.consolidation.apply import PlanWriter
from engram.contracts import names
from engram.contracts.attributes import attributes
from engram.contracts.consolidation import (
    ConsolidationPolicy,
    ConsolidationReport,
    ConsolidationState,
)
from engram.contracts.session import ConsolidationRequest
from engram.digests.stage import Digests
from engram.domain.identity import episode_id
from engram.domain.memories import Episode, MemoryForm, MemoryType, SemanticMemory
from engram.domain.scope import Scope
from engram.embedding.choice import make_embedder
from engram.ports import Embedder, MemoryRepository, NewMemory
from engram.settings import Settings
from engram.workflows.consolidation import ConsolidationWorkflow
from engram.workflows.worker import sandbox_runner
from tests.support.rules_model import RulesModel


def day(number: int, month: int = 1, year: int = 2025) -> datetime:
    """A day in 2025."""
    return datetime(year, month, number, 12, tzinfo=UTC)


@dataclass
class Faults(Interceptor):
    """Makes activities fail once, before or after their effect.

    Attributes:
        before: Activity types that fail once before doing anything.
        after: Activity types that fail once when everything is done.
        fatal: Activity types that fail once, for good, before doing anything.
        during: What happens while an activity of that type runs.
        calls: Every activity type that was executed, in order.
    """

    before: set[str] = field(default_factory=set)
    after: set[str] = field(default_factory=set)
    fatal: set[str] = field(default_factory=set)
    during: dict[str, Callable[[], Awaitable[None]]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002 - the parameter's name belongs to Temporal's interface
        """See the base class."""
        return _Faulty(next, self)


class _Faulty(ActivityInboundInterceptor):
    def __init__(self, inner: ActivityInboundInterceptor, faults: Faults) -> None:
        super().__init__(inner)
        self._faults = faults

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002 - the parameter's name belongs to Temporal's interface
        name = activity.info().activity_type
        self._faults.calls.append(name)
        if name in self._faults.before:
            self._faults.before.discard(name)
            raise ApplicationError("crashed before", type="crash")
        if name in self._faults.fatal:
            self._faults.fatal.discard(name)
            raise ApplicationError("crashed for good", type="crash", non_retryable=True)
        if name in self._faults.during:
            await self._faults.during[name]()
        result = await super().execute_activity(input)
        if name in self._faults.after:
            self._faults.after.discard(name)
            raise ApplicationError("crashed after", type="crash")
        return result


class Picky(RulesModel):
    """The rules, behind a provider that fails by what it is asked, or for a while.

    Args:
        words: Requests with these words fail with that.
        moods: What the first requests fail with, whatever they are.
    """

    def __init__(self, words: dict[str, Exception], moods: Iterable[Exception] = ()) -> None:
        super().__init__()
        self.words = words
        self.moods = list(moods)
        self.asked = 0

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """See the base class."""
        self.asked += 1
        if self.moods:
            raise self.moods.pop(0)
        for word, failure in self.words.items():
            if word in str(messages):
                raise failure
        return await super().request(messages, model_settings, model_request_parameters)


@dataclass
class Memory:
    """One user's memory, and the means to consolidate it."""

    client: Client
    repository: MemoryRepository
    embedder: Embedder
    scope: Scope
    policy: ConsolidationPolicy
    queue: str
    faults: Faults

    async def say(self, *turns: tuple[str, datetime], session: str = "s1", **more: Any) -> None:
        """Store turns as a session would."""
        episodes = [
            Episode(
                id=episode_id(self.scope, session, f"{session}-{at.isoformat()}-{words}"),
                namespace=self.scope.namespace,
                user_id=self.scope.user_id,
                content=words,
                known_at=at,
                created_at=at,
                session_id=session,
                role="user",
                timestamp=at,
                message_id=f"{session}-{at.isoformat()}-{words}",
                sequence=number,
                **more,
            )
            for number, (words, at) in enumerate(turns)
        ]
        vectors = await self.embedder.embed_documents([e.indexed_text for e in episodes])
        pairs = zip(episodes, vectors, strict=True)
        await self.repository.insert(self.scope, [NewMemory(e, v) for e, v in pairs])

    async def consolidate(self) -> ConsolidationReport:
        """Ask for a pass and wait for its report."""
        start: WithStartWorkflowOperation[Any, Any] = WithStartWorkflowOperation(
            names.CONSOLIDATION_WORKFLOW,
            ConsolidationState(scope=self.scope, policy=self.policy),
            id=names.consolidation_workflow_id(self.scope),
            task_queue=self.queue,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            result_type=ConsolidationReport,
            search_attributes=attributes("consolidation", user=self.scope.tenant),
        )
        report: ConsolidationReport = await self.client.execute_update_with_start_workflow(
            names.CONSOLIDATE_UPDATE,
            ConsolidationRequest(reason="asked"),
            start_workflow_operation=start,
            result_type=ConsolidationReport,
        )
        return report

    async def request(
        self, reason: str = "ten turns wait", session: str | None = None
    ) -> WorkflowHandle[Any, Any]:
        """Signal-with-start, as sessions do."""
        return await self.client.start_workflow(
            names.CONSOLIDATION_WORKFLOW,
            ConsolidationState(scope=self.scope, policy=self.policy),
            id=names.consolidation_workflow_id(self.scope),
            task_queue=self.queue,
            start_signal=names.REQUEST_CONSOLIDATION_SIGNAL,
            start_signal_args=[ConsolidationRequest(reason=reason, session_id=session)],
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            result_type=ConsolidationReport,
            search_attributes=attributes("consolidation", user=self.scope.tenant),
        )

    async def semantic(self) -> list[SemanticMemory]:
        """Everything it knows, in order of when that became known."""
        page = await self.repository.scroll(self.scope, MemoryType.SEMANTIC, limit=500)
        return [m for m in page.memories if isinstance(m, SemanticMemory) and not m.detail]

    async def episodes(self) -> list[Episode]:
        """Every turn."""
        page = await self.repository.scroll(self.scope, MemoryType.EPISODIC, limit=500)
        return [m for m in page.memories if isinstance(m, Episode)]

    async def picture(self) -> list[dict[str, Any]]:
        """What it knows, without what differs between two runs that did the same."""
        left_out = {"created_at", "derived_at", "revision", "write_id", "provenance"}
        return [
            memory.model_dump(mode="json", exclude={*left_out, "operation_ids"})
            | {"links": sorted((x.target_id, x.kind) for x in memory.links)}
            for memory in sorted(await self.semantic(), key=lambda m: m.id)
        ]


@asynccontextmanager
async def consolidating(
    client: Client,
    repository: MemoryRepository,
    settings: Settings,
    *,
    model: Thinker | None = None,
    scope: Scope | None = None,
    faults: Faults | None = None,
) -> AsyncIterator[Memory]:
    """Workers on both queues, for a user of their own."""
    faults = faults or Faults()
    embedder = make_embedder("wordllama")
    storing = ConsolidationStoreActivitiesImpl(repository, embedder, lambda: uuid4().hex)
    digesting = DigestActivitiesImpl(Digests(repository, embedder, lambda: uuid4().hex))
    asked = model or Rules()
    thinking = ConsolidationModelActivitiesImpl(
        repository,
        embedder,
        ExtractionAgent(asked),
        LinkingAgent(asked),
        learning=followed(asked, settings.learning_by_namespace),
        writer=PlanWriter(repository, embedder, lambda: uuid4().hex),
    )
    interceptors: Sequence[Interceptor] = [TypedErrorInterceptor(), faults]
    memory = Memory(
        client=client,
        repository=repository,
        embedder=embedder,
        scope=scope or Scope.of("default", f"user-{uuid4().hex[:8]}"),
        policy=ConsolidationPolicy.fixed_by(settings),
        queue=settings.store_queue,
        faults=faults,
    )
    async with (
        Worker(
            client,
            task_queue=settings.store_queue,
            workflows=[ConsolidationWorkflow],
            activities=[
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
            ],
            workflow_runner=sandbox_runner(),
            interceptors=interceptors,
        ),
        Worker(
            client,
            task_queue=settings.model_queue,
            activities=[thinking.extract, thinking.link],
            interceptors=interceptors,
        ),
    ):
        yield memory


def current(memories: Iterable[SemanticMemory]) -> set[str]:
    """The contents that hold now, without what merely sums them up."""
    stated = (m for m in memories if m.form is not MemoryForm.SUMMARY)
    return {m.content for m in stated if m.superseded_by is None}
