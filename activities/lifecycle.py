"""Activities of the passes over memories' lives: unpack, call the core, pack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from temporalio import activity

from engram.activities.runtime import heartbeating
from engram.contracts import names
from engram.contracts.activities import LifecycleActivities
from engram.contracts.lifecycle import (
    FindDueUsersInput,
    FindDueUsersOutput,
    PromoteOutput,
    PromotionReport,
    ReviewOutput,
    WalkInput,
)
from engram.lifecycle.due import due_users
from engram.lifecycle.promotion_pass import Promoter
from engram.lifecycle.review import Reviewer

if TYPE_CHECKING:
    from engram.ports import Embedder, MaintenanceRepository
    from engram.storage.updates import NewWriteId

Output = TypeVar("Output", ReviewOutput, PromoteOutput)


class LifecycleActivitiesImpl(LifecycleActivities):
    """Reviewing and promoting memories; runs on the store queue.

    Args:
        repository: Where memories are kept.
        embedder: Gives habits their vectors, and knows how long vectors are.
        new_write_id: Makes a fresh value for each write.
    """

    def __init__(
        self, repository: MaintenanceRepository, embedder: Embedder, new_write_id: NewWriteId
    ) -> None:
        self._repository = repository
        self._reviewer = Reviewer(repository, embedder, new_write_id)
        self._promoter = Promoter(repository, embedder, new_write_id)

    @activity.defn(name=names.REVIEW_ACTIVITY)
    async def review(self, request: WalkInput) -> ReviewOutput:
        """Let happen what is due, from where an earlier attempt was last heard of."""
        far = _Progress(ReviewOutput)
        async with heartbeating(lambda: far.come):
            return await self._reviewer.review(request, far.come, far.note)

    @activity.defn(name=names.PROMOTE_ACTIVITY)
    async def promote(self, request: WalkInput) -> PromoteOutput:
        """Promote what is ready, from where an earlier attempt was last heard of."""
        far = _Progress(PromoteOutput)
        async with heartbeating(lambda: far.come):
            return await self._promoter.promote(request, far.come, far.note)

    @activity.defn(name=names.PROMOTE_SESSION_ACTIVITY)
    async def promote_session(self, request: WalkInput) -> PromotionReport:
        """Promote what a session that ended leaves behind lively."""
        async with heartbeating():
            return await self._promoter.promote_session(request)

    @activity.defn(name=names.FIND_DUE_USERS_ACTIVITY)
    async def find_due_users(self, request: FindDueUsersInput) -> FindDueUsersOutput:
        """Who is due."""
        async with heartbeating():
            return await due_users(self._repository, request)


class _Progress(Generic[Output]):
    """How far this attempt has come, beginning where the last one was heard of."""

    def __init__(self, kind: type[Output]) -> None:
        details = activity.info().heartbeat_details
        heard = details[0] if details else None
        self.come: Output | None = None if heard is None else kind.model_validate(heard)

    def note(self, come: Output) -> None:
        """Tell Temporal at once: what is written is counted once, and should be counted."""
        self.come = come
        activity.heartbeat(come)
