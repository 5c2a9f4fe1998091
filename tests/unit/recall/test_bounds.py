"""How much one question may name."""

from __future__ import annotations

import pytest

from engram.errors import InvalidQuery
from engram.recall import request


def test_as_many_names_as_are_allowed_are_taken_and_not_one_more() -> None:
    """The bound itself is allowed; the error says what is."""
    request._check_count(["name"] * 32)  # noqa: SLF001 - the bound itself
    with pytest.raises(InvalidQuery, match="Too many"):
        request._check_count(["name"] * 33)  # noqa: SLF001 - same
