"""Following links: what the answers are connected with (row R2, first cut: one step)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from engram.domain.memories import AnyMemory, DerivedMemory, Link
from engram.ports import MemoryRepository
from engram.recall.ranked import LinkStep, Ranked, by_score
from engram.recall.search import Question

# What one step away from an answer is worth, at full confidence of the link.
STEP = 0.5
# Weaker edges lead astray more often than not (row R5).
WEAKEST = 0.2
MOST_NEIGHBOURS = 100


async def follow(
    repository: MemoryRepository,
    question: Question,
    found: Sequence[Ranked],
    passes: Callable[[AnyMemory], bool],
) -> list[Ranked]:
    """``found`` and the neighbours of its best, which pass the same filters.

    A neighbour that was found as well keeps the better of its two scores.
    """
    steps = _steps(question, found[: question.request.limit])
    known = {one.memory.id: one for one in found}
    missing = [memory_id for memory_id in steps if memory_id not in known]
    fetched = (
        await repository.get(question.scope, missing, question.request.types) if missing else {}
    )
    for memory_id, step in steps.items():
        one = known.get(memory_id)
        if one is not None:
            if one.score < step.contribution:
                gain = step.contribution - one.score
                linked = replace(step, contribution=gain)
                known[memory_id] = replace(one, score=step.contribution, link=linked)
        elif (memory := fetched.get(memory_id)) is not None and passes(memory):
            known[memory_id] = Ranked(memory=memory, score=step.contribution, link=step)
    return by_score(list(known.values()))


def _steps(question: Question, found: Sequence[Ranked]) -> dict[str, LinkStep]:
    """The best step to each neighbour, best first, bounded."""
    best: dict[str, LinkStep] = {}
    for one in found:
        if not isinstance(one.memory, DerivedMemory):
            continue
        for link in one.memory.links:
            if link.confidence < WEAKEST or not _known(question, link):
                continue
            step = LinkStep(one.memory.id, link.confidence, one.score * link.confidence * STEP)
            if link.target_id not in best or best[link.target_id].contribution < step.contribution:
                best[link.target_id] = step
    ordered = sorted(best.items(), key=lambda item: (-item[1].contribution, item[0]))
    return dict(ordered[:MOST_NEIGHBOURS])


def _known(question: Question, link: Link) -> bool:
    as_of = question.visibility.as_of
    return as_of is None or link.first_seen <= as_of
