"""Where the HTTP API listens: found out, and said if it cannot be, before anything starts.

What answers is loaded when somebody connects.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from importlib import import_module
from importlib.util import find_spec
from ipaddress import ip_address
from typing import Any, Final

import structlog

from engram.errors import InvalidSettings, PortInUse, needs_extra
from engram.ports import Clock
from engram.server.keys import KeyFile, KeyRing
from engram.settings import Settings
from engram.system import system_clock

# --- what answers, loaded when somebody asks

_log = structlog.get_logger("engram.server")


@asynccontextmanager
async def answering_when_asked(
    listener: socket.socket,
    answer: Callable[[Any], AbstractAsyncContextManager[object]],
    *,
    extra: str,
    lost: str,
) -> AsyncIterator[None]:
    """Answer at a socket while the block runs; what answers is loaded with the first connection.

    Most programs stay alone in their folder, and it would be a quarter of what they start.

    Args:
        listener: Where others connect.
        answer: Given the module :mod:`engram.server.run`, answers there.
        extra: That the packages come with.
        lost: What the log says if it fails.

    Raises:
        EmbeddedPartMissing: a package is missing.
    """
    for package in ("fastapi", "uvicorn"):
        if find_spec(package) is None:
            with needs_extra(extra):
                raise ModuleNotFoundError(name=package)
    leaving = asyncio.Event()
    serving = asyncio.create_task(_answer_when_asked(listener, answer, lost, leaving))
    try:
        yield
    finally:
        leaving.set()
        await serving


async def _answer_when_asked(
    listener: socket.socket,
    answer: Callable[[Any], AbstractAsyncContextManager[object]],
    lost: str,
    leaving: asyncio.Event,
) -> None:
    try:
        if not await _is_asked(listener, leaving):
            return
        # In a thread: the loop has a memory to run meanwhile.
        run = await asyncio.to_thread(import_module, "engram.server.run")
        async with answer(run):
            await leaving.wait()
    except Exception:
        _log.exception(lost)
        # Whoever connects would wait for ever.
        listener.close()
        raise


async def _is_asked(listener: socket.socket, leaving: asyncio.Event) -> bool:
    """Wait until somebody connects; False if the owner leaves before."""
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(listener, asked.set)
    try:
        return await asked_before(asked, leaving)
    finally:
        loop.remove_reader(listener)


async def asked_before(asked: asyncio.Event, leaving: asyncio.Event) -> bool:
    """Wait until somebody asks; False if whoever would answer leaves before."""
    waiting = [asyncio.create_task(event.wait()) for event in (asked, leaving)]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
    return asked.is_set()


# --- where it listens

# Connections that nobody took yet.
_WAITING: Final = 128


@contextmanager
def public_listener(settings: Settings, clock: Clock = system_clock) -> Iterator[socket.socket]:
    """Listen at ``http_host`` and ``http_port`` of the settings; who connects early waits.

    Args:
        settings: Where to listen, and where the keys are.
        clock: The present, for keys that expire.

    Raises:
        InvalidSettings: this machine has no such address, or others than this machine
            could reach it and no key opens anything.
        PortInUse: another program has the port.
        KeysUnusable: the keys cannot be read.
    """
    host = settings.http_host
    if not is_loopback(host) and not KeyRing(KeyFile(settings.keys_path), clock).has_valid():
        raise InvalidSettings(
            f"ENGRAM_HTTP_HOST is {host}, which other machines reach, and there is no valid API "
            "key.",
            allowed="127.0.0.1, or any address once there is a key",
            hint="`engram keys create NAME --access write` makes one.",
            details={"keys_file": str(settings.keys_path)},
        )
    with listening_at(host, settings.http_port) as listener:
        yield listener


def url_of(settings: Settings) -> str:
    """The address of the HTTP API."""
    host = f"[{settings.http_host}]" if ":" in settings.http_host else settings.http_host
    return f"http://{host}:{settings.http_port}"


def is_loopback(host: str) -> bool:
    """Whether a name or address to listen on is reached from this machine only."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def listening_at(host: str, port: int) -> Iterator[socket.socket]:
    """Listen at an address and port; 0 is any free one.

    Raises:
        InvalidSettings: this machine has no such address.
        PortInUse: another program has the port.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise _no_address(host) from error
    with socket.socket(family, kind, protocol) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
            # Two programs may bind a port on some systems; only one can listen.
            listener.listen(_WAITING)
        except OSError as error:
            if error.errno == errno.EADDRNOTAVAIL:
                raise _no_address(host) from error
            raise PortInUse(
                f"Port {port} of {host} cannot be used ({error.strerror}).",
                allowed="a port that no other program listens on",
                hint="Set ENGRAM_HTTP_PORT to another one, or ENGRAM_HTTP_ENABLED=false for no "
                "HTTP API.",
                details={"port": port, "host": host},
            ) from error
        listener.setblocking(False)
        yield listener


def _no_address(host: str) -> InvalidSettings:
    return InvalidSettings(
        f"ENGRAM_HTTP_HOST is {host}, which is no address of this machine.",
        allowed="127.0.0.1, 0.0.0.0 for all addresses, or one that this machine has",
    )
