"""After a correction the new value answers first, and the old one answers for its own time.

The turns go through the real parts in this process: stored as the storing activity
stores them, read by the rules model, reconciled, planned, written, retired.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from engram.domain.memories import MemoryType
from engram.domain.scope import Scope
from engram.recall.results import RecallHit
from engram.storage.edge import EdgeRepository
from tests.support.corrections import IDLE, Correction, corrections
from tests.support.in_process_memory import InProcessMemory
from tests.support.recall_memories import NOW, day

COUNT = 300
# With each change every fourth of them, all types among them.
STEP = 4


def first_place(hits: Sequence[RecallHit], value: str) -> int:
    """Where the value is first said; past the end if nowhere."""
    said = [value.casefold() in hit.memory.content.casefold() for hit in hits]
    return said.index(True) if True in said else len(said)


async def wrong_about(memory: InProcessMemory, one: Correction, scope: Scope) -> list[str]:
    """What a correction did not do."""
    said = ("s1", day(1), [*IDLE[:2], one.first, IDLE[2]]), ("s2", day(20), [*IDLE[3:], one.then])
    for session, at, turns in said:
        ids = await memory.hear(scope, turns, at=at, session=session)
        await memory.conclude(scope, ids, at)
    wrong: list[str] = []
    now = await memory.recall(scope, one.question, NOW)
    new, old = first_place(now, one.new), first_place(now, one.old)
    if not (new < len(now) and new < old):
        wrong.append(f"{one.first} / {one.then}: now {[h.memory.content for h in now[:3]]}")
    heard = await memory.recall(scope, one.question, NOW, memory_types=MemoryType.EPISODIC)
    new, old = first_place(heard, one.new), first_place(heard, one.old)
    if not (new < old < len(heard)):
        wrong.append(f"{one.first} / {one.then}: turns {[h.memory.content for h in heard[:3]]}")
    then = await memory.recall(scope, one.question, NOW, as_of=day(15))
    if first_place(then, one.old) != 0 or first_place(then, one.new) < len(then):
        wrong.append(f"{one.first} / {one.then}: then {[h.memory.content for h in then[:3]]}")
    return wrong


async def test_what_was_said_once_stands_a_little_behind_what_is_confirmed(
    repository: EdgeRepository,
) -> None:
    """A fresh conclusion, a pattern fact and a negation are candidates, and the setting counts."""
    memory = InProcessMemory(repository)
    ada = memory.somebody()
    told = ["I live in Porto. My email is ada@example.org.", "I don't use Mongo any more."]
    ids = await memory.hear(ada, told, at=day(1), session="s1")
    await memory.conclude(ada, ids, day(1))
    derived = [MemoryType.SEMANTIC, MemoryType.FACTUAL, MemoryType.NEGATION]
    asked = "Where does Ada live, what is her email, does she use Mongo?"
    hits = await memory.recall(ada, asked, NOW, memory_types=derived, explain=True)
    assert {hit.memory.type for hit in hits} == {*derived}
    wanted = memory.settings.recall_factors.candidate
    for hit in hits:
        assert hit.explanation is not None
        (part,) = (one for one in hit.explanation.parts if one.name == "lifecycle")
        assert part.raw == wanted < 1.0


@pytest.mark.long
@pytest.mark.parametrize("step", [STEP, pytest.param(1, marks=pytest.mark.slow)])
async def test_the_new_value_stands_above_the_old_one_in_every_correction(
    repository: EdgeRepository, step: int
) -> None:
    """Of 300 generated corrections: of all types, of turns alone, and as of before."""
    memory = InProcessMemory(repository)
    made = corrections(COUNT)
    assert len({(one.first, one.then) for one in made}) == COUNT
    wrong: list[str] = []
    for number, one in enumerate(made[::step]):
        scope = Scope.of("corrections", f"user-{number}")
        wrong.extend(await wrong_about(memory, one, scope))
    assert not wrong, "\n".join([f"{len(wrong)} of {COUNT // step}", *wrong[:10]])
