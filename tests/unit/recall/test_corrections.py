"""After a correction the new value answers first, and the old one answers for its own time.

The turns go through the real parts in this process: stored as the storing activity
stores them, read by the rules model, reconciled, planned, written, retired.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import datetime

import pytest

from engram.agents.extraction import ExtractionAgent
from engram.agents.rules.model import RulesModel
from engram.contracts.sessions import AcceptedTurn, EncodeCall, StoreTurnsInput
from engram.domain.memories import Episode, MemoryType, Provenance
from engram.domain.negation_cover import covers
from engram.domain.reconciliation import Circumstances, reconcile
from engram.domain.scope import Scope
from engram.embedding.embedder import PydanticEmbedder
from engram.extraction.extractor import Extractor
from engram.recall.models import RecallHit
from engram.recall.pipeline import Recaller
from engram.recall.request import RecallRequest
from engram.storage.edge import EdgeRepository
from engram.writing.episodes import TurnStore
from engram.writing.known import KnownMemories
from engram.writing.plans import PlanWriter
from tests.support.corrections import IDLE, Correction, corrections
from tests.support.recall_memories import NOW, SETTINGS, day

COUNT = 300


class Mind:
    """Hears turns and answers questions."""

    def __init__(self, repository: EdgeRepository, embedder: PydanticEmbedder) -> None:
        numbers = itertools.count()

        def write_id() -> str:
            return f"write-{next(numbers)}"

        self.repository = repository
        self._turns = TurnStore(repository, embedder, Extractor(SETTINGS), write_id)
        self._known = KnownMemories(repository, embedder)
        self._writer = PlanWriter(repository, embedder, write_id)
        self._agent = ExtractionAgent(RulesModel())
        self._recaller = Recaller(
            repository, embedder, SETTINGS.confidence_weights, SETTINGS, covers
        )

    async def hear(self, scope: Scope, words: Sequence[str], when: datetime, session: str) -> None:
        """Store the turns and consolidate them."""
        turns = tuple(
            AcceptedTurn(message_id=f"{session}-{n}", role="user", content=text, timestamp=when)
            for n, text in enumerate(words)
        )
        (outcome,) = await self._turns.store(
            StoreTurnsInput(
                scope=scope,
                now=when,
                session_id=session,
                calls=(EncodeCall(turns=turns),),
                first_sequence=0,
                workflow_id="w",
                run_id="r",
            )
        )
        ids = [receipt.episode_id for receipt in outcome.turns]
        stored = await self.repository.get(scope, ids)
        episodes = [one for one in stored.values() if isinstance(one, Episode)]
        statements = (await self._agent.extract(episodes)).statements
        known = await self._known.about(scope, statements)
        circumstances = Circumstances(
            scope=scope,
            now=when,
            episodes={one.id: one for one in episodes},
            provenance=Provenance(),
        )
        plan = reconcile(statements, known, circumstances)
        await self._writer.write(scope, plan, when)
        await self._writer.retire(scope, plan)

    async def answers(
        self,
        scope: Scope,
        question: str,
        *,
        as_of: datetime | None = None,
        memory_types: MemoryType | None = None,
    ) -> list[RecallHit]:
        """Recall as applications do."""
        request = RecallRequest.of(
            question, settings=SETTINGS, limit=10, as_of=as_of, memory_types=memory_types
        )
        return await self._recaller.recall(scope, request, NOW)


def first_place(hits: Sequence[RecallHit], value: str) -> int:
    """Where the value is first said; past the end if nowhere."""
    said = [value.casefold() in hit.memory.content.casefold() for hit in hits]
    return said.index(True) if True in said else len(said)


async def wrong_about(mind: Mind, one: Correction, scope: Scope) -> list[str]:
    """What a correction did not do."""
    await mind.hear(scope, [*IDLE[:2], one.first, IDLE[2]], day(1), "s1")
    await mind.hear(scope, [*IDLE[3:], one.then], day(20), "s2")
    wrong: list[str] = []
    now = await mind.answers(scope, one.question)
    new, old = first_place(now, one.new), first_place(now, one.old)
    if not (new < len(now) and new < old):
        wrong.append(f"{one.first} / {one.then}: now {[h.memory.content for h in now[:3]]}")
    turns = await mind.answers(scope, one.question, memory_types=MemoryType.EPISODIC)
    new, old = first_place(turns, one.new), first_place(turns, one.old)
    if not (new < old < len(turns)):
        wrong.append(f"{one.first} / {one.then}: turns {[h.memory.content for h in turns[:3]]}")
    then = await mind.answers(scope, one.question, as_of=day(15))
    if first_place(then, one.old) != 0 or first_place(then, one.new) < len(then):
        wrong.append(f"{one.first} / {one.then}: then {[h.memory.content for h in then[:3]]}")
    return wrong


@pytest.mark.timeout(120)
async def test_the_new_value_stands_above_the_old_one_in_every_correction(
    repository: EdgeRepository, embedder: PydanticEmbedder
) -> None:
    """All of 300 generated corrections: of all types, of turns alone, and as of before."""
    mind = Mind(repository, embedder)
    made = corrections(COUNT)
    assert len({(one.first, one.then) for one in made}) == COUNT
    wrong: list[str] = []
    for number, one in enumerate(made):
        scope = Scope.of("corrections", f"user-{number}")
        wrong.extend(await wrong_about(mind, one, scope))
    assert not wrong, "\n".join([f"{len(wrong)} of {COUNT}", *wrong[:10]])
