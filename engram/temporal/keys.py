"""The keys that Temporal payloads are encrypted with: a folder that all processes share.

One file holds the data keys of one owner, each wrapped by a master key. A reader sees a
file as it was or as it is, nothing between; writers take turns by a lock. The decision is
docs/decisions/0020-encryption.md.
"""

from __future__ import annotations

import asyncio
import binascii
import json
import os
import time
from base64 import b64decode, b64encode
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeVar

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from engram.errors import EncryptionKeysUnusable, InvalidSettings
from engram.ports import DataKey
from engram.system import draft_of, file_locked, private_draft, sync_folder

NONCE_BYTES: Final = 12
_KEY_BYTES: Final = 32
_ABOUT: Final = "store.json"
_CIPHER_KEY_ID_DIGITS: Final = 16
# What another process shredded is forgotten here after so long.
_FRESH_SECONDS: Final = 2.0
_MOST_KNOWN: Final = 10_000

FileStamp = tuple[int, ...] | None
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class KeysStatus:
    """How a key store stands, without any key.

    Attributes:
        folder: Where it is.
        since: Since when everything is encrypted; None where nothing ever was not.
        master: Names the master key that new data keys are wrapped by.
        owners: Users and others that have keys.
        keys: Data keys in all.
        old: Data keys that are still wrapped by an earlier master key.
    """

    folder: Path
    since: datetime | None
    master: str
    owners: int
    keys: int
    old: int


@dataclass(slots=True)
class _KnownKeys:
    """The keys of one owner, as they were when the file was looked at last."""

    stamp: FileStamp
    looked: float
    current: str | None
    keys: dict[str, DataKey]


class FolderKeyStore:
    """:class:`engram.ports.KeyStore` in a folder.

    Args:
        folder: Made by :meth:`create`.
        new_secret: Gives 32 random bytes.
        master: The master key in base64, and after commas those before it; None where the
            folder holds it.

    Raises:
        EncryptionKeysUnusable: there is no such store, or its master key is missing.
        InvalidSettings: the master key is none.
    """

    def __init__(
        self, folder: Path, *, new_secret: Callable[[], bytes], master: str | None = None
    ) -> None:
        self._folder = folder
        self._new_secret = new_secret
        self._given = _given_masters(master)
        self._known: OrderedDict[str, _KnownKeys] = OrderedDict()
        self._epoch = 0
        about = self._read(self._about)
        if about is None:
            raise EncryptionKeysUnusable(
                f"There are no encryption keys in {folder}.",
                hint="Is the folder mounted? `engram encryption init` makes keys where there "
                "never were any.",
            )
        try:
            self._id = str(about["id"])
            since = about["since"]
            self._since = None if since is None else datetime.fromisoformat(since)
        except (KeyError, TypeError, ValueError) as error:
            raise _damaged(self._about) from error
        self._masters: dict[str, bytes] = {}
        self._load_masters()

    @classmethod
    def create(
        cls,
        folder: Path,
        *,
        new_secret: Callable[[], bytes],
        since: datetime | None,
        master: str | None = None,
    ) -> FolderKeyStore:
        """Open the store in a folder, made if there is none; of two that make it, one does.

        Args:
            folder: Created, for its user alone.
            new_secret: Gives 32 random bytes.
            since: The present where runs that are not encrypted may go on; None where there
                are none.
            master: See the class.

        Raises:
            EncryptionKeysUnusable: the folder cannot be written to, or a part of it is missing.
            InvalidSettings: the master key is none.
        """
        _given_masters(master)
        about = folder / _ABOUT
        with _failing_typed(folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            (folder / "owners").mkdir(mode=0o700, exist_ok=True)
            if not about.exists():
                with file_locked(folder / "lock"):
                    _begin(folder, about, new_secret, since, master)
        return cls(folder, new_secret=new_secret, master=master)

    @staticmethod
    def is_in(folder: Path) -> bool:
        """Whether a store was made there."""
        return (folder / _ABOUT).exists()

    @property
    def folder(self) -> Path:
        """Where it is."""
        return self._folder

    @property
    def id(self) -> str:
        """Tells this store from every other."""
        return self._id

    @property
    def since(self) -> datetime | None:
        """See :attr:`engram.ports.KeyStore.since`."""
        return self._since

    async def current(self, owner: str) -> DataKey:
        """See :meth:`engram.ports.KeyStore.current`."""
        known = await self._look_up(owner)
        if known.current is None:
            await self._working(self._mint, owner)
            known = await self._look_up(owner, anew=True)
        if known.current is None:
            # Retired in this very moment: the next one is made.
            return await self.current(owner)
        return known.keys[known.current]

    async def find(self, owner: str, key_id: str) -> DataKey | None:
        """See :meth:`engram.ports.KeyStore.find`."""
        known = await self._look_up(owner)
        if key_id not in known.keys:
            # Another process may have made it a moment ago.
            known = await self._look_up(owner, anew=True)
        return known.keys.get(key_id)

    async def retire(self, owner: str) -> None:
        """See :meth:`engram.ports.KeyStore.retire`."""
        await self._working(self._retire, owner)

    async def shred(self, owner: str) -> int:
        """See :meth:`engram.ports.KeyStore.shred`."""
        return await self._working(self._shred, owner)

    async def status(self) -> KeysStatus:
        """How the store stands."""
        return await self._working(lambda _: self._status(), "")

    async def rotate(self, *, data_keys: bool = False) -> KeysStatus:
        """Wrap every data key by a new master key, or by the first of those that were given.

        May be called again after a crash, and while others work.

        Args:
            data_keys: Encrypt with new data keys from now on, too.

        Raises:
            EncryptionKeysUnusable: the folder cannot be written to.
        """
        return await self._working(lambda _: self._rotate(data_keys=data_keys), "")

    async def keep_master(self) -> KeysStatus:
        """Keep the master keys that were given in the folder: it opens without them from then on.

        Raises:
            InvalidSettings: none was given.
            EncryptionKeysUnusable: the folder cannot be written to.
        """
        return await self._working(lambda _: self._keep_master(), "")

    # --- what happens in a thread, because it reads and writes files

    async def _look_up(self, owner: str, *, anew: bool = False) -> _KnownKeys:
        known = self._known.get(owner)
        if known is not None and not anew and time.monotonic() - known.looked < _FRESH_SECONDS:
            return known
        return await self._working(self._look, owner)

    async def _working(self, work: Callable[[str], Result], owner: str) -> Result:
        def working() -> Result:
            with _failing_typed(self._folder):
                return work(owner)

        return await asyncio.to_thread(working)

    def _look(self, owner: str) -> _KnownKeys:
        path = self._file_of(owner)
        epoch, known, stamp = self._epoch, self._known.get(owner), _stamp(path)
        if known is None or known.stamp != stamp:
            current, wrapped = self._owned(path)
            keys = {
                key_id: DataKey(key_id, self._unwrapped(path, key_id, one))
                for key_id, one in wrapped.items()
            }
            known = _KnownKeys(stamp, 0.0, current, keys)
        if epoch != self._epoch:
            # Something was retired or shredded meanwhile: this may be from before.
            return self._look(owner)
        known.looked = time.monotonic()
        # Others look up, and forget, in threads of their own.
        self._known.pop(owner, None)
        self._known[owner] = known
        while len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)
        return known

    def _mint(self, owner: str) -> None:
        path = self._file_of(owner)
        with file_locked(self._lock):
            current, wrapped = self._owned(path)
            if current is not None:
                return
            self._load_masters()
            key_id = self._new_secret()[: _CIPHER_KEY_ID_DIGITS // 2].hex()
            wrapped[key_id] = self._wrapped(path, key_id, self._new_secret())
            self._write_owned(path, key_id, wrapped)

    def _retire(self, owner: str) -> None:
        path = self._file_of(owner)
        with file_locked(self._lock):
            current, wrapped = self._owned(path)
            if current is not None:
                self._write_owned(path, None, wrapped)
        self._forget(owner)

    def _shred(self, owner: str) -> int:
        path = self._file_of(owner)
        with file_locked(self._lock):
            current, wrapped = self._owned(path)
            gone = [key_id for key_id in wrapped if key_id != current]
            # What a writer left that was killed holds them, too.
            if (draft := draft_of(path)).exists():
                with _overwritten(draft):
                    draft.unlink()
            if gone:
                with _overwritten(path):
                    kept = {} if current is None else {current: wrapped[current]}
                    self._write_owned(path, current, kept)
        self._forget(owner)
        return len(gone)

    def _forget(self, owner: str) -> None:
        self._epoch += 1
        self._known.pop(owner, None)

    def _status(self) -> KeysStatus:
        files = [self._owned(path) for path in self._owner_files()]
        keys = [one for _, wrapped in files for one in wrapped.values()]
        return KeysStatus(
            folder=self._folder,
            since=self._since,
            master=self._master,
            owners=len(files),
            keys=len(keys),
            old=sum(one["master"] != self._master for one in keys),
        )

    def _rotate(self, *, data_keys: bool) -> KeysStatus:
        with file_locked(self._lock):
            self._load_masters()
            if not self._given and len(self._masters) == 1:
                # Both, until no data key needs the old one. What a crash left of that goes on.
                old = self._masters[self._master]
                _replace(self._master_path, _master_file([self._new_secret(), old]))
                self._load_masters()
        for path in self._owner_files():
            with file_locked(self._lock):
                self._rewrap(path, drop_current=data_keys)
        with file_locked(self._lock):
            status = self._status()
            if not status.old:
                if self._given:
                    self._master_path.unlink(missing_ok=True)
                else:
                    _replace(self._master_path, _master_file([self._masters[self._master]]))
                self._load_masters()
        self._epoch += 1
        self._known.clear()
        return status

    def _keep_master(self) -> KeysStatus:
        if not self._given:
            raise InvalidSettings(
                f"No master key is set that {self._folder} could keep.",
                hint="Without ENGRAM_ENCRYPTION_MASTER_KEY the folder holds it already.",
            )
        with file_locked(self._lock):
            # Whoever has them and whoever reads them here wraps by the same one: the setting may
            # go from one process after the other.
            self._load_masters()
            status, (current, *earlier) = self._status(), self._masters.values()
            _replace(self._master_path, _master_file([current, *(earlier if status.old else ())]))
        return status

    def _rewrap(self, path: Path, *, drop_current: bool) -> None:
        current, wrapped = self._owned(path)
        due = [one for one, key in wrapped.items() if key["master"] != self._master]
        for key_id in due:
            secret = self._unwrapped(path, key_id, wrapped[key_id])
            wrapped[key_id] = self._wrapped(path, key_id, secret)
        if due or (drop_current and current is not None):
            self._write_owned(path, None if drop_current else current, wrapped)

    # --- files

    @property
    def _lock(self) -> Path:
        return self._folder / "lock"

    @property
    def _about(self) -> Path:
        return self._folder / _ABOUT

    @property
    def _master_path(self) -> Path:
        return self._folder / "master.key"

    def _file_of(self, owner: str) -> Path:
        # A digest: user ids differ in case, which not every file system does, and the
        # folder's listing names nobody.
        return self._folder / "owners" / f"{sha256(owner.encode()).hexdigest()}.json"

    def _owner_files(self) -> list[Path]:
        return sorted((self._folder / "owners").glob("*.json"))

    def _owned(self, path: Path) -> tuple[str | None, dict[str, dict[str, str]]]:
        found = self._read(path) or {"current": None, "keys": {}}
        try:
            keys = {str(one): dict(key) for one, key in found["keys"].items()}
            current = found["current"]
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise _damaged(path) from error
        return current, keys

    def _write_owned(self, path: Path, current: str | None, keys: dict[str, Any]) -> None:
        if keys:
            _replace(path, json.dumps({"current": current, "keys": keys}))
        else:
            path.unlink(missing_ok=True)
            sync_folder(path.parent)

    def _read(self, path: Path) -> dict[str, Any] | None:
        with _failing_typed(self._folder):
            try:
                found = json.loads(path.read_text(encoding="utf-8"))
            except FileNotFoundError:
                return None
            except ValueError as error:
                raise _damaged(path) from error
        if not isinstance(found, dict):
            raise _damaged(path)
        return found

    # --- wrapping

    @property
    def _master(self) -> str:
        return next(iter(self._masters))

    def _load_masters(self) -> None:
        """The current one comes first: the one that was given, or the file's first."""
        kept = self._read(self._master_path)
        try:
            listed = [] if kept is None else [_key_of(one) for one in kept["keys"]]
        except (KeyError, TypeError, ValueError) as error:
            raise _damaged(self._master_path) from error
        masters = {_fingerprint(one): one for one in (*self._given, *listed)}
        if not masters:
            raise EncryptionKeysUnusable(
                f"The master key of {self._folder} is missing.",
                allowed="the file master.key in it, or ENGRAM_ENCRYPTION_MASTER_KEY",
                hint="Without it nothing that was encrypted can be read; docs/encryption.md "
                "says what is lost then, and what is not.",
            )
        self._masters = masters

    def _wrapped(self, path: Path, key_id: str, secret: bytes) -> dict[str, str]:
        nonce = self._new_secret()[:NONCE_BYTES]
        about = _wrapping(path, key_id)
        sealed = AESGCM(self._masters[self._master]).encrypt(nonce, secret, about)
        return {"master": self._master, "wrapped": b64encode(nonce + sealed).decode()}

    def _unwrapped(self, path: Path, key_id: str, key: dict[str, str]) -> bytes:
        if key.get("master") not in self._masters:
            # It may have been rotated meanwhile.
            self._load_masters()
        try:
            master, sealed = self._masters[key["master"]], b64decode(key["wrapped"])
            nonce, rest = sealed[:NONCE_BYTES], sealed[NONCE_BYTES:]
            return AESGCM(master).decrypt(nonce, rest, _wrapping(path, key_id))
        except (KeyError, InvalidTag, ValueError) as error:
            raise EncryptionKeysUnusable(
                "A data key cannot be unwrapped: the master key is another one, or the file is "
                "damaged.",
                allowed="the master key it was wrapped by",
                hint="After a change of ENGRAM_ENCRYPTION_MASTER_KEY, keep the old one after a "
                "comma until `engram encryption rotate` has run.",
            ) from error


def _wrapping(path: Path, key_id: str) -> bytes:
    """What a wrapped key is bound to: nobody hands one owner's key to another."""
    return f"engram-key/1\0{path.stem}\0{key_id}".encode()


def _given_masters(master: str | None) -> list[bytes]:
    try:
        return [] if master is None else [_key_of(one) for one in master.split(",")]
    except ValueError as error:
        raise InvalidSettings(
            "ENGRAM_ENCRYPTION_MASTER_KEY is not usable.",
            allowed="32 bytes in base64; after commas, those that were used before",
            hint="`openssl rand -base64 32` makes one.",
        ) from error


def _key_of(text: object) -> bytes:
    key = b64decode(str(text).strip(), validate=True)
    if len(key) != _KEY_BYTES:
        raise binascii.Error("not 32 bytes")
    return key


def _fingerprint(master: bytes) -> str:
    return sha256(b"engram-master/1\0" + master).hexdigest()[:_CIPHER_KEY_ID_DIGITS]


def _master_file(keys: list[bytes]) -> str:
    return json.dumps({"keys": [b64encode(key).decode() for key in keys]})


def _stamp(path: Path) -> FileStamp:
    """Changes whenever the file does: a new one is renamed into its place."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _begin(
    folder: Path,
    about: Path,
    new_secret: Callable[[], bytes],
    since: datetime | None,
    master: str | None,
) -> None:
    """Make what a store begins with, unless another process has; whoever calls has the lock."""
    if about.exists():
        return
    if master is None and not (folder / "master.key").exists():
        _replace(folder / "master.key", _master_file([new_secret()]))
    # Last: where it is, the rest was there before.
    made = {
        "id": new_secret()[: _CIPHER_KEY_ID_DIGITS // 2].hex(),
        "since": None if since is None else since.isoformat(),
    }
    _replace(about, json.dumps(made))


def _replace(path: Path, content: str) -> None:
    """Write a file in one step; whoever calls has the lock."""
    with private_draft(path, durable=True) as draft:
        draft.write(content)


@contextmanager
def _overwritten(path: Path) -> Iterator[None]:
    """Have the block replace or remove a file, then leave nothing of it in its old blocks.

    That far where the file system writes in place.
    """
    with path.open("r+b") as old:
        yield
        old.write(b" " * os.fstat(old.fileno()).st_size)
        old.flush()
        os.fsync(old.fileno())


@contextmanager
def _failing_typed(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise EncryptionKeysUnusable(
            f"The folder of encryption keys {folder} cannot be used: {error.strerror}.",
            allowed="a folder that this user, and no other, can read and write",
        ) from error


def _damaged(path: Path) -> EncryptionKeysUnusable:
    return EncryptionKeysUnusable(
        f"The file {path} of encryption keys is damaged.", hint="Restore it from a backup."
    )
