"""What recall keeps of a user from one question to the next."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sized
from typing import Generic, NamedTuple, TypeVar

from engram.domain.kept import lets_go
from engram.domain.scope import Scope

_USERS_KEPT = 256

Kept = TypeVar("Kept", bound=Sized)


class _Held(NamedTuple, Generic[Kept]):
    """What is kept of one user.

    Attributes:
        arrived: When the last of it came, as the store counts.
        looked: Whether it was read since.
        all_: All of it; None where it was not read, or is too much.
    """

    arrived: int
    looked: bool = False
    all_: Kept | None = None

    @property
    def size(self) -> int:
        """How much it is."""
        return 0 if self.all_ is None else len(self.all_)


class AtHand(Generic[Kept]):
    """All that a user has of one thing, where it is little.

    What came since is added to it where the store can tell what that is. Else it is read anew,
    for the second question since some came: not for each question of somebody who talks and
    asks in turn.

    Args:
        read: Reads all of it; None where it is too much.
        most: So much is kept of all users together.
        add: What is kept, with what came since a number; None where nobody can tell.
    """

    def __init__(
        self,
        read: Callable[[Scope], Awaitable[Kept | None]],
        most: int,
        add: Callable[[Scope, Kept, int], Awaitable[Kept | None]] | None = None,
    ) -> None:
        self._read = read
        self._most = most
        self._add = add
        self._users: dict[Scope, _Held[Kept]] = {}
        self._size = 0
        lets_go(self)

    def cache_clear(self) -> None:
        """Let go of all of it: see :func:`engram.domain.kept.let_go`."""
        self._users.clear()
        self._size = 0

    async def of(self, scope: Scope, arrived: int | None) -> Kept | None:
        """All that this user has; None where the store has to be asked.

        Args:
            scope: Whose.
            arrived: A number that has grown if some may have come; None where nobody can tell.
        """
        if arrived is None:
            return None
        held = self._users.get(scope)
        if held is None or held.arrived != arrived:
            held = _Held(arrived, all_=await self._added(scope, held))
            self._keep(scope, held)
            return held.all_
        if held.all_ is None and not held.looked:
            held = _Held(arrived, looked=True, all_=await self._read(scope))
            self._keep(scope, held)
        return held.all_

    async def _added(self, scope: Scope, held: _Held[Kept] | None) -> Kept | None:
        if held is None or held.all_ is None or self._add is None:
            return None
        return await self._add(scope, held.all_, held.arrived)

    def _keep(self, scope: Scope, held: _Held[Kept]) -> None:
        before = self._users.pop(scope, None)
        self._size += held.size - (before.size if before else 0)
        if len(self._users) >= _USERS_KEPT or self._size > self._most:
            self._users.clear()
            self._size = held.size
        self._users[scope] = held
