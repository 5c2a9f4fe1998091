"""What changed of anybody and anything: "The review was moved to Friday", "Ana is editor now".

Who tells of a change often names neither what there was before nor in which words it was said. A
role carries its own name ("raised the rent of the flat to 900 euros"), so its value is told
outright. For the rest the statement says that something began, and what is known of the subject
says what it replaces (:func:`engram.domain.slots.replaced_by`). As with plain statements, a
sentence that does not fit from its beginning to its end is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from engram.domain.slots import ValueKind, kind_of_value, role_slot
from engram.language.statements.clauses import Sentence, opened, sentences
from engram.language.statements.cutting import Thing
from engram.language.statements.declared import (
    SPEAKER,
    Declared,
    made,
    names_one,
    role_in,
    subject_of,
    value_of,
    without_openings,
)
from engram.language.statements.objects import MatchContext, is_product
from engram.language.statements.predicates import find
from engram.language.vocabulary import cues_of_change, load, verbs_of_change, words

_DATA = "changes"
_SHORTEST, _LONGEST = 2, 40
_LONGEST_NAME = 6
_FEW = 2
_CUE_WORDS = re.compile(r"[a-z]+")
_VERSION = re.compile(
    r"(?P<what>[A-Z][\w'-]{0,24}(?: [A-Z][\w'-]{0,24}){0,3}) "
    r"(?:version |v)?(?P<version>\d+(?:\.\d+){1,3})"
    r" (?:is out|came out|is here|was released|has been released|just shipped|shipped|landed)\b"
)
_BOUGHT = re.compile(
    r"(?P<who>[A-Z][\w.'-]{0,24}(?: [A-Z][\w.'-]{0,24}){0,3}) (?:has |just |recently ){0,2}"
    r"(?:bought|acquired|purchased|took over)(?: out)? (?P<what>.{2,60})\Z"
)
_NEW_WORK = re.compile(
    r"(?P<who>[A-Z][\w.'-]{0,24}(?: [A-Z][\w.'-]{0,24}){0,3}) (?:[\w' ]{1,40} )??"
    r"(?:retrained as|became|has become|is now|now is|is) (?P<work>an? [\w -]{2,40}?)"
    r"(?P<now> now)?\Z"
)
_WITH_NOW = re.compile(
    r"(?P<who>[A-Z][\w.'-]{0,24}(?: [A-Z][\w.'-]{0,24}){0,3}) (?:[\w' ]{1,40} )??"
    r"(?:is now with|is with|is seeing|is now seeing) "
    r"(?P<whom>[A-Z][\w.'-]{0,24}(?: [A-Z][\w.'-]{0,24}){0,3})(?P<now> now)?\Z"
)
_SOMEBODY = r"(?P<who>(?:[Mm]y|[Oo]ur) [a-z]{2,14}|[A-Z][\w.'-]{0,24}(?: [A-Z][\w.'-]{0,24}){0,3})"
_ABOUT_THEM = r"(?: [\w'-]{1,24}){1,6}?[,;:](?: and| but| so)?"
# What follows is said of who moved: "Ana has moved, she's in Porto now".
_IS_ELSEWHERE = re.compile(
    rf"{_SOMEBODY}(?=[^,;:]{{0,40}}\b(?:moved|relocated|emigrated|left)\b){_ABOUT_THEM}"
    r" (?:(?:she|he|they)(?:'s|'re| is| are) (?:now |living |based ){0,2}(?:in|at)|lives in|now in)"
    r" (?P<where>(?:the )?[A-Z].{1,50})\Z"
)
_WORKS_ELSEWHERE = re.compile(
    rf"{_SOMEBODY}(?=[^,;:]{{0,40}}\b(?:quit|left|notice|resigned|fired|sacked|laid off|redundant|"
    rf"changed jobs)\b){_ABOUT_THEM} (?:(?:she|he|they)(?:'s|'re| is| are) (?:now )?(?:at|with)|"
    r"(?:(?:the|her|his|their) )?new job(?:'s| is) (?:at|with)|"
    r"(?:(?:she|he|they) )?(?:now )?works? (?:at|for)|(?:(?:she|he|they) )?joined|now at)"
    r" (?P<where>.{2,50})\Z"
)
_LEFT_FOR = re.compile(
    rf"{_SOMEBODY} (?:has |just |recently |finally ){{0,2}}(?:left|quit)"
    r" (?P<old>[A-Z][^,;:]{1,40}?)"
    r" (?:for|to join|and joined|to work at|to work for|to play for|and is now at|and went to)"
    r" (?P<where>(?:the )?[A-Z].{1,50})\Z"
)
_WORKS_NOWHERE = re.compile(
    rf"{_SOMEBODY} (?:(?:has|is|just|finally|recently|now) ){{0,3}}retired"
    r"(?= (?:in|last|this|early|from|after|now|at|yesterday|today|on)\b|\Z|[,;])"
)
# Which way a day went, and then to which: "they pushed the talk back, we have until Friday".
_UNTIL = re.compile(
    r"(?P<who>[\w' -]{1,40}?) (?:has |have |just |been |was |were |got ){0,2}(?:pushed|moved|put|"
    r"brought|extended|postponed|delayed|shifted|rescheduled|changed)"
    r"(?P<what>(?: [\w'&/-]+){1,7}?)??(?: back| forward| out| up)?[,;:](?: so| and| but)? "
    r"(?:(?:we|you|they|i|it) (?:now )?(?:have|has) until|(?:it's|it is|they are|they're|that's|"
    r"now|which is) (?:now )?(?:due |on |at |until |by ){0,2}"
    r"|(?:the )?new (?:date|deadline|day|time|slot)(?:'s| is) )\s?(?P<value>.{2,40})\Z",
    re.I,
)
_TRADED = re.compile(
    r"(?P<who>[A-Z][\w.'-]{0,24}(?: [A-Z][\w.'-]{0,24}){0,3}) (?:has |just |recently ){0,2}"
    r"(?:traded|swapped|exchanged)(?: [\w'-]{1,24}){1,6}? for (?P<what>an? [A-Z].{1,40})\Z"
)
_SPEAKS = re.compile(r"(?:I|we)(?:'ve| have)?(?: just| finally| now| recently)?", re.I)
_NAMED_SO = re.compile(
    r"(?P<whose>I|.{2,60}?) (?:has|have|got|found|(?:been|was|were) (?:assigned|given)) a new "
    r"(?P<role>[a-z][a-z -]{1,30}|[A-Z]{2,4})"
    r"(?:,|:| -| called| named|, it's|, its name is) (?P<value>.{1,60})\Z"
)


def changed(text: str) -> list[Declared]:
    """Every change of a turn that is said of somebody or something, in order.

    Args:
        text: The turn.
    """
    return [one for sentence in sentences(text) for one in _in_sentence(sentence)]


def _in_sentence(sentence: Sentence) -> Iterator[Declared]:
    # Most sentences tell of no change, and cost no more than this.
    if cues_of_change().isdisjoint(_CUE_WORDS.findall(sentence.text.lower())):
        return
    _, said = opened(sentence)
    said = without_openings(said).strip(" .,!")
    spoken = said.split()
    if not _SHORTEST <= len(spoken) <= _LONGEST:
        return
    for reading in (_by_verb, _by_form):
        found = reading(sentence, said, spoken)
        if found is not None:
            yield found
            return


def _by_verb(sentence: Sentence, said: str, spoken: Sequence[str]) -> Declared | None:
    del said
    lowered = [_plain(word) for word in spoken]
    at = next((n for n, word in enumerate(lowered) if word in verbs_of_change()), None)
    if at is None:
        return None
    before = _without_around(spoken[:at])
    if at and before and spoken[at - 1].lower().endswith("'s"):
        # "The key's moved to the safe": it has.
        before = [*before[:-1], before[-1][:-2]]
    passive = bool({"was", "were", "been", "got", "being", "is", "are"}.intersection(lowered[:at]))
    change = _Change(sentence, lowered[at], before, spoken[at + 1 :], passive=passive)
    for reading in (_role_taken, _value_changed, _made_anew):
        found = reading(change)
        if found is not None:
            return found
    return None


class _Change(NamedTuple):
    """A sentence, taken apart at the verb that says that something changed."""

    sentence: Sentence
    verb: str
    before: Sequence[str]
    after: Sequence[str]
    passive: bool


def _value_changed(change: _Change) -> Declared | None:
    """The new value of a role: "the rent went up to 900", "X changed its licence to MIT"."""
    if change.verb not in words(_DATA, "changed"):
        return None
    what, rest = _split(change.after, words(_DATA, "to"))
    value = value_of(rest)
    if value is None:
        return None
    owned = _own_role(change.before, what)
    said = [] if owned else list(what or change.before)
    role = owned or role_in(said)
    if role is None or (what and not owned and not _is_agent(change.before)):
        return None
    name, whose = role
    predicate = role_slot(name)
    if predicate is None or not _can_be_new(name, value):
        return None
    named = " ".join(said) or f"{_possessive(' '.join(change.before))} {name}"
    return made(change.sentence, whose, predicate, value, said=named)


def _can_be_new(role: str, value: str) -> bool:
    """Whether it says which; what something is changed to is seldom an opinion of it."""
    if names_one(role, value) or kind_of_value(value) is not ValueKind.OTHER:
        return True
    spoken = value.lower().split()
    return len(spoken) <= _FEW and not words("declared", "opinions").intersection(spoken)


def _own_role(owner: Sequence[str], what: Sequence[str]) -> tuple[str, str] | None:
    """What "its licence" and "majors" are, after whose they are."""
    lowered = [word.lower() for word in what]
    if not lowered or not owner:
        return None
    whose = subject_of(owner, "is")
    if whose is None:
        return None
    if lowered[0] in {"its", "their", "his", "her"} and len(lowered) > 1:
        role = " ".join(lowered[1:])
    elif len(lowered) == 1 and lowered[0] in _PLURAL_ROLES:
        role = _PLURAL_ROLES[lowered[0]]
    else:
        return None
    return (role, whose) if re.fullmatch(r"[a-z][a-z -]{1,30}", role) else None


_PLURAL_ROLES: Mapping[str, str] = {
    f"{one}s": one
    for one in ("major", "job", "team", "club", "school", "bank", "provider", "doctor", "dentist")
}


def _made_anew(change: _Change) -> Declared | None:
    """What begins for a subject that is named without a role: "We moved the review to Friday"."""
    for kind in load(_DATA)["made"]:
        if change.verb not in kind["verbs"].split():
            continue
        what, rest = _split(change.after, frozenset(kind["prepositions"].split()))
        value = value_of(rest)
        if value is None or (what and not _is_agent(change.before)):
            continue
        if kind["called"] == "moved to" and is_product(Thing(value, value)):
            # "Work moved from Zoom to Teams": nothing lives in Teams.
            continue
        named = list(what or change.before)
        subject = subject_of(named, str(kind["called"]))
        if subject is None or (not what and not change.passive and _is_agent_word(named)):
            continue
        return _beginning(change.sentence, subject, str(kind["called"]), value)
    return None


def _beginning(sentence: Sentence, subject: str, called: str, value: str) -> Declared:
    told = made(sentence, subject, called, value, begins=True)
    if called == "moved to" and kind_of_value(value) in {ValueKind.DAY, ValueKind.CLOCK}:
        called = "is scheduled for" if kind_of_value(value) is ValueKind.DAY else "starts at"
    elif called == "is scheduled for" and kind_of_value(value) is ValueKind.CLOCK:
        called = "starts at"
    return replace(told, predicate=called) if called != told.predicate else told


def _role_taken(change: _Change) -> Declared | None:
    """Who has a role now: "Ana took over from Ben as editor of Verve"."""
    who = subject_of(change.before, "is")
    if (
        who is None
        or _SPEAKS.fullmatch(who)
        or not who[:1].isupper()
        or len(who.split()) > _LONGEST_NAME
    ):
        return None
    for kind in load(_DATA)["roles"]:
        if change.verb not in kind["verbs"].split():
            continue
        lowered = [word.lower() for word in change.after]
        start = 0
        prepositions = kind["prepositions"].split()
        if kind["ways"] and (not lowered or lowered[0] not in kind["ways"].split()):
            continue
        if change.verb.startswith(("replace", "succeed")) or kind["ways"]:
            joint = next((n for n, word in enumerate(lowered) if word in prepositions), None)
            if joint is None:
                continue
            start = joint + 1
        elif lowered and lowered[0] in prepositions:
            start = 1
        said = [w for w in change.after[start:] if w.lower() not in {"new", "our", "its"}]
        if not any(word.endswith(("'s", "s'")) for word in said):
            said = said if said[:1] == ["the"] else ["the", *said]
        found = role_in((value_of(" ".join(said)) or "").split())
        predicate = role_slot(found[0]) if found else None
        if found and predicate:
            return made(
                change.sentence, found[1], predicate, who, said=f"the {found[0]} of {found[1]}"
            )
    return None


def _by_form(sentence: Sentence, said: str, spoken: Sequence[str]) -> Declared | None:
    """Changes that no verb of change tells: "Verve 2.0 is out", "Ana is a nurse now"."""
    del spoken
    readings = (
        _released, _bought, _new_work, _gone_elsewhere, _until, _with_somebody, _new_holder, _died,
        _retired,
    )  # fmt: skip
    return next((found for read in readings if (found := read(sentence, said))), None)


def _released(sentence: Sentence, said: str) -> Declared | None:
    release = _VERSION.match(said)
    if release is None:
        return None
    what, version = release.group("what"), release.group("version")
    return made(sentence, what, "version is", version, said=f"the version of {what}")


def _bought(sentence: Sentence, said: str) -> Declared | None:
    """Who owns something now, or drives another car."""
    traded = _TRADED.match(said)
    if traded and (car := value_of(traded.group("what"))):
        return made(sentence, traded.group("who"), "got", car, begins=True)
    bought = _BOUGHT.match(said)
    named = value_of(bought.group("what")) if bought else None
    what = subject_of(named.split(), "is") if named else None
    if bought is None or what is None:
        return None
    who = bought.group("who")
    return Declared(what, "was bought by", who, f"{who} bought {named}.", sentence, begins=True)


def _new_work(sentence: Sentence, said: str) -> Declared | None:
    work = _NEW_WORK.match(said)
    if work is None or ("is" in said.split() and "now" not in said.lower().split()):
        return None
    things = find("work", MatchContext("", work.group("work"), sentence.text))
    who = subject_of(work.group("who").split(), "is")
    return made(sentence, who, "became", things[0].phrase, begins=True) if things and who else None


def _with_somebody(sentence: Sentence, said: str) -> Declared | None:
    together = _WITH_NOW.match(said)
    if together is None or "now" not in said.lower().split():
        return None
    return made(sentence, together.group("who"), "is with", together.group("whom"), begins=True)


def _gone_elsewhere(sentence: Sentence, said: str) -> Declared | None:
    """Who went from one place, employer or team to another, told in two steps."""
    for shape, predicate in (
        (_IS_ELSEWHERE, "lives in"),
        (_WORKS_ELSEWHERE, "works at"),
        (_LEFT_FOR, "left for"),
    ):
        found = shape.match(said)
        value = value_of(found.group("where")) if found else None
        subject = subject_of(found.group("who").split(), predicate) if found else None
        if subject and value:
            return made(sentence, subject, predicate, value, begins=True)
    return None


def _died(sentence: Sentence, said: str) -> Declared | None:
    """Who or what is no more, by name; whose it was is told by what is known."""
    several = re.match(load(_DATA)["of_several"], said)
    if several is not None:
        many, kind = several.group("many").lower(), several.group("kind")
        # "The dogs" are the user's where it is known that the user has dogs.
        whose = "the" if several.group("whose") == "the" else "the user's"
        who = f"{many} of {whose} {kind}"
        content = f"{who.capitalize()} {'has' if many == 'one' else 'have'} died."
        return Declared(who, _dying(several), "", content, sentence, begins=True)
    for way in ("died", "put_down"):
        found = re.match(load(_DATA)[way], said)
        if found is not None:
            who = found.group("who")
            return Declared(who, _dying(found), "", f"{who} has died.", sentence, begins=True)
    return None


def _dying(said: re.Match[str]) -> str:
    """The predicate in words that were said, so that they show that it is so."""
    spoken = said.group().split()
    ways = {"put": "was put down", "passed": "passed away"}
    return next((predicate for word, predicate in ways.items() if word in spoken), "died")


def _retired(sentence: Sentence, said: str) -> Declared | None:
    """Who works nowhere any more: "My dad retired in May"."""
    found = _WORKS_NOWHERE.match(said)
    subject = subject_of(found.group("who").split(), "works at") if found else None
    if found is None or subject is None:
        return None
    content = f"{found.group('who')} has retired."
    return Declared(subject, "works at", "", content, sentence, holds=False)


def _until(sentence: Sentence, said: str) -> Declared | None:
    """The new day or time of what was moved, in a clause of its own."""
    found = _UNTIL.match(said)
    value = value_of(found.group("value")) if found else None
    if found is None or value is None:
        return None
    what = (found.group("what") or found.group("who")).split()
    subject = subject_of(what, "moved to")
    if subject is None or kind_of_value(value) not in {ValueKind.DAY, ValueKind.CLOCK}:
        return None
    return _beginning(sentence, subject, "is scheduled for", value)


def _new_holder(sentence: Sentence, said: str) -> Declared | None:
    """So that "Verve has a new editor, Ana" says who the editor is."""
    found = _NAMED_SO.match(said)
    if found is None:
        return None
    spoken = found.group("whose")
    speaks = _SPEAKS.fullmatch(spoken) is not None
    whose = SPEAKER if speaks else subject_of(spoken.split(), "is")
    role = found.group("role").lower()
    value, predicate = value_of(found.group("value")), role_slot(role)
    if whose is None or value is None or predicate is None:
        return None
    if not names_one(role, value):
        return None
    named = f"my {role}" if speaks else f"the {role} of {whose}"
    return made(sentence, whose, predicate, value, said=named)


# --- the parts of such a sentence


def _split(after: Sequence[str], prepositions: frozenset[str]) -> tuple[list[str], str]:
    """What stands between the verb and the new value, without what it was before; and the value."""
    lowered = [word.lower() for word in after]
    at = next((n for n, word in enumerate(lowered) if word in prepositions), None)
    if at is None:
        return [], ""
    until = next((n for n in range(at) if lowered[n] == "from"), at)
    what = list(after[:until])
    while what and what[0].lower() in words(_DATA, "ways"):
        what.pop(0)
    while what and what[-1].lower() in words(_DATA, "ways"):
        what.pop()
    return what, " ".join(after[at + 1 :])


def _plain(word: str) -> str:
    return word.lower().strip(",;:.!")


def _without_around(before: Sequence[str]) -> list[str]:
    return [word for word in before if word.lower() not in words(_DATA, "around")]


def _is_agent(before: Sequence[str]) -> bool:
    """Whether it can be whoever changes something: "we", "the landlord", "Ana"."""
    return _is_agent_word(before) or subject_of(before, "is") is not None


def _is_agent_word(before: Sequence[str]) -> bool:
    return [word.lower() for word in before] in [[one] for one in words(_DATA, "agents")]


def _possessive(owner: str) -> str:
    return f"{owner}'" if owner.endswith("s") else f"{owner}'s"
