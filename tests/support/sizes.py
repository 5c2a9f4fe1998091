"""How many examples a property is tried with."""

from __future__ import annotations

from typing import Final

from hypothesis import settings

_FULL: Final = "full"
_TIMES: Final = 10


def examples(meant: int) -> int:
    """Half of what is meant with each change, ten times as many at full size.

    The command for that is ``uv run poe properties``.
    """
    full = settings.get_current_profile_name() == _FULL
    return meant * _TIMES if full else (meant + 1) // 2
