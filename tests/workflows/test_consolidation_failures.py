"""What a consolidation does about refusals, full answers and cancellation, on a real server."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from pydantic_ai.exceptions import ModelHTTPError, UnexpectedModelBehavior
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowUpdateFailedError,
)
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    CancelledError,
    RetryState,
    TimeoutError,
    TimeoutType,
)

from engram.contracts import names
from engram.contracts.consolidation import ConsolidationReport
from engram.errors import ModelAnswerUnusable, ModelRejected, RunEnded, error_from_dict
from engram.ports import MemoryRepository
from engram.settings import Settings
from engram.workflows.support import failure_of
from tests.support.consolidation_workers import Picky, consolidating, current, day
from tests.support.stores import worker_settings


@pytest.fixture
def settings() -> Settings:
    """Settings with queues of the test's own, and few turns at a time."""
    return worker_settings(pass_episodes=20)


async def test_one_refused_turn_keeps_nothing_else_from_being_known(
    temporal_client: Client, repository: MemoryRepository, settings: Settings
) -> None:
    """The oldest turn is refused: every other turn is consolidated, in this pass and the next."""
    model = Picky({"Bombs": ModelHTTPError(400, "picky")})
    async with consolidating(temporal_client, repository, settings, model=model) as memory:
        tools = [(f"I use Tool{n}.", day(2 + n)) for n in range(6)]
        await memory.say(("I use Bombs.", day(1)), *tools)
        await memory.say(("I live in Lisbon.", day(9)), session="s2")
        report = await memory.consolidate()
        assert (report.episodes, report.refused, report.remaining) == (7, 1, True)
        assert [f.code for f in report.failures] == [ModelRejected.code]
        assert current(await memory.semantic()) == {
            "The user lives in Lisbon.",
            *(f"The user uses Tool{n}." for n in range(6)),
        }
        await memory.say(("I work at Rise.", day(10)), session="s3")
        again = await memory.consolidate()
        assert (again.episodes, again.refused, again.stored) == (1, 1, 1)
        waiting = [e.content for e in await memory.episodes() if e.consolidated_at is None]
        assert waiting == ["I use Bombs."]


async def test_what_was_refused_is_not_read_again_by_each_pass(
    temporal_client: Client, repository: MemoryRepository, settings: Settings
) -> None:
    """Passes that nobody waits for leave it out for an hour; who asks has it read at once."""
    model = Picky({"Bombs": ModelHTTPError(400, "picky")})
    async with consolidating(temporal_client, repository, settings, model=model) as memory:
        await memory.say(("I use Bombs.", day(1)))
        first: ConsolidationReport = await (await memory.request()).result()
        assert (first.episodes, first.refused) == (0, 1)
        (marked,) = await memory.episodes()
        assert marked.unread is not None
        assert marked.unread.because == ModelRejected.code
        assert marked.unread.at is not None
        assert marked.unread.until == marked.unread.at + timedelta(hours=1)
        second: ConsolidationReport = await (await memory.request("schedule")).result()
        assert (second.passes, second.refused, second.extractions) == (1, 0, 0)
        with pytest.raises(WorkflowUpdateFailedError):
            await memory.consolidate()
        (marked,) = await memory.episodes()
        assert marked.unread is not None
        assert marked.unread.refusals == 2
        model.words.clear()
        assert (await memory.consolidate()).episodes == 1
        (read,) = await memory.episodes()
        assert read.consolidated_at is not None
        assert read.unread is None


async def test_a_whole_refused_page_does_not_hide_what_comes_after(
    temporal_client: Client, repository: MemoryRepository, settings: Settings
) -> None:
    """As many refused turns as are selected at once are passed over, not selected again."""
    model = Picky({"Bombs": ModelHTTPError(422, "picky")})
    async with consolidating(temporal_client, repository, settings, model=model) as memory:
        await memory.say(*((f"I use Bombs{n}.", day(1 + n)) for n in range(20)))
        await memory.say(("I live in Lisbon.", day(25)), session="s2")
        report = await memory.consolidate()
        assert (report.episodes, report.refused) == (1, 20)
        assert current(await memory.semantic()) == {"The user lives in Lisbon."}


async def test_answers_that_stay_unusable_are_left_out_too(
    temporal_client: Client, repository: MemoryRepository, settings: Settings
) -> None:
    """A turn that the model cannot answer in the asked form is like a refused one."""
    model = Picky({"Bombs": UnexpectedModelBehavior("picky")})
    async with consolidating(temporal_client, repository, settings, model=model) as memory:
        await memory.say(("I use Bombs.", day(1)))
        await memory.say(("I live in Lisbon.", day(9)), session="s2")
        report = await memory.consolidate()
        assert (report.episodes, report.refused) == (1, 1)
        assert [f.code for f in report.failures] == [ModelAnswerUnusable.code]


async def test_refused_turns_do_not_count_as_answers_in_no_asked_form(
    temporal_client: Client, repository: MemoryRepository, settings: Settings
) -> None:
    """Three that were refused, and one without an answer: the model is not given up for it."""
    failing: dict[str, Exception] = {"Bombs": ModelHTTPError(400, "picky")}
    failing["Riddles"] = UnexpectedModelBehavior("picky")
    async with consolidating(temporal_client, repository, settings, model=Picky(failing)) as memory:
        bombs = [(f"I use Bombs{n}.", day(n)) for n in (1, 2, 3)]
        await memory.say(*bombs, ("I use Riddles.", day(4)), ("I live in Lisbon.", day(5)))
        report = await memory.consolidate()
        assert (report.episodes, report.refused) == (1, 4)


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_refused_key_ends_the_pass_at_the_first_batch(
    temporal_client: Client, repository: MemoryRepository, settings: Settings, status: int
) -> None:
    """What is refused whatever is asked is asked once."""
    model = Picky({"content": ModelHTTPError(status, "picky")})
    async with consolidating(temporal_client, repository, settings, model=model) as memory:
        for session in ("s1", "s2", "s3"):
            await memory.say(("I use Bombs.", day(1)), ("I like tea.", day(2)), session=session)
        with pytest.raises(WorkflowUpdateFailedError) as failed:
            await memory.consolidate()
        assert isinstance(failed.value.cause, ApplicationError)
        assert failed.value.cause.type == ModelRejected.code
        assert model.asked == 1


async def test_a_model_that_accepts_nothing_is_given_up(
    temporal_client: Client, repository: MemoryRepository, settings: Settings
) -> None:
    """Ten batches refused and none accepted: the pass ends instead of asking for all the rest."""
    model = Picky({"content": ModelHTTPError(400, "picky")})
    async with consolidating(temporal_client, repository, settings, model=model) as memory:
        for number in range(15):
            await memory.say(("I use Bombs.", day(1 + number)), session=f"s{number}")
        with pytest.raises(WorkflowUpdateFailedError) as failed:
            await memory.consolidate()
        assert isinstance(failed.value.cause, ApplicationError)
        assert failed.value.cause.type == ModelRejected.code
        assert model.asked == 11


async def test_a_refused_linking_leaves_what_was_read(
    temporal_client: Client, repository: MemoryRepository, settings: Settings
) -> None:
    """Refusing to link neither undoes nor blocks consolidation, and is not asked for again."""
    model = Picky({'"task":"link"': ModelHTTPError(400, "picky")})
    async with consolidating(temporal_client, repository, settings, model=model) as memory:
        await memory.say(("I live in Lisbon.", day(1)))
        handle = await memory.request("session ended")
        report = await handle.result()
        assert (report.episodes, report.linking_passes) == (1, 1)
        assert [f.code for f in report.failures] == [ModelRejected.code]
        assert model.asked == 2


async def test_turns_that_state_more_than_an_answer_holds_are_read_in_halves(
    temporal_client: Client, repository: MemoryRepository, settings: Settings
) -> None:
    """Two hundred statements in one batch all become known; none is cut off in silence."""
    async with consolidating(temporal_client, repository, settings) as memory:
        turns = [
            (" ".join(f"I use Tool{turn}x{n}." for n in range(50)), day(1 + turn))
            for turn in range(4)
        ]
        await memory.say(*turns)
        report = await memory.consolidate()
        assert (report.statements, report.actions["store_note"], report.overfull) == (200, 200, 0)
        assert report.episodes == 4


async def test_a_turn_that_states_too_much_alone_is_reported(
    temporal_client: Client, repository: MemoryRepository, settings: Settings
) -> None:
    """One turn cannot be halved: the report says that something of it was left out."""
    async with consolidating(temporal_client, repository, settings) as memory:
        await memory.say((" ".join(f"I use Tool{n}." for n in range(130)), day(1)))
        report = await memory.consolidate()
        assert (report.episodes, report.overfull, report.actions["store_note"]) == (1, 1, 120)


async def test_only_a_new_source_counts_as_confirmed(
    temporal_client: Client, repository: MemoryRepository, settings: Settings
) -> None:
    """A memory that only learns what came before it was not corroborated."""
    async with consolidating(temporal_client, repository, settings) as memory:
        await memory.say(("I live in London.", day(1, 3)))
        await memory.consolidate()
        await memory.say(("I live in Paris.", day(1)), session="s2")
        report = await memory.consolidate()
        london = next(m for m in await memory.semantic() if "London" in m.content)
        assert len(london.supersedes) == 1
        assert (report.stored, report.corroborated) == (1, 0)
        await memory.say(("I live in London.", day(9, 3)), session="s3")
        assert (await memory.consolidate()).corroborated == 1


async def test_a_cancelled_consolidation_is_cancelled(
    temporal_client: Client, repository: MemoryRepository, settings: Settings
) -> None:
    """Cancelling ends the run as cancelled, and tells callers to ask the next one."""
    async with consolidating(temporal_client, repository, settings) as memory:
        reading, go_on = asyncio.Event(), asyncio.Event()

        async def read() -> None:
            reading.set()
            await go_on.wait()

        memory.faults.during[names.EXTRACT_ACTIVITY] = read
        await memory.say(("I live in Lisbon.", day(1)))
        asking = asyncio.create_task(memory.consolidate())
        await reading.wait()
        handle = temporal_client.get_workflow_handle(names.consolidation_workflow_id(memory.scope))
        await handle.cancel()
        with pytest.raises(WorkflowFailureError) as ended:
            await handle.result()
        assert isinstance(ended.value.cause, CancelledError)
        described = await handle.describe()
        assert described.status is WorkflowExecutionStatus.CANCELED
        with pytest.raises(WorkflowUpdateFailedError) as failed:
            await asking
        assert isinstance(failed.value.cause, ApplicationError)
        assert failed.value.cause.type == RunEnded.code
        go_on.set()
        memory.faults.during.clear()
        assert (await memory.consolidate()).stored == 1


@pytest.mark.parametrize(
    ("activity_type", "code"),
    [
        (names.EXTRACT_ACTIVITY, "model_unavailable"),
        (names.LINK_ACTIVITY, "model_unavailable"),
        (names.CONSOLIDATE_TURNS_ACTIVITY, "storage_unavailable"),
    ],
)
def test_running_out_of_time_is_a_typed_error_worth_a_retry(activity_type: str, code: str) -> None:
    """A timeout reaches callers as what it is: something to ask for again."""
    error = ActivityError(
        "Activity task timed out",
        scheduled_event_id=5,
        started_event_id=6,
        identity="worker",
        activity_type=activity_type,
        activity_id="1",
        retry_state=RetryState.MAXIMUM_ATTEMPTS_REACHED,
    )
    error.__cause__ = TimeoutError(
        "activity timeout", type=TimeoutType.START_TO_CLOSE, last_heartbeat_details=[]
    )
    failure = failure_of(error)
    assert failure.code == code
    assert error_from_dict(failure.error).retryable
