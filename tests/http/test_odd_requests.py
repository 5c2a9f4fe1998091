"""Requests that a fuzzer once broke something with: each is refused with its reason."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_origin

import httpx
import pytest
from pydantic import BaseModel

from engram.domain.access import Access
from engram.operations.catalogue import OPERATIONS
from engram.operations.registry import Operation
from tests.support.live_engram import LiveEngram
from tests.support.page_makers import DOCS

BASE = "/v1/namespaces/default/users/odd"
IMPORT = "0123456789ab"
BEYOND = "9999-12-31T23:59:59-12:00"
BEFORE = "0001-01-01T00:00:00+12:00"
LONE = "\ud800"
SCRIPT = re.compile(r"<!-- run -->\n```javascript\n(.*?)```", re.DOTALL)


# What runs is started once, in one process (tests/http/conftest.py).
pytestmark = pytest.mark.xdist_group("live")


@pytest.fixture(scope="module")
def web(here: LiveEngram) -> Iterator[httpx.Client]:
    """With a key for everything; the user has one memory."""
    headers = {"Authorization": f"Bearer {here.key('odd', Access.ADMIN)}"}
    with httpx.Client(base_url=here.url, headers=headers, timeout=30) as client:
        body = {"turns": [{"content": "I live in Porto.", "message_id": "m1"}]}
        assert client.post(f"{BASE}/sessions/s1/turns", json=body).status_code == 200
        assert client.post(f"{BASE}/import-begin", json={"import_id": IMPORT}).status_code == 200
        yield client


def post(web: httpx.Client, path: str, body: Any, base: str = BASE, **more: str) -> httpx.Response:
    """A body as Python writes it: with lone surrogates and NaN, if it has some."""
    headers = {"Content-Type": "application/json", **more}
    return web.post(f"{base}/{path}", content=json.dumps(body), headers=headers)


def turn(**more: Any) -> dict[str, Any]:
    """A body with one turn."""
    return {"turns": [{"content": "x", **more}]}


def nested(levels: int) -> dict[str, Any]:
    """Objects in each other."""
    return {"a": nested(levels - 1)} if levels else {}


def batch(packed: str, first: int = 0) -> dict[str, Any]:
    """A part of an import."""
    return {"import_id": IMPORT, "batch": {"first": first, "count": 1, "packed": packed}}


def pack(text: str) -> str:
    """As clients pack."""
    return base64.b64encode(zlib.compress(text.encode())).decode()


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("sessions/s2/turns", turn(metadata=nested(33)), 422, "invalid_turn"),
        ("sessions/s2/turns", turn(metadata=nested(200)), 422, "invalid_turn"),
        ("sessions/s2/turns", turn(metadata=nested(300)), 422, "invalid_turn"),
        ("sessions/s2/turns", turn(metadata={"k": float("nan")}), 422, "invalid_turn"),
        ("sessions/s2/turns", turn(metadata={"k": [float("-inf")]}), 422, "invalid_turn"),
        ("recall", {"query": "Porto", "as_of": BEYOND}, 422, "invalid_input"),
        ("recall", {"query": "Porto", "valid_at": BEFORE}, 422, "invalid_input"),
        ("recall", {"query": "Porto", "tags": [LONE]}, 422, "invalid_query"),
        ("profile", {"name": LONE}, 422, "invalid_query"),
        ("profile", {"as_of": BEYOND}, 422, "invalid_input"),
        ("boxes", {"session_id": LONE}, 422, "invalid_scope"),
        ("decay", {"at": BEYOND, "dry_run": True}, 422, "invalid_query"),
        ("decay", {"at": "0001-01-01T00:00:00Z", "dry_run": True}, 422, "invalid_query"),
        ("forget", {"memory_id": LONE}, 404, "memory_not_found"),
        ("forget", {"memory_id": "x" * 100_000}, 404, "memory_not_found"),
        ("forget", {"memory_id": "../ada"}, 404, "memory_not_found"),
        ("test-create", {"content": "\x00"}, 422, "invalid_turn"),
        ("test-create", {"content": "  "}, 422, "invalid_turn"),
        ("import-turns", batch("é"), 422, "invalid_input"),
        ("import-turns", batch(LONE), 422, "invalid_input"),
        ("import-turns", batch("AAAA"), 422, "invalid_input"),
        ("import-turns", batch("A" * 3_000_000), 422, "invalid_input"),
        ("import-turns", batch(pack("[" * 100_000)), 422, "invalid_input"),
        ("import-turns", batch("AAAA", first=10**30), 409, "import_out_of_step"),
        ("import-finish", {"import_id": IMPORT, "total": 7}, 409, "import_out_of_step"),
        ("import-finish", {"import_id": "f" * 12, "total": 0}, 409, "import_out_of_step"),
    ],
)
def test_what_the_sender_gets_wrong_is_no_fault_of_the_server(
    web: httpx.Client, path: str, body: Any, status: int, code: str
) -> None:
    """Refused at once and for a reason; once these were 500, or were tried again for ever."""
    answer = post(web, path, body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert len(answer.content) < 2000
    assert web.get(f"{BASE}/stats").json()["counts"]["episodic"] == 1


def test_an_import_is_called_what_its_client_calls_it(web: httpx.Client) -> None:
    """The id that an answer has goes on with the same import; each step says the same one."""
    user, said = BASE.replace("odd", "ida"), {"session_id": "s", "message_id": "m", "role": "user"}
    entry = {**said, "content": "I live in Porto.", "timestamp": "2024-05-01T10:00:00Z"}
    stretch = {"first": 0, "count": 1, "packed": pack(json.dumps([entry]))}
    begun = post(web, "import-begin", {"import_id": IMPORT}, user).json()
    again = post(web, "import-begin", {"import_id": begun["import_id"]}, user).json()
    sent = post(web, "import-turns", {"import_id": IMPORT, "batch": stretch}, user).json()
    done = post(web, "import-finish", {"import_id": IMPORT, "total": 1}, user).json()
    assert {one["import_id"] for one in (begun, again, sent, done)} == {IMPORT}
    assert (done["complete"], done["tally"]["stored"]) == (True, 1)


@pytest.mark.skipif(shutil.which("node") is None, reason="runs JavaScript")
def test_another_language_brings_a_history_in(here: LiveEngram) -> None:
    """The program of docs/import.md stores what it has, and nothing when it runs again."""
    (program,) = SCRIPT.findall((DOCS / "import.md").read_text("utf-8"))
    told = {"ENGRAM_URL": here.url, "ENGRAM_API_KEY": here.key("node", Access.WRITE)}
    for tally in ("stored: 2", "stored: 0"):
        done = subprocess.run(
            ["node", "--input-type=module", "-e", program],
            env={**os.environ, **told},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert tally in done.stdout


MEMORY = "6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11"
# What each operation needs beside the text that is odd, for that to get as far as it can.
NEEDED: dict[str, Any] = {
    "encode": turn(),
    "recall": {"query": "Porto"},
    "context": {"query": "Porto"},
    "wait-until": {"episode_ids": [MEMORY], "stage": "linked", "ask": False},
    "resolve": {"memory_id": MEMORY, "resolution": "fulfilled"},
    "review": {"review_id": MEMORY, "keep": "none"},
    "test-create": {"content": "x", "dry_run": True},
    "test-scenario": {"name": "fade"},
    "import": {"memories": [{"content": "x", "timestamp": "2026-01-01T00:00:00Z"}]},
    **{one: batch(pack("[]")) for one in ("import-turns", "restore-memories")},
    **{one: {"import_id": IMPORT, "total": 0} for one in ("import-finish", "restore-finish")},
}
BODIES = [one for one in OPERATIONS if one.has_body and not one.operator_only]


def odd_bodies(
    operation: Operation[Any, Any], fine: dict[str, Any], text: str
) -> Iterator[dict[str, Any]]:
    """The body with ``text`` in each place where text may stand, one place at a time."""
    for body in odd_values(operation.asked, fine, text):
        if body.keys() <= {*operation.sent}:
            yield body


def odd_values(kind: Any, fine: Any, text: str) -> Iterator[Any]:
    """What may stand in a field of this type, with ``text`` in it."""
    if kind is str:
        yield text
    elif isinstance(kind, type) and issubclass(kind, BaseModel):
        known = fine or {}
        for name, field in kind.model_fields.items():
            for value in odd_values(field.annotation, known.get(name), text):
                yield {**known, name: value}
    elif get_origin(kind) is tuple:
        yield from ([one] for one in odd_values(get_args(kind)[0], (fine or [None])[0], text))
    elif get_origin(kind) is Mapping:
        yield from ({text: 1}, {"k": text})
    else:
        for part in get_args(kind):
            yield from odd_values(part, fine, text)


@pytest.mark.parametrize("operation", BODIES, ids=lambda operation: str(operation.name))
def test_text_that_is_none_breaks_no_operation(
    web: httpx.Client, here: LiveEngram, operation: Operation[Any, Any]
) -> None:
    """Half of a pair of surrogates and NUL, in each field of each operation that takes text."""
    fine = NEEDED.get(operation.name, {})
    if "memory_id" in operation.sent:
        fine = {"memory_id": MEMORY, **fine}
    path = operation.path.format(session_id="odd")
    # Of its own, which has not asked too often.
    key = f"Bearer {here.key(operation.name, Access.ADMIN)}"
    for text in (LONE, "x\x00", f"\U0001f600{LONE}"):
        for body in odd_bodies(operation, fine, text):
            answer = post(web, path, body, f"{BASE}-texts", Authorization=key)
            assert answer.status_code < 500, (body, answer.text)
            assert answer.status_code != httpx.codes.TOO_MANY_REQUESTS


@pytest.mark.parametrize("last", [BEYOND, BEFORE, "3000-01-01T00:00:00Z"])
def test_a_last_access_that_cannot_be_is_refused(web: httpx.Client, last: str) -> None:
    """An imported memory was last used between 1900 and now."""
    one = {"content": "x", "timestamp": "2026-01-01T00:00:00Z", "last_accessed_at": last}
    answer = post(web, "import", {"memories": [one]})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_turn")


@pytest.mark.parametrize(
    "inside",
    [
        "[" * 20_000,
        '[1,"episodic","known_at",false,"2026-W01","{id}"]',
        '[1,"episodic","known_at",false,"2026-01-01","{id}"]',
        f'[1,"episodic","known_at",false,"{BEYOND}","{{id}}"]',
        '[1,"episodic","known_at",false,1,1]',
        "{}",
    ],
)
def test_a_forged_cursor_is_refused(web: httpx.Client, inside: str) -> None:
    """Whatever it holds, it is none that a listing gave."""
    (known,) = web.get(f"{BASE}/memories").json()["memories"]
    text = inside.replace("{id}", known["id"])
    cursor = "episodic:" + base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
    answer = web.get(f"{BASE}/memories", params={"cursor": cursor})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_query")


def test_a_refusal_does_not_repeat_what_stood_in_place_of_a_name(web: httpx.Client) -> None:
    """Names of fields are said, unless words stand there; many are not all said."""
    answer = post(web, "recall", {"query": "x", "I live in Porto": 1, "qeury": 2})
    assert answer.status_code == 422
    assert "Porto" not in answer.text
    assert "body.qeury: extra inputs are not permitted" in answer.json()["detail"]
    many = post(web, "recall", {"query": "x"} | {f"k{number}": 1 for number in range(5000)})
    assert len(many.content) < 2000
    assert "and 4990 more" in many.json()["detail"]


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        (
            "recall",
            {"query": "x", "memory_types": "bogus"},
            "body.memory_types: a list is expected",
        ),
        ("recall", ["x"], "body: an object is expected"),
        ("context", {"query": "x", "budget": 0}, "body.budget: "),
        (
            "sessions/s2/turns",
            {"turns": [{"content": "x", "timestamp": "soon"}]},
            "body.turns.0.timestamp: input should be a valid datetime",
        ),
    ],
)
def test_a_refusal_says_what_would_be_right(
    web: httpx.Client, path: str, body: Any, said: str
) -> None:
    """What is expected, in words, where it is wrong, and not what only follows from that."""
    answer = post(web, path, body)
    assert answer.status_code == 422
    assert said in answer.json()["detail"]
    assert "too_short" not in answer.text
    assert "at least" not in answer.text or path == "context"


def test_a_body_that_is_no_json_is_told_so(web: httpx.Client) -> None:
    """Nothing of it is repeated."""
    headers = {"Content-Type": "application/json"}
    answer = web.post(f"{BASE}/recall", content=b"{I live in Porto", headers=headers)
    assert answer.status_code == 422
    assert "this is no JSON" in answer.json()["detail"]
    assert "Porto" not in answer.text


@pytest.mark.parametrize("name", ["memory_types", "sesion_id", "foo"])
def test_a_parameter_that_means_nothing_is_refused(web: httpx.Client, name: str) -> None:
    """A misspelt filter would leave nothing out, and look as if it had."""
    answer = web.get(f"{BASE}/memories", params={name: "semantic"})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_query")
    assert "memory_type" in answer.json()["allowed"]


def test_metadata_comes_back_as_it_was_given(web: httpx.Client) -> None:
    """At the deepest that is taken, and with integers that no machine word holds."""
    metadata = {"big": 2**70, "deep": nested(30), "": [None, True, 1.5, "ß"]}
    kept = post(web, "sessions/s9/turns", turn(metadata=metadata, message_id="deep"))
    (memory_id,) = kept.json()["episode_ids"]
    found = web.get(f"{BASE}/memories/{memory_id}")
    assert json.loads(found.content)["metadata"] == metadata
    assert post(web, "forget", {"memory_id": memory_id}).status_code == 200
