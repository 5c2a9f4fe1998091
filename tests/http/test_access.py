"""Who may do what: every address with every access, and never the memory of another tenant."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from engram.domain.access import Access
from engram.domain.deeds import Actor, Door
from engram.domain.scope import Scope
from engram.errors import AccessDenied
from engram.operations.catalogue import OPERATIONS
from engram.server.middleware import OPEN_PATHS, OWNER, Caller
from engram.server.routes import GuardedRoute, address_of, takes
from engram.server.run import mcp_mounted
from engram.settings import Settings
from tests.support.fake_engine import FakeEngine
from tests.support.key_maker import KeyMaker, bearer

# Written down a second time on purpose: what an access opens is changed knowingly.
READS = {
    *("working-memory", "recall", "list-memories", "get-memory", "history", "stats", "count"),
    *("verify", "profile", "profiles", "topics", "boxes", "guidelines", "usage", "briefing"),
    *("status", "energy", "promotions", "health", "inspect", "validate"),
    *("export-header", "context", "reviews"),
}
WRITES = {
    *("encode", "end-session", "resolve", "forget", "wait-until"),
    *("confirm", "dispute", "protect", "unprotect", "demote", "review"),
    *("import-begin", "import-turns", "import-finish"),
}
# Acts on everybody: no key opens it, whatever it may do to one user or one namespace.
OPERATOR_ONLY = {"compact", "audit"}
# Everything that is not named above is for admins: what is new is closed until it is named here.
ROUTES = [(one.http.method, address_of(one), one.name) for one in OPERATIONS]
PLACES = {"session_id": "s1", "memory_id": "6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11"}


def needed(name: str) -> Access:
    """What the address must take."""
    if name in READS:
        return Access.READ
    return Access.WRITE if name in WRITES else Access.ADMIN


def address(path: str, namespace: str = "default", user: str = "ada") -> str:
    """The path with names in its places."""
    return path.format(namespace=namespace, user_id=user, **PLACES)


async def ask(
    web: httpx.AsyncClient, method: str, url: str, token: str | None, body: Any = None
) -> httpx.Response:
    """One request."""
    return await web.request(
        method, url, headers=bearer(token) if token else {}, json={} if body is None else body
    )


@pytest.mark.parametrize(("method", "path", "name"), ROUTES, ids=[name for *_, name in ROUTES])
async def test_every_address_with_every_access(
    web: httpx.AsyncClient, key_maker: KeyMaker, method: str, path: str, name: str
) -> None:
    """Without a key nothing; with less than is needed 403; with enough the engine is reached."""
    assert (await ask(web, method, address(path), None)).status_code == 401
    for access in Access:
        answer = await ask(web, method, address(path), key_maker.token(access.value, access))
        if name in OPERATOR_ONLY:
            assert (answer.status_code, answer.json()["code"]) == (403, "access_denied")
        elif access.includes(needed(name)):
            # What the engine says to a body without content does not matter here.
            assert answer.status_code not in (401, 403), answer.text
        else:
            assert answer.status_code == 403
            assert answer.json()["code"] == "access_denied"
            assert needed(name).value in answer.json()["allowed"]


@pytest.mark.parametrize(("method", "path", "name"), ROUTES, ids=[name for *_, name in ROUTES])
async def test_what_a_key_does_not_reach_does_not_exist(
    web: httpx.AsyncClient,
    key_maker: KeyMaker,
    fake: FakeEngine,
    method: str,
    path: str,
    name: str,
) -> None:
    """Another user, another namespace, no such address: the same answer, whatever the body."""
    fake.failure = AssertionError("the engine was reached")
    bound = key_maker.token("bound", user="ada")
    free = key_maker.token("free")
    unknown = (await ask(web, "POST", "/v1/nothing", bound)).json()
    cases = [
        (bound, address(path, user="bob")),
        (bound, address(path, user="ADA")),
        (bound, address(path, namespace="other")),
        (free, address(path, namespace="other")),
        (bound, address(path, user=" ")),
    ]
    for token, url in cases:
        for body in ({}, {"no such field": 1}, {"memory_id": "m"}):
            answer = await ask(web, method, url, token, body)
            assert answer.status_code == 404, name
            assert {**answer.json(), "request_id": None} == {**unknown, "request_id": None}
        broken = await web.request(method, url, headers=bearer(token), content=b"{")
        assert broken.status_code == 404


def test_who_owns_the_folder_may_act_on_everybody() -> None:
    """The caller of the socket is bound to no namespace; every holder of a key is."""
    OWNER.require_operator()
    for user in (None, "ada"):
        with pytest.raises(AccessDenied):
            Caller("k", Access.ADMIN, namespace="default", user_id=user).require_operator()


async def test_ids_of_others_are_as_ids_that_do_not_exist(
    web: httpx.AsyncClient, key_maker: KeyMaker, fake: FakeEngine
) -> None:
    """Bob's memory, asked for as Ada's, answers as an id that nobody has."""
    token = key_maker.token()
    turns = address("/v1/namespaces/{namespace}/users/{user_id}/sessions/s1/turns", user="bob")
    kept = await ask(web, "POST", turns, token, {"turns": [{"content": "I am Bob."}]})
    (memory_id,) = kept.json()["episode_ids"]
    assert len(fake.kept) == 1
    answers = []
    for asked in (memory_id, PLACES["memory_id"]):
        url = address("/v1/namespaces/{namespace}/users/{user_id}/memories/") + asked
        answer = await ask(web, "GET", url, token)
        assert answer.status_code == 404
        answers.append(answer.text.replace(asked, "").replace(answer.json()["request_id"], ""))
    assert answers[0] == answers[1]


async def test_a_key_of_a_namespace_opens_its_users(
    web: httpx.AsyncClient, key_maker: KeyMaker
) -> None:
    """A key without a user reaches every user of its namespace, and a key of one only that one."""
    free, bound = key_maker.token("free"), key_maker.token("bound", user="ada")
    path = "/v1/namespaces/{namespace}/users/{user_id}/stats"
    for user in ("ada", "bob"):
        assert (await ask(web, "GET", address(path, user=user), free)).status_code == 200
    assert (await ask(web, "GET", address(path), bound)).status_code == 200


async def test_what_is_refused_over_mcp_is_noted_as_over_http(
    web: httpx.AsyncClient, key_maker: KeyMaker, fake: FakeEngine, app: FastAPI, settings: Settings
) -> None:
    """A tool that the key is not enough for, and another user's memory, unless it is nobody's."""
    key = key_maker.key("reader", Access.READ, user="ada")
    headers = bearer(key_maker.tokens[-1]) | {"Accept": "application/json, text/event-stream"}
    forget = {"name": "forget", "arguments": {"memory_id": PLACES["memory_id"]}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": forget}
    async with mcp_mounted(app, fake, settings, key_maker.clock):
        denied = await web.post("/mcp", headers=headers, json=call)
        for user in ("bob", "no name"):
            elsewhere = {**headers, "Engram-User": user}
            assert (await web.post("/mcp", headers=elsewhere, json=call)).status_code == 404
    assert denied.json()["result"]["structuredContent"]["code"] == "access_denied"
    who = Actor(door=Door.MCP, key_id=key.id)
    assert fake.refusals == [
        (who, Scope.of("default", "ada"), "forget", "access_denied"),
        (who, Scope.of("default", "bob"), "mcp", "no_such_address"),
    ]


def test_no_address_was_left_out(app: FastAPI) -> None:
    """The table above holds every address that the application has, but the open ones."""
    offered = set()
    for route in app.routes:
        if isinstance(route, APIRoute):
            assert isinstance(route, GuardedRoute)
            if route.access is None:
                assert route.path in OPEN_PATHS
            else:
                offered.add(route.path)
    assert offered == {path for _, path, _ in ROUTES}
    assert {name for *_, name in ROUTES} >= READS | WRITES


def test_a_route_that_does_not_say_its_access_cannot_be_made() -> None:
    """Forgetting it is an error where the route is made, not an open door."""

    async def nothing() -> None:
        """Nothing."""

    with pytest.raises(KeyError):
        GuardedRoute("/v1/x", nothing)
    assert GuardedRoute("/v1/x", nothing, openapi_extra=takes(Access.READ)).access is Access.READ


async def test_only_three_addresses_are_open(web: httpx.AsyncClient, app: FastAPI) -> None:
    """Health, readiness and the document answer anybody; nothing else does, known or not."""
    for path in ("/v1/health", "/v1/ready", "/openapi.json"):
        assert (await web.get(path)).status_code == 200
    for path in ("/", "/docs", "/redoc", "/v1", "/v1/health/", "/mcp", "/v1/keys", "//v1/health"):
        assert (await web.get(path)).status_code == 401
    assert (await web.get("/v1/health", headers=bearer("engram_wrong"))).status_code == 401


@pytest.mark.parametrize("path", ["/v1/health", "/v1/ready"])
async def test_monitors_may_ask_for_the_status_alone(web: httpx.AsyncClient, path: str) -> None:
    """HEAD is answered as GET is, as some monitors ask; it is the same address in the document."""
    assert (await web.head(path)).status_code == (await web.get(path)).status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "127.0.0.1"}, 200),
        ({"Host": "localhost:9999"}, 200),
        ({"Host": "[::1]:8745"}, 200),
        ({"Host": "LOCALHOST"}, 200),
        ({"Host": "rebound.example"}, 421),
        ({"Host": "rebound.example:8745"}, 421),
        ({"Host": "127.0.0.1.rebound.example"}, 421),
        ({"Host": "127.0.0.1@rebound.example"}, 421),
        ({"Host": ""}, 421),
        ({"Host": "["}, 421),
        ({"Origin": "http://localhost:3000"}, 200),
        ({"Origin": "http://rebound.example"}, 403),
        ({"Origin": "https://localhost.rebound.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": ""}, 403),
    ],
)
async def test_pages_of_other_sites_get_nothing(
    web: httpx.AsyncClient, key_maker: KeyMaker, headers: dict[str, str], status: int
) -> None:
    """On loopback only its own names are served, whatever a page lets its name resolve to."""
    url = address("/v1/namespaces/{namespace}/users/{user_id}/stats")
    answer = await web.get(url, headers={**bearer(key_maker.token()), **headers})
    assert answer.status_code == status
    if status != 200:
        assert answer.headers["content-type"] == "application/problem+json"
    assert "access-control-allow-origin" not in answer.headers
