"""Searching the raw bytes of a folder, and copying one; files are read without their holes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

_BLOCK = 1 << 16
SPELLINGS = ("utf-8", "utf-16-le", "utf-16-be")


def holders(folder: Path, words: Iterable[str]) -> dict[str, set[str]]:
    """Which files hold which of the words, in any case and spelling; without those that hold none.

    Neither Temporal nor the engine compresses what it stores so that this could
    miss it: the engine's LZ4 leaves a word whole where it comes first.
    """
    wanted = {word: [word.lower().encode(one) for one in SPELLINGS] for word in words}
    found: dict[str, set[str]] = {}
    for file in sorted(folder.rglob("*")):
        if not file.is_file():
            continue
        content = b"\0".join(stretch for _, stretch in _written(file)).lower()
        held = {word for word, forms in wanted.items() if any(form in content for form in forms)}
        if held:
            found[str(file.relative_to(folder))] = held
    return found


def copy_folder(source: Path, target: Path) -> Path:
    """A copy that takes as little of the disk as the original; without sockets.

    What the target has already is written over.
    """

    def copy(one: str, other: str) -> None:
        with Path(other).open("wb") as copied:
            for at, stretch in _written(Path(one)):
                copied.seek(at)
                copied.write(stretch)
            copied.truncate(Path(one).stat().st_size)
        shutil.copymode(one, other)

    unwanted = shutil.ignore_patterns("*.sock")
    shutil.copytree(source, target, copy_function=copy, ignore=unwanted, dirs_exist_ok=True)
    return target


def _written(file: Path) -> Iterator[tuple[int, bytes]]:
    """What is not zero, in stretches, and where; the engine's files are mostly zeros or holes."""
    with file.open("rb") as opened:
        at, stretch = 0, bytearray()
        while (start := _data(opened, at + len(stretch))) is not None:
            if start != at + len(stretch):
                yield at, bytes(stretch)
                at, stretch = start, bytearray()
            opened.seek(start)
            block = opened.read(_BLOCK)
            if block.count(0) < len(block):
                stretch += block
            else:
                yield at, bytes(stretch)
                at, stretch = start + len(block), bytearray()
        yield at, bytes(stretch)


def _data(opened: BinaryIO, at: int) -> int | None:
    """Where the next data are from there on; None: nowhere."""
    try:
        found = os.lseek(opened.fileno(), at, os.SEEK_DATA)
    except OSError:
        return None
    return found if found < os.fstat(opened.fileno()).st_size else None
