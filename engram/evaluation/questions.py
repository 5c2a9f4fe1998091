"""Questions made from an export: what was concluded is asked for, the turns it rests on answer.

Recall over turns weighs the words of turns, never what was concluded from them, so a question
that is made from a conclusion does not ask the index for what it was built from. Its words are
near those of the turn all the same: :func:`shared_words` says how near, and a report tells it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Final

from engram.domain.memories import MEMORY_ADAPTER, AnyMemory, Episode, MemoryForm, SemanticMemory
from engram.domain.scope import Scope
from engram.domain.slots import USER
from engram.domain.turns import Turn
from engram.evaluation.talks import Talk, TalkQuestion
from engram.language.text import terms_of
from engram.transfer.batches import MEMORIES, unpack
from engram.transfer.export import ExportedFile

SLOT: Final = "a value"
ENTITY: Final = "a name"
_MOST_EVIDENCE: Final = 5
"""A name with more turns than this is asked for by nobody who wants one of them."""


def exported_talk(path: Path) -> Talk:
    """The turns of an export, with questions made from what was concluded of them.

    Raises:
        UnreadableSource: it is no export, or was cut off.
    """
    turns: dict[str, Episode] = {}
    known: list[SemanticMemory] = []
    for memory in _memories(path):
        if isinstance(memory, Episode):
            turns[memory.id] = memory
        elif isinstance(memory, SemanticMemory) and memory.form is MemoryForm.STATEMENT:
            known.append(memory)
    sessions: dict[str, list[Turn]] = {}
    for turn in turns.values():
        sessions.setdefault(turn.session_id or "session", []).append(_told_again(turn))
    # In an order that does not depend on that of the file: a fit is repeatable.
    known.sort(key=lambda one: one.id)
    return Talk.of("export", sessions, [*_of_slots(known, turns), *_of_names(known, turns)])


def _memories(path: Path) -> Iterator[AnyMemory]:
    for batch in ExportedFile(path, Scope.of("default", "evaluation")).batches():
        for entry in unpack(batch, MEMORIES):
            yield MEMORY_ADAPTER.validate_python(entry.memory)


def _told_again(turn: Episode) -> Turn:
    return Turn(
        content=turn.content,
        role=turn.role,
        speaker=turn.speaker,
        timestamp=turn.timestamp,
        message_id=turn.id,
    )


def _of_slots(
    known: Sequence[SemanticMemory], turns: Mapping[str, Episode]
) -> Iterator[TalkQuestion]:
    """One question for each slot that holds a value now: what it is."""
    for memory in known:
        if memory.slot is not None and memory.superseded_by is None and memory.refuted_at is None:
            whose = "the user" if memory.slot.subject == USER else memory.slot.subject
            text = f"What is it that {whose} {memory.slot.predicate}?"
            yield TalkQuestion(text, _sources(memory, turns), SLOT)


def _of_names(
    known: Sequence[SemanticMemory], turns: Mapping[str, Episode]
) -> Iterator[TalkQuestion]:
    """One question for each name of which few turns tell: what was said about it."""
    told: dict[str, dict[str, None]] = {}
    for memory in known:
        for name in memory.entities:
            told.setdefault(name, {}).update(dict.fromkeys(_sources(memory, turns)))
    for name, sources in sorted(told.items()):
        if 0 < len(sources) <= _MOST_EVIDENCE:
            yield TalkQuestion(f"What was said about {name}?", tuple(sources), ENTITY)


def _sources(memory: SemanticMemory, turns: Mapping[str, Episode]) -> tuple[str, ...]:
    return tuple(one for one in memory.source_episode_ids if one in turns)


def shared_words(talks: Sequence[Talk]) -> float:
    """The share of the words of questions that stand in their evidence: mean, 0 to 1."""
    shares = [
        len(asked & _words_of(talk, question.evidence)) / len(asked)
        for talk in talks
        for question in talk.questions
        if (asked := set(terms_of(question.text)))
    ]
    return fmean(shares) if shares else 0.0


def _words_of(talk: Talk, evidence: Sequence[str]) -> set[str]:
    wanted = set(evidence)
    return {
        word
        for session in talk.sessions
        for turn in session.turns
        if turn.message_id in wanted
        for word in terms_of(f"{turn.speaker or ''} {turn.content}")
    }
