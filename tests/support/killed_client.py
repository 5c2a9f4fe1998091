"""A program that attaches to the owner of a folder, sends turns, and notes what is acknowledged.

Arguments: the folder, the trace, the session, then ``parallel NAME COUNT``
(so many turns of its own at once) or ``again TIMES WAIT ID...`` (the same
turns so many times; with WAIT ``idle`` each time to a session that has ended).
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from engram import MemoryStore, Settings
from engram.domain.scope import Scope
from engram.embedded.open import run
from engram.system import new_id, system_clock
from tests.support.encode_streams import send
from tests.support.numbered_turns import USER
from tests.support.process_trace import Trace


async def again(
    memory: MemoryStore, trace: Trace, session: str, times: int, wait: str, ids: list[str]
) -> None:
    """Send the same turns several times."""
    for _ in range(times):
        await asyncio.gather(*(send(memory, trace, session, each) for each in ids))
        while wait == "idle" and await memory.working_memory(session):  # noqa: ASYNC110 - another process sets it
            await asyncio.sleep(0.02)


async def parallel(memory: MemoryStore, trace: Trace, session: str, name: str, count: int) -> None:
    """Send turns all at once."""
    ids = [f"{name}-{number}" for number in range(count)]
    await asyncio.gather(*(send(memory, trace, session, each) for each in ids))


async def main(folder: str, trace_path: str, session: str, how: str, *rest: str) -> None:
    """Attach and send."""
    trace = Trace(Path(trace_path))
    settings = Settings.load(data_dir=folder)
    async with run(settings) as running:
        assert running.attached, "this program has to be a second one"
        scope = Scope.of(settings.namespace, USER)
        memory = MemoryStore(running.engine, scope, settings, system_clock, new_id)
        if how == "parallel":
            await parallel(memory, trace, session, rest[0], int(rest[1]))
        else:
            await again(memory, trace, session, int(rest[0]), rest[1], list(rest[2:]))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
