"""The object of a predicate: a thing, an activity, a place, a name, an employer."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from engram.language.calendar import MONTH_NAME, WEEKDAY
from engram.language.statements.cutting import (
    AND,
    CALLED_NAME,
    GERUND,
    HARD_CUT,
    NEW_CLAUSE,
    WHOSE,
    Thing,
    as_thing,
    cut_at,
    cut_word,
    each_of,
    has_determiner,
    members,
    thing_preposition,
    undetermined,
    until_cut,
    without_adverbs,
    without_dates,
)
from engram.language.vocabulary import alternatives, expression, vocabulary

# "From March it's 0.16" names no place.
_DAY_OR_MONTH = re.compile(rf"(?:{WEEKDAY}|{MONTH_NAME})\b(?!\s+(?-i:[A-Z]))", re.I)
# "A pipe wrench my father bought"
_WHICH_SOMEBODY = re.compile(
    r"(?<!\bof)(?<!\bfor)(?<!\bin)(?<!\bto)(?<!\bat)(?<!\bon)(?<!\bby)(?<!\blike)(?<!\bwith)(?<!\bfrom)(?<!\bthan)"
    r"\s+(?:i|we|he|she|they|(?:my|our|his|her)\s+\w+)\s+\w+\Z",
    re.I,
)
_CALLED = re.compile(r"\b(?:called|named)\s+", re.I)
_DOING_SOMETHING = re.compile(
    r"(?:to\s+)?[a-z]+\s+(?:a|an|the|my|our|some|his|her|their|more|to|for|into|out|up|off|with)\b"
    r"|(?!(?:in|at|on|to|for|from|with|by|of|my|our|the|his|her|their|an?|or|not|both|aunt|uncle|old)\b)"
    r"[a-z]+\s+[A-Z]"
    r"|(?:go|get|find|learn|visit|see|start|move|travel|apply|write|build|buy|sell)\b"
)
# "Call the plumber and to buy paint"; "to Ann and to my mum" is no second thing to do.
_TO_DO = re.compile(
    r"to\s+(?=[a-z]+\s+\w)"
    r"(?!(?:an?|the|my|our|your|his|her|their|some|all|both|each|you|me|us|him|them)\b)"
)
_AS_WHAT = re.compile(r"\bas\s+(?=an?\s)", re.I)
_LED = re.compile(
    r"(?<!\bdrop)(?<!\bcome)(?<!\bstop)(?<!\bpop)(?<!\bswing)\s+(?:by|until|till)\Z", re.I
)
_ON_THE_WAY = re.compile(r"(?:come|go|try|stop|pop|drop|stay)(?:\s+(?:by|in|round|over))?", re.I)
# "3M", "7-Eleven", "eBay"
_LIKE_A_NAME = re.compile(r"\d{1,20}-?[A-Z]|[a-z][A-Z]|\d[^\W\d_]")
# "sunny Alicante", "downtown Toronto": what it is like there is no part of its name.
_PRAISED = re.compile(
    r"(?:(?:good\s+old|downtown|central|inner|sunny|rainy|windy|cold|grey|gray|lovely|beautiful|"
    r"gorgeous|glorious|dear|boring|noisy|busy|quiet|tiny|little|old|historic|leafy|freezing|foggy|"
    r"snowy|tropical|mainland|rural|metropolitan|greater)\s+){1,3}(?=[A-Z])"
)
# "A big four firm, EY", "my brother's company, Alder Roofing"
_BY_NAME = re.compile(
    r"(?:an?|my|our)\s+(?:[a-z][\w'-]*\s+){0,4}(?:firm|company|agency|startup|start-up|bank|charity|"
    r"school|hospital|hotel|shop|bakery|studio|practice|business),\s+"
    r"(?P<name>[A-Z][\w'&-]*(?:\s+[A-Z&][\w'-]*){0,3})(?=\s*(?:\Z|[,.;!]))"
)
# "A bedsit in Hove", "a converted chapel just outside Hebden Bridge"
_DWELLING = re.compile(
    r"(?:an?|my|our|the)\s+(?:[a-z-]+\s+){0,3}?(?:flat|house|apartment|bedsit|room|studio|cottage|"
    r"bungalow|chapel|barn|farmhouse|condo|caravan|houseboat|maisonette|loft|terrace|flatshare)\s+"
    r"(?:(?:just|right)\s+)?(?:in|near|outside(?:\s+of)?)\s+(?=[A-Z])"
)
# "It's Danske Bank I work for": whoever says so is no part of the name.
_SPEAKER = re.compile(r"I(?:'\w+)?")
# "This Is Love" and "My Neighbour Totoro" are called so.
_TITLE_WITH_THIS = re.compile(r"(?:This|That|These|Those|My|Our|Your|His|Her|Their) [A-Z]")
_NAME_PREFIXES = ("al-", "el-", "d'", "l'", "'t", "'s-")


def thing(rest: str) -> Thing | None:
    """A thing: cut at what describes it further, unless it is an activity."""
    text = until_cut(rest)
    if has_determiner(text):
        text = cut_at(text, _WHICH_SOMEBODY)
    if has_determiner(text) or not GERUND.match(text):
        text = without_adverbs(cut_at(text, thing_preposition()))
    made = as_thing(text)
    if made is None or made.name.split()[0].casefold() in vocabulary().thing_prepositions:
        return None
    return made


def named_thing(rest: str) -> Thing | None:
    """A thing, and what it is called: "a cat called Miso" is named "cat"."""
    found = thing(rest)
    if found is None:
        return None
    after = rest[rest.find(found.phrase) + len(found.phrase) :]
    said = CALLED_NAME.match(after)
    if said is None:
        return found
    return Thing(phrase=f"{found.phrase} called {_name(said.group(1))}", name=found.name)


def titled(rest: str) -> Thing | None:
    """What may be called anything, from "Ali Smith" to "lapsang souchong"."""
    text = rest.strip()
    if _TITLE_WITH_THIS.match(text) and (named := _name(text)):
        return Thing(named, named)
    made = as_thing(_name(undetermined(text))) if _starts_with_name(undetermined(text)) else None
    if made is not None and made.name.split()[0].casefold() not in vocabulary().pronouns:
        article = "the " if re.match(r"the\s", text, re.I) else ""
        return Thing(phrase=f"{article}{made.name}", name=made.name)
    return thing(text)


def activity(rest: str) -> Thing | None:
    """Something to do: "repaint the fence"; prepositions belong to it."""
    return as_thing(until_cut(rest), at_most=14)


def activities(rest: str) -> list[Thing]:
    """Things to do: "sell the car and buy a bike" are two, "buy milk and eggs" is one."""
    text = HARD_CUT.split(rest, maxsplit=1)[0]
    parts = AND.split(text)
    groups = [parts[0]]
    for said in parts[1:]:
        if NEW_CLAUSE.match(said) and not WHOSE.fullmatch(said.strip()):
            break
        part = _TO_DO.sub("", said)
        # "Come and see the play" is one thing to do.
        doing = part != said or _DOING_SOMETHING.match(part)
        if doing and not _ON_THE_WAY.fullmatch(groups[-1].strip()):
            groups.append(part)
        else:
            groups[-1] = f"{groups[-1]} and {part}"
    made = (as_thing(_without_circumstances(group), at_most=14) for group in groups)
    return [one for one in made if one is not None]


def place(rest: str, *, lower: bool = False) -> Thing | None:
    """A place: a name, or words that describe one ("a village near Bath").

    Args:
        rest: What follows "live in".
        lower: Whether the speaker writes everything in lower case, names too.
    """
    said = rest.strip()
    dwelling = _DWELLING.match(said)
    said = said[dwelling.end() :] if dwelling else said
    text = _PRAISED.sub("", until_cut(said, dates=True).strip(), count=1)
    if _DAY_OR_MONTH.match(text):
        return None
    if _starts_with_name(text):
        return as_thing(_name(text))
    named = _called(text)
    if named != text:
        return as_thing(_name(named))
    after_the = re.match(r"the\s+(?=[A-Z])", text, re.I)
    if after_the:
        named_so = as_thing(_name(text[after_the.end() :]))
        return None if named_so is None else Thing(f"the {named_so.name}", named_so.name)
    if has_determiner(text):
        return as_thing(text) if _place_noun().search(text) else None
    return as_thing(" ".join(cut_at(text, thing_preposition()).split()[:3])) if lower else None


def name(rest: str) -> Thing | None:
    """A proper name; None if what follows is not written as one."""
    text = _called(until_cut(rest, dates=True))
    return as_thing(_name(text)) if _starts_with_name(text) else None


def organisation(rest: str) -> Thing | None:
    """An employer: a name, or "a bank"."""
    text = _called(until_cut(rest, dates=True))
    bare = undetermined(text)
    if _starts_with_name(bare):
        return as_thing(_name(bare))
    named = _BY_NAME.match(rest)
    if named is not None and _DAY_OR_MONTH.match(named.group("name")) is None:
        return as_thing(named.group("name"))
    return thing(rest) if has_determiner(text) else None


def _called(text: str) -> str:
    """What comes after "called", unless a name came first: "Google and a start-up called ..."."""
    named = None if _starts_with_name(text) else _CALLED.search(text)
    return text[named.end() :] if named else text


def several(rest: str, one: Callable[[str], Thing | None]) -> list[Thing]:
    """Every member of a list: "ibuprofen and to latex", "Finnish, Estonian, and Dutch"."""
    return each_of(members(rest), one, until_cut)


def _without_circumstances(text: str) -> str:
    bare = without_dates(text)
    if cut_at(bare, cut_word()) != text.strip():
        # "By next week" is cut out of what is promised, with what led there.
        return _LED.sub("", _without_cut_words(bare))
    return _without_cut_words(bare)


def _without_cut_words(bare: str) -> str:
    # "Retrain as a midwife": as what one does it is a part of it.
    as_what = _AS_WHAT.search(bare)
    if as_what is None:
        return cut_at(bare, cut_word())
    before, after = bare[: as_what.end()], bare[as_what.end() :]
    head = cut_at(before[: as_what.start()], cut_word())
    return head if head != before[: as_what.start()] else before + cut_at(after, cut_word())


def _starts_with_name(text: str) -> bool:
    bare = text.strip()
    return bool(bare) and (bare[0].isupper() or _LIKE_A_NAME.match(bare) is not None)


def _name(text: str) -> str:
    """The leading run of capitalised words, with the small words that names hold."""
    kept: list[str] = []
    words = text.split()
    for number, word in enumerate(words):
        particle = word.casefold() in vocabulary().place_particles
        follows = words[number + 1][:1].isupper() if number + 1 < len(words) else False
        if _SPEAKER.fullmatch(word):
            break
        written_so = word[0].isupper() or word[0].isdigit() or bool(_LIKE_A_NAME.match(word))
        prefixed = bool(kept) and word.casefold().startswith(_NAME_PREFIXES)
        if written_so or prefixed or (kept and particle and follows):
            kept.append(word)
            continue
        if kept and particle and number + 2 < len(words) and words[number + 2][:1].isupper():
            kept.append(word)
            continue
        break
    # Alone it is no particle, nor with a capital: somebody may be called Al, or Linh Van.
    while len(kept) > 1 and kept[-1] in vocabulary().place_particles:
        kept.pop()
    return " ".join(kept)


def last_name(text: str) -> str:
    """The name with which some words end: "Berlin" of "a Londoner by birth but Berlin"."""
    words = text.split()
    start = len(words)
    while start and _is_part_of_name(words, start - 1):
        start -= 1
    return " ".join(words[start:]) if 0 < start < len(words) else text


def _is_part_of_name(words: list[str], number: int) -> bool:
    word = words[number]
    if word[0].isupper() or word[0].isdigit() or word == "&":
        return True
    particle = word.casefold() in vocabulary().place_particles
    return particle and 0 < number < len(words) - 1 and words[number - 1][0].isupper()


@cache
def _place_noun() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{alternatives(vocabulary().place_nouns)})\b", re.I)


# --- where an object is looked for, and what is known of it by name

NOTHING_NAMED = Thing("", "")
"""The object of "I quit my job": whichever it was."""


@dataclass(frozen=True, slots=True)
class MatchContext:
    """Where an object is looked for.

    Attributes:
        said: The words of the pattern.
        rest: What follows them, to the end of the sentence.
        sentence: All of it.
    """

    said: str
    rest: str
    sentence: str

    @property
    def lower(self) -> bool:
        """Whether the speaker writes everything, names too, in lower case."""
        return self.sentence == self.sentence.lower()


# "Postgres 17", "Pixel 6 Pro".
_VERSION_OF = re.compile(
    r"(?P<name>.{1,60}?) v?\d[\w.]*(?: (?:pro|max|plus|mini|ultra|air|lts)){0,2}\Z"
)


def is_product(thing: Thing) -> bool:
    """Whether it is a tool by name, or some version of one: "Postgres 17"."""
    name, products = thing.name.casefold(), vocabulary().products
    version = _VERSION_OF.match(name) if name not in products else None
    return name in products or (version is not None and version["name"] in products)


def tool_in_version(thing: Thing) -> str | None:
    """Which tool it is in some version: "postgres" of "Postgres 17"; None where none is named."""
    version = _VERSION_OF.match(thing.name.casefold())
    return version["name"] if version is not None and is_product(thing) else None


def is_origin(word: str) -> bool:
    """Whether it says where somebody is from, or what they believe, and names nobody: "Irish"."""
    known = word.casefold() in vocabulary().languages
    return known or expression("people", "of_origin").fullmatch(word) is not None


def is_place(thing: Thing) -> bool:
    """Whether it is a place by name."""
    return thing.name.casefold() in vocabulary().places
