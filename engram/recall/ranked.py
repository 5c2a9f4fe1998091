"""A candidate on its way to becoming an answer."""

from __future__ import annotations

from dataclasses import dataclass

from engram.domain.memories import AnyMemory, MemoryType


@dataclass(frozen=True, slots=True)
class SideScore:
    """What one side of the search says.

    Attributes:
        raw: Cosine similarity or BM25 score; None where that side did not find it.
        value: Brought to 0 to 1 among the candidates.
        weight: Of this side in the score.
    """

    raw: float | None
    value: float
    weight: float


@dataclass(frozen=True, slots=True)
class LinkStep:
    """The link that led to a memory, and what it brought."""

    source_id: str
    confidence: float
    contribution: float


@dataclass(frozen=True, slots=True)
class Ranked:
    """A memory with its score and what the score is made of; never changed, only replaced."""

    memory: AnyMemory
    score: float
    dense: SideScore | None = None
    sparse: SideScore | None = None
    link: LinkStep | None = None
    negated_by: tuple[str, ...] = ()
    adjustment: float = 0.0

    @property
    def is_derived(self) -> bool:
        """Whether Engram concluded it, rather than having been told."""
        return self.memory.type is not MemoryType.EPISODIC


def by_score(found: list[Ranked]) -> list[Ranked]:
    """Best first, ties by id."""
    return sorted(found, key=lambda one: (-one.score, one.memory.id))
