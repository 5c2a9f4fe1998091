"""Keys for the HTTP API, and the clock by which they expire."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from engram.domain.access import Access
from engram.server.keys import ApiKey, KeyFile, new_key
from tests.support.clock import NOW


@dataclass
class KeyMaker:
    """Makes keys, and has the clock by which they expire."""

    file: KeyFile
    now: datetime = NOW
    tokens: list[str] = field(default_factory=list)

    def clock(self) -> datetime:
        """The present of the server."""
        return self.now

    def key(
        self,
        name: str = "key",
        access: Access = Access.ADMIN,
        namespace: str = "default",
        user: str | None = None,
        days: float | None = None,
    ) -> ApiKey:
        """A new key; its token is the last of ``tokens``."""
        token, key = new_key(
            os.urandom(32),
            name=name,
            access=access,
            namespace=namespace,
            user_id=user,
            now=self.now,
            expires_at=None if days is None else self.now + timedelta(days=days),
        )
        self.file.add(key, self.now)
        self.tokens.append(token)
        return key

    def token(
        self,
        name: str = "key",
        access: Access = Access.ADMIN,
        namespace: str = "default",
        user: str | None = None,
        days: float | None = None,
    ) -> str:
        """The token of a new key."""
        self.key(name, access, namespace, user, days)
        return self.tokens[-1]


def bearer(token: str) -> dict[str, str]:
    """The header with a key."""
    return {"Authorization": f"Bearer {token}"}
