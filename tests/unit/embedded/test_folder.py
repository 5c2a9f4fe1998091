"""The data folder: who may use it, who owns it, what it leaves behind."""

import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engram.embedded.folder import DataFolder, Owner, ServerRecord
from engram.errors import DataFolderInUse, DataFolderUnusable, StorageUnavailable
from engram.storage.edge_files import open_store
from tests.support.small_disk import leave_free, small_disk

HOLD_LOCK = """
import sys
from engram.embedded.folder import DataFolder
assert DataFolder(sys.argv[1]).try_lock()
print("locked", flush=True)
sys.stdin.read()
"""

FORK = """
import os, sys, time
from engram.embedded.folder import DataFolder
from engram.storage.edge_files import open_store
folder = DataFolder(sys.argv[1])
assert folder.try_lock()
store = open_store(folder.store, prefix="engram", embedder="e", dimensions=4)
read, write = os.pipe()
child = os.fork()
if child == 0:
    os.write(write, b"1" if not folder.locked else b"0")
    time.sleep(60)
    os._exit(0)
assert os.read(read, 1) == b"1"
print(child, flush=True)
os.kill(os.getpid(), 9)
"""


def test_creates_the_folder_for_its_user_only(tmp_path: Path) -> None:
    """A new data folder, and its store, can be read by nobody else."""
    folder = DataFolder(tmp_path / "deep" / "data")
    assert folder.try_lock()
    modes = {path.stat().st_mode & 0o777 for path in (folder.path, folder.store)}
    folder.release()
    assert modes == {0o700}


def test_expands_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tilde means the user's home, not a folder of that name."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert DataFolder("~/memory").path == tmp_path / "memory"


def test_takes_from_others_a_folder_that_was_there(tmp_path: Path) -> None:
    """A folder that everybody could look into is this user's alone once it is owned."""
    tmp_path.chmod(0o755)
    folder = DataFolder(tmp_path)
    assert folder.try_lock()
    folder.release()
    assert tmp_path.stat().st_mode & 0o777 == 0o700


def test_refuses_the_folder_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who owns a folder could exchange what is in it: typed, and nothing stays locked."""
    folder = DataFolder(tmp_path)
    if os.getuid() == 0:
        os.chown(tmp_path, 4711, -1)
    monkeypatch.setattr(os, "geteuid", lambda: 4712)
    with pytest.raises(DataFolderUnusable, match="another user"):
        folder.try_lock()
    assert not folder.locked


def test_a_forged_record_unlinks_nothing(tmp_path: Path) -> None:
    """Whatever path the record of a dead owner names, only a socket of ours goes."""
    data, precious = tmp_path / "data", tmp_path / "engram-x" / "engram.sock"
    precious.parent.mkdir()
    precious.write_text("mine")
    folder = DataFolder(data)
    for named in (precious, tmp_path / "data" / "lock", tmp_path):
        assert folder.try_lock()
        forged = json.loads((data / "owner.json").read_text()) | {"socket": str(named)}
        folder.release()
        (data / "owner.json").write_text(json.dumps(forged))
        assert folder.try_lock()
        folder.release()
    assert precious.read_text() == "mine"
    assert (data / "lock").exists()


@pytest.mark.parametrize("below", ["", "data"])
def test_refuses_a_file(tmp_path: Path, below: str) -> None:
    """A file, or a path through one, is refused with an error that names it."""
    file = tmp_path / "notes.txt"
    file.write_text("mine")
    with pytest.raises(DataFolderUnusable, match=r"notes\.txt.* a file"):
        DataFolder(file / below)
    assert file.read_text() == "mine"


def test_refuses_a_path_that_cannot_exist() -> None:
    """A path with a NUL, or under a place nobody can write to, is a typed error."""
    for path in ("/tmp/a\0b", "/proc/engram"):  # noqa: S108 - nothing is created there
        with pytest.raises(DataFolderUnusable, match="cannot be created"):
            DataFolder(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_refuses_a_folder_it_cannot_write_to(tmp_path: Path) -> None:
    """A read-only folder is refused when it is to be owned, and stays unlocked."""
    tmp_path.chmod(0o500)
    folder = DataFolder(tmp_path)
    with pytest.raises(DataFolderUnusable, match="cannot be written"):
        folder.try_lock()
    assert not folder.locked
    tmp_path.chmod(0o700)


def test_refuses_a_folder_whose_store_is_a_file(tmp_path: Path) -> None:
    """When the layout cannot be made, the error is typed and the lock is let go."""
    (tmp_path / "store").write_text("")
    folder = DataFolder(tmp_path)
    with pytest.raises(DataFolderUnusable, match="cannot be written"):
        folder.try_lock()
    (tmp_path / "store").unlink()
    assert DataFolder(tmp_path).try_lock()


def _failing(number: int) -> Callable[..., Any]:
    """What fails as the system does with this error."""

    def refused(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    return refused


_STEPS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "made": ("pathlib.Path.mkdir", lambda path: DataFolder(path / "deep")),
    "locked": ("engram.system.FileLock.try_acquire", lambda path: DataFolder(path).try_lock()),
    "owned": ("engram.embedded.folder.write_record", lambda path: DataFolder(path).try_lock()),
    "looked at": ("engram.system.FileLock.try_acquire", lambda path: DataFolder(path).has_owner()),
}
"""What is done to a folder, and what fails when the system refuses it."""


@pytest.mark.parametrize("step", _STEPS)
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_passes_and_no_other_folder_is_advised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, number: int
) -> None:
    """Who lacks room is told to make some, not to go on with an empty memory elsewhere."""
    what, done = _STEPS[step]
    monkeypatch.setattr(what, _failing(number))
    with pytest.raises(StorageUnavailable, match=r"no room left\. Make room") as caught:
        done(tmp_path)
    assert "ENGRAM_DATA_DIR" not in str(caught.value)


@pytest.mark.parametrize("step", _STEPS)
def test_why_a_folder_is_refused_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """What the system gave as the reason stands in the error."""
    what, done = _STEPS[step]
    monkeypatch.setattr(what, _failing(errno.EROFS))
    with pytest.raises(DataFolderUnusable, match=r"\(Read-only file system\).*ENGRAM_DATA_DIR"):
        done(tmp_path)


def test_what_the_system_refuses_of_a_file_in_it_is_told_with_the_file(tmp_path: Path) -> None:
    """The file, the reason and what to do; a full disk is told as that, others' files are not."""
    folder, file = DataFolder(tmp_path), tmp_path / "store" / "engram.lock"

    def refused(number: int, path: Path) -> None:
        with folder.refusals_typed():
            raise OSError(number, os.strerror(number), str(path))

    with pytest.raises(
        DataFolderUnusable, match=r"store/engram\.lock.*\(Permission denied\).*`chown -R`"
    ):
        refused(errno.EACCES, file)
    with pytest.raises(StorageUnavailable, match="Make room"):
        refused(errno.ENOSPC, file)
    with pytest.raises(PermissionError):
        refused(errno.EACCES, tmp_path.parent)


def test_a_folder_on_a_full_disk_is_owned_once_there_is_room() -> None:
    """A real disk without a free byte: typed, unlocked, and the same call succeeds afterwards."""
    with small_disk(2, in_memory=True) as disk:
        folder = DataFolder(disk / "data")
        leave_free(disk, 0)
        with pytest.raises(StorageUnavailable, match="Make room"):
            folder.try_lock()
        assert not folder.locked
        leave_free(disk, 1)
        assert folder.try_lock()
        folder.release()


def test_a_killed_owner_whose_forked_child_lives_keeps_nothing_locked(tmp_path: Path) -> None:
    """Folder, store and engine open at once, though the child inherited what was locked."""
    owner = subprocess.Popen([sys.executable, "-c", FORK, str(tmp_path)], stdout=subprocess.PIPE)
    assert owner.stdout is not None
    # Not to its end, which the child holds open.
    child = int(owner.stdout.readline())
    owner.stdout.close()
    try:
        assert owner.wait() == -signal.SIGKILL
        folder = DataFolder(tmp_path)
        assert folder.try_lock()
        open_store(folder.store, prefix="engram", embedder="e", dimensions=4).close()
        folder.release()
    finally:
        os.kill(child, signal.SIGKILL)


def test_has_one_owner(tmp_path: Path) -> None:
    """A second opener, even in the same process, is refused until the first lets go."""
    first, second = DataFolder(tmp_path), DataFolder(tmp_path)
    assert first.try_lock()
    assert not second.try_lock()
    assert first.try_lock()
    first.release()
    assert second.try_lock()
    second.release()


def test_says_who_owns_it(tmp_path: Path) -> None:
    """The record names the process and its socket, and goes when the folder is released."""
    folder, other = DataFolder(tmp_path), DataFolder(tmp_path)
    assert other.owner() is None
    folder.try_lock()
    owner = other.owner()
    assert owner is not None
    assert (owner.pid, owner.socket) == (os.getpid(), folder.socket)
    error = other.in_use()
    assert isinstance(error, DataFolderInUse)
    assert f"in use by process {os.getpid()}" in str(error)
    folder.release()
    assert other.owner() is None
    assert {path.name for path in tmp_path.iterdir()} == {"lock", "store"}


def test_lock_dies_with_its_process(tmp_path: Path) -> None:
    """After kill -9 of the owner the folder can be locked at once, and its record is replaced."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD_LOCK, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        folder = DataFolder(tmp_path)
        assert not folder.try_lock()
        assert f"process {holder.pid}" in str(folder.in_use())
        holder.kill()
        holder.wait()
    assert folder.try_lock()
    owner = folder.owner()
    assert owner is not None
    assert owner.pid == os.getpid()
    folder.release()


def test_long_paths_get_a_short_socket(tmp_path: Path) -> None:
    """Where the kernel would refuse the socket's path, a private folder serves, and goes again."""
    folder = DataFolder(tmp_path / ("long" * 30))
    folder.try_lock()
    answering = folder.socket
    assert len(os.fsencode(answering)) <= 100
    assert answering.parent.stat().st_mode & 0o777 == 0o700
    owner = DataFolder(folder.path).owner()
    assert owner is not None
    assert owner.socket == answering
    folder.release()
    assert not answering.parent.exists()


def test_takes_away_what_a_dead_owner_left(tmp_path: Path) -> None:
    """The socket of an owner that was killed, and its private folder, go with the next owner."""
    path = tmp_path / ("long" * 30)
    script = HOLD_LOCK.replace(
        "assert DataFolder(sys.argv[1])", "f=DataFolder(sys.argv[1])\nassert f"
    )
    script = script.replace(
        'print("locked"',
        "import socket; socket.socket(socket.AF_UNIX).bind(str(f.socket)); print(f.socket",
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        left = Path(holder.stdout.readline().decode().strip())
        holder.kill()
    assert left.exists()
    folder = DataFolder(path)
    assert folder.try_lock()
    assert not left.parent.exists()
    folder.release()


@pytest.mark.parametrize("name", ["engram-data", "long" * 30])
def test_a_copy_leaves_alone_whoever_owns_the_original(tmp_path: Path, name: str) -> None:
    """A folder that was copied in use is its opener's; the original's socket stays, and its owner.

    Before the opener has left word, the record that came along names nobody.
    """
    original, copied = DataFolder(tmp_path / name), tmp_path / "copy"
    assert original.try_lock()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(original.socket))
        copied.mkdir()
        for kept in ("lock", "owner.json"):
            shutil.copy2(original.path / kept, copied)
        copy = DataFolder(copied)
        assert copy.owner() is None
        assert copy.try_lock()
        assert original.socket.exists()
        assert original.owner() != copy.owner()
        copy.release()
        assert original.socket.exists()
    original.release()


def test_an_owner_of_an_earlier_version_is_found(tmp_path: Path) -> None:
    """It wrote no lock down: whoever comes with a newer version attaches to it."""
    folder = DataFolder(tmp_path / "data")
    assert folder.try_lock()
    record = {"pid": os.getpid(), "socket": str(folder.socket)}
    (folder.path / "owner.json").write_text(json.dumps(record))
    assert DataFolder(folder.path).owner() == Owner(pid=os.getpid(), socket=folder.socket)
    folder.release()


def test_socket_belongs_to_the_owner(tmp_path: Path) -> None:
    """Asking for the socket without owning the folder is a mistake of the caller."""
    with pytest.raises(RuntimeError, match="not locked"):
        _ = DataFolder(tmp_path).socket


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"pid": "x", "socket": "s"}', "{}"])
def test_broken_records_are_no_records(tmp_path: Path, text: str) -> None:
    """Whatever a crash or a person left in the records, reading them does not fail."""
    for name in ("owner.json", "server.json"):
        (tmp_path / name).write_text(text)
    folder = DataFolder(tmp_path)
    assert folder.owner() is None
    assert ServerRecord.read(folder.server_record) is None
    assert "another process" in str(folder.in_use())


def test_server_record_survives_the_disk(tmp_path: Path) -> None:
    """What is written about a server is what is read."""
    record = ServerRecord(
        pid=12, started="99", marker="m", guard_pid=11, port=1, ui_port=None, db="a b"
    )
    record.write(tmp_path / "server.json")
    assert ServerRecord.read(tmp_path / "server.json") == record
