"""Opening a memory without ``await``: for scripts and notebooks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import wraps
from typing import ParamSpec

from engram.client.connect import connect
from engram.client.store import MemoryStore
from engram.client.sync_store import SyncMemoryStore
from engram.embedded.open import open as open_embedded

Given = ParamSpec("Given")


def _opening(
    opener: Callable[Given, AbstractAsyncContextManager[MemoryStore]],
) -> Callable[Given, SyncMemoryStore]:
    @wraps(opener)
    def opened(*args: Given.args, **kwargs: Given.kwargs) -> SyncMemoryStore:
        return SyncMemoryStore.opened(opener(*args, **kwargs))

    return opened


open_sync = _opening(open_embedded)
"""As :func:`engram.open`; what it returns is open, and closes with its ``with`` block."""
connect_sync = _opening(connect)
"""As :func:`engram.connect`; what it returns is open, and closes with its ``with`` block."""
