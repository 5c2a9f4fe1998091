"""A Pydantic AI agent that remembers, by one line: ``capabilities=[EngramMemory(...)]``.

    uv run python examples/pydantic_ai_agent.py "I live in Porto." "Where do I live?"

Each prompt is a conversation of its own: no message history is handed on, so whatever the agent
knows of an earlier prompt, or an earlier run of this program, it has from memory. It runs offline
with a stand-in for a language model; with a real one:

    ENGRAM_MODEL=openai:gpt-5-mini OPENAI_API_KEY=... uv run python examples/pydantic_ai_agent.py
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import engram
from engram.integrations.pydantic_ai import EngramMemory

PROMPTS = ("I live in Porto and I am allergic to nuts.", "What should my cake be without?")


@dataclass
class Deps:
    """What a run needs: here, the memory of whoever the agent talks to."""

    memory: engram.MemoryStore


# Made once, for all users: each run brings its own memory. Before a run the agent is shown what
# answers the prompt; afterwards prompt and answer are kept; in between it has the tools `recall`
# and `remember`.
agent = Agent(
    deps_type=Deps,
    instructions="You are a friendly assistant. Answer in one or two sentences.",
    capabilities=[EngramMemory[Deps](lambda ctx: ctx.deps.memory)],
)


async def main(prompts: tuple[str, ...]) -> None:
    """Run the agent on each prompt."""
    settings = engram.Settings.load()
    model = FunctionModel(stand_in) if settings.model == "rules" else settings.model
    async with engram.open(user_id="ada", settings=settings) as memory:
        for prompt in prompts:
            result = await agent.run(prompt, deps=Deps(memory), model=model)
            print(f"you>   {prompt}\nagent> {result.output}\n")


def stand_in(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """In place of a language model: answers with the first memory it is shown."""
    request = messages[-1]
    shown = [
        str(part.content)
        for part in (request.parts if isinstance(request, ModelRequest) else ())
        if isinstance(part, UserPromptPart)
    ]
    # The block of memories, if there is one, stands right before the prompt. Its lines look like
    # "- The user lives in Porto. (since 2026-03-11; said in s1 on 2026-03-11)".
    lines = [line for block in shown[:-1] for line in block.splitlines() if line.startswith("- ")]
    known = lines[0].removeprefix("- ").rpartition(" (")[0] if lines else None
    return ModelResponse(parts=[TextPart(f"I remember: {known}" if known else "Noted.")])


if __name__ == "__main__":
    asyncio.run(main(tuple(sys.argv[1:]) or PROMPTS))
