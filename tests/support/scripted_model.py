"""A model that answers as written down, the parts of its answers, and what it was asked."""

from __future__ import annotations

from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

Answer = dict[str, Any]


def scripted(*answers: Answer) -> tuple[FunctionModel, list[list[ModelMessage]]]:
    """A model that gives these answers in turn, and what it was asked."""
    waiting, asked = list(answers), list[list[ModelMessage]]()

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked.append(messages)
        return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, waiting.pop(0))])

    return FunctionModel(answer), asked


def failing(error: Exception) -> FunctionModel:
    """A model whose provider fails."""

    def fail(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        raise error

    return FunctionModel(fail)


def statement(*sources: str, **more: Any) -> Answer:
    """One statement as a model writes it."""
    return {"sources": list(sources), "content": "Ada likes tea.", "confidence": 0.8, **more}


def user_prompt(messages: list[ModelMessage]) -> str:
    """The user's part of a request."""
    parts = [p for m in messages if isinstance(m, ModelRequest) for p in m.parts]
    (prompt,) = [p.content for p in parts if isinstance(p, UserPromptPart)]
    assert isinstance(prompt, str)
    return prompt
