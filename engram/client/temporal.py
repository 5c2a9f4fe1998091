"""Reaching Engram's workflows by name: update-with-start, signal-with-start, queries."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, TypeVar

from pydantic import BaseModel
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowQueryRejectedError,
)
from temporalio.common import (
    QueryRejectCondition,
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
)
from temporalio.exceptions import TemporalError
from temporalio.service import RPCError, RPCStatusCode

from engram.client.failures import typed
from engram.client.patience import asked_again, patiently
from engram.contracts import names
from engram.contracts.consolidation import (
    ConsolidationPolicy,
    ConsolidationReport,
    ConsolidationState,
)
from engram.contracts.erasure import ErasureInput, ErasureReceipt
from engram.contracts.forgetting import ForgetInput, ForgetReceipt
from engram.contracts.lifecycle import variant_of
from engram.contracts.sessions import (
    ConsolidationRequest,
    EncodeReply,
    EncodeRequest,
    EndSession,
    RememberedTurn,
    SessionPolicy,
    SessionState,
    SessionSummary,
)
from engram.domain.buffer import BufferPolicy
from engram.domain.scope import Scope
from engram.errors import TemporalNotSetUp
from engram.settings import Settings

_USER = SearchAttributeKey.for_keyword(names.USER_ATTRIBUTE)
_SESSION = SearchAttributeKey.for_keyword(names.SESSION_ATTRIBUTE)
_STAGE = SearchAttributeKey.for_keyword(names.STAGE_ATTRIBUTE)
_AT_ONCE = 0.1

Reply = TypeVar("Reply", bound=BaseModel)


class WorkflowGateway:
    """Starts and asks workflows; every failure comes out typed.

    Args:
        client: Connected, with the pydantic data converter.
        settings: Queues, limits, and the policies that new workflows are started with.
    """

    def __init__(self, client: Client, settings: Settings) -> None:
        self._client = client
        self._settings = settings

    async def encode(self, scope: Scope, session_id: str, request: EncodeRequest) -> EncodeReply:
        """Have the session store turns, starting it if it does not run."""
        state = SessionState(
            scope=scope, session_id=session_id, policy=session_policy(self._settings)
        )
        return await self._update_with_start(
            names.ENCODE_UPDATE,
            request,
            EncodeReply,
            workflow=names.SESSION_WORKFLOW,
            workflow_id=names.session_workflow_id(scope, session_id),
            state=state,
            attributes={_USER: scope.tenant, _SESSION: session_id, _STAGE: "session"},
            summary=f"session {session_id} of {scope.tenant}",
            patience=self._settings.encode_timeout,
        )

    async def end_session(self, scope: Scope, session_id: str) -> SessionSummary | None:
        """End a running session; None when it does not run."""
        workflow_id = names.session_workflow_id(scope, session_id)
        handle = self._client.get_workflow_handle(workflow_id)

        async def attempt() -> SessionSummary | None:
            try:
                ended: SessionSummary = await handle.execute_update(
                    names.END_SESSION_UPDATE, EndSession(), result_type=SessionSummary
                )
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND and not isinstance(
                    typed(error), TemporalNotSetUp
                ):
                    return None
                raise
            return ended

        return await patiently(attempt, workflow_id, self._settings.encode_timeout)

    async def working_memory(
        self, scope: Scope, session_id: str, *, include_test: bool = False
    ) -> list[RememberedTurn]:
        """What a running session holds in mind; empty when it does not run."""
        handle = self._client.get_workflow_handle(names.session_workflow_id(scope, session_id))

        async def attempt() -> list[RememberedTurn]:
            try:
                turns: list[RememberedTurn] = await handle.query(
                    names.WORKING_MEMORY_QUERY,
                    result_type=list[RememberedTurn],
                    reject_condition=QueryRejectCondition.NOT_OPEN,
                )
            except WorkflowQueryRejectedError:
                return []
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND:
                    return []
                raise
            return turns

        turns = await asked_again(attempt)
        return [turn for turn in turns if include_test or not turn.is_test]

    async def request_consolidation(self, scope: Scope, request: ConsolidationRequest) -> None:
        """Signal the user's consolidation, starting it if it does not run."""
        variant = variant_of(request.population, dry_run=False)
        try:
            await self._client.start_workflow(
                names.CONSOLIDATION_WORKFLOW,
                self._consolidation(scope, request),
                id=names.consolidation_workflow_id(scope, variant),
                task_queue=self._settings.store_queue,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                start_signal=names.REQUEST_CONSOLIDATION_SIGNAL,
                start_signal_args=[request],
                search_attributes=_attributes({_USER: scope.tenant, _STAGE: "consolidation"}),
                static_summary=f"consolidation{variant} of {scope.tenant}",
            )
        except (RPCError, TemporalError) as error:
            raise typed(error) from error

    async def consolidate(self, scope: Scope, request: ConsolidationRequest) -> ConsolidationReport:
        """Run a pass that begins after this call, and wait for its report."""
        variant = variant_of(request.population, dry_run=False)
        return await self._update_with_start(
            names.CONSOLIDATE_UPDATE,
            request,
            ConsolidationReport,
            workflow=names.CONSOLIDATION_WORKFLOW,
            workflow_id=names.consolidation_workflow_id(scope, variant),
            state=self._consolidation(scope, request),
            attributes={_USER: scope.tenant, _STAGE: "consolidation"},
            summary=f"consolidation{variant} of {scope.tenant}",
            patience=None,
        )

    async def forget(self, scope: Scope, memory_id: str) -> ForgetReceipt:
        """Forget one memory, or wait for the run that does."""
        workflow_id = names.forgetting_workflow_id(scope, memory_id)

        async def attempt() -> ForgetReceipt:
            receipt: ForgetReceipt = await self._client.execute_workflow(
                names.FORGETTING_WORKFLOW,
                ForgetInput(
                    scope=scope,
                    memory_id=memory_id,
                    digests=self._settings.digests,
                ),
                id=workflow_id,
                task_queue=self._settings.store_queue,
                result_type=ForgetReceipt,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                search_attributes=_attributes({_USER: scope.tenant, _STAGE: "forgetting"}),
                static_summary=f"forget {memory_id}",
            )
            return receipt

        return await patiently(attempt, workflow_id, None)

    async def erase(self, scope: Scope) -> ErasureReceipt:
        """Erase everything of a user, or wait for the erasure that runs."""
        workflow_id = names.erasure_workflow_id(scope)

        async def attempt() -> ErasureReceipt:
            receipt: ErasureReceipt = await self._client.execute_workflow(
                names.ERASURE_WORKFLOW,
                ErasureInput(scope=scope, store_timeout=self._settings.store_timeout),
                id=workflow_id,
                task_queue=self._settings.store_queue,
                result_type=ErasureReceipt,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                search_attributes=_attributes({_USER: scope.tenant, _STAGE: "erasure"}),
                static_summary=f"erase {scope.tenant}",
            )
            return receipt

        return await patiently(attempt, workflow_id, None)

    async def check(self) -> None:
        """Ask Temporal whether it answers.

        Raises:
            TemporalUnavailable: it does not.
            TemporalNotSetUp: its namespace is gone.
        """
        try:
            await self._client.workflow_service.describe_namespace(
                DescribeNamespaceRequest(namespace=self._client.namespace)
            )
        except RPCError as error:
            raise typed(error) from error

    def _consolidation(self, scope: Scope, request: ConsolidationRequest) -> ConsolidationState:
        return ConsolidationState(
            scope=scope,
            policy=ConsolidationPolicy.fixed_by(self._settings),
            population=request.population,
        )

    async def _update_with_start(
        self,
        update: str,
        request: BaseModel,
        reply: type[Reply],
        *,
        workflow: str,
        workflow_id: str,
        state: BaseModel,
        attributes: Mapping[SearchAttributeKey[str], str],
        summary: str,
        patience: timedelta | None,
    ) -> Reply:
        async def attempt() -> Reply:
            operation: WithStartWorkflowOperation[Any, Any] = WithStartWorkflowOperation(
                workflow,
                state,
                id=workflow_id,
                task_queue=self._settings.store_queue,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                search_attributes=_attributes(attributes),
                static_summary=summary,
            )
            try:
                answer: Reply = await self._client.execute_update_with_start_workflow(
                    update, request, start_workflow_operation=operation, result_type=reply
                )
            except (RPCError, TemporalError):
                # The start's own failure is the same one; unread, asyncio would report it.
                with contextlib.suppress(Exception):
                    async with asyncio.timeout(_AT_ONCE):
                        await operation.workflow_handle()
                raise
            return answer

        return await patiently(attempt, workflow_id, patience)


def _attributes(values: Mapping[SearchAttributeKey[str], str]) -> TypedSearchAttributes:
    return TypedSearchAttributes([SearchAttributePair(key, value) for key, value in values.items()])


def session_policy(settings: Settings) -> SessionPolicy:
    """The numbers a session starts with."""
    return SessionPolicy(
        buffer=BufferPolicy(
            turns=settings.buffer_turns,
            time=timedelta(minutes=settings.buffer_minutes),
            idle_time=timedelta(minutes=settings.session_idle_minutes),
            working_memory_turns=settings.working_memory_turns,
            working_memory_bytes=settings.working_memory_bytes,
        ),
        updates_per_run=settings.updates_per_run,
        store_timeout=settings.store_timeout,
    )
