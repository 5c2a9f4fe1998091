"""Comparing what the rules find in labelled turns with the labels."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engram.language.statements.reading import statements

DATA = Path(__file__).parents[1] / "data"


@dataclass(frozen=True)
class Measure:
    """Counts over a file.

    Attributes:
        found: Statements that are right.
        wrong: Turns' texts with statements that the labels do not have, once for each.
        missed: The same for statements that were not found.
    """

    found: int
    wrong: list[str]
    missed: list[str]

    @property
    def precision(self) -> float:
        """The part of what was found that is right."""
        return self.found / max(self.found + len(self.wrong), 1)

    @property
    def recall(self) -> float:
        """The part of what is there that was found."""
        return self.found / max(self.found + len(self.missed), 1)


def measure(file: str) -> Measure:
    """Run the rules over a file of labelled statements."""
    found, wrong, missed = 0, list[str](), list[str]()
    for item in labelled(file):
        expected = {
            (entry["predicate"], entry["object"].casefold(), holds)
            for key, holds in (("statements", True), ("ends", False))
            for entry in item[key]
        }
        got = {(s.predicate, s.thing.name.casefold(), s.holds) for s in statements(item["text"])}
        found += len(got & expected)
        wrong += [item["text"]] * len(got - expected)
        missed += [item["text"]] * len(expected - got)
    return Measure(found, wrong, missed)


def ordinary(file: str) -> list[tuple[str, str]]:
    """Predicate and object of everything the rules find in a file of ordinary turns."""
    return [(s.predicate, s.thing.name) for i in labelled(file) for s in statements(i["text"])]


def labelled(file: str) -> list[dict[str, Any]]:
    """The items of a file."""
    lines = (DATA / file).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]
