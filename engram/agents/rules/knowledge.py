"""What the rules found in a turn, as the agent answers it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from engram.agents.answers import StatedKnowledge
from engram.agents.requests import TurnView
from engram.agents.rules.commitments import Ended
from engram.agents.rules.moments import began
from engram.agents.rules.notes import BETWEEN, Note
from engram.agents.rules.people import Person
from engram.agents.rules.retelling import retold
from engram.agents.rules.sentences import Sentence
from engram.agents.rules.stated import Stated
from engram.agents.rules.wording import in_third_person, sentence, weight
from engram.domain.memories import Category, Resolution

PROMISED: Final = "promised to"
_PLAIN: Final = 0.9
# The rest of a sentence is taken as it stands, with more room for misreading.
_AS_IT_STANDS: Final = 0.75
# Somebody else said it, and the user agreed.
_CONFIRMED: Final = 0.7
_PROMISE_IMPORTANCE: Final = 0.8
_PERSON_IMPORTANCE: Final = 0.7
_LONGEST_QUOTE: Final = 300
_MOST_NAMES: Final = 5
_NAME = re.compile(
    r"[A-Z0-9][\w'&.+#-]*(?:\s+(?:(?:of|de|da|la|du|von|van|the|&)\s+)?[A-Z][\w'&.+#-]*)*"
)
# Capitalised only because they begin a sentence.
_NO_NAMES = frozenset(
    {"i", "i'm", "i've", "i'll", "i'd", "we", "my", "our", "the", "a", "there", "it", "always",
     "never", "yesterday", "last", "this", "on", "in", "at", "for", "mum", "mom", "dad", "monday",
     "we've", "it's", "we're", "that's", "there's", "you've", "let's", "not", "no", "sorry",
     "wait", "actually", "correction", "tuesday", "wednesday", "thursday", "friday",
     "saturday", "sunday", "when", "if", "nothing"}
)  # fmt: skip
_SINCE = re.compile(r"\bsince\b", re.I)


def from_statement(turn: TurnView, stated: Stated, *, of: str | None = None) -> StatedKnowledge:
    """A statement of the turn's speaker about themselves, or about ``of``."""
    category, importance = weight(stated)
    changes = stated.begins or not stated.holds or bool(_SINCE.search(stated.sentence.text))
    thing = stated.thing
    entities = _NAME.findall(thing.phrase)
    return StatedKnowledge(
        sources=[turn.alias],
        content=sentence(of or _who(turn), stated),
        quotes=_quotes(turn, stated.sentence),
        category=category,
        subject=of or turn.speaker or "user",
        predicate=stated.predicate,
        object=in_third_person(thing.name) or None,
        holds=stated.holds,
        begins=stated.begins,
        entities=[*([of] if of else []), *entities][:_MOST_NAMES],
        happened_at=began(stated.sentence.text, turn.said_at) if changes else None,
        confidence=_AS_IT_STANDS if stated.loose or of else _PLAIN,
        importance=importance,
    )


def from_confirmation(asked: TurnView, answer: TurnView, stated: Stated) -> StatedKnowledge:
    """What the turn before claims of the speaker, who says yes to it."""
    made = from_statement(answer, stated)
    return made.model_copy(
        update={
            "sources": [asked.alias, answer.alias],
            "quotes": [answer.content.strip()[:_LONGEST_QUOTE].strip()],
            "confidence": _CONFIRMED,
        }
    )


def from_note(turn: TurnView, note: Note) -> StatedKnowledge:
    """A clause retold."""
    who = _who(turn)
    content = " ".join(retold(part, who) for part in note.clause.split(BETWEEN))
    if note.category is Category.CORRECTION:
        content = f"{who} corrected: {content[:1].lower()}{content[1:]}"
    return StatedKnowledge(
        sources=[turn.alias],
        content=content,
        quotes=_quotes(turn, note.sentence),
        category=note.category,
        subject=turn.speaker or "user" if note.predicate else None,
        predicate=note.predicate,
        object=note.object,
        entities=_names(note.clause),
        happened_at=began(note.sentence.text, turn.said_at),
        confidence=_AS_IT_STANDS,
        importance=note.importance,
    )


def from_person(turn: TurnView, person: Person) -> Iterator[StatedKnowledge]:
    """Who somebody is to the speaker, and what is said of them."""
    who = _who(turn)
    whose = "the user" if who == "The user" else who
    verb = "is" if person.holds else "is no longer"
    yield StatedKnowledge(
        sources=[turn.alias],
        content=f"{person.name} {verb} {whose}'s {person.relation}.",
        quotes=_quotes(turn, person.sentence),
        category=Category.RELATIONSHIP,
        subject=person.name,
        predicate=f"is {whose}'s",
        object=person.relation,
        holds=person.holds,
        entities=[person.name],
        confidence=_PLAIN if person.holds else _AS_IT_STANDS,
        importance=_PERSON_IMPORTANCE,
    )
    for fact in person.facts:
        yield from_statement(turn, fact, of=person.name)


def from_end(turn: TurnView, promise: StatedKnowledge, end: Ended) -> StatedKnowledge:
    """That a promise was kept, or called off."""
    done = end.resolution is Resolution.FULFILLED
    outcome = "kept their promise to" if done else "no longer means to"
    return promise.model_copy(
        update={
            "sources": [turn.alias],
            "content": f"{_who(turn)} {outcome} {promise.object}.",
            "quotes": _quotes(turn, end.sentence),
            "holds": False,
            "ended": end.resolution,
            "happened_at": began(end.sentence.text, turn.said_at),
            "confidence": _AS_IT_STANDS,
        }
    )


def from_kept(turn: TurnView, what: str, where: Sentence) -> StatedKnowledge:
    """That something was done as promised, whichever turn promised it."""
    done = in_third_person(what)
    return StatedKnowledge(
        sources=[turn.alias],
        content=f"{_who(turn)} kept their promise to {done}.",
        quotes=_quotes(turn, where),
        category=Category.COMMITMENT,
        subject=turn.speaker or "user",
        predicate=PROMISED,
        object=done,
        holds=False,
        ended=Resolution.FULFILLED,
        entities=_names(done),
        happened_at=began(where.text, turn.said_at),
        confidence=_AS_IT_STANDS,
        importance=_PROMISE_IMPORTANCE,
    )


def _who(turn: TurnView) -> str:
    return turn.speaker or "The user"


def _quotes(turn: TurnView, where: Sentence) -> list[str]:
    """The words of the turn, as they stand there."""
    words = turn.content[where.start : where.start + len(where.text)].strip()
    return [words[:_LONGEST_QUOTE].strip()] if words else []


def _names(text: str) -> list[str]:
    """Names in a clause; what only its beginning capitalises is none."""
    found = (one for one in _NAME.findall(text) if one.lower() not in _NO_NAMES)
    return list(dict.fromkeys(found))[:_MOST_NAMES]
