"""What applications and clients hold on to: the methods of a memory, and the HTTP document."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engram.client.local import direct_engine
from engram.client.memory import MemoryStore
from engram.operations.catalogue import GROUPS, OPERATIONS
from engram.server.app import create_app
from engram.server.middleware import OwnerOnly
from engram.settings import Settings
from tests.support.fake_engine import FakeEngine

DATA = Path(__file__).parents[2] / "data"


def methods() -> Iterator[str]:
    """Every public member of a memory store with its signature."""
    for name, member in sorted(inspect.getmembers(MemoryStore)):
        if not name.startswith("_"):
            yield f"{name}{inspect.signature(member)}" if callable(member) else name


def parts(document: dict[str, Any]) -> Iterator[str]:
    """Every address and every schema of an OpenAPI document, with a digest of its bytes."""
    for path, each in document["paths"].items():
        for method, operation in each.items():
            yield f"{method} {path} {_digest(operation)}"
    for name, schema in document["components"]["schemas"].items():
        yield f"schema {name} {_digest(schema)}"


def _digest(part: Any) -> str:
    return hashlib.sha256(json.dumps(part).encode()).hexdigest()[:16]


def test_the_methods_of_a_memory_are_those_written_down() -> None:
    """No public method of MemoryStore goes, and no signature changes, unnoticed."""
    assert list(methods()) == (DATA / "memory_store.txt").read_text().splitlines()


def test_the_http_document_is_the_one_written_down() -> None:
    """No address and no schema of the HTTP API changes a byte unnoticed, nor do they change places.

    What is meant to change: put the new line of the failure into tests/data/openapi.txt.
    """
    app = create_app(FakeEngine, admission=OwnerOnly(), settings=Settings.load())
    assert list(parts(app.openapi())) == (DATA / "openapi.txt").read_text().splitlines()


def test_each_operation_has_one_name_and_one_handler() -> None:
    """No two operations share a name, and an engine is made of every class that handles some."""
    names = [operation.name for operation in OPERATIONS]
    assert len(names) == len(set(names))
    made = inspect.getsource(direct_engine)
    assert [group.__name__ for group in GROUPS if f"{group.__name__}(" not in made] == []
