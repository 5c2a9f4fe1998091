"""Requests through a Unix socket: connections are used again where that is safe, and only there."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from engram.client.unix import UnixClient

Answering = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


class Other:
    """The other end: counts connections, and answers each request as it is told to."""

    def __init__(self) -> None:
        self.connections = 0
        self.heads: list[bytes] = []


@asynccontextmanager
async def listening(path: Path, answer: Answering) -> AsyncIterator[Other]:
    """Somebody who answers at a socket."""
    other = Other()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        other.connections += 1
        try:
            while not reader.at_eof():
                head = await reader.readuntil(b"\r\n\r\n")
                other.heads.append(head)
                await answer(head, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_unix_server(serve, path)
    try:
        yield other
    finally:
        server.close()


def written(content: bytes, more: str = "") -> bytes:
    """An answer as it goes over the wire."""
    return f"HTTP/1.1 200 OK\r\nContent-Length: {len(content)}\r\n{more}\r\n".encode() + content


async def test_a_connection_is_used_again_for_long_answers_too(tmp_path: Path) -> None:
    """One after the other go over one connection, whatever fits into its buffer."""
    long = b"x" * 300_000

    async def answer(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(written(long))

    async with listening(tmp_path / "s", answer) as other:
        client = UnixClient(tmp_path / "s", 5)
        for _ in range(3):
            found = await client.request("GET", "/a", params={"b": True}, headers={"c": "d"})
            assert (found.is_success, found.content) == (True, long)
        assert other.connections == 1
        assert other.heads[0] == b"GET /a?b=true HTTP/1.1\r\nhost: engram\r\nc: d\r\n\r\n"
        await client.aclose()


async def test_an_answer_that_nobody_waits_for_is_not_taken_for_the_next(tmp_path: Path) -> None:
    """Whoever gives up leaves no connection behind on which the old answer still comes."""
    late = asyncio.Event()

    async def answer(head: bytes, writer: asyncio.StreamWriter) -> None:
        path = head.split(b" ", 2)[1]
        if path == b"/slow":
            late.set()
            await asyncio.sleep(0.1)
        writer.write(written(path))

    async with listening(tmp_path / "s", answer) as other:
        client = UnixClient(tmp_path / "s", 5)
        slow = asyncio.create_task(client.request("GET", "/slow", headers={}))
        await late.wait()
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        assert (await client.request("GET", "/next", headers={})).content == b"/next"
        assert other.connections == 2
        await client.aclose()


@pytest.mark.parametrize(
    "broken",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\n\r\nof any length",
        b"HTTP/1.1 ??? OK\r\nContent-Length: 0\r\n\r\n",
        b"nothing of HTTP",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000,
        b"",
    ],
)
async def test_what_is_no_answer_is_a_broken_connection(tmp_path: Path, broken: bytes) -> None:
    """It is told as what may be tried again, and the connection is not used again."""

    async def answer(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(broken)
        writer.close()

    async with listening(tmp_path / "s", answer) as other:
        client = UnixClient(tmp_path / "s", 5)
        for _ in range(2):
            with pytest.raises(httpx.TransportError):
                await client.request("GET", "/", headers={})
        assert other.connections == 2
        await client.aclose()


async def test_a_connection_that_ends_is_not_used_again(tmp_path: Path) -> None:
    """Neither where the other end says so, nor where it has closed it without a word."""

    async def answer(head: bytes, writer: asyncio.StreamWriter) -> None:
        said = head.startswith(b"GET /said ")
        writer.write(written(b"", "Connection: close\r\n" if said else ""))
        if not said:
            writer.close()

    async with listening(tmp_path / "s", answer) as other:
        client = UnixClient(tmp_path / "s", 5)
        for path in ("/said", "/silent", "/silent"):
            assert (await client.request("GET", path, headers={})).is_success
            await asyncio.sleep(0.02)
        assert other.connections == 3
        await client.aclose()


async def test_who_does_not_listen_and_what_is_too_long_is_told_apart(tmp_path: Path) -> None:
    """Nobody at the socket may be there later; an address that is too long never fits."""
    client = UnixClient(tmp_path / "nobody", 5)
    with pytest.raises(httpx.ConnectError):
        await client.request("GET", "/", headers={})
    with pytest.raises(httpx.InvalidURL):
        await client.request("GET", "/" + "x" * 70_000, headers={})
    await client.aclose()
