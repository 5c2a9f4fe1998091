"""Plain statements about anybody and anything: "The capital of X is Y", "Tom plays for Z".

A sentence is taken apart at the first words that are a predicate with one value at a time
(:func:`engram.domain.slots.wordings`). What stands before is the subject if it names somebody or
something that both sides know, what follows is the value if the sentence ends with it. Whatever
does not fit is left alone: a statement that is not understood ends nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

from engram.domain.slots import role_slot, wordings
from engram.language.calendar import MONTH, MONTH_NAME, WEEKDAY
from engram.language.statements.clauses import Sentence, opened, sentences
from engram.language.statements.cutting import Thing
from engram.language.statements.objects import is_origin, is_product
from engram.language.statements.slips import said_again
from engram.language.text import FULL_STOP, SIGNS_APART, STREET_WORD
from engram.language.vocabulary import alternatives, load, vocabulary, words

_DATA = "declared"
_LONGEST_SUBJECT = 9
_LONGEST_VALUE = 8
_LONGEST_ROLE = 4
_LONGEST_LOWER_VALUE = 2
_FEW = 2
# Words that can stand between a subject and the end of its predicate.
_LONGEST_PREDICATE = 8
# What follows is another statement: "My wife works at Siemens and I'm a photographer".
_GOES_ON = r"\s(?:and|but|so|while)\s(?=(?i:i|i'm|i've|my|we|we're|our|he|she|they|he's|she's)\s)"
_SIGNS = re.compile(
    rf"{_GOES_ON}|[;()\[\]!?\x00…—\"“”]|{SIGNS_APART.pattern}|[,:](?!\d)|\s-\s|{FULL_STOP}(?=\s)"
)
_NUMBER = re.compile(r"[$€£#+]?\d[\w.,:/%€$£-]*")
_CLOCK = re.compile(
    r"(?:\d{1,2}(?:[:.]\d\d)?(?:\s?[ap]\.?m\.?)?|noon|midnight|\w{1,10} o'clock|"
    r"(?:half|(?:a )?quarter|ten|twenty|five) (?:past|to) \w{1,9}|"
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b(?! \w))\b",
    re.I,
)
_DATED = re.compile(
    rf"(?:the (?:\d|first|second|third|last)|{WEEKDAY}|{MONTH} \d)",
    re.I,
)
_PRICE = re.compile(
    r"(?:about |around |only |just )?(?:[$€£]\s?\d|\d|(?:one|two|three|four|five|ten|a)\b)", re.I
)
_NOT_THAT = re.compile(
    r",?\s+(?:and\s+)?not\s+(?:in |at |for |by |on |as |an? |the )?"
    r"(?P<old>[^,;:()!?]{1,60})\Z"
)
_FROM_TO = re.compile(r"(?P<old>[^,;:()!?]{1,60}?)\s+to\s+(?P<new>.{1,80})\Z")
_WHEN = re.compile(
    r"(?<!\bthe)\s+(?:since|as of|until|starting|effective|last|this|next|earlier|yesterday|"
    rf"today|two|three|a few|a couple|in (?:19|20)\d\d|on \d|in {MONTH_NAME})\b.*\Z",
    re.I,
)


SPEAKER = "I"
"""The subject of "My shoe size is 42"."""


@dataclass(frozen=True, slots=True)
class Declared:
    """What a sentence states of somebody or something, in so many words.

    Attributes:
        subject: Whom or what, without article: "staging server"; or :data:`SPEAKER`.
        predicate: What of them: "runs on", "capital is".
        value: With its article: "the blue team".
        content: The statement as a sentence.
        sentence: Where it stands.
        holds: False for what is no longer, or not, so.
        begins: Whether it says that it began.
    """

    subject: str
    predicate: str
    value: str
    content: str
    sentence: Sentence
    holds: bool = True
    begins: bool = False


def declared(text: str) -> list[Declared]:
    """Every plain statement of a turn about somebody or something, in order.

    Args:
        text: The turn.
    """
    found = [one for sentence in sentences(text) for one in _anywhere_in(sentence)]
    return [mended(one, text) for one in found] if found else found


def mended(one: Declared, text: str) -> Declared:
    """With the value that takes its value back at once: "is May 3rd, no sorry, May 13th"."""
    start = text.find(one.value, one.sentence.start)
    value = (
        said_again(one.value, text, start + len(one.value)) if one.holds and start >= 0 else None
    )
    if value is None:
        return one
    return replace(one, value=value, content=f"{one.content.rpartition(one.value)[0]}{value}.")


def _anywhere_in(sentence: Sentence) -> Iterator[Declared]:
    """What it states, or what it goes on to say of the speaker's own: "..., my bank is Lunar"."""
    found = list(_in_sentence(sentence))
    own = not found and (" my " in sentence.text or " our " in sentence.text)
    later = _OWN_LATER.search(sentence.text) if own else None
    before = sentence.text[: later.start()].split()[-1:] if later else []
    # "She said, my bank is Lunar": whose it is, only who was quoted knows.
    if later is not None and vocabulary().reporting.isdisjoint(map(str.lower, before)):
        end = later.end()
        of_own = _in_sentence(Sentence(sentence.text[end:], sentence.start + end))
        found = [replace(one, sentence=sentence) for one in of_own if one.subject == SPEAKER]
    yield from found


_OWN_LATER = re.compile(
    r"(?:[,;:–—]\s+(?:(?:so|and|but)\s+)?|\s(?:so|and|but)\s+)"
    r"(?=(?:my|our)\s+(?:[a-z-]+\s+){0,1}[a-z-]+(?:'s|\s+is)\s+(?:now\s+)?(?-i:[A-Z])|"
    r"(?-i:(?!I\b)[A-Z])[\w.'-]*(?:\s+(?-i:[A-Z])[\w'-]*){0,2}\s+is\s+(?:now\s+)?(?:my|our)\s+"
    r"(?:manager|boss|supervisor|landlord|landlady|dentist|doctor|gp|therapist|lawyer|accountant)\b)",
    re.I,
)


def _in_sentence(sentence: Sentence) -> Iterator[Declared]:
    _, said = opened(sentence)
    bank = _BANKS_WITH.match(said) if " with " in said else None
    if bank is not None:
        yield made(sentence, SPEAKER, "bank is", bank["value"], said="my bank")
        return
    said = _HAS.sub(" is ", _REPORTED.sub("", without_openings(said))).strip(" .,")
    if "'s " in said:
        said = _IS.sub(r"\g<role> is ", said, count=1)
    denied = _NOT_THAT.search(said)
    if denied:
        said = said[: denied.start()]
    spoken = said.split()
    for at in range(1, min(len(spoken), _LONGEST_SUBJECT + 1)):
        found = _predicate_at(spoken, at)
        if found is None:
            continue
        rest = " ".join(spoken[found.end :])
        for one in _read(sentence, spoken[:at], found, rest):
            yield one
            if denied and one.holds and _is_thing(old := denied.group("old").strip()):
                yield _instead(one, old)
        return


# "Mum says Tom lives in Oslo", "Tom's working at Shell".
_REPORTED = re.compile(
    r"\A(?:(?:(?i:my|our) [a-z]+|(?!I\b)[A-Z][a-z]+) "
    r"(?:says|said|(?:tells|told) (?:me|us)|mentioned)|"
    r"I (?:hear|heard|(?:just )?learned|found out)) (?:that )?(?=(?i:my|our|the)\b|[A-Z])"
)
# "I bank with Lunar"
_BANKS_WITH = re.compile(
    r"(?:I|[Ww]e)(?:'ve| have)? (?:now |still |always |currently )?bank(?:ed)? with "
    r"(?P<value>[A-Z][\w'&-]*(?: [A-Z][\w'&-]*){0,2})"
    r"(?=\s*(?:\Z|[,.;!]|now\b|these\b|since\b|and\b|but\b))"
)
# "My doctor's Dr. Haddad", "our flight's at 9:15"; but "my doctor's Honda broke down".
_IS = re.compile(
    r"\A(?P<role>(?:[Mm]y|[Oo]ur) [a-z][a-z-]{1,20}(?: [a-z][a-z-]{1,20})?)'s "
    r"(?=(?:(?:Dr|Mr|Mrs|Ms|Prof)\.? )?"
    r"(?![A-Z]\w*(?:ish|ese|ian|can|ean|eli|ani|ch|ss|an)\b|Greek\b|Czech\b)"
    r"[A-Z][\w'-]+(?: [A-Z][\w'-]+){0,2}\s*(?:\Z|[,.;!]|now\b)"
    r"|(?:(?:at|on|in|from) |[$€£])\d)"
)
_HAS = re.compile(r"(?<=\w)'s (?=(?:(?:now|currently) )?(?:living|working|studying|playing) )")


class _Said(NamedTuple):
    """The words of a predicate, which word follows them, and whether they say that it holds."""

    words: str
    end: int
    holds: bool


_SINGULAR = {"are": "is", "were": "was"}
# "The shops close at 8"; without "the" it may be an order.
_OF_SEVERAL = {one: f"{one}s" for one in ("open", "close", "leave", "start", "arrive")}
_ANY_MORE = re.compile(r"\b(?:any ?more|any longer)\b", re.I)


def _predicate_at(spoken: Sequence[str], at: int) -> _Said | None:
    """The longest predicate that begins at a word."""
    found: _Said | None = None
    holds, place, kept = _begun_with(spoken, at)
    while place < min(len(spoken), at + _LONGEST_PREDICATE):
        word = spoken[place].lower()
        if word == "no" and spoken[place + 1 : place + 2] == ["longer"]:
            holds, place = False, place + 2
        elif word in words(_DATA, "adverbs"):
            place += 1
        else:
            place += 1
            kept.append(_SINGULAR.get(word, word))
        told = " ".join(kept)
        if told and told not in _beginnings():
            break
        if told in _predicates():
            found = _Said(told, place, holds)
    return found


def _begun_with(spoken: Sequence[str], at: int) -> tuple[bool, int, list[str]]:
    """Whether it holds, where its words go on, and the first of them as it is said of one."""
    word, then = spoken[at].lower(), spoken[at + 1].lower() if at + 1 < len(spoken) else ""
    several = word in _OF_SEVERAL and spoken[0].lower() in words(_DATA, "determiners")
    if several:
        return True, at + 1, [_OF_SEVERAL[word]]
    if word in {"isn't", "aren't", "doesn't", "don't"} and _ANY_MORE.search(" ".join(spoken[at:])):
        be = word in {"isn't", "aren't"}
        return False, at + 1 if be else at + 2, ["is" if be else f"{then}s"]
    return True, at, []


def _read(sentence: Sentence, before: Sequence[str], said: _Said, rest: str) -> Iterator[Declared]:
    if said.words == "is":
        yield from _role(sentence, before, rest, holds=said.holds)
        return
    if said.words in _MOVES:
        yield from _moved(sentence, before, said.words, rest)
        return
    if said.words in _BEGINNINGS:
        yield from _begun(sentence, before, _BEGINNINGS[said.words], rest)
        return
    called = _going_on().get(said.words, said.words)
    subject, value = subject_of(before, called), value_of(rest)
    if subject is None or value is None or not fits_predicate(called, value):
        return
    if called != said.words and not value[:1].isupper():
        # "Tom is working at the library" says where he is today.
        return
    if said.words == "runs in" and before[0].lower() not in words(_DATA, "determiners"):
        # Who runs in the park may run elsewhere tomorrow.
        return
    if called == "works as":
        # "A nurse in Ghent" and "a nurse in Lyon" do the same work.
        value = _ELSEWHERE_TOO.split(value, maxsplit=1)[0]
    if called in _EMPLOYED:
        value = _AS_WHAT.split(value, maxsplit=1)[0]
    one = made(sentence, subject, said.words, value, holds=said.holds)
    yield replace(one, predicate=_placed().get(called, called))


_EMPLOYED = frozenset({"works at", "works for", "is employed at", "is employed by"})
_AS_WHAT = re.compile(r"\sas\s(?:an?|the|head|part)\b")
_ELSEWHERE_TOO = re.compile(r"\s(?:in|at|for|with)\s")
_MOVES = frozenset(
    {"moved to", "has moved to", "moved from", "has moved from", "relocated to", "has relocated to"}
)
# What somebody began to do: "Ana was hired by Acme" says where Ana works.
_BEGINNINGS = {
    **dict.fromkeys(("settled in", "has settled in", "moved back to"), "lives in"),
    **dict.fromkeys(("was hired by", "got a job at", "took a job at"), "works at"),
    **dict.fromkeys(("started working at", "started working for"), "works at"),
    **dict.fromkeys(("started studying at", "enrolled at", "has enrolled at"), "studies at"),
    **dict.fromkeys(("started playing for", "has signed for", "signed for"), "plays for"),
    **dict.fromkeys(("got married to", "has married", "married"), "is married to"),
    **dict.fromkeys(("got engaged to",), "is engaged to"),
}


def _moved(sentence: Sentence, before: Sequence[str], said: str, rest: str) -> Iterator[Declared]:
    """So that "Tom moved to Oslo" says where Tom lives; a thing that is moved lives nowhere."""
    from_to = _FROM_TO.match(rest) if said.endswith("from") else None
    if from_to is None and said.endswith("from"):
        return
    place = value_of(from_to.group("new") if from_to else rest)
    subject = subject_of(before, "lives in")
    if subject is None or place is None or not (subject[:1].isupper() and place[:1].isupper()):
        return
    if _WEEKDAYS.fullmatch(place):
        yield made(sentence, subject, "is scheduled for", place, begins=True)
        return
    # "Work moved from Zoom to Teams"
    does = "uses" if is_product(Thing(place, place)) else "lives in"
    new = made(sentence, subject, does, place, begins=True)
    yield new
    old = value_of(from_to.group("old")) if from_to else None
    if old is not None and old[:1].isupper():
        yield _instead(new, old)


# "Book club has moved to Thursdays"
_WEEKDAYS = re.compile(rf"{WEEKDAY}s?(?: at (?:{_CLOCK.pattern}))?", re.I)


def _begun(
    sentence: Sentence, before: Sequence[str], predicate: str, rest: str
) -> Iterator[Declared]:
    subject, value = subject_of(before, predicate), value_of(rest)
    if subject and value and subject[:1].isupper() and value[:1].isupper():
        yield made(sentence, subject, predicate, value, begins=True)


def _role(
    sentence: Sentence, before: Sequence[str], rest: str, *, holds: bool
) -> Iterator[Declared]:
    """What is said with no more than "is": "The capital of X is Y", "Y is the capital of X"."""
    value = value_of(rest)
    left = role_in(before)
    if left is not None:
        role, whose = left
        predicate = role_slot(role)
        if role in _WORK and value and value.startswith(("at ", "with ")) and whose != SPEAKER:
            # "Ana's new job is at Shell"
            job = made(sentence, whose, "works at", value, said=" ".join(before), holds=holds)
            yield replace(job, value=value.split(" ", 1)[1])
            return
        of_people = not is_role_of_things(role)
        if predicate and value and names_one(role, value) and not (of_people and is_origin(value)):
            yield made(sentence, whose, predicate, value, said=" ".join(before), holds=holds)
        return
    if value and (where := _whereabouts(value)) and (what := subject_of(before, where)):
        # "From Monday standup is at 10" names no such thing.
        few = len(before) <= _FEW
        plain = _STREET.search(value) or (few and _AT_A_TIME.fullmatch(value))
        if holds and (plain or before[0].lower() in words(_DATA, "determiners")):
            yield replace(
                made(sentence, what, "is", value), predicate=where, value=value.split(" ", 1)[1]
            )
        return
    said = without_closing(rest).split()
    titled = _first(rest).lower() in words(_DATA, "titles") and "of" in said
    right = role_in(["the", *said] if titled else said)
    who = subject_of(before, "is")
    if right is None or who is None or not who[:1].isupper():
        return
    role, whose = right
    predicate = role_slot(role)
    if predicate and not _is_one_of_several(role.split()):
        named = [w for w in without_closing(rest).split() if w not in words(_DATA, "present")]
        content = f"{who} is{'' if holds else ' no longer'} {' '.join(named)}."
        yield Declared(whose, predicate, who, content, sentence, holds)


_CHOICES = frozenset({"supplier", "provider", "vendor", "insurer", "contractor", "carrier"})
_WORK = frozenset({"job", "position", "gig"})
_AT_A_TIME = re.compile(rf"at (?:{_CLOCK.pattern})|on {_WEEKDAYS.pattern}", re.I)
_NUMBERED = re.compile(r"(?:room|floor|building|hall|desk|drawer|shelf|gate|bay) (?:\d|[A-Z]\b)")
_STOREY_OR_STREET = re.compile(
    rf"\b(?:floor|storey|level|drawer|shelf|row)\b|\A\d+\w? [A-Z].* {STREET_WORD}\Z"
)
_STREET = re.compile(rf"\A(?:on|in|at) (?:\d+ )?[A-Z].* {STREET_WORD}\Z")


def _whereabouts(value: str) -> str | None:
    """What "is under the mat" and "is on Monday" say of a thing: where it is, or when."""
    where, _, rest = value.partition(" ")
    if where not in {"in", *_ELSEWHERE} or not rest:
        return None
    timed = _CLOCK.match(rest) or _NUMBER.match(rest) or _DATED.match(rest)
    if timed and not _STOREY_OR_STREET.search(rest):
        return "is scheduled for"
    numbered = _NUMBERED.match(rest) is not None
    named = (
        rest[:1].isupper()
        or rest[:1].isdigit()
        or numbered
        or _first(rest) in words(_DATA, "determiners")
    )
    return (
        "is located in"
        if named and rest.rpartition(" ")[-1] not in words(_DATA, "nowhere")
        else None
    )


def role_in(spoken: Sequence[str]) -> tuple[str, str] | None:
    """Role and owner in "the capital of X" and "X's capital"."""
    lowered = [word.lower() for word in spoken]
    owned = next((n for n, word in enumerate(lowered) if word.endswith(("'s", "s'"))), None)
    if owned is not None and owned < len(spoken) - 1:
        whose = [*spoken[:owned], spoken[owned].removesuffix("'s").removesuffix("'")]
        return _role_of(lowered[owned + 1 :], whose)
    if lowered[:1] in (["my"], ["our"]) and not _is_one_of_several(lowered):
        return _role_of(lowered[1:], [SPEAKER], plain=spoken[1:])
    if lowered[:1] != ["the"]:
        return None
    joint = next((n for n, word in enumerate(lowered) if word in words(_DATA, "owners")), None)
    if joint is None or joint < 2:  # noqa: PLR2004 - an article and a noun come before
        return None
    return _role_of(lowered[1:joint], spoken[joint + 1 :], plain=spoken[1:joint])


def _role_of(
    role: Sequence[str], whose: Sequence[str], *, plain: Sequence[str] = ()
) -> tuple[str, str] | None:
    named = [word for word in role if word not in words(_DATA, "present")]
    plainly = whose if len(whose) > 1 or whose == [SPEAKER] else ["the", *whose]
    owner = SPEAKER if list(whose) == [SPEAKER] else subject_of(plainly, "is")
    former = words(_DATA, "former").intersection(named)
    capitals = any(word[:1].isupper() and not word.isupper() for word in plain)
    if owner is None or former or capitals or not 0 < len(named) <= _LONGEST_ROLE:
        return None
    return (" ".join(named), owner) if all(map(_WORD.fullmatch, named)) else None


def is_held_by_one(role: str) -> bool:
    """Whether one has one at a time, and may have another later: "boss", not "mother"."""
    return role.rpartition(" ")[-1] in words(_DATA, "succeeded")


def is_role_of_things(role: str) -> bool:
    """Whether it is a choice rather than a person: "supplier", not "boss"."""
    word = role.rpartition(" ")[-1]
    people = vocabulary().relations | words(_DATA, "held_by_one") | words(_DATA, "titles")
    return (word not in people and not word.endswith(("er", "or", "ist"))) or word in _CHOICES


def _is_one_of_several(role: Sequence[str]) -> bool:
    """Whether it names somebody of whom one can have more than one: "sister", not "manager"."""
    if not vocabulary().relations.intersection(role):
        return False
    return role[-1] not in words(_DATA, "held_by_one") or "ex" in role


_WORD = re.compile(r"[a-z][\w/&-]*")


def subject_of(before: Sequence[str], predicate: str) -> str | None:
    """What is spoken of, without its article; None unless it is one thing that is known."""
    spoken = [word for word in before if word.lower() not in {"now", "currently"}]
    if not 0 < len(spoken) <= _LONGEST_SUBJECT or _SIGNS.search(" ".join(spoken)):
        return None
    lowered = [word.lower() for word in spoken]
    determined = lowered[0] in words(_DATA, "determiners")
    priced = lowered[0] in {"a", "an"} and predicate in _PRICED and "for" in lowered
    bare, low = (spoken[1:], lowered[1:]) if determined or priced else (spoken, lowered)
    if not bare or words(_DATA, "no_subject").intersection(_without_and(bare)):
        return None
    if lowered[0] in {"my", "our"} and _is_one_of_several(low):
        # "My sister": which of them, nobody knows.
        return None
    named = bare[0][:1].isupper() or bare[0][:1].isdigit()
    shaped = all(_NAME_WORD.fullmatch(word) for word in bare)
    named = named or (predicate in _OF_THINGS and _is_plain(low))
    unknown = not (determined or priced or named or any(w.endswith("'s") for w in low))
    if unknown or not shaped or low[0] in _VERBAL or (low[0] in {"a", "an"} and not priced):
        return None
    return " ".join(bare)


_OF_THINGS = frozenset(
    {
        "is scheduled for",
        "is kept in",
        "is stored in",
        "is located in",
        "is set to",
        "runs on",
        "costs",
        "moved to",
    }
    | {
        f"{verb} {when}"
        for verb in ("starts", "begins", "ends", "finishes")
        for when in ("at", "on")
    }
)
_LONGEST_PLAIN = 3


def _is_plain(low: Sequence[str]) -> bool:
    """Whether it can be a thing that is named without an article: "standup", "signing cert"."""
    return (
        len(low) <= _LONGEST_PLAIN
        and all(_WORD.fullmatch(word) for word in low)
        and not vocabulary().pronouns.intersection(low)
        and not low[-1].endswith(("ing", "ed", "ly"))
    )


def _without_and(spoken: Sequence[str]) -> list[str]:
    """The words in lower case, but for the "and" inside of a name: "Salt and Cedar"."""
    inner = range(1, len(spoken) - 1)
    return [
        word.lower()
        for n, word in enumerate(spoken)
        if not (
            word == "and"
            and n in inner
            and spoken[n - 1][0].isupper()
            and spoken[n + 1][0].isupper()
        )
    ]


_NAME_WORD = re.compile(r"[\w&.+#/'-]+")
_VERBAL = frozenset("being having going getting doing making is was do does did can will".split())
_PRICED = frozenset({"costs", "weighs"})


def value_of(rest: str) -> str | None:
    """What the sentence ends with, if it is a name, a number or a thing."""
    text = without_closing(rest)
    return text if _is_thing(text) else None


def without_closing(rest: str) -> str:
    """Without what says when: "Ajax these days", "Porto since May"."""
    text = _SIGNS.split(rest, maxsplit=1)[0].strip(" .")
    if _SIGNS.search(rest) and _NEW_CLAUSE.match(rest[len(text) :].lstrip(" ,.")):
        text = text.strip()
    before = ""
    while text != before:
        before = text
        text = _closings().sub("", text).strip(" .")
    return _WHEN.sub("", text).strip()


_NEW_CLAUSE = re.compile(r"(?:and|but|so|which|who|where|because|not)\b", re.I)


def _is_thing(text: str) -> bool:
    spoken = text.split()
    if not 0 < len(spoken) <= _LONGEST_VALUE:
        return False
    low = [word.lower() for word in spoken]
    if low[0] in _NO_VALUE or {"and", "or", "but", "because", "that", "which", "who"} & set(low):
        return False
    return not vocabulary().pronouns.difference({"one", "to", "the"}).intersection(low)


_NO_VALUE = frozenset(
    "not no never so very too quite really just about going being having as like what how why when "
    "where because if also still probably maybe perhaps more less much many several some any "
    "different various both either neither another other others far hard".split()
)


def _first(text: str) -> str:
    return text.partition(" ")[0]


def names_one(role: str, value: str) -> bool:
    """Whether the value says which, and not of what kind: "Lisbon", not "lovely"."""
    first = _first(value)
    low = first.lower()
    if low in {"a", "an"}:
        return False
    if first[:1].isupper() or _NUMBER.match(first) or low in words(_DATA, "determiners"):
        return True
    if first in {"on", "at", "in"}:
        where = value.partition(" ")[-1]
        return where[:1].isupper() or bool(_NUMBER.match(where.removeprefix("the ")))
    few = len(value.split()) <= _LONGEST_LOWER_VALUE
    named = role.rpartition(" ")[-1] in words(_DATA, "named_roles")
    return named and few and low not in words(_DATA, "opinions")


def fits_predicate(predicate: str, value: str) -> bool:
    """Whether the value is of the kind that the predicate takes."""
    first, last, low = _first(predicate), predicate.rpartition(" ")[-1], _first(value).lower()
    if first in _TIMED and last in {"at", "on", "in"}:
        return _is_time(value, clock=last == "at")
    fits = True
    if predicate in _PRICED:
        fits = bool(_PRICE.match(value))
    elif predicate == "works as":
        fits = low in {"a", "an", "the"} or value[:1].islower()
    elif predicate == "drives":
        # A car by its make; a lorry for a living is something else.
        fits = low in {"a", "an"} and value.partition(" ")[-1][:1].isupper()
    elif predicate in {"go to", "goes to", "is posted in"}:
        fits = value.startswith(("#", "@"))
    elif predicate in {"is painted", "is coloured", "is colored", "is available under"}:
        fits = low not in vocabulary().thing_prepositions and not low.endswith("ly")
    elif predicate in _OF_PLACES:
        fits = value[:1].isupper() or bool(_NUMBER.match(value)) or " " in value
    return fits


def _is_time(value: str, *, clock: bool) -> bool:
    if clock:
        return bool(_CLOCK.match(value))
    return value[:1].isupper() or _first(value) == "the" or bool(_NUMBER.match(value))


_TIMED = frozenset("starts begins ends finishes opens closes leaves arrives takes expires".split())
_OF_PLACES = frozenset({"lives in", "works at", "studies at", "plays for", "is based in"})


def made(
    sentence: Sentence,
    subject: str,
    predicate: str,
    value: str,
    *,
    said: str = "",
    holds: bool = True,
    begins: bool = False,
) -> Declared:
    """A statement with its sentence.

    Args:
        sentence: Where it stands.
        subject: Of whom or what.
        predicate: What of them.
        value: What it is.
        said: Subject and role in words, where the predicate is one: "the rent of the flat".
        holds: False for what is no longer so.
        begins: Whether it says that it began.
    """
    who = said or _called(subject, sentence.text)
    told = _worded("is" if said else predicate, holds=holds)
    content = f"{who[:1].upper()}{who[1:]} {told} {value}."
    return Declared(subject, predicate, value, content, sentence, holds, begins)


def _called(subject: str, text: str) -> str:
    """The subject with the article that it has in the sentence."""
    at = text.find(subject)
    before = text[:at].split()[-1:] if at > 0 else []
    if before and before[0].lower() in words(_DATA, "determiners") | {"a", "an"}:
        return f"{before[0].lower()} {subject}"
    return subject


def _instead(one: Declared, old: str) -> Declared:
    """What ended by the same breath: "lives in Oslo, not Bergen"."""
    start, _, _ = one.content.rpartition(one.value)
    verb = "is" if one.predicate.endswith(" is") else one.predicate
    who = start.rstrip().removesuffix(verb).rstrip()
    gone = f"{who} {_worded(verb, holds=False)} {old}."
    return Declared(one.subject, one.predicate, old, gone, one.sentence, holds=False)


def _worded(verb: str, *, holds: bool) -> str:
    """The words of a predicate, or of its end: "is no longer based in", "no longer plays for"."""
    if holds:
        return verb
    return f"is no longer{verb[2:]}" if _first(verb) == "is" else f"no longer {verb}"


@cache
def _predicates() -> frozenset[str]:
    """Everything that can stand between subject and value, "is" included."""
    third = {one for one in wordings() if one not in {"live in", "married to"}}
    return frozenset(
        third | _placed().keys() | _going_on().keys() | _MOVES | _BEGINNINGS.keys() | {"is"}
    )


_ELSEWHERE = ("on", "at", "under", "inside", "behind", "with")


@cache
def _placed() -> Mapping[str, str]:
    """Where something is, is one question, whatever it is in, on or under."""
    inside = [one for one in wordings() if one.startswith("is ") and one.endswith(" in")]
    made = {f"{one[:-3]} {where}": one for one in inside for where in _ELSEWHERE}
    return {said: meant for said, meant in made.items() if said not in wordings()}


@cache
def _going_on() -> Mapping[str, str]:
    """What somebody is doing, as what they do: "has been living in" is "lives in"."""
    doing = {
        "lives in": "living in", "works at": "working at", "works for": "working for",
        "studies at": "studying at", "plays for": "playing for",
    }  # fmt: skip
    return {f"{be} {doing[does]}": does for be in ("is", "has been") for does in doing}


@cache
def _beginnings() -> frozenset[str]:
    """What such words begin with, so that a search knows when to stop."""
    split = [said.split() for said in _predicates()]
    return frozenset(" ".join(one[:n]) for one in split for n in range(1, len(one) + 1))


def begins_predicate(word: str) -> bool:
    """Whether a predicate can begin with a word: "lives", "is"."""
    return word in _beginnings()


def without_openings(said: str) -> str:
    """A sentence without what says that it is of the time of speaking: "As of today", "FYI"."""
    return _openings().sub("", said, count=1)


@cache
def _openings() -> re.Pattern[str]:
    said = alternatives(tuple(load(_DATA)["openings"]))
    return re.compile(rf"\A(?:(?:{said})\b[\s,:–—-]*){{1,3}}", re.I)


@cache
def _closings() -> re.Pattern[str]:
    said = alternatives(tuple(load(_DATA)["closings"]))
    return re.compile(rf"\s+(?:{said})\Z", re.I)
