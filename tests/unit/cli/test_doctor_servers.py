"""`engram doctor --connected`: a real Temporal server, and stand-ins for what Qdrant says."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from qdrant_client import AsyncQdrantClient, models
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest
from temporalio.client import Client
from temporalio.worker import Worker

from engram.cli.doctor import servers
from engram.cli.doctor.installation import CheckResult, State
from engram.contracts import names
from engram.contracts.attributes import attributes
from engram.contracts.lifecycle import PassKind
from engram.domain.memories import STORED_TYPES, MemoryType
from engram.domain.scope import Scope
from engram.embedding.choice import make_embedder
from engram.storage.payload import TENANT, identity_record, indexed_fields
from engram.system import new_id, new_secret, system_clock
from engram.temporal.connection import connect_temporal
from engram.temporal.keys import FolderKeyStore
from engram.temporal.schedules import Schedules
from engram.workflows.lifecycle import PromotionWorkflow
from engram.workflows.worker import sandbox_runner
from tests.support.doctor_results import around, says
from tests.support.failing_tasks import failing_tasks
from tests.support.ports import free_port
from tests.support.programs import environment
from tests.support.stores import worker_settings
from tests.support.temporal_without_database import temporal_without_database

EMBEDDER = make_embedder("wordllama").identity
DOCTOR = "import engram.cli; engram.cli.main()"


@contextmanager
def qdrant_that_says(answer: dict[str, Any], *, date: str | None = None) -> Iterator[str]:
    """A server that gives every request this answer; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(answer).encode()
            self.send_response_only(200)
            if date != "":
                self.send_header("Date", date or self.date_time_string())
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def looked_until(
    look: Callable[[], Awaitable[CheckResult]], seen: Callable[[CheckResult], bool]
) -> CheckResult:
    """What a check finds as soon as it finds that, or after half a minute."""
    for _ in range(150):
        if seen(found := await look()):
            break
        await asyncio.sleep(0.2)
    return found


async def test_temporal(tmp_path: Path, temporal_address: str) -> None:
    """A server with the namespace is well; a wrong namespace and a closed port are not."""
    there = {"ENGRAM_TEMPORAL_ADDRESS": temporal_address}
    says(await servers.temporal(around(tmp_path, there)), State.OK, temporal_address)
    wrong = around(tmp_path, {**there, "ENGRAM_TEMPORAL_NAMESPACE": "nowhere"})
    says(await servers.temporal(wrong), State.FAILED, "ENGRAM_TEMPORAL_NAMESPACE")
    away = around(tmp_path, {"ENGRAM_TEMPORAL_ADDRESS": f"127.0.0.1:{free_port()}"})
    says(await servers.temporal(away), State.FAILED, "ENGRAM_TEMPORAL_ADDRESS")
    says(await servers.search_attributes(away), State.WARNING, "mend temporal first")
    says(await servers.workers(away), State.WARNING, "mend temporal first")
    says(await servers.schedules(away), State.WARNING, "mend temporal first")
    says(await servers.encryption(away), State.WARNING, "mend temporal first")


async def test_search_attributes(tmp_path: Path, temporal_client: Client) -> None:
    """A namespace that has them is well; a bare one fails with the command that makes them."""
    there = {
        "ENGRAM_TEMPORAL_ADDRESS": temporal_client.service_client.config.target_host,
        "ENGRAM_TEMPORAL_NAMESPACE": temporal_client.namespace,
    }
    says(await servers.search_attributes(around(tmp_path, there)), State.OK)
    bare_name = f"bare-{temporal_client.namespace}"
    await temporal_client.workflow_service.register_namespace(
        RegisterNamespaceRequest(
            namespace=bare_name,
            workflow_execution_retention_period=Duration(seconds=86400),
        )
    )
    bare = around(tmp_path, {**there, "ENGRAM_TEMPORAL_NAMESPACE": bare_name})
    # A namespace is there for everybody a while after it was made.
    seen = await looked_until(
        lambda: servers.search_attributes(bare), lambda it: it.state is State.FAILED
    )
    says(seen, State.FAILED, "temporal operator search-attribute create --name")


async def test_schedules(tmp_path: Path, temporal_client: Client) -> None:
    """One that is gone or paused is told of; those that run, or are not wanted, are well."""
    given = {
        "ENGRAM_TEMPORAL_ADDRESS": temporal_client.service_client.config.target_host,
        "ENGRAM_TEMPORAL_NAMESPACE": temporal_client.namespace,
        "ENGRAM_COLLECTION_PREFIX": f"doctor{new_id()[:8]}",
    }
    looking = around(tmp_path, given)
    says(await servers.schedules(looking), State.WARNING, "consolidation, decay", "worker")
    kept = Schedules(temporal_client, looking.settings)
    await kept.ensure()
    try:
        says(await servers.schedules(looking), State.OK, "consolidation")
        await kept.pause(PassKind.DECAY, note="before the import")
        says(await servers.schedules(looking), State.WARNING, "decay (before the import)")
        await kept.delete(PassKind.DECAY)
        says(await servers.schedules(looking), State.WARNING, "not there: decay")
        off = around(tmp_path, {**given, "ENGRAM_SCHEDULES": "false"})
        says(await servers.schedules(off), State.OK, "ENGRAM_SCHEDULES")
    finally:
        for kind in PassKind:
            await kept.delete(kind)


async def test_a_run_whose_task_fails_again_and_again_is_named(temporal_client: Client) -> None:
    """It runs, a worker asks for more, and nothing comes of it."""
    settings, user = worker_settings(), f"u{new_id()[:8]}"
    run = names.decay_workflow_id(Scope.of("default", user))
    async with failing_tasks(temporal_client, settings):
        handle = await temporal_client.start_workflow(
            names.DECAY_WORKFLOW,
            id=run,
            task_queue=settings.store_queue,
            search_attributes=attributes("decay", user=f"default/{user}"),
        )
        async with asyncio.timeout(30):
            while True:
                found = await servers.readable_runs(temporal_client)
                if run in str(found):
                    break
                await asyncio.sleep(0.1)
        says(found, State.FAILED, f"engram replay {run}", "fail again and again")
        await handle.terminate()


@pytest.mark.parametrize("workers_have_keys", [True, False])
async def test_encryption(
    tmp_path: Path,
    temporal_client: Client,
    encryption_keys: FolderKeyStore,
    workers_have_keys: bool,
) -> None:
    """Keys that only workers have fail, and keys that only we have; so do others than theirs."""
    given = {
        "ENGRAM_TEMPORAL_ADDRESS": temporal_client.service_client.config.target_host,
        "ENGRAM_TEMPORAL_NAMESPACE": temporal_client.namespace,
        "ENGRAM_COLLECTION_PREFIX": f"doctor{new_id()[:8]}",
    }
    others = FolderKeyStore.create(tmp_path / "keys", new_secret=new_secret, since=None)
    plain = around(tmp_path, given)
    keyed = around(tmp_path, {**given, "ENGRAM_ENCRYPTION_KEYS": str(encryption_keys.folder)})
    other = around(tmp_path, {**given, "ENGRAM_ENCRYPTION_KEYS": str(others.folder)})
    says(await servers.encryption(keyed), State.OK, "no schedules")
    alike, apart = (keyed, plain) if workers_have_keys else (plain, keyed)
    of_worker = Schedules(await connect_temporal(alike.settings), alike.settings)
    await of_worker.ensure()
    try:
        says(await servers.encryption(alike), State.OK, "worker that started last")
        for looking in (apart, other):
            says(await servers.encryption(looking), State.FAILED, "ENGRAM_ENCRYPTION_KEYS")
    finally:
        for kind in PassKind:
            await of_worker.delete(kind)


async def test_workers(tmp_path: Path, temporal_client: Client) -> None:
    """A queue that nobody works on fails; with a worker it is well."""
    queue = "doctor-store"
    looking = around(
        tmp_path,
        {
            "ENGRAM_TEMPORAL_ADDRESS": temporal_client.service_client.config.target_host,
            "ENGRAM_TEMPORAL_NAMESPACE": temporal_client.namespace,
            "ENGRAM_STORE_QUEUE": queue,
        },
    )
    says(await servers.workers(looking), State.FAILED, queue, "engram worker")
    async with Worker(
        temporal_client,
        task_queue=queue,
        workflows=[PromotionWorkflow],
        workflow_runner=sandbox_runner(),
    ):
        seen = await looked_until(lambda: servers.workers(looking), lambda it: it.state is State.OK)
    says(seen, State.OK, queue)


async def test_qdrant(tmp_path: Path) -> None:
    """A new server is well; an old one is refused; one that is away, or none, is told of."""
    with qdrant_that_says({"title": "qdrant", "version": "1.19.2"}) as url:
        says(await servers.qdrant(around(tmp_path, {"ENGRAM_QDRANT_URL": url})), State.OK, "1.19.2")
    with qdrant_that_says({"title": "qdrant", "version": "1.10.0"}) as url:
        old = around(tmp_path, {"ENGRAM_QDRANT_URL": url})
        says(await servers.qdrant(old), State.FAILED, "1.10.0", "Upgrade")
    away = around(tmp_path, {"ENGRAM_QDRANT_URL": f"http://127.0.0.1:{free_port()}"})
    says(await servers.qdrant(away), State.FAILED, "ENGRAM_QDRANT_URL")
    says(await servers.collections(away), State.WARNING, "mend qdrant first")
    says(await servers.clock(away), State.WARNING, "mend qdrant first")
    none = around(tmp_path, {"ENGRAM_QDRANT_URL": "http://qdrant:port"})
    says(await servers.qdrant(none), State.FAILED, "address", "ENGRAM_QDRANT_URL")
    says(await servers.collections(none), State.FAILED, "ENGRAM_QDRANT_URL")
    says(await servers.clock(none), State.WARNING, "mend qdrant first")


async def test_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clocks that agree are well; an hour apart is not; a server without a clock is a warning."""
    with qdrant_that_says({}) as url:
        there = around(tmp_path, {"ENGRAM_QDRANT_URL": url})
        says(await servers.clock(there), State.OK)
        monkeypatch.setattr(servers, "system_clock", lambda: system_clock() + timedelta(hours=1))
        says(await servers.clock(there), State.FAILED, "360", "time server")
    with qdrant_that_says({}, date="") as url:
        silent = around(tmp_path, {"ENGRAM_QDRANT_URL": url})
        says(await servers.clock(silent), State.WARNING, "does not tell")


def as_made(**changes: Any) -> dict[MemoryType, tuple[dict[str, object], frozenset[str]]]:
    """All collections as Engram makes them."""
    record = {**identity_record(embedder=EMBEDDER, dimensions=256), **changes}
    return {kind: (record, frozenset({TENANT, *indexed_fields(kind)})) for kind in STORED_TYPES}


def test_collections() -> None:
    """All or none is well; another embedder fails; a missing collection or index is a warning."""
    says(servers.judge({}, EMBEDDER), State.OK, "none yet")
    says(servers.judge(as_made(), EMBEDDER), State.OK, "5, with all indexes")
    says(servers.judge(as_made(embedder="openai:x"), EMBEDDER), State.FAILED, "openai:x")
    says(servers.judge(as_made(schema_version=0), EMBEDDER), State.FAILED, "schema version 0")
    some = as_made()
    del some[MemoryType.NEGATION]
    says(servers.judge(some, EMBEDDER), State.WARNING, "negation")
    bare = as_made()
    bare[MemoryType.EPISODIC] = (bare[MemoryType.EPISODIC][0], frozenset({TENANT}))
    says(servers.judge(bare, EMBEDDER), State.WARNING, "without an index", "episodic.")


async def test_collections_of_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a server has is read from it; collections that Engram did not make are refused."""
    empty, foreign = AsyncQdrantClient(":memory:"), AsyncQdrantClient(":memory:")
    vectors = models.VectorParams(size=4, distance=models.Distance.COSINE)
    await foreign.create_collection("engram_episodic", vectors_config=vectors)
    monkeypatch.setattr(servers, "connect_qdrant", lambda _: empty)
    says(await servers.collections(around(tmp_path)), State.OK, "none yet")
    monkeypatch.setattr(servers, "connect_qdrant", lambda _: foreign)
    says(await servers.collections(around(tmp_path)), State.FAILED, "not made by Engram")


@pytest.mark.long
def test_a_database_that_is_away_leaves_json_and_is_waited_for_once(tmp_path: Path) -> None:
    """The SDK's own warnings stay out of what is printed; five checks do not wait as the first."""
    with temporal_without_database() as (address, asked):
        examined = subprocess.run(
            [sys.executable, "-c", DOCTOR, "doctor", "--connected", "--json"],
            env=environment(
                ENGRAM_TEMPORAL_ADDRESS=address,
                ENGRAM_QDRANT_URL=f"http://127.0.0.1:{free_port()}",
                ENGRAM_DATA_DIR=str(tmp_path),
            ),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert examined.returncode == 1, examined.stderr
    found = {each["check"]: each for each in json.loads(examined.stdout)["checks"]}
    assert address in found["temporal"]["found"]
    assert found["temporal"]["state"] == "failed"
    assert found["workers"]["found"] == "not looked at"
    assert asked["DescribeNamespace"] > 5, "the SDK has nothing to warn of"
    assert asked["GetSystemInfo"] == 1
