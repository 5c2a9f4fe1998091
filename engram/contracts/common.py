"""Bases of what crosses Temporal."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from engram.domain.scope import Scope


class Population(StrEnum):
    """Which memories a pass looks at."""

    REAL = "real"
    """All but test memories."""
    TEST = "test"
    """Test memories only."""


class Message(BaseModel):
    """Base of every input and output.

    Unknown fields are ignored, so that a worker one version behind can read what
    a newer client sends; new fields therefore always have defaults.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")


class ScopedMessage(Message):
    """A message about one user's memory."""

    scope: Scope


class TimedMessage(ScopedMessage):
    """A message to an activity: ``now`` comes from the workflow's clock."""

    now: datetime
