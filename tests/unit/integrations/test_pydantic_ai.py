"""What an agent's run tells memory, and what memory tells the run."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from pydantic_ai import (
    Agent,
    BinaryImage,
    DeferredToolRequests,
    DeferredToolResults,
    RunContext,
    ToolReturn,
)
from pydantic_ai.exceptions import UserError
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
from pydantic_ai.ui.vercel_ai import VercelAIAdapter

import engram
from engram.client.memory import MemoryStore
from engram.domain.memories import Episode
from engram.domain.sanitize import is_visible
from engram.domain.scope import Scope
from engram.domain.turns import MOST_ALREADY, context_block
from engram.errors import InvalidInput, InvalidQuery, StorageUnavailable
from engram.integrations.pydantic_ai import (
    PIECE_BYTES,
    EngramMemory,
    output_text,
    pieces,
    prompt_text,
    query_text,
    said_in,
    with_block,
)
from engram.settings import Settings
from engram.sync import SyncMemoryStore
from engram.system import new_id, system_clock
from tests.support.fake_engine import FakeEngine
from tests.support.opened_store import opening

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=50)


class Answer(BaseModel):
    """An answer that is not text."""

    city: str


class Drawing(BaseModel):
    """An answer with files in it."""

    title: str
    image: BinaryImage
    thumbnails: list[bytes]


@pytest.fixture
def engine() -> FakeEngine:
    """An engine made by hand."""
    return FakeEngine()


@pytest.fixture
def memory(engine: FakeEngine) -> MemoryStore:
    """A memory over it."""
    scope = Scope.of("default", "ada")
    return MemoryStore(engine, scope, Settings.load(), system_clock, new_id)


@pytest.fixture
def team(memory: MemoryStore) -> MemoryStore:
    """The memory of somebody else."""
    return memory.for_user("team")


def prompts_in(messages: list[ModelMessage]) -> list[str]:
    """The texts of all prompts, in order."""
    parts = (part for message in messages for part in message.parts)
    return [str(part.content) for part in parts if isinstance(part, UserPromptPart)]


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


def test_outputs_without_words_are_no_text() -> None:
    """Files, open tool calls and nothing are no answer; bytes inside of one are left out."""
    image = BinaryImage(b"\xff\xfe", media_type="image/png")
    assert output_text(None) == output_text(image) == output_text(b"\xff") == ""
    assert output_text(DeferredToolRequests(approvals=[ToolCallPart("rm", {"path": "x"})])) == ""
    drawing = Drawing(title="A cat", image=image, thumbnails=[b"\xff", b"cat"])
    told = json.loads(output_text({"drawing": drawing, "raw": b"\xff", "pages": (1, {2})}))
    assert told["pages"] == [1, [2]]
    assert "raw" not in told
    assert told["drawing"]["title"] == "A cat"
    assert told["drawing"]["thumbnails"] == []
    assert "data" not in told["drawing"]["image"]


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
    assert prompts_in(shown[1:2]) == ["BLOCK", "Where?"]
    assert shown[0] is earlier
    assert len(mine.parts) == 1
    assert with_block([result], "BLOCK", "r3") == [result]


def test_the_block_stands_before_a_prompt_that_came_with_the_history() -> None:
    """It is of no run when it is first sent; the latest one is what is answered."""
    earlier = ModelRequest(parts=[UserPromptPart("Hello.")], run_id="r1")
    last = ModelRequest(parts=[UserPromptPart("Where?"), UserPromptPart("Say.")])
    shown = with_block([earlier, ModelResponse(parts=[TextPart("Hi.")]), last], "BLOCK", "r2")
    assert prompts_in(shown) == ["Hello.", "BLOCK", "Where?", "Say."]


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
        seen.append("\n".join(prompts_in(messages)))
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


@pytest.mark.parametrize(("prompt", "asked"), [("Thanks, bye!", False), ("Where to?", True)])
async def test_nothing_is_recalled_for_thanks(
    memory: MemoryStore, engine: FakeEngine, prompt: str, asked: bool
) -> None:
    """A prompt that is all greeting, thanks or agreement costs no tokens of a block."""
    await memory.encode("I live in Porto.", session_id="before")
    seen: list[str] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.extend(prompts_in(messages))
        return ModelResponse(parts=[TextPart("Bye!")])

    await Agent(FunctionModel(answer), capabilities=[EngramMemory(memory, tools=False)]).run(prompt)
    assert seen[-1] == prompt
    assert any("Porto" in one for one in seen) is asked


async def test_a_run_from_a_history_is_shown_what_is_recalled(memory: MemoryStore) -> None:
    """A chat's front end sends the prompt as the end of its history; each request has the block."""
    await memory.encode("I live in Porto.", session_id="before")
    seen: list[list[str]] = []

    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        seen.append(prompts_in(messages))
        if len(seen) == 1:
            return ModelResponse(parts=[ToolCallPart("recall", {"query": "city"})])
        return ModelResponse(parts=[TextPart("In Porto.")])

    agent = Agent(FunctionModel(answer), capabilities=[EngramMemory(memory)])
    history: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart("Where do I live?")])]
    result = await agent.run(message_history=history)
    assert [len(prompts) for prompts in seen] == [2, 2]
    for block, prompt in seen:
        assert "I live in Porto." in block
        assert prompt == "Where do I live?"
    assert prompts_in(result.all_messages()) == ["Where do I live?"]
    assert await kept(memory) == ["I live in Porto.", "Where do I live?", "In Porto."]


async def test_a_chat_in_the_browser_is_shown_what_is_recalled(memory: MemoryStore) -> None:
    """Vercel's chat, through the adapter of Pydantic AI, has memory."""
    await memory.encode("I live in Porto.", session_id="before")
    seen: list[str] = []

    async def answer(messages: list[ModelMessage], _: AgentInfo) -> AsyncIterator[str]:
        seen.extend(prompts_in(messages))
        yield "In Porto."

    agent = Agent(FunctionModel(stream_function=answer), capabilities=[EngramMemory(memory)])
    said = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Where do I live?"}]}
    body = {"trigger": "submit-message", "id": "chat-1", "messages": [said]}
    chat = VercelAIAdapter.build_run_input(json.dumps(body).encode())
    async for _ in VercelAIAdapter(agent=agent, run_input=chat).run_stream():
        pass
    assert "I live in Porto." in seen[0]
    assert seen[1:] == ["Where do I live?"]


async def test_a_chat_is_not_told_again_what_stands_in_it(memory: MemoryStore) -> None:
    """The room is for what the history lacks, whoever said what is in it."""
    await memory.encode("I live in Porto.", session_id="before")
    seen: list[str] = []

    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        seen.append(prompts_in(messages)[-2])
        return ModelResponse(parts=[TextPart(f"Answer {len(seen)}.")])

    agent = Agent(FunctionModel(answer), capabilities=[EngramMemory(memory)])
    first = await agent.run("I like tea.")
    await agent.run("What do I like?", message_history=first.all_messages())
    assert len(await kept(memory)) == 5
    assert "Porto" in seen[1]
    assert "I like tea." not in seen[1]
    assert "Answer 1." not in seen[1]


def test_what_is_said_in_a_history() -> None:
    """The latest, in the pieces in which turns are kept; what is long crowds out nothing."""
    answer = ModelResponse(parts=[TextPart("In "), TextPart("Porto."), ToolCallPart("recall", {})])
    history: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart("Where?")]), answer]
    assert said_in([*history, *history]) == ["Where?", "In Porto."]
    pasted = "".join(letter * PIECE_BYTES for letter in "abc")
    long = ModelRequest(parts=[UserPromptPart(pasted)])
    assert said_in([*history, long]) == ["Where?", "In Porto.", "a" * PIECE_BYTES]
    many = [ModelRequest(parts=[UserPromptPart(f"Number {n}.")]) for n in range(100, 400)]
    assert said_in(many) == [f"Number {n}." for n in range(399, 399 - MOST_ALREADY, -1)]


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


async def test_days_are_those_of_where_the_user_is(memory: MemoryStore, engine: FakeEngine) -> None:
    """Named, or found for each run; before it and by the tool; nothing where nobody knows it."""
    for wanted in ("Asia/Tokyo", lambda ctx: ctx.deps or None, None):
        capability = EngramMemory[str](memory, timezone=wanted, keep_turns=False)
        model = TestModel(call_tools=["recall"])
        agent = Agent(model, deps_type=str, capabilities=[capability])
        await agent.run("What did I do yesterday?", deps="Europe/Lisbon")
        await agent.run("What did I do yesterday?", deps="")
    zones = [request.timezone for _, request in engine.asked]
    assert zones == [*["Asia/Tokyo"] * 4, *["Europe/Lisbon"] * 2, *[None] * 6]


async def test_parts_can_be_left_out(memory: MemoryStore) -> None:
    """Without tools, recall or keeping, the agent does nothing of it."""
    capability = EngramMemory[None](memory, context_tokens=0, keep_turns=False, tools=False)
    model = TestModel()
    await Agent(model, capabilities=[capability]).run("Hello.")
    assert await kept(memory) == []
    assert model.last_model_request_parameters is not None
    assert model.last_model_request_parameters.function_tools == []


def noting(tool: str = "remember", **arguments: str) -> FunctionModel:
    """A model that calls a tool, ``remember``, and then answers."""

    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        called = any(isinstance(p, ToolReturnPart) for m in messages for p in m.parts)
        part = TextPart("Fine.") if called else ToolCallPart(tool, dict(arguments), "c1")
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


async def test_notes_of_calls_with_one_id_are_all_kept(memory: MemoryStore) -> None:
    """Some models call every call of a run call_0; the same note twice in it is one turn."""
    notes = ["I own a boat.", "I own a barge.", "I own a boat."]

    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        told = sum(isinstance(part, ToolReturnPart) for one in messages for part in one.parts)
        if told == len(notes):
            return ModelResponse(parts=[TextPart("Fine.")])
        return ModelResponse(parts=[ToolCallPart("remember", {"note": notes[told]}, "call_0")])

    agent = Agent(FunctionModel(answer), capabilities=[EngramMemory(memory)])
    await agent.run("Hello.")
    assert await kept(memory) == ["I own a boat.", "I own a barge.", "Hello.", "Fine."]


async def test_a_note_of_what_is_kept_anyway_counts_once(memory: MemoryStore) -> None:
    """Words of the prompt, remembered again, are no second turn; where turns go, they are kept."""
    words = "I am allergic to nuts."
    await Agent(noting(note=words), capabilities=[EngramMemory(memory)]).run(f"Hi! {words}")
    assert list(await roles(memory)) == [f"Hi! {words}", "Fine."]
    other = EngramMemory[None](memory, keep_turns=False)
    await Agent(noting(note=words), capabilities=[other]).run(words)
    assert (await roles(memory))[words] == "user"


@pytest.mark.parametrize("wrong", [31, -1, 40.5, True])
def test_a_room_too_small_for_a_block_is_refused_at_once(memory: MemoryStore, wrong: int) -> None:
    """Each run would fail or, where memory is not required, silently have none."""
    with pytest.raises(InvalidQuery, match="context_tokens") as refused:
        EngramMemory[None](memory, context_tokens=wrong, required=False)
    assert "from 32 on" in str(refused.value)


async def test_a_memory_without_await_is_refused() -> None:
    """At once where it is given, in the run where it is found, and it says what to pass."""
    with SyncMemoryStore.opened(opening()) as waiting:
        wrong: Any = waiting
        with pytest.raises(InvalidInput, match=r"engram\.MemoryStore.*engram\.open\(") as refused:
            EngramMemory[None](wrong)
        found = EngramMemory[None](lambda _: wrong.for_user("ada"))
        with pytest.raises(InvalidInput) as met:
            await Agent(TestModel(call_tools=[]), capabilities=[found]).run("Hello.")
    assert str(met.value) == str(refused.value)


@pytest.mark.parametrize("wrong", [None, "./memory", engram.open("./memory", user_id="ada")])
async def test_what_is_no_open_store_is_refused(wrong: Any) -> None:
    """A memory that was never opened is told as that at once; what a function gives, in the run."""
    with pytest.raises(UserError, match=r"open store.*async with engram\.open\("):
        EngramMemory[None](wrong)
    found = EngramMemory[None](lambda _: wrong, required=False)
    with pytest.raises(UserError, match="open store"):
        await Agent(TestModel(call_tools=[]), capabilities=[found]).run("Hello.")


async def test_a_function_that_has_to_be_awaited_is_refused(memory: MemoryStore) -> None:
    """Its coroutine is no store; a run does not go on as if memory were away."""

    async def finding(_: RunContext[None]) -> MemoryStore:
        return memory

    wrong: Any = finding
    agent = Agent(TestModel(), capabilities=[EngramMemory[None](wrong, required=False)])
    with pytest.raises(UserError, match="this is a coroutine"):
        await agent.run("Hello.")


async def test_an_empty_note_is_not_told_as_kept(memory: MemoryStore) -> None:
    """A note without words stands in every prompt, and is refused all the same."""
    told: list[str] = []

    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        last = messages[-1].parts[0]
        if isinstance(last, UserPromptPart):
            return ModelResponse(parts=[ToolCallPart("remember", {"note": " "})])
        told.append(str(last))
        return ModelResponse(parts=[TextPart("Fine.")])

    with_memory = EngramMemory[None](memory, context_tokens=0)
    await Agent(FunctionModel(answer), capabilities=[with_memory]).run("Hello.")
    assert "content of a turn is empty" in told[0]


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


def test_two_memories_under_one_id_are_refused(memory: MemoryStore, team: MemoryStore) -> None:
    """Merged, the tools of the one would write into the other; the error says what to do."""
    both = [EngramMemory[None](team, keep_turns=False), EngramMemory[None](memory, tools=False)]
    with pytest.raises(UserError, match=r"id 'engram'.*prefix_tools"):
        Agent(TestModel(), capabilities=both)


async def test_one_memory_may_be_brought_twice(memory: MemoryStore) -> None:
    """Two parts of an application bring the same memory; the agent has it once."""
    twice = [EngramMemory[None](memory), EngramMemory[None](memory)]
    model = TestModel(call_tools=[])
    await Agent(model, capabilities=twice).run("Hello.")
    assert await kept(memory) == ["Hello.", "success (no tool calls)"]


async def test_two_memories_with_ids_do_not_mix(memory: MemoryStore, team: MemoryStore) -> None:
    """Each tool writes into the memory that it is of, and only what keeps turns has them."""
    shared = EngramMemory[None](team, id="team", keep_turns=False).prefix_tools("team")
    words = "The office is closed on Fridays."
    model = noting(tool="team_remember", note=words)
    await Agent(model, capabilities=[shared, EngramMemory[None](memory)]).run("Hello.")
    assert await kept(team) == [words]
    assert await kept(memory) == ["Hello.", "Fine."]


async def test_what_a_tool_puts_in_the_users_mouth_is_not_kept(memory: MemoryStore) -> None:
    """Content of tools, and what they enqueue, comes as a prompt; it is no evidence of the user."""

    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        done = any(isinstance(part, ToolReturnPart) for one in messages for part in one.parts)
        return ModelResponse(parts=[TextPart("Fine.") if done else ToolCallPart("search", {})])

    agent = Agent(FunctionModel(answer), capabilities=[EngramMemory(memory)])

    @agent.tool
    def search(ctx: RunContext[object]) -> ToolReturn:
        ctx.enqueue("Background tool 'search' completed: I live in Rome.", priority="when_idle")
        return ToolReturn("found", content="I live in Paris.")

    result = await agent.run("Search.")
    assert len(prompts_in(result.all_messages())) == 3
    assert await kept(memory) == ["Search.", "Fine."]


async def test_calls_that_wait_for_an_approval_are_no_answer(memory: MemoryStore) -> None:
    """What the user asked is kept, what nobody approved is not; the answer after it is."""

    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        done = any(isinstance(part, ToolReturnPart) for part in messages[-1].parts)
        call = ToolCallPart("rm", {"path": "/home/ada"}, "c1")
        return ModelResponse(parts=[TextPart("Deleted.") if done else call])

    capabilities = [EngramMemory[None](memory)]
    output_type = [str, DeferredToolRequests]
    agent = Agent(FunctionModel(answer), output_type=output_type, capabilities=capabilities)

    @agent.tool_plain(requires_approval=True)
    def rm(path: str) -> str:
        return f"{path} is gone"

    asked = await agent.run("Delete it.")
    assert isinstance(asked.output, DeferredToolRequests)
    assert await kept(memory) == ["Delete it."]
    approved = DeferredToolResults(approvals={"c1": True})
    await agent.run(message_history=asked.all_messages(), deferred_tool_results=approved)
    assert await kept(memory) == ["Delete it.", "Deleted."]
