"""The measurement of recall by size runs, at a size that takes no time."""

import pytest

from tests.benchmarks.recall_scale import WAYS, measure

pytestmark = [pytest.mark.benchmark, pytest.mark.slow]


@pytest.mark.parametrize("way", WAYS)
async def test_every_way_is_measured(way: str) -> None:
    """Figures for recall, for the engine alone and for the other local mode."""
    found = await measure(way, 200)
    assert 0 < found["p50"] <= found["p99"]
