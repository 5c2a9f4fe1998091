"""Putting an engine together from its parts, the same way wherever it runs."""

from __future__ import annotations

from pydantic_ai import Embedder as AgentEmbedder
from pydantic_ai.embeddings import EmbeddingModel
from temporalio.client import Client

from engram.agents.reranking import make_reranker
from engram.client.direct import DirectEngine
from engram.client.importing import ImportGateway
from engram.client.operations.commitments import CommitmentHandlers
from engram.client.operations.digests import DigestHandlers
from engram.client.operations.forgetting import ForgettingHandlers
from engram.client.operations.handlers import Handlers
from engram.client.operations.inspection import InspectionHandlers
from engram.client.operations.knowledge import KnowledgeHandlers
from engram.client.operations.lifecycle import LifecycleHandlers
from engram.client.operations.transfer import TransferHandlers
from engram.client.operations.trials import TrialHandlers
from engram.client.operations.usage import UsageHandlers
from engram.client.passes import PassRunner
from engram.client.spending import SpendingReader
from engram.client.system import new_id
from engram.client.temporal import WorkflowGateway
from engram.domain.negation_cover import covers
from engram.embedding.embedder import PydanticEmbedder
from engram.ports import Clock, MemoryRepository, Scrubber
from engram.recall.briefing import Briefing
from engram.recall.pipeline import Recaller
from engram.settings import Settings
from engram.writing.accesses import AccessLog

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
