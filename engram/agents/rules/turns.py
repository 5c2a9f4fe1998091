"""The extraction request, answered by rule."""

from __future__ import annotations

import re
from typing import Final

from engram.agents.answers import MAX_STATEMENTS, ExtractionAnswer, StatedKnowledge
from engram.agents.requests import ExtractionRequest, TurnView
from engram.agents.rules.moments import began
from engram.agents.rules.stated import Stated
from engram.agents.rules.statements import statements
from engram.agents.rules.wording import in_third_person, sentence, weight

CONFIDENCE: Final = 0.9
_NAME = re.compile(
    r"[A-Z0-9][\w'&.+#-]*(?:\s+(?:(?:of|de|da|la|du|von|van|the|&)\s+)?[A-Z][\w'&.+#-]*)*"
)
# A speaker's name of this kind is a machine's, and what it says of itself is no memory.
_MACHINE = re.compile(r"\b(?:assistant|bot|ai|agent|system|tool|model)\b", re.I)
_SINCE = re.compile(r"\bsince\b", re.I)


def extract(request: ExtractionRequest) -> ExtractionAnswer:
    """What the turns state in words that the rules know."""
    found = [
        _knowledge(turn, stated)
        for turn in request.turns
        if _speaks_for_itself(turn)
        for stated in statements(turn.content)
    ]
    kept = found[:MAX_STATEMENTS]
    return ExtractionAnswer(
        reasoning=f"{len(kept)} statements in {len(request.turns)} turns, by rule.",
        statements=kept,
    )


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
