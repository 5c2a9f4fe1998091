"""Consolidation with language models over HTTP: whatever a provider answers, memory stays sound."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias

import pydantic_ai.models
import pytest
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

import engram
from engram.agents.extraction import EXTRACTION_VERSION, ExtractionAgent
from engram.agents.models import make_model
from engram.agents.requests import ExtractionRequest, read_prompt
from engram.contracts import names
from engram.contracts.consolidation import ConsolidationReport
from engram.contracts.messages import ModelSpent
from engram.domain.learning import LearningRules
from engram.domain.memories import STORED_TYPES, Category, Episode, MemoryStatus
from engram.errors import EngramError, ModelAnswerUnusable, ModelRejected, ModelUnavailable
from engram.operations.learning import LearningTrial
from engram.ports import MemoryRepository
from engram.settings import Settings
from engram.temporal.gateway import SpendingReader
from tests.support import cli
from tests.support.consolidation_workers import Memory, consolidating, current, day
from tests.support.edge_stores import borrowed_store
from tests.support.model_server import (
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    Asked,
    Provider,
    Reply,
    answering,
    failing,
    provider,
)
from tests.support.reconciliation import said
from tests.support.workers import time_skipping

CHAT, RESPONSES = "openai-chat:gpt-5-mini", "openai:gpt-5-mini"
KEY = "sk-test-of-our-own"
KNOWN = {"Ada lives in Lisbon.", "Ada works at Rise.", "Ada is allergic to nuts."}
Opener: TypeAlias = Callable[..., AbstractAsyncContextManager[Memory]]


def stating(content: str, *, source: str = "e1", quote: str = "", **more: Any) -> dict[str, Any]:
    """One statement as a language model writes it."""
    quotes = {"quotes": [quote]} if quote else {}
    return {"sources": [source], "content": content, "confidence": 0.9, **quotes, **more}


def slot(predicate: str, thing: str, **more: Any) -> dict[str, Any]:
    """The slot of a statement about the speaker."""
    return {"subject": "user", "predicate": predicate, "object": thing, **more}


def answer(*statements: dict[str, Any]) -> Reply:
    """A well-formed answer."""
    return answering({"reasoning": "read", "statements": list(statements)})


LISBON = stating("Ada lives in Lisbon.", quote="I live in Lisbon", **slot("lives in", "Lisbon"))
RISE = stating("Ada works at Rise.", quote="I work at Rise", **slot("works at", "Rise"))
NUTS = stating("Ada is allergic to nuts.", quote="nuts", **slot("is allergic to", "nuts"))
HELLO = stating("Ada says hello.", quote="Hello there")
TEA = stating("Ada likes tea.", quote="I like tea", **slot("likes", "tea"))


@pytest.fixture(autouse=True)
def _requests_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the loopback, that is; everywhere else in the tests they are not."""
    monkeypatch.setattr(pydantic_ai.models, "ALLOW_MODEL_REQUESTS", True)


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Provider]:
    """The provider, and its address where the provider's client looks for it."""
    async with provider() as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        yield running


@pytest.fixture
def opened(
    temporal_client: Client, repository: MemoryRepository, settings: Settings, server: Provider
) -> Opener:
    """A user with a few things known, behind a model of the provider."""

    @asynccontextmanager
    async def opening(spec: str = CHAT, **changes: Any) -> AsyncIterator[Memory]:
        changed = settings.model_copy(update=changes)
        model = make_model(spec)
        async with consolidating(temporal_client, repository, changed, model=model) as memory:
            server.script(answer(LISBON, RISE, NUTS))
            await memory.say(("I live in Lisbon, I work at Rise, nuts kill me.", day(1)))
            assert (await memory.consolidate()).stored == len(KNOWN)
            server.asked.clear()
            yield memory

    return opening


async def points(memory: Memory) -> dict[str, str]:
    """Every stored point with all that it says; not that reading a turn was refused."""
    found: dict[str, str] = {}
    for kind in STORED_TYPES:
        page = await memory.repository.scroll(memory.scope, kind, limit=500)
        noted = {"unread", "revision", "write_id"}
        found |= {
            m.id: m.model_dump_json(exclude=noted if isinstance(m, Episode) else None)
            for m in page.memories
        }
    return found


async def waiting(memory: Memory) -> int:
    """Episodes that are still to be consolidated."""
    return sum(episode.consolidated_at is None for episode in await memory.episodes())


async def refused(memory: Memory) -> ApplicationError:
    """The typed failure with which consolidating ends; all that is stored stays as it was."""
    before, due = await points(memory), await waiting(memory)
    with pytest.raises(WorkflowUpdateFailedError) as failed:
        await memory.consolidate()
    assert isinstance(failed.value.cause, ApplicationError)
    assert await points(memory) == before
    assert await waiting(memory) == due > 0
    return failed.value.cause


CUT_OFF = Reply(arguments='{"reasoning": "re', cut_off=True)
REFUSAL = Reply(refusal="I cannot help with that.")


@pytest.mark.parametrize("spec", [CHAT, RESPONSES])
@pytest.mark.parametrize(
    ("reply", "error", "details"),
    [
        (CUT_OFF, ModelRejected, {"refused": "request", "cut_off": True}),
        (REFUSAL, ModelRejected, {"refused": "request"}),
        (Reply(hollow=True), ModelAnswerUnusable, {}),
        (failing(400), ModelRejected, {"refused": "request", "status": 400}),
        (failing(401), ModelRejected, {"refused": "account", "status": 401}),
        (failing(404), ModelRejected, {"refused": "account", "status": 404}),
        (failing(429, retry_after="7"), ModelUnavailable, {"retry_after": 7.0}),
        (failing(429, retry_after_ms="1500"), ModelUnavailable, {"retry_after": 1.5}),
        (failing(500), ModelUnavailable, {}),
        (failing(503), ModelUnavailable, {}),
    ],
)
async def test_each_failure_of_a_provider_is_one_request_and_a_typed_error(
    server: Provider, spec: str, reply: Reply, error: type[EngramError], details: dict[str, Any]
) -> None:
    """The same through both of OpenAI's interfaces; no client tries again by itself."""
    server.script(reply)
    with pytest.raises(error) as failed:
        await ExtractionAgent(make_model(spec)).extract([said(1)])
    assert failed.value.details == details
    assert len(server.asked) == 1


async def test_what_is_sent_is_the_turn_the_instructions_and_nothing_that_identifies(
    opened: Opener, server: Provider
) -> None:
    """The key, one JSON document, no ids of users, sessions or episodes; and one request."""
    async with opened() as memory:
        server.script(answer(TEA))
        await memory.say(("I like tea.", day(2)), session="secret-session")
        assert (await memory.consolidate()).stored == 1
        (asked,) = server.read
        assert asked.headers["authorization"] == f"Bearer {KEY}"
        assert asked.path == "/v1/chat/completions"
        (said,) = [m["content"] for m in asked.body["messages"] if m["role"] == "user"]
        request = read_prompt(said)
        assert isinstance(request, ExtractionRequest)
        assert [turn.content for turn in request.turns] == ["I like tea."]
        ids = [memory.scope.user_id, "secret-session", *(e.id for e in await memory.episodes())]
        assert [identity for identity in ids if identity in asked.text] == []


CLINIC: dict[str, Any] = {
    "instructions": "Never miss what somebody takes.",
    "categories": [{"name": "medication", "category": "principle"}],
    "examples": [{"turn": "A pill a day.", "statements": ["The user takes a pill a day."]}],
    "links": [{"first": "A pill.", "second": "A cold.", "kind": "causal"}],
}


@pytest.mark.parametrize("spec", [CHAT, RESPONSES])
async def test_what_a_namespace_asks_to_learn_is_sent_and_noted_on_what_was_learnt(
    opened: Opener, server: Provider, spec: str
) -> None:
    """With both kinds of requests; its version is in the provenance, its category on the note."""
    learning = LearningRules.model_validate(CLINIC)
    async with opened(spec, learning_by_namespace={"default": learning, "x": LearningRules()}) as m:
        server.script(answer({**TEA, "tags": ["Medication"]}))
        await m.say(("I like tea.", day(2)))
        await m.consolidate()
        (read,) = server.read
        assert "never miss what" in read.text.casefold()
        assert "A pill a day." in read.text
        assert "A cold." not in read.text
        linking = [one.text for one in server.asked if one.links]
        assert linking
        assert all("A cold." in text and "A pill a day." not in text for text in linking)
        (tea,) = [one for one in await m.semantic() if "tea" in one.content]
        assert tea.provenance.instructions_version == f"{EXTRACTION_VERSION}+{learning.version}"
        assert (tea.category, tea.tags) == (Category.PRINCIPLE, ("medication",))


async def test_another_namespace_sees_nothing_of_what_one_asks_to_learn(
    opened: Opener, server: Provider
) -> None:
    """Neither what is asked nor what is noted says anything of it."""
    learning = {"clinic": LearningRules.model_validate(CLINIC)}
    async with opened(learning_by_namespace=learning) as memory:
        server.script(answer(TEA))
        await memory.say(("I like tea.", day(2)))
        await memory.consolidate()
        assert [one.text for one in server.asked if "learning" in one.text.casefold()] == []
        (tea,) = [one for one in await memory.semantic() if "tea" in one.content]
        assert tea.provenance.instructions_version == EXTRACTION_VERSION


@pytest.mark.long
async def test_an_embedded_memory_learns_as_the_settings_of_its_worker_ask(
    server: Provider, tmp_path: Path
) -> None:
    """Set for its namespace, it reaches the model and the provenance without another word."""
    asked = {"clinic": CLINIC, "shop": {"instructions": "Sizes only."}}
    settings = Settings.load(model=CHAT, namespace="clinic", learning_by_namespace=asked)
    server.script(answer(TEA))
    async with engram.open(tmp_path, user_id="ada", settings=settings) as memory:
        await memory.encode("I like tea.", session_id="s1")
        await memory.consolidate()
        known = (await memory.list(memory_types=["semantic"], forms=["statement"])).memories
    (tea,) = [one for one in known if "likes tea" in one.content]
    version = LearningRules.model_validate(CLINIC).version
    assert tea.provenance.instructions_version == f"{EXTRACTION_VERSION}+{version}"
    assert "Never miss" in server.read[0].text
    assert "Sizes only" not in server.read[0].text


async def test_what_a_namespace_would_learn_can_be_tried_over_given_turns(
    server: Provider, tmp_path: Path
) -> None:
    """The command asks with and without, shows what differs, and makes not even a data folder."""
    (tmp_path / "clinic.json").write_text(json.dumps(CLINIC))
    lines = [{"content": "I like tea. I take a pill.", "timestamp": "2024-05-01T10:00:00Z"}]
    (tmp_path / "turns.jsonl").write_text("\n".join(map(json.dumps, lines)))
    pill = stating("Ada takes a pill.", quote="I take a pill", tags=["medication"])
    server.script(answer(pill, TEA), answer(TEA, stating("Ada says hello.")))
    folder = tmp_path / "memory"
    asking = ["test", "learning", str(tmp_path / "turns.jsonl")]
    given = ["--learning", str(tmp_path / "clinic.json")]
    env = {"ENGRAM_MODEL": CHAT, "ENGRAM_DATA_DIR": str(folder)}
    done = await asyncio.to_thread(cli.engram, *asking, *given, env=env)
    assert done.code == 0, done.stderr
    first, *shown, last = done.stdout.splitlines()
    assert LearningRules.model_validate(CLINIC).version in first
    assert shown == [
        "+ Ada takes a pill.  (principle, medication)",
        "  Ada likes tea.  (fact)",
        "- Ada says hello.",
    ]
    assert last == "1 turns read. Nothing was stored."
    assert ["Never miss" in one.text for one in server.asked] == [True, False]
    assert not folder.exists()
    server.script(answer(TEA))
    plain = await asyncio.to_thread(cli.engram, *asking, "--json", env=env)
    tried = LearningTrial.model_validate_json(plain.stdout)
    assert (tried.version, tried.not_followed, tried.without) == (None, (), ())
    assert [one.quotes for one in tried.learnt] == [("I like tea",)]
    assert len(server.asked) == 1


@pytest.mark.parametrize("spec", [CHAT, RESPONSES])
async def test_a_valid_answer_becomes_knowledge(
    opened: Opener, server: Provider, spec: str
) -> None:
    """Through both of OpenAI's interfaces, with where it comes from and what it cost."""
    async with opened(spec) as memory:
        server.script(answer(TEA))
        await memory.say(("I like tea.", day(2)), session="s2")
        report = await memory.consolidate()
        assert current(await memory.semantic()) == {*KNOWN, "Ada likes tea."}
        (tea,) = [m for m in await memory.semantic() if "tea" in m.content]
        assert tea.provenance.model == "openai:gpt-5-mini"
        assert (report.input_tokens, report.output_tokens) == (2 * INPUT_TOKENS, 2 * OUTPUT_TOKENS)
        # 0.25 and 2 dollars for a million tokens; no price list changes what was paid.
        assert report.cost_usd == pytest.approx(2 * (INPUT_TOKENS * 0.25 + OUTPUT_TOKENS * 2) / 1e6)
        (spent,) = report.models
        assert (spent.requests, spent.failed_requests, spent.attempts) == (2, 0, 2)


@pytest.mark.parametrize(
    "wrong",
    [
        Reply(arguments='{"reasoning": "read", "statements": [{"sources": ["e1"'),
        answering({"statements": "I like tea."}),
        answer(stating("Ada likes tea.", source="e7", quote="I like tea", **slot("likes", "tea"))),
    ],
    ids=["malformed", "another-form", "unknown-alias"],
)
async def test_an_answer_in_another_form_is_mended(
    opened: Opener, server: Provider, wrong: Reply
) -> None:
    """The model is told what was wrong, in the same attempt, and its second answer counts."""
    async with opened() as memory:
        server.script(wrong, answer(TEA))
        await memory.say(("I like tea.", day(2)), session="s2")
        report = await memory.consolidate()
        assert (report.stored, report.refused, report.failures) == (1, 0, ())
        assert len(server.read) == 2
        assert len(server.read[1].body["messages"]) > len(server.read[0].body["messages"])
        # What the answer that could not be used cost is counted as well.
        assert report.models[0].input_tokens == 3 * INPUT_TOKENS
        assert report.models[0].attempts == 2


async def test_a_model_that_cannot_mend_its_answer_leaves_memory_as_it_was(
    opened: Opener, server: Provider
) -> None:
    """Three attempts of three requests, then the typed failure; the turn stays due."""
    async with opened() as memory:
        server.script(Reply(arguments="{{"))
        await memory.say(("I like tea.", day(2)), session="s2")
        error = await refused(memory)
        assert error.type == ModelAnswerUnusable.code
        assert len(server.read) == 9
        server.script(answer(TEA))
        assert (await memory.consolidate()).stored == 1


async def test_a_model_that_answers_nothing_in_the_asked_form_is_given_up(
    opened: Opener, server: Provider
) -> None:
    """After three turns for which no answer could be had, the others are not paid for."""
    async with opened() as memory:
        turns = [(f"I like tea number {n}.", day(2).replace(minute=n)) for n in range(20)]
        await memory.say(*turns, session="s2")
        server.script(Reply(arguments="{{"))
        error = await refused(memory)
        assert error.type == ModelAnswerUnusable.code
        # Of 20, 10, 5, 2, 3 and 2 turns once, of three single ones three times; two mendings each.
        assert len(server.read) == 3 * (6 + 3 * 3)
        server.script(answer(TEA))
        assert (await memory.consolidate()).episodes == len(turns)


async def test_a_turn_that_no_answer_can_be_had_for_keeps_nothing_from_the_others(
    opened: Opener, server: Provider
) -> None:
    """Down to the one turn whose answers are in no form; all that are beside it are read."""
    async with opened() as memory:
        turns = [(f"I like tea number {n}.", day(2).replace(minute=n)) for n in range(8)]
        await memory.say(("Poison.", day(2).replace(hour=1)), *turns, session="s2")
        script = server.reply

        def reply(asked: Asked) -> Reply:
            return Reply(arguments="{{") if "Poison." in _turns(asked) else script(asked)

        server.reply = reply  # type: ignore[method-assign]  # it answers by what it is asked
        server.script(answer(TEA))
        report = await memory.consolidate()
        assert (report.episodes, report.refused) == (len(turns), 1)


def _turns(asked: Asked) -> list[str]:
    (prompt,) = [m["content"] for m in asked.body["messages"] if m["role"] == "user"][:1]
    return [turn["content"] for turn in json.loads(prompt).get("turns", ())]


async def test_an_answer_that_was_cut_off_is_asked_for_in_halves(
    opened: Opener, server: Provider
) -> None:
    """Asking the same again would be cut off again: each half is asked for once."""
    async with opened(RESPONSES) as memory:
        whole = answer(TEA).arguments
        rain = stating("Ada likes rain.", quote="I like rain", **slot("likes", "rain"))
        server.script(Reply(arguments=whole[:60], cut_off=True), answer(TEA), answer(rain))
        await memory.say(("I like tea.", day(2)), ("I like rain.", day(3)), session="s2")
        report = await memory.consolidate()
        assert (report.episodes, report.stored, report.refused) == (2, 2, 0)
        assert len(server.read) == 3
        assert report.models[0].failed_attempts == 1


async def test_a_refusal_is_final_for_its_turn_and_for_no_other(
    opened: Opener, server: Provider
) -> None:
    """The turn that the model will not read stays due; what is beside it becomes known."""
    async with opened() as memory:
        await memory.say(("Something terrible.", day(2)), session="s2")
        server.script(REFUSAL)
        error = await refused(memory)
        assert error.type == ModelRejected.code
        assert "terrible" not in error.message
        assert len(server.read) == 1
        server.script(REFUSAL, answer(TEA))
        await memory.say(("I like tea.", day(3)), session="s3")
        report = await memory.consolidate()
        assert (report.stored, report.refused, report.remaining) == (1, 1, True)
        assert await waiting(memory) == 1


async def test_a_refused_key_is_asked_once(opened: Opener, server: Provider) -> None:
    """No retry by anybody, a typed failure, and memory as it was; the next request works."""
    async with opened() as memory:
        server.script(failing(401))
        await memory.say(("I like tea.", day(2)), session="s2")
        error = await refused(memory)
        assert error.type == ModelRejected.code
        assert error.details[0]["details"]["refused"] == "account"
        assert len(server.asked) == 1
        server.script(answer(TEA))
        assert (await memory.consolidate()).stored == 1


async def test_a_rate_limit_is_waited_for_as_long_as_the_provider_says(
    opened: Opener, server: Provider
) -> None:
    """429 with a delay of two seconds, where our own first pause would be one."""
    async with opened() as memory:
        server.script(failing(429, retry_after="2"), answer(TEA))
        await memory.say(("I like tea.", day(2)), session="s2")
        assert (await memory.consolidate()).stored == 1
        first, second = server.read
        assert second.at - first.at >= 2.0


async def test_a_fault_of_the_server_is_tried_again_by_temporal_alone(
    opened: Opener, server: Provider
) -> None:
    """Each 500 is one request: the provider's own client does not try again behind our back."""
    async with opened() as memory:
        server.script(failing(500), answer(TEA))
        await memory.say(("I like tea.", day(2)), session="s2")
        report = await memory.consolidate()
        assert (report.stored, report.failures) == (1, ())
        assert len(server.read) == 2
        assert server.read[1].at - server.read[0].at >= 1.0
        (spent,) = report.models
        assert (spent.requests, spent.failed_requests) == (3, 1)
        assert (spent.attempts, spent.failed_attempts) == (3, 1)


async def test_a_provider_that_hangs_is_given_up_and_asked_again(
    opened: Opener, server: Provider
) -> None:
    """Past the time limit the attempt ends with a typed error, is counted, and made again."""
    async with opened(model_timeout=timedelta(seconds=1)) as memory:
        server.script(Reply(hangs=True), answer(TEA))
        await memory.say(("I like tea.", day(2)), session="s2")
        report = await memory.consolidate()
        assert report.stored == 1
        (spent,) = report.models
        assert (spent.failed_requests, spent.failed_attempts) == (1, 1)


async def test_faults_that_do_not_end_leave_memory_as_it_was(
    server: Provider, settings: Settings
) -> None:
    """After nine attempts the pass stops with a typed failure, and nothing has changed."""
    async with (
        time_skipping([names.USER_ATTRIBUTE, names.STAGE_ATTRIBUTE]) as environment,
        borrowed_store() as repository,
        consolidating(environment.client, repository, settings, model=make_model(CHAT)) as memory,
    ):
        server.script(failing(503))
        await memory.say(("I like tea.", day(2)), session="s2")
        before = await points(memory)
        handle = await memory.request("session ended")
        report: ConsolidationReport = await handle.result()
        assert {failure.code for failure in report.failures} == {ModelUnavailable.code}
        assert len(server.asked) == 9 * report.passes
        assert await points(memory) == before
        (spent,) = report.models
        assert spent.requests == spent.failed_requests == len(server.asked)
        assert spent.attempts == spent.failed_attempts == len(server.asked)


async def test_a_quotation_that_nobody_said_proves_nothing(
    opened: Opener, server: Provider
) -> None:
    """The model is sent back; what it still cannot quote is no evidence, and not verified."""
    async with opened() as memory:
        invented = stating("Ada likes rain.", quote="I adore the rain", **slot("likes", "rain"))
        server.script(answer(TEA, invented))
        await memory.say(("I like tea.", day(2)), session="s2")
        await memory.consolidate()
        known = {m.content: m for m in await memory.semantic()}
        assert [e.words for e in known["Ada likes tea."].evidence] == ["I like tea"]
        rain = known.get("Ada likes rain.")
        assert rain is None or rain.evidence == ()


async def test_an_answer_that_retires_everything_retires_nothing(
    opened: Opener, server: Provider
) -> None:
    """Orders in fields that there are not, judgements of all that is shown: nothing ends."""
    async with opened() as memory:
        before = {m.id for m in await memory.semantic()}
        orders = {"retire": ["m1", "m2", "m3"], "forget": "all", "pruned": ["m1"]}
        server.script(answering({"reasoning": "all", "statements": [HELLO], **orders}))
        server.linkings = [answering(_retiring_everything())] * 3
        await memory.say(("Hello there.", day(2)), session="s2")
        await memory.consolidate()
        assert len(server.asked) > len(server.read)
        now = {m.id: m for m in await memory.semantic()}
        assert before <= now.keys()
        assert {now[known].status for known in before} == {MemoryStatus.ACTIVE}


@pytest.mark.parametrize("quote", ["", "Hello there"], ids=["without words", "with other words"])
async def test_an_answer_cannot_end_what_its_turn_says_nothing_about(
    opened: Opener, server: Provider, quote: str
) -> None:
    """A model that ends or replaces everything on the strength of "Hello" changes nothing."""
    async with opened() as memory:
        before = {m.id for m in await memory.semantic()}
        ended = [
            stating("Ada left Lisbon.", quote=quote, **slot("lives in", "Lisbon", holds=False)),
            stating("Ada works at Moor.", quote=quote, **slot("works at", "Moor", begins=True)),
            stating("It is over.", quote=quote, **slot("is allergic to", "", holds=False)),
        ]
        server.script(answer(*ended))
        await memory.say(("Hello there.", day(2)), session="s2")
        await memory.consolidate()
        now = {m.id: m for m in await memory.semantic()}
        assert {now[known].status for known in before} == {MemoryStatus.ACTIVE}


def _retiring_everything() -> dict[str, Any]:
    pairs = [("m1", f"m{number}") for number in range(2, 5)]
    decisions = [
        {"newer": a, "older": b, "relation": "updates", "confidence": 1.0, "why": "said so"}
        for a, b in pairs
    ]
    return {
        "reasoning": "all of it",
        "links": [],
        "pruned": ["m1", "m2", "m3", "m4"],
        "decisions": decisions,
        "confidence": 1.0,
    }


async def test_usage_is_summed_over_runs_and_failures(
    opened: Opener, server: Provider, temporal_client: Client
) -> None:
    """What a user's memory took is the sum of its runs, failed ones included, and of no other's."""
    async with opened() as memory:
        await memory.say(("I like tea.", day(2)), session="s2")
        server.script(failing(401))
        await refused(memory)
        server.script(Reply(arguments="{"), answer(TEA))
        await memory.consolidate()
        reader = SpendingReader(temporal_client)
        expected = ModelSpent(
            model="openai:gpt-5-mini",
            attempts=5,
            failed_attempts=1,
            # To extract and to link, then the refused one, one that was mended, and both again.
            requests=6,
            failed_requests=1,
            input_tokens=5 * INPUT_TOKENS,
            output_tokens=5 * OUTPUT_TOKENS,
            cost_usd=5 * (INPUT_TOKENS * 0.25 + OUTPUT_TOKENS * 2) / 1e6,
        )
        found = await reader.of(memory.scope)
        while found.attempts < expected.attempts:
            # Temporal's listings follow a moment later.
            found = await reader.of(memory.scope)
        (spent,) = found.models
        assert spent.cost_usd == pytest.approx(expected.cost_usd)
        assert spent.model_copy(update={"cost_usd": expected.cost_usd}) == expected
        assert (found.requests, found.runs >= 1, found.since is None) == (6, True, False)
        stranger = memory.scope.model_copy(update={"user_id": "stranger"})
        assert (await reader.of(stranger)).requests == 0
