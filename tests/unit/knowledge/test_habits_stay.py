"""A habit rests on all the turns that its source rests on, and outlives each of them alone."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import uuid4

import pytest

from engram.consolidation.forgetting import Forgetter
from engram.domain.memories import (
    DerivedMemory,
    MemoryForm,
    MemoryStatus,
    MemoryType,
    SemanticMemory,
)
from engram.domain.rules import LifecycleRules
from engram.domain.scope import Scope
from engram.embedding.choice import make_embedder
from engram.lifecycle.promotion_pass import HabitMaker
from engram.ports import MemoryRepository
from tests.support.in_process_memory import START, InProcessMemory

DRINKS = "I always drink tea in the morning."


async def told(memory: InProcessMemory, scope: Scope, what: str, at: datetime) -> SemanticMemory:
    """What is concluded of a turn."""
    await memory.hear(scope, [what], at=at)
    await memory.consolidate(scope, at)
    page = await memory.repository.scroll(scope, MemoryType.SEMANTIC, limit=50)
    (only,) = [
        m for m in page.memories if isinstance(m, SemanticMemory) and m.form is MemoryForm.STATEMENT
    ]
    return only


async def habit_of(memory: InProcessMemory, scope: Scope, source: SemanticMemory) -> str:
    """The habit that it becomes."""
    maker = HabitMaker(memory.repository, make_embedder("wordllama"), lambda: uuid4().hex)
    made = await maker.make(scope, [source], LifecycleRules(), START, forced=True)
    return made[source.id]


@pytest.mark.parametrize("forgotten", ["habit", "knowledge"])
async def test_a_habit_and_the_knowledge_it_was_made_of_are_forgotten_together(
    repository: MemoryRepository, forgotten: str
) -> None:
    """They say the same: neither answers in the place of the other, nor is drawn again."""
    memory, forgetter = InProcessMemory(repository), Forgetter(repository, lambda: uuid4().hex)
    scope = memory.somebody()
    source = await told(memory, scope, DRINKS, START)
    habit_id = await habit_of(memory, scope, source)
    plan = await forgetter.plan(scope, habit_id if forgotten == "habit" else source.id)
    assert plan.ids == {habit_id, source.id}
    await forgetter.apply(scope, plan)
    await forgetter.look_again(scope, plan)
    await memory.consolidate(scope, START + timedelta(days=1))
    assert await repository.get(scope, [source.id, habit_id], fresh=True) == {}
    hits = await memory.recall(scope, "What do I drink in the morning?", START)
    assert [hit.memory.type for hit in hits] == [MemoryType.EPISODIC]


async def test_a_habit_told_again_outlives_the_turn_that_it_was_made_of(
    repository: MemoryRepository,
) -> None:
    """The further turn is a source of the habit at once, not only of the knowledge."""
    memory, forgetter = InProcessMemory(repository), Forgetter(repository, lambda: uuid4().hex)
    scope = memory.somebody()
    source = await told(memory, scope, DRINKS, START)
    (first,) = source.source_episode_ids
    habit_id = await habit_of(memory, scope, source)
    later = START + timedelta(days=2)
    (again,) = await memory.hear(scope, [DRINKS], first=1, at=later)
    await memory.consolidate(scope, later)
    plan = await forgetter.plan(scope, first)
    await forgetter.apply(scope, plan)
    await forgetter.look_again(scope, plan)
    left = await repository.get(scope, [source.id, habit_id], fresh=True)
    assert len(left) == 2
    for one in left.values():
        assert isinstance(one, DerivedMemory)
        assert (one.status, one.source_episode_ids) == (MemoryStatus.ACTIVE, (again,))
