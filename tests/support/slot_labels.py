"""Stories told turn by turn to the rules, and what is known after them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from engram.agents.extraction import open_promises
from engram.agents.requests import ExtractionRequest, StatedKnowledge, TurnView
from engram.agents.rules import extract
from engram.domain.identity import episode_id
from engram.domain.memories import Episode, Evidence, SemanticMemory
from engram.domain.plan import Statement
from engram.domain.slots import PROMISED, ends_something, held_predicate, is_functional, slot_of
from engram.language.statements.third_person import in_third_person
from tests.support.reconciliation import SCOPE, ReconciledKnowledge
from tests.support.statement_labels import labelled

# As many turns before are read as consolidation reads.
_HEARD_BEFORE = 4

Value = tuple[str, str]
"""Predicate and object, normalised."""


@dataclass(frozen=True)
class Verdict:
    """What is wrong with what is known after a story; empty where all is right."""

    missing: tuple[Value, ...] = ()
    superfluous: tuple[Value, ...] = ()
    lost: tuple[Value, ...] = ()
    false: tuple[Value, ...] = ()

    @property
    def right(self) -> bool:
        """Whether current values, history and what was never said are all as labelled."""
        return self.right_now and not self.lost

    @property
    def right_now(self) -> bool:
        """Whether current values, and what was never said, are as labelled."""
        return not (self.missing or self.superfluous or self.false)


@dataclass(frozen=True)
class Verdicts:
    """What is wrong after each story of a file, by its turns.

    Attributes:
        count: How many stories there are.
        wrong: After these a current value or a denial is wrong.
        false: After these something is known that must not be.
        lost: After these something of before is not known.
    """

    count: int
    wrong: list[Any]
    false: list[Any]
    lost: list[Any]


def stories(file: str, *, at_once: bool = False) -> Verdicts:
    """Tell every story of a file, and compare what is known after it with its labels."""
    found = [(s["turns"], judged(s, told(s["turns"], at_once=at_once))) for s in labelled(file)]
    return Verdicts(
        len(found),
        wrong=[turns for turns, verdict in found if not verdict.right_now],
        false=[turns for turns, verdict in found if verdict.false],
        lost=[turns for turns, verdict in found if verdict.lost],
    )


def answered(*turns: dict[str, Any]) -> list[StatedKnowledge]:
    """What the rules learn from these turns."""
    views = tuple(view(number, turn) for number, turn in enumerate(turns, start=1))
    return extract(ExtractionRequest(turns=views)).statements


def view(number: int, turn: dict[str, Any]) -> TurnView:
    """A labelled turn as the rules are asked about it."""
    return TurnView(
        alias=f"e{number}",
        role=turn.get("role", "user"),
        speaker=turn.get("speaker"),
        said_at=datetime.fromisoformat(turn.get("timestamp", "2025-01-01T12:00:00+00:00")),
        content=turn["text"],
    )


def a_turn_a_day(*said: str) -> list[dict[str, str]]:
    """Turns on one day after the other; "A: " before what the assistant says."""
    return [
        {
            "text": text.removeprefix("A: "),
            "role": "assistant" if text.startswith("A: ") else "user",
            "timestamp": f"2025-01-{day:02}T12:00:00+00:00",
        }
        for day, text in enumerate(said, start=1)
    ]


def told(turns: list[dict[str, Any]], *, at_once: bool = False) -> ReconciledKnowledge:
    """What is known after these turns of one session, consolidated one by one or all together.

    The rules are given what consolidation gives them: the turns just before, and open promises.
    """
    knowledge = ReconciledKnowledge()
    views = [view(number, turn) for number, turn in enumerate(turns, start=1)]
    episodes = {one.alias: _episode(one) for one in views}
    knowledge.episodes |= {episode.id: episode for episode in episodes.values()}
    for batch in [views] if at_once else [[one] for one in views]:
        heard = views[: views.index(batch[0])][-_HEARD_BEFORE:]
        promised = tuple(open_promises(_still_promised(knowledge)))
        request = ExtractionRequest(turns=tuple(batch), before=tuple(heard), promised=promised)
        answer = extract(request)
        knowledge.take([_statement(stated, episodes) for stated in answer.statements])
    return knowledge


def _still_promised(knowledge: ReconciledKnowledge) -> list[SemanticMemory]:
    made = [m for m in knowledge.known.values() if m.slot and m.slot.predicate == PROMISED]
    return [m for m in made if m.superseded_by is None and m.resolution is None]


def judged(story: dict[str, Any], knowledge: ReconciledKnowledge) -> Verdict:
    """Compare what is known of the user with a story's labels."""
    known = [m for m in knowledge.known.values() if _about_the_user(m)]
    current = held(knowledge)
    past = {_value(m) for m in known if not _holds(m)}
    # "I used to live in Darwin": all that is known of it is that it ended.
    over = {_ended(m) for m in knowledge.known.values() if m.slot and ends_something(m.slot)}
    expected, history = _values(story["current"]), _values(story["past"])
    one_value = {p for p, o in expected | history if _functional(p, o)}
    wrong = {(p, o) for p, o in current - expected if p in one_value or (p, o) in history}
    return Verdict(
        missing=tuple(sorted(expected - current)),
        superfluous=tuple(sorted(wrong)),
        lost=tuple(sorted(history - past - over)),
        false=tuple(sorted(_values(story["never"]) & (current | past))),
    )


def held(knowledge: ReconciledKnowledge) -> set[Value]:
    """What is so of the user now."""
    known = (m for m in knowledge.known.values() if _about_the_user(m))
    return {_value(m) for m in known if _holds(m)}


def _holds(memory: SemanticMemory) -> bool:
    # A promise that was kept, or called off, is resolved: nothing replaces it.
    return memory.superseded_by is None and memory.resolution is None


def _about_the_user(memory: SemanticMemory) -> bool:
    slot = memory.slot
    return slot is not None and slot.subject == "user" and not ends_something(slot)


def _value(memory: SemanticMemory) -> Value:
    assert memory.slot is not None
    return memory.slot.predicate, memory.slot.object


def _ended(memory: SemanticMemory) -> Value:
    assert memory.slot is not None
    return held_predicate(memory.slot), memory.slot.object


def _values(labels: list[dict[str, str]]) -> set[Value]:
    slots = [
        slot_of("user", label["predicate"], in_third_person(label["object"])) for label in labels
    ]
    return {(slot.predicate, slot.object) for slot in slots if slot}


def _functional(predicate: str, what: str) -> bool:
    slot = slot_of("user", predicate, what)
    return slot is not None and is_functional(slot)


def _episode(turn: TurnView) -> Episode:
    return Episode(
        id=episode_id(SCOPE, "s1", turn.alias),
        namespace=SCOPE.namespace,
        user_id=SCOPE.user_id,
        content=turn.content,
        known_at=turn.said_at,
        created_at=turn.said_at,
        session_id="s1",
        role=turn.role,
        speaker=turn.speaker,
        timestamp=turn.said_at,
        message_id=turn.alias,
    )


def _statement(stated: StatedKnowledge, episodes: dict[str, Episode]) -> Statement:
    return Statement(
        content=stated.content,
        category=stated.category,
        subject=stated.subject,
        predicate=stated.predicate,
        object=stated.object,
        holds=stated.holds,
        begins=stated.begins,
        alongside=stated.alongside,
        ended=stated.ended,
        entities=tuple(stated.entities),
        event_at=stated.happened_at,
        confidence=stated.confidence,
        importance=stated.importance,
        episode_ids=tuple(episodes[alias].id for alias in stated.sources),
        evidence=tuple(
            Evidence(episode_id=episodes[alias].id, words=words)
            for words in stated.quotes
            for alias in stated.sources
            if words in episodes[alias].content
        ),
    )
