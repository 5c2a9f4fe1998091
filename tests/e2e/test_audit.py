"""Every door leaves its mark in the audit trail, which another process reads."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

import engram
from engram.domain.access import Access
from engram.errors import AccessDenied
from engram.settings import Settings
from tests.support import cli
from tests.support.live_engram import LiveEngram, live_engram
from tests.support.raw_files import holders

# What runs is started once, in one process.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("audit")]

CANARY = "zanzibarian"
SAID = f"I live in Lisbon, and my {CANARY} cat is called Mia."


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveEngram]:
    """Everything that `engram up` starts."""
    with live_engram(tmp_path_factory.mktemp("audit") / "data", schedules=False) as running:
        yield running


def trail(here: LiveEngram, *options: str) -> list[dict[str, Any]]:
    """The entries, as a process of its own prints them."""
    done = subprocess.run(
        [sys.executable, "-m", "engram.cli", "audit", "--json", "-d", here.folder, *options],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["breaks"] == []
    entries: list[dict[str, Any]] = found["entries"]
    return entries


def key_id(here: LiveEngram, name: str) -> str:
    """The id of a key."""
    kept = json.loads(here.settings.keys_path.read_text())["keys"]
    return str(next(one["id"] for one in kept if one["name"] == name))


async def test_each_door_is_noted_and_none_leaves_a_word(here: LiveEngram) -> None:
    """Library, command, HTTP, MCP and workflow: who, what and which memories, and no content."""
    token = here.key("writer", Access.WRITE, user="ada")
    settings = Settings.load(data_dir=here.folder)
    async with engram.open(user_id="ada", settings=settings) as memory:
        receipt = await memory.encode(SAID, session_id="s1")
        await memory.consolidate()
    headers = {"Authorization": f"Bearer {token}"}
    base = f"{here.url}/v1/namespaces/default/users/ada"
    async with httpx.AsyncClient(headers=headers) as web:
        await web.post(f"{base}/recall", json={"query": CANARY})
        assert (await web.post(f"{base}/erase", json={})).status_code == 403
        elsewhere = base.replace("/ada", "/bob")
        assert (await web.post(f"{elsewhere}/recall", json={"query": CANARY})).status_code == 404
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(f"{here.url}/mcp", http_client=http)) as client,
    ):
        await client.call_tool("recall", {"query": CANARY})
        assert (await client.call_tool("erase", {"confirmation": "ada"})).is_error
    shell = ("recall", CANARY, "-u", "ada", "-d", str(here.folder))
    assert (await asyncio.to_thread(cli.engram, *shell)).code == 0

    by = key_id(here, "writer")
    found = trail(here, "-u", "ada", "-n", "1000")
    assert {e["user_id"] for e in found} == {"ada"}

    def by_door(door: str) -> dict[str, dict[str, Any]]:
        return {e["step"] or e["action"]: e for e in found if e["actor"]["door"] == door}

    assert by_door("library")["encode"]["memory_ids"] == list(receipt.episode_ids)
    assert by_door("library")["consolidate"]["outcome"] == "done"
    steps = by_door("workflow")
    assert steps["engram.store_turns"]["actor"]["workflow"] == "session"
    assert steps["engram.store_turns"]["memory_ids"] == list(receipt.episode_ids)
    assert steps["engram.consolidate_turns"]["actor"]["workflow"] == "consolidation"
    assert steps["engram.extract"]["memory_ids"] == list(receipt.episode_ids)
    for door in ("cli", "http", "mcp"):
        assert receipt.episode_ids[0] in by_door(door)["recall"]["memory_ids"]
    assert {e["actor"]["key_id"] for d in ("http", "mcp") for e in by_door(d).values()} == {by}
    for door in ("http", "mcp"):
        denied = by_door(door)["erase"]
        assert (denied["outcome"], denied["error"]) == ("refused", "access_denied")
    (stranger,) = trail(here, "-u", "bob", "--key", by)
    assert (stranger["error"], stranger["user_id"]) == ("no_such_address", None)
    # With its quotation marks: marks of users are hexadecimal, and so is "ada".
    words = [CANARY, "Lisbon", '"ada"', "/ada", *receipt.episode_ids]
    assert holders(here.folder / "audit", words) == {}


async def test_who_was_told_a_memory_by_whatever_operation_is_found_by_its_id(
    here: LiveEngram,
) -> None:
    """A context and a profile name it as little as they like: what they told is noted."""
    settings = Settings.load(data_dir=here.folder)
    async with engram.open(user_id="iris", settings=settings) as memory:
        await memory.encode(SAID, session_id="s1")
        await memory.consolidate()
        page = await memory.list(memory_types="semantic")
        (home,) = [m for m in page.memories if m.content == "The user lives in Lisbon."]
        assert home.content in await memory.context("Where does the user live?")
        profiles = [await memory.profile(), *await memory.profiles()]
        assert all("Lisbon" in profile.lines[0].text for profile in profiles)
    seen = {one["action"] for one in trail(here, "--memory", home.id)}
    assert {"context", "profile", "profiles"} <= seen


async def test_no_key_reads_the_trail(here: LiveEngram) -> None:
    """Neither a user's key nor an admin's of the whole namespace; and there is nothing to write."""
    async with engram.connect(
        here.url, user_id="eve", api_key=here.key("admin", Access.ADMIN)
    ) as memory:
        with pytest.raises(AccessDenied):
            await memory.audit()
    written = [address for address in here.document["paths"] if "audit" in address]
    assert written == ["/v1/namespaces/{namespace}/users/{user_id}/audit"]


async def test_who_is_erased_is_neither_named_nor_matched(here: LiveEngram) -> None:
    """The erasure and what was done before stay, under a mark that only the key can tell."""
    settings = Settings.load(data_dir=here.folder)
    async with engram.open(user_id="grace-hopper", settings=settings) as memory:
        await memory.encode(SAID, session_id="s1")
        await memory.erase()
    found = trail(here, "-u", "grace-hopper")
    assert {e["user_id"] for e in found} == {None}
    assert {tuple(e["memory_ids"]) for e in found} == {()}
    assert {(e["actor"]["door"], e["action"]) for e in found} >= {
        *(("library", "encode"), ("library", "erase"), ("workflow", "erase")),
    }
    assert holders(here.folder / "audit", ["grace"]) == {}


def test_what_was_tampered_with_is_told_by_command_and_doctor(here: LiveEngram) -> None:
    """`engram audit` ends with exit code 1, and `engram doctor` fails, naming file and line."""
    assert cli.engram("encode", SAID, "-u", "hal", "-s", "s1", "-d", str(here.folder)).code == 0
    path: Path = next((here.folder / "audit").glob("2*.jsonl"))
    with path.open("r+b") as file:
        place = file.read().index(b'"outcome"')

        def put(text: bytes) -> None:
            file.seek(place)
            file.write(text)
            file.flush()

        put(b'"Outcome"')
        told = cli.engram("audit", "-d", str(here.folder))
        examined = cli.engram("doctor", "-d", str(here.folder))
        put(b'"outcome"')
    assert told.code == 1
    assert f"{path.name}, line 1: changed" in told.stderr
    assert f"{path.name}, line 1: changed" in examined.stdout
