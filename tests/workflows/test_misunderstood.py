"""What an assistant took for true is denied when the user says that it is wrong, at once."""

from __future__ import annotations

import pytest
from temporalio.client import Client

from engram.client.memory import MemoryStore
from engram.domain.memories import NegationFact
from engram.domain.turns import Turn
from engram.operations.turns import Receipt
from tests.support.remembering import everything, remembering

MONGO = Turn(content="You use MongoDB, so I'll write it for that.", role="assistant")
WRONG = Turn(content="No, that's wrong. I use Postgres.", message_id="wrong")


async def told(memory: MemoryStore, *, together: bool) -> Receipt:
    """The receipt of the turn that says so, in one call with what it answers, or in one after."""
    if together:
        return await memory.encode([MONGO, WRONG], session_id="s1")
    await memory.encode(MONGO, session_id="s1")
    return await memory.encode(WRONG, session_id="s1")


async def denials(memory: MemoryStore) -> list[NegationFact]:
    """Every denial of the user."""
    page = await memory.list(memory_types="negation")
    return [one for one in page.memories if isinstance(one, NegationFact)]


@pytest.mark.parametrize("together", [True, False], ids=["one call", "two calls"])
async def test_a_corrected_misunderstanding_is_denied_at_once(
    temporal_client: Client, together: bool
) -> None:
    """Before any consolidation, quoted by both turns, found true when checked, and once."""
    async with remembering(temporal_client) as (memory, _):
        receipt = await told(memory, together=together)
        (denied,) = await denials(memory)
        assert denied.content == "The user does not use MongoDB."
        assert receipt.negation_ids == (denied.id,)
        assert denied.source_episode_ids[0] == receipt.episode_ids[-1]
        assert len(denied.source_episode_ids) == 2
        assert (await memory.verify(denied.id)).ok
        # Handed over again, it gives the receipt that it gave.
        again = await memory.encode(WRONG, session_id="s1")
        assert again.negation_ids == receipt.negation_ids
        assert await denials(memory) == [denied]
        (hit, *_) = await memory.recall("What does the user use?", memory_types="episodic")
        assert "Postgres" in hit.memory.content


async def test_only_the_turn_right_before_is_meant(temporal_client: Client) -> None:
    """In another session, or with a turn in between, forgotten or not, something else is meant."""
    async with remembering(temporal_client) as (memory, _):
        await memory.encode(MONGO, session_id="s1")
        await memory.encode(WRONG, session_id="s2")
        await memory.encode(Turn(content="Here is some more."), session_id="s1")
        await memory.encode(WRONG, session_id="s1")
        assert await denials(memory) == []
        await memory.encode(MONGO, session_id="s3")
        between = await memory.encode(Turn(content="You have a dog."), session_id="s3")
        await memory.forget(between.episode_ids[0])
        await memory.encode(WRONG, session_id="s3")
        assert await denials(memory) == []


@pytest.mark.parametrize("tool", ["MongoDB", "Go"])
@pytest.mark.parametrize("gone", [0, 1], ids=["what was denied", "what denied it"])
async def test_the_denial_goes_with_either_of_its_turns(
    temporal_client: Client, gone: int, tool: str
) -> None:
    """Neither the assistant's words alone nor "that's wrong" alone say that it is not so."""
    async with remembering(temporal_client) as (memory, repository):
        said = [Turn(content=f"You use {tool}.", role="assistant"), WRONG]
        receipt = await memory.encode(said, session_id="s1")
        assert len(await denials(memory)) == 1
        await memory.forget(receipt.episode_ids[gone])
        assert await denials(memory) == []
        left = await everything(repository, memory.scope)
        assert receipt.episode_ids[1 - gone] in left
