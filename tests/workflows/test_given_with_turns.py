"""What is given with a turn, from the doors to what is concluded from it, on real parts."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from engram.domain.memories import MemoryStatus, MemoryType, SemanticMemory
from engram.domain.turns import Turn
from engram.errors import InvalidTurn
from engram.language.guarding import PersonalDataGuard
from engram.system import system_clock
from engram.transfer.memories import ImportedMemory
from engram.transfer.readers.lines import read
from engram.transfer.readers.reading import FoundTurn
from tests.support.remembering import everything, remembering

FAR = datetime(2090, 1, 1, tzinfo=UTC)
WHOLE: dict[str, Any] = {
    "expires_at": FAR,
    "summary": "Tea.",
    "importance": 0.9,
    "metadata": {"app": "diary"},
}


async def test_all_that_a_turn_is_given_arrives_and_reaches_its_conclusions(
    temporal_client: Client,
) -> None:
    """The episode has it as given; facts and knowledge have what conclusions have of it."""
    async with remembering(temporal_client) as (memory, repository):
        words = "I live in Oslo, mail ada@example.org."
        await memory.encode(Turn(content=words, **WHOLE), session_id="s1")
        await memory.consolidate()
        stored = (await everything(repository, memory.scope)).values()
        (turn,) = [one for one in stored if one.type is MemoryType.EPISODIC]
        assert (turn.expires_at, turn.summary, turn.importance) == (FAR, "Tea.", 0.9)
        digests = [one for one in stored if isinstance(one, SemanticMemory) and one.detail]
        assert [one.content for one in digests if "lives in Oslo" in one.content] == []
        concluded = [one for one in stored if one is not turn and one not in digests]
        assert {one.type for one in concluded} >= {MemoryType.FACTUAL, MemoryType.SEMANTIC}
        for one in concluded:
            assert (one.expires_at, one.importance) == (FAR, 0.9), one.type
            assert one.metadata == {"app": "diary"}
            assert one.summary is None


async def test_a_life_is_counted_from_when_the_turn_is_handed_over(
    temporal_client: Client,
) -> None:
    """What lasts an hour ends an hour later by the client's clock, whenever it is stored."""
    async with remembering(temporal_client) as (memory, _):
        turn = Turn(content="Gate 4.", expires_in=timedelta(hours=1))
        receipt = await memory.encode(turn, session_id="s1")
        kept = await memory.get(receipt.episode_ids[0])
        assert kept.expires_at is not None
        assert abs(kept.expires_at - kept.known_at - timedelta(hours=1)) < timedelta(seconds=1)
        with pytest.raises(InvalidTurn):
            await memory.encode(
                Turn(content="x", expires_at=datetime(2001, 1, 1, tzinfo=UTC)), session_id="s1"
            )


async def test_what_has_expired_is_not_held_in_mind_any_longer(temporal_client: Client) -> None:
    """Working memory leaves out a turn from its moment on, while its session goes on."""
    passed = timedelta(0)
    async with remembering(temporal_client, clock=lambda: system_clock() + passed) as (memory, _):
        await memory.encode(Turn(content="Gate 4.", expires_in=timedelta(hours=1)), session_id="s1")
        await memory.encode("Gate 4 is far.", session_id="s1")
        held = await memory.working_memory("s1")
        assert [turn.content for turn in held] == ["Gate 4.", "Gate 4 is far."]
        passed = timedelta(hours=2)
        held = await memory.working_memory("s1")
        assert [turn.content for turn in held] == ["Gate 4 is far."]


async def test_imports_give_the_same(temporal_client: Client, tmp_path: Path) -> None:
    """Turns of a program, lines of a file and memories of another program end when they say so."""
    async with remembering(temporal_client) as (memory, repository):
        lasting = Turn(content="In a program.", expires_in=timedelta(days=1), summary="One.")
        await memory.import_turns([("a", lasting)], consolidate=False)
        lines = tmp_path / "turns.jsonl"
        said = {"content": "In a file.", "expires_at": "2090-01-01T00:00:00Z", "summary": "Two."}
        gone = {"content": "It ended.", "expires_at": "2001-01-01T00:00:00Z"}
        lines.write_text(json.dumps(said) + "\n" + json.dumps(gone) + "\n")
        told = await memory.import_file(lines, consolidate=False)
        elsewhere = ImportedMemory(
            content="Elsewhere.",
            timestamp=datetime(2025, 1, 1, tzinfo=UTC),
            conclusion=True,
            expires_at=FAR,
            summary="Three.",
        )
        await memory.import_memories([elsewhere])
        stored = (await everything(repository, memory.scope)).values()
        ends = {one.content: (one.summary, one.expires_at) for one in stored}
        assert ends["In a file."] == ("Two.", FAR)
        assert ends["Elsewhere."] == ("Three.", FAR)
        assert ends["In a program."][0] == "One."
        assert ends["In a program."][1] is not None
        assert "It ended." not in ends
        assert told.read is not None
        assert sum(told.read.skipped.values()) == 1


async def test_what_is_said_later_replaces_what_was_brought_from_elsewhere(
    temporal_client: Client,
) -> None:
    """A turn of now beats an imported conclusion, which stays as history, as of its time too."""
    async with remembering(temporal_client) as (memory, repository):
        told = datetime(2020, 5, 1, tzinfo=UTC)
        lived = ImportedMemory(content="The user lives in Porto.", timestamp=told, conclusion=True)
        await memory.import_memories([lived])
        (before,) = await memory.recall("Where do I live?", memory_types="semantic")
        assert before.memory.content == "The user lives in Porto."
        await memory.encode("I moved to Lisbon.", session_id="s1")
        await memory.consolidate()
        best, *_ = await memory.recall("Where do I live?", memory_types="semantic")
        assert "Lisbon" in best.memory.content
        old = (await everything(repository, memory.scope))[before.memory.id]
        assert isinstance(old, SemanticMemory)
        assert (old.status, old.superseded_by) == (MemoryStatus.SUPERSEDED, best.memory.id)
        then = await memory.recall(
            "Where do I live?", memory_types="semantic", as_of=datetime(2021, 1, 1, tzinfo=UTC)
        )
        assert [hit.memory.id for hit in then] == [old.id]


def test_a_line_names_the_end_of_its_turn() -> None:
    """ISO 8601 or seconds since 1970, as the time of the turn itself."""
    line = json.dumps({"content": "x", "expires_at": 3_786_912_000}).encode()
    (found,) = read(BytesIO(line))
    assert isinstance(found, FoundTurn)
    assert found.expires_at == FAR


def test_a_summary_is_masked_like_what_it_sums_up() -> None:
    """Where nothing personal may be stored, a summary is looked at as well."""
    masking = PersonalDataGuard("mask")
    turn = Turn(content="x", summary="Mail ada@example.org.")
    assert masking.masked("default", turn) == {"summary": "Mail [e-mail]."}
