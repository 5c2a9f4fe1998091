"""Which names a memory mentions, and what a text says about who bears them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from typing import Final

from engram.digests.names import (
    FAMILY_TITLES,
    FORMAL_TITLES,
    GIVEN_NAMES,
    KIND_OF_NOUN,
    KIND_OF_OBJECT,
    NAMING_NOUNS,
    PERSON_ROLES,
    FoundName,
    name_key,
    names_in,
    parts_of,
)
from engram.domain.digests import EntityKind, Equation, Mention
from engram.domain.kept import kept
from engram.domain.memories import Episode, SemanticMemory, Slot
from engram.domain.slots import OF_THE_USER, USER, held_predicate
from engram.domain.turns import is_first_party
from engram.language.calendar import MONTH
from engram.language.text import BARE_WORDS, collapsed

# --- phrases that tell about names. In them ``<1>``, ``<2>`` stand for names; see ``clues``
#
# Each phrase is a regular expression over a text in which every name was put into
# angle brackets by its number. Precision before recall: what is left out splits an
# entity in two, what is wrong in here mixes two people up.

_WHO: Final = (
    r"(?:we(?: all)?|i|they|everyone|everybody|people|friends|family|most people|"
    r"(?:all )?(?:my|his|her|our|the) [\w-]+)"
)
_HIM: Final = r"(?:him|her|them|it|this)"
_CALL: Final = r"(?:just |only |always |usually |mostly |all )?calls?"


def _phrase(text: str) -> re.Pattern[str]:
    """``<a>`` and ``<b>`` become groups; a space is any white space."""
    named = text.replace("<a>", "<(?P<a>\\d+)>").replace("<b>", "<(?P<b>\\d+)>")
    return re.compile(named.replace(" ", r"\s+"), re.IGNORECASE)


SAME: Final[tuple[tuple[str, re.Pattern[str]], ...]] = tuple(
    (why, _phrase(phrase))
    for why, phrase in (
        ("is called so", rf"<a>[^.!?<>]{{0,80}}?\b{_WHO} {_CALL} {_HIM} (?:the )?<b>"),
        ("is called so", r"<a>[^.!?<>]{0,80}?\b(?:goes|went) by (?:the name (?:of )?)?<b>"),
        ("is called so", r"<a>[^.!?<>]{0,60}?\banswers to <b>"),
        ("is called so", r"<a>[^.!?<>]{0,60}?\bmostly (?:he|she|it)(?:['’]s| is) just <b>"),
        ("is called so", r"<b> is (?:what|how) [\w ]{1,30}? calls? <a>"),
        (
            "also known as",
            r"<a>,?\s*\(?,?\s*(?:who is |who['’]s |is )?(?:also |better |otherwise |generally |"
            r"previously |formerly )?(?:known|referred to) (?:to \w+ )?as (?:the )?<b>",
        ),
        ("is called so", r"<b>, (?:as|which is what) (?:we|they|I|everyone) (?:all )?calls? <a>"),
        ("is called so", r"<a>, <b> to (?:his|her|their|my|our|all|everyone|friends|us|me)\b"),
        ("is called so", r"<a> prefers (?:to be called |to go by |the name )?<b>"),
        ("the same", r"<a>, (?:I mean|that is|i\.e\.|meaning) <b>"),
        ("the same", r"<a> = <b>"),
        ("also known as", r"<a>,?\s*\(?(?:aka|a\.k\.a\.?|alias) (?:the )?<b>"),
        ("nickname", r"<a>,?\s*\(?(?:nicknamed|nickname:?|a nickname for) <b>"),
        ("nickname", r"<a>[^.!?<>]{0,40}?\b(?:is|was|['’]s) (?:his|her|a|the) nickname for <b>"),
        ("nickname", r"<a>['’]s nickname is <b>"),
        ("full name", r"<a>['’]s (?:full|real|proper|legal|actual) name is <b>"),
        ("full name", r"<a>,?\s*\(?(?:full|real|proper|legal) name:? <b>"),
        ("short for", r"<a>,?\s*\(?(?:is |which is |that['’]s |['’]s )?(?:just )?short for <b>"),
        ("short for", r"<a>,?\s*\(?(?:or )?<b>,? for short"),
        ("stands for", r"<a> stands for (?:the )?<b>"),
        ("in brackets", r"<a> \((?:the )?<b>\)"),
        ("spelling", r"<a>,?\s*\(?(?:also |sometimes |mis)?(?:spelled|spelt|written) <b>"),
        ("or so called", r"<a>,? or <b>,? (?:as|for short|if you)\b"),
        ("or so called", r"<a>,? or (?:just |simply )<b>,"),
        ("renamed", r"\brename[ds]? (?:the \w+ )?<a> (?:to|as|into) <b>"),
        ("renamed", r"<a> (?:has been |was |is being |got |is )?re-?(?:named|branded)"
         r"(?: to| as)? <b>"),
        (
            "renamed",
            r"(?:used to be|was(?: previously| formerly)?|formerly) (?:called|named|known as) <a>,?"
            r"\s*(?:and |but )?(?:it |she |he |they )?(?:is|['’]s|are) now (?:called |named )?<b>",
        ),
        ("renamed", r"<b>,?\s*\(?(?:formerly|previously|née|nee) (?:called |named |known as )?<a>"),
        ("renamed", r"<b> (?:used to be|was (?:formerly|previously|once))"
         r" (?:called |named |known as )?<a>"),
        ("renamed", r"<a> (?:now calls (?:himself|herself|itself)|is now(?: called| known as)?)"
         r" <b>"),
        ("renamed", r"<a> is <b> (?:now|these days)\b"),
        ("the same", r"<a> is (?:really|actually|in fact|the same (?:person |man |woman |place |"
         r"company |thing |project )?as|also called|one and the same as) <b>"),
        ("the same", r"<a> and <b> are (?:really |actually )?(?:the same|one and the same)\b"),
        ("the same", r"\bsigns (?:\w+ )?as <a>,? (?:but|though) (?:that|it)(?:['’]s| is) <b>"),
    )
)  # fmt: skip
DIFFERENT: Final[tuple[tuple[str, re.Pattern[str]], ...]] = tuple(
    (why, _phrase(phrase))
    for why, phrase in (
        ("said to differ", r"<a> (?:is|was)(?:n['’]t| not) (?:the same (?:\w+ )?as )?<b>"),
        ("said to differ", r"<a>,?\s*\(?(?:no relation to|not to be confused with|unlike|not) <b>"),
        ("said to differ", r"<a> and <b> are (?:not the same|n['’]t the same|different|two)\b"),
        ("named side by side", r"<a>(?:['’]s \w+)?,? (?:and|as well as|or) (?:my |our |the )?<b>"),
        ("named side by side", r"<a>, <b>,? and "),
        ("kin of each other", r"<a>['’]s (?:[a-z-]+ ){1,3}(?:is |called |named )*<b>"),
        ("kin of each other", r"<a>[^!?<>]{0,40}?[.,;] (?:his|her|their) (?:[a-z-]+ ){1,3}"
         r"(?:is |called |named )*<b>"),
        ("dealing with each other", r"<a> (?:met|told|called|married|introduced|asked|saw|knows)"
         r" <b>"),
    )
)  # fmt: skip
ANOTHER: Final = re.compile(
    r"\b(?:another|a different|different|the other|a second|a new|not that|no, the)\s+<(\d+)>",
    re.IGNORECASE,
)
"""What comes is a bearer of a name that somebody else bears too."""

_ROLE: Final = "|".join(sorted(map(re.escape, PERSON_ROLES), key=len, reverse=True))
ROLE_BEFORE: Final = re.compile(
    rf"\b(?:my|our|the user['’]s|his|her|their|a|the)\s+(?:[\w-]+\s+){{0,3}}?(?P<role>{_ROLE})"
    r"(?:['’]s|\s+is|\s+was|,)?\s*(?:(?:called|named|is|name is)\s+)?\Z",
    re.IGNORECASE,
)
ROLE_AFTER: Final = re.compile(
    r"\A(?:['’]s|\s+is|\s+was|,|\s*\()?\s*(?:my|our|the user['’]s|a|an|the)\s+(?:[\w-]+\s+){0,2}?"
    rf"(?P<role>{_ROLE})\b(?!['’])",
    re.IGNORECASE,
)
WHERE_FROM: Final = re.compile(
    r"\A\s+(?P<where>(?:from|at|in)\s+(?:the\s+)?(?:[\w-]+\s+)?[\w-]+)", re.IGNORECASE
)

_KIND_BEFORE = {
    EntityKind.PLACE: (
        r"(?:in|near|visiting|(?:fly|flying|flew|travel\w*|trip|move|moved|moving|driving|drove|"
        r"off|heading|headed|train|trains|bus|flight|relocat\w+|go|going|went|been)"
        r"(?:\s+back)?\s+(?:in)?to|live[sd]?\s+in|based\s+in|(?:am|is|'m|’m|are|was|comes?|came)\s+"
        r"from|(?:city|town|village|state|island|country|capital|river)\s+of)"
    ),
    EntityKind.ORGANISATION: (
        r"(?:work(?:s|ed|ing)?\s+(?:at|for)|jobs?\s+(?:at|with)|joined|joining|employed\s+(?:by|at)|"
        r"office\s+at|invoice\s+from|interview(?:ed)?\s+(?:at|with))"
    ),
    EntityKind.PROJECT: r"(?:projects?(?:\s+(?:is|was|used\s+to\s+be))?(?:\s+(?:called|named))?)",
    EntityKind.PRODUCT: (
        r"(?:us(?:e|es|ed|ing)|learn(?:s|ed|t|ing)?|install(?:ed|ing)?|switch(?:ed|ing)\s+to|"
        r"download(?:ed|ing)?|(?:program\w*|cod(?:e|ed|ing)|written|write|wrote)\s+(?:it\s+)?in)"
    ),
}
KIND_BEFORE: Final = tuple(
    (kind, re.compile(rf"\b{phrase}\s+(?:the\s+)?\Z", re.IGNORECASE))
    for kind, phrase in _KIND_BEFORE.items()
)
PERSON_AFTER: Final = re.compile(
    r"\A\s+(?:says|said|thinks|thought|wants|wanted|told|tells|asked|asks|phoned|texted|emailed|"
    r"laughed|smiled|cooks|married|plays|drove|sings|sits|sends|sent|is\s+(?:on\s+(?:leave|holiday)|"
    r"off\s+sick|ill|sick|pregnant|retired|married|coming|visiting))\b",
    re.IGNORECASE,
)

MAIL: Final = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
PHONE: Final = re.compile(r"(?<![\w.])\+?\d[\d\s().-]{6,}\d(?!\w)")


# --- what a text tells about the bearers of names: mentions, and which names are one

_NOUN_AFTER = re.compile(r"\A\s+([a-z][\w-]*)")
_NOUN_BEFORE = re.compile(r"\b([a-z][\w-]*)(?:\s+of)?\s+\Z")
_LOWER_NAME = re.compile(r"\s*([a-z][a-z'’-]+)\s+(?:is|was|has|said|says|wants|will|and|called)\b")
_ENDS = re.compile(r"[.!?]\s")
_SAID_TO_BE_SHARED = re.compile(
    r"\b(?:share|shared|both|reception|switchboard|front desk|family)\b", re.I
)
_MOST_NAMES_IN_A_TEXT = 60
# What tells about a name stands near it: so far before and after it is looked.
_NEAR = 200


_NO_NAMES = FORMAL_TITLES.union(
    "monday tuesday wednesday thursday friday saturday sunday i me my mine we us our you your he "
    "him his she her hers it its they them their this that these those one".split()
)
# "She's", "I've"
_CONTRACTED = re.compile(r"['’](?:m|s|re|ve|ll|d)\b")
_MONTH = re.compile(MONTH)
_DETERMINER = r"\b(?:the|an?|his|her|its|their|my|our|this|that|\w+['’]s)"


@dataclass(frozen=True, slots=True)
class MentionEvidence:
    """What texts tell about names."""

    mentions: tuple[Mention, ...] = ()
    equations: tuple[Equation, ...] = ()

    def plus(self, other: MentionEvidence) -> MentionEvidence:
        """Both together."""
        return MentionEvidence(self.mentions + other.mentions, self.equations + other.equations)


def clues_in(text: str, source_id: str, speaker: str | None = None) -> MentionEvidence:
    """What one text tells.

    Args:
        text: A turn, or the content of a memory.
        source_id: Which episode or memory it is.
        speaker: Who says it, where that is known by name.
    """
    text = collapsed(text).text
    found = _placed(text, islice(names_in(text), _MOST_NAMES_IN_A_TEXT))
    marked = _marked(text, found)
    reached = _identifiers(text, found)
    others = _others(marked, found)
    mentions = [
        _mention(text, one, source_id, reached.get(index, ()), another=index in others)
        for index, one in enumerate(found)
    ]
    if speaker and name_key(speaker) not in {"user", "assistant"}:
        mentions.append(Mention(name=speaker, kind=EntityKind.PERSON, source_id=source_id))
    if not found and text == text.lower() and (lower := _LOWER_NAME.match(text)):
        # Who writes everything in lower case writes names so too.
        mentions.append(Mention(name=lower.group(1), source_id=source_id))
    return MentionEvidence(tuple(mentions), tuple(_equations(marked, found, source_id)))


def _placed(text: str, found: Iterable[FoundName]) -> list[FoundName]:
    """With "Cambridge, England" and "the Amazon river" as one name each."""
    joined: list[FoundName] = []
    for one in found:
        noun = _NOUN_AFTER.match(_after(text, one))
        if noun and noun.group(1) in NAMING_NOUNS:
            end = one.end + noun.end()
            one = FoundName(text[one.start : end], one.start, end, one.prefix)  # noqa: PLW2901 - the same name, to its end
        before = joined[-1] if joined else None
        if before and _is_place_in(text, before, one):
            joined[-1] = FoundName(text[before.start : one.end], before.start, one.end)
        else:
            joined.append(one)
    return joined


def _is_place_in(text: str, before: FoundName, one: FoundName) -> bool:
    between = text[before.end : one.start]
    after = text[one.end : one.end + 1]
    return (
        between == ", "
        and (after in {"", ".", "!", "?", ","})
        and _kind_before(text, before) is EntityKind.PLACE
    )


def _marked(text: str, found: Sequence[FoundName]) -> str:
    parts: list[str] = []
    at = 0
    for index, one in enumerate(found):
        parts += [text[at : one.start].replace("<", "(").replace(">", ")"), f"<{index}>"]
        at = one.end
    return "".join([*parts, text[at:].replace("<", "(").replace(">", ")")])


def _mention(
    text: str, one: FoundName, source_id: str, identifiers: tuple[str, ...], *, another: bool
) -> Mention:
    after = _after(text, one)
    role = _role(one, _before(text, one), after)
    return Mention(
        name=one.name,
        kind=_kind(text, one, role),
        qualifier=role or _where(after),
        identifiers=identifiers,
        another=another,
        source_id=source_id,
    )


def _before(text: str, one: FoundName) -> str:
    return text[max(0, one.start - _NEAR) : one.start]


def _after(text: str, one: FoundName) -> str:
    return text[one.end : one.end + _NEAR]


def _role(one: FoundName, before: str, after: str) -> str:
    if one.prefix in FAMILY_TITLES:
        return PERSON_ROLES.get(one.prefix, one.prefix)
    match = ROLE_BEFORE.search(before) or ROLE_AFTER.match(after)
    return PERSON_ROLES.get(match.group("role").casefold(), "") if match else ""


def _where(after: str) -> str:
    match = WHERE_FROM.match(after)
    return " ".join(match.group("where").casefold().split()) if match else ""


def _kind(text: str, one: FoundName, role: str) -> EntityKind:
    words = name_key(one.name).split()
    for noun in (words[0], words[-1]):
        if len(words) > 1 and noun in KIND_OF_NOUN and noun not in PERSON_ROLES:
            return KIND_OF_NOUN[noun]
    if role or parts_of(one.name).title:
        return EntityKind.PERSON
    if "," in one.name:
        return EntityKind.PLACE
    noun_before = _NOUN_BEFORE.search(_before(text, one))
    if noun_before and noun_before.group(1) in KIND_OF_NOUN:
        return KIND_OF_NOUN[noun_before.group(1)]
    return _kind_before(text, one) or _kind_after(text, one)


def _kind_before(text: str, one: FoundName) -> EntityKind | None:
    before = _before(text, one)
    if text[one.end : one.end + 2] in {"'s", "’s"}:
        return None
    return next((kind for kind, phrase in KIND_BEFORE if phrase.search(before)), None)


def _kind_after(text: str, one: FoundName) -> EntityKind:
    told = PERSON_AFTER.match(_after(text, one))
    return EntityKind.PERSON if told else EntityKind.UNKNOWN


# What stands further behind a name, in characters, is hardly its.
_REACH: Final = 300


def _identifiers(text: str, found: Sequence[FoundName]) -> dict[int, tuple[str, ...]]:
    """Addresses and numbers by the name they follow most closely in their sentence."""
    reached: dict[int, tuple[str, ...]] = {}
    if _SAID_TO_BE_SHARED.search(text):
        return reached
    for pattern, key in ((MAIL, "mail"), (PHONE, "phone")):
        for match in pattern.finditer(text):
            owner = _owner(text, match.start(), found)
            if owner is not None:
                value = match.group().casefold().rstrip(".")
                value = value if key == "mail" else re.sub(r"[^\d+]", "", value)
                reached[owner] = (*reached.get(owner, ()), f"{key}:{value}")
    return reached


def _owner(text: str, at: int, found: Sequence[FoundName]) -> int | None:
    # In the order in which they stand.
    last = bisect_right(found, at, key=lambda one: one.end) - 1
    if last < 0 or at - found[last].end > _REACH or _ENDS.search(text[found[last].end : at]):
        return None
    if last > 0:
        between = text[found[last - 1].end : found[last].start]
        if re.fullmatch(r"\s*(?:,|and|or|&|,\s*and)\s*", between):
            return None
    return last


def _others(marked: str, found: Sequence[FoundName]) -> set[int]:
    """Which names are said to be borne by somebody else than before."""
    said = {int(match.group(1)) for match in ANOTHER.finditer(marked)}
    heads = {name_key(found[index].name).split()[0] for index in said}
    return {i for i, one in enumerate(found) if name_key(one.name).split()[0] in heads}


def _equations(marked: str, found: Sequence[FoundName], source_id: str) -> list[Equation]:
    told: dict[tuple[str, str], Equation] = {}
    for same, table in ((True, SAME), (False, DIFFERENT)):
        for why, phrase in table:
            for match in phrase.finditer(marked):
                first, second = (found[int(match.group(side))].name for side in "ab")
                pair = (min(first, second), max(first, second))
                if name_key(first) != name_key(second) and pair not in told:
                    told[pair] = Equation(
                        first=first, second=second, same=same, why=why, source_id=source_id
                    )
    return list(told.values())


# --- which names a memory and a turn tell about


def memory_clues(memory: SemanticMemory) -> MentionEvidence:
    """What the words, entities and slot of a memory tell about names."""
    return _clues(memory.id, memory.content, memory.entities, memory.slot)


# A rebuild asks for the same memories with each entity that they could name.
@kept(4096)
def _clues(
    memory_id: str, content: str, entities: tuple[str, ...], slot: Slot | None
) -> MentionEvidence:
    told = clues_in(content, memory_id)
    subject = slot.subject if slot is not None and _is_name_of(slot.subject, content) else None
    kind = KIND_OF_OBJECT.get(held_predicate(slot)) if slot is not None else None
    # Somebody uses R; who takes size M names nothing.
    named = [
        name
        for name in entities
        if _can_be_a_name(name, content) and (len(name_key(name)) > 1 or kind is not None)
    ]
    wanted = {key for name in named for key in _keys(name)}
    wanted |= {name_key(subject)} if subject else set()
    wanted |= {key for e in told.equations for key in (name_key(e.first), name_key(e.second))}
    mentions = {name_key(m.name): m for m in told.mentions if name_key(m.name) in wanted}
    for name in (*named, *([subject] if subject else [])):
        if not mentions.keys() & _keys(name):
            mentions[name_key(name)] = Mention(name=name, source_id=memory_id)
    if kind is not None and slot is not None:
        mentions = {key: _of_kind(m, kind, slot.object) for key, m in mentions.items()}
    return MentionEvidence(tuple(m for m in mentions.values() if _is_no_user(m)), told.equations)


def _can_be_a_name(name: str, content: str) -> bool:
    """Whether it is more than a number, a day, a date, a pronoun or a title alone."""
    words = BARE_WORDS.findall(_CONTRACTED.sub("", name.casefold()))
    said = [word for word in words if word not in _NO_NAMES and not word[0].isdigit()]
    if not said or not _MONTH.fullmatch(said[0]):
        return bool(said)
    # "June 16" is no June, nor is "9 Sept".
    dated = rf"\b{said[0]}\.? \d|\d(?:st|nd|rd|th)? (?:of )?{said[0]}\b"
    return re.search(dated, content, re.IGNORECASE) is None


def _is_name_of(subject: str, content: str) -> bool:
    """Whether the subject of a slot is a name, and no thing that is only spoken of."""
    if subject == USER or subject.startswith(OF_THE_USER) or not _can_be_a_name(subject, content):
        return False
    spoken_of = re.search(rf"{_DETERMINER} {re.escape(subject)}\b", content, re.IGNORECASE)
    return not spoken_of or not _keys(subject).isdisjoint(
        name_key(found.name) for found in names_in(content)
    )


def episode_clues(episodes: Iterable[Episode]) -> MentionEvidence:
    """What turns say about names; what assistants and tools say is not asked."""
    told = MentionEvidence()
    for episode in episodes:
        if is_first_party(episode):
            told = told.plus(clues_in(episode.content, episode.id, episode.speaker))
    return told


def related_to(told: MentionEvidence, words: Set[str]) -> MentionEvidence:
    """What matters: names that share a word with ``words``, and people who are introduced."""
    equations = tuple(e for e in told.equations if e.same or _shares(e, words))
    named = {name_key(n) for e in equations for n in (e.first, e.second)}
    mentions = tuple(
        m
        for m in told.mentions
        if name_key(m.name) in named or name_words(m.name) & words or is_noted(m)
    )
    return MentionEvidence(mentions, equations)


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
