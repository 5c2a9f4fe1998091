"""The session workflow on a real server and a real engine."""

from __future__ import annotations

import asyncio
import gc
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
from temporalio import activity
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import (
    Client,
    Interceptor,
    OutboundInterceptor,
    StartWorkflowUpdateInput,
    StartWorkflowUpdateWithStartInput,
    WorkflowExecutionStatus,
    WorkflowUpdateHandle,
)
from temporalio.service import RPCError

from engram.consolidation.turns import TurnStore
from engram.contracts import names
from engram.contracts.session import (
    ConsolidationRequest,
    EncodeCall,
    EncodeRequest,
    SessionSummary,
    StoreTurnsInput,
)
from engram.domain.buffer import Signal
from engram.domain.identity import episode_id
from engram.domain.memories import MemoryType
from engram.domain.scope import Scope
from engram.errors import StorageUnavailable
from engram.workflows.session import SessionWorkflow
from tests.support.clock import NOW
from tests.support.running_session import call, running_session, turn
from tests.support.workers import Requests

FAR = datetime(2090, 1, 1, tzinfo=UTC)
OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"


async def test_the_reply_means_stored(temporal_client: Client) -> None:
    """When encode answers, episode and facts are in the store under the ids it names."""
    async with running_session(temporal_client) as session:
        reply = await session.encode(turn("My email is ada@example.org."))
        (stored,) = reply.outcomes[0].turns
        found = await session.repository.get(session.scope, [stored.episode_id, *stored.fact_ids])
        assert found[stored.episode_id].content == "My email is ada@example.org."
        (fact,) = [found[key] for key in stored.fact_ids]
        assert getattr(fact, "value", None) == "ada@example.org"
        assert found[stored.episode_id].provenance.workflow_id == session.handle.id


async def test_sessions_share_the_code_of_their_modules(temporal_client: Client) -> None:
    """Of two sessions each has functions of its own, and both the same code."""
    async with running_session(temporal_client) as session:
        for name in ("s1", "s2"):
            await session.gateway.encode(session.scope, name, call(turn("Tea for two.")))
        made = [
            each
            for each in gc.get_objects()
            # Not by isinstance: what stands in for a module in the sandbox answers for it.
            if type(each) is FunctionType and each.__qualname__ == "SessionWorkflow.run"
        ]
        own = [each for each in made if each is not SessionWorkflow.run]
        assert len({id(each.__globals__) for each in own}) >= 2
        assert len({id(each.__code__) for each in own}) == 1
        await session.gateway.end_session(session.scope, "s2")


async def test_a_message_sent_again_gets_its_first_receipt(temporal_client: Client) -> None:
    """The same message id with the same words stores nothing and answers the same."""
    async with running_session(temporal_client) as session:
        first = await session.encode(turn("I moved on 2026-03-01.", "m1"))
        again = await session.encode(
            turn("I moved on 2026-03-01.", "m1").model_copy(
                update={"timestamp": NOW + timedelta(hours=1)}
            )
        )
        assert (
            again.outcomes[0].turns[0].model_copy(update={"new": True})
            == (first.outcomes[0].turns[0])
        )
        assert not again.outcomes[0].turns[0].new
        assert len(await session.episodes()) == 1


async def test_a_reused_id_with_other_words_is_refused_and_nothing_of_its_call_is_stored(
    temporal_client: Client,
) -> None:
    """A conflict refuses its own call whole; the call beside it is stored."""
    async with running_session(temporal_client) as session:
        await session.encode(turn("one", "m1"))
        request = EncodeRequest(
            calls=(
                EncodeCall(turns=(turn("fresh", "m2"), turn("other", "m1"))),
                EncodeCall(turns=(turn("beside", "m3"),)),
            )
        )
        refused, beside = (await session.gateway.encode(session.scope, "s1", request)).outcomes
        assert refused.error is not None
        assert refused.error["code"] == "conflicting_message"
        assert beside.error is None
        assert [e.content for e in await session.episodes()] == ["one", "beside"]


@pytest.mark.parametrize("is_test", [True, False])
async def test_what_was_sent_as_a_test_is_not_remembered_by_sending_it_again(
    temporal_client: Client, is_test: bool
) -> None:
    """Nor does a turn become a test: either is refused, and only the same is acknowledged."""
    said = EncodeCall(turns=(turn("I moved to Zanzibar.", "m1"),), is_test=is_test)
    other = said.model_copy(update={"is_test": not is_test})
    async with running_session(temporal_client) as session:
        await session.gateway.encode(session.scope, "s1", EncodeRequest(calls=(said,)))
        request = EncodeRequest(calls=(other, said))
        refused, again = (await session.gateway.encode(session.scope, "s1", request)).outcomes
        assert refused.error is not None
        assert refused.error["code"] == "conflicting_message"
        assert refused.error["message"].endswith("with other is_test.")
        assert again.error is None
        assert [e.is_test for e in await session.episodes()] == [is_test]


@pytest.mark.parametrize(
    ("first", "again", "differing"),
    [
        ({"tags": ("a", "b")}, {"tags": ("b", "a")}, None),
        ({"tags": ("a",)}, {}, None),
        ({"importance": 0.9, "expires_at": FAR}, {"expires_at": FAR + timedelta(hours=1)}, None),
        ({"tags": ("a",)}, {"tags": ("a", "b")}, "tags"),
        ({"metadata": {"n": [1]}}, {"metadata": {"n": [1], "m": None}}, "metadata"),
        ({"metadata": {"n": [1]}}, {"metadata": {"n": [2]}}, "metadata"),
        ({}, {"summary": "Tea."}, "summary"),
    ],
)
async def test_what_an_id_is_sent_again_with_is_refused_where_it_would_be_dropped(
    temporal_client: Client, first: dict[str, Any], again: dict[str, Any], differing: str | None
) -> None:
    """Further tags are not acknowledged and lost; less than what is stored asks for nothing."""
    async with running_session(temporal_client) as session:
        said = turn("I like tea.", "m1")
        await session.encode(said.model_copy(update=first))
        (outcome,) = (await session.encode(said.model_copy(update=again))).outcomes
        refused = outcome.error["message"] if outcome.error else None
        wanted = f"This message id was used before in this session, with other {differing}."
        assert refused == (wanted if differing else None)
        (kept,) = await session.episodes()
        assert kept.tags == first.get("tags", ())


async def test_two_uses_of_an_id_in_one_call_conflict(temporal_client: Client) -> None:
    """A message id cannot mean two things within a single request either."""
    async with running_session(temporal_client) as session:
        reply = await session.encode(turn("one", "m1"), turn("two", "m1"))
        assert reply.outcomes[0].error is not None
        assert await session.episodes() == []


async def test_the_same_fact_from_two_turns_is_one_memory(temporal_client: Client) -> None:
    """A repeated fact corroborates the point that is there; its own episode is a source."""
    async with running_session(temporal_client) as session:
        one = (await session.encode(turn("Mail ada@example.org"))).outcomes[0].turns[0]
        two = (await session.encode(turn("It is ada@example.org!"))).outcomes[0].turns[0]
        assert one.fact_ids == two.fact_ids
        (fact,) = (await session.repository.get(session.scope, one.fact_ids)).values()
        assert getattr(fact, "source_episode_ids", ()) == (one.episode_id, two.episode_id)
        assert await session.repository.count(session.scope, MemoryType.FACTUAL) == 1


async def test_working_memory_is_there_while_the_session_runs(temporal_client: Client) -> None:
    """The recent turns can be asked for, and are gone with the session."""
    async with running_session(temporal_client) as session:
        assert await session.gateway.working_memory(session.scope, "s1") == []
        await session.encode(turn("one"), turn("two"))
        held = await session.gateway.working_memory(session.scope, "s1")
        assert [t.content for t in held] == ["one", "two"]
        await session.gateway.end_session(session.scope, "s1")
        await session.handle.result()
        assert await session.gateway.working_memory(session.scope, "s1") == []


async def test_a_turn_right_behind_the_end_begins_the_next_conversation(
    temporal_client: Client,
) -> None:
    """While the ended run asks for consolidation nothing is held in mind, and then the new turn."""
    asked, answered = asyncio.Event(), asyncio.Event()

    class Slow(Requests):
        async def __call__(self, scope: Scope, request: ConsolidationRequest) -> None:
            asked.set()
            await answered.wait()
            await super().__call__(scope, request)

    async with running_session(temporal_client, requests=Slow()) as session:
        await session.encode(turn("I like tea."))
        assert await session.gateway.end_session(session.scope, "s1") == ended(turns=1)
        await asked.wait()
        assert await session.gateway.working_memory(session.scope, "s1") == []
        await session.encode(turn("I like jazz."))
        answered.set()
        await session.encode(turn("I like chess."))
        held = await session.gateway.working_memory(session.scope, "s1")
        assert [one.content for one in held] == ["I like jazz.", "I like chess."]
        assert await session.gateway.end_session(session.scope, "s1") == ended(turns=2)
        await session.handle.result()
        assert [one.reason for one in session.requests.seen] == ["session ended"] * 2


async def test_a_turn_that_is_stored_after_the_end_is_not_held_in_mind_by_the_next(
    temporal_client: Client,
) -> None:
    """It was said before the end: it is kept, and is no turn of the next conversation."""
    begun, over = asyncio.Event(), asyncio.Event()

    class Late(FailingStore):
        async def store(self, request: StoreTurnsInput) -> Any:
            # Past its local attempt the workflow goes on meanwhile.
            if self.attempts == self.failures:
                begun.set()
                self.attempts += 1
                await over.wait()
            return await super().store(request)

    late_store: list[Late] = []

    def wrap(inner: TurnStore) -> Late:
        late_store.append(Late(inner, failures=4))
        return late_store[-1]

    async with running_session(temporal_client, wrap=wrap) as session:
        late = asyncio.create_task(session.encode(turn("I like tea.")))
        await begun.wait()
        assert await session.gateway.end_session(session.scope, "s1") == ended(turns=1)
        (jazz,) = (await session.encode(turn("I like jazz."))).outcomes[0].turns
        over.set()
        await late
        await session.encode(turn("I like chess."))
        held = await session.gateway.working_memory(session.scope, "s1")
        assert [one.content for one in held] == ["I like jazz.", "I like chess."]
        stored = sorted(late_store[0].asked, key=lambda asked: asked.calls[0].turns[0].content)
        assert [asked.first_sequence for asked in stored] == [1, 0, 0]
        assert stored[0].after == jazz.episode_id
        assert len(await session.episodes()) == 3


def ended(turns: int) -> SessionSummary:
    """What the application is told of a session of so many turns that it ends."""
    return SessionSummary(session_id="s1", turns_accepted=turns, ended="ended by the application")


async def test_a_turn_that_is_forgotten_before_it_is_answered_is_not_held_in_mind(
    temporal_client: Client,
) -> None:
    """It is stored, and somebody finds and forgets it while what it states is worked out."""

    class Overtaken(FailingStore):
        async def store(self, request: StoreTurnsInput) -> Any:
            if not self.attempts:
                forgotten = episode_id(request.scope, request.session_id, "m1")
                session = temporal_client.get_workflow_handle(request.workflow_id)
                await session.signal(names.FORGET_TURNS_SIGNAL, (forgotten,))
            return await super().store(request)

    async with running_session(
        temporal_client, wrap=lambda inner: Overtaken(inner, failures=4)
    ) as session:
        await session.encode(turn("one", "m1"), turn("two", "m2"))
        held = await session.gateway.working_memory(session.scope, "s1")
        assert [t.content for t in held] == ["two"]


async def test_an_urgent_turn_asks_for_consolidation_at_once(temporal_client: Client) -> None:
    """HIGH is requested while the session goes on; the end asks once more."""
    async with running_session(temporal_client) as session:
        reply = await session.encode(turn("Remember that I am allergic to peanuts!"))
        assert reply.outcomes[0].turns[0].signal is Signal.HIGH
        await session.gateway.end_session(session.scope, "s1")
        await session.handle.result()
        assert [r.reason for r in session.requests.seen] == ["an urgent turn", "session ended"]


async def test_a_full_buffer_asks_for_consolidation(temporal_client: Client) -> None:
    """The N-th quiet turn requests extraction of the batch."""
    async with running_session(temporal_client, buffer_turns=3) as session:
        for count in (1, 2, 0):
            reply = await session.encode(turn("The weather was mild."))
            assert reply.buffered == count
        await session.gateway.end_session(session.scope, "s1")
        await session.handle.result()
        assert session.requests.seen[0].reason == "3 turns wait"


async def test_waiting_and_idling_run_on_durable_timers(temporal_client: Client) -> None:
    """After T a waiting turn is requested; after the idle time the session ends by itself."""
    async with running_session(
        temporal_client, buffer_minutes=0.01, session_idle_minutes=0.03
    ) as session:
        await session.encode(turn("The weather was mild."))
        summary = await session.handle.result()
        assert summary["ended"] == "idle"
        assert [r.reason for r in session.requests.seen] == [
            "turns waited long enough",
            "session idle",
        ]


async def test_a_session_goes_on_after_idling(temporal_client: Client) -> None:
    """The next turn after an idle end starts a new run; nothing is stored twice."""
    async with running_session(temporal_client, session_idle_minutes=0.01) as session:
        await session.encode(turn("one", "m1"))
        await session.handle.result()
        await session.encode(turn("one", "m1"), turn("two", "m2"))
        assert [e.content for e in await session.episodes()] == ["one", "two"]


async def test_continue_as_new_carries_everything(temporal_client: Client) -> None:
    """A session of several runs keeps working memory, counts, and every turn exactly once."""
    async with running_session(temporal_client, updates_per_run=5) as session:
        for number in range(17):
            await session.encode(turn(f"turn {number}", f"m{number}"))
        held = await session.gateway.working_memory(session.scope, "s1")
        assert [t.content for t in held] == [f"turn {n}" for n in range(17)]
        stored = await session.episodes()
        assert sorted(e.sequence for e in stored) == list(range(17))
        description = await session.handle.describe()
        described = description.raw_description.workflow_execution_info
        assert described.first_run_id != description.run_id
        assert described.priority.priority_key == 1
        assert described.priority.fairness_key
        summary = await session.gateway.end_session(session.scope, "s1")
        assert summary is not None
        assert summary.turns_accepted == 17


class SentUpdates(Interceptor):
    """Counts the updates that a client sends, with a start and without one."""

    def __init__(self) -> None:
        self.with_start = self.alone = 0

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:  # noqa: A002 - the parameter's name belongs to Temporal's interface
        """See the base class."""
        return _Counting(next, self)


class _Counting(OutboundInterceptor):
    def __init__(self, next: OutboundInterceptor, sent: SentUpdates) -> None:  # noqa: A002 - same
        super().__init__(next)
        self._sent = sent

    async def start_workflow_update(
        self,
        input: StartWorkflowUpdateInput,  # noqa: A002 - same
    ) -> WorkflowUpdateHandle[Any]:
        self._sent.alone += input.update == names.ENCODE_UPDATE
        return await super().start_workflow_update(input)

    async def start_update_with_start_workflow(
        self,
        input: StartWorkflowUpdateWithStartInput,  # noqa: A002 - same
    ) -> WorkflowUpdateHandle[Any]:
        self._sent.with_start += 1
        return await super().start_update_with_start_workflow(input)


class FailingStore:
    """A store that is down for a while."""

    def __init__(self, inner: TurnStore, failures: int) -> None:
        self.inner = inner
        self.failures = failures
        self.attempts = 0
        self.asked: list[StoreTurnsInput] = []
        self.local: list[bool] = []

    async def store(self, request: StoreTurnsInput) -> Any:
        """Fail, then store."""
        self.attempts += 1
        self.local.append(activity.info().is_local)
        if self.attempts <= self.failures:
            raise StorageUnavailable("The store is down.")
        self.asked.append(request)
        return await self.inner.store(request)


async def test_an_outage_delays_the_acknowledgement_only(temporal_client: Client) -> None:
    """Past its one local attempt the regular activity goes on until the store is back."""
    stores: list[FailingStore] = []

    def wrap(inner: TurnStore) -> FailingStore:
        stores.append(FailingStore(inner, failures=4))
        return stores[-1]

    async with running_session(temporal_client, wrap=wrap) as session:
        reply = await session.encode(turn("patience"))
        assert reply.outcomes[0].error is None
        assert stores[0].local == [True, False, False, False, False]
        assert [e.content for e in await session.episodes()] == ["patience"]


async def test_a_full_run_that_waits_for_the_store_takes_no_further_updates(
    temporal_client: Client,
) -> None:
    """It holds as many as it may; the others are sent again, and stored by the next run."""
    stores: list[FailingStore] = []

    def wrap(inner: TurnStore) -> FailingStore:
        stores.append(FailingStore(inner, failures=10_000))
        return stores[-1]

    async with running_session(temporal_client, wrap=wrap, updates_per_run=3) as session:
        encodes = [asyncio.create_task(session.encode(turn(f"text {n}"))) for n in range(8)]
        async with asyncio.timeout(60):
            while stores[0].attempts < 9:  # noqa: ASYNC110 - nothing tells of a failed attempt
                await asyncio.sleep(0.1)
        first = (await session.handle.describe()).run_id
        stores[0].failures = 0
        await asyncio.gather(*encodes)
        assert len(await session.episodes()) == 8
        run = temporal_client.get_workflow_handle(session.handle.id, run_id=first)
        accepted = [
            event
            async for event in run.fetch_history_events()
            if event.HasField("workflow_execution_update_accepted_event_attributes")
        ]
        assert len(accepted) == 3


async def test_many_processes_in_one_session_store_each_turn_once(temporal_client: Client) -> None:
    """Three gateways send the same messages at once: stored once, acknowledged each time."""
    async with running_session(temporal_client) as session:
        turns = [turn(f"text {n}", f"m{n}") for n in range(4)]
        replies = await asyncio.gather(
            *(session.encode(t) for t in turns for _ in range(3)), return_exceptions=True
        )
        failed = [reply for reply in replies if isinstance(reply, BaseException)]
        assert failed == []
        assert len(await session.episodes()) == 4


async def test_a_running_session_is_sent_the_update_alone(temporal_client: Client) -> None:
    """The first turn starts it, the next go without a start; one that is gone is started again."""
    sent = SentUpdates()
    config = temporal_client.config()
    config["interceptors"] = [sent]
    client = Client(**config)
    async with running_session(client) as session:
        await session.encode(turn("one"))
        await session.encode(turn("two"))
        assert (sent.with_start, sent.alone) == (1, 1)
        await session.handle.terminate()
        await session.encode(turn("three"))
        assert (sent.with_start, sent.alone) == (2, 2)
        assert {e.content for e in await session.episodes()} == {"one", "two", "three"}


async def test_the_session_names_the_turn_before(temporal_client: Client) -> None:
    """Whoever stores a turn is told which precedes it, unless one was sent again or forgotten."""
    stores: list[FailingStore] = []

    def wrap(inner: TurnStore) -> FailingStore:
        stores.append(FailingStore(inner, failures=0))
        return stores[-1]

    async with running_session(temporal_client, wrap=wrap) as session:
        (one,) = (await session.encode(turn("one", "m1"))).outcomes[0].turns
        (two,) = (await session.encode(turn("two", "m2"))).outcomes[0].turns
        await session.encode(turn("one", "m1"))
        (three,) = (await session.encode(turn("three"))).outcomes[0].turns
        await session.handle.signal(names.FORGET_TURNS_SIGNAL, (three.episode_id,))
        await session.encode(turn("four"))
        named = [asked.after for asked in stores[0].asked]
        assert named == [None, one.episode_id, two.episode_id, None, None]


async def test_ending_a_session_that_does_not_run_says_so(temporal_client: Client) -> None:
    """No run: no summary, no error."""
    async with running_session(temporal_client) as session:
        assert await session.gateway.end_session(session.scope, "s1") is None


async def test_the_ui_shows_who_and_what(temporal_client: Client) -> None:
    """User, session and stage are typed search attributes; the run has a summary."""
    async with running_session(temporal_client) as session:
        await session.encode(turn("hello"))
        description = await session.handle.describe()
        assert description.status is WorkflowExecutionStatus.RUNNING
        shown = {p.key.name: p.value for p in description.typed_search_attributes}
        assert {key: value for key, value in shown.items() if key.startswith("Engram")} == {
            names.USER_ATTRIBUTE: session.scope.tenant,
            names.SESSION_ATTRIBUTE: "s1",
            names.STAGE_ATTRIBUTE: "session",
        }
        assert await description.static_summary() == f"session s1 of {session.scope.tenant}"
        told = await session.handle.query(
            "__temporal_workflow_metadata", result_type=WorkflowMetadata
        )
        listed = f"engram list -u {session.scope.user_id} --run-id {description.run_id}"
        assert f"`{listed}`" in told.current_details


async def test_the_ui_says_in_which_namespace_to_list(temporal_client: Client) -> None:
    """The command works as it stands there, also with names that a shell would read otherwise."""
    async with running_session(temporal_client) as session:
        session.scope = Scope.of("acme|test", f"{session.scope.user_id}|a")
        run_id = (await session.encode(turn("hello"))).run_id
        handle = temporal_client.get_workflow_handle(names.session_workflow_id(session.scope, "s1"))
        told = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
        listed = f"engram list -u '{session.scope.user_id}' --run-id {run_id}"
        assert f"`ENGRAM_NAMESPACE='acme|test' {listed}`" in told.current_details


async def test_queries_worth_saving_are_ones_that_temporal_answers(temporal_client: Client) -> None:
    """Each query of the page on debugging can be put into the UI as it stands there."""
    page = OPERATIONS.read_text("utf-8")
    table = page.partition("| What | Query |")[2].partition("\n\n")[0]
    queries = re.findall(r"\| `([^`]+)`", table)
    assert len(queries) > 5
    for query in queries:
        await temporal_client.count_workflows(query)
    with pytest.raises(RPCError):
        await temporal_client.count_workflows('EngramMood = "good"')
