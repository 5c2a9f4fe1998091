"""Small JSON files that say which processes work on a data folder."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """A development server that was started on a folder.

    Attributes:
        pid: Its process id, which is its process group's too.
        started: When the process began, in the words of the operating system;
            tells it from a later process with the same id.
        marker: What its command line holds and no other program's does.
        guard_pid: The watcher that ends it.
        port: Of its gRPC service.
        ui_port: Of its web pages; None without.
        db: Its database.
    """

    pid: int
    started: str | None
    marker: str
    guard_pid: int
    port: int
    ui_port: int | None
    db: str

    def write(self, path: Path) -> None:
        """Keep it; a reader sees the old record or this one, nothing between."""
        write_record(path, asdict(self))

    @classmethod
    def read(cls, path: Path) -> ServerRecord | None:
        """What was kept; None if there is nothing that can be read."""
        found = read_record(path)
        try:
            return None if found is None else cls(**found)
        except TypeError:
            return None


def write_record(path: Path, record: dict[str, Any]) -> None:
    """Replace a small JSON file in one step."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    draft.write_text(json.dumps(record), encoding="utf-8")
    draft.chmod(0o600)
    draft.replace(path)


def read_record(path: Path) -> dict[str, Any] | None:
    """A small JSON file's object; None when it is missing or is not one."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
