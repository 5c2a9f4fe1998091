"""Measuring recall with settings, comparing two, and fitting the weights of the score."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import fmean
from typing import Final

from engram.domain.memories import Episode
from engram.domain.rules import RankingWeights
from engram.errors import InvalidInput
from engram.evaluation.memories import MeasuredMemory
from engram.evaluation.metrics import (
    DEPTH,
    Difference,
    Ranking,
    paired_bootstrap,
    recall_at,
    reciprocal_rank,
)
from engram.evaluation.sets import MISLEADING
from engram.evaluation.talks import Talk, TalkQuestion
from engram.language.query import Analysis, analyse
from engram.recall.pipeline import stretch_of
from engram.recall.replies import replies_in_place
from engram.recall.results import Ranked, RecallHit, by_score
from engram.recall.score import score, weighted
from engram.recall.search import FoundMemory
from engram.recall.stages import newest_first, without_repeats
from engram.settings import Settings

FEWEST_TO_FIT: Final = 100
"""Questions; fewer would fit the weights to chance."""
FOLDS: Final = 5
_TOP: Final = 10
_STEPS: Final = (0.0, 0.5, 0.75, 1.25, 1.5, 2.0)
"""What a weight is multiplied with in search of a better one."""
_ROUNDS: Final = 3
"""How often every weight is looked at; a further round changed none in any set we have."""

Draw = Callable[[Sequence[float], int], Sequence[float]]
Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class RankedAnswer:
    """A question, and the ids of the turns that came back, best first."""

    question: TalkQuestion
    ranking: tuple[str, ...]

    @property
    def pair(self) -> Ranking:
        """What figures are computed from."""
        return self.ranking, self.question.evidence

    @property
    def found(self) -> float:
        """Share of the evidence among the first 10."""
        return recall_at(_TOP, *self.pair)

    @property
    def first(self) -> float:
        """1 / rank of the first evidence."""
        return reciprocal_rank(*self.pair)


async def measure(
    memory: MeasuredMemory, talks: Sequence[Talk], settings: Settings, progress: Progress
) -> list[RankedAnswer]:
    """Ask every question of talks that are kept already.

    Args:
        memory: Holds them.
        talks: With their questions.
        settings: Recall's.
        progress: Told how many questions are answered, one by one.
    """
    answers: list[RankedAnswer] = []
    for talk in talks:
        for question in talk.questions:
            hits = await memory.ask(talk, question, settings)
            answers.append(RankedAnswer(question, ids_of(hits)))
            progress(len(answers))
    return answers


def ids_of(found: Iterable[Ranked | RecallHit]) -> tuple[str, ...]:
    """The ids that the source has for the turns among them, in their order."""
    memories = (one.memory for one in found)
    return tuple(one.message_id for one in memories if isinstance(one, Episode))


def counted(answers: Iterable[RankedAnswer]) -> list[RankedAnswer]:
    """Without the questions that mislead."""
    return [one for one in answers if one.question.kind != MISLEADING]


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two ways of answering the same questions differ.

    Attributes:
        found: In the share of the evidence among the first 10.
        first: In 1 / rank of the first evidence.
    """

    found: Difference
    first: Difference


def compare(
    before: Sequence[RankedAnswer], after: Sequence[RankedAnswer], draw: Draw
) -> Comparison:
    """How much better ``after`` is, and whether that is more than noise.

    Args:
        before: Answers to the questions.
        after: Answers to the same questions, in the same order.
        draw: See :func:`paired_bootstrap`.

    Raises:
        ValueError: they are not of the same questions.
    """
    return Comparison(
        paired_bootstrap([one.found for one in before], [one.found for one in after], draw),
        paired_bootstrap([one.first for one in before], [one.first for one in after], draw),
    )


# --- fitting: what recall brings up stays the same, only its order is tried


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question with what the store brings up for it.

    Attributes:
        now: When it is asked.
        analysis: What it asks for.
        found: The candidates, best first by the search.
        denied: Ids of the turns among them that a negation speaks against.
    """

    question: TalkQuestion
    now: datetime
    analysis: Analysis
    found: tuple[FoundMemory, ...]
    denied: frozenset[str]

    def ranking(self, settings: Settings) -> tuple[str, ...]:
        """The ids of the turns that are answered, best first: as recall does.

        Without links, and with no conclusions to follow.
        """
        scored = score(self.found, self.analysis, settings.recall_weights, explained=False)
        factors = settings.recall_factors
        found = weighted(scored, self.now, settings.lifecycle_rules, factors)
        stride = stretch_of(DEPTH)
        first = replies_in_place(found[:stride], self.question.text, self.analysis)
        if self.analysis.period is None:
            first = newest_first(first, self.question.text, self.analysis)
        found = [*first, *found[stride:]]
        lowered = [
            one.times(factors.negated, "negated") if one.memory.id in self.denied else one
            for one in found
        ]
        return ids_of(without_repeats(by_score(lowered))[:DEPTH])

    def answer(self, settings: Settings) -> RankedAnswer:
        """The same, with its question."""
        return RankedAnswer(self.question, self.ranking(settings))


async def bring_up(
    memory: MeasuredMemory, talks: Sequence[Talk], settings: Settings, progress: Progress
) -> list[AskedQuestion]:
    """Every question of talks that are kept already, with its candidates."""
    asked: list[AskedQuestion] = []
    for talk in talks:
        for question in talk.questions:
            now, found, denied = await memory.bring_up(talk, question, settings)
            asked.append(AskedQuestion(question, now, analyse(question.text, now), found, denied))
            progress(len(asked))
    return asked


@dataclass(frozen=True, slots=True)
class Fit:
    """Weights that were fitted, and what they are worth on questions they were not fitted to.

    Attributes:
        weights: Fitted to all questions.
        gain: Of weights that were fitted to four fifths of the questions, measured on the last
            fifth, for each fifth in turn.
        questions: How many there were.
    """

    weights: RankingWeights
    gain: Comparison
    questions: int


def fit(asked: Sequence[AskedQuestion], settings: Settings, draw: Draw) -> Fit:
    """Fit the weights of the score to questions, with cross-validation.

    Each weight in turn is made larger or smaller as long as the mean of R@10 and MRR grows.

    Args:
        asked: Questions with their candidates.
        settings: Where it begins.
        draw: See :func:`paired_bootstrap`.

    Raises:
        InvalidInput: there are fewer than 100 questions.
    """
    chosen = [one for one in asked if one.question.kind != MISLEADING]
    if len(chosen) < FEWEST_TO_FIT:
        raise InvalidInput(
            f"There are {len(chosen)} questions with evidence.",
            allowed=f"{FEWEST_TO_FIT} or more: fewer would fit the weights to chance",
        )
    before, after = [], []
    for fold in range(FOLDS):
        kept = [one for place, one in enumerate(chosen) if place % FOLDS != fold]
        weights = _fitted(kept, settings)
        for one in chosen[fold::FOLDS]:
            before.append(one.answer(settings))
            after.append(one.answer(_with(settings, weights)))
    return Fit(_fitted(chosen, settings), compare(before, after, draw), len(chosen))


def _fitted(asked: Sequence[AskedQuestion], settings: Settings) -> RankingWeights:
    best = settings.recall_weights
    reached = _worth(asked, settings)
    for _ in range(_ROUNDS):
        before = reached
        for name in RankingWeights.model_fields:
            start: float = getattr(best, name)
            for step in _STEPS:
                tried = best.model_copy(update={name: round(start * step, 3)})
                worth = _worth(asked, _with(settings, tried))
                if worth > reached:
                    best, reached = tried, worth
        if reached == before:
            break
    return best


def _with(settings: Settings, weights: RankingWeights) -> Settings:
    return settings.model_copy(update={"recall_weights": weights})


def _worth(asked: Sequence[AskedQuestion], settings: Settings) -> float:
    answers = [one.answer(settings) for one in asked]
    return fmean((one.found + one.first) / 2 for one in answers)


def by_kind(answers: Sequence[RankedAnswer]) -> dict[str, list[RankedAnswer]]:
    """Answers by the kind of their question, in order of the kinds' names."""
    kinds: dict[str, list[RankedAnswer]] = {}
    for one in sorted(answers, key=lambda each: each.question.kind):
        kinds.setdefault(one.question.kind, []).append(one)
    return kinds
