"""Every operation there is: what the HTTP application offers."""

from __future__ import annotations

from typing import Any, Final

from engram.client.operations.commitments import COMMITMENT_OPERATIONS
from engram.client.operations.digests import DIGEST_OPERATIONS
from engram.client.operations.forgetting import FORGETTING_OPERATIONS
from engram.client.operations.inspection import INSPECTION_OPERATIONS
from engram.client.operations.knowledge import KNOWLEDGE_OPERATIONS
from engram.client.operations.lifecycle import LIFECYCLE_OPERATIONS
from engram.client.operations.operation import Operation
from engram.client.operations.transfer import TRANSFER_OPERATIONS
from engram.client.operations.trials import TRIAL_OPERATIONS
from engram.client.operations.usage import USAGE_OPERATIONS

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
