"""HTTP through a Unix socket, to the process that has the memory.

What httpx does for any server (cookies, redirects, proxies, encodings, limits of time) took three
quarters of what a request costs its sender. The other end is Engram's own server on this machine:
it answers one request at a time on a connection, and says how long each answer is.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import httpx

_MOST_AT_ONCE: Final = 100
_LONGEST_ADDRESS: Final = 65_536
_LONGEST_HEAD: Final = 65_536
_END_OF_HEAD: Final = b"\r\n\r\n"
_SUCCESSES: Final = range(200, 300)


class UnixResponse(NamedTuple):
    """An answer, with what is used of :class:`httpx.Response`."""

    status_code: int
    content: bytes

    @property
    def is_success(self) -> bool:
        """Whether what was asked for was done."""
        return self.status_code in _SUCCESSES

    def json(self) -> Any:
        """What it holds; raises ValueError where that is no JSON."""
        return json.loads(self.content)


class UnixClient:
    """Sends requests through a Unix socket, with what is used of :class:`httpx.AsyncClient`.

    Args:
        path: The socket.
        patience: Seconds in which it has to be connected to; answers take what they take.
    """

    def __init__(self, path: Path, patience: float) -> None:
        self._path = path
        self._patience = patience
        self._idle: list[_Connection] = []
        self._room = asyncio.Semaphore(_MOST_AT_ONCE)
        self.is_closed = False

    async def request(
        self,
        method: str,
        url: str,
        *,
        params: Mapping[str, Any] | None = None,
        content: str | None = None,
        headers: Mapping[str, str],
    ) -> UnixResponse:
        """Send one request and wait for its answer.

        Raises:
            httpx.TransportError: nobody listens, or the connection broke off.
            httpx.InvalidURL: the address is too long.
        """
        sent = _written(method, _target(url, params), headers, content)
        async with self._room:
            connection = self._unused() or await self._connected()
            try:
                answer = await connection.ask(sent)
            except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
                connection.close()
                # Whoever has the memory may have ended: others are broken, too.
                self._let_go()
                raise httpx.ReadError(type(error).__name__) from error
            except BaseException:
                # An answer that nobody waits for must not be taken for the next one.
                connection.close()
                raise
            if connection.goes_on and not self.is_closed:
                self._idle.append(connection)
            else:
                connection.close()
        return answer

    async def aclose(self) -> None:
        """Let go of the connections."""
        self.is_closed = True
        idle = list(self._idle)
        self._let_go()
        for connection in idle:
            await connection.closed()

    def _unused(self) -> _Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_broken:
                return connection
            connection.close()
        return None

    async def _connected(self) -> _Connection:
        try:
            async with asyncio.timeout(self._patience):
                opened = await asyncio.open_unix_connection(self._path, limit=_LONGEST_HEAD)
        except TimeoutError as error:
            raise httpx.ConnectTimeout("nobody answers") from error
        except OSError as error:
            raise httpx.ConnectError(type(error).__name__) from error
        return _Connection(*opened)

    def _let_go(self) -> None:
        while self._idle:
            self._idle.pop().close()


class _Connection:
    """A connection that is used by one request at a time.

    Attributes:
        goes_on: Whether the other end takes another request.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.goes_on = True

    @property
    def is_broken(self) -> bool:
        """Whether the other end has closed it."""
        return self._reader.at_eof() or self._writer.is_closing()

    async def ask(self, sent: bytes) -> UnixResponse:
        """Send a request and read its answer.

        Raises:
            OSError: the connection broke off; so do EOFError, ValueError and LimitOverrunError
                where what came is no answer.
        """
        self._writer.write(sent)
        await self._writer.drain()
        head = await self._reader.readuntil(_END_OF_HEAD)
        first, *lines = head[: -len(_END_OF_HEAD)].decode("latin-1").split("\r\n")
        fields = {
            name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)
        }
        size = fields.get("content-length", "")
        if not size.isdecimal():
            raise ValueError(size)
        content = await self._reader.readexactly(int(size))
        self.goes_on = fields.get("connection", "").lower() != "close"
        return UnixResponse(int(first.split(" ", 2)[1]), content)

    def close(self) -> None:
        """Let go of it."""
        self._writer.close()

    async def closed(self) -> None:
        """Wait until it is closed."""
        with suppress(OSError):
            await self._writer.wait_closed()


def _target(url: str, params: Mapping[str, Any] | None) -> str:
    plain = {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in (params or {}).items()
    }
    target = f"{url}?{urlencode(plain, doseq=True)}" if plain else url
    if len(target) > _LONGEST_ADDRESS:
        raise httpx.InvalidURL("too long")
    return target


def _written(method: str, target: str, headers: Mapping[str, str], content: str | None) -> bytes:
    body = b"" if content is None else content.encode()
    lines = [f"{method} {target} HTTP/1.1", "host: engram"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if content is not None:
        lines.append(f"content-length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("ascii") + body
