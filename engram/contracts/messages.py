"""Base classes of what crosses Temporal, and the count of what models were asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from engram.domain.scope import Scope
from engram.errors import EngramError

# --- bases of what crosses Temporal


class Population(StrEnum):
    """Which memories a pass looks at."""

    REAL = "real"
    """All but test memories."""
    TEST = "test"
    """Test memories only."""


Timeout = Annotated[timedelta, Field(gt=timedelta(0), le=timedelta(days=1))]
"""Longest time for one activity: without any, a workflow's task would fail for ever."""


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


class Failure(Message):
    """Why a pass stopped, or left episodes out.

    Attributes:
        code: The typed error's code.
        message: What was wrong, without any memory content.
        error: The typed error as data, see ``engram.errors.error_from_dict``.
    """

    code: str
    message: str
    error: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def of(cls, error: EngramError) -> Self:
        """As a typed error says."""
        return cls(code=error.code, message=error.message, error=error.as_dict())


# --- what models were asked and what that took, countable over attempts, runs and users


class Spent(Message):
    """What asking a model took; what failed is counted too.

    Attributes:
        attempts: Attempts at steps that ask a model, whether or not they came to an end.
        failed_attempts: Those of them that gave nothing, a worker that died included.
        requests: Requests sent to the provider, mending of answers included.
        failed_requests: Those of them that the provider did not answer.
        input_tokens: Tokens of what was asked, as the provider counted them.
        output_tokens: Tokens of the answers, those included that could not be used.
        cost_usd: Sum of the costs that are known, in US dollars.
        unpriced_requests: Answered requests whose price is not known.
    """

    attempts: int = Field(default=0, ge=0)
    failed_attempts: int = Field(default=0, ge=0)
    requests: int = Field(default=0, ge=0)
    failed_requests: int = Field(default=0, ge=0)
    input_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)
    cost_usd: float = Field(default=0.0, ge=0)
    unpriced_requests: int = Field(default=0, ge=0)

    def plus(self, other: Spent) -> Self:
        """Both together."""
        names = Spent.model_fields
        return self.model_copy(update={n: getattr(self, n) + getattr(other, n) for n in names})


class ModelSpent(Spent):
    """What asking one model took.

    Attributes:
        model: The model's name, such as ``openai:gpt-5-mini``.
    """

    model: str


SPENT_BY_MODEL: Final[TypeAdapter[tuple[ModelSpent, ...]]] = TypeAdapter(tuple[ModelSpent, ...])
"""Reads what memos, heartbeats and failures say of it."""


class UserUsage(Spent):
    """What one user's memory took of language models, over all its consolidations.

    Attributes:
        models: The same by model, in order of their names.
        runs: Consolidations that it sums; a run that goes on in a new history counts once.
        since: When the earliest of them began. Temporal forgets a run some time after
            its end (``temporal_retention``, 90 days in the embedded mode), and so does the sum.
    """

    models: tuple[ModelSpent, ...] = ()
    runs: int = 0
    since: datetime | None = None


def by_model(parts: Iterable[ModelSpent]) -> tuple[ModelSpent, ...]:
    """The parts with those of one model put together, in order of the models' names."""
    found: dict[str, ModelSpent] = {}
    for part in parts:
        found[part.model] = found[part.model].plus(part) if part.model in found else part
    return tuple(found[model] for model in sorted(found))


def in_all(parts: Iterable[ModelSpent]) -> Spent:
    """The sum over all models."""
    total = Spent()
    for part in parts:
        total = total.plus(part)
    return total


class Meter:
    """What was asked of models since it was put up.

    Attributes:
        spent: By model, embedders of providers included.
        answering: The model that was last asked for an answer; None if none was.
    """

    def __init__(self) -> None:
        self.spent: tuple[ModelSpent, ...] = ()
        self.answering: str | None = None

    def add(self, part: ModelSpent) -> None:
        """Count something more that a model was asked to answer."""
        self.answering = part.model
        self.add_embedded(part)

    def add_embedded(self, part: ModelSpent) -> None:
        """Count something more that an embedder was given."""
        self.spent = by_model((*self.spent, part))


_meter: ContextVar[Meter | None] = ContextVar("engram-meter", default=None)


@contextmanager
def metering() -> Iterator[Meter]:
    """Count the requests that language models and embedders of providers get within the block."""
    meter = Meter()
    token = _meter.set(meter)
    try:
        yield meter
    finally:
        _meter.reset(token)


def meter_that_is_up() -> Meter | None:
    """The meter of the innermost block around; None where nobody counts."""
    return _meter.get()
