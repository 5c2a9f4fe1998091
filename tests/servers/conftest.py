"""A cluster whose nodes a test may kill; afterwards all of them are back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.qdrant_servers import Cluster, Entrance, cluster_of


@pytest.fixture(scope="module")
def three_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three nodes, for all tests of a module."""
    with cluster_of(3, tmp_path_factory.mktemp("nodes")) as cluster:
        yield cluster


@pytest.fixture
def cluster(three_nodes: Cluster) -> Cluster:
    """The same, all of them there and complete, as the test before left them."""
    for node in three_nodes.nodes:
        if not node.alive():
            node.start()
    three_nodes.wait_until_whole()
    return three_nodes


@pytest.fixture
async def entrance(cluster: Cluster) -> AsyncIterator[Entrance]:
    """The one address that a program knows of the cluster."""
    async with Entrance(cluster.nodes) as opened:
        yield opened
