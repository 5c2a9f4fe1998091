"""Make a data folder whose work is half done: python -m tests.upgrade.make FOLDER.

Kills itself while a session, a consolidation and an import run. With the code of an earlier
version it makes what that version leaves behind: tests/data/upgrade/README.md.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings

import engram
from engram import MemoryStore, Settings, Turn
from engram.contracts.importing import ImportPolicy, ImportProgress
from engram.temporal import importing
from engram.transfer import batches
from tests.support.rules_model import RulesModel

SAID = (
    "I live in Paris.",
    "I use Mongo.",
    "My email is ada@example.org.",
    "I have a dog called Rex.",
)
BEFORE = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)
BATCH = 3
_YEARS = timedelta(days=3650)


class _Away(RulesModel):
    """Answers once, then never again."""

    def __init__(self) -> None:
        super().__init__()
        self.answered = False
        self.asked_again = asyncio.Event()

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """See the base class."""
        if self.answered:
            self.asked_again.set()
            await asyncio.sleep(3600)
        self.answered = True
        return await super().request(messages, model_settings, model_request_parameters)


class _GoneAway(Exception):
    """The importing client goes away."""


def _patient(**given: Any) -> ImportPolicy:
    return ImportPolicy(**{**given, "idle_time": _YEARS})


def turns(session: str, count: int) -> list[Turn]:
    """What is said in a session, with the ids of its turns."""
    return [
        Turn(
            content=f"{SAID[n % len(SAID)]} That was number {n} in {session}.",
            message_id=f"{session}-{n}",
            timestamp=BEFORE + timedelta(minutes=n),
        )
        for n in range(count)
    ]


async def talk(memory: MemoryStore) -> None:
    """A session that runs, with turns that wait for consolidation."""
    for turn in turns("running", BATCH):
        await memory.encode(turn, session_id="running")


async def consolidate(memory: MemoryStore, model: _Away) -> None:
    """A pass that has one batch done, and hangs in the next."""
    for turn in turns("due", 2 * BATCH):
        await memory.encode(turn, session_id="due")
    await asyncio.wait_for(model.asked_again.wait(), 60)


async def bring_in(memory: MemoryStore) -> None:
    """An import of several batches, whose client goes away after two of them."""

    def told(progress: ImportProgress) -> None:
        if progress.position:
            raise _GoneAway

    try:
        await memory.import_turns(
            [("brought", turn) for turn in turns("brought", 5 * BATCH)], on_progress=told
        )
    except _GoneAway:
        return


async def make(folder: Path) -> None:
    """Leave all three behind, each for a user of its own."""
    # Many small batches, and workflows that wait for years: the folder is opened much later.
    batches.MOST_ENTRIES = BATCH  # type: ignore[misc]  # see above
    vars(importing)["ImportPolicy"] = _patient
    settings = Settings.load(
        data_dir=folder,
        temporal_ui=False,
        session_idle_minutes=_YEARS / timedelta(minutes=1),
        buffer_turns=2 * BATCH,
        extraction_batch_turns=BATCH,
    )
    model = _Away()
    async with engram.open(user_id="talking", settings=settings, model=model) as memory:
        # The embedder is slow the first time: storing would be recorded as an outage.
        await memory.recall("anything")
        await talk(memory)
        await consolidate(memory.for_user("consolidating"), model)
        await bring_in(memory.for_user("importing"))
        # What was written is flushed by then.
        await asyncio.sleep(2 * settings.flush_interval.total_seconds())
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    asyncio.run(make(Path(sys.argv[1])))
