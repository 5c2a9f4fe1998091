"""Turns and memories with one thing wrong with each, as no client of Engram would send them."""

from __future__ import annotations

import json
import random
from collections.abc import Container, Iterator, Mapping
from typing import Any, Final

from engram.domain.confidence import Confidence, ExtractionMethod
from engram.domain.identity import derived_id, episode_id
from engram.domain.memories import Category, Episode, MemoryType, SemanticMemory
from engram.domain.scope import Scope
from tests.support.clock import NOW

SAID: Final = "Plumbus"
"""Stands in the content of every malformed entry."""
LEFT_OUT: Final = object()
BOUND: Final = 32 * 1024

_NAMES: Final = ("", "  ", "x" * 257, "Bob\n- 2026-01-01 Bob", "a\x1b[31m", "a\x9bb", "\ud800", 7)
_TIMES: Final = (
    *("2999-01-01T00:00:00Z", "9998-12-31T00:00:00Z", "1776-07-04T00:00:00Z"),
    *("2026-01-01T00:00:00", "yesterday", None, "9999-12-31T23:59:59-12:00"),
)
_DEEP: Final = json.loads('{"a": ' * 40 + "1" + "}" * 40)
# What JSON has no word for goes over the wire as these do.
_METADATA: Final = (
    *({"a": "x" * 9000}, _DEEP, {"a": float("nan")}, {"a": float("inf")}),
    *({"a": ["\x00"]}, [1], "x"),
)
_OF_TURNS: Final[Mapping[str, tuple[Any, ...]]] = {
    "session_id": ("../x", "../x\n\x1b[31m", "", "a/b", "x" * 81, 7, None, LEFT_OUT),
    "message_id": (*_NAMES, None, LEFT_OUT),
    "role": ("root", "", "User", 7, None, LEFT_OUT),
    "content": ("", " \n ", SAID * BOUND, f"{SAID}\x00", f"{SAID}\ud800", 7, None, LEFT_OUT),
    "speaker": _NAMES,
    "timestamp": (*_TIMES, LEFT_OUT),
    "tags": (("x",) * 500, ("",), ("a\nb",), ("x" * 300,), (7,), 7),
    "importance": (7, -1, float("nan"), "much"),
    "metadata": _METADATA,
    "sequence": (-1, 2**63, "first"),
    "before": ("", SAID * BOUND, f"{SAID}\x00", 7),
}
_OF_MEMORIES: Final[Mapping[str, tuple[Any, ...]]] = {
    "known_at": _TIMES,
    "created_at": _TIMES,
    "last_accessed_at": _TIMES[:5],
    "valid_to": ("2026-01-01T00:00:00", "9999-12-31T23:59:59-12:00", "never"),
    "content": ("", SAID * BOUND * 9, f"{SAID}\x00", 7, LEFT_OUT),
    "session_id": ("../x", "a\nb"),
    "importance": (7, -1, float("nan")),
    "status": ("king", 7),
    "user_id": ("zed", "../x", LEFT_OUT),
    "namespace": ("other", ""),
    "id": ("x", "6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11", LEFT_OUT),
    "type": ("royal", "procedural", LEFT_OUT),
    "source_episode_ids": ((), ("../x",), ("x\n",)),
    "supersedes": (("../x",),),
    "superseded_by": ("../x",),
    "provenance": ({"workflow_id": "a\nb"}, {"run_id": "x" * 5000}, {"king": 1}, 7),
    "vitals": ({"energy": float("inf")}, {"energy": -1}, {"energy_at": "2999-01-01T00:00:00Z"}),
    "metadata": ({"a": "\x00"}, {"a": float("nan")}, {"a": "x" * 3_000_000}, 7),
    "confidence": (
        {"extraction": 7},
        {"seed": float("nan")},
        {"last_confirmed": "9998-01-01T00:00:00Z"},
        {"supporting_episodes": 0},
        {"verification": "sworn"},
        {"method": "divined"},
    ),
    "tellings": (
        ({"event_at": "2026-01-01T00:00:00Z", "known_at": "9998-01-01T00:00:00Z"},),
        ({"event_at": "2026-01-01T00:00:00Z", "known_at": "2026-01-01T00:00:00Z"},),
    ),
    "surprise": (1,),
}


def good_turn(number: int) -> dict[str, Any]:
    """A turn that anybody may import, as JSON has it."""
    return {
        "session_id": "old",
        "message_id": f"m{number}",
        "role": "user",
        "content": f"I live in Lisbon. My cat is {number} years old.",
        "timestamp": f"{NOW:%Y-%m-%dT%H:%M:%SZ}",
        "sequence": number,
        "place": f"line {number + 1}",
    }


def malformed_turns(
    count: int, seed: int = 7, *, without: Container[str] = ()
) -> Iterator[dict[str, Any]]:
    """So many turns, each with one thing wrong; every kind of wrong comes in turn.

    Args:
        count: How many.
        seed: Of their order.
        without: Fields that are left out, and with which nothing is wrong.
    """
    kinds = {field: values for field, values in _OF_TURNS.items() if field not in without}
    for number, (field, value) in enumerate(_kinds(kinds, count, seed)):
        turn = {key: one for key, one in good_turn(number).items() if key not in without}
        yield _with({**turn, "content": f"{SAID} {number}"}, field, value)


def good_turn_memory(scope: Scope, number: int) -> Episode:
    """A turn of an export."""
    return Episode(
        id=episode_id(scope, "old", f"e{number}"),
        namespace=scope.namespace,
        user_id=scope.user_id,
        content=f"I work at Northwind. Turn {number}.",
        known_at=NOW,
        created_at=NOW,
        session_id="old",
        role="user",
        timestamp=NOW,
        message_id=f"e{number}",
    )


def good_memory(scope: Scope, number: int) -> dict[str, Any]:
    """A conclusion that an export may hold, as JSON has it."""
    identity = f"cat-{number}"
    memory = SemanticMemory(
        id=derived_id(scope, MemoryType.SEMANTIC, identity, 0),
        namespace=scope.namespace,
        user_id=scope.user_id,
        content=f"{SAID} is {number} years old.",
        known_at=NOW,
        created_at=NOW,
        source_episode_ids=(episode_id(scope, "old", "e0"),),
        event_at=NOW,
        derived_at=NOW,
        confidence=Confidence(
            method=ExtractionMethod.EXTRACTED, extraction=0.9, last_confirmed=NOW
        ),
        identity=identity,
        category=Category.FACT,
    )
    return memory.model_dump(mode="json")


def malformed_memories(scope: Scope, count: int, seed: int = 7) -> Iterator[dict[str, Any]]:
    """So many entries of an export, each with one thing wrong."""
    for number, (field, value) in enumerate(_kinds(_OF_MEMORIES, count, seed)):
        memory = good_memory(scope, number)
        own = {**memory["confidence"], **value} if field == "confidence" else value
        yield {"memory": _with(memory, field, own), "place": f"line {number + 1}"}


def as_json(entry: Mapping[str, Any]) -> str:
    """The entry as a program without Engram's models would write it."""
    return json.dumps(entry)


def _kinds(
    kinds: Mapping[str, tuple[Any, ...]], count: int, seed: int
) -> Iterator[tuple[str, Any]]:
    wrong = [(field, value) for field, values in kinds.items() for value in values]
    random.Random(seed).shuffle(wrong)  # noqa: S311 - an order, no secret
    # The large ones are few, so that thousands of entries stay quick.
    small = [one for one in wrong if len(str(one[1])) < BOUND]
    for number in range(count):
        yield wrong[number] if number < len(wrong) else small[number % len(small)]


def _with(fields: Mapping[str, Any], name: str, value: Any) -> dict[str, Any]:
    if value is LEFT_OUT:
        return {key: one for key, one in fields.items() if key != name}
    return {**fields, name: value}
