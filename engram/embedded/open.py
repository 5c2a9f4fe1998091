"""The embedded mode: everything in this process, or attached to the process that has it."""

from __future__ import annotations

import asyncio
import os
import stat
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.client.engine import MemoryEngine
from engram.client.http import AttachedEngine
from engram.client.memory import MemoryStore
from engram.domain.confidence import ConfidenceWeights
from engram.domain.scope import Scope
from engram.embedded.folder import DataFolder
from engram.errors import InvalidSettings, clock_refused, needs_extra
from engram.logging import configure_default_logging, get_logger
from engram.settings import Settings
from engram.system import absent, new_id, system_clock

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from engram.client.local import EmbedderSpec
    from engram.ports import Clock

_log = get_logger("engram.embedded")

# --- one process owns a data folder; whoever comes later attaches to it, or takes over

_POLL_SECONDS = 0.05
_SAY_SO_SECONDS = 1.0
# An owner that others keep busy is given longer with each attempt.
_ATTEMPT_SECONDS = 2.0


@asynccontextmanager
async def own_or_attach(
    folder: DataFolder, settings: Settings
) -> AsyncIterator[AttachedEngine | None]:
    """Become the owner of the folder (None), or attach to the one there is.

    An owner that is starting is waited for; one that ends while it is waited
    for leaves the folder to this process. The folder is released at the end.

    Raises:
        DataFolderInUse: the owner did not answer within ``settings.attach_timeout``.
        InvalidSettings: the owner works on a store of another name.
        DataFolderUnusable: the folder cannot be written to.
        StorageUnavailable: its disk has no room left.
    """
    while not folder.try_lock():
        engine = await _attached(folder, settings.attach_timeout.total_seconds())
        if engine is None:
            continue
        try:
            _check_store(folder, settings, engine)
            yield engine
        finally:
            await engine.close()
        return
    try:
        yield None
    finally:
        folder.release()


async def _attached(folder: DataFolder, patience: float) -> AttachedEngine | None:
    """Attached to the folder's owner, which may still be starting; None: it has none any more."""
    began = time.monotonic()
    said = False
    while (waited := time.monotonic() - began) < patience:
        owner = folder.owner()
        if owner is not None and _is_ours(owner.socket):
            engine = AttachedEngine.over_socket(owner.socket, patience)
            # Not all of it: whoever was forked off an owner that died keeps a socket open
            # on which nobody answers.
            at_once = max(_ATTEMPT_SECONDS, waited)
            if await engine.answers_within(min(at_once, patience - waited)):
                return engine
        if not folder.has_owner():
            return None
        if not said and waited > _SAY_SO_SECONDS:
            said = True
            _log.info(
                "waiting for the process that owns the data folder to answer",
                pid=owner.pid if owner else None,
                seconds_left=round(patience - waited),
            )
        await asyncio.sleep(_POLL_SECONDS)
    error = folder.in_use()
    error.details["waited_seconds"] = patience
    raise error


def _check_store(folder: DataFolder, settings: Settings, owner: AttachedEngine) -> None:
    """Whoever asks for one store must not read, or erase, another."""
    wanted, there = settings.collection_prefix, owner.collection_prefix
    if wanted == there:
        return
    raise InvalidSettings(
        f"The process that owns the data folder {folder.path} works on its store {there!r}, and "
        f"ENGRAM_COLLECTION_PREFIX asks for {wanted!r}.",
        allowed=f"{there}, as long as that process runs",
        hint="Use another data folder for the other store, or end that process first.",
        details={"path": str(folder.path), "owner": there, "asked": wanted},
    )


def _is_ours(path: Path) -> bool:
    """Whether a socket lies there that nobody else made."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISSOCK(found.st_mode) and found.st_uid == os.geteuid()


# --- the embedded mode: everything in this process, or attached to the process that has it


@dataclass(frozen=True)
class Running:
    """What an embedded Engram offers while it runs.

    Attributes:
        engine: For memory stores of any scope.
        folder: The data folder.
        ui_url: The Temporal UI, when this process knows of one.
        address: Temporal's address; None when attached to another process.
        attached: Whether another process owns the folder.
    """

    engine: MemoryEngine
    folder: Path
    ui_url: str | None
    address: str | None
    attached: bool


@asynccontextmanager
async def open(
    path: str | Path | None = None,
    *,
    user_id: str,
    namespace: str | None = None,
    settings: Settings | None = None,
    embedder: EmbedderSpec | None = None,
    model: str | Model | None = None,
    confidence_weights: ConfidenceWeights | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[MemoryStore]:
    """One user's memory in a folder of this machine; nothing else needs to run.

    The first process to open a folder starts Temporal's development server, a
    worker and the in-process store, and ends them when it leaves. A further
    process attaches to the first.

    Args:
        path: The folder; ``settings.data_dir`` (``~/.engram``) when absent.
        user_id: Whose memory. ``for_user`` gives that of others.
        namespace: Keeps applications apart; ``settings.namespace`` when absent.
        settings: Everything tunable; from the environment when absent.
        embedder: Overrides ``settings.embedder``.
        model: Overrides ``settings.model``.
        confidence_weights: Overrides those of the settings.
        clock: The present, for tests and replays of old conversations: what is said,
            asked and decided happens at its moments. Timers wait by the machine's time.

    An attached process uses the owner's embedder, model, weights and clock.

    Returns:
        A context manager that gives the user's :class:`engram.MemoryStore`.

    Raises:
        InvalidScope: the user id or namespace has a form that is refused.
        InvalidSettings: another process owns the folder, and a clock is given, or the process
            works on a store of another ``collection_prefix``.
        DataFolderInUse: another process owns the folder and does not answer.
        EmbeddedPartMissing: the extra ``embedded`` is not installed.
        SchemaMismatch: the folder belongs to another schema version or embedder.
    """
    active = _settings(settings, path, confidence_weights)
    scope = Scope.of(namespace or active.namespace, user_id)
    async with run(active, embedder=embedder, model=model, clock=clock) as running:
        store = MemoryStore(running.engine, scope, active, clock or system_clock, new_id)
        try:
            yield store
        finally:
            store.close()


@asynccontextmanager
async def run(
    settings: Settings,
    *,
    embedder: EmbedderSpec | None = None,
    model: str | Model | None = None,
    clock: Clock | None = None,
    own_process: bool = False,
) -> AsyncIterator[Running]:
    """Own the data folder of the settings, or attach to its owner.

    Args:
        settings: Which folder, and how.
        embedder: Overrides that of the settings.
        model: Overrides that of the settings.
        clock: The present, in place of the machine's.
        own_process: Whether nothing but Engram runs here: then what packages load for others
            is left out.

    Raises:
        InvalidSettings: another process owns the folder, and a clock is given, or the process
            works on a store of another ``collection_prefix``.
    """
    folder = DataFolder(settings.data_dir)
    async with AsyncExitStack() as stack:
        attached = await stack.enter_async_context(own_or_attach(folder, settings))
        if attached is not None:
            if clock is not None:
                raise clock_refused("Another process owns this folder")
            if any(part is not None for part in (embedder, model)):
                _log.warning("attached: the process that owns the folder decides about models")
            yield Running(attached, folder.path, attached.ui_url, None, attached=True)
            return
        # Loads every part; a process that attaches needs none of them. The server takes about as
        # long to start, in a process of its own.
        configure_default_logging()
        from engram.embedded.program import GuardedServer  # noqa: PLC0415 - see above

        # The server makes its database as soon as it is launched.
        plain_runs = folder.temporal_db.exists()
        with folder.refusals_typed():
            launched = await GuardedServer.launch(folder, settings)
        stack.push_async_callback(launched.stop)
        # Temporal's SDK speaks to its server without it, and offers it to whoever would not.
        with absent("grpc") if own_process else nullcontext(), needs_extra("embedded"):
            from engram.embedded.parts import start_parts  # noqa: PLC0415 - see above

        with folder.refusals_typed():
            parts = await start_parts(
                stack,
                folder,
                settings,
                launched,
                plain_runs=plain_runs,
                embedder=embedder,
                model=model,
                clock=clock,
            )
        yield Running(parts.engine, folder.path, parts.ui_url, parts.address, attached=False)


def _settings(
    settings: Settings | None,
    path: str | Path | None,
    confidence_weights: ConfidenceWeights | None,
) -> Settings:
    changes: dict[str, Any] = {}
    if path is not None:
        changes["data_dir"] = Path(path).expanduser()
    if confidence_weights is not None:
        changes["confidence_weights"] = confidence_weights
    return (settings or Settings.load()).model_copy(update=changes)
