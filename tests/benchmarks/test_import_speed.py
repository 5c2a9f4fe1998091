"""A history comes in at the bar: 1,500 turns a second on two cores, to searchable.

The full 50,000: uv run python -m tests.benchmarks.import_speed
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.import_speed import Speed, measure

MOST_HERE = 2.0
MOST_BESIDE = 2.5
"""Processor time per turn in bare works; 1.2 to 1.5 were measured on a busy machine."""

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]


def assert_fast(speed: Speed) -> None:
    """The bar where there are two cores to use; anywhere, no more processor time than it takes."""
    assert speed.own_ms <= MOST_HERE * speed.bare_ms
    assert speed.aside_ms <= MOST_BESIDE * speed.bare_ms
    if speed.quiet:
        assert speed.rate >= speed.bar


async def test_ten_thousand_turns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ten thousand turns, from a file to searchable, at the bar of this machine."""
    speed = await measure(10_000, tmp_path)
    with capsys.disabled():
        print(f"\n{speed}")  # noqa: T201 - the figures are what the test is run for
    assert_fast(speed)


@pytest.mark.slow
async def test_fifty_thousand_turns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As many as a busy year holds, at the same bar: it does not slow down on the way."""
    speed = await measure(50_000, tmp_path)
    with capsys.disabled():
        print(f"\n{speed}")  # noqa: T201 - same
    assert_fast(speed)
