"""Who is who: names are taken for one bearer by decision, never by accident.

Resolution is a function of everything that is known about some names, whatever
the order in which it was told. So a later statement can also split what an
earlier one had made one: a first name that two people turn out to bear belongs to
neither of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from engram.domain.digests.bearers import (
    Bearer,
    Groups,
    ambiguous_names,
    bearer_key,
    bearers_of,
    fits_short,
    project_core,
)
from engram.domain.digests.clues import clues_in
from engram.domain.digests.details import EntityKind, Equation, Mention, Merge
from engram.domain.digests.names import agree, name_key, parts_of

RENAMED = "renamed"


@dataclass(frozen=True, slots=True)
class Entity:
    """One bearer of names.

    Attributes:
        key: Names it among the entities of its user, as long as its names do.
        name: The fullest, or after a renaming the newest.
        aliases: The other names, in alphabetical order.
        kind: What it is.
        mentions: Where its names occur.
        equations: What is said about its names.
        merges: Which names were taken for one bearer, and why.
        bearers: The keys of what was taken for one bearer.
    """

    key: str
    name: str
    aliases: tuple[str, ...]
    kind: EntityKind
    mentions: tuple[Mention, ...]
    equations: tuple[Equation, ...]
    merges: tuple[Merge, ...]
    bearers: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """All of its names, the fullest first."""
        return self.name, *self.aliases


def resolve(mentions: Iterable[Mention], equations: Iterable[Equation]) -> tuple[Entity, ...]:
    """The bearers of all these names, in order of their keys."""
    told = sorted(set(equations), key=lambda e: (e.first, e.second, e.same, e.why, e.source_id))
    bearers = bearers_of(mentions)
    groups = Groups(bearers, [e for e in told if not e.same])
    _same_name(groups)
    _said_to_be_one(groups, [e for e in told if e.same])
    _same_address(groups)
    _short_forms(groups)
    return tuple(
        _entity(members, groups, told)
        for members in sorted(groups.all(), key=lambda members: members[0].key)
    )


class Register:
    """Whose mention is whose, after resolution.

    Args:
        entities: What :func:`resolve` returned.
    """

    def __init__(self, entities: Iterable[Entity]) -> None:
        self.entities = tuple(entities)
        self._borne = {key: entity for entity in self.entities for key in entity.bearers}
        self._ambiguous = ambiguous_names(m for e in self.entities for m in e.mentions)

    def entity_of(self, mention: Mention) -> Entity | None:
        """The bearer; None if the mention was not among those resolved."""
        return self._borne.get(bearer_key(mention, self._ambiguous))


def find(entities: Iterable[Entity], wanted: str) -> tuple[Entity, ...]:
    """The entities that a name, address or description can mean.

    A description is a name with what sets its bearer apart: "aunt Florence", "the
    city of Florence", "John Smith from flat 3".
    """
    asked = _asked(wanted)
    found = [
        entity
        for entity in entities
        if any(_means(mention, asked) for mention in entity.mentions)
        and (EntityKind.UNKNOWN in (asked.kind, entity.kind) or asked.kind is entity.kind)
    ]
    exact = [
        entity
        for entity in found
        if any(_means(m, asked) and m.qualifier == asked.qualifier for m in entity.mentions)
    ]
    return tuple(exact or found) if asked.qualifier else tuple(found)


def _asked(wanted: str) -> Mention:
    mentions = clues_in(wanted, "?").mentions
    if len(mentions) == 1:
        return mentions[0]
    return Mention(name=wanted, source_id="?")


def _means(mention: Mention, asked: Mention) -> bool:
    key = name_key(asked.name)
    known = (name_key(mention.name), *(i.partition(":")[2] for i in mention.identifiers))
    return key in known


def _same_name(groups: Groups) -> None:
    """Bearers of one name are one, where only one is possible."""
    by_name: dict[str, list[Bearer]] = defaultdict(list)
    for bearer in groups.bearers:
        by_name[bearer.name_key].append(bearer)
    for bearers in by_name.values():
        # Those of whom most is told come first; the others find their place among them.
        for bearer in sorted(bearers, key=lambda b: (-b.specificity, b.key)):
            others = [b for b in bearers if groups.of(b) != groups.of(bearer)]
            fitting = [
                b for b in others if b.specificity >= bearer.specificity and groups.fit(b, bearer)
            ]
            alike = [b for b in fitting if b.qualifier == bearer.qualifier]
            _join_the_only_one(groups, bearer, alike or fitting, "the same name")


def _said_to_be_one(groups: Groups, equations: Sequence[Equation]) -> None:
    for said in equations:
        first = _bearer(groups, said.first, said.source_id)
        second = _bearer(groups, said.second, said.source_id)
        if first and second and groups.fit(first, second, said=True):
            groups.join(first, second, said.why, (said.source_id,))


def _bearer(groups: Groups, name: str, source_id: str) -> Bearer | None:
    """Whom a text means by a name; None where it could be several."""
    named = [b for b in groups.bearers if b.name_key == name_key(name)]
    here = [b for b in named if any(m.source_id == source_id for m in b.mentions)] or named
    return here[0] if len({groups.of(b) for b in here}) == 1 else None


def _same_address(groups: Groups) -> None:
    """Who shares an address or number is one, unless the names contradict."""
    by_address: dict[str, list[Bearer]] = defaultdict(list)
    for bearer in groups.bearers:
        for identifier in bearer.identifiers:
            by_address[identifier].append(bearer)
    for identifier, bearers in sorted(by_address.items()):
        for first, second in combinations(bearers, 2):
            names = agree(parts_of(first.name), parts_of(second.name))
            if names and groups.fit(first, second):
                reason = f"the same {identifier.partition(':')[0]}"
                groups.join(first, second, reason, _sources(identifier, first, second))


def _sources(identifier: str, *bearers: Bearer) -> tuple[str, ...]:
    mentions = (m for b in bearers for m in b.mentions if identifier in m.identifiers)
    return tuple(dict.fromkeys(m.source_id for m in mentions))


def _short_forms(groups: Groups) -> None:
    """A form of a full name is that person's, where only one person can be meant."""
    wanted: dict[str, list[tuple[Bearer, Bearer]]] = defaultdict(list)
    for short in groups.bearers:
        full = [
            b
            for b in groups.bearers
            if groups.of(b) != groups.of(short)
            and (fits_short(short, b) or project_core(b.name_key) == short.name_key)
        ]
        fitting = [b for b in full if groups.fit(b, short)]
        meant = {groups.of(b) for b in fitting}
        # Of two people the name could be either's, also where only one of them fits.
        people = {groups.of(b) for b in full if b.kind is EntityKind.PERSON}
        if len(meant) == 1 and people <= meant:
            wanted[meant.pop()].append((short, fitting[0]))
    for pairs in wanted.values():
        shorts = [short for short, _ in pairs]
        if all(groups.fit(a, b, said=True) for a, b in combinations(shorts, 2)):
            for short, whole in pairs:
                groups.join(short, whole, "short form with one bearer", ())


def _join_the_only_one(
    groups: Groups, bearer: Bearer, fitting: Sequence[Bearer], reason: str
) -> None:
    if len({groups.of(b) for b in fitting}) == 1:
        groups.join(bearer, fitting[0], reason, ())


def _entity(members: Sequence[Bearer], groups: Groups, told: Sequence[Equation]) -> Entity:
    keys = {bearer.name_key for bearer in members}
    equations = tuple(e for e in told if {name_key(e.first), name_key(e.second)} & keys)
    spelled = {bearer.name_key: bearer.name for bearer in members}
    newest = [
        name_key(e.second)
        for e in equations
        if e.why == RENAMED and {name_key(e.first), name_key(e.second)} <= keys
    ]
    fullest = sorted(spelled, key=lambda key: (-len(key.split()), -len(key), key))
    name = spelled[newest[-1] if newest else fullest[0]]
    kinds = {b.kind for b in members} - {EntityKind.UNKNOWN}
    return Entity(
        key=min(bearer.key for bearer in members),
        name=name,
        aliases=tuple(sorted(set(spelled.values()) - {name})),
        kind=kinds.pop() if kinds else EntityKind.UNKNOWN,
        mentions=tuple(m for bearer in members for m in bearer.mentions),
        equations=equations,
        merges=groups.merges_of(members),
        bearers=tuple(bearer.key for bearer in members),
    )
