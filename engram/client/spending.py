"""Reading what consolidations noted that they spent: one listing, no workflow is asked."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import TypeAdapter, ValidationError
from temporalio.client import Client, WorkflowExecution
from temporalio.exceptions import TemporalError
from temporalio.service import RPCError

from engram.client.failures import typed
from engram.contracts import names
from engram.contracts.lifecycle import Population, variant_of
from engram.contracts.usage import ModelSpent, UserUsage, by_model, in_all
from engram.domain.scope import Scope

_PARTS: TypeAdapter[tuple[ModelSpent, ...]] = TypeAdapter(tuple[ModelSpent, ...])


class SpendingReader:
    """Sums what the consolidations of a user noted on their runs.

    Args:
        client: Connected to the namespace that they run in.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    async def of(self, scope: Scope) -> UserUsage:
        """What models were asked for this user, in all runs that Temporal still knows.

        A pass that is going on is counted when it ends.

        Raises:
            TemporalUnavailable: Temporal cannot be reached.
        """
        # Reading test turns costs as much as reading any.
        of_tests = names.consolidation_workflow_id(
            scope, variant_of(Population.TEST, dry_run=False)
        )
        # A run that went on in a new one handed its sum to it.
        query = (
            f'WorkflowId IN ("{names.consolidation_workflow_id(scope)}", "{of_tests}")'
            ' AND ExecutionStatus != "ContinuedAsNew"'
        )
        parts: list[ModelSpent] = []
        runs, since = 0, list[datetime]()
        try:
            async for run in self._client.list_workflows(query):
                runs += 1
                since.append(run.start_time)
                parts += await _noted(run)
        except (RPCError, TemporalError) as error:
            raise typed(error) from error
        models = by_model(parts)
        total = in_all(models).model_dump()
        return UserUsage(**total, models=models, runs=runs, since=min(since, default=None))


async def _noted(run: WorkflowExecution) -> tuple[ModelSpent, ...]:
    noted: Any = await run.memo_value(names.SPENT_MEMO, ())
    try:
        return _PARTS.validate_python(noted)
    except ValidationError:
        # Another program may set memos too.
        return ()
