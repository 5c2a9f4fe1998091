"""The last stage of a pass: what is composed from memories follows what the pass touched."""

from __future__ import annotations

from datetime import timedelta
from itertools import zip_longest

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, is_cancelled_exception

from engram.contracts import names
from engram.contracts.common import Population
from engram.contracts.consolidation import ConsolidationReport, ConsolidationState
from engram.contracts.digests import DigestInput, DigestOutput, LearnInput, Undigested
from engram.contracts.sessions import ConsolidationRequest
from engram.domain.batches import portions
from engram.domain.digests.policy import DigestPolicy
from engram.domain.identity import operation_id
from workflows.activity_calls import ActivityCalls
from workflows.failures import failure_of

# A marker that runs of before the first release have in their histories; it goes with the next.
_PATCH = "digests"
# What one activity looks at: a few seconds of work, a few kilobytes of ids.
_CHUNK = 200
_SESSION_CHUNK = 1000
# Past this a pass digests before it goes on, so that what it carries stays small.
ENOUGH = 1000
# Guidance is never worth waiting for.
_LEARN_RETRIES = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_attempts=3)


def with_endings(
    state: ConsolidationState, served: tuple[ConsolidationRequest, ...], closing: frozenset[str]
) -> ConsolidationState:
    """The state with the sessions noted that ended, where there is a digest stage."""
    ended = tuple(r.session_id for r in served if r.session_id and r.reason in closing)
    if not ended or _policy(state) is None:
        return state
    return with_undigested(state, state.undigested.after_endings(ended))


def with_undigested(state: ConsolidationState, undigested: Undigested) -> ConsolidationState:
    """The state with what is to be digested, where there is a digest stage."""
    if _policy(state) is None:
        return state
    return state.model_copy(update={"undigested": undigested})


def must_digest(state: ConsolidationState, *, least: int = 1) -> bool:
    """Whether so much is to be digested, where there is a digest stage."""
    if _policy(state) is None or state.undigested.size < least:
        return False
    workflow.deprecate_patch(_PATCH)
    return True


async def digest(calls: ActivityCalls, state: ConsolidationState) -> ConsolidationReport:
    """Rebuild every digest that rests on what was touched.

    Raises:
        ActivityError: the store failed; doing it again later does no harm.
    """
    policy = _policy(state)
    assert policy is not None  # noqa: S101 - for the type checker; must_digest has looked
    undigested = state.undigested
    done = DigestOutput()
    for memories, episodes in zip_longest(
        portions(undigested.memory_ids, _CHUNK),
        portions(undigested.episode_ids, _CHUNK),
        fillvalue=(),
    ):
        request = _input(calls, policy, memory_ids=memories, episode_ids=episodes)
        about = f"profiles and topics of {len(memories)} memories"
        done = done.plus(await calls.digest(names.DIGEST_KNOWLEDGE_ACTIVITY, request, about))
    ended = undigested.ended
    for episodes in portions(undigested.episode_ids, _SESSION_CHUNK) or ((),):
        if episodes or ended:
            request = _input(calls, policy, episode_ids=episodes, ended=ended)
            about = f"boxes of {len(episodes)} turns, {len(ended)} sessions ended"
            done = done.plus(await calls.digest(names.DIGEST_SESSIONS_ACTIVITY, request, about))
            ended = ()
    learnt, failed = await _learn(calls, policy, state)
    done = done.plus(learnt)
    return ConsolidationReport(
        profiles=done.profiles,
        topics=done.topics,
        boxes=done.boxes,
        guidelines=done.guidelines,
        guideline_failures=failed,
    )


async def _learn(
    calls: ActivityCalls, policy: DigestPolicy, state: ConsolidationState
) -> tuple[DigestOutput, int]:
    """Learn from what was done; whatever goes wrong is logged, counted, and left."""
    if not state.undigested.done:
        return DigestOutput(), 0
    info = workflow.info()
    request = LearnInput(
        scope=calls.scope,
        now=workflow.now(),
        policy=policy,
        done=state.undigested.done,
        operation=operation_id("digest", info.first_execution_run_id, state.digests + 1),
        workflow_id=info.workflow_id,
        run_id=info.run_id,
    )
    about = f"learn from {len(request.done)} actions"
    try:
        learnt = await calls.digest(
            names.LEARN_GUIDELINES_ACTIVITY, request, about, retries=_LEARN_RETRIES
        )
    except ActivityError as error:
        if is_cancelled_exception(error):
            raise
        workflow.logger.warning("guidelines were not learnt: %s", failure_of(error).code)
        return DigestOutput(), 1
    return learnt, 0


def _policy(state: ConsolidationState) -> DigestPolicy | None:
    # Nothing is composed from test memories.
    policy = state.policy.digests if state.population is Population.REAL else None
    return policy if policy is not None and policy.enabled else None


def _input(
    calls: ActivityCalls,
    policy: DigestPolicy,
    *,
    memory_ids: tuple[str, ...] = (),
    episode_ids: tuple[str, ...] = (),
    ended: tuple[str, ...] = (),
) -> DigestInput:
    info = workflow.info()
    return DigestInput(
        scope=calls.scope,
        now=workflow.now(),
        policy=policy,
        memory_ids=memory_ids,
        episode_ids=episode_ids,
        ended=ended,
        workflow_id=info.workflow_id,
        run_id=info.run_id,
    )
