"""Every operation there is, as the classes that carry them out name them."""

from __future__ import annotations

from typing import Any, Final

from engram.operations.admin import InspectionHandlers
from engram.operations.audit import AuditHandlers
from engram.operations.digests import DigestHandlers
from engram.operations.lifecycle import LifecycleHandlers
from engram.operations.memories import CommitmentHandlers, MemoryHandlers, UsageHandlers
from engram.operations.progress import ProgressHandlers
from engram.operations.recall import RecallHandlers
from engram.operations.registry import Operation, operations_of
from engram.operations.removal import ForgettingHandlers
from engram.operations.reviews import ReviewHandlers
from engram.operations.transfer import TransferHandlers
from engram.operations.trials import TrialHandlers
from engram.operations.turns import TurnHandlers

# In the order of the OpenAPI document.
GROUPS: Final = (
    TurnHandlers,
    RecallHandlers,
    MemoryHandlers,
    ProgressHandlers,
    CommitmentHandlers,
    DigestHandlers,
    UsageHandlers,
    ForgettingHandlers,
    LifecycleHandlers,
    ReviewHandlers,
    InspectionHandlers,
    AuditHandlers,
    TrialHandlers,
    TransferHandlers,
)
OPERATIONS: Final[tuple[Operation[Any, Any], ...]] = tuple(
    operation for group in GROUPS for operation in operations_of(group)
)
