"""Sentences that lean on what was just said, told in full.

"Tom moved to Oslo and Ana to Rome" leaves out a verb, "As for the printer, it's in room 4" and
"We got a dog. He's called Bruno" a name. What is left out is put back where there is only one
thing that it can be, and what comes of it is read as if it had been said so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Final, NamedTuple

from engram.language.statements.clauses import Sentence, masked, opened, sentences
from engram.language.statements.declared import begins_predicate
from engram.language.statements.notes import person_meant
from engram.language.statements.third_person import is_past, third_person
from engram.language.text import SIGNS_APART, verb_lemma
from engram.language.vocabulary import (
    alternatives,
    expression,
    expression_text,
    verbs_of_change,
    vocabulary,
    word_lines,
)

_TABLE: Final = "in_full"
_MOST_SENTENCES: Final = 40
_MOST_PARTS: Final = 6
_LONGEST_QUESTION: Final = 60
_LONGEST_PART: Final = 70
_SPEAKING: Final = frozenset({"i", "we"})
_COPULAS: Final = frozenset({"is", "are", "was", "were", "costs", "weighs"})
_OWN: Final = {"i": "My", "we": "Our", "my": "My", "our": "Our"}
_OF_THINGS: Final = frozenset({"it", "its"})
_POSSESSIVES: Final = frozenset({"his", "her", "its"})
_BE: Final = {"'s": " is", "'re": " are"}


class InFull(NamedTuple):
    """What a sentence says with what it leaves out.

    Attributes:
        text: In one or more sentences.
        sentence: As it was said.
    """

    text: str
    sentence: Sentence


def _may_lean(text: str) -> bool:
    if expression(_TABLE, "may_lean").search(text) is not None:
        return True
    # From the joint back: from each word before one, all that follows would be looked through.
    before = expression(_TABLE, "joined_to")
    return any(
        before.search(text, max(0, joint.start() - _LONGEST_PART), joint.start())
        for joint in expression(_TABLE, "may_be_joined").finditer(text)
    )


def in_full_words(text: str, before: str | None = None) -> Iterator[InFull]:
    """What the sentences of a turn that leave something out say in full.

    Args:
        text: The turn.
        before: The turn of the same speaker right before it, if there is one.
    """
    if not _may_lean(text) and not (before and _may_tell_of_role(text, before)):
        return
    last = _last_of(before) if before else ""
    role = _own_role(last)
    own = masked(text)
    for sentence in islice(sentences(text), _MOST_SENTENCES):
        _, said = opened(sentence)
        asked = own[max(0, sentence.start - _LONGEST_QUESTION) : sentence.start]
        full = (
            _so_do_i(said)
            or _so_am_i(sentence.text, last)
            or _left_first(said)
            or _of_new_role(said)
            or _gapped(said)
            or _of_topic(said, asked)
            or _of_introduced(said, last)
            or _of_person(said, last)
            or _of_own_role(said, role)
        )
        # The words of code or a link that it names may be those of the turn before.
        if full and SIGNS_APART.search(full) is None:
            yield InFull(full, sentence)
        last, role = said, _own_role(said) or role


def _last_of(turn: str) -> str:
    """What a turn ends with, where it states something."""
    said = sentences(turn)
    return opened(said[-1])[1] if said else ""


def _so_do_i(said: str) -> str | None:
    """What is so of the speaker as well: "My mum lives in Faro, and so do I"."""
    found = expression(_TABLE, "so_do").fullmatch(said.rstrip(" .!"))
    if found is None:
        return None
    verb = found.group("verb")
    does = "am" if verb == "is" else verb_lemma(verb)
    who = f"{found['who']} {verb} {found['what']}"
    return f"{_capital(who)}. I {does} {found['what']}."


def _so_am_i(said: str, last: str) -> str | None:
    """The same, of what was said before: "My mum's allergic to nuts. So am I"."""
    also = expression(_TABLE, "so_am_i").fullmatch(said.rstrip(" .!"))
    found = expression(_TABLE, "so_said").fullmatch(last.rstrip(" .!")) if also else None
    if also is None or found is None:
        return None
    verb = found.group("verb") or "is"
    if (verb == "is") != (also.group("does").lower() == "am"):
        return None
    return f"I {'am' if verb == 'is' else verb_lemma(verb)} {found['what']}."


def _left_first(said: str) -> str | None:
    """Who left, and who has their place: "Priya left, Gustav's my manager now"."""
    found = expression(_TABLE, "left_first").fullmatch(said.rstrip(" .!"))
    if found is None:
        return None
    then = found["then"].replace("'s ", " is ", 1)
    return f"{found['first']}. {then}."


def _of_new_role(said: str) -> str | None:
    """Of what one has one of, which it is now: "New boss: Femi", "My number's changed, it's 5"."""
    told = said.rstrip(" .!")
    ways = (expression(_TABLE, way).fullmatch(told) for way in ("new_role", "role_has_changed"))
    found = next(filter(None, ways), None)
    return f"My {found['role'].lower()} is {found['value']}." if found is not None else None


# --- "My rent is 850. The rent went up to 910": what the speaker has one of


def _may_tell_of_role(text: str, before: str) -> bool:
    """Whether a turn names again, by "the", something of the speaker's that was told of."""
    own = expression(_TABLE, "may_be_own").finditer(before)
    return any(f"the {one['role'].lower()}" in text.lower() for one in own)


def _own_role(said: str) -> tuple[str, str] | None:
    """Whose, and what, a sentence tells of that its speaker has one of: ("my", "rent")."""
    found = expression(_TABLE, "own_role").match(said)
    role = found["role"].lower() if found else ""
    # Of people one may have several; "the name" may be on a passport.
    several = role in {"", "name"} or vocabulary().relations.intersection(role.split())
    return None if found is None or several else (found["whose"].lower(), role)


def _of_own_role(said: str, role: tuple[str, str] | None) -> str | None:
    if role is None:
        return None
    whose, what = role
    found = re.search(rf"\bthe {what}\b(?! (?:of|for|in|at)\b)", said, re.I)
    return (
        None
        if found is None
        else _capital(f"{said[: found.start()]}{whose} {what}{said[found.end() :]}")
    )


# --- "Tom moved to Oslo and Ana to Rome": a verb that is said once


def _gapped(said: str) -> str | None:
    """Each part as a sentence; None unless all of them are some, or lack but the first's verb."""
    parts = [one.strip(" .,") for one in expression(_TABLE, "joint").split(said)][:_MOST_PARTS]
    if len(parts) < 2:  # noqa: PLR2004 - a joint stands between two
        return None
    spoken = parts[0].split()
    at = next((n for n in range(1, len(spoken)) if _is_verb(spoken, n)), None)
    # "Living in Rome is hell, says my aunt": nobody is said to live there.
    if at is None or (at > 1 and spoken[0].lower().endswith("ing")):
        return None
    who, does = spoken[:at], _does(spoken[:at], spoken[at])
    # "Dublin bled me dry so I gave up and moved to Cork": who moved is the last that was named.
    of_speaker = not _SPEAKING.isdisjoint(word.lower() for word in spoken[at:])
    told: list[str] = []
    for part in parts[1:]:
        whole = expression(_TABLE, "whole", exact_case=True).match(part) is not None
        words = part.split()
        if whole and any(_is_verb(words, n) for n in range(1, len(words))):
            one: str | None = part
        elif _goes_on(words) and who[0].lower() not in _SPEAKING and not of_speaker:
            one = " ".join([*who, part])
        else:
            one = _with_verb(part, does, spoken[at + 1 :], spoken[0])
        if one is None:
            return None
        told.append(one)
    if who[0].lower() in _OWN and told == parts[1:]:
        # What the speaker says of themselves is read clause by clause anyway.
        return None
    return ". ".join(_capital(one) for one in [parts[0], *told]) + "."


def _goes_on(spoken: Sequence[str]) -> bool:
    """Whether it tells more of the same: "lives in Oslo and works at Shell"."""
    first = spoken[0] if spoken else ""
    verb = expression(_TABLE, "verb", exact_case=True).fullmatch(first) is not None
    return len(spoken) > 1 and verb and (is_past(first) or first.endswith("s"))


def _is_verb(spoken: Sequence[str], at: int) -> bool:
    word = spoken[at].lower()
    if len(spoken[:at]) == 1 and spoken[0].lower() in _SPEAKING:
        return begins_predicate(third_person(word))
    return begins_predicate(word) or word in verbs_of_change()


def _does(who: Sequence[str], verb: str) -> str:
    """The verb as another would have it: "I live" as "lives"."""
    own = len(who) == 1 and who[0].lower() in _SPEAKING
    return third_person(verb) if own else verb


def _with_verb(part: str, does: str, rest: Sequence[str], first: str) -> str | None:
    """One part with the verb that it leaves out, and what stands between verb and value."""
    found = expression(_TABLE, "rest", exact_case=True).fullmatch(part)
    if found is not None:
        by = found.group("by")
        at = next((n for n, word in enumerate(rest) if word == by), None)
        # "I live in Bath and work in Bristol": who speaks goes on, and nobody is called Work.
        others = first.islower() or first.istitle()
        low = found.group("low") and (first.lower() in _SPEAKING or not others)
        if at is None or low or not _alike(rest[at + 1 :], found.group("what")):
            return None
        who = found.group("who")
        between = [word for word in rest[:at] if word not in {"now", "currently"}]
        return " ".join([who, does, *between, by, found.group("what")])
    named = does == "is" and rest[:1] in (["called"], ["named"])
    plain = expression(_TABLE, "called" if named else "amount", exact_case=True).fullmatch(part)
    if plain is None or not (named or does in _COPULAS) or not _alike(rest[named:], plain["what"]):
        return None
    return " ".join([plain["who"], does, *rest[:named], plain["what"]])


def _alike(said: Sequence[str], value: str) -> bool:
    """Whether both are written alike: as names, as numbers, or in lower case."""
    return bool(said) and _shape(said[0]) == _shape(value)


def _shape(word: str) -> str:
    first = word.lstrip("$€£#")[:1]
    return "number" if first.isdigit() else "name" if first.isupper() else "word"


# --- "As for the printer, it's in room 4", "The printer? Room 4": what is spoken of stands first


def _of_topic(said: str, asked: str) -> str | None:
    found = expression(_TABLE, "topic").match(said) or expression(_TABLE, "moved_first").match(said)
    if found is not None:
        return _told_of(found.group("what"), found.group("rest"))
    question = expression(_TABLE, "asked_of").search(asked)
    return _told_of(question.group("what"), said) if question else None


def _told_of(what: str, rest: str) -> str | None:
    """The topic in place of the pronoun; or before what alone says where or when."""
    goes_on = expression(_TABLE, "pronoun").match(rest)
    if goes_on is not None:
        be = goes_on.group("be")
        return f"{_capital(what)}{_BE.get(be, be)}{rest[goes_on.end() :]}"
    for way, by in (("room", "is in"), ("clock", "is at"), ("whereabouts", "is")):
        if expression(_TABLE, way).match(rest):
            return f"{_capital(what)} {by} {rest[:1].lower()}{rest[1:]}"
    return None


# --- "We got a dog. He's called Bruno": what was brought up in the sentence before


def _of_introduced(said: str, last: str) -> str | None:
    goes_on = expression(_TABLE, "pronoun").match(said) if last else None
    if goes_on is None:
        return None
    brought_up = list(_introduced().finditer(last))
    if len(brought_up) != 1 or expression(_TABLE, "several").search(last):
        return None
    # "Got a puppy!" leaves out who.
    who, noun = brought_up[0]["who"] or "I", brought_up[0]["noun"].lower()
    pronoun, be = goes_on.group("pronoun").lower(), goes_on.group("be")
    close = noun in vocabulary().relations
    if pronoun in _OF_THINGS:
        fits = not close
    else:
        # Who has a cat may be meant as well as the cat.
        fits = who.lower() in _SPEAKING and (close or noun in _animals())
    if not fits:
        return None
    of_it = "'s" if pronoun in _POSSESSIVES else ""
    return f"{_what(who, noun, last)}{of_it}{_BE.get(be, be)}{said[goes_on.end() :]}"


def _of_person(said: str, last: str) -> str | None:
    """What is not so of whom was named: "My son Leo eats nuts", "He isn't allergic any more"."""
    found = expression(_TABLE, "not_so_of").match(said) if last else None
    who = person_meant(found["pronoun"].lower(), last) if found else None
    return f"{who}{said[found.end('pronoun') :]}" if found and who else None


def _what(who: str, noun: str, last: str) -> str:
    """What was brought up, and whose it is; nobody lives yet in what they only bought."""
    moved = expression(_TABLE, "moved_into").search(last) is not None
    if expression(_TABLE, "homes").fullmatch(noun) and not moved:
        return f"The {noun}"
    whose = _OWN.get(who.lower(), f"{_capital(who)}'s")
    new = moved or expression(_TABLE, "of_now").search(last) is not None
    return f"{whose} new {noun}" if new else f"{whose} {noun}"


@cache
def _introduced() -> re.Pattern[str]:
    nouns = alternatives((*_animals(), *vocabulary().relations, *word_lines(_TABLE, "things")))
    return re.compile(
        rf"{expression_text(_TABLE, 'brings_up')}(?P<noun>{nouns})"
        rf"{expression_text(_TABLE, 'ends_there')}",
        re.I,
    )


@cache
def _animals() -> frozenset[str]:
    return frozenset(word_lines(_TABLE, "animals"))


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
