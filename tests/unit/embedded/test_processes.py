"""Finding other processes, by /proc and by ps."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from engram.embedded import folder
from engram.embedded.folder import find_by_marker, find_process, signal_group

# Of this process alone: others run the same tests at the same time.
NAME = f"engram-test-{os.getpid()}:/some where/(odd) %C3.sqlite"


@pytest.fixture(params=["proc", "ps"])
def _system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The way the system is asked."""
    if request.param == "ps":
        if not Path("/bin/ps").exists():
            pytest.skip("no ps on this machine")
        monkeypatch.setattr(folder, "PROC", Path("/nowhere"))
    elif not Path("/proc/self/stat").exists():
        pytest.skip("no /proc on this machine")


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process with a name of our choice, in its own group."""
    executable = shutil.which("sleep")
    with subprocess.Popen([NAME, "60"], executable=executable, process_group=0) as process:
        # Just begun, a process has no command line for a moment.
        while (line := Path(f"/proc/{process.pid}/cmdline")).exists() and not line.read_bytes():
            pass
        yield process
        process.kill()


@pytest.mark.usefixtures("_system")
def test_finds_a_process(sleeper: subprocess.Popen[bytes]) -> None:
    """By its id and by its name, with the same answer each time."""
    found = find_process(sleeper.pid)
    assert found is not None
    assert found.command.startswith(NAME)
    assert find_process(sleeper.pid) == found
    assert [process.pid for process in find_by_marker(NAME)] == [sleeper.pid]


@pytest.mark.usefixtures("_system")
def test_remains_are_no_process(sleeper: subprocess.Popen[bytes]) -> None:
    """A process that ended but was not waited for is not running, by either way of asking."""
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert find_process(sleeper.pid) is None
    assert find_by_marker(NAME) == []


def test_signals_the_group_and_forgives_the_gone(sleeper: subprocess.Popen[bytes]) -> None:
    """The signal arrives; sent again to a process that is gone, nothing happens."""
    signal_group(sleeper.pid, signal.SIGTERM)
    assert sleeper.wait(10) == -signal.SIGTERM
    signal_group(sleeper.pid, signal.SIGKILL)
