"""Tenants who use every door at once, and note whatever they are answered."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import httpx
from mcp import Client
from mcp_types import TextContent

from engram.client.memory import MemoryStore
from engram.errors import EngramError, InvalidInput, MemoryNotFound

UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")


@dataclass
class Tenant:
    """One of those who must never see anything of each other.

    Attributes:
        word: Stands in everything that this one says, and in nothing that others say.
        ids: Of memories that are or were this one's.
        answers: What this one was answered, by door.
        refused: Others' ids that this one asked for and was told do not exist.
    """

    namespace: str
    user: str
    word: str
    others: list[Tenant] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    answers: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)

    def heard(self, door: str, answer: object) -> None:
        """Note an answer; a word of another in it is a crossing."""
        text = answer if isinstance(answer, str) else repr(answer)
        self.answers[door] += 1
        for other in self.others:
            assert other.word not in text.lower(), f"{self.word} by {door}: {text[:2000]}"
        self.seen.update(UUID.findall(text))

    def of_another(self, chance: Random) -> str | None:
        """An id that this one has no business with."""
        theirs = chance.choice(self.others).ids
        return chance.choice(theirs) if theirs else None

    def sentence(self, chance: Random) -> str:
        """Something to remember."""
        word, number = self.word, chance.randrange(40)
        return chance.choice(
            (
                f"I live in {word.title()}.",
                f"My e-mail is {word}{number}@example.org.",
                f"My sister {word.title()} moved to Lisbon in May.",
                f"I don't eat {word} any more.",
                f"I will call {word.title()} on 12 May 2026 about room {number}.",
            )
        )

    def question(self, chance: Random) -> str:
        """A question, as often about the words of others as about one's own."""
        word = chance.choice([self, *self.others]).word
        return chance.choice((f"What about {word}?", "Where does the user live?", f"{word} e-mail"))


async def use_store(tenant: Tenant, door: str, store: MemoryStore, chance: Random) -> None:
    """One thing, drawn at random, through a memory store."""
    own = chance.choice(tenant.ids) if tenant.ids else None
    calls: list[Callable[[], Awaitable[Any]]] = [
        lambda: store.encode(tenant.sentence(chance), session_id=f"s{chance.randrange(3)}"),
        lambda: store.recall(tenant.question(chance), include_sources=True, explain=True),
        lambda: store.recall(tenant.question(chance), follow_links=True, include_archived=True),
        lambda: store.list(limit=chance.randrange(1, 50)),
        lambda: store.working_memory(f"s{chance.randrange(3)}"),
        lambda: store.context(tenant.question(chance)),
        store.profiles,
        store.topics,
        store.boxes,
        store.briefing,
        store.stats,
        store.status,
        store.guidelines,
        store.usage,
    ]
    if chance.random() < 0.03:
        calls = [store.consolidate, store.decay, lambda: store.end_session("s0")]
    if own is not None and chance.random() < 0.4:
        calls = [partial(one, own) for one in about(store)]
    try:
        answer = await chance.choice(calls)()
    except MemoryNotFound as error:
        # What was forgotten meanwhile, or a profile that is not there yet.
        tenant.heard(door, str(error))
    except EngramError as error:
        # A turn cannot be disputed; of many who change a memory, some may have to try again.
        if not (error.retryable or isinstance(error, InvalidInput)):
            raise
        tenant.heard(door, str(error))
    else:
        tenant.heard(door, answer)
        tenant.ids.extend(getattr(answer, "episode_ids", ()))
        tenant.ids.extend(getattr(answer, "fact_ids", ()))
    await ask_for_anothers(tenant, door, about(store), chance)


def about(store: MemoryStore) -> list[Callable[[str], Awaitable[Any]]]:
    """Everything that can be asked about one memory."""
    return [
        *(store.get, store.history, store.verify, store.confirm, store.inspect),
        *(store.protect, store.dispute, store.forget),
    ]


async def ask_for_anothers(
    tenant: Tenant, door: str, ways: list[Callable[[str], Awaitable[Any]]], chance: Random
) -> None:
    """A memory of another does not exist, whatever is asked about it."""
    theirs = tenant.of_another(chance)
    if theirs is None:
        return
    try:
        answer = await chance.choice(ways)(theirs)
    except MemoryNotFound as error:
        tenant.heard(door, str(error))
        tenant.refused[door] += 1
    else:
        raise AssertionError(f"{tenant.word} by {door} got {answer!r}")


async def use_http(tenant: Tenant, web: httpx.AsyncClient, chance: Random) -> None:
    """One thing over plain HTTP, with a key of this tenant; then the same at another's address."""
    asked: list[tuple[str, str, Any]] = [
        ("POST", "recall", {"query": tenant.question(chance), "explain": True}),
        ("POST", "sessions/web/turns", {"turns": [{"content": tenant.sentence(chance)}]}),
        ("GET", "memories?limit=20", None),
        ("GET", "stats", None),
        ("POST", "profile", {}),
        ("GET", "sessions/web/working-memory", None),
        ("POST", "test-list", {}),
        ("POST", "export-header", {}),
    ]
    method, path, body = chance.choice(asked)
    mine = f"/v1/namespaces/{tenant.namespace}/users/{tenant.user}"
    answer = await web.request(method, f"{mine}/{path}", json=body)
    assert answer.status_code in (200, 404), answer.text
    tenant.heard("http", answer.text)
    if path.endswith("turns"):
        tenant.ids.extend(answer.json()["episode_ids"])
    other = chance.choice(tenant.others)
    theirs = f"/v1/namespaces/{other.namespace}/users/{other.user}"
    refused = await web.request(method, f"{theirs}/{path}", json=body)
    assert refused.status_code == 404, refused.text
    tenant.heard("http", refused.text)
    if other.ids:
        wanted = chance.choice(other.ids)
        for place in (f"{mine}/memories/{wanted}", f"{mine}/memories/{wanted}/history"):
            missing = await web.get(place)
            assert missing.status_code == 404, missing.text
            tenant.heard("http", missing.text.replace(wanted, ""))
        tenant.refused["http"] += 1


async def use_mcp(tenant: Tenant, client: Client, chance: Random) -> None:
    """One tool call, and one about a memory of another."""
    name, given = chance.choice(
        [
            ("remember", {"text": tenant.sentence(chance)}),
            ("recall", {"query": tenant.question(chance)}),
            ("profile", {}),
            ("stats", {}),
        ]
    )
    answer = await client.call_tool(name, given)
    text = " ".join(part.text for part in answer.content if isinstance(part, TextContent))
    tenant.heard("mcp", text)
    if name == "remember":
        tenant.ids.extend(UUID.findall(text))
    theirs = tenant.of_another(chance)
    if theirs is not None:
        tool = chance.choice(("verify", "confirm", "forget"))
        refused = await client.call_tool(tool, {"memory_id": theirs})
        assert refused.is_error, refused
        tenant.refused["mcp"] += 1


async def use_shell(tenant: Tenant, folder: Path, url: str, key: str, chance: Random) -> None:
    """A command by the folder, or by the address; and one about a memory of another."""
    by_url = chance.random() < 0.5
    where = ["--url", url] if by_url else []
    whose = ["-u", tenant.user] + ([] if by_url else ["-d", str(folder)])
    given = {"ENGRAM_API_KEY": key, "ENGRAM_NAMESPACE": tenant.namespace}
    code, said = await run(given, *where, "recall", tenant.question(chance), *whose, "--json")
    assert code == 0, said
    tenant.heard("cli", json.dumps(json.loads(said)))
    theirs = tenant.of_another(chance)
    if theirs is not None:
        code, said = await run(given, *where, "show", theirs, *whose)
        assert code != 0
        tenant.heard("cli", said.replace(theirs, ""))
        tenant.refused["cli"] += 1


async def run(given: dict[str, str], *arguments: str) -> tuple[int | None, str]:
    """A command of Engram: how it ended, and what it said."""
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "engram.cli", *arguments),
        env={**os.environ, **given},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, errors = await program.communicate()
    return program.returncode, (out if program.returncode == 0 else out + errors).decode()
