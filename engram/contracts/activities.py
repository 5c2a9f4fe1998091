"""The activities as workflows know them: name, input and output of each.

Workflows call these methods, ``engram/activities`` implements them, and the type checker
compares both sides with what is declared here. Each class is one that a worker is given
whole: its methods run on the same queue.
"""

from __future__ import annotations

from temporalio import activity

from engram.contracts import names
from engram.contracts.consolidation import (
    ConsolidateTurnsInput,
    ConsolidateTurnsOutput,
    DigestInput,
    DigestOutput,
    DigestStageInput,
    DigestStageOutput,
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
from engram.contracts.importing import ImportTally, StoreBatchInput
from engram.contracts.lifecycle import (
    FindDueUsersInput,
    FindDueUsersOutput,
    PromoteOutput,
    PromotionReport,
    ReviewOutput,
    WalkInput,
)
from engram.contracts.messages import Message
from engram.contracts.removal import (
    ApplyForgettingInput,
    ErasureInput,
    FenceOutput,
    ForgetPlan,
    LookAgainInput,
    PlanForgettingInput,
    StoreRound,
    WorkflowRound,
)
from engram.contracts.reviews import (
    DisputeFound,
    LookAtDisputeInput,
    OpenReviewsInput,
    OpenReviewsOutput,
    SettleDisputeInput,
)
from engram.contracts.session import RequestConsolidationInput, StoreTurnsInput, StoreTurnsOutput
from engram.domain.plan import ConsolidationPlan


class SessionActivities:
    """Storing turns, and reaching the user's consolidation."""

    @activity.defn(name=names.STORE_TURNS_ACTIVITY)
    async def store_turns(self, request: StoreTurnsInput) -> StoreTurnsOutput:
        """Store turns with the facts and negations they state."""
        raise NotImplementedError

    @activity.defn(name=names.REQUEST_CONSOLIDATION_ACTIVITY)
    async def request_consolidation(self, request: RequestConsolidationInput) -> None:
        """Signal the user's consolidation, starting it if it does not run."""
        raise NotImplementedError


class ConsolidationStoreActivities:
    """What consolidation does with the store; on the store queue."""

    @activity.defn(name=names.SELECT_DUE_ACTIVITY)
    async def select_due(self, request: SelectDueInput) -> SelectDueOutput:
        """Return the oldest episodes that are not consolidated, in batches."""
        raise NotImplementedError

    @activity.defn(name=names.RECONCILE_ACTIVITY)
    async def reconcile(self, request: ReconcileInput) -> ConsolidationPlan:
        """Compare statements with what is known; decide everything, write nothing."""
        raise NotImplementedError

    @activity.defn(name=names.WRITE_PLAN_ACTIVITY)
    async def write_plan(self, request: PlanInput) -> PlanOutput:
        """Store what is new, read it back, confirm and link; retire nothing."""
        raise NotImplementedError

    @activity.defn(name=names.RETIRE_ACTIVITY)
    async def retire(self, request: PlanInput) -> PlanOutput:
        """Mark as replaced what the plan replaces."""
        raise NotImplementedError

    @activity.defn(name=names.MARK_CONSOLIDATED_ACTIVITY)
    async def mark_consolidated(self, request: MarkConsolidatedInput) -> MarkConsolidatedOutput:
        """Note on episodes that they were consolidated."""
        raise NotImplementedError

    @activity.defn(name=names.CONSOLIDATE_TURNS_ACTIVITY)
    async def consolidate_turns(self, request: ConsolidateTurnsInput) -> ConsolidateTurnsOutput:
        """Take up what turns state: reconcile, write, read back, retire, mark the turns."""
        raise NotImplementedError

    @activity.defn(name=names.APPLY_PLAN_ACTIVITY)
    async def apply_plan(self, request: PlanInput) -> PlanOutput:
        """Write a plan and read it back, then retire what it replaces."""
        raise NotImplementedError


class ConsolidationModelActivities:
    """What consolidation asks language models; on the model queue."""

    @activity.defn(name=names.EXTRACT_ACTIVITY)
    async def extract(self, request: ExtractInput) -> ExtractOutput:
        """Return what a batch of episodes states."""
        raise NotImplementedError

    @activity.defn(name=names.LINK_ACTIVITY)
    async def link(self, request: LinkInput) -> LinkOutput:
        """Return what links memories with each other and with those that resemble them."""
        raise NotImplementedError


class DigestActivities:
    """Rebuilding what is composed from memories; on the store queue."""

    @activity.defn(name=names.DIGEST_KNOWLEDGE_ACTIVITY)
    async def digest_knowledge(self, request: DigestInput) -> DigestOutput:
        """Rebuild profiles and topics of what was touched."""
        raise NotImplementedError

    @activity.defn(name=names.DIGEST_SESSIONS_ACTIVITY)
    async def digest_sessions(self, request: DigestInput) -> DigestOutput:
        """Seal the boxes of sessions that were touched."""
        raise NotImplementedError

    @activity.defn(name=names.LEARN_GUIDELINES_ACTIVITY)
    async def learn_guidelines(self, request: LearnInput) -> DigestOutput:
        """Count what became of memories, and draw guidance from it."""
        raise NotImplementedError

    @activity.defn(name=names.DIGEST_ACTIVITY)
    async def digest(self, request: DigestStageInput) -> DigestStageOutput:
        """Rebuild every digest that rests on what a pass touched, and learn from it."""
        raise NotImplementedError


class LifecycleActivities:
    """Reviewing and promoting memories; on the store queue."""

    @activity.defn(name=names.REVIEW_ACTIVITY)
    async def review(self, request: WalkInput) -> ReviewOutput:
        """Apply what is due to a batch of memories."""
        raise NotImplementedError

    @activity.defn(name=names.PROMOTE_ACTIVITY)
    async def promote(self, request: WalkInput) -> PromoteOutput:
        """Promote what is ready in a batch of memories."""
        raise NotImplementedError

    @activity.defn(name=names.PROMOTE_SESSION_ACTIVITY)
    async def promote_session(self, request: WalkInput) -> PromotionReport:
        """Promote what a session that ended leaves behind lively."""
        raise NotImplementedError

    @activity.defn(name=names.FIND_DUE_USERS_ACTIVITY)
    async def find_due_users(self, request: FindDueUsersInput) -> FindDueUsersOutput:
        """Return users for whom a pass has something to do."""
        raise NotImplementedError


class ErasureActivities:
    """Removing a user's workflows, histories and memories; on the store queue."""

    @activity.defn(name=names.ERASE_WORKFLOWS_ACTIVITY)
    async def erase_workflows(self, asked: ErasureInput) -> WorkflowRound:
        """Terminate what runs for the user, and delete the histories of what ran."""
        raise NotImplementedError

    @activity.defn(name=names.RAISE_FENCE_ACTIVITY)
    async def raise_fence(self, asked: ErasureInput) -> FenceOutput:
        """Let nothing be written any more that began before now, and count what is there."""
        raise NotImplementedError

    @activity.defn(name=names.ERASE_MEMORIES_ACTIVITY)
    async def erase_memories(self, asked: ErasureInput) -> StoreRound:
        """Delete from every collection, then count what is left."""
        raise NotImplementedError


class ForgettingActivities:
    """Settling what forgetting takes, and doing it; on the store queue."""

    @activity.defn(name=names.PLAN_FORGETTING_ACTIVITY)
    async def plan_forgetting(self, asked: PlanForgettingInput) -> ForgetPlan:
        """Return what goes, what stays without it, and what is composed again."""
        raise NotImplementedError

    @activity.defn(name=names.APPLY_FORGETTING_ACTIVITY)
    async def apply_forgetting(self, asked: ApplyForgettingInput) -> Message:
        """Let the session forget as well, mend what stays, delete what goes."""
        raise NotImplementedError

    @activity.defn(name=names.LOOK_AGAIN_ACTIVITY)
    async def look_again(self, asked: LookAgainInput) -> ForgetPlan:
        """Return what was written of the forgotten meanwhile."""
        raise NotImplementedError


class DisputeActivities:
    """Opening reviews, looking how disputes stand, and settling them; on the store queue."""

    @activity.defn(name=names.OPEN_REVIEWS_ACTIVITY)
    async def open_reviews(self, asked: OpenReviewsInput) -> OpenReviewsOutput:
        """Let a review wait for each pair that is in dispute."""
        raise NotImplementedError

    @activity.defn(name=names.LOOK_AT_DISPUTE_ACTIVITY)
    async def look_at_dispute(self, asked: LookAtDisputeInput) -> DisputeFound:
        """Return how things stand between the memories of a review."""
        raise NotImplementedError

    @activity.defn(name=names.SETTLE_DISPUTE_ACTIVITY)
    async def settle_dispute(self, asked: SettleDisputeInput) -> Message:
        """Let some memories stand, and refute others."""
        raise NotImplementedError


class ImportActivities:
    """Storing batches of what is brought in; on the store queue."""

    @activity.defn(name=names.STORE_BATCH_ACTIVITY)
    async def store_batch(self, request: StoreBatchInput) -> ImportTally:
        """Store those entries of a batch that are not there."""
        raise NotImplementedError
