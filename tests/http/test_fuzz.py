"""Thousands of odd requests: nothing breaks, nothing leaks, nothing is written but what is said.

`uv run pytest -n 0 -m slow tests/http/test_fuzz.py -s` sends 20,000 of them and prints the figures;
FUZZ_SEED draws others.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import time
from collections import Counter
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx
import pytest

from engram.domain.access import Access
from tests.support.live_engram import LiveEngram
from tests.support.malformed_requests import MalformedRequest, MalformedRequests

# What runs is started once, in one process (tests/http/conftest.py).
pytestmark = pytest.mark.xdist_group("live")

SEED = int(os.environ.get("FUZZ_SEED", "20260311"))
DOCUMENTED = {200, 400, 401, 403, 404, 405, 409, 413, 415, 421, 422, 429, 503}
OF_MCP = {202, 406}
ADA, BOB = "marzipanum", "quincebush"
WORD = re.compile(r"zq\d+x\d+z")
# Uvicorn's own words about what is no HTTP.
NO_HTTP = b"Invalid HTTP request received."


@dataclass
class Wire:
    """Sends bytes and reads answers; a new connection where the old one is spoilt."""

    host: str
    port: int
    open: socket.socket | None = None

    def send(self, odd: MalformedRequest) -> tuple[int, http.client.HTTPMessage, bytes] | None:
        """The answer; None where the server hung up on something that was cut off."""
        for again in (True, False):
            fresh = self.open is None or odd.cut
            link = self._link(fresh)
            try:
                link.sendall(odd.to_bytes())
                if odd.cut:
                    link.shutdown(socket.SHUT_WR)
                answer = http.client.HTTPResponse(link, method=odd.method)
                answer.begin()
                content = answer.read()
            except (OSError, http.client.HTTPException):
                self.close()
                if odd.cut:
                    return None
                # Idle connections may have been closed meanwhile; a fresh one must answer.
                if fresh or not again:
                    raise
                continue
            if answer.will_close or odd.cut:
                self.close()
            return answer.status, answer.headers, content
        raise AssertionError("the second time ends in an answer or an error")

    def _link(self, fresh: bool) -> socket.socket:
        if fresh or self.open is None:
            self.close()
            self.open = socket.create_connection((self.host, self.port), timeout=60)
        return self.open

    def close(self) -> None:
        """Hang up."""
        if self.open is not None:
            self.open.close()
            self.open = None


@dataclass
class Target:
    """A whole Engram with two tenants' memories, and a third user who writes."""

    here: LiveEngram
    keys: dict[str, str]
    admin: dict[str, str]
    ids: dict[str, list[str]] = field(default_factory=dict)

    def memories(self, namespace: str, user: str) -> list[str]:
        """Ids of all memories of a user."""
        url = f"{self.here.url}/v1/namespaces/{namespace}/users/{user}/memories"
        headers = {"Authorization": f"Bearer {self.admin[namespace]}"}
        found: list[str] = []
        cursor: str | None = None
        while True:
            asked = {"limit": "1000", "include_test": "true"} | (
                {"cursor": cursor} if cursor else {}
            )
            page = httpx.get(url, params=asked, headers=headers, timeout=60).json()
            found += [f"{memory['type']} {memory['id']}" for memory in page["memories"]]
            cursor = page["cursor"]
            if cursor is None:
                return sorted(found)


@pytest.fixture(scope="module")
def target(here: LiveEngram) -> Target:
    """Ada in one namespace, Bob in another."""
    admin = {
        name: here.key(f"admin-{name}", Access.ADMIN, namespace=name)
        for name in ("default", "other")
    }
    for namespace, user, word in (("default", "ada", ADA), ("other", "bob", BOB)):
        base = f"{here.url}/v1/namespaces/{namespace}/users/{user}"
        headers = {"Authorization": f"Bearer {admin[namespace]}"}
        said = [f"I live in {word}. Mail {word}@example.org.", f"My dog is called {word}."]
        body = {"turns": [{"content": words, "speaker": word} for words in said]}
        sent = httpx.post(f"{base}/sessions/s1/turns", json=body, headers=headers, timeout=60)
        assert sent.status_code == 200
        assert httpx.post(f"{base}/sessions/s1/end", headers=headers, timeout=60).is_success
        assert httpx.post(f"{base}/consolidate", headers=headers, timeout=60).is_success
    keys = {
        "reader": here.key("reader", Access.READ, user="ada"),
        "stranger": here.key("stranger", Access.READ, namespace="third", user="ada"),
        "writer": here.key("writer", Access.WRITE, user="scratch"),
    }
    return Target(here, keys, admin)


@pytest.mark.parametrize(
    "count",
    [
        500,
        pytest.param(20_000, marks=[pytest.mark.slow, pytest.mark.timeout(3000)]),
    ],
)
@pytest.mark.long
def test_odd_requests(target: Target, count: int) -> None:
    """No 5xx, no other's word, no repeated word, and in the store what was acknowledged."""
    before = {who: target.memories(*who) for who in (("default", "ada"), ("other", "bob"))}
    scratch = target.memories("default", "scratch")
    ids = [one.split()[1] for found in before.values() for one in found]
    odd_ones = MalformedRequests(
        SEED + count, target.keys, [*ids, "6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11"]
    )
    place = urlsplit(target.here.url)
    wire = Wire(str(place.hostname), int(place.port or 0))
    statuses: Counter[str] = Counter()
    acknowledged: set[str] = set()
    began = time.monotonic()
    for _ in range(count):
        odd = odd_ones.draw()
        answer = wire.send(odd)
        statuses[str(answer[0]) if answer else "hung up"] += 1
        if answer is not None:
            acknowledged.update(check(odd, *answer))
    wire.close()
    seconds = time.monotonic() - began
    figures = f"{count} requests in {seconds:.0f} s, {dict(sorted(statuses.items()))}"
    print(f"seed {SEED + count}: {figures}")  # noqa: T201 - figures
    assert statuses["503"] == 0
    for who, found in before.items():
        assert target.memories(*who) == found
    turns = [one for one in target.memories("default", "scratch") if one.startswith("episodic")]
    known = {one for one in scratch if one.startswith("episodic")}
    assert set(turns) == known | {f"episodic {one}" for one in acknowledged}
    assert len(acknowledged) > count / 500
    told = "\n".join(target.here.log)
    assert ADA not in told
    assert BOB not in told
    assert not WORD.search(told)
    assert not [line for line in target.here.log if line.startswith("error")]


def check(
    odd: MalformedRequest, status: int, headers: http.client.HTTPMessage, content: bytes
) -> set[str]:
    """What every answer must hold to; ids of the turns that it acknowledges."""
    shown = f"{odd.who} {odd.method} {odd.target[:200]} {odd.body[:300]!r} -> {content[:500]!r}"
    of_mcp = odd.target.startswith("/mcp")
    assert status in DOCUMENTED | (OF_MCP if of_mcp else set()), f"{status} {shown}"
    told = content + content.decode("utf-8", "replace").encode() + str(headers).encode()
    assert BOB.encode() not in told, shown
    if odd.who != "reader" or status >= 400:
        assert ADA.encode() not in told, shown
    if status >= 400 and odd.method != "HEAD":
        if content != NO_HTTP and not of_mcp:
            assert headers["content-type"] == "application/problem+json", shown
            assert json.loads(content)["status"] == status
            assert headers["x-request-id"]
        assert not WORD.search(content.decode()), shown
        assert len(content) < 4000, shown
    kept = (
        status == 200 and odd.target.partition("?")[0].endswith("/turns") and odd.method == "POST"
    )
    return set(json.loads(content)["episode_ids"]) if kept else set()
