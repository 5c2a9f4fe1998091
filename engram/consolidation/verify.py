"""Checking a memory against the episodes it was drawn from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import BaseModel, ConfigDict

from engram.domain.confidence import ExtractionMethod
from engram.domain.memories import (
    AnyMemory,
    DerivedMemory,
    Episode,
    Evidence,
    Fact,
    NegationFact,
    ProceduralMemory,
    SemanticMemory,
)


class Verification(BaseModel):
    """What checking a memory against its sources found.

    Attributes:
        ok: Whether it stands: quoted words are in their source; for what was
            inferred, the sources exist. A habit stands as the knowledge does that it was made
            of; where that is gone, if its sources exist.
        method: How it was reached.
        evidence: The quotations that were found, each in its source.
        missing_evidence: Quotations that were not found: their source does not
            hold them, or does not exist any more.
        missing_sources: Source episodes that do not exist any more.
        explanation: All of this in words.
    """

    model_config = ConfigDict(frozen=True)

    ok: bool
    method: ExtractionMethod
    evidence: tuple[Evidence, ...] = ()
    missing_evidence: tuple[Evidence, ...] = ()
    missing_sources: tuple[str, ...] = ()
    explanation: str


def verify(
    memory: AnyMemory, episodes: Mapping[str, Episode], made_of: SemanticMemory | None = None
) -> Verification:
    """Check ``memory`` against its sources.

    Args:
        memory: What is checked.
        episodes: Those of its sources that exist, by id.
        made_of: Of a habit, the knowledge that it was made of, which has its quotations.
    """
    if not isinstance(memory, DerivedMemory):
        return Verification(
            ok=True,
            method=ExtractionMethod.VERBATIM,
            explanation="It is a turn, kept as it was said: its own source.",
        )
    sources = memory.source_episode_ids
    missing = tuple(source for source in sources if source not in episodes)
    quoted = tuple(_evidence(memory if made_of is None else made_of))
    found = tuple(quote for quote in quoted if holds(episodes.get(quote.episode_id), quote.words))
    lost = tuple(quote for quote in quoted if quote not in found)
    method = memory.confidence.method
    quotes_nothing = isinstance(memory, ProceduralMemory) and made_of is None
    unquoted = quotes_nothing or method is ExtractionMethod.INFERRED
    # A source that was forgotten takes nothing from what the others say.
    rests = bool(found) if quoted else unquoted
    wrong = any(quote.episode_id in episodes for quote in lost)
    stands = rests and not wrong and len(missing) < len(sources)
    return Verification(
        ok=stands,
        method=method,
        evidence=found,
        missing_evidence=lost,
        missing_sources=missing,
        explanation=_explanation(memory, found, lost, missing),
    )


def holds(episode: Episode | None, words: str) -> bool:
    """Whether the words stand in the episode, letter by letter but for white space."""
    return episode is not None and _spaced(words) in _spaced(episode.content)


def _spaced(text: str) -> str:
    return " ".join(text.split())


def _evidence(memory: DerivedMemory) -> Iterator[Evidence]:
    match memory:
        case Fact() | NegationFact():
            # The same finding may be worded otherwise in what confirmed it later.
            yield Evidence(episode_id=memory.source_episode_ids[0], words=memory.evidence)
        case SemanticMemory():
            yield from memory.evidence


def _explanation(
    memory: DerivedMemory,
    found: tuple[Evidence, ...],
    lost: tuple[Evidence, ...],
    missing: tuple[str, ...],
) -> str:
    total = len(memory.source_episode_ids)
    parts = [_count(total - len(missing), total, "source exists", "sources exist")]
    if found or lost:
        every = len(found) + len(lost)
        parts.append(_count(len(found), every, "quotation is there", "quotations are there"))
    elif memory.confidence.method is ExtractionMethod.INFERRED:
        origin = memory.provenance
        how = f"inferred by {origin.model}" if origin.model else "inferred"
        version = f", instructions {origin.instructions_version}" if origin.model else ""
        parts.append(f"{how}{version}, without a quotation")
    else:
        parts.append("no quotation was kept")
    return "; ".join(parts) + "."


def _count(there: int, total: int, one: str, several: str) -> str:
    return f"{there} of {total} {one if total == 1 else several}"
