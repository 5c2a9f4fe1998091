"""Running passes through Temporal: one user's now, or everybody's."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Final, TypeVar

from pydantic import BaseModel
from temporalio.client import Client
from temporalio.common import (
    QueryRejectCondition,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
)
from temporalio.exceptions import TemporalError, WorkflowAlreadyStartedError
from temporalio.service import RPCError

from engram.contracts import names
from engram.contracts.attributes import attributes, precedence
from engram.contracts.consolidation import CLOSING_REASONS
from engram.contracts.lifecycle import (
    DecayReport,
    DecayState,
    LifecyclePolicy,
    MaintenanceProgress,
    MaintenanceReport,
    MaintenanceState,
    PassKind,
    PassReport,
    PromotionReport,
    PromotionState,
    variant_of,
)
from engram.contracts.messages import Population
from engram.contracts.session import ConsolidationRequest
from engram.domain.scope import Scope
from engram.errors import error_from_dict
from engram.settings import Settings
from engram.temporal.retry import (
    retry_until_answered,
    start_or_meet,
    until_ended,
    what_holds_up,
)

Report = TypeVar("Report", bound=BaseModel)
OfOneUser = TypeVar("OfOneUser", bound=PassReport)
# How long a pass may take to tell how far it is; its next task may have to end first.
_ANSWERED: Final = timedelta(seconds=3)


class PassRunner:
    """Starts passes and waits for their reports; every failure comes out typed.

    Args:
        client: Connected, with the pydantic data converter.
        settings: Queue, and the numbers that passes run by.
    """

    def __init__(self, client: Client, settings: Settings) -> None:
        self._client = client
        self._settings = settings

    async def decay(
        self,
        scope: Scope,
        *,
        population: Population = Population.REAL,
        dry_run: bool = False,
        at: datetime | None = None,
    ) -> DecayReport:
        """Run a decay pass that begins after this call, and wait for its report.

        Args:
            scope: Whose memories.
            population: Test memories, or all others.
            dry_run: Write nothing; say what would happen.
            at: Judge as of then; for dry runs.

        Raises:
            TemporalUnavailable: Temporal cannot be reached.
            EngramError: what stopped the pass; what it left is still due.
        """
        state = DecayState(
            scope=scope,
            policy=LifecyclePolicy.fixed_by(self._settings),
            population=population,
            dry_run=dry_run,
            began_at=at,
            at_asked=at is not None,
        )
        workflow_id = names.decay_workflow_id(scope, variant_of(population, dry_run=dry_run))
        described_by = attributes("decay", user=scope.tenant)
        return _checked(
            await self._run(names.DECAY_WORKFLOW, state, workflow_id, DecayReport, described_by)
        )

    async def promote(
        self,
        scope: Scope,
        *,
        population: Population = Population.REAL,
        dry_run: bool = False,
    ) -> PromotionReport:
        """Run a promotion pass that begins after this call, and wait for its report.

        Raises:
            TemporalUnavailable: Temporal cannot be reached.
            EngramError: what stopped the pass; what it left can be promoted later.
        """
        state = PromotionState(
            scope=scope,
            policy=LifecyclePolicy.fixed_by(self._settings),
            population=population,
            dry_run=dry_run,
        )
        workflow_id = names.promotion_workflow_id(scope, variant_of(population, dry_run=dry_run))
        described_by = attributes("promotion", user=scope.tenant)
        return _checked(
            await self._run(
                names.PROMOTION_WORKFLOW, state, workflow_id, PromotionReport, described_by
            )
        )

    async def maintain(
        self,
        kind: PassKind,
        *,
        population: Population = Population.REAL,
        dry_run: bool = False,
    ) -> MaintenanceReport:
        """Run a pass over all users now, and wait for its report.

        Raises:
            TemporalUnavailable: Temporal cannot be reached.
        """
        variant = variant_of(population, dry_run=dry_run)
        return await self._run(
            names.MAINTENANCE_WORKFLOW,
            maintenance_state(self._settings, kind, population=population, dry_run=dry_run),
            names.maintenance_workflow_id(kind.value, variant),
            MaintenanceReport,
            attributes("maintenance"),
        )

    async def progress(
        self,
        kind: PassKind,
        *,
        population: Population = Population.REAL,
        dry_run: bool = False,
    ) -> MaintenanceProgress | None:
        """How far the pass over all users is that runs; None where none does, or it cannot say."""
        variant = variant_of(population, dry_run=dry_run)
        handle = self._client.get_workflow_handle(
            self._of_store(names.maintenance_workflow_id(kind.value, variant))
        )
        try:
            told: MaintenanceProgress = await handle.query(
                names.MAINTENANCE_PROGRESS_QUERY,
                result_type=MaintenanceProgress,
                reject_condition=QueryRejectCondition.NOT_OPEN,
                rpc_timeout=_ANSWERED,
            )
        except (RPCError, TemporalError):
            return None
        return told

    async def session_ended(self, scope: Scope, request: ConsolidationRequest) -> None:
        """Promote what a session leaves lively; does not wait. Tiers are of one policy.

        Raises:
            TemporalUnavailable: Temporal cannot be reached.
        """
        rules = self._settings.lifecycle
        closing = request.reason in CLOSING_REASONS and request.session_id is not None
        if not closing or rules.policy_name(scope.namespace) != "energy":
            return
        state = PromotionState(
            scope=scope,
            policy=LifecyclePolicy.fixed_by(self._settings),
            only_sessions=True,
        )
        await start_or_meet(
            self._client,
            names.PROMOTION_WORKFLOW,
            state,
            workflow_id=self._of_store(names.promotion_workflow_id(scope)),
            task_queue=self._settings.store_queue,
            described_by=attributes("promotion", user=scope.tenant),
            summary=f"session end of {scope.tenant}",
            signal=(names.SESSION_ENDED_SIGNAL, request.session_id),
        )

    def _of_store(self, workflow_id: str) -> str:
        return names.in_store(self._settings.collection_prefix, workflow_id)

    async def _run(
        self,
        workflow: str,
        state: BaseModel,
        workflow_id: str,
        result: type[Report],
        described_by: TypedSearchAttributes,
    ) -> Report:
        workflow_id = self._of_store(workflow_id)

        async def attempt() -> Report:
            while True:
                try:
                    handle = await self._client.start_workflow(
                        workflow,
                        state,
                        id=workflow_id,
                        task_queue=self._settings.store_queue,
                        id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                        result_type=result,
                        search_attributes=described_by,
                        priority=precedence(described_by),
                        static_summary=workflow_id,
                    )
                except WorkflowAlreadyStartedError:
                    # It began before this call: what became due since may not be in it.
                    await until_ended(self._client, workflow_id)
                    continue
                answer: Report = await handle.result()
                return answer

        return await retry_until_answered(
            attempt,
            workflow_id,
            self._settings.encode_timeout,
            to_the_end=True,
            held_up_by=partial(what_holds_up, self._client, workflow_id),
        )


def maintenance_state(
    settings: Settings,
    kind: PassKind,
    *,
    population: Population = Population.REAL,
    dry_run: bool = False,
) -> MaintenanceState:
    """What a pass over all users starts with."""
    return MaintenanceState(
        kind=kind,
        policy=LifecyclePolicy.fixed_by(settings),
        population=population,
        dry_run=dry_run,
    )


def _checked(report: OfOneUser) -> OfOneUser:
    if report.failures:
        last = report.failures[-1]
        raise error_from_dict(last.error or {"code": last.code, "message": last.message})
    return report
