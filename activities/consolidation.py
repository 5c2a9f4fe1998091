"""Activities of the consolidation workflow and its digest stage: unpack, call, pack."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from itertools import zip_longest

import structlog
from temporalio import activity

from engram.activities.runtime import heartbeating, unforeseen
from engram.consolidation.apply import PlanWriter
from engram.consolidation.known import KnownMemories
from engram.consolidation.taking_up import TurnConsolidator, made_by
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
    MarkConsolidatedInput,
    MarkConsolidatedOutput,
    PlanInput,
    PlanOutput,
    ReconcileInput,
    SelectDueInput,
    SelectDueOutput,
)
from engram.digests.stage import Digests
from engram.digests.versions import Composer
from engram.domain.buffer import batches, portions
from engram.domain.memories import (
    Episode,
    MemoryType,
)
from engram.domain.plan import ConsolidationPlan
from engram.domain.rules import EdgeRules
from engram.errors import EngramError
from engram.giving_way import LONGEST_DELAY, lull
from engram.lifecycle.due import of_population
from engram.ports import Embedder, MemoryRepository, Missing
from engram.storage.updates import NewWriteId

# --- activities of the consolidation workflow: unpack, call the core, pack

_PAGE = 200


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


def _waits(episode: Episode, now: datetime) -> bool:
    """Whether a turn that was refused is left out for now."""
    return episode.unread is not None and episode.unread.left_out(now)


class ModelActivitiesWhenAsked(ConsolidationModelActivities):
    """What consolidation asks language models, loaded with the first that is asked.

    Args:
        load: Makes what answers; called in a thread.
    """

    def __init__(self, load: Callable[[], ConsolidationModelActivities]) -> None:
        self._load = load
        self._made: ConsolidationModelActivities | None = None
        self._loading = asyncio.Lock()

    @activity.defn(name=names.EXTRACT_ACTIVITY)
    async def extract(self, request: ExtractInput) -> ExtractOutput:
        """What a batch of episodes states."""
        return await (await self._loaded()).extract(request)

    @activity.defn(name=names.LINK_ACTIVITY)
    async def link(self, request: LinkInput) -> LinkOutput:
        """What links the new memories with each other and with those that resemble them."""
        return await (await self._loaded()).link(request)

    async def _loaded(self) -> ConsolidationModelActivities:
        async with self._loading:
            if self._made is None:
                self._made = await asyncio.to_thread(self._load)
            return self._made


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
                portions(touched.recomposed_from, _DIGESTED_AT_ONCE),
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
