"""What a session does when things around it fail."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from temporalio.client import Client

from engram.contracts.session import ConsolidationRequest, EncodeCall, EncodeRequest
from engram.domain.memories import Fact, MemoryType
from engram.domain.scope import Scope
from engram.embedding.offline import OfflineEmbedder
from engram.errors import (
    ModelRejected,
    StorageError,
    StorageUnavailable,
    UnforeseenFailure,
    UnknownFailure,
)
from engram.ports import NewMemory, TextVectors
from engram.storage.edge import EdgeRepository
from engram.workflows import session as session_module
from tests.support.running_session import running_session, turn
from tests.support.workers import Requests


class Refusing(Requests):
    """Consolidation that cannot be asked for, once."""

    async def __call__(self, scope: Scope, request: ConsolidationRequest) -> None:
        """Refuse for good the first time."""
        await super().__call__(scope, request)
        if len(self.seen) == 1:
            raise UnknownFailure("Temporal refused the call (permission_denied).")


async def test_a_trigger_is_not_lost_when_asking_fails(
    temporal_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A final failure to ask for consolidation is asked again; the session goes on."""
    monkeypatch.setattr(session_module, "DISPATCH_AGAIN", timedelta(milliseconds=50))
    async with running_session(temporal_client, requests=Refusing(), in_sandbox=False) as session:
        await session.encode(turn("Remember that I am allergic to peanuts!"))
        await session.gateway.end_session(session.scope, "s1")
        await session.handle.result()
        reasons = [request.reason for request in session.requests.seen]
        assert reasons[0] == "an urgent turn"
        assert len(reasons) >= 2
        assert "session ended" in reasons


async def test_turns_do_not_wait_for_a_refused_trigger(temporal_client: Client) -> None:
    """A run that fills up, while it waits to ask again, gives way; the next one asks."""
    async with running_session(temporal_client, requests=Refusing(), updates_per_run=3) as session:
        await session.encode(turn("Remember that I am allergic to peanuts!"))
        first = (await session.handle.describe()).run_id
        async with asyncio.timeout(20):
            for number in range(4):
                await session.encode(turn(f"text {number}"))
        assert (await session.handle.describe()).run_id != first
        assert len(await session.episodes()) == 5
        await session.gateway.end_session(session.scope, "s1")
        await session.handle.result()
        assert [one.reason for one in session.requests.seen][:2] == ["an urgent turn"] * 2


CONTENT = "the blue teapot"


async def test_no_content_leaves_with_a_failure(
    temporal_client: Client,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What a lower layer quotes reaches neither the caller, nor Temporal, nor the log."""

    async def quoting(*_: object, **__: object) -> None:
        try:
            raise ValueError(f"cannot store {CONTENT}")  # noqa: TRY301 - a cause is staged
        except ValueError as error:
            raise StorageError("The engine refused.") from error

    monkeypatch.setattr(EdgeRepository, "insert", quoting)
    async with running_session(temporal_client) as session:
        with pytest.raises(StorageError, match=r"The engine refused\.") as caught:
            await session.encode(turn(CONTENT))
        assert CONTENT not in str(caught.value)
        history = await session.handle.fetch_history()
        failures = [str(e) for e in history.events if "failure" in str(e)]
        assert all("cannot store" not in failure for failure in failures)
    assert "cannot store" not in caplog.text


async def test_what_raises_again_and_again_is_answered_and_holds_no_session(
    temporal_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An input that always fails unforeseen ends its own call after five attempts in all."""
    store, attempts = EdgeRepository.insert, 0

    async def failing(
        self: EdgeRepository, scope: Scope, memories: Sequence[NewMemory], **options: Any
    ) -> frozenset[str]:
        nonlocal attempts
        if any(CONTENT in one.memory.content for one in memories):
            attempts += 1
            raise KeyError(CONTENT)
        return await store(self, scope, memories, **options)

    monkeypatch.setattr(EdgeRepository, "insert", failing)
    async with running_session(temporal_client) as session:
        with pytest.raises(UnforeseenFailure):
            await session.encode(turn(CONTENT))
        assert 3 <= attempts <= 5
        await session.encode(turn("I like tea."))
        assert [one.content for one in await session.episodes()] == ["I like tea."]
        await session.gateway.end_session(session.scope, "s1")
        await session.handle.result()


async def test_what_nobody_typed_is_retried_and_named_by_its_kind(
    temporal_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An untyped exception becomes a retryable typed one without its message."""
    real, attempts = EdgeRepository.insert, []

    async def flawed(*args: object, **options: object) -> frozenset[str]:
        attempts.append(1)
        if len(attempts) == 1:
            raise KeyError(CONTENT)
        return await real(*args, **options)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(EdgeRepository, "insert", flawed)
    async with running_session(temporal_client) as session:
        reply = await session.encode(turn("hello"))
        assert reply.outcomes[0].error is None
        assert len(attempts) == 2
    assert UnforeseenFailure.retryable


async def test_a_text_that_the_embedder_refuses_fails_its_own_caller_alone(
    temporal_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another caller's turns in the same update are stored; the refused one is told why."""
    embed = OfflineEmbedder.embed_documents

    async def refusing(
        self: OfflineEmbedder, texts: Sequence[str], before: Sequence[str | None] | None = None
    ) -> list[TextVectors]:
        if any("unwelcome" in text for text in texts):
            raise ModelRejected("The embedding model refused the request with status 400.")
        return await embed(self, texts, before)

    monkeypatch.setattr(OfflineEmbedder, "embed_documents", refusing)
    async with running_session(temporal_client) as session:
        calls = tuple(EncodeCall(turns=(turn(text),)) for text in ("fine", "unwelcome", "good"))
        request = EncodeRequest(calls=calls)
        reply = await session.gateway.encode(session.scope, "s1", request)
        errors = [outcome.error["code"] if outcome.error else None for outcome in reply.outcomes]
        assert errors == [None, "model_rejected", None]
        assert [episode.content for episode in await session.episodes()] == ["fine", "good"]


def links(number: int, each: int) -> str:
    """A turn of that many links."""
    return " ".join(f"https://example.org/{number}/{n}" for n in range(each))


async def test_receipts_are_bounded_however_much_turns_state(temporal_client: Client) -> None:
    """All facts are stored; the receipt names fifty, and says how many more there are."""
    async with running_session(temporal_client) as session:
        reply = await session.encode(turn(links(0, 80)))
        (receipt,) = reply.outcomes[0].turns
        assert (len(receipt.fact_ids), receipt.ids_left_out) == (50, 30)
        assert await session.repository.count(session.scope, MemoryType.FACTUAL) == 80
        # The largest update that settings allow.
        assert 500 * len(receipt.model_dump_json()) < 2 * 10**6


@pytest.mark.slow
async def test_an_update_full_of_facts_is_acknowledged(temporal_client: Client) -> None:
    """64 turns of 300 links each: their receipts in full would not pass through Temporal."""
    async with running_session(temporal_client) as session:
        reply = await session.encode(*(turn(links(number, 300)) for number in range(64)))
        assert len(reply.outcomes[0].turns) == 64
        assert await session.repository.count(session.scope, MemoryType.FACTUAL) == 64 * 300
        # Also if the first attempt ran out of time: none is left out of the next consolidation.
        assert all(stored.new for stored in reply.outcomes[0].turns)


async def test_a_test_turn_neither_hides_nor_supports_a_real_fact(temporal_client: Client) -> None:
    """The same address in a test turn and a real one: two memories, each with its own source."""
    async with running_session(temporal_client) as session:
        for is_test, name in ((True, "m1"), (False, "m2")):
            call = EncodeCall(turns=(turn("Mail ada@example.org", name),), is_test=is_test)
            await session.gateway.encode(session.scope, "s1", EncodeRequest(calls=(call,)))
        page = await session.repository.scroll(session.scope, MemoryType.FACTUAL)
        facts = [m for m in page.memories if isinstance(m, Fact)]
        assert sorted(fact.is_test for fact in facts) == [False, True]
        assert all(len(fact.source_episode_ids) == 1 for fact in facts)


async def test_a_refused_call_does_not_claim_its_message_ids(temporal_client: Client) -> None:
    """In one update, a call may use an id that only a refused call has used before it."""
    async with running_session(temporal_client) as session:
        await session.encode(turn("first", "m1"))
        request = EncodeRequest(
            calls=(
                EncodeCall(turns=(turn("never stored", "m2"), turn("other", "m1"))),
                EncodeCall(turns=(turn("stored", "m2"),)),
            )
        )
        refused, accepted = (await session.gateway.encode(session.scope, "s1", request)).outcomes
        assert refused.error is not None
        assert accepted.error is None
        assert [e.content for e in await session.episodes()] == ["first", "stored"]


async def test_who_waits_in_vain_hears_what_the_turn_waits_for(
    temporal_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When patience is over, the error is that of the store and not one about Temporal."""

    async def full(*_: object, **__: object) -> None:
        raise StorageUnavailable("The disk of the store has 8 MB left.")

    monkeypatch.setattr(EdgeRepository, "insert", full)
    async with running_session(temporal_client, encode_timeout=timedelta(seconds=8)) as session:
        with pytest.raises(StorageUnavailable, match="8 MB left"):
            await session.encode(turn(CONTENT))
        monkeypatch.undo()
