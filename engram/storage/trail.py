"""The audit trail: who did what with whose memory, in files that nobody it is about can reach.

A folder holds, for each day, a chain (:mod:`engram.storage.chain`) for each process that wrote
at the same time, and a chain that lists them, so that a file that is taken away is noticed. A
user stands in it as a keyed hash. The name, and the key of the ids of the user's memories, lie
in a small file beside it, which goes when the user is erased. The decision is
docs/decisions/0025-audit-trail.md.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import os
from base64 import b64decode, b64encode
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Self

import structlog
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from engram.contracts.names import AUDIT_KEY_OWNER
from engram.domain.deeds import Actor, AuditEntry, AuditFilter, Door, Outcome
from engram.domain.scope import Scope
from engram.domain.turns import check_moment
from engram.errors import AuditUnwritable, EncryptionKeysUnusable, InvalidQuery, InvalidSettings
from engram.ports import Clock, DataKey, KeyStore
from engram.settings import Settings
from engram.storage.chain import BreakKind, ChainBreak, ChainWriter, read_chain
from engram.system import draft_of, file_locked, private, private_draft

MOST_IDS: Final = 1000
"""So many memories are named in one entry; all are counted."""
_NONCE_BYTES: Final = 12
_ID_BYTES: Final = 16
_MARK_BYTES: Final = 16
_MOST_KNOWN: Final = 10_000
_MOST_PROCESSES: Final = 1000
_SUFFIX: Final = ".jsonl"
_log = structlog.get_logger("engram.audit")

NewSecret = Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class TrailPage:
    """Entries, the newest first.

    Attributes:
        entries: That were asked for.
        breaks: Where what was read for them is not as it was written.
        cursor: Brings the next page; None at the end.
    """

    entries: tuple[AuditEntry, ...]
    breaks: tuple[ChainBreak, ...]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class _KnownUser:
    """What the file of a user holds, as it was when it was looked at last."""

    stamp: tuple[int, int]
    user_id: str
    cipher: AESGCM


class AuditTrail:
    """Writes and reads the trail of one folder. Made by :meth:`open`; of one event loop.

    Args:
        folder: Where it is.
        key: What everything in it is authenticated and encrypted with.
        trail_id: Tells it from every other that has the same key.
        clock: The present.
        new_secret: Gives 32 random bytes.
        days: Files are removed after so many.
        required: Whether what cannot be noted is not done.
    """

    def __init__(
        self,
        folder: Path,
        key: DataKey,
        trail_id: str,
        *,
        clock: Clock,
        new_secret: NewSecret,
        days: int,
        required: bool,
    ) -> None:
        self._folder = folder
        self._user_files = folder / "users"
        self._clock = clock
        self._new_secret = new_secret
        self._keep = timedelta(days=days)
        self._required = required
        self._chain_key, self._mark_key, names_key = (
            hmac.digest(key.secret, f"engram-audit/1\0{trail_id}\0{use}".encode(), "sha256")
            for use in ("chain", "mark", "names")
        )
        self._names = AESGCM(names_key)
        self._marks: OrderedDict[str, str] = OrderedDict()
        self._users: OrderedDict[str, _KnownUser] = OrderedDict()
        self._day: date | None = None
        self._writer: ChainWriter | None = None
        self._missed = 0

    @classmethod
    async def open(
        cls,
        folder: Path,
        keys: KeyStore,
        *,
        clock: Clock,
        new_secret: NewSecret,
        days: int,
        required: bool = False,
    ) -> Self:
        """Open the trail in a folder, made if there is none.

        Args:
            folder: For its user alone.
            keys: Hold the key of the trail, beside those of users.
            clock: The present.
            new_secret: Gives 32 random bytes.
            days: Files are removed after so many.
            required: Whether what cannot be noted is not done.

        Raises:
            AuditUnwritable: the folder cannot be made or read.
            EncryptionKeysUnusable: the key that the trail was begun with is not there.
        """
        key_id, trail_id = await _begun(folder, keys, new_secret)
        key = await keys.find(AUDIT_KEY_OWNER, key_id)
        if key is None:
            raise EncryptionKeysUnusable(
                f"The key of the audit trail in {folder} is not among the encryption keys.",
                allowed="the keys that it was begun with",
                hint="Restore them from a backup, or move the folder aside for a new trail.",
            )
        return cls(
            folder,
            key,
            trail_id,
            clock=clock,
            new_secret=new_secret,
            days=days,
            required=required,
        )

    # --- writing

    def record(
        self,
        entry_id: str,
        actor: Actor,
        action: str,
        scope: Scope,
        outcome: Outcome,
        *,
        step: str | None = None,
        memory_ids: Iterable[str] = (),
        touched: int | None = None,
        error: str | None = None,
        keep_name: bool = False,
    ) -> None:
        """Note one thing; it survives the death of the process.

        Args:
            entry_id: The same for the same thing.
            actor: Who did it.
            action: Name of the operation.
            scope: Whose memory.
            outcome: What became of it.
            step: Of a workflow: its activity.
            memory_ids: Which memories; what is no memory's id is left out.
            touched: How many there are in all; None: as many as there are ids.
            error: The code of the error, if it was not done.
            keep_name: Whether the user's name may be kept from now on, if it is not.

        Raises:
            AuditUnwritable: the trail is required, and cannot be written to.
        """
        # What somebody gave as an id may be anything; nothing of it shall stand here.
        ids = list(filter(None, map(_id_bytes, dict.fromkeys(memory_ids))))
        mark = self._mark(scope)
        body: dict[str, Any] = {"id": entry_id, "at": self._clock().astimezone(UTC).isoformat()}
        body |= {"action": action, "namespace": scope.namespace, "user": mark}
        body |= {"outcome": outcome.value, **actor.model_dump(mode="json", exclude_none=True)}
        body |= {"step": step} if step else {}
        body |= {"error": error} if error else {}
        if total := len(ids) if touched is None else touched:
            body["touched"] = total
        try:
            user = self._user(mark, scope, make=keep_name)
            if ids and user is not None:
                body["ids"] = self._sealed(user.cipher, entry_id, ids)
            if self._missed:
                body["missed"] = self._missed
            self._writer_of_today().append(body)
        except OSError as failure:
            self._miss(failure)
            return
        if self._missed:
            _log.warning("the audit trail can be written to again", missed=self._missed)
            self._missed = 0

    def _miss(self, failure: OSError) -> None:
        self._missed += 1
        if self._missed == 1:
            _log.error("the audit trail cannot be written to", reason=failure.strerror)
        if self._required:
            raise AuditUnwritable(
                f"The audit trail is required and cannot be written to ({failure.strerror}).",
                allowed="a folder with room on its disk",
                hint="Make room, or set ENGRAM_AUDIT_REQUIRED=false to go on without.",
            ) from failure

    def forget_user(self, scope: Scope) -> None:
        """Throw away a user's name and the key of what was touched: a mark and numbers stay.

        May be repeated.

        Raises:
            AuditUnwritable: the file cannot be removed.
        """
        mark = self._mark(scope)
        self._marks.pop(scope.tenant, None)
        self._users.pop(mark, None)
        try:
            with file_locked(self._lock):
                # What a process that was killed left of it names the user, too.
                _shred(draft_of(self._user_file(mark)))
                _shred(self._user_file(mark))
        except OSError as error:
            raise AuditUnwritable(
                f"A user's name cannot be removed from the audit trail ({error.strerror}).",
                allowed="a folder that this user can write to",
            ) from error

    def flushing(self) -> int | None:
        """A descriptor to flush in a thread, and to close; None if nothing is open.

        What was taken out of the folder is not written to any longer: another file is begun.
        """
        if self._writer is None:
            return None
        if not self._writer.in_place:
            _log.error("a file of the audit trail was removed while it was written")
            self._let_go()
            return None
        return self._writer.duplicate()

    def prune(self) -> int:
        """Remove the files of days that are over for longer than the trail is kept.

        Returns:
            How many they were.

        Raises:
            OSError: one of them cannot be removed.
        """
        last = (self._clock().astimezone(UTC) - self._keep).date()
        with file_locked(self._lock):
            old = [path for path in self._files() if _day_of(path) < last]
            for path in old:
                # First: what is gone without a word was taken away.
                self._list({"pruned": path.name})
                path.unlink()
        return len(old)

    def close(self) -> None:
        """Let another process go on where this one ends."""
        self._let_go()

    def _let_go(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._writer = self._day = None

    def _writer_of_today(self) -> ChainWriter:
        today = self._clock().astimezone(UTC).date()
        if self._writer is None or self._day != today:
            self._let_go()
            self._writer, self._day = self._begin(today), today
        return self._writer

    def _begin(self, day: date) -> ChainWriter:
        """The first file of the day that nobody else writes to and whose end is whole."""
        with file_locked(self._lock):
            listed, _ = self._listed([])
            for number in range(1, _MOST_PROCESSES + 1):
                path = self._folder / f"{day}.{number}{_SUFFIX}"
                if path.name in listed and not path.exists():
                    # It was taken away, which reading shall say.
                    continue
                writer = ChainWriter(path, self._chain_key)
                if writer.try_open():
                    if path.name not in listed:
                        self._list({"file": path.name})
                    return writer
        raise OSError(24, "too many processes write to the audit trail")

    def _list(self, line: dict[str, str]) -> None:
        """Note in the list of files; whoever calls has the lock."""
        index = ChainWriter(self._index, self._chain_key)
        if not index.try_open():
            # Reading says so, too; what happens shall be noted all the same.
            _log.error("the list of the audit trail's files is damaged")
            return
        try:
            index.append(line)
        finally:
            index.close()

    def _listed(self, breaks: list[ChainBreak]) -> tuple[set[str], set[str]]:
        """The files that were begun, and those of them that were pruned."""
        found: dict[str, set[str]] = {"file": set(), "pruned": set()}
        if self._index.exists():
            for line in read_chain(self._index, self._chain_key, breaks):
                for what, name in line.body.items():
                    if what in found and isinstance(name, str):
                        found[what].add(name)
        return found["file"], found["pruned"]

    # --- reading

    def read(self, wanted: AuditFilter, *, limit: int, cursor: str | None = None) -> TrailPage:
        """Entries, the newest first; reads files, for a thread.

        What is read is checked, and so is whether every file is there.

        Args:
            wanted: Which entries.
            limit: As many at most.
            cursor: Of the page before.

        Raises:
            InvalidQuery: the cursor is none.
            OSError: the folder cannot be read.
        """
        before = None if cursor is None else _place_of(cursor)
        breaks: list[ChainBreak] = []
        self._check_list(breaks)
        mark = None if wanted.scope is None else self._mark(wanted.scope)
        found: list[AuditEntry] = []
        later: dict[str, AuditEntry] = {}
        for files in (*self._days(wanted, before), ()):
            entries = self._folded(files, mark, breaks)
            for known in [later.pop(one) for one in entries.keys() & later.keys()]:
                # It began before midnight and ended behind it.
                entries[known.id] = _folded_into_one(entries[known.id], known)
            found += sorted(
                (
                    entry
                    for entry in later.values()
                    if wanted.passes(entry) and (before is None or _place(entry) < before)
                ),
                key=_place,
                reverse=True,
            )
            if len(found) > limit:
                break
            later = entries
        more = len(found) > limit
        return TrailPage(
            entries=tuple(found[:limit]),
            breaks=tuple(breaks),
            cursor=_cursor(found[limit - 1]) if more else None,
        )

    def check(self) -> tuple[int, tuple[ChainBreak, ...]]:
        """Check everything; reads files, for a thread.

        Returns:
            How many files there are, and where they are not as they were written.

        Raises:
            OSError: the folder cannot be read.
        """
        breaks: list[ChainBreak] = []
        self._check_list(breaks)
        files = self._files()
        for path in files:
            for line in read_chain(path, self._chain_key, breaks):
                _note_missed(path, line.number, line.body, breaks)
        return len(files), tuple(breaks)

    def _check_list(self, breaks: list[ChainBreak]) -> None:
        listed, pruned = self._listed(breaks)
        there = {path.name for path in self._files()}
        if there and not self._index.exists():
            breaks.append(ChainBreak(self._index.name, 0, BreakKind.MISSING))
        breaks += (
            ChainBreak(name, 0, BreakKind.MISSING) for name in sorted(listed - pruned - there)
        )

    def _days(
        self, wanted: AuditFilter, before: tuple[datetime, str] | None
    ) -> Iterator[Sequence[Path]]:
        """The files of each day that can hold what is asked for, the last day first."""
        one = timedelta(days=1)
        # A day more at both ends: what begins before midnight can end behind it.
        first = date.min if wanted.since is None else wanted.since.astimezone(UTC).date() - one
        ends = [moment for moment in (wanted.until, before and before[0]) if moment is not None]
        last = min((end.astimezone(UTC).date() + one for end in ends), default=date.max)
        days: dict[date, list[Path]] = {}
        for path in self._files():
            if first <= _day_of(path) <= last:
                days.setdefault(_day_of(path), []).append(path)
        for _, files in sorted(days.items(), reverse=True):
            yield files

    def _folded(
        self, files: Sequence[Path], mark: str | None, breaks: list[ChainBreak]
    ) -> dict[str, AuditEntry]:
        """One entry for each thing: what was told twice, or first begun and then done, is one."""
        users: dict[str, _KnownUser | None] = {}
        entries: dict[str, AuditEntry] = {}
        for path in files:
            for line in read_chain(path, self._chain_key, breaks):
                _note_missed(path, line.number, line.body, breaks)
                if mark not in (None, line.body.get("user")):
                    continue
                entry = self._entry(line.body, line.intact, users)
                if entry is None:
                    continue
                known = entries.get(entry.id)
                entries[entry.id] = entry if known is None else _folded_into_one(known, entry)
        return entries

    def _entry(
        self, body: dict[str, Any], intact: bool, users: dict[str, _KnownUser | None]
    ) -> AuditEntry | None:
        mark = str(body.get("user"))
        if mark not in users:
            users[mark] = self._read_user(mark)
        user = users[mark]
        sealed = body.get("ids")
        ids = self._opened(user.cipher, str(body.get("id")), sealed) if user and sealed else ()
        try:
            return AuditEntry.model_validate(
                {
                    **body,
                    "actor": body,
                    "user_mark": mark,
                    "user_id": user and user.user_id,
                    "memory_ids": ids,
                    "intact": intact,
                }
            )
        except ValueError:
            # Not what was written: the chain says so.
            return None

    # --- users

    def _mark(self, scope: Scope) -> str:
        tenant = scope.tenant
        if tenant not in self._marks:
            digest = hmac.digest(self._mark_key, tenant.encode(), "sha256")
            self._marks[tenant] = digest[:_MARK_BYTES].hex()
            while len(self._marks) > _MOST_KNOWN:
                self._marks.popitem(last=False)
        return self._marks[tenant]

    def _user_file(self, mark: str) -> Path:
        return self._user_files / mark

    def _user(self, mark: str, scope: Scope, *, make: bool) -> _KnownUser | None:
        try:
            # Each time: another process may have erased the user.
            found = os.stat(f"{self._user_files}/{mark}")  # noqa: PTH116 - a fifth of the cost, with every entry
        except FileNotFoundError:
            self._users.pop(mark, None)
            if not make:
                return None
            self._make_user(self._user_file(mark), mark, scope)
            return self._remembered(mark)
        known = self._users.get(mark)
        if known is not None and known.stamp == (found.st_ino, found.st_mtime_ns):
            return known
        return self._remembered(mark)

    def _remembered(self, mark: str) -> _KnownUser | None:
        known = self._read_user(mark)
        if known is not None:
            self._users[mark] = known
            while len(self._users) > _MOST_KNOWN:
                self._users.popitem(last=False)
        return known

    def _make_user(self, path: Path, mark: str, scope: Scope) -> None:
        said = {"user_id": scope.user_id, "key": self._new_secret().hex()}
        nonce = self._new_secret()[:_NONCE_BYTES]
        sealed = self._names.encrypt(nonce, json.dumps(said).encode(), mark.encode())
        with file_locked(self._lock):
            # Of two processes that make it, one does.
            if not path.exists():
                with private_draft(path) as draft:
                    draft.buffer.write(nonce + sealed)

    def _read_user(self, mark: str) -> _KnownUser | None:
        path = self._user_file(mark)
        try:
            with open(path, "rb", opener=private) as file:
                found, sealed = os.fstat(file.fileno()), file.read()
            said = json.loads(
                self._names.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], mark.encode())
            )
            cipher = AESGCM(bytes.fromhex(said["key"]))
            return _KnownUser((found.st_ino, found.st_mtime_ns), str(said["user_id"]), cipher)
        except FileNotFoundError:
            return None
        except (InvalidTag, ValueError, KeyError, TypeError):
            _log.warning("a user's name in the audit trail cannot be read", user=mark)
            return None

    def _sealed(self, cipher: AESGCM, entry_id: str, ids: Sequence[bytes]) -> str:
        """The ids, so that they go with the user: an id of a conclusion follows from its words."""
        raw = b"".join(ids[:MOST_IDS])
        nonce = self._new_secret()[:_NONCE_BYTES]
        return b64encode(nonce + cipher.encrypt(nonce, raw, entry_id.encode())).decode()

    def _opened(self, cipher: AESGCM, entry_id: str, sealed: object) -> tuple[str, ...]:
        try:
            whole = b64decode(str(sealed))
            raw = cipher.decrypt(whole[:_NONCE_BYTES], whole[_NONCE_BYTES:], entry_id.encode())
        except (InvalidTag, ValueError):
            # Of an earlier life of this user, which was erased.
            return ()
        return tuple(_id_text(raw[at : at + _ID_BYTES]) for at in range(0, len(raw), _ID_BYTES))

    # --- files

    @property
    def _index(self) -> Path:
        return self._folder / "files.jsonl"

    @property
    def _lock(self) -> Path:
        return self._folder / "lock"

    def _files(self) -> list[Path]:
        """The chains of days, the oldest first."""
        found = self._folder.glob(f"[0-9]*{_SUFFIX}")
        return sorted(path for path in found if _is_day(path.name))


async def _begun(folder: Path, keys: KeyStore, new_secret: NewSecret) -> tuple[str, str]:
    """The ids of a trail's key and of the trail itself; of two that begin it, one does."""
    about = folder / "trail.json"
    try:
        found = await asyncio.to_thread(_read_about, about)
        if found is None:
            current = await keys.current(AUDIT_KEY_OWNER)
            made = {"key": current.id, "id": new_secret()[:_MARK_BYTES].hex()}
            found = await asyncio.to_thread(_make_about, about, made)
        return str(found["key"]), str(found["id"])
    except OSError as error:
        raise AuditUnwritable(
            f"The audit trail in {folder} cannot be opened ({error.strerror}).",
            allowed="a folder that this user can write to",
            hint="ENGRAM_AUDIT_FOLDER names another one; ENGRAM_AUDIT_DAYS=0 keeps no trail.",
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise AuditUnwritable(
            f"The file {about} is damaged.", hint="Restore it from a backup."
        ) from error


def _read_about(path: Path) -> Any:
    return json.loads(path.read_text("utf-8")) if path.exists() else None


def _make_about(path: Path, made: dict[str, str]) -> Any:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    (path.parent / "users").mkdir(mode=0o700, exist_ok=True)
    with file_locked(path.parent / "lock"):
        if not path.exists():
            with private_draft(path, durable=True) as draft:
                json.dump(made, draft)
    return _read_about(path)


def _folded_into_one(known: AuditEntry, entry: AuditEntry) -> AuditEntry:
    kept = known if entry.outcome is Outcome.BEGUN else entry
    intact = known.intact and entry.intact
    return kept.model_copy(update={"at": min(known.at, entry.at), "intact": intact})


def _note_missed(path: Path, number: int, body: dict[str, Any], breaks: list[ChainBreak]) -> None:
    if body.get("missed"):
        breaks.append(ChainBreak(path.name, number, BreakKind.MISSED))


def _is_day(name: str) -> bool:
    try:
        date.fromisoformat(name.partition(".")[0])
    except ValueError:
        return False
    return True


def _day_of(path: Path) -> date:
    return date.fromisoformat(path.name.partition(".")[0])


def _place(entry: AuditEntry) -> tuple[datetime, str]:
    return entry.at, entry.id


def _cursor(entry: AuditEntry) -> str:
    return f"{entry.at.isoformat()}|{entry.id}"


def _place_of(cursor: str) -> tuple[datetime, str]:
    moment, _, entry_id = cursor.partition("|")
    try:
        at = datetime.fromisoformat(moment)
        check_moment(at)
    except (ValueError, InvalidQuery):
        raise InvalidQuery(
            "This is no cursor.", allowed="the cursor of the page before, or none"
        ) from None
    return at, entry_id


def _id_bytes(memory_id: str) -> bytes | None:
    try:
        raw = bytes.fromhex(memory_id.replace("-", ""))
    except ValueError:
        return None
    return raw if len(raw) == _ID_BYTES else None


def _id_text(raw: bytes) -> str:
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _shred(path: Path) -> None:
    """Remove a file, and leave nothing in its blocks where the file system writes in place."""
    with suppress(FileNotFoundError), open(path, "r+b", opener=private) as file:
        file.write(b"\0" * os.fstat(file.fileno()).st_size)
        file.flush()
        os.fsync(file.fileno())
        path.unlink()


# --- the trail of a process, as its settings want it


@asynccontextmanager
async def keeping_trail(
    folder: Path | None,
    keys: KeyStore | None,
    settings: Settings,
    clock: Clock,
    new_secret: NewSecret,
) -> AsyncIterator[AuditTrail | None]:
    """Keep a trail while the block runs: flush it, and remove what is too old.

    Args:
        folder: Where it is; None: none is kept.
        keys: Hold its key.
        settings: How long it is kept, and whether it must be.
        clock: The present.
        new_secret: Gives 32 random bytes.

    Yields:
        The trail; None where the settings want none.

    Raises:
        InvalidSettings: there are no keys for it.
        AuditUnwritable: the folder cannot be used.
        EncryptionKeysUnusable: its key is not there.
    """
    if folder is None or settings.audit_days == 0:
        if settings.audit_required:
            raise InvalidSettings(
                "An audit trail is required, and none is kept.",
                allowed="ENGRAM_AUDIT_DAYS of 1 or more, and in the connected mode "
                "ENGRAM_AUDIT_FOLDER",
            )
        yield None
        return
    if keys is None:
        raise InvalidSettings(
            "An audit trail needs encryption keys: its lines are authenticated.",
            allowed="ENGRAM_ENCRYPTION_KEYS beside ENGRAM_AUDIT_FOLDER",
            hint="`engram encryption init` makes them.",
        )
    trail = await AuditTrail.open(
        folder,
        keys,
        clock=clock,
        new_secret=new_secret,
        days=settings.audit_days,
        required=settings.audit_required,
    )
    keeping = asyncio.create_task(_keep(trail, clock, settings.flush_interval.total_seconds()))
    try:
        yield trail
    finally:
        keeping.cancel()
        with suppress(asyncio.CancelledError):
            await keeping
        trail.close()


async def _keep(trail: AuditTrail, clock: Clock, interval: float) -> None:
    pruned: date | None = None
    while True:
        try:
            today = clock().astimezone(UTC).date()
            if pruned != today:
                await asyncio.to_thread(trail.prune)
                pruned = today
            if (descriptor := trail.flushing()) is not None:
                try:
                    await asyncio.to_thread(os.fsync, descriptor)
                finally:
                    os.close(descriptor)
        except OSError as error:
            # What is lost is counted where it is written; here only lasting is at stake.
            _log.error("the audit trail cannot be kept in order", reason=error.strerror)
        await asyncio.sleep(interval)


def workflow_actor(workflow_id: str | None, run_id: str | None) -> Actor:
    """Who a run is: its kind, for its whole id names the user."""
    kind = (workflow_id or "").partition("/")[0].rpartition(":")[2]
    return Actor(door=Door.WORKFLOW, workflow=kind or None, run_id=run_id)
