"""What MCP clients see and get: tools, resources, compact answers, errors that explain."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent, TextResourceContents

from engram.client.memory import MemoryStore
from engram.consolidation.verify import Verification
from engram.contracts.removal import ForgetReceipt
from engram.domain.confidence import ExtractionMethod
from engram.domain.digests import EntityKind
from engram.domain.memories import Evidence, MemoryType
from engram.domain.scope import Scope
from engram.errors import OwnerUnavailable, StorageUnavailable
from engram.operations.digests import PROFILE, AboutSomebody, Profile, ProfileLine
from engram.operations.lifecycle import ACTIONS
from engram.operations.memories import VERIFY
from engram.operations.registry import AboutMemory, Acted
from engram.operations.removal import FORGET
from engram.server.mcp_server import create_server
from engram.server.mcp_tools import MemoryAccess
from engram.settings import Settings
from engram.system import new_id, system_clock
from tests.support.fake_engine import FakeEngine

READING = {"recall", "recall_at", "verify", "profile", "stats", "reviews"}


def store(engine: FakeEngine) -> MemoryStore:
    """Ada's memory over an engine made by hand."""
    scope = Scope.of("default", "ada")
    return MemoryStore(engine, scope, Settings.load(), system_clock, new_id)


@pytest.fixture
def engine() -> FakeEngine:
    """An engine made by hand."""
    return FakeEngine()


@asynccontextmanager
async def client_of(engine: FakeEngine) -> AsyncIterator[Client]:
    """A client of a server in this process."""
    async with (
        MemoryAccess.to(store(engine)) as access,
        Client(create_server(access, session_id="s1")) as client,
    ):
        yield client


async def called(client: Client, tool: str, /, **arguments: Any) -> CallToolResult:
    """What a tool answers."""
    return await client.call_tool(tool, arguments)


def text(result: CallToolResult) -> str:
    """The words of an answer."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


async def test_tools_are_described_for_models(engine: FakeEngine) -> None:
    """Each tool says when to call it, each parameter what it means; none names a user."""
    async with client_of(engine) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert client.instructions is not None
        assert "never instructions" in client.instructions
    assert tools.keys() == READING | {"remember", "confirm", "dispute", "review", "forget"}
    for name, tool in tools.items():
        assert tool.description
        assert not tool.description.startswith(" ")
        parameters = tool.input_schema["properties"]
        assert all("description" in parameter for parameter in parameters.values()), name
        assert not {"user", "user_id", "namespace"} & parameters.keys()
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is (name in READING)


async def test_remembering_and_recalling(engine: FakeEngine) -> None:
    """What is kept comes back dated, fenced and with its id; twice the same is kept once."""
    async with client_of(engine) as client:
        kept = await called(client, "remember", text="I live in Porto.", when="2026-05-20")
        again = await called(client, "remember", text="I live in Porto.", when="2026-05-20")
        found = text(await called(client, "recall", query="Where does the user live?"))
        count = text(await called(client, "stats"))
    (episode,) = engine.kept[Scope.of("default", "ada")].values()
    assert episode.session_id == "s1"
    assert text(kept) == text(again) == f"Kept as {episode.id}."
    assert f"2026-05-20 user: I live in Porto. [episodic {episode.id}]" in found
    assert found.startswith("<engram-memory ")
    assert "1 episodic" in count


async def test_recalling_as_of_a_day_means_its_end(engine: FakeEngine) -> None:
    """A bare date asks about all of that day, a moment about itself, and UTC where no zone is."""
    async with client_of(engine) as client:
        for moment in ("2026-05-20", "2026-05-20T08:15:00", "2026-05-20T08:15:00+01:00"):
            answer = await called(client, "recall_at", query="Where?", as_of=moment, limit=3)
            assert not answer.is_error
    assert [request.as_of for _, request in engine.asked] == [
        datetime(2026, 5, 20, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(2026, 5, 20, 8, 15, tzinfo=UTC),
        datetime(2026, 5, 20, 7, 15, tzinfo=UTC),
    ]


async def test_verifying_quotes_the_source(engine: FakeEngine) -> None:
    """The answer says whether the memory stands, and the words that say so."""

    async def verify(_: Scope, asked: AboutMemory) -> Verification:
        quote = Evidence(episode_id="e1", words="I live in Porto")
        return Verification(
            ok=asked.memory_id == "m1",
            method=ExtractionMethod.INFERRED,
            evidence=(quote,) if asked.memory_id == "m1" else (),
            explanation="1 of 1 source exists.",
        )

    engine.handlers.add(VERIFY, verify)
    async with client_of(engine) as client:
        stands = text(await called(client, "verify", memory_id="m1"))
        falls = text(await called(client, "verify", memory_id="m2"))
    assert "It stands: 1 of 1 source exists." in stands
    assert '"I live in Porto" [e1]' in stands
    assert falls == "It does not stand: 1 of 1 source exists."


async def test_confirming_forgetting_and_profiles(engine: FakeEngine) -> None:
    """The answers say what came of it, in a line or a few."""

    async def confirm(scope: Scope, asked: AboutMemory) -> Acted:
        return Acted(memory=engine.kept[scope][asked.memory_id])

    async def forget(_: Scope, asked: AboutMemory) -> ForgetReceipt:
        gone = {MemoryType.EPISODIC: 1, MemoryType.SEMANTIC: 2, MemoryType.FACTUAL: 0}
        return ForgetReceipt(
            memory_id=asked.memory_id, forgotten=gone, amended=3, workflow_id="forget/x"
        )

    async def profile(_: Scope, asked: AboutSomebody) -> Profile:
        return Profile(
            memory_id="p1",
            name=asked.name or "Ada",
            aliases=("Countess",),
            kind=EntityKind.PERSON,
            lines=(ProfileLine(text="Lives in Porto.", memory_ids=("m1", "m2")),),
            merges=(),
            omitted=(),
            updated_at=datetime(2026, 5, 20, tzinfo=UTC),
            generation=0,
        )

    engine.handlers.add(ACTIONS["confirm"].operation, confirm)
    engine.handlers.add(FORGET, forget)
    engine.handlers.add(PROFILE, profile)
    async with client_of(engine) as client:
        await called(client, "remember", text="I live in Porto.")
        (episode,) = engine.kept[Scope.of("default", "ada")].values()
        confirmed = text(await called(client, "confirm", memory_id=episode.id))
        forgotten = text(await called(client, "forget", memory_id=episode.id))
        told = text(await called(client, "profile", name="Ada"))
        (read,) = (await client.read_resource("engram://profile")).contents
    assert confirmed.startswith("Confirmed: ")
    assert episode.id in confirmed
    assert forgotten == (
        "Forgotten for good: 1 episodic, 2 semantic. 3 rest on other turns and stay."
    )
    assert "Ada (also Countess), person, as of 2026-05-20\n- Lives in Porto. [m1]" in told
    assert isinstance(read, TextResourceContents)
    assert read.text == told


async def test_errors_say_what_is_allowed(engine: FakeEngine) -> None:
    """A typed error is a tool error: its text for the model, its fields for programs."""
    async with client_of(engine) as client:
        wrong = await called(client, "recall_at", query="Where?", as_of="yesterday")
        empty = await called(client, "remember", text=" ")
        engine.failure = StorageUnavailable("The store is away.")
        away = await called(client, "recall", query="Where?")
    assert wrong.is_error
    assert "Allowed: ISO 8601" in text(wrong)
    assert wrong.structured_content is not None
    assert wrong.structured_content["code"] == "invalid_query"
    assert empty.is_error
    assert "at least one visible character" in text(empty)
    assert away.is_error
    assert text(away) == "The store is away. The same call can succeed later."
    assert away.structured_content is not None
    assert away.structured_content["retryable"] is True


async def test_what_nobody_foresaw_tells_nothing(
    engine: FakeEngine, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """The text of an unforeseen error, which may hold memories, reaches neither client nor log."""
    engine.failure = RuntimeError("marmalade")
    async with client_of(engine) as client:
        answer = await called(client, "recall", query="Where?")
        assert answer.is_error
        assert "RuntimeError" in text(answer)
        with pytest.raises(MCPError) as refused:
            await client.read_resource("engram://memories")
    captured = capsys.readouterr()
    said = "".join((text(answer), str(refused.value), caplog.text, captured.out, captured.err))
    assert "marmalade" not in said


async def test_resources(engine: FakeEngine) -> None:
    """One memory can be read by its id; one that does not exist is told to be missing."""
    async with client_of(engine) as client:
        await called(client, "remember", text="I live in Porto.")
        (episode,) = engine.kept[Scope.of("default", "ada")].values()
        (listed,) = (await client.read_resource("engram://memories")).contents
        assert isinstance(listed, TextResourceContents)
        (one,) = (await client.read_resource(f"engram://memories/{episode.id}")).contents
        assert isinstance(one, TextResourceContents)
        assert '"content":"I live in Porto."' in one.text
        with pytest.raises(MCPError, match="No memory with this id"):
            await client.read_resource("engram://memories/none")


async def test_an_owner_that_went_away_is_replaced(engine: FakeEngine) -> None:
    """The next calls open the memory once more, together, and are answered."""
    opened: list[str] = []
    gone = FakeEngine()
    gone.failure = OwnerUnavailable("Gone.")

    @asynccontextmanager
    async def opener() -> AsyncIterator[MemoryStore]:
        opened.append("opened")
        try:
            yield store(gone if len(opened) == 1 else engine)
        finally:
            opened.append("closed")

    async with MemoryAccess(opener) as access, Client(create_server(access, session_id="s1")) as c:
        first = await called(c, "remember", text="I live in Porto.")
        second = await called(c, "stats")
    assert not first.is_error
    assert not second.is_error
    assert opened == ["opened", "closed", "opened", "closed"]


async def test_an_owner_that_stays_away_is_an_error_and_is_tried_again(engine: FakeEngine) -> None:
    """While the memory cannot be opened calls say so; afterwards they work."""
    engine.failure = OwnerUnavailable("Gone.")
    async with client_of(engine) as client:
        assert (await called(client, "stats")).is_error
        engine.failure = None
        assert not (await called(client, "stats")).is_error
