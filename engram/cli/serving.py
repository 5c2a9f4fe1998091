"""What the commands that stay run: one worker, the HTTP API, MCP; `engram up` has its own place."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import webbrowser
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, TypeVar

import stamina

from engram.cli.output import console
from engram.cli.running import StoreOptions
from engram.cli.up import serving_until, unless_stopped, until_asked_to_stop
from engram.client.engine import MemoryEngine
from engram.client.memory import MemoryStore
from engram.errors import (
    EngramError,
    InvalidInput,
    StorageUnavailable,
    TemporalUnavailable,
    needs_extra,
)
from engram.logging import get_logger
from engram.settings import Settings
from engram.system import (
    local_time,
    local_zone,
    new_id,
    new_secret,
    private,
    private_draft,
    system_clock,
)

if TYPE_CHECKING:
    from temporalio.client import Client

    from engram.ports import MaintenanceRepository
    from engram.server.codec import CodecDoor
    from engram.server.ui import UiDoor

# --- commands that stay: one worker of many, or the HTTP API of them

Server = TypeVar("Server")
_OUTAGE_PATIENCE = timedelta(minutes=5)
_log = get_logger("engram.cli")


async def serve_api(settings: Settings) -> None:
    """Answer for a Temporal cluster and a Qdrant server until SIGTERM or Ctrl-C; do no work."""
    from engram.client.servers import connected_engine  # noqa: PLC0415 - only what is used loads

    with needs_extra("serve"):
        from engram.server.run import public_door  # noqa: PLC0415 - an optional part

    _let_core_log(settings)
    async with AsyncExitStack() as stack:
        stop = await stack.enter_async_context(until_asked_to_stop())

        async def connect() -> MemoryEngine:
            return await connected_engine(stack, settings)

        engine = await unless_stopped(stop, _waited_for("Temporal and Qdrant", connect, settings))
        if engine is None:
            return
        url = await stack.enter_async_context(public_door(engine, settings))
        _say(
            f"API on {url}, Temporal {settings.temporal_address}, store {settings.qdrant_url}. "
            "Ctrl-C stops.",
            settings,
        )
        await serving_until(stop)
        _say("Finishing what runs.", settings)


def _say(line: str, settings: Settings) -> None:
    """Tell how far it is: a line for people, or one of the log where machines read."""
    if settings.log_format == "json":
        _log.info(line)
    else:
        console.print(line)


def _let_core_log(settings: Settings) -> None:
    """Have the core of Temporal's SDK, which prints its warnings itself, print JSON where we do.

    It could hand them to Python instead; then its threads call into an interpreter that is
    perhaps just ending.
    """
    if settings.log_format != "json":
        return
    from temporalio.runtime import (  # noqa: PLC0415 - only what is used loads
        LoggingConfig,
        LoggingFormat,
        Runtime,
        TelemetryConfig,
    )

    as_json = replace(LoggingConfig.default, format=LoggingFormat.JSON)
    Runtime.set_default(
        Runtime(telemetry=TelemetryConfig(logging=as_json)), error_if_already_set=False
    )


async def _waited_for(
    what: str, connect: Callable[[], Awaitable[Server]], settings: Settings
) -> Server:
    """The server once it answers: machines start in any order."""
    async for attempt in stamina.retry_context(
        on=(TemporalUnavailable, StorageUnavailable), attempts=None, timeout=_OUTAGE_PATIENCE
    ):
        with attempt:
            try:
                return await connect()
            except EngramError as error:
                if error.retryable:
                    _say(f"Waiting for {what}: {error.message}", settings)
                raise
    raise AssertionError("retrying ends with an answer or an error")


async def serve_worker(settings: Settings) -> None:
    """Work for a Temporal cluster and a Qdrant server until SIGTERM or Ctrl-C."""
    from engram.agents.asking import thinker  # noqa: PLC0415 - only what is used loads
    from engram.client.servers import open_server_repository  # noqa: PLC0415 - same
    from engram.embedding.choice import make_embedder  # noqa: PLC0415 - same
    from engram.storage.trail import keeping_trail  # noqa: PLC0415 - same
    from engram.system import new_id, new_secret  # noqa: PLC0415 - same
    from engram.temporal.connection import connect_temporal, key_store  # noqa: PLC0415 - same
    from engram.temporal.schedules import keeping_schedules  # noqa: PLC0415 - same

    with needs_extra("worker"):
        from engram.workflows.nexus import nexus_door  # noqa: PLC0415 - same
        from engram.workflows.worker import running_workers  # noqa: PLC0415 - same

    _let_core_log(settings)
    embedder = make_embedder(settings.embedder)
    asked = thinker(settings.model)
    keys = key_store(settings)

    async def connect() -> tuple[Client, MaintenanceRepository]:
        client = await _waited_for("Temporal", lambda: connect_temporal(settings, keys), settings)
        return client, await _waited_for(
            "Qdrant", lambda: open_server_repository(settings, embedder), settings
        )

    async with AsyncExitStack() as stack:
        stop = await stack.enter_async_context(until_asked_to_stop())
        connected = await unless_stopped(stop, connect())
        if connected is None:
            return
        client, repository = connected
        stack.push_async_callback(repository.close)
        trail = await stack.enter_async_context(
            keeping_trail(settings.audit_folder, keys, settings, system_clock, new_secret)
        )
        await stack.enter_async_context(
            running_workers(
                client,
                repository,
                embedder,
                asked,
                settings,
                new_write_id=new_id,
                keys=keys,
                trail=trail,
            )
        )
        await stack.enter_async_context(keeping_schedules(client, settings))
        await stack.enter_async_context(nexus_door(client, repository, embedder, settings, trail))
        _say(
            f"Worker on {settings.temporal_address} ({settings.store_queue}, "
            f"{settings.model_queue}), store {settings.qdrant_url}. Ctrl-C stops.",
            settings,
        )
        await serving_until(stop)
        _say("Finishing what runs.", settings)


# --- `engram ui`: Temporal's UI, decoded for one browser


async def serve_ui(options: StoreOptions, *, browse: bool, address_file: Path | None) -> None:
    """Serve it until SIGTERM or Ctrl-C.

    Args:
        options: Where Temporal is, and with it the keys.
        browse: Whether to open the browser.
        address_file: Has the address in place of what is printed.

    Raises:
        InvalidInput: the file cannot be written.
        InvalidSettings: nothing is encrypted there.
        TemporalUnavailable: the server does not answer.
        EmbeddedPartMissing: the program that has the pages is not installed.
    """
    from engram.cli.passes import temporal  # noqa: PLC0415 - only what is used loads

    async with until_asked_to_stop() as stop, AsyncExitStack() as stack:
        client, settings = await stack.enter_async_context(temporal(options))
        door = await stack.enter_async_context(decoded_ui(client, settings))
        console.print("Temporal's UI, decoded for the first browser that opens this address:")
        told = stack.enter_context(address_told(door.first_url, address_file))
        console.print(told, soft_wrap=True)
        console.print("Ctrl-C stops.")
        if browse:
            # In a thread: some browsers are programs for the terminal, and stay.
            await asyncio.to_thread(stack.enter_context, browser_opened(door.first_url))
        await stop.wait()


@contextmanager
def address_told(address: str, file: Path | None) -> Iterator[str]:
    """Who is to know an address that lets in whoever knows it; what is printed of it.

    Args:
        address: That address.
        file: Has it while the block runs, whole from the beginning and for its owner alone;
            what was there is replaced. None: the address is printed.

    Raises:
        InvalidInput: the file cannot be written.
    """
    if file is None:
        yield address
        return
    line = f"{address}\n"
    try:
        with private_draft(file) as draft:
            draft.write(line)
    except OSError as error:
        raise InvalidInput(
            f"The address cannot be written to {file} ({error.strerror}).",
            allowed="a file in a folder that you can write to",
        ) from error
    try:
        yield f"in the file {file}"
    finally:
        # Another one that was started with the same file goes on.
        with suppress(FileNotFoundError):
            if file.read_text("utf-8") == line:
                file.unlink()


@asynccontextmanager
async def decoded_ui(client: Client, settings: Settings) -> AsyncIterator[UiDoor]:
    """Serve Temporal's UI on loopback while the block runs; the door has the address.

    Args:
        client: Of the Temporal server that is looked at, with the keys.
        settings: How long programs may take to start.

    Raises:
        InvalidSettings: the client has no keys.
        EmbeddedPartMissing: the program that has the pages is not installed.
    """
    with needs_extra("embedded"):
        from engram.embedded.server import ui_pages  # noqa: PLC0415 - an optional part
        from engram.server.run import loopback_listeners, serve_on_loopback  # noqa: PLC0415 - same
        from engram.server.ui import UiDoor, ui_app  # noqa: PLC0415 - same
        from engram.temporal.encryption import reading_codec  # noqa: PLC0415 - same

    # Before anything starts: without keys there is nothing to decode.
    codec = reading_codec(client.data_converter)
    async with ui_pages(settings) as pages:
        with loopback_listeners() as listeners:
            door = UiDoor.at(listeners[0].getsockname()[1], new_secret)
            async with (
                ui_app(door, pages, client, codec) as app,
                serve_on_loopback(app, listeners),
            ):
                yield door


@contextmanager
def browser_opened(url: str) -> Iterator[None]:
    """Have the browser open it, from a file that stays while the block runs.

    Other users of the machine read what programs are called with, and a browser is called with
    what it opens. Where there is none, nothing happens.
    """
    with TemporaryDirectory(prefix="engram-ui-") as place:
        page = Path(place) / "open.html"
        with open(page, "x", encoding="utf-8", opener=private) as file:
            file.write(f'<!doctype html><meta http-equiv="refresh" content="0;url={url}">')
        webbrowser.open(page.as_uri())
        yield


# --- `engram codec` and `engram temporal`: for programs that reach Temporal without Engram's client


@asynccontextmanager
async def serving_codec(client: Client) -> AsyncIterator[CodecDoor | None]:
    """Serve a codec on loopback while the block runs; None where nothing is encrypted.

    Args:
        client: Of the Temporal server, with the keys.
    """
    with needs_extra("embedded"):
        from engram.server.codec import CodecDoor, codec_app  # noqa: PLC0415 - an optional part
        from engram.server.run import loopback_listeners, serve_on_loopback  # noqa: PLC0415 - same
        from engram.temporal.encryption import EncryptionCodec  # noqa: PLC0415 - same

    codec = client.data_converter.payload_codec
    if not isinstance(codec, EncryptionCodec):
        yield None
        return
    with loopback_listeners() as listeners:
        door = CodecDoor.at(listeners[0].getsockname()[1], new_secret)
        app = codec_app(door, codec.for_replays(), codec, client.namespace)
        async with serve_on_loopback(app, listeners):
            yield door


async def serve_codec(options: StoreOptions, *, address_file: Path | None) -> None:
    """Serve a codec until SIGTERM or Ctrl-C, and tell its address.

    Args:
        options: Where Temporal is, and with it the keys.
        address_file: Has the address in place of what is printed.

    Raises:
        InvalidInput: the file cannot be written.
        InvalidSettings: nothing is encrypted there.
    """
    from engram.cli.passes import temporal  # noqa: PLC0415 - only what is used loads
    from engram.temporal.encryption import reading_codec  # noqa: PLC0415 - same

    async with (
        until_asked_to_stop() as stop,
        temporal(options) as (client, _),
        serving_codec(client) as door,
    ):
        if door is None:
            # Says so.
            reading_codec(client.data_converter)
            return
        console.print(f"Temporal: {client.service_client.config.target_host}, {client.namespace}")
        with address_told(f"{door.url('')}WORKFLOW-ID", address_file) as told:
            console.print(f"Codec: {told}", soft_wrap=True)
            console.print("WORKFLOW-ID is the workflow's, as part of an address. Ctrl-C stops.")
            await stop.wait()


async def run_temporal(options: StoreOptions, arguments: Sequence[str]) -> int:
    """Run Temporal's command line on the server of a memory; its exit code.

    It learns by its environment where the server is, and how payloads are encoded for the
    workflow that ``--workflow-id`` names: others see what programs are called with.

    Raises:
        EmbeddedPartMissing: it is not installed.
        InvalidInput: two workflows may be meant.
    """
    from engram.cli.passes import temporal  # noqa: PLC0415 - only what is used loads
    from engram.embedded.program import find_temporal  # noqa: PLC0415 - same

    program, workflow_id = find_temporal(), workflow_of(arguments)
    async with temporal(options) as (client, settings), serving_codec(client) as door:
        connected = settings if options.connected else None
        told = environment_for(
            client.service_client.config.target_host, client.namespace, connected, os.environ
        )
        if door is not None:
            told["TEMPORAL_CODEC_ENDPOINT"] = door.url(workflow_id)
        ran = await asyncio.create_subprocess_exec(program, *arguments, env=told)
        try:
            return await ran.wait()
        except asyncio.CancelledError:
            # It had the same Ctrl-C.
            await ran.wait()
            raise


def environment_for(
    address: str, namespace: str, settings: Settings | None, inherited: Mapping[str, str]
) -> dict[str, str]:
    """What Temporal's command line is run with: where Engram's server is, and nothing else of it.

    What the shell has for another server (a key, TLS, a profile) would keep it from this one.

    Args:
        address: Host and port of the server.
        namespace: Temporal's.
        settings: How a server of others is reached; None for the embedded one.
        inherited: The environment of this program.
    """
    told = {name: value for name, value in inherited.items() if not name.startswith("TEMPORAL_")}
    # Files with profiles hold the same for others.
    told |= dict.fromkeys(("TEMPORAL_CONFIG_FILE", "TEMPORAL_ENV_FILE"), os.devnull)
    told |= {"TEMPORAL_ADDRESS": address, "TEMPORAL_NAMESPACE": namespace}
    if settings is None:
        return told
    key = settings.temporal_api_key
    given = {
        "TEMPORAL_API_KEY": None if key is None else key.get_secret_value(),
        "TEMPORAL_TLS": "true" if settings.temporal_tls else None,
        "TEMPORAL_TLS_SERVER_CA_CERT_PATH": settings.temporal_tls_ca_cert,
        "TEMPORAL_TLS_CLIENT_CERT_PATH": settings.temporal_tls_client_cert,
        "TEMPORAL_TLS_CLIENT_KEY_PATH": settings.temporal_tls_client_key,
    }
    return told | {name: str(value) for name, value in given.items() if value}


# As Temporal's command line reads it: `-w ID`, `-wID`, `-w=ID`, also behind letters that take no
# value. Other options begin with the same words.
_NAMES_WORKFLOW: Final = re.compile(r"--workflow-id(?:=(.*))?|-[fhy]*w=?(.+)?", re.DOTALL)
OF_NO_WORKFLOW: Final = "-"
"""Stands in a codec's address for what is about no workflow: it is encoded as shared."""


def workflow_of(arguments: Sequence[str]) -> str:
    """The workflow that a command of Temporal's is about, or :data:`OF_NO_WORKFLOW`.

    Args:
        arguments: The command, without the program.

    Raises:
        InvalidInput: it may be about one or another, and payloads are encrypted for one.
    """
    found: dict[str, None] = {}
    for place, one in enumerate(arguments):
        if one == "--":
            break
        match = _NAMES_WORKFLOW.fullmatch(one)
        if match is not None:
            following = next(iter(arguments[place + 1 :]), OF_NO_WORKFLOW)
            found[next((value for value in match.groups() if value is not None), following)] = None
    if len(found) > 1:
        raise InvalidInput(
            "Two arguments may name the workflow, and what is sent is encrypted for one.",
            allowed="--workflow-id ID, once; other values that begin with -w as --option=VALUE",
        )
    return next(iter(found), OF_NO_WORKFLOW)


# --- `engram mcp`: memory for an MCP client that starts this program and talks to it by pipe


async def serve_stdio(opener: Callable[[], AbstractAsyncContextManager[MemoryStore]]) -> None:
    """Answer the client until it closes the pipe, SIGTERM or Ctrl-C.

    Standard output belongs to the protocol; all that Engram says goes to standard error.

    Args:
        opener: Opens the memory; called again when the process that had it went away.
    """
    with needs_extra("mcp"):
        from engram.server.mcp_server import create_server  # noqa: PLC0415 - same
        from engram.server.mcp_tools import MemoryAccess  # noqa: PLC0415 - an optional part

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with MemoryAccess(opener) as access:
        # A session for each start: a client starts the program once per conversation or window.
        server = create_server(
            access,
            session_id=f"mcp-{new_id()}",
            local_time=local_time,
            local_zone=local_zone,
        )
        serving = asyncio.create_task(server.run_stdio_async())
        asked = asyncio.create_task(stop.wait())
        await asyncio.wait((serving, asked), return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
    if not serving.done():
        # Everything is closed; but the thread that reads standard input cannot be interrupted.
        os._exit(0)
    await serving
