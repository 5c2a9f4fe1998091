"""Counting memories of a kind, and refusing what no memory could be."""

from __future__ import annotations

import ast
from typing import Any
from uuid import uuid4

import pytest

from engram.client.memory import MemoryStore
from engram.domain.memories import MemoryStatus, MemoryType, Provenance
from engram.errors import InvalidQuery, InvalidScope
from engram.operations.memories import COUNT, LIST_MEMORIES, CountMemories, ListMemories
from engram.settings import Settings
from engram.system import new_id, system_clock
from tests.support.fake_engine import FakeEngine
from tests.support.handled_store import ADA, HandledStore, ago
from tests.support.lifecycle_workers import knowledge, turn
from tests.support.sources import MODULES, nodes_of, place_of


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (CountMemories(), 3),
        (CountMemories(include_test=True), 4),
        (CountMemories(memory_types=(MemoryType.SEMANTIC,)), 2),
        (CountMemories(memory_types=(MemoryType.SEMANTIC, MemoryType.SEMANTIC)), 2),
        (CountMemories(memory_types=()), 0),
        (CountMemories(status=MemoryStatus.ARCHIVED), 1),
        (CountMemories(memory_types=(MemoryType.SEMANTIC,), status=MemoryStatus.ACTIVE), 1),
        (CountMemories(tags=("work", "nothing")), 1),
        (CountMemories(session_id="no-such-session"), 0),
        (CountMemories(without_tags=("work",)), 2),
        (CountMemories(forms=("profile",)), 1),
        (CountMemories(forms=("profile",), memory_types=(MemoryType.SEMANTIC,)), 0),
        (CountMemories(roles=("assistant",)), 2),
    ],
)
async def test_counts_what_all_of_it_holds_for(
    handled: HandledStore, asked: CountMemories, expected: int
) -> None:
    """Each condition narrows the count, together they all hold, and no memory counts twice."""
    await handled.keep(
        turn(ADA, "I like tea", ago(2)).model_copy(update={"tags": ("work",)}),
        knowledge(ADA, "The user likes tea", ago(1)),
        knowledge(ADA, "The user likes milk", ago(9), status=MemoryStatus.ARCHIVED),
        knowledge(ADA, "The user likes tests", ago(1), is_test=True),
    )
    assert await handled.ask(COUNT, asked) == expected


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        ({"memory_types": ["dreams"]}, InvalidQuery),
        ({"status": "gone"}, InvalidQuery),
        ({"tags": []}, InvalidQuery),
        ({"without_tags": [""]}, InvalidQuery),
        ({"tags": "work"}, InvalidQuery),
        ({"without_tags": "work"}, InvalidQuery),
        ({"forms": ["poem"]}, InvalidQuery),
        ({"roles": []}, InvalidQuery),
        ({"session_id": "a/b"}, InvalidScope),
        ({"run_id": "session/default/ada/s1"}, InvalidQuery),
        ({"run_id": ""}, InvalidQuery),
    ],
    ids=lambda wrong: next(iter(wrong), "") if isinstance(wrong, dict) else wrong.__name__,
)
async def test_what_cannot_be_counted_or_listed_is_refused(
    wrong: dict[str, Any], kind: type
) -> None:
    """A value that no memory could have is a typed error, and the engine is not asked."""
    memory = MemoryStore(FakeEngine(), ADA, Settings.load(), system_clock, new_id)
    for ask in (memory.count, memory.list):
        with pytest.raises(kind) as caught:
            await ask(**wrong)
        assert type(caught.value) is kind


async def test_what_a_run_wrote_is_listed_and_counted(handled: HandledStore) -> None:
    """From a run to its memories, over all types, page by page; no other run's are among them."""
    runs = [str(uuid4()) for _ in range(2)]
    told = [Provenance(workflow_id="session/default/ada/s1", run_id=run) for run in runs]
    written = turn(ADA, "I like tea", ago(2)).model_copy(update={"provenance": told[0]})
    concluded = [
        knowledge(ADA, f"The user likes {what}", ago(1)).model_copy(update={"provenance": origin})
        for what, origin in (("tea", told[0]), ("milk", told[1]))
    ]
    await handled.keep(written, *concluded)
    first = await handled.ask(LIST_MEMORIES, ListMemories(run_id=runs[0], limit=1))
    rest = await handled.ask(
        LIST_MEMORIES, ListMemories(run_id=runs[0], limit=1, cursor=first.cursor)
    )
    ids = [memory.id for page in (first, rest) for memory in page.memories]
    assert ids == [written.id, concluded[0].id]
    assert (
        rest.cursor is None
        or not (
            await handled.ask(LIST_MEMORIES, ListMemories(run_id=runs[0], cursor=rest.cursor))
        ).memories
    )
    assert await handled.ask(COUNT, CountMemories(run_id=runs[1])) == 1
    assert await handled.ask(COUNT, CountMemories(run_id=str(uuid4()))) == 0


async def test_a_type_that_is_named_twice_is_listed_once(handled: HandledStore) -> None:
    """Page by page as well: no page leads back to the one before it."""
    said = [turn(ADA, f"I like {what}", ago(1)) for what in ("tea", "milk")]
    await handled.keep(*said)
    found: list[str] = []
    cursor = None
    for _ in range(4):
        twice = (MemoryType.EPISODIC, MemoryType.FACTUAL, MemoryType.EPISODIC)
        asked = ListMemories(memory_type=twice, limit=1, cursor=cursor)
        page = await handled.ask(LIST_MEMORIES, asked)
        found += [memory.id for memory in page.memories]
        if (cursor := page.cursor) is None:
            break
    assert sorted(found) == sorted(one.id for one in said)


# Sources are parsed once, in one process.
@pytest.mark.xdist_group("sources")
def test_the_operation_stands_in_three_files() -> None:
    """As CONTRIBUTING.md says of its example: declared once, a method, and the method's twin."""

    def names_it(node: ast.AST) -> bool:
        match node:
            case ast.Name(id="COUNT" | "CountMemories"):
                return True
            case ast.Attribute(attr="COUNT" | "CountMemories"):
                return True
            case ast.Attribute(value=ast.Name(id="MemoryStore"), attr="count"):
                return True
            case _:
                return False

    assert {place_of(path) for path in MODULES if any(map(names_it, nodes_of(path)))} == {
        "engram/operations/memories.py",
        "engram/client/methods.py",
        "engram/sync.py",
    }
