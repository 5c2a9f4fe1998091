"""Test memories: made, boosted, listed, removed, and scenarios with them."""

from __future__ import annotations

import pytest

from engram.domain.memories import MemoryType, SemanticMemory
from engram.errors import InvalidInput
from engram.operations import trials as ops
from engram.operations.registry import Question
from engram.operations.trials import Scenario
from tests.support.handled_store import ADA, HandledStore, ago
from tests.support.lifecycle_workers import turn


async def test_test_memories_are_made_boosted_listed_and_removed(handled: HandledStore) -> None:
    """Removing takes test memories only."""
    real = turn(ADA, "real", ago(1))
    await handled.keep(real)
    asked = ops.CreateTest(content="I like tea", conclusion=True, age_days=3)
    made = (await handled.ask(ops.TEST_CREATE, asked)).memory
    again = (await handled.ask(ops.TEST_CREATE, asked)).memory
    assert isinstance(made, SemanticMemory)
    assert made.is_test
    assert again.id == made.id
    boosted = await handled.ask(ops.TEST_BOOST, ops.BoostTest(memory_id=made.id, recalls=3))
    assert boosted.memory.access_count == 3
    listed = await handled.ask(ops.TEST_LIST, Question())
    assert {memory.type for memory in listed} == {MemoryType.EPISODIC, MemoryType.SEMANTIC}
    assert await handled.ask(ops.TEST_DELETE, ops.DeleteTests()) == 2
    assert await handled.ask(ops.TEST_LIST, Question()) == []
    assert await handled.store.count(ADA, MemoryType.EPISODIC) == 1


async def test_a_test_conclusion_of_another_age_is_another_one(handled: HandledStore) -> None:
    """As its dry run says; the same words of the same day are the same."""
    asked = [
        ops.CreateTest(content="I like tea", conclusion=True, age_days=age, dry_run=dry_run)
        for age in (0, 100)
        for dry_run in (True, False)
    ]
    made = [(await handled.ask(ops.TEST_CREATE, one)).memory for one in asked]
    assert [one.id for one in made[::2]] == [one.id for one in made[1::2]]
    assert [one.known_at for one in made[::2]] == [one.known_at for one in made[1::2]]
    assert made[0].id != made[2].id


async def test_a_test_memory_that_is_named_twice_is_removed_once(handled: HandledStore) -> None:
    """And counted once, also by the dry run."""
    made = (await handled.ask(ops.TEST_CREATE, ops.CreateTest(content="I like tea"))).memory
    for dry_run in (True, False):
        asked = ops.DeleteTests(memory_ids=(made.id, made.id), dry_run=dry_run)
        assert await handled.ask(ops.TEST_DELETE, asked) == 1


async def test_many_test_turns_hide_no_test_conclusion(
    handled: HandledStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each type the oldest are listed."""
    monkeypatch.setattr(ops, "_MOST_TRIALS", 2)
    for age in range(4):
        asked = ops.CreateTest(content="I like tea", conclusion=age == 0, age_days=age)
        await handled.ask(ops.TEST_CREATE, asked)
    listed = await handled.ask(ops.TEST_LIST, Question())
    kinds = [memory.type for memory in listed]
    assert kinds == [MemoryType.EPISODIC, MemoryType.EPISODIC, MemoryType.SEMANTIC]


async def test_real_memories_are_refused(handled: HandledStore) -> None:
    """Boosting or removing a real memory by a test command does nothing."""
    real = turn(ADA, "real", ago(1))
    await handled.keep(real)
    with pytest.raises(InvalidInput, match="no test memory"):
        await handled.ask(ops.TEST_BOOST, ops.BoostTest(memory_id=real.id))
    with pytest.raises(InvalidInput, match="no test memory"):
        await handled.ask(ops.TEST_DELETE, ops.DeleteTests(memory_ids=(real.id,)))
    assert await handled.store.count(ADA, MemoryType.EPISODIC) == 1


@pytest.mark.parametrize("name", list(Scenario))
@pytest.mark.parametrize(
    ("handled", "inapplicable"),
    [
        ({"lifecycle": {"time_to_live": {"episodic_days": 7}}}, {Scenario.USE}),
        ({"lifecycle": {"retention": {"archive_below": 0}}}, {Scenario.FADE, Scenario.USE}),
        ({"lifecycle": {"retention": {"archive_below": 0.9}}}, {Scenario.STAY, Scenario.USE}),
        ({"lifecycle": {"promotion": {"confidence": 0.9}}}, {Scenario.HABIT}),
        ({"lifecycle": {"time_to_live": {"semantic_days": 7}}}, {Scenario.HABIT}),
    ],
    indirect=["handled"],
)
async def test_a_scenario_that_the_settings_do_not_have_is_no_failure(
    handled: HandledStore, inapplicable: set[Scenario], name: Scenario
) -> None:
    """It says so, and leaves nothing either; the others are played as ever."""
    report = await handled.ask(ops.TEST_SCENARIO, ops.PlayScenario(name=name))
    assert report.passed, report.steps
    said = any(step.startswith("not applicable under these settings") for step in report.steps)
    assert said == (name in inapplicable)
    assert await handled.ask(ops.TEST_LIST, Question()) == []


@pytest.mark.parametrize("name", list(Scenario))
async def test_every_scenario_goes_as_it_should_and_leaves_nothing(
    handled: HandledStore, name: Scenario
) -> None:
    """Under the default rules each passes; real memories stay, test memories are gone."""
    real = turn(ADA, "real", ago(300))
    await handled.keep(real)
    report = await handled.ask(ops.TEST_SCENARIO, ops.PlayScenario(name=name))
    assert report.passed, report.steps
    assert all(step.startswith(("stored", "yes")) for step in report.steps)
    assert await handled.ask(ops.TEST_LIST, Question()) == []
    assert await handled.now_is(real) == (await handled.store.get(ADA, [real.id]))[real.id]
    assert (await handled.now_is(real)).revision == 0
