"""Recall from question to answers: search, fuse, follow, deny, de-duplicate, cut, explain."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from engram.domain.confidence import ConfidenceWeights
from engram.domain.memories import AnyMemory, DerivedMemory, Episode, SemanticMemory
from engram.domain.scope import Scope
from engram.ports import MemoryRepository
from engram.recall.dedupe import without_repeats
from engram.recall.explain import explain
from engram.recall.fusion import fuse
from engram.recall.links import follow
from engram.recall.models import RecallHit
from engram.recall.negations import Covers, Negations
from engram.recall.ranked import Ranked
from engram.recall.request import RecallRequest
from engram.recall.search import Question, RecallEmbedder, search, was_cut
from engram.recall.sources import sources_of
from engram.recall.succession import below_successors
from engram.settings import Settings

# When filters that the store cannot check leave too few answers, so many more
# searches are made, each for so many times the candidates.
MORE_ROUNDS = 2
MORE_CANDIDATES = 4
MOST_CANDIDATES = 10_000


class Recaller:
    """Answers questions from what is remembered. Writes nothing; safe to share.

    Args:
        repository: Where the memories are.
        embedder: The one they were embedded with.
        weights: Of the composite confidence.
        settings: Bounds and numbers of candidates.
        covers: Whether a negation denies what a memory claims.
    """

    def __init__(
        self,
        repository: MemoryRepository,
        embedder: RecallEmbedder,
        weights: ConfidenceWeights,
        settings: Settings,
        covers: Covers,
    ) -> None:
        self._repository = repository
        self._embedder = embedder
        self._weights = weights
        self._settings = settings
        self._negations = Negations(repository, embedder.encode_terms, covers)

    async def recall(self, scope: Scope, request: RecallRequest, now: datetime) -> list[RecallHit]:
        """The best answers to ``request`` within ``scope``, best first.

        Args:
            scope: Whose memory.
            request: Built by :meth:`RecallRequest.of`.
            now: The present, aware: decides what has expired and how sure Engram still is.

        Raises:
            EmbeddingFailed: the question could not be embedded.
            StorageUnavailable: the store cannot be reached.
        """
        question = Question(
            scope=scope,
            request=request,
            vectors=await self._embedder.embed_query(request.query),
            visibility=request.visibility(now),
        )
        chosen = await self._choose(question)
        return await self._present(question, chosen)

    async def _choose(self, question: Question) -> list[Ranked]:
        limit = max(self._settings.recall_candidates, 2 * question.request.limit)
        for more in range(MORE_ROUNDS + 1):
            candidates = await search(self._repository, question, limit)
            ranked = fuse(
                candidates,
                asked=question.vectors.sparse,
                encode=self._embedder.encode_terms,
                limit=limit,
            )
            chosen = await self._select(question, ranked)
            enough = len(chosen) >= question.request.limit
            if enough or more == MORE_ROUNDS or not was_cut(candidates, limit):
                break
            limit = min(limit * MORE_CANDIDATES, MOST_CANDIDATES)
        return chosen

    async def _select(self, question: Question, ranked: list[Ranked]) -> list[Ranked]:
        """The answers among the candidates, looked at from the best down until there are enough."""
        passing = [one for one in ranked if self._passes(question, one.memory)]
        if question.request.follow_links:
            passing = await follow(
                self._repository,
                question,
                passing,
                lambda memory: self._passes_all(question, memory),
            )
        wanted, stride = question.request.limit, 2 * question.request.limit
        standing: list[Ranked] = []
        chosen: list[Ranked] = []
        for start in range(0, len(passing), stride):
            stretch = passing[start : start + stride]
            standing.extend(await self._negations.apply(question, stretch))
            chosen = below_successors(without_repeats(below_successors(standing)))
            rest = passing[start + stride : start + stride + 1]
            # Denied episodes have sunk; what was not looked at yet may belong before them.
            if len(chosen) >= wanted and (not rest or chosen[wanted - 1].score >= rest[0].score):
                break
        return chosen[:wanted]

    def _passes(self, question: Question, memory: AnyMemory) -> bool:
        """What the store cannot check, and once more what must never fail."""
        if not question.visibility.counts(memory):
            return False
        least = question.request.min_confidence
        if least is None or isinstance(memory, Episode):
            return True
        return memory.confidence.score(question.visibility.now, self._weights) >= least

    def _passes_all(self, question: Question, memory: AnyMemory) -> bool:
        """Everything, for a memory that no search has brought up."""
        request = question.request
        return (
            memory.type in request.types
            and (request.session_id is None or memory.session_id == request.session_id)
            and (not request.tags or not set(request.tags).isdisjoint(memory.tags))
            and (
                request.min_selectivity is None
                or not isinstance(memory, SemanticMemory)
                or memory.selectivity >= request.min_selectivity
            )
            and self._passes(question, memory)
        )

    async def _present(self, question: Question, chosen: Sequence[Ranked]) -> list[RecallHit]:
        sources: dict[str, tuple[Episode, ...]] = {}
        if question.request.include_sources:
            sources = await sources_of(self._repository, question, [one.memory for one in chosen])
        now = question.visibility.now
        return [
            RecallHit(
                memory=one.memory,
                score=min(max(one.score, 0.0), 1.0),
                confidence=one.memory.confidence.score(now, self._weights)
                if isinstance(one.memory, DerivedMemory)
                else None,
                sources=sources.get(one.memory.id, ()),
                negated_by=one.negated_by,
                explanation=explain(one, question, self._weights)
                if question.request.explain
                else None,
            )
            for one in chosen
        ]
