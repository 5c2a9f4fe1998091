"""The one sandbox that workers, tests and replays run workflows in."""

from __future__ import annotations

from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

# What workflows import of Engram (contracts, domain, errors) is pure, which the
# linter enforces; passing it through saves 70 ms for each workflow.
_PASSED_THROUGH = ("engram", "pydantic", "pydantic_core", "structlog", "annotated_types")


def sandbox_runner() -> SandboxedWorkflowRunner:
    """A runner whose workflows can reach no clock, no randomness and no I/O."""
    return SandboxedWorkflowRunner(
        restrictions=SandboxRestrictions.default.with_passthrough_modules(*_PASSED_THROUGH)
    )
