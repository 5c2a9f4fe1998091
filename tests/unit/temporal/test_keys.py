"""The folder of encryption keys: made once, the same for everybody, gone when shredded."""

from __future__ import annotations

import asyncio
import json
import shutil
import stat
import subprocess
import sys
from base64 import b64encode
from datetime import UTC, datetime
from pathlib import Path

import pytest

from engram.errors import EncryptionKeysUnusable, InvalidSettings
from engram.system import draft_of, new_secret
from engram.temporal import keys as keys_module
from engram.temporal.keys import FolderKeyStore

ADA, BOB = "default/ada", "default/bob"


def opened(folder: Path, master: str | None = None) -> FolderKeyStore:
    """The store in the folder, made if need be."""
    return FolderKeyStore.create(folder, new_secret=new_secret, since=None, master=master)


def again(folder: Path, master: str | None = None) -> FolderKeyStore:
    """The store as another process opens it."""
    return FolderKeyStore(folder, new_secret=new_secret, master=master)


def a_master() -> str:
    """A master key as a setting holds it."""
    return b64encode(new_secret()).decode()


async def test_every_process_finds_the_same_key_and_each_owner_has_another(tmp_path: Path) -> None:
    """What one process made, another reads, and no two owners share a key."""
    first, second = opened(tmp_path / "k"), again(tmp_path / "k")
    key = await first.current(ADA)
    assert await second.current(ADA) == key
    assert await second.find(ADA, key.id) == key
    assert (await second.current(BOB)).secret != key.secret
    assert await second.find(BOB, key.id) is None


async def test_everything_in_the_folder_is_for_its_user_alone(tmp_path: Path) -> None:
    """Folders are 0700 and files 0600, and none holds a key in the open or names a user."""
    store = opened(tmp_path / "k")
    key = await store.current(ADA)
    for path in (tmp_path / "k", *(tmp_path / "k").rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
        if path.is_file():
            content = path.read_bytes()
            assert b64encode(key.secret) not in content
            assert key.secret not in content
            # In hexadecimal digits "ada" stands by chance; the whole name and its scope do not.
            assert ADA.encode() not in content
    assert key.secret.hex() not in repr(key)


MAKER = """
import asyncio, sys
from pathlib import Path
from engram.system import new_secret
from engram.temporal.keys import FolderKeyStore
store = FolderKeyStore.create(Path(sys.argv[1]), new_secret=new_secret, since=None)
print((asyncio.run(store.current("default/ada"))).secret.hex())
"""


def test_processes_that_make_the_same_key_at_once_agree_on_one(tmp_path: Path) -> None:
    """Store, master key and data key are made exclusively: whoever comes second takes the first."""
    command = [sys.executable, "-c", MAKER, str(tmp_path / "k")]
    makers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert len({maker.communicate()[0] for maker in makers}) == 1
    assert [maker.returncode for maker in makers] == [0, 0, 0]


async def test_tasks_that_make_the_same_key_at_once_agree_on_one(tmp_path: Path) -> None:
    """Two stores in one process, and forty callers, get one key."""
    first, second = opened(tmp_path / "k"), again(tmp_path / "k")
    made = await asyncio.gather(*(one.current(ADA) for one in (first, second) for _ in range(20)))
    assert len({key.secret for key in made}) == 1


async def test_a_shredded_key_is_gone_everywhere_and_who_comes_back_gets_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Retired keys are read until they are shredded; then no file and no cache has them."""
    monkeypatch.setattr(keys_module, "_FRESH_SECONDS", 0.0)
    first, second = opened(tmp_path / "k"), again(tmp_path / "k")
    old = await first.current(ADA)
    assert await second.find(ADA, old.id) == old
    assert await first.shred(ADA) == 0
    await first.retire(ADA)
    assert await second.find(ADA, old.id) == old
    new = await second.current(ADA)
    assert new.secret != old.secret
    assert await first.shred(ADA) == 1
    assert await first.shred(ADA) == 0
    for store in (first, second, again(tmp_path / "k")):
        assert await store.find(ADA, old.id) is None
        assert await store.current(ADA) == new
    await first.retire(ADA)
    assert await first.shred(ADA) == 1
    assert not list((tmp_path / "k" / "owners").iterdir())


async def test_what_a_killed_writer_left_is_shredded_too(tmp_path: Path) -> None:
    """A draft of the owner's file holds wrapped keys; it goes with them."""
    store = opened(tmp_path / "k")
    await store.current(ADA)
    (kept,) = (tmp_path / "k" / "owners").iterdir()
    shutil.copy(kept, draft_of(kept))
    await store.retire(ADA)
    await store.shred(ADA)
    assert not list((tmp_path / "k" / "owners").iterdir())


async def test_rotating_wraps_every_key_by_a_new_master_key(tmp_path: Path) -> None:
    """The old master key opens nothing any more, and no data key changed."""
    store, other = opened(tmp_path / "k"), again(tmp_path / "k")
    keys = [await store.current(owner) for owner in (ADA, BOB)]
    before = (tmp_path / "k" / "master.key").read_text()
    status = await store.rotate()
    assert (status.owners, status.keys, status.old) == (2, 2, 0)
    assert [await other.current(owner) for owner in (ADA, BOB)] == keys
    assert [await again(tmp_path / "k").current(owner) for owner in (ADA, BOB)] == keys
    (tmp_path / "k" / "master.key").write_text(before)
    with pytest.raises(EncryptionKeysUnusable, match="cannot be unwrapped"):
        await again(tmp_path / "k").current(ADA)


async def test_a_rotation_that_was_interrupted_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After any owner's file, everything is readable, and the next rotation finishes it."""
    store = opened(tmp_path / "k")
    keys = [await store.current(owner) for owner in (ADA, BOB)]
    rewrap = FolderKeyStore._rewrap  # noqa: SLF001  # where it is interrupted
    done: list[Path] = []

    def once(self: FolderKeyStore, path: Path, *, drop_current: bool) -> None:
        if done:
            raise OSError(28, "No space left on device")
        done.append(path)
        rewrap(self, path, drop_current=drop_current)

    with monkeypatch.context() as failing:
        failing.setattr(FolderKeyStore, "_rewrap", once)
        with pytest.raises(EncryptionKeysUnusable, match="No space left"):
            await store.rotate()
    other = again(tmp_path / "k")
    assert (await other.status()).old == 1
    assert [await other.current(owner) for owner in (ADA, BOB)] == keys
    assert (await other.rotate()).old == 0
    assert len(json.loads((tmp_path / "k" / "master.key").read_text())["keys"]) == 1
    assert [await again(tmp_path / "k").current(owner) for owner in (ADA, BOB)] == keys


async def test_rotating_data_keys_leaves_the_old_ones_readable(tmp_path: Path) -> None:
    """New payloads get new keys; what was encrypted before stays readable."""
    store = opened(tmp_path / "k")
    old = await store.current(ADA)
    await store.rotate(data_keys=True)
    assert (await store.current(ADA)).id != old.id
    assert await store.find(ADA, old.id) == old


async def test_a_master_key_from_a_setting_takes_over(tmp_path: Path) -> None:
    """From the folder's to a given one, and to the next given one: by rotating."""
    store, given, next_given = opened(tmp_path / "k"), a_master(), a_master()
    key = await store.current(ADA)
    await again(tmp_path / "k", given).rotate()
    assert not (tmp_path / "k" / "master.key").exists()
    assert await again(tmp_path / "k", given).current(ADA) == key
    with pytest.raises(EncryptionKeysUnusable, match="master key"):
        again(tmp_path / "k")
    with pytest.raises(EncryptionKeysUnusable, match="after a comma"):
        await again(tmp_path / "k", next_given).current(ADA)
    await again(tmp_path / "k", f"{next_given},{given}").rotate()
    assert await again(tmp_path / "k", next_given).current(ADA) == key


async def test_a_master_key_from_a_setting_goes_back_into_the_folder(tmp_path: Path) -> None:
    """The setting may go from one process after the other, and the next rotation replaces it."""
    opened(tmp_path / "k")
    earlier, given = a_master(), a_master()
    await again(tmp_path / "k", earlier).rotate()
    key = await again(tmp_path / "k", earlier).current(ADA)
    kept = await again(tmp_path / "k", f"{given},{earlier}").keep_master()
    late = await again(tmp_path / "k", f"{given},{earlier}").current(BOB)
    for master in (None, given, f"{given},{earlier}"):
        store = again(tmp_path / "k", master)
        assert [await store.current(ADA), await store.current(BOB)] == [key, late]
    await again(tmp_path / "k", given).rotate()
    await again(tmp_path / "k", given).keep_master()
    rotated = await again(tmp_path / "k").rotate()
    assert (rotated.old, rotated.master != kept.master) == (0, True)
    assert given not in (tmp_path / "k" / "master.key").read_text()
    assert await again(tmp_path / "k").current(BOB) == late
    with pytest.raises(InvalidSettings, match="folder holds it already"):
        await again(tmp_path / "k").keep_master()


async def test_keys_are_never_made_where_there_were_some(tmp_path: Path) -> None:
    """A lost master key and a folder that is not mounted are errors, not new keys."""
    opened(tmp_path / "k")
    (tmp_path / "k" / "master.key").unlink()
    with pytest.raises(EncryptionKeysUnusable, match=r"master key of .* is missing"):
        opened(tmp_path / "k")
    with pytest.raises(EncryptionKeysUnusable, match="mounted"):
        again(tmp_path / "elsewhere")


@pytest.mark.parametrize("master", ["short", b64encode(b"too short").decode(), "", "ä" * 44])
def test_a_master_key_that_is_none_is_refused_without_being_quoted(
    tmp_path: Path, master: str
) -> None:
    """The error says what is allowed and not what was given."""
    with pytest.raises(InvalidSettings, match="32 bytes") as refused:
        opened(tmp_path / "k", master)
    assert not master or master not in str(refused.value)
    assert not (tmp_path / "k" / "store.json").exists()


async def test_damaged_files_are_errors_and_no_new_keys(tmp_path: Path) -> None:
    """What cannot be read is not taken for nothing."""
    store = opened(tmp_path / "k")
    await store.current(ADA)
    (kept,) = (tmp_path / "k" / "owners").iterdir()
    for damage in ("", "[]", '{"keys": 3, "current": null}'):
        kept.write_text(damage)
        with pytest.raises(EncryptionKeysUnusable, match="damaged"):
            await again(tmp_path / "k").current(ADA)


async def test_a_key_of_one_owner_does_not_open_as_another_s(tmp_path: Path) -> None:
    """Whoever may write to the folder cannot hand one user's key to another."""
    store = opened(tmp_path / "k")
    await store.current(ADA)
    (ada,) = (tmp_path / "k" / "owners").iterdir()
    await store.current(BOB)
    (bob,) = set((tmp_path / "k" / "owners").iterdir()) - {ada}
    shutil.copy(ada, bob)
    with pytest.raises(EncryptionKeysUnusable, match="cannot be unwrapped"):
        await again(tmp_path / "k").current(BOB)


def test_since_when_everything_is_encrypted_is_kept(tmp_path: Path) -> None:
    """It is settled when the keys are made, and no later start changes it."""
    then = datetime(2026, 3, 4, 12, tzinfo=UTC)
    made = FolderKeyStore.create(tmp_path / "k", new_secret=new_secret, since=then)
    assert made.since == then
    assert opened(tmp_path / "k").since == then
    assert again(tmp_path / "k").id == made.id
