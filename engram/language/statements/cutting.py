"""Where a phrase ends, and what it is called: what all objects are cut out with."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from engram.language.calendar import MONTH_NAME, WEEKDAY
from engram.language.text import FULL_STOP
from engram.language.vocabulary import alternatives, expression, vocabulary

HARD_CUT = re.compile(rf"\s*(?:[,;:()\[\]!?\x00…]|{FULL_STOP}|\s[-–—]+\s|—|[😀-🙏🌀-🗿🚀-🛿])")
# "Day and night", "more and more" are no two things.
AND = re.compile(
    r"(?!(?<=\bday)\s+and\s+night\b|(?<=\bnight)\s+and\s+day\b|(?<=\bmore)\s+and\s+more\b|"
    r"(?<=\bless)\s+and\s+less\b|(?<=\bfirst)\s+and\s+foremost\b)"
    r"\s+(?:and\s+also|and|&|as\s+well\s+as|plus)\s+",
    re.I,
)
NEW_CLAUSE = re.compile(
    r"(?:i|i'm|i've|i'll|i'd|we|we're|my|our|he|she|it|it's|they|you|the|there|that|that's|this|then|now|so|his|her|their|don't|have|"
    r"am|is|are|was|were|will|would|can|can't|never|always|not|no|started|moved|got|went|bought|just|"
    r"hopefully|maybe|perhaps)\b",
    re.I,
)
# "People with dementia and their carers", "my dog and my cat": nothing is said of them.
WHOSE = re.compile(r"(?:my|our|his|her|their|the)\s+[\w'-]+(?:\s+[\w'-]+)?\s*", re.I)
# "Dancing and want to learn tango": what goes on so names no second thing.
_NEW_VERB = re.compile(
    r"(?:want|wanna|hate|dislike|prefer|adore|enjoy|wish|think|hope|need\s+to|plan\s+to|"
    r"(?:play|read|watch|cook|make|take|run|visit|listen|eat|see|keep|go|do|try|buy|get|own|work|live|"
    r"use|study|teach|sing|write|spend|wear|drive|ride)"
    r"\s+(?:an?|the|my|our|in|at|on|to|for|with|it|them|some))\b",
    re.I,
)
GERUND = re.compile(r"[a-z]{2,30}ing\b")
_YEAR_OR_DATE = re.compile(
    r"\s+(?:in|on|since|from|until|around|about|back\s+in|as\s+of|for)\s+"
    r"(?:early|late|mid|the\s+(?:early|late|mid|spring|summer|autumn|fall|winter)|spring|summer|autumn|winter|"
    rf"{WEEKDAY}|christmas|easter|{MONTH_NAME}\b|"
    r"\d{4}\b|\d+\s|(?:a|two|three|four|five|six|seven|eight|nine|ten|many|several|over|almost|about|nearly)\s+"
    r"(?:\w+\s+)?(?:days?|weeks?|months?|years?|decades?)\b|years|ages|decades|months|now|"
    r"(?<=for )(?:good|ever)(?=\s*\Z)).*"
    r"|\s+(?:an?\s+(?:few|couple\s+of|good)|[\w-]+)\s+(?:days?|weeks?|months?|years?|decades?)\s+ago\b.*",
    re.I,
)
CALLED_NAME = re.compile(r"\s+(?:called|named)\s+((?:[A-Z][\w'-]*)(?:\s+[A-Z][\w'-]*)*)")
# "Gone off gin completely": not part of what is named.
_WHOLLY = re.compile(r"\s+(?:completely|entirely|altogether|totally|there|here)\Z", re.I)
# A point that a name begins with is a part of it: ".NET".
_SIGNS_BEFORE = re.compile(r"\A(?:[ \t,;:!?'*_~-]|\.{2,}|\.(?!\w))+")
_WORDS_AT_MOST = 8
_MEMBER_WORDS = 3
_BEFORE_A_LAST_COMMA = 2
_PLUS = re.compile(r"plus|as\s+well", re.I)
# "Dogs and cats are fine too": of the second something is said.
_IS_SAID = re.compile(
    r"(?:(?!(?:that|who|which)\b)[\w'-]{1,30}\s+){1,3}?(?:is|are|was|were|isn't|aren't|has|have|makes?|gives?|keeps?)\b"
    r"|(?:no|every|some)(?:body|one)'s\b",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Thing:
    """What was named.

    Attributes:
        phrase: As it stands in a sentence: "a narrowboat".
        name: Without articles and possessives: "narrowboat".
    """

    phrase: str
    name: str

    @property
    def own(self) -> str:
        """What tells it from others of its kind: "cat called Miso"."""
        called = self.phrase.partition(" called ")[2]
        return f"{self.name} called {called}" if called else self.name


def without_dates(text: str) -> str:
    """A phrase without what tells at its end since when or for how long."""
    return _YEAR_OR_DATE.sub("", f" {text}").strip()


def members(rest: str, joint: re.Pattern[str] = AND, longest: int = _MEMBER_WORDS) -> list[str]:
    """The parts of a list in words: "cats, dogs and rain", "nuts, shellfish, and penicillin".

    Args:
        rest: What follows a wording, to the end of the sentence.
        joint: What stands before the last part.
        longest: Words of a part between commas; what has more is no list.
    """
    first_and = joint.search(rest)
    if first_and is None:
        return [rest]
    head, tail = rest[: first_and.start()], rest[first_and.end() :]
    # Commas separate members only on the way to an "and": "cats, dogs and rain".
    parts = [part.strip() for part in head.split(",")]
    listed = len(parts) > _BEFORE_A_LAST_COMMA or _PLUS.search(first_and.group())
    if listed and not parts[-1] and not is_clause(tail):
        # "Nuts, shellfish, and penicillin": of two, "nuts, and" goes on with something else.
        parts.pop()
    if any(is_clause(part) or not part for part in parts[1:]):
        return [head]
    if len(parts) > 1 and any(len(part.split()) > longest for part in parts):
        return [head]
    return [*parts, *members(tail, joint, longest)]


def each_of(
    parts: Sequence[str], one: Callable[[str], Thing | None], whole: Callable[[str], str]
) -> list[Thing]:
    """What each part names, up to the first that names nothing or goes on to say something.

    Args:
        parts: Of a list, in order.
        one: Reads a part.
        whole: A part up to where it ends; the list ends with a part that is cut short.
    """
    found: list[Thing] = []
    for part in parts:
        member = one(part)
        if member is None or (found and is_clause(part)):
            break
        found.append(member)
        # "A cat called Miso and a cat called Luna" are two.
        told = CALLED_NAME.sub("", part).strip()
        if whole(told) != told:
            break
    return found


def is_clause(part: str) -> bool:
    """Whether it says something else, and is no further member of a list."""
    if WHOSE.fullmatch(HARD_CUT.split(part, maxsplit=1)[0]):
        return False
    return any(one.match(part) for one in (NEW_CLAUSE, _NEW_VERB, _IS_SAID))


def until_cut(rest: str, *, dates: bool = False) -> str:
    """A phrase without what tells when, why or how, and without what is joined to it.

    Args:
        rest: What follows a wording.
        dates: Whether "and" belongs to it, as it does to names: "Marks and Spencer".
    """
    text = HARD_CUT.split(rest, maxsplit=1)[0]
    text = without_dates(text)
    text = cut_at(text, cut_word())
    joined = AND.search(text)
    while joined:
        # "sell the car and buy a bike" is split by several(); a new clause always ends it.
        if NEW_CLAUSE.match(text[joined.end() :]) or not dates:
            return text[: joined.start()]
        joined = AND.search(text, joined.end())
    return text


def cut_at(text: str, pattern: re.Pattern[str]) -> str:
    """What stands before the first match; all of it, if there is none."""
    found = pattern.search(text)
    return text[: found.start()] if found else text


def without_adverbs(text: str) -> str:
    """A thing without what tells at its end how, how often or how surely: "Firefox religiously"."""
    while found := _adverb().search(text):
        before = text[: found.start()]
        if not before.strip() or _determiner().fullmatch(f"{before.split()[-1]} "):
            # "My family", "a weekly": that is the thing.
            break
        text = before
    return text


def as_thing(text: str, at_most: int = _WORDS_AT_MOST) -> Thing | None:
    """A phrase as what it names; None if it names nothing by itself."""
    bounded = _SIGNS_BEFORE.sub("", text).rstrip(" \t.,;:!?'*_~-")
    phrase = _WHOLLY.sub("", bounded)
    bare = undetermined(phrase)
    words = bare.split()
    if not words or len(words) > at_most or not any(c.isalnum() for c in bare):
        return None
    if expression("statements", "spoken_of").fullmatch(bare):
        return None
    if len(words) == 1 and words[0].casefold() in vocabulary().leading_determiners:
        # "The garage": no name at all.
        return None
    if words[0].casefold().strip(",") in vocabulary().pronouns and not (
        words[0].casefold() == "one" and len(words) > 1
    ):
        return None
    return Thing(phrase=phrase, name=bare)


def undetermined(text: str) -> str:
    """A phrase without its articles and possessives."""
    stripped = text.strip()
    while True:
        found = _determiner().match(stripped)
        if found is None or not stripped[found.end() :].strip():
            return stripped
        stripped = stripped[found.end() :].strip()


def has_determiner(text: str) -> bool:
    """Whether it begins with an article or a possessive."""
    return _determiner().match(text.strip()) is not None


@cache
def _adverb() -> re.Pattern[str]:
    how_often = (
        r"(?:\w+\s+(?:days|times|hours|nights|evenings|mornings)|once|twice)\s+"
        r"an?\s+(?:day|week|month|year)"
    )
    words = alternatives((*vocabulary().trailing, *vocabulary().manner))
    # "Dogs barking constantly", "things done badly": there it is a part of what is meant.
    return re.compile(
        rf"(?<!ing)(?<!ed)(?<!done)\s+(?:(?:very|quite|so|pretty|really)\s+)?"
        rf"(?:{words}|{how_often})(?:\s+(?:enough|so|speaking))?\s*\Z"
    )


@cache
def _determiner() -> re.Pattern[str]:
    return re.compile(rf"(?:{alternatives(vocabulary().leading_determiners)})\s+", re.I)


@cache
def cut_word() -> re.Pattern[str]:
    """The words that end a phrase: "when", "because", "currently"."""
    # "A full-time carer" is one; what follows "I work full-time" is not cut out here.
    work = r"(?!\A\s*(?:full|part)[ -]time\s+\w)(?<!\ba)(?<!\ban)"
    # "Be his best man" is one thing to be.
    ends = r"\b(?!'|\s+(?:man|friend|mate)\b)"
    return re.compile(rf"{work}(?:^|\s+)(?:{alternatives(vocabulary().cut_words)}){ends}", re.I)


@cache
def cut_word_but(kept: frozenset[str]) -> re.Pattern[str]:
    """What ends a phrase, without some words that belong to this kind of phrase."""
    words = frozenset(vocabulary().cut_words) - kept
    return re.compile(rf"(?:^|\s+)(?:{alternatives(words)})\b(?!')", re.I)


@cache
def thing_preposition() -> re.Pattern[str]:
    """What describes a thing further: "with a garden", "living in Leeds"."""
    # "A nurse living in Leeds", but "a working dog".
    doing = (
        r"(?:living|based|working|studying|employed|located)\s+(?:in|at|for|as|by|near|out|with)"
    )
    words = alternatives(vocabulary().thing_prepositions)
    return re.compile(rf"\s+(?:{words}|{doing})(?=\s|$)", re.I)
