"""The engine of a process with its own connections, and how it is put together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from urllib.parse import quote

from pydantic_ai import Embedder as AgentEmbedder
from pydantic_ai.embeddings import EmbeddingModel
from temporalio.client import Client

from engram.agents.reranking import make_reranker
from engram.client.engine import MemoryPage, MemoryStats, Receipt
from engram.client.session_writer import Acknowledged, BatchLimits, SessionWriter, split_call
from engram.contracts import names
from engram.contracts.consolidation import ConsolidationReport
from engram.contracts.messages import Population
from engram.contracts.session import (
    ConsolidationRequest,
    EncodeCall,
    EncodeReply,
    EncodeRequest,
    SessionSummary,
)
from engram.domain.buffer import RememberedTurn, Signal
from engram.domain.memories import STORED_TYPES, AnyMemory, DerivedMemory, MemoryStatus, MemoryType
from engram.domain.scope import Scope
from engram.embedding.embedder import PydanticEmbedder
from engram.errors import InvalidQuery, MemoryClosed, error_from_dict
from engram.language.negation_scope import covers
from engram.lifecycle.accesses import AccessLog
from engram.lifecycle.due import of_population
from engram.operations.admin import InspectionHandlers
from engram.operations.digests import DigestHandlers
from engram.operations.lifecycle import LifecycleHandlers
from engram.operations.memories import CommitmentHandlers, KnowledgeHandlers, UsageHandlers
from engram.operations.registry import Answer, Asked, Handlers, Operation
from engram.operations.removal import ForgettingHandlers
from engram.operations.transfer import TransferHandlers
from engram.operations.trials import TrialHandlers
from engram.ports import Clock, Equals, Filter, MemoryRepository, Missing, Scrubber
from engram.recall.context import Briefing
from engram.recall.pipeline import Recaller
from engram.recall.request import RecallRequest
from engram.recall.results import RecallHit
from engram.settings import Settings
from engram.storage.updates import one_memory
from engram.system import new_id
from engram.temporal.gateway import SpendingReader, WorkflowGateway
from engram.temporal.importing import ImportGateway
from engram.temporal.passes import PassRunner

# --- the engine of a process that holds its own connections to Temporal and the store

MAX_PAGE = 1000
_REAL = of_population(Population.REAL)
# Seconds; what is not acknowledged by then is not, and its callers are told.
_CLOSING_PATIENCE = 10.0


class DirectEngine:
    """Writes through workflows, reads from the store (recall never goes through Temporal).

    Args:
        gateway: Reaches the workflows.
        repository: Where memories are read.
        recaller: Finds those that answer.
        settings: Limits of what one update carries.
        clock: The present, for recall.
        ui_url: Base URL of the Temporal UI, when there is one.
        temporal_namespace: For links into it.
        handlers: Carry out the operations.
        accesses: Notes what was recalled; nothing is noted without it.
    """

    def __init__(
        self,
        gateway: WorkflowGateway,
        repository: MemoryRepository,
        recaller: Recaller,
        settings: Settings,
        clock: Clock,
        ui_url: str | None = None,
        temporal_namespace: str = "default",
        handlers: Handlers | None = None,
        accesses: AccessLog | None = None,
    ) -> None:
        self._gateway = gateway
        self._repository = repository
        self._recaller = recaller
        self._limits = BatchLimits(settings.max_batch_bytes, settings.max_turns_per_update)
        self._clock = clock
        self._ui_url = ui_url
        self._temporal_namespace = temporal_namespace
        self._accesses = accesses
        self._handlers = handlers or Handlers()
        self._writers: dict[tuple[Scope, str], SessionWriter] = {}
        self._closed = False

    async def encode(self, scope: Scope, session_id: str, call: EncodeCall) -> Receipt:
        """See :meth:`engram.client.engine.MemoryEngine.encode`."""
        self._check_open()
        answers: list[Acknowledged] = []
        # Part after part: what follows a part that is refused is not stored either.
        for part in split_call(call, self._limits):
            answer = await self._writer(scope, session_id).submit(part)
            if answer.outcome.error is not None:
                raise error_from_dict(answer.outcome.error)
            answers.append(answer)
        return _receipt(answers, names.session_workflow_id(scope, session_id))

    def _writer(self, scope: Scope, session_id: str) -> SessionWriter:
        key = (scope, session_id)
        if key not in self._writers:

            async def send(request: EncodeRequest) -> EncodeReply:
                return await self._gateway.encode(scope, session_id, request)

            self._writers[key] = SessionWriter(
                send, self._limits, on_idle=partial(self._forget_writer, key)
            )
        return self._writers[key]

    def _forget_writer(self, key: tuple[Scope, str]) -> None:
        self._writers.pop(key, None)

    async def recall(self, scope: Scope, request: RecallRequest) -> list[RecallHit]:
        """See :meth:`engram.client.engine.MemoryEngine.recall`."""
        now = self._clock()
        hits = await self._recaller.recall(scope, request, now)
        if self._accesses is not None:
            self._accesses.note(scope, [hit.memory for hit in hits], now)
        return [self._with_url(hit) for hit in hits] if request.explain else hits

    def _with_url(self, hit: RecallHit) -> RecallHit:
        origin = hit.memory.provenance
        if hit.explanation is None or origin.workflow_id is None:
            return hit
        url = self.run_url(origin.workflow_id, origin.run_id)
        explanation = hit.explanation.model_copy(update={"run_url": url})
        return hit.model_copy(update={"explanation": explanation})

    async def get(self, scope: Scope, memory_id: str) -> AnyMemory:
        """See :meth:`engram.client.engine.MemoryEngine.get`."""
        return await one_memory(self._repository, scope, memory_id)

    async def list_memories(
        self,
        scope: Scope,
        *,
        memory_types: Sequence[MemoryType],
        status: MemoryStatus | None,
        limit: int,
        cursor: str | None,
        include_test: bool = False,
    ) -> MemoryPage:
        """See :meth:`engram.client.engine.MemoryEngine.list_memories`."""
        if not 1 <= limit <= MAX_PAGE:
            raise InvalidQuery("The page size is out of range.", allowed=f"1 to {MAX_PAGE}")
        types = list(memory_types)
        at, inner = _parse_cursor(cursor, types)
        found: list[AnyMemory] = []
        where: Filter = () if include_test else (_REAL,)
        if status is not None:
            where = (*where, Equals("status", status.value))
        while at < len(types):
            page = await self._repository.scroll(
                scope, types[at], where=where, limit=limit - len(found), cursor=inner
            )
            found.extend(page.memories)
            inner = page.cursor
            if inner is None:
                at += 1
            if len(found) >= limit:
                break
        more = at < len(types)
        return MemoryPage(
            memories=tuple(found), cursor=f"{types[at]}:{inner or ''}" if more else None
        )

    async def history(self, scope: Scope, memory_id: str) -> list[AnyMemory]:
        """See :meth:`engram.client.engine.MemoryEngine.history`."""
        known = {memory_id: await self.get(scope, memory_id)}
        wanted = _neighbours(known.values())
        while missing := wanted - known.keys():
            found = await self._repository.get(scope, missing)
            known |= found
            wanted = _neighbours(found.values())
        return sorted(known.values(), key=lambda memory: (memory.known_at, memory.id))

    async def stats(self, scope: Scope) -> MemoryStats:
        """See :meth:`engram.client.engine.MemoryEngine.stats`."""
        active = (_REAL, Equals("status", MemoryStatus.ACTIVE.value))
        return MemoryStats(
            counts={
                kind: await self._repository.count(scope, kind, (_REAL,)) for kind in STORED_TYPES
            },
            active={
                kind: await self._repository.count(scope, kind, active) for kind in STORED_TYPES
            },
            waiting=await self._repository.count(
                scope, MemoryType.EPISODIC, (_REAL, Missing("consolidated_at"))
            ),
        )

    async def consolidate(
        self, scope: Scope, *, test_only: bool = False, dry_run: bool = False
    ) -> ConsolidationReport:
        """See :meth:`engram.client.engine.MemoryEngine.consolidate`."""
        population = Population.TEST if test_only else Population.REAL
        if dry_run:
            waiting = (of_population(population), Missing("consolidated_at"))
            episodes = await self._repository.count(scope, MemoryType.EPISODIC, waiting)
            return ConsolidationReport(dry_run=True, episodes=episodes)
        request = ConsolidationRequest(reason="asked for", population=population)
        return await self._gateway.consolidate(scope, request)

    async def end_session(self, scope: Scope, session_id: str) -> SessionSummary | None:
        """See :meth:`engram.client.engine.MemoryEngine.end_session`."""
        return await self._gateway.end_session(scope, session_id)

    async def working_memory(
        self, scope: Scope, session_id: str, *, include_test: bool = False
    ) -> list[RememberedTurn]:
        """See :meth:`engram.client.engine.MemoryEngine.working_memory`."""
        return await self._gateway.working_memory(scope, session_id, include_test=include_test)

    async def perform(
        self, scope: Scope, operation: Operation[Asked, Answer], asked: Asked
    ) -> Answer:
        """See :meth:`engram.client.engine.MemoryEngine.perform`."""
        self._check_open()
        return await self._handlers.perform(scope, operation, asked)

    def run_url(self, workflow_id: str, run_id: str | None = None) -> str | None:
        """See :meth:`engram.client.engine.MemoryEngine.run_url`."""
        if self._ui_url is None:
            return None
        base = f"{self._ui_url}/namespaces/{quote(self._temporal_namespace, safe='')}/workflows"
        workflow = f"{base}/{quote(workflow_id, safe='')}"
        return f"{workflow}/{run_id}/history" if run_id else workflow

    async def check(self) -> None:
        """See :meth:`engram.client.engine.MemoryEngine.check`."""
        self._check_open()
        await self._repository.info()
        await self._gateway.check()

    async def close(self) -> None:
        """Refuse what is new, and wait a few seconds for what was submitted."""
        self._closed = True
        writers = list(self._writers.values())
        await asyncio.gather(*(writer.close(_CLOSING_PATIENCE) for writer in writers))
        if self._accesses is not None:
            await self._accesses.close()

    def _check_open(self) -> None:
        if self._closed:
            raise MemoryClosed(
                "This memory store is closed.", hint="Use it inside its `async with` block."
            )


def _receipt(answers: Sequence[Acknowledged], workflow_id: str) -> Receipt:
    turns = [turn for answer in answers for turn in answer.outcome.turns]
    return Receipt(
        episode_ids=tuple(turn.episode_id for turn in turns),
        fact_ids=tuple(dict.fromkeys(key for turn in turns for key in turn.fact_ids)),
        negation_ids=tuple(dict.fromkeys(key for turn in turns for key in turn.negation_ids)),
        signal=max((turn.signal for turn in turns), key=lambda s: s.rank, default=Signal.NONE),
        buffered=answers[-1].buffered,
        workflow_id=workflow_id,
    )


def _neighbours(memories: Iterable[AnyMemory]) -> set[str]:
    """What the memories replaced, and what replaced them."""
    found: set[str] = set()
    for memory in memories:
        if isinstance(memory, DerivedMemory):
            found.update(memory.supersedes)
            if memory.superseded_by is not None:
                found.add(memory.superseded_by)
    return found


def _parse_cursor(cursor: str | None, types: Sequence[MemoryType]) -> tuple[int, str | None]:
    if cursor is None:
        return 0, None
    kind, _, inner = cursor.partition(":")
    if kind not in types:
        raise InvalidQuery(
            "The cursor does not belong to this listing.",
            allowed="a cursor that the same listing returned",
        )
    return [str(item) for item in types].index(kind), inner or None


# --- putting an engine together from its parts, the same way wherever it runs

EmbedderSpec = str | EmbeddingModel | AgentEmbedder
"""What names an embedder: a setting's string, or an object of Pydantic AI."""


def direct_engine(
    client: Client,
    repository: MemoryRepository,
    embedder: PydanticEmbedder,
    settings: Settings,
    clock: Clock,
    *,
    ui_url: str | None,
    scrubber: Scrubber | None = None,
) -> DirectEngine:
    """The engine of a process that is connected to Temporal and to a store."""
    gateway = WorkflowGateway(client, settings)
    handlers = Handlers()
    KnowledgeHandlers(repository).register(handlers)
    CommitmentHandlers(repository, clock, new_id).register(handlers)
    DigestHandlers(repository).register(handlers)
    UsageHandlers(SpendingReader(client)).register(handlers)
    ForgettingHandlers(gateway, scrubber).register(handlers)
    TransferHandlers(ImportGateway(client, settings), repository, embedder, clock).register(
        handlers
    )
    rules = settings.lifecycle_rules
    passes = PassRunner(client, settings)
    InspectionHandlers(repository, rules, settings.health, clock, new_id).register(handlers)
    TrialHandlers(
        repository, embedder, passes, rules, clock, new_id, settings.max_turn_bytes
    ).register(handlers)
    LifecycleHandlers(
        repository,
        embedder,
        passes,
        Briefing(repository, rules, covers, settings.briefing_candidates),
        rules,
        clock,
        new_id,
    ).register(handlers)
    return DirectEngine(
        gateway,
        repository,
        Recaller(
            repository,
            embedder,
            settings.confidence_weights,
            settings,
            covers,
            make_reranker(settings.reranker) if settings.reranker else None,
        ),
        settings,
        clock,
        ui_url=ui_url,
        temporal_namespace=settings.temporal_namespace,
        handlers=handlers,
        accesses=AccessLog(
            repository,
            settings.lifecycle_rules,
            instance_id=new_id(),
            new_write_id=new_id,
            interval=settings.access_flush_interval,
            most=settings.access_flush_memories,
        ),
    )
