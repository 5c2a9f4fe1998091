"""Free ports on the loopback interface."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from engram.errors import PortInUse

LOOPBACK = "127.0.0.1"


def free_ports(count: int) -> tuple[int, ...]:
    """So many different ports that were free a moment ago.

    Nothing keeps them free: whoever uses them must be ready to lose one and ask again.
    """
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((LOOPBACK, 0))
        return tuple(int(each.getsockname()[1]) for each in sockets)


@contextmanager
def held(*ports: int | None) -> Iterator[None]:
    """Keep ports from others while nobody listens on them; connecting is refused.

    Without it the system may give one to whoever connects somewhere meanwhile.
    """
    with ExitStack() as stack:
        for port in ports:
            # One that somebody has already cannot be kept; starting there says so.
            with suppress(OSError):
                holding = stack.enter_context(socket.socket())
                holding.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                holding.bind((LOOPBACK, port or 0))
        yield


def require_free(port: int, setting: str) -> None:
    """Check that nobody listens on a port that settings ask for.

    Args:
        port: 1 to 65535.
        setting: The setting it comes from, to name in the error.

    Raises:
        PortInUse: somebody does, or this user may not listen there.
    """
    with socket.socket() as probe:
        # As the server does: connections that linger after a restart are no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
            probe.listen(1)
        except OSError as error:
            raise port_in_use(port, setting) from error


def port_in_use(port: int, setting: str) -> PortInUse:
    """The error for a port that cannot be had."""
    return PortInUse(
        f"Port {port}, which {setting} asks for, cannot be used on {LOOPBACK}.",
        allowed="a port that no other program listens on",
        hint=f"Stop the program that has it, or leave {setting} unset to get a free port.",
        details={"port": port, "setting": setting},
    )
