"""Exports are their owner's alone, follow no link, and leave nothing half written."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from engram.client.transfer import TransferMethods
from engram.errors import InvalidInput, StorageUnavailable
from engram.system import private_draft


@contextmanager
def open_handed() -> Iterator[None]:
    """With rights by default for everybody."""
    before = os.umask(0)
    try:
        yield
    finally:
        os.umask(before)


class Exporting(TransferMethods):
    """Exports these lines, and fails where one is missing."""

    scope: Any = None
    list: Any = None
    _call: Any = None

    def __init__(self, *lines: str | None) -> None:
        self.lines = lines

    async def export_lines(self, **_: Any) -> AsyncIterator[str]:
        """The lines."""
        for line in self.lines:
            if line is None:
                raise StorageUnavailable("The store is away.")
            yield line


def files_in(folder: Path) -> list[str]:
    """Their names."""
    return sorted(path.name for path in folder.iterdir())


async def test_an_export_is_its_owners_alone(tmp_path: Path) -> None:
    """Mode 0600 whatever the umask, also where a file was that others could read."""
    target = tmp_path / "ada.jsonl"
    target.write_text("old")
    target.chmod(0o644)
    with open_handed():
        assert await Exporting("head", "memory", "end").export_file(target) == 1
    assert target.stat().st_mode & 0o777 == 0o600
    assert target.read_text() == "head\nmemory\nend\n"
    assert files_in(tmp_path) == ["ada.jsonl"]


async def test_an_export_follows_no_link(tmp_path: Path) -> None:
    """A link at the draft's name, or at the target's own, leads nowhere: what it names stays."""
    precious = tmp_path / "precious"
    precious.write_text("mine")
    for name in ("ada.jsonl.part", "ada.jsonl"):
        (tmp_path / name).symlink_to(precious)
    target = tmp_path / "ada.jsonl"
    await Exporting("head", "end").export_file(target)
    assert precious.read_text() == "mine"
    assert not target.is_symlink()
    assert target.read_text() == "head\nend\n"


async def test_a_draft_never_stays(tmp_path: Path) -> None:
    """One that failed goes at once, one of a killed process with the next; the old file stays."""
    target = tmp_path / "ada.jsonl"
    await Exporting("head", "end").export_file(target)
    with pytest.raises(StorageUnavailable):
        await Exporting("head", None).export_file(target)
    assert files_in(tmp_path) == ["ada.jsonl"]
    (tmp_path / "ada.jsonl.part").write_text("left by a killed process")
    await Exporting("new", "end").export_file(target)
    assert target.read_text() == "new\nend\n"
    assert files_in(tmp_path) == ["ada.jsonl"]


@pytest.mark.parametrize("place", ["folder", "gone/ada.jsonl"])
async def test_where_no_file_can_be_nothing_is_left(tmp_path: Path, place: str) -> None:
    """A folder, or one that is not there: a typed error, and no draft with memories beside it."""
    (tmp_path / "folder").mkdir()
    with pytest.raises(InvalidInput, match="cannot be written"):
        await Exporting("head", "memory", "end").export_file(tmp_path / place)
    assert files_in(tmp_path) == ["folder"]


@pytest.mark.parametrize("place", ["pipe", "link"])
async def test_what_is_no_file_is_not_replaced_by_one(tmp_path: Path, place: str) -> None:
    """A pipe that somebody reads, and a link such as /dev/stdout, are there afterwards."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/proc/self/fd/1")
    with pytest.raises(InvalidInput, match="a device or a pipe lies there"):
        await Exporting("head", "memory", "end").export_file(tmp_path / place)
    assert files_in(tmp_path) == ["link", "pipe"]
    assert (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "link").is_symlink()


async def test_a_target_that_becomes_a_folder_meanwhile_leaves_nothing(tmp_path: Path) -> None:
    """Also where it fails only as the draft takes its place."""
    target = tmp_path / "ada.jsonl"
    writing = private_draft(target)
    writing.__enter__().write("memory")
    target.mkdir()
    with pytest.raises(IsADirectoryError):
        writing.__exit__(None, None, None)
    assert files_in(tmp_path) == ["ada.jsonl"]


def test_two_exports_into_one_file_do_not_mix(tmp_path: Path) -> None:
    """Who began first is told; what becomes the file is whole."""
    target = tmp_path / "ada.jsonl"
    first, second = private_draft(target), private_draft(target)
    first.__enter__().write("first")
    second.__enter__().write("second")
    with pytest.raises(FileExistsError):
        first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    assert target.read_text() == "second"
    assert files_in(tmp_path) == ["ada.jsonl"]
