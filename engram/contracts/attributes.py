"""What a workflow starts with for the server: search attributes, and whose turn it is."""

from __future__ import annotations

import hashlib
from typing import Final

from temporalio.common import (
    Priority,
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
)

from engram.contracts import names

USER_SEARCH_KEY: Final = SearchAttributeKey.for_keyword(names.USER_ATTRIBUTE)
SESSION_SEARCH_KEY: Final = SearchAttributeKey.for_keyword(names.SESSION_ATTRIBUTE)
STAGE_SEARCH_KEY: Final = SearchAttributeKey.for_keyword(names.STAGE_ATTRIBUTE)


def attributes(
    stage: str, *, user: str | None = None, session: str | None = None
) -> TypedSearchAttributes:
    """Search attributes of a workflow that starts.

    Args:
        stage: What the workflow does, such as ``consolidation``.
        user: Tenant of the user it works for; None for a pass over all users.
        session: Conversation session it belongs to, if it does.
    """
    given = ((USER_SEARCH_KEY, user), (SESSION_SEARCH_KEY, session), (STAGE_SEARCH_KEY, stage))
    return TypedSearchAttributes(
        [SearchAttributePair(key, value) for key, value in given if value is not None]
    )


# From 1, served first, to 5; what is not here has the server's default of 3. Somebody waits for
# a session's answer, and nobody for what runs by itself.
_URGENCY: Final = {"session": 1, "forgetting": 2, "erasure": 2, "import": 4} | dict.fromkeys(
    ("decay", "promotion", "maintenance"), 5
)
_DEFAULT_URGENCY: Final = 3
# Temporal takes keys of up to 64 bytes.
_FAIRNESS_KEY_BYTES: Final = 16


def precedence(described_by: TypedSearchAttributes) -> Priority:
    """Whose tasks workers take first while more wait than they can take.

    The more urgent go first; of the equally urgent, users take turns, so that the flood of one
    does not starve another (https://docs.temporal.io/develop/task-queue-priority-fairness).

    Args:
        described_by: The workflow's attributes: what it does, and for whom.
    """
    stage, user = described_by.get(STAGE_SEARCH_KEY), described_by.get(USER_SEARCH_KEY)
    return Priority(
        priority_key=_URGENCY.get(stage or "", _DEFAULT_URGENCY),
        fairness_key=user and _digest(user),
    )


def _digest(user: str) -> str:
    return hashlib.blake2b(user.encode(), digest_size=_FAIRNESS_KEY_BYTES).hexdigest()
