"""What every request gets and leaves: an id, one line in the log, bounds; and what health tells."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import re
from collections.abc import AsyncIterator
from datetime import timedelta

import httpx
import pytest
import structlog
from fastapi import FastAPI
from structlog.typing import EventDict

from engram.domain.access import Access
from engram.domain.turns import ROLES
from engram.errors import (
    EngramError,
    LostUpdate,
    ModelUnavailable,
    StorageUnavailable,
    TemporalNotSetUp,
    TemporalUnavailable,
    error_codes,
    error_from_dict,
)
from engram.recall.request import RecallRequest
from engram.server.app import Problem
from engram.server.keys import KeyRing
from engram.server.middleware import ByKey, status_of
from engram.server.routes import ReadinessCheck
from engram.server.run import public_app
from engram.settings import Settings
from tests.support.fake_engine import FakeEngine
from tests.support.key_maker import KeyMaker, bearer
from tests.support.page_makers import DOCS

USER = "/v1/namespaces/default/users/ada"
SECRET = "marmalade"  # noqa: S105 - content of a memory, no password


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("abc-123.X_y", True),
        ("x" * 128, True),
        ("x" * 129, False),
        ("", False),
        ("a b", False),
        ("a\tb", False),
        ("<script>", False),
    ],
)
async def test_every_answer_has_an_id(
    web: httpx.AsyncClient, key_maker: KeyMaker, given: str, kept: bool
) -> None:
    """A well-formed one is taken over, any other replaced; refusals and problems carry it too."""
    for headers in ({}, bearer(key_maker.token())):
        answer = await web.get(f"{USER}/memories/none", headers={"X-Request-ID": given, **headers})
        name = answer.headers["x-request-id"]
        assert (name == given) is kept
        assert len(name) >= 8
        assert answer.json()["request_id"] == name
        key_maker.file.revoke("key", key_maker.now)


async def test_the_log_has_the_id_and_nothing_of_what_was_said(
    web: httpx.AsyncClient, key_maker: KeyMaker, fake: FakeEngine, lines: list[EventDict]
) -> None:
    """One line: method, documented address, status, time and key; never ids, words or tokens."""
    token = key_maker.token("laptop")

    async def talkative(**_: bool) -> None:
        structlog.get_logger("engram.test").info("at work")

    fake.check = talkative  # type: ignore[method-assign] # stands for whatever logs while it works
    headers = {"X-Request-ID": "request-1", **bearer(token)}
    turns = {"turns": [{"content": f"The {SECRET} is hidden."}]}
    await web.post(f"{USER}/sessions/s-{SECRET}/turns", json=turns, headers=headers)
    await web.post(f"{USER}/recall?q={SECRET}", json={"query": SECRET}, headers=headers)
    await web.get(f"{USER}/memories/{SECRET}", headers=headers)
    await web.get("/v1/ready", headers=headers)
    await web.get(f"/{SECRET}", headers={"Authorization": "Bearer engram_wrong"})
    told = [line for line in lines if line["event"] == "answered"]
    assert [(line["method"], line["status"], line["key"]) for line in told] == [
        ("POST", 200, "laptop"),
        ("POST", 422, "laptop"),
        ("GET", 404, "laptop"),
        ("GET", 200, "laptop"),
        ("GET", 401, None),
    ]
    assert told[0]["route"].endswith("/users/{user_id}/sessions/{session_id}/turns")
    assert all(line["ms"] >= 0 for line in told)
    assert {line["request_id"] for line in lines[:-1]} == {"request-1"}
    assert "at work" in {line["event"] for line in lines}
    # The last request brought no id; one that is made may hold any letters, "ada" among them.
    said = str([{**line, "request_id": None} for line in lines])
    assert not any(part in said for part in (SECRET, token, "wrong", "ada"))
    assert structlog.contextvars.get_contextvars() == {}


async def test_a_key_that_asks_too_often_waits(
    fake: FakeEngine, settings: Settings, key_maker: KeyMaker, lines: list[EventDict]
) -> None:
    """429 with Retry-After past the rate; other keys and the open addresses go on."""
    app = public_app(
        fake, settings.model_copy(update={"http_requests_per_second": 5}), key_maker.clock
    )
    quick, other = key_maker.token("quick"), key_maker.token("other")
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://localhost"
    ) as web:
        answers = [await web.get(f"{USER}/stats", headers=bearer(quick)) for _ in range(30)]
        beside = await web.get(f"{USER}/stats", headers=bearer(other))
        unlocked = await web.get("/v1/health")
    refused = [answer for answer in answers if answer.status_code == 429]
    assert 30 - len(refused) >= 5
    assert [line["key"] for line in lines if line.get("status") == 429] == ["quick"] * len(refused)
    assert refused
    for answer in refused:
        assert answer.json()["code"] == "too_many_requests"
        assert answer.json()["retryable"] is True
        assert int(answer.headers["retry-after"]) >= 1
    assert (beside.status_code, unlocked.status_code) == (200, 200)


async def test_health_tells_who_answers_to_those_with_a_key(
    web: httpx.AsyncClient, key_maker: KeyMaker
) -> None:
    """Without a key the version and no more; with one the process and its Temporal UI."""
    nobody = (await web.get("/v1/health")).json()
    assert nobody.pop("version")
    assert set(nobody.values()) == {None}
    somebody = (await web.get("/v1/health", headers=bearer(key_maker.token()))).json()
    assert somebody["pid"] == os.getpid()
    assert somebody["workflow_url"].startswith("http://ui.test:1/")


@pytest.fixture
async def fresh(
    fake: FakeEngine, settings: Settings, key_maker: KeyMaker
) -> AsyncIterator[httpx.AsyncClient]:
    """Of an application that nobody has asked whether it is ready."""
    app = public_app(fake, settings, key_maker.clock)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://localhost"
    ) as client:
        yield client


@pytest.fixture
async def impatient(
    fake: FakeEngine, settings: Settings, key_maker: KeyMaker
) -> AsyncIterator[httpx.AsyncClient]:
    """Of an application that waits for nobody, and asks each time."""
    readiness = ReadinessCheck(holds=0, patience=0.05)
    app = public_app(fake, settings, key_maker.clock, readiness)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://localhost"
    ) as client:
        yield client


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (TemporalUnavailable("No server at 10.0.0.7:7233."), "temporal_unavailable"),
        (TemporalNotSetUp("The namespace of 10.0.0.7 is gone."), "temporal_unavailable"),
        (StorageUnavailable("10.0.0.7:6333 is away."), "storage_unavailable"),
        (LostUpdate("10.0.0.7 is odd."), "storage_unavailable"),
        (None, "storage_unavailable"),
    ],
    ids=["temporal", "namespace", "store", "odd", "silent"],
)
async def test_readiness_follows_what_is_behind(
    impatient: httpx.AsyncClient, fake: FakeEngine, failure: EngramError | None, code: str
) -> None:
    """503 while Temporal or the store is away or silent, without their addresses; then 200."""
    fake.failure, fake.delay = failure, 0 if failure else 5
    answer = await impatient.get("/v1/ready")
    assert (answer.status_code, answer.json()["code"]) == (503, code)
    assert "10.0.0.7" not in answer.text
    assert (await impatient.get("/v1/health")).status_code == 200
    fake.failure, fake.delay = None, 0
    assert (await impatient.get("/v1/ready")).json() == {"temporal": "answers", "store": "answers"}


async def test_what_is_silent_is_named(
    impatient: httpx.AsyncClient, fake: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the store answers and Temporal does not, it is Temporal that an operator looks at."""

    async def check(*, store_only: bool = False) -> None:
        await asyncio.sleep(0 if store_only else 5)

    monkeypatch.setattr(fake, "check", check)
    answer = await impatient.get("/v1/ready")
    assert (answer.status_code, answer.json()["code"]) == (503, "temporal_unavailable")
    assert (await impatient.get("/v1/ready?only=store")).status_code == 200


async def test_reading_is_ready_without_temporal(
    fresh: httpx.AsyncClient, fake: FakeEngine
) -> None:
    """Who asks for the store alone gets 200 while Temporal is away, and 503 with the store."""
    fake.failure = TemporalUnavailable("No server.")
    answer = await fresh.get("/v1/ready", params={"only": "store"})
    assert (answer.status_code, answer.json()) == (200, {"store": "answers"})
    assert (await fresh.get("/v1/ready")).status_code == 503
    assert (await fresh.get("/v1/ready", params={"only": "temporal"})).status_code == 422
    for address in ("/v1/ready?only=store&x=1", "/v1/ready?onyl=store", "/v1/health?x=1"):
        assert (await fresh.get(address)).status_code == 422


async def test_reading_is_not_ready_without_the_store(
    impatient: httpx.AsyncClient, fake: FakeEngine
) -> None:
    """Nor is it when the store is silent."""
    fake.failure = StorageUnavailable("Away.")
    assert (await impatient.get("/v1/ready?only=store")).status_code == 503
    fake.failure, fake.delay = None, 5
    assert (await impatient.head("/v1/ready?only=store")).status_code == 503


async def test_readiness_is_asked_for_once_a_second(
    fresh: httpx.AsyncClient, fake: FakeEngine
) -> None:
    """However many ask, what is behind is asked once: the address is open to everybody."""
    asked = 0

    async def count(**_: bool) -> None:
        nonlocal asked
        asked += 1

    fake.check = count  # type: ignore[method-assign] # counts
    answers = await asyncio.gather(*(fresh.get("/v1/ready") for _ in range(20)))
    assert {answer.status_code for answer in answers} == {200}
    assert asked == 1


async def test_turns_are_dated_and_named_where_they_are_not(
    web: httpx.AsyncClient, key_maker: KeyMaker, fake: FakeEngine
) -> None:
    """A turn needs its words only; what is left open is filled in, in order; the rest stays."""
    sent = [{"content": "One."}, {"content": "Two."}, {"content": "Three.", "message_id": "m3"}]
    url, headers = f"{USER}/sessions/s1/turns", bearer(key_maker.token())
    assert (await web.post(url, json={"turns": sent}, headers=headers)).status_code == 200
    ((_, kept),) = fake.kept.items()
    turns = sorted(kept.values(), key=lambda turn: turn.timestamp)
    assert [turn.content for turn in turns] == ["One.", "Two.", "Three."]
    assert turns[0].timestamp == key_maker.now
    assert turns[2].message_id == "m3"
    assert len({turn.message_id for turn in turns}) == 3
    assert {turn.role for turn in turns} == {"user"}


async def test_an_end_is_counted_from_when_a_turn_arrives(
    web: httpx.AsyncClient, key_maker: KeyMaker, fake: FakeEngine
) -> None:
    """A life in seconds becomes a moment by the server's clock; one in the past is refused."""
    token = bearer(key_maker.token("a", Access.WRITE))
    url = "/v1/namespaces/default/users/ada/sessions/s1/turns"
    turn = {"content": "Gate 4.", "expires_in": 3600, "summary": "Gate.", "importance": 0.9}
    kept = await web.post(url, json={"turns": [turn]}, headers=token)
    assert kept.status_code == 200, kept.text
    ((stored,),) = (one.values() for one in fake.kept.values())
    assert stored.expires_at == stored.timestamp + timedelta(hours=1)
    assert (stored.summary, stored.importance) == ("Gate.", 0.9)
    for wrong in ({"expires_in": 0}, {"expires_at": "2001-01-01T00:00:00Z"}, {"summary": ""}):
        refused = await web.post(url, json={"turns": [{**turn, **wrong}]}, headers=token)
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_turn")


async def test_another_method_is_named_and_an_empty_body_will_do(
    web: httpx.AsyncClient, key_maker: KeyMaker
) -> None:
    """Whoever asks with GET is told to POST; nothing has to be sent along."""
    headers = bearer(key_maker.token("all", Access.ADMIN))
    wrong = await web.get(f"{USER}/consolidate", headers=headers)
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
    assert (wrong.json()["allowed"], wrong.json()["hint"]) == ("POST", None)
    for open_to_all in ("/v1/health", "/v1/ready"):
        assert (await web.post(open_to_all)).headers["allow"] == "GET, HEAD"
    right = await web.post(f"{USER}/consolidate", headers=headers)
    assert (right.status_code, right.json()["dry_run"]) == (200, False)


async def test_a_consolidation_is_tried_by_its_body(
    web: httpx.AsyncClient, key_maker: KeyMaker
) -> None:
    """Said where every pass is told it; the same in the address is refused, not passed over."""
    headers = bearer(key_maker.token())
    url = f"{USER}/consolidate"
    tried = await web.post(url, json={"dry_run": True}, headers=headers)
    assert (tried.status_code, tried.json()["dry_run"]) == (200, True)
    for refused in (
        await web.post(f"{url}?dry_run=true", headers=headers),
        await web.post(url, json={"dry_rum": True}, headers=headers),
    ):
        assert refused.status_code == 422


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "sessions/s1/end", "no body"),
        ("GET", "stats", "no body"),
        (
            "GET",
            "sessions/s1/working-memory",
            "parameters in the address: include_test",
        ),
    ],
)
async def test_a_body_is_refused_where_nobody_reads_it(
    web: httpx.AsyncClient, key_maker: KeyMaker, method: str, path: str, allowed: str
) -> None:
    """What stands in it would be passed over in silence; an empty one says nothing."""
    headers, url = bearer(key_maker.token()), f"{USER}/{path}"
    for body in (b'{"dry_run": true}', b"dry_run=true", b"[]"):
        refused = await web.request(method, url, content=body, headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_input")
        assert refused.json()["allowed"] == allowed
    for body in (b"", b"{}\n"):
        answer = await web.request(method, url, content=body, headers=headers)
        assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("said", ["application/x-www-form-urlencoded", "text/plain", None])
@pytest.mark.parametrize("path", ["recall", "consolidate"])
async def test_a_body_of_another_type_is_told_which_header_to_send(
    web: httpx.AsyncClient, key_maker: KeyMaker, path: str, said: str | None
) -> None:
    """What curl sends unless told otherwise is JSON all the same: the header is what is missing."""
    headers = bearer(key_maker.token()) | ({"Content-Type": said} if said else {})
    refused = await web.post(f"{USER}/{path}", content=b'{"query": "tea"}', headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_input")
    assert refused.json()["hint"] == "Send the header Content-Type: application/json."
    assert "tea" not in refused.text


async def test_a_block_for_a_prompt_is_asked_for_by_address(
    web: httpx.AsyncClient, key_maker: KeyMaker, fake: FakeEngine
) -> None:
    """What a prompt needs is one request, as long as it says, with as many answers as may fit."""
    token = bearer(key_maker.token("a", Access.WRITE))
    user = "/v1/namespaces/default/users/ada"
    turns = [{"content": "I live in Porto."}]
    await web.post(f"{user}/sessions/s1/turns", json={"turns": turns}, headers=token)
    asked = {"query": "Where?", "tokens": 300, "roles": ["user"], "metadata": {"app": "x"}}
    answer = await web.post(f"{user}/context", json=asked, headers=token)
    assert "I live in Porto. (user," in answer.json()["context"]
    ((_, request),) = fake.asked
    assert (request.limit, request.include_sources, request.roles) == (20, True, ("user",))
    assert request.metadata == {"app": "x"}
    short = await web.post(f"{user}/context", json={"query": "x", "tokens": 3}, headers=token)
    assert (short.status_code, short.json()["code"]) == (422, "invalid_query")


async def test_where_the_user_is_stands_in_the_body(
    web: httpx.AsyncClient, key_maker: KeyMaker, fake: FakeEngine
) -> None:
    """Questions and blocks take it, by the names that there are."""
    token = bearer(key_maker.token("a", Access.WRITE))
    turns = [{"content": "I saw otters.", "timestamp": "2024-06-30T23:00:00Z"}]
    await web.post(f"{USER}/sessions/s1/turns", json={"turns": turns}, headers=token)
    asked = {"query": "What did I see?", "timezone": "Asia/Tokyo"}
    await web.post(f"{USER}/recall", json=asked, headers=token)
    block = await web.post(f"{USER}/context", json=asked, headers=token)
    assert "I saw otters. (user, 2024-07-01;" in block.json()["context"]
    assert [request.timezone for _, request in fake.asked] == ["Asia/Tokyo", "Asia/Tokyo"]
    nowhere = {"query": "Where?", "timezone": "+09:00"}
    for path in ("recall", "context"):
        refused = await web.post(f"{USER}/{path}", json=nowhere, headers=token)
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_query")
        assert "such as Europe/Lisbon" in refused.json()["allowed"]


@pytest.mark.parametrize("wrong", [{"wait": 31}, {"wait": -1}, {"episode_ids": []}], ids=str)
async def test_one_request_is_held_open_for_a_bounded_time(
    web: httpx.AsyncClient, key_maker: KeyMaker, wrong: dict[str, object]
) -> None:
    """Waiting for turns has bounds, and turns to wait for."""
    token = bearer(key_maker.token("a", Access.WRITE))
    body = {"episode_ids": ["6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11"], **wrong}
    url = "/v1/namespaces/default/users/ada/turns/progress"
    answer = await web.post(url, json=body, headers=token)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_query")


async def test_a_provider_s_delay_is_passed_on(
    web: httpx.AsyncClient, key_maker: KeyMaker, fake: FakeEngine
) -> None:
    """Where an error knows how long to wait, the header says it in whole seconds."""
    fake.failure = ModelUnavailable("Busy.", details={"retry_after": 1.2})
    answer = await web.get(f"{USER}/stats", headers=bearer(key_maker.token()))
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")


@pytest.fixture
async def elsewhere(
    fake: FakeEngine, settings: Settings, key_maker: KeyMaker
) -> AsyncIterator[httpx.AsyncClient]:
    """A server on all addresses, for one host name."""
    key_maker.token()
    chosen = settings.model_copy(
        update={"http_host": "0.0.0.0", "http_allowed_hosts": ("memory.example.org",)}  # noqa: S104 - refused without keys
    )
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(public_app(fake, chosen, key_maker.clock)),
        base_url="http://memory.example.org",
    ) as client:
        yield client


async def test_hosts_elsewhere_are_those_of_the_setting(
    elsewhere: httpx.AsyncClient, key_maker: KeyMaker
) -> None:
    """With names set, only those are served; probes by address still learn about health."""
    headers = bearer(key_maker.tokens[0])
    for host, status in (("memory.example.org", 200), ("10.1.2.3:8745", 421), ("localhost", 200)):
        answer = await elsewhere.get(f"{USER}/stats", headers={**headers, "Host": host})
        assert answer.status_code == status
    for origin, status in (("https://memory.example.org", 200), ("https://evil.example", 403)):
        answer = await elsewhere.get(f"{USER}/stats", headers={**headers, "Origin": origin})
        assert answer.status_code == status
    assert (await elsewhere.get("/v1/ready", headers={"Host": "10.1.2.3"})).status_code == 200


async def test_elsewhere_without_the_setting_any_host_is_served(
    settings: Settings, key_maker: KeyMaker
) -> None:
    """A key cannot be sent by a page of another name; its own pages may ask."""
    chosen = settings.model_copy(update={"http_host": "10.1.2.3"})
    door = ByKey(KeyRing(key_maker.file, key_maker.clock), chosen)
    token = f"Bearer {key_maker.token()}".encode()

    async def admitted(origin: bytes) -> str:
        headers = [(b"host", b"any.example"), (b"authorization", token), (b"origin", origin)]
        return (await door.admit({"type": "http", "path": "/v1/x", "headers": headers})).name

    assert await admitted(b"https://any.example") == "key"
    with pytest.raises(EngramError):
        await admitted(b"https://other.example")


def test_the_document_is_whole(app: FastAPI) -> None:
    """Each address has a summary, its access, its key, its refusals as problems, and a schema."""
    document = app.openapi()
    names = []
    for path, methods in document["paths"].items():
        for operation in methods.values():
            names.append(operation["operationId"])
            assert operation["summary"]
            assert operation["description"]
            is_open = operation["x-engram-access"] == "none"
            assert operation["security"] == ([{}, {"key": []}] if is_open else [{"key": []}])
            wanted = {"400", "401", "413", "415", "422", "429", "500", "503"}
            wanted |= set() if is_open else {"403", "404", "409", "421"}
            assert operation["responses"].keys() == wanted | {"200"}, path
            for status in wanted:
                (kind,) = operation["responses"][status]["content"]
                assert kind == "application/problem+json"
            for parameter in operation.get("parameters", ()):
                assert parameter["description"], path
    assert len(names) == len(set(names))
    assert document["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    assert "HTTPValidationError" not in str(document)


async def test_a_compressed_body_is_told_that_none_is_taken(
    web: httpx.AsyncClient, key_maker: KeyMaker
) -> None:
    """Not that it cannot be read: whoever sent it knows what to leave out."""
    body = gzip.compress(b'{"query": "Where?"}')
    headers = {**bearer(key_maker.token()), "Content-Type": "application/json"}
    for encoding, status in (("gzip", 415), ("X-GZIP, br", 415), ("identity", 200), ("utf-8", 200)):
        answer = await web.post(
            f"{USER}/recall",
            content=body if status == 415 else gzip.decompress(body),
            headers={**headers, "Content-Encoding": encoding},
        )
        assert answer.status_code == status
        if status == 415:
            assert (answer.json()["code"], answer.json()["allowed"]) == (
                "invalid_input",
                "a body as it is",
            )
            assert "Content-Encoding" in answer.json()["hint"]


async def test_the_document_tells_what_must_be_given_and_what_is_answered(
    web: httpx.AsyncClient, app: FastAPI, key_maker: KeyMaker
) -> None:
    """What has a default may be left out of a request, and is there in every answer."""
    schemas = app.openapi()["components"]["schemas"]
    assert schemas["RecallBody"]["required"] == ["query"]
    assert schemas["Turn"]["required"] == ["content"]
    assert schemas["Readiness"].get("required") is None
    headers = bearer(key_maker.token())
    turns = {"turns": [{"content": "I live in Porto.", "expires_in": 3600}]}
    for path, body, schema in (
        (f"{USER}/sessions/s1/turns", turns, "Receipt"),
        (f"{USER}/recall", {"query": "Where?", "explain": True}, "RecallHit"),
    ):
        told = (await web.post(path, json=body, headers=headers)).json()
        answer = told[0] if isinstance(told, list) else told
        properties = schemas[schema]["properties"]
        assert set(schemas[schema]["required"]) == properties.keys() == answer.keys()


def test_the_document_tells_what_may_be_said(app: FastAPI) -> None:
    """Closed lists are lists, a time to live may be seconds, and each field of recall is told."""
    schemas = app.openapi()["components"]["schemas"]
    turn, recall = (schemas[name]["properties"] for name in ("Turn", "RecallBody"))
    assert turn["role"]["enum"] == list(ROLES)
    assert {one.get("type") for one in turn["expires_in"]["anyOf"]} == {"number", "string", "null"}
    for name in ("memory_types", "forms", "roles"):
        assert recall[name]["anyOf"][0]["items"]["enum"]
    assert recall.keys() == RecallRequest.model_fields.keys()
    for body in ("RecallBody", "ContextBody"):
        fields = schemas[body]["properties"].items()
        assert [name for name, field in fields if not field.get("description")] == []


def test_each_code_is_told_with_its_status() -> None:
    """The page, the document and the errors have the same codes, and say the same of them."""
    told = re.findall(
        r"^\| `(\w+)` \| (\d+) \| (yes|no) \|", (DOCS / "http.md").read_text("utf-8"), re.MULTILINE
    )
    errors = [error_from_dict({"code": code}) for code in sorted(error_codes())]
    assert told == [
        (error.code, str(status_of(error)), "yes" if error.retryable else "no") for error in errors
    ]
    assert Problem.model_json_schema()["properties"]["code"]["enum"] == sorted(error_codes())


async def test_the_document_that_is_served_is_the_file(web: httpx.AsyncClient) -> None:
    """Clients that are made of docs/openapi.json send a key, as those of a server's own do."""
    served = (await web.get("/openapi.json")).json()
    assert served["components"]["securitySchemes"]
    assert served == json.loads((DOCS / "openapi.json").read_text("utf-8"))


async def test_problems_are_as_documented(web: httpx.AsyncClient, app: FastAPI) -> None:
    """What comes back has exactly the fields that the document says."""
    schema = app.openapi()["components"]["schemas"]["Problem"]
    assert (await web.get("/v1/nothing")).json().keys() == schema["properties"].keys()
    assert set(schema["required"]) == schema["properties"].keys()
