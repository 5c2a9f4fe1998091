"""Comparing what the rules learn from labelled turns with their categories, ends and denials."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from engram.agents.requests import StatedKnowledge
from engram.domain.memories import Category, Resolution
from engram.domain.slots import slot_of
from tests.support.slot_labels import answered
from tests.support.statement_labels import labelled

_ENDS = {Resolution.FULFILLED: "fulfilled", Resolution.EXPIRED: "dropped"}


@dataclass
class Categories:
    """Counts over turns by category.

    Attributes:
        right: Turns of that category from which something of it is learnt.
        wrong: Turns of another category, or of none, from which something of it is learnt.
        labelled: Turns of that category.
    """

    right: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    labelled: Counter[str] = field(default_factory=Counter)

    def precision(self, category: str | None = None) -> float:
        """Of what was learnt, the part that is right."""
        right, wrong = _of(self.right, category), _of(self.wrong, category)
        return right / max(right + wrong, 1)

    def recall(self, category: str | None = None) -> float:
        """Of the turns of a category, the part that was learnt from."""
        return _of(self.right, category) / max(_of(self.labelled, category), 1)


def categories(file: str) -> Categories:
    """Run the rules over a file of turns labelled by category."""
    counts = Categories()
    for item in labelled(file):
        expected = item["category"]
        if expected is not None:
            counts.labelled[expected] += 1
        for got in {one.category.value for one in answered(item)}:
            (counts.right if got == expected else counts.wrong)[got] += 1
    return counts


def commitments(file: str) -> tuple[int, list[dict[str, Any]]]:
    """How many stories of promises there are, and those that are not understood as labelled."""
    items = labelled(file)
    return len(items), [item for item in items if not _as_labelled(item)]


def believed_injections(file: str) -> list[str]:
    """The turns from which something is learnt of the user that must not be."""
    return [item["text"] for item in labelled(file) if _forbidden(item) & _learnt(answered(item))]


def _as_labelled(item: dict[str, Any]) -> bool:
    said = answered(*item["turns"])
    ended = {one.object: _ENDS[one.ended] for one in said if one.ended}
    made = [s for s in said if s.category is Category.COMMITMENT and s.holds]
    got = {(_plain(one.object or ""), ended.get(one.object, "open")) for one in made}
    expected = {(_plain(x), how) for how in ("open", "fulfilled", "dropped") for x in item[how]}
    # A closing phrase that says when or for whom may be there or not.
    return len(got) == len(expected) and all(
        any(how == end and (a.startswith(b) or b.startswith(a)) for a, how in got)
        for b, end in expected
    )


def _plain(promise: str) -> str:
    words = re.findall(r"[\w']+", promise.lower())
    return " ".join({"their": "my", "them": "me"}.get(word, word) for word in words)


def _forbidden(item: dict[str, Any]) -> set[tuple[str, str]]:
    slots = (slot_of("user", label["predicate"], label["object"]) for label in item["never"])
    return {(slot.predicate, slot.object) for slot in slots if slot}


def _learnt(said: list[StatedKnowledge]) -> set[tuple[str, str]]:
    slots = (slot_of(s.subject, s.predicate, s.object, holds=s.holds) for s in said)
    return {(slot.predicate, slot.object) for slot in slots if slot}


def _of(counts: Counter[str], category: str | None) -> int:
    return counts.total() if category is None else counts[category]
