"""A program to be killed: the workers and the store, while Temporal and the clients live elsewhere.

Arguments: the folder of the store, Temporal's address, the socket to answer
reads on, the trace, a name. SIGTERM has it end as a worker does.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from pathlib import Path

from engram.agents.asking import thinker
from engram.client.local import direct_engine
from engram.embedded.parts import serve_on_socket
from engram.embedding.choice import make_embedder
from engram.settings import Settings
from engram.storage.edge import EdgeRepository
from engram.system import new_id, system_clock
from engram.temporal.connection import connect_temporal
from engram.workflows.worker import running_workers
from tests.support import tracing_worker
from tests.support.process_trace import Trace


async def main(store: Path, address: str, socket: Path, trace_path: Path, name: str) -> None:
    """Work until asked to end."""
    trace = Trace(trace_path)
    tracing_worker.install(trace)
    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asked.set)
    settings = Settings.load(temporal_address=address)
    embedder = make_embedder(settings.embedder)
    async with contextlib.AsyncExitStack() as stack:
        repository = await EdgeRepository.open(
            store,
            embedder_identity=embedder.identity,
            dimensions=await embedder.dimensions(),
            settings=settings,
        )
        stack.push_async_callback(repository.close)
        client = await connect_temporal(settings)
        model = thinker(settings.model)
        await stack.enter_async_context(
            running_workers(client, repository, embedder, model, settings, new_write_id=new_id)
        )
        engine = direct_engine(client, repository, embedder, settings, system_clock, ui_url=None)
        await stack.enter_async_context(serve_on_socket(engine, socket, settings=settings))
        trace.mark("ready", "done", name)
        await asked.wait()
        trace.mark("shutdown", "begin", name)
    trace.mark("shutdown", "end", name)


if __name__ == "__main__":
    _, store_, address_, socket_, trace_, name_ = sys.argv
    asyncio.run(main(Path(store_), address_, Path(socket_), Path(trace_), name_))
