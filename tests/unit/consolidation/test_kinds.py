"""Episode or note, step by step, and measured on labelled turns."""

from __future__ import annotations

import pytest

from engram.domain.memories import Category, MemoryKind
from engram.domain.slots import slot_of
from engram.language.kinds import happened, kind_of
from tests.support.kind_labels import WORDS, labelled

EPISODE, NOTE = MemoryKind.EPISODE, MemoryKind.NOTE


@pytest.mark.parametrize(
    ("text", "category", "tags", "kind"),
    [
        ("Yesterday the user chose tea.", Category.PREFERENCE, (), EPISODE),
        ("The user chose tea.", Category.PREFERENCE, ("event",), NOTE),
        ("The user prefers tea.", Category.MOMENT, ("rule",), EPISODE),
        ("The user baked bread.", None, ("event", "rule"), NOTE),
        ("The user prefers bread.", None, ("event",), EPISODE),
        ("The user baked what they always prefer.", None, (), EPISODE),
        ("The user prefers tea.", None, (), NOTE),
        ("Tea, tea, tea.", None, (), EPISODE),
    ],
)
def test_the_first_step_that_decides_decides(
    text: str, category: Category | None, tags: tuple[str, ...], kind: MemoryKind
) -> None:
    """Marker, category, tags, past action, keyword, else episode: in this order."""
    assert kind_of([text], WORDS, category=category, tags=tags) is kind


def test_what_a_slot_says_holds_is_a_note_whatever_its_marker() -> None:
    """Moving in May says where somebody lives; having visited in May does not."""
    text = "The user moved to Lisbon in May 2024."
    lives, visited = slot_of("user", "lives in", "Lisbon"), slot_of("user", "visited", "Lisbon")
    assert kind_of([text], WORDS, slot=lives) is NOTE
    assert kind_of([text], WORDS, slot=visited) is EPISODE


def test_labelled_turns_are_of_their_kind() -> None:
    """At least 95 of 100 labelled turns."""
    items = [i for i in labelled("categories.seen.jsonl") if i["kind"]]
    right = [
        kind_of([str(i["text"])], WORDS, category=Category(str(i["category"]))) == i["kind"]
        for i in items
    ]
    assert sum(right) >= 0.95 * len(items)


def test_labelled_markers_are_told_from_habits_and_plans() -> None:
    """At least 95 of 100 labelled turns."""
    items = labelled("temporal.seen.jsonl")
    right = [happened(str(i["text"]), WORDS) is i["marker"] for i in items]
    assert sum(right) >= 0.95 * len(items)
