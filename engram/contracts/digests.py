"""What passes between the consolidation workflow and the activities of its digest stage."""

from __future__ import annotations

from pydantic import Field

from engram.contracts.common import Message, TimedMessage
from engram.domain.digests.guidelines import Deed
from engram.domain.digests.policy import DigestPolicy
from engram.domain.plan import ConsolidationPlan


class Done(Message):
    """What consolidation did with a memory."""

    deed: Deed
    memory_id: str


class Undigested(Message):
    """What passes have touched since the last digest stage.

    Attributes:
        memory_ids: Memories that were stored, changed or retired.
        episode_ids: Turns that were read.
        ended: Sessions that ended.
        done: What was done with which memory, in order.
    """

    memory_ids: tuple[str, ...] = ()
    episode_ids: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    done: tuple[Done, ...] = ()

    @property
    def size(self) -> int:
        """How much there is to do."""
        return len(self.memory_ids) + len(self.episode_ids) + len(self.ended) + len(self.done)

    def after_plan(self, plan: ConsolidationPlan) -> Undigested:
        """With what a plan does."""
        stored = tuple(memory.id for memory in plan.new_memories())
        changed = tuple(u.memory_id for u in plan.amendments() if u.survival is None)
        retired = tuple(update.memory_id for update in plan.retirements())
        confirmed = tuple(u.memory_id for u in plan.amendments() if u.add_sources)
        pruned = tuple(
            u.memory_id for u in plan.amendments() if u.survival is not None and u.survival.pruned
        )
        deeds = (
            (Deed.STORED, stored),
            (Deed.CONFIRMED, confirmed),
            (Deed.SUPERSEDED, retired),
            (Deed.PRUNED, pruned),
        )
        done = tuple(Done(deed=deed, memory_id=one) for deed, ids in deeds for one in ids)
        touched = (*self.memory_ids, *stored, *changed, *retired)
        return self.model_copy(
            update={"memory_ids": tuple(dict.fromkeys(touched)), "done": (*self.done, *done)}
        )

    def after_reading(self, episode_ids: tuple[str, ...]) -> Undigested:
        """With turns that were read."""
        read = (*self.episode_ids, *episode_ids)
        return self.model_copy(update={"episode_ids": tuple(dict.fromkeys(read))})

    def after_endings(self, session_ids: tuple[str, ...]) -> Undigested:
        """With sessions that ended."""
        ended = (*self.ended, *session_ids)
        return self.model_copy(update={"ended": tuple(dict.fromkeys(ended))})


class DigestInput(TimedMessage):
    """Input of the activities that rebuild digests.

    Attributes:
        policy: The numbers to compose by.
        memory_ids: Memories that were touched.
        episode_ids: Turns that were read.
        ended: Sessions that ended.
        workflow_id: Which workflow asks.
        run_id: Which run of it.
    """

    policy: DigestPolicy
    memory_ids: tuple[str, ...] = ()
    episode_ids: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    workflow_id: str | None = None
    run_id: str | None = None


class LearnInput(TimedMessage):
    """Input of the activity that draws guidance from what became of memories.

    Attributes:
        policy: When guidance is drawn.
        done: What was done with which memory.
        operation: Names the stage, so that a repeat of it counts once.
        workflow_id: Which workflow asks.
        run_id: Which run of it.
    """

    policy: DigestPolicy
    done: tuple[Done, ...]
    operation: str
    workflow_id: str | None = None
    run_id: str | None = None


class DigestOutput(Message):
    """How many digests were written: what did not change is not.

    Attributes:
        profiles: New versions of profiles.
        topics: New versions of topics.
        boxes: Boxes that were sealed.
        guidelines: New versions of the guidance.
        retired: Versions that count no more.
        linked: Links between boxes and what was derived from their turns.
    """

    profiles: int = Field(default=0, ge=0)
    topics: int = Field(default=0, ge=0)
    boxes: int = Field(default=0, ge=0)
    guidelines: int = Field(default=0, ge=0)
    retired: int = Field(default=0, ge=0)
    linked: int = Field(default=0, ge=0)

    def plus(self, other: DigestOutput) -> DigestOutput:
        """Both together."""
        fields = type(self).model_fields
        return DigestOutput(**{f: getattr(self, f) + getattr(other, f) for f in fields})
