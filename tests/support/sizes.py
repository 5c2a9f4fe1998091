"""How many examples a property is tried with."""

from __future__ import annotations

from typing import Final

from hypothesis import settings

_FULL: Final = "full"
_TIMES: Final = 10


def examples(usual: int) -> int:
    """So many with each change, ten times as many at full size: ``uv run poe properties``."""
    return usual * _TIMES if settings.get_current_profile_name() == _FULL else usual
