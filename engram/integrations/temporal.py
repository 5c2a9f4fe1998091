"""Memory for Temporal programs: called from inside a workflow, carried out by its worker.

``Worker(client, ..., plugins=[EngramPlugin(memory)])``, and ``WorkflowMemory(user_id)`` in the
workflow. A workflow is replayed and touches nothing outside: every call is an activity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Unpack

from pydantic_core import to_jsonable_python
from temporalio import activity, workflow
from temporalio.plugin import SimplePlugin
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
    WorkflowRunner,
)
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from engram.contracts import names
from engram.contracts.calls import (
    ConsolidateArgs,
    ContextArgs,
    EncodeArgs,
    ForgetArgs,
    RecallArgs,
    UserArgs,
)
from engram.contracts.consolidation import ConsolidationReport
from engram.contracts.removal import ForgetReceipt
from engram.domain.turns import Turn
from engram.operations.recall import RECALL
from engram.operations.turns import Receipt
from engram.recall.request import RecallArguments, names_of
from engram.recall.results import RecallHit

if TYPE_CHECKING:
    from engram.client.memory import MemoryStore

__all__ = ["EngramPlugin", "WorkflowMemory", "worker_memory"]

# --- what a workflow holds

_SHORT: Final = timedelta(seconds=30)
_MINUTES: Final = timedelta(minutes=5)
_LONG: Final = timedelta(hours=12)
# Whatever may take longer is heard of: a worker that died is noticed after this.
_SILENCE: Final = timedelta(seconds=30)


class WorkflowMemory:
    """One user's memory inside a workflow of your own.

    Its methods are those of :class:`engram.MemoryStore`, carried out as activities of the worker
    that runs the workflow, which needs an :class:`EngramPlugin`. They are tried again while
    something is away. What can never succeed raises ``temporalio.exceptions.ActivityError`` at
    once; its ``cause.type`` is the error's code, such as ``invalid_scope``.

    Make one wherever it is needed: it holds nothing.

    Args:
        user_id: Whose memory.
        namespace: The user's; that of the worker's memory if None.
        options: Those of ``workflow.execute_activity``, for all calls, in place of Engram's:
            ``start_to_close_timeout``, ``retry_policy``, ``task_queue``, ``summary`` and so on.
    """

    def __init__(
        self,
        user_id: str,
        *,
        namespace: str | None = None,
        **options: Unpack[workflow.ActivityConfig],
    ) -> None:
        self._user_id = user_id
        self._namespace = namespace
        self._options = options

    async def encode(
        self,
        turns: str | Turn | Sequence[str | Turn],
        *,
        session_id: str,
        extract_facts: bool = True,
        is_test: bool = False,
    ) -> Receipt:
        """Keep conversation turns, once, however often Temporal tries.

        A turn without a message id gets one that is made of the run's id and the place of this
        call in the run; one without a timestamp was said when the workflow made this call. A run
        that is begun anew (a workflow's retry policy, a reset) says its turns anew, unless they
        have message ids of yours.

        Args:
            turns: One turn or several; a plain string is a turn of the user.
            session_id: The conversation they belong to.
            extract_facts: Whether to look for pattern facts and negations.
            is_test: Keeps the turns, and all drawn from them, out of real answers.

        Returns:
            The ids of what was stored, and how many turns wait for consolidation.
        """
        said = [_as_data(turn) for turn in ([turns] if isinstance(turns, str | Turn) else turns)]
        asked = EncodeArgs(
            user_id=self._user_id,
            namespace=self._namespace,
            session_id=session_id,
            turns=said,
            extract_facts=extract_facts,
            is_test=is_test,
        )
        summary = f"encode {len(said)} turn{'s' * (len(said) != 1)}"
        data = await self._ask(names.ENCODE_CALL, asked, summary, _MINUTES, _SILENCE)
        return Receipt.model_validate(data)

    async def recall(self, query: str, **options: Unpack[RecallArguments]) -> Sequence[RecallHit]:
        """The memories that answer ``query``, best first.

        Args:
            query: A question, or a few words.
            options: Those of :meth:`engram.MemoryStore.recall`: ``limit``, ``memory_types``...

        Returns:
            At most ``limit`` answers.
        """
        asked = RecallArgs(
            user_id=self._user_id,
            namespace=self._namespace,
            query=query,
            options=to_jsonable_python(options),
        )
        data = await self._ask(names.RECALL_CALL, asked, "recall", _SHORT)
        return RECALL.reader.validate_python(data["hits"])

    async def context(
        self,
        query: str,
        *,
        tokens: int = 1000,
        already: Iterable[str] = (),
        **options: Unpack[RecallArguments],
    ) -> str:
        """What answers ``query``, as a fenced block for a prompt; empty if nothing does.

        Args:
            query: A question, or a few words.
            tokens: The most it may have, estimated as a quarter of its characters.
            already: Texts that the prompt has anyway: turns with these words are left out.
            options: Those of :meth:`recall`.

        Returns:
            The block.
        """
        said = {"already": names_of(already)} if already else {}
        asked = ContextArgs(
            user_id=self._user_id,
            namespace=self._namespace,
            query=query,
            options=to_jsonable_python({**options, **said}),
            tokens=tokens,
        )
        summary = f"recall up to {tokens} tokens"
        found: str = (await self._ask(names.CONTEXT_CALL, asked, summary, _SHORT))["context"]
        return found

    async def forget(self, memory_id: str) -> ForgetReceipt | None:
        """Forget one memory for good, and whatever was derived only from it.

        Args:
            memory_id: Of a memory of this user.

        Returns:
            What went, in numbers; None if an attempt that nobody heard of again did it.
        """
        asked = ForgetArgs(user_id=self._user_id, namespace=self._namespace, memory_id=memory_id)
        data = await self._ask(names.FORGET_CALL, asked, f"forget {memory_id}", _LONG, _SILENCE)
        receipt = data["receipt"]
        return None if receipt is None else ForgetReceipt.model_validate(receipt)

    async def consolidate(self, *, test_only: bool = False) -> ConsolidationReport:
        """Consolidate now, and wait for the report.

        Args:
            test_only: Read test turns only; without it, all others.

        Returns:
            What was read, stored, confirmed, replaced and left, in numbers.
        """
        asked = ConsolidateArgs(
            user_id=self._user_id, namespace=self._namespace, test_only=test_only
        )
        data = await self._ask(names.CONSOLIDATE_CALL, asked, "consolidate", _LONG, _SILENCE)
        return ConsolidationReport.model_validate(data)

    async def _ask(
        self,
        name: str,
        asked: UserArgs,
        summary: str,
        limit: timedelta,
        heartbeat: timedelta | None = None,
    ) -> dict[str, Any]:
        chosen: workflow.ActivityConfig = {
            "start_to_close_timeout": limit,
            "heartbeat_timeout": heartbeat,
            "summary": summary,
            **self._options,
        }
        answer: dict[str, Any] = await workflow.execute_activity(
            name, asked, result_type=dict[str, Any], **chosen
        )
        return answer


def _as_data(turn: str | Turn) -> dict[str, Any]:
    if isinstance(turn, str):
        return {"content": turn}
    return turn.model_dump(mode="json", exclude_defaults=True)


# --- what a worker has

_worker_memory: ContextVar[MemoryStore] = ContextVar("engram-worker-memory")


def worker_memory() -> MemoryStore:
    """The memory of the :class:`EngramPlugin` on whose worker the running activity is.

    For activities of your own, and for durable agents:
    ``EngramMemory[Deps](lambda ctx: worker_memory().for_user(ctx.deps.user_id))``.

    Returns:
        The store that the plugin was given; ``for_user`` gives that of a user.

    Raises:
        RuntimeError: no activity runs here, or its worker's plugin has no memory.
    """
    try:
        return _worker_memory.get()
    except LookupError:
        raise RuntimeError(
            "There is no memory here. It is in activities of a worker that has "
            "plugins=[EngramPlugin(memory)]."
        ) from None


class EngramPlugin(SimplePlugin):
    """Lets a worker of your own carry out what :class:`WorkflowMemory` asks for.

    Goes to ``Worker(plugins=[...])``, or to ``Client.connect(plugins=[...])`` for all workers of
    the client, beside other plugins such as Pydantic AI's. Workflows are sandboxed as before, with
    Engram passed through. What goes in and out stands in your workflow's history as your client's
    data converter writes it.

    Args:
        memory: From :func:`engram.open` or :func:`engram.connect`, open as long as the worker
            runs. Without one, for a ``Replayer``: replaying touches no memory.
    """

    def __init__(self, memory: MemoryStore | None = None) -> None:
        super().__init__(
            "engram.EngramPlugin",
            activities=None if memory is None else _activities_over(memory),
            interceptors=None if memory is None else [_WorkerMemory(memory)],
            workflow_runner=_passing_engram_through,
        )


def _activities_over(memory: MemoryStore) -> list[Callable[..., Any]]:
    from engram.activities.calls import CallActivities  # noqa: PLC0415 - never in a sandbox

    return CallActivities(memory).all


def _passing_engram_through(runner: WorkflowRunner | None) -> WorkflowRunner:
    if not isinstance(runner, SandboxedWorkflowRunner):
        # Temporal has made one, or its user knows better.
        return runner or SandboxedWorkflowRunner()
    passed = ("engram", "pydantic", "pydantic_core", "annotated_types", "structlog")
    return replace(runner, restrictions=runner.restrictions.with_passthrough_modules(*passed))


class _WorkerMemory(Interceptor):
    """Tells activities the worker's memory, and Temporal what became of ours."""

    def __init__(self, memory: MemoryStore) -> None:
        self._memory = memory

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002 - the parameter's name belongs to Temporal's interface
        """See the base class."""
        from engram.activities.runtime import TypedErrorInterceptor  # noqa: PLC0415 - never in a sandbox

        return _Told(next, TypedErrorInterceptor().intercept_activity(next), self._memory)


class _Told(ActivityInboundInterceptor):
    def __init__(
        self,
        next: ActivityInboundInterceptor,  # noqa: A002 - the parameter's name belongs to Temporal's interface
        typed: ActivityInboundInterceptor,
        memory: MemoryStore,
    ) -> None:
        super().__init__(next)
        self._typed = typed
        self._memory = memory

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002 - the parameter's name belongs to Temporal's interface
        ours = activity.info().activity_type in _OURS
        with _telling(self._memory):
            return await (self._typed if ours else self.next).execute_activity(input)


@contextmanager
def _telling(memory: MemoryStore) -> Iterator[None]:
    token = _worker_memory.set(memory)
    try:
        yield
    finally:
        _worker_memory.reset(token)


_OURS: Final = frozenset(
    {
        names.ENCODE_CALL,
        names.RECALL_CALL,
        names.CONTEXT_CALL,
        names.FORGET_CALL,
        names.CONSOLIDATE_CALL,
    }
)
