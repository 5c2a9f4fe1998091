"""What Temporal does not find: a run that ended, or the namespace that nobody made."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs
from temporalio.client import Client

from engram.domain.scope import Scope
from engram.errors import ReviewNotFound, TemporalNotSetUp
from engram.temporal.gateway import WorkflowGateway
from engram.temporal.reviews import ReviewGateway
from tests.support.stores import worker_settings

# Temporal says which workflow it did not find, and so who that is of.
CALLED_LIKE_IT = Scope.of("namespace", "namespace-bot")


async def test_whoever_is_called_namespace_is_told_what_others_are(temporal_client: Client) -> None:
    """No session runs, nothing was erased, no review waits: no word of a missing namespace."""
    gateway = WorkflowGateway(temporal_client, worker_settings())
    reviews = ReviewGateway(temporal_client, worker_settings())
    assert await gateway.end_session(CALLED_LIKE_IT, "s1") is None
    assert await gateway.erased(CALLED_LIKE_IT) is None
    with pytest.raises(ReviewNotFound):
        await reviews.answer(CALLED_LIKE_IT, "11111111-1111-5111-8111-111111111111", "both")
    with capture_logs() as told:
        await reviews.changed(CALLED_LIKE_IT, [("a memory", "another")])
    assert told == []


async def test_a_missing_namespace_is_told(temporal_client: Client) -> None:
    """Of Temporal's own namespace the caller hears that it is missing, and what names it."""
    nowhere = await Client.connect(
        temporal_client.service_client.config.target_host,
        namespace="nowhere",
        data_converter=temporal_client.data_converter,
    )
    gateway = WorkflowGateway(nowhere, worker_settings())
    with pytest.raises(TemporalNotSetUp, match="ENGRAM_TEMPORAL_NAMESPACE"):
        await gateway.end_session(CALLED_LIKE_IT, "s1")
