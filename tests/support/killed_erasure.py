"""A program that is killed while it erases, and what it says and hears before that.

Arguments: the data folder, ``erase`` or ``open``, the step at which it kills itself.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import string
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import engram
from engram import MemoryStore, Turn
from engram.embedded import erase
from engram.embedded.folder import DataFolder
from engram.storage import edge_files
from engram.storage.edge_files import OpenStore
from engram.temporal import gateway

ERASED, OTHER = "ada", "bob"
_WORDS = 48
# Operations of SQLite: in the middle of writing some hundred pages anew.
_INTO_VACUUM = 200


def words(user: str) -> list[str]:
    """Words that nobody else ever says; the same in every process."""
    dice = random.Random(user)  # noqa: S311 - makes words up, guards nothing
    return ["".join(dice.choices(string.ascii_lowercase, k=12)) for _ in range(_WORDS)]


def turns(user: str) -> list[Turn]:
    """Turns of which everything that can be said is made of the user's words."""
    said = [words(user)[start : start + 8] for start in range(0, _WORDS, 8)]
    return [
        Turn(
            content=f"I live in {a.title()}. I don't use {b}. My sister {c.title()} works at "
            f"{d.title()}. Write to {e}@{f}.org!",
            speaker=g.title(),
            metadata={h: f"{h} of {a}"},
            message_id=f"{b}-{c}",
        )
        for a, b, c, d, e, f, g, h in said
    ]


async def talk(memory: MemoryStore, user: str) -> None:
    """Say it all, in two sessions with names of the user's, and have it consolidated."""
    mine, name = memory.for_user(user), words(user)[0]
    # What histories of forgetting hold goes, too.
    receipt = await mine.encode(f"Never mind the {name}.", session_id=f"{name}-2")
    await mine.forget(receipt.episode_ids[0])
    for number, turn in enumerate(turns(user)):
        await mine.encode(turn, session_id=f"{name}-{number % 2}")
    await mine.end_session(f"{name}-0")
    await mine.consolidate()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _dying(function: Callable[..., Any], calls: int = 0) -> Callable[..., Any]:
    """The function, until it was called so often."""
    left = iter(range(calls))

    def call(*args: Any, **named: Any) -> Any:
        if next(left, None) is None:
            _die()
        return function(*args, **named)

    return call


def _dying_vacuum(connection: sqlite3.Connection) -> None:
    connection.set_progress_handler(_die, _INTO_VACUUM)
    connection.execute("VACUUM")


def _half_replaced(folder: Path) -> None:
    folder.rename(edge_files.replaced(folder))
    _die()


STEPS: dict[str, tuple[object, str, Callable[..., Any]]] = {
    "begun": (erase, "erased_runs", _dying(gateway.erased_runs)),
    "one shard rebuilt": (OpenStore, "take_over", _dying(OpenStore.take_over, calls=1)),
    "between the renames": (edge_files, "replace", _half_replaced),
    "server paused": (erase, "runs_left", _dying(erase.runs_left)),
    "inside the vacuum": (erase, "_vacuum", _dying_vacuum),
    "vacuumed": (DataFolder, "drop_server_logs", _dying(DataFolder.drop_server_logs)),
}
"""What is replaced so that the process dies there."""


async def main(folder: Path, what: str, step: str) -> None:
    """Talk and erase, or only open; die at the step."""
    owner, name, dying = STEPS[step]
    setattr(owner, name, dying)
    async with engram.open(folder, user_id=ERASED) as memory:
        if what == "erase":
            for user in (ERASED, OTHER):
                await talk(memory, user)
            await memory.erase()
            await memory.erased()
    raise SystemExit("it was to be killed")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:]))
