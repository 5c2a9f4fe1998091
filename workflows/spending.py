"""What a consolidation spends on models: summed in its report, noted where it outlives the run."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter, ValidationError
from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, TimeoutError

from engram.contracts import names
from engram.contracts.consolidation import ConsolidationReport, ExtractOutput, LinkOutput
from engram.contracts.usage import ModelSpent, by_model, in_all

_PARTS: TypeAdapter[tuple[ModelSpent, ...]] = TypeAdapter(tuple[ModelSpent, ...])
# A marker that runs of before the first release have in their histories; it goes with the next.
_NOTED = "consolidation-notes-spending"


def spent(output: ExtractOutput | LinkOutput) -> tuple[ModelSpent, ...]:
    """What an answer took; of an activity that did not count attempts, what it said of itself."""
    use = output.use
    if output.spent or use is None:
        return output.spent
    return (
        ModelSpent(
            model=use.model,
            attempts=1,
            requests=use.requests,
            input_tokens=use.input_tokens,
            output_tokens=use.output_tokens,
            cost_usd=use.cost_usd or 0.0,
            unpriced_requests=use.requests if use.cost_usd is None else 0,
        ),
    )


def spent_in_vain(error: ActivityError) -> tuple[ModelSpent, ...]:
    """What all attempts at a failed activity took, as far as the last of them left word."""
    cause = error.cause
    left: Any = ()
    if isinstance(cause, TimeoutError):
        left = next(iter(cause.last_heartbeat_details), ())
    elif isinstance(cause, ApplicationError) and cause.details:
        described = cause.details[0]
        details = described.get("details") if isinstance(described, dict) else None
        left = details.get("spent", ()) if isinstance(details, dict) else ()
    try:
        return _PARTS.validate_python(left)
    except ValidationError:
        return ()


def with_models(part: ConsolidationReport, models: tuple[ModelSpent, ...]) -> ConsolidationReport:
    """A report that also counts what was asked of models."""
    total = in_all(models)
    return part.model_copy(
        update={
            "models": by_model(models),
            "input_tokens": total.input_tokens,
            "output_tokens": total.output_tokens,
            "cost_usd": total.cost_usd,
        }
    )


def note_spending(totals: ConsolidationReport) -> None:
    """Note on the run what it spent, where listings show it when the run has ended."""
    if totals.models:
        workflow.deprecate_patch(_NOTED)
        noted = [m.model_dump(mode="json", exclude_defaults=True) for m in totals.models]
        workflow.upsert_memo({names.SPENT_MEMO: noted})
