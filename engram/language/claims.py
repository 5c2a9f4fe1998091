"""Whose an address, number or name is said to be, and whether it still is.

A pattern finds an address wherever it stands. What is said around it tells whether it is
somebody's ("my work email is ..."), took the place of another ("my new number is ...",
"... instead of ...") or is over ("don't use ... any more"). A mention claims nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from engram.domain.memories import FactCategory, Slot
from engram.domain.slots import USER, slot_of
from engram.language.text import SENTENCE_END
from engram.language.vocabulary import expression_text, words

# How much of a sentence around an address is looked at.
_AROUND = 120
_NOUNS: Mapping[FactCategory, str] = {
    FactCategory.EMAIL: "email",
    FactCategory.PHONE: "phone",
    FactCategory.URL: "site",
    FactCategory.NAME: "name",
}
CLAIMED = frozenset(_NOUNS)
"""What can be said to be somebody's."""
# Not the same one, although of the same kind.
_APART: Mapping[str, str] = {
    "mobile": "mobile", "cell": "mobile", "cellphone": "mobile", "landline": "landline",
    "blog": "blog", "portfolio": "portfolio", "extension": "extension",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Claim:
    """What a turn says of an address.

    Attributes:
        slot: Whose, and which of theirs; None where only its end is told.
        over: Whether it is said not to be so any more.
    """

    slot: Slot | None
    over: bool = False


def claim_of(
    low: str, start: int, end: int, category: FactCategory, value: str, *, speaker: str | None
) -> Claim | None:
    """What is said of the address at ``start`` to ``end``; None where it is only mentioned.

    Args:
        low: The turn, in lower case, with plain signs.
        start: Where it begins.
        end: Where it ends.
        category: What it is.
        value: Its canonical form.
        speaker: Who speaks, where known: what is "mine" is theirs.
    """
    noun = _NOUNS.get(category)
    if noun is None:
        return None
    before = _sentence_before(low[max(0, start - _AROUND) : start])
    following = low[end : end + _AROUND]
    after = SENTENCE_END.split(following, maxsplit=1)[0]
    said = (
        _rule("is", noun).search(before)
        or _rule("changed_to", noun).search(before)
        or _rule("has_changed", noun).search(before)
        or _rule("is_after", noun).match(after)
        or _asked_for(before, after, following, noun)
    )
    if _is_over(before, after, following, noun):
        return Claim(None, over=True)
    whose, which, what = "my", "", noun
    if said is not None:
        whose, which, what = said.group("whose", "which", "what")
    elif (got := _rule("got_new", noun).search(before)) is not None:
        which, what = got.group("which", "what")
    elif noun == "name" and _rule("i_am", noun).search(before) is not None:
        # Who says "I'm Maria" says it of themselves.
        pass
    elif not _is_where_to_reach_them(before, after, noun):
        return None
    named = which.split()
    if words("claims", "former").intersection(named):
        return Claim(None, over=True)
    if words("claims", "several").intersection(named):
        return None
    own = [word for word in named if word not in words("claims", "present")]
    subject = (speaker or USER) if whose in {"my", "our"} else whose.removesuffix("'s")
    called = _APART.get(what.split()[-1], noun)
    return Claim(slot_of(subject, " ".join([*own, called, "is"]), value))


def _is_over(before: str, after: str, following: str, noun: str) -> bool:
    """Whether it is told to be so no more: for good, and for whatever it was there for."""
    if _rule("old_one", noun).search(before) and _rule("will_end", noun).match(after):
        return True
    if (asked := _rule("moved_on", noun).match(after)) is not None:
        limited = _rule("limited", noun).match(after, asked.end()) is not None
        meant = not limited and _rule("not_meant", noun).match(following) is None
        return meant and _rule("asked_from", noun).search(before) is not None
    told_after = _rule("over_after", noun).match(after)
    rest = after[told_after.end() :] if told_after else after
    if _rule("again", noun).match(rest):
        never = _rule("never", noun).search(before) is not None
        return told_after is not None or never or _rule("over", noun).search(before) is not None
    if _rule("limited", noun).match(rest) or _rule("limited_before", noun).match(before):
        return False
    return told_after is not None or _rule("over", noun).search(before) is not None


def _asked_for(before: str, after: str, following: str, noun: str) -> re.Match[str] | None:
    """The request to note it from now on; where a site is to point is no address of theirs."""
    limited = _rule("limited", noun).match(after) or _rule("not_meant", noun).match(following)
    if noun == "site" or limited is not None:
        return None
    return _rule("asked_to", noun).search(before)


def _is_where_to_reach_them(before: str, after: str, noun: str) -> bool:
    """Whether the speaker asks to be reached there; a number to call may be anybody's."""
    instead = _rule("instead", noun).match(after) is not None
    if _rule("reach_me", noun).search(before):
        return instead or _rule("at_all", noun).match(after) is not None
    return instead and _rule("reach", noun).search(before) is not None


def _sentence_before(text: str) -> str:
    return SENTENCE_END.split(text)[-1]


@cache
def _rule(name: str, noun: str) -> re.Pattern[str]:
    """An expression of the table ``claims`` for one kind of address."""
    called = expression_text("claims", noun)
    return re.compile(expression_text("claims", name).replace("NOUN", called))
