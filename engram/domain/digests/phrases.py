"""Phrases that tell about names. In them ``<1>``, ``<2>`` stand for names; see ``clues``.

Each phrase is a regular expression over a text in which every name was put into
angle brackets by its number. Precision before recall: what is left out splits an
entity in two, what is wrong in here mixes two people up.
"""

from __future__ import annotations

import re
from typing import Final

from engram.domain.digests.details import EntityKind
from engram.domain.digests.vocabulary import ROLES

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

_ROLE: Final = "|".join(sorted(map(re.escape, ROLES), key=len, reverse=True))
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

MAIL: Final = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
PHONE: Final = re.compile(r"(?<![\w.])\+?\d[\d\s().-]{6,}\d(?!\w)")
