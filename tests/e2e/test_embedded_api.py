"""The public API as a program uses it, in the embedded mode."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
import pytest_asyncio
from mcp import Client
from mcp_types import TextResourceContents
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel

import engram
from engram import Settings
from engram.client.memory import MemoryStore
from engram.domain.memories import AnyMemory, DerivedMemory, Fact, MemoryType
from engram.errors import (
    ConflictingMessage,
    DataFolderUnusable,
    InvalidQuery,
    InvalidScope,
    InvalidTurn,
    MemoryClosed,
    MemoryNotFound,
    SchemaMismatch,
    StorageError,
)
from engram.server.mcp_server import create_server
from engram.server.mcp_tools import MemoryAccess
from engram.storage import edge_files

MARCH = datetime(2026, 3, 2, 10, tzinfo=UTC)
MAY = datetime(2026, 5, 20, 10, tzinfo=UTC)


# One Engram for all tests here, each with a user of its own.
# What runs is started once, in one process.
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("embedded_api")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[MemoryStore]:
    """An embedded Engram on a fresh folder."""
    folder, settings = tmp_path_factory.mktemp("api") / "data", Settings.load(temporal_ui=True)
    async with engram.open(folder, user_id="nobody", settings=settings) as store:
        yield store


@pytest.fixture
def memory(running: MemoryStore) -> MemoryStore:
    """The memory of a user who has said nothing yet."""
    return running.for_user(f"user-{uuid4().hex[:8]}")


async def test_a_life_in_memory(memory: MemoryStore) -> None:
    """Encode, consolidate, recall now and as of then, with sources, history and stats."""
    first = await memory.encode(
        engram.Turn(content="I live in Porto. Mail ada@example.org.", timestamp=MARCH),
        session_id="s1",
    )
    assert (len(first.episode_ids), len(first.fact_ids)) == (1, 1)
    await memory.encode(engram.Turn(content="I moved to Lisbon.", timestamp=MAY), session_id="s2")
    await memory.end_session("s2")
    report = await memory.consolidate()
    assert not report.remaining
    assert (await memory.stats()).waiting == 0

    semantic = [MemoryType.SEMANTIC]
    now = await memory.recall("Where does the user live?", memory_types=semantic, limit=1)
    assert "Lisbon" in now[0].memory.content
    then = await memory.recall_at(
        "Where does the user live?",
        as_of=MARCH + timedelta(days=1),
        memory_types=semantic,
        include_sources=True,
        limit=1,
    )
    assert "Porto" in then[0].memory.content
    assert [source.id for source in then[0].sources] == list(first.episode_ids)

    history = await memory.history(now[0].memory.id)
    assert [m.content for m in history] == [then[0].memory.content, now[0].memory.content]
    old = await memory.get(then[0].memory.id)
    assert isinstance(old, DerivedMemory)
    assert old.superseded_by == now[0].memory.id

    mail = await memory.recall("email address", memory_types=["factual"], limit=1)
    assert isinstance(mail[0].memory, Fact)
    assert mail[0].memory.value == "ada@example.org"

    kept = await memory.list(memory_types=["episodic"])
    assert [m.content for m in kept.memories] == [
        "I live in Porto. Mail ada@example.org.",
        "I moved to Lisbon.",
    ]
    # Each leads to its run.
    assert now[0].run == memory.run_of(now[0].memory)
    assert now[0].run is not None
    assert now[0].run.url == memory.run_url(now[0].memory) is not None


async def test_what_was_denied_again_is_told_nowhere(memory: MemoryStore) -> None:
    """Recall, profile, briefing and the resource of MCP go by the later telling of a denial."""
    for month, words in ((1, "I don't"), (3, "I"), (6, "I don't")):
        said = engram.Turn(
            content=f"{words} play the piano.", timestamp=datetime(2026, month, 10, tzinfo=UTC)
        )
        await memory.encode(said, session_id=f"s{month}")
    await memory.consolidate()
    known = (MemoryType.SEMANTIC, MemoryType.NEGATION)
    found = await memory.recall("Does the user play the piano?", memory_types=known)
    briefed = await memory.briefing()
    assert [one.memory.content for one in found] == ["The user does not play the piano."]
    assert [one.memory.id for one in briefed] == [one.memory.id for one in found]
    assert (await memory.profile()).lines == ()
    async with (
        MemoryAccess.to(memory) as access,
        Client(create_server(access, session_id="s1")) as client,
    ):
        (listed,) = (await client.read_resource("engram://memories")).contents
    assert isinstance(listed, TextResourceContents)
    assert "does not play" in listed.text
    assert "plays" not in listed.text


async def test_what_is_told_again_is_back_in_the_profile(memory: MemoryStore) -> None:
    """What is put aside leaves the profile at once, and is in it again once it is told again."""
    for month in (3, 5):
        said = engram.Turn(
            content="I like hiking.", timestamp=datetime(2026, month, 10, tzinfo=UTC)
        )
        await memory.encode(said, session_id=f"s{month}")
        await memory.consolidate()
        assert [line.text for line in (await memory.profile()).lines] == ["The user likes hiking."]
        (liked, *_) = await memory.recall("hiking", memory_types="semantic", limit=1)
        await memory.demote(liked.memory.id)
        assert (await memory.profile()).lines == ()


async def test_a_consolidation_run_again_changes_nothing(memory: MemoryStore) -> None:
    """The second pass finds nothing to do and leaves every memory as it was."""
    await memory.encode(["I live in Porto.", "I use Postgres."], session_id="s1")
    await memory.consolidate()
    before = (await memory.list()).memories
    await memory.consolidate()
    assert (await memory.list()).memories == before


async def test_listing_pages_through_everything_once(memory: MemoryStore) -> None:
    """Pages of any size put together are the whole list, each memory once, in order."""
    await memory.encode([f"Turn {n}, mail u{n}@example.org" for n in range(7)], session_id="s1")
    whole = (await memory.list()).memories
    for size in (1, 2, 5):
        found: list[AnyMemory] = []
        cursor = None
        while True:
            page = await memory.list(limit=size, cursor=cursor)
            found.extend(page.memories)
            cursor = page.cursor
            if cursor is None:
                break
        assert found == list(whole)


async def test_users_share_connections_and_nothing_else(memory: MemoryStore) -> None:
    """for_user sees its own memories only, by every way of reading."""
    receipt = await memory.encode("My cat is called Miso.", session_id="s1")
    bob = memory.for_user(f"bob-{uuid4().hex[:8]}")
    assert await bob.recall("cat") == []
    assert (await bob.list()).memories == ()
    assert await bob.working_memory("s1") == []
    for key in receipt.episode_ids:
        with pytest.raises(MemoryNotFound):
            await bob.get(key)
    await bob.encode("My dog is called Rex.", session_id="s1")
    owners = {hit.memory.user_id for hit in await memory.recall("called")}
    assert owners == {memory.scope.user_id}


async def test_the_same_message_again_is_acknowledged_alike(memory: MemoryStore) -> None:
    """Same id and words: the first receipt; same id, other words: refused, nothing stored."""
    turn = engram.Turn(content="I like tea.", message_id="m1")
    first = await memory.encode(turn, session_id="s1")
    again = await memory.encode(turn, session_id="s1")
    assert again.episode_ids == first.episode_ids
    with pytest.raises(ConflictingMessage):
        await memory.encode(
            [engram.Turn(content="beside"), engram.Turn(content="other", message_id="m1")],
            session_id="s1",
        )
    assert (await memory.stats()).counts[MemoryType.EPISODIC] == 1


async def test_bad_input_stores_nothing(memory: MemoryStore) -> None:
    """Whatever is wrong in a call, nothing of the call is kept."""
    good = engram.Turn(content="fine")
    for bad in ("", "\x00", "x" * 33_000, engram.Turn(content="x", role="boss"), 7, "a\ud800"):
        with pytest.raises(InvalidTurn):
            await memory.encode([good, bad], session_id="s1")  # type: ignore[list-item]  # wrong on purpose
    with pytest.raises(InvalidTurn):
        await memory.encode([], session_id="s1")
    with pytest.raises(InvalidScope):
        await memory.encode("fine", session_id="a/b")
    with pytest.raises(InvalidQuery):
        await memory.recall("x", limit=0)
    with pytest.raises(InvalidQuery):
        await memory.list(memory_types=["imaginary"])
    assert (await memory.stats()).counts[MemoryType.EPISODIC] == 0


async def test_turns_of_one_call_keep_their_order(memory: MemoryStore) -> None:
    """Without timestamps, the order of a call is the order in memory."""
    said = [f"line {n}" for n in range(40)]
    await memory.encode(said, session_id="s1")
    kept = await memory.list(memory_types=["episodic"])
    assert [m.content for m in kept.memories] == said


async def test_parallel_encodes_are_all_acknowledged(memory: MemoryStore) -> None:
    """A hundred encodes at once into one session: a hundred turns."""
    receipts = await asyncio.gather(
        *(memory.encode(f"message {n}", session_id="s1") for n in range(100))
    )
    assert len({key for receipt in receipts for key in receipt.episode_ids}) == 100
    assert (await memory.stats()).counts[MemoryType.EPISODIC] == 100


async def test_test_memories_stay_out_of_answers(memory: MemoryStore) -> None:
    """What is encoded as a test comes back only when tests are asked for."""
    await memory.encode("Zebra crossing exercise", session_id="s1", is_test=True)
    assert await memory.recall("zebra") == []
    assert len(await memory.recall("zebra", include_test=True)) == 1


async def test_what_is_closed_says_so(tmp_path: Path) -> None:
    """Use after the block is a typed error; everything said before is there at reopening."""
    async with engram.open(tmp_path / "data", user_id="ada") as memory:
        await memory.encode("I like tea.", session_id="s1")
    with pytest.raises(MemoryClosed):
        await memory.recall("tea")
    async with engram.open(tmp_path / "data", user_id="ada") as memory:
        assert (await memory.recall("tea"))[0].memory.content == "I like tea."


@pytest.mark.asyncio(loop_scope="function")
async def test_stores_of_other_users_close_with_the_first(tmp_path: Path) -> None:
    """What for_user gave is closed when the block ends, and gives nothing new."""
    async with engram.open(tmp_path / "data", user_id="ada") as memory:
        bob = memory.for_user("bob")
    with pytest.raises(MemoryClosed):
        await bob.encode("too late", session_id="s1")
    with pytest.raises(MemoryClosed):
        memory.for_user("eve")


@pytest.mark.asyncio(loop_scope="function")
async def test_who_waits_for_a_pass_when_the_block_ends_is_told_so(tmp_path: Path) -> None:
    """A call in flight is left before the server is, not tried against it for minutes."""
    asked, told = asyncio.Event(), asyncio.Event()

    async def slow(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked.set()
        await told.wait()
        raise ModelHTTPError(503, "staged")

    async with engram.open(tmp_path / "data", user_id="ada", model=FunctionModel(slow)) as memory:
        await memory.encode("I live in Porto.", session_id="s1")
        consolidating = asyncio.create_task(memory.consolidate())
        consolidating.add_done_callback(lambda _: told.set())
        await asked.wait()
    assert consolidating.done()
    with pytest.raises(MemoryClosed, match="while this was running"):
        await consolidating


@pytest.mark.parametrize("removal", ["erase", "compact"])
async def test_others_go_on_when_the_last_of_a_type_is_gone(tmp_path: Path, removal: str) -> None:
    """Files are rewritten without the folder's only denial and fact: all others' calls succeed."""
    async with engram.open(tmp_path / "data", user_id="ada") as ada:
        bob = ada.for_user("bob")
        said = await ada.encode("I don't use Mongo. Mail ada@example.org.", session_id="s")
        assert said.negation_ids
        assert said.fact_ids
        if removal == "erase":
            await ada.erase()
            await ada.erased()
        else:
            await ada.forget(said.episode_ids[0])
            await ada.compact()
        assert not (await bob.list()).memories
        told = await bob.encode("I don't use Vim. I live in Oslo.", session_id="s")
        await bob.consolidate()
        listed = {memory.id for memory in (await bob.list()).memories}
        assert listed >= {*told.episode_ids, *told.negation_ids}
        assert not (await bob.validate()).findings
        assert (await bob.health()).memories == len(listed)


async def test_a_store_that_is_missing_is_not_begun_anew(tmp_path: Path) -> None:
    """Its folder is gone: opening says so, every time; put back, everything is there."""
    folder = tmp_path / "data"
    async with engram.open(folder, user_id="ada") as ada:
        said = await ada.encode("I live in Oslo.", session_id="s")
    (folder / "store").rename(tmp_path / "elsewhere")
    for _ in range(2):
        with pytest.raises(StorageError, match="missing"):
            async with engram.open(folder, user_id="ada"):
                pass
    (folder / "store").rmdir()
    (tmp_path / "elsewhere").rename(folder / "store")
    async with engram.open(folder, user_id="ada") as ada:
        assert (await ada.get(said.episode_ids[0])).content == "I live in Oslo."


async def test_a_provider_s_embedder_on_the_store_of_another_is_refused_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is about the store; the provider, who may not be reached, is not asked its size."""
    folder = tmp_path / "data"
    async with engram.open(folder, user_id="ada"):
        pass
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    settings = Settings.load(embedder="openai:text-embedding-3-small")
    with pytest.raises(SchemaMismatch, match=r"openai:text-embedding-3-small.*ENGRAM_EMBEDDER"):
        async with engram.open(folder, user_id="ada", settings=settings):
            pass


async def test_a_file_that_may_not_be_used_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever of the folder the system refuses while it is opened: which file, and why."""

    def refused(record: Path, *_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(record))

    monkeypatch.setattr(edge_files, "_check_record", refused)
    with pytest.raises(DataFolderUnusable, match=r"engram\.store\.json.*\(Permission denied\)"):
        async with engram.open(tmp_path / "data", user_id="ada"):
            pass
