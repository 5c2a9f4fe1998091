"""Entity resolution: which names mean the same person, place or project."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import combinations

from engram.digests.names import (
    FAMILY_TITLES,
    GIVEN_NAMES,
    KIND_OF_NOUN,
    PERSON_ROLES,
    NameParts,
    agree,
    name_key,
    parts_of,
)
from engram.domain.digests import EntityKind, Equation, Mention, Merge

# --- bearers of names before and while they are told to be one

_ROLE_WORDS = frozenset(PERSON_ROLES.values()) | FAMILY_TITLES
# Of one bearer under one name, so many places where it occurs are kept.
MENTIONS_KEPT = 4


@dataclass(frozen=True, slots=True)
class EntityCandidate:
    """Whoever bears a name, as far as the places where it occurs tell the same.

    Attributes:
        key: Name, kind and what sets it apart.
        name_key: The name, normalised.
        name: As it is written most often.
        kind: What it is.
        qualifier: What sets it apart from others of that name.
        another: Which text says that it is another one; empty if none does.
        mentions: Where the name occurs.
    """

    key: str
    name_key: str
    name: str
    kind: EntityKind
    qualifier: str
    another: str
    mentions: tuple[Mention, ...]

    @property
    def identifiers(self) -> tuple[str, ...]:
        """Addresses and numbers."""
        return tuple(sorted({i for mention in self.mentions for i in mention.identifiers}))

    @property
    def specificity(self) -> int:
        """How much is told of it."""
        known = self.kind is not EntityKind.UNKNOWN
        return 4 * bool(self.another) + 2 * bool(self.qualifier) + known

    @property
    def is_single(self) -> bool:
        """Whether it goes by a single word."""
        return len(self.name_key.split()) == 1


def bearers_of(mentions: Iterable[Mention]) -> tuple[EntityCandidate, ...]:
    """The mentions, gathered by name and by what sets their bearers apart, in order."""
    given = sorted(set(mentions), key=_order)
    ambiguous = ambiguous_names(given)
    gathered: dict[tuple[str, str, str, str], list[Mention]] = defaultdict(list)
    for mention in given:
        gathered[_apart(mention, ambiguous)].append(mention)
    return tuple(
        EntityCandidate(
            key="|".join(key),
            name_key=key[0],
            name=_most_often(m.name for m in found),
            kind=EntityKind(key[1]),
            qualifier=key[2],
            another=key[3],
            mentions=_kept(found),
        )
        for key, found in sorted(gathered.items())
    )


def ambiguous_names(mentions: Iterable[Mention]) -> frozenset[str]:
    """Names of which it is said that somebody else bears them too."""
    return frozenset(name_key(m.name) for m in mentions if m.another)


def bearer_key(mention: Mention, ambiguous: Set[str]) -> str:
    """The key of the bearer that a mention belongs to."""
    return "|".join(_apart(mention, ambiguous))


def fits_short(short: EntityCandidate, full: EntityCandidate) -> bool:
    """Whether ``short`` is a form of the person's name ``full``: Sam, Dr Shah, W. Hart."""
    one, other = parts_of(short.name), parts_of(full.name)
    if _is_acronym(short.name, full.name) or _is_surname(short, other):
        return True
    if not (other.family or other.seniority) or not agree(one, other):
        # "William Hart" can be William Hart Senior, where nobody else can be meant.
        if not (other.seniority and not one.seniority and one.given == other.given):
            return False
        return one.family == other.family
    if not (_is_person(full) or _is_person(short)):
        return False
    if other.given:
        first_name = bool(one.given) and not one.family and short.name_key != full.name_key
        last_name = not one.given and bool(one.family) and bool(one.title)
        initial = (
            one.given != other.given and bool(one.family) and len(one.given) < len(other.given)
        )
        untitled = (one.given, one.family) == (other.given, other.family) and bool(one.family)
        return first_name or last_name or initial or untitled
    # "Mister Pickles" is Pickles for short.
    return bool(other.title) and short.name_key == other.family


def _is_acronym(short: str, full: str) -> bool:
    """Whether it is made of the first letters: "MTA" of the Metropolitan Transport Authority."""
    initials = _initials(full)
    return len(initials) > 2 and short == initials  # noqa: PLR2004 - two letters are anybody's


def _initials(name: str) -> str:
    return "".join(word[0] for word in name.split() if word[:1].isupper())


def _is_surname(short: EntityCandidate, other: NameParts) -> bool:
    """Whether a single word is the family name of somebody who was named in full, or by title."""
    person = short.kind in {EntityKind.UNKNOWN, EntityKind.PERSON}
    alone = person and short.is_single and short.name_key not in GIVEN_NAMES
    known = other.given in GIVEN_NAMES or bool(other.title)
    return alone and known and short.name_key == other.family


def project_core(name: str) -> str:
    """What is left of a project's name without the word: "Project Heron" is Heron."""
    words = name.split()
    if len(words) > 1 and KIND_OF_NOUN.get(words[0]) is EntityKind.PROJECT:
        return " ".join(words[1:])
    if len(words) > 1 and KIND_OF_NOUN.get(words[-1]) is EntityKind.PROJECT:
        return " ".join(words[:-1])
    return ""


class Groups:
    """Which bearers are one so far.

    Args:
        bearers: All of them.
        different: What is said to have two bearers.
    """

    def __init__(self, bearers: Sequence[EntityCandidate], different: Iterable[Equation]) -> None:
        self.bearers = bearers
        self._apart = {frozenset((name_key(e.first), name_key(e.second))) for e in different}
        self._group = {bearer.key: bearer.key for bearer in bearers}
        self._members = {bearer.key: [bearer] for bearer in bearers}
        self._merges: list[tuple[str, Merge]] = []

    def of(self, bearer: EntityCandidate) -> str:
        """Names the group of a bearer."""
        return self._group[bearer.key]

    def all(self) -> Iterator[list[EntityCandidate]]:
        """Every group."""
        return (sorted(members, key=lambda b: b.key) for members in self._members.values())

    def fit(self, first: EntityCandidate, second: EntityCandidate, *, said: bool = False) -> bool:
        """Whether two groups can be one: nothing that is told sets them apart.

        Args:
            first: A bearer of the one.
            second: A bearer of the other.
            said: Whether it is said that they are, so that roles may differ.
        """
        return all(
            self._can_be_one(a, b, said=said)
            for a in self._members[self.of(first)]
            for b in self._members[self.of(second)]
        )

    def join(
        self, first: EntityCandidate, second: EntityCandidate, reason: str, sources: tuple[str, ...]
    ) -> None:
        """Make two groups one, and record why."""
        one, other = sorted((self.of(first), self.of(second)))
        if one == other:
            return
        for bearer in self._members[other]:
            self._group[bearer.key] = one
        self._members[one] += self._members.pop(other)
        merge = Merge(
            first=first.name, second=second.name, reason=reason, source_ids=tuple(sources)
        )
        self._merges.append((first.key, merge))

    def merges_of(self, members: Sequence[EntityCandidate]) -> tuple[Merge, ...]:
        """Why these are one."""
        keys = {bearer.key for bearer in members}
        found = [merge for key, merge in self._merges if key in keys]
        return tuple(sorted(found, key=lambda m: (m.first, m.second, m.reason)))

    def _can_be_one(self, first: EntityCandidate, second: EntityCandidate, *, said: bool) -> bool:
        if EntityKind.UNKNOWN not in (first.kind, second.kind) and first.kind is not second.kind:
            return False
        if frozenset((first.name_key, second.name_key)) in self._apart:
            return False
        if first.another != second.another and first.name_key == second.name_key:
            return False
        told_apart = first.qualifier and second.qualifier and first.qualifier != second.qualifier
        return not (told_apart and not said and (first.is_single or second.is_single))


def _order(mention: Mention) -> tuple[str, ...]:
    return (name_key(mention.name), mention.source_id, mention.model_dump_json())


def _apart(mention: Mention, ambiguous: Set[str]) -> tuple[str, str, str, str]:
    name = name_key(mention.name)
    qualifier = mention.qualifier if name in ambiguous or mention.qualifier in _ROLE_WORDS else ""
    another = mention.source_id if mention.another else ""
    return name, mention.kind.value, qualifier, another


def _most_often(names: Iterable[str]) -> str:
    counted = Counter(names)
    return min(counted, key=lambda name: (-counted[name], name))


def _kept(mentions: Sequence[Mention]) -> tuple[Mention, ...]:
    """The first few of each wording, and every one with an address."""
    plain = [m for m in mentions if not m.identifiers][:MENTIONS_KEPT]
    reached = {m.identifiers: m for m in reversed(mentions) if m.identifiers}
    return (*plain, *sorted(reached.values(), key=_order)[: 4 * MENTIONS_KEPT])


def _is_person(bearer: EntityCandidate) -> bool:
    words = bearer.name_key.split()
    named = words[0] in GIVEN_NAMES
    return bearer.kind is EntityKind.PERSON or (bearer.kind is EntityKind.UNKNOWN and named)


# --- who is who: names are taken for one bearer by decision, never by accident
#
# Resolution is a function of everything that is known about some names, whatever
# the order in which it was told. So a later statement can also split what an
# earlier one had made one: a first name that two people turn out to bear belongs to
# neither of them.

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


def _same_name(groups: Groups) -> None:
    """Bearers of one name are one, where only one is possible."""
    by_name: dict[str, list[EntityCandidate]] = defaultdict(list)
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


def _bearer(groups: Groups, name: str, source_id: str) -> EntityCandidate | None:
    """Whom a text means by a name; None where it could be several."""
    key = name_key(name)
    named = [b for b in groups.bearers if b.name_key == key]
    here = [b for b in named if any(m.source_id == source_id for m in b.mentions)] or named
    return here[0] if len({groups.of(b) for b in here}) == 1 else None


def _same_address(groups: Groups) -> None:
    """Who shares an address or number is one, unless the names contradict."""
    by_address: dict[str, list[EntityCandidate]] = defaultdict(list)
    for bearer in groups.bearers:
        for identifier in bearer.identifiers:
            by_address[identifier].append(bearer)
    for identifier, bearers in sorted(by_address.items()):
        for first, second in combinations(bearers, 2):
            names = agree(parts_of(first.name), parts_of(second.name))
            if names and groups.fit(first, second):
                reason = f"the same {identifier.partition(':')[0]}"
                groups.join(first, second, reason, _sources(identifier, first, second))


def _sources(identifier: str, *bearers: EntityCandidate) -> tuple[str, ...]:
    mentions = (m for b in bearers for m in b.mentions if identifier in m.identifiers)
    return tuple(dict.fromkeys(m.source_id for m in mentions))


def _short_forms(groups: Groups) -> None:
    """A form of a full name is that person's, where only one person can be meant."""
    wanted: dict[str, list[tuple[EntityCandidate, EntityCandidate]]] = defaultdict(list)
    full_names = _FullNames(groups.bearers)
    for short in groups.bearers:
        full = [
            b
            for b in full_names.sharing(short)
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


class _FullNames:
    """Names by what a short form of each has in common with it: not each is held against each.

    Args:
        bearers: Of all names.
    """

    def __init__(self, bearers: Sequence[EntityCandidate]) -> None:
        self._bearers = bearers
        self._by_share: dict[tuple[str, str], list[int]] = defaultdict(list)
        for place, bearer in enumerate(bearers):
            for share in self._shares_of_full(bearer):
                self._by_share[share].append(place)

    def sharing(self, short: EntityCandidate) -> list[EntityCandidate]:
        """All that it could be short for, and some others, in the order in which they came."""
        places = {p for s in self._shares_of_short(short) for p in self._by_share.get(s, ())}
        return [self._bearers[place] for place in sorted(places)]

    @staticmethod
    def _shares_of_full(bearer: EntityCandidate) -> Iterator[tuple[str, str]]:
        parts = parts_of(bearer.name)
        yield "initials", _initials(bearer.name)
        yield "project", project_core(bearer.name_key)
        if parts.family:
            yield "family", parts.family
        elif parts.seniority:
            yield "seniority", parts.seniority
        if parts.given and (parts.family or parts.seniority):
            yield "given", parts.given[0]

    @staticmethod
    def _shares_of_short(bearer: EntityCandidate) -> Iterator[tuple[str, str]]:
        parts = parts_of(bearer.name)
        yield "initials", bearer.name
        yield "project", bearer.name_key
        yield "family", bearer.name_key
        if parts.family:
            yield "family", parts.family
        if parts.given:
            yield "given", parts.given[0]
        elif parts.seniority:
            yield "seniority", parts.seniority


def _join_the_only_one(
    groups: Groups, bearer: EntityCandidate, fitting: Sequence[EntityCandidate], reason: str
) -> None:
    if len({groups.of(b) for b in fitting}) == 1:
        groups.join(bearer, fitting[0], reason, ())


def _entity(members: Sequence[EntityCandidate], groups: Groups, told: Sequence[Equation]) -> Entity:
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
