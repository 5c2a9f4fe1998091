"""Search attributes of workflows: the keys, and the values that a workflow starts with."""

from __future__ import annotations

from typing import Final

from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes

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
