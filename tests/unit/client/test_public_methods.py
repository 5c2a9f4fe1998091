"""What applications and clients hold on to: the methods of a memory, and the HTTP document."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from engram.client.local import direct_engine
from engram.client.memory import MemoryStore
from engram.operations.catalogue import GROUPS, OPERATIONS
from tests.support.page_makers import DOCS, page_maker

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data"


def methods() -> Iterator[str]:
    """Every public member of a memory store with its signature."""
    for name, member in sorted(inspect.getmembers(MemoryStore)):
        if not name.startswith("_"):
            yield f"{name}{inspect.signature(member)}" if callable(member) else name


def test_the_methods_of_a_memory_are_those_written_down() -> None:
    """No public method of MemoryStore goes, and no signature changes, unnoticed."""
    assert list(methods()) == (DATA / "memory_store.txt").read_text().splitlines()


def test_the_http_document_is_the_one_written_down() -> None:
    """No address and no schema of the HTTP API changes unnoticed, nor do they change places.

    What is meant to change: ``uv run python docs/generate_openapi.py``, which says what would break
    clients.
    """
    committed = (DOCS / "openapi.json").read_text("utf-8")
    maker = page_maker("openapi")
    assert committed == maker.written(maker.document())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda new: new["paths"].pop("/v1/ready"), "GET /v1/ready is gone"),
        (lambda new: new["components"]["schemas"].pop("Turn"), "schema Turn is gone"),
        (
            lambda new: new["components"]["schemas"]["Turn"]["properties"].pop("content"),
            "schema Turn: field content is gone",
        ),
        (
            lambda new: new["components"]["schemas"]["Turn"]["required"].append("speaker"),
            "schema Turn: field speaker must be given",
        ),
        (
            lambda new: new["components"]["schemas"]["Turn"]["properties"]["content"].update(
                type="integer"
            ),
            "schema Turn: field content has another type",
        ),
        (
            lambda new: new["components"]["schemas"]["Receipt"]["required"].remove("fact_ids"),
            "schema Receipt: field fact_ids may be missing",
        ),
        (
            lambda new: new["components"]["schemas"]["Signal"]["enum"].remove("high"),
            "schema Signal: high is gone",
        ),
    ],
)
def test_what_breaks_clients_of_the_http_api_is_said(
    change: Callable[[dict[str, Any]], object], said: str
) -> None:
    """What goes, becomes required or changes its type is named; what is added is not."""
    old = json.loads((DOCS / "openapi.json").read_text("utf-8"))
    new = deepcopy(old)
    new["components"]["schemas"]["Added"] = {"type": "object"}
    new["components"]["schemas"]["Receipt"]["properties"]["added"] = {"type": "string"}
    new["components"]["schemas"]["Receipt"]["required"].append("added")
    assert list(page_maker("openapi").breaking(old, new)) == []
    change(new)
    assert list(page_maker("openapi").breaking(old, new)) == [said]


def test_each_operation_has_one_name_and_one_handler() -> None:
    """No two operations share a name, and an engine is made of every class that handles some."""
    names = [operation.name for operation in OPERATIONS]
    assert len(names) == len(set(names))
    made = inspect.getsource(direct_engine)
    assert [group.__name__ for group in GROUPS if f"{group.__name__}(" not in made] == []
