"""Activities of the workflow that has a person settle a dispute: unpack, call the core, pack."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from temporalio import activity

from engram.activities.runtime import heartbeating
from engram.consolidation.disputes import DisputeSettler
from engram.contracts import names
from engram.contracts.activities import DisputeActivities
from engram.contracts.messages import Message
from engram.contracts.reviews import (
    DisputeFound,
    LookAtDisputeInput,
    OpenReviewsInput,
    OpenReviewsOutput,
    SettleDisputeInput,
)
from engram.domain.rules import ReviewRules
from engram.domain.scope import Scope

OpenReview: TypeAlias = Callable[[Scope, tuple[str, ...], ReviewRules], Awaitable[None]]
"""Lets a review wait for these memories; again, it changes nothing."""


class DisputeActivitiesImpl(DisputeActivities):
    """Opens reviews and settles disputes; runs on the store queue.

    Args:
        settler: Looks and settles.
        open_review: Starts the workflow that waits.
    """

    def __init__(self, settler: DisputeSettler, open_review: OpenReview) -> None:
        self._settler = settler
        self._open_review = open_review

    @activity.defn(name=names.OPEN_REVIEWS_ACTIVITY)
    async def open_reviews(self, asked: OpenReviewsInput) -> OpenReviewsOutput:
        """Let a review wait for each pair that is in dispute."""
        async with heartbeating():
            pairs = await self._settler.in_dispute(asked.scope, asked.pairs)
            for pair in pairs:
                await self._open_review(asked.scope, pair, asked.rules)
        return OpenReviewsOutput(opened=len(pairs))

    @activity.defn(name=names.LOOK_AT_DISPUTE_ACTIVITY)
    async def look_at_dispute(self, asked: LookAtDisputeInput) -> DisputeFound:
        """How things stand between the memories of a review."""
        async with heartbeating():
            return await self._settler.look(asked.scope, asked.memory_ids)

    @activity.defn(name=names.SETTLE_DISPUTE_ACTIVITY)
    async def settle_dispute(self, asked: SettleDisputeInput) -> Message:
        """Let some memories stand, and refute others."""
        async with heartbeating():
            await self._settler.settle(
                asked.scope,
                asked.now,
                kept=asked.kept,
                refuted=asked.refuted,
                confirmed=asked.confirmed,
            )
        return Message()
