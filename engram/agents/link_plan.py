"""From a model's answer to a plan: links, survivals and decisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from engram.agents.answers import LinkingAnswer, LinkProposal
from engram.domain.decisions import Judgement, judged, most_retired
from engram.domain.links import resolve_reference
from engram.domain.memories import SemanticMemory
from engram.domain.plan import (
    Action,
    ActionSource,
    Discard,
    Eligibility,
    LinkGraph,
    Reason,
    Survival,
    UpdateNote,
)


@dataclass(frozen=True, slots=True)
class LinkPlan:
    """What an answer becomes.

    Attributes:
        lost_references: References that nothing resolves.
        refused_retirements: Memories it would retire or count down beyond what one answer may.
    """

    actions: tuple[Action, ...]
    lost_references: int
    refused_retirements: int


def link_plan(
    answer: LinkingAnswer,
    by_alias: Mapping[str, SemanticMemory],
    *,
    fresh_ids: Set[str],
    operation: str,
) -> LinkPlan:
    """The actions of an answer.

    Args:
        answer: Of the model.
        by_alias: What it was shown.
        fresh_ids: Memories stored since the last pass; they are linked, not counted.
        operation: Names the pass, so that repeating it counts once.
    """
    return _Reader(answer, by_alias, fresh_ids, operation).plan()


@dataclass(slots=True)
class _Reader:
    answer: LinkingAnswer
    by_alias: Mapping[str, SemanticMemory]
    fresh_ids: Set[str]
    operation: str
    lost: int = 0
    refused: int = 0

    def plan(self) -> LinkPlan:
        links = list(self._links())
        decided = list(self._decided())
        survivals = {note.memory_id: note for note in self._survivals()}
        actions: list[Action] = [*links]
        for action in decided:
            survival = survivals.pop(getattr(action, "memory_id", ""), None)
            if isinstance(action, UpdateNote) and survival is not None:
                actions.append(action.model_copy(update={"survival": survival.survival}))
            else:
                actions.append(action)
        return LinkPlan((*actions, *survivals.values()), self.lost, self.refused)

    def _meant(self, reference: str) -> SemanticMemory | None:
        contents = {alias: memory.content for alias, memory in self.by_alias.items()}
        alias = resolve_reference(reference, contents)
        self.lost += alias is None
        return None if alias is None else self.by_alias[alias]

    def _pair(self, one: str, other: str) -> tuple[SemanticMemory, SemanticMemory] | None:
        before = self.lost
        first, second = self._meant(one), self._meant(other)
        self.lost = before + (first is None or second is None)
        return None if first is None or second is None else (first, second)

    def _links(self) -> Iterable[Action]:
        for link in self.answer.links:
            pair = self._pair(link.source, link.target)
            if pair is None:
                why = f"link to something that was not shown: {link.why}"[:500]
                yield Discard(why=why, reason=Reason.NOT_SHOWN)
            elif pair[0].id != pair[1].id:
                yield self._link(link, *pair)

    def _link(self, link: LinkProposal, first: SemanticMemory, second: SemanticMemory) -> LinkGraph:
        return LinkGraph(
            why=link.why.strip() or "belongs together",
            reason=Reason.LINKED,
            eligibility=self._eligibility(),
            first_id=first.id,
            second_id=second.id,
            kind=link.kind,
            confidence=link.confidence,
        )

    def _decided(self) -> Iterable[Action]:
        judgements: list[Judgement] = []
        for decision in self.answer.decisions:
            pair = self._pair(decision.newer, decision.older)
            if pair is None:
                why = f"decision about something that was not shown: {decision.why}"[:500]
                yield Discard(why=why, reason=Reason.NOT_SHOWN)
                continue
            judgements.append(
                Judgement(*pair, decision.relation, decision.confidence, decision.why)
            )
        verdict = judged(judgements, shown=len(self.by_alias))
        self.refused += verdict.refused_retirements
        yield from verdict.actions

    def _survivals(self) -> Iterable[UpdateNote]:
        meant = (self._meant(reference) for reference in self.answer.pruned)
        pruned = {memory.id for memory in meant if memory is not None}
        if len(pruned) > most_retired(len(self.by_alias)):
            # Who finds most of it worthless is not believed about any of it.
            self.refused += len(pruned)
            pruned = set()
        for memory in self.by_alias.values():
            # What is new starts at selectivity 0 and one pass; that pass is this one.
            if memory.id in self.fresh_ids and memory.id not in pruned:
                continue
            gone = memory.id in pruned
            yield UpdateNote(
                memory_id=memory.id,
                reason=Reason.PRUNED if gone else Reason.SURVIVED,
                why="not worth keeping" if gone else "looked at again, and kept",
                eligibility=self._eligibility(memory.importance),
                survival=Survival(operation=self.operation, pruned=gone),
            )

    def _eligibility(self, importance: float = 0.0) -> Eligibility:
        return Eligibility(
            confidence=self.answer.confidence,
            importance=importance,
            source=ActionSource.CONSOLIDATION,
        )
