"""What must hold of a memory after a kill, asked of it from outside."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path

from temporalio.client import Client, WorkflowExecutionStatus

from engram import MemoryStore
from engram.domain.memories import Episode
from tests.support import numbered_turns
from tests.support.process_trace import Ledger

_FINISHED = {WorkflowExecutionStatus.COMPLETED, WorkflowExecutionStatus.CONTINUED_AS_NEW}


async def episodes(memory: MemoryStore) -> list[Episode]:
    """Every turn that is kept."""
    found: list[Episode] = []
    cursor: str | None = None
    while True:
        page = await memory.list(memory_types=["episodic"], limit=500, cursor=cursor)
        found.extend(m for m in page.memories if isinstance(m, Episode))
        cursor = page.cursor
        if cursor is None:
            return found


async def assert_kept(memory: MemoryStore, trace: Path) -> int:
    """Every acknowledged turn is there exactly once, by id and by content, in its session.

    Clients may go on talking meanwhile.

    Returns:
        How many were acknowledged before it was looked.
    """
    acknowledged = Ledger(trace).messages("done")
    kept = await episodes(memory)
    sent = Ledger(trace).messages("begin")
    by_id = Counter(episode.message_id for episode in kept)
    by_content = Counter(episode.content for episode in kept)
    assert not [m for m in acknowledged if by_id[m] != 1]
    assert not [m for m in acknowledged if by_content[numbered_turns.content(m)] != 1]
    assert max(by_content.values(), default=1) == 1
    # What was sent and not acknowledged may be there or not; nothing else is.
    assert set(by_id) <= set(sent)
    sessions = {episode.message_id: episode.session_id for episode in kept}
    assert not [m for m, session in acknowledged.items() if sessions[m] != session]
    return len(acknowledged)


async def assert_sound(memory: MemoryStore) -> None:
    """`engram validate` and `engram health` would exit 0."""
    validated = await memory.validate()
    assert not validated.counts, validated.findings
    examined = await memory.health()
    assert not examined.diagnoses, examined.diagnoses


async def end_sessions(memory: MemoryStore, ledger: Ledger) -> None:
    """End every session that anything was sent to."""
    for session in sorted(set(ledger.messages("begin").values())):
        await memory.end_session(session)


async def unfinished(client: Client, seconds: float, query: str | None = None) -> list[str]:
    """Workflows that do not end in time, or ended in another way than by being done.

    Looks at those that ``query`` names, in the service's own words, or at all.
    """
    deadline = time.monotonic() + seconds
    while True:
        runs = [run async for run in client.list_workflows(query)]
        bad = [f"{r.id} {r.status and r.status.name}" for r in runs if r.status not in _FINISHED]
        if runs and not bad:
            return []
        if time.monotonic() > deadline:
            return bad or ["no workflow at all"]
        await asyncio.sleep(0.1)
