"""Calls of other Temporal programs, carried out by a memory store.

A call may be made again by Temporal after it was carried out, with the process that did it dead.
Nothing is kept twice then: what is kept is named after the call, not after the attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from pydantic import TypeAdapter
from temporalio import activity

from engram.activities.runtime import heartbeating
from engram.client.memory import MemoryStore
from engram.contracts import names
from engram.contracts.calls import (
    ConsolidateArgs,
    ContextArgs,
    EncodeArgs,
    ForgetArgs,
    ProfileArgs,
    RecallArgs,
    UserArgs,
)
from engram.contracts.consolidation import ConsolidationReport
from engram.contracts.refusals import typed_refusals
from engram.contracts.removal import ForgetReceipt
from engram.domain.deeds import Actor, Door
from engram.domain.turns import Turn
from engram.errors import MemoryNotFound
from engram.operations.audit import acting
from engram.operations.digests import Profile
from engram.operations.recall import RECALL, ContextRequest
from engram.operations.turns import Receipt
from engram.recall.request import RecallRequest
from engram.recall.results import RecallHit

_TURNS: Final = TypeAdapter(tuple[Turn, ...])
_LISTS: Final = frozenset({"memory_types", "forms", "roles"})
# Between turns of one call, so that they keep their order.
_TICK: Final = timedelta(microseconds=1)


@dataclass(frozen=True)
class CallInfo:
    """What stays the same when Temporal makes a call again.

    Attributes:
        id: Names the call.
        made_at: When it was made first; None where nobody says.
        again: Whether an earlier attempt may have carried it out.
    """

    id: str
    made_at: datetime | None = None
    again: bool = False


class Calls:
    """Carries calls out.

    Args:
        memory: Over whose connections.
        door: By which way they came, for the audit trail.
    """

    def __init__(self, memory: MemoryStore, door: Door = Door.LIBRARY) -> None:
        self._memory = memory
        self._actor = Actor(door=door)

    async def encode(self, asked: EncodeArgs, call: CallInfo) -> Receipt:
        """Keep turns; those without a message id or a time get the call's."""
        with typed_refusals():
            turns = _TURNS.validate_python(asked.turns)
        with self._of(asked) as memory:
            return await memory.encode(
                [_named(turn, number, call) for number, turn in enumerate(turns)],
                session_id=asked.session_id,
                extract_facts=asked.extract_facts,
                is_test=asked.is_test,
            )

    async def recall(self, asked: RecallArgs) -> Sequence[RecallHit]:
        """The memories that answer, best first."""
        with self._of(asked) as memory:
            return await memory.recall(asked.query, **_options(asked))

    async def context(self, asked: ContextArgs) -> str:
        """What answers, as a block for a prompt."""
        with self._of(asked) as memory:
            options = {"tokens": asked.tokens, **_options(asked, ContextRequest)}
            return await memory.context(asked.query, **options)

    async def profile(self, asked: ProfileArgs) -> Profile:
        """What is known about somebody."""
        with self._of(asked) as memory:
            return await memory.profile(asked.name)

    async def forget(self, asked: ForgetArgs, call: CallInfo) -> ForgetReceipt | None:
        """Forget a memory; None if an earlier attempt of this call did."""
        try:
            with self._of(asked) as memory:
                return await memory.forget(asked.memory_id)
        except MemoryNotFound:
            if call.again:
                return None
            raise

    async def consolidate(self, asked: ConsolidateArgs) -> ConsolidationReport:
        """Consolidate now; returns when it is done."""
        with self._of(asked) as memory:
            return await memory.consolidate(test_only=asked.test_only)

    @contextmanager
    def _of(self, asked: UserArgs) -> Iterator[MemoryStore]:
        with acting(self._actor):
            yield self._memory.for_user(asked.user_id, namespace=asked.namespace)


def _named(turn: Turn, number: int, call: CallInfo) -> Turn:
    opened: dict[str, Any] = {}
    if turn.message_id is None:
        opened["message_id"] = f"{call.id}:{number}"
    if turn.timestamp is None and call.made_at is not None:
        opened["timestamp"] = call.made_at + number * _TICK
    return turn.model_copy(update=opened)


def _options(asked: RecallArgs, form: type[RecallRequest] = RecallRequest) -> dict[str, Any]:
    """The options as the types that a memory store takes; one name stands for a list of it."""
    lists = {name: [given] for name, given in asked.options.items() if name in _LISTS}
    alone = {name: given for name, given in lists.items() if isinstance(given[0], str)}
    with typed_refusals():
        request = form.model_validate({**asked.options, **alone, "query": asked.query})
    given = request.model_fields_set - {"query"}
    return {name: getattr(request, name) for name in given}


# --- the same as activities, which every data converter carries


class CallActivities:
    """Activities that a worker of anybody's may have.

    Args:
        memory: Over whose connections.
        door: By which way calls come, for the audit trail.
    """

    def __init__(self, memory: MemoryStore, door: Door = Door.LIBRARY) -> None:
        self._calls = Calls(memory, door)

    @property
    def all(self) -> list[Callable[..., Any]]:
        """What a worker is given."""
        return [self.encode, self.recall, self.context, self.forget, self.consolidate]

    @activity.defn(name=names.ENCODE_CALL)
    async def encode(self, asked: EncodeArgs) -> dict[str, Any]:
        """Keep turns."""
        async with heartbeating():
            receipt = await self._calls.encode(asked, _this_call())
        return receipt.model_dump(mode="json")

    @activity.defn(name=names.RECALL_CALL)
    async def recall(self, asked: RecallArgs) -> dict[str, Any]:
        """Recall."""
        async with heartbeating():
            hits = list(await self._calls.recall(asked))
        return {"hits": RECALL.reader.dump_python(hits, mode="json")}

    @activity.defn(name=names.CONTEXT_CALL)
    async def context(self, asked: ContextArgs) -> dict[str, Any]:
        """Recall for a prompt."""
        async with heartbeating():
            block = await self._calls.context(asked)
        return {"context": block}

    @activity.defn(name=names.FORGET_CALL)
    async def forget(self, asked: ForgetArgs) -> dict[str, Any]:
        """Forget a memory."""
        async with heartbeating():
            receipt = await self._calls.forget(asked, _this_call())
        return {"receipt": receipt and receipt.model_dump(mode="json")}

    @activity.defn(name=names.CONSOLIDATE_CALL)
    async def consolidate(self, asked: ConsolidateArgs) -> dict[str, Any]:
        """Consolidate, and wait for it."""
        async with heartbeating():
            report = await self._calls.consolidate(asked)
        return report.model_dump(mode="json")


def _this_call() -> CallInfo:
    """Of a run, the activity: its attempts are one call."""
    info = activity.info()
    run = info.workflow_run_id or info.activity_run_id
    return CallInfo(f"{run}:{info.activity_id}", info.scheduled_time, again=info.attempt > 1)
