"""`engram ui`: one browser reads, nobody else, and nothing is changed."""

from __future__ import annotations

import asyncio
import json
import time
from base64 import b64decode
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio
from temporalio.client import Client, WorkflowExecutionStatus

import engram
from engram import MemoryStore, Settings
from engram.cli.serving import decoded_ui
from engram.contracts import names
from engram.errors import InvalidSettings
from engram.server.ui import UiDoor, reading_questions
from engram.temporal.encryption import data_converter
from tests.support.payloads import payloads
from tests.support.temporal_server import client_of

# What runs is started once, in one process.
pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.slow,
    pytest.mark.xdist_group("ui"),
]

SETTINGS = Settings.load(schedules=False)
WORD = "zanzibarian"
HISTORY = "/api/v1/namespaces/default/workflows/{}/history"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def home(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[MemoryStore, Path]]:
    """A running memory, and its folder."""
    folder = tmp_path_factory.mktemp("home")
    async with engram.open(folder, user_id="ada", settings=SETTINGS) as memory:
        await memory.encode(f"My password is {WORD}.", session_id="s1")
        yield memory, folder


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(home: tuple[MemoryStore, Path]) -> Client:
    """A client of its Temporal, with the keys."""
    return await client_of(home[1])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def door(client: Client) -> AsyncIterator[UiDoor]:
    """The served UI, which no browser has opened yet."""
    async with decoded_ui(client, SETTINGS) as opened:
        yield opened


def visitor(door: UiDoor, **headers: str) -> httpx.AsyncClient:
    """Somebody who knows the host and the port."""
    address = urlsplit(door.origin)
    # Not every resolver knows such names as browsers do.
    return httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{address.port}",
        headers={"Host": address.netloc, **headers},
        trust_env=False,
    )


def known(door: UiDoor, **headers: str) -> httpx.AsyncClient:
    """The browser that was let in."""
    return visitor(door, Cookie=door.cookie.split(";")[0], **headers)


async def history(browser: httpx.AsyncClient, user: str) -> str:
    """What the browser gets of a user's session."""
    workflow_id = quote(f"session/default/{user}/s1", safe="")
    answer = await browser.get(HISTORY.format(workflow_id))
    assert answer.status_code == 200, answer.text
    return answer.text


async def read(browser: httpx.AsyncClient, codec: str, document: str) -> str:
    """All payloads of a history, decoded as the UI has it done."""
    found = [payload for _, payload in payloads(json.loads(document))]
    answer = await browser.post(f"{urlsplit(codec).path}/decode", json={"payloads": found})
    assert answer.status_code == 200, answer.text
    return "\n".join(b64decode(one.get("data", "")).decode() for one in answer.json()["payloads"])


async def test_without_the_capability_nothing_is_answered(door: UiDoor) -> None:
    """Neither a page nor an id nor a decoded payload, with a guessed cookie neither."""
    pages = ("/", "/api/v1/settings", "/api/v1/namespaces", "/_app/version.json", "/engram/codec")
    for cookie in ({}, {"Cookie": "engram-ui="}, {"Cookie": f"engram-ui={'0' * 64}"}):
        async with visitor(door, **cookie) as stranger:
            for page in pages:
                assert (await stranger.get(page)).status_code == 403
            for capability in ("", "/", f"/{'0' * 64}"):
                asked = await stranger.post(f"/engram/codec{capability}/decode", json={})
                assert asked.status_code in (403, 404)
                assert "payloads" not in asked.json()


async def test_another_host_is_refused(door: UiDoor) -> None:
    """A web page whose name was made to mean this machine gets in with no cookie or capability."""
    codec = f"{urlsplit(door.codec_url).path}/decode"
    port = urlsplit(door.origin).port
    for host in ("evil.example", f"evil.example:{port}", f"127.0.0.1:{port}", f"localhost:{port}"):
        async with known(door, Host=host) as rebound:
            assert (await rebound.get("/")).status_code == 421
            assert (await rebound.post(codec, json={})).status_code == 421
            assert (await rebound.get(urlsplit(door.first_url).path)).status_code == 421


async def test_a_page_of_another_site_is_refused(door: UiDoor) -> None:
    """It may not ask the codec, should it know its address, and no answer lets it read."""
    codec = f"{urlsplit(door.codec_url).path}/decode"
    for origin in ("http://evil.example", "null", f"http://localhost:{urlsplit(door.origin).port}"):
        async with known(door, Origin=origin) as page:
            for answer in (await page.post(codec, json={}), await page.options(codec)):
                assert answer.status_code == 403
                assert "access-control-allow-origin" not in answer.headers


async def test_the_first_browser_gets_in_and_no_second(door: UiDoor) -> None:
    """The address works once; what the browser is known by is kept from scripts and other sites."""
    entrance = urlsplit(door.first_url).path
    async with visitor(door) as browser:
        assert (await browser.get("/engram/open/guessed")).status_code == 403
        entered = await browser.get(entrance)
        assert entered.status_code == 200
        cookie = entered.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        browser.headers["Cookie"] = cookie.split(";")[0]
        assert "<html" in (await browser.get("/")).text
    async with visitor(door) as second:
        refused = await second.get(entrance)
        assert refused.status_code == 403
        assert "set-cookie" not in refused.headers


async def test_who_came_in_reads_what_was_said(door: UiDoor) -> None:
    """The pages get the codec's address, and by it the words; the history itself is noise."""
    async with known(door, Origin=door.origin) as browser:
        told = (await browser.get("/api/v1/settings")).json()
        assert told["Codec"]["Endpoint"] == door.codec_url
        assert told["DisableWriteActions"] is True
        document = await history(browser, "ada")
        assert WORD not in document
        words = await read(browser, told["Codec"]["Endpoint"], document)
        assert WORD in words
        assert "session s1 of default/ada" in words


async def test_of_an_erased_user_nothing_is_read(
    home: tuple[MemoryStore, Path], door: UiDoor
) -> None:
    """The page says so in place of the words; it is no error."""
    user = f"u-{uuid4().hex[:8]}"
    memory = home[0].for_user(user)
    await memory.encode(f"My password is {WORD}.", session_id="s1")
    async with known(door) as browser:
        document = await history(browser, user)
        assert WORD in await read(browser, door.codec_url, document)
        await memory.erase()
        # This client is as another process: it looks at keys again after two seconds.
        deadline = time.monotonic() + 20
        while WORD in (words := await read(browser, door.codec_url, document)):
            assert time.monotonic() < deadline
            await asyncio.sleep(0.1)
        assert "Not readable: its key was erased" in words


async def test_what_is_plain_or_foreign_is_no_error(door: UiDoor) -> None:
    """Plain payloads pass as they are, unknown ones say that they cannot be read."""
    plain = {"metadata": {"encoding": "anNvbi9wbGFpbg=="}, "data": "Inl1Ig=="}
    foreign = {"metadata": {"encoding": "YmluYXJ5L2VuY3J5cHRlZA=="}, "data": "AAAA"}
    codec = f"{urlsplit(door.codec_url).path}/decode"
    async with known(door) as browser:
        answer = await browser.post(codec, json={"payloads": [plain, foreign]})
        assert answer.json()["payloads"][0] == plain
        assert b"Not readable" in b64decode(answer.json()["payloads"][1]["data"])
        for nonsense in (b"{", b"\xff", b'{"payloads": 3}'):
            refused = await browser.post(codec, content=nonsense)
            assert refused.status_code == 422
            assert refused.json()["code"] == "invalid_input"


async def test_the_pages_change_nothing(client: Client, door: UiDoor) -> None:
    """Every call behind them reads; what would end, signal or start a workflow is refused."""
    calls = {question.call for question in reading_questions()}
    assert {"get_workflow_execution_history", "query_workflow"} <= calls
    assert {call.split("_")[0] for call in calls} <= {
        # What is polled for is how something came out.
        *("get", "list", "describe", "count", "query", "poll"),
    }
    workflow = "/api/v1/namespaces/default/workflows/session%2Fdefault%2Fada%2Fs1"
    async with known(door, Origin=door.origin) as browser:
        for act in ("/terminate", "/signal/engram.triggered", "/cancel", "/reset", ""):
            refused = await browser.post(workflow + act, json={})
            assert refused.status_code == 403
        stack = await browser.post(f"{workflow}/query/__stack_trace", json={})
        assert stack.status_code == 200
    handle = client.get_workflow_handle(unquote(urlsplit(workflow).path.rsplit("/", 1)[1]))
    assert (await handle.describe()).status is WorkflowExecutionStatus.RUNNING
    working = await handle.query(names.WORKING_MEMORY_QUERY)
    assert WORD in json.dumps(working)


async def test_what_temporal_refuses_is_said_as_temporal_says_it(door: UiDoor) -> None:
    """A workflow that is not there is a 404 with a message, and no failure of the page."""
    async with known(door) as browser:
        missing = await browser.get(HISTORY.format("no-such"))
        assert missing.status_code == 404
        assert "not found" in missing.json()["message"]
        listed = (
            "/api/v1/namespaces/default/workflows?pageSize=1&query=WorkflowType%3D'engram.session'"
        )
        found = (await browser.get(listed)).json()
        assert len(found["executions"]) == 1
        wrong = await browser.get("/api/v1/namespaces/default/workflows?pageSize=x")
        assert wrong.status_code == 422
        assert (await browser.get("/api/v1/no-such")).status_code == 404


async def test_without_keys_there_is_nothing_to_decode(temporal_address: str) -> None:
    """It says which setting is missing, before anything is started."""
    plain = await Client.connect(temporal_address, data_converter=data_converter(None))
    with pytest.raises(InvalidSettings, match="ENGRAM_ENCRYPTION_KEYS"):
        async with decoded_ui(plain, SETTINGS):
            pass
