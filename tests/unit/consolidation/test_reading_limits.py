"""Turns that the rules give up on: stored, marked, never read again, and nobody else waits."""

from __future__ import annotations

import asyncio
import math
import operator
import os
import pickle
import re
import signal
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest

from engram.agents.requests import ExtractionRequest, TurnView
from engram.agents.rules import answered, extract, load
from engram.aside import CallFailed, CallTookTooLong, ProcessAside
from engram.consolidation.reading import READ_HERE, RULES_FAILED, RULES_TOO_COSTLY
from engram.consolidation.turns import TurnStore
from engram.contracts.session import CallOutcome, EncodeCall, StoreTurnsInput
from engram.domain.memories import Episode, MemoryType
from engram.domain.scope import Scope
from engram.domain.turns import Turn
from engram.embedded.program import wait_until
from engram.errors import ModelRejected
from engram.storage.edge import EdgeRepository
from tests.support.clock import NOW
from tests.support.failing_extractors import Endless, Raising
from tests.support.stores import turn_store, worker_settings

LONG = " Nothing more." * (READ_HERE // 10)


@pytest.fixture
async def aside() -> AsyncIterator[ProcessAside]:
    """A process that gives each call half a second of the processor, on a busy machine as well."""
    made = ProcessAside(0.5, patience=200, load=load)
    yield made
    await made.close()


async def test_what_takes_too_long_is_ended_and_the_next_call_is_answered() -> None:
    """A match without end, an exception and a killed process each end one call, and only it."""
    aside = ProcessAside(0.5, patience=200)
    assert await aside.call(operator.add, 1, 2) == 3
    with pytest.raises(CallTookTooLong):
        await aside.call(re.fullmatch, r"(a|a)*b", "a" * 60)
    with pytest.raises(CallFailed, match="ValueError"):
        await aside.call(int, "secret")
    assert await aside.call(math.sqrt, 9.0) == 3.0
    before = aside.pid
    with pytest.raises(EOFError):
        await aside.call(signal.raise_signal, signal.SIGKILL)
    assert await aside.call(os.getpid) == aside.pid != before
    await aside.close()


async def test_what_cannot_be_sent_shifts_no_later_answer() -> None:
    """A call that fails before it is sent leaves nobody waiting for the next one's answer."""
    aside = ProcessAside()
    assert await aside.call(operator.add, 1, 2) == 3
    with pytest.raises((AttributeError, pickle.PicklingError)):
        await aside.call(operator.add, lambda: 1, 2)
    async with asyncio.timeout(30):
        assert await aside.call(operator.add, 3, 4) == 7
    await aside.close()


async def test_a_process_that_nobody_waits_for_any_more_is_let_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its last caller gave up: it does not hold its memory for ever."""
    aside = ProcessAside()
    assert await aside.call(operator.add, 1, 2) == 3
    monkeypatch.setattr("engram.aside._IDLE", 0.05)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await aside.call(time.sleep, 1)
    assert await wait_until(lambda: aside.pid is None, 30)
    await aside.close()


def wait_for(file: Path) -> None:
    """What a busy machine makes of loading the rules."""
    while not file.exists():
        time.sleep(0.01)


async def test_who_gives_up_while_it_loads_leaves_it_to_the_next_one(tmp_path: Path) -> None:
    """Attempts that end before it is ready begin nothing anew: the process stays the same one."""
    aside = ProcessAside(0.5, patience=200, load=partial(wait_for, tmp_path / "ready"))
    pids = []
    for _ in range(3):
        asked = asyncio.create_task(aside.call(math.sqrt, 9.0))
        while aside.pid is None:  # noqa: ASYNC110 - nothing else tells that it was started
            await asyncio.sleep(0.01)
        pids.append(aside.pid)
        await asyncio.sleep(0.01)
        asked.cancel()
        await asyncio.wait([asked])
    (tmp_path / "ready").touch()
    assert [await aside.call(os.getpid)] * 3 == pids
    await aside.close()


def said(*contents: str) -> StoreTurnsInput:
    """One call with these turns."""
    turns = tuple(
        Turn(message_id=f"m{n}", role="user", content=content, timestamp=NOW)
        for n, content in enumerate(contents)
    )
    return StoreTurnsInput(
        scope=Scope.of("default", f"u-{uuid4().hex[:8]}"),
        now=NOW,
        session_id="s1",
        calls=(EncodeCall(turns=turns),),
        first_sequence=0,
        workflow_id="w",
        run_id="r",
    )


async def kept(
    store: TurnStore, repository: EdgeRepository, request: StoreTurnsInput
) -> tuple[CallOutcome, list[str | None]]:
    """The receipts of storing the turns, and why each is unread, in order."""
    (outcome,) = await store.store(request)
    page = await repository.scroll(request.scope, MemoryType.EPISODIC)
    episodes = sorted((m for m in page.memories if isinstance(m, Episode)), key=lambda e: e.id)
    by_id = {e.id: e.unread.rules if e.unread else None for e in episodes}
    return outcome, [by_id[turn.episode_id] for turn in outcome.turns]


async def test_a_turn_that_the_rules_raise_on_is_stored_without_facts(
    repository: EdgeRepository, caplog: pytest.LogCaptureFixture
) -> None:
    """It is acknowledged and marked; the turns beside it give their facts; no log quotes it."""
    extractor = Raising()
    store = turn_store(repository, worker_settings(), extractor=extractor)
    request = said("A bomb, mail ada@example.org.", "Mail bob@example.org.")
    outcome, why = await kept(store, repository, request)
    assert why == [RULES_FAILED, None]
    assert [len(turn.fact_ids) for turn in outcome.turns] == [0, 1]
    again, why = await kept(store, repository, request)
    assert [turn.episode_id for turn in again.turns] == [turn.episode_id for turn in outcome.turns]
    assert (extractor.asked, why) == (1, [RULES_FAILED, None])
    assert "ada@example.org" not in caplog.text


async def test_a_turn_that_would_be_read_for_ever_is_stored_without_facts(
    repository: EdgeRepository, aside: ProcessAside
) -> None:
    """Reading is ended, the turn marked; a long turn of the same call is read as ever."""
    store = turn_store(repository, worker_settings(), extractor=Endless(), aside=aside)
    request = said(f"A bomb.{LONG}", f"Mail bob@example.org.{LONG}")
    outcome, why = await kept(store, repository, request)
    assert why == [RULES_TOO_COSTLY, None]
    assert [len(turn.fact_ids) for turn in outcome.turns] == [0, 1]


def asked(*contents: str) -> ExtractionRequest:
    """What the rules are asked."""
    turns = tuple(
        TurnView(alias=f"e{n}", role="user", speaker=None, said_at=NOW, content=content)
        for n, content in enumerate(contents)
    )
    return ExtractionRequest(turns=turns)


async def test_rules_answer_alike_here_and_in_the_other_process() -> None:
    """A request that is too long to be read here gives the same answer, word for word."""
    beside = ProcessAside(20, load=load)
    long = [*(f"I live in Oslo.{LONG}" for _ in range(4)), "I like tea."]
    try:
        far = await answered(asked(*long), beside)
        assert beside.pid is not None
        near = await answered(asked(*long))
        assert far == near
        assert "lives in Oslo" in near.model_dump_json()
    finally:
        await beside.close()


async def test_a_request_that_the_rules_raise_on_is_refused_and_not_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What raises would raise again: it counts as turned down, so that its turns are parted."""

    def fails(request: ExtractionRequest) -> None:
        raise KeyError(request.turns[0].content)

    load()
    monkeypatch.setattr("engram.agents.rules.extract", fails)
    with pytest.raises(ModelRejected) as refused:
        await answered(asked("secret"))
    assert refused.value.details["refused"] == "request"
    assert "secret" not in str(refused.value.as_dict())


@pytest.mark.parametrize("speaker", ["x" * 256, "Ada"])
def test_a_long_legal_speaker_and_an_endless_promise_keep_the_batch(speaker: str) -> None:
    """A statement that is too long is left out and counted; the others of the batch stay."""
    said_by = [("I live in Paris.", speaker), ("I II " * 200, speaker), ("I like tea.", None)]
    said_by.insert(1, (f"I promised to send {'~' * 3000} pounds, I said to me and i.", speaker))
    turns = tuple(
        TurnView(alias=f"e{n}", role="user", speaker=who, said_at=NOW, content=content)
        for n, (content, who) in enumerate(said_by)
    )
    answer = extract(ExtractionRequest(turns=turns))
    contents = [one.content for one in answer.statements]
    assert f"{speaker} lives in Paris." in contents
    assert "The user likes tea." in contents


def test_letters_that_only_count_as_others_raise_nothing() -> None:
    """Dotless, dotted and long letters match without regard to case and are in no list."""
    texts = (
        "My \u017fister Ann and my n\u0131ece Eve. I like \u0130 and my\u017felf.",
        "I met your\u017felf.",
    )
    for text in texts:
        turns = tuple(
            TurnView(alias=f"e{n}", role=role, speaker=None, said_at=NOW, content=content)
            for n, (role, content) in enumerate(
                (("assistant", f"So {text} {text}"), ("user", "Yes, exactly."), ("user", text))
            )
        )
        extract(ExtractionRequest(turns=turns))
