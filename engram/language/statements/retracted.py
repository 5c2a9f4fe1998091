"""Decisions that a turn calls off: "scratch that", "forget Mongo", "we changed our minds"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from engram.language.statements.clauses import Sentence, sentences
from engram.language.statements.notes import notes
from engram.language.statements.predicates import RuleStatement
from engram.language.statements.taken_back import PLANS, bare
from engram.language.vocabulary import expression

DECIDED: Final = "decided on"
"""The predicate of what somebody chose; its object is what they chose."""
_TABLE: Final = "retracted"


class Decision(NamedTuple):
    """What somebody chose, or chose to do.

    Attributes:
        predicate: :data:`DECIDED`, or that of a plan.
        name: What it is called: "Kafka", "use Mongo".
        sentence: Where it is told.
    """

    predicate: str
    name: str
    sentence: Sentence


class Retraction(NamedTuple):
    """That a decision is called off.

    Attributes:
        decision: Which one.
        sentence: Which says so.
        is_own: Whether the same turn tells the decision.
    """

    decision: Decision
    sentence: Sentence
    is_own: bool = False


def decisions(text: str, stated: Iterable[RuleStatement]) -> list[Decision]:
    """What a turn says was chosen, by its name.

    Args:
        text: The turn.
        stated: What it states of its speaker.
    """
    chosen = [
        Decision(DECIDED, one.object, one.sentence)
        for one in notes(text)
        if one.predicate == DECIDED and one.object
    ]
    plans = [one for one in stated if one.predicate == PLANS and one.holds and one.thing.name]
    return chosen + [Decision(PLANS, one.thing.name, one.sentence) for one in plans]


def may_retract(text: str) -> bool:
    """Whether a turn has words that can call off a decision; most have none."""
    return expression(_TABLE, "may").search(text) is not None


def retracted(
    text: str, own: Sequence[Decision], told: Sequence[Sequence[Decision]], *, at_once: bool
) -> Iterator[Retraction]:
    """The decisions that a turn calls off.

    Args:
        text: The turn of the user.
        own: What it decides itself.
        told: What they decided in each turn before it.
        at_once: Whether they said the last of those right before it.
    """
    said = list(sentences(text))
    for one in own if said else ():
        if one.predicate != DECIDED:
            continue
        behind = expression(_TABLE, "right_behind").match(text, _end_of(one, text))
        if behind is not None and not _is_told_again(one, own):
            yield Retraction(one, _holding(behind.end(), said), is_own=True)
    # "Scratch that" of a plan may only put another one before it: plans are called off by name.
    last = told[-1] if told and at_once else ()
    if len(last) == 1 and last[0].predicate == DECIDED and calls_off(text):
        yield Retraction(last[0], said[0])
        return
    before = [one for each in told for one in each]
    for sentence in said if before else ():
        for named in expression(_TABLE, "by_name").finditer(sentence.text):
            what = bare(next(filter(None, named.groups())))
            meant = [one for one in before if _is_called(one, what)]
            yield from (Retraction(one, sentence) for one in meant[-1:])


def calls_off(text: str) -> bool:
    """Whether a turn begins by calling off what was decided right before it: "scratch that"."""
    return expression(_TABLE, "next_turn").match(text) is not None


def _end_of(one: Decision, text: str) -> int:
    return max(text.find(one.name, one.sentence.start), 0) + len(one.name)


def _is_told_again(one: Decision, own: Sequence[Decision]) -> bool:
    """Whether the turn comes back to it: "we chose Kafka, no wait, we chose Rabbit, no, Kafka"."""
    return sum(bare(other.name) == bare(one.name) for other in own) > 1


def _holding(at: int, said: Sequence[Sentence]) -> Sentence:
    """The sentence that a place in the turn is in."""
    return max((one for one in said if one.start < at), key=lambda one: one.start, default=said[0])


def _is_called(one: Decision, what: str) -> bool:
    """Whether it is meant by a name; of a plan, whether it ends so: "use Mongo" by "Mongo"."""
    name = bare(one.name)
    return name == what or (one.predicate == PLANS and name.endswith(f" {what}"))
