"""Recalled memories as a block for a prompt: compact, dated, with their sources.

What holds now comes first, then what is explicitly not so, then turns as they were
said; each group best first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engram.domain.context_block import context_block
from engram.domain.memories import (
    DerivedMemory,
    Episode,
    MemoryStatus,
    NegationFact,
)
from engram.recall.models import RecallHit

CHARACTERS_PER_TOKEN = 4
"""How tokens are estimated: English text has a little over 4 characters per token in the
tokenizers of current models; other scripts have fewer, so leave room for them."""

_LONGEST_LINE = 600
_CUT = "..."
_NOTHING = len(context_block(()))


def block_of(hits: Sequence[RecallHit], *, tokens: int) -> str:
    """The hits as one fenced block of at most ``tokens`` estimated tokens.

    The best hits are taken as long as there is room, a shorter one in place of one
    that is too long. Empty where none fits or nothing was found.
    """
    room = tokens * CHARACTERS_PER_TOKEN - _NOTHING
    chosen: list[tuple[int, str]] = []
    for hit in hits:
        line = _line(hit)
        if len(line) + 1 <= room:
            room -= len(line) + 1
            chosen.append((_group(hit), line))
    if not chosen:
        return ""
    # Sorting is stable: within a group the order of the hits stays.
    return context_block(line for _, line in sorted(chosen, key=lambda one: one[0]))


def _group(hit: RecallHit) -> int:
    memory = hit.memory
    if isinstance(memory, Episode):
        return 3
    if memory.status is not MemoryStatus.ACTIVE:
        return 2
    return 1 if isinstance(memory, NegationFact) else 0


def _line(hit: RecallHit) -> str:
    said = " ".join(hit.memory.content.split())
    if len(said) > _LONGEST_LINE:
        said = said[: _LONGEST_LINE - len(_CUT)] + _CUT
    return f"- {said} ({'; '.join(_marks(hit))})"


def _marks(hit: RecallHit) -> Iterable[str]:
    memory = hit.memory
    if isinstance(memory, Episode):
        yield f"{memory.speaker or memory.role}, {memory.timestamp:%Y-%m-%d}"
        if memory.session_id is not None:
            yield f"session {memory.session_id}"
        if hit.negated_by:
            yield "denied later"
        return
    yield _since(memory)
    named = [source for source in hit.sources if source.session_id is not None]
    if named:
        yield f"said in {named[0].session_id} on {named[0].timestamp:%Y-%m-%d}"
    elif memory.source_episode_ids:
        yield f"from turn {memory.source_episode_ids[0]}"


def _since(memory: DerivedMemory) -> str:
    if isinstance(memory, NegationFact):
        return f"denied {memory.known_at:%Y-%m-%d}"
    if memory.valid_to is not None and memory.status is not MemoryStatus.ACTIVE:
        return f"until {memory.valid_to:%Y-%m-%d}"
    return f"since {memory.event_at:%Y-%m-%d}"
