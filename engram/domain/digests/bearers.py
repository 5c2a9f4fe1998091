"""Bearers of names before and while they are told to be one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from engram.domain.digests.details import EntityKind, Equation, Mention, Merge
from engram.domain.digests.names import agree, name_key, parts_of
from engram.domain.digests.vocabulary import FAMILY_TITLES, GIVEN_NAMES, KIND_OF_NOUN, ROLES

_ROLES = frozenset(ROLES.values()) | FAMILY_TITLES
# Of one bearer under one name, so many places where it occurs are kept.
MENTIONS_KEPT = 4


@dataclass(frozen=True, slots=True)
class Bearer:
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


def bearers_of(mentions: Iterable[Mention]) -> tuple[Bearer, ...]:
    """The mentions, gathered by name and by what sets their bearers apart, in order."""
    given = sorted(set(mentions), key=_order)
    ambiguous = ambiguous_names(given)
    gathered: dict[tuple[str, str, str, str], list[Mention]] = defaultdict(list)
    for mention in given:
        gathered[_apart(mention, ambiguous)].append(mention)
    return tuple(
        Bearer(
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


def fits_short(short: Bearer, full: Bearer) -> bool:
    """Whether ``short`` is a form of the person's name ``full``: Sam, Dr Shah, W. Hart."""
    one, other = parts_of(short.name), parts_of(full.name)
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
        initial = len(one.given) == 1 and one.family == other.family
        untitled = (one.given, one.family) == (other.given, other.family) and bool(one.family)
        return first_name or last_name or initial or untitled
    # "Mister Pickles" is Pickles for short.
    return bool(other.title) and short.name_key == other.family


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

    def __init__(self, bearers: Sequence[Bearer], different: Iterable[Equation]) -> None:
        self.bearers = bearers
        self._apart = {frozenset((name_key(e.first), name_key(e.second))) for e in different}
        self._group = {bearer.key: bearer.key for bearer in bearers}
        self._members = {bearer.key: [bearer] for bearer in bearers}
        self._merges: list[tuple[str, Merge]] = []

    def of(self, bearer: Bearer) -> str:
        """Names the group of a bearer."""
        return self._group[bearer.key]

    def all(self) -> Iterator[list[Bearer]]:
        """Every group."""
        return (sorted(members, key=lambda b: b.key) for members in self._members.values())

    def fit(self, first: Bearer, second: Bearer, *, said: bool = False) -> bool:
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

    def join(self, first: Bearer, second: Bearer, reason: str, sources: tuple[str, ...]) -> None:
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

    def merges_of(self, members: Sequence[Bearer]) -> tuple[Merge, ...]:
        """Why these are one."""
        keys = {bearer.key for bearer in members}
        found = [merge for key, merge in self._merges if key in keys]
        return tuple(sorted(found, key=lambda m: (m.first, m.second, m.reason)))

    def _can_be_one(self, first: Bearer, second: Bearer, *, said: bool) -> bool:
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
    qualifier = mention.qualifier if name in ambiguous or mention.qualifier in _ROLES else ""
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


def _is_person(bearer: Bearer) -> bool:
    words = bearer.name_key.split()
    named = words[0] in GIVEN_NAMES
    return bearer.kind is EntityKind.PERSON or (bearer.kind is EntityKind.UNKNOWN and named)
