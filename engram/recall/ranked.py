"""A candidate on its way to becoming an answer."""

from __future__ import annotations

from dataclasses import dataclass, replace

from engram.domain.memories import AnyMemory, MemoryType
from engram.recall.models import ExplainedLink, ScorePart


def part_of(name: str, value: float, weight: float, raw: float | None = None) -> ScorePart:
    """A part of a score.

    Args:
        name: What was looked at.
        value: What was found, 0 to 1.
        weight: Its share of the score; negative where it takes away.
        raw: What was measured, where that is another number.
    """
    return ScorePart(name=name, raw=raw, value=value, weight=weight, contribution=value * weight)


def change(name: str, by: float, raw: float | None = None) -> ScorePart:
    """A part that adds ``by`` to a score, or takes it away."""
    return part_of(name, abs(by), 1.0 if by > 0 else -1.0, raw)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A memory with its score and what the score is made of; never changed, only replaced.

    Attributes:
        parts: Their contributions sum up to the score.
        links: The steps by which it was reached, from an answer on.
        negated_by: Negations that speak against it.
    """

    memory: AnyMemory
    score: float
    parts: tuple[ScorePart, ...] = ()
    links: tuple[ExplainedLink, ...] = ()
    negated_by: tuple[str, ...] = ()

    @property
    def is_derived(self) -> bool:
        """Whether Engram concluded it, rather than having been told."""
        return self.memory.type is not MemoryType.EPISODIC

    def moved_to(self, score: float, name: str, raw: float | None = None) -> Ranked:
        """The same with another score; the difference becomes a part of this name."""
        if score == self.score:
            return self
        part = change(name, score - self.score, raw)
        return replace(self, score=score, parts=(*self.parts, part))

    def times(self, factor: float, name: str) -> Ranked:
        """The same with its score multiplied."""
        return self.moved_to(min(1.0, self.score * factor), name, factor)


def by_score(found: list[Ranked]) -> list[Ranked]:
    """Best first, ties by id."""
    return sorted(found, key=lambda one: (-one.score, one.memory.id))
