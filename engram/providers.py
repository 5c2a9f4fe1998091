"""What a provider's errors mean, whichever model was asked: wait, or change something."""

from __future__ import annotations

from typing import Final

from pydantic_ai.exceptions import (
    ModelAuthenticationError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRequestRejectedError,
    UserError,
)

_CLIENT_ERRORS: Final = 4  # 400 to 499
_TRANSIENT_STATUS: Final = frozenset({408, 409, 425, 429})
_ACCOUNT_STATUS: Final = frozenset({401, 402, 403, 404, 405})


def is_refusal(error: Exception) -> bool:
    """Whether the same request, sent again with the same key, is refused again."""
    # By what the provider said before its status: some answer 429 to a quota that is used up.
    if isinstance(error, ModelRequestRejectedError | ModelQuotaExceededError | UserError):
        return True
    if isinstance(error, ModelHTTPError):
        client_error = error.status_code // 100 == _CLIENT_ERRORS
        return client_error and error.status_code not in _TRANSIENT_STATUS
    # What no provider class claims (limits of Pydantic AI itself) is worth a retry.
    return False


def is_of_the_account(error: Exception) -> bool:
    """Whether key, model name, configuration or quota is refused, whatever is asked."""
    kinds = ModelAuthenticationError | ModelNotFoundError | ModelQuotaExceededError | UserError
    if isinstance(error, kinds):
        return True
    # A moderated turn is refused with 403 as well, by some.
    said_what = isinstance(error, ModelRequestRejectedError)
    return not said_what and getattr(error, "status_code", None) in _ACCOUNT_STATUS


def delay_asked_for(error: Exception) -> dict[str, float]:
    """How long to wait before the next attempt, as details of a typed error; empty if not said."""
    wait = getattr(error, "retry_after", None)
    return {} if wait is None else {"retry_after": wait}
