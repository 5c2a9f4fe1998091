"""Street addresses that a turn's speaker says are theirs: "my new address is", "I live at"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from engram.language.statements.clauses import Sentence, sentences
from engram.language.statements.cutting import Thing
from engram.language.statements.declared import SPEAKER, Declared, mended
from engram.language.statements.objects import is_place
from engram.language.statements.predicates import RuleStatement
from engram.language.text import HOUSE_NUMBER, STREET_ADDRESS
from engram.language.vocabulary import words

_WORD = r"[A-ZÀ-ÖØ-Þ][\w'.-]{0,40}"
# "Rue de Rivoli", "Unter den Linden"
_JOINING = (
    r"(?:(?:rue|avenue|boulevard|place|quai|chemin|de|du|des|la|le|del|di|den|der|dem|the|of) )"
)
# Where "my address is" or "I live at" stands before it, a house number makes an address of a name.
_NAMED = (
    rf"(?:{HOUSE_NUMBER},? {_JOINING}{{0,3}}{_WORD}(?: {_JOINING}{{0,2}}{_WORD}){{0,4}}"
    rf"|{_WORD}(?: {_JOINING}{{0,2}}{_WORD}){{0,3}},? {HOUSE_NUMBER})(?!\w)"
)
# Town, district, code and country; a name that a verb follows is somebody: "..., Tom is next door".
_GOES_ON = (
    r"(?=\s*(?:\Z|[,.;:!)–—-]|(?:and|but|now|since|as|from|near|for|until|so|where|with|last|this|in|on|"
    r"yesterday|today)\b))"
)
_TOWN = (
    rf"(?:,\s?(?!(?:I|We|Thanks|Thank|Please)\b)(?:[A-Z]{{1,2}}-)?[A-Z0-9À-ÖØ-Þ][\w'.-]{{0,40}}"
    rf"(?: {_JOINING}{{0,2}}[A-Z0-9À-ÖØ-Þ][\w'.-]{{0,40}}){{0,4}}{_GOES_ON}){{0,4}}"
    rf"(?: in {_WORD}(?: {_WORD}){{0,2}}{_GOES_ON})?"
)
_BEGINS = r"(?:\A|[,;:–—-] |\b(?:and|but|so|that|well|hi|hello|ok|okay|yes|sure),? )"
_SAYS = tuple(
    re.compile(rf"(?i:{_BEGINS}(?:{frame})) (?P<address>{street}{_TOWN})")
    for frame, street in (
        (
            r"(?:my|our) (?P<which>(?:(?!e-?mail\b|web\b|ip\b)[\w-]+ ){0,3}?)address"
            r"(?:'s| is| will be|(?: has)? changed to|:| =)(?: now| currently| from now on)?",
            _NAMED,
        ),
        (
            r"(?:i|we)(?:'ve| have)?(?: just| finally)? (?P<begins>changed|updated) (?:my|our) "
            r"(?P<which>(?:(?!e-?mail\b|web\b|ip\b)[\w-]+ ){0,3}?)address to",
            _NAMED,
        ),
        (
            r"(?:(?:i|we)(?: both| all)?(?: now| currently| still)? live|"
            r"(?:i'm|i am|we're|we are)(?: now| currently| still)? living)(?: now)? at",
            _NAMED,
        ),
        (
            r"(?:(?:i|we)(?: both| all)?(?: now| currently| still)? live|"
            r"(?:i'm|i am|we're|we are)(?: now| currently| still)? living)(?: now)? (?:in|on)|"
            r"(?P<begins>(?:i|we)(?:'ve| have)?(?: just| finally| recently)? "
            r"(?:moved|relocated)) (?:(?:from [^,;:.]{1,40} )?to|into)",
            STREET_ADDRESS,
        ),
    )
)
_DIGIT = re.compile(r"\d")
_UNIT = re.compile(r"(?:flat|apt|apartment|unit|suite|floor|door|c/o)\b|\d+\w*\Z", re.I)
_CODE = re.compile(r"\b(?:[A-Z]{1,2}-)?\w*\d\w*\b|\b[A-Z]{2}\b")
_OF_THE_HOME = "address is"


def addresses(text: str) -> list[Declared]:
    """The street addresses that a turn says are its speaker's, whole: with town and code.

    Args:
        text: The turn.
    """
    return [mended(one, text) for sentence in sentences(text) for one in _in_sentence(sentence)]


def homes(sentence: Sentence) -> Iterator[RuleStatement]:
    """In which town the speaker lives by a sentence that tells at which address, if one knows it.

    Args:
        sentence: Of a turn.
    """
    for one in _in_sentence(sentence):
        town = _town_of(one.value) if one.predicate == _OF_THE_HOME else None
        if town is not None:
            yield RuleStatement(
                "lives in",
                Thing(town, town),
                begins=one.begins,
                at=sentence.start + sentence.text.find(one.value),
                sentence=sentence,
            )


def _in_sentence(sentence: Sentence) -> Iterator[Declared]:
    if _DIGIT.search(sentence.text) is None:
        return
    for said in filter(None, (way.search(sentence.text) for way in _SAYS)):
        named = said.groupdict()
        which = (named.get("which") or "").lower().split()
        if words("claims", "former").intersection(which):
            continue
        own = [word for word in which if word not in words("claims", "present") | {"home"}]
        role = " ".join([*own, "address"])
        address = said.group("address").rstrip(".")
        yield Declared(
            SPEAKER,
            f"{role} is",
            address,
            f"My {role} is {address}.",
            sentence,
            begins=bool(named.get("begins")) or "new" in which,
        )
        return


def _town_of(address: str) -> str | None:
    """The town of an address, if it is a known place: what follows street and flat."""
    _, *parts = re.split(r",\s?|\bin\b", address)
    for part in parts:
        if not _UNIT.match(part.strip()):
            town = " ".join(_CODE.sub(" ", part).split())
            return town if is_place(Thing(town, town)) else None
    return None
