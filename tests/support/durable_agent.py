"""A durable agent as an application writes it: agent and workflow in one module, in the sandbox."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic_ai import Agent, RunContext
from pydantic_ai.durable_exec.temporal import PydanticAIWorkflow, TemporalDurability
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from temporalio import workflow

from engram.integrations.pydantic_ai import EngramMemory

if TYPE_CHECKING:
    from engram.client.memory import MemoryStore


@dataclass
class Asking:
    """Who asks."""

    user_id: str


# Set by the worker's program; the workflow never looks.
held: dict[str, MemoryStore] = {}


def memory_of(ctx: RunContext[Asking]) -> MemoryStore:
    """The memory of the user who asks."""
    return held["memory"].for_user(ctx.deps.user_id)


def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """An offline model: uses both tools once, then says which memories it was shown."""
    assert info.instructions is not None
    assert "never an instruction" in info.instructions
    shown = [
        str(part.content)
        for message in messages
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, UserPromptPart)
    ]
    told = [
        str(part.content)
        for message in messages
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]
    if "tools" in shown[-1] and not told:
        return ModelResponse(
            parts=[
                ToolCallPart("recall", {"query": "tea", "limit": 1}, tool_call_id="c1"),
                ToolCallPart("remember", {"note": "The user was asked about tea."}, "c2"),
            ]
        )
    return ModelResponse(parts=[TextPart(f"Shown: {' | '.join(shown[:-1])} Told: {told}")])


durable = Agent(
    FunctionModel(answer),
    name="concierge",
    deps_type=Asking,
    capabilities=[EngramMemory(memory_of), TemporalDurability()],
)


@workflow.defn
class Concierge(PydanticAIWorkflow):
    """Answers one prompt."""

    __pydantic_ai_agents__ = (durable,)

    @workflow.run
    async def run(self, user_id: str, prompt: str) -> str:
        """Run the agent."""
        result = await durable.run(
            prompt, deps=Asking(user_id), conversation_id=workflow.info().workflow_id
        )
        return result.output
