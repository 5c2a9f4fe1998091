"""Promotion passes on a real Temporal server and the real engine."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio.client import Client

from engram.contracts import names
from engram.contracts.lifecycle import FindDueUsersInput, PassKind, PromotionReport, WalkInput
from engram.contracts.messages import Population
from engram.contracts.session import ConsolidationRequest
from engram.domain.memories import (
    AnyMemory,
    LinkKind,
    MemoryStatus,
    MemoryType,
    ProceduralMemory,
    SemanticMemory,
    Tier,
    Vitals,
)
from engram.errors import StorageError
from engram.lifecycle.due import due_users
from engram.lifecycle.promotion_pass import Promoter, follow_sources
from engram.settings import Settings
from engram.storage.edge import EdgeRepository
from engram.storage.updates import update_memories
from tests.support.consolidation_workers import Faults
from tests.support.lifecycle_workers import LifecycleUser, knowledge, lifecycle_workers, turn
from tests.support.recall_memories import negation
from tests.support.stores import worker_settings

NOW = datetime.now(UTC).replace(microsecond=0)
EARLIER = NOW - timedelta(days=2)
EARNED: dict[str, Any] = {"selectivity": 0.6, "consolidation_passes": 3}
HABIT = "The user always drinks tea when working late"


@pytest.fixture
def settings() -> Settings:
    """Retention, as by default."""
    return worker_settings(promotion_batch=2)


@pytest.fixture
def energetic() -> Settings:
    """The energy policy, with tiers."""
    return worker_settings(lifecycle={"decay_policy": "energy"})


async def habits(lives: LifecycleUser) -> list[ProceduralMemory]:
    """Every habit of the user."""
    page = await lives.store.scroll(lives.scope, MemoryType.PROCEDURAL)
    return [memory for memory in page.memories if isinstance(memory, ProceduralMemory)]


async def test_earned_knowledge_becomes_a_habit(lives: LifecycleUser) -> None:
    """A habit has a trigger context, its source's episodes, and links both ways."""
    ready = knowledge(lives.scope, HABIT, EARLIER, **EARNED)
    new = knowledge(lives.scope, "The user prefers dark mode", EARLIER)
    plain = knowledge(lives.scope, "The user lives in Lisbon", EARLIER, **EARNED)
    await lives.keep(ready, new, plain)
    report = await lives.passes.promote(lives.scope)
    (habit,) = await habits(lives)
    assert report.promoted == (habit.id,)
    assert report.count("to_habit") == report.linked == 1
    assert report.considered == 2
    assert habit.content == HABIT
    assert habit.trigger_context == "when working late"
    assert habit.source_episode_ids == ready.source_episode_ids
    assert habit.provenance.workflow_id == names.promotion_workflow_id(lives.scope)
    source = await lives.now(ready)
    assert isinstance(source, SemanticMemory)
    assert [(x.kind, x.target_id) for x in source.links] == [(LinkKind.PROMOTED_TO, habit.id)]
    assert [(x.kind, x.target_id) for x in habit.links] == [(LinkKind.PROMOTED_TO, ready.id)]


async def test_promoting_again_makes_nothing(lives: LifecycleUser) -> None:
    """No duplicates; and what cannot become a habit is considered once."""
    await lives.keep(
        knowledge(lives.scope, HABIT, EARLIER, **EARNED),
        knowledge(lives.scope, "The user lives in Lisbon", EARLIER, **EARNED),
    )
    await lives.passes.promote(lives.scope)
    again = await lives.passes.promote(lives.scope)
    assert (again.promoted, again.transitions, again.considered) == ((), (), 0)
    assert len(await habits(lives)) == 1


async def test_a_long_pass_goes_on_in_a_new_run(
    temporal_client: Client, store: EdgeRepository, settings: Settings, monkeypatch: Any
) -> None:
    """A run that fills up with each stretch begins the next one where that ended."""
    monkeypatch.setattr("engram.lifecycle.promotion_pass.MOST_AT_ONCE", 10)
    monkeypatch.setattr(
        "temporalio.workflow.Info.is_continue_as_new_suggested",
        lambda info: info.get_current_history_length() > 5,
    )
    async with lifecycle_workers(temporal_client, store, settings, in_sandbox=False) as lives:
        await lives.keep(
            *(knowledge(lives.scope, f"{HABIT} {n}", EARLIER, **EARNED) for n in range(12))
        )
        report = await asyncio.wait_for(lives.passes.promote(lives.scope), timeout=30)
        assert report.considered == 12
        handle = temporal_client.get_workflow_handle(names.promotion_workflow_id(lives.scope))
        first = await handle.describe()
        assert first.raw_description.workflow_execution_info.first_run_id != report.run_id


async def test_a_refusal_counts_beside_the_rises_and_once(
    temporal_client: Client, store: EdgeRepository
) -> None:
    """What rose a tier and tells no habit has tried twice; later passes write nothing of it."""
    rising = {"decay_policy": "energy", "energy": {"conclusion_tier": "short_term"}}
    risen = Vitals(promotion_attempts=1, tier=Tier.LONG_TERM, last_promotion=EARLIER)
    async with lifecycle_workers(
        temporal_client, store, worker_settings(lifecycle=rising)
    ) as lives:
        words = "The user lives in Lisbon"
        plain = knowledge(lives.scope, words, EARLIER, vitals=risen, **EARNED)
        await lives.keep(plain)
        await lives.passes.promote(lives.scope)
        once = await lives.now(plain)
        assert once.vitals is not None
        assert (once.vitals.promotion_attempts, once.vitals.last_promotion) == (2, EARLIER)
        assert once.vitals.refused_at is not None
        assert (await lives.passes.promote(lives.scope)).considered == 1
        assert await lives.now(plain) == once


async def test_what_was_denied_since_becomes_no_habit(lives: LifecycleUser) -> None:
    """A pass refuses it once, as a dry run tells; what was told after the denial is promoted."""
    denied = knowledge(lives.scope, HABIT, EARLIER, **EARNED)
    denial = negation("The user does not drink tea", "drink tea", scope=lives.scope, known_at=NOW)
    since = knowledge(lives.scope, f"{HABIT} again", NOW + timedelta(hours=1), **EARNED)
    await lives.keep(denied, denial, since)
    tried = await lives.passes.promote(lives.scope, dry_run=True)
    report = await lives.passes.promote(lives.scope)
    (habit,) = await habits(lives)
    assert habit.content == since.content
    assert tried.promoted == report.promoted == (habit.id,)
    refused = await lives.now(denied)
    assert refused.vitals is not None
    assert refused.vitals.refused_at is not None
    assert (await lives.passes.promote(lives.scope)).considered == 0


async def test_a_dry_run_of_promotion_writes_nothing(lives: LifecycleUser) -> None:
    """It names the habit that the real pass then makes."""
    ready = knowledge(lives.scope, HABIT, EARLIER, **EARNED)
    await lives.keep(ready)
    tried = await lives.passes.promote(lives.scope, dry_run=True)
    assert tried.dry_run
    assert await habits(lives) == []
    assert (await lives.now(ready)).revision == 0
    done = await lives.passes.promote(lives.scope)
    assert done.promoted == tried.promoted


async def test_test_memories_are_promoted_apart(lives: LifecycleUser) -> None:
    """A test memory becomes a test habit, in a pass over test memories."""
    await lives.keep(knowledge(lives.scope, HABIT, EARLIER, **EARNED, is_test=True))
    assert (await lives.passes.promote(lives.scope)).promoted == ()
    report = await lives.passes.promote(lives.scope, population=Population.TEST)
    (habit,) = await habits(lives)
    assert (report.promoted, habit.is_test) == ((habit.id,), True)


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_crash_makes_no_second_habit(
    temporal_client: Client, store: EdgeRepository, settings: Settings, when: str
) -> None:
    """Ids follow from what is promoted: trying again comes to the same."""
    faults = Faults(**{when: {names.PROMOTE_ACTIVITY}})  # type: ignore[arg-type]  # one of two fields
    async with lifecycle_workers(temporal_client, store, settings, interceptors=[faults]) as lives:
        await lives.keep(knowledge(lives.scope, HABIT, EARLIER, **EARNED))
        report = await lives.passes.promote(lives.scope)
        assert len(report.promoted) == 1
        assert len(await habits(lives)) == 1


async def test_a_habit_ends_with_its_source_and_returns_with_it(lives: LifecycleUser) -> None:
    """What a habit came from decides whether it holds."""
    ready = knowledge(lives.scope, HABIT, EARLIER, **EARNED)
    await lives.keep(ready)
    await lives.passes.promote(lives.scope)

    async def source_is(status: MemoryStatus) -> None:
        def change(memory: AnyMemory) -> AnyMemory:
            return memory.model_copy(update={"status": status})

        await update_memories(
            lives.store, lives.scope, [ready.id], change, new_write_id=lambda: status.value
        )

    await source_is(MemoryStatus.SUPERSEDED)
    report = await lives.passes.promote(lives.scope)
    assert report.count("follows_its_source") == 1
    assert [habit.status for habit in await habits(lives)] == [MemoryStatus.SUPERSEDED]
    await source_is(MemoryStatus.ACTIVE)
    await lives.passes.promote(lives.scope)
    assert [habit.status for habit in await habits(lives)] == [MemoryStatus.ACTIVE]


async def test_energy_lifts_memories_through_the_tiers(
    temporal_client: Client, store: EdgeRepository, energetic: Settings
) -> None:
    """From 2.0 to short-term, from 5.0 to long-term; what has less stays."""
    async with lifecycle_workers(temporal_client, store, energetic) as lives:
        kept = {
            peak: turn(
                lives.scope,
                f"recalled up to {peak}",
                NOW - timedelta(hours=1),
                access_count=int(peak),
                last_accessed_at=NOW,
                vitals=Vitals(energy=peak, energy_at=NOW, peak_energy=peak),
            )
            for peak in (1.9, 2.0, 5.0)
        }
        await lives.keep(*kept.values())
        report = await lives.passes.promote(lives.scope)
        tiers = {peak: (await lives.now(one)).vitals for peak, one in kept.items()}
        assert {peak: v.tier if v else None for peak, v in tiers.items()} == {
            1.9: None,
            2.0: Tier.SHORT_TERM,
            5.0: Tier.LONG_TERM,
        }
        assert report.count("to_short_term") == 2
        assert report.count("to_long_term") == 1


async def test_a_session_that_ends_lifts_what_is_lively(
    temporal_client: Client, store: EdgeRepository, energetic: Settings
) -> None:
    """At a session's end 1.5 is enough, for the turns of that session only."""
    async with lifecycle_workers(temporal_client, store, energetic) as lives:
        lively = Vitals(energy=1.6, energy_at=datetime.now(UTC), peak_energy=1.6)
        ended = turn(lives.scope, "lively", NOW, vitals=lively)
        quiet = turn(lives.scope, "quiet", NOW)
        other = turn(lives.scope, "elsewhere", NOW, vitals=lively, session_id="s2")
        await lives.keep(ended, quiet, other)
        request = ConsolidationRequest(reason="session ended", session_id="s1")
        await lives.passes.session_ended(lives.scope, request)
        handle = temporal_client.get_workflow_handle(names.promotion_workflow_id(lives.scope))
        await handle.result()
        tiers = [(await lives.now(one)).vitals for one in (ended, quiet, other)]
        assert [v.tier if v else None for v in tiers] == [Tier.SHORT_TERM, None, None]


async def test_a_session_that_ends_again_while_it_is_promoted_is_promoted_again(
    temporal_client: Client, store: EdgeRepository, energetic: Settings, monkeypatch: Any
) -> None:
    """What was said since the activity read lifts as well; further ends meanwhile count once."""
    lively = Vitals(energy=1.6, energy_at=datetime.now(UTC), peak_energy=1.6)
    request = ConsolidationRequest(reason="session ended", session_id="s1")
    promote_session, promoted = Promoter.promote_session, list[str | None]()
    async with lifecycle_workers(temporal_client, store, energetic) as lives:
        first, since = (turn(lives.scope, words, NOW, vitals=lively) for words in ("tea", "coffee"))

        async def promoting(promoter: Promoter, asked: WalkInput) -> PromotionReport:
            report = await promote_session(promoter, asked)
            if not promoted:
                await lives.keep(since)
                for _ in range(3):
                    await lives.passes.session_ended(lives.scope, request)
            promoted.append(asked.session_id)
            return report

        monkeypatch.setattr(Promoter, "promote_session", promoting)
        await lives.keep(first)
        await lives.passes.session_ended(lives.scope, request)
        handle = temporal_client.get_workflow_handle(names.promotion_workflow_id(lives.scope))
        await handle.result()
        vitals = [(await lives.now(one)).vitals for one in (first, since)]
    assert [v.tier if v else None for v in vitals] == [Tier.SHORT_TERM] * 2
    assert promoted == ["s1", "s1"]


async def test_a_session_that_cannot_be_promoted_takes_no_other_along(
    temporal_client: Client, store: EdgeRepository, energetic: Settings, monkeypatch: Any
) -> None:
    """What trips over one session's memories is told; the session that ended next is promoted."""
    lively = Vitals(energy=1.6, energy_at=datetime.now(UTC), peak_energy=1.6)
    broken, sound = (
        ConsolidationRequest(reason="session ended", session_id=session) for session in ("s1", "s2")
    )
    promote_session = Promoter.promote_session
    async with lifecycle_workers(temporal_client, store, energetic) as lives:
        told = turn(lives.scope, "tea", NOW, vitals=lively, session_id="s2")

        async def promoting(promoter: Promoter, asked: WalkInput) -> PromotionReport:
            if asked.session_id == "s1":
                await lives.passes.session_ended(lives.scope, sound)
                raise StorageError("A memory of this session cannot be read.")
            return await promote_session(promoter, asked)

        monkeypatch.setattr(Promoter, "promote_session", promoting)
        await lives.keep(told)
        await lives.passes.session_ended(lives.scope, broken)
        handle = temporal_client.get_workflow_handle(
            names.promotion_workflow_id(lives.scope), result_type=PromotionReport
        )
        report = await handle.result()
        vitals = (await lives.now(told)).vitals
    assert vitals is not None
    assert vitals.tier is Tier.SHORT_TERM
    assert [failure.code for failure in report.failures] == [StorageError.code]


async def test_sessions_end_without_a_pass_where_there_are_no_tiers(lives: LifecycleUser) -> None:
    """Under the retention policy no workflow is started for them."""
    request = ConsolidationRequest(reason="session ended", session_id="s1")
    await lives.passes.session_ended(lives.scope, request)
    found = [
        run
        async for run in lives.client.list_workflows(
            f'WorkflowId = "{names.promotion_workflow_id(lives.scope)}"'
        )
    ]
    assert found == []


async def test_promotion_finds_the_users_that_are_ready(lives: LifecycleUser) -> None:
    """Who has nothing that could be promoted is not passed over."""
    ready, poor = lives.other("ready"), lives.other("poor")
    await lives.keep(knowledge(ready, HABIT, EARLIER, **EARNED), scope=ready)
    await lives.keep(knowledge(poor, HABIT, EARLIER), scope=poor)
    asked = FindDueUsersInput(
        kind=PassKind.PROMOTION, now=NOW, rules=lives.settings.lifecycle_rules, most=10
    )
    assert (await due_users(lives.store, asked)).users == (ready,)
    report = await lives.passes.maintain(PassKind.PROMOTION)
    assert (report.users, report.promoted) == (1, 1)
    assert (await due_users(lives.store, asked)).users == ()


async def test_retiring_knowledge_ends_its_habit_at_once(lives: LifecycleUser) -> None:
    """Consolidation does not leave a habit behind whose source it replaced."""
    ready = knowledge(lives.scope, HABIT, EARLIER, **EARNED)
    await lives.keep(ready)
    (habit_id,) = (await lives.passes.promote(lives.scope)).promoted

    def change(memory: AnyMemory) -> AnyMemory:
        return memory.model_copy(update={"status": MemoryStatus.SUPERSEDED})

    await update_memories(
        lives.store, lives.scope, [ready.id], change, new_write_id=lambda: "retired"
    )
    for expected in (frozenset({habit_id}), frozenset[str]()):
        followed = await follow_sources(lives.store, lives.scope, [ready.id], lambda: "followed")
        assert followed == expected
    assert [habit.status for habit in await habits(lives)] == [MemoryStatus.SUPERSEDED]
