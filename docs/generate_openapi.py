"""Writes docs/openapi.json, the HTTP API as a document, from the application itself.

Run it after changing an operation: ``uv run python docs/generate_openapi.py``
A test compares the file with what this gives. What would break clients that are there is listed,
and nothing is written, unless ``--breaking`` says that it is meant.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engram.client.engine import MemoryEngine
from engram.server.app import asked_schemas, create_app
from engram.server.keys import KeyFile, KeyRing
from engram.server.middleware import ByKey
from engram.settings import Settings
from engram.system import system_clock

PAGE = Path(__file__).with_name("openapi.json")


def document() -> dict[str, Any]:
    """The document; nobody is asked for it."""

    def nobody() -> MemoryEngine:
        raise AssertionError

    settings = Settings.load()
    # As it is served over TCP: clients that are made of it send a key.
    keys = ByKey(KeyRing(KeyFile(settings.keys_path), system_clock), settings)
    return create_app(nobody, admission=keys, settings=settings).openapi()


def written(document: dict[str, Any]) -> str:
    """The document as the file has it, in the order of the application."""
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def breaking(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """What a client of the old document trips over."""
    for path, methods in old["paths"].items():
        for method, operation in methods.items():
            where, now = f"{method.upper()} {path}", new["paths"].get(path, {}).get(method)
            if now is None:
                yield f"{where} is gone"
            else:
                yield from _parameters(where, operation, now)
    schemas, asked = new["components"]["schemas"], asked_schemas(old)
    for name, schema in old["components"]["schemas"].items():
        if name not in schemas:
            yield f"schema {name} is gone"
        else:
            yield from _fields(f"schema {name}", schema, schemas[name], asked=name in asked)


def _parameters(where: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    before, now = (
        {one["name"]: one for one in operation.get("parameters", ())} for operation in (old, new)
    )
    yield from (f"{where}: parameter {name} is gone" for name in before.keys() - now.keys())
    for name, one in now.items():
        if one.get("required") and not before.get(name, {}).get("required"):
            yield f"{where}: parameter {name} must be given"


def _fields(where: str, old: dict[str, Any], new: dict[str, Any], *, asked: bool) -> Iterator[str]:
    before, now = old.get("properties", {}), new.get("properties", {})
    for name, one in before.items():
        if name not in now:
            yield f"{where}: field {name} is gone"
        elif _type(one) != _type(now[name]):
            yield f"{where}: field {name} has another type"
    giving, must, may = (new, old, "must be given") if asked else (old, new, "may be missing")
    for name in giving.get("required", ()):
        if name in now and name not in must.get("required", ()):
            yield f"{where}: field {name} {may}"
    for value in old.get("enum", ()):
        if value not in new.get("enum", ()):
            yield f"{where}: {value} is gone"


def _type(field: dict[str, Any]) -> object:
    """What a field may hold, without what is said of it."""
    return {key: field.get(key) for key in ("type", "$ref", "items", "anyOf", "oneOf", "enum")}


if __name__ == "__main__":
    made = document()
    found = list(breaking(json.loads(PAGE.read_text("utf-8")), made)) if PAGE.exists() else []
    if found and "--breaking" not in sys.argv:
        sys.exit("\n".join([*found, "Clients break; --breaking writes it all the same."]))
    PAGE.write_text(written(made), encoding="utf-8")
