"""The real clock and the real randomness, handed in where a program is put together."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from uuid import uuid4


def system_clock() -> datetime:
    """The present, in UTC."""
    return datetime.now(UTC)


def new_id() -> str:
    """A fresh random id."""
    return str(uuid4())


def new_secret() -> bytes:
    """256 random bits that nobody can guess."""
    return secrets.token_bytes(32)
