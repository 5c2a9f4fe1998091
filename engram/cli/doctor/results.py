"""What a check found."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from engram.cli.config.effective import Effective
    from engram.settings import Settings


class State(StrEnum):
    """How a check came out."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


class Result(BaseModel):
    """What one check found.

    Attributes:
        check: What was looked at.
        state: Whether it is well.
        found: What there is, in words.
        advice: What to do, where it is not well.
    """

    model_config = ConfigDict(frozen=True)

    check: str
    state: State
    found: str
    advice: str | None = None


def ok(check: str, found: str) -> Result:
    """It is as it should be."""
    return Result(check=check, state=State.OK, found=found)


def warning(check: str, found: str, advice: str) -> Result:
    """It works, and is not as it should be."""
    return Result(check=check, state=State.WARNING, found=found, advice=advice)


def failed(check: str, found: str, advice: str) -> Result:
    """It cannot work like this."""
    return Result(check=check, state=State.FAILED, found=found, advice=advice)


@dataclass(frozen=True)
class Surroundings:
    """What checks look at.

    Attributes:
        settings: As they are used; those that cannot be used have their default.
        effective: The same, with where each comes from and what is wrong.
        connected: Whether servers are to be used rather than the data folder.
        ask_model: Whether the language model may be asked something, over the network.
        environment: The environment's variables.
    """

    settings: Settings
    effective: Effective
    connected: bool = False
    ask_model: bool = False
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))


Check = Callable[[Surroundings], Result | Awaitable[Result]]
