"""The extraction request, answered by rule."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from engram.agents.answers import MAX_STATEMENTS, ExtractionAnswer, StatedKnowledge
from engram.agents.requests import ExtractionRequest, TurnView
from engram.agents.rules import knowledge
from engram.agents.rules.commitments import Ended, ends, kept
from engram.agents.rules.confirmations import confirmed
from engram.agents.rules.expressions import expression
from engram.agents.rules.notes import notes
from engram.agents.rules.people import people
from engram.agents.rules.statements import everything
from engram.domain.memories import Category

# A speaker's name of this kind is a machine's, and what it says of itself is no memory.
_MACHINE = re.compile(r"\b(?:assistant|bot|ai|agent|system|tool|model)\b", re.I)


def extract(request: ExtractionRequest) -> ExtractionAnswer:
    """What the turns state in words that the rules know."""
    found: list[StatedKnowledge] = []
    before: TurnView | None = None
    for turn in request.turns:
        if _speaks_for_itself(turn):
            own = _in_own_words(turn)
            found += _ended_promises(own, found)
            found += _told(own)
            if before is not None and before.role == "assistant":
                found += _confirmed(before, own)
        before = turn
    kept_ones = found[:MAX_STATEMENTS]
    return ExtractionAnswer(
        reasoning=f"{len(kept_ones)} statements in {len(request.turns)} turns, by rule.",
        statements=kept_ones,
    )


def _speaks_for_itself(turn: TurnView) -> bool:
    if turn.role == "user":
        return True
    named = turn.speaker is not None and not _MACHINE.search(turn.speaker)
    return turn.role == "assistant" and named


def _in_own_words(turn: TurnView) -> TurnView:
    """The turn up to where it passes on what somebody or something else says."""
    posing = expression("turns", "posing").search(turn.content)
    if posing is None:
        return turn
    return turn.model_copy(update={"content": turn.content[: posing.start()]})


def _told(turn: TurnView) -> Iterator[StatedKnowledge]:
    stated = everything(turn.content)
    yield from (knowledge.from_statement(turn, one) for one in stated)
    mine = {one.sentence.start for one in stated}
    known = [one for one in people(turn.content) if one.sentence.start not in mine]
    for person in known:
        yield from knowledge.from_person(turn, person)
    introduced = {person.sentence.start for person in known}
    mended = any(one.corrects for one in stated)
    for note in notes(turn.content, [one.at for one in stated]):
        if note.category is Category.RELATIONSHIP and note.sentence.start in introduced:
            continue
        # What was taken back is no fact, and what mends it is told already.
        if mended and note.category in {Category.CORRECTION, Category.FACT}:
            continue
        yield knowledge.from_note(turn, note)


def _confirmed(asked: TurnView, answer: TurnView) -> Iterator[StatedKnowledge]:
    claim = confirmed(asked.content, answer.content)
    for stated in everything(claim) if claim else ():
        yield knowledge.from_confirmation(asked, answer, stated)


def _ended_promises(turn: TurnView, before: Sequence[StatedKnowledge]) -> list[StatedKnowledge]:
    """What a turn ends of the promises that its speaker made in the turns before it."""
    whose = turn.speaker or "user"
    over = {one.object for one in before if one.ended}
    made = [
        one
        for one in before
        if one.predicate == knowledge.PROMISED and one.holds and one.subject == whose
        if one.object not in over
    ]
    found: dict[int, Ended] = {}
    if not made:
        return _kept(turn)
    for end in ends(turn.content, [one.object or "" for one in made]):
        found.setdefault(end.promise, end)
    if found:
        return [knowledge.from_end(turn, made[number], end) for number, end in found.items()]
    return _kept(turn)


def _kept(turn: TurnView) -> list[StatedKnowledge]:
    """What was done "as promised", whichever turn promised it."""
    return [knowledge.from_kept(turn, what, where) for what, where in kept(turn.content)]
