"""Whatever a method of a memory is given that it cannot take, it says so in our words."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from engram.client.memory import MemoryStore
from engram.domain.scope import Scope
from engram.errors import EngramError, TemporalUnavailable
from engram.settings import Settings
from engram.system import new_id, system_clock
from tests.support.fake_engine import FakeEngine

WORDS = "what nobody else may read"
# What applications hand over by mistake: of another type, out of range, too long, too many.
MISTAKES: tuple[Any, ...] = (
    "",
    WORDS * 300,
    -1,
    0,
    1.5,
    float("nan"),
    True,
    [WORDS] * 1001,
    [5],
    {WORDS: WORDS},
    object(),
    b"\xff",
    "\ud800",
)


def taking() -> Iterator[tuple[str, str]]:
    """Every method of a memory store with every argument that it has, but paths: those are told."""
    for name, member in inspect.getmembers(MemoryStore, inspect.isfunction):
        if not name.startswith("_"):
            named = inspect.signature(member).parameters
            yield from ((name, argument) for argument in [*named][1:] if argument != "path")


async def _refusal(memory: MemoryStore, name: str, given: dict[str, Any]) -> EngramError | None:
    """Call a method, to the end of what it gives; what it refuses, if anything."""
    try:
        answer = getattr(memory, name)(**given)
        if isinstance(answer, AsyncIterator):
            async for _ in answer:
                pass
        elif inspect.isawaitable(answer):
            await answer
    except EngramError as error:
        return error
    except (TypeError, AttributeError):
        return None  # Python's own, of what no type checker lets pass.
    return None


@pytest.mark.parametrize(("name", "argument"), [*taking()])
async def test_no_argument_is_refused_in_words_of_others(name: str, argument: str) -> None:
    """A typed error without what was given; what can be taken reaches the engine, which is away."""
    engine = FakeEngine()
    engine.failure = TemporalUnavailable("away")
    memory = MemoryStore(engine, Scope.of("default", "ada"), Settings.load(), system_clock, new_id)
    needed = {
        one.name: "text"
        for one in inspect.signature(getattr(memory, name)).parameters.values()
        if one.default is one.empty and one.kind is not one.VAR_KEYWORD
    }
    for mistake in MISTAKES:
        refusal = await _refusal(memory, name, {**needed, argument: mistake})
        assert WORDS not in "".join(traceback.format_exception(refusal))
