"""A session workflow that somebody changed without thinking of running ones."""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow

from engram.contracts import names
from engram.contracts.session import SessionState, SessionSummary


@workflow.defn(name=names.SESSION_WORKFLOW)
class OtherOrder:
    """Makes a command first that no old history has."""

    @workflow.run
    async def run(self, state: SessionState) -> SessionSummary:
        """Sleep, then end."""
        await workflow.sleep(timedelta(seconds=1))
        return SessionSummary(session_id=state.session_id, turns_accepted=0, ended="changed")
