"""A habit rests on all the turns that its source rests on, and outlives each of them alone."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

from engram.consolidation.forgetting import Forgetter
from engram.domain.memories import (
    DerivedMemory,
    MemoryForm,
    MemoryStatus,
    MemoryType,
    SemanticMemory,
)
from engram.domain.rules import LifecycleRules
from engram.embedding.choice import make_embedder
from engram.lifecycle.promotion_pass import HabitMaker
from engram.ports import MemoryRepository
from tests.support.in_process_memory import START, InProcessMemory

DRINKS = "I always drink tea in the morning."


async def test_a_habit_told_again_outlives_the_turn_that_it_was_made_of(
    repository: MemoryRepository,
) -> None:
    """The further turn is a source of the habit at once, not only of the knowledge."""
    memory, forgetter = InProcessMemory(repository), Forgetter(repository, lambda: uuid4().hex)
    scope = memory.somebody()
    (first,) = await memory.hear(scope, [DRINKS], at=START)
    await memory.consolidate(scope, START)
    page = await repository.scroll(scope, MemoryType.SEMANTIC, limit=50)
    (told,) = [
        m for m in page.memories if isinstance(m, SemanticMemory) and m.form is MemoryForm.STATEMENT
    ]
    maker = HabitMaker(repository, make_embedder("wordllama"), lambda: uuid4().hex)
    made = await maker.make(scope, [told], LifecycleRules(), START, forced=True)
    later = START + timedelta(days=2)
    (again,) = await memory.hear(scope, [DRINKS], first=1, at=later)
    await memory.consolidate(scope, later)
    plan = await forgetter.plan(scope, first)
    await forgetter.apply(scope, plan)
    await forgetter.look_again(scope, plan)
    left = await repository.get(scope, [told.id, made[told.id]], fresh=True)
    assert len(left) == 2
    for one in left.values():
        assert isinstance(one, DerivedMemory)
        assert (one.status, one.source_episode_ids) == (MemoryStatus.ACTIVE, (again,))
