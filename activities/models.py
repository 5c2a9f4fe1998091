"""Activities that ask language models what turns state and what links memories.

With Pydantic AI they are a sixth of what a process holds that nobody has asked yet, so where the
rules answer they are loaded when there is something to read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from temporalio import activity
from temporalio.exceptions import ApplicationError

from engram.activities.runtime import accounted
from engram.agents.extraction import ExtractionAgent, open_promises, with_promises
from engram.agents.linking import LinkingAgent, with_reinforcements
from engram.agents.requests import PromiseView
from engram.consolidation.apply import PlanWriter
from engram.consolidation.denials import affirmations
from engram.consolidation.known import KnownMemories
from engram.consolidation.taking_up import effect_of, union
from engram.consolidation.turns import last_before
from engram.contracts import names
from engram.contracts.activities import (
    ConsolidationModelActivities,
)
from engram.contracts.consolidation import (
    ExtractInput,
    ExtractOutput,
    LinkInput,
    LinkOutput,
    LinksApplied,
    PlanEffect,
)
from engram.contracts.messages import Population
from engram.digests.guidelines import current_guidance
from engram.domain.buffer import portions
from engram.domain.learning import LearningRules
from engram.domain.memories import (
    MemoryStatus,
    MemoryType,
    SemanticMemory,
)
from engram.domain.plan import Action, ConsolidationPlan, LinkGraph, Reason, UpdateNote
from engram.domain.rules import EdgeRules
from engram.domain.scope import Scope
from engram.errors import EngramError, ModelAnswerUnusable
from engram.ports import Embedder, MemoryRepository
from engram.storage.updates import episodes_by_id

_SEMANTIC = (MemoryType.SEMANTIC,)
# What one answer carries through Temporal: half a megabyte at the most.
_MOST_STATEMENTS = 400
# Each attempt lets the model mend its answer as well.
_ANSWER_ATTEMPTS = 3


class ConsolidationModelActivitiesImpl(ConsolidationModelActivities):
    """What consolidation asks language models; runs on the model queue.

    Args:
        repository: Where the texts are read from.
        embedder: Finds related memories.
        extraction: Reads turns.
        linking: Links memories.
        edges: From which likeness on knowledge reinforces other knowledge.
        learning: What each namespace asks for that asks for anything.
        writer: Writes links that rules found; None: the workflow has each answer written.
    """

    def __init__(
        self,
        repository: MemoryRepository,
        embedder: Embedder,
        extraction: ExtractionAgent,
        linking: LinkingAgent,
        edges: EdgeRules | None = None,
        learning: Mapping[str, LearningRules] | None = None,
        writer: PlanWriter | None = None,
    ) -> None:
        self._writer = writer
        self._edges = edges or EdgeRules()
        self._repository = repository
        self._embedder = embedder
        self._known = KnownMemories(repository, embedder)
        self._extraction = extraction
        self._linking = linking
        self._learning = learning or {}

    @activity.defn(name=names.EXTRACT_ACTIVITY)
    async def extract(self, request: ExtractInput) -> ExtractOutput:
        """What a batch of episodes states."""
        # Of several turns each half may be answered: asking for all of them again would not help.
        attempts = 1 if len(request.episode_ids) > 1 else _ANSWER_ATTEMPTS
        with _unusable_answers_end(attempts):
            return await self._extract(request)

    async def _extract(self, request: ExtractInput) -> ExtractOutput:
        async with accounted() as account:
            guidance, readable = await current_guidance(self._repository, request.scope)
            made = dict[bool, list[PromiseView]]()
            extracted = await self._read(request.scope, request.episode_ids, guidance, made)
            return extracted.model_copy(
                update={
                    "further": await self._read_further(request, extracted, guidance, made),
                    "spent": account.succeeded(),
                    "unguided": not readable,
                }
            )

    async def _read(
        self,
        scope: Scope,
        episode_ids: Sequence[str],
        guidance: Sequence[str],
        made: dict[bool, list[PromiseView]],
    ) -> ExtractOutput:
        """What a batch states; ``made`` keeps the promises of test turns and real ones apart."""
        found = await episodes_by_id(self._repository, scope, episode_ids)
        # Forgotten since they were selected: nothing is left to read of those.
        episodes = [found[e] for e in episode_ids if e in found]
        if not episodes:
            return ExtractOutput(reasoning="None of these turns exists any more.")
        first = episodes[0]
        earlier = await last_before(self._repository, scope, first.session_id, first.sequence)
        before = [turn for turn in earlier if turn.is_test is first.is_test]
        learning = self._learning.get(scope.namespace)
        if first.is_test not in made:
            known = await self._known.open_promises(scope, is_test=first.is_test)
            made[first.is_test] = list(open_promises(known))
        promised = made[first.is_test]
        output = await self._extraction.extract(episodes, guidance, before, learning, promised)
        affirmed = await affirmations(
            self._repository, self._embedder, scope, episodes, output.statements
        )
        output = output.model_copy(update={"statements": (*output.statements, *affirmed)})
        # The next batch is read before this one is taken up.
        said_at = max(episode.timestamp for episode in episodes)
        made[first.is_test] = with_promises(promised, output.statements, said_at)
        return output

    async def _read_further(
        self,
        request: ExtractInput,
        first: ExtractOutput,
        guidance: Sequence[str],
        made: dict[bool, list[PromiseView]],
    ) -> tuple[ExtractOutput, ...]:
        """The next batches as well, where reading them again after a crash costs nothing."""
        done, stated = list[ExtractOutput](), len(first.statements)
        if first.full or not self._extraction.is_free:
            return ()
        for batch in request.further:
            if stated >= _MOST_STATEMENTS:
                break
            try:
                one = await self._read(request.scope, batch.episode_ids, guidance, made)
            except EngramError:
                # Asked for by itself, it fails by itself.
                break
            if one.full:
                break
            stated += len(one.statements)
            done.append(one)
        return tuple(done)

    @activity.defn(name=names.LINK_ACTIVITY)
    async def link(self, request: LinkInput) -> LinkOutput:
        """What links the new memories with each other and with those that resemble them."""
        with _unusable_answers_end(_ANSWER_ATTEMPTS):
            async with accounted() as account:
                if request.at_once is not None and self._writer and self._linking.is_free:
                    linked = await self._link_all(request, request.at_once, self._writer)
                else:
                    ids = request.memory_ids[: request.at_once]
                    linked = await self._link(request, ids)
                    linked = linked.model_copy(update={"looked_at": len(ids)})
                return linked.model_copy(update={"spent": account.succeeded()})

    async def _link_all(self, request: LinkInput, at_once: int, writer: PlanWriter) -> LinkOutput:
        """Link all of them, request by request, and write what was answered: it can be had again.

        Answers are written together as long as none changes what the next one is about: many
        requests are shown the same memories, and each is changed once.
        """
        done, lost = LinksApplied(), Counter[str]()
        waiting: list[Action] = []
        parts = portions(request.memory_ids, at_once)
        for number, ids in enumerate(parts, start=1):
            found = await self._link(request, ids, [a for a in waiting if isinstance(a, LinkGraph)])
            lost.update(references=found.dropped_references, retired=found.dropped_retirements)
            waiting += found.plan.actions
            if number < len(parts) and not _decides(found.plan):
                continue
            plan, waiting = ConsolidationPlan(actions=tuple(waiting)), []
            written = await writer.apply(request.scope, plan)
            done = LinksApplied(
                effect=union(done.effect, effect_of(plan, written)),
                links=done.links + written.links,
                refused_links=done.refused_links + written.refused_links,
                superseded=done.superseded + len(written.retired),
                discarded=done.discarded + len(plan.discarded()),
                actions=dict(Counter(done.actions) + Counter(plan.counts())),
            )
        if activity.info().attempt > 1:
            # What an attempt before this one retired is not looked at any more.
            before = await self._repository.get(request.scope, request.memory_ids, _SEMANTIC)
            gone = [m.id for m in before.values() if m.status is MemoryStatus.SUPERSEDED]
            effect = union(done.effect, PlanEffect(retired=tuple(sorted(gone))))
            done = done.model_copy(update={"effect": effect, "superseded": len(effect.retired)})
        return LinkOutput(
            reasoning=f"{done.links} links between {len(request.memory_ids)} memories, by rule.",
            confidence=1.0,
            plan=ConsolidationPlan(),
            dropped_references=lost["references"],
            dropped_retirements=lost["retired"],
            applied=done,
        )

    async def _link(
        self, request: LinkInput, memory_ids: tuple[str, ...], waiting: Sequence[LinkGraph] = ()
    ) -> LinkOutput:
        """The links of these, beside those that wait to be written."""
        found = await self._repository.get(request.scope, memory_ids, _SEMANTIC)
        given = [
            m
            for m in found.values()
            if isinstance(m, SemanticMemory)
            and m.status is MemoryStatus.ACTIVE
            # What one model answer looks at is real, or a test: never both.
            and m.is_test is (request.population is Population.TEST)
        ]
        if not given:
            return LinkOutput(
                reasoning="None of these memories is active any more.",
                confidence=1.0,
                plan=ConsolidationPlan(),
            )
        given.sort(key=lambda memory: (memory.known_at, memory.id))
        near = await self._known.near(request.scope, given, limit=request.candidates_per_memory)
        shown = [*given, *near.memories]
        found_links = await self._linking.link(
            shown,
            fresh_ids=frozenset(request.fresh_ids),
            operation=request.operation,
            learning=self._learning.get(request.scope.namespace),
        )
        plan = with_reinforcements(
            found_links.plan, shown, near.alike, self._edges, waiting=waiting
        )
        return found_links.model_copy(update={"plan": plan})


def _decides(plan: ConsolidationPlan) -> bool:
    """Whether it does more to memories than to link them and to count that they were seen."""
    return any(isinstance(a, UpdateNote) and a.reason is not Reason.SURVIVED for a in plan.actions)


@contextmanager
def _unusable_answers_end(attempts: int) -> Iterator[None]:
    """Give up on a model that keeps answering in another form long before an outage would end."""
    try:
        yield
    except ModelAnswerUnusable as error:
        if activity.info().attempt < attempts:
            raise
        # Without its cause: what the model answered can quote what was said.
        raise ApplicationError(
            str(error), error.as_dict(), type=error.code, non_retryable=True
        ) from None
