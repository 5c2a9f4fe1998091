"""Recall keeps answering while consolidation and decay run over the same memories."""

from __future__ import annotations

import asyncio

from temporalio.client import Client

from engram.domain.turns import Turn
from tests.support.remembering import remembering, said


async def test_recall_answers_while_passes_run(temporal_client: Client) -> None:
    """Every question asked during a consolidation and a decay pass is answered, and rightly."""
    # No session asks for consolidation by itself: all there is to do is done while we ask.
    async with remembering(temporal_client, buffer_turns=100) as (memory, _):
        await memory.encode(said("I live in Lisbon.", 0), session_id="s0")
        turns: list[str | Turn] = [said(f"I use Tool{n} for work.", n) for n in range(60)]
        await memory.encode(turns, session_id="s1")
        passes = asyncio.gather(memory.consolidate(), memory.decay())
        answers = 0
        while not passes.done():
            hits = await memory.recall("Where does the user live?", limit=3)
            assert any("Lisbon" in hit.memory.content for hit in hits)
            answers += not passes.done()
            await asyncio.sleep(0.02)
        consolidated, _ = await passes
        assert consolidated.episodes == 61
        # An answer that waits for a pass would come after it: at most one for each.
        assert answers > 3
