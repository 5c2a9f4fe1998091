"""API keys: what one is, how one is made, and how a presented one is recognised."""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from datetime import datetime
from hashlib import sha256
from typing import Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from engram.domain.access import Access
from engram.domain.scope import Scope, check_identifier
from engram.errors import InvalidInput

PREFIX: Final = "engram_"
# Enough of the hash to name a key by; it says nothing about the token.
_ID_DIGITS: Final = 12

KeyState: TypeAlias = Literal["valid", "expired", "revoked"]


class ApiKey(BaseModel):
    """What is kept of a key; the token itself is not.

    Attributes:
        id: The beginning of ``digest``; names the key in commands.
        name: What people call it; stands in logs.
        digest: SHA-256 of the token, in hexadecimal.
        access: What it allows.
        namespace: The one it opens.
        user_id: The one user it opens; None for all of the namespace.
        created_at: When it was made.
        expires_at: From when on it is refused; None for never.
        revoked_at: When it was taken back.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    name: str
    digest: str = Field(pattern=r"^[0-9a-f]{64}$", repr=False)
    access: Access
    namespace: str
    user_id: str | None = None
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def state(self, now: datetime) -> KeyState:
        """Whether it opens anything at ``now``, and if not, why."""
        if self.revoked_at is not None:
            return "revoked"
        if self.expires_at is not None and now >= self.expires_at:
            return "expired"
        return "valid"


def new_key(
    secret: bytes,
    *,
    name: str,
    access: Access,
    namespace: str,
    user_id: str | None,
    now: datetime,
    expires_at: datetime | None = None,
) -> tuple[str, ApiKey]:
    """A token, to be shown once, and what is kept of it.

    Args:
        secret: 32 random bytes.
        name: What people call it; has the form of a user id.
        access: What it allows.
        namespace: The one it opens.
        user_id: The one user it opens; None for all.
        now: The present.
        expires_at: From when on it is refused.

    Raises:
        InvalidScope: the name, the namespace or the user id has a form that is refused.
        InvalidInput: it would be expired already.
    """
    check_identifier(name, "name of the key")
    Scope.of(namespace, name if user_id is None else user_id)
    if expires_at is not None and expires_at <= now:
        raise InvalidInput("The key would be expired already.", allowed="a time to come")
    token = PREFIX + urlsafe_b64encode(secret).decode().rstrip("=")
    digest = digest_of(token)
    return token, ApiKey(
        id=digest[:_ID_DIGITS],
        name=name,
        digest=digest,
        access=access,
        namespace=namespace,
        user_id=user_id,
        created_at=now,
        expires_at=expires_at,
    )


def digest_of(token: str) -> str:
    """What is kept of a token.

    One round of SHA-256 is right here: a token is 256 random bits, which cannot be
    guessed from its digest however fast guesses are. Slow hashes are for passwords,
    which people choose; here they would only slow every request down.
    """
    return sha256(token.encode()).hexdigest()


def matching(token: str, keys: Iterable[ApiKey]) -> ApiKey | None:
    """The key whose token this is; takes as long whether and wherever it stands."""
    digest = digest_of(token)
    found: ApiKey | None = None
    for key in keys:
        if hmac.compare_digest(key.digest, digest):
            found = key
    return found
