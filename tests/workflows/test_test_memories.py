"""Test memories are in no answer and no pass unless asked for, and meet no other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_core import to_json
from temporalio.client import Client

from engram.client.memory import MemoryStore
from engram.contracts.session import EncodeCall, EncodeRequest, StoreTurnsInput
from engram.domain.memories import DerivedMemory, Episode, MemoryType
from engram.domain.scope import Scope
from engram.domain.turns import Turn
from engram.errors import ModelRejected
from engram.ports import MemoryRepository
from engram.temporal.gateway import WorkflowGateway
from engram.workflows.session import SessionWorkflow
from tests.support.edge_stores import borrowed_store
from tests.support.in_process_memory import InProcessMemory, when
from tests.support.remembering import everything, remembering, said
from tests.support.stores import worker_settings
from tests.support.workers import Requests, session_worker

REAL = ("I live in Lisbon.", "I always drink green tea.", "I work at Contoso.")
# The same slots and the same session: what could meet, would.
TEST = ("I live in Zanzibar.", "I always drink zanzibar tea.", "I don't like zanzibar spice.")
_Read = Callable[[MemoryStore], Awaitable[Any]]

LEAVES_OUT: dict[str, _Read] = {
    "stats": lambda m: m.stats(),
    "energy": lambda m: m.energy(),
    "promotions": lambda m: m.promotions(),
    "health": lambda m: m.health(),
    "validate": lambda m: m.validate(),
    "profile": lambda m: m.profile(),
    "profiles": lambda m: m.profiles(),
    "topics": lambda m: m.topics(),
    "boxes": lambda m: m.boxes(),
    "guidelines": lambda m: m.guidelines(),
    "decay": lambda m: m.decay(dry_run=True, at=datetime.now(UTC) + timedelta(days=2000)),
    "promote": lambda m: m.promote(dry_run=True),
    "consolidate": lambda m: m.consolidate(dry_run=True),
    "history": lambda m: _histories(m, MemoryType.SEMANTIC),
}
"""Reads and passes that offer no test memories beside others."""
BESIDE: dict[str, Callable[[MemoryStore, bool], Awaitable[Any]]] = {
    "recall": lambda m, tests: m.recall("zanzibar tea", include_test=tests),
    "recall, links": lambda m, tests: m.recall("tea", include_test=tests, follow_links=True),
    "recall_at": lambda m, tests: m.recall_at(
        "zanzibar", as_of=datetime.now(UTC), include_test=tests
    ),
    "context": lambda m, tests: m.context("zanzibar", include_test=tests),
    "list": lambda m, tests: m.list(include_test=tests),
    "working_memory": lambda m, tests: m.working_memory("s1", include_test=tests),
    "briefing": lambda m, tests: m.briefing(limit=50, include_test=tests),
}
"""Reads that bring test memories too, when asked."""
ONLY: dict[str, Callable[[MemoryStore, bool], Awaitable[Any]]] = {
    "status": lambda m, tests: m.status(test_only=tests),
    "energy": lambda m, tests: m.energy(test_only=tests),
    "health": lambda m, tests: m.health(test_only=tests),
    "validate": lambda m, tests: m.validate(test_only=tests),
    "decay": lambda m, tests: m.decay(
        dry_run=True, test_only=tests, at=datetime.now(UTC) + timedelta(days=2000)
    ),
    "consolidate": lambda m, tests: m.consolidate(dry_run=True, test_only=tests),
}
"""Reads and passes over test memories alone, when asked."""


async def test_no_read_and_no_pass_shows_a_test_memory(temporal_client: Client) -> None:
    """With real and test turns in one session, each is consolidated apart and told apart."""
    async with remembering(temporal_client) as (memory, repository):
        await memory.encode([said(words, day) for day, words in enumerate(REAL)], session_id="s1")
        await memory.encode(_tried(TEST), session_id="s1", is_test=True)
        assert (await memory.consolidate(dry_run=True)).episodes == len(REAL)
        assert (await memory.consolidate()).episodes == len(REAL)
        assert (await memory.stats()).waiting == 0
        stored = await everything(repository, memory.scope)
        assert not any(m.is_test for m in stored.values() if m.type is MemoryType.SEMANTIC)
        assert (await memory.status(test_only=True)).waiting == len(TEST)

        before = _fingerprints(await _side(repository, memory.scope, is_test=False))
        assert (await memory.consolidate(test_only=True, dry_run=True)).episodes == len(TEST)
        assert (await memory.consolidate(test_only=True)).episodes == len(TEST)
        assert _fingerprints(await _side(repository, memory.scope, is_test=False)) == before
        assert (await memory.status(test_only=True)).waiting == 0

        tests = await _side(repository, memory.scope, is_test=True)
        drawn = [m for m in tests.values() if m.type is MemoryType.SEMANTIC]
        assert len(drawn) >= 2
        turns = {key for key, m in tests.items() if isinstance(m, Episode)}
        for one in tests.values():
            if isinstance(one, DerivedMemory):
                assert set(one.source_episode_ids) <= turns
        await _check_reads(memory, frozenset(tests))
        real = await _side(repository, memory.scope, is_test=False)
        counts = (await memory.stats()).counts
        assert sum(counts.values()) == len(real)
        assert (await memory.status()).test_memories == len(tests)
        await memory.end_session("s1")


async def test_test_turns_ask_for_no_extraction(temporal_client: Client) -> None:
    """They neither fill the buffer nor end a session's consolidation, however urgent."""
    settings, requests = worker_settings(buffer_turns=2), Requests()
    scope = Scope.of("default", f"tests-{settings.store_queue}")
    gateway = WorkflowGateway(temporal_client, settings)
    async with (
        borrowed_store() as repository,
        session_worker(
            temporal_client, settings, repository, requests, workflows=[SessionWorkflow]
        ),
    ):
        urgent = [_turn("I have to quit, this is urgent! Remember: my PIN is 1234.")] * 1
        reply = await gateway.encode(scope, "s1", _asked(urgent, is_test=True))
        assert reply.buffered == 0
        more = [_turn(f"test {n}") for n in range(3)]
        assert (await gateway.encode(scope, "s1", _asked(more, is_test=True))).buffered == 0
        await gateway.end_session(scope, "s1")
        await temporal_client.get_workflow_handle(f"session/{scope.tenant}/s1").result()
        assert requests.seen == []

        real = [_turn("one"), _turn("two")]
        await gateway.encode(scope, "s2", _asked([_turn("a test")], is_test=True))
        await gateway.encode(scope, "s2", _asked(real, is_test=False))
        await gateway.end_session(scope, "s2")
        await temporal_client.get_workflow_handle(f"session/{scope.tenant}/s2").result()
        assert [asked.reason for asked in requests.seen] == ["2 turns wait", "session ended"]


async def _check_reads(memory: MemoryStore, tests: frozenset[str]) -> None:
    for name, read in LEAVES_OUT.items():
        assert _shown(await read(memory), tests) == set(), name
    for name, choose in BESIDE.items():
        assert _shown(await choose(memory, False), tests) == set(), name
        assert _shown(await choose(memory, True), tests), name
    for name, choose in ONLY.items():
        without, alone = await choose(memory, False), await choose(memory, True)
        assert _shown(without, tests) == set(), name
        assert without != alone or name == "consolidate", name


def _shown(answer: Any, tests: frozenset[str]) -> set[str]:
    """The test memories that an answer names, or whose words it holds."""
    text = to_json(answer).decode()
    return {key for key in tests if key in text} | ({"words"} if "anzibar" in text else set())


async def _histories(memory: MemoryStore, kind: MemoryType) -> list[Any]:
    page = await memory.list(memory_types=[kind])
    return [await memory.history(one.id) for one in page.memories]


async def _side(repository: MemoryRepository, scope: Scope, *, is_test: bool) -> dict[str, Any]:
    found = await everything(repository, scope)
    return {key: one for key, one in found.items() if one.is_test is is_test}


def _fingerprints(memories: dict[str, Any]) -> dict[str, int]:
    return {key: memory.revision for key, memory in memories.items()}


def _tried(texts: tuple[str, ...]) -> list[str | Turn]:
    return [said(words, day) for day, words in enumerate(texts)]


def _turn(words: str) -> Turn:
    return Turn(
        message_id=words, role="user", content=words, timestamp=datetime(2026, 3, 1, tzinfo=UTC)
    )


def _asked(turns: list[Turn], *, is_test: bool) -> EncodeRequest:
    return EncodeRequest(calls=(EncodeCall(turns=tuple(turns), is_test=is_test),))


async def test_a_model_that_reads_a_real_turn_is_shown_no_test_turn_before_it() -> None:
    """They stand side by side in one session: "yes" answers what was asked in earnest."""
    shown: list[str] = []

    def listening(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        shown.append(str(messages))
        raise ModelHTTPError(400, "listening")

    asked = ("Do I like Zanzibar?", "Do I like Lisbon?", "Yes, I do.")
    calls = tuple(
        EncodeCall(
            turns=(Turn(message_id=f"m{n}", content=words, timestamp=when(0)),), is_test=not n
        )
        for n, words in enumerate(asked)
    )
    async with borrowed_store() as repository:
        memory = InProcessMemory(repository, FunctionModel(listening))
        scope = memory.somebody()
        *_, last = await memory.turns.store(
            StoreTurnsInput(
                scope=scope,
                now=when(0),
                session_id="s1",
                calls=calls,
                first_sequence=0,
                workflow_id="w",
                run_id="r",
            )
        )
        with pytest.raises(ModelRejected):
            await memory.conclude(scope, (last.turns[0].episode_id,), when(1))
    assert "Lisbon" in shown[0]
    assert "Zanzibar" not in shown[0]
