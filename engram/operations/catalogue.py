"""Every operation there is: what the HTTP application offers."""

from __future__ import annotations

from typing import Any, Final

from engram.operations.admin import INSPECTION_OPERATIONS
from engram.operations.digests import DIGEST_OPERATIONS
from engram.operations.lifecycle import LIFECYCLE_OPERATIONS
from engram.operations.memories import COMMITMENT_OPERATIONS, KNOWLEDGE_OPERATIONS, USAGE_OPERATIONS
from engram.operations.registry import Operation
from engram.operations.removal import FORGETTING_OPERATIONS
from engram.operations.transfer import TRANSFER_OPERATIONS
from engram.operations.trials import TRIAL_OPERATIONS

OPERATIONS: Final[tuple[Operation[Any, Any], ...]] = (
    *KNOWLEDGE_OPERATIONS,
    *COMMITMENT_OPERATIONS,
    *DIGEST_OPERATIONS,
    *USAGE_OPERATIONS,
    *FORGETTING_OPERATIONS,
    *LIFECYCLE_OPERATIONS,
    *INSPECTION_OPERATIONS,
    *TRIAL_OPERATIONS,
    *TRANSFER_OPERATIONS,
)
