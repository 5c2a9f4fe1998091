"""What tools answer: few words, each memory with its date, id and sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from engram.client.models import MemoryStats, Receipt
from engram.client.operations.digests import Profile
from engram.client.operations.lifecycle import Acted
from engram.contracts.forgetting import ForgetReceipt
from engram.domain.context_block import context_block
from engram.domain.memories import AnyMemory, Episode, MemoryStatus
from engram.domain.verifying import Verification
from engram.recall.models import RecallHit

NOTHING = "Nothing that answers this is remembered."
# Characters; the resource of a memory has all of it.
_LONGEST_MEMORY = 600
_LONGEST_SOURCE = 200
_SOURCES = 2


def recalled(hits: Sequence[RecallHit]) -> str:
    """Answers, best first, with what they were concluded from."""
    if not hits:
        return NOTHING
    shown = {hit.memory.id for hit in hits}
    return context_block(line for hit in hits for line in _hit(hit, shown))


def listed(memories: Iterable[AnyMemory]) -> str:
    """Memories, one a line; empty when there are none."""
    lines = [_memory(memory) for memory in memories]
    return context_block(lines) if lines else ""


def stored(receipt: Receipt) -> str:
    """What keeping something came to."""
    parts = [f"Kept as {', '.join(receipt.episode_ids)}."]
    if receipt.fact_ids:
        parts.append(f"Facts in it: {', '.join(receipt.fact_ids)}.")
    if receipt.negation_ids:
        parts.append(f"Denials in it: {', '.join(receipt.negation_ids)}.")
    return " ".join(parts)


def verified(found: Verification) -> str:
    """What checking a memory found."""
    lines = [f"{'It stands' if found.ok else 'It does not stand'}: {found.explanation}"]
    lines += [
        f'Says so: "{_cut(quote.words, _LONGEST_SOURCE)}" [{quote.episode_id}]'
        for quote in found.evidence
    ]
    return context_block(lines) if found.evidence else lines[0]


def confirmed(done: Acted) -> str:
    """What confirming a memory came to."""
    return f"Confirmed: {_memory(done.memory)}"


def forgotten(receipt: ForgetReceipt) -> str:
    """What forgetting a memory took."""
    counts = ", ".join(f"{count} {kind}" for kind, count in receipt.forgotten.items() if count)
    stays = f" {receipt.amended} rest on other turns and stay." if receipt.amended else ""
    return f"Forgotten for good: {counts or 'nothing that was still there'}.{stays}"


def profiled(profile: Profile) -> str:
    """What is known about somebody or something."""
    names = f" (also {', '.join(profile.aliases)})" if profile.aliases else ""
    head = f"{profile.name}{names}, {profile.kind}, as of {profile.updated_at:%Y-%m-%d}"
    # One of the memories that a line rests on is enough to check or confirm it.
    lines = (f"- {line.text} [{line.memory_ids[0]}]" for line in profile.lines)
    return context_block((head, *lines))


def counted(stats: MemoryStats) -> str:
    """How much is kept."""
    counts = ", ".join(
        f"{count} {kind} ({stats.active.get(kind, 0)} active)"
        for kind, count in stats.counts.items()
    )
    return f"{counts}. Turns that wait for consolidation: {stats.waiting}."


def _hit(hit: RecallHit, shown: set[str]) -> Iterator[str]:
    denied = " (denied later)" if hit.negated_by else ""
    sure = f" conf={hit.confidence:.2f}" if hit.confidence is not None else ""
    yield f"- {_memory(hit.memory, sure)}{denied}"
    for source in hit.sources[:_SOURCES]:
        # What is an answer itself is not said twice.
        said = "" if source.id in shown else f" {_episode(source, _LONGEST_SOURCE)}"
        yield f"  from [{source.id}]{said}"
    if len(hit.sources) > _SOURCES:
        yield f"  and {len(hit.sources) - _SOURCES} more sources"


def _memory(memory: AnyMemory, more: str = "") -> str:
    if isinstance(memory, Episode):
        return f"{_episode(memory, _LONGEST_MEMORY)} [{memory.type} {memory.id}]"
    words = f"{memory.event_at:%Y-%m-%d} {_cut(memory.content, _LONGEST_MEMORY)}"
    status = "" if memory.status is MemoryStatus.ACTIVE else f" {memory.status}"
    until = f" until {memory.valid_to:%Y-%m-%d}" if memory.valid_to else ""
    return f"{words} [{memory.type} {memory.id}{more}{status}{until}]"


def _episode(episode: Episode, longest: int) -> str:
    who = episode.speaker or episode.role
    return f"{episode.timestamp:%Y-%m-%d} {who}: {_cut(episode.content, longest)}"


def _cut(text: str, longest: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= longest else f"{flat[: longest - 1]}…"
