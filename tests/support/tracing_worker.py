"""Marks in a worker under test: where its encodes, consolidations and continue-as-news are."""

from __future__ import annotations

from typing import Any, NoReturn

from temporalio import activity, workflow
from temporalio.worker import (
    ActivityInboundInterceptor,
    ContinueAsNewInput,
    ExecuteActivityInput,
    ExecuteWorkflowInput,
    HandleUpdateInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)

from engram.activities.runtime import TypedErrorInterceptor
from engram.contracts import names
from engram.workflows import worker
from tests.support.process_trace import Trace

_ENCODING = {names.STORE_TURNS_ACTIVITY}
# One trace per process; set by install() before any worker starts.
_installed: list[Trace] = []


def install(trace: Trace) -> None:
    """Have every worker that this process starts from now on leave marks."""
    _installed[:] = [trace]
    # The interceptor that every worker of Engram has; the tracing one is one of its kind.
    name = "TypedErrorInterceptor"
    setattr(worker, name, _Tracing)


class _Tracing(TypedErrorInterceptor):
    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002 - the parameter's name belongs to Temporal's interface
        return _Activities(super().intercept_activity(next))

    def workflow_interceptor_class(
        self,
        input: WorkflowInterceptorClassInput,  # noqa: A002 - same
    ) -> type[WorkflowInboundInterceptor] | None:
        return _Workflows


class _Activities(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002 - same
        info = activity.info()
        what = "encode" if info.activity_type in _ENCODING else "consolidation"
        with _installed[0].span(what, f"{info.workflow_run_id}/{info.activity_id}"):
            return await super().execute_activity(input)


class _Workflows(WorkflowInboundInterceptor):
    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        super().init(_Outbound(outbound))

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:  # noqa: A002 - same
        info = workflow.info()
        if info.continued_run_id and not workflow.unsafe.is_replaying():
            _installed[0].mark("continue-as-new", "end", info.continued_run_id)
        return await super().execute_workflow(input)

    async def handle_update_handler(self, input: HandleUpdateInput) -> Any:  # noqa: A002 - same
        if workflow.unsafe.is_replaying() or input.update != names.ENCODE_UPDATE:
            return await super().handle_update_handler(input)
        with _installed[0].span("encode", f"{workflow.info().run_id}/update/{input.id}"):
            return await super().handle_update_handler(input)


class _Outbound(WorkflowOutboundInterceptor):
    def continue_as_new(self, input: ContinueAsNewInput) -> NoReturn:  # noqa: A002 - same
        if not workflow.unsafe.is_replaying():
            _installed[0].mark("continue-as-new", "begin", workflow.info().run_id)
        super().continue_as_new(input)
