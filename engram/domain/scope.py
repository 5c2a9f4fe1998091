"""Whose memory it is: the namespace and user that bound every read and write."""

from __future__ import annotations

import re

from pydantic import BaseModel, ConfigDict

from engram.errors import InvalidScope

# Three of them and a word make a workflow id, which Temporal's SQL databases keep
# in 255 characters.
_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+:=|~-]{0,79}\Z")
_ALLOWED = (
    "1 to 80 characters: ASCII letters, digits and . _ @ + : = | ~ -, "
    "beginning with a letter or digit"
)


def check_identifier(value: object, what: str) -> str:
    """Return ``value`` if it can name a namespace, user or session.

    The slash is refused because it separates the parts of workflow ids and
    tenant keys: ("a/b", "c") and ("a", "b/c") must not meet.

    Raises:
        InvalidScope: for any other value.
    """
    if not isinstance(value, str) or not _IDENTIFIER.match(value):
        raise InvalidScope(f"The {what} is not usable.", allowed=_ALLOWED)
    return value


class Scope(BaseModel):
    """One user's memory inside one namespace. Two scopes share nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    namespace: str
    user_id: str

    @classmethod
    def of(cls, namespace: str, user_id: str) -> Scope:
        """Build a scope from outside input.

        Raises:
            InvalidScope: when either name has a form that is refused.
        """
        return cls(
            namespace=check_identifier(namespace, "namespace"),
            user_id=check_identifier(user_id, "user id"),
        )

    @property
    def tenant(self) -> str:
        """The single key under which the store keeps this scope's points."""
        return f"{self.namespace}/{self.user_id}"
