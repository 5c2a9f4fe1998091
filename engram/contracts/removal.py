"""Inputs and outputs of the workflows that erase a user or forget one memory."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from pydantic import Field

from engram.contracts.messages import Message, ScopedMessage, TimedMessage, Timeout
from engram.domain.memories import MemoryType
from engram.domain.rules import DigestPolicy
from engram.domain.turns import SaidAt

# --- what passes between clients, the erasing workflow and its activities


class ErasureInput(ScopedMessage):
    """Whose memory is erased, and how patient each step is.

    Attributes:
        store_timeout: For one round over the store or the workflows.
        asked_at: When it was asked for; None of those that were asked for by earlier versions.
        before: What began later, by the first of its runs, is left alone; None: nothing is.
        most_runs: As many histories are deleted in one round.
        only_running: Whether runs that have ended are left to a later round.
        epoch: The user's behind the fence; None of runs that began in an earlier version.
        first_run_id: Of the erasing workflow, which a reset leaves as it is, and which names the
            fence; None in a start.
    """

    store_timeout: Timeout = timedelta(seconds=30)
    asked_at: datetime | None = None
    before: datetime | None = None
    most_runs: int = Field(default=1000, ge=1)
    only_running: bool = False
    epoch: int | None = None
    first_run_id: str | None = None


class FenceOutput(Message):
    """What the user had when the fence stood.

    Attributes:
        epoch: The user's from now on; nothing that began before it is written any more.
        memories: How many memories are to be deleted, by type.
    """

    epoch: int
    memories: Mapping[str, int] = Field(default_factory=dict)


class WorkflowRound(Message):
    """What one round over a user's workflows came to.

    Attributes:
        stopped: Running workflows that were terminated.
        deleted: Runs whose deletion was asked for; a server takes its time to do it.
        kept: Histories that the server does not let this client delete; it keeps
            them for its retention period.
    """

    stopped: int = 0
    deleted: tuple[str, ...] = ()
    kept: int = 0

    @property
    def quiet(self) -> bool:
        """Whether there was nothing left to do; histories may be kept all the same."""
        return not self.stopped and not self.deleted

    def plus(self, other: WorkflowRound) -> WorkflowRound:
        """Both together; what was deleted twice counts once."""
        return WorkflowRound(
            stopped=self.stopped + other.stopped,
            deleted=tuple(dict.fromkeys((*self.deleted, *other.deleted))),
            kept=self.kept + other.kept,
        )


class StoreRound(Message):
    """What one round over the collections deleted, by type, and what was there after it."""

    deleted: Mapping[str, int] = Field(default_factory=dict)
    left: int = 0


class ErasureReceipt(Message):
    """What was erased: numbers and times, no content.

    Attributes:
        namespace: Of the user.
        user_id: Whose memory it was.
        complete: Whether everything was gone: of a receipt that is not ``scrubbed``, every
            memory; of one that is, every history and every byte in the files as well.
        scrubbed: Whether histories and files were gone through, too. ``erased`` waits for
            the receipt of that.
        erased_at: When the last memory was gone.
        memories: Deleted memories by type.
        workflows_stopped: Running workflows that were terminated.
        histories_deleted: Workflow histories that were deleted.
        histories_kept: Histories that the server did not let us delete; they go
            with its retention period.
        workflow_id: The erasing workflow itself, which holds no content.
        rewritten: What was written anew without the deleted: ``store``, ``temporal``.
            Empty in the connected mode, where the files are not Engram's.
        may_remain: What may still hold words of the user or name them, in sentences.
    """

    namespace: str
    user_id: str
    complete: bool = True
    erased_at: datetime
    memories: Mapping[str, int]
    workflows_stopped: int
    histories_deleted: int
    histories_kept: int
    workflow_id: str
    rewritten: tuple[str, ...] = ()
    may_remain: tuple[str, ...] = ()
    scrubbed: bool = False


class HistoryErasureInput(ScopedMessage):
    """All that the workflow behind an erasure knows; carried whole over continue-as-new.

    Attributes:
        receipt: Of the erasure, with what was counted so far.
        fenced_at: What began later, by the first of its runs, belongs to what the user has since.
        store_timeout: For one round over the workflows.
        recent: Runs whose deletion was asked for last; the service lists them for a while.
        quiet: Rounds in a row that found nothing to do.
    """

    receipt: ErasureReceipt
    fenced_at: datetime
    store_timeout: Timeout
    recent: tuple[str, ...] = ()
    quiet: int = 0


class CompactReceipt(Message):
    """What was written anew, without what had been deleted before.

    Attributes:
        memories: How many memories the store holds, of all users.
        rewritten: ``store``: the files of all memories. ``temporal``: the database
            of workflows and histories.
        may_remain: What could not be written anew, and why, in sentences.
    """

    memories: int = 0
    rewritten: tuple[str, ...] = ()
    may_remain: tuple[str, ...] = ()


BEING_SCRUBBED: Final = (
    "Temporal's histories of the user, and the files of a data folder, hold words until they "
    "are deleted and rewritten, which goes on: `erased` waits for it.",
)
"""What is still there when the last memory is gone."""

HISTORIES_KEPT: Final = (
    "Temporal did not let {count} histories be deleted: it keeps them until its retention ends."
)
"""What is to be said of histories that stay."""

SERVERS_MAY_KEEP: Final = (
    "Qdrant keeps deleted points in its log and segments until it optimises them, "
    "and in snapshots and backups.",
    "Temporal's database keeps deleted histories until it reuses or reclaims their space, the "
    "ids of their workflows in timers until its retention ends, and both in its archive, "
    "visibility store and backups where there are any.",
)
"""What erasing cannot reach on servers."""

FOLDER_MAY_KEEP: Final = (
    "The records of the erasing workflows and of passes over all users name the user, until "
    "their retention ends; API keys that are bound to the user, until they are revoked.",
    "Backups and snapshots that were made before, and blocks of the disk that were freed "
    "and not used again.",
)
"""What erasing cannot reach in the embedded mode."""


# --- what passes between clients, the forgetting workflow and its activities. Ids, no content


class ForgetInput(ScopedMessage):
    """Which memory is forgotten, and by which numbers profiles are composed again."""

    memory_id: str
    digests: DigestPolicy = DigestPolicy()


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
        said_at: Where it stood there: the turn after it was found by its words, too.
        buried: What is not to be written again once it is deleted.
        drawn: By the id of a conclusion among them: turns that say other things as well,
            from which it is not to be drawn again.
        again: Whether it was found by looking again, when the forgotten turns were gone.
        disputes: What reviews are about that have nothing to wait for any more.
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
    said_at: SaidAt | None = None
    buried: tuple[str, ...] = ()
    drawn: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    again: bool = False
    disputes: tuple[tuple[str, ...], ...] = ()

    def plus(self, other: ForgetPlan) -> ForgetPlan:
        """Both together, of one memory that is forgotten."""
        kinds = sorted({*self.gone, *other.gone})
        gone = {kind: (*self.gone.get(kind, ()), *other.gone.get(kind, ())) for kind in kinds}
        rest = {
            name: tuple(sorted({*getattr(self, name), *getattr(other, name)}))
            for name in ("composed", "boxed", "ended", "disputes")
        }
        return self.model_copy(
            update={"gone": {kind: tuple(dict.fromkeys(ids)) for kind, ids in gone.items()}, **rest}
        )

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


class LookAgainInput(ScopedMessage):
    """Input of the activity that looks for what was written of the forgotten meanwhile."""

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
