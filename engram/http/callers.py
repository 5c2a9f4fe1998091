"""Who asks, and what they may reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from starlette.types import Scope as AsgiScope

from engram.domain.access import Access
from engram.domain.scope import Scope
from engram.errors import AccessDenied, InvalidScope, KeyRefused, NoSuchAddress
from engram.http.keys import ApiKey

_PLACE: Final = "engram.caller"
USER_HEADER: Final = "Engram-User"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks.

    Attributes:
        name: What the log calls them.
        access: What they may do; None for nothing that has to do with memories.
        namespace: The only one they reach; None for every one.
        user_id: The only user they reach; None for every one of the namespace.
        key_id: Of their key, when they have one.
    """

    name: str
    access: Access | None
    namespace: str | None = None
    user_id: str | None = None
    key_id: str | None = None

    @classmethod
    def of(cls, key: ApiKey) -> Caller:
        """Who holds this key."""
        return cls(key.name, key.access, key.namespace, key.user_id, key.id)

    def require(self, needed: Access) -> None:
        """Check what they may do.

        Raises:
            AccessDenied: not this.
        """
        if self.access is None or not self.access.includes(needed):
            raise AccessDenied(
                f"The API key does not allow to {_DOING[needed]}.",
                allowed=f"a key with access {needed}",
                details={"needed": needed.value},
            )

    def reach(self, namespace: str, user_id: str) -> None:
        """Check whose memory they reach; what they do not reach is as if it did not exist.

        Raises:
            NoSuchAddress: not this.
        """
        if self.namespace not in (None, namespace) or self.user_id not in (None, user_id):
            raise no_such_address()

    def scope(self, asked_user: str | None) -> Scope:
        """Whose memory is meant where the address does not say it.

        Raises:
            InvalidScope: the key opens many users and the request names none.
            NoSuchAddress: the request names a user that the key does not open.
        """
        user_id = asked_user or self.user_id
        if user_id is None or self.namespace is None:
            raise InvalidScope(
                "The request does not say whose memory is meant.",
                allowed=f"a header `{USER_HEADER}`, or a key of one user",
            )
        self.reach(self.namespace, user_id)
        return Scope.of(self.namespace, user_id)


# Of the Unix socket, which only the user who owns the data folder can open.
OWNER: Final = Caller("owner", Access.ADMIN)
# Without a key, at the few addresses that are open.
ANYBODY: Final = Caller("anybody", None)

_DOING: Final = {
    Access.READ: "read memories",
    Access.WRITE: "write memories",
    Access.ADMIN: "operate on memories as a whole",
}


def no_such_address() -> NoSuchAddress:
    """The error for what does not exist, and for what a key does not reach."""
    return NoSuchAddress(
        "There is no such address or method.",
        hint="An API key reaches only the namespace and the user that it was made for.",
    )


def introduce(scope: AsgiScope, caller: Caller) -> None:
    """Note on a request who asks."""
    scope[_PLACE] = caller


def caller_of(scope: AsgiScope) -> Caller:
    """Who asks.

    Raises:
        KeyRefused: nobody has found out; then nobody gets in.
    """
    caller = known_caller(scope)
    if caller is None:
        raise KeyRefused("The request has not been admitted.")
    return caller


def known_caller(scope: AsgiScope) -> Caller | None:
    """Who asks, if they got in."""
    caller = scope.get(_PLACE)
    return caller if isinstance(caller, Caller) else None
