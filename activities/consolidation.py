"""Activities of the consolidation workflow and its digest stage: unpack, call, pack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import zip_longest

import structlog
from temporalio import activity
from temporalio.exceptions import ApplicationError

from engram.activities.runtime import accounted, heartbeating, unforeseen
from engram.agents.extraction import ExtractionAgent, open_promises, with_promises
from engram.agents.linking import LinkingAgent, with_reinforcements
from engram.agents.requests import PromiseView
from engram.consolidation.apply import PlanWriter
from engram.consolidation.known import KnownMemories
from engram.consolidation.taking_up import TurnConsolidator, effect_of, made_by, union
from engram.consolidation.turns import last_before
from engram.contracts import names
from engram.contracts.activities import (
    ConsolidationModelActivities,
    ConsolidationStoreActivities,
    DigestActivities,
)
from engram.contracts.consolidation import (
    ConsolidateTurnsInput,
    ConsolidateTurnsOutput,
    DigestInput,
    DigestOutput,
    DigestStageInput,
    DigestStageOutput,
    EpisodeBatch,
    ExtractInput,
    ExtractOutput,
    LearnInput,
    LinkInput,
    LinkOutput,
    LinksApplied,
    MarkConsolidatedInput,
    MarkConsolidatedOutput,
    PlanEffect,
    PlanInput,
    PlanOutput,
    ReconcileInput,
    SelectDueInput,
    SelectDueOutput,
)
from engram.contracts.messages import Population
from engram.digests.guidelines import current_guidance
from engram.digests.stage import Digests
from engram.digests.versions import Composer
from engram.domain.buffer import batches, portions
from engram.domain.learning import LearningRules
from engram.domain.memories import (
    Episode,
    MemoryStatus,
    MemoryType,
    SemanticMemory,
)
from engram.domain.plan import Action, ConsolidationPlan, LinkGraph, Reason, UpdateNote
from engram.domain.rules import EdgeRules
from engram.domain.scope import Scope
from engram.errors import EngramError, ModelAnswerUnusable
from engram.giving_way import LONGEST_DELAY, lull
from engram.lifecycle.due import of_population
from engram.ports import Embedder, MemoryRepository, Missing
from engram.storage.updates import NewWriteId

# --- activities of the consolidation workflow: unpack, call the core, pack

_EPISODIC = (MemoryType.EPISODIC,)
_SEMANTIC = (MemoryType.SEMANTIC,)
_PAGE = 200
# What one answer carries through Temporal: half a megabyte at the most.
_MOST_STATEMENTS = 400
# Each attempt lets the model mend its answer as well.
_ANSWER_ATTEMPTS = 3


class ConsolidationStoreActivitiesImpl(ConsolidationStoreActivities):
    """What consolidation does with the store; runs on the store queue.

    Args:
        repository: Where memories are kept.
        embedder: Gives new memories their vectors.
        new_write_id: Makes a fresh value for each write.
        edges: How much surer a link grows that is found again.
    """

    def __init__(
        self,
        repository: MemoryRepository,
        embedder: Embedder,
        new_write_id: NewWriteId,
        edges: EdgeRules | None = None,
    ) -> None:
        self._repository = repository
        self._writer = PlanWriter(repository, embedder, new_write_id, edges)
        self._turns = TurnConsolidator(
            repository, KnownMemories(repository, embedder), self._writer, new_write_id
        )

    @activity.defn(name=names.SELECT_DUE_ACTIVITY)
    async def select_due(self, request: SelectDueInput) -> SelectDueOutput:
        """The oldest episodes that are not consolidated, in batches."""
        async with heartbeating():
            if not request.asked:
                # Turns that come meanwhile are read with it.
                await lull(_longest_delay())
            episodes, more = await self._due(request)
        cut = batches(
            episodes,
            max_turns=request.policy.extraction_batch_turns,
            max_bytes=request.policy.extraction_batch_bytes,
        )
        return SelectDueOutput(
            batches=tuple(
                EpisodeBatch(session_id=b[0].session_id, episode_ids=tuple(e.id for e in b))
                for b in cut
            ),
            more=more,
        )

    async def _due(self, request: SelectDueInput) -> tuple[list[Episode], bool]:
        most, skip = request.policy.pass_episodes, frozenset(request.skip)
        episodes, cursor = list[Episode](), None
        while len(episodes) < most:
            page = await self._repository.scroll(
                request.scope,
                MemoryType.EPISODIC,
                where=(Missing("consolidated_at"), of_population(request.population)),
                limit=min(_PAGE, most - len(episodes)),
                cursor=cursor,
            )
            found = (m for m in page.memories if isinstance(m, Episode) and m.id not in skip)
            episodes += [e for e in found if request.asked or not _waits(e, request.now)]
            cursor = page.cursor
            if cursor is None:
                break
        return episodes, cursor is not None

    @activity.defn(name=names.RECONCILE_ACTIVITY)
    async def reconcile(self, request: ReconcileInput) -> ConsolidationPlan:
        """Compare statements with what is known; decides everything, writes nothing."""
        async with heartbeating():
            maker = made_by(request.workflow_id, request.run_id, request.use)
            return await self._turns.plan(
                request.scope, request.now, request.statements, request.verbatim, maker
            )

    @activity.defn(name=names.WRITE_PLAN_ACTIVITY)
    async def write_plan(self, request: PlanInput) -> PlanOutput:
        """Store what is new, read it back, confirm and link; retires nothing."""
        async with heartbeating():
            return await self._writer.write(request.scope, request.plan)

    @activity.defn(name=names.RETIRE_ACTIVITY)
    async def retire(self, request: PlanInput) -> PlanOutput:
        """Mark as replaced what the plan replaces."""
        async with heartbeating():
            return await self._writer.retire(request.scope, request.plan)

    @activity.defn(name=names.MARK_CONSOLIDATED_ACTIVITY)
    async def mark_consolidated(self, request: MarkConsolidatedInput) -> MarkConsolidatedOutput:
        """Note on episodes that they were consolidated, or that reading them was refused.

        An attempt that is repeated counts all.
        """
        async with heartbeating():
            if request.refused is None:
                await self._turns.end_denials(request.scope, request.episode_ids)
            marked = await self._turns.mark(
                request.scope, request.now, request.episode_ids, request.refused
            )
            return MarkConsolidatedOutput(marked=marked)

    @activity.defn(name=names.CONSOLIDATE_TURNS_ACTIVITY)
    async def consolidate_turns(self, request: ConsolidateTurnsInput) -> ConsolidateTurnsOutput:
        """Take up what turns state: reconcile, write, read back, retire, mark the turns."""
        async with heartbeating():
            repeated = request.repeated or activity.info().attempt > 1
            return await self._turns.take_up(request, repeated=repeated)

    @activity.defn(name=names.APPLY_PLAN_ACTIVITY)
    async def apply_plan(self, request: PlanInput) -> PlanOutput:
        """Write a plan and read it back, then retire what it replaces."""
        async with heartbeating():
            return await self._writer.apply(request.scope, request.plan)


def _longest_delay() -> float:
    """Seconds: no more than half of what this attempt may take."""
    limit = activity.info().start_to_close_timeout
    return min(LONGEST_DELAY, limit.total_seconds() / 2) if limit else LONGEST_DELAY


def _decides(plan: ConsolidationPlan) -> bool:
    """Whether it does more to memories than to link them and to count that they were seen."""
    return any(isinstance(a, UpdateNote) and a.reason is not Reason.SURVIVED for a in plan.actions)


def _waits(episode: Episode, now: datetime) -> bool:
    """Whether a turn that was refused is left out for now."""
    return episode.unread is not None and episode.unread.left_out(now)


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
        found = await _episodes(self._repository, scope, episode_ids)
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


async def _episodes(
    repository: MemoryRepository, scope: Scope, ids: Iterable[str]
) -> dict[str, Episode]:
    found = await repository.get(scope, ids, _EPISODIC)
    return {key: memory for key, memory in found.items() if isinstance(memory, Episode)}


# --- activities of the digest stage: unpack, call the core, pack

_log = structlog.get_logger(__name__)
_DIGESTED_AT_ONCE = 200
_LEARN_ATTEMPTS = 3


class DigestActivitiesImpl(DigestActivities):
    """Rebuilds what is composed from memories; runs on the store queue.

    Args:
        digests: Rebuilds them.
    """

    def __init__(self, digests: Digests) -> None:
        self._digests = digests

    @activity.defn(name=names.DIGEST_KNOWLEDGE_ACTIVITY)
    async def digest_knowledge(self, request: DigestInput) -> DigestOutput:
        """Rebuild profiles and topics of what was touched."""
        async with heartbeating():
            done = await self._digests.knowledge(
                _composer(request), request.memory_ids, request.episode_ids, request.policy
            )
        return _logged("profiles and topics rebuilt", done)

    @activity.defn(name=names.DIGEST_SESSIONS_ACTIVITY)
    async def digest_sessions(self, request: DigestInput) -> DigestOutput:
        """Seal the boxes of sessions that were touched."""
        async with heartbeating():
            done = await self._digests.sessions(
                _composer(request), request.episode_ids, request.ended, request.policy
            )
        return _logged("boxes sealed", done)

    @activity.defn(name=names.LEARN_GUIDELINES_ACTIVITY)
    async def learn_guidelines(self, request: LearnInput) -> DigestOutput:
        """Count what became of memories, and draw guidance from it."""
        deeds = [(done.deed, done.memory_id) for done in request.done]
        async with heartbeating():
            done = await self._digests.learn(
                _composer(request), deeds, request.operation, request.policy
            )
        return _logged("guidelines learnt", done)

    @activity.defn(name=names.DIGEST_ACTIVITY)
    async def digest(self, request: DigestStageInput) -> DigestStageOutput:
        """Rebuild every digest that rests on what a pass touched, and learn from it."""
        touched, composer = request.touched, _composer(request)
        async with heartbeating():
            done = DigestOutput()
            for memories, episodes in zip_longest(
                portions(touched.memory_ids, _DIGESTED_AT_ONCE),
                portions(touched.episode_ids, _DIGESTED_AT_ONCE),
                fillvalue=(),
            ):
                done = done.plus(
                    await self._digests.knowledge(composer, memories, episodes, request.policy)
                )
            # While what it counts is at hand.
            learnt, failed = await self._learnt(request, composer)
            if touched.episode_ids or touched.ended:
                done = done.plus(
                    await self._digests.sessions(
                        composer, touched.episode_ids, touched.ended, request.policy
                    )
                )
        _logged("digests rebuilt", done.plus(learnt))
        return DigestStageOutput(**dict(done.plus(learnt)), unlearnt=failed)

    async def _learnt(
        self, request: DigestStageInput, composer: Composer
    ) -> tuple[DigestOutput, bool]:
        """Guidance is never worth waiting for: tried with the stage a few times, then left."""
        deeds = [(done.deed, done.memory_id) for done in request.touched.done]
        if not deeds:
            return DigestOutput(), False
        try:
            learnt = await self._digests.learn(composer, deeds, request.operation, request.policy)
        except Exception as error:  # noqa: BLE001 - typed, and logged or raised again
            typed = error if isinstance(error, EngramError) else unforeseen(error, "learning")
            if typed.retryable and activity.info().attempt < _LEARN_ATTEMPTS:
                raise typed from None
            _log.warning("guidelines were not learnt", error=typed.code)
            return DigestOutput(), True
        return learnt, False


def _composer(request: DigestInput | LearnInput | DigestStageInput) -> Composer:
    return Composer(request.scope, request.now, request.workflow_id, request.run_id)


def _logged(event: str, done: DigestOutput) -> DigestOutput:
    _log.info(event, **dict(done))
    return done
