"""The OpenAPI document is true: Schemathesis asks every address for what it says, and otherwise.

`SCHEMATHESIS_TIMES=300 uv run pytest -n 0 tests/http/test_schemathesis.py` asks each address that
often instead of a few times; the same requests come with every run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import requests
import schemathesis

# Loaded here, not by the first example: deep in its calls, Python 3.11 fails to compile it.
import schemathesis.generation.jsonschema.strategy
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.generation import GenerationMode
from schemathesis.schemas import APIOperation

from engram.domain.access import Access
from engram.operations.catalogue import OPERATIONS
from engram.server.routes import USER_PATH, address_of
from tests.support.live_engram import LiveEngram
from tests.support.sizes import examples

TIMES = int(os.environ.get("SCHEMATHESIS_TIMES", "5"))
ADDRESSES = [
    ("GET", "/v1/health"),
    ("GET", "/v1/ready"),
    *((one.http.method, address_of(one)) for one in OPERATIONS),
]
# They stop Temporal's server to rewrite its files, for seconds: done when there is time only.
REWRITING = (f"{USER_PATH}/erase", f"{USER_PATH}/erased", f"{USER_PATH}/compact")
CHECKED = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)
SAID = (
    "I live in Porto. Mail ada@example.org. I like tea, and I don't eat meat.",
    "I moved to Lisbon in May. I will call my sister Eva tomorrow.",
)

# What runs is started once, in one process.
pytestmark = [pytest.mark.timeout(max(600, 10 * TIMES)), pytest.mark.xdist_group("live")]


@dataclass
class Asked:
    """What is asked, and with which key."""

    here: LiveEngram
    schema: Any
    checks: list[Any]
    session: requests.Session
    headers: dict[str, str]
    ids: list[str]

    def ask(self, case: Any) -> None:
        """Send a request and hold its answer against the document."""
        answer = case.call(
            base_url=self.here.url, session=self.session, headers=self.headers, timeout=300
        )
        case.validate_response(answer, checks=self.checks)


@pytest.fixture(scope="module")
def asked(here: LiveEngram) -> Iterator[Asked]:
    """A whole Engram in which Grace has memories of every type."""
    load_all_checks()
    with requests.Session() as session:
        headers = {"Authorization": f"Bearer {here.key('everything', Access.ADMIN)}"}
        grace = f"{here.url}/v1/namespaces/default/users/grace"
        for number, words in enumerate(SAID):
            body = {"turns": [{"content": words, "message_id": f"m{number}"}]}
            answer = session.post(
                f"{grace}/sessions/s1/turns", json=body, headers=headers, timeout=60
            )
            assert answer.status_code == 200
        assert session.post(f"{grace}/consolidate", headers=headers, timeout=60).status_code == 200
        listed = session.get(f"{grace}/memories?limit=1000", headers=headers, timeout=60).json()
        ids = [memory["id"] for memory in listed["memories"]]
        assert {memory["type"] for memory in listed["memories"]} >= {"episodic", "semantic"}
        schema = schemathesis.openapi.from_dict(here.document)
        yield Asked(here, schema, CHECKS.get_by_names(CHECKED), session, headers, ids)


@pytest.mark.parametrize(("method", "path"), ADDRESSES, ids=[path for _, path in ADDRESSES])
def test_an_address_answers_as_documented(asked: Asked, method: str, path: str) -> None:
    """No 5xx, no status that is not in the document, and every body of the form that it gives."""
    operation: APIOperation[Any, Any, Any, Any] = asked.schema[path][method]
    places = {"namespace": "default", "user_id": "grace", "session_id": "s1"}
    known = {name: value for name, value in places.items() if f"{{{name}}}" in path}
    as_documented = operation.as_strategy(GenerationMode.POSITIVE, path_parameters=known or None)
    otherwise = operation.as_strategy(GenerationMode.NEGATIVE, path_parameters=known or None)
    anywhere = operation.as_strategy(GenerationMode.POSITIVE)
    rewrites, logged = 0, len(asked.here.log)

    @settings(
        max_examples=examples(TIMES),
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(
        st.one_of(as_documented, otherwise, as_documented, anywhere),
        st.none() | st.sampled_from(asked.ids),
    )
    def asking(case: Any, memory_id: str | None) -> None:
        nonlocal rewrites
        if memory_id is not None:
            _about(case, memory_id)
        if path in REWRITING:
            rewrites += 1
            if TIMES < 100 or rewrites > 3:
                case.body = {"not": "a field"}
        asked.ask(case)

    asking()
    broken = [line for line in asked.here.log[logged:] if line.startswith("error")]
    assert not broken


def test_the_document_has_nothing_else(asked: Asked) -> None:
    """All that it describes is asked above."""
    described = {
        (method.upper(), path)
        for path, methods in asked.here.document["paths"].items()
        for method in methods
    }
    assert described == set(ADDRESSES)


def _about(case: Any, memory_id: str) -> None:
    """Let a request name a memory that exists, where it names one."""
    if "memory_id" in (case.path_parameters or {}):
        case.path_parameters["memory_id"] = memory_id
    if isinstance(case.body, dict):
        if "memory_id" in case.body:
            case.body["memory_id"] = memory_id
        if "memory_ids" in case.body:
            case.body["memory_ids"] = [memory_id]
