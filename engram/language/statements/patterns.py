"""The wordings of ``wordings.toml``, compiled, and found by the word they begin with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from engram.language.vocabulary import (
    Predicate,
    Templates,
    Wording,
    alternatives,
    spaced,
    vocabulary,
    wordings,
)

_HEADS: Mapping[str, str] = {
    "I": r"(?:i|we)(?=\s)",
    "AM": r"(?:i'm|i\s+am|im|we're|we\s+are)(?!\w)",
    "HAVE": r"(?:i've|ive|i\s+have|we've|we\s+have)(?!\w)",
    "WILL": r"(?:i'll|i\s+will|we'll|we\s+will|ill(?=\s+[a-z]))(?!\w)",
    "MY": r"(?:my|our)(?=\s)",
}
# Any other adverb: "deathly", "blissfully"; not a verb, and none that takes back what follows.
_LY = (
    r"(?!(?:re|ap|sup|im|com|multi)ply|fly|rely|hardly|rarely|barely|scarcely|nearly|possibly|"
    r"probably|hopefully|supposedly|allegedly|practically|potentially|ideally|virtually|"
    r"formerly|previously|initially)[a-z]{3,}ly"
)
_NO_HEAD = ""
_LETTERS_ONLY = re.compile(r"[a-z]+", re.I)
_HEADED = re.compile(r"\{([A-Z|]+)\}\s*")
# Such a wording can begin with any word.
_BEGINS_WITH_ANYTHING = re.compile(r"(?:\(\?[:!=])*(?:\(\?!|\\w|\[)")
# The object inside a wording; brackets within it are not nested deeper than a class.
_INSIDE = re.compile(r"\(\?P<it>[^()]*\)")
# "My flat's in Ghent", "my employer these days is Fenwick".
_IS = re.compile(r"(?<=[\w)?]) is\b(?!n't)")
_IS_IN_ANY_FORM = (
    "(?: these days| nowadays| currently| at the moment| for now| at present)?(?: is|'s)"
)
_OPTIONAL_LETTER = re.compile(r"([a-z])\?")


@dataclass(frozen=True, slots=True)
class CompiledCondition:
    """A condition, compiled."""

    of: str
    holds: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Pattern:
    """One wording with one head.

    Attributes:
        predicate: What it states.
        kind: How its object is cut out and checked.
        head: What it follows.
        says: What comes between the head and the object.
        holds: False where it says that something is no longer so.
        begins: Whether it says that something began.
        denied: Whether it says that something is not, rather than no longer, so.
        when: What must be said as well, if anything.
        loose: Whether it is less than plain.
        order: Among all patterns; the first that fits is taken.
    """

    predicate: str
    kind: str
    head: str
    says: re.Pattern[str]
    holds: bool
    begins: bool
    denied: bool
    when: CompiledCondition | None
    loose: bool
    order: int


@dataclass(frozen=True, slots=True)
class Reading:
    """A clause as head and tail: "I am", "a nurse".

    Attributes:
        head: One of the heads, or nothing.
        clause: All of it, head and tail.
        start: Where the tail begins.
    """

    head: str
    clause: str
    start: int = 0


def readings(clause: str) -> list[Reading]:
    """The clause without each of the heads that it can be said to begin with."""
    found = [Reading(_NO_HEAD, clause)]
    for name, head in _heads().items():
        matched = head.match(clause)
        if matched:
            found.append(Reading(name, clause, matched.end()))
    return found


def candidates(found: list[Reading]) -> list[tuple[Pattern, Reading]]:
    """The patterns that can fit by the first word after the head, in order."""
    tails = _tails()
    chosen = [
        (pattern, reading)
        for reading in found
        for word in [_LETTERS_ONLY.match(reading.clause, reading.start)]
        for key in (word.group().lower() if word else "", _ANY)
        for pattern in tails.get((reading.head, key), ())
    ]
    return sorted(chosen, key=lambda pair: pair[0].order)


@cache
def patterns() -> tuple[Pattern, ...]:
    """Every wording; endings first, because "used to be" also looks like a beginning."""
    data = wordings()
    ways: list[tuple[Predicate, str | Wording, dict[str, bool]]] = []
    for one in data.predicates:
        ways += [(one, way, {"holds": False}) for way in one.ended]
    for one in data.predicates:
        ways += [(one, way, {"holds": False}) for way in _endings(one, data.templates)]
    for one in data.predicates:
        ways += [(one, way, {"begins": True}) for way in one.begins]
    for one in data.predicates:
        denials = _denials(one, data.templates) if one.can_deny else ()
        ways += [(one, way, {"holds": False, "denied": True}) for way in denials]
    for one in data.predicates:
        forms = _forms(one, data.templates.holds)
        ways += [(one, way, {}) for way in (*forms, *_lasting(one), *one.says)]
    found: list[Pattern] = []
    for one, way, how in ways:
        wording = way if isinstance(way, Wording) else Wording(says=way)
        for head, tail in _heads_and_tails(wording.says):
            found.append(
                Pattern(
                    predicate=one.name,
                    kind=wording.kind or one.kind,
                    head=head,
                    says=_compiled(tail),
                    holds=how.get("holds", True),
                    begins=how.get("begins", False),
                    denied=how.get("denied", False),
                    when=_condition(wording.when) if wording.when else None,
                    loose=wording.loose,
                    order=len(found),
                )
            )
    return tuple(found)


@cache
def _condition(name: str) -> CompiledCondition:
    condition = wordings().conditions[name]
    return CompiledCondition(condition.of, re.compile(condition.holds, re.I))


def _denials(one: Predicate, templates: Templates) -> Iterator[Wording]:
    yield from (Wording(says=way) for way in _forms(one, templates.denied))
    kinds = {way.says: way.kind for way in one.says if isinstance(way, Wording)}
    for way in _being(one):
        # "I'm not a morning person" denies no tool.
        kind = kinds.get(f"{{AM}} {way}")
        yield from (Wording(says=t.replace("WAY", way), kind=kind) for t in templates.being_denied)


def _being(one: Predicate, *, always: bool = False) -> list[str]:
    """What can follow "I am": "married to", "fluent in"; only what counts ``always``."""
    ways = [way if isinstance(way, Wording) else Wording(says=way) for way in one.says]
    said = [way.says for way in ways if not (always and way.when)]
    being = [way.removeprefix("{AM} ") for way in said if way.startswith("{AM} ")]
    return [way for way in being if not way.startswith(("not ", "no ", "(?:going"))]


def _endings(one: Predicate, templates: Templates) -> Iterator[Wording]:
    for past in one.past:
        yield Wording(says=f"{{I}} {past}", when="then")
    if not one.can_end:
        return
    yield from (Wording(says=w, when="then") for w in _forms(one, templates.were))
    yield from (Wording(says=way) for way in _forms(one, templates.ended))
    yield from (Wording(says=w, when="any_more") for w in _forms(one, templates.ended_any_more))
    # "I was in Rome" tells of a visit as well: what counts now and then tells of no past.
    always = _being(one, always=True)
    for way in (way for way in _being(one) if not way.startswith("(?=an")):
        yield from (Wording(says=t.replace("WAY", way)) for t in templates.being_ended)
        if way in always:
            yield from (Wording(says=t.replace("WAY", way), when="then") for t in templates.was)
        yield from (
            Wording(says=t.replace("WAY", way), when="any_more")
            for t in templates.being_ended_any_more
        )


def _lasting(one: Predicate) -> Iterator[Wording]:
    """Still so: "I've lived in Porto since 2019"."""
    yield from (Wording(says=f"{{HAVE}} {past}", when="lasting") for past in one.past)


def _forms(one: Predicate, templates: tuple[str, ...]) -> Iterator[str]:
    for template in templates:
        yield template.replace("BASE", one.base).replace("GERUND", one.gerund)


def _heads_and_tails(says: str) -> Iterator[tuple[str, str]]:
    headed = _HEADED.match(says)
    if headed is None:
        yield _NO_HEAD, says
        return
    tail = says[headed.end() :]
    for head in headed.group(1).split("|"):
        if "(?P<it>" in tail:
            # Looked for in the whole sentence, where another's may be spoken of as well.
            yield _NO_HEAD, rf"\b{_HEADS[head]}\s+{tail}"
        else:
            yield head, _IS.sub(_IS_IN_ANY_FORM, tail) if head == "MY" else tail


_ANY = "*"


def is_inside(pattern: Pattern) -> bool:
    """Whether the wording has its object inside."""
    return _INSIDE.search(pattern.says.pattern) is not None


def inside(sentence: str) -> Iterator[Pattern]:
    """The wordings that have their object inside, "Callum and I got divorced", and may fit.

    Looking for an object from every word on costs most, so what must stand around it comes first.
    """
    each, together = _inside()
    if together.search(sentence):
        yield from (pattern for pattern, around in each if around.search(sentence))


@cache
def _inside() -> tuple[tuple[tuple[Pattern, re.Pattern[str]], ...], re.Pattern[str]]:
    """Those wordings, each with what it holds around its object; and any of that."""
    found = [(one, _around_it(one)) for one in patterns() if is_inside(one)]
    joined = "|".join(dict.fromkeys(around for _, around in found))
    # None begins in the middle of a word; asking there is most of what it costs.
    together = re.compile(rf"(?:(?<!\w)|(?!\w))(?:{joined})", re.I)
    return tuple((one, re.compile(around, re.I)) for one, around in found), together


def _around_it(pattern: Pattern) -> str:
    """What follows the object; where that can be nothing or is common, what stands before it."""
    before, after = _INSIDE.split(pattern.says.pattern)
    before, after = f"{before})", f"(?:{after}"
    if re.search(after, "", re.I):
        return before
    common = re.search(after, _COMMON, re.I) and not re.search(before, _COMMON, re.I)
    return before if common else after


# Words and signs of most sentences.
_COMMON = ", i and is was has the "


@cache
def _tails() -> Mapping[tuple[str, str], tuple[Pattern, ...]]:
    """Patterns by head and by every word that their tail can begin with, and more words."""
    found: dict[tuple[str, str], list[Pattern]] = {}
    for pattern in patterns():
        if is_inside(pattern):
            continue
        for word in _first_words(pattern.says.pattern):
            found.setdefault((pattern.head, word), []).append(pattern)
    return {key: tuple(ones) for key, ones in found.items()}


def _first_words(says: str) -> set[str]:
    bare = says.removeprefix("(?:")
    if bare.startswith(")"):
        return {_ANY}
    if _BEGINS_WITH_ANYTHING.match(bare) or not _LETTERS_ONLY.search(bare):
        return {_ANY}
    plain = re.sub(r"\\[sSwWdDbBZ]", " ", bare)
    with_letter, without = _OPTIONAL_LETTER.sub(r"\1", plain), _OPTIONAL_LETTER.sub("", plain)
    return {word.lower() for text in (with_letter, without) for word in _LETTERS_ONLY.findall(text)}


@cache
def _heads() -> Mapping[str, re.Pattern[str]]:
    adverbs = alternatives(vocabulary().adverbs)
    return {
        name: re.compile(
            rf"{head}(?:\s+(?:{adverbs}|{_LY})(?!\w))*\s*" if name != "MY" else rf"{head}\s+", re.I
        )
        for name, head in _HEADS.items()
    }


def _compiled(says: str) -> re.Pattern[str]:
    # Either the wording ends a word, or it ended with the space before the object.
    return re.compile(rf"(?:{spaced(says)})(?:(?!\w)|(?<=\s))", re.I)
