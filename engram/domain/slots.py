"""Slots: what a piece of knowledge is about, normalised so that two wordings meet.

And so what replaces what: of a predicate that holds one value ("lives in", :func:`is_functional`)
all values share a timeline, and the newest supersedes the older ones; of one that holds many
("likes") each value has its own. The timeline itself is in ``engram/consolidation/timeline.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import Enum

from engram.domain.identity import normalise
from engram.domain.kept import kept
from engram.domain.memories import Slot

USER = "user"
POSSESSING = frozenset({"has", "owns", "drives"})
"""Predicates that say that somebody has something."""
IS_CALLED = "is called"
"""The predicate of somebody's name."""
IS_THE_USERS = "is the user's"
"""Who somebody is to the user: "Leo", "is the user's", "son"."""
OF_THE_USER = f"{USER}'s "
"""With what the subject of a slot begins that is of the user's: "user's cat"."""
WORKS_AT = "works at"
"""For whom somebody works."""
PROMISED = "promised to"
"""The predicate of a promise; its object is what was promised."""
IS_MARRIED_TO = "is married to"
"""The predicate of whoever is a husband or a wife."""
_NO_LONGER = "no longer "
_USER_WORDS = frozenset({"", "i", "me", "we", "user", "the user", "speaker", "the speaker"})
_LEADING_ARTICLES = ("a ", "an ", "the ", "my ", "our ", "his ", "her ", "their ")

_WHEN = ("at", "on", "in")
# One value at a time: the newest event wins.
_FUNCTIONAL = frozenset(
    {
        *("lives in", "works at", "works as", "is called", "is married to", "is from"),
        *("was born in", "was born on"),
    }
)
# The same of anybody and anything, where the form of the words says that there is one value:
# one belongs somewhere, is at one place, is run by somebody, begins at one time, costs so much.
_AFFILIATED = frozenset(
    {
        *("plays for", "races for", "rides for", "studies at", "is enrolled at", "reports to"),
        *("is engaged to", "is a citizen of", "belongs to", "is named after", "died in", "died on"),
        *("runs on", "listens on", "points to", "resolves to", "deploys to"),
        *("costs", "weighs", "is aged", "is scheduled for", "is due on", "expires on"),
        *(
            "takes place on",
            "takes place at",
            "takes place in",
            "runs in",
            "is routed to",
            "drives",
            "is set to",
        ),
        *(f"{verb} {when}" for verb in ("starts", "begins", "ends", "finishes") for when in _WHEN),
        *(f"{verb} {when}" for verb in ("opens", "closes", "leaves", "arrives") for when in _WHEN),
    }
)
_PLACED = tuple(
    "located headquartered hosted stationed buried deployed saved registered installed filed "
    "written held".split()
)
_IN_CHARGE = tuple(
    "owned led run managed headed chaired coached edited maintained operated governed founded "
    "directed designed invented composed authored".split()
)
_FUNCTIONAL_ANYWHERE = (
    _AFFILIATED
    | {f"is {done} in" for done in _PLACED}
    | {f"{is_or_was} {done} by" for is_or_was in ("is", "was") for done in (*_IN_CHARGE, "written")}
)
# "The capital of X is Y": what stands before "is" is one thing, unless there can be several.
_ROLE = re.compile(r"\A(?P<role>[a-z][\w'&/-]*(?: [a-z][\w'&/-]*){0,3}) is")
# The same with the person or thing first, and as a subject of its own.
_ROLE_OF = re.compile(r"is the (?P<role>.+) of")
_ROLE_OF_WHOM = re.compile(r"[Tt]he (?P<role>.+?) of (?P<whom>.+)")
_SEVERAL = frozenset(
    "friend friends hobby interest goal dream concern worry fear problem issue question answer "
    "child son daughter kid brother sister sibling cousin uncle aunt nephew niece grandchild "
    "colleague neighbour neighbor student pupil client customer member fan follower guest pet "
    "dog cat allergy skill strength weakness reason way thing part point one kind sort type "
    "example advantage disadvantage benefit risk idea plan day time moment side aspect fact "
    "truth lesson message result effect cause highlight joy beauty trick secret key rest end "
    "start beginning middle bottom top back front feature option favourite favorite word "
    "difference difficulty challenge feeling thought story memory experience piece bit lot "
    "teammate flatmate roommate housemate classmate coworker workmate teacher mate "
    "pal buddy relative".split()
)
# What is numbered one by one has a number each: the second order's is not the first one's.
_NUMBERED = frozenset(
    "order tracking booking reservation ticket invoice parcel shipment delivery case claim "
    "confirmation transaction receipt flight serial".split()
)
_NUMBERS = frozenset("number no id code reference ref".split())
# A person keeps several of these at once, whatever the object is called.
_FUNCTIONAL_PREFIXES = ("favourite ",)
# What was so from the beginning: the latest word about it counts, not the earliest date.
_TIMELESS = frozenset({"was born in", "was born on", "is called", "is from"})
# Where and when are two things that one is born with.
_BORN = frozenset({"was born", "was born in", "was born on", "was born at"})
# Two predicates of which at most one can hold for the same object.
_OPPOSED = {"dislikes": "likes"}
_SYNONYMS = {
    "live in": "lives in",
    "resides in": "lives in",
    "is based in": "lives in",
    "lives at": "lives in",
    "works for": "works at",
    "is employed by": "works at",
    "is employed at": "works at",
    "has job": "works as",
    "has job title": "works as",
    "is named": "is called",
    "has name": "is called",
    "name is": "is called",
    "married to": "is married to",
    "comes from": "is from",
    "loves": "likes",
    "enjoys": "likes",
    "hates": "dislikes",
    "allergic to": "is allergic to",
    "intends to": "plans to",
    "is studying": "studies",
    **dict.fromkeys(("is using", "switched to"), "uses"),
    "weight is": "weighs",
    **dict.fromkeys(("has died", "passed away", "is dead", "was put down"), "died"),
    **dict.fromkeys(("number is", "phone is", "telephone number is"), "phone number is"),
    **dict.fromkeys(("mobile is", "cell is", "cell number is"), "mobile number is"),
    **dict.fromkeys(("email address is", "e-mail is", "mail is"), "email is"),
    **dict.fromkeys(("website is", "web site is", "homepage is"), "site is"),
    "plays at": "plays for",
    "is enrolled in": "is enrolled at",
    "is a student at": "studies at",
    "answers to": "manager is",
    "is based at": "lives in",
    "is running on": "runs on",
    "is planned for": "is scheduled for",
    "is scheduled on": "is scheduled for",
    "is set for": "is scheduled for",
    "is due by": "is due on",
    "listens on port": "listens on",
    "runs on port": "listens on",
    **{
        f"is {done} in": "is located in"
        for done in ("situated", "stored", "kept", "parked", "housed", "hidden")
    },
    "sits in": "is located in",
    # What is said by a verb or by a role is one question.
    **dict.fromkeys(("is released under", "is licensed under"), "licence is"),
    **dict.fromkeys(("license is", "is available under"), "licence is"),
    **dict.fromkeys(("color is", "is painted", "is coloured", "is colored"), "colour is"),
    **dict.fromkeys(("is majoring in", "majors in"), "major is"),
    **dict.fromkeys(("price is", "cost is"), "costs"),
    **dict.fromkeys(("go to", "goes to", "is posted in"), "is routed to"),
    **dict.fromkeys(("is sent to", "is forwarded to", "is delivered to"), "is routed to"),
    **dict.fromkeys(("is hosted in", "is running in"), "runs in"),
    **dict.fromkeys(("employer is", "is employed with"), "works at"),
    **dict.fromkeys(("job is", "occupation is", "profession is"), "works as"),
    **dict.fromkeys(("reports to", "boss is", "is managed by", "line manager is"), "manager is"),
    **{
        f"is {done} by": f"{role} is"
        for done, role in (
            *(("owned", "owner"), ("led", "lead"), ("headed", "head"), ("chaired", "chair")),
            *(("coached", "coach"), ("edited", "editor"), ("maintained", "maintainer")),
            *(("written", "author"), ("founded", "founder"), ("directed", "director")),
            *(("designed", "designer"), ("composed", "composer"), ("invented", "inventor")),
        )
    },
    **{f"begins {when}": f"starts {when}" for when in _WHEN},
    **{f"finishes {when}": f"ends {when}" for when in _WHEN},
}

# What stores made before hold: names that have since become another's.
_NAMED_BEFORE: dict[str, tuple[str, ...]] = {}
for _words, _meant in _SYNONYMS.items():
    _NAMED_BEFORE[_meant] = (*_NAMED_BEFORE.get(_meant, ()), _words)

# What can take the place of what, where something is said to have begun: "moved to" that of
# where it was. A verb that only says that something changed stands for no value of its own.
_GROUPS: Mapping[str, frozenset[str]] = {
    "where": frozenset(
        {
            *("lives in", "is located in", "runs in", "runs on", "deploys to", "is held in"),
            *("takes place in", "takes place at", "is stationed in", "is deployed in"),
            *("is saved in", "is installed in", "is filed in", "is buried in", "is routed to"),
            *("location is", "venue is", "room is", "office is", "address is", "host is"),
            *("region is", "desk is", "headquarters is", "is headquartered in"),
        }
    ),
    "when": frozenset(
        {
            *("is scheduled for", "is due on", "takes place on", "expires on", "date is"),
            *("day is", "deadline is", "due date is", "time is", "start is"),
            *(f"{verb} {when}" for verb in ("starts", "ends", "opens", "closes") for when in _WHEN),
            *(f"{verb} {when}" for verb in ("leaves", "arrives") for when in _WHEN),
        }
    ),
    "team": frozenset({"plays for", "races for", "rides for", "team is", "club is"}),
    "school": frozenset({"studies at", "is enrolled at", "school is", "university is"}),
    "job": frozenset({"works as"}),
    "work": frozenset({"works at"}),
    "language": frozenset({"is written in", "language is"}),
    "owner": frozenset({"owner is"}),
    "partner": frozenset({"is engaged to", "is married to", "partner is"}),
    "car": frozenset({"drives", "car is"}),
}
_CHANGES: Mapping[str, tuple[str, ...]] = {
    "lives in": ("where",),
    "is located in": ("where",),
    "is scheduled for": ("when",),
    "starts at": ("when",),
    "moved to": ("where",),
    "transferred to": ("school", "team"),
    "signed with": ("team",),
    "became": ("job",),
    "was rewritten in": ("language",),
    "was bought by": ("owner",),
    "is with": ("partner",),
    "got": ("car",),
    "left for": ("work", "team", "school"),
    "changed to": (),
}
_OF_NAMES = frozenset({"lives in", "plays for", "studies at", "works at"})


@kept(4096)
def slot_of(
    subject: str | None, predicate: str | None, what: str | None, *, holds: bool = True
) -> Slot | None:
    """The slot of a statement, or None where it has no predicate.

    An ending has a slot of its own, "no longer" before the predicate, so that it
    can be told from what it ends and can itself be replaced.
    """
    relation = _predicate(predicate or "")
    if not relation:
        return None
    if relation in _BORN:
        relation = "was born on" if any(c.isdigit() for c in what or "") else "was born in"
    about = normalise(subject or "")
    if holds:
        named = relation
    else:
        named = relation if relation.startswith(_NO_LONGER) else _NO_LONGER + relation
    return Slot(
        subject=USER if about in _USER_WORDS else about,
        predicate=named,
        object=_bare(normalise(what or "")),
    )


def ends_something(slot: Slot) -> bool:
    """Whether the slot says that something is no longer so."""
    return slot.predicate.startswith(_NO_LONGER)


def held_predicate(slot: Slot) -> str:
    """The predicate without "no longer"."""
    return slot.predicate.removeprefix(_NO_LONGER)


def is_functional(slot: Slot) -> bool:
    """Whether one subject has at most one current value here."""
    held = held_predicate(slot)
    return (
        held in _FUNCTIONAL
        or held in _FUNCTIONAL_ANYWHERE
        or held.startswith(_FUNCTIONAL_PREFIXES)
        or _is_role(held)
    )


def is_numbered(slot: Slot) -> bool:
    """Whether one subject may have several of what has this number or reference, an order say."""
    *_, what, number, verb = ("", "", *held_predicate(slot).split())
    return verb == "is" and number in _NUMBERS and what in _NUMBERED


def role_slot(role: str) -> str | None:
    """The predicate of "the <role> of X is Y"; None where X can have several of them.

    Args:
        role: What Y is to X, in lower case: "capital", "tech lead".
    """
    named = f"{role} is"
    return named if _is_role(named) else None


def by_role(
    subject: str | None, predicate: str | None, what: str | None
) -> tuple[str | None, str | None, str | None]:
    """Subject, predicate and object, where "the author of X is Y" was put in another way.

    "Y is the author of X" and "the author of X" "is" Y become X, "author is" and Y, so that
    the next author replaces Y. What somebody says of themselves stays theirs.

    Args:
        subject: Whom or what it is about.
        predicate: The relation.
        what: What the relation holds.
    """
    relation = normalise((predicate or "").replace("_", " "))
    said = _ROLE_OF.fullmatch(relation)
    if said is not None and subject and what and normalise(subject) not in _USER_WORDS:
        named = role_slot(said.group("role"))
        return (what, named, subject) if named else (subject, predicate, what)
    about = _ROLE_OF_WHOM.fullmatch(" ".join((subject or "").split()))
    if relation in {"is", "is called", "is named"} and about is not None:
        named = role_slot(normalise(about.group("role")))
        return (about.group("whom"), named, what) if named else (subject, predicate, what)
    return subject, predicate, what


def wordings() -> frozenset[str]:
    """The predicates by which a sentence says of anybody or anything what can have one value."""
    said = {
        words
        for words, meant in _SYNONYMS.items()
        if not _is_role(words) and (meant in _FUNCTIONAL | _FUNCTIONAL_ANYWHERE or _is_role(meant))
    }
    return frozenset((_FUNCTIONAL - {"is from"}) | _FUNCTIONAL_ANYWHERE | said)


def may_replace(slot: Slot) -> bool:
    """Whether it can be the new value of another predicate, where it is said to have begun."""
    return slot.predicate in _CHANGES and slot.subject != USER


def replaced_by(slot: Slot, said: str, others: Iterable[Slot]) -> Slot | None:
    """The slot whose value something new takes, where the words only say that it changed.

    "The review moved to Friday" is about its day if a day is known of it, and "the review
    moved to the annex" about its room. Where several fit, or none, nobody knows.

    Args:
        slot: What is said to have begun: "moved to", "is scheduled for".
        said: The new value as it was said, with its capitals.
        others: What is known of the same subject, current or not.
    """
    known = [one for one in others if is_functional(one) and not ends_something(one)]
    if not may_replace(slot) or any(one.predicate == slot.predicate for one in known):
        return None
    kind = kind_of_value(said)
    alike = [one for one in known if kind_of_value(one.object) is kind]
    groups = _CHANGES[slot.predicate]
    if not groups and kind is ValueKind.OTHER:
        return None
    named = said.removeprefix("the ")[:1].isupper()
    fitting: dict[str, Slot] = {}
    for one in alike:
        grouped = not groups or any(one.predicate in _GROUPS[group] for group in groups)
        if grouped and (named or one.predicate not in _OF_NAMES):
            fitting.setdefault(one.predicate, one)
    return next(iter(fitting.values())) if len(fitting) == 1 else None


class ValueKind(Enum):
    """What a value looks like; one of a kind does not take the place of another kind."""

    DAY = "day"
    CLOCK = "clock"
    NUMBER = "number"
    OTHER = "other"


def kind_of_value(text: str) -> ValueKind:
    """What a value looks like, by how it begins."""
    bare = _bare(normalise(text))
    return next((kind for kind, shape in _KINDS if shape.match(bare)), ValueKind.OTHER)


_KINDS = (
    (
        ValueKind.CLOCK,
        re.compile(
            r"(?:\d{1,2}[:.]\d\d(?![\d.])|\d{1,2} ?[ap]\.?m|noon\b|midnight\b|"
            r"(?:half|(?:a )?quarter|ten|twenty|five) (?:past|to) \w|\w{3,6} o'clock|"
            r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\Z)"
        ),
    ),
    (
        ValueKind.DAY,
        re.compile(
            r"(?:(?:next |this )?(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|"
            r"(?:\d{1,2}(?:st|nd|rd|th)? (?:of )?)?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|"
            r"dec)[a-z]{0,6}\.?(?: \d|\Z)|\d{4}-\d\d|\d{1,2}(?:st|nd|rd|th)\b|tomorrow\b|"
            r"next (?:week|month|year)\b|(?:end|start|beginning|middle) of )"
        ),
    ),
    (ValueKind.NUMBER, re.compile(r"(?:about |around |only |just )?[$€£]? ?v?\d")),
)


def is_timeless(slot: Slot) -> bool:
    """Whether being said later, rather than happening later, decides."""
    return held_predicate(slot) in _TIMELESS


def timeline_key(slot: Slot) -> tuple[str, ...]:
    """What two memories share if one can replace the other."""
    held = held_predicate(slot)
    family = _OPPOSED.get(held, held)
    if is_functional(slot):
        return slot.subject, family
    return slot.subject, family, slot.object


def related_predicates(slot: Slot) -> tuple[str, ...]:
    """Every stored predicate that can share a timeline with this slot."""
    held = held_predicate(slot)
    family = _OPPOSED.get(held, held)
    names = [family, *(one for one, other in _OPPOSED.items() if other == family)]
    return stored_as(*(prefix + name for name in names for prefix in ("", _NO_LONGER)))


def stored_as(*predicates: str) -> tuple[str, ...]:
    """Predicates as a store may hold them: each, and the names that it had before.

    Args:
        predicates: As :func:`slot_of` names them now.
    """
    found: list[str] = []
    for predicate in predicates:
        held = predicate.removeprefix(_NO_LONGER)
        prefix = predicate[: len(predicate) - len(held)]
        found += (prefix + name for name in (held, *_NAMED_BEFORE.get(held, ())))
    return tuple(found)


def named_now(predicate: str) -> str:
    """The predicate by its present name, so that what was stored before meets what is told now."""
    held = predicate.removeprefix(_NO_LONGER)
    return predicate[: len(predicate) - len(held)] + _SYNONYMS.get(held, held)


def _is_role(predicate: str) -> bool:
    found = _ROLE.fullmatch(predicate)
    if found is None:
        return False
    words = found.group("role").split()
    return words[-1] not in _SEVERAL and not _is_plural(words[-1])


def _is_plural(noun: str) -> bool:
    """Whether it looks like several; "headquarters" and "boss" do not."""
    return noun.endswith("s") and not noun.endswith(("ss", "us", "is", "headquarters"))


def _predicate(text: str) -> str:
    words = normalise(text.replace("_", " "))
    held = words.removeprefix(_NO_LONGER)
    prefix = words[: len(words) - len(held)]
    if held.startswith("favorite "):
        held = "favourite " + held.removeprefix("favorite ")
    return named_now(prefix + held)


def _bare(text: str) -> str:
    for article in _LEADING_ARTICLES:
        if text.startswith(article) and len(text) > len(article):
            return text[len(article) :]
    return text
