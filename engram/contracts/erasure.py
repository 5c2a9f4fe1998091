"""What passes between clients, the erasing workflow and its activities."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from pydantic import Field

from engram.contracts.common import Message, ScopedMessage


class ErasureInput(ScopedMessage):
    """Whose memory is erased, and how patient each step is.

    Attributes:
        store_timeout: For one round over the store or the workflows.
    """

    store_timeout: timedelta


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
        """Whether there was nothing left to do."""
        return not self.stopped and not self.deleted


class StoreRound(Message):
    """What one round over the collections deleted, by type, and what was there after it."""

    deleted: Mapping[str, int] = Field(default_factory=dict)
    left: int = 0


class ErasureReceipt(Message):
    """What was erased: numbers and times, no content.

    Attributes:
        namespace: Of the user.
        user_id: Whose memory it was.
        complete: Whether everything was gone at the end. False when something was
            written for the user all the while: erase again once that has stopped.
        erased_at: When it ended.
        memories: Deleted memories by type.
        workflows_stopped: Running workflows that were terminated.
        histories_deleted: Workflow histories that were deleted.
        histories_kept: Histories that the server did not let us delete; they go
            with its retention period.
        workflow_id: The erasing workflow itself, which holds no content.
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
