"""A candidate on its way to becoming an answer."""

from __future__ import annotations

from dataclasses import dataclass, replace

from engram.domain.memories import AnyMemory, MemoryType


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a score.

    Attributes:
        name: What was looked at.
        value: What was found, 0 to 1.
        weight: Its share of the score; negative where it takes away.
        raw: What was measured, where that is another number.
    """

    name: str
    value: float
    weight: float
    raw: float | None = None

    @property
    def contribution(self) -> float:
        """What it adds to the score."""
        return self.value * self.weight


@dataclass(frozen=True, slots=True)
class LinkStep:
    """The link that led to a memory, with how sure Engram is of it."""

    source_id: str
    kind: str
    confidence: float


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
    parts: tuple[Part, ...] = ()
    links: tuple[LinkStep, ...] = ()
    negated_by: tuple[str, ...] = ()

    @property
    def is_derived(self) -> bool:
        """Whether Engram concluded it, rather than having been told."""
        return self.memory.type is not MemoryType.EPISODIC

    def moved_to(self, score: float, name: str, raw: float | None = None) -> Ranked:
        """The same with another score; the difference becomes a part of this name."""
        change = score - self.score
        if change == 0.0:
            return self
        part = Part(name, abs(change), 1.0 if change > 0 else -1.0, raw)
        return replace(self, score=score, parts=(*self.parts, part))

    def times(self, factor: float, name: str) -> Ranked:
        """The same with its score multiplied."""
        return self.moved_to(min(1.0, self.score * factor), name, factor)


def by_score(found: list[Ranked]) -> list[Ranked]:
    """Best first, ties by id."""
    return sorted(found, key=lambda one: (-one.score, one.memory.id))
