"""What an agent's run tells memory, and what memory tells the run."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from engram.client.memory import MemoryStore
from engram.domain.memories import Episode
from engram.domain.sanitize import is_visible
from engram.domain.scope import Scope
from engram.domain.turns import context_block
from engram.errors import StorageUnavailable
from engram.integrations.pydantic_ai import (
    PIECE_BYTES,
    EngramMemory,
    output_text,
    pieces,
    prompt_text,
    query_text,
    with_block,
)
from engram.settings import Settings
from engram.system import new_id, system_clock
from tests.support.fake_engine import FakeEngine

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=50)


class Answer(BaseModel):
    """An answer that is not text."""

    city: str


@pytest.fixture
def engine() -> FakeEngine:
    """An engine made by hand."""
    return FakeEngine()


@pytest.fixture
def memory(engine: FakeEngine) -> MemoryStore:
    """A memory over it."""
    scope = Scope.of("default", "ada")
    return MemoryStore(engine, scope, Settings.load(), system_clock, new_id)


async def kept(memory: MemoryStore) -> list[str]:
    """What was said to memory."""
    return [found.content for found in (await memory.list()).memories]


@given(TEXT.filter(is_visible), st.integers(min_value=0, max_value=3))
def test_pieces_lose_nothing(text: str, times: int) -> None:
    """Together they show what the text shows, and each one fits."""
    long = (text * (PIECE_BYTES * times // len(text.encode()) + 1)).strip()
    found = pieces(long)
    assert all(len(piece.encode()) <= PIECE_BYTES for piece in found)
    seen = [[c for c in words if is_visible(c)] for words in ("".join(found), long)]
    assert seen[0] == seen[1]


def test_prompts_and_outputs_as_text() -> None:
    """Files are left out, halves of characters are mended, other outputs are JSON."""
    image = BinaryContent(b"...", media_type="image/png")
    assert prompt_text(["Look:", image, "nice"]) == "Look:\nnice"
    assert prompt_text(None) == prompt_text([image]) == prompt_text("\u200b") == ""
    assert prompt_text("a\x00b\ud800") == "ab?"
    assert output_text(Answer(city="Porto")) == '{"city":"Porto"}'


def test_a_long_prompt_is_asked_by_its_ends() -> None:
    """A question at either end of a long prompt reaches memory."""
    text = "Where is Ada? " + "x" * 9000 + " Where is Bob?"
    assert "Where is Ada?" in query_text(text)
    assert "Where is Bob?" in query_text(text)
    assert len(query_text(text)) < 5000


def test_the_block_stands_before_this_runs_prompt() -> None:
    """Earlier prompts, tool results and the messages themselves are not touched."""
    earlier = ModelRequest(parts=[UserPromptPart("Hello.")], run_id="r1")
    mine = ModelRequest(parts=[UserPromptPart("Where?")], run_id="r2")
    result = ModelRequest(parts=[ToolReturnPart("t", "x", tool_call_id="c")], run_id="r3")
    shown = with_block([earlier, mine, result], "BLOCK", "r2")
    assert isinstance(shown[1], ModelRequest)
    said = [part.content for part in shown[1].parts if isinstance(part, UserPromptPart)]
    assert said == ["BLOCK", "Where?"]
    assert shown[0] is earlier
    assert len(mine.parts) == 1
    assert with_block([result], "BLOCK", "r3") == [result]


async def test_one_line_gives_memory(memory: MemoryStore) -> None:
    """The default capability shows what is known, keeps the turns, and offers two tools."""
    await memory.encode("I live in Porto.", session_id="before")
    model = TestModel(call_tools=[], custom_output_text="In Porto.")
    agent = Agent(model, capabilities=[EngramMemory(memory)])
    result = await agent.run("Where do I live?")
    assert result.output == "In Porto."
    assert await kept(memory) == ["I live in Porto.", "Where do I live?", "In Porto."]
    parameters = model.last_model_request_parameters
    assert parameters is not None
    assert [tool.name for tool in parameters.function_tools] == ["recall", "remember"]
    for tool in parameters.function_tools:
        assert all("description" in p for p in tool.parameters_json_schema["properties"].values())


async def test_what_is_recalled_is_fenced_dated_and_shown_once(memory: MemoryStore) -> None:
    """Every request of the run carries the block; the history that goes on does not."""
    await memory.encode("I live in Porto.", session_id="before")
    seen: list[str] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        assert info.function_tools
        prompts = [
            str(part.content)
            for message in messages
            if isinstance(message, ModelRequest)
            for part in message.parts
            if isinstance(part, UserPromptPart)
        ]
        seen.append("\n".join(prompts))
        if len(seen) == 1:
            return ModelResponse(parts=[ToolCallPart("recall", {"query": "city"})])
        return ModelResponse(parts=[TextPart("In Porto.")])

    agent = Agent(FunctionModel(answer), capabilities=[EngramMemory(memory)])
    first = await agent.run("Where do I live?")
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    block = context_block([f"- I live in Porto. (user, {today}; session before)"])
    assert seen == [f"{block}\nWhere do I live?"] * 2
    await agent.run("And now?", message_history=first.all_messages())
    assert seen[2].count("<engram-memory ") == 1
    assert seen[2].endswith("And now?")


async def test_sessions_follow_conversations(memory: MemoryStore, engine: FakeEngine) -> None:
    """A session is the run's conversation, whatever its name, or what the application says."""
    for wanted in (None, "mine", lambda ctx: f"of-{ctx.conversation_id}"):
        capability = EngramMemory[None](memory, session_id=wanted)
        agent = Agent(TestModel(call_tools=[]), capabilities=[capability])
        await agent.run("Hello.", conversation_id="c1")
        if wanted is None:
            await agent.run("Hello.", conversation_id="not a name/of a session")
    names = [session for _, session in engine.sessions]
    assert (names[0], *names[2:]) == ("c1", "mine", "of-c1")
    assert len(names[1]) == 36


async def test_parts_can_be_left_out(memory: MemoryStore) -> None:
    """Without tools, recall or keeping, the agent does nothing of it."""
    capability = EngramMemory[None](memory, context_tokens=0, keep_turns=False, tools=False)
    model = TestModel()
    await Agent(model, capabilities=[capability]).run("Hello.")
    assert await kept(memory) == []
    assert model.last_model_request_parameters is not None
    assert model.last_model_request_parameters.function_tools == []


def noting(**arguments: str) -> FunctionModel:
    """A model that calls ``remember``, and then answers."""

    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        called = any(isinstance(p, ToolReturnPart) for m in messages for p in m.parts)
        part = TextPart("Fine.") if called else ToolCallPart("remember", dict(arguments), "c1")
        return ModelResponse(parts=[part])

    return FunctionModel(answer)


async def roles(memory: MemoryStore) -> dict[str, str]:
    """Who said what, by its words."""
    found = (await memory.list()).memories
    return {turn.content: turn.role for turn in found if isinstance(turn, Episode)}


async def test_what_a_tool_remembers_of_the_user_is_the_users(memory: MemoryStore) -> None:
    """Consolidation draws from what users say only: a note of theirs is one of their turns."""
    words = "I am allergic to nuts."
    agent = Agent(noting(note=words), capabilities=[EngramMemory(memory)])
    await agent.run("Nuts are a problem with me, as you may guess.")
    assert (await roles(memory))[words] == "user"


async def test_what_only_the_agent_knows_stays_the_agents(memory: MemoryStore) -> None:
    """A note of the agent is kept word for word, and is evidence for nothing."""
    words = "The search found three hotels."
    model = noting(note=words, said_by="assistant")
    await Agent(model, capabilities=[EngramMemory(memory)]).run("Find hotels.")
    assert (await roles(memory))[words] == "assistant"


async def test_a_note_of_what_is_kept_anyway_counts_once(memory: MemoryStore) -> None:
    """Words of the prompt, remembered again, are no second turn; where turns go, they are kept."""
    words = "I am allergic to nuts."
    await Agent(noting(note=words), capabilities=[EngramMemory(memory)]).run(f"Hi! {words}")
    assert list(await roles(memory)) == [f"Hi! {words}", "Fine."]
    other = EngramMemory[None](memory, keep_turns=False)
    await Agent(noting(note=words), capabilities=[other]).run(words)
    assert (await roles(memory))[words] == "user"


async def test_a_failing_memory(memory: MemoryStore, engine: FakeEngine) -> None:
    """It fails the run with its typed error, or not, as the application chooses."""
    engine.failure = StorageUnavailable("The store is away.")
    model = TestModel(call_tools=[])
    with pytest.raises(StorageUnavailable):
        await Agent(model, capabilities=[EngramMemory(memory)]).run("Hello.")
    result = await Agent(model, capabilities=[EngramMemory[None](memory, required=False)]).run(
        "Hi."
    )
    assert result.output


async def test_a_tools_wrong_arguments_go_back_to_the_model(
    memory: MemoryStore, engine: FakeEngine
) -> None:
    """The model is told what is allowed and can call again."""
    calls: list[str] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        assert info.function_tools
        calls.append(str(messages[-1].parts[0]))
        if len(calls) == 1:
            return ModelResponse(parts=[ToolCallPart("recall", {"query": "x", "limit": 0})])
        return ModelResponse(parts=[TextPart("Done.")])

    agent = Agent(
        FunctionModel(answer), capabilities=[EngramMemory[None](memory, context_tokens=0)]
    )
    assert (await agent.run("Hello.")).output == "Done."
    assert "limit is out of range" in calls[1]
    assert not engine.asked
