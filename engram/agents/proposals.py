"""What the rules found in a turn, as the agent answers it."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from datetime import datetime
from typing import Any, Final

from engram.agents.requests import (
    StatedKnowledge,
    TurnView,
)
from engram.consolidation.implied import SWITCHED
from engram.domain.memories import Category, Resolution
from engram.domain.slots import IS_MARRIED_TO, PROMISED, role_slot
from engram.language.periods import starts_told
from engram.language.statements.clauses import Sentence, verbatim
from engram.language.statements.declared import SPEAKER, Declared, is_held_by_one
from engram.language.statements.notes import (
    BETWEEN,
    Note,
    Person,
)
from engram.language.statements.predicates import RuleStatement
from engram.language.statements.promises import (
    Ended,
)
from engram.language.statements.reading import holds_alongside
from engram.language.statements.third_person import in_third_person, retold, sentence, weight
from engram.language.vocabulary import expression, vocabulary
from engram.language.vocabulary import words as words_of

_PLAINLY_SAID: Final = 0.9
# The rest of a sentence is taken as it stands, with more room for misreading.
AS_IT_STANDS: Final = 0.75
# Somebody else said it, and the user agreed.
_CONFIRMED: Final = 0.7
PROMISE_IMPORTANCE: Final = 0.8
_PERSON_IMPORTANCE: Final = 0.7
_LONGEST_QUOTE: Final = 300
_MOST_ENTITIES: Final = 5
# Also where a small letter or a few stand before the first capital: iPhone, macOS.
_CAPITALISED_NAME = re.compile(
    r"(?<!\w)(?:[a-z]{1,3}(?=[A-Z]))?[A-Z0-9][\w'&.+#-]*(?:\s+(?:(?:of|de|da|la|du|von|van|the|&)\s+)?[A-Z][\w'&.+#-]*)*"
)
_ENDS_SENTENCE = re.compile(r"(?:^|\s)[^\s.]{2,}\.$")
# Capitalised only because they begin a sentence.
_NO_NAMES = frozenset(
    {"i", "i'm", "i've", "i'll", "i'd", "we", "my", "our", "the", "a", "there", "it", "always",
     "never", "yesterday", "last", "this", "on", "in", "at", "for", "mum", "mom", "dad", "monday",
     "we've", "it's", "we're", "that's", "there's", "you've", "let's", "not", "no", "sorry",
     "wait", "actually", "correction", "tuesday", "wednesday", "thursday", "friday",
     "saturday", "sunday", "when", "if", "nothing", "she's", "he's", "they're", "don't", "do",
     "keep", "use", "write", "answer", "reply", "please", "remember"}
)  # fmt: skip
_SINCE = re.compile(r"\bsince\b", re.I)


def proposed(**said: Any) -> StatedKnowledge:
    """A statement that is not checked here, but by :func:`_fitting`.

    What one turn makes too long for a statement ends that statement, and not the batch.
    """
    # Pydantic looks at the signature of what makes a list whenever it makes one.
    lists: dict[str, Any] = {"quotes": [], "tags": [], "entities": []}
    return StatedKnowledge.model_construct(**lists | said)


def from_statement(
    turn: TurnView, stated: RuleStatement, *, of: str | None = None, left: Container[int] = ()
) -> StatedKnowledge:
    """A statement of the turn's speaker about themselves, or about ``of``.

    Args:
        turn: Where it stands.
        stated: What it states.
        of: Whom it is about, if not its speaker.
        left: Where sentences begin that name the tool that is given up themselves.
    """
    gives_up = stated.sentence.start not in left and _gives_up_another(stated)
    category, importance = weight(stated)
    changes = stated.begins or not stated.holds or bool(_SINCE.search(stated.sentence.text))
    thing = stated.thing
    entities = _capitalised(thing.phrase)
    return proposed(
        sources=[turn.alias],
        content=sentence(of or told_by(turn), stated),
        quotes=quotations(turn, stated.sentence),
        category=category,
        subject=of or turn.speaker or "user",
        predicate=SWITCHED if gives_up else stated.predicate,
        object=in_third_person(thing.own) or None,
        holds=stated.holds,
        begins=stated.begins,
        alongside=holds_alongside(stated, turn.content),
        entities=[*([of] if of else []), *entities][:_MOST_ENTITIES],
        happened_at=_start(stated.sentence.text, turn) if changes else None,
        confidence=AS_IT_STANDS if stated.loose or of else _PLAINLY_SAID,
        importance=importance,
    )


def _gives_up_another(stated: RuleStatement) -> bool:
    """Whether a tool takes the place of another one: "I switched to Neovim", and no more."""
    if not (stated.predicate == "uses" and stated.holds):
        return False
    if expression("exchanges", "now_instead").search(stated.sentence.text):
        return True
    if not stated.begins:
        return False
    if not expression("exchanges", "switching").search(stated.said):
        return False
    after = stated.sentence.text.partition(stated.thing.phrase)[2]
    return expression("exchanges", "altogether", exact_case=True).match(after) is not None


def agreed(asked: TurnView, answer: TurnView, made: StatedKnowledge) -> StatedKnowledge:
    """What one turn says and the next one takes over, drawn from both."""
    return made.model_copy(
        update={
            "sources": [asked.alias, answer.alias],
            "quotes": [answer.content.strip()[:_LONGEST_QUOTE].strip()],
            "confidence": _CONFIRMED,
        }
    )


def from_note(turn: TurnView, note: Note) -> StatedKnowledge:
    """A clause retold."""
    who = told_by(turn)
    content = " ".join(retold(part, who) for part in note.clause.split(BETWEEN))
    if note.category is Category.CORRECTION:
        content = f"{who} corrected: {content[:1].lower()}{content[1:]}"
    return proposed(
        sources=[turn.alias],
        content=content,
        quotes=quotations(turn, note.sentence),
        category=note.category,
        subject=turn.speaker or "user" if note.predicate else None,
        predicate=note.predicate,
        object=note.object,
        entities=names_in(note.clause),
        happened_at=_start(note.sentence.text, turn),
        confidence=AS_IT_STANDS,
        importance=note.importance,
    )


def from_person(turn: TurnView, person: Person) -> Iterator[StatedKnowledge]:
    """Who somebody is to the speaker, and what is said of them."""
    who = told_by(turn)
    whose = "the user" if who == "The user" else who
    verb = "is" if person.holds else "is no longer"
    held = role_slot(person.relation) if is_held_by_one(person.relation) else None
    married = person.relation in words_of("declared", "married")
    held = IS_MARRIED_TO if married else held
    if held and person.name.casefold() in vocabulary().pronouns:
        # "She is my wife" marries nobody to "she".
        return
    yield proposed(
        sources=[turn.alias],
        content=f"{who} {verb} married to {person.name}."
        if married
        else f"{person.name} {verb} {whose}'s {person.relation}.",
        quotes=quotations(turn, person.sentence),
        category=Category.RELATIONSHIP,
        subject=(turn.speaker or "user") if held else person.name,
        predicate=held or f"is {whose}'s",
        object=person.name if held else person.relation,
        holds=person.holds,
        entities=[person.name],
        confidence=_PLAINLY_SAID if person.holds else AS_IT_STANDS,
        importance=_PERSON_IMPORTANCE,
    )
    for fact in person.facts:
        yield from_statement(turn, fact, of=person.name)


def from_others(turn: TurnView, person: Person) -> Iterator[StatedKnowledge]:
    """What is said of somebody else, by name or as "the user's son"."""
    whose = f"{turn.speaker or 'user'}'s {person.relation}"
    for fact in person.facts:
        of = f"{told_by(turn)}'s {person.relation}" if person.relation else person.name
        made = from_statement(turn, fact, of=of)
        yield made.model_copy(update={"subject": whose}) if person.relation else made


def from_declared(turn: TurnView, one: Declared) -> StatedKnowledge:
    """What is plainly stated of somebody or something else, or of what belongs to the speaker."""
    speaker = turn.speaker or "user"
    about = f"{speaker}'s {one.subject}" if one.content.startswith("My ") else one.subject
    return proposed(
        sources=[turn.alias],
        content=retold(one.content, told_by(turn)),
        quotes=quotations(turn, one.sentence),
        category=Category.ENTITY if _is_naming(one) else Category.FACT,
        subject=speaker if one.subject == SPEAKER else about,
        predicate=one.predicate,
        object=one.value,
        holds=one.holds,
        begins=one.begins,
        entities=names_in(one.content),
        happened_at=_began(turn, one) if one.begins else None,
        confidence=AS_IT_STANDS,
        importance=_PERSON_IMPORTANCE,
    )


def _is_naming(one: Declared) -> bool:
    """Whether it tells what somebody or something is called."""
    return one.predicate in {"is called", "is named"} or one.subject.endswith("'s name")


def _began(turn: TurnView, one: Declared) -> datetime | None:
    """When a change happened, said beside its new value: "moved to Friday" is no date of it."""
    return _start(one.sentence.text.replace(one.value, " "), turn)


def _start(sentence: str, turn: TurnView) -> datetime | None:
    """The first moment of the time that a sentence of a turn names for what began."""
    return next((told.at for told in starts_told(sentence, turn.said_at)), None)


def from_end(turn: TurnView, promise: StatedKnowledge, end: Ended) -> StatedKnowledge:
    """That a promise was kept, or called off."""
    done = end.resolution is Resolution.FULFILLED
    outcome = "kept their promise to" if done else "no longer means to"
    return promise.model_copy(
        update={
            "sources": [turn.alias],
            "content": f"{told_by(turn)} {outcome} {promise.object}.",
            "quotes": quotations(turn, end.sentence),
            "holds": False,
            "ended": end.resolution,
            "happened_at": _start(end.sentence.text, turn),
            "confidence": AS_IT_STANDS,
        }
    )


def from_kept(turn: TurnView, what: str, where: Sentence) -> StatedKnowledge:
    """That something was done as promised, whichever turn promised it."""
    done = in_third_person(what)
    return proposed(
        sources=[turn.alias],
        content=f"{told_by(turn)} kept their promise to {done}.",
        quotes=quotations(turn, where),
        category=Category.COMMITMENT,
        subject=turn.speaker or "user",
        predicate=PROMISED,
        object=done,
        holds=False,
        ended=Resolution.FULFILLED,
        entities=names_in(done),
        happened_at=_start(where.text, turn),
        confidence=AS_IT_STANDS,
        importance=PROMISE_IMPORTANCE,
    )


def told_by(turn: TurnView) -> str:
    """Who says it, as statements name them."""
    return turn.speaker or "The user"


def quotations(turn: TurnView, where: Sentence) -> list[str]:
    """The words of the turn, as they stand there."""
    words = verbatim(turn.content, where)
    return [words[:_LONGEST_QUOTE].strip()] if words else []


def names_in(text: str) -> list[str]:
    """Names in a clause; what only its beginning capitalises is none."""
    found = (one for one in _capitalised(text) if one.lower() not in _NO_NAMES)
    return list(dict.fromkeys(found))[:_MOST_ENTITIES]


def _capitalised(text: str) -> list[str]:
    """Words with a capital, without the full stop of a sentence; "U.S." is spelled with its own."""
    found: list[str] = _CAPITALISED_NAME.findall(text)
    return [one[:-1] if _ENDS_SENTENCE.search(one) else one for one in found]
