"""Workflows that somebody changed: with, and without, thinking of running ones."""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow

from engram.contracts import names
from engram.contracts.reviews import ReviewOutcome, ReviewState
from engram.contracts.session import SessionState, SessionSummary
from engram.workflows.reviews import DisputeReviewWorkflow


@workflow.defn(name=names.SESSION_WORKFLOW)
class OtherOrder:
    """Makes a command first that no old history has."""

    @workflow.run
    async def run(self, state: SessionState) -> SessionSummary:
        """Sleep, then end."""
        await workflow.sleep(timedelta(seconds=1))
        return SessionSummary(session_id=state.session_id, turns_accepted=0, ended="changed")


@workflow.defn(name=names.SESSION_WORKFLOW)
class ForgetsItsUpdates:
    """A session of a version that takes no updates any more."""

    @workflow.run
    async def run(self, state: SessionState) -> SessionSummary:
        """Wait for nothing."""
        await workflow.wait_condition(lambda: False)
        raise AssertionError


@workflow.defn(name=names.REVIEW_WORKFLOW)
class SleepsOverIt(DisputeReviewWorkflow):
    """Pauses before it begins; reviews that wait already do not."""

    @workflow.init
    def __init__(self, state: ReviewState) -> None:
        super().__init__(state)

    @workflow.run
    async def run(self, state: ReviewState) -> ReviewOutcome:
        """As before, once it has slept."""
        if workflow.patched("sleeps-over-it"):
            await workflow.sleep(timedelta(hours=1))
        return await super().run(state)
