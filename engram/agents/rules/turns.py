"""The extraction request, answered by rule."""

from __future__ import annotations

import re
from typing import Final

from engram.agents.answers import MAX_STATEMENTS, ExtractionAnswer, StatedKnowledge
from engram.agents.requests import ExtractionRequest, TurnView
from engram.agents.rules.moments import began
from engram.agents.rules.notes import Note, notes
from engram.agents.rules.retelling import retold
from engram.agents.rules.stated import Stated
from engram.agents.rules.statements import statements
from engram.agents.rules.wording import in_third_person, sentence, weight
from engram.domain.memories import Category

CONFIDENCE: Final = 0.9
# The rest of a sentence is taken as it stands, with more room for misreading.
CONFIDENCE_OF_NOTES: Final = 0.75
_NO_NAMES = frozenset(
    {"i", "i'm", "i've", "i'll", "i'd", "we", "my", "our", "the", "a", "there", "it"}
)
_NAME = re.compile(
    r"[A-Z0-9][\w'&.+#-]*(?:\s+(?:(?:of|de|da|la|du|von|van|the|&)\s+)?[A-Z][\w'&.+#-]*)*"
)
# A speaker's name of this kind is a machine's, and what it says of itself is no memory.
_MACHINE = re.compile(r"\b(?:assistant|bot|ai|agent|system|tool|model)\b", re.I)
_SINCE = re.compile(r"\bsince\b", re.I)


def extract(request: ExtractionRequest) -> ExtractionAnswer:
    """What the turns state in words that the rules know."""
    found = [stated for turn in request.turns if _speaks_for_itself(turn) for stated in _told(turn)]
    kept = found[:MAX_STATEMENTS]
    return ExtractionAnswer(
        reasoning=f"{len(kept)} statements in {len(request.turns)} turns, by rule.",
        statements=kept,
    )


def _told(turn: TurnView) -> list[StatedKnowledge]:
    stated = statements(turn.content)
    more = notes(turn.content, [one.at for one in stated])
    return [*(_knowledge(turn, one) for one in stated), *(_noted(turn, one) for one in more)]


def _noted(turn: TurnView, note: Note) -> StatedKnowledge:
    who = turn.speaker or "The user"
    content = retold(note.clause, who)
    if note.category is Category.CORRECTION:
        content = f"{who} corrected: {content[:1].lower()}{content[1:]}"
    return StatedKnowledge(
        sources=[turn.alias],
        content=content,
        category=note.category,
        subject=turn.speaker or "user" if note.predicate else None,
        predicate=note.predicate,
        object=note.object,
        entities=_names(note.clause),
        happened_at=began(note.sentence.text, turn.said_at),
        confidence=CONFIDENCE_OF_NOTES,
        importance=note.importance,
    )


def _names(text: str) -> list[str]:
    """Names in a clause; what only its beginning capitalises is none."""
    return [one for one in _NAME.findall(text) if one.lower() not in _NO_NAMES][:5]


def _speaks_for_itself(turn: TurnView) -> bool:
    if turn.role == "user":
        return True
    named = turn.speaker is not None and not _MACHINE.search(turn.speaker)
    return turn.role == "assistant" and named


def _knowledge(turn: TurnView, stated: Stated) -> StatedKnowledge:
    category, importance = weight(stated)
    changes = stated.begins or not stated.holds or bool(_SINCE.search(stated.sentence.text))
    thing = stated.thing
    return StatedKnowledge(
        sources=[turn.alias],
        content=sentence(turn.speaker or "The user", stated),
        category=category,
        subject=turn.speaker or "user",
        predicate=stated.predicate,
        object=in_third_person(thing.name) or None,
        holds=stated.holds,
        begins=stated.begins,
        entities=_NAME.findall(thing.phrase)[:5],
        happened_at=began(stated.sentence.text, turn.said_at) if changes else None,
        confidence=CONFIDENCE,
        importance=importance,
    )
