"""The states a memory can be in, and the vital facts that its fading is computed from."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field


class LifecycleState(StrEnum):
    """How far a memory has come in its life."""

    CANDIDATE = "candidate"
    """Concluded once, and neither used nor confirmed since; or disputed."""
    VALIDATED = "validated"
    """A second turn says the same, or the user confirmed it."""
    ACTIVE = "active"
    """In use. A turn begins here: what was said needs no confirming."""
    STALE = "stale"
    """Unused for much of the time after which it leaves."""
    ARCHIVED = "archived"
    """Left the answers; kept for audit."""


class VerificationState(StrEnum):
    """Who vouches for a memory."""

    UNVERIFIED = "unverified"
    USER_CONFIRMED = "user_confirmed"
    SYSTEM_INFERRED = "system_inferred"
    """Engram found the words that say so in a source."""
    DISPUTED = "disputed"


class PolicyClass(StrEnum):
    """How freely time may take a memory away."""

    EPHEMERAL = "ephemeral"
    """Has an end set beforehand, and does not harden by use."""
    DURABLE = "durable"
    PROTECTED = "protected"
    """No rule takes it away; only the user does."""


class Placement(StrEnum):
    """Where a memory is kept ready."""

    HOT = "hot"
    COLD = "cold"


class Tier(StrEnum):
    """Under the energy policy: how slowly a memory's energy falls."""

    WORKING = "working"
    SHORT_TERM = "short_term"
    LONG_TERM = "long_term"


class Term(StrEnum):
    """The coarse horizon of a memory."""

    SHORT = "short"
    LONG = "long"


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Together(_Value):
    """Another memory that was recalled in the same answers, and how often."""

    memory_id: str
    count: int = Field(ge=1)


class Vitals(_Value):
    """What is written down about a memory's life once something has happened in it.

    A memory that nobody recalled, reviewed or promoted has none of it.

    Attributes:
        energy: At ``energy_at``; None while it was never recalled.
        energy_at: When ``energy`` was last written.
        peak_energy: The highest energy it ever had.
        tier: Under the energy policy; None for the one its type begins in.
        promotion_attempts: How often it was promoted, or was to be.
        last_decay: When a pass last reviewed it.
        last_promotion: When it was last promoted.
        promoted_from: The memory it was made from by promotion.
        instance_id: The process that last noted a recall of it.
        flushes: The last batch of recalls that each process has noted here.
        together: What else was recalled with it.
    """

    energy: float | None = Field(default=None, ge=0)
    energy_at: datetime | None = None
    peak_energy: float | None = Field(default=None, ge=0)
    tier: Tier | None = None
    promotion_attempts: int = Field(default=0, ge=0)
    last_decay: datetime | None = None
    last_promotion: datetime | None = None
    promoted_from: str | None = None
    instance_id: str | None = None
    flushes: tuple[str, ...] = ()
    together: tuple[Together, ...] = ()
