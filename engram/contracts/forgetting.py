"""What passes between clients, the forgetting workflow and its activities. Ids, no content."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from engram.contracts.common import Message, ScopedMessage, TimedMessage
from engram.domain.digests.policy import DigestPolicy
from engram.domain.memories import MemoryType


class ForgetInput(ScopedMessage):
    """Which memory is forgotten, and by which numbers profiles are composed again."""

    memory_id: str
    digests: DigestPolicy


class ForgetPlan(Message):
    """What forgetting one memory takes, settled before anything is deleted.

    Attributes:
        memory_id: What is forgotten.
        gone: Everything that is deleted, by type.
        episodes: Those of it that are turns.
        heirs: What replaced each of them, past what is gone.
        amended: Memories that lose a source and rest on others.
        referring: Memories that refer to what is gone.
        composed: Memories whose profiles and topics are composed again.
        boxed: Turns whose boxes are made again.
        ended: Sessions whose last box is among them: they get no further turn.
        session_id: The conversation of a forgotten turn.
    """

    memory_id: str
    gone: Mapping[MemoryType, tuple[str, ...]] = Field(default_factory=dict)
    episodes: tuple[str, ...] = ()
    heirs: Mapping[str, str | None] = Field(default_factory=dict)
    amended: tuple[str, ...] = ()
    referring: tuple[str, ...] = ()
    composed: tuple[str, ...] = ()
    boxed: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    session_id: str | None = None

    @property
    def ids(self) -> frozenset[str]:
        """Everything that is deleted."""
        return frozenset(one for ids in self.gone.values() for one in ids)


class PlanForgettingInput(ScopedMessage):
    """Input of the activity that settles what forgetting takes."""

    memory_id: str


class ApplyForgettingInput(TimedMessage):
    """Input of the activity that deletes, and mends what stays."""

    plan: ForgetPlan


class ForgetReceipt(Message):
    """What was forgotten: numbers, no content.

    Attributes:
        memory_id: What was asked to be forgotten.
        forgotten: How many memories were deleted, by type.
        amended: How many stay, without the forgotten turn among their sources.
        recomposed: How many profiles, topics and boxes were made again.
        workflow_id: The run, for the Temporal UI.
    """

    memory_id: str
    forgotten: Mapping[MemoryType, int]
    amended: int = 0
    recomposed: int = 0
    workflow_id: str
