"""Free ports, and ports that are not."""

import socket

import pytest

from engram.embedded.folder import LOOPBACK, free_ports, require_free
from engram.errors import PortInUse


def test_free_ports_are_different_and_usable() -> None:
    """Each can be bound, and none is handed out twice at once."""
    ports = free_ports(20)
    assert len(set(ports)) == 20
    for port in ports:
        require_free(port, "ENGRAM_TEMPORAL_PORT")


@pytest.mark.parametrize("host", [LOOPBACK, "0.0.0.0"])  # noqa: S104 - that is the case to test
def test_a_taken_port_is_named_with_its_setting(host: str) -> None:
    """A listener on the port, on any interface, gives an error that names the setting."""
    with socket.socket() as taken:
        taken.bind((host, 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PortInUse, match=rf"{port}.*ENGRAM_TEMPORAL_UI_PORT") as caught:
            require_free(port, "ENGRAM_TEMPORAL_UI_PORT")
    assert caught.value.details["port"] == port
