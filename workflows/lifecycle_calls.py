"""Calling the activities of passes, and what both kinds of pass share."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, TypeVar

from temporalio import workflow

from engram.contracts.common import Message
from engram.contracts.lifecycle import LifecyclePolicy, PassState, WalkInput
from workflows.retries import STORE_LONG

M = TypeVar("M", bound=Message)

# A worker that died is noticed after so long, not after the whole time limit.
_SILENCE = timedelta(seconds=15)


async def call(
    name: str, work: Message, result: type[M], summary: str, policy: LifecyclePolicy
) -> M:
    """One activity; raises ``ActivityError`` when its retries are used up."""
    limit = policy.store_timeout
    answer: Any = await workflow.execute_activity(
        name,
        work,
        result_type=result,
        start_to_close_timeout=limit,
        heartbeat_timeout=min(limit, _SILENCE),
        retry_policy=STORE_LONG,
        summary=summary[:200],
    )
    return answer  # type: ignore[no-any-return]  # result_type decoded it


def walk_input(state: PassState, batch: int, **more: Any) -> WalkInput:
    """What an activity that walks is given."""
    info = workflow.info()
    return WalkInput(
        scope=state.scope,
        now=state.began_at or workflow.now(),
        rules=state.policy.lifecycle_rules,
        population=state.population,
        dry_run=state.dry_run,
        batch=batch,
        position=state.position,
        workflow_id=info.workflow_id,
        run_id=info.run_id,
        **more,
    )
