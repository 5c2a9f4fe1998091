"""Recall keeps answering while consolidation and decay run over the same memories."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from temporalio.client import Client

from engram.domain.turns import Turn
from tests.support.remembering import remembering, said


async def test_recall_answers_while_passes_run(temporal_client: Client, tmp_path: Path) -> None:
    """Every question asked during a consolidation and a decay pass is answered, and rightly."""
    async with remembering(temporal_client, tmp_path) as (memory, _):
        await memory.encode(said("I live in Lisbon.", 0), session_id="s0")
        turns: list[str | Turn] = [said(f"I use Tool{n} for work.", n) for n in range(60)]
        await memory.encode(turns, session_id="s1")
        passes = asyncio.gather(memory.consolidate(), memory.decay())
        waits: list[float] = []
        while not passes.done():
            began = time.perf_counter()
            hits = await memory.recall("Where does the user live?", limit=3)
            waits.append(time.perf_counter() - began)
            assert any("Lisbon" in hit.memory.content for hit in hits)
            await asyncio.sleep(0.02)
        consolidated, _ = await passes
        assert consolidated.episodes == 61
        assert len(waits) > 3
        # A busy machine takes its time; an answer that waits for a pass would take all of it.
        assert sorted(waits)[len(waits) // 2] < 1.0
