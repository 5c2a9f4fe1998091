"""The keys of a data folder's Temporal payloads: made with the folder, and never made twice."""

from __future__ import annotations

from pathlib import Path

from engram.embedded.folder import AUDIT, ENCRYPTION, DataFolder, read_record, write_record
from engram.errors import EncryptionKeysUnusable
from engram.ports import Clock
from engram.settings import Settings
from engram.system import new_secret
from engram.temporal.keys import FolderKeyStore


def own_keys(
    folder: DataFolder, settings: Settings, clock: Clock, *, plain_runs: bool
) -> FolderKeyStore:
    """The keys of a folder that this process owns; made at the first start.

    :func:`record_keys` notes which they are, once nothing else refuses them.

    Args:
        folder: Locked by this process.
        settings: May name another folder for them, and the master key.
        clock: The real one: it is compared with the server's.
        plain_runs: Whether Temporal had a database before there were keys: its runs are plain,
            and go on.

    Raises:
        EncryptionKeysUnusable: they are missing, though the folder had some, or are others.
    """
    known = read_record(folder.encryption_record)
    if known is not None:
        return _same(known.get("keys"), folder, folder_keys(folder.path, settings))
    where = settings.encryption_keys or folder.encryption
    if _had_keys(folder) and not FolderKeyStore.is_in(where):
        # New ones would stand in the way of a backup that is put back.
        raise _lost(f"The encryption keys of {folder.path} are missing.")
    return FolderKeyStore.create(
        where,
        new_secret=new_secret,
        since=clock() if plain_runs else None,
        master=settings.master_key,
    )


def record_keys(folder: DataFolder, keys: FolderKeyStore) -> None:
    """Note which keys a folder has, before anything is encrypted with them."""
    if read_record(folder.encryption_record) is None:
        write_record(folder.encryption_record, {"keys": keys.id})


def folder_keys(path: Path, settings: Settings) -> FolderKeyStore:
    """The keys of a folder that a process, this or another one, has opened before.

    Raises:
        EncryptionKeysUnusable: they are missing.
    """
    # Looking must not make the folder.
    where = settings.encryption_keys or path / ENCRYPTION
    return FolderKeyStore(where, new_secret=new_secret, master=settings.master_key)


def audit_folder(folder: DataFolder, settings: Settings) -> Path:
    """Where the audit trail of a data folder is."""
    return settings.audit_folder or folder.path / AUDIT


def _had_keys(folder: DataFolder) -> bool:
    """Whether the audit trail, which is begun with a key, says that there were some."""
    return (folder.path / AUDIT / "trail.json").exists()


def _same(known: object, folder: DataFolder, keys: FolderKeyStore) -> FolderKeyStore:
    if known != keys.id:
        raise _lost(f"The encryption keys are not those that {folder.path} was encrypted with.")
    return keys


def _lost(what: str) -> EncryptionKeysUnusable:
    return EncryptionKeysUnusable(
        what,
        allowed="the keys it had before",
        hint="Restore them from a backup. docs/encryption.md says what can be done without, and "
        "what of the folder is moved aside then, the audit trail too.",
    )
