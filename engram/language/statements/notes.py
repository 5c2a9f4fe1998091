"""What a turn says beyond the speaker's own facts: people, decisions, principles, skills."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache

from pydantic import BaseModel, ConfigDict, Field

from engram.domain.memories import Category
from engram.language.names import can_name_a_person
from engram.language.negation import find_negations
from engram.language.statements.clauses import (
    Clause,
    Sentence,
    clauses,
    masked,
    opened,
    sentences,
    verbatim,
    with_words,
)
from engram.language.statements.objects import is_origin
from engram.language.statements.predicates import RuleStatement
from engram.language.statements.reading import in_clause
from engram.language.statements.slips import said_again
from engram.language.text import QUOTED, SIGNS_APART, is_past, verb_lemma
from engram.language.text import plain as in_plain_form
from engram.language.vocabulary import (
    alternatives,
    expression,
    expression_text,
    load,
    spaced,
    vocabulary,
)
from engram.language.vocabulary import words as words_of

# --- who the people around the speaker are, and what is plainly said of them

_TITLE = "(?:Mr|Mrs|Ms|Miss|Dr|Prof)"
_NAME = rf"(?P<name>(?:{_TITLE}\.?\s+)?[A-Z][\w'-]*[\w](?:\s+[A-Z][\w'-]*)*)"
# Who speaks, what somebody is addressed by, and what comes before "my dad".
_NO_NAME = re.compile(
    rf"(?:I|We)(?:'\w+)?\b|(?:{_TITLE}|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|Not|Even|Only|Also|Both|Just|Maybe|Like|"
    r"Unlike|Especially|Apparently|Sometimes|Thankfully|Luckily|Poor)\Z",
    re.I,
)
# "Marrying my partner"; "Ming, my brother" is somebody.
_CALLED = re.compile(r"\b(?:called|named|name)\b", re.I)
_DOING = re.compile(r"[A-Z][a-z]{2,}ing\s+(?:my|our)\b")
_AUXILIARIES = {
    "is": "am", "'s": "am", "has": "have", "doesn't": "don't", "isn't": "am not", "was": "was",
    "had": "had", "hasn't": "haven't", "can": "can", "used": "used", "no": "no", "now": "now",
}  # fmt: skip
# What is said of somebody else in these words is told of them, not of the speaker.
_SAID_OF_OTHERS = frozenset(
    {"lives in", "works at", "works as", "studies", "speaks", "is from", "is allergic to",
     "was born", "uses", "owns", "likes", "dislikes", "has", "diet is"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody close to the speaker.

    Attributes:
        name: As it was said.
        relation: What they are to the speaker: "sister".
        holds: False for what they were.
        at: Where in the turn.
        sentence: In which sentence.
        facts: What the sentence states of them.
        together: Whether the speaker has them, or several of them: "our two kids, Lotte and Finn".
    """

    name: str
    relation: str
    holds: bool
    at: int
    sentence: Sentence
    facts: tuple[RuleStatement, ...] = ()
    together: bool = False


def people(text: str) -> Iterator[Person]:
    """Everybody whom a turn introduces by name and relation."""
    plain = masked(text)
    for sentence in sentences(text):
        at, said = opened(sentence)
        for pattern in _introductions():
            found = pattern.search(said)
            if found is None:
                continue
            before = found.groupdict().get("was") or ""
            first, name = found.group("name").lower(), found.group("name").removesuffix("'s")
            if (
                is_past(first)
                or _NO_NAME.match(first)
                or first.partition(" ")[0] in vocabulary().thing_prepositions
                or _DOING.match(found.group())
                or not (_CALLED.search(found.group()) or can_name_a_person(name))
            ):
                # "Rang my mum", "In Rome, my mum" and "Marrying my partner" introduce nobody, nor
                # does "my husband's name, I'm Ana".
                continue
            if is_origin(first) and found.start("relation") < found.start("name"):
                # "My boss is Irish"
                continue
            yield Person(
                name=said_again(name, plain, at + found.end("name")) or name,
                relation=" ".join(found.group("relation").lower().split()),
                holds=not expression("people", "over").search(before),
                at=at + found.start(),
                sentence=sentence,
                facts=tuple(_facts(said[found.end() :], at + found.end(), sentence, plain)),
                together=pattern is _introductions()[-1],
            )
            break
        yield from _several(said, at, sentence)


def _several(said: str, at: int, sentence: Sentence) -> Iterator[Person]:
    """Each of those who are named together: "our two kids, Lotte and Finn"."""
    found = _named_together().search(said)
    if found is None:
        return
    kin = found.group("kin").lower()
    relation = _ONE_OF.get(kin, kin.removesuffix("s"))
    names = _BETWEEN_NAMES.split(re.sub(_AGE, "", found.group("names")))
    for name in () if any(map(_NO_NAME.match, names)) else names:
        yield Person(name, relation, True, at + found.start(), sentence, together=True)


def denied_of_others(text: str) -> Iterator[Person]:
    """Of whom a turn says that something is not so: by name, or as "my son", and what that is.

    Somebody with a name may be known from before: their relation is empty here.
    """
    for denial in find_negations(text):
        said, whom = in_plain_form(denial.evidence), len(denial.subject)
        sentence = next((one for one in sentences(text) if said in one.text), None)
        name = said[:whom]
        if sentence is None or name.casefold() != denial.subject or denial.subject in _PRONOUNS:
            continue
        whose, _, relation = name.partition(" ")
        own = whose.lower() in {"my", "our"} and relation.lower() in vocabulary().relations
        if not own and not (name[:1].isupper() and can_name_a_person(name)):
            continue
        begin = sentence.text.find(said)
        rest = _NO_LONGER.sub(_lemma, sentence.text[begin + whom :], count=1)
        told = _facts(rest, sentence.start + begin, sentence, sentence.text)
        facts = tuple(one for one in told if not one.holds or one.predicate == "dislikes")
        kin = relation.lower() if own else ""
        yield Person(name, kin, True, sentence.start + begin, sentence, facts)


def health_of_others(text: str) -> Iterator[Person]:
    """Of whom a turn says what they must not or do not eat: "Stefan is allergic to cats".

    Somebody with a name may be known from before: their relation is empty here.
    """
    for sentence in sentences(text):
        at, said = opened(sentence)
        found = _of_health().match(said)
        if found is None:
            continue
        who = found.group("who")
        # "Mum is allergic to cats", as "my mum" is.
        kin = found.group("kin") or (who if who.lower() in vocabulary().relations else "")
        if not kin and (_is_nobody(who) or not can_name_a_person(who)):
            continue
        told = _facts(said[found.end() :], at + found.end(), sentence, sentence.text)
        facts = tuple(one for one in told if one.holds and one.predicate in _OF_HEALTH)
        yield Person(who, kin.lower(), True, at, sentence, facts)


_OF_HEALTH = frozenset({"is allergic to", "diet is"})


def _is_nobody(name: str) -> bool:
    lowered = name.lower()
    what = expression("people", "eaten")
    return lowered in vocabulary().pronouns or any(w.match(lowered) for w in (_NO_NAME, what))


@cache
def _of_health() -> re.Pattern[str]:
    return re.compile(
        rf"(?P<who>(?i:my|our)\s+(?P<kin>{alternatives(vocabulary().relations)})"
        r"|[A-Z][\w-]*[\w](?:\s+[A-Z][\w-]*)?)"
        r"(?=(?:'s|\s+is|\s+has\s+become|\s+went)\s)(?=.*\b(?:allergic|vegan|vegetarian|pescatarian)\b)"
    )


_PRONOUNS = frozenset({"he", "she", "they"})
_NO_LONGER = re.compile(r"(?<= no longer )[a-z]+")


def _lemma(found: re.Match[str]) -> str:
    return verb_lemma(found.group())


def person_meant(pronoun: str, before: str) -> str | None:
    """Who "he" or "she" is after these words; None unless they name one person, who can be that.

    Args:
        pronoun: In lower case.
        before: What was said right before it.
    """
    named = list(people(before))
    others = set(_NAMED_BESIDE.findall(before))
    if pronoun not in {"he", "she"} or len(named) != 1 or not others <= {named[0].name}:
        return None
    of_the_other = words_of("declared", "she_is" if pronoun == "he" else "he_is")
    return None if named[0].relation in of_the_other else named[0].name


# Where somebody lives, or works, is not who is meant.
_NAMED_BESIDE = re.compile(r"(?<!\bin )(?<!\bat )(?<!\bfrom )(?<=[a-z,] )(?!I\b)[A-Z][\w-]+")


def _facts(rest: str, at: int, sentence: Sentence, turn: str) -> Iterator[RuleStatement]:
    """What follows, read as if they said it themselves: "lives in Porto" as "I live in Porto"."""
    found = expression("people", "verb").match(rest)
    if found is None:
        return
    verb = found.group("verb").lower()
    first = _AUXILIARIES.get(verb)
    if first is None:
        if not (is_past(verb) or verb.endswith("s")):
            return
        first = verb if is_past(verb) else verb_lemma(verb)
    clause = Clause(f"I {first}{rest[found.end() :]}", at)
    yield from (s for s in in_clause(clause, sentence, turn) if s.predicate in _SAID_OF_OTHERS)


_BETWEEN_NAMES = re.compile(r",\s+and\s+|,\s+|\s+and\s+")
# As it stands behind a name: "Emil (12)".
_AGE = r"(?:\s\(\d{1,2}\))?"
_ONE_OF = {"kids": "child", "children": "child", "boys": "son", "girls": "daughter"}


@cache
def _named_together() -> re.Pattern[str]:
    several = alternatives((*_ONE_OF, *(f"{one}s" for one in vocabulary().relations)))
    return re.compile(
        rf"(?i:\b(?:my|our|have|'ve|got)\s+(?:(?:two|three|four|five|\d|lovely|little|grown-up|big|"
        rf"older|younger|twin)\s+){{0,3}}(?P<kin>{several})"
        rf"(?:,|:|\s+(?:are\s+)?(?:called|named)|\s+are|'s\s+names\s+are|'\s+names\s+are)?)\s+"
        rf"(?P<names>(?:[A-Z][\w'-]+{_AGE},\s+){{0,5}}[A-Z][\w'-]+{_AGE},?\s+and\s+[A-Z][\w-]+)"
        r"(?!\w|\s+[A-Z])"
    )


@cache
def _introductions() -> tuple[re.Pattern[str], ...]:
    relation = rf"(?P<relation>{alternatives(vocabulary().relations)})"
    which = r"(?:(?:older|younger|big|little|new|old|twin|eldest|youngest)\s+)?"
    mine = rf"(?i:\b(?:my|our)\s+{which}{relation})"
    called = r"(?i:(?:is|are|was)\s+(?:called\s+|named\s+)?)?"
    was = r"(?:(?<='s)\s+|\s+(?P<was>(?i:is|was|used\s+to\s+be|is\s+no\s+longer))\s+)"
    # "Tom, my brother, plays chess"; but "Hopefully, my boss says yes" and "Call my mum".
    ends = r"(?=\s*(?:\Z|[,.;:!?)]|(?:and|who|whose|from|in|at|of)\b))"
    return (
        re.compile(rf"{mine}(?i:'s\s+name)?,?\s+{called}{_NAME}(?!\w),?"),
        # "Tom is my wife's brother" says who neither of them is.
        re.compile(rf"^{_NAME},?{was}{mine}(?!\w|'s\s+(?!name\b|nickname\b)),?"),
        re.compile(rf"^{_NAME},\s+{mine}(?!\w|'s\b){ends},?"),
        re.compile(
            rf"(?i:\b(?:i|we)\s+(?:also\s+)?(?:have|'ve got|got)\s+an?\s+{which}{relation})"
            rf"(?:,|:|(?i:\s+(?:called|named)))\s+{_NAME}(?=\s*(?:\Z|[.,;!]|(?:and|who|aged)\b))"
        ),
    )


# --- what a turn tells beyond predicates: decisions, principles, moments, skills and the like

_WORDING_REFERENCE = re.compile(r"\{([A-Z_a-z]+)\}")
_CAPITALS = re.compile(r"\[A-Z[^\]]*\]")
_FEWEST_WORDS = 3
BETWEEN = "\n"
"""What separates the sentences of a note that has two."""


class NoteKind(BaseModel):
    """An entry of ``notes.toml``; see there.

    Attributes:
        category: Which of the ten.
        importance: Of such notes, 0 to 1.
        says: At the start of a clause.
        anywhere: In the whole sentence.
        unless: Not if the sentence says this too.
        needs: Only if the sentence says this too.
        predicate: What the group "it" is the object of.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    category: Category
    importance: float = Field(ge=0, le=1)
    says: tuple[str, ...] = ()
    anywhere: tuple[str, ...] = ()
    unless: str | None = None
    needs: str | None = None
    predicate: str | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """Something told.

    Attributes:
        category: Which of the ten.
        importance: 0 to 1.
        clause: The words, from their subject on, as the speaker said them.
        at: Where in the turn.
        sentence: In which sentence.
        predicate: What it states of its object, if it has one.
        object: Of what.
    """

    category: Category
    importance: float
    clause: str
    at: int
    sentence: Sentence
    predicate: str | None = None
    object: str | None = None


@dataclass(frozen=True, slots=True)
class _Kind:
    data: NoteKind
    says: re.Pattern[str] | None
    anywhere: re.Pattern[str] | None
    unless: re.Pattern[str] | None
    needs: re.Pattern[str] | None


def notes(text: str, told: Iterable[int] = ()) -> list[Note]:
    """Every note of a turn, one for each clause at most.

    Args:
        text: The turn.
        told: Where in it clauses begin that are understood already.
    """
    whole = (_with_words(one, text) for one in _notes(text, frozenset(told)))
    return [one for one in whole if one is not None]


def _notes(text: str, known: frozenset[int]) -> list[Note]:
    found: list[Note] = []
    correcting: Note | None = None
    for sentence in sentences(text):
        if correcting is not None:
            # What mends may follow in a sentence of its own.
            found[-1] = _joined(correcting, sentence, text)
            return found
        inside = [at for at in known if sentence.start <= at < sentence.start + len(sentence.text)]
        if not inside and _mends(sentence):
            correcting = _with_quotations(_correction(sentence), text)
            found.append(correcting)
            continue
        if not inside:
            said = (one for one in _in_sentence(sentence) if _names_what(one, text))
            found += (_with_quotations(one, text) for one in said)
    return found


# So far before "she" is looked for who is meant.
_SHORTLY_BEFORE = 200


def _names_what(note: Note, text: str) -> bool:
    """Whether it says of whom or what, by itself or by what stands before it.

    "I'm not taking it currently" tells nobody anything later; "She's called Renate" does not
    unless somebody was spoken of.
    """
    if expression("notes", "points_at").fullmatch(note.clause):
        return False
    if expression("notes", "of_somebody").match(note.clause) is None:
        return True
    before = masked(text)[max(0, note.at - _SHORTLY_BEFORE) : note.at]
    return expression("notes", "somebody").search(before) is not None


# What is left of a quotation with which a clause begins or ends: it is blank but for its middle.
_OPENS = re.compile(r"(?:[\"“„«][^\"“”»\n]*|(?<!\w)['‘][^'’\n]*)\Z")
_OPENED = re.compile(r"[\"“„«]|(?<!\w)['‘]")
_CLOSES = re.compile(r"[^\"“”»\n]{0,200}[\"“”»]")
_CLOSES_SINGLE = re.compile(r"(?:[^'’\n]|['’](?=\w)){0,200}['’]")
_LONGEST_OPENING = 200


def _with_words(note: Note, text: str) -> Note | None:
    """The note with the code and the links that it names; None if they do not fit in it."""
    clause, what = with_words(note.clause, text), with_words(note.object or "", text)
    if clause is None or what is None:
        return None
    return note if clause == note.clause else replace(note, clause=clause, object=what or None)


def _with_quotations(note: Note, text: str) -> Note:
    """The note with what it quotes, which is blank while rules look for what is said."""
    return replace(note, clause=_quoting(note.clause, note.at, text))


def _quoting(clause: str, at: int, text: str) -> str:
    if QUOTED not in clause:
        return clause
    words = verbatim(text, Sentence(clause, at))
    begin = text.find(words)
    end = begin + len(words)
    if clause.lstrip().startswith(QUOTED):
        opening = _OPENS.search(text[max(0, begin - _LONGEST_OPENING) : begin])
        words = f"{opening.group() if opening else ''}{words}"
    if clause.rstrip().endswith(QUOTED):
        marks = _OPENED.findall(words)
        closes = _CLOSES_SINGLE if marks and marks[-1] in "'‘" else _CLOSES
        closing = closes.match(text, end)
        words = f"{words}{closing.group() if closing else ''}"
    return words


def _mends(sentence: Sentence) -> bool:
    """Whether it mends something said before, and does not ask for it to be mended."""
    _, text = opened(sentence)
    return (
        len(sentence.text.split()) >= _FEWEST_WORDS
        and bool(expression("notes", "mends").search(sentence.text))
        and not expression("notes", "asks").match(text)
    )


def _in_sentence(sentence: Sentence) -> Iterator[Note]:
    start, text = _opened(sentence)
    spoken = [(one.text, one.at) for one in clauses(sentence)]
    starts = spoken if spoken and spoken[0][1] == start else [(text, start), *spoken]
    for clause, at in starts:
        for kind in _kinds():
            said = kind.says.match(clause) if kind.says else None
            if said and _fits(kind, sentence):
                yield _note(kind, clause, at, sentence, said)
                return
    for kind in _kinds():
        said = kind.anywhere.search(text) if kind.anywhere else None
        if said and _fits(kind, sentence):
            yield _note(kind, text, start, sentence, None)
            return


# "No new dependencies" is told by its "no"; "no, it's in May" and "no we moved" are not.
_NONE = re.compile(r"\bno\s+\Z", re.I)
_SAYS_ANEW = re.compile(
    r"(?:i|im|we|you|he|she|it|they|my|our|the|this|that|not|wait|sorry)\b", re.I
)


def _opened(sentence: Sentence) -> tuple[int, str]:
    """The sentence without its opening, but with the "no" that a noun follows."""
    start, text = opened(sentence)
    none = _NONE.search(sentence.text[: start - sentence.start])
    if none is None or _SAYS_ANEW.match(text):
        return start, text
    return sentence.start + none.start(), sentence.text[none.start() :]


def _note(
    kind: _Kind, clause: str, at: int, sentence: Sentence, said: re.Match[str] | None
) -> Note:
    groups = said.groupdict() if said else {}
    while (bare := expression("notes", "aside").sub("", clause)) != clause:
        clause = bare
    return Note(
        category=kind.data.category,
        importance=kind.data.importance,
        clause=clause,
        at=at,
        sentence=sentence,
        predicate=kind.data.predicate,
        object=next((value for value in groups.values() if value), None),
    )


def _fits(kind: _Kind, sentence: Sentence) -> bool:
    text = sentence.text
    return not (kind.unless and kind.unless.search(text)) and (
        kind.needs is None or kind.needs.search(text) is not None
    )


def _correction(sentence: Sentence) -> Note:
    start, text = opened(sentence)
    return Note(Category.CORRECTION, 0.7, text, start, sentence)


def _joined(note: Note, sentence: Sentence, text: str) -> Note:
    mended = _quoting(sentence.text, sentence.start, text)
    return replace(note, clause=f"{note.clause}{BETWEEN}{mended}")


@cache
def _kinds() -> tuple[_Kind, ...]:
    data = [NoteKind.model_validate(entry) for entry in load("notes")["notes"]]
    return tuple(
        _Kind(
            data=one,
            says=_compiled(one.says),
            anywhere=_compiled(one.anywhere),
            unless=_compiled([one.unless] if one.unless else []),
            needs=_compiled([one.needs] if one.needs else []),
        )
        for one in data
    )


def _compiled(ways: Iterable[str]) -> re.Pattern[str] | None:
    written = [
        _WORDING_REFERENCE.sub(lambda name: _reference(name.group(1)), spaced(way)) for way in ways
    ]
    if not written:
        return None
    joined = "|".join(f"(?:{way})" for way in written)
    renamed = iter(range(1000))
    # The same group name in several wordings of one entry.
    joined = re.sub(r"\(\?P<it>", lambda _: f"(?P<it{next(renamed)}>", joined)
    return re.compile(_CAPITALS.sub(lambda capital: f"(?-i:{capital.group()})", joined), re.I)


@cache
def _reference(name: str) -> str:
    words = vocabulary()
    adverbs = rf"(?:\s+(?:{alternatives(words.adverbs)})(?!\w))*"
    # "It taught me" and "This was a reminder" name nobody and nothing.
    title = (
        r"(?!(?:It|This|That|These|Those|They|There|Here|He|She|We|You|What|Who|Which|One)(?!\w))"
        r"[A-Z][\w'&.-]*(?:\s+(?:&\s+)?[A-Z][\w'&.-]*)*"
    )
    made = {
        "I": rf"(?:i|we){adverbs}",
        "AM": rf"(?:i'm|i\s+am|im|we're|we\s+are){adverbs}",
        "HAVE": rf"(?:i've|ive|i\s+have|we've|we\s+have){adverbs}",
        "I_HAVE": rf"(?:i've|ive|i\s+have|we've|we\s+have|i|we){adverbs}",
        "name": title,
        "title": title,
        # "Won't" is no past of "win".
        "past": rf"(?:[a-z]+ed|{alternatives(words.irregular_pasts)})(?!'t)",
        "language": rf"(?:{alternatives(words.languages)})\b",
        "ago": expression_text("notes", "ago"),
        "apart": SIGNS_APART.pattern,
        "pointing": expression_text("notes", "pointing"),
        "dose": expression_text("notes", "dose"),
        "ingredient": expression_text("notes", "ingredient"),
        "rides": expression_text("notes", "rides"),
        "medicine": expression_text("notes", "medicine"),
    }
    lists = {
        "relation": words.relations,
        "service": words.services,
        "attribute": words.attributes,
        "skill": words.skill_verbs,
        "stative": words.stative_verbs,
        "to_you": words.to_you_verbs,
        "memorable": words.memorable_verbs,
        "chore": words.chore_verbs,
        "order": words.order_verbs,
    }
    return made[name] if name in made else rf"(?:{alternatives(lists[name])})\b"
