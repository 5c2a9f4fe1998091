"""A program to be killed: owns a data folder and streams encodes into it until it is ended.

Arguments: the folder, the trace, a name for its sessions, how many.
SIGTERM has it leave ``engram.open`` as a program does that ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from pathlib import Path

import engram
from tests.support import tracing_worker
from tests.support.encode_streams import send_again, stream
from tests.support.numbered_turns import USER
from tests.support.process_trace import Ledger, Trace


async def main(folder: Path, trace_path: Path, name: str, sessions: int) -> None:
    """Open, stream, and leave when asked."""
    trace = Trace(trace_path)
    tracing_worker.install(trace)
    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asked.set)
    async with contextlib.AsyncExitStack() as stack:
        memory = await stack.enter_async_context(engram.open(folder, user_id=USER))
        trace.mark("ready", "done", name)
        unanswered = Ledger(trace_path).unanswered()
        tasks = [
            asyncio.create_task(send_again(memory, trace, unanswered)),
            asyncio.create_task(stream(memory, trace, name, sessions)),
            asyncio.create_task(asked.wait()),
        ]
        while not asked.is_set():
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            tasks = [task for task in tasks if task not in done]
            # What failed is heard of.
            await asyncio.gather(*done)
        trace.mark("shutdown", "begin", name)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    trace.mark("shutdown", "end", name)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])))
