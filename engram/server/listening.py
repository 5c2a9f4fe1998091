"""Where the HTTP API listens: found out, and said if it cannot be, before anything starts."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Final

from engram.errors import InvalidSettings, PortInUse
from engram.ports import Clock
from engram.server.keys import KeyFile, KeyRing
from engram.settings import Settings
from engram.system import system_clock

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
