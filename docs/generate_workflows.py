"""Writes the tables of docs/workflows.md, and docs/workflows.json, from the contract itself.

Run it after changing a contract: ``uv run python docs/generate_workflows.py``
A test compares both with what this gives.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from engram.contracts.published import OF_EVERY_CALL, PUBLISHED, PublishedWorkflow
from engram.errors import EngramError

PAGE = Path(__file__).with_name("workflows.md")
SCHEMA = Path(__file__).with_name("workflows.json")
BEGIN = "<!-- made by docs/generate_workflows.py from engram/contracts/published.py -->"
END = "<!-- end of what is made -->"


def called(kind: Any) -> str:
    """A type as the page names it."""
    if kind is None:
        return "-"
    inner = getattr(kind, "__args__", ())
    return f"list of `{inner[0].__name__}`" if inner else f"`{kind.__name__}`"


def codes(errors: tuple[type[EngramError], ...]) -> str:
    """The types of failures."""
    return ", ".join(f"`{one.code}`" for one in errors) or "-"


def section(published: PublishedWorkflow) -> Iterator[str]:
    """One workflow."""
    yield from (f"### `{published.name}`", "", published.meaning, "")
    yield from ("| | |", "|---|---|", f"| Id | `{published.id}` |")
    yield f"| Start | {published.start or 'by Engram alone'} |"
    yield f"| Input | {called(published.takes)} |"
    yield f"| Result | {called(published.gives)} |"
    if published.twice:
        yield f"| Started again | {published.twice} |"
    if published.errors:
        yield f"| Fails with | {codes(published.errors)} |"
    if published.sent:
        yield from ("", "| | Takes | Gives | | Fails with |", "|---|---|---|---|---|")
        for one in published.sent:
            cells = (f"{one.kind} `{one.name}`", called(one.takes), called(one.gives), one.meaning)
            yield f"| {' | '.join(cells)} | {codes(one.errors)} |"
    yield ""


def made() -> Iterator[str]:
    """What is made of the page."""
    for published in PUBLISHED:
        yield from section(published)
    yield f"Every start and every update can fail with {codes(OF_EVERY_CALL)} as well."


def page(text: str) -> str:
    """The page with what is made of it made anew."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return "\n".join([head + BEGIN, "", *made(), "", END]) + tail


def schema() -> str:
    """The contract as JSON: each workflow with JSON Schemas of what it takes and gives."""
    kinds = [
        (kind, mode)
        for published in PUBLISHED
        for one in (published, *published.sent)
        for kind, mode in ((one.takes, "validation"), (one.gives, "serialization"))
        if kind is not None
    ]
    inputs: Any = [(key, mode, TypeAdapter(kind)) for key, (kind, mode) in enumerate(kinds)]
    found, definitions = TypeAdapter.json_schemas(inputs, ref_template="#/$defs/{model}")
    of = iter([found[key, mode] for key, (_, mode) in enumerate(kinds)])

    def shape(one: Any) -> dict[str, Any]:
        return {
            name: next(of)
            for name, kind in (("input", one.takes), ("output", one.gives))
            if kind is not None
        }

    workflows: dict[str, Any] = {}
    for published in PUBLISHED:
        told: dict[str, Any] = {"id": published.id, "start": published.start, **shape(published)}
        for one in published.sent:
            about = {**shape(one), "errors": [error.code for error in one.errors]}
            told.setdefault(f"{one.kind}s".replace("querys", "queries"), {})[one.name] = about
        workflows[published.name] = told | {"errors": [error.code for error in published.errors]}
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Engram's workflows",
        "errorsOfEveryCall": [error.code for error in OF_EVERY_CALL],
        "workflows": workflows,
        **definitions,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    SCHEMA.write_text(schema(), encoding="utf-8")
