"""Checks of the settings and models, and of the data folder."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from engram.agents.models import make_model
from engram.cli.doctor.installation import CheckContext, CheckResult, failed, ok, warning
from engram.cli.doctor.servers import RUNS, readable_runs
from engram.client.http import AttachedEngine
from engram.domain.memories import Episode
from engram.embedded.folder import (
    AUDIT,
    LOOPBACK,
    DataFolder,
    ServerRecord,
    read_record,
    require_free,
)
from engram.embedded.keys import folder_keys
from engram.embedding.choice import make_embedder
from engram.errors import EngramError, InvalidSettings, PortInUse, SchemaMismatch
from engram.server.listening import listening_at
from engram.settings import RULES, Settings
from engram.storage.payload import check_identity
from engram.storage.trail import AuditTrail
from engram.system import FileLock, new_secret, system_clock
from engram.temporal.connection import connect_client, key_store

# --- whether the settings can be used, and the models that they name

_TRAIL: Final = "audit trail"
_OTHERS_BITS: Final = stat.S_IRWXG | stat.S_IRWXO


def settings(around: CheckContext) -> CheckResult:
    """Every value can be used."""
    wrong = around.effective.problems
    if wrong:
        return failed(
            "settings",
            "; ".join(f"{variable}: {said}" for variable, said in wrong.items()),
            "`engram config NAME` says what is allowed",
        )
    given = sum(each.origin != "default" for each in around.effective.settings)
    return ok("settings", f"{given} set, the others at their defaults")


def variables(around: CheckContext) -> CheckResult:
    """No variable looks like a setting and is none."""
    unknown = around.effective.unknown
    if not unknown:
        return ok("variables", "every ENGRAM_ variable is a setting")
    return warning(
        "variables",
        f"set nothing: {', '.join(each.variable for each in unknown)}",
        "; ".join(
            f"did you mean {each.nearest} instead of {each.variable}?"
            for each in unknown
            if each.nearest
        )
        or "`engram config` lists the settings",
    )


def embedder(around: CheckContext) -> CheckResult:
    """The embedder that is set can be made here."""
    name = around.settings.embedder
    try:
        made = make_embedder(name)
    except EngramError as error:
        return failed("embedder", error.message, _what_to_do(error))
    return ok("embedder", made.identity)


def model(around: CheckContext) -> CheckResult:
    """The language model is known, its package installed and its key set; it is not asked."""
    name = around.settings.model
    if name == RULES:
        return ok("model", "rules (offline)")
    try:
        made = make_model(name)
    except EngramError as error:
        return failed("model", error.message, _what_to_do(error))
    return ok("model", f"{made.model_id}; --ask-model asks it something")


def learning(around: CheckContext) -> CheckResult:
    """What namespaces ask to learn is what the model that is set can follow."""
    asked = around.settings.learning_by_namespace
    if not asked:
        return ok("learning", "no namespace asks for anything of its own")
    if around.settings.model != RULES:
        versions = (f"{namespace} {each.version}" for namespace, each in asked.items())
        return ok("learning", ", ".join(versions))
    ignored = (f"{namespace}: {', '.join(each.parts)}" for namespace, each in asked.items())
    return warning(
        "learning",
        f"the language rules cannot follow {'; '.join(ignored)}",
        "set ENGRAM_MODEL to a language model",
    )


async def model_answers(around: CheckContext) -> CheckResult:
    """The model reads a made-up turn, as consolidation would have it read, and answers in form.

    Only with --ask-model, because it costs something.
    """
    if not around.ask_model:
        return ok("model answers", "not asked")
    if around.settings.model == RULES:
        return ok("model answers", "rules need not be asked")
    from engram.agents.extraction import ExtractionAgent  # noqa: PLC0415 - only what is used loads

    try:
        thinker = make_model(around.settings.model)
        await ExtractionAgent(thinker).extract([_A_TURN])
    except EngramError as error:
        return failed("model answers", error.message, _what_to_do(error))
    return ok("model answers", f"{thinker.model_id} answered in the asked form")


_LONG_AGO = datetime(2025, 1, 1, tzinfo=UTC)
_A_TURN = Episode(
    id="doctor",
    namespace="doctor",
    user_id="doctor",
    content="I live in Lisbon.",
    known_at=_LONG_AGO,
    created_at=_LONG_AGO,
    session_id="doctor",
    role="user",
    timestamp=_LONG_AGO,
    message_id="doctor",
    sequence=0,
)


def keys(around: CheckContext) -> CheckResult:
    """The file of API keys can be read, and by its owner only."""
    from engram.server.keys import KeyFile  # noqa: PLC0415 - an optional part

    path = around.settings.keys_path
    try:
        kept = KeyFile(path).read()
    except EngramError as error:
        return failed("keys", error.message, _what_to_do(error))
    if not path.exists():
        return ok("keys", "none; `engram keys create` makes one for the HTTP API")
    if path.stat().st_mode & _OTHERS_BITS:
        return warning("keys", f"{path} may be read by others", f"chmod 600 {path}")
    return ok("keys", f"{len(kept)} in {path}")


async def audit(around: CheckContext) -> CheckResult:
    """The audit trail is whole, from its first line to its last."""
    given = around.settings
    place = given.audit_folder or (None if around.connected else given.data_dir / AUDIT)
    if place is None or not given.audit_days:
        return ok(_TRAIL, "none is kept")
    if not (place / "trail.json").exists():
        return ok(_TRAIL, f"{place} will be begun")
    try:
        keys = key_store(given) if around.connected else folder_keys(given.data_dir, given)
        if keys is None:
            return failed(_TRAIL, "it has no keys", "set ENGRAM_ENCRYPTION_KEYS")
        trail = await AuditTrail.open(
            place, keys, clock=system_clock, new_secret=new_secret, days=given.audit_days
        )
        files, breaks = await asyncio.to_thread(trail.check)
    except EngramError as error:
        return failed(_TRAIL, error.message, _what_to_do(error))
    if not breaks:
        return ok(_TRAIL, f"{files} files in {place}, as they were written")
    first = breaks[0]
    return failed(
        _TRAIL,
        f"{len(breaks)} places are not as they were written, the first: {first.file}, line "
        f"{first.line}: {first.kind.value}",
        "find out who could write there; `engram audit` shows what is left",
    )


def _what_to_do(error: EngramError) -> str:
    said = [error.allowed and f"allowed: {error.allowed}", error.hint]
    return ". ".join(part.rstrip(".") for part in said if part) or "see the message"


# --- whether the data folder can be used, who uses it, and what is in it

_MEGABYTE: Final = 1024 * 1024
LITTLE_SPACE: Final = 1024 * _MEGABYTE
NO_SPACE: Final = 100 * _MEGABYTE
_ENGINE_SECONDS: Final = 3.0
_FOLDER: Final = "data folder"


def folder(around: CheckContext) -> CheckResult:
    """It is a folder of this user that nobody else may look into, or can be made."""
    path = around.settings.data_dir
    if not path.exists():
        parent = _nearest(path)
        if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
            return failed(_FOLDER, f"{path} cannot be made in {parent}", "set ENGRAM_DATA_DIR")
        return ok(_FOLDER, f"{path} will be made")
    if not path.is_dir():
        return failed(_FOLDER, f"{path} is a file", "set ENGRAM_DATA_DIR to a folder")
    return _rights(path)


def _rights(path: Path) -> CheckResult:
    found = path.stat()
    if found.st_uid != os.getuid():
        return failed(
            _FOLDER,
            f"{path} belongs to user {found.st_uid}, not to {os.getuid()}",
            "run Engram as that user, or set ENGRAM_DATA_DIR",
        )
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        if os.statvfs(path).f_flag & os.ST_RDONLY:
            found_so = f"{path} cannot be written to: its disk is mounted read-only"
            return failed(_FOLDER, found_so, "mount it writable, or copy the folder elsewhere")
        return failed(_FOLDER, f"{path} cannot be written to", f"chmod 700 {path}")
    if found.st_mode & _OTHERS_BITS:
        return warning(_FOLDER, f"other users may look into {path}", f"chmod 700 {path}")
    return ok(_FOLDER, str(path))


def space(around: CheckContext) -> CheckResult:
    """There is room on its disk."""
    free = shutil.disk_usage(_nearest(around.settings.data_dir)).free
    found = f"{free // _MEGABYTE:,} MB free"
    if free < NO_SPACE:
        return failed("disk", found, "make room: what cannot be written is not acknowledged")
    if free < LITTLE_SPACE:
        return warning("disk", found, "make room before it runs out")
    return ok("disk", found)


async def owner(around: CheckContext) -> CheckResult:
    """Nobody has the folder, or who has it answers."""
    data = existing(around)
    if data is None or not _locked(data.path / "lock"):
        return ok("owner", "nobody runs on the folder; the first command starts everything")
    record = data.owner()
    whom = f"process {record.pid}" if record else "a process"
    if record is not None:
        engine = AttachedEngine.over_socket(record.socket)
        # It closes itself where it gets no answer.
        if await engine.answers_within(_ENGINE_SECONDS):
            await engine.close()
            there, wanted = engine.collection_prefix, around.settings.collection_prefix
            if there != wanted:
                return failed(
                    "owner",
                    f"{whom} works on the folder's store {there!r}; the settings ask for "
                    f"{wanted!r}",
                    f"set ENGRAM_COLLECTION_PREFIX={there}, or use another data folder",
                )
            return ok("owner", f"{whom} runs on the folder and answers")
    return failed(
        "owner",
        f"{whom} holds the folder and does not answer",
        f"wait if it is starting or ending; else end {whom}",
    )


async def server(around: CheckContext) -> CheckResult:
    """Temporal's development server runs under an owner, or not at all."""
    data = existing(around)
    if data is None or not _locked(data.server_lock):
        if data is not None and not _is_database(data.temporal_db):
            return failed(
                "temporal server",
                f"{data.temporal_db} is damaged",
                "restore the whole folder from a backup; starting without one says what to do",
            )
        return ok("temporal server", "does not run")
    record = ServerRecord.read(data.server_record)
    whom = f"process {record.pid}" if record else "an unknown process"
    if not _locked(data.path / "lock"):
        return warning(
            "temporal server",
            f"left behind by an owner that died ({whom})",
            "the next command that opens the folder ends it; nothing to do",
        )
    if record is None or not await _listens(record.port):
        return failed(
            "temporal server",
            f"runs ({whom}) and does not answer",
            f"stop `engram up` and start it again; {data.server_log} says more",
        )
    return ok("temporal server", f"process {record.pid} answers at {LOOPBACK}:{record.port}")


async def runs(around: CheckContext) -> CheckResult:
    """The data keys of what runs under the owner are there, and its tasks do not fail."""
    data = existing(around)
    record = None if data is None else ServerRecord.read(data.server_record)
    if data is None or record is None or not _locked(data.server_lock):
        return ok(RUNS, "not looked at: nothing runs on the folder")
    given = around.settings
    try:
        async with asyncio.timeout(_ENGINE_SECONDS):
            keys = folder_keys(data.path, given)
            address = f"{LOOPBACK}:{record.port}"
            client = await connect_client(address, given.temporal_namespace, keys)
    except (EngramError, RuntimeError, TimeoutError) as error:
        return warning(RUNS, f"cannot be looked at: {error}", "see temporal server")
    if read_record(data.encryption_record) != {"keys": keys.id}:
        return warning(RUNS, "not looked at", "set the keys of the folder: ENGRAM_ENCRYPTION_KEYS")
    return await readable_runs(client)


_SQLITE: Final = b"SQLite format 3\0"


def _is_database(path: Path) -> bool:
    """Whether a file is one of SQLite's by its beginning, or is not there yet."""
    if not path.exists():
        return True
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


async def store(around: CheckContext) -> CheckResult:
    """What was stored is there, and was written by this schema version and with this embedder."""
    data = existing(around)
    if data is None:
        if around.settings.data_dir.is_dir():
            return warning("store", "not looked at", "mend the data folder first")
        return ok("store", "empty")
    try:
        with data.refusals_typed():
            return _store_in(around, data)
    except EngramError as error:
        return failed("store", error.message, _what_to_do(error))


def _store_in(around: CheckContext, data: DataFolder) -> CheckResult:
    prefix = around.settings.collection_prefix
    if data.has_lost_store(prefix):
        return failed("store", f"{data.store} is missing", "restore the folder from a backup")
    if not data.store_record(prefix).exists():
        return ok("store", "empty")
    if missing := _missing(data.store / f"{prefix}.points.json"):
        return failed(
            "store",
            f"{missing} memories are missing: files were damaged",
            "restore the folder from a backup; docs/operations.md says how to go on without them",
        )
    return _fitting(around, data.store_record(prefix))


def _fitting(around: CheckContext, record: Path) -> CheckResult:
    """Whether a store can be opened with these settings."""
    stored = read_record(record)
    size = stored.get("dimensions") if stored else None
    if stored is None or not isinstance(size, int):
        return failed("store", f"{record} cannot be read", "restore the folder from a backup")
    try:
        # The size is left aside: some models would have to be asked for it. The name tells.
        wanted = make_embedder(around.settings.embedder).identity
        check_identity(stored, embedder=wanted, dimensions=size)
    except SchemaMismatch as error:
        return failed("store", error.message, error.hint or "start a new store")
    except EngramError as error:
        return failed("store", error.message, "mend the embedder first")
    return ok("store", f"schema {stored['schema_version']}, {stored['embedder']}")


def _missing(noted: Path) -> int:
    """How many memories were found missing when the store was opened last."""
    found = (read_record(noted) or {}).get("missing")
    return sum(found.values()) if isinstance(found, dict) else 0


def ports(around: CheckContext) -> CheckResult:
    """The ports that are asked for are free, or taken by the process that runs on the folder."""
    given = around.settings
    asked = _asked_ports(given)
    if not asked and not given.http_enabled:
        return ok("ports", "free ones are chosen")
    data = existing(around)
    if data is not None and _locked(data.path / "lock"):
        return ok("ports", "taken by the process that runs on the folder")
    free = list(asked.values())
    try:
        for name, port in asked.items():
            require_free(port, name)
        if given.http_enabled:
            # Whatever `engram up` would say of it.
            with listening_at(given.http_host, given.http_port):
                free.append(given.http_port)
    except (PortInUse, InvalidSettings) as error:
        return failed("ports", error.message, error.hint or f"allowed: {error.allowed}")
    return ok("ports", f"free: {', '.join(map(str, free))}")


def existing(around: CheckContext) -> DataFolder | None:
    """The data folder if it is there and can be read; looking must not make it."""
    path = around.settings.data_dir
    return DataFolder(path) if path.is_dir() and os.access(path, os.R_OK | os.X_OK) else None


def _asked_ports(given: Settings) -> dict[str, int]:
    """The ports of Temporal's that are asked for; unset, a free one is chosen."""
    asked: dict[str, int | None] = {"ENGRAM_TEMPORAL_PORT": given.temporal_port}
    if given.temporal_ui:
        asked["ENGRAM_TEMPORAL_UI_PORT"] = given.temporal_ui_port
    return {name: port for name, port in asked.items() if port is not None}


def _locked(path: Path) -> bool:
    """Whether somebody holds this lock; a lock that is not there is not made."""
    # On a disk that is mounted read-only nobody owns anything.
    if not path.exists() or not os.access(path, os.R_OK | os.W_OK):
        return False
    probe = FileLock(path)
    if not probe.try_acquire():
        return True
    probe.release()
    return False


async def _listens(port: int) -> bool:
    try:
        async with asyncio.timeout(_ENGINE_SECONDS):
            _, writer = await asyncio.open_connection(LOOPBACK, port)
    except OSError:
        return False
    writer.close()
    return True


def _nearest(path: Path) -> Path:
    """The path, or the nearest above it that exists."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return path
