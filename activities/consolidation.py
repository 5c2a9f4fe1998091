"""Activities of the consolidation workflow and its digest stage: unpack, call, pack."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta

import structlog
from temporalio import activity
from temporalio.exceptions import ApplicationError

from engram.activities.runtime import accounted, heartbeating
from engram.agents.extraction import ExtractionAgent
from engram.agents.linking import LinkingAgent, with_reinforcements
from engram.consolidation.apply import PlanWriter
from engram.consolidation.keep import Circumstances
from engram.consolidation.known import KnownMemories
from engram.consolidation.reconcile import reconcile
from engram.consolidation.turns import last_before
from engram.contracts import names
from engram.contracts.activities import (
    ConsolidationModelActivities,
    ConsolidationStoreActivities,
    DigestActivities,
)
from engram.contracts.consolidation import (
    DigestInput,
    DigestOutput,
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
from engram.contracts.messages import Population
from engram.digests.guidelines import current_guidance
from engram.digests.stage import Digests
from engram.digests.versions import Composer
from engram.domain.buffer import batches
from engram.domain.learning import LearningRules
from engram.domain.memories import (
    AnyMemory,
    Episode,
    MemoryStatus,
    MemoryType,
    Provenance,
    SemanticMemory,
    Unread,
)
from engram.domain.plan import ConsolidationPlan
from engram.domain.rules import EdgeRules
from engram.domain.scope import Scope
from engram.errors import ModelAnswerUnusable
from engram.lifecycle.due import of_population
from engram.ports import Embedder, MemoryRepository, Missing
from engram.storage.updates import NewWriteId, update_memories

# --- activities of the consolidation workflow: unpack, call the core, pack

_EPISODIC = (MemoryType.EPISODIC,)
_SEMANTIC = (MemoryType.SEMANTIC,)
_PAGE = 200
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
        self._known = KnownMemories(repository, embedder)
        self._writer = PlanWriter(repository, embedder, new_write_id, edges)
        self._new_write_id = new_write_id

    @activity.defn(name=names.SELECT_DUE_ACTIVITY)
    async def select_due(self, request: SelectDueInput) -> SelectDueOutput:
        """The oldest episodes that are not consolidated, in batches."""
        async with heartbeating():
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
        sources = {source for s in request.statements for source in s.episode_ids}
        sources |= set(request.verbatim)
        async with heartbeating():
            episodes = await _episodes(self._repository, request.scope, sources)
            sides = frozenset(episode.is_test for episode in episodes.values())
            known = await self._known.about(request.scope, request.statements, sides=sides)
            quoted = [episodes[e] for e in request.verbatim if e in episodes]
            known += await self._known.artifacts(request.scope, quoted)
        circumstances = Circumstances(
            scope=request.scope,
            now=request.now,
            episodes=episodes,
            provenance=Provenance(
                workflow_id=request.workflow_id,
                run_id=request.run_id,
                model=request.use.model,
                instructions_version=request.use.instructions_version,
            ),
        )
        # Compares each with each, and looks for words to keep: not while others wait.
        return await asyncio.to_thread(reconcile, request.statements, known, circumstances, quoted)

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
        before: set[str] = set()

        def change(memory: AnyMemory) -> AnyMemory | None:
            if not isinstance(memory, Episode):
                return None
            if memory.consolidated_at is not None:
                # The moment is the workflow's: an earlier attempt of this very call wrote it.
                if memory.consolidated_at == request.now:
                    before.add(memory.id)
                return None
            after = _refused(memory, request) if request.refused else _read(memory, request.now)
            if after is None:
                before.add(memory.id)
            return after

        async with heartbeating():
            updated = await update_memories(
                self._repository,
                request.scope,
                request.episode_ids,
                change,
                new_write_id=self._new_write_id,
                types=_EPISODIC,
            )
        return MarkConsolidatedOutput(marked=len(updated.changed | before))


# After the first refusal, and twice as long after each further one; then only when asked.
_FIRST_WAIT_AFTER_REFUSAL = timedelta(hours=1)
_MOST_REFUSALS = 10


def _waits(episode: Episode, now: datetime) -> bool:
    """Whether a turn that was refused is left out for now."""
    return episode.unread is not None and episode.unread.left_out(now)


def _read(episode: Episode, now: datetime) -> Episode:
    rules = None if episode.unread is None else episode.unread.rules
    unread = None if rules is None else Unread(rules=rules)
    return episode.model_copy(update={"consolidated_at": now, "unread": unread})


def _refused(episode: Episode, request: MarkConsolidatedInput) -> Episode | None:
    """The turn with one more refusal; None where an earlier attempt of this call noted it."""
    unread = episode.unread or Unread()
    if unread.at == request.now:
        return None
    refusals = unread.refusals + 1
    wait: int = 2 ** (refusals - 1)
    again = refusals < _MOST_REFUSALS
    counted = {
        "refusals": refusals,
        "because": request.refused,
        "at": request.now,
        "until": request.now + _FIRST_WAIT_AFTER_REFUSAL * wait if again else None,
    }
    return episode.model_copy(update={"unread": unread.model_copy(update=counted)})


class ConsolidationModelActivitiesImpl(ConsolidationModelActivities):
    """What consolidation asks language models; runs on the model queue.

    Args:
        repository: Where the texts are read from.
        embedder: Finds related memories.
        extraction: Reads turns.
        linking: Links memories.
        edges: From which likeness on knowledge reinforces other knowledge.
        learning: What each namespace asks for that asks for anything.
    """

    def __init__(
        self,
        repository: MemoryRepository,
        embedder: Embedder,
        extraction: ExtractionAgent,
        linking: LinkingAgent,
        edges: EdgeRules | None = None,
        learning: Mapping[str, LearningRules] | None = None,
    ) -> None:
        self._edges = edges or EdgeRules()
        self._repository = repository
        self._known = KnownMemories(repository, embedder)
        self._extraction = extraction
        self._linking = linking
        self._learning = learning or {}

    @activity.defn(name=names.EXTRACT_ACTIVITY)
    async def extract(self, request: ExtractInput) -> ExtractOutput:
        """What a batch of episodes states."""
        with _unusable_answers_end():
            return await self._extract(request)

    async def _extract(self, request: ExtractInput) -> ExtractOutput:
        async with accounted() as account:
            found = await _episodes(self._repository, request.scope, request.episode_ids)
            # Forgotten since they were selected: nothing is left to read of those.
            episodes = [found[e] for e in request.episode_ids if e in found]
            if not episodes:
                return ExtractOutput(reasoning="None of these turns exists any more.")
            guidance, readable = await current_guidance(self._repository, request.scope)
            first = episodes[0]
            before = await last_before(
                self._repository, request.scope, first.session_id, first.sequence
            )
            extracted = await self._extraction.extract(
                episodes, guidance, before, self._learning.get(request.scope.namespace)
            )
            return extracted.model_copy(
                update={"spent": account.succeeded(), "unguided": not readable}
            )

    @activity.defn(name=names.LINK_ACTIVITY)
    async def link(self, request: LinkInput) -> LinkOutput:
        """What links the new memories with each other and with those that resemble them."""
        with _unusable_answers_end():
            return await self._link(request)

    async def _link(self, request: LinkInput) -> LinkOutput:
        async with accounted() as account:
            found = await self._repository.get(request.scope, request.memory_ids, _SEMANTIC)
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
                now=request.now,
                learning=self._learning.get(request.scope.namespace),
            )
            plan = with_reinforcements(found_links.plan, shown, near.alike, self._edges)
            return found_links.model_copy(update={"plan": plan, "spent": account.succeeded()})


@contextmanager
def _unusable_answers_end() -> Iterator[None]:
    """Give up on a model that keeps answering in another form long before an outage would end."""
    try:
        yield
    except ModelAnswerUnusable as error:
        if activity.info().attempt < _ANSWER_ATTEMPTS:
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


def _composer(request: DigestInput | LearnInput) -> Composer:
    return Composer(request.scope, request.now, request.workflow_id, request.run_id)


def _logged(event: str, done: DigestOutput) -> DigestOutput:
    _log.info(event, **dict(done))
    return done
