"""Everything of one user goes: memories, running workflows, histories; nobody else's does."""

from __future__ import annotations

import time

import pytest
from temporalio.client import Client

from engram.agents.models import make_model
from engram.client.local import direct_engine
from engram.client.memory import MemoryStore
from engram.contracts import names
from engram.contracts.removal import BEING_SCRUBBED, SERVERS_MAY_KEEP, ErasureReceipt
from engram.domain.memories import STORED_TYPES, MemoryType
from engram.domain.scope import Scope
from engram.embedding.embedder import make_embedder
from engram.system import new_id, system_clock
from engram.temporal.gateway import list_workflows
from engram.workflows.worker import running_workers
from tests.support.edge_stores import borrowed_store
from tests.support.stores import worker_settings


async def _left(client: Client, scope: Scope) -> set[str]:
    return {execution.id async for execution in list_workflows(client, scope)}


@pytest.mark.long
async def test_erasing_leaves_nothing_of_the_user_and_all_of_the_others(
    temporal_client: Client,
) -> None:
    """Collections count zero, sessions are stopped, histories are gone; a second user keeps all."""
    settings = worker_settings(namespace=f"n{new_id()[:8]}")
    embedder, model = make_embedder(settings.embedder), make_model(settings.model)
    async with (
        borrowed_store() as repository,
        running_workers(
            temporal_client, repository, embedder, model, settings, new_write_id=new_id
        ),
    ):
        engine = direct_engine(
            temporal_client, repository, embedder, settings, system_clock, ui_url=None
        )
        scope = Scope.of(settings.namespace, "ada")
        ada = MemoryStore(engine, scope, settings, system_clock, new_id)
        bob = ada.for_user("bob")
        for memory in (ada, bob):
            await memory.encode("I live in Lisbon. I don't use Mongo.", session_id="s1")
            await memory.encode("Write to me@example.org.", session_id="s2")
            await memory.consolidate()
        kept = (await bob.stats()).counts
        began = time.monotonic()
        receipt = await ada.erase()
        print(f"erased within {time.monotonic() - began:.2f} s")  # noqa: T201 - the figure
        assert receipt == ErasureReceipt.model_validate_json(receipt.model_dump_json())
        assert receipt.memories["episodic"] == 2
        assert (receipt.complete, receipt.scrubbed) == (True, False)
        assert receipt.may_remain == BEING_SCRUBBED
        counts = [await repository.count(scope, kind) for kind in STORED_TYPES]
        assert counts == [0] * len(STORED_TYPES)
        # Whoever comes back meanwhile is not taken for what was erased.
        await ada.encode("Hello again.", session_id="s3")
        done = await ada.erased()
        assert done is not None
        assert (done.complete, done.scrubbed) == (True, True)
        assert done.workflows_stopped >= 2
        assert done.histories_deleted == 3
        assert done.histories_kept == 0
        # Nobody here owns the files: what may be in them is said.
        assert (done.rewritten, done.may_remain) == ((), SERVERS_MAY_KEEP)
        assert "Lisbon" not in done.model_dump_json()
        # The service lists what erased, which holds no content, and what was begun since.
        behind = names.history_erasure_workflow_id(receipt.workflow_id)
        since = names.session_workflow_id(scope, "s3")
        assert await _left(temporal_client, scope) == {receipt.workflow_id, behind, since}
        assert await ada.recall("Where do I live?") == []
        assert (await bob.stats()).counts == kept
        assert (await bob.recall("Where do I live?")) != []
        await ada.encode("And again.", session_id="s1")
        assert (await ada.stats()).counts[MemoryType.EPISODIC] == 2
        await engine.close()
