"""Profiles as they should be, from entities and memories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from engram.domain.digests.details import EntityKind, ProfileDetail
from engram.domain.digests.entities import Entity
from engram.domain.digests.mentioned import is_noted, name_words
from engram.domain.digests.names import name_key
from engram.domain.digests.policy import DigestPolicy
from engram.domain.digests.profiles import Told, answers, compose, is_behaviour, profile_text
from engram.domain.digests.versions import Draft
from engram.domain.memories import MemoryForm, SemanticMemory

USER_ENTITY = "user"
USER_KEY = f"entity:{USER_ENTITY}"
_CALLED = "is called"
# Beside those that its lines' memories name.
_SOURCES_NAMED = 100
_NOBODY = "The user"


@dataclass(frozen=True, slots=True)
class Rest:
    """What a profile rests on beside the memories that stand in it.

    Attributes:
        times: When the memories and turns that were touched became known, or ceased to
            hold, by their ids.
        episodes: Those of them that are turns.
        sources: Sources of the versions before.
    """

    times: Mapping[str, datetime]
    episodes: frozenset[str] = frozenset()
    sources: tuple[str, ...] = ()


def entity_draft(
    entity: Entity, memories: Sequence[SemanticMemory], rest: Rest, policy: DigestPolicy
) -> Draft | None:
    """The profile of an entity; None where nothing is worth noting.

    Args:
        entity: Whose.
        memories: Everything looked at that names it, whether or not it holds.
        rest: What else it rests on.
        policy: The bounds.
    """
    standing = [memory for memory in memories if answers(memory)]
    introduced = any(is_noted(mention) for mention in entity.mentions)
    names = {name_key(name) for name in entity.names}
    said = any(e.same and name_key(e.first) in names for e in entity.equations)
    if not (standing or introduced or said):
        return None
    composed = compose(standing, policy)
    turns = [m.source_id for m in entity.mentions if m.source_id in rest.episodes]
    sources = _sources(standing, turns) or rest.sources
    touched = {m.source_id for m in entity.mentions} | {m.id for m in memories}
    times = [rest.times[one] for one in touched if one in rest.times]
    times += [memory.known_at for memory in standing]
    if not sources or not times:
        return None
    return Draft(
        form=MemoryForm.PROFILE,
        content=profile_text(entity.name, entity.aliases, entity.kind, composed.lines),
        detail=ProfileDetail(
            keys=entity_keys(entity),
            entity=entity.key,
            name=entity.name,
            aliases=entity.aliases,
            kind=entity.kind,
            lines=composed.lines,
            merges=entity.merges,
            mentions=entity.mentions,
            equations=entity.equations,
            omitted=composed.omitted,
        ),
        sources=sources,
        known_at=max(times),
        event_at=min(times),
    )


def user_draft(memories: Sequence[Told], rest: Rest, policy: DigestPolicy) -> Draft | None:
    """The user's behavioural profile; None where nothing is known.

    Args:
        memories: Everything looked at that is about the user, whether or not it holds,
            habits too.
        rest: What else it rests on.
        policy: The bounds.
    """
    standing = [m for m in memories if answers(m) and is_behaviour(m)]
    if not standing:
        return None
    composed = compose(standing, policy)
    names = _own_names([m for m in standing if isinstance(m, SemanticMemory)])
    name, aliases = (names[0], names[1:]) if names else (_NOBODY, ())
    times = [memory.known_at for memory in standing]
    times += [rest.times[m.id] for m in memories if m.id in rest.times]
    return Draft(
        form=MemoryForm.PROFILE,
        content=profile_text(name, aliases, EntityKind.USER, composed.lines),
        detail=ProfileDetail(
            keys=(USER_KEY, *(f"name:{name_key(n)}" for n in ("user", *names))),
            entity=USER_ENTITY,
            name=name,
            aliases=aliases,
            kind=EntityKind.USER,
            lines=composed.lines,
            omitted=composed.omitted,
        ),
        sources=_sources(standing, ()),
        known_at=max(times),
        event_at=min(times),
    )


def entity_keys(entity: Entity) -> tuple[str, ...]:
    """What its profile is looked up by: itself, its names, their words, its addresses."""
    names = [f"name:{name_key(name)}" for name in entity.names]
    words = {f"part:{word}" for name in entity.names for word in name_words(name)}
    identifiers = {i for mention in entity.mentions for i in mention.identifiers}
    return tuple(dict.fromkeys([f"entity:{entity.key}", *names, *sorted(words | identifiers)]))


def carried(details: Iterable[ProfileDetail]) -> set[str]:
    """The memories that profiles were composed from."""
    return {
        memory_id
        for detail in details
        for ids in (*(line.memory_ids for line in detail.lines), detail.omitted)
        for memory_id in ids
    }


def name_keys(detail: ProfileDetail) -> frozenset[str]:
    """The names of a profile, normalised."""
    return frozenset(name_key(name) for name in (detail.name, *detail.aliases))


def _own_names(memories: Sequence[SemanticMemory]) -> tuple[str, ...]:
    called = [m for m in memories if m.slot is not None and m.slot.predicate == _CALLED]
    called.sort(key=lambda m: (-m.known_at.timestamp(), m.id))
    return tuple(dict.fromkeys(_spelled(memory) for memory in called))


def _spelled(memory: SemanticMemory) -> str:
    wanted = memory.slot.object if memory.slot is not None else ""
    at = memory.content.casefold().rfind(wanted.casefold())
    return memory.content[at : at + len(wanted)] if at >= 0 else wanted


def _sources(memories: Sequence[Told], turns: Sequence[str]) -> tuple[str, ...]:
    found = {source for memory in memories for source in memory.source_episode_ids}
    return tuple(sorted(found | set(turns)))[:_SOURCES_NAMED]
