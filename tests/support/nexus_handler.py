"""A process that answers a Nexus endpoint beside a running Engram, and is killed over it if told.

``python -m tests.support.nexus_handler ADDRESS FOLDER [die]``
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from engram.activities.calls import CallInfo, Calls
from engram.contracts.calls import EncodeArgs
from engram.embedded.keys import folder_keys
from engram.embedded.open import run
from engram.operations.turns import Receipt
from engram.settings import Settings
from engram.temporal.connection import connect_client
from engram.workflows.nexus import answering_nexus
from tests.support.nexus_caller import ENDPOINT


def killed_over_it() -> None:
    """From now on: what is asked is stored, and nobody is told."""
    real = Calls.encode

    async def stores_and_dies(self: Calls, asked: EncodeArgs, call: CallInfo) -> Receipt:
        await real(self, asked, call)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    Calls.encode = stores_and_dies  # type: ignore[method-assign]  # staged


async def main(address: str, folder: Path) -> None:
    """Answer until the process ends."""
    settings = Settings.load(data_dir=folder, nexus_endpoint=ENDPOINT)
    client = await connect_client(address, "default", folder_keys(folder, settings))
    async with (
        run(settings) as running,
        answering_nexus(client, running.engine, settings),
    ):
        await asyncio.Event().wait()


if __name__ == "__main__":
    if "die" in sys.argv[3:]:
        killed_over_it()
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
