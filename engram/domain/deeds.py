"""What somebody did with a memory, as the audit trail has it: ids and numbers, no content."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from engram.domain.scope import Scope


class Door(StrEnum):
    """By which way somebody came.

    Attributes:
        LIBRARY: A Python program, in process or attached.
        CLI: A command.
        HTTP: The HTTP API, with a key.
        MCP: A model's client, by pipe or with a key.
        NEXUS: A workflow of another Temporal namespace.
        WORKFLOW: Nobody: a workflow works for the user.
    """

    LIBRARY = "library"
    CLI = "cli"
    HTTP = "http"
    MCP = "mcp"
    NEXUS = "nexus"
    WORKFLOW = "workflow"


class Actor(BaseModel):
    """Who did something.

    Attributes:
        door: By which way.
        key_id: Of the API key, where one was used.
        workflow: The kind of a workflow; its whole id would name the user.
        run_id: Of the workflow: finds it in the Temporal UI as long as it is kept.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    door: Door = Door.LIBRARY
    key_id: str | None = None
    workflow: str | None = None
    run_id: str | None = None


class Outcome(StrEnum):
    """What became of it.

    Attributes:
        BEGUN: It was asked for, and nothing says how it ended: its process died, say.
        DONE: It was carried out.
        REFUSED: It was not, and the same request is refused again.
        FAILED: It broke off; part of it may have been done.
    """

    BEGUN = "begun"
    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"


class AuditEntry(BaseModel):
    """One thing that was done with a user's memory: ids and numbers, no content.

    Attributes:
        id: The same wherever the same thing is told twice.
        at: When, by the clock of the process; of what was begun, when it was.
        actor: Who did it.
        action: The operation, by its name; of a workflow, the one that it serves.
        step: Of a workflow: its activity.
        namespace: Of the user.
        user_id: Whose memory; None of one who was erased, or of whom nothing is kept.
        user_mark: A keyed hash that stands for the user, also when the name is gone.
        memory_ids: The memories that were read, written or removed; the first 1,000.
        touched: How many they are in all, and those of which no id is kept; of the step that
            deletes histories, how many histories.
        outcome: What became of it.
        error: The code of the error, where it was not done.
        intact: Whether the line is as it was written, and follows the one before it.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    at: datetime
    actor: Actor
    action: str
    step: str | None = None
    namespace: str
    user_id: str | None = None
    user_mark: str
    memory_ids: tuple[str, ...] = ()
    touched: int = 0
    outcome: Outcome
    error: str | None = None
    intact: bool = True


class AuditFilter(BaseModel):
    """Which entries are asked for; None stands for all.

    Attributes:
        scope: Of this user.
        action: Of this operation.
        key_id: Of this API key.
        memory_id: About this memory.
        since: From then on.
        until: Before that.
    """

    model_config = ConfigDict(frozen=True)

    scope: Scope | None = None
    action: str | None = None
    key_id: str | None = None
    memory_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def passes(self, entry: AuditEntry) -> bool:
        """Whether an entry is asked for; whose it is, is not looked at."""
        return (
            self.action in (None, entry.action)
            and self.key_id in (None, entry.actor.key_id)
            and (self.memory_id is None or self.memory_id in entry.memory_ids)
            and (self.since is None or entry.at >= self.since)
            and (self.until is None or entry.at < self.until)
        )
