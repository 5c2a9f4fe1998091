"""What `engram ui` leaves to other users of the machine: no address, and no port beside its own."""

from __future__ import annotations

import socket
import stat
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from engram.cli.serving import address_told, browser_opened
from engram.errors import AccessDenied, InvalidInput
from engram.server.run import loopback_listeners
from engram.server.ui import UiDoor
from engram.system import new_secret


def test_the_browser_is_called_without_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other users read what programs are called with; the file with the address is its user's."""
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    door = UiDoor.at(1, new_secret)
    with browser_opened(door.first_url):
        (called,) = opened
        page = Path(urlsplit(called).path)
        assert door.first_url.rsplit("/", 1)[1] not in called
        assert door.first_url in page.read_text()
        assert stat.S_IMODE(page.stat().st_mode) == 0o600
        assert stat.S_IMODE(page.parent.stat().st_mode) == 0o700
    assert not page.exists()
    assert door.first_url.rsplit("/", 1)[1] not in repr(door)


def test_an_address_is_handed_on_by_a_file_of_its_user_s(tmp_path: Path) -> None:
    """Nobody else can read the file, what is printed does not tell, and the end removes it."""
    file = tmp_path / "codec.address"
    file.write_text("of one that was killed")
    file.chmod(0o644)
    with address_told("http://127.0.0.1:1/secret", file) as told:
        assert file.read_text() == "http://127.0.0.1:1/secret\n"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert "secret" not in told
        with address_told("http://127.0.0.1:2/other", file):
            pass
        assert not file.exists()
        file.write_text("of another")
    assert file.read_text() == "of another"
    with address_told("http://127.0.0.1:1/secret", None) as told:
        assert told == "http://127.0.0.1:1/secret"
    with (
        pytest.raises(InvalidInput, match="cannot be written") as refused,
        address_told("http://127.0.0.1:1/secret", tmp_path / "none" / "file"),
    ):
        pass
    assert "secret" not in str(refused.value)


def test_nobody_else_answers_at_the_name_of_the_page() -> None:
    """Browsers try both loopback addresses: at our port, neither is left to another program."""
    with loopback_listeners() as listeners:
        port = listeners[0].getsockname()[1]
        for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            with socket.socket(family) as other:
                other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                # In use; or, for machines without IPv6, an address that nobody has.
                with pytest.raises(OSError, match=r"^\[Errno (98|99|48|49)\]"):
                    other.bind((host, port))


async def test_only_opening_the_address_uses_it_up() -> None:
    """A look by another method, as programs that check links have, leaves it to the browser."""
    door = UiDoor.at(1, new_secret)
    address = urlsplit(door.first_url)
    asked = {
        "type": "http",
        "path": address.path,
        "headers": [(b"host", address.netloc.encode())],
    }
    for method in ("HEAD", "POST", "OPTIONS"):
        with pytest.raises(AccessDenied, match="only opened"):
            await door.admit({**asked, "method": method})
    await door.admit({**asked, "method": "GET"})
    with pytest.raises(AccessDenied, match="has been used"):
        await door.admit({**asked, "method": "GET"})
