"""Following links: what the answers are connected with.

Activation spreads from the best answers along their links. A step passes on a
share of what it starts from, times how sure the link still is at the moment one
looks from, less with every step; links under the bound are not followed.
A memory that several answers lead to collects from each. ``ROUNDS`` rounds in the
manner of personalised PageRank (Page et al. 1998) then settle how much each is worth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from engram.domain.lifecycle.edges import edge_confidence
from engram.domain.lifecycle.rules import EdgeRules
from engram.domain.memories import AnyMemory, DerivedMemory, Link
from engram.ports import MemoryRepository
from engram.recall.models import ExplainedLink
from engram.recall.ranked import Ranked, by_score
from engram.recall.search import Question

HOPS = 2
# What one step is worth, at full confidence of the link.
STEP = 0.5
# Weaker edges lead astray more often than not.
WEAKEST = 0.2
MOST_NEIGHBOURS = 100
# Rounds of refinement.
ROUNDS = 8


@dataclass(frozen=True, slots=True)
class _Edge:
    source: str
    target: str
    kind: str
    confidence: float


async def follow(
    repository: MemoryRepository,
    question: Question,
    found: Sequence[Ranked],
    passes: Callable[[AnyMemory], bool],
    rules: EdgeRules,
) -> list[Ranked]:
    """``found`` and what its best lead to, which passes the same filters, best first.

    What was found as well gains: of what is missing in its score to 1, the share
    that the links hint at. ``rules`` say how links weaken unless they are found again.
    """
    known = {one.memory.id: one for one in found}
    seeds = {one.memory.id: one.score for one in found[: question.request.limit]}
    memories = {one.memory.id: one.memory for one in found}
    edges, paths = await _walk(repository, question, seeds, memories, passes, rules)
    if not edges:
        return list(found)
    for memory_id, hint in _hints(seeds, edges).items():
        steps = paths.get(memory_id)
        if steps is None or hint <= 0.0:
            continue
        one = known.get(memory_id, Ranked(memories[memory_id], 0.0))
        raised = one.moved_to(one.score + hint * (1.0 - one.score), "link", steps[-1].confidence)
        known[memory_id] = replace(raised, links=steps)
    return by_score(list(known.values()))


async def _walk(
    repository: MemoryRepository,
    question: Question,
    seeds: Mapping[str, float],
    memories: dict[str, AnyMemory],
    passes: Callable[[AnyMemory], bool],
    rules: EdgeRules,
) -> tuple[list[_Edge], dict[str, tuple[ExplainedLink, ...]]]:
    """Edges up to ``HOPS`` away, and the surest path to each memory; reads what is missing."""
    edges: list[_Edge] = []
    paths: dict[str, tuple[ExplainedLink, ...]] = {}
    border = sorted(seeds, key=lambda memory_id: (-seeds[memory_id], memory_id))
    walked: set[str] = set()
    for _ in range(HOPS):
        outward = [
            edge
            for memory_id in border
            if memory_id not in walked
            for edge in _edges(question, memories.get(memory_id), rules)
        ]
        walked.update(border)
        outward.sort(key=lambda edge: (-edge.confidence, edge.target, edge.source))
        missing = {edge.target: None for edge in outward if edge.target not in memories}
        wanted = list(missing)[:MOST_NEIGHBOURS]
        if wanted:
            fetched = await repository.get(question.scope, wanted, question.request.types)
            memories |= {key: memory for key, memory in fetched.items() if passes(memory)}
        reached = [edge for edge in outward if edge.target in memories]
        for edge in reached:
            step = ExplainedLink(source_id=edge.source, kind=edge.kind, confidence=edge.confidence)
            paths.setdefault(edge.target, (*paths.get(edge.source, ()), step))
        edges.extend(reached)
        border = sorted({edge.target for edge in reached})
    return edges, paths


def _edges(question: Question, memory: AnyMemory | None, rules: EdgeRules) -> list[_Edge]:
    if not isinstance(memory, DerivedMemory):
        return []
    moment = question.visibility.moment
    return [
        _Edge(memory.id, link.target_id, link.kind.value, confidence)
        for link in memory.links
        if _known(question, link)
        and (confidence := edge_confidence(link, moment, rules)) >= WEAKEST
    ]


def _hints(seeds: Mapping[str, float], edges: Sequence[_Edge]) -> dict[str, float]:
    """How strongly the links of all others speak for each memory they lead to, 0 to 1."""
    hints: dict[str, float] = {}
    for _ in range(ROUNDS):
        rest = dict.fromkeys((edge.target for edge in edges), 1.0)
        for edge in edges:
            # What was asked for stays the source of everything.
            worth = max(seeds.get(edge.source, 0.0), hints.get(edge.source, 0.0))
            # As independent hints: several add up, and never past 1.
            rest[edge.target] *= 1.0 - worth * edge.confidence * STEP
        hints = {target: 1.0 - left for target, left in rest.items()}
    return hints


def _known(question: Question, link: Link) -> bool:
    as_of = question.visibility.as_of
    return as_of is None or link.first_seen <= as_of
