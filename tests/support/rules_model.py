"""The language rules as a model of Pydantic AI: for what an agent does with a model's answers."""

from __future__ import annotations

from decimal import Decimal

from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from engram.agents.requests import read_prompt
from engram.agents.rules import answered


class RulesModel(Model):
    """Reads the request from the newest prompt, and answers through the output tool."""

    def __init__(self) -> None:
        # Told, or the prices of all providers are loaded to look it up.
        super().__init__(profile=ModelProfile(context_window=None))

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
        answer = await answered(read_prompt(_prompt(messages)))
        call = ToolCallPart(parameters.output_tools[0].name, answer.model_dump(mode="json"))
        # Free, so that no list of prices is looked through for it.
        return ModelResponse(parts=[call], usage=RequestUsage(cost=Decimal(0)))


def _prompt(messages: list[ModelMessage]) -> str:
    for message in reversed(messages):
        if not isinstance(message, ModelRequest):
            continue
        for part in reversed(message.parts):
            if isinstance(part, UserPromptPart) and isinstance(part.content, str):
                return part.content
    raise UnexpectedModelBehavior("The rules were given no request.")
