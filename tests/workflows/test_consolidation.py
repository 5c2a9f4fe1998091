"""Consolidation on a real Temporal server, the real engine and the real rules."""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.common import SearchAttributeKey
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.exceptions import ApplicationError
from temporalio.testing import WorkflowEnvironment

from engram.consolidation.apply import PlanWriter
from engram.consolidation.taking_up import TurnConsolidator
from engram.contracts import names
from engram.contracts.consolidation import ConsolidationReport
from engram.domain.memories import MemoryForm, MemoryStatus, SemanticMemory
from engram.domain.scope import Scope
from engram.errors import ModelRejected
from engram.ports import MemoryRepository
from engram.settings import Settings
from engram.storage.updates import update_memories
from tests.support.consolidation_workers import Faults, Memory, Picky, consolidating, current, day
from tests.support.edge_stores import borrowed_store
from tests.support.remembering import everything, remembering, said
from tests.support.rules_model import RulesModel


@pytest.fixture
async def memory(
    temporal_client: Client, repository: MemoryRepository, settings: Settings
) -> AsyncIterator[Memory]:
    """A user with nothing said yet."""
    async with consolidating(temporal_client, repository, settings) as opened:
        yield opened


async def test_turns_become_knowledge_with_sources(memory: Memory) -> None:
    """A pass stores what was stated, names its sources, and marks the turns."""
    await memory.say(("I live in Lisbon.", day(1)), ("I work at Tram & Sons.", day(2)))
    report = await memory.consolidate()
    assert (report.episodes, report.stored, report.failures) == (2, 2, ())
    known = await memory.semantic()
    assert {m.content for m in known} == {
        "The user lives in Lisbon.",
        "The user works at Tram & Sons.",
    }
    said = {e.content: e for e in await memory.episodes()}
    lisbon = next(m for m in known if "Lisbon" in m.content)
    assert lisbon.source_episode_ids == (said["I live in Lisbon."].id,)
    assert lisbon.known_at == day(1)
    assert lisbon.provenance.model == "engram:rules"
    assert lisbon.provenance.run_id == report.run_id
    assert (lisbon.selectivity, lisbon.consolidation_passes) == (0.0, 1)
    assert all(e.consolidated_at is not None for e in said.values())


async def test_paris_london_paris_is_three_generations_of_history(memory: Memory) -> None:
    """A value that returns is a new generation, and the history says what held when."""
    await memory.say(("I live in Paris.", day(1)), session="a")
    await memory.consolidate()
    await memory.say(("I moved to London.", day(1, 3)), session="b")
    await memory.consolidate()
    await memory.say(("I moved to Paris.", day(1, 6)), session="c")
    await memory.consolidate()
    first, second, third = await memory.semantic()
    assert [m.slot.object for m in (first, second, third) if m.slot] == ["paris", "london", "paris"]
    assert (first.generation, third.generation) == (0, 1)
    assert first.superseded_by == second.id
    assert (first.valid_to, first.superseded_known_at) == (day(1, 3), day(1, 3))
    assert second.superseded_by == third.id
    assert second.supersedes == (first.id,)
    assert (second.valid_from, second.valid_to) == (day(1, 3), day(1, 6))
    assert third.status is MemoryStatus.ACTIVE
    assert third.valid_to is None


CONVERSATION = (
    ("I live in Paris and I use Trello.", day(1)),
    ("I work at Rise as a baker.", day(2)),
    ("I moved to London in March.", day(20, 3)),
    ("I switched from Trello to Linear.", day(21, 3)),
    ("I still use Linear, and I work at Rise.", day(2, 4)),
)
STEPS = (
    names.SELECT_DUE_ACTIVITY,
    names.EXTRACT_ACTIVITY,
    names.CONSOLIDATE_TURNS_ACTIVITY,
    names.LINK_ACTIVITY,
    names.APPLY_PLAN_ACTIVITY,
    names.DIGEST_ACTIVITY,
)
# What the one step does that takes up what was read, in this order.
EFFECTS = ("plan", "write", "retire", "mark")


async def _reread(memory: Memory) -> None:
    """Make every turn due again."""
    await update_memories(
        memory.repository,
        memory.scope,
        [e.id for e in await memory.episodes()],
        lambda m: m.model_copy(update={"consolidated_at": None}),
        new_write_id=lambda: uuid4().hex,
    )


async def _play(memory: Memory) -> None:
    for words, at in CONVERSATION:
        await memory.say((words, at), session=f"{at:%m%d}")
        await memory.consolidate()


async def test_a_second_pass_changes_nothing(memory: Memory) -> None:
    """With nothing new, and even when every turn is read again, memory stays as it is."""
    await _play(memory)
    before = await memory.semantic()
    idle = await memory.consolidate()
    assert (idle.episodes, idle.stored, idle.corroborated, idle.links) == (0, 0, 0, 0)
    assert await memory.semantic() == before
    await _reread(memory)
    again = await memory.consolidate()
    assert again.episodes == len(CONVERSATION)
    assert (again.stored, again.corroborated, again.superseded) == (0, 0, 0)
    assert await memory.semantic() == before


@pytest.mark.slow
async def test_a_crash_between_any_two_steps_leads_to_the_same_memory(
    temporal_client: Client, settings: Settings
) -> None:
    """Each activity fails once, before or after its effect; the final memory is the same."""
    scope = Scope.of("default", f"user-{uuid4().hex[:8]}")
    pictures = []
    for before, after in ((), ()), (STEPS, ()), ((), STEPS):
        faults = Faults(set(before), set(after))
        async with (
            borrowed_store() as repository,
            consolidating(
                temporal_client, repository, settings, model=Picky({}), scope=scope, faults=faults
            ) as memory,
        ):
            for words, at in CONVERSATION:
                await memory.say((words, at), session=f"{at:%m%d}")
            report = await memory.consolidate()
            assert report.failures == ()
            assert not faults.before
            assert not faults.after
            pictures.append(await memory.picture())
    assert len(pictures[0]) == 7
    assert pictures[1] == pictures[0]
    assert pictures[2] == pictures[0]


def _fail_once(patch: pytest.MonkeyPatch, effect: str) -> None:
    """Let an effect fail for good, once, before it does anything."""
    whose = PlanWriter if effect in {"write", "retire"} else TurnConsolidator
    original, failed = getattr(whose, effect), list[bool]()

    async def failing(*args: Any, **named: Any) -> Any:
        if not failed:
            failed.append(True)
            raise ApplicationError("crashed for good", type="crash", non_retryable=True)
        return await original(*args, **named)

    patch.setattr(whose, effect, failing)


@pytest.mark.parametrize("step", [names.EXTRACT_ACTIVITY, *EFFECTS])
async def test_a_run_that_ends_half_way_is_made_good_by_the_next(
    memory: Memory, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass that stops for good before any step leaves nothing that the next does not mend."""
    await _play(memory)
    settled = await memory.picture()
    await memory.say(("I moved to Rome.", day(1, 9)), ("I no longer use Linear.", day(2, 9)))
    if step in EFFECTS:
        _fail_once(monkeypatch, step)
    else:
        memory.faults.fatal.add(step)
    with pytest.raises(WorkflowUpdateFailedError) as failed:
        await memory.consolidate()
    assert isinstance(failed.value.cause, ApplicationError)
    assert failed.value.cause.type == "crash"
    stopped = await memory.picture()
    if step != "mark":
        # Nothing old is retired before everything new is there.
        assert {m["id"] for m in settled} <= {
            m["id"] for m in stopped if m["superseded_by"] is None
        } | {m["id"] for m in settled if m["superseded_by"]}
    report = await memory.consolidate()
    assert report.failures == ()
    known = await memory.semantic()
    assert {"The user lives in Rome.", "The user no longer uses Linear."} <= current(known)
    assert not {"The user lives in London.", "The user uses Linear."} & current(known)
    assert all(e.consolidated_at for e in await memory.episodes())


class Moody(RulesModel):
    """The rules, behind a provider that sometimes fails."""

    def __init__(self, *moods: Exception) -> None:
        super().__init__()
        self.moods = list(moods)
        self.asked: list[float] = []

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """See the base class."""
        self.asked.append(time.monotonic())
        if self.moods:
            raise self.moods.pop(0)
        return await super().request(messages, model_settings, model_request_parameters)


async def test_a_model_that_refuses_leaves_memory_as_it_was(
    temporal_client: Client, repository: MemoryRepository, settings: Settings
) -> None:
    """The caller gets the typed error, turns stay due, nothing loops, the next request works."""
    model = Moody(ModelHTTPError(401, "moody"))
    async with consolidating(temporal_client, repository, settings, model=model) as memory:
        await memory.say(("I live in Lisbon.", day(1)))
        with pytest.raises(WorkflowUpdateFailedError) as failed:
            await memory.consolidate()
        assert isinstance(failed.value.cause, ApplicationError)
        assert failed.value.cause.type == ModelRejected.code
        assert await memory.semantic() == []
        assert [e.consolidated_at for e in await memory.episodes()] == [None]
        handle = temporal_client.get_workflow_handle(
            names.consolidation_workflow_id(memory.scope), result_type=ConsolidationReport
        )
        ended = await handle.result()
        assert [f.code for f in ended.failures] == [ModelRejected.code]
        assert len(model.asked) == 1
        assert (await memory.consolidate()).stored == 1


async def test_a_rate_limit_is_waited_for_as_long_as_the_provider_says(
    temporal_client: Client, repository: MemoryRepository, settings: Settings
) -> None:
    """429 with a delay: the next attempt comes after it, not after our shorter back-off."""
    model = Moody(ModelHTTPError(429, "moody", headers={"retry-after": "2"}))
    async with consolidating(temporal_client, repository, settings, model=model) as memory:
        await memory.say(("I live in Lisbon.", day(1)))
        assert (await memory.consolidate()).stored == 1
        first, second = model.asked[:2]
        assert second - first >= 2.0


async def test_linking_waits_for_three_extractions_and_then_links_both_ways(
    memory: Memory,
) -> None:
    """Two extractions link nothing, the third links what names the same."""
    said = ("I work at Rise.", "I live in Lisbon.", "I use Rise to buy flour.")
    handle = await memory.request()
    for number, words in enumerate(said):
        assert [m for m in await memory.semantic() if m.links] == []
        await memory.say((words, day(1 + number)), session=f"s{number}")
        handle = await memory.request()
        await _until_consolidated(memory)
    result = await handle.result()
    assert (result.linking_passes, result.links, result.extractions) == (1, 1, 3)
    first, other, second = await memory.semantic()
    assert first.related_ids == (second.id,)
    assert second.related_ids == (first.id,)
    assert other.links == ()


async def _until_consolidated(memory: Memory) -> None:
    while any(e.consolidated_at is None for e in await memory.episodes()):  # noqa: ASYNC110 - the store has no event to wait for
        await asyncio.sleep(0.02)


async def test_a_closing_session_links_at_once(memory: Memory) -> None:
    """The end of a session does not wait for a third extraction; the workflow then ends."""
    await memory.say(("I work at Rise.", day(1)), ("I use Rise to buy flour.", day(2)))
    handle = await memory.request("session ended")
    result = await handle.result()
    assert (result.linking_passes, result.links, result.extractions) == (1, 1, 1)


async def test_survivors_of_linking_passes_gain_selectivity_once_per_pass(memory: Memory) -> None:
    """New at 0 and one pass; each later pass that looks at it adds 0.1 and a pass."""
    await memory.say(("I work at Rise.", day(1)))
    await memory.consolidate()
    (rise,) = await memory.semantic()
    assert (rise.selectivity, rise.consolidation_passes) == (0.0, 1)
    memory.faults.after.add(names.LINK_ACTIVITY)
    await memory.say(("I work at Rise.", day(2)))
    await memory.consolidate()
    assert not memory.faults.after
    (rise,) = await memory.semantic()
    assert (rise.selectivity, rise.consolidation_passes) == (0.1, 2)
    assert len(rise.source_episode_ids) == 2


async def test_what_arrives_during_a_pass_is_consolidated_in_the_same_run(memory: Memory) -> None:
    """A running pass goes round again if anything arrived: no request is lost."""
    await memory.say(("I live in Lisbon.", day(1)))
    late = asyncio.Event()

    async def arrive() -> None:
        if not late.is_set():
            late.set()
            await memory.say(("I work at Rise.", day(2)), session="s2")
            await memory.request("session idle")

    memory.faults.during[names.EXTRACT_ACTIVITY] = arrive
    handle = await memory.request("session ended")
    result = await handle.result()
    assert late.is_set()
    assert result.episodes == 2
    assert result.passes >= 2
    assert {m.content for m in await memory.semantic()} == {
        "The user lives in Lisbon.",
        "The user works at Rise.",
    }


async def test_many_callers_get_a_report_each(memory: Memory) -> None:
    """Updates that meet are all answered, by passes that began after they asked."""
    await memory.say(*((f"I use Tool{n}.", day(1 + n)) for n in range(6)))
    reports = await asyncio.gather(*(memory.consolidate() for _ in range(4)))
    assert all(report.failures == () for report in reports)
    stated = [m for m in await memory.semantic() if m.form is MemoryForm.STATEMENT]
    assert len(stated) == 6
    assert all(e.consolidated_at for e in await memory.episodes())


async def test_an_empty_memory_is_consolidated_to_nothing(memory: Memory) -> None:
    """Nothing said is no error."""
    report = await memory.consolidate()
    assert report.model_dump(exclude={"passes", "workflow_id", "run_id", "cost_usd"}) == (
        ConsolidationReport().model_dump(exclude={"passes", "workflow_id", "run_id", "cost_usd"})
    )


async def test_continue_as_new_carries_on_where_it_was(
    repository: MemoryRepository, settings: Settings
) -> None:
    """A history that fills up goes on in a new run, and everything is consolidated once."""
    policy = settings.model_copy(update={"extraction_batch_turns": 1})
    # A model that is paid is asked for one batch at a time.
    paid = Picky({})
    async with await _server_with_short_histories() as server:
        async with consolidating(server.client, repository, policy, model=paid) as memory:
            turns = [(f"I use Tool{n}.", day(1 + n)) for n in range(8)]
            await memory.say(*turns)
            handle = await memory.request("session ended")
            result = await handle.result()
            runs = [r async for r in server.client.list_workflows(f"WorkflowId='{handle.id}'")]
        assert len(runs) > 1
        assert result.actions["store_note"] == len(turns)
        assert result.extractions == len(turns)
        assert len(current(await memory.semantic())) == len(turns)


async def _server_with_short_histories() -> WorkflowEnvironment:
    binary = shutil.which("temporal", path=str(Path(sys.executable).parent))
    return await WorkflowEnvironment.start_local(
        data_converter=pydantic_data_converter,
        dev_server_existing_path=binary,
        search_attributes=[
            SearchAttributeKey.for_keyword(one)
            for one in (names.USER_ATTRIBUTE, names.STAGE_ATTRIBUTE)
        ],
        dev_server_extra_args=[
            *("--dynamic-config-value", "limit.historyCount.suggestContinueAsNew=60"),
        ],
    )


async def test_a_dry_run_says_what_would_change_and_writes_nothing(
    temporal_client: Client,
) -> None:
    """What would be stored and replaced, word for word; afterwards all is as it was and due."""
    async with remembering(temporal_client) as (memory, repository):
        await memory.encode([said("I live in Porto.", 0)], session_id="s1")
        await memory.consolidate()
        await memory.encode([said("I live in Lisbon.", 9)], session_id="s1")
        before = await everything(repository, memory.scope)
        tried = await memory.consolidate(dry_run=True)
        assert await everything(repository, memory.scope) == before
        assert (tried.dry_run, tried.episodes, tried.stored, tried.superseded) == (True, 1, 1, 1)
        shown = {change.action: change for change in tried.changes}
        assert shown["store_note"].content == "The user lives in Lisbon."
        (porto,) = (m for m in before.values() if m.content == "The user lives in Porto.")
        assert shown["update_note"].memory_id == porto.id
        assert isinstance(porto, SemanticMemory)
        rests_on = shown["update_note"].eligibility
        assert (rests_on.source, rests_on.state) == ("extraction", porto.lifecycle)
        assert rests_on.confidence == porto.confidence.extraction > 0
        done = await memory.consolidate()
        assert (done.dry_run, done.changes) == (False, ())
        assert (done.actions, done.superseded) == (tried.actions, 1)
        await memory.end_session("s1")
