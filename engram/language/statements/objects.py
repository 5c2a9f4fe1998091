"""The object of a predicate: cut out of its clause, cleaned, and told from activities."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from engram.language.calendar import MONTH_NAME, WEEKDAY
from engram.language.text import FULL_STOP, verb_lemma
from engram.language.vocabulary import alternatives, expression, vocabulary

# --- what a predicate is about: cut out of the rest of a clause, and cleaned

_HARD_CUT = re.compile(rf"\s*(?:[,;:()\[\]!?\x00…]|{FULL_STOP}|\s[-–—]+\s|—|[😀-🙏🌀-🗿🚀-🛿])")
# "Day and night", "more and more" are no two things.
_AND = re.compile(
    r"(?!(?<=\bday)\s+and\s+night\b|(?<=\bnight)\s+and\s+day\b|(?<=\bmore)\s+and\s+more\b|"
    r"(?<=\bless)\s+and\s+less\b|(?<=\bfirst)\s+and\s+foremost\b)"
    r"\s+(?:and\s+also|and|&|as\s+well\s+as|plus)\s+",
    re.I,
)
_NEW_CLAUSE = re.compile(
    r"(?:i|i'm|i've|i'll|i'd|we|we're|my|our|he|she|it|it's|they|you|the|there|that|that's|this|then|now|so|his|her|their|don't|have|"
    r"am|is|are|was|were|will|would|can|can't|never|always|not|no|started|moved|got|went|bought|just|"
    r"hopefully|maybe|perhaps)\b",
    re.I,
)
_GERUND = re.compile(r"[a-z]+ing\b")
_YEAR_OR_DATE = re.compile(
    r"\s+(?:in|on|since|from|until|around|about|back\s+in|as\s+of|for)\s+"
    r"(?:early|late|mid|the\s+(?:early|late|mid|spring|summer|autumn|fall|winter)|spring|summer|autumn|winter|"
    rf"{WEEKDAY}|christmas|easter|{MONTH_NAME}\b|"
    r"\d{4}\b|\d+\s|(?:a|two|three|four|five|six|seven|eight|nine|ten|many|several|over|almost|about|nearly)\s+(?:\w+\s+)?(?:days?|weeks?|months?|years?|decades?)\b|years|ages|decades|months|now|good|ever).*"
    r"|\s+(?:an?\s+(?:few|couple\s+of|good)|[\w-]+)\s+(?:days?|weeks?|months?|years?|decades?)\s+ago\b.*",
    re.I,
)
# "From March it's 0.16" names no place.
_DAY_OR_MONTH = re.compile(rf"(?:{WEEKDAY}|{MONTH_NAME})\b(?!\s+(?-i:[A-Z]))", re.I)
_CALLED = re.compile(r"\b(?:called|named)\s+", re.I)
_CALLED_NAME = re.compile(r"\s+(?:called|named)\s+((?:[A-Z][\w'-]*)(?:\s+[A-Z][\w'-]*)*)")
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
# "Gone off gin completely": not part of what is named.
_WHOLLY = re.compile(r"\s+(?:completely|entirely|altogether|totally|there|here)\Z", re.I)
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
_NAME_PREFIXES = ("al-", "el-", "d'", "l'", "'t", "'s-")
_WORDS_AT_MOST = 8
_MEMBER_WORDS = 3


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


def thing(rest: str) -> Thing | None:
    """A thing: cut at what describes it further, unless it is an activity."""
    text = _until_cut(rest)
    if _has_determiner(text) or not _GERUND.match(text):
        text = _without_adverbs(_cut_at(text, _thing_preposition()))
    made = _made(text)
    if made is None or made.name.split()[0].casefold() in vocabulary().thing_prepositions:
        return None
    return made


def named_thing(rest: str) -> Thing | None:
    """A thing, and what it is called: "a cat called Miso" is named "cat"."""
    found = thing(rest)
    if found is None:
        return None
    after = rest[rest.find(found.phrase) + len(found.phrase) :]
    said = _CALLED_NAME.match(after)
    if said is None:
        return found
    return Thing(phrase=f"{found.phrase} called {_name(said.group(1))}", name=found.name)


def titled(rest: str) -> Thing | None:
    """What may be called anything, from "Ali Smith" to "lapsang souchong"."""
    text = rest.strip()
    made = _made(_name(_bare(text))) if _starts_with_name(_bare(text)) else None
    if made is not None and made.name.split()[0].casefold() not in vocabulary().pronouns:
        article = "the " if re.match(r"the\s", text, re.I) else ""
        return Thing(phrase=f"{article}{made.name}", name=made.name)
    return thing(text)


def activity(rest: str) -> Thing | None:
    """Something to do: "repaint the fence"; prepositions belong to it."""
    return _made(_until_cut(rest), at_most=14)


def activities(rest: str) -> list[Thing]:
    """Things to do: "sell the car and buy a bike" are two, "buy milk and eggs" is one."""
    text = _HARD_CUT.split(rest, maxsplit=1)[0]
    parts = _AND.split(text)
    groups = [parts[0]]
    for said in parts[1:]:
        if _NEW_CLAUSE.match(said):
            break
        part = _TO_DO.sub("", said)
        # "Come and see the play" is one thing to do.
        doing = part != said or _DOING_SOMETHING.match(part)
        if doing and not _ON_THE_WAY.fullmatch(groups[-1].strip()):
            groups.append(part)
        else:
            groups[-1] = f"{groups[-1]} and {part}"
    made = (_made(_without_circumstances(group), at_most=14) for group in groups)
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
    text = _PRAISED.sub("", _until_cut(said, dates=True).strip(), count=1)
    if _DAY_OR_MONTH.match(text):
        return None
    if _starts_with_name(text):
        return _made(_name(text))
    named = _called(text)
    if named != text:
        return _made(_name(named))
    after_the = re.match(r"the\s+(?=[A-Z])", text, re.I)
    if after_the:
        named_so = _made(_name(text[after_the.end() :]))
        return None if named_so is None else Thing(f"the {named_so.name}", named_so.name)
    if _has_determiner(text):
        return _made(text) if _place_noun().search(text) else None
    return _made(" ".join(_cut_at(text, _thing_preposition()).split()[:3])) if lower else None


def name(rest: str) -> Thing | None:
    """A proper name; None if what follows is not written as one."""
    text = _called(_until_cut(rest, dates=True))
    return _made(_name(text)) if _starts_with_name(text) else None


def organisation(rest: str) -> Thing | None:
    """An employer: a name, or "a bank"."""
    text = _called(_until_cut(rest, dates=True))
    bare = _bare(text)
    if _starts_with_name(bare):
        return _made(_name(bare))
    named = _BY_NAME.match(rest)
    if named is not None and _DAY_OR_MONTH.match(named.group("name")) is None:
        return _made(named.group("name"))
    return thing(rest) if _has_determiner(text) else None


def _called(text: str) -> str:
    """What comes after "called", unless a name came first: "Google and a start-up called ..."."""
    named = None if _starts_with_name(text) else _CALLED.search(text)
    return text[named.end() :] if named else text


def several(rest: str, one: Callable[[str], Thing | None]) -> list[Thing]:
    """Every member of a list: "ibuprofen and to latex", "Finnish, Estonian and Dutch"."""
    found: list[Thing] = []
    for part in _members(rest):
        member = one(part)
        if member is None or (found and _NEW_CLAUSE.match(part)):
            break
        found.append(member)
        # "A cat called Miso and a cat called Luna" are two.
        told = _CALLED_NAME.sub("", part).strip()
        if _until_cut(told) != told:
            break
    return found


def _members(rest: str) -> list[str]:
    first_and = _AND.search(rest)
    if first_and is None:
        return [rest]
    head, tail = rest[: first_and.start()], rest[first_and.end() :]
    # Commas separate members only on the way to an "and": "cats, dogs and rain".
    parts = [part.strip() for part in head.split(",")]
    if any(_NEW_CLAUSE.match(part) or not part for part in parts[1:]):
        return [head]
    if len(parts) > 1 and any(len(part.split()) > _MEMBER_WORDS for part in parts):
        return [head]
    return [*parts, *_members(tail)]


def _until_cut(rest: str, *, dates: bool = False) -> str:
    text = _HARD_CUT.split(rest, maxsplit=1)[0]
    text = _YEAR_OR_DATE.sub("", f" {text}").strip()
    text = _cut_at(text, _cut_word())
    joined = _AND.search(text)
    while joined:
        # "sell the car and buy a bike" is split by several(); a new clause always ends it.
        if _NEW_CLAUSE.match(text[joined.end() :]) or not dates:
            return text[: joined.start()]
        joined = _AND.search(text, joined.end())
    return text


def _without_circumstances(text: str) -> str:
    bare = _YEAR_OR_DATE.sub("", f" {text}").strip()
    if _cut_at(bare, _cut_word()) != text.strip():
        # "By next week" is cut out of what is promised, with what led there.
        return _LED.sub("", _without_cut_words(bare))
    return _without_cut_words(bare)


def _without_cut_words(bare: str) -> str:
    # "Retrain as a midwife": as what one does it is a part of it.
    as_what = _AS_WHAT.search(bare)
    if as_what is None:
        return _cut_at(bare, _cut_word())
    before, after = bare[: as_what.end()], bare[as_what.end() :]
    head = _cut_at(before[: as_what.start()], _cut_word())
    return head if head != before[: as_what.start()] else before + _cut_at(after, _cut_word())


def _cut_at(text: str, pattern: re.Pattern[str]) -> str:
    found = pattern.search(text)
    return text[: found.start()] if found else text


def _without_adverbs(text: str) -> str:
    """A thing without what tells at its end how, how often or how surely: "Firefox religiously"."""
    while found := _adverb().search(text):
        before = text[: found.start()]
        if not before.strip() or _determiner().fullmatch(f"{before.split()[-1]} "):
            # "My family", "a weekly": that is the thing.
            break
        text = before
    return text


# A point that a name begins with is a part of it: ".NET".
_SIGNS_BEFORE = re.compile(r"\A(?:[ \t,;:!?'*_~-]|\.{2,}|\.(?!\w))+")


def _made(text: str, at_most: int = _WORDS_AT_MOST) -> Thing | None:
    bounded = _SIGNS_BEFORE.sub("", text).rstrip(" \t.,;:!?'*_~-")
    phrase = _WHOLLY.sub("", bounded)
    bare = _bare(phrase)
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


def _bare(text: str) -> str:
    stripped = text.strip()
    while True:
        found = _determiner().match(stripped)
        if found is None or not stripped[found.end() :].strip():
            return stripped
        stripped = stripped[found.end() :].strip()


def _has_determiner(text: str) -> bool:
    return _determiner().match(text.strip()) is not None


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
    # Alone it is no particle: somebody may be called Al.
    while len(kept) > 1 and kept[-1].casefold() in vocabulary().place_particles:
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
def _cut_word() -> re.Pattern[str]:
    # "A full-time carer" is one; what follows "I work full-time" is not cut out here.
    work = r"(?!\A\s*(?:full|part)[ -]time\s+\w)(?<!\ba)(?<!\ban)"
    # "Be his best man" is one thing to be.
    ends = r"\b(?!'|\s+(?:man|friend|mate)\b)"
    return re.compile(rf"{work}(?:^|\s+)(?:{alternatives(vocabulary().cut_words)}){ends}", re.I)


@cache
def _thing_preposition() -> re.Pattern[str]:
    # "A nurse living in Leeds", but "a working dog".
    doing = (
        r"(?:living|based|working|studying|employed|located)\s+(?:in|at|for|as|by|near|out|with)"
    )
    words = alternatives(vocabulary().thing_prepositions)
    return re.compile(rf"\s+(?:{words}|{doing})(?=\s|$)", re.I)


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


def is_origin(word: str) -> bool:
    """Whether it says where somebody is from, or what they believe, and names nobody: "Irish"."""
    known = word.casefold() in vocabulary().languages
    return known or expression("people", "of_origin").fullmatch(word) is not None


def is_place(thing: Thing) -> bool:
    """Whether it is a place by name."""
    return thing.name.casefold() in vocabulary().places


# --- objects that are something to do: liked, planned, promised

_YOU = re.compile(r"\byou\b", re.I)
_YOURS = re.compile(r"\byour\b", re.I)
_INFINITIVE = re.compile(r"\bto\Z", re.I)
_COMPARED = re.compile(r"\s+(?:to|over|rather\s+than|instead\s+of|than)\s+", re.I)
# What is at hand is praised, not liked in general: "I love this series", "Love the colours".
_AT_HAND = re.compile(
    r"(?:my|our) (?:life|lives|luck)\W*\Z|"
    r"(?:all\s+|both\s+)?(?:this|that|these|those|his|her|their|your|its|everywhere|everything)\b"
    r"|[^,;:.!?(–—-]{0,60}\b(?:you|your)\b",
    re.I,
)
# Of what was just shown: "I prefer the first one".
_VERSION = re.compile(
    r"(?:the\s+)?(?:first|second|third|last|other|latter|former|previous|this|that)\s+"
    r"(?:one|version|option|draft|way)\b",
    re.I,
)
_THE = re.compile(r"(?:all\s+|both\s+)?the\s+(?=[a-z])")
_GERUND = re.compile(r"[a-z]{2,}ing\b")
_BROKEN_OFF = re.compile(
    r"\b(?:an?|the|to|of|and|or|with|for|at|by|from|my|our)\Z|\A(?:and|or|is|are)\b", re.I
)
# "Love how it looks", "love watching them": of what, only what was said before tells.
_VAGUE = re.compile(
    r"(?:the\s+)?(?:idea|way|fact|sound|look|thought|smell)\b|how\b|making\s+sure\b|having\s+such\b"
    r"|[a-z]{1,30}ing\s+(?:it|them|him|her|this|that|these|those)\b",
    re.I,
)
# "Creating a safe, inviting place": what it is comes after the cut.
_ONLY_WHAT_LIKE = re.compile(r"\ban?\s+[a-z]+\Z")
_MORE_FOLLOWS = re.compile(r",\s*[a-z]")


def liked(spoken: MatchContext) -> list[Thing]:
    """What is liked, or liked to do."""
    if _INFINITIVE.search(spoken.said):
        done = activity(spoken.rest.strip())
        return [] if done is None else [replace(done, phrase=f"to {done.phrase}")]
    rest = spoken.rest.strip()
    if _VAGUE.match(rest) or _AT_HAND.match(rest):
        return []
    found = several(rest, thing)
    if not found or _BROKEN_OFF.search(found[0].name) or _lacks_its_noun(found[0], rest):
        return []
    found = [one for one in found if not _BROKEN_OFF.search(one.name)]
    if _THE.match(rest):
        # "The sea" is liked wherever it is; "the colours" are those of something at hand.
        known = vocabulary().liked_with_the
        found = found if found[0].name.split()[-1].casefold() in known else []
    if found and len(found[0].name.split()) > 1 and _GERUND.match(found[0].name):
        # "Making sure they are safe and valued": only another doing is a second one.
        found = [found[0], *(one for one in found[1:] if _GERUND.match(one.name))]
    return found


def _lacks_its_noun(one: Thing, rest: str) -> bool:
    after = rest[rest.find(one.phrase) + len(one.phrase) :]
    return bool(_ONLY_WHAT_LIKE.search(one.phrase) and _GERUND.match(one.name)) and bool(
        _MORE_FOLLOWS.match(after)
    )


def preferred(spoken: MatchContext) -> list[Thing]:
    """What is preferred, with what it is preferred to."""
    rest = spoken.rest.strip()
    if _VERSION.match(rest):
        return []
    infinitive = bool(_INFINITIVE.search(spoken.said))
    parts = _COMPARED.split(rest, maxsplit=1)
    found = activity(parts[0]) if infinitive else thing(parts[0])
    if found is None:
        return []
    phrase = f"to {found.phrase}" if infinitive else found.phrase
    compared = _COMPARED.search(rest)
    other = activity(parts[1]) if len(parts) > 1 else None
    if compared and other and parts[0].strip() == found.phrase:
        phrase = f"{phrase} {' '.join(compared.group().split())} {other.phrase}"
    return [replace(found, phrase=phrase)]


def plan(spoken: MatchContext) -> list[Thing]:
    """What is going to be done; "going to bed" is no plan."""
    first = re.match(r"\s*([\w'-]+)", spoken.rest)
    word = first.group(1) if first else ""
    if not word.islower() or word in vocabulary().plan_blockers or not word.isalpha():
        return []
    if re.match(r"\s*(?:the|a|an|my|our|your|this|that|his|her|their)\b", spoken.rest):
        return []
    return [_in_base_form(one) for one in activities(spoken.rest.strip()) if _is_whole(one)]


def promise(spoken: MatchContext) -> list[Thing]:
    """What is promised, in the base form."""
    return [_in_base_form(one) for one in activities(spoken.rest.strip()) if _is_whole(one)]


# "Keep doing my", "was wondering": what was to be done, nobody can tell.
_NOT_WHOLE = re.compile(
    r"\A(?:was|were|is|are|am)\b"
    r"|\b(?:an?|the|of|and|or|my|our|their|your|to|believing in|the ones?)\Z"
    r"|\bto (?:see|know|check|find out)\Z",
    re.I,
)


def _is_whole(one: Thing) -> bool:
    """Whether it names something to do, and is not broken off before it does."""
    said = {word.strip(".,!") for word in one.name.casefold().split()}
    return _NOT_WHOLE.search(one.name) is None and not said <= vocabulary().hollow_words


def offer(spoken: MatchContext) -> list[Thing]:
    """What "I'll" can promise: to do something, not to see or to try."""
    found = promise(spoken)
    words = found[0].name.casefold().split() if found else []
    if not {" ".join(words[:1]), " ".join(words[:2])} & vocabulary().promise_verbs:
        return []
    return [one for one in found if _names_something(one.name.split()[1:])]


def offer_to_you(spoken: MatchContext) -> list[Thing]:
    """The same, said to somebody by name: "I'll feed your cat, Ines"."""
    named = replace(spoken, rest=_YOU.sub("them", _YOURS.sub("the", spoken.rest)))
    return promise(spoken) if offer(named) else []


def _names_something(words: list[str]) -> bool:
    """Whether there is more than "it now" or "you then"."""
    said = {word.casefold().strip(".,!") for word in words}
    empty = vocabulary().pronouns | {
        "trying",
        "going",
        "then",
        "later",
        "soon",
        "now",
        "back",
        "up",
        "a",
        "the",
    }
    return bool(said - empty) and not said & {"you", "your"}


def _in_base_form(thing: Thing) -> Thing:
    """From "translating the leaflet" to "translate the leaflet"."""
    verb, _, rest = thing.phrase.partition(" ")
    if not _GERUND.fullmatch(verb):
        return thing
    phrase = f"{verb_lemma(verb)} {rest}".strip()
    return Thing(phrase, phrase)
