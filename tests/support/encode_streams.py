"""Streams of encodes, each answer of which is written down."""

from __future__ import annotations

import asyncio
import itertools

from engram import MemoryStore
from tests.support import numbered_turns
from tests.support.process_trace import Trace


async def send(memory: MemoryStore, trace: Trace, session: str, message_id: str) -> None:
    """Encode one turn; marked before it is sent and after it is acknowledged."""
    key = f"{session}/{message_id}"
    trace.mark("turn", "begin", key)
    await memory.encode(numbered_turns.turn(message_id), session_id=session)
    trace.mark("turn", "done", key)


async def stream(memory: MemoryStore, trace: Trace, name: str, sessions: int) -> None:
    """Talk in several sessions at once, without end."""

    async def talk_on(session: str) -> None:
        for number in itertools.count():
            await send(memory, trace, session, f"{session}-{number}")

    async with asyncio.TaskGroup() as group:
        for number in range(sessions):
            group.create_task(talk_on(f"{name}.{number}"))


async def send_again(memory: MemoryStore, trace: Trace, unanswered: dict[str, str]) -> None:
    """Send once more what nobody acknowledged, under its own ids."""
    async with asyncio.TaskGroup() as group:
        for message_id, session in unanswered.items():
            group.create_task(send(memory, trace, session, message_id))
