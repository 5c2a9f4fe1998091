"""Whether the servers of the connected mode are there, set up, and of one time with us."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

import httpx

from engram.cli.doctor.installation import CheckContext, CheckResult, failed, ok, warning
from engram.contracts.names import SEARCH_ATTRIBUTES
from engram.domain.memories import STORED_TYPES, MemoryType
from engram.embedding.choice import make_embedder
from engram.errors import EngramError, PayloadRefused, SchemaMismatch, StorageUnavailable
from engram.storage.payload import TENANT, check_identity, collection_names, indexed_fields
from engram.storage.server import check_server_version, connect_qdrant, server_errors
from engram.system import system_clock
from engram.temporal.connection import connect_temporal

if TYPE_CHECKING:
    from qdrant_client import AsyncQdrantClient
    from temporalio.client import Client

_ANSWER_SECONDS: Final = 10.0
_TEMPORAL: Final = "temporal"
# The header that is compared with counts in whole seconds.
_TOLERATED: Final = timedelta(seconds=3)
_RECORD: Final = "engram"
RUNS: Final = "runs"
_MOST_RUNS: Final = 1000
_MOST_NAMED: Final = 10


async def temporal(around: CheckContext) -> CheckResult:
    """A Temporal server answers, and has the namespace."""
    given = around.settings
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            await connect_temporal(given)
    except EngramError as error:
        around.away.add(_TEMPORAL)
        return failed("temporal", error.message, error.hint or "check ENGRAM_TEMPORAL_ADDRESS")
    except TimeoutError:
        around.away.add(_TEMPORAL)
        return failed(
            "temporal",
            f"{given.temporal_address} does not answer within {_ANSWER_SECONDS:g} seconds",
            "check ENGRAM_TEMPORAL_ADDRESS",
        )
    return ok("temporal", f"{given.temporal_address}, namespace {given.temporal_namespace}")


async def search_attributes(around: CheckContext) -> CheckResult:
    """The namespace has the search attributes that Engram's workflows set."""
    from temporalio.api.operatorservice.v1 import (  # noqa: PLC0415 - only what is used loads
        ListSearchAttributesRequest,
    )
    from temporalio.service import RPCError  # noqa: PLC0415 - same

    client = await _client(around)
    if client is None:
        return warning("search attributes", "not looked at", "mend temporal first")
    try:
        answer = await client.operator_service.list_search_attributes(
            ListSearchAttributesRequest(namespace=client.namespace),
            timeout=timedelta(seconds=_ANSWER_SECONDS),
        )
    except RPCError as error:
        return warning(
            "search attributes",
            f"cannot be listed ({error.status.name})",
            "the account may not; look for them in the Temporal UI",
        )
    missing = [name for name in SEARCH_ATTRIBUTES if name not in answer.custom_attributes]
    if missing:
        commands = " ".join(f"--name {name} --type Keyword" for name in missing)
        return failed(
            "search attributes",
            f"missing: {', '.join(missing)}",
            f"temporal operator search-attribute create {commands}",
        )
    return ok("search attributes", ", ".join(SEARCH_ATTRIBUTES))


async def workers(around: CheckContext) -> CheckResult:
    """Somebody works on the queue of workflows."""
    from temporalio.api.enums.v1 import TaskQueueType  # noqa: PLC0415 - only what is used loads
    from temporalio.api.taskqueue.v1 import TaskQueue  # noqa: PLC0415 - same
    from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest  # noqa: PLC0415 - same
    from temporalio.service import RPCError  # noqa: PLC0415 - same

    client = await _client(around)
    if client is None:
        return warning("workers", "not looked at", "mend temporal first")
    queue = around.settings.store_queue
    try:
        answer = await client.workflow_service.describe_task_queue(
            DescribeTaskQueueRequest(
                namespace=client.namespace,
                task_queue=TaskQueue(name=queue),
                task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
            ),
            timeout=timedelta(seconds=_ANSWER_SECONDS),
        )
    except RPCError as error:
        return warning("workers", f"cannot be asked for ({error.status.name})", "see temporal")
    if not answer.pollers:
        return failed(
            "workers", f"nobody works on {queue}", "start `engram worker` with these settings"
        )
    return ok("workers", f"{len(answer.pollers)} on {queue}")


async def schedules(around: CheckContext) -> CheckResult:
    """The schedules of passes are there and run, where they are wanted."""
    from engram.temporal.schedules import Schedules  # noqa: PLC0415 - only what is used loads

    client = await _client(around)
    if client is None:
        return warning("schedules", "not looked at", "mend temporal first")
    if not around.settings.schedules:
        return ok("schedules", "off, by ENGRAM_SCHEDULES")
    try:
        found = await Schedules(client, around.settings).list()
    except EngramError as error:
        return warning("schedules", error.message, error.hint or "see temporal")
    absent = [one.kind.value for one in found if not one.exists]
    if absent:
        return warning(
            "schedules",
            f"not there: {', '.join(absent)}",
            "a worker makes them when it starts: restart one, and look at its log",
        )
    paused = [f"{one.kind.value} ({one.note})" for one in found if one.paused]
    if paused:
        return warning(
            "schedules", f"paused: {', '.join(paused)}", "engram schedules resume ... --connected"
        )
    return ok("schedules", ", ".join(one.kind.value for one in found))


async def encryption(around: CheckContext) -> CheckResult:
    """Workers have the encryption keys that are set here, or neither has any."""
    from engram.temporal.schedules import Schedules  # noqa: PLC0415 - only what is used loads

    client = await _client(around)
    if client is None:
        return warning("encryption", "not looked at", "mend temporal first")
    try:
        compared = await Schedules(client, around.settings).check_keys()
    except PayloadRefused as error:
        found = "the worker that started last has other encryption keys than are set here"
        return failed("encryption", found, error.hint or "compare ENGRAM_ENCRYPTION_KEYS")
    except EngramError as error:
        return warning("encryption", error.message, error.hint or "see temporal")
    if not compared:
        return ok("encryption", "not compared with workers: there are no schedules")
    return ok("encryption", "as the worker that started last has it")


async def runs(around: CheckContext) -> CheckResult:
    """The data keys of what runs are there, and its tasks do not fail."""
    from engram.temporal.schedules import Schedules  # noqa: PLC0415 - only what is used loads

    client = await _client(around)
    if client is None:
        return warning(RUNS, "not looked at", "mend temporal first")
    try:
        # With other keys than the workers', all would seem to be missing.
        compared = await Schedules(client, around.settings).check_keys()
    except EngramError:
        return warning(RUNS, "not looked at", "mend encryption first")
    if not compared:
        return ok(RUNS, "not looked at: the keys are not compared with workers'")
    return await readable_runs(client, " --connected")


async def readable_runs(client: Client, connected: str = "") -> CheckResult:
    """Whether workers can read what runs, and go on with it.

    Args:
        client: With the keys that workers have.
        connected: The option that leads the command that is advised to the same server.
    """
    from engram.temporal.gateway import stuck_runs  # noqa: PLC0415 - only what is used loads
    from engram.temporal.retry import ending_command  # noqa: PLC0415 - same

    try:
        stuck = await stuck_runs(client, _MOST_RUNS)
    except EngramError as error:
        return warning(RUNS, error.message, error.hint or "see temporal")
    if stuck.without_key:
        named = stuck.without_key[:_MOST_NAMED]
        commands = "; ".join(ending_command(one, connected) for one in named)
        return failed(
            RUNS,
            f"the data keys of {len(stuck.without_key)} are missing: they wait for ever, and their "
            "users' turns with them",
            f"restore the keys; or end them, no memory is lost: {commands}",
        )
    if stuck.failing:
        commands = "; ".join(
            f"engram replay {shlex.quote(one)}" for one in stuck.failing[:_MOST_NAMED]
        )
        return failed(
            RUNS,
            f"the tasks of {len(stuck.failing)} fail again and again: what they are to do waits",
            f"the worker's log says what is raised, and where it parts from what ran: {commands}",
        )
    return ok(RUNS, f"the data keys of {stuck.looked_at} are there, and none fails")


async def qdrant(around: CheckContext) -> CheckResult:
    """A Qdrant server answers, and is new enough."""
    try:
        async with _qdrant_client(around) as client:
            with server_errors("asking for its version"):
                version = (await client.info()).version
        check_server_version(version)
    except EngramError as error:
        return failed("qdrant", error.message, error.hint or "check ENGRAM_QDRANT_URL")
    return ok("qdrant", f"{version} at {around.settings.qdrant_url}")


async def collections(around: CheckContext) -> CheckResult:
    """The collections are all there or none is, of this schema and embedder, with all indexes."""
    names = collection_names(around.settings.collection_prefix)
    try:
        async with _qdrant_client(around) as client:
            with server_errors("looking at the collections"):
                found = await _looked_at(client, names)
        return judge(found, make_embedder(around.settings.embedder).identity)
    except StorageUnavailable:
        return warning("collections", "not looked at", "mend qdrant first")
    except EngramError as error:
        return failed("collections", error.message, error.hint or "mend qdrant first")


@asynccontextmanager
async def _qdrant_client(around: CheckContext) -> AsyncIterator[AsyncQdrantClient]:
    client = connect_qdrant(around.settings)
    try:
        yield client
    finally:
        await client.close()


def judge(
    found: Mapping[MemoryType, tuple[Mapping[str, object], frozenset[str]]], embedder: str
) -> CheckResult:
    """What is to be said of the collections that there are.

    Args:
        found: By type, what a collection recorded of itself, and the fields with an index.
        embedder: Identity of the embedder that is set.
    """
    if not found:
        return ok("collections", "none yet; the first command or worker makes them")
    try:
        for record, _ in found.values():
            size = int(str(record.get("dimensions", 0)))
            check_identity(record, embedder=embedder, dimensions=size)
    except SchemaMismatch as error:
        return failed("collections", error.message, error.hint or "start a new store")
    missing = [kind.value for kind in STORED_TYPES if kind not in found]
    if missing:
        return warning(
            "collections", f"missing: {', '.join(missing)}", "starting `engram worker` makes them"
        )
    bare = [
        f"{kind.value}.{name}"
        for kind, (_, indexed) in found.items()
        for name in (TENANT, *indexed_fields(kind))
        if name not in indexed
    ]
    if bare:
        return warning(
            "collections",
            f"{len(bare)} fields without an index: {', '.join(bare[:5])}",
            "starting `engram worker` makes them",
        )
    return ok("collections", f"{len(found)}, with all indexes")


async def clock(around: CheckContext) -> CheckResult:
    """This machine and the Qdrant server agree on the time."""
    try:
        async with httpx.AsyncClient(timeout=_ANSWER_SECONDS) as client:
            answer = await client.get(around.settings.qdrant_url)
    except (httpx.HTTPError, httpx.InvalidURL):
        return warning("clock", "there is none to compare it with", "mend qdrant first")
    theirs: datetime | None = None
    with suppress(KeyError, ValueError):
        theirs = parsedate_to_datetime(answer.headers["date"])
    if theirs is None:
        return warning("clock", "the server does not tell its time", "compare the clocks by hand")
    apart = abs(system_clock() - theirs)
    if apart > _TOLERATED:
        return failed(
            "clock",
            f"{apart.total_seconds():.0f} seconds apart from the Qdrant server's",
            "let both machines follow a time server: what is valid when depends on it",
        )
    return ok("clock", "agrees with the Qdrant server's")


async def _client(around: CheckContext) -> Client | None:
    if _TEMPORAL in around.away:
        return None
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            return await connect_temporal(around.settings)
    except (EngramError, TimeoutError):
        # What is wrong there is told by the check of Temporal itself.
        return None


async def _looked_at(
    client: AsyncQdrantClient, names: Mapping[MemoryType, str]
) -> dict[MemoryType, tuple[Mapping[str, object], frozenset[str]]]:
    found: dict[MemoryType, tuple[Mapping[str, object], frozenset[str]]] = {}
    for kind, name in names.items():
        if not await client.collection_exists(name):
            continue
        there = await client.get_collection(name)
        record = (there.config.metadata or {}).get(_RECORD)
        if not isinstance(record, dict):
            raise SchemaMismatch(
                f"The collection {name} was not made by Engram.",
                hint="Choose another ENGRAM_COLLECTION_PREFIX.",
            )
        found[kind] = (record, frozenset(there.payload_schema))
    return found
