"""Working through another process: the same answers, the same errors, whatever breaks."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from engram.client.engine import MemoryEngine
from engram.client.http import _AT_ONCE, AttachedEngine
from engram.client.remote import NetworkWire, remote_engine
from engram.consolidation.verify import Verification
from engram.contracts.removal import ForgetReceipt
from engram.domain.access import Access
from engram.domain.confidence import ExtractionMethod
from engram.domain.memories import STORED_TYPES, AnyMemory, Evidence, MemoryStatus, MemoryType
from engram.domain.scope import Scope
from engram.domain.turns import Turn
from engram.embedded import open as attaching
from engram.embedded.folder import DataFolder, Owner
from engram.embedded.open import own_or_attach
from engram.embedded.parts import serve_on_socket
from engram.errors import (
    ConflictingMessage,
    DataFolderInUse,
    EngramError,
    InvalidInput,
    InvalidQuery,
    InvalidScope,
    InvalidSettings,
    InvalidTurn,
    MemoryClosed,
    MemoryNotFound,
    ModelRejected,
    NoSuchAddress,
    OwnerUnavailable,
    SessionBusy,
    StorageUnavailable,
    UnknownFailure,
)
from engram.operations.memories import (
    GET_MEMORY,
    HISTORY,
    LIST_MEMORIES,
    STATS,
    VERIFY,
    ListMemories,
)
from engram.operations.recall import RECALL
from engram.operations.registry import AboutMemory, Operation, Question
from engram.operations.removal import FORGET
from engram.operations.turns import (
    CONSOLIDATE,
    ENCODE,
    END_SESSION,
    WORKING_MEMORY,
    AboutSession,
    Consolidate,
    Encode,
    WorkingMemory,
)
from engram.recall.request import RecallRequest
from engram.server.app import create_app
from engram.server.keys import KeyFile, new_key
from engram.server.middleware import OwnerOnly
from engram.server.run import public_app, serve_publicly
from engram.settings import Settings
from engram.system import new_secret, system_clock
from tests.support.fake_engine import MOMENT, FakeEngine
from tests.support.ports import free_port

SETTINGS = Settings.load()
ADA = Scope.of("default", "ada@example.org:1+2|x~y=z")
HOLD_LOCK = """
import sys
from engram.embedded.folder import DataFolder
folder = DataFolder(sys.argv[1])
assert folder.try_lock()
if sys.argv[2] == "with socket":
    import socket
    s = socket.socket(socket.AF_UNIX)
    s.bind(str(folder.socket))
    s.listen()
print("locked", flush=True)
sys.stdin.read()
"""


NOTHING = Question()


def turn(
    content: str,
    message_id: str = "m1",
    *,
    session_id: str = "s",
    is_test: bool = False,
    **more: Any,
) -> Encode:
    """A request with one turn."""
    told = Turn(message_id=message_id, content=content, timestamp=MOMENT, **more)
    return Encode(session_id=session_id, turns=(told,), is_test=is_test)


@pytest.fixture
def fake() -> FakeEngine:
    """The engine behind."""
    return FakeEngine()


@asynccontextmanager
async def over_tcp(fake: FakeEngine, folder: Path) -> AsyncIterator[AttachedEngine]:
    """Through the public door, with a key that opens the namespace."""
    settings = SETTINGS.model_copy(update={"data_dir": folder, "http_port": free_port()})
    now = system_clock()
    token, key = new_key(
        new_secret(), name="k", access=Access.ADMIN, namespace="default", user_id=None, now=now
    )
    KeyFile(settings.keys_path).add(key, now)
    async with serve_publicly(public_app(fake, settings), settings) as url:
        engine = remote_engine(url, token)
        yield engine
        await engine.close()


@pytest.fixture(params=["in memory", "socket", "key"])
async def attached(
    request: pytest.FixtureRequest, fake: FakeEngine, tmp_path: Path
) -> AsyncIterator[AttachedEngine]:
    """An engine that works through HTTP: called directly, over a socket, or over TCP by key."""
    if request.param == "socket":
        async with serve_on_socket(fake, tmp_path / "s", settings=SETTINGS):
            engine = AttachedEngine.over_socket(tmp_path / "s")
            yield engine
            await engine.close()
        return
    if request.param == "key":
        async with over_tcp(fake, tmp_path) as engine:
            yield engine
        return
    transport = httpx.ASGITransport(
        create_app(lambda: fake, admission=OwnerOnly(), settings=SETTINGS)
    )
    client = httpx.AsyncClient(transport=transport, base_url="http://engram")
    engine = AttachedEngine(NetworkWire(client))
    yield engine
    await engine.close()


async def test_answers_as_the_engine_behind(attached: AttachedEngine, fake: FakeEngine) -> None:
    """Every operation gives the very values that the engine gives when asked directly."""
    engine: MemoryEngine = attached
    call = turn("Zürich 🏔 \u2028 <b>", metadata={"a": [1, None, {"b": 0.1}]}, tags=("t",))
    session, recent = AboutSession(session_id="s"), WorkingMemory(session_id="s")
    receipt = await engine.call(ADA, ENCODE, call)
    assert receipt == await fake.call(ADA, ENCODE, call)
    about = AboutMemory(memory_id=receipt.episode_ids[0])
    memory = await fake.call(ADA, GET_MEMORY, about)
    assert await engine.call(ADA, GET_MEMORY, about) == memory
    assert await engine.call(ADA, HISTORY, about) == [memory]
    question = RecallRequest(query="where?")
    assert await engine.call(ADA, RECALL, question) == await fake.call(ADA, RECALL, question)
    assert await engine.call(ADA, STATS, NOTHING) == await fake.call(ADA, STATS, NOTHING)
    passing = Consolidate()
    report = await engine.call(ADA, CONSOLIDATE, passing)
    assert report == await fake.call(ADA, CONSOLIDATE, passing)
    turns = await engine.call(ADA, WORKING_MEMORY, recent)
    assert turns == await fake.call(ADA, WORKING_MEMORY, recent)
    ended = await engine.call(ADA, END_SESSION, session)
    assert ended is not None
    assert (ended.session_id, ended.turns_accepted) == ("s", 1)
    assert await engine.call(ADA, END_SESSION, session) is None
    assert await engine.call(ADA, WORKING_MEMORY, recent) == []


async def test_test_memories_cross_only_when_asked_for(
    attached: AttachedEngine, fake: FakeEngine
) -> None:
    """Which of them are meant arrives with every question about many memories."""
    await attached.call(ADA, ENCODE, turn("real", "m1"))
    await attached.call(ADA, ENCODE, turn("a test", "m2", is_test=True))
    for asked, expected in ((False, 1), (True, 2)):
        page = await attached.call(ADA, LIST_MEMORIES, ListMemories(limit=9, include_test=asked))
        assert len(page.memories) == expected
        recent = WorkingMemory(session_id="s", include_test=asked)
        turns = await attached.call(ADA, WORKING_MEMORY, recent)
        assert len(turns) == expected
    for test_only, dry_run in ((True, False), (False, True)):
        passing = Consolidate(test_only=test_only, dry_run=dry_run)
        report = await attached.call(ADA, CONSOLIDATE, passing)
        assert report == await fake.call(ADA, CONSOLIDATE, passing)
        assert (report.episodes, report.dry_run) == (1, dry_run)


@pytest.mark.parametrize(
    ("operation", "asked"),
    [
        (VERIFY, AboutMemory(memory_id="m\udc80")),
        (LIST_MEMORIES, ListMemories(limit=9, cursor="\udc80")),
        (LIST_MEMORIES, ListMemories(limit=9, cursor="c" * 70_000)),
    ],
)
async def test_what_cannot_be_sent_is_refused(
    attached: AttachedEngine, operation: Operation[Any, Any], asked: Any
) -> None:
    """What is no Unicode, or fits no address, is a typed error here as in the process itself."""
    with pytest.raises(InvalidInput) as caught:
        await attached.call(ADA, operation, asked)
    assert "\udc80" not in str(caught.value)


async def test_operations_cross_as_they_are(attached: AttachedEngine, fake: FakeEngine) -> None:
    """An operation reaches the engine behind with its scope and question, and answers as typed."""
    asked_of = []

    async def check(scope: Scope, asked: AboutMemory) -> Verification:
        asked_of.append((scope, asked))
        words = Evidence(episode_id="e", words="Zürich \u2028 🏔")
        method = ExtractionMethod.EXTRACTED
        return Verification(ok=False, method=method, missing_evidence=(words,), explanation="no")

    fake.handlers.add(VERIFY, check)
    question = AboutMemory(memory_id="é/../x")
    assert await attached.call(ADA, VERIFY, question) == await check(ADA, question)
    assert asked_of[0] == (ADA, question)


async def test_an_operation_that_nobody_offers_is_said_so(attached: AttachedEngine) -> None:
    """An operation without a handler fails as what it is, on both sides of the wire."""
    with pytest.raises(UnknownFailure, match="not offered"):
        await attached.call(ADA, VERIFY, AboutMemory(memory_id="m"))


@pytest.mark.parametrize(
    "request_",
    [
        RecallRequest(query="where?"),
        RecallRequest(
            query="wo? \u0000 é",
            limit=3,
            memory_types=("factual", "negation"),
            min_confidence=0.25,
            min_selectivity=1.0,
            include_sources=True,
            follow_links=True,
            as_of=MOMENT,
            valid_at=MOMENT + timedelta(days=1),
            include_archived=True,
            include_test=True,
            session_id="s",
            tags=("a", "b,c"),
            explain=True,
            forms=("box",),
            timezone="Asia/Tokyo",
        ),
    ],
    ids=["plain", "everything set"],
)
async def test_requests_arrive_whole(
    attached: AttachedEngine, fake: FakeEngine, request_: RecallRequest
) -> None:
    """What is asked is what the engine is asked, in every field, for the same scope."""
    await attached.call(ADA, RECALL, request_)
    assert fake.asked == [(ADA, request_)]


async def test_pages_through_a_listing(attached: AttachedEngine, fake: FakeEngine) -> None:
    """Types, status and cursor arrive; the pages together are the whole."""
    for number in range(5):
        await attached.call(ADA, ENCODE, turn(f"turn {number}", f"m{number}"))
    seen: list[AnyMemory] = []
    listed = ListMemories(memory_type=STORED_TYPES, status=MemoryStatus.ACTIVE, limit=2)
    while True:
        page = await attached.call(ADA, LIST_MEMORIES, listed)
        seen += page.memories
        if page.cursor is None:
            break
        listed = listed.model_copy(update={"cursor": page.cursor})
    assert seen == list(fake.kept[ADA].values())
    await attached.call(
        ADA, LIST_MEMORIES, ListMemories(memory_type=(MemoryType.FACTUAL,), limit=2)
    )
    await attached.call(ADA, LIST_MEMORIES, ListMemories())
    assert fake.listed[-3:] == [
        (STORED_TYPES, MemoryStatus.ACTIVE, "4"),
        ((MemoryType.FACTUAL,), None, None),
        (None, None, None),
    ]


async def test_users_stay_apart(attached: AttachedEngine) -> None:
    """The scope of every request is its own."""
    await attached.call(ADA, ENCODE, turn("mine"))
    bob = Scope.of("default", "bob")
    assert await attached.call(bob, WORKING_MEMORY, WorkingMemory(session_id="s")) == []
    assert (await attached.call(bob, STATS, NOTHING)).waiting == 0
    assert (await attached.call(ADA, STATS, NOTHING)).waiting == 1


@pytest.mark.parametrize(
    "error",
    [
        ConflictingMessage("c", allowed="a", hint="h", details={"message_id": "m"}),
        MemoryNotFound("n"),
        InvalidQuery("q", allowed="1 to 9"),
        SessionBusy("b"),
        StorageUnavailable("u", hint="wait"),
        ModelRejected("r", details={"n": 1.5}),
        EngramError("plain"),
    ],
    ids=lambda error: error.code,
)
async def test_typed_errors_cross(
    attached: AttachedEngine, fake: FakeEngine, error: EngramError
) -> None:
    """A typed error arrives as the same type with everything it says."""
    fake.failure = error
    with pytest.raises(type(error)) as caught:
        await attached.call(ADA, STATS, NOTHING)
    assert type(caught.value) is type(error)
    assert caught.value.as_dict() == error.as_dict()


async def test_unforeseen_errors_say_nothing_of_their_content(
    attached: AttachedEngine, fake: FakeEngine
) -> None:
    """A bug behind is a typed failure that names its type and keeps its text to the log."""
    fake.failure = ZeroDivisionError("Ada's secret")
    with pytest.raises(UnknownFailure, match="ZeroDivisionError") as caught:
        await attached.call(ADA, STATS, NOTHING)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("odd", ["", "..", ".", "a/b", "a?b", "#", "%2e", "x" * 500, "ä", "a b"])
async def test_odd_ids_are_not_found(attached: AttachedEngine, odd: str) -> None:
    """No string reaches another address when given as an id: it is simply not found."""
    with pytest.raises(MemoryNotFound):
        await attached.call(ADA, GET_MEMORY, AboutMemory(memory_id=odd))
    with pytest.raises(MemoryNotFound):
        await attached.call(ADA, HISTORY, AboutMemory(memory_id=odd))


async def test_many_at_once(attached: AttachedEngine, fake: FakeEngine) -> None:
    """Fifty requests run side by side, and each gets its own answer."""
    fake.delay = 0.2
    calls = [
        attached.call(ADA, ENCODE, turn(f"turn {n}", f"m{n}", session_id=f"s{n}"))
        for n in range(50)
    ]
    receipts = await asyncio.gather(*calls)
    assert fake.most_at_once > 25
    assert [r.workflow_id for r in receipts] == [f"session/{ADA.tenant}/s{n}" for n in range(50)]
    assert len(fake.kept[ADA]) == 50


async def test_links_to_the_owners_ui(attached: AttachedEngine) -> None:
    """After the greeting, addresses of runs are those of the owner, with ids quoted."""
    assert attached.run_url("w") is None
    await attached.greet()
    base = "http://ui.test:1/namespaces/default/workflows"
    assert attached.run_url("session/a b") == f"{base}/session%2Fa%20b"
    assert attached.run_url("w", "r/1") == f"{base}/w/r%2F1/history"
    assert attached.ui_url == "http://ui.test:1"


async def test_closed_is_closed(attached: AttachedEngine) -> None:
    """Use after closing is a typed error."""
    await attached.close()
    with pytest.raises(MemoryClosed):
        await attached.call(ADA, STATS, NOTHING)


@pytest.fixture
async def raw(fake: FakeEngine) -> AsyncIterator[httpx.AsyncClient]:
    """The application as a foreign client meets it; bodies up to 4 KB."""
    app = create_app(lambda: fake, admission=OwnerOnly(), settings=SETTINGS, max_body_bytes=4096)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://engram") as client:
        yield client


TURNS = "/v1/namespaces/default/users/ada/sessions/s/turns"


def body(**changes: Any) -> dict[str, Any]:
    """A request to encode one turn."""
    plain = turn("hello").model_dump(mode="json", exclude={"session_id"})
    plain["turns"][0] |= changes
    return plain


@pytest.mark.parametrize(
    ("path", "sent", "status", "kind"),
    [
        (TURNS, body(content=" "), 422, InvalidTurn),
        (TURNS, body(content="a\0b"), 422, InvalidTurn),
        (TURNS, body(role="boss"), 422, InvalidTurn),
        (TURNS, body(timestamp="1492-10-12T00:00:00Z"), 422, InvalidTurn),
        (TURNS, body(timestamp="2020-01-01T00:00:00"), 422, InvalidTurn),
        (TURNS, body(timestamp="secret"), 422, InvalidInput),
        (TURNS, {"turns": []}, 422, InvalidInput),
        (TURNS, {}, 422, InvalidInput),
        (TURNS.replace("ada", "%20"), body(), 422, InvalidScope),
        (TURNS.replace("/s/", "/-s/"), body(), 422, InvalidScope),
        (TURNS, body(content="x" * 5000), 413, InvalidInput),
        ("/v1/namespaces/default/users/ada/recall", {"query": ""}, 422, InvalidQuery),
        ("/v1/namespaces/default/users/ada/recall", {"query": "q", "limit": 0}, 422, InvalidQuery),
        ("/v1/namespaces/default/users/ada/recall", {"q": "secret"}, 422, InvalidInput),
        ("/v1/nothing", {}, 404, NoSuchAddress),
    ],
)
async def test_bad_requests_are_problems(
    raw: httpx.AsyncClient, fake: FakeEngine, path: str, sent: Any, status: int, kind: type
) -> None:
    """Whatever is wrong is answered as a problem of the right type; nothing is kept."""
    answer = await raw.post(path, json=sent)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == kind.code  # type: ignore[attr-defined] # an EngramError
    assert answer.json()["status"] == status
    assert "secret" not in answer.text
    assert fake.kept == {}


@pytest.mark.parametrize("sent", [b"", b"{", b"\xff\xfe", b'{"turns": "\\ud800"}', b"[" * 2000])
async def test_broken_bodies_are_problems(raw: httpx.AsyncClient, sent: bytes) -> None:
    """What is not JSON is a problem too, never a failure of the server."""
    answer = await raw.post(TURNS, content=sent, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)
    assert answer.json()["code"] == "invalid_input"


async def test_bodies_without_length_are_bounded(raw: httpx.AsyncClient, fake: FakeEngine) -> None:
    """A body that does not say its size is cut off where the bound is."""

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b" " * 1000
        yield json.dumps(body()).encode()

    answer = await raw.post(TURNS, content=endless())
    assert answer.status_code == 413
    assert fake.kept == {}


async def test_the_socket_is_private_and_goes(fake: FakeEngine, tmp_path: Path) -> None:
    """Only its user may connect; a dead one's file is replaced; at the end nothing is left."""
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    async with serve_on_socket(fake, path, settings=SETTINGS):
        assert path.stat().st_mode & 0o777 == 0o600
        engine = AttachedEngine.over_socket(path)
        assert (await engine.call(ADA, STATS, NOTHING)).waiting == 0
    assert not path.exists()
    with pytest.raises(OwnerUnavailable, match="does not answer"):
        await engine.call(ADA, STATS, NOTHING)
    await engine.close()


async def test_leaving_waits_for_running_requests(fake: FakeEngine, tmp_path: Path) -> None:
    """A request that runs when the owner leaves is still answered."""
    fake.delay = 0.5
    async with serve_on_socket(fake, tmp_path / "s", settings=SETTINGS):
        engine = AttachedEngine.over_socket(tmp_path / "s")
        running = asyncio.create_task(engine.call(ADA, ENCODE, turn("hello")))
        await fake.working.wait()
    assert len((await running).episode_ids) == 1
    await engine.close()


@asynccontextmanager
async def somebody(
    path: Path, says: bytes, *, reads: bool = True
) -> AsyncIterator[tuple[AttachedEngine, list[bytes]]]:
    """An engine that asks something at a socket that is no server of ours, and what that read."""
    heads: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if reads:
            heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(says)
        writer.close()

    server = await asyncio.start_unix_server(answer, path)
    engine = AttachedEngine.over_socket(path)
    async with server:
        yield engine, heads
    await engine.close()


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "says",
    [
        b"",
        b"nonsense\r\n\r\n",
        OK + b"content-length: 100\r\n\r\n{",
        OK + b"content-length: one\r\n\r\n{}",
        OK + b"x: " + b"y" * 100_000,
    ],
)
async def test_what_is_no_answer_is_asked_for_twice(tmp_path: Path, says: bytes) -> None:
    """Who breaks off, or speaks no HTTP, does not answer; one more attempt is made."""
    async with somebody(tmp_path / "s", says) as (engine, heads):
        with pytest.raises(OwnerUnavailable, match="does not answer"):
            await engine.greet()
    assert len(heads) == 2


@pytest.mark.parametrize("breaks", [True, False], ids=["broken off", "whole"])
async def test_what_broke_off_and_is_gone_may_have_been_done(
    fake: FakeEngine, breaks: bool
) -> None:
    """Forgetting whose answer was lost is not told as if there had never been such a memory."""
    gone: list[str] = []

    async def forget(_: Scope, asked: AboutMemory) -> ForgetReceipt:
        if asked.memory_id in gone:
            raise MemoryNotFound("No memory with this id.")
        gone.append(asked.memory_id)
        return ForgetReceipt(memory_id=asked.memory_id, forgotten={}, workflow_id="w")

    class Breaking(httpx.ASGITransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            answer = await super().handle_async_request(request)
            if breaks and answer.is_success:
                raise httpx.ReadError("staged")
            return answer

    fake.handlers.add(FORGET, forget)
    app = create_app(lambda: fake, admission=OwnerOnly(), settings=SETTINGS)
    client = httpx.AsyncClient(transport=Breaking(app), base_url="http://engram")
    engine = AttachedEngine(NetworkWire(client))
    asked = AboutMemory(memory_id="6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11")
    if breaks:
        with pytest.raises(UnknownFailure, match=r"may have been done.*\(ReadError\)"):
            await engine.call(ADA, FORGET, asked)
    else:
        assert (await engine.call(ADA, FORGET, asked)).memory_id == asked.memory_id
    assert gone == [asked.memory_id]
    # What was gone before is told plainly.
    with pytest.raises(MemoryNotFound):
        await engine.call(ADA, FORGET, asked)
    await engine.close()


async def test_an_answer_in_pieces_is_one(tmp_path: Path) -> None:
    """Interim answers are passed over, and chunks put together."""
    says = b"HTTP/1.1 103 Early Hints\r\n\r\n" + OK + b"transfer-encoding: chunked\r\n\r\n"
    chunks = b'e\r\n{"workflow_url\r\n20\r\n":"http://ui.test/namespaces/d"}\r\n0\r\n\r\n'
    async with somebody(tmp_path / "s", says + chunks) as (engine, heads):
        await engine.greet()
        assert engine.ui_url == "http://ui.test"
    assert heads[0].startswith(b"GET /v1/health HTTP/1.1\r\n")


@pytest.mark.parametrize("length", [50_000, 2_000_000])
async def test_a_refusal_before_the_end_is_read(tmp_path: Path, length: int) -> None:
    """Who refuses a large body without reading it is heard, not taken for one who broke off."""
    says = b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n"
    async with somebody(tmp_path / "s", says) as (engine, heads):
        with pytest.raises(UnknownFailure, match="status 413"):
            await engine.call(ADA, ENCODE, turn("x" * length))
    assert len(heads) == 1


async def test_what_no_address_can_hold_is_refused(attached: AttachedEngine) -> None:
    """A cursor longer than any server reads is a typed error before it is sent."""
    with pytest.raises(InvalidInput, match="too long"):
        await attached.call(ADA, LIST_MEMORIES, ListMemories(cursor="c" * 70_000))


async def test_more_at_once_than_files_may_be_open(fake: FakeEngine, tmp_path: Path) -> None:
    """Three hundred requests at once wait for each other's connections, and all are answered."""
    fake.delay = 0.01
    async with serve_on_socket(fake, tmp_path / "s", settings=SETTINGS):
        engine = AttachedEngine.over_socket(tmp_path / "s")
        found = await asyncio.gather(*(engine.call(ADA, STATS, NOTHING) for _ in range(300)))
        await engine.close()
    assert len(found) == 300


async def test_a_refusal_between_two_writes(tmp_path: Path) -> None:
    """Who answers and leaves before the rest of a body is sent is heard, and asked once."""
    engine = AttachedEngine.over_socket(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        asking = asyncio.create_task(engine.call(ADA, ENCODE, turn("x" * 2_000_000)))
        await asyncio.sleep(0.1)
        refusing, _ = listener.accept()
        refusing.setblocking(False)
        with suppress(BlockingIOError):
            while refusing.recv(65_536):
                pass

        def refuse() -> None:
            refusing.sendall(b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n")
            refusing.close()

        # Comes before the next part, for which there is room by now.
        asyncio.get_running_loop().call_soon(refuse)
        with pytest.raises(UnknownFailure, match="status 413"):
            async with asyncio.timeout(5):
                await asking
    await engine.close()


@pytest.mark.parametrize("steps", range(5))
async def test_who_stops_asking_leaves_nothing_to_report(tmp_path: Path, steps: int) -> None:
    """A request that is cancelled, at whatever step, is no failure that nobody looked at."""
    told = list[dict[str, Any]]()
    asyncio.get_running_loop().set_exception_handler(lambda _, told_of: told.append(told_of))
    async with somebody(tmp_path / "s", b"", reads=False) as (engine, _):
        asking = asyncio.create_task(engine.greet())
        for _ in range(steps):
            await asyncio.sleep(0)
        asking.cancel()
        with suppress(asyncio.CancelledError):
            await asking
        await asyncio.sleep(0.01)
        gc.collect()
    assert told == []


async def test_more_at_once_than_may_wait(tmp_path: Path) -> None:
    """Who finds no room to wait at the socket waits for that, and is answered, too."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK + b"content-length: 2\r\n\r\n{}")
        writer.close()

    engine = AttachedEngine.over_socket(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as slow:
        slow.bind(str(tmp_path / "s"))
        slow.listen(5)
        asking = [asyncio.create_task(engine.greet()) for _ in range(50)]
        await asyncio.sleep(0.1)
        async with await asyncio.start_unix_server(answer, sock=slow):
            await asyncio.gather(*asking)
    await engine.close()


async def test_two_servers_one_after_the_other(fake: FakeEngine, tmp_path: Path) -> None:
    """An attached engine goes on when its owner was replaced: broken connections are made anew."""
    engine = AttachedEngine.over_socket(tmp_path / "s")
    for _ in range(3):
        async with serve_on_socket(fake, tmp_path / "s", settings=SETTINGS):
            assert (await engine.call(ADA, STATS, NOTHING)).waiting == 0
    await engine.close()


@asynccontextmanager
async def silent(path: Path) -> AsyncIterator[None]:
    """Somebody who lets others connect and never answers, as a process that was stopped."""
    with socket.socket(socket.AF_UNIX) as stopped:
        stopped.bind(str(path))
        stopped.listen()
        yield


async def test_reading_gives_up_on_an_owner_that_was_stopped(tmp_path: Path) -> None:
    """What is only read ends with an error that can pass; what is written is waited for."""
    engine = AttachedEngine.over_socket(tmp_path / "s", 0.1)
    async with silent(tmp_path / "s"):
        writing = asyncio.create_task(engine.call(ADA, ENCODE, turn("hello")))
        with pytest.raises(OwnerUnavailable, match="does not answer") as error:
            await asyncio.wait_for(engine.call(ADA, STATS, NOTHING), 20)
        assert not writing.done()
        writing.cancel()
    assert error.value.retryable
    await engine.close()


async def test_reading_waits_for_an_owner_that_takes_long(fake: FakeEngine, tmp_path: Path) -> None:
    """One that answers other questions meanwhile is waited for, also when all connections wait."""
    fake.delay = 1.5
    async with serve_on_socket(fake, tmp_path / "s", settings=SETTINGS):
        engine = AttachedEngine.over_socket(tmp_path / "s", 1.0)
        answers = [engine.call(ADA, STATS, NOTHING) for _ in range(_AT_ONCE + 1)]
        assert {one.waiting for one in await asyncio.gather(*answers)} == {0}
    await engine.close()


def hold(path: Path, how: str) -> subprocess.Popen[bytes]:
    """Another process that owns the folder and does not answer."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD_LOCK, str(path), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"locked\n"
    return process


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill it and close its pipes."""
    process.kill()
    process.communicate()


@pytest.mark.parametrize("how", ["without socket", "with socket"])
async def test_a_silent_owner_is_named(tmp_path: Path, how: str) -> None:
    """An owner that never answers, or accepts and is silent, is a typed error after the wait."""
    chosen = SETTINGS.model_copy(update={"attach_timeout": timedelta(seconds=0.4)})
    owner = hold(tmp_path, how)
    try:
        with pytest.raises(DataFolderInUse, match=f"in use by process {owner.pid}"):
            async with own_or_attach(DataFolder(tmp_path), chosen):
                pytest.fail("nobody answers")
    finally:
        end(owner)


async def test_a_socket_that_outlives_its_owner_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child that was forked off the owner keeps it open: who connects is not answered."""
    monkeypatch.setattr(attaching, "_ATTEMPT_SECONDS", 0.1)
    folder = DataFolder(tmp_path)
    with socket.socket(socket.AF_UNIX) as orphan:
        orphan.bind(str(tmp_path / "s"))
        orphan.listen()
        dead = Owner(pid=1, socket=tmp_path / "s")
        monkeypatch.setattr(folder, "owner", lambda: dead)
        # As if the owner had died just now.
        lock, held = folder.try_lock, [True]
        monkeypatch.setattr(folder, "try_lock", lambda: not (held and held.pop()) and lock())
        async with asyncio.timeout(20), own_or_attach(folder, SETTINGS) as attached:
            assert attached is None


async def test_takes_over_when_the_owner_dies(tmp_path: Path) -> None:
    """Killed while it is waited for, or long before, the owner leaves the folder to the next."""
    owner = hold(tmp_path, "with socket")
    folder = DataFolder(tmp_path)
    opening = own_or_attach(folder, SETTINGS)
    entering = asyncio.create_task(opening.__aenter__())
    await asyncio.sleep(0.2)
    assert not entering.done()
    end(owner)
    assert await asyncio.wait_for(entering, 60) is None
    assert (folder.locked, folder.socket.exists()) == (True, False)
    await opening.__aexit__(None, None, None)
    assert not folder.has_owner()


# What a command loads to ask another process for one thing is not: structlog and all that it
# shows tracebacks with, a client for the network, what carries operations out, emojis.
NEEDLESS = {
    *("temporalio", "qdrant_client", "qdrant_edge", "pydantic_ai", "openai", "fastapi", "numpy"),
    *("structlog", "pygments", "attr", "rich.traceback", "rich._emoji_codes", "stamina"),
    *("httpx", "httpcore", "h2", "anyio", "certifi", "idna", "click", "requests", "urllib.request"),
    *("engram.operations.catalogue", "engram.client.local", "engram.client.remote"),
    *("engram.operations.digests", "engram.operations.trials", "engram.client.importing"),
    *("engram.recall.context", "engram.recall.pipeline", "engram.language.text"),
    *("engram.transfer.readers", "engram.cli.admin", "engram.embedded.parts"),
}
ASKING = """
import atexit, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
sys.argv[0] = "engram"
from engram.cli import main
main()
"""


@pytest.mark.parametrize("verb", [("recall", "tea"), ("list",), ("encode", "I like tea")])
async def test_an_attached_command_loads_what_one_request_needs(
    verb: tuple[str, ...], tmp_path: Path, fake: FakeEngine
) -> None:
    """A command beside a running Engram sends its request, and loads little besides."""
    folder = DataFolder(tmp_path)
    async with (
        own_or_attach(folder, SETTINGS),
        serve_on_socket(fake, folder.socket, settings=SETTINGS),
    ):
        asking = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", ASKING, *verb, "-u", "ada", "-d", str(tmp_path)),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        _, told = await asking.communicate()
    assert asking.returncode == 0, told.decode()
    loaded = set(told.decode().split())
    assert "h11" in loaded
    assert loaded & NEEDLESS == set()


async def test_waits_for_an_owner_that_starts(tmp_path: Path, fake: FakeEngine) -> None:
    """The second opener attaches as soon as the first answers, and gets its answers."""
    first, second = DataFolder(tmp_path), DataFolder(tmp_path)
    async with own_or_attach(first, SETTINGS) as owned:
        assert owned is None
        opening = own_or_attach(second, SETTINGS)
        entering = asyncio.create_task(opening.__aenter__())
        await asyncio.sleep(0.1)
        assert not entering.done()
        async with serve_on_socket(fake, first.socket, settings=SETTINGS):
            attached = await asyncio.wait_for(entering, 60)
            assert attached is not None
            await attached.call(ADA, ENCODE, turn("hello"))
            assert len(fake.kept[ADA]) == 1
            await opening.__aexit__(None, None, None)


async def test_an_owner_of_another_store_is_not_attached_to(
    tmp_path: Path, fake: FakeEngine
) -> None:
    """Who asks for the store `staging` neither reads nor erases the owner's, `engram`."""
    folder = DataFolder(tmp_path)
    staging = Settings.load(data_dir=tmp_path, collection_prefix="staging")
    async with (
        own_or_attach(folder, SETTINGS),
        serve_on_socket(fake, folder.socket, settings=SETTINGS),
    ):
        with pytest.raises(InvalidSettings, match=r"store 'engram'.*asks for 'staging'"):
            async with attaching.open(user_id="ada", settings=staging):
                pytest.fail("it is another store")
        command = await asyncio.create_subprocess_exec(
            *(
                sys.executable,
                "-m",
                "engram.cli",
                "erase",
                "-u",
                "ada",
                "--yes",
                "-d",
                str(tmp_path),
            ),
            env={**os.environ, "ENGRAM_COLLECTION_PREFIX": "staging"},
            stderr=asyncio.subprocess.PIPE,
        )
        _, said = await command.communicate()
    assert command.returncode != 0
    assert "ENGRAM_COLLECTION_PREFIX asks for" in " ".join(said.decode().split())
    assert not fake.working.is_set()
