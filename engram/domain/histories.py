"""Which memory tells which stretch of a timeline, and what each is to say of itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from engram.domain.amendments import disputed
from engram.domain.memories import MemoryStatus, SemanticMemory, Telling
from engram.domain.plan import Place, Supersession, UpdateNote
from engram.domain.tellings import quoting, sources_only_of, tellings_of
from engram.domain.timeline import Stretch, Told, stretches

NewMemory = Callable[[Told], SemanticMemory]
"""Makes a memory, under an id of its own, of which this is the first telling."""


def history(
    known: Mapping[str, SemanticMemory], said: Iterable[Told], new_memory: NewMemory
) -> list[SemanticMemory]:
    """Every memory of one timeline as it is to be, earliest first.

    Args:
        known: Those that exist, by id. Which of them tells what follows from
            their tellings; what they say of their place is not looked at.
        said: What is told now.
        new_memory: Called for each stretch that no memory tells yet.
    """
    found = stretches(_all_told(known.values(), said))
    owners: dict[str, int] = {}
    memories: list[SemanticMemory] = []
    for number, stretch in enumerate(found):
        carriers = {e for one in stretch.told for e in one.carriers} - owners.keys()
        # The oldest that can: as if everything had become known in order.
        free = sorted((known[c].generation, c) for c in carriers)
        memory = known[free[0][1]] if free else new_memory(stretch.told[0])
        owners[memory.id] = number
        memories.append(memory)
    ids = {id(stretch): memory.id for stretch, memory in zip(found, memories, strict=True)}
    timeline = {*known, *ids.values()}
    placed = [
        _placed(memory, stretch, ids, timeline, known=memory.id in known)
        for memory, stretch in zip(memories, found, strict=True)
    ]
    return placed + _doubles(known, owners, found, memories)


def change(
    before: SemanticMemory,
    after: SemanticMemory,
    update: UpdateNote,
    known: Collection[str],
) -> UpdateNote:
    """``update`` with what makes one of the other.

    Args:
        before: As it is stored.
        after: As it is to be.
        update: For that memory.
        known: Ids of the timeline. Where what replaced a memory is not among them,
            because it was forgotten, only being told again reinstates it.
    """
    old, new = tellings_of(before), after.tellings or tellings_of(after)
    changes: dict[str, object] = {}
    if set(old) != set(new):
        changes["add_tellings"] = tuple(one for one in new if one not in old)
        changes["drop_tellings"] = tuple(one for one in old if one not in new)
        fresh = (e for e in after.source_episode_ids if e not in before.source_episode_ids)
        changes["add_sources"] = tuple(fresh)
    if _place(before) != _place(after):
        changes["place"] = _place(after)
    ended = _supersession(after)
    replaced_by = before.superseded_by
    if ended is None and replaced_by and (replaced_by in known or changes.get("add_tellings")):
        changes["reinstated_from"] = replaced_by
    if ended is not None and ended != _supersession(before):
        changes["supersession"] = ended
    rivals = {one for one in after.disputed_with if one not in before.disputed_with}
    settled = {one for one in before.disputed_with if one not in after.disputed_with}
    if rivals or settled:
        changes["dispute_with"] = tuple(sorted(rivals))
        changes["settle_with"] = tuple(sorted(settled))
    return update.model_copy(update=changes)


def _all_told(known: Iterable[SemanticMemory], said: Iterable[Told]) -> list[Told]:
    """Each telling once, with all that carry it; what is known goes before what is said now."""
    merged: dict[tuple[str, str, Telling], Told] = {}
    carried = (
        Told(memory.slot, telling, (memory.id,))
        for memory in known
        if memory.slot is not None
        for telling in tellings_of(memory)
    )
    for one in (*carried, *said):
        key = (one.slot.predicate, one.slot.object, one.telling)
        before = merged.get(key, one)
        carriers = tuple(dict.fromkeys((*before.carriers, *one.carriers)))
        merged[key] = Told(before.slot, before.telling, carriers, before.statement)
    return list(merged.values())


def _placed(
    memory: SemanticMemory,
    stretch: Stretch,
    ids: Mapping[int, str],
    timeline: Collection[str],
    *,
    known: bool,
) -> SemanticMemory:
    foreign = _foreign(memory, timeline)
    told = tuple(one.telling for one in stretch.told)
    closer = stretch.closed_by
    changes: dict[str, object] = {
        "event_at": stretch.event_at,
        "known_at": stretch.known_at,
        "valid_from": stretch.valid_from,
        "supersedes": tuple(ids[id(old)] for old in stretch.closes) + foreign.supersedes,
        "superseded_by": None if closer is None else ids[id(closer)],
        "valid_to": stretch.valid_to,
        "superseded_known_at": stretch.hidden_at if closer is not None else None,
        "status": _status(memory, ended=closer is not None),
    }
    gone = () if not known else tuple(t for t in tellings_of(memory) if t not in told)
    fresh = tuple(dict.fromkeys(e for one in told for e in one.episode_ids))
    # A new part of a known memory has only the sources of that part.
    before = memory.source_episode_ids if known else ()
    leaving = sources_only_of(gone, told)
    sources = tuple(e for e in dict.fromkeys((*before, *fresh)) if e not in leaving)
    changes |= {"tellings": told, "source_episode_ids": sources}
    rivals = tuple(ids[id(rival)] for rival in stretch.disputed_with)
    if known:
        changes["disputed_with"] = (*foreign.disputed_with, *rivals)
        return memory.model_copy(update=changes)
    changes["confidence"] = memory.confidence.model_copy(
        update={
            "supporting_episodes": len(sources),
            "last_confirmed": max(one.known_at for one in told),
        }
    )
    quoted = {quote.episode_id for quote in memory.evidence}
    part = quoting(memory.model_copy(update=changes), without=quoted - {*sources})
    return disputed(part, with_=rivals)


@dataclass(frozen=True, slots=True)
class _Foreign:
    """What a memory has to do with others than those of its timeline, which stays as it is."""

    supersedes: tuple[str, ...]
    disputed_with: tuple[str, ...]


def _foreign(memory: SemanticMemory, timeline: Collection[str]) -> _Foreign:
    return _Foreign(
        supersedes=tuple(one for one in memory.supersedes if one not in timeline),
        disputed_with=tuple(one for one in memory.disputed_with if one not in timeline),
    )


def _status(memory: SemanticMemory, *, ended: bool) -> MemoryStatus:
    if ended:
        return MemoryStatus.SUPERSEDED
    return MemoryStatus.ACTIVE if memory.status is MemoryStatus.SUPERSEDED else memory.status


def _doubles(
    known: Mapping[str, SemanticMemory],
    owners: Mapping[str, int],
    found: Sequence[Stretch],
    memories: Sequence[SemanticMemory],
) -> list[SemanticMemory]:
    """Memories whose every telling is part of a stretch that another one tells.

    Nothing is deleted: they stay as history of no length, under what tells it now.
    """
    tellers = {
        carrier: memory.id
        for stretch, memory in reversed(list(zip(found, memories, strict=True)))
        for one in stretch.told
        for carrier in one.carriers
    }
    return [
        memory.model_copy(
            update={
                "valid_from": memory.event_at,
                "supersedes": (),
                "status": MemoryStatus.SUPERSEDED,
                "superseded_by": tellers[memory.id],
                "valid_to": memory.event_at,
                "superseded_known_at": memory.known_at,
            }
        )
        for memory in known.values()
        if memory.id not in owners
    ]


def _place(memory: SemanticMemory) -> Place:
    return Place(
        event_at=memory.event_at,
        known_at=memory.known_at,
        valid_from=memory.valid_from,
        supersedes=memory.supersedes,
    )


def _supersession(memory: SemanticMemory) -> Supersession | None:
    if memory.superseded_by is None or memory.valid_to is None:
        return None
    return Supersession(
        superseded_by=memory.superseded_by,
        valid_to=memory.valid_to,
        superseded_known_at=memory.superseded_known_at or memory.known_at,
    )
