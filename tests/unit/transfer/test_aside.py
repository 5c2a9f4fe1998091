"""The process beside this one: the same to the last bit, and no harm when it dies."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from engram.embedding.choice import make_embedder
from engram.language.extractor import Extractor
from engram.settings import Settings
from engram.transfer.preparing import HerePreparer, Work
from engram.transfer.subprocess import PreparationSubprocess, _loop, _prepared
from tests.support.clock import NOW

WORK = [
    Work("user: Mail ada@example.org.", None, "Mail ada@example.org.", "user", None, NOW),
    Work(None, None, "I don't use Mongo any more.", "user", "Ada", NOW),
    Work("assistant: Ünïcödé 😀.", "Mail me.", "Ünïcödé 😀.", "assistant", None, NOW),
]


async def test_it_prepares_as_this_process_does_and_may_die() -> None:
    """Before it is ready, through it, and after it was killed: one and the same answer."""
    settings = Settings.load()
    here = HerePreparer(make_embedder("wordllama"), Extractor(settings))
    expected = await here.prepare(WORK)
    assert expected.found
    aside = PreparationSubprocess(settings.phone_region, here, embeds=True)
    try:
        assert await aside.prepare(WORK) == expected
        async with asyncio.timeout(90):
            while not aside.ready:  # noqa: ASYNC110 - another process says so
                await asyncio.sleep(0.02)
        answers = await asyncio.gather(*(aside.prepare(WORK[n % 3 :]) for n in range(6)))
        assert [answer == expected for answer in answers] == [True, False, False] * 2
        assert answers[1].extractions == expected.extractions[1:]
        other = aside.pid
        assert other is not None
        asked = asyncio.create_task(aside.prepare(WORK))
        os.kill(other, signal.SIGKILL)
        assert await asked == expected
        assert aside.pid is None
        assert await aside.prepare(WORK) == expected
    finally:
        await aside.close()


@pytest.mark.slow
@pytest.mark.parametrize("module", ["structlog", "json"])
async def test_it_runs_no_code_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    """What lies beside an export that somebody unpacked is never imported."""
    (tmp_path / f"{module}.py").write_text("open('ran', 'w').close()\nraise SystemExit(1)\n")
    monkeypatch.chdir(tmp_path)
    settings = Settings.load()
    here = HerePreparer(None, Extractor(settings))
    aside = PreparationSubprocess(settings.phone_region, here, embeds=False)
    try:
        await aside.prepare(WORK)
        async with asyncio.timeout(90):
            while not aside.ready:  # noqa: ASYNC110 - another process says so
                await asyncio.sleep(0.02)
    finally:
        await aside.close()
    assert not (tmp_path / "ran").exists()


async def test_who_closes_while_it_starts_leaves_no_process() -> None:
    """Closed at any moment of its start, it is gone, and so is its process."""
    here = HerePreparer(None, Extractor(Settings.load()))
    for pauses in range(6):
        aside = PreparationSubprocess(Settings.load().phone_region, here, embeds=False)
        await aside.prepare(WORK)
        for _ in range(pauses):
            await asyncio.sleep(0)
        async with asyncio.timeout(60):
            await aside.close()
        assert aside.pid is None
        assert len(asyncio.all_tasks()) == 1


def test_all_calls_of_the_other_process_share_a_loop() -> None:
    """A loop of its own, with threads of its own, would be much of what a call costs."""
    _loop.cache_clear()
    try:
        answers = [_prepared(True, "US", tuple(WORK)) for _ in range(2)]
        assert _loop.cache_info().misses == 1
        assert answers[0] == answers[1]
    finally:
        _loop().close()
        _loop.cache_clear()
