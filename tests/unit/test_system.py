"""What the operating system tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from engram.system import local_zone


@pytest.mark.parametrize(
    ("told", "leads_to", "name"),
    [
        (None, "/usr/share/zoneinfo/Asia/Tokyo", "Asia/Tokyo"),
        (None, "../usr/share/zoneinfo/America/Argentina/Salta", "America/Argentina/Salta"),
        (None, "/var/db/timezone/zoneinfo/Europe/Lisbon", "Europe/Lisbon"),
        ("Europe/Lisbon", "/usr/share/zoneinfo/Asia/Tokyo", "Europe/Lisbon"),
        (":Europe/Lisbon", None, "Europe/Lisbon"),
        (":/usr/share/zoneinfo/Europe/Lisbon", None, "Europe/Lisbon"),
        # No name: rules of one's own, a file of one's own, or nothing at all.
        ("JST-9", "/usr/share/zoneinfo/Asia/Tokyo", None),
        (None, "/etc/here", None),
        (None, None, None),
    ],
)
def test_the_machine_tells_the_name_of_its_zone(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    told: str | None,
    leads_to: str | None,
    name: str | None,
) -> None:
    """By TZ, else by where the link of the system leads; None where that is no name."""
    monkeypatch.delenv("TZ", raising=False)
    if told is not None:
        monkeypatch.setenv("TZ", told)
    link = tmp_path / "localtime"
    if leads_to is not None:
        link.symlink_to(leads_to)
    assert local_zone(link) == name


def test_a_machine_without_a_link_has_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy of a zone says not whose it is."""
    monkeypatch.delenv("TZ", raising=False)
    copied = tmp_path / "localtime"
    copied.write_bytes(b"TZif2")
    assert local_zone(copied) is None
