"""What is asked of a memory is noted in one place, before and after it is done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args, get_origin
from uuid import uuid4

import pytest
import pytest_asyncio
from pydantic import BaseModel
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from engram.activities.runtime import AuditInterceptor
from engram.contracts.names import ERASE_MEMORIES_ACTIVITY
from engram.contracts.removal import ErasureInput, ForgetReceipt, StoreRound
from engram.domain.deeds import Actor, AuditFilter, Door, Outcome
from engram.domain.scope import Scope
from engram.domain.turns import Turn
from engram.errors import AccessDenied, AuditUnwritable, InvalidQuery, StorageUnavailable
from engram.operations.audit import AUDIT, AskAudit, AuditHandlers, Auditor, acting, ids_in
from engram.operations.catalogue import OPERATIONS
from engram.operations.memories import GET_MEMORY
from engram.operations.recall import RECALL
from engram.operations.registry import AboutMemory, Handlers, Operation
from engram.operations.removal import FORGET
from engram.operations.turns import ENCODE, Encode
from engram.recall.request import RecallRequest
from engram.storage.trail import AuditTrail
from engram.system import new_id, new_secret
from engram.temporal.keys import FolderKeyStore
from tests.support.clock import NOW
from tests.support.fake_engine import FakeEngine
from tests.support.folders import quick_folder

ADA = Scope.of("default", "ada")
MEMORY = str(uuid4())


@pytest_asyncio.fixture
async def trail() -> AsyncIterator[AuditTrail]:
    """A trail in a folder of its own."""
    with quick_folder() as folder:
        keys = FolderKeyStore.create(Path(folder, "keys"), new_secret=new_secret, since=None)
        made = await AuditTrail.open(
            Path(folder, "audit"), keys, clock=lambda: NOW, new_secret=new_secret, days=1
        )
        yield made
        made.close()


def auditor(trail: AuditTrail, forget: Callable[..., Awaitable[Any]] | None = None) -> Auditor:
    """Over an engine made by hand, which may forget in its own way."""
    handlers = FakeEngine().handlers
    if forget is not None:
        handlers.add(FORGET, forget)
    return Auditor(handlers, trail, new_id)


def noted(trail: AuditTrail) -> list[tuple[str, Outcome, str | None, int]]:
    """Every entry, in short."""
    found = trail.read(AuditFilter(scope=ADA), limit=100).entries
    return [(e.action, e.outcome, e.error, e.touched) for e in found]


async def test_an_operation_is_noted_with_who_asked_and_the_memories_of_its_answer(
    trail: AuditTrail,
) -> None:
    """Writing and recalling name the same memory, and the door and key of each."""
    asking = auditor(trail)
    said = Turn(content="PLUMBUS", message_id="m1", timestamp=NOW)
    with acting(Actor(door=Door.HTTP, key_id="k7")):
        receipt = await asking.call(ADA, ENCODE, Encode(session_id="s1", turns=(said,)))
    await asking.call(ADA, RECALL, RecallRequest(query="PLUMBUS"))
    found = {e.action: e for e in trail.read(AuditFilter(scope=ADA), limit=9).entries}
    assert found["encode"].actor == Actor(door=Door.HTTP, key_id="k7")
    assert found["recall"].actor == Actor(door=Door.LIBRARY)
    assert found["encode"].memory_ids == found["recall"].memory_ids == receipt.episode_ids
    assert found["recall"].at == NOW


# What is no id, or the id of something else than a memory.
NO_IDS = frozenset(
    {"import_id", "instance_id", "key_id", "message_id", "review_id", "run_id", "session_id"}
    | {"trace_id", "user_id", "workflow_id", "aliases", "answers", "conflict_places"}
    | {"explanations", "filters", "guidance", "may_remain", "missing", "rewritten", "steps"}
    | {"topic"}
)


def filled(kind: Any, name: str, planted: list[str]) -> Any:
    """A value of this type with an id of its own wherever there may be that of a memory."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        fields = kind.model_fields
        if "id" in fields:
            fields = {"id": fields["id"]}
        held = {one: filled(field.annotation, one, planted) for one, field in fields.items()}
        return kind.model_construct(**held)
    parts = [one for one in get_args(kind) if one is not type(None)]
    if get_origin(kind) in {list, tuple}:
        return (filled(parts[0], f"{name}_id" if parts[0] is str else name, planted),)
    if kind is str and name.endswith("_id") and not {name, name.removesuffix("_id")} & NO_IDS:
        planted.append(str(uuid4()))
        return planted[-1]
    return filled(parts[0], name, planted) if parts else None


@pytest.mark.parametrize(
    "operation",
    [one for one in OPERATIONS if one is not AUDIT],
    ids=lambda operation: str(operation.name),
)
def test_every_memory_that_an_answer_names_is_noted(operation: Operation[Any, Any]) -> None:
    """In whatever part of it, whichever operation answers."""
    planted: list[str] = []
    answer = filled(operation.answer, operation.name, planted)
    assert set(ids_in(answer)) == set(planted)


@pytest.mark.parametrize(
    ("raised", "outcome", "code"),
    [
        (AccessDenied("No."), Outcome.REFUSED, "access_denied"),
        (StorageUnavailable("Away."), Outcome.FAILED, "storage_unavailable"),
        (KeyError("what ada said"), Outcome.FAILED, "KeyError"),
    ],
    ids=["refused", "away", "unforeseen"],
)
async def test_what_is_not_done_is_noted_with_its_code(
    trail: AuditTrail, raised: Exception, outcome: Outcome, code: str
) -> None:
    """Refused and failed are told apart; the words of the error stay out."""

    async def failing(*_: object) -> ForgetReceipt:
        raise raised

    with pytest.raises(type(raised)):
        await auditor(trail, failing).call(ADA, FORGET, AboutMemory(memory_id=MEMORY))
    assert noted(trail) == [("forget", outcome, code, 1)]


async def test_what_changes_is_noted_before_it_is_done(trail: AuditTrail) -> None:
    """Should the process die over it, the trail says that it was begun."""
    seen: list[Any] = []

    async def looking(*_: object) -> ForgetReceipt:
        seen.extend(noted(trail))
        return ForgetReceipt(memory_id=MEMORY, forgotten={}, workflow_id="w")

    await auditor(trail, looking).call(ADA, FORGET, AboutMemory(memory_id=MEMORY))
    assert seen == [("forget", Outcome.BEGUN, None, 1)]
    assert noted(trail) == [("forget", Outcome.DONE, None, 1)]


async def test_a_required_trail_lets_nothing_be_done_unnoted(
    trail: AuditTrail, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What changes is refused before it is done; the answer of what reads is withheld."""
    done: list[str] = []

    async def forgetting(*_: object) -> ForgetReceipt:
        done.append("forgotten")
        return ForgetReceipt(memory_id=MEMORY, forgotten={}, workflow_id="w")

    def unwritable(*_: object, **__: object) -> None:
        raise AuditUnwritable("Full.")

    monkeypatch.setattr(AuditTrail, "record", unwritable)
    asking = auditor(trail, forgetting)
    with pytest.raises(AuditUnwritable):
        await asking.call(ADA, FORGET, AboutMemory(memory_id=MEMORY))
    with pytest.raises(AuditUnwritable):
        await asking.call(ADA, RECALL, RecallRequest(query="anything"))
    assert done == []


async def test_who_gives_up_waiting_is_noted_and_stays_cancelled(
    trail: AuditTrail, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cancelled operation is a failed one; that it cannot be noted hides no cancellation."""

    async def forever(*_: object) -> ForgetReceipt:
        await asyncio.Event().wait()
        raise AssertionError

    async def give_up() -> None:
        asking = auditor(trail, forever)
        call = asyncio.create_task(asking.call(ADA, FORGET, AboutMemory(memory_id=MEMORY)))
        await asyncio.sleep(0)
        real = AuditTrail.record

        def full_at_the_end(*given: Any, **more: Any) -> None:
            real(*given, **more)
            raise AuditUnwritable("Full.")

        monkeypatch.setattr(AuditTrail, "record", full_at_the_end)
        call.cancel()
        await call

    with pytest.raises(asyncio.CancelledError):
        await give_up()
    assert noted(trail) == [("forget", Outcome.FAILED, "CancelledError", 1)]


async def test_an_attempt_that_is_repeated_is_the_same_entry(trail: AuditTrail) -> None:
    """An activity that did its work and died before Temporal heard of it is noted once."""

    class Done(ActivityInboundInterceptor):
        def __init__(self) -> None:
            pass

        async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002 - the parameter's name belongs to Temporal's interface
            return StoreRound(deleted={"episodic": 3})

    inbound = AuditInterceptor(trail).intercept_activity(Done())
    asked = ErasureInput(scope=ADA, store_timeout=timedelta(seconds=1))
    environment = ActivityEnvironment()
    environment.info = replace(
        environment.info, activity_type=ERASE_MEMORIES_ACTIVITY, workflow_id="erasure/default/ada"
    )
    for _ in range(2):
        await environment.run(
            inbound.execute_activity,
            ExecuteActivityInput(fn=print, args=[asked], executor=None, headers={}),
        )
    (entry,) = trail.read(AuditFilter(scope=ADA), limit=9).entries
    assert (entry.action, entry.step, entry.touched) == ("erase", ERASE_MEMORIES_ACTIVITY, 3)
    assert (entry.actor.door, entry.actor.workflow) == (Door.WORKFLOW, "erasure")
    assert entry.actor.run_id == environment.info.workflow_run_id


async def test_what_is_no_id_is_not_noted(trail: AuditTrail) -> None:
    """Whatever is handed in as an id, words among it, does not come into the trail."""
    with pytest.raises(LookupError):
        await auditor(trail).call(ADA, GET_MEMORY, AboutMemory(memory_id="my PIN is 4711"))
    assert noted(trail) == [("get-memory", Outcome.REFUSED, "memory_not_found", 0)]


async def test_without_a_trail_the_operation_says_so() -> None:
    """Whoever asks for what is not kept is told how to keep it."""
    handlers = Handlers(AuditHandlers(None))
    with pytest.raises(InvalidQuery, match="ENGRAM_AUDIT_DAYS"):
        await handlers.call(ADA, AUDIT, AskAudit())


@pytest.mark.parametrize(
    "wrong",
    [
        {"since": datetime(2026, 5, 20)},  # noqa: DTZ001 - what is refused
        {"since": datetime(1, 1, 1, tzinfo=UTC)},
        {"until": datetime(9999, 12, 31, tzinfo=UTC)},
        {"cursor": "9999-12-31T00:00:00+00:00|one"},
        {"cursor": "yesterday"},
    ],
    ids=str,
)
async def test_a_moment_that_nothing_can_be_reckoned_from_is_refused(
    trail: AuditTrail, wrong: dict[str, Any]
) -> None:
    """Typed, and not as a date that has no day before it or after it."""
    handlers = Handlers(AuditHandlers(trail))
    with pytest.raises(InvalidQuery):
        await handlers.call(ADA, AUDIT, AskAudit(**wrong))
