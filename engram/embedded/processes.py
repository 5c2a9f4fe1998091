"""Looking at processes that are not our children, and ending them for sure."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

# On Linux; other systems are asked through ps.
PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """A running process.

    Attributes:
        pid: Its id.
        started: When it began, as the system counts; comparable for equality only.
        command: Its command line.
    """

    pid: int
    started: str
    command: str


def find_process(pid: int) -> Process | None:
    """The process with this id; None when there is none, or only its remains."""
    if PROC.is_dir():
        return _from_proc(pid)
    return next(iter(_from_ps("-p", str(pid))), None)


def find_by_marker(marker: str) -> list[Process]:
    """Every process of ours whose command line begins with ``marker``."""
    if PROC.is_dir():
        ids = (int(each.name) for each in PROC.iterdir() if each.name.isdigit())
        found = [process for pid in ids if (process := _from_proc(pid)) is not None]
    else:
        found = _from_ps("-U", str(os.getuid()))
    return [process for process in found if process.command.startswith(marker)]


def signal_group(pid: int, number: signal.Signals) -> None:
    """Signal the group that ``pid`` leads, or itself if it leads none; gone is fine."""
    try:
        if os.getpgid(pid) == pid:
            os.killpg(pid, number)
        else:
            os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        # Not there any more, or the id already belongs to somebody else.
        return


def _from_proc(pid: int) -> Process | None:
    folder = PROC / str(pid)
    try:
        # The second field, the name, may hold spaces and brackets; the rest follows the last ")".
        fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
        command = (folder / "cmdline").read_bytes()
    except OSError:
        return None
    if fields[0] in ("Z", "X") or not command:
        return None
    return Process(pid, fields[19], os.fsdecode(command.replace(b"\0", b" ")).strip())


def _from_ps(*which: str) -> list[Process]:
    answer = subprocess.run(  # noqa: S603 - fixed command, no shell, own arguments
        ["/bin/ps", "-ww", *which, "-o", "pid=,stat=,lstart=,command="],
        capture_output=True,
        check=False,
        env={"LC_ALL": "C"},
    )
    found = []
    for line in os.fsdecode(answer.stdout).splitlines():
        # lstart is five words: weekday, month, day, time, year.
        parts = line.split(None, 7)
        if len(parts) == 8 and not parts[1].startswith("Z"):  # noqa: PLR2004 - pid, stat, 5, command
            found.append(Process(int(parts[0]), " ".join(parts[2:7]), parts[7]))
    return found
