"""Language models by name, their failures, and the metering of what they are asked."""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, Generic

from pydantic import ValidationError
from pydantic_ai import Agent, ModelRetry, RunContext
from pydantic_ai.exceptions import (
    AgentRunError,
    ContentFilterError,
    FallbackExceptionGroup,
    OutputTokenLimitExceeded,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
    UserError,
)
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models import Model, ModelRequestParameters, infer_model
from pydantic_ai.models.fallback import ResponseRejected
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from engram.agents.asking import DepsT, OutputT, Task
from engram.agents.requests import ExtractionRequest, LinkingRequest, as_prompt
from engram.contracts.consolidation import ModelUse
from engram.contracts.messages import ModelSpent, meter_that_is_up
from engram.errors import EngramError, ModelAnswerUnusable, ModelRejected, ModelUnavailable
from engram.providers import (
    check_set_up,
    delay_asked_for,
    is_of_the_account,
    is_refusal,
    making_providers,
    place_without_answer,
    why_unusable,
)

# --- language models by name, and what their failures mean to Engram

# How often a model may mend one answer before the whole request is tried anew.
_OUTPUT_RETRIES: Final = 2

# Waiting and trying again is Temporal's; a client that retries on its own would
# hide rate limits from it and outlive the activity's timeout.
_MODEL_SETTINGS: Final = ModelSettings(max_retries=0)

# What a run of an agent raises when it fails; of anything else nobody knows what it means.
_FAILURES: Final = (
    *(AgentRunError, FallbackExceptionGroup, UserError),
    *(TimeoutError, ConnectionError),
)
_MODEL_NAMES: Final = "<provider>:<model> as Pydantic AI knows them; for ENGRAM_MODEL also rules"
_ACCOUNT_HINT = "Check the API key, the model's name in ENGRAM_MODEL, and the account's quota."
_REQUEST_HINT = (
    "Nothing was changed. It may be too long for the model (ENGRAM_EXTRACTION_BATCH_BYTES), or "
    "of what the provider does not answer, or ENGRAM_MODEL cannot call tools."
)


def make_model(spec: str) -> Model:
    """The model that a setting names.

    Args:
        spec: Any Pydantic AI model string such as ``openai:gpt-5-mini``; not ``rules``, which are
            none: see :func:`engram.agents.asking.thinker`.

    Raises:
        ModelRejected: no such model, its package is missing, its key is not set or cannot be sent,
            or its address is none.
    """
    check_set_up(spec)
    try:
        return infer_model(spec, making_providers(spec))
    except Exception as error:  # each client has errors of its own for what it misses
        unusable = why_unusable(error, spec)
        known = unusable.hint is not None
        raise ModelRejected(
            f"The model {spec!r} cannot be used{unusable.why}.",
            allowed=None if known else _MODEL_NAMES,
            hint=unusable.hint
            or "Set ENGRAM_MODEL, the provider's API key, and install the provider's extra.",
        ) from error


@contextmanager
def provider_errors() -> Iterator[None]:
    """Turn what a model call raises into Engram's typed errors.

    Raises:
        ModelRejected: key, model name or request refused, or quota used up.
        ModelUnavailable: rate limit (with the delay asked for), overload, timeout.
        ModelAnswerUnusable: no answer in the asked form, even after mending.
    """
    try:
        yield
    except _FAILURES as error:
        raise as_engram_error(error) from error


def as_engram_error(error: Exception) -> EngramError:
    """The typed error for a failure of Pydantic AI or of a provider.

    Messages name the kind of failure and never what the provider sent back,
    which may quote the conversation.
    """
    if isinstance(error, FallbackExceptionGroup):
        return min(map(as_engram_error, error.exceptions), key=_how_lasting)
    kind = type(error).__name__
    if isinstance(error, ContentFilterError | OutputTokenLimitExceeded):
        # The same request would end the same way; a smaller one may not.
        too_long = isinstance(error, OutputTokenLimitExceeded)
        return ModelRejected(
            f"The model did not answer all of the request ({kind}).",
            hint="Nothing was changed. Smaller batches (ENGRAM_EXTRACTION_BATCH_TURNS) may help.",
            details={"refused": "request"} | ({"cut_off": True} if too_long else {}),
        )
    if isinstance(error, UnexpectedModelBehavior | UsageLimitExceeded | ResponseRejected):
        return ModelAnswerUnusable(
            f"The model's answer could not be used ({'; '.join(_faults(error)) or kind}).",
            hint="Nothing was changed. A model that follows JSON schemas better may help.",
        )
    if is_refusal(error):
        status, of_account = getattr(error, "status_code", None), is_of_the_account(error)
        return ModelRejected(
            f"The model provider refused the request ({kind}"
            + (f", HTTP {status})." if status else ")."),
            hint=_ACCOUNT_HINT if of_account else _REQUEST_HINT,
            # Another request may be accepted where this one was not; with this key, none is.
            details={"refused": "account" if of_account else "request"}
            | ({"status": status} if status else {}),
        )
    place = place_without_answer(error)
    return ModelUnavailable(
        f"The model cannot answer now ({kind}).",
        hint=place
        and f"Nothing answers at {place}. Check that address (OPENAI_BASE_URL and the like).",
        details=delay_asked_for(error),
    )


def _how_lasting(error: EngramError) -> tuple[int, float]:
    """Of several models' failures the least is that of them all: the next time all are asked."""
    if isinstance(error, ModelUnavailable):
        return 0, error.retry_after or math.inf
    if isinstance(error, ModelAnswerUnusable):
        return 1, 0.0
    return (3 if error.details["refused"] == "account" else 2), 0.0


def _faults(error: Exception) -> list[str]:
    """Where an answer was not in the asked form, in words that are none of the answer's."""
    cause = error.__cause__
    listed = cause.errors(include_input=False) if isinstance(cause, ValidationError) else []
    named = (".".join(map(str, fault["loc"])) or "answer" for fault in listed)
    return [f"{name}: {fault['type']}" for name, fault in zip(named, listed[:3], strict=False)]


# --- counting what is asked of a model, where it is asked: answered, refused or cut off
#
# An answer that ended at the limit of its length ends the request here. Asked to
# mend it, a model would write as much again, to be cut off again.


def make_agent(
    model: Model,
    name: str,
    instructions: str,
    *,
    deps: type[DepsT],
    output: type[OutputT],
    fault: Callable[[DepsT, OutputT], str | None] | None = None,
    strict: bool = False,
) -> Agent[DepsT, OutputT]:
    """An agent as each of Engram's is: counted, and tried again by nobody but Temporal.

    Args:
        model: Is asked.
        name: For traces.
        instructions: What it is to do.
        deps: What its answers are checked against.
        output: What it answers with.
        fault: What of an answer is to be mended, in words for the model, or None.
        strict: Whether an answer that the model did not mend is refused, too.
    """
    agent: Agent[DepsT, OutputT] = Agent(
        metered(model),
        name=name,
        deps_type=deps,
        output_type=output,
        instructions=instructions,
        retries={"output": _OUTPUT_RETRIES},
        model_settings=_MODEL_SETTINGS,
    )
    if fault is not None:

        async def checked(context: RunContext[DepsT], answer: OutputT) -> OutputT:
            found = fault(context.deps, answer)
            if found is not None and (strict or not context.last_attempt):
                raise ModelRetry(found)
            return answer

        agent.output_validator(checked)
    return agent


class AnsweringModel(Generic[DepsT, OutputT]):
    """Implements :class:`engram.agents.asking.Answering` with an agent over a model."""

    def __init__(self, model: Model, task: Task[DepsT, OutputT]) -> None:
        self._model = model
        self._agent = make_agent(
            model,
            task.name,
            task.instructions,
            deps=task.deps,
            output=task.output,
            fault=task.fault,
        )

    async def answer(
        self,
        request: ExtractionRequest | LinkingRequest,
        shown: DepsT,
        *,
        version: str,
        instructions: str | None = None,
    ) -> tuple[OutputT, ModelUse]:
        """See :meth:`engram.agents.asking.Answering.answer`."""
        with provider_errors():
            run = await self._agent.run(as_prompt(request), deps=shown, instructions=instructions)
        usage = run.usage
        use = ModelUse(
            model=self._model.model_id,
            instructions_version=version,
            requests=usage.requests,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cost_usd=float(usage.cost) if usage.cost is not None else None,
        )
        return run.output, use


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
        meter = meter_that_is_up()
        asked = super().request(messages, model_settings, model_request_parameters)
        if meter is None:
            return _whole(await _in_form(asked), model_request_parameters)
        try:
            response = await _in_form(asked)
        except BaseException:
            # Also what was cut off: the provider may well charge for it.
            meter.add(ModelSpent(model=self.model_id, requests=1, failed_requests=1))
            raise
        meter.add(_answered(self.model_id, response, _cost(response)))
        return _whole(response, model_request_parameters)


async def _in_form(answer: Awaitable[ModelResponse]) -> ModelResponse:
    """The answer; what is none, such as ``{"choices": []}``, is refused as that.

    Pydantic AI takes some of it for granted, and fails as it looks for what is not there.
    """
    try:
        return await answer
    except (LookupError, TypeError, AttributeError) as error:
        raise UnexpectedModelBehavior("The provider's answer lacks a part of one.") from error


def _whole(response: ModelResponse, asked: ModelRequestParameters) -> ModelResponse:
    calls = any(isinstance(part, ToolCallPart) for part in response.parts)
    # Some providers hand over what there was of a call as if it were all of it.
    if response.finish_reason == "length" and calls:
        raise OutputTokenLimitExceeded("The answer ended at the limit of its length.")
    if response.finish_reason == "content_filter" and not calls:
        raise ContentFilterError("The provider's filter ended the answer.")
    return _in_one_call(response, {tool.name for tool in asked.output_tools})


def _in_one_call(response: ModelResponse, names: Container[str]) -> ModelResponse:
    """The answer in one call, where a model gave it in several: only the first would be read."""
    calls = [p for p in response.parts if isinstance(p, ToolCallPart) and p.tool_name in names]
    if len(calls) < 2:  # noqa: PLR2004 - one call is the whole answer
        return response
    broken = next(filter(_is_cut_off, calls), None)
    # What cannot be read is sent back, and with it what is beside it.
    together = json.dumps(_together([call.args_as_dict() for call in calls])) if not broken else ""
    kept = broken or replace(calls[0], args=together)
    others = [part for part in response.parts if part not in calls]
    return replace(response, parts=[*others, kept])


def _together(answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One answer with the lists of all of them; the rest is the first one's."""
    together: dict[str, Any] = {}
    for number, answer in enumerate(answers):
        if answer in answers[:number]:
            continue
        for name, said in answer.items():
            before = together.setdefault(name, said)
            if before is not said and isinstance(before, list) and isinstance(said, list):
                together[name] = [*before, *said]
    return together


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
