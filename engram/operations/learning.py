"""Trying what a namespace asks to learn, over given turns: a model is asked, nothing is stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict

from engram.agents.asking import Thinker, followed
from engram.domain.buffer import batches
from engram.domain.identity import episode_id
from engram.domain.learning import LearningRules
from engram.domain.memories import Category, Episode
from engram.domain.plan import Statement
from engram.domain.scope import Scope
from engram.language.guarding import PersonalDataGuard
from engram.settings import Settings
from engram.transfer.accept import Acceptance, Acceptor
from engram.transfer.source import SourceFile

# What a trial may cost at most: each is read with and without what is asked for.
MOST_BATCHES: Final = 20
_NOBODY: Final = "trial"


class Learnt(BaseModel):
    """One thing that would be learnt.

    Attributes:
        content: As a sentence.
        category: One of the ten.
        tags: Own categories among them.
        entities: The names in it.
        quotes: The words that say so.
    """

    model_config = ConfigDict(frozen=True)

    content: str
    category: Category
    tags: tuple[str, ...]
    entities: tuple[str, ...]
    quotes: tuple[str, ...]

    @classmethod
    def of(cls, stated: Statement) -> Learnt:
        """What a statement would be kept as."""
        return cls(
            content=stated.content,
            category=stated.category,
            tags=stated.tags,
            entities=stated.entities,
            quotes=tuple(quote.words for quote in stated.evidence),
        )


class LearningTrial(BaseModel):
    """What would be learnt of some turns, with and without what the namespace asks for.

    Attributes:
        namespace: Which.
        model: Whose answers these are.
        version: Of what is asked for; None where nothing is asked for, or followed.
        not_followed: The parts of it that the model cannot follow.
        turns: How many were read.
        remaining: Whether there are more, which were not.
        learnt: What would be learnt.
        without: What would be learnt if nothing were asked for; empty without a version.
    """

    model_config = ConfigDict(frozen=True)

    namespace: str
    model: str
    version: str | None
    not_followed: tuple[str, ...]
    turns: int
    remaining: bool
    learnt: tuple[Learnt, ...]
    without: tuple[Learnt, ...]


async def try_learning(
    path: Path, settings: Settings, model: Thinker, *, now: datetime
) -> LearningTrial:
    """Read the turns of a file as consolidation would, and store nothing.

    Extraction only, each batch by itself: what is known, and guidance from it, plays no part.

    Args:
        path: Any file that can be imported.
        settings: The namespace, and what it asks for.
        model: Asked once for each batch, at most 20 of them; twice where something is asked for.
        now: The present.

    Raises:
        UnreadableSource: the file cannot be read.
        ModelRejected: the provider refuses.
        ModelUnavailable: it cannot answer now.
        ModelAnswerUnusable: it did not answer in the asked form.
    """
    asked = settings.learning_by_namespace.get(settings.namespace, LearningRules())
    learning = followed(model, {settings.namespace: asked}).get(settings.namespace)
    # One more than so many batches can hold tells that there are more; the rest is not looked at.
    most = MOST_BATCHES * settings.extraction_batch_turns + 1
    cut = batches(
        islice(_episodes(path, settings, now), most),
        max_turns=settings.extraction_batch_turns,
        max_bytes=settings.extraction_batch_bytes,
    )
    read = cut[:MOST_BATCHES]
    return LearningTrial(
        namespace=settings.namespace,
        model=model.model_id,
        version=learning.version if learning else None,
        not_followed=() if learning else asked.parts,
        turns=sum(map(len, read)),
        remaining=len(cut) > len(read),
        learnt=await _learnt(model, read, learning),
        without=await _learnt(model, read, None) if learning else (),
    )


async def _learnt(
    model: Thinker, read: Sequence[Sequence[Episode]], learning: LearningRules | None
) -> tuple[Learnt, ...]:
    from engram.agents.extraction import ExtractionAgent  # noqa: PLC0415 - only what is used loads

    agent = ExtractionAgent(model)
    answers = [await agent.extract(batch, learning=learning) for batch in read]
    return tuple(Learnt.of(stated) for answer in answers for stated in answer.statements)


def _episodes(path: Path, settings: Settings, now: datetime) -> Iterator[Episode]:
    """The turns of a file as they would be stored, masked where the namespace masks."""
    scope = Scope.of(settings.namespace, _NOBODY)
    source = SourceFile(path)
    how = Acceptance(
        session_prefix="",
        zone=UTC,
        undated_at=source.changed_at,
        now=now,
        max_turn_bytes=settings.max_turn_bytes,
        namespace=settings.namespace,
        guard=PersonalDataGuard.of(settings),
    )
    for turn in Acceptor(how).turns(source.found()):
        yield Episode(
            id=episode_id(scope, turn.session_id, turn.message_id),
            namespace=scope.namespace,
            user_id=scope.user_id,
            content=turn.content,
            known_at=turn.timestamp,
            created_at=turn.timestamp,
            session_id=turn.session_id,
            sequence=turn.sequence,
            role=turn.role,
            speaker=turn.speaker,
            timestamp=turn.timestamp,
            message_id=turn.message_id,
        )
