"""What a turn tells beyond predicates: decisions, principles, moments, skills and the like."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict, Field

from engram.agents.rules.clauses import clauses, opened
from engram.agents.rules.expressions import expression, expression_text, spaced
from engram.agents.rules.sentences import Sentence, sentences
from engram.agents.rules.vocabulary import alternatives, vocabulary
from engram.domain.memories import Category

_REFERENCE = re.compile(r"\{([A-Z_a-z]+)\}")
_CAPITALS = re.compile(r"\[A-Z[^\]]*\]")
_FEWEST_WORDS = 3
BETWEEN = "\n"
"""What separates the sentences of a note that has two."""


class Kind(BaseModel):
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
    data: Kind
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
    known = frozenset(told)
    found: list[Note] = []
    correcting: Note | None = None
    for sentence in sentences(text):
        if correcting is not None:
            # What mends may follow in a sentence of its own.
            found[-1] = _joined(correcting, sentence)
            return found
        inside = [at for at in known if sentence.start <= at < sentence.start + len(sentence.text)]
        if not inside and _mends(sentence):
            correcting = _correction(sentence)
            found.append(correcting)
            continue
        if not inside:
            found += _in_sentence(sentence)
    return found


def _mends(sentence: Sentence) -> bool:
    """Whether it mends something said before, and does not ask for it to be mended."""
    _, text = opened(sentence)
    return (
        len(sentence.text.split()) >= _FEWEST_WORDS
        and bool(expression("notes", "mends").search(sentence.text))
        and not expression("notes", "asks").match(text)
    )


def _in_sentence(sentence: Sentence) -> Iterator[Note]:
    start, text = opened(sentence)
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


def _note(
    kind: _Kind, clause: str, at: int, sentence: Sentence, said: re.Match[str] | None
) -> Note:
    groups = said.groupdict() if said else {}
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


def _joined(note: Note, sentence: Sentence) -> Note:
    return Note(
        note.category,
        note.importance,
        f"{note.clause}{BETWEEN}{sentence.text}",
        note.at,
        note.sentence,
    )


@cache
def _kinds() -> tuple[_Kind, ...]:
    text = files("engram.agents.rules").joinpath("notes.toml").read_text(encoding="utf-8")
    data = [Kind.model_validate(entry) for entry in tomllib.loads(text)["notes"]]
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
    written = [_REFERENCE.sub(lambda name: _reference(name.group(1)), spaced(way)) for way in ways]
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
    title = r"[A-Z][\w'&.-]*(?:\s+(?:&\s+)?[A-Z][\w'&.-]*)*"
    made = {
        "I": rf"(?:i|we){adverbs}",
        "AM": rf"(?:i'm|i\s+am|im|we're|we\s+are){adverbs}",
        "HAVE": rf"(?:i've|ive|i\s+have|we've|we\s+have){adverbs}",
        "I_HAVE": rf"(?:i've|ive|i\s+have|we've|we\s+have|i|we){adverbs}",
        "name": title,
        "title": title,
        "past": rf"(?:[a-z]+ed|{alternatives(words.irregular_pasts)})",
        "language": rf"(?:{alternatives(words.languages)})\b",
        "ago": expression_text("notes", "ago"),
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
    }
    return made[name] if name in made else rf"(?:{alternatives(lists[name])})\b"
