"""The payloads in what a Temporal server tells as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def payloads(told: Any, *place: str) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Each payload, and the names of the fields that lead to it."""
    if isinstance(told, list):
        for one in told:
            yield from payloads(one, *place)
    elif isinstance(told, dict):
        if "encoding" in (told.get("metadata") or {}):
            yield place, told
            return
        for name, one in told.items():
            yield from payloads(one, *place, name)
