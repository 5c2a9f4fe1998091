"""Who carries operations out in process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from engram.client.operations.operation import Answer, Asked, Operation
from engram.domain.scope import Scope
from engram.errors import UnknownFailure

Handler: TypeAlias = Callable[[Scope, Asked], Awaitable[Answer]]


class Handlers:
    """Operations, and what carries each of them out."""

    def __init__(self) -> None:
        # The pairing of types is checked where a handler is added and where it is asked.
        self._handlers: dict[str, Callable[[Scope, Any], Awaitable[Any]]] = {}

    def add(
        self,
        operation: Operation[Asked, Answer],
        handler: Callable[[Scope, Asked], Awaitable[Answer]],
    ) -> None:
        """Let ``handler`` carry out ``operation``."""
        self._handlers[operation.name] = handler

    def __contains__(self, operation: Operation[Any, Any]) -> bool:
        return operation.name in self._handlers

    async def perform(
        self, scope: Scope, operation: Operation[Asked, Answer], asked: Asked
    ) -> Answer:
        """Carry ``operation`` out for one user.

        Raises:
            UnknownFailure: this process does not know the operation.
        """
        handler = self._handlers.get(operation.name)
        if handler is None:
            raise UnknownFailure(
                f"The operation {operation.name!r} is not offered here.",
                hint="Use the same version of Engram in all processes.",
            )
        answer: Answer = await handler(scope, asked)
        return answer
