"""Activities of the forgetting workflow."""

from __future__ import annotations

from temporalio import activity
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities.heartbeats import beating
from engram.contracts import names
from engram.contracts.common import Message
from engram.contracts.forgetting import ApplyForgettingInput, ForgetPlan, PlanForgettingInput
from engram.writing.forgetting import Forgetter


class ForgettingActivities:
    """Settles what forgetting takes, and does it.

    Args:
        client: Reaches a session that still holds the turn in mind.
        forgetter: Plans and deletes.
    """

    def __init__(self, client: Client, forgetter: Forgetter) -> None:
        self._client = client
        self._forgetter = forgetter

    @activity.defn(name=names.PLAN_FORGETTING_ACTIVITY)
    async def plan_forgetting(self, asked: PlanForgettingInput) -> ForgetPlan:
        """What goes, what stays without it, and what is composed again."""
        async with beating():
            return await self._forgetter.plan(asked.scope, asked.memory_id)

    @activity.defn(name=names.APPLY_FORGETTING_ACTIVITY)
    async def apply_forgetting(self, asked: ApplyForgettingInput) -> Message:
        """Let the session forget as well, mend what stays, delete what goes."""
        plan = asked.plan
        if plan.session_id is not None and plan.episodes:
            session = names.session_workflow_id(asked.scope, plan.session_id)
            handle = self._client.get_workflow_handle(session)
            try:
                await handle.signal(names.FORGET_TURNS_SIGNAL, plan.episodes)
            except RPCError as error:
                # A session that does not run holds nothing in mind.
                if error.status is not RPCStatusCode.NOT_FOUND:
                    raise
        async with beating():
            await self._forgetter.apply(asked.scope, plan)
        return Message()
