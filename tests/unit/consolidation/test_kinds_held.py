"""The kinds on turns that were kept from whoever wrote the vocabulary."""

from __future__ import annotations

from engram.domain.memories import Category
from engram.language.kinds import happened, kind_of
from tests.support.kind_labels import WORDS, labelled


def test_held_turns_are_of_their_kind() -> None:
    """At least 90 of 100 turns never looked at."""
    items = [i for i in labelled("categories.held.jsonl") if i["kind"]]
    right = [
        kind_of([str(i["text"])], WORDS, category=Category(str(i["category"]))) == i["kind"]
        for i in items
    ]
    assert sum(right) >= 0.9 * len(items), f"{sum(right)} of {len(items)}"


def test_held_markers_are_told_from_habits_and_plans() -> None:
    """At least 85 of 100 turns never looked at."""
    items = labelled("temporal.held.jsonl")
    right = [happened(str(i["text"]), WORDS) is i["marker"] for i in items]
    assert sum(right) >= 0.85 * len(items), f"{sum(right)} of {len(items)}"
