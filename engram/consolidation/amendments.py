"""What an update makes of a memory: its sources, its assertions, its confidence."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar

from engram.domain.confidence import ExtractionMethod, Verification
from engram.domain.memories import (
    DEFAULT_IMPORTANCE,
    DerivedMemory,
    Episode,
    Evidence,
    MemoryStatus,
    SemanticMemory,
    Telling,
    Vitals,
    has_seen,
    not_replaced,
    plain_part,
    remember,
    replacing,
)
from engram.domain.occasions import (
    folded_occasions,
    occasions_of,
    with_occasions,
    without_occasions,
)
from engram.domain.plan import Supersession, Survival, UpdateNote
from engram.domain.rules import MOST_PASSES
from engram.domain.turns import MAX_TAGS
from engram.lifecycle.decisions import disputed, taken_back, told_again
from engram.lifecycle.policies import told_at

# --- which episodes say so: bounded, and yet each counts once
#
# A thing can be said a thousand times. Kept whole are the first sources and the
# latest ones; of those between only a fingerprint remains, by which reading them
# again is recognised. Past the last bound the oldest fingerprints go as well: by
# then an episode counted twice changes little.

FIRST_KEPT: Final = 16
LATEST_KEPT: Final = 48
MOST_FINGERPRINTS: Final = 2048
# Hexadecimal digits. Two of 2,000 episodes share one with a probability of 5e-4.
_LENGTH: Final = 8

D = TypeVar("D", bound=DerivedMemory)


def has_source(memory: DerivedMemory, episode_id: str) -> bool:
    """Whether the episode is among all that ever confirmed the memory, as far as is known."""
    if episode_id in memory.source_episode_ids:
        return True
    return bool(memory.folded_sources) and _fingerprint(episode_id) in _fingerprints(memory)


def has_read(memory: DerivedMemory, episode_ids: Iterable[str]) -> bool:
    """Whether the memory rests on all these episodes already."""
    return all(has_source(memory, episode_id) for episode_id in episode_ids)


def folded(memory: D) -> D:
    """``memory`` with no more sources and tellings than are kept; the same if it has no more.

    What it quotes from the others goes as well: forgetting finds memories by their sources.
    """
    sources = memory.source_episode_ids
    if len(sources) <= FIRST_KEPT + LATEST_KEPT:
        return memory
    between = sources[FIRST_KEPT:-LATEST_KEPT]
    kept = (*sources[:FIRST_KEPT], *sources[-LATEST_KEPT:])
    prints = (*_fingerprints(memory), *map(_fingerprint, between))
    newest = tuple(dict.fromkeys(reversed(prints)))[:MOST_FINGERPRINTS][::-1]
    changes: dict[str, object] = {
        "source_episode_ids": kept,
        "folded_sources": "".join(newest),
        "occasions": folded_occasions(memory.occasions, frozenset(between)),
    }
    if isinstance(memory, SemanticMemory):
        changes["tellings"] = _with_sources(memory.tellings, frozenset(kept))
        changes["evidence"] = tuple(q for q in memory.evidence if q.episode_id in kept)
    return memory.model_copy(update=changes)


def folded_count(memory: DerivedMemory) -> int:
    """How many of its sources are known by a fingerprint only."""
    return len(memory.folded_sources) // _LENGTH


def _with_sources(tellings: tuple[Telling, ...], kept: frozenset[str]) -> tuple[Telling, ...]:
    return tuple(one for one in tellings if not kept.isdisjoint(one.episode_ids))


def _fingerprints(memory: DerivedMemory) -> tuple[str, ...]:
    text = memory.folded_sources
    return tuple(text[start : start + _LENGTH] for start in range(0, len(text), _LENGTH))


def _fingerprint(episode_id: str) -> str:
    return hashlib.sha256(episode_id.encode()).hexdigest()[:_LENGTH]


# --- which tellings a memory has, and what it is after it gained or lost some


def tellings_of(memory: SemanticMemory) -> tuple[Telling, ...]:
    """Each time the memory was told, as far as its sources exist.

    Where none of these tells it, because it gained them from a duplicate without a slot,
    the memory itself says when it was first and last told.
    """
    sources = set(memory.source_episode_ids)
    kept = tuple(one for one in memory.tellings if not sources.isdisjoint(one.episode_ids))
    return kept or _remembered(memory)


def retold(
    memory: SemanticMemory, tellings: Iterable[Telling], *, without: Collection[Telling]
) -> SemanticMemory:
    """``memory`` with these tellings; what only the others say is no source of it any more.

    Args:
        memory: With all sources of all tellings. A telling without any is left out.
        tellings: The old and the new ones; doubles count once.
        without: Those that are taken away.
    """
    known = set(memory.source_episode_ids)
    kept = tuple(
        one
        for one in dict.fromkeys(tellings)
        if one not in without and known & set(one.episode_ids)
    )
    if not kept:
        return memory
    gone = sources_only_of(without, kept)
    sources = tuple(e for e in memory.source_episode_ids if e not in gone)
    changes: dict[str, object] = {"tellings": kept}
    if sources != memory.source_episode_ids:
        less = without_occasions(memory, gone)
        changes |= {"source_episode_ids": sources, "occasions": less["occasions"]}
        changes["confidence"] = memory.confidence.model_copy(
            update={
                "supporting_episodes": less["supporting_episodes"],
                "last_confirmed": max(one.known_at for one in kept),
            }
        )
    return quoting(memory.model_copy(update=changes), without=gone)


def quoting(memory: SemanticMemory, *, without: Collection[str]) -> SemanticMemory:
    """``memory`` without what it quotes from these episodes; without any, it counts as inferred."""
    kept = tuple(quote for quote in memory.evidence if quote.episode_id not in without)
    if kept == memory.evidence:
        return memory
    changes: dict[str, object] = {}
    if not kept:
        changes["method"] = ExtractionMethod.INFERRED
        if memory.confidence.verification is Verification.EVIDENCE_FOUND:
            changes["verification"] = Verification.UNCHECKED
    confidence = memory.confidence.model_copy(update=changes)
    return memory.model_copy(update={"evidence": kept, "confidence": confidence})


def sources_only_of(these: Iterable[Telling], others: Iterable[Telling]) -> set[str]:
    """The episodes that some tellings rest on, and others do not."""
    mine = {e for one in these for e in one.episode_ids}
    return mine.difference(*(one.episode_ids for one in others)) if mine else mine


def worded_by(memory: SemanticMemory) -> tuple[str, ...]:
    """Those of its sources that do not state it: it only has their words."""
    stating = {e for telling in memory.tellings for e in telling.episode_ids}
    stating |= {e for group in memory.occasions.values() for e in group}
    return tuple(e for e in memory.source_episode_ids if stating and e not in stating)


def _remembered(memory: SemanticMemory) -> tuple[Telling, ...]:
    first = Telling(
        event_at=memory.event_at,
        known_at=memory.known_at,
        begins=memory.valid_from == memory.event_at,
        episode_ids=memory.source_episode_ids[:1],
    )
    if len(memory.source_episode_ids) == 1:
        return (first,)
    last = memory.confidence.last_confirmed
    again = Telling(event_at=last, known_at=last, episode_ids=memory.source_episode_ids[1:])
    return first, again


# --- what a conclusion has of its turns: their importance, what they agree on, and their end
#
# Each is a join: whichever turn comes first, and however often it is read, the same comes out.

MOST_AGREED: Final = 16
"""Keys of metadata that a conclusion takes over; a turn may have more, and each of its
conclusions would carry them all."""


def traits(
    turns: Sequence[Episode], importance: float, labels: Iterable[str] = ()
) -> dict[str, Any]:
    """The fields that a new conclusion has of its turns.

    Args:
        turns: At least one.
        importance: What extraction judges; it stands for turns whose caller gave none.
        labels: Tags that it has beside those of its turns.
    """
    first, *others = turns
    agreed = _agreed(plain_part(first.metadata), others)
    return {
        "importance": max(_given(turn, importance) for turn in turns),
        "tags": _united((), turns, labels),
        "metadata": {key: agreed[key] for key in sorted(agreed)[:MOST_AGREED]},
        "expires_at": _latest_end(turn.expires_at for turn in turns),
    }


def with_traits(memory: D, turns: Sequence[Episode]) -> D:
    """``memory`` as one that rests on these turns as well."""
    after = {
        "importance": max([memory.importance, *(_given(turn, 0.0) for turn in turns)]),
        "tags": _united(memory.tags, turns),
        "metadata": _agreed(memory.metadata, turns),
        "expires_at": _latest_end([memory.expires_at, *(turn.expires_at for turn in turns)]),
    }
    changes = {name: value for name, value in after.items() if value != getattr(memory, name)}
    return memory.model_copy(update=changes) if changes else memory


def until_told(memory: SemanticMemory) -> SemanticMemory:
    """``memory`` with the end that its latest telling names, or its own where that is sooner.

    Told after that without an end, it has none any more.
    """
    latest = max(memory.tellings, key=lambda one: (one.known_at, one.sequence), default=None)
    if latest is None or latest.holds_until is None:
        return memory
    end = min(latest.holds_until, memory.expires_at or latest.holds_until)
    return memory.model_copy(update={"expires_at": end})


def _given(turn: Episode, otherwise: float) -> float:
    return otherwise if turn.importance == DEFAULT_IMPORTANCE else turn.importance


def _united(
    tags: Iterable[str], turns: Iterable[Episode], labels: Iterable[str] = ()
) -> tuple[str, ...]:
    """The tags with those of the turns, each once, by name; as many as one turn may have."""
    told = (tag for turn in turns for tag in turn.tags)
    return tuple(sorted({*tags, *told, *labels})[:MAX_TAGS])


def _agreed(metadata: Mapping[str, Any], turns: Iterable[Episode]) -> Mapping[str, Any]:
    """What of it every one of these turns says, too."""
    for turn in turns:
        metadata = {
            key: value
            for key, value in metadata.items()
            if key in turn.metadata
            and turn.metadata[key] == value
            and type(turn.metadata[key]) is type(value)
        }
    return metadata


def _latest_end(ends: Iterable[datetime | None]) -> datetime | None:
    """The last of them; none where one never ends."""
    found = list(ends)
    known = [end for end in found if end is not None]
    return max(known) if len(known) == len(found) else None


# --- a further episode says the same: what changes, and what does not


def corroborated(memory: D, episodes: Iterable[Episode]) -> D | None:
    """``memory`` with these episodes among its sources; None if they all were already.

    Re-reading the same episode corroborates nothing, and neither does another one of the same
    conversation and day: it is a source like the others. ``known_at`` never moves
    later, because the memory was known since its first source; an earlier source
    that arrives late (an import) moves it earlier. What time had taken comes back; so does
    what was refuted, where it is told after that. It fades from when that episode was stored,
    also where that was long after it was said. It becomes as important, and as lasting,
    as that episode.
    """
    fresh = {e.id: e for e in episodes if not has_source(memory, e.id)}
    if not fresh:
        return None
    times = [episode.timestamp for episode in fresh.values()]
    sources = (*memory.source_episode_ids, *fresh)
    more = with_occasions(memory, occasions_of(fresh.values()))
    confidence = memory.confidence.model_copy(
        update={
            "supporting_episodes": more["supporting_episodes"],
            "last_confirmed": max(memory.confidence.last_confirmed, *times),
        }
    )
    refuted_at = memory.refuted_at
    if refuted_at is not None and max(times) > refuted_at:
        memory = taken_back(memory)
        confidence = confidence.model_copy(
            update={
                "verification": memory.confidence.verification,
                "contradictions": memory.confidence.contradictions,
            }
        )
    # By the end that it had: what comes back after it has none any more.
    joined = with_traits(memory, tuple(fresh.values()))
    again = told_again(joined).model_copy(
        update={
            "expires_at": joined.expires_at,
            "source_episode_ids": sources,
            "occasions": more["occasions"],
            "confidence": confidence,
            "known_at": min(memory.known_at, *times),
        }
    )
    return folded(_told_when_stored(again, fresh.values()))


def _told_when_stored(memory: D, turns: Iterable[Episode]) -> D:
    """``memory`` as told when these turns were stored, where they were said long before."""
    stored = max(turn.created_at for turn in turns)
    if stored <= told_at(memory):  # type: ignore[arg-type]  # every derived memory is an AnyMemory
        return memory
    vitals = (memory.vitals or Vitals()).model_copy(update={"told_at": stored})
    return memory.model_copy(update={"vitals": vitals})


# --- what an update in a plan makes of a memory. Applying it again changes nothing

# Quotations beyond these add nothing to what verifying finds.
MAX_EVIDENCE = 16


def amended(
    memory: SemanticMemory, update: UpdateNote, episodes: Mapping[str, Episode]
) -> SemanticMemory | None:
    """``memory`` with everything the update says but the retirement; None if nothing changes.

    Args:
        memory: As it is stored.
        update: From the plan.
        episodes: The episodes that confirm it, by id; those that are gone confirm nothing.
    """
    sources = [episodes[e] for e in update.add_sources if e in episodes]
    after = evident(corroborated(memory, sources) or memory, update.add_evidence)
    if update.add_tellings or update.drop_tellings:
        before = tellings_of(memory)
        after = retold(after, (*before, *update.add_tellings), without=update.drop_tellings)
        after = until_told(after)
    if update.place is not None:
        after = after.model_copy(update=dict(update.place))
    after = _reinstated(replacing(after, update.supersedes), update.reinstated_from)
    after = disputed(after, with_=update.dispute_with, settled=update.settle_with)
    if update.ending is not None and after.resolution is None:
        ended = {"resolution": update.ending.resolution, "resolved_at": update.ending.at}
        after = after.model_copy(update=ended)
    if update.survival is not None:
        after = survived(after, update.survival) or after
    return after if after != memory else None


def survived(memory: SemanticMemory, survival: Survival) -> SemanticMemory | None:
    """``memory`` after a linking pass looked at it; None if that pass says nothing new of it."""
    if has_seen(memory, survival.operation):
        return None
    counted = memory.selectivity == 1.0 and memory.consolidation_passes >= MOST_PASSES
    if counted and not survival.pruned:
        return None
    step = -survival.step if survival.pruned else survival.step
    # Rounded, because ten steps of 0.1 should make 1.
    selectivity = round(min(max(memory.selectivity + step, 0.0), 1.0), 6)
    passes = memory.consolidation_passes + (0 if survival.pruned else 1)
    later = memory.model_copy(update={"selectivity": selectivity, "consolidation_passes": passes})
    return remember(later, survival.operation)


def retired(memory: SemanticMemory, supersession: Supersession) -> SemanticMemory | None:
    """``memory`` as something that held until then; None if that is known already."""
    changes = supersession.model_dump(exclude={"duplicate"})
    if supersession.duplicate:
        changes["duplicate_of"] = supersession.superseded_by
    after = memory.model_copy(update={"status": MemoryStatus.SUPERSEDED, **changes})
    return after if after != memory else None


def evident(memory: SemanticMemory, quotes: Iterable[Evidence]) -> SemanticMemory:
    """With further quotations: what was inferred and is now found in words counts as extracted."""
    fresh = tuple(
        quote
        for quote in dict.fromkeys(quotes)
        if quote not in memory.evidence and quote.episode_id in memory.source_episode_ids
    )
    kept = (*memory.evidence, *fresh)[:MAX_EVIDENCE]
    if kept == memory.evidence:
        return memory
    changes: dict[str, object] = {"method": ExtractionMethod.EXTRACTED}
    if memory.confidence.verification is Verification.UNCHECKED:
        changes["verification"] = Verification.EVIDENCE_FOUND
    confidence = memory.confidence.model_copy(update=changes)
    return memory.model_copy(update={"evidence": kept, "confidence": confidence})


def _reinstated(memory: SemanticMemory, replaced_by: str | None) -> SemanticMemory:
    if replaced_by is None or memory.superseded_by != replaced_by:
        return memory
    return not_replaced(memory).model_copy(update={"duplicate_of": None})
