"""What a memory store can do beyond reading and writing turns, one operation each.

An operation is named once, with the types of its question and its answer.
Handlers answer it in process; the HTTP application offers it, and an attached
process asks for it, from the same description.

The modules load on first use (``operations.digests.PROFILE``): who asks for one operation
of another process does not load what carries the others out.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from engram.operations import admin as admin
    from engram.operations import audit as audit
    from engram.operations import digests as digests
    from engram.operations import lifecycle as lifecycle
    from engram.operations import memories as memories
    from engram.operations import progress as progress
    from engram.operations import recall as recall
    from engram.operations import removal as removal
    from engram.operations import reviews as reviews
    from engram.operations import transfer as transfer
    from engram.operations import trials as trials
    from engram.operations import turns as turns


def __getattr__(name: str) -> ModuleType:
    full = f"{__name__}.{name}"
    if name.startswith("_") or find_spec(full) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(full)
