"""Engram: durable memory for LLM applications.

The names below load on first use, so that importing Engram starts nothing and
costs nothing, and so that Temporal's sandbox can pass the package through.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engram.client.connect import connect as connect
    from engram.client.memory import MemoryStore as MemoryStore
    from engram.domain.turns import Turn as Turn
    from engram.embedded.open import open as open
    from engram.settings import Settings as Settings
    from engram.sync import connect_sync as connect_sync
    from engram.sync import open_sync as open_sync

_HOMES = {
    "open": "engram.embedded.open",
    "connect": "engram.client.connect",
    "MemoryStore": "engram.client.memory",
    "Turn": "engram.domain.turns",
    "Settings": "engram.settings",
    "open_sync": "engram.sync",
    "connect_sync": "engram.sync",
}
__all__ = ["MemoryStore", "Settings", "Turn", "connect", "connect_sync", "open", "open_sync"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'engram' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
