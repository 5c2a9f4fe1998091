"""Sending batches of an import: a few at a time, until all are there or somebody gives up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engram.client.importing import Sending
from engram.contracts.importing import ImportBatch
from engram.operations.transfer import IMPORTING

IMPORT_ID = "0" * 32
BATCHES = [ImportBatch(first=number, count=1, packed="") for number in range(4)]


class Held:
    """Answers nothing until it is told; notes what reaches it, and what of that is given up."""

    def __init__(self) -> None:
        self.sent: list[int] = []
        self.given_up: list[int] = []
        self.answers = asyncio.Event()

    async def __call__(self, operation: object, request: Any) -> Any:
        """Take a batch."""
        self.sent.append(request.batch.first)
        try:
            await self.answers.wait()
        except asyncio.CancelledError:
            self.given_up.append(request.batch.first)
            raise
        if request.batch.first == 0:
            raise ConnectionError("staged")

    async def until_sent(self, batches: int) -> None:
        """Wait for so many."""
        async with asyncio.timeout(10):
            while len(self.sent) < batches:  # noqa: ASYNC110 - nothing else says it
                await asyncio.sleep(0)


async def test_who_cancels_an_import_waits_for_no_batch() -> None:
    """Those on their way are given up at once, however long their answers would take."""
    held = Held()
    sending = asyncio.create_task(Sending(held, IMPORTING, IMPORT_ID, None).send(iter(BATCHES)))
    await held.until_sent(2)
    sending.cancel()
    await asyncio.wait({sending}, timeout=10)
    assert sending.cancelled()
    assert sorted(held.given_up) == held.sent == [0, 1]


async def test_a_batch_that_fails_lets_those_on_their_way_end() -> None:
    """What was sent before it failed is answered; no more are sent."""
    held = Held()
    sending = asyncio.create_task(Sending(held, IMPORTING, IMPORT_ID, None).send(iter(BATCHES)))
    await held.until_sent(2)
    held.answers.set()
    with pytest.raises(ConnectionError):
        await sending
    assert (held.sent, held.given_up) == ([0, 1], [])
