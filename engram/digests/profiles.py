"""Profiles: what is known about one person, place or project, in few lines."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeAlias

from engram.digests.entities import Entity
from engram.digests.mentions import MentionEvidence, is_noted, name_words
from engram.digests.names import PERSON_ROLES, name_key
from engram.digests.versions import Draft
from engram.domain.digests import EntityKind, Line, ProfileDetail
from engram.domain.memories import (
    Category,
    Fact,
    MemoryForm,
    MemoryKind,
    MemoryStatus,
    ProceduralMemory,
    SemanticMemory,
    Slot,
)
from engram.domain.rules import DigestPolicy
from engram.domain.slots import (
    IS_CALLED,
    IS_THE_USERS,
    OF_THE_USER,
    USER,
    ends_something,
    is_functional,
)
from engram.language.text import as_spelled

# --- profiles: what is known about one person, place or project, in few lines
#
# A profile is a function of the memories it is composed from, and of nothing else.
# Every line names the memories it rests on.

Told: TypeAlias = SemanticMemory | ProceduralMemory
"""What profiles are composed from: knowledge, and the habits that it became."""
BEHAVIOUR: Final = (Category.PREFERENCE, Category.PRINCIPLE, Category.SKILL)
"""Categories that tell of the user, whoever is named, where no slot says of whom."""
GENERAL: Final = (
    *BEHAVIOUR,
    Category.FACT,
    Category.CORRECTION,
    Category.ENTITY,
    Category.RELATIONSHIP,
)
"""Categories of what holds of somebody in general: a plan, a promise and a moment pass."""
READ_ALWAYS: Final = (
    *("is allergic to", "is called", "lives in", "works at", "works as", "is married to"),
    *("is from", "was born in", "was born on"),
)
"""Predicates of the user that are read anew however long ago they were told."""
DIGESTED: Final = (MemoryForm.STATEMENT,)
"""The forms that digests are composed from; a summary repeats what its notes say, and what is
quoted is said by somebody else, or of something else."""
# What must not be overlooked: it stands first, and is the last to be left out.
_HEALTH = re.compile(
    r"\b(?:allerg\w*|anaphyla\w*|epi-?pen|intoleran\w*|c(?:o?e)liac|diabet\w*|insulin|asthma\w*|"
    r"epilep\w*|seizures?|pregnan\w*|medications?|medicines?|prescri\w+|pills|tablets|antibiotics|"
    r"antidepressants|penicillin|ibuprofen|aspirin|blood (?:pressure|thinners?)|pacemaker|heart|"
    r"cancer|chemotherapy|dialysis|h\.?i\.?v|migraines?|disab\w+|wheelchair|deaf|blind|chronic\w*|"
    r"diagnos\w+|diseases?|disorders?|syndrome|suffers? from)\b",
    re.IGNORECASE,
)
_TOLD_OF_THE_USER = re.compile(
    r"\A(?:the )?user(?:(?!['’\w])"
    r"|['’]s (?P<what>(?:(?!(?:is|are|was|were|has|have)\b)[\w'’-]+ ){1,4}))",
    re.IGNORECASE,
)
_OBJECTS_LISTED = 24
_FOLDABLE = 2
_EARLIEST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Composed:
    """The lines of a profile, and the memories that found no room."""

    lines: tuple[Line, ...] = ()
    omitted: tuple[str, ...] = ()

    @property
    def memory_ids(self) -> frozenset[str]:
        """What it was composed from."""
        return frozenset(self.omitted).union(*(line.memory_ids for line in self.lines))


@dataclass(frozen=True, slots=True)
class _ProfileLine:
    rank: int
    text: str
    memories: tuple[Told, ...]

    @property
    def size(self) -> int:
        return len(self.text.encode()) + 1


def answers(memory: Told) -> bool:
    """Whether a memory can stand in a digest: it holds for good, and repeats no other."""
    holds = memory.status is MemoryStatus.ACTIVE and not memory.is_test
    # A digest would go on saying what has ended by its own date.
    holds = holds and memory.expires_at is None
    return holds and (isinstance(memory, ProceduralMemory) or memory.form in DIGESTED)


def is_of_the_user(memory: Told) -> bool:
    """Whether a memory belongs into the user's profile: it holds of the user in general.

    Habits, and whatever is said of the user that is no event and is not over; also who the
    user's people and animals are. Of somebody with a name, the rest stands in their own profile.
    """
    if isinstance(memory, ProceduralMemory):
        return True
    slot = memory.slot
    if slot is None:
        # A correction without a slot says what is not so.
        told = memory.category is not Category.CORRECTION and _is_told_of_the_user(memory.content)
        return memory.category in BEHAVIOUR or (told and _is_general(memory))
    if slot.subject != USER:
        return _is_general(memory) and _is_of_their_own(slot)
    return memory.category in BEHAVIOUR or _is_current_value(memory) or _is_general(memory)


def _is_told_of_the_user(content: str) -> bool:
    """Whether it begins with the user, or something of theirs: "The user's blood type"."""
    told = _TOLD_OF_THE_USER.match(content)
    if told is None:
        return False
    # Of "the user's sisters" it tells nothing of the user.
    words = re.findall(r"[^\W\d_]+", (told["what"] or "").casefold())
    return PERSON_ROLES.keys().isdisjoint(words + [word.removesuffix("s") for word in words])


def _is_general(memory: SemanticMemory) -> bool:
    over = memory.slot is not None and ends_something(memory.slot)
    return memory.category in GENERAL and memory.kind is MemoryKind.NOTE and not over


def _is_of_their_own(slot: Slot) -> bool:
    """Whether it says who somebody of the user's is, or tells of one who goes by no name."""
    if slot.predicate == IS_THE_USERS:
        return True
    whose, _, role = slot.subject.partition(OF_THE_USER)
    return not whose and (slot.predicate == IS_CALLED or role.split()[-1] in PERSON_ROLES)


def compose(memories: Iterable[Told], policy: DigestPolicy) -> Composed:
    """The lines of a profile: health first, then current values, then by importance and recency.

    Past the bounds, lines of one predicate are folded into one that keeps their
    sources ("The user likes tea, chess and rain."), the least of them first. What
    finds no room even so is left out, and named.
    """
    ranked = sorted({m.id: m for m in memories if answers(m)}.values(), key=_rank)
    entries = _without_repeats(ranked[: policy.profile_memories])
    entries = _folded(entries, policy)
    kept: list[_ProfileLine] = []
    omitted: list[str] = []
    size = 0
    for entry in entries:
        if len(kept) < policy.profile_lines and size + entry.size <= policy.profile_bytes:
            kept.append(entry)
            size += entry.size
        else:
            omitted += [memory.id for memory in entry.memories]
    lines = tuple(Line(text=e.text, memory_ids=tuple(m.id for m in e.memories)) for e in kept)
    return Composed(lines=lines, omitted=tuple(omitted))


def profile_text(name: str, aliases: Sequence[str], kind: EntityKind, lines: Sequence[Line]) -> str:
    """The words of a profile."""
    told = [] if kind is EntityKind.UNKNOWN else [kind.value]
    told += [f"also {', '.join(aliases)}"] if aliases else []
    head = f"{name} ({'; '.join(told)})" if told else name
    return "\n".join([f"{head}:", *(line.text for line in lines)])


def _slot(memory: Told) -> Slot | None:
    return memory.slot if isinstance(memory, SemanticMemory) else None


def _is_current_value(memory: Told) -> bool:
    slot = _slot(memory)
    return slot is not None and is_functional(slot) and not ends_something(slot)


def _rank(memory: Told) -> tuple[bool, bool, str, float, float, str]:
    health = _HEALTH.search(memory.content) is not None
    current, slot = _is_current_value(memory), _slot(memory)
    predicate = slot.predicate if current and slot is not None else ""
    age = -(memory.known_at - _EARLIEST).total_seconds()
    return not health, not current, predicate, -memory.importance, age, memory.id


def _without_repeats(ranked: Sequence[Told]) -> list[_ProfileLine]:
    """A habit says what the knowledge says that it came from: both stand in one line."""
    alike: dict[str, list[Told]] = defaultdict(list)
    for memory in ranked:
        alike[memory.identity].append(memory)
    groups = [
        sorted(same, key=lambda memory: isinstance(memory, ProceduralMemory))
        for same in alike.values()
    ]
    return [_ProfileLine(rank, same[0].content, tuple(same)) for rank, same in enumerate(groups)]


def _folded(entries: list[_ProfileLine], policy: DigestPolicy) -> list[_ProfileLine]:
    groups: dict[tuple[str, str], list[_ProfileLine]] = defaultdict(list)
    for entry in entries:
        slot = _slot(entry.memories[0])
        if slot is not None and slot.object and not _is_current_value(entry.memories[0]):
            groups[slot.subject, slot.predicate].append(entry)
    # The group that begins last is the least; ties cannot be, because ranks are unique.
    least_first = sorted(groups.values(), key=lambda group: -group[0].rank)
    for group in least_first:
        if _fits(entries, policy):
            break
        if len(group) >= _FOLDABLE:
            entries = sorted(
                [*(e for e in entries if e not in group), _fold(group)], key=lambda e: e.rank
            )
    return entries


def _fits(entries: Sequence[_ProfileLine], policy: DigestPolicy) -> bool:
    size = sum(entry.size for entry in entries)
    return len(entries) <= policy.profile_lines and size <= policy.profile_bytes


def _fold(group: Sequence[_ProfileLine]) -> _ProfileLine:
    slot = _slot(group[0].memories[0])
    assert slot is not None  # noqa: S101 - for the type checker; only slots are grouped
    objects = list(dict.fromkeys(_spelled(entry.memories[0]) for entry in group))
    listed, more = objects[:_OBJECTS_LISTED], len(objects) - _OBJECTS_LISTED
    if more > 0:
        listed.append(f"{more} more")
    what = listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} and {listed[-1]}"
    subject = "The user" if slot.subject == USER else _subject(group[0].memories[0], slot)
    memories = tuple(memory for entry in group for memory in entry.memories)
    return _ProfileLine(group[0].rank, f"{subject} {slot.predicate} {what}.", memories)


def _spelled(memory: Told) -> str:
    """The object as the memory spells it."""
    slot = _slot(memory)
    return as_spelled(slot.object, memory.content) if slot is not None else ""


def _subject(memory: Told, slot: Slot) -> str:
    begins = memory.content[: len(slot.subject)]
    return begins if begins.casefold() == slot.subject else slot.subject.title()


# --- profiles as they should be, from entities and memories

USER_ENTITY = "user"
USER_KEY = f"entity:{USER_ENTITY}"
# Beside those that its lines' memories name.
_SOURCES_NAMED = 100
NOBODY: Final = "The user"
"""Whose profile it is, while nobody said what the user is called."""


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


@dataclass(frozen=True, slots=True)
class OwnNames:
    """What the user is called.

    Attributes:
        told: Where it is said, the newest first.
    """

    told: tuple[SemanticMemory | Fact, ...] = ()

    @classmethod
    def of(cls, told: Iterable[SemanticMemory | Fact]) -> OwnNames:
        """From what says it, in any order."""
        told = (m for m in told if isinstance(m, Fact) or answers(m))
        return cls(tuple(sorted(told, key=lambda m: (-m.known_at.timestamp(), m.id))))

    @property
    def names(self) -> tuple[str, ...]:
        """Each once."""
        named = (m.value if isinstance(m, Fact) else _spelled(m) for m in self.told)
        # The first of each key counts.
        return tuple({name_key(name): name for name in reversed([*named])}.values())[::-1]

    def left_of(self, told: MentionEvidence) -> MentionEvidence:
        """What is told of others: the user needs no second profile.

        A whole name with nobody's role is the user's wherever it stands. Of a first name alone
        that is known only where they said that it is theirs: Maria may speak of another Maria.
        """
        keys = {name_key(name) for name in self.names}
        said = {m.id for m in self.told}.union(*(m.source_episode_ids for m in self.told))
        others = (
            m
            for m in told.mentions
            if name_key(m.name) not in keys
            or m.qualifier
            or (" " not in m.name and m.source_id not in said)
        )
        return MentionEvidence(tuple(others), told.equations)


def user_draft(
    memories: Sequence[Told], own: OwnNames, rest: Rest, policy: DigestPolicy
) -> Draft | None:
    """The user's profile; None where nothing is known.

    Args:
        memories: Everything looked at that is about the user, whether or not it holds,
            habits too.
        own: What the user is called.
        rest: What else it rests on.
        policy: The bounds.
    """
    standing = [m for m in memories if answers(m) and is_of_the_user(m)]
    if not (standing or own.told):
        return None
    composed = compose(standing, policy)
    name, *aliases = own.names or (NOBODY,)
    times = [memory.known_at for memory in (*standing, *own.told)]
    times += [rest.times[m.id] for m in memories if m.id in rest.times]
    # First those of the names: no line names them.
    sources = dict.fromkeys((*_sources(own.told, ()), *_sources(standing, ())))
    keys = [f"name:{name_key(n)}" for n in ("user", *own.names)]
    keys += sorted({f"part:{word}" for n in own.names for word in name_words(n)})
    return Draft(
        form=MemoryForm.PROFILE,
        content=profile_text(name, aliases, EntityKind.USER, composed.lines),
        detail=ProfileDetail(
            keys=tuple(dict.fromkeys([USER_KEY, *keys])),
            entity=USER_ENTITY,
            name=name,
            aliases=tuple(aliases),
            kind=EntityKind.USER,
            lines=composed.lines,
            omitted=composed.omitted,
        ),
        sources=tuple(sources)[:_SOURCES_NAMED],
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


def _sources(memories: Sequence[Told | Fact], turns: Sequence[str]) -> tuple[str, ...]:
    found = {source for memory in memories for source in memory.source_episode_ids}
    return tuple(sorted(found | set(turns)))[:_SOURCES_NAMED]
