"""Which memory an agent's run uses, and what becomes of its errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic
from uuid import NAMESPACE_URL, uuid5

from pydantic_ai.tools import AgentDepsT, RunContext
from temporalio import activity

from engram.domain.scope import check_identifier
from engram.errors import EngramError, InvalidScope

if TYPE_CHECKING:
    # Not imported in a workflow's sandbox, which never touches a store.
    from engram.client.store import MemoryStore


@dataclass(frozen=True)
class MemorySource(Generic[AgentDepsT]):
    """Whose memory, and which session, a run belongs to.

    Attributes:
        memory: The store, or what finds it.
        session_id: The session, or what finds it; the run's conversation when None.
    """

    memory: MemoryStore | Callable[[RunContext[AgentDepsT]], MemoryStore]
    session_id: str | Callable[[RunContext[AgentDepsT]], str] | None

    def memory_of(self, ctx: RunContext[AgentDepsT]) -> MemoryStore:
        """The user's memory."""
        return self.memory(ctx) if callable(self.memory) else self.memory

    def session_of(self, ctx: RunContext[AgentDepsT]) -> str:
        """The session that the run's turns belong to."""
        if self.session_id is not None:
            return self.session_id(ctx) if callable(self.session_id) else self.session_id
        conversation = ctx.conversation_id or ctx.run_id or "agent"
        try:
            return check_identifier(conversation, "session id")
        except InvalidScope:
            # An application may call its conversations as it likes; sessions have narrower names.
            return str(uuid5(NAMESPACE_URL, f"engram:conversation:{conversation}"))


@contextmanager
def translated() -> Iterator[None]:
    """Let typed errors leave an activity as failures that Temporal retries, or does not."""
    try:
        yield
    except EngramError as error:
        if not activity.in_activity():
            raise
        raise _application_error(error) from None


def _application_error(error: EngramError) -> Any:
    from activities.errors import to_application_error  # noqa: PLC0415 - never in a sandbox

    return to_application_error(error)
