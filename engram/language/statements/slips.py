"""Values that are taken back as soon as they are said: "May 3rd, no sorry, May 13th"."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import Final

from engram.domain.slots import ValueKind, kind_of_value
from engram.language.calendar import MONTH_NAME
from engram.language.vocabulary import expression

_TABLE = "corrections"
# What stands for itself: another sign ends it, and it is not asked.
_VALUE_ALONE = re.compile(r"[^,;!?()]{1,60}?(?=\s*(?:\Z|[,;!)]|\.(?:\s|\Z)))")
_GOES_ON_ABOUT = re.compile(r"\b(?:is|are|was|were|be|has|have|had|i|we|my|not|for)\b", re.I)
_LEAD = re.compile(r"\A(?:in|at|on|for|by) ")
_BARE_NUMBER = re.compile(
    r"[\d.,]{1,20}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve", re.I
)
_COUNTED = re.compile(rf"(?:{_BARE_NUMBER.pattern})(?P<what>\s?[a-z%].*)", re.I)
_BARE_DAY = re.compile(r"\d{1,2}(?:st|nd|rd|th)")
_DAY_OF = re.compile(r"\b\d{1,2}(?:st|nd|rd|th)?\b")
_LONGEST_NAME = 3
_LONGEST_FOR_SURE = 2
_A_THING = re.compile(r"an? [a-z][\w-]*(?: [a-z][\w-]*)?\Z")
_ENDS_WITH_A_THING = re.compile(r"\ban? [a-z][\w-]*(?: [a-z][\w-]*)?\Z")
_SIGNS = " ,.;:!-–—("
_LONGEST_SPELLING = 100
# Of the letters of a name, so many stay when it is spelled in another way.
_ALIKE: Final = 0.6


def said_again(old: str, text: str, end: int) -> str | None:
    """What a value is at once mended to; None where it is left as it is.

    Args:
        old: The value: "on May 3rd".
        text: What it stands in.
        end: Where it ends there.
    """
    spelt = spelt_name(text[end : end + _LONGEST_SPELLING].lstrip(_SIGNS))
    if spelt is not None and sounds_like(spelt, old):
        return spelt
    slip = expression(_TABLE, "value_again").match(text, end)
    said = _VALUE_ALONE.match(text, slip.end()) if slip else None
    words = expression(_TABLE, "exactly").sub("", said.group(), count=1) if said else ""
    if slip is None or not words or _GOES_ON_ABOUT.search(words):
        return None
    lead = _LEAD.match(old)
    bare = old[lead.end() :] if lead else old
    value = _in_full(_LEAD.sub("", words, count=1).removeprefix("the "), bare)
    if bare.startswith("the ") and not value.startswith("the "):
        value = f"the {value}"
    kind = kind_of_value(value)
    if kind is not kind_of_value(bare) or value.casefold() == bare.casefold():
        return None
    counted = _COUNTED.fullmatch(value) is not None and _COUNTED.fullmatch(bare) is not None
    named = value[:1].isupper() and bare[:1].isupper() and "." not in slip.group("between")
    few = len(value.split()) <= _LONGEST_NAME
    # "Musicology, er, museology": one word for another that is much like it.
    misheard = few and (_alike(value, bare) or _is_mended(slip, words, text[:end]))
    if kind is ValueKind.OTHER and not ((named or counted) and few) and not misheard:
        return None
    return f"{lead.group() if lead else ''}{value}"


def _is_mended(slip: re.Match[str], said: str, before: str) -> bool:
    """Whether a word takes the place of any other: "spring, hang on, autumn", "a pug, no, a mutt".

    Args:
        slip: What stands between the two.
        said: What follows it.
        before: What stands before it.
    """
    if expression(_TABLE, "no_value").search(said):
        return False
    both_of_a_kind = _A_THING.match(said) and _ENDS_WITH_A_THING.search(before)
    for_sure = expression(_TABLE, "for_sure").search(slip.group()) and "." not in slip["between"]
    return bool(both_of_a_kind or (for_sure and len(said.split()) <= _LONGEST_FOR_SURE))


def _in_full(value: str, old: str) -> str:
    """A new value with what only the old one has: "900 euros, sorry, 950", "May 3rd, no, 13th"."""
    if _BARE_NUMBER.fullmatch(value) and (counted := _COUNTED.fullmatch(old)):
        return f"{value}{counted.group('what')}"
    if _BARE_DAY.fullmatch(value) and re.search(MONTH_NAME, old, re.I):
        return _DAY_OF.sub(value, old, count=1)
    return value


def spelt_name(sentence: str) -> str | None:
    """The name that is spelled, and of nobody said: "It's Klara with a K", "Spelled K-L-A-R-A"."""
    found = expression("takes_back", "spelt").match(sentence)
    if found is None:
        return None
    letters = found.group("letters")
    return "".join(re.findall(r"\w", letters)).capitalize() if letters else found.group("new")


def sounds_like(one: str, other: str) -> bool:
    """Whether it can be the same name in another spelling: Klara and Clara, Jon and John."""
    here, there = one.casefold(), other.casefold()
    return here != there and other[:1].isupper() and _alike(here, there)


def _alike(one: str, other: str) -> bool:
    return SequenceMatcher(None, one.casefold(), other.casefold()).ratio() >= _ALIKE
