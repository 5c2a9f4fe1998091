"""What a text tells about the bearers of names: mentions, and which names are one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from engram.domain.digests import phrases
from engram.domain.digests.details import EntityKind, Equation, Mention
from engram.domain.digests.names import Found, name_key, names_in, parts_of
from engram.domain.digests.vocabulary import (
    FAMILY_TITLES,
    KIND_OF_NOUN,
    NAMING_NOUNS,
    ROLES,
)

_NOUN_AFTER = re.compile(r"\A\s+([a-z][\w-]*)")
_NOUN_BEFORE = re.compile(r"\b([a-z][\w-]*)(?:\s+of)?\s+\Z")
_COMMA_PLACE = re.compile(r",\s\Z")
_LOWER_NAME = re.compile(r"\s*([a-z][a-z'’-]+)\s+(?:is|was|has|said|says|wants|will|and|called)\b")
_ENDS = re.compile(r"[.!?]\s")
_SHARED = re.compile(r"\b(?:share|shared|both|reception|switchboard|front desk|family)\b", re.I)
_MOST_NAMES = 60


@dataclass(frozen=True, slots=True)
class Clues:
    """What texts tell about names."""

    mentions: tuple[Mention, ...] = ()
    equations: tuple[Equation, ...] = ()

    def plus(self, other: Clues) -> Clues:
        """Both together."""
        return Clues(self.mentions + other.mentions, self.equations + other.equations)


def clues_in(text: str, source_id: str, speaker: str | None = None) -> Clues:
    """What one text tells.

    Args:
        text: A turn, or the content of a memory.
        source_id: Which episode or memory it is.
        speaker: Who says it, where that is known by name.
    """
    found = _placed(text, names_in(text))[:_MOST_NAMES]
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
    return Clues(tuple(mentions), tuple(_equations(marked, found, source_id)))


def _placed(text: str, found: Sequence[Found]) -> list[Found]:
    """With "Cambridge, England" and "the Amazon river" as one name each."""
    joined: list[Found] = []
    for one in found:
        noun = _NOUN_AFTER.match(text[one.end :])
        if noun and noun.group(1) in NAMING_NOUNS:
            end = one.end + noun.end()
            one = Found(text[one.start : end], one.start, end, one.prefix)  # noqa: PLW2901 - the same name, to its end
        before = joined[-1] if joined else None
        if before and _is_place_in(text, before, one):
            joined[-1] = Found(text[before.start : one.end], before.start, one.end)
        else:
            joined.append(one)
    return joined


def _is_place_in(text: str, before: Found, one: Found) -> bool:
    between = text[before.end : one.start]
    after = text[one.end : one.end + 1]
    return (
        between == ", "
        and (after in {"", ".", "!", "?", ","})
        and _kind_before(text, before) is EntityKind.PLACE
    )


def _marked(text: str, found: Sequence[Found]) -> str:
    parts: list[str] = []
    at = 0
    for index, one in enumerate(found):
        parts += [text[at : one.start].replace("<", "(").replace(">", ")"), f"<{index}>"]
        at = one.end
    return "".join([*parts, text[at:].replace("<", "(").replace(">", ")")])


def _mention(
    text: str, one: Found, source_id: str, identifiers: tuple[str, ...], *, another: bool
) -> Mention:
    before, after = text[: one.start], text[one.end :]
    role = _role(one, before, after)
    return Mention(
        name=one.name,
        kind=_kind(text, one, role),
        qualifier=role or _where(after),
        identifiers=identifiers,
        another=another,
        source_id=source_id,
    )


def _role(one: Found, before: str, after: str) -> str:
    if one.prefix in FAMILY_TITLES:
        return ROLES.get(one.prefix, one.prefix)
    match = phrases.ROLE_BEFORE.search(before) or phrases.ROLE_AFTER.match(after)
    return ROLES[match.group("role").casefold()] if match else ""


def _where(after: str) -> str:
    match = phrases.WHERE_FROM.match(after)
    return " ".join(match.group("where").casefold().split()) if match else ""


def _kind(text: str, one: Found, role: str) -> EntityKind:
    words = name_key(one.name).split()
    for noun in (words[0], words[-1]):
        if len(words) > 1 and noun in KIND_OF_NOUN and noun not in ROLES:
            return KIND_OF_NOUN[noun]
    if role or parts_of(one.name).title:
        return EntityKind.PERSON
    if "," in one.name:
        return EntityKind.PLACE
    noun_before = _NOUN_BEFORE.search(text[: one.start])
    if noun_before and noun_before.group(1) in KIND_OF_NOUN:
        return KIND_OF_NOUN[noun_before.group(1)]
    return _kind_before(text, one) or _kind_after(text, one)


def _kind_before(text: str, one: Found) -> EntityKind | None:
    before = text[: one.start]
    if text[one.end : one.end + 2] in {"'s", "’s"}:
        return None
    return next((kind for kind, phrase in phrases.KIND_BEFORE if phrase.search(before)), None)


def _kind_after(text: str, one: Found) -> EntityKind:
    told = phrases.PERSON_AFTER.match(text[one.end :])
    return EntityKind.PERSON if told else EntityKind.UNKNOWN


def _identifiers(text: str, found: Sequence[Found]) -> dict[int, tuple[str, ...]]:
    """Addresses and numbers by the name they follow most closely in their sentence."""
    reached: dict[int, tuple[str, ...]] = {}
    if _SHARED.search(text):
        return reached
    for pattern, key in ((phrases.MAIL, "mail"), (phrases.PHONE, "phone")):
        for match in pattern.finditer(text):
            owner = _owner(text, match.start(), found)
            if owner is not None:
                value = match.group().casefold().rstrip(".")
                value = value if key == "mail" else re.sub(r"[^\d+]", "", value)
                reached[owner] = (*reached.get(owner, ()), f"{key}:{value}")
    return reached


def _owner(text: str, at: int, found: Sequence[Found]) -> int | None:
    before = [index for index, one in enumerate(found) if one.end <= at]
    if not before or _ENDS.search(text[found[before[-1]].end : at]):
        return None
    if len(before) > 1:
        between = text[found[before[-2]].end : found[before[-1]].start]
        if re.fullmatch(r"\s*(?:,|and|or|&|,\s*and)\s*", between):
            return None
    return before[-1]


def _others(marked: str, found: Sequence[Found]) -> set[int]:
    """Which names are said to be borne by somebody else than before."""
    said = {int(match.group(1)) for match in phrases.ANOTHER.finditer(marked)}
    heads = {name_key(found[index].name).split()[0] for index in said}
    return {i for i, one in enumerate(found) if name_key(one.name).split()[0] in heads}


def _equations(marked: str, found: Sequence[Found], source_id: str) -> list[Equation]:
    told: dict[tuple[str, str], Equation] = {}
    for same, table in ((True, phrases.SAME), (False, phrases.DIFFERENT)):
        for why, phrase in table:
            for match in phrase.finditer(marked):
                first, second = (found[int(match.group(side))].name for side in "ab")
                pair = (min(first, second), max(first, second))
                if name_key(first) != name_key(second) and pair not in told:
                    told[pair] = Equation(
                        first=first, second=second, same=same, why=why, source_id=source_id
                    )
    return list(told.values())
