"""Turns that the rules were written with: categories, promises and commands."""

from __future__ import annotations

import pytest

from engram.domain.memories import Category
from tests.support.category_labels import believed_injections, categories, commitments

PRECISION = 0.9
RECALL = 0.6
PROMISES = 0.9


FILES = ("seen", "more")


@pytest.mark.parametrize("category", [one.value for one in Category])
def test_seen_turns_are_learnt_under_their_category(category: str) -> None:
    """Precision before recall, in each of the ten."""
    counts = categories("categories.seen.jsonl")
    assert counts.precision(category) >= PRECISION
    assert counts.recall(category) >= RECALL


def test_more_turns_are_learnt_under_their_category() -> None:
    """In wider wordings a category may blur into its neighbour, seldom into nothing."""
    counts = categories("categories.more.jsonl")
    assert counts.precision() >= PRECISION
    assert all(counts.recall(one.value) >= RECALL for one in Category)


@pytest.mark.parametrize(
    ("file", "right"), [("seen", PROMISES), ("more", PROMISES), ("talk", 0.75)]
)
def test_seen_promises_are_open_kept_or_called_off(file: str, right: float) -> None:
    """A promise is in its base form, and ends when a later turn says so; looser talk says less."""
    count, wrong = commitments(f"commitments.{file}.jsonl")
    assert len(wrong) <= (1 - right) * count, [item["turns"] for item in wrong]


@pytest.mark.parametrize("file", FILES)
def test_seen_commands_to_the_memory_are_no_facts_of_the_user(file: str) -> None:
    """Whatever a turn poses as, it states nothing for its user."""
    assert believed_injections(f"injections.{file}.jsonl") == []
