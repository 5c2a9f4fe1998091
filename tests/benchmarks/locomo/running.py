"""Asks every question of every conversation and measures the answers."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from engram.domain.memories import Episode
from engram.recall.results import RecallHit
from tests.benchmarks.locomo.conversations import Conversation, Question
from tests.benchmarks.locomo.memories import Memories, opened
from tests.benchmarks.locomo.metrics import CUTS, DEPTH, score

MISLEADING = 5
"""The category whose evidence is the turn that misleads; never part of the overall figures."""
CATEGORIES = {1: "several turns", 2: "dates", 3: "open", 4: "one turn", 5: "misleading"}


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for one question.

    Attributes:
        ranking: Ids of the turns, best first.
        seconds: How long recall took.
    """

    conversation: str
    question: Question
    hits: tuple[RecallHit, ...]
    seconds: float

    @property
    def ranking(self) -> tuple[str, ...]:
        """The ids of the turns, best first: a hit counts for its own turn only."""
        return ranking(self.hits)


def ranking(hits: Iterable[RecallHit]) -> tuple[str, ...]:
    """The ids of the turns among the hits, in their order."""
    return tuple(hit.memory.message_id for hit in hits if isinstance(hit.memory, Episode))


async def run(
    conversations: Sequence[Conversation],
    folder: Path,
    *,
    embedded: bool = False,
    depth: int = DEPTH,
    explain: bool = False,
) -> list[Answer]:
    """Encode all, then ask all."""
    async with opened(folder, embedded=embedded) as memories:
        for conversation in conversations:
            await memories.keep(conversation)
        return [
            await _ask(memories, conversation, question, depth, explain=explain)
            for conversation in conversations
            for question in conversation.questions
        ]


async def _ask(
    memories: Memories, conversation: Conversation, question: Question, depth: int, *, explain: bool
) -> Answer:
    started = time.perf_counter()
    hits = await memories.ask(conversation, question.text, limit=depth, explain=explain)
    took = time.perf_counter() - started
    return Answer(conversation.name, question, tuple(hits), took)


def report(answers: Sequence[Answer]) -> str:
    """A table: overall (categories 1 to 4), by category, and the misleading ones apart."""
    rows = [_head()]
    counted = [one for one in answers if one.question.category != MISLEADING]
    for category in sorted({one.question.category for one in counted}):
        chosen = [one for one in counted if one.question.category == category]
        rows.append(_row(f"{category} {CATEGORIES.get(category, '')}", chosen))
    rows.append(_row("1-4", counted))
    misleading = [one for one in answers if one.question.category == MISLEADING]
    if misleading:
        rows.append(_row(f"{MISLEADING} {CATEGORIES[MISLEADING]}", misleading))
    times = sorted(one.seconds * 1000 for one in answers)
    if times:
        rows.append(
            f"time per question: median {median(times):.1f} ms, "
            f"99th percentile {times[int(len(times) * 0.99)]:.1f} ms"
        )
    return "\n".join(rows)


def _head() -> str:
    names = [*(f"R@{cut}" for cut in CUTS), "hit@10", "MRR", "nDCG@10"]
    return f"{'category':<18}{'n':>6}" + "".join(f"{name:>9}" for name in names)


def _row(name: str, answers: Sequence[Answer]) -> str:
    found = score((one.ranking, one.question.evidence) for one in answers)
    figures = [*(found.recall[cut] for cut in CUTS), found.hit, found.mrr, found.ndcg]
    return f"{name:<18}{found.questions:>6}" + "".join(f"{figure:>9.3f}" for figure in figures)
