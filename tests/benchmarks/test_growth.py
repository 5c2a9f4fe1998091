"""What people wait for does not grow with what others have stored.

``uv run python -m tests.benchmarks.growth`` measures a million memories.
"""

from __future__ import annotations

import pytest

from tests.benchmarks.growth import in_processes

MOST = 2.0
"""Of what it takes where nobody else has stored anything; others may disturb either of both."""

pytestmark = [pytest.mark.benchmark, pytest.mark.slow, pytest.mark.timeout(600)]


def test_nobody_waits_for_what_others_have_stored() -> None:
    """Among 50 users of 400 memories, all takes at most twice what it takes one user alone."""
    alone, among = in_processes("1x400"), in_processes("50x400")
    assert among.recall <= MOST * alone.recall
    assert among.encode <= MOST * alone.encode
    assert among.consolidation <= MOST * alone.consolidation
    assert among.decay <= MOST * alone.decay + 0.1
