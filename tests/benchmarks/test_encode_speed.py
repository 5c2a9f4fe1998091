"""Encode against its floor: a bare Temporal update whose local activity does nothing.

Both in turn, on one development server, in the same minutes: alone, over many sessions at once,
and beside a backlog that another user's consolidation works through (docs/benchmarks.md).
Run alone: uv run pytest -n 0 -m benchmark tests/benchmarks/test_encode_speed.py -s
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engram import MemoryStore, Settings, Turn
from engram.domain.scope import Scope
from engram.embedded.open import run
from engram.logging import configure_default_logging
from engram.system import new_id, system_clock
from tests.support.bare_sessions import BareSession, bare_sessions

BLOCKS = 5
"""Of each kind, one after the other, so that what the machine does meanwhile meets both."""
ENCODES = 120
"""Of one caller in a block: of 150 in all, the 99th percentile is hardly more than the worst."""
SESSIONS, EACH = 20, 20
"""At once, and the turns of each in a block."""
BACKLOG = 2_000

# The aims, and what is asserted where one is missed, or met on some minutes only: a guard against
# getting slower.
ALONE_AIM, ALONE = 1.5, 2.0
"""The median of one caller, against the floor's."""
ALONE_TAIL = 3.0
"""The 99th percentile, likewise."""
THROUGHPUT_AIM, THROUGHPUT = 0.75, 0.4
"""Of the floor's, over all sessions."""
BESIDE_AIM, BESIDE = 2.0, 4.0
"""The median beside a backlog, against the floor's alone."""
MOVES_AIM, MOVES = 0.5, 0.4
"""The backlog's rate meanwhile, of its rate alone."""

pytestmark = [pytest.mark.benchmark, pytest.mark.slow, pytest.mark.timeout(600)]

Call = Callable[[int, int], Awaitable[object]]
"""One update or encode of a session, by its number and that of the turn."""


@dataclass
class Measured:
    """What each call took alone, in milliseconds, and calls a second of each block at once."""

    alone: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)

    @property
    def p50(self) -> float:
        """The median."""
        return statistics.median(self.alone)

    @property
    def p99(self) -> float:
        """The 99th percentile."""
        return statistics.quantiles(self.alone, n=100)[-1]

    @property
    def rate(self) -> float:
        """Of the quickest block: whatever else the machine does only takes away."""
        return max(self.rates)


async def taken(call: Call, first: int, count: int) -> list[float]:
    """Milliseconds of each of some calls, one after the other."""
    took: list[float] = []
    for number in range(first, first + count):
        began = time.perf_counter()
        await call(0, number)
        took.append((time.perf_counter() - began) * 1e3)
    return took


async def at_once(call: Call, first: int) -> float:
    """Calls a second of all sessions together."""

    async def talk(session: int) -> None:
        for number in range(first, first + EACH):
            await call(session, number)

    began = time.perf_counter()
    await asyncio.gather(*(talk(session) for session in range(SESSIONS)))
    return SESSIONS * EACH / (time.perf_counter() - began)


async def in_turn(floor: Call, encode: Call) -> tuple[Measured, Measured]:
    """Blocks of both, one after the other; the first of each only warms up."""
    measured = Measured(), Measured()
    for call in (floor, encode):
        await taken(call, 0, 10)
        await at_once(call, 10)
    for block in range(BLOCKS):
        first = 100 + block * (ENCODES + EACH)
        for call, of in zip((floor, encode), measured, strict=True):
            of.alone += await taken(call, first, ENCODES)
        for call, of in zip((floor, encode), measured, strict=True):
            of.rates.append(await at_once(call, first + ENCODES))
    return measured


async def backlog(memory: MemoryStore) -> None:
    """Turns of two statements each, stored and not consolidated."""
    await memory.import_turns(
        [
            (
                f"c{n // 50}",
                Turn(content=f"On day {n} we met Ada in Oslo and she likes tea number {n}."),
            )
            for n in range(BACKLOG)
        ],
        consolidate=False,
    )


async def consolidated(memory: MemoryStore) -> float:
    """Turns a second in which the backlog is worked through."""
    began = time.perf_counter()
    report = await memory.consolidate()
    return report.episodes / (time.perf_counter() - began)


async def beside_a_backlog(
    floor: Call, encode: Call, quiet: MemoryStore, busy: MemoryStore
) -> tuple[float, float]:
    """Encode's median against the floor's just before, and how the backlog moves against alone."""
    await backlog(quiet)
    undisturbed = await consolidated(quiet)
    await backlog(busy)
    usual = statistics.median(await taken(floor, 2_000, ENCODES))
    working = asyncio.create_task(consolidated(busy))
    beside: list[float] = []
    while not working.done():
        beside += await taken(encode, 2_000 + len(beside), 10)
    return statistics.median(beside) / usual, await working / undisturbed


async def test_encode_stays_close_to_a_bare_update(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Alone, at once and beside a backlog, against what Temporal alone takes meanwhile."""
    configure_default_logging()
    # Nothing becomes due for consolidation by count while encode is measured.
    settings = Settings.load(data_dir=tmp_path / "data", buffer_turns=500)
    async with run(settings) as running:
        assert running.address is not None
        scope = Scope.of("default", "ada")
        ada = MemoryStore(running.engine, scope, settings, system_clock, new_id)
        async with bare_sessions(running.address, SESSIONS) as bare:

            def floor(session: int, number: int) -> Awaitable[object]:
                return bare[session].execute_update(BareSession.encode, number)

            def encode(session: int, number: int) -> Awaitable[object]:
                return ada.encode(
                    f"In session {session}, line {number} is about the garden.",
                    session_id=f"s{session}",
                )

            least, encodes = await in_turn(floor, encode)
            beside, moves = await beside_a_backlog(
                floor, encode, ada.for_user("quiet"), ada.for_user("busy")
            )
    with capsys.disabled():
        print(  # noqa: T201 - a benchmark says its figures
            f"\nencode {encodes.p50:.1f} / {encodes.p99:.1f} ms, bare {least.p50:.1f} / "
            f"{least.p99:.1f} ms: {encodes.p50 / least.p50:.2f} and "
            f"{encodes.p99 / least.p99:.2f} times; {SESSIONS} sessions {encodes.rate:.0f}/s, bare "
            f"{least.rate:.0f}/s: {encodes.rate / least.rate:.2f}; beside a backlog "
            f"{beside:.2f} times, which moves at {moves:.2f} of its rate"
        )
    assert encodes.p50 <= ALONE * least.p50, f"the aim is {ALONE_AIM}"
    assert encodes.p99 <= ALONE_TAIL * least.p99
    assert encodes.rate >= THROUGHPUT * least.rate, f"the aim is {THROUGHPUT_AIM}"
    assert beside <= BESIDE, f"the aim is {BESIDE_AIM}"
    assert moves >= MOVES, f"the aim is {MOVES_AIM}"
