"""Listening, ending, and reaching a memory from elsewhere."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import trustme
import uvicorn
from fastapi import FastAPI
from structlog.typing import EventDict

import engram
from engram import Turn
from engram.client.remote import remote_engine
from engram.domain.access import Access
from engram.embedded.parts import serve_on_socket
from engram.errors import (
    AccessDenied,
    DataFolderUnusable,
    EngramError,
    InvalidSettings,
    KeyRefused,
    NoSuchAddress,
    OwnerUnavailable,
    PortInUse,
    UnknownFailure,
)
from engram.server.listening import is_loopback, public_listener
from engram.server.middleware import BodyLimitMiddleware
from engram.server.run import public_app, serve_publicly
from engram.settings import Settings
from tests.support.fake_engine import FakeEngine
from tests.support.key_maker import KeyMaker, bearer
from tests.support.ports import free_port

STATS = "/v1/namespaces/default/users/ada/stats"


@pytest.fixture
async def url(app: FastAPI, settings: Settings) -> AsyncIterator[str]:
    """Where the application answers over TCP."""
    chosen = settings.model_copy(update={"http_port": free_port()})
    async with serve_publicly(app, chosen) as found:
        yield found


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "memory.example.org"])  # noqa: S104 - is refused
def test_without_a_key_nobody_else_may_reach_it(
    settings: Settings, key_maker: KeyMaker, host: str
) -> None:
    """Listening elsewhere needs a valid key; the error says how to make one."""
    chosen = settings.model_copy(update={"http_host": host, "http_port": free_port()})
    refused = partial(pytest.raises, InvalidSettings, match="engram keys create")
    with refused(), public_listener(chosen, key_maker.clock):
        pytest.fail("it listens")
    key_maker.key(days=1)
    if host in ("0.0.0.0", "::"):  # noqa: S104 - a key is there
        with public_listener(chosen, key_maker.clock) as listener:
            assert listener.getsockname()[0] == host
    key_maker.now += timedelta(days=2)
    with refused(), public_listener(chosen, key_maker.clock):
        pytest.fail("it listens")


def test_what_loopback_is() -> None:
    """Addresses that only this machine reaches, in both families, and no names but localhost."""
    assert all(map(is_loopback, ("127.0.0.1", "127.8.9.10", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "localhost.example", "")))  # noqa: S104 - only asked about


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
async def test_it_answers_where_the_settings_say(
    app: FastAPI, settings: Settings, key_maker: KeyMaker, host: str
) -> None:
    """Both families and names; the address that is told is the one that answers."""
    chosen = settings.model_copy(update={"http_host": host, "http_port": free_port()})
    async with serve_publicly(app, chosen) as url, httpx.AsyncClient() as web:
        answer = await web.get(url + STATS, headers=bearer(key_maker.token()))
    assert answer.status_code == 200


async def test_a_port_that_is_taken_is_a_typed_error(app: FastAPI, settings: Settings) -> None:
    """Another program has it: which port, and what to set."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        chosen = settings.model_copy(update={"http_port": other.getsockname()[1]})
        with pytest.raises(PortInUse, match="ENGRAM_HTTP_PORT") as caught:
            async with serve_publicly(app, chosen):
                pytest.fail("it cannot listen there")
    assert caught.value.details == {"port": chosen.http_port, "host": "127.0.0.1"}


@pytest.mark.parametrize("host", ["192.0.2.1", "no such host"])
async def test_an_address_of_another_machine_is_a_typed_error(
    app: FastAPI, settings: Settings, key_maker: KeyMaker, host: str
) -> None:
    """An address that this machine does not have names the setting."""
    key_maker.key()
    chosen = settings.model_copy(update={"http_host": host, "http_port": free_port()})
    with pytest.raises(InvalidSettings, match="no address of this machine"):
        async with serve_publicly(app, chosen):
            pytest.fail("it cannot listen there")


async def test_running_requests_are_answered_when_it_ends(
    app: FastAPI, settings: Settings, key_maker: KeyMaker, fake: FakeEngine
) -> None:
    """What runs when the server is told to end gets its answer; who comes later gets none."""
    chosen = settings.model_copy(update={"http_port": free_port()})
    fake.delay = 0.5
    token = key_maker.token()
    async with httpx.AsyncClient() as web:
        async with serve_publicly(app, chosen) as url:
            running = asyncio.create_task(web.get(url + STATS, headers=bearer(token)))
            await fake.working.wait()
        assert (await running).status_code == 200
        with pytest.raises(httpx.ConnectError):
            await web.get(url + STATS)


async def test_what_runs_too_long_when_it_ends_can_be_asked_again(
    app: FastAPI,
    settings: Settings,
    key_maker: KeyMaker,
    fake: FakeEngine,
    lines: list[EventDict],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Cut short is a problem that says when to ask again, and a line in the log, not a crash."""
    monkeypatch.setattr("engram.server.run._GRACE_SECONDS", 0.05)
    chosen = settings.model_copy(update={"http_port": free_port()})
    fake.delay = 60
    async with httpx.AsyncClient() as web:
        async with serve_publicly(app, chosen) as url:
            running = asyncio.create_task(web.get(url + STATS, headers=bearer(key_maker.token())))
            await fake.working.wait()
        answer = await running
    assert (answer.status_code, answer.json()["code"]) == (503, "owner_unavailable")
    assert answer.json()["retryable"] is True
    assert answer.headers["retry-after"] == "5"
    assert answer.headers["x-request-id"] == answer.json()["request_id"]
    assert [line["status"] for line in lines if line["event"] == "answered"] == [503]
    assert {line["log_level"] for line in lines} == {"info"}
    assert not any(record.exc_info for record in caplog.records)


async def test_a_store_whose_server_ends_says_that_it_can_be_asked_again(
    app: FastAPI,
    settings: Settings,
    key_maker: KeyMaker,
    fake: FakeEngine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a program waits for when the server ends fails with an error that is retryable."""
    monkeypatch.setattr("engram.server.run._GRACE_SECONDS", 0.05)
    chosen = settings.model_copy(update={"http_port": free_port()})
    async with AsyncExitStack() as staying:
        async with serve_publicly(app, chosen) as url:
            connecting = engram.connect(url, user_id="ada", api_key=key_maker.token())
            memory = await staying.enter_async_context(connecting)
            fake.delay = 60
            fake.working.clear()
            waiting = asyncio.create_task(memory.stats())
            await fake.working.wait()
        with pytest.raises(OwnerUnavailable, match="The server ends") as caught:
            await waiting
    assert caught.value.retryable


async def test_who_stops_waiting_cancels_what_was_asked(
    web: httpx.AsyncClient, key_maker: KeyMaker, fake: FakeEngine
) -> None:
    """Nobody is answered then: the server goes on, and cancelling does what it does anywhere."""
    fake.delay = 60
    asking = asyncio.create_task(web.get(STATS, headers=bearer(key_maker.token())))
    await fake.working.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection, by hand."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def answered(reader: asyncio.StreamReader) -> bytes:
    """The head of an answer, when all of it has come."""
    head = await reader.readuntil(b"\r\n\r\n")
    (length,) = re.findall(rb"content-length: (\d+)", head)
    await reader.readexactly(int(length))
    return head


REFUSED = b"POST /v1/none HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"


@pytest.mark.parametrize(
    ("asked", "then"),
    [
        (b"", b""),
        (b"", b"GET /v1/health HTTP/1.1\r\nHo"),
        (b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /v1/health HTTP/1.1\r\n"),
        (REFUSED % 9, b"half"),
    ],
    ids=["nothing", "half a head", "half a second head", "half a body that was refused"],
)
async def test_a_connection_without_a_whole_request_ends(
    url: str, monkeypatch: pytest.MonkeyPatch, asked: bytes, then: bytes
) -> None:
    """Whoever says nothing, or no more than a part, does not keep a connection."""
    monkeypatch.setattr("engram.server.run._HEAD_SECONDS", 0.05)
    monkeypatch.setattr("engram.server.run._REST_SECONDS", 0.05)
    async with connected(url) as (reader, writer), asyncio.timeout(10):
        if asked:
            writer.write(asked)
            await answered(reader)
        writer.write(then)
        assert await reader.read() == b""


@pytest.mark.parametrize("asked", [b"", REFUSED % 99_999], ids=["a head", "a refused body"])
async def test_a_letter_now_and_then_keeps_no_connection(
    url: str, monkeypatch: pytest.MonkeyPatch, asked: bytes
) -> None:
    """The time for a head, or the rest of a body, counts from its first letter, not the last."""
    monkeypatch.setattr("engram.server.run._HEAD_SECONDS", 0.2)
    monkeypatch.setattr("engram.server.run._REST_SECONDS", 0.2)
    async with connected(url) as (reader, writer), asyncio.timeout(10):
        if asked:
            writer.write(asked)
            assert b" 401 " in await answered(reader)
        writer.write(b"GET /")
        ended = asyncio.create_task(reader.read())
        while not ended.done():
            writer.write(b"x")
            await asyncio.wait({ended}, timeout=0.02)
        # A letter that was on its way when it ended is answered with a reset.
        with suppress(ConnectionResetError):
            assert await ended == b""


async def test_who_sends_the_rest_of_a_refused_body_may_ask_again(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time that the rest took is none of what the next head may take."""
    monkeypatch.setattr("engram.server.run._REST_SECONDS", 0.5)
    async with connected(url) as (reader, writer), asyncio.timeout(10):
        writer.write(REFUSED % 9)
        assert b" 401 " in await answered(reader)
        writer.write(b"half")
        await writer.drain()
        writer.write(b" and.")
        # Longer than a rest may take: another one, who sends half of it, is away meanwhile.
        await gone_meanwhile(url)
        writer.write(b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b" 200 " in await answered(reader)


async def gone_meanwhile(url: str) -> None:
    """Wait until somebody who sends half of a refused body has no connection any more."""
    async with connected(url) as (reader, writer):
        writer.write(REFUSED % 9)
        await answered(reader)
        writer.write(b"half")
        assert await reader.read() == b""


async def test_who_has_asked_keeps_the_connection(
    url: str, key_maker: KeyMaker, fake: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a long answer nor a pause before the next request ends it."""
    monkeypatch.setattr("engram.server.run._HEAD_SECONDS", 0.05)
    request = f"GET {STATS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {{}}\r\n\r\n"
    asked = request.format(key_maker.token()).encode()
    fake.delay = 0.3
    async with connected(url) as (reader, writer), asyncio.timeout(10):
        for _ in range(2):
            writer.write(asked)
            assert b" 200 " in await answered(reader)
            # Longer than a head may take: another one, who says nothing, is away meanwhile.
            async with connected(url) as (other, _):
                assert await other.read() == b""


async def test_a_body_that_does_not_come_is_not_waited_for(
    fake: FakeEngine, settings: Settings, key_maker: KeyMaker
) -> None:
    """Who went away in the middle of a body takes a place no longer."""
    token = key_maker.token()
    app = BodyLimitMiddleware(public_app(fake, settings, key_maker.clock), 99, patience=0.05)

    async def half() -> AsyncIterator[bytes]:
        yield b'{"query": '
        await asyncio.Event().wait()

    transport = httpx.ASGITransport(app)
    async with (
        asyncio.timeout(10),
        httpx.AsyncClient(transport=transport, base_url="http://localhost") as web,
    ):
        headers = bearer(token) | {"Content-Type": "application/json"}
        recall = STATS.replace("stats", "recall")
        answer = await web.post(recall, content=half(), headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")


@pytest.mark.parametrize(("read", "status"), [(0, 400), (64 * 1024, 200)])
async def test_a_body_that_comes_by_the_letter_is_not_waited_for(
    fake: FakeEngine, settings: Settings, key_maker: KeyMaker, read: int, status: int
) -> None:
    """Parts that come in time, and bring nothing, put its end off no further; what is read does."""
    token = key_maker.token()
    slow = BodyLimitMiddleware(
        public_app(fake, settings, key_maker.clock), 2**20, patience=10, whole=0.05
    )

    async def trickle() -> AsyncIterator[bytes]:
        yield b'{"query": "Where?"' + b" " * read
        for _ in range(10):
            await asyncio.sleep(0.02)
            yield b" "
        yield b"}"

    transport = httpx.ASGITransport(slow)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as web:
        headers = bearer(token) | {"Content-Type": "application/json"}
        recall = STATS.replace("stats", "recall")
        answer = await web.post(recall, content=trickle(), headers=headers)
    assert answer.status_code == status


async def test_one_key_leaves_places_to_others(
    fake: FakeEngine, settings: Settings, key_maker: KeyMaker
) -> None:
    """Three quarters at most are a key's; it is told, and everybody else is answered meanwhile."""
    chosen = settings.model_copy(update={"http_connections": 4})
    one, other = bearer(key_maker.token("one", user="ada")), bearer(key_maker.token("other"))
    transport = httpx.ASGITransport(public_app(fake, chosen, key_maker.clock))
    held_up, done = asyncio.Barrier(4), asyncio.Event()

    async def held() -> AsyncIterator[bytes]:
        yield b"{"
        await held_up.wait()
        await done.wait()
        yield b'"query": "Where?"}'

    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as web:
        asked = partial(web.post, STATS.replace("stats", "recall"))
        headers = one | {"Content-Type": "application/json"}
        running = [asyncio.create_task(asked(content=held(), headers=headers)) for _ in range(3)]
        await held_up.wait()
        refused = await web.get(STATS, headers=one)
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_requests")
        assert refused.json()["details"] == {"retry_after": 1, "limit": 3}
        assert (await web.get(STATS, headers=other)).status_code == 200
        done.set()
        assert [answer.status_code for answer in await asyncio.gather(*running)] == [200] * 3
        assert (await web.get(STATS, headers=one)).status_code == 200


async def test_only_who_was_let_in_takes_a_place(
    fake: FakeEngine, settings: Settings, key_maker: KeyMaker
) -> None:
    """One request too many is a problem that says when to ask; idle connections are none."""
    chosen = settings.model_copy(update={"http_port": free_port(), "http_connections": 1})
    headers = bearer(key_maker.token())
    async with (
        serve_publicly(public_app(fake, chosen, key_maker.clock), chosen) as url,
        connected(url),
        connected(url),
        httpx.AsyncClient(base_url=url) as web,
    ):
        assert (await web.get(STATS, headers=headers)).status_code == 200
        fake.delay = 0.5
        fake.working.clear()
        running = asyncio.create_task(web.get(STATS, headers=headers))
        await fake.working.wait()
        refused = await web.get(STATS, headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (503, "too_many_requests")
        assert refused.json()["retryable"] is True
        assert refused.headers["retry-after"] == "1"
        assert refused.headers["x-request-id"] == refused.json()["request_id"]
        assert (await web.get("/v1/health")).status_code == 200
        assert (await web.get(STATS)).status_code == 401
        assert (await running).status_code == 200
        assert (await web.get(STATS, headers=headers)).status_code == 200


async def test_a_store_over_the_network(url: str, key_maker: KeyMaker, fake: FakeEngine) -> None:
    """The same store as everywhere: what is encoded is recalled; other users are other users."""
    async with engram.connect(url, user_id="ada", api_key=key_maker.token()) as memory:
        turn = Turn(content="I live in Porto.", timestamp=key_maker.clock())
        receipt = await memory.encode(turn, session_id="s1")
        (hit,) = await memory.recall("Where?")
        assert hit.memory.id == receipt.episode_ids[0]
        assert await memory.for_user("bob").recall("Where?") == []
        assert memory.run_url(hit.memory) is None
    assert [scope.user_id for scope in fake.kept] == ["ada"]


def test_a_store_over_the_network_without_await(
    settings: Settings, key_maker: KeyMaker, fake: FakeEngine
) -> None:
    """`connect_sync` takes the same URL and key, from the settings too."""
    chosen = settings.model_copy(update={"http_port": free_port()})

    async def serve(ready: asyncio.Event, done: asyncio.Event) -> None:
        async with serve_publicly(public_app(fake, chosen, key_maker.clock), chosen):
            ready.set()
            await done.wait()

    async def main() -> int:
        ready, done = asyncio.Event(), asyncio.Event()
        serving = asyncio.create_task(serve(ready, done))
        await ready.wait()
        waiting = await asyncio.to_thread(ask)
        done.set()
        await serving
        return waiting

    def ask() -> int:
        remote = Settings.load(
            url=f"http://127.0.0.1:{chosen.http_port}/", api_key=key_maker.token("sync")
        )
        with engram.connect_sync(user_id="ada", settings=remote) as memory:
            turn = Turn(content="I live in Porto.", timestamp=key_maker.clock())
            memory.encode(turn, session_id="s1")
            return memory.stats().waiting

    assert asyncio.run(main()) == 1


async def test_a_wrong_key_is_a_typed_error_at_once(url: str, key_maker: KeyMaker) -> None:
    """Unknown, missing or impossible: opening fails, not the first use."""
    key_maker.key()
    for key, kind in (
        ("engram_wrong", KeyRefused),
        (None, KeyRefused),
        ("é", InvalidSettings),
        ("a\nb", InvalidSettings),
    ):
        with pytest.raises(kind):
            async with engram.connect(url, user_id="ada", api_key=key, settings=Settings.load()):
                pytest.fail("nobody gets in")


async def test_what_the_key_does_not_allow_is_a_typed_error(url: str, key_maker: KeyMaker) -> None:
    """Too little access, and another user, come out as what they are."""
    token = key_maker.token(access=Access.READ, user="ada")
    async with engram.connect(url, user_id="ada", api_key=token) as memory:
        with pytest.raises(AccessDenied, match="a key with access write"):
            await memory.encode("I live in Porto.", session_id="s1")
        with pytest.raises(NoSuchAddress, match="the user that it was made for"):
            await memory.for_user("bob").stats()
        assert (await memory.stats()).waiting == 0


@pytest.mark.parametrize(
    "address",
    [
        *("", "localhost:8745", "ftp://localhost", "http://", "http://[", "http://h:99999"),
        *("http://key@localhost", "http://localhost?key=secret", "http://localhost#secret"),
    ],
)
async def test_what_is_no_address_is_a_typed_error(address: str) -> None:
    """Typed, and not repeated: people paste addresses with keys in them."""
    with pytest.raises(InvalidSettings) as caught:
        async with engram.connect(
            address or "x", user_id="ada", api_key="engram_x", settings=Settings.load()
        ):
            pytest.fail("there is no such address")
    assert "secret" not in str(caught.value)


async def test_nobody_there_is_a_typed_error() -> None:
    """Nothing listens: retryable, and what to look at."""
    address = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(OwnerUnavailable, match="whether the server runs") as caught:
        async with engram.connect(address, user_id="ada", api_key="engram_x"):
            pytest.fail("nobody is there")
    assert caught.value.retryable


@asynccontextmanager
async def serving(application: Any, port: int, **options: Any) -> AsyncIterator[None]:
    """Any ASGI application on loopback."""
    server = uvicorn.Server(
        uvicorn.Config(application, port=port, lifespan="off", log_config=None, **options)
    )
    running = asyncio.create_task(server.serve())
    try:
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
        yield
    finally:
        server.should_exit = True
        await running


@pytest.mark.parametrize(("status", "kind"), [(502, OwnerUnavailable), (200, UnknownFailure)])
async def test_what_is_not_engram_is_a_typed_error(status: int, kind: type[EngramError]) -> None:
    """A proxy whose server is away can be asked again; another website cannot."""

    async def website(_: Any, __: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b"<html>"})

    port = free_port()
    async with serving(website, port):
        with pytest.raises(kind):
            async with engram.connect(
                f"http://127.0.0.1:{port}", user_id="ada", api_key="engram_x"
            ):
                pytest.fail("this is not Engram")


async def test_certificates_are_verified(
    app: FastAPI, key_maker: KeyMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A private authority is refused until SSL_CERT_FILE names it; then the store works."""
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    certificate.private_key_and_cert_chain_pem.write_to_path(tmp_path / "server.pem")
    port, token = free_port(), key_maker.token()
    address = f"https://localhost:{port}"
    async with serving(app, port, ssl_certfile=str(tmp_path / "server.pem")):
        monkeypatch.delenv("SSL_CERT_FILE", raising=False)
        with pytest.raises(OwnerUnavailable):
            async with engram.connect(address, user_id="ada", api_key=token):
                pytest.fail("nobody vouches for it")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        assert ssl.create_default_context().cert_store_stats()["x509_ca"] >= 1
        async with engram.connect(address, user_id="ada", api_key=token) as memory:
            assert (await memory.stats()).waiting == 0


async def test_a_key_that_travels_in_the_open_is_warned_of(lines: list[EventDict]) -> None:
    """Plain http to another machine: a line in the log names the host, not the key."""
    engine = remote_engine("http://memory.example.org", "engram_secret")
    await engine.close()
    await remote_engine("https://memory.example.org", "engram_secret").close()
    await remote_engine("http://127.0.0.1:8745", "engram_secret").close()
    (line,) = [line for line in lines if line["log_level"] == "warning"]
    assert line["host"] == "memory.example.org"
    assert "secret" not in str(lines)


async def test_naming_servers_means_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """ENGRAM_URL does not get in the way of who names Temporal or Qdrant."""
    monkeypatch.setenv("ENGRAM_URL", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("ENGRAM_API_KEY", "engram_x")
    with pytest.raises(OwnerUnavailable):
        async with engram.connect(user_id="ada"):
            pytest.fail("nobody is there")
    with pytest.raises(EngramError) as caught:
        async with engram.connect(user_id="ada", qdrant_url=f"http://127.0.0.1:{free_port()}"):
            pytest.fail("nobody is there")
    assert not isinstance(caught.value, OwnerUnavailable)


async def test_a_socket_whose_path_is_too_long_is_a_typed_error(tmp_path: Path) -> None:
    """The kernel takes some hundred bytes; the error says what to do."""
    path = tmp_path / ("x" * 120) / "engram.sock"
    path.parent.mkdir()
    with pytest.raises(DataFolderUnusable, match="shorter"):
        async with serve_on_socket(FakeEngine(), path):
            raise AssertionError
