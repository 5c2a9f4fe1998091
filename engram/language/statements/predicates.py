"""Which object fits which predicate, with favourites and replacements ("from X to Y")."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

from engram.language.calendar import MONTH_NAME, WEEKDAY
from engram.language.statements import doings, medicines, objects
from engram.language.statements.clauses import Sentence, is_reported
from engram.language.statements.cutting import Thing
from engram.language.statements.objects import NOTHING_NAMED, MatchContext, is_place, is_product
from engram.language.text import STREET_ADDRESS
from engram.language.vocabulary import (
    alternatives,
    expression,
    fields_of_work,
    load,
    vocabulary,
    words,
)

# --- one statement, as the rules found it

NO_SENTENCE = Sentence("", 0)


@dataclass(frozen=True, slots=True)
class RuleStatement:
    """One statement.

    Attributes:
        predicate: What it states.
        thing: Of what.
        holds: False for what is not, or no longer, so.
        begins: Whether it says that it began.
        denied: Whether it says that it is not, rather than no longer, so.
        said: The words before the object.
        at: Where in the turn it is said.
        sentence: In which sentence.
        loose: Whether the wording is less than plain: "I'll send the slides".
        corrects: Whether it takes back something said before.
    """

    predicate: str
    thing: Thing
    holds: bool = True
    begins: bool = False
    denied: bool = False
    said: str = ""
    at: int = 0
    sentence: Sentence = NO_SENTENCE
    loose: bool = False
    corrects: bool = False


# --- which words can be the object of which predicate

_ANY_WORK = re.compile(r"\b(?:work|working|employed|living|retrained|requalified)\b", re.I)
_PROMOTED = re.compile(r"\bpromot(?:ed|ing)\b", re.I)
# "Promoted to shift lead" is work, "promoted to Gold" and "to the first team" is none.
_RANK = re.compile(r"(?:an? )?(?!the\b)[a-z][a-z -]*\Z")
# Where and when one studies.
_SCHOOLS = frozenset({"university", "college", "school", "uni", "high school", "abroad", "online"})
# What kind of a degree it is.
_SCHOOLS |= frozenset({"undergraduate", "postgraduate", "graduate", "honours", "associate"})
_SCHOOLS |= frozenset("mornings afternoons evenings weekends nights".split())
_LEAVING_WORK = re.compile(
    r"\b(?:job|joined|started\s+(?:at|with|a)|career|resign\w*|employ\w*|work\w*|offer|position|role|"
    r"boss|company|startup|start-up|as\s+an?|salary|colleagues|redundan\w+)\b",
    re.I,
)
# Whoever says one of these leaves an employer, also where its name is that of a tool: "Google".
_LEAVING_A_JOB = re.compile(
    r"\b(?:job|career|start-?\s?up|resign\w*|employ\w*|offer|position|role|boss|colleagues|"
    r"redundan\w+|company|salary)\b",
    re.I,
)
# "My botany degree" and "a botany student" name what is studied first.
_DEGREE = re.compile(
    r"(?<=\w)\s+(?:degree|course|class|classes|lessons|major|student|phd|master's|masters?|bachelor's|bachelors?|studies)\Z",
    re.I,
)
_SUBJECT_ENDS = re.compile(
    r"[a-z]{2}(?:ology|onomy|ography|ometry|nomics|istry|matics|osophy)\Z|\w studies\Z"
)
# "Freelance translator here", as "I'm a freelance translator".
_OWN_BOSS = re.compile(r"\A(?:freelance|self-employed)\s+", re.I)
# "A fully fledged solicitor" is a solicitor.
_FULLY = re.compile(
    r"(?:fully[- ](?:fledged|qualified)|(?:newly|recently|just)[- ]qualified|bona fide)\s+", re.I
)
_IN_WORK = re.compile(r"\A(?:freelance|junior|senior|trainee|part-time|self-employed)\s+")
_DIET = re.compile(
    r"(?:an?\s+)?(?:(?:strict|lifelong|committed|devout|practising|proper|full|fully|mostly)\s+)?"
    r"(?P<diet>vegan|(?:lacto-|ovo-|lacto-ovo-)?vegetarian|pesc[ae]tarian|flexitarian|"
    r"(?:keto|paleo|low[- ]carb|carnivore|mediterranean)(?=(?: diet)?\b))"
    r"(?: (?:diet|household|family))?\b"
    r"(?!\s+(?!now|again|any|for|since|when|because|these|but|and|so|after all|as it|it turn|turns|"
    r"tho|actually|at all|to be (?:honest|fair)|last|this (?:week|month|year)|two|three|four|five|"
    r"a (?:few|year|month|while)|years|after|ever|too|also|in (?:19|20)\d\d)[a-z])",
    re.I,
)
_NAME_WORDS = 5
_MEMBERS_WORDS = 2
_WORK_WORDS = 6
_ENDS_THERE = re.compile(
    r"\s*(?:$|[,.;:!()–—-]|\b(?:and|but|so|because|last|this|in|on|at|after|before|yesterday|today|now|early|"
    r"two|three|a|from\s+work|with|though|since|finally|again|recently|when)\b)",
    re.I,
)
# Written as a name is, and alone, after "I speak".
# "Quit programming to open a café", "left nursing for good".
_LEFT_FOR = re.compile(rf"(?:{_ENDS_THERE.pattern}|\s+(?:to|for)\b)", re.I)
_UNKNOWN_LANGUAGE = re.compile(r"[A-Z][^\W\d_]{2,}(?:i|an|ish|ese|ic|ight|wa|a|u|que|en|ch|o)\Z")
_WEEKDAY = re.compile(rf"{WEEKDAY}s?\Z", re.I)


def find(kind: str, spoken: MatchContext) -> list[Thing]:
    """The objects of that kind; empty if the words cannot be one."""
    return _KINDS[kind](spoken)


def _place(spoken: MatchContext) -> list[Thing]:
    return _listed(_any_place(spoken))


def _any_place(spoken: MatchContext) -> Thing | None:
    """A place to be in, which a street or a flat with its number is not: that is an address."""
    found = objects.place(spoken.rest.strip(), lower=spoken.lower)
    return None if found is not None and _ADDRESS.match(found.name) else found


_ADDRESS = re.compile(rf"{STREET_ADDRESS}|(?:Flat|Apt\.?|Apartment|Unit|Suite) \d")


def _named_place(spoken: MatchContext) -> list[Thing]:
    """A place by name; who writes everything in lower case names one in a word or two."""
    found = _any_place(spoken)
    if found is None:
        return []
    named = found.name[:1].isupper() or (
        spoken.lower
        and len(found.name.split()) <= _MEMBERS_WORDS
        and "to" not in spoken.rest.split()
        # "Im back to paper" names no place.
        and (is_place(found) or not spoken.said.endswith("back to"))
    )
    blocked = set(found.name.casefold().split()) & vocabulary().uses_blockers
    # "Gone back to Firefox", "moved to Bosch": neither is a place to live.
    elsewhere = (is_product(found) or _is_employer(found)) and not is_place(found)
    # "Anyway, back to Scythe": nobody went anywhere.
    elsewhere = elsewhere or (_BACK_TO.match(spoken.said) is not None and not is_place(found))
    return [found] if named and not (blocked or _names_a_day(found) or elsewhere) else []


_BACK_TO = re.compile(r"(?:(?:i'm|i am|we're|we are) )?back to\Z", re.I)


def _names_a_day(thing: Thing) -> bool:
    return bool(_WEEKDAY.match(thing.name) or _date().match(thing.name))


def _known_place(spoken: MatchContext) -> list[Thing]:
    return [one for one in _place(spoken) if is_place(one)]


def _nothing(spoken: MatchContext) -> list[Thing]:
    """Nothing named: only if the clause ends there, or goes on about when or why."""
    return [NOTHING_NAMED] if _ENDS_THERE.match(spoken.rest) else []


def _titled(spoken: MatchContext) -> list[Thing]:
    return _listed(objects.titled(spoken.rest.strip()))


def _organisation(spoken: MatchContext) -> list[Thing]:
    found = objects.organisation(spoken.rest.strip())
    if found is None and spoken.lower:
        # Who writes "i" may write "google"; more than a word or two is no name.
        plain = objects.thing(spoken.rest.strip())
        found = plain if plain and len(plain.name.split()) <= _MEMBERS_WORDS else None
    if found is None or (_is_idle(found) and not _employs(found, spoken)):
        return []
    # "I work with Excel" names no employer.
    return [] if is_product(found) and spoken.said.casefold().endswith("with") else [found]


def _former_employer(spoken: MatchContext) -> list[Thing]:
    found = objects.name(spoken.rest.strip())
    if found is None:
        return []
    if is_product(found):
        return [found] if _LEAVING_A_JOB.search(spoken.sentence) else []
    quitting = spoken.said.casefold().endswith("quit")
    return [found] if quitting or is_firm(found) or _LEAVING_WORK.search(spoken.sentence) else []


def _name(spoken: MatchContext) -> list[Thing]:
    return _listed(objects.name(spoken.rest.strip(" ,")))


def _company(spoken: MatchContext) -> list[Thing]:
    """A name that says itself that it is an employer's; who writes "i" may write "tesco"."""
    found = _name(spoken)
    plain = objects.thing(spoken.rest.strip()) if spoken.lower and not found else None
    if plain is not None and plain.name.casefold() in vocabulary().employers:
        return [plain]
    return [one for one in found if is_firm(one)]


def is_firm(thing: Thing) -> bool:
    """Whether it is an employer that is known, or a name that says that it is one's."""
    return _is_company(thing) or _is_employer(thing)


def _own_name(spoken: MatchContext) -> list[Thing]:
    found = objects.name(spoken.rest.strip(" ,"))
    if found is None and spoken.lower:
        word = re.match(r"\s*([^\W\d_][\w'-]*)(?=\s*(?:$|,|and\s|by\sthe|btw))", spoken.rest)
        naming = re.search(r"name(?:'s|\s+is)\Z", spoken.said.strip(), re.I)
        found = Thing(word.group(1), word.group(1)) if word and naming else None
    if found is None or _WEEKDAY.match(found.name) or len(found.name.split()) > _NAME_WORDS:
        return []
    return [found]


def _thing(spoken: MatchContext) -> list[Thing]:
    found = objects.several(spoken.rest.strip(), objects.named_thing)
    if not found or (_is_idle(found[0]) and not _is_written_as_name(found[0], spoken)):
        return []
    # "Slack and Notion" and "a laptop and two screens" are two; "a pen and love it" is not.
    return [found[0], *(t for t in found[1:] if _tells_which(t))]


_COUNTED = re.compile(r"(?:two|three|four|five|six|seven|eight|nine|ten|several|\d{1,4})\s", re.I)


def _tells_which(thing: Thing) -> bool:
    counted = thing.phrase != thing.name or _COUNTED.match(thing.name) is not None
    return thing.name[:1].isupper() or is_product(thing) or counted


def _things(spoken: MatchContext) -> list[Thing]:
    return objects.several(spoken.rest.strip(), objects.thing)


def _product(spoken: MatchContext) -> list[Thing]:
    found = objects.thing(spoken.rest.strip())
    return [found] if found is not None and is_product(found) else []


def _possession(spoken: MatchContext) -> list[Thing]:
    found = objects.several(spoken.rest.strip(), objects.named_thing)
    if not found or not all(_is_possession(one) for one in found):
        return [one for one in found[:1] if _is_possession(one)]
    return found


_WEIGHED = re.compile(r"\bweigh", re.I)


def _weight(spoken: MatchContext) -> list[Thing]:
    """What one weighs, with its unit; as something else than a person weighs, it is no answer."""
    found = expression("statements", "weight").match(spoken.rest)
    if found is None and _WEIGHED.search(spoken.said):
        found = expression("statements", "weight_alone").match(spoken.rest)
    return [] if found is None else [Thing(found.group("it"), found.group("it"))]


def _vehicle(spoken: MatchContext) -> list[Thing]:
    """A car by its make; "a truck for work" is no car of one's own."""
    found = objects.thing(_LADEN.sub("", spoken.rest.strip(), count=1))
    words = [] if found is None else found.name.split()
    makes = any(word[:1].isupper() or _MODEL.fullmatch(word) for word in words) or (
        spoken.lower and any(word in vocabulary().cars for word in words)
    )
    # "My laptop is Anna's"
    return [found] if found is not None and makes and not found.name.endswith("'s") else []


# "An i20"
_MODEL = re.compile(r"[a-z]{1,2}\d{1,3}[a-z]?")
# "A Fiat Doblò full of beehives"
_LADEN = re.compile(r"\s+full\s+of\b.*", re.S)


def _car(spoken: MatchContext) -> list[Thing]:
    """A car by a make or model that is known, whatever is said of it: "got a Dacia Jogger"."""
    found = objects.thing(spoken.rest.strip())
    named = [] if found is None else found.name.split()
    known = [word.casefold() in vocabulary().cars for word in named]
    written = all(
        of_cars or word[:1].isupper() or any(c.isdigit() for c in word)
        for word, of_cars in zip(named, known, strict=True)
    )
    an_object = spoken.lower and _AN_OBJECT.match(spoken.rest.strip())
    proper = an_object or any(word[:1].isupper() for word in named)
    return [found] if found is not None and any(known) and written and proper else []


def _trip(spoken: MatchContext) -> list[Thing]:
    """A journey to a place by name, as a plan: "go to Portugal"."""
    found = objects.name(spoken.rest.strip())
    if found is None or found.name.endswith("'s") or _is_employer(found) or is_product(found):
        return []
    if _names_a_day(found):
        # "Back from Sunday mass"
        return []
    return [Thing(f"go to {found.name}", f"go to {found.name}")]


def _diet(spoken: MatchContext) -> list[Thing]:
    """What somebody keeps to, by name."""
    said = _DIET.match(spoken.rest.strip())
    return [Thing(said.group("diet").lower(), said.group("diet").lower())] if said else []


def _animal_food(spoken: MatchContext) -> list[Thing]:
    """What some diet does without."""
    found = objects.thing(spoken.rest.strip())
    known = frozenset[str]().union(*(words("diets", diet) for diet in load("diets")))
    return [found] if found is not None and found.name.casefold() in known else []


def _subject(spoken: MatchContext) -> list[Thing]:
    said = objects.several(spoken.rest.strip(), objects.thing)
    found = [Thing(_DEGREE.sub("", one.phrase), _DEGREE.sub("", one.name)) for one in said]
    return [] if not found or found[0].name.casefold() in _SCHOOLS else found


def _known_subject(spoken: MatchContext) -> list[Thing]:
    """A subject by name or ending: "dropped botany", but no "dropped the plates"."""
    return [one for one in _subject(spoken) if is_subject(one)]


def is_subject(thing: Thing) -> bool:
    """Whether it is something that is studied."""
    name = thing.name.casefold()
    return name in vocabulary().subjects or _SUBJECT_ENDS.search(name) is not None


def _language(spoken: MatchContext) -> list[Thing]:
    speaks = "speak" in spoken.said.casefold()
    one = _any_language if speaks else _one_language
    # "We speak Tamil at home and English at work"
    return objects.several(_WHERE_SPOKEN.sub("", spoken.rest).strip(), one)


_WHERE_SPOKEN = re.compile(r"\s+at\s+(?:home|work|school|uni)\b", re.I)


def _any_language(rest: str) -> Thing | None:
    known, found = _one_language(rest), objects.thing(rest)
    if known is not None or found is None or not _UNKNOWN_LANGUAGE.match(found.name):
        return known
    named = is_product(found) or is_place(found) or _WEEKDAY.match(found.name)
    return None if named else found


def _one_language(rest: str) -> Thing | None:
    found = objects.thing(rest)
    if found is None:
        return None
    known = _languages().match(found.name)
    return Thing(known.group(), known.group()) if known else None


def _work(spoken: MatchContext) -> list[Thing]:
    found = objects.thing(_FULLY.sub("", spoken.rest, count=1).strip())
    if found is None or len(found.name.split()) > _WORK_WORDS:
        return []
    words = found.name.casefold().split()
    known = vocabulary().occupations
    if vocabulary().hobby_words.intersection(words):
        return []
    # "Head of sales", "manager of a shoe shop"
    occupied = words[1:2] == ["of"] and words[0] in {*known, "head", "vp", "chief"}
    occupied = occupied or words[-1] in known or " ".join(words[-2:]) in known
    promoted = _PROMOTED.search(spoken.said) and _RANK.match(found.phrase)
    return [found] if occupied or promoted or _ANY_WORK.search(spoken.said) else []


def _occupation(spoken: MatchContext) -> list[Thing]:
    """Work that is named alone: "nurse here", and no "nice doctor here"."""
    known = vocabulary().occupations
    found = [one for one in _work(spoken) if _IN_WORK.sub("", one.name.casefold()) in known]
    return [Thing(_OWN_BOSS.sub("", o.phrase), _OWN_BOSS.sub("", o.name)) for o in found]


def _field_of_work(spoken: MatchContext) -> list[Thing]:
    """What one works in, by its name; what may be a pastime, only where one lives by it."""
    rest = spoken.rest.strip()
    found = expression("statements", "living_by").match(rest)
    if found is None:
        whole = rest.lower()
        fields = (one for one in fields_of_work() if whole.startswith(one))
        field = next((one for one in fields if _LEFT_FOR.match(rest, len(one))), None)
        return [] if field is None else [Thing(rest[: len(field)], rest[: len(field)])]
    return [Thing(found.group("field"), found.group("field"))]


_SQUARE = re.compile(r"\bwith\Z", re.I)


def _debt(spoken: MatchContext) -> list[Thing]:
    """Whom one owes, and what: "Stefan 50 euros"."""
    rest = spoken.rest.strip()
    if expression("statements", "no_debt").match(rest):
        return []
    if _SQUARE.search(spoken.said):
        # "Settled up with Piotr last night": what follows is no debt.
        return _listed(objects.name(rest) or objects.thing(rest))
    # "Paid Stefan back on Friday": what follows is no debt.
    said = expression("statements", "paid_back").match(rest)
    both = None if said else expression("statements", "owed_each").match(rest)
    if both:
        owed = [f"{both[who]}{both['what'] or ''}" for who in ("one", "other")]
        return [one for words in owed for one in _listed(objects.activity(words))]
    return _listed(objects.activity(said.group("whom") if said else rest))


def _origin(spoken: MatchContext) -> list[Thing]:
    # "From Monday standup is at 10" says where nobody comes from.
    return [one for one in _place(spoken) if not _names_a_day(one)]


# "S3", "TCP/IP": a service or a protocol; places are not written so.
_NO_PLACE = re.compile(r"\b[A-Za-z]+\d|\w/\w")


def _moved_to(spoken: MatchContext) -> list[Thing]:
    # "Moved to Bosch" says where somebody works.
    return [
        one
        for one in _place(spoken)
        if is_place(one)
        or is_product(one)
        or not (_is_employer(one) or _is_called_as_a_firm(one) or _NO_PLACE.search(one.name))
    ]


def _birth(spoken: MatchContext) -> list[Thing]:
    rest = spoken.rest.strip()
    preposition, _, what = rest.partition(" ")
    found: list[Thing] = []
    dated = _date().match(what) or _later_date().search(what)
    where = None if _date().match(what) else objects.thing(what)
    if where is not None and objects.name(what):
        where = objects.place(what)
    if where is not None and not _WEEKDAY.match(where.name):
        found.append(replace(where, phrase=f"{preposition} {where.phrase}"))
    if dated:
        date = dated.group("date")
        bare = re.sub(r"^the\s+", "", date)
        short = "in" if re.match(r"(?:\d{4}|[A-Za-z]+\s+\d{4})\Z", bare) else "on"
        found.append(Thing(phrase=f"{short} {date}", name=bare))
    return found


def _is_employer(thing: Thing) -> bool:
    # "Boots" may be worn.
    return thing.name[:1].isupper() and thing.name.casefold() in vocabulary().employers


def _is_called_as_a_firm(thing: Thing) -> bool:
    # "Holt Bank", and not "Oak Farm".
    first, _, last = thing.name.rpartition(" ")
    named = first[:1].isupper() and last[:1].isupper()
    known = vocabulary()
    return named and last.casefold() in known.company_words - known.house_words


def _is_possession(thing: Thing) -> bool:
    words = re.findall(r"[\w'-]+", thing.name.casefold())
    known, blocked = vocabulary().has_nouns, vocabulary().has_blockers
    if not words or blocked.intersection(words) or words[-1] in _THEM:
        return False
    return bool({words[-1], words[0], " ".join(words[-2:])} & known) or " of " in thing.name


_THEM = frozenset({"them", "it", "those", "these", "us", "you"})


def _is_idle(thing: Thing) -> bool:
    return bool(set(thing.name.casefold().split()) & vocabulary().uses_blockers)


# Where one works, though one may lie there, or drink there: no "at the same hospital".
_WORKPLACE = re.compile(
    r"(?:[\w'-]{1,30} ){0,2}hospital|(?:[\w'-]{1,30} )?coffee (?:shop|bar|chain|company|roastery)|"
    r"night ?club|"
    r"(?:care|nursing|retirement|funeral|rest|children's|residential) home|"
    r"(?:[\w'-]{1,30} )?(?:practice|day (?:centre|center|nursery))",
    re.I,
)
_SAME = re.compile(r"\bsame\b", re.I)
_WORKING = re.compile(r"\b(?:work|teach|lectur|nurs|intern|temp|volunteer|employ|job)", re.I)


def _employs(idle: Thing, spoken: MatchContext) -> bool:
    """Whether it is an employer all the same: "Mercy Hospital", "Costa Coffee", "a care home"."""
    if _SAME.search(idle.name):
        return False
    named = set(idle.name.casefold().split()) - vocabulary().uses_blockers
    if named and _is_written_as_name(idle, spoken):
        return True
    return bool(_WORKPLACE.fullmatch(idle.name) and _WORKING.search(spoken.said))


def _is_written_as_name(idle: Thing, spoken: MatchContext) -> bool:
    """Whether all that says nothing else is written as a part of a name: "Word", "Home Depot"."""
    words = [word for word in idle.name.split() if word.casefold() in vocabulary().uses_blockers]
    return not spoken.sentence.istitle() and all(word.istitle() for word in words)


def _listed(found: Thing | None) -> list[Thing]:
    return [] if found is None else [found]


@cache
def _languages() -> re.Pattern[str]:
    return re.compile(rf"(?:{alternatives(vocabulary().languages)})\b", re.I)


@cache
def _date() -> re.Pattern[str]:
    day = r"\d{1,2}(?:st|nd|rd|th)?"
    return re.compile(
        rf"(?P<date>(?:the\s+)?{day}\s+(?:of\s+)?{MONTH_NAME}(?:,?\s+\d{{4}})?|"
        rf"{MONTH_NAME}\s+{day}(?:,?\s+\d{{4}})?|{MONTH_NAME}(?:\s+\d{{4}})?|(?:19|20)\d\d)\b",
        re.I,
    )


@cache
def _later_date() -> re.Pattern[str]:
    return re.compile(rf"\s(?:in|on)\s+{_date().pattern}", re.I)


_KINDS: Mapping[str, Callable[[MatchContext], list[Thing]]] = {
    "place": _place,
    "named_place": _named_place,
    "known_place": _known_place,
    "nothing": _nothing,
    "titled": _titled,
    "origin": _origin,
    "moved_to": _moved_to,
    "organisation": _organisation,
    "former_employer": _former_employer,
    "name": _name,
    "company": _company,
    "own_name": _own_name,
    "thing": _thing,
    "things": _things,
    "product": _product,
    "possession": _possession,
    "liked": doings.liked,
    "disliked": doings.disliked,
    "preferred": doings.preferred,
    "plan": doings.plan,
    "promise": doings.promise,
    "offer": doings.offer,
    "offer_to_you": doings.offer_to_you,
    "debt": _debt,
    "weight": _weight,
    "medicine": medicines.taken,
    "vehicle": _vehicle,
    "car": _car,
    "trip": _trip,
    "diet": _diet,
    "animal_food": _animal_food,
    "subject": _subject,
    "known_subject": _known_subject,
    "language": _language,
    "work": _work,
    "occupation": _occupation,
    "field_of_work": _field_of_work,
    "birth": _birth,
}


# --- favourites: "my favourite author is Zadie Smith", "the Anchor is my favourite pub"

_FAVOURITES = "favourites"


def favourites(sentence: Sentence) -> Iterator[RuleStatement]:
    """What a sentence calls the speaker's favourite, or no longer does."""
    if not expression(_FAVOURITES, "maybe").search(sentence.text):
        return
    for said in ("is", "inverted", "found", "risen", "said_before", "has_new"):
        for found in expression(_FAVOURITES, said).finditer(sentence.text):
            thing = objects.titled(found.group("it"))
            before = sentence.text[: found.start()].rstrip()
            # "My wife thinks my favourite"; "that said, my favourite" is the speaker's own.
            if thing is None or (is_reported(before) and not before.endswith(",")):
                continue
            verb = " ".join((found.group("verb") or "is").split())
            yield RuleStatement(
                f"favourite {' '.join(found.group('what').split()).lower()}",
                thing,
                holds=expression(_FAVOURITES, "over").match(verb) is None,
                at=sentence.start + found.start(),
                sentence=sentence,
            )


# --- both statements of "switched from Trello to Linear" and "swapped Porto for Lisbon"

_EXCHANGES = "exchanges"
_AN_OBJECT = re.compile(r"(?:the|an?|my|our)\s", re.I)
_TOOL_VERBS = frozenset({"replaced", "dropped", "dumped", "binned", "scrapped", "uninstalled"})
_JOB_VERBS = frozenset({"left", "quit"})


def exchanged(clause: str) -> list[RuleStatement]:
    """What a clause says of the old and of the new; nothing if it exchanges nothing."""
    learnt = expression(_EXCHANGES, "studies").match(clause)
    if learnt:
        return _exchange("studies", *(objects.thing(learnt.group(one)) for one in ("old", "new")))
    lowered = clause.lower()
    leaving = "from" in lowered or "off" in lowered
    doing = expression(_EXCHANGES, "doing").match(clause) if leaving else None
    if doing and doing.group("verb").lower() == doing.group("again").lower():
        return _done_elsewhere(doing)
    moved = expression(_EXCHANGES, "from_to").match(clause) if leaving else None
    swapped = moved or expression(_EXCHANGES, "for").match(clause)
    if swapped is None or expression(_EXCHANGES, "only_for").search(swapped.group("new")):
        return []
    found = _exchanged(swapped, moving=moved is not None)
    again = expression(_EXCHANGES, "back_again").search(swapped.group("new"))
    back = again is not None and swapped.group("old").startswith(again.group("again") or "")
    return (
        [replace(one, holds=not one.holds, begins=not one.holds) for one in found]
        if back
        else found
    )


_DOING: Mapping[str, tuple[str, str]] = {
    "living in": ("lives in", "named_place"),
    "working at": ("works at", "organisation"),
    "working for": ("works at", "organisation"),
    "teaching at": ("works at", "organisation"),
    "working as": ("works as", "work"),
    "using": ("uses", "thing"),
    "studying": ("studies", "subject"),
    "driving": ("drives", "vehicle"),
}


def _done_elsewhere(doing: re.Match[str]) -> list[RuleStatement]:
    """What "went from working at Tesco to working at Aldi" says of both."""
    predicate, kind = _DOING[" ".join(doing.group("verb").lower().split())]
    said = doing.group("verb")
    old, new = (find(kind, MatchContext(said, doing[one], doing[one])) for one in ("old", "new"))
    return _exchange(predicate, old[0], new[0]) if old and new else []


def _exchanged(swapped: re.Match[str], *, moving: bool) -> list[RuleStatement]:
    known = _of_a_kind(swapped)
    if known:
        return known
    if moving and swapped.group("on"):
        # Who moves on from one to another need not live there.
        old, new = (objects.thing(swapped.group(one)) for one in ("old", "new"))
        tools = old is not None and new is not None and (is_product(old) or is_product(new))
        return _exchange("uses", old, new) if tools else []
    if moving and expression(_EXCHANGES, "moving").match(swapped.group("verb")):
        return _moved(swapped)
    if not moving and swapped.group("home") and swapped.group("new_home"):
        # "The flat in Lyon for a house in Annecy"
        return _exchange("lives in", *(objects.place(swapped.group(one)) for one in ("old", "new")))
    return _jobs(swapped.group("old"), swapped.group("new")) or _of_names(swapped)


def _moved(moved: re.Match[str]) -> list[RuleStatement]:
    """By where from and where to: employers, tools, or homes where no office or team moved."""
    old, new = objects.place(moved.group("old")), objects.place(moved.group("new"))
    if any(thing is not None and _is_company(thing) for thing in (old, new)):
        return _exchange("works at", old, new)
    if any(thing is not None and is_product(thing) for thing in (old, new)):
        return _exchange("uses", old, new)
    what = moved.group("what")
    at_home = not what or expression(_EXCHANGES, "whole_life").fullmatch(what)
    return _exchange("lives in", old, new) if at_home else []


def _of_a_kind(swapped: re.Match[str]) -> list[RuleStatement]:
    """By what the two are, whatever the verb: subjects, or well-known employers."""
    both = [objects.thing(swapped.group(one)) for one in ("old", "new")]
    named = [one for one in both if one is not None]
    if len(named) == len(both) and all(is_subject(one) for one in named):
        return _exchange("studies", *both)
    diets = [find("diet", MatchContext("", swapped.group(one), "")) for one in ("old", "new")]
    if all(diets):
        return _exchange("diet is", *(one[0] for one in diets))
    # "The Samsung" is a telephone.
    things = {one.name for one in named if _AN_OBJECT.match(one.phrase)}
    of_tools = swapped.group("verb").lower() in _TOOL_VERBS
    employers = (one for one in named if one.name not in things and not is_product(one))
    if not of_tools and any(map(_is_employer, employers)):
        # "A start-up called Rise"
        return _exchange("works at", both[0], objects.organisation(swapped.group("new")) or both[1])
    return []


def _of_names(swapped: re.Match[str]) -> list[RuleStatement]:
    """By what the two are: cities, tools, or companies after a verb of leaving."""
    old = objects.thing(swapped.group("old"))
    new = objects.organisation(swapped.group("new")) or objects.thing(swapped.group("new"))
    if old is None or new is None:
        return []
    if is_place(old) or is_place(new):
        if swapped.group("verb").lower() in {"went", "gone"}:
            # "I went from Rome to Paris by train"
            return []
        return _exchange("lives in", old, new) if new.name[:1].isupper() else []
    if is_product(old) or is_product(new):
        return _exchange("uses", old, new)
    # "iPhone 15" is a name, too.
    if not all(any(c.isupper() for c in one.name.split()[0]) for one in (old, new)):
        # "Swapped the Yaris for an electric Renault"
        of_cars = [vocabulary().cars.intersection(t.name.casefold().split()) for t in (old, new)]
        return _exchange("drives", old, new) if all(of_cars) else []
    leaving = swapped.group("verb").lower() in _JOB_VERBS
    return _exchange("works at" if leaving else "uses", old, new)


def _is_company(thing: Thing) -> bool:
    return bool(set(thing.name.casefold().split()) & vocabulary().company_words)


def _jobs(old: str, new: str) -> list[RuleStatement]:
    was, is_now = (find("work", MatchContext("", words, words)) for words in (old, new))
    if not (was and is_now):
        return []
    return _exchange("works as", was[0], is_now[0])


def _exchange(predicate: str, old: Thing | None, new: Thing | None) -> list[RuleStatement]:
    began = [RuleStatement(predicate, new, begins=True)] if new else []
    ended = [RuleStatement(predicate, old, holds=False)] if old else []
    return [*began, *ended]
