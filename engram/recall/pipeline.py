"""Recall from question to answers: each stage takes candidates and gives candidates.

Understand the question, bring up candidates (anew where it calls the user by name), score, weigh,
follow links, put answers before their questions, the newest of turns that say the same first and
what is outdated behind, deny, put what was replaced behind what replaced it, de-duplicate, fold,
rerank if asked, cut, explain.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from engram.domain.confidence import ConfidenceWeights, effective_confidence
from engram.domain.memories import AnyMemory, DerivedMemory, Episode, SemanticMemory
from engram.domain.scope import Scope
from engram.language.query import analyse
from engram.lifecycle.policies import is_disputed
from engram.ports import Embedder, MemoryRepository, Reranker
from engram.recall.current import current_first
from engram.recall.denials import Covers, Negations
from engram.recall.outdated import Outdated
from engram.recall.replies import replies_in_place
from engram.recall.request import RecallRequest
from engram.recall.results import Ranked, RecallHit
from engram.recall.score import explain, score, weighted
from engram.recall.search import (
    FoundMemory,
    Pool,
    PreparedQuery,
    Search,
    SearchBudget,
)
from engram.recall.stages import (
    as_sure_as_then,
    asked_of_the_user,
    below_successors,
    excerpts_behind,
    folded,
    follow,
    instead_first,
    newest_first,
    own_first,
    replaced_then,
    reranked,
    sources_of,
    unasked_endings_last,
    without_repeats,
)
from engram.settings import Settings

# What puts the newest of several first has to see them all, however few answers are wanted.
_FEWEST_LOOKED_FOR = 10
# When filters that the store cannot check leave too few answers, so many more
# searches are made, each for so many times the candidates.
MORE_ROUNDS = 2
MORE_CANDIDATES = 4
MOST_CANDIDATES = 10_000
# A pool that is filled by so much needs no other search.
_MOST_OF = 0.75


def first_reach(question: PreparedQuery, settings: Settings) -> SearchBudget:
    """How far the first search looks."""
    wanted, view = question.request.limit, question.visibility
    return SearchBudget(
        candidates=max(settings.recall_candidates, 2 * wanted),
        pool=max(settings.recall_pool, 3 * wanted),
        # Today almost everything counts; then, most of what is stored may not.
        loosely=view.as_of is None and view.valid_at is None,
    )


def stretch_of(wanted: int) -> int:
    """How many of the best are looked at together for so many answers; some drop out."""
    return wanted + wanted // 2 + 1


class Recaller:
    """Answers questions from what is remembered. Writes nothing; safe to share.

    Args:
        repository: Where the memories are.
        embedder: The one they were embedded with.
        weights: Of the composite confidence.
        settings: Bounds, numbers of candidates, weights of the score.
        covers: Whether a negation denies what a memory claims.
        reranker: Looks at the best answers once more; nobody does without it.

    Attributes:
        negations: Tells what was denied; profiles ask it, too.
    """

    def __init__(
        self,
        repository: MemoryRepository,
        embedder: Embedder,
        weights: ConfidenceWeights,
        settings: Settings,
        covers: Covers,
        reranker: Reranker | None = None,
    ) -> None:
        self._repository = repository
        self._embedder = embedder
        self._weights = weights
        self._settings = settings
        self._rules = settings.lifecycle_rules
        self._search = Search(repository, embedder)
        factors = settings.recall_factors
        self.negations = Negations(repository, embedder, covers, factors.negated)
        self._outdated = Outdated(repository, factors.outdated)
        self._reranker = reranker

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
        question = await self._prepared(scope, request, now)
        shown = request.limit
        if self._reranker is not None:
            shown = max(shown, self._settings.rerank_candidates)
        looked_for = replace_limit(question, max(shown, _FEWEST_LOOKED_FOR))
        question, chosen = await self._choose(looked_for, now)
        chosen = chosen[:shown]
        if self._reranker is not None:
            limit = self._settings.rerank_timeout
            chosen = await reranked(self._reranker, request.query, chosen, limit)
        least = request.min_score or 0.0
        passing = [one for one in chosen[: request.limit] if one.score >= least]
        return await self._present(question, passing)

    async def _prepared(self, scope: Scope, request: RecallRequest, now: datetime) -> PreparedQuery:
        return PreparedQuery(
            scope=scope,
            request=request,
            vectors=await self._embedder.embed_query(request.query),
            visibility=request.visibility(now),
            analysis=analyse(request.query, request.asked_at(now)),
        )

    async def _choose(
        self, question: PreparedQuery, now: datetime
    ) -> tuple[PreparedQuery, list[Ranked]]:
        """The question as it was read in the end, and what answers it."""
        reach = first_reach(question, self._settings)
        for more in range(MORE_ROUNDS + 1):
            pool = await self._bring_up(question, reach)
            found = (one.memory for one in pool.found)
            if not more and (asked := asked_of_the_user(question.request.query, found, now)):
                request = question.request.model_copy(update={"query": asked})
                question = await self._prepared(question.scope, request, now)
                pool = await self._bring_up(question, reach)
            if reach.loosely and pool.cut and len(pool.found) < reach.pool * _MOST_OF:
                # What does not count took the places of what does.
                reach = replace(reach, loosely=False)
                pool = await self._bring_up(question, reach)
            chosen = await self._select(question, pool)
            enough = len(chosen) >= question.request.limit
            if enough or more == MORE_ROUNDS or not pool.cut:
                break
            reach = SearchBudget(
                min(reach.candidates * MORE_CANDIDATES, MOST_CANDIDATES),
                min(reach.pool * MORE_CANDIDATES, MOST_CANDIDATES),
            )
        return question, chosen

    async def _bring_up(self, question: PreparedQuery, reach: SearchBudget) -> Pool:
        pool = await self._search.retrieve_candidates(question, reach)
        read = [one.memory for one in pool.found]
        given_way = replaced_then(read, question.visibility)
        then = await as_sure_as_then(self._repository, question, read)
        found: Iterable[FoundMemory] = pool.found
        if then:
            found = (one._replace(memory=then.get(one.memory.id, one.memory)) for one in found)
        passing = [
            one
            for one in found
            if one.memory.id not in given_way and self._passes(question, one.memory)
        ]
        return Pool(tuple(passing), pool.cut)

    async def _select(self, question: PreparedQuery, pool: Pool) -> list[Ranked]:
        """The answers among the candidates, looked at from the best down until there are enough."""
        weights, explained = self._settings.recall_weights, question.request.explain
        scored = score(pool.found, question.analysis, weights, explained=explained)
        moment = question.visibility.moment
        factors, context = self._settings.recall_factors, question.request.context
        looking_back = question.visibility.as_of is not None
        passing = weighted(scored, moment, self._rules, factors, context, looking_back=looking_back)
        if question.request.follow_links:
            passing = await follow(
                self._repository,
                question,
                passing,
                lambda memory: self._passes_all(question, memory),
                self._rules.edges,
            )
        chosen = await self._from_the_best_down(question, own_first(question, passing))
        # What was not a candidate, and came by a link or in place of another.
        then = await as_sure_as_then(self._repository, question, (one.memory for one in chosen))
        sure = (one._replace(memory=then.get(one.memory.id, one.memory)) for one in chosen)
        return [one for one in sure if self._passes(question, one.memory)] if then else chosen

    async def _from_the_best_down(
        self, question: PreparedQuery, passing: Sequence[Ranked]
    ) -> list[Ranked]:
        wanted = question.request.limit
        stride = stretch_of(wanted)
        first = replies_in_place(passing[:stride], question.request.query, question.analysis)
        if question.request.valid_at is None and question.analysis.period is None:
            first = newest_first(first, question.request.query, question.analysis)
        first = current_first(question, first)
        passing = [
            *await self._outdated.demote_outdated(
                question, first, lambda memory: self._passes_all(question, memory)
            ),
            *passing[stride:],
        ]
        standing: list[Ranked] = []
        chosen: list[Ranked] = []
        for start in range(0, len(passing), stride):
            stretch = passing[start : start + stride]
            standing.extend(await self.negations.apply(question, stretch))
            ordered = excerpts_behind(folded(without_repeats(below_successors(standing))))
            chosen = instead_first(question, below_successors(ordered))
            chosen = unasked_endings_last(question, chosen)
            rest = passing[start + stride : start + stride + 1]
            # Denied episodes have sunk; what was not looked at yet may belong before them.
            if len(chosen) >= wanted and (not rest or chosen[wanted - 1].score >= rest[0].score):
                break
        return chosen[:wanted]

    def _passes(self, question: PreparedQuery, memory: AnyMemory) -> bool:
        """What the store cannot check, and once more what must never fail."""
        if not question.visibility.counts(memory):
            return False
        if isinstance(memory, Episode):
            return True
        if (
            isinstance(memory, SemanticMemory)
            and memory.form not in question.request.answering_forms
        ):
            return False
        least = question.request.min_confidence
        if least is None:
            return True
        return self._confidence(question, memory) >= least

    def _passes_all(self, question: PreparedQuery, memory: AnyMemory) -> bool:
        """Everything, for a memory that no search has brought up."""
        request = question.request
        return (
            memory.type in request.types
            and request.admits(memory)
            and self._passes(question, memory)
        )

    def _confidence(self, question: PreparedQuery, memory: DerivedMemory) -> float:
        seen = question.visibility
        return effective_confidence(
            memory.confidence, seen.moment, self._weights, recalled_at=seen.recalled(memory)
        )

    async def _present(self, question: PreparedQuery, chosen: Sequence[Ranked]) -> list[RecallHit]:
        sources: dict[str, tuple[Episode, ...]] = {}
        if question.request.include_sources:
            sources = await sources_of(self._repository, question, [one.memory for one in chosen])
        return [
            RecallHit(
                memory=one.memory,
                score=min(max(one.score, 0.0), 1.0),
                confidence=self._confidence(question, one.memory)
                if isinstance(one.memory, DerivedMemory)
                else None,
                sources=sources.get(one.memory.id, ()),
                negated_by=one.negated_by,
                disputed=one.disputed or is_disputed(one.memory),
                explanation=explain(one, question, self._weights)
                if question.request.explain
                else None,
            )
            for one in chosen
        ]


def replace_limit(question: PreparedQuery, limit: int) -> PreparedQuery:
    """The same question for so many answers."""
    if question.request.limit == limit:
        return question
    return replace(question, request=question.request.model_copy(update={"limit": limit}))
