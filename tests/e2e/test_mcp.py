"""Real MCP client sessions: over a pipe with `engram mcp`, over HTTP with `engram up`."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent, TextResourceContents

from engram.client.memory import MemoryStore
from tests.support import cli
from tests.support.ports import free_port


@dataclass
class Up:
    """A running `engram up` that serves MCP."""

    folder: Path
    process: subprocess.Popen[str]
    url: str

    def key(self, name: str, *options: str) -> str:
        """A new API key."""
        made = cli.engram("keys", "create", name, *options, "-d", str(self.folder))
        assert made.code == 0, made.stderr
        return made.stdout.strip()

    @asynccontextmanager
    async def client(self, key: str, **headers: str) -> AsyncIterator[Client]:
        """A client with this key."""
        given = {"Authorization": f"Bearer {key}", **headers}
        async with (
            httpx2.AsyncClient(headers=given) as http,
            Client(streamable_http_client(self.url, http_client=http)) as client,
        ):
            yield client

    def stop(self) -> int:
        """End it in order."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


# What runs is started once, in one process.
pytestmark = pytest.mark.xdist_group("mcp")


@contextmanager
def started(folder: Path) -> Iterator[Up]:
    """`engram up` with its HTTP door on a free port."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "engram.cli", "up", "-d", str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "ENGRAM_HTTP_PORT": str(port)},
    )
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if "Ctrl-C stops" in line:
            break
    assert f"HTTP: http://127.0.0.1:{port}\n" in said
    found = Up(folder, process, f"http://127.0.0.1:{port}/mcp")
    yield found
    if process.poll() is None:
        assert found.stop() == 0
    process.stdout.close()


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """One for all tests that leave it running."""
    with started(tmp_path_factory.mktemp("mcp") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def keys(up: Up) -> dict[str, str]:
    """Headers with the key of one user, and with one of many."""
    one = up.key("one", "--access", "read", "--user", "ada")
    many = up.key("all", "--access", "read")
    return {"one": f"Bearer {one}", "many": f"Bearer {many}"}


def over_a_pipe(folder: Path, **settings: str) -> Client:
    """A client that starts `engram mcp`."""
    return Client(
        StdioServerParameters(
            command=sys.executable,
            args=["-m", "engram.cli", "mcp", "-u", "ada", "-d", str(folder)],
            env={key: os.environ[key] for key in ("PYTHONPATH", "PATH") if key in os.environ}
            | settings,
        )
    )


async def answer(client: Client, tool: str, /, **arguments: Any) -> str:
    """What a tool says; it must not be an error."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    return words(result)


def words(result: CallToolResult) -> str:
    """The text of an answer."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


async def test_over_http(up: Up) -> None:
    """Remember, recall now and as of before, verify, count and read, in one session."""
    async with up.client(up.key("alma", "--access", "write", "--user", "alma")) as client:
        kept = await answer(client, "remember", text="My e-mail is ada@example.org.")
        fact = kept.split("Facts in it: ")[1].split(".")[0]
        found = await answer(client, "recall", query="e-mail", types=["factual"])
        assert f"ada@example.org [factual {fact} conf=" in found
        assert "user: My e-mail is ada@example.org." in found
        before = await answer(client, "recall_at", query="e-mail", as_of="2020-01-01")
        assert before == "Nothing that answers this is remembered."
        assert "It stands" in await answer(client, "verify", memory_id=fact)
        assert "1 episodic (1 active), 1 factual" in await answer(client, "stats")
        assert fact in await answer(client, "confirm", memory_id=fact)
        (listed,) = (await client.read_resource("engram://memories")).contents
        assert isinstance(listed, TextResourceContents)
        assert fact in listed.text
        said = await answer(client, "remember", text="I am Bob, no, forget that.")
        turn = said.split("Kept as ")[1].split(".")[0]
        assert "1 episodic" in await answer(client, "forget", memory_id=turn)
        wrong = await client.call_tool("verify", {"memory_id": turn})
        assert wrong.is_error
        assert "No memory with this id" in words(wrong)


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({}, 401, "key_refused"),
        ({"Authorization": "Bearer engram_wrong"}, 401, "key_refused"),
        ({"Authorization": "{many}"}, 422, "invalid_scope"),
        ({"Authorization": "{one}", "Engram-User": "bob"}, 404, "no_such_address"),
        ({"Authorization": "{one}", "Host": "rebound.example"}, 421, "host_refused"),
        ({"Authorization": "{one}", "Origin": "http://rebound.example"}, 403, "access_denied"),
    ],
)
async def test_who_is_not_admitted_over_http(
    up: Up, keys: dict[str, str], headers: dict[str, str], status: int, code: str
) -> None:
    """Without a key, a user, their own user, a host of ours and a page of ours nothing opens."""
    given = {name: value.format(**keys) for name, value in headers.items()}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    async with httpx2.AsyncClient() as http:
        answer = await http.post(
            up.url, json=message, headers={"Accept": "application/json, text/event-stream", **given}
        )
    assert (answer.status_code, answer.json()["code"]) == (status, code)


_PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (json.dumps([_PING, {**_PING, "id": "marmalade"}]), "application/json", 422),
        ('"marmalade"', "application/json", 422),
        ('{"marmalade": ', "application/json", 422),
        (json.dumps({**_PING, "jsonrpc": "marmalade"}), "application/json", 422),
        (json.dumps(_PING), "text/plain", 422),
        (json.dumps(_PING), "application/json; charset=utf-8", 200),
    ],
)
async def test_what_is_no_message_is_a_problem_that_quotes_nothing(
    up: Up, keys: dict[str, str], body: str, kind: str, status: int
) -> None:
    """Several at once, none, and another type: told as everywhere, without what was sent."""
    headers = {"Authorization": keys["one"], "Content-Type": kind, "Accept": "application/json"}
    # The first of all that comes in loads what answers.
    async with httpx2.AsyncClient(timeout=60) as http:
        answer = await http.post(up.url, content=body, headers=headers)
    assert answer.status_code == status
    if status == 200:
        assert answer.json()["id"] == 1
        return
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "invalid_input"
    assert answer.json()["allowed"]
    assert "marmalade" not in answer.text
    assert "ydantic" not in answer.text


@pytest.mark.parametrize(("zone", "hours"), [("Etc/GMT+12", -12), ("Etc/GMT-14", 14)])
async def test_tomorrow_is_the_one_of_the_users_machine(up: Up, zone: str, hours: int) -> None:
    """At any hour one of the two zones has another day than UTC: days said are the user's."""
    there = timezone(timedelta(hours=hours))
    days = [datetime.now(there).date()]
    async with over_a_pipe(up.folder, TZ=zone) as client:
        kept = await answer(client, "remember", text=f"The dentist is tomorrow, says {zone}.")
        told = await answer(client, "history", memory_id=kept.split("Kept as ")[1].split(".")[0])
        fact = await answer(client, "history", memory_id=kept.split("Facts in it: ")[1][:36])
    days.append(datetime.now(there).date())
    tomorrow = {f"{day + timedelta(days=1)}" for day in days}
    assert told.splitlines()[1][:10] in {str(day) for day in days}
    # The day of the event, and the fact itself.
    assert {fact.splitlines()[1][:10], fact.split("date: ")[1][:10]} <= tomorrow


@pytest.mark.parametrize(("zone", "hours"), [("Etc/GMT+12", -12), ("Etc/GMT-14", 14)])
def test_tomorrow_is_that_of_who_types_it(up: Up, zone: str, hours: int) -> None:
    """What a command keeps is dated where it was typed."""
    there = timezone(timedelta(hours=hours))
    days = [datetime.now(there).date()]
    whose = ("-u", f"typist{hours}", "-d", str(up.folder), "--json")
    typed = subprocess.run(
        [sys.executable, "-m", "engram.cli", "encode", "I fly tomorrow.", *whose],
        env={**os.environ, "TZ": zone},
        capture_output=True,
        check=True,
    )
    days.append(datetime.now(there).date())
    (fact,) = json.loads(typed.stdout)["fact_ids"]
    found = cli.engram("show", fact, *whose)
    assert any(f'"value": "{day + timedelta(days=1)}"' in found.stdout for day in days)


@pytest.mark.parametrize(("zone", "hours"), [("Etc/GMT+12", -12), ("Etc/GMT-14", 14)])
def test_yesterday_is_that_of_who_types_it(up: Up, zone: str, hours: int) -> None:
    """What a command asks is read where it was typed."""
    there = timezone(timedelta(hours=hours))
    days = [datetime.now(there).date()]
    whose = ("-u", f"asker{hours}", "-d", str(up.folder), "--json")
    for command in (["encode", "I fly often."], ["recall", "What was yesterday?", "--explain"]):
        typed = subprocess.run(
            [sys.executable, "-m", "engram.cli", *command, *whose],
            env={**os.environ, "TZ": zone},
            capture_output=True,
            check=True,
        )
    days.append(datetime.now(there).date())
    begin = datetime.fromisoformat(json.loads(typed.stdout)[0]["explanation"]["period"]["begin"])
    assert begin.date() in {day - timedelta(days=1) for day in days}
    assert begin.utcoffset() == timedelta(hours=hours)


@pytest.mark.parametrize(
    ("zone", "day"), [("Etc/GMT+12", "2026-05-19"), ("Etc/GMT-14", "2026-05-21")]
)
async def test_days_that_a_tool_shows_are_those_of_the_users_machine(
    up: Up, zone: str, day: str
) -> None:
    """Over a pipe nobody has to say where they are; what is said to be elsewhere is shown so."""
    async with over_a_pipe(up.folder, TZ=zone) as client:
        words = f"I saw otters, says {zone}."
        await answer(client, "remember", text=words, when="2026-05-20T11:00:00+00:00")
        here = await answer(client, "recall", query=words)
        elsewhere = await answer(client, "recall", query=words, timezone="Europe/Lisbon")
    assert f"{day} user: {words}" in here
    assert f"2026-05-20 user: {words}" in elsewhere


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_no_stream_is_opened_that_would_carry_nothing(
    up: Up, keys: dict[str, str], method: str
) -> None:
    """No session is kept: whoever opens a stream or ends a session is told to POST, at once."""
    headers = {"Authorization": keys["one"], "Accept": "text/event-stream"}
    async with httpx2.AsyncClient(timeout=10) as http:
        answer = await http.request(method, up.url, headers=headers)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert (answer.json()["code"], answer.json()["allowed"]) == ("no_such_address", "POST")


async def test_each_request_has_its_own_user(up: Up) -> None:
    """Clients of one key, interleaved, keep to the user that each of them names."""
    key = up.key("many", "--access", "write")

    async def talk(user: str) -> str:
        async with up.client(key, **{"Engram-User": user}) as client:
            for number in range(5):
                await answer(client, "remember", text=f"Note {number} belongs to {user}.")
            return await answer(client, "recall", query="Whose note is it?", limit=50)

    users = ["ute", "uwe", "ulla"]
    for user, told in zip(users, await asyncio.gather(*map(talk, users)), strict=True):
        assert f"Note 4 belongs to {user}." in told
        assert not [other for other in users if other != user and other in told]


async def test_what_was_forgotten_can_be_said_again(up: Up) -> None:
    """It is kept under another id, and only once where the call is sent again."""
    said = {"text": "My locker code is 4711."}
    async with up.client(up.key("again", "--access", "write", "--user", "dora")) as client:
        for _ in range(3):
            kept = await answer(client, "remember", **said)
            assert kept.startswith("Kept as ")
            again = await answer(client, "remember", **said)
            assert again.startswith(f"Already kept as {_kept_id(kept)};")
            assert said["text"] in await answer(client, "read", memory_id=_kept_id(kept))
            await answer(client, "forget", memory_id=_kept_id(kept))


async def test_what_is_said_again_after_the_end_is_another_turn(up: Up) -> None:
    """A session of a day ends more than once: what changes back in it is told again."""
    moves = ["I live in Oslo.", "I moved to Bergen."]
    async with up.client(up.key("back", "--access", "write", "--user", "carl")) as client:
        kept = list[str]()
        for move in (*moves, *moves):
            kept += [await answer(client, "remember", text=move) for _ in range(2)]
            assert await answer(client, "end_session") == "Ended."
        first = [await answer(client, "remember", text=moves[0]) for _ in range(2)]
    ids = [_kept_id(one) for one in (*kept, *first)]
    assert ids[::2] == ids[1::2]
    assert len(set(ids)) == 5


def _kept_id(told: str) -> str:
    """Of the turn that a tool says is kept."""
    return re.split(r"[.;]", told.split("ept as ")[1])[0]


async def test_hints_name_only_what_a_model_has(up: Up) -> None:
    """Whoever is refused is told of no method of the library that is none of the tools."""
    key = up.key("hints", "--access", "write", "--user", "ada")
    no_tool = {name for name in dir(MemoryStore) if not name.startswith("_")}
    unknown = {"memory_id": "6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11"}
    async with up.client(key) as client:
        no_tool -= {tool.name for tool in (await client.list_tools()).tools}
        assert {"list", "profiles", "protect"} <= no_tool
        kept = await answer(client, "remember", text="I am here.")
        turn = {"memory_id": kept.split("Kept as ")[1].split(".")[0]}
        for tool, given in (
            *((tool, unknown) for tool in ("history", "verify", "confirm", "dispute", "forget")),
            *((tool, turn) for tool in ("confirm", "dispute")),
            *(("resolve", {**one, "resolution": "expired"}) for one in (unknown, turn)),
            ("profile", {"name": "Sam"}),
            ("review", {"review_id": "x", "keep": "both"}),
        ):
            refused = await client.call_tool(tool, given)
            assert refused.is_error
            hint = (refused.structured_content or {})["hint"] or ""
            assert no_tool.isdisjoint(re.findall(r"\w+", hint)), hint


async def test_a_key_that_reads_does_not_write(up: Up) -> None:
    """A tool that needs more than the key allows is a tool error that says what is needed."""
    async with up.client(up.key("reader", "--access", "read", "--user", "ada")) as client:
        assert "episodic" in await answer(client, "stats")
        for tool, arguments in (
            ("remember", {"text": "I am here."}),
            ("confirm", {"memory_id": "m"}),
            ("forget", {"memory_id": "m"}),
        ):
            refused = await client.call_tool(tool, arguments)
            assert refused.is_error
            assert "a key with access write" in words(refused)


def test_it_ends_when_asked_though_nobody_closes_the_pipe(up: Up) -> None:
    """SIGTERM and Ctrl-C close the memory and end the program while it waits for input."""
    command = [sys.executable, "-m", "engram.cli", "mcp", "-u", "ada", "-d", str(up.folder)]
    for number in (signal.SIGTERM, signal.SIGINT):
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as program:
            assert program.stdin is not None
            assert program.stdout is not None
            assert program.stderr is not None
            program.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
            program.stdin.flush()
            assert b'"id":1' in program.stdout.readline()
            program.send_signal(number)
            assert program.wait(20) == 0
            assert program.stderr.read() == b""


async def test_over_a_pipe_and_after_the_owner_has_ended(tmp_path: Path) -> None:
    """A pipe's server shares the memory of `engram up`, and takes it over when that ends."""
    with started(tmp_path / "data") as up:
        await _shares_and_takes_over(up)


async def _shares_and_takes_over(up: Up) -> None:
    async with over_a_pipe(up.folder) as client:
        assert [tool.name for tool in (await client.list_tools()).tools][:2] == [
            "remember",
            "recall",
        ]
        await answer(client, "remember", text="I live in Porto.")
        key = up.key("beside", "--access", "read")
        async with up.client(key, **{"Engram-User": "ada"}) as other:
            assert "I live in Porto." in await answer(other, "recall", query="Porto")
        assert up.stop() == 0
        assert "I live in Porto." in await answer(client, "recall", query="Porto")
        await answer(client, "remember", text="I moved to Lisbon.")
        assert "Lisbon" in await answer(client, "recall", query="moved")
