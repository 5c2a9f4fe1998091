"""The rules as a Pydantic AI model, so that the path is the same with and without an LLM."""

from __future__ import annotations

from pydantic import ValidationError
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from engram.agents.answers import ExtractionAnswer, LinkingAnswer
from engram.agents.requests import ExtractionRequest, LinkingRequest, read_prompt
from engram.agents.rules.linking import link
from engram.agents.rules.turns import extract


class RulesModel(Model):
    """Answers extraction and linking requests from rules and word lists.

    It reads the request from the user prompt with the type that wrote it, and
    answers through the output tool, exactly as a language model does. It is
    deterministic, needs no network, and prefers missing something to being wrong.
    """

    @property
    def model_name(self) -> str:
        """See the base class."""
        return "rules"

    @property
    def system(self) -> str:
        """See the base class."""
        return "engram"

    @property
    def provider(self) -> None:
        """There is none."""
        return

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Answer the request in the newest user prompt."""
        _, parameters = self.prepare_request(model_settings, model_request_parameters)
        if not parameters.output_tools:
            raise UnexpectedModelBehavior("The rules answer only where an output tool is offered.")
        answer = _answer(_prompt(messages))
        call = ToolCallPart(parameters.output_tools[0].name, answer.model_dump(mode="json"))
        return ModelResponse(parts=[call], model_name=self.model_name, usage=RequestUsage())


def _prompt(messages: list[ModelMessage]) -> str:
    for message in reversed(messages):
        if not isinstance(message, ModelRequest):
            continue
        for part in reversed(message.parts):
            if isinstance(part, UserPromptPart) and isinstance(part.content, str):
                return part.content
    raise UnexpectedModelBehavior("The rules were given no request.")


def _answer(prompt: str) -> ExtractionAnswer | LinkingAnswer:
    try:
        request = read_prompt(prompt)
    except ValidationError as error:
        raise UnexpectedModelBehavior("The rules cannot read this request.") from error
    match request:
        case ExtractionRequest():
            return extract(request)
        case LinkingRequest():
            return link(request)
