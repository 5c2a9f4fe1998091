"""What Engram asks of a Temporal namespace: how long runs are kept, how they are found."""

from __future__ import annotations

from datetime import timedelta

from google.protobuf.duration_pb2 import Duration
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.namespace.v1 import NamespaceConfig
from temporalio.api.operatorservice.v1 import (
    AddSearchAttributesRequest,
    ListSearchAttributesRequest,
)
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, UpdateNamespaceRequest
from temporalio.client import Client

from engram.contracts.names import SESSION_ATTRIBUTE, STAGE_ATTRIBUTE, USER_ATTRIBUTE
from engram.errors import EmbeddedStartFailed

SEARCH_ATTRIBUTES = (USER_ATTRIBUTE, SESSION_ATTRIBUTE, STAGE_ATTRIBUTE)


async def prepare_namespace(client: Client, retention: timedelta) -> None:
    """Set retention and register search attributes where they are not so yet.

    Raises:
        EmbeddedStartFailed: the server kept another retention than it was told.
        temporalio.service.RPCError: the server refused.
    """
    if await _retention(client) != retention:
        kept = Duration()
        kept.FromTimedelta(retention)
        await client.workflow_service.update_namespace(
            UpdateNamespaceRequest(
                namespace=client.namespace,
                config=NamespaceConfig(workflow_execution_retention_ttl=kept),
            )
        )
        if (found := await _retention(client)) != retention:
            raise EmbeddedStartFailed(
                f"Temporal keeps runs for {found}, not for {retention} as it was told.",
                hint="Choose another ENGRAM_TEMPORAL_RETENTION.",
            )
    listed = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=client.namespace)
    )
    missing = [name for name in SEARCH_ATTRIBUTES if name not in listed.custom_attributes]
    if missing:
        # A folder of an earlier version of Engram: the server registers attributes
        # by itself only when it makes the database.
        await client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(
                namespace=client.namespace,
                search_attributes=dict.fromkeys(
                    missing, IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD
                ),
            )
        )


async def _retention(client: Client) -> timedelta:
    answer = await client.workflow_service.describe_namespace(
        DescribeNamespaceRequest(namespace=client.namespace)
    )
    return answer.config.workflow_execution_retention_ttl.ToTimedelta()
