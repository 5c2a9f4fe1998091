"""Which names a memory and a turn tell about."""

from __future__ import annotations

from collections.abc import Iterable, Set
from functools import lru_cache

from engram.domain.digests.clues import Clues, clues_in
from engram.domain.digests.details import EntityKind, Equation, Mention
from engram.domain.digests.names import name_key, names_in, parts_of
from engram.domain.digests.vocabulary import GIVEN_NAMES, KIND_OF_OBJECT
from engram.domain.memories import Episode, SemanticMemory, Slot
from engram.domain.slots import USER, held_predicate


def memory_clues(memory: SemanticMemory) -> Clues:
    """What the words, entities and slot of a memory tell about names."""
    return _clues(memory.id, memory.content, memory.entities, memory.slot)


# A rebuild asks for the same memories with each entity that they could name.
@lru_cache(maxsize=4096)
def _clues(memory_id: str, content: str, entities: tuple[str, ...], slot: Slot | None) -> Clues:
    told = clues_in(content, memory_id)
    subject = slot.subject if slot is not None and slot.subject != USER else None
    wanted = {key for name in entities for key in _keys(name)}
    wanted |= {name_key(subject)} if subject else set()
    wanted |= {key for e in told.equations for key in (name_key(e.first), name_key(e.second))}
    mentions = {name_key(m.name): m for m in told.mentions if name_key(m.name) in wanted}
    for name in (*entities, *([subject] if subject else [])):
        if not mentions.keys() & _keys(name):
            mentions[name_key(name)] = Mention(name=name, source_id=memory_id)
    kind = KIND_OF_OBJECT.get(held_predicate(slot)) if slot is not None else None
    if kind is not None and slot is not None:
        mentions = {key: _of_kind(m, kind, slot.object) for key, m in mentions.items()}
    return Clues(tuple(m for m in mentions.values() if _is_no_user(m)), told.equations)


def episode_clues(episodes: Iterable[Episode]) -> Clues:
    """What turns say about names; what assistants and tools say is not asked."""
    told = Clues()
    for episode in episodes:
        if episode.role == "user" or episode.speaker:
            told = told.plus(clues_in(episode.content, episode.id, episode.speaker))
    return told


def related_to(told: Clues, words: Set[str]) -> Clues:
    """What matters: names that share a word with ``words``, and people who are introduced."""
    equations = tuple(e for e in told.equations if e.same or _shares(e, words))
    named = {name_key(n) for e in equations for n in (e.first, e.second)}
    mentions = tuple(
        m
        for m in told.mentions
        if name_key(m.name) in named or name_words(m.name) & words or is_noted(m)
    )
    return Clues(mentions, equations)


def is_noted(mention: Mention) -> bool:
    """Whether a mention alone makes a profile: a person introduced by role, address or full name.

    Without these, two people of one first name could not be told apart later.
    """
    if mention.identifiers:
        return True
    if mention.kind is not EntityKind.PERSON:
        parts = parts_of(mention.name)
        return bool(parts.family) and parts.given in GIVEN_NAMES and "," not in mention.name
    return bool(mention.qualifier or parts_of(mention.name).family)


def name_words(name: str) -> frozenset[str]:
    """The words of a name, by which names that could be one are looked up."""
    return frozenset(word for word in name_key(name).split() if len(word) > 1)


def _shares(equation: Equation, words: Set[str]) -> bool:
    return bool((name_words(equation.first) | name_words(equation.second)) & words)


def _keys(name: str) -> frozenset[str]:
    return frozenset({name_key(name), *(name_key(found.name) for found in names_in(name))})


def _of_kind(mention: Mention, kind: EntityKind, wanted: str) -> Mention:
    unknown = mention.kind is EntityKind.UNKNOWN
    if unknown and name_key(mention.name) == name_key(wanted):
        return mention.model_copy(update={"kind": kind})
    return mention


def _is_no_user(mention: Mention) -> bool:
    return name_key(mention.name) not in {USER, "the user", ""}
