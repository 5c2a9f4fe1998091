"""What a turn's speaker states about themselves, corrections in the same breath included."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Final

from engram.language.calendar import MONTH_NAMES
from engram.language.own_words import names_another
from engram.language.statements import objects
from engram.language.statements.addresses import homes
from engram.language.statements.clauses import (
    Clause,
    Sentence,
    clauses,
    masked,
    sentences,
    turned_round,
    with_words,
)
from engram.language.statements.cutting import Thing
from engram.language.statements.objects import (
    NOTHING_NAMED,
    MatchContext,
    is_origin,
    is_place,
    is_product,
)
from engram.language.statements.patterns import (
    Pattern,
    Reading,
    candidates,
    inside,
    readings,
)
from engram.language.statements.predicates import (
    NO_SENTENCE,
    RuleStatement,
    exchanged,
    favourites,
    find,
    is_firm,
    is_subject,
)
from engram.language.statements.slips import said_again
from engram.language.vocabulary import expression, predicates, vocabulary, wordings

# --- what takes back or goes on from something said just before: "sorry, I meant Bosch"

_CORRECTIONS = "corrections"
# Longer turns are pastes; each statement in them would search all of it.
_LONGEST_CORRECTED = 1_000


def mended(found: Sequence[RuleStatement], plain: str) -> list[RuleStatement]:
    """Without what was taken back in the same breath, and with what mends marked as such."""
    cues = [cue.start() for cue in expression(_CORRECTIONS, "cue").finditer(plain)]
    if not cues:
        return list(found)
    gone: set[int] = set()
    mending: set[int] = set()
    for number, new in enumerate(found):
        if not new.holds:
            continue
        old = next(
            (
                n
                for n in range(number - 1, -1, -1)
                if n not in gone and found[n].holds and found[n].predicate == new.predicate
            ),
            None,
        )
        if any(cue <= new.at and (old is None or found[old].at < cue) for cue in cues):
            mending.add(number)
            if old is not None and found[old].thing.name.casefold() != new.thing.name.casefold():
                gone.add(old)
    return [replace(one, corrects=n in mending) for n, one in enumerate(found) if n not in gone]


def continued(
    sentence: Sentence, found: Sequence[RuleStatement], topic: RuleStatement | None
) -> list[RuleStatement]:
    """New values that a sentence gives to what was being spoken of, without naming it."""
    more: list[RuleStatement] = []
    for said, cue in (
        ("mend", True),
        ("now", False),
        ("since", False),
        ("listed", False),
        ("then", False),
        ("but", False),
        ("only", False),
    ):
        for match in expression(_CORRECTIONS, said).finditer(sentence.text):
            at = sentence.start + match.start("it")
            about = _spoken_of(at, [*found, *more], topic)
            if about is None or (said == "but" and about.holds):
                continue
            if about.predicate == "lives in" and _AT_OR_WITH.search(match.group(), 0, at):
                # "I've moved gyms, I'm at Foundry now"
                continue
            if said == "only" and not _is_all(match, about):
                continue
            if said != "mend" and about.predicate in _TOLD_OF_TASTES:
                # "I like hiking, it's amazing": what it is, not what is liked.
                continue
            if expression(_CORRECTIONS, "clausal").match(match.group("it")):
                continue
            kind = kind_of_object(about.predicate)
            words = f"on {match.group('it')}" if kind == "birth" else match.group("it")
            things = find(kind, MatchContext("", words, sentence.text))
            # When "and then to Seattle last year" began, the words before it do not say.
            told = sentence if said != "then" else _from(sentence, match.start())
            more += [
                RuleStatement(about.predicate, one, begins=not cue, at=at, sentence=told)
                for one in things[:1]
                if one.name.casefold() != about.thing.name.casefold()
                and not any(one.name == other.thing.name for other in found)
            ]
    return more


# Nobody lives at or with a place by name.
_AT_OR_WITH = re.compile(r"\b(?:at|with)\s+(?-i:[A-Z])")


def _is_all(match: re.Match[str], about: RuleStatement) -> bool:
    """Whether that is the new value: "Switched jobs, Bosch now", and no "New job! Tired now"."""
    value = match.group("it").strip()
    thing = Thing(value, value)
    known = is_place(thing) or is_product(thing) or is_subject(thing)
    named = value[:1].isupper() and match.start() > 0
    return about.thing is NOTHING_NAMED and (known or named or about.predicate == "works as")


def _from(sentence: Sentence, at: int) -> Sentence:
    return Sentence(sentence.text[at:], sentence.start + at)


def taken_back(found: Sequence[RuleStatement], plain: str) -> list[RuleStatement]:
    """What "I meant blues, not jazz. I like blues." ends, wherever the turn says it."""
    lowered = plain.casefold()
    if "not " not in lowered or len(lowered) > _LONGEST_CORRECTED:
        return []
    return [old for new in found if new.holds for old in _not_that(new, plain)]


def _not_that(new: RuleStatement, plain: str) -> list[RuleStatement]:
    name = re.escape(new.thing.name)
    after = rf"\b{name},? (?:and |but )?not (?:in |at |as |to )?(?P<after>[^,;:!().]{{1,40}})"
    before = (
        rf"\bnot (?:in |at |as |to )?(?P<before>[^,;:!().]{{1,40}})(?:, (?:but )?| but ){name}\b"
    )
    kind = kind_of_object(new.predicate)
    for said in re.finditer(rf"{after}|{before}", plain, re.I):
        words = said.group("after") or said.group("before")
        if expression(_CORRECTIONS, "not_a_value").match(words):
            continue
        for old in find(kind, MatchContext("", words, plain))[:1]:
            if old.name.casefold() != new.thing.name.casefold():
                denied = _never_held(new.predicate, plain)
                return [
                    replace(
                        new, thing=old, holds=False, denied=denied, begins=False, corrects=False
                    )
                ]
    return []


def _never_held(predicate: str, text: str) -> bool:
    """Whether nothing tells that what is set aside was ever so: "I like tea, not coffee"."""
    if expression(_TASTES, "turned").search(text) is not None:
        return False
    return predicate in {*_TOLD_OF_TASTES, "prefers"} or _NEVER.search(text) is not None


def topic_after(
    sentence: Sentence, found: Sequence[RuleStatement], before: RuleStatement | None
) -> RuleStatement | None:
    """What the sentences that follow may go on about."""
    return found[-1] if found else _topic_in(sentence) or before


def _topic_in(sentence: Sentence) -> RuleStatement | None:
    """What a sentence speaks of without a value: "Moved house: it's Dundee now"."""
    for name, cue in _topics():
        if cue.search(sentence.text):
            return RuleStatement(name, NOTHING_NAMED, sentence=sentence)
    return None


def not_but(rest: str) -> str | None:
    """What "..., not Valencia" names, after a statement."""
    found = expression(_CORRECTIONS, "not").search(rest)
    if found is None:
        return None
    old = next(group for group in found.groups() if group)
    return None if expression(_CORRECTIONS, "not_a_value").match(old) else old


def _spoken_of(
    at: int, found: Sequence[RuleStatement], topic: RuleStatement | None
) -> RuleStatement | None:
    before = [one for one in found if one.at < at]
    return max(before, key=lambda one: one.at) if before else topic


def kind_of_object(predicate: str) -> str:
    """How an object that is named without its predicate is cut out; see ``predicates.find``."""
    if predicate.startswith("favourite "):
        return "titled"
    kind = predicates()[predicate].kind
    return {"place": "named_place", "organisation": "name"}.get(kind, kind)


@cache
def _topics() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, re.compile(cue, re.I)) for name, cue in wordings().topics.items())


# --- what a turn's speaker states about themselves, as predicates and objects

_STATEMENTS = "statements"
# "I use vim, never emacs" denies what "I use vim, not emacs" may end.
_NEVER = re.compile(r"[,;:–—-]\s*(?:and |but )?never\s", re.I)
_TASTES = "tastes"
_AS = re.compile(r"\bas\s+(?=an?\s)", re.I)
_WORK_BEFORE = re.compile(r"\bas\s+(?P<work>an?\s[\w' -]{2,60}?)\s+(?:at|for)\Z", re.I)
_GOES_BY = re.compile(r"\bcalls?\s+me\b|\bgo(?:ing)?\s+by\b", re.I)
_RAISED = re.compile(r"\band\s+(?:raised|bred|brought\s+up)\b", re.I)
_AT = re.compile(r"\s+(?:(?:working|employed)\s+)?(?:at|for|with)\s+(?:the\s+)?(?=[A-Z])")
# "So Farah's my wife now"
_JOINING = re.compile(r"\A(?:(?:so|and|but|now|then|because|since) ){1,2}(?=[A-Z])")
# What is named where such a wording begins is the last name before it.
_NAMED = frozenset({"name", "named_place", "known_place", "company", "product"})
_TOLD_OF_TASTES = frozenset({"likes", "dislikes"})
_BROUGHT_UP = re.compile(r"\b(?:grew|brought)\s+up\b|\braised\b", re.I)
# "A vet from Galway living in Cork"
_FROM = re.compile(r"\s+from\s+(?P<it>[A-Z][\w'-]*(?: [A-Z][\w'-]*){0,2})(?:,| and|\s+but)?")
_OF_PERSONS = frozenset({"is married to", "is engaged to"})
_OF_ONE = frozenset({"works at", "is married to"})
_LIVING_IN = re.compile(r"\s+(?:living|based)\s+in\s+", re.I)


def statements(text: str) -> list[RuleStatement]:
    """Every plain statement of a turn about its speaker, each once, in order."""
    return [one for one in everything(text) if not one.loose]


def everything(text: str) -> list[RuleStatement]:
    """The same, with what is less than plain: promises by "I'll"."""
    plain = masked(text)
    found: dict[tuple[str, str, bool], RuleStatement] = {}
    said = [_said_again(one, plain) for one in _all(plain, text)]
    told = mended(sorted(said, key=lambda one: one.at), plain)
    for stated in [*told, *taken_back(told, plain)]:
        found.setdefault((stated.predicate, stated.thing.own.casefold(), stated.holds), stated)
    if any(one.predicate == "uses" and not one.holds for one in found.values()):
        found = {key: _as_a_tool(one, found) for key, one in found.items()}
    named = {(one.predicate, one.sentence.start) for one in found.values() if one.thing.name}
    # "Callum and I got divorced" also holds "I got divorced".
    return [
        whole
        for one in found.values()
        if (one.thing.name or (one.predicate, one.sentence.start) not in named)
        and not _is_taken_up_again(one, found)
        and not _is_called_otherwise(one, found)
        and not _only_grew_up(one, found)
        and not _is_said_better(one, found)
        and not _is_replaced(one, found)
        and not _is_told_of_another(one)
        and (whole := _with_words(one, text)) is not None
    ]


def _with_words(one: RuleStatement, text: str) -> RuleStatement | None:
    """The statement with the code and the links that it names; None if they do not fit in it."""
    phrase, name = with_words(one.thing.phrase, text), with_words(one.thing.name, text)
    if phrase is None or name is None:
        return None
    return one if phrase == one.thing.phrase else replace(one, thing=Thing(phrase, name))


def _said_again(one: RuleStatement, plain: str) -> RuleStatement:
    """With the value to which its value is mended at once: "I live in Bonn, er, Born"."""
    start = plain.find(one.thing.name, one.sentence.start) if one.holds and one.thing.name else -1
    value = said_again(one.thing.name, plain, start + len(one.thing.name)) if start >= 0 else None
    if value is None:
        return one
    kind = kind_of_object(one.predicate)
    words = f"on {value}" if kind == "birth" else value
    things = find(kind, MatchContext(one.said, words, words))
    return replace(one, thing=things[0], corrects=True) if things else one


def _is_taken_up_again(
    ended: RuleStatement, found: Mapping[tuple[str, str, bool], RuleStatement]
) -> bool:
    """Whether the same sentence says after it that it is so: nothing has ended then."""
    again = found.get((ended.predicate, ended.thing.own.casefold(), True))
    return (
        not ended.holds
        and again is not None
        and again.sentence == ended.sentence
        and again.at > ended.at
    )


def _is_called_otherwise(
    one: RuleStatement, found: Mapping[tuple[str, str, bool], RuleStatement]
) -> bool:
    """Whether it is a name that its bearer does not go by: "I'm Thomas but call me Tom"."""
    names = [other for other in found.values() if other.predicate == "is called" and other.holds]
    if one not in names or len(names) == 1:
        return False
    going_by = [other for other in names if _GOES_BY.search(other.said)]
    return bool(going_by) and one not in going_by


def _is_said_better(
    one: RuleStatement, found: Mapping[tuple[str, str, bool], RuleStatement]
) -> bool:
    """Whether the same work is told more fully: "from waitress to manager: a bar manager"."""
    return (
        one.predicate == "works as"
        and one.holds
        and any(
            other.predicate == one.predicate
            and other.holds
            and other.sentence == one.sentence
            and other.thing.name.endswith(f" {one.thing.name}")
            for other in found.values()
        )
    )


def _as_a_tool(
    one: RuleStatement, found: Mapping[tuple[str, str, bool], RuleStatement]
) -> RuleStatement:
    """Of who gives up a tool and moves to another: "had enough of Mailchimp, moved to Brevo"."""
    gives_up = (
        one.predicate == "lives in"
        and one.begins
        and not is_place(one.thing)
        and any(
            other.predicate == "uses"
            and not other.holds
            and other.sentence == one.sentence
            and other.at < one.at
            for other in found.values()
        )
    )
    return replace(one, predicate="uses") if gives_up else one


def _is_replaced(one: RuleStatement, found: Mapping[tuple[str, str, bool], RuleStatement]) -> bool:
    """Whether it is over without a name, and what holds is said after: "I was fired. I'm at X"."""
    return (
        not (one.holds or one.thing.name)
        and one.predicate in _OF_ONE
        and any(
            other.predicate == one.predicate and other.holds and other.at > one.at
            for other in found.values()
        )
    )


def _is_told_of_another(one: RuleStatement) -> bool:
    """Whether a tool is given up in what a label names: "kiln: dropped sqlite"."""
    return one.predicate == "uses" and not one.holds and names_another(one.sentence.text)


def _only_grew_up(one: RuleStatement, found: Mapping[tuple[str, str, bool], RuleStatement]) -> bool:
    """Whether they are from elsewhere, as they say: "I'm from Ghana, grew up in Accra"."""
    return (
        one.predicate == "is from"
        and _BROUGHT_UP.search(one.said) is not None
        and any(
            other.predicate == one.predicate
            and other.holds
            and _BROUGHT_UP.search(other.said) is None
            for other in found.values()
        )
    )


def in_clause(clause: Clause, sentence: Sentence, turn: str) -> list[RuleStatement]:
    """What one clause states; of several wordings that fit, the first."""
    found = exchanged(clause.text)
    if not found:
        found = next(_by_wording(clause, sentence, turn), [])
    return [replace(stated, at=clause.at, sentence=sentence) for stated in found]


def _all(plain: str, text: str) -> Iterator[RuleStatement]:
    ways = ("greeting", "greeting_here", "introduction")
    said = (expression(_STATEMENTS, way, exact_case=True).match(plain) for way in ways)
    greeted = next(filter(None, said), None)
    if greeted and _can_be_a_name(greeted.group("name")):
        name = greeted.group("name")
        yield RuleStatement("is called", Thing(name, name), sentence=Sentence(greeted.group(), 0))
    topic: RuleStatement | None = None
    for sentence in sentences(text):
        found = list(_in_sentence(sentence, plain))
        found += continued(sentence, found, _topic_in(sentence) or topic)
        yield from found
        topic = topic_after(sentence, found, topic)


def _in_sentence(sentence: Sentence, turn: str) -> Iterator[RuleStatement]:
    for clause in clauses(sentence):
        yield from in_clause(clause, sentence, turn)
    for clause in turned_round(sentence, turn):
        yield from in_clause(clause, sentence, turn)
        yield from favourites(Sentence(clause.text, clause.at))
    yield from favourites(sentence)
    yield from homes(sentence)
    for pattern in inside(sentence.text):
        for said in pattern.says.finditer(sentence.text):
            if _meets(pattern, sentence.text, sentence, turn):
                it = _JOINING.sub("", said.group("it"))
                if pattern.kind in _NAMED and said.start("it") == said.start():
                    it = objects.last_name(it)
                # Without the object itself: in "made me want to work" nobody works as a want.
                before = said.string[said.start() : said.start("it")]
                around = f"{before}{said.string[said.end('it') : said.end()]}"
                spoken = MatchContext(around, it, sentence.text)
                at = sentence.start + said.start()
                for thing in find(pattern.kind, spoken):
                    yield _stated(pattern, thing, said=said.group(), at=at, sentence=sentence)
                    where = _AT.match(said.string, said.end("it"))
                    work = pattern.predicate == "works as" and pattern.holds and where is not None
                    # "They've made me head of product at Lumio"
                    name = objects.name(said.string[where.end() :]) if work and where else None
                    if name is not None:
                        yield RuleStatement("works at", name, at=at, sentence=sentence)


def _by_wording(clause: Clause, sentence: Sentence, turn: str) -> Iterator[list[RuleStatement]]:
    for pattern, reading in candidates(readings(clause.text)):
        if pattern.predicate == "works as" and expression(_STATEMENTS, "by_training").search(
            clause.text.partition(" but ")[0]
        ):
            continue
        stated = _matched(pattern, reading, sentence)
        # Asked last: it may look through the whole turn, and most wordings do not fit anyway.
        if stated and _meets(pattern, clause.text, sentence, turn):
            yield stated


def _meets(pattern: Pattern, clause: str, sentence: Sentence, turn: str) -> bool:
    when = pattern.when
    if when is None:
        return True
    text = {"clause": clause, "sentence": sentence.text, "turn": turn}[when.of]
    return when.holds.search(text) is not None


def _matched(pattern: Pattern, reading: Reading, sentence: Sentence) -> list[RuleStatement]:
    said = pattern.says.match(reading.clause, reading.start)
    if said is None:
        return []
    words, rest = reading.clause[: said.end()], reading.clause[said.end() :]
    things = find(pattern.kind, MatchContext(words, rest, sentence.text))
    if pattern.predicate in _OF_PERSONS:
        # "My wife is Thai"
        things = [one for one in things if not is_origin(one.name)]
    if pattern.denied and _is_limited(rest, things):
        return []
    found = [_stated(pattern, thing, said=words) for thing in things]
    if (
        pattern.predicate == "uses"
        and pattern.begins
        and find("car", MatchContext(words, rest, rest))
    ):
        # "Switched to a Lexus"; but "to a Lexus for this rental".
        lent = expression(_STATEMENTS, "lent").search(rest)
        found = [] if lent else [replace(one, predicate="drives") for one in found]
    if not found or not pattern.holds:
        return found
    return [
        *found,
        *_besides(pattern, words, rest, found),
        *_instead(pattern, rest, things, sentence),
    ]


def _named(said: re.Match[str]) -> Thing:
    return Thing(said.group("it"), said.group("it"))


def _is_limited(rest: str, things: Sequence[Thing]) -> bool:
    """Whether it is denied only of some time, place or manner: "I don't use Mongo at home"."""
    at = rest.rfind(things[-1].phrase) if things else -1
    after = rest[at + len(things[-1].phrase) :] if at >= 0 else ""
    limits = (expression(_STATEMENTS, name) for name in ("limited_to", "limited_by"))
    return any(limit.match(after) for limit in limits)


def _stated(
    pattern: Pattern,
    thing: Thing,
    *,
    said: str = "",
    at: int = 0,
    sentence: Sentence = NO_SENTENCE,
) -> RuleStatement:
    predicate = pattern.predicate
    if predicate in _OF_PERSONS and thing.name.endswith("'s"):
        # "My wife Ana's birthday"
        thing = Thing(thing.phrase[:-2], thing.name[:-2])
    if pattern.kind == "moved_to" and is_product(thing):
        predicate = "uses"
    elif predicate == "uses" and pattern.begins and is_subject(thing):
        # "Switched to botany"
        predicate = "studies"
    return RuleStatement(
        predicate=predicate,
        thing=thing,
        holds=pattern.holds,
        begins=pattern.begins,
        denied=pattern.denied,
        loose=pattern.loose,
        said=said,
        at=at,
        sentence=sentence,
    )


def _besides(
    pattern: Pattern, words: str, rest: str, found: list[RuleStatement]
) -> list[RuleStatement]:
    """The second statement of "joined Spotify as an engineer" and "a nurse at Charité"."""
    if pattern.predicate == "works at":
        as_what = _AS.search(rest)
        before = _WORK_BEFORE.search(words)
        work = rest[as_what.end() :] if as_what else before.group("work") if before else ""
        things = find("work", MatchContext("work as", work, rest)) if work else []
        return [RuleStatement("works as", thing, begins=pattern.begins) for thing in things]
    if pattern.predicate == "was born":
        # "Born and raised in Bergen"
        places = find("named_place", MatchContext("", rest.partition(" in ")[2], rest))
        return [RuleStatement("is from", one) for one in places] if _RAISED.search(words) else []
    if pattern.predicate == "works as":
        after = rest[rest.find(found[0].thing.phrase) + len(found[0].thing.phrase) :]
        origin = _FROM.match(after)
        home = _LIVING_IN.match(after, origin.end() if origin else 0)
        if home:
            places = find("named_place", MatchContext("live in", after[home.end() :], rest))
            from_there = [RuleStatement("is from", _named(origin))] if origin else []
            return [*from_there, *(RuleStatement("lives in", place) for place in places)]
        if origin and not is_firm(_named(origin)):
            # "I'm a chemist from Pune"; from October one only works.
            places = find("origin", MatchContext("from", origin["it"], rest))
            return [RuleStatement("is from", place) for place in places]
        where = _AT.match(after)
        name = objects.name(after[where.end() :]) if where else None
        return [RuleStatement("works at", name, begins=pattern.begins)] if name else []
    return []


def _instead(
    pattern: Pattern, rest: str, things: list[Thing], sentence: Sentence
) -> list[RuleStatement]:
    """What ended by "I study animation now, not graphic design"."""
    old = not_but(rest)
    if old is None:
        return []
    taken = {thing.name.casefold() for thing in things}
    spoken = MatchContext("", old, sentence.text)
    kind = "named_place" if pattern.kind in {"place", "moved_to"} else pattern.kind
    ended = [thing for thing in find(kind, spoken)[:1] if thing.name.casefold() not in taken]
    denied = _never_held(pattern.predicate, sentence.text)
    return [RuleStatement(pattern.predicate, thing, holds=False, denied=denied) for thing in ended]


def _can_be_a_name(word: str) -> bool:
    lowered = word.casefold()
    known = vocabulary()
    return not (
        lowered in known.languages
        or lowered in MONTH_NAMES
        or lowered in known.occupations
        or expression(_STATEMENTS, "not_a_name", exact_case=True).match(word)
    )


# --- what is said to hold beside what held before

# One has one of these at a time, unless one says otherwise.
_OF_TWO: Final = frozenset({"works at", "works as", "lives in"})


def holds_alongside(one: RuleStatement, turn: str) -> bool:
    """Whether it is said to hold beside what held before: "I also work as a postman".

    Args:
        one: What is stated.
        turn: All of what was said.
    """
    if not one.holds or one.corrects or one.predicate not in _OF_TWO:
        return False
    name, text, table = one.thing.phrase, one.sentence.text, "alongside"
    if turn.count(name) > 1 or expression(table, "others").search(turn):
        # "My brother is at Tesco. I also work at Tesco": as somebody else does.
        return False
    more = expression(table, "one_more").search(one.said)
    if one.begins:
        # "I also moved to Lisbon" tells one more thing that happened.
        return more is not None and more.group().casefold() != "also"
    verb, value = text.find(one.said), text.find(name)
    before = text[:verb] if verb >= 0 else ""
    behind = text[value + len(name) :] if value >= 0 else ""
    return bool(
        more
        or expression(table, "before").search(before)
        or expression(table, "behind").match(behind)
    )
