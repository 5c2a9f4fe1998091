"""A turn and the reply to it: an answer before its question, an echo behind what it echoes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from engram.domain.memories import Episode
from engram.domain.turns import JUST_BEFORE
from engram.language.query import ASSISTANT, Analysis, holds_cue, speaks_of_oneself
from engram.language.text import bare_stems
from engram.recall.results import Ranked, by_score

_FoundTurn: TypeAlias = tuple[int, Episode]
"""A turn that was found, with its place among all that was found."""


def replies_in_place(found: Sequence[Ranked], query: str, analysis: Analysis) -> list[Ranked]:
    """``found``, best first, where a turn and the reply to it stand as they bear on the question.

    A turn that asks repeats the words of ``query``, and its reply holds the answer: it takes the
    turn's place, unless advice is wanted, for which what a question tells counts. "Thanks, saved
    Ana's number." repeats them too, and the number is in the turn before, so that it comes behind
    that. Only turns that were found are looked at.
    """
    known = list(found)
    asked: frozenset[str] | None = None
    for (place, turn), (after, reply) in _pairs(found):
        if _asks(turn):
            if _answers(reply, turn, analysis):
                known[place], known[after] = _answer_first(known[place], known[after])
        elif known[after].score > known[place].score:
            if asked is None:
                # What an apostrophe cuts off is no word.
                asked = frozenset(word for word in bare_stems(query) if len(word) > 1)
            if _echoes(reply, turn, asked, analysis):
                known[after] = known[after].behind(known[place].score, "echo")
    return by_score(known)


def _pairs(found: Sequence[Ranked]) -> Iterator[tuple[_FoundTurn, _FoundTurn]]:
    """Each turn whose reply was found, too, and the reply: the next turn of its session.

    A session that was taken up again counts from 0 once more, so that its numbers alone do not
    tell: a reply was stored after its turn, and said within an hour of it.
    """
    numbered: dict[tuple[str, int], list[_FoundTurn]] = {}
    for place, one in enumerate(found):
        turn = one.memory
        if isinstance(turn, Episode) and (session := turn.session_id) is not None:
            numbered.setdefault((session, turn.sequence), []).append((place, turn))
    for (session, number), turns in numbered.items():
        if (next_ones := numbered.get((session, number + 1))) is None:
            continue
        for place, turn in turns:
            replies = [
                (apart, after, reply)
                for after, reply in next_ones
                # The two may have been dated by two clocks.
                if (apart := abs(reply.timestamp - turn.timestamp)) <= JUST_BEFORE
                and turn.created_at <= reply.created_at
            ]
            if replies:
                _, after, reply = min(replies)
                yield (place, turn), (after, reply)


def _asks(turn: Episode) -> bool:
    return turn.content.rstrip().endswith("?")


def _answers(reply: Episode, turn: Episode, analysis: Analysis) -> bool:
    """Whether the answer is in the reply, and not in what the question tells by itself.

    "What do I cook with my new wok?" tells of a wok, so that who asks "what did I buy?" means it.
    """
    if turn.role == ASSISTANT or _asks(reply) or analysis.advice:
        return False
    if (reply.role, reply.speaker) == (turn.role, turn.speaker):
        return False
    # People tell much on the way to what they ask each other.
    to_assistant = reply.role == ASSISTANT and (
        ASSISTANT in analysis.subjects or not speaks_of_oneself(turn.content)
    )
    return to_assistant or _has_more(reply, turn, analysis)


def _echoes(reply: Episode, turn: Episode, asked: frozenset[str], analysis: Analysis) -> bool:
    """Whether an assistant has no word that is ``asked`` but from the turn it replies to."""
    return (
        reply.role == ASSISTANT
        and turn.role != ASSISTANT
        and ASSISTANT not in analysis.subjects
        and not _has_more(reply, turn, analysis)
        and asked & bare_stems(reply.content) <= bare_stems(turn.content)
    )


def _has_more(reply: Episode, turn: Episode, analysis: Analysis) -> bool:
    """Whether it alone holds something of the kind that is asked for."""
    kinds = analysis.asked
    return bool(kinds) and holds_cue(reply.content, kinds) and not holds_cue(turn.content, kinds)


def _answer_first(question: Ranked, answer: Ranked) -> tuple[Ranked, Ranked]:
    """Both, the answer with what the question matches by its words where that is more."""
    whole = question.score - question.asking
    best = max(answer.score, whole)
    return question.behind(best, "answered"), answer.moved_to(best, "answers")
