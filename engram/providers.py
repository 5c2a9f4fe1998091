"""How a provider is set up, and what its errors mean, whichever model is asked."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from pydantic_ai.exceptions import (
    ModelAuthenticationError,
    ModelConnectionError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRequestRejectedError,
    UserError,
)
from pydantic_ai.providers import Provider, infer_provider

from engram.distribution import how_to_install
from engram.errors import ModelRejected

# --- what a provider needs before it can be asked

# Providers for whose packages Engram has an extra, of the same name.
_WITH_EXTRA: Final = frozenset({"openai", "anthropic", "google"})
_OF_OPENAI: Final = frozenset({"openai", "openai-chat", "openai-responses"})
# As Pydantic AI and providers' clients name what they miss: "Set the `OPENAI_API_KEY` ...".
_VARIABLE: Final = re.compile(r"`([A-Z][A-Z0-9]*_[A-Z0-9_]+)`")


def check_set_up(model: str) -> None:
    """Refuse a key or an address with which each request would fail as if nobody were there.

    Args:
        model: ``<provider>:<model>``.

    Raises:
        ModelRejected: the key cannot be sent, or the address is none.
    """
    name = _family(model).upper()
    key, address = f"{name}_API_KEY", f"{name}_BASE_URL"
    if not _can_be_sent(os.environ.get(key, "")):
        raise ModelRejected(
            f"The key in {key} cannot be sent.",
            allowed="letters, digits and signs of ASCII, without line breaks or white space around",
            hint=f"Set {key} again; a file's last line break may have come along.",
        )
    if not _is_address(os.environ.get(address)):
        raise ModelRejected(
            f"{address} is no address of a server.",
            allowed="http://<host>:<port>/<path>, or the same with https",
            hint=f"Set {address} to such an address, or unset it for the provider's own.",
        )


def making_providers(model: str) -> Callable[[str], Provider[Any]]:
    """What makes a model's provider: Pydantic AI; a key of OpenAI's that is set to nothing is none.

    Servers of one's own that speak as OpenAI does ask for none, and a container's empty variable
    is as one that is not set.

    Args:
        model: ``<provider>:<model>``.
    """
    given = os.environ.get
    of_own = given("OPENAI_API_KEY") == "" and bool(given("OPENAI_BASE_URL"))
    return _without_key if of_own and model.partition(":")[0] in _OF_OPENAI else infer_provider


def _without_key(_: str) -> Provider[Any]:
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415 - an optional part

    # Its client asks for some key; Pydantic AI gives it another such where none is set.
    return OpenAIProvider(api_key="none")


def _family(model: str) -> str:
    """The provider, whichever of its interfaces is meant: "openai" of "openai-chat:gpt-5"."""
    return model.partition(":")[0].partition("-")[0]


def _can_be_sent(key: str) -> bool:
    return key.isascii() and key.isprintable() and key == key.strip()


def _is_address(said: str | None) -> bool:
    if said is None:
        return True
    # Reading an address takes off blanks with which a client cannot ask.
    if said != said.strip():
        return False
    try:
        parts = urlsplit(said)
        # Reading the port is what refuses one that is none.
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


class Unusable(NamedTuple):
    """Why a model cannot be used.

    Attributes:
        why: Behind "the model ... cannot be used".
        hint: What to do, where that is known.
    """

    why: str
    hint: str | None


def why_unusable(error: Exception, model: str) -> Unusable:
    """What an error means that was raised as a model was made.

    Args:
        error: Of Pydantic AI, or of the provider's client.
        model: ``<provider>:<model>``.
    """
    if isinstance(error, ImportError):
        family = _family(model)
        install = f"Run {how_to_install(family)}." if family in _WITH_EXTRA else str(error)
        return Unusable(": its provider's package is not installed", install)
    if variables := list(dict.fromkeys(_VARIABLE.findall(str(error)))):
        return Unusable(f" without {' or '.join(variables)}", f"Set {variables[0]}.")
    # What a provider's client says may quote the key.
    said = str(error) if isinstance(error, UserError | ValueError) else type(error).__name__
    return Unusable(f": {said}", None)


# --- what its errors mean: wait, or change something

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


def place_without_answer(error: Exception) -> str | None:
    """Where no connection could be made to; None where one was, or that is not told.

    Scheme, host and port only: an address may hold a password.
    """
    if not isinstance(error, ModelConnectionError) or error.phase != "connect":
        return None
    url = getattr(getattr(error.__cause__, "request", None), "url", None)
    if url is None:
        return None
    parts = urlsplit(str(url))
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
