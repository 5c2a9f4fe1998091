"""Parts that are installed only where they are needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from engram.errors import EmbeddedPartMissing


@contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Imports inside need the packages of this extra.

    Raises:
        EmbeddedPartMissing: naming the package and how to install it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise EmbeddedPartMissing(
            f"The package {error.name!r} is not installed.",
            allowed=f"pip install 'engram-memory[{extra}]'",
            hint="A program that only talks to servers uses engram.connect and needs no extra.",
            details={"extra": extra, "package": error.name},
        ) from error
