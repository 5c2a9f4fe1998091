"""Test memories: made, boosted, listed, removed, and scenarios with them."""

from __future__ import annotations

import pytest

from engram.client.operations import trials as ops
from engram.client.operations.operation import Question
from engram.client.operations.scenarios import Scenario
from engram.domain.memories import MemoryType, SemanticMemory
from engram.errors import InvalidInput
from tests.support.lifecycle_workers import turn
from tests.unit.operations.conftest import ADA, Bench, ago


async def test_test_memories_are_made_boosted_listed_and_removed(bench: Bench) -> None:
    """Removing takes test memories only."""
    real = turn(ADA, "real", ago(1))
    await bench.keep(real)
    asked = ops.CreateTest(content="I like tea", conclusion=True, age_days=3)
    made = (await bench.ask(ops.TEST_CREATE, asked)).memory
    again = (await bench.ask(ops.TEST_CREATE, asked)).memory
    assert isinstance(made, SemanticMemory)
    assert made.is_test
    assert again.id == made.id
    boosted = await bench.ask(ops.TEST_BOOST, ops.BoostTest(memory_id=made.id, recalls=3))
    assert boosted.memory.access_count == 3
    listed = await bench.ask(ops.TEST_LIST, Question())
    assert {memory.type for memory in listed} == {MemoryType.EPISODIC, MemoryType.SEMANTIC}
    assert await bench.ask(ops.TEST_DELETE, ops.DeleteTests()) == 2
    assert await bench.ask(ops.TEST_LIST, Question()) == []
    assert await bench.store.count(ADA, MemoryType.EPISODIC) == 1


async def test_real_memories_are_refused(bench: Bench) -> None:
    """Boosting or removing a real memory by a test command does nothing."""
    real = turn(ADA, "real", ago(1))
    await bench.keep(real)
    with pytest.raises(InvalidInput, match="no test memory"):
        await bench.ask(ops.TEST_BOOST, ops.BoostTest(memory_id=real.id))
    with pytest.raises(InvalidInput, match="no test memory"):
        await bench.ask(ops.TEST_DELETE, ops.DeleteTests(memory_ids=(real.id,)))
    assert await bench.store.count(ADA, MemoryType.EPISODIC) == 1


@pytest.mark.parametrize("name", list(Scenario))
async def test_every_scenario_goes_as_it_should_and_leaves_nothing(
    bench: Bench, name: Scenario
) -> None:
    """Under the default rules each passes; real memories stay, test memories are gone."""
    real = turn(ADA, "real", ago(300))
    await bench.keep(real)
    report = await bench.ask(ops.TEST_SCENARIO, ops.PlayScenario(name=name))
    assert report.passed, report.steps
    assert await bench.ask(ops.TEST_LIST, Question()) == []
    assert await bench.now_is(real) == (await bench.store.get(ADA, [real.id]))[real.id]
    assert (await bench.now_is(real)).revision == 0
