"""Waiting until turns are extracted or linked, on a real server and a real engine."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from temporalio.client import Client

from engram.agents.asking import thinker
from engram.client.local import direct_engine
from engram.client.memory import MemoryStore
from engram.consolidation.taking_up import TurnConsolidator
from engram.contracts.consolidation import ConsolidateTurnsInput, ConsolidateTurnsOutput
from engram.domain.memories import MemoryType, Unread
from engram.domain.scope import Scope
from engram.embedding.choice import make_embedder
from engram.errors import InvalidQuery, MemoryNotFound, StageNotReached
from engram.operations.progress import WAIT_UNTIL, WaitUntil
from engram.operations.turns import Receipt
from engram.storage.updates import update_memories
from engram.system import new_id, system_clock
from engram.workflows.worker import running_workers
from tests.support.edge_stores import borrowed_store
from tests.support.remembering import everything, remembering, said
from tests.support.stores import worker_settings

# Nothing is consolidated by itself while a test runs, unless somebody asks.
QUIET: dict[str, Any] = {"buffer_turns": 100, "buffer_minutes": 60.0, "session_idle_minutes": 60.0}


async def test_linked_means_that_conclusions_are_there_and_linked(temporal_client: Client) -> None:
    """When it returns, what the turns state is stored, and linked with what it shares."""
    async with remembering(temporal_client, **QUIET) as (memory, repository):
        receipt = await memory.encode(
            [said("I work at Rise.", 1), said("I use Rise to buy flour.", 2)],
            session_id="s1",
        )
        progress = await memory.wait_until(receipt, "linked", within=30)
        assert (progress.turns, progress.extracted, progress.linked) == (2, 2, 2)
        stored = (await everything(repository, memory.scope)).values()
        known = [one for one in stored if one.type is MemoryType.SEMANTIC]
        assert known
        links = [link for one in known for link in getattr(one, "links", ())]
        assert links


async def test_turns_are_not_linked_while_it_is_unknown_what_was_concluded_from_them(
    temporal_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are marked in the store a moment before the workflow hears what was stored."""
    marked, go_on = asyncio.Event(), asyncio.Event()
    take_up = TurnConsolidator.take_up

    async def held(
        consolidator: TurnConsolidator, request: ConsolidateTurnsInput, *, repeated: bool
    ) -> ConsolidateTurnsOutput:
        done = await take_up(consolidator, request, repeated=repeated)
        marked.set()
        await go_on.wait()
        return done

    monkeypatch.setattr(TurnConsolidator, "take_up", held)
    async with remembering(temporal_client, **QUIET) as (memory, _):
        receipt = await memory.encode("I work at Rise.", session_id="s1")
        waiting = asyncio.create_task(memory.wait_until(receipt, "linked", within=30))
        await asyncio.wait_for(marked.wait(), 30)
        with pytest.raises(StageNotReached):
            await memory.wait_until(receipt, "linked", within=0.3, ask=False)
        go_on.set()
        assert (await waiting).linked == 1


async def test_extracted_and_linked_are_asked_for_apart(temporal_client: Client) -> None:
    """Being read is one thing, being linked another: what nobody asked for is not looked at."""
    async with remembering(temporal_client, **QUIET, consolidate_every=100) as (memory, _):
        receipt = await memory.encode("I live in Oslo.", session_id="s1")
        progress = await memory.wait_until(receipt, "extracted", within=30)
        assert (progress.extracted, progress.linked) == (1, None)
        assert (await memory.wait_until(receipt, "linked", within=30)).linked == 1


async def test_when_the_time_is_over_it_says_where_turns_stand(temporal_client: Client) -> None:
    """Nobody asks, nothing comes: a typed error with the counts, and no word of the turns."""
    async with remembering(temporal_client, **QUIET) as (memory, _):
        receipt = await memory.encode(["I live in Oslo.", "I like tea."], session_id="s1")
        with pytest.raises(StageNotReached) as caught:
            await memory.wait_until(receipt, "linked", within=0.3, ask=False)
        error = caught.value
        assert error.retryable
        assert error.details == {
            "stage": "linked",
            "reached": False,
            "turns": 2,
            "stored": 2,
            "extracted": 0,
            "linked": None,
            "refused": 0,
            "forgotten": 0,
        }
        assert "Oslo" not in str(error)
        assert (await memory.wait_until(receipt, "stored", within=0)).reached


async def test_a_receipt_is_waited_for_after_everything_was_started_anew(
    temporal_client: Client,
) -> None:
    """Workers gone, application gone: a receipt that was written down says enough to wait."""
    settings = worker_settings(namespace=f"n{new_id()[:8]}", **QUIET)
    embedder, model = make_embedder(settings.embedder), thinker(settings.model)
    scope = Scope.of(settings.namespace, "ada")
    async with borrowed_store() as repository:

        def application() -> MemoryStore:
            engine = direct_engine(
                temporal_client, repository, embedder, settings, system_clock, ui_url=None
            )
            return MemoryStore(engine, scope, settings, system_clock, new_id)

        def workers() -> Any:
            return running_workers(
                temporal_client, repository, embedder, model, settings, new_write_id=new_id
            )

        async with workers():
            written = (
                await application().encode("I live in Oslo.", session_id="s1")
            ).model_dump_json()
        receipt = Receipt.model_validate_json(written)
        with pytest.raises(StageNotReached) as caught:
            await application().wait_until(receipt, "extracted", within=0.2)
        assert (caught.value.details["stored"], caught.value.details["extracted"]) == (1, 0)
        async with workers():
            ids = list(receipt.episode_ids)
            assert (await application().wait_until(ids, "linked", within=30)).reached


async def test_what_is_forgotten_is_waited_for_no_longer(temporal_client: Client) -> None:
    """A turn that is forgotten while somebody waits does not keep them waiting."""
    async with remembering(temporal_client, **QUIET) as (memory, _):
        receipt = await memory.encode(["I live in Oslo.", "I like tea."], session_id="s1")
        assert (await memory.wait_until([*receipt.episode_ids, "nope"], "stored")).forgotten == 1
        waiting = asyncio.create_task(
            memory.wait_until(receipt.episode_ids[:1], "linked", within=30, ask=False)
        )
        await memory.forget(receipt.episode_ids[0])
        progress = await waiting
        assert (progress.reached, progress.forgotten, progress.stored) == (True, 1, 0)
        for nowhere in (receipt.episode_ids[0], "nope"):
            with pytest.raises(MemoryNotFound):
                await memory.wait_until([nowhere])


async def test_a_turn_that_was_left_out_ends_the_waiting(temporal_client: Client) -> None:
    """Waiting does not help a turn that consolidation leaves out: it is said at once."""
    async with remembering(temporal_client, **QUIET) as (memory, repository):
        receipt = await memory.encode("I live in Oslo.", session_id="s1")
        await update_memories(
            repository,
            memory.scope,
            receipt.episode_ids,
            lambda turn: turn.model_copy(update={"unread": Unread(refusals=3)}),
            new_write_id=new_id,
            types=(MemoryType.EPISODIC,),
        )
        async with asyncio.timeout(20):
            with pytest.raises(StageNotReached) as caught:
                await memory.wait_until(receipt, "linked", within=3600, ask=False)
        assert caught.value.details["refused"] == 1


async def test_test_turns_are_consolidated_for_who_waits_for_them(temporal_client: Client) -> None:
    """Test turns are read by no other pass; waiting asks for theirs, and leaves real ones alone."""
    async with remembering(temporal_client, **QUIET) as (memory, _):
        await memory.encode("I like tea.", session_id="s1")
        tests = await memory.encode("I live in Oslo.", session_id="s2", is_test=True)
        assert (await memory.wait_until(tests, "linked", within=30)).reached
        assert (await memory.stats()).waiting == 1


async def test_nobody_waits_costs_nothing(temporal_client: Client) -> None:
    """One look asks no workflow to run, and a wait of no time is one look."""
    async with remembering(temporal_client, **QUIET) as (memory, _):
        receipt = await memory.encode("I live in Oslo.", session_id="s1")
        engine = memory._engine  # noqa: SLF001 - the door that other processes come through
        looked = await engine.call(
            memory.scope, WAIT_UNTIL, WaitUntil(episode_ids=receipt.episode_ids, ask=False)
        )
        assert (looked.reached, looked.extracted) == (False, 0)
        assert (await memory.stats()).waiting == 1


@pytest.mark.parametrize(
    "wrong", [{"stage": "done"}, {"within": -1.0}, {"receipt": []}], ids=lambda one: next(iter(one))
)
async def test_what_cannot_be_waited_for_is_refused(
    temporal_client: Client, wrong: dict[str, Any]
) -> None:
    """An unknown stage, a time that has gone, and no turn at all are typed errors."""
    async with remembering(temporal_client, **QUIET) as (memory, _):
        asked = {"receipt": ["6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11"], "stage": "linked", **wrong}
        with pytest.raises(InvalidQuery):
            await memory.wait_until(asked.pop("receipt"), asked.pop("stage"), **asked)
