"""Counting what is asked of a model, where it is asked: answered, refused or cut off.

An answer that ended at the limit of its length ends the request here. Asked to
mend it, a model would write as much again, to be cut off again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pydantic_ai.exceptions import OutputTokenLimitExceeded
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from engram.agents.rules.model import RulesModel
from engram.contracts.usage import ModelSpent, by_model


class Meter:
    """What was asked of models since it was put up."""

    def __init__(self) -> None:
        self.spent: tuple[ModelSpent, ...] = ()

    def add(self, part: ModelSpent) -> None:
        """Count something more."""
        self.spent = by_model((*self.spent, part))


_meter: ContextVar[Meter | None] = ContextVar("engram-meter", default=None)


@contextmanager
def metering() -> Iterator[Meter]:
    """Count the requests that metered models make within the block."""
    meter = Meter()
    token = _meter.set(meter)
    try:
        yield meter
    finally:
        _meter.reset(token)


def metered(model: Model) -> Model:
    """``model``, counted by the meter that is up when it is asked."""
    return model if isinstance(model, _MeteredModel) else _MeteredModel(model)


class _MeteredModel(WrapperModel):
    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        meter = _meter.get()
        if meter is None:
            return _whole(await super().request(messages, model_settings, model_request_parameters))
        try:
            response = await super().request(messages, model_settings, model_request_parameters)
        except BaseException:
            # Also what was cut off: the provider may well charge for it.
            meter.add(ModelSpent(model=self.model_id, requests=1, failed_requests=1))
            raise
        # Rules answer here, and cost nothing.
        cost = 0.0 if isinstance(self.wrapped, RulesModel) else _cost(response)
        meter.add(_answered(self.model_id, response, cost))
        return _whole(response)


def _whole(response: ModelResponse) -> ModelResponse:
    if response.finish_reason == "length" and any(map(_is_cut_off, response.parts)):
        raise OutputTokenLimitExceeded("The answer ended at the limit of its length.")
    return response


def _is_cut_off(part: object) -> bool:
    if not isinstance(part, ToolCallPart):
        return False
    try:
        part.args_as_dict(raise_if_invalid=True)
    except (ValueError, AssertionError):
        return True
    return False


def _answered(model: str, response: ModelResponse, cost: float | None) -> ModelSpent:
    return ModelSpent(
        model=model,
        requests=1,
        input_tokens=response.usage.input_tokens,
        output_tokens=response.usage.output_tokens,
        cost_usd=cost or 0.0,
        unpriced_requests=int(cost is None),
    )


def _cost(response: ModelResponse) -> float | None:
    """In US dollars; None when no price list knows the model, or the provider counted nothing."""
    if response.usage.cost is not None:
        return float(response.usage.cost)
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError, AssertionError):
        return None
