"""Street addresses: whole, one at a time, and no town to live in."""

from __future__ import annotations

import pytest

from tests.support.learnt_by_rules import learnt
from tests.support.slot_labels import a_turn_a_day, held, told


@pytest.mark.parametrize(
    ("said", "learns"),
    [
        (
            "My address is Hauptstraße 5, 10115 Berlin.",
            {"The user's address is Hauptstraße 5, 10115 Berlin.", "The user lives in Berlin."},
        ),
        (
            "I live at 14 Main Street, Boston.",
            {"The user's address is 14 Main Street, Boston.", "The user lives in Boston."},
        ),
        (
            "I moved to 22 Oak Avenue, Denver, last week.",
            {"The user's address is 22 Oak Avenue, Denver.", "The user lives in Denver."},
        ),
        (
            "We live at 14 Lindenstrasse in Hamburg.",
            {"The user's address is 14 Lindenstrasse in Hamburg.", "The user lives in Hamburg."},
        ),
        (
            "I live at 12 rue de Rivoli, 75001 Paris and I love tea.",
            {
                "The user's address is 12 rue de Rivoli, 75001 Paris.",
                "The user lives in Paris.",
                "The user likes tea.",
            },
        ),
        ("My new address is 22 Oak Avenue.", {"The user's address is 22 Oak Avenue."}),
        (
            "My address is 14 Oak Street, Nowhereville, IL 62704.",
            {"The user's address is 14 Oak Street, Nowhereville, IL 62704."},
        ),
        (
            "My new shipping address is 22 Oak Avenue, Denver.",
            {"The user's shipping address is 22 Oak Avenue, Denver."},
        ),
        (
            "My address is 14 Main Street, sorry, 16 Main Street.",
            {"The user's address is 16 Main Street."},
        ),
        (
            "My address is 14 Main Street, Tom lives next door.",
            {"The user's address is 14 Main Street."},
        ),
    ],
)
def test_an_address_is_told_whole(said: str, learns: set[str]) -> None:
    """With town and code; that one lives there, too, where the town is known and it is a home."""
    assert set(learnt(said)) == learns


@pytest.mark.parametrize(
    "said",
    [
        "My old address is 14 Main Street, Boston.",
        "I lived at 14 Main Street, Boston.",
        "I don't live at 14 Main Street, Boston.",
        "I work at 14 Main Street, Boston.",
        "If my address is 14 Main Street, Boston, is it delivered?",
    ],
)
def test_where_nobody_says_that_they_live_is_no_address_of_theirs(said: str) -> None:
    """What was, what is denied, and where somebody works."""
    assert learnt(said) == []


@pytest.mark.parametrize(
    ("before", "after", "now"),
    [
        (
            "My address is 14 Lindenstrasse, Hamburg.",
            "My new address is Torstrasse 22, Berlin.",
            {("address is", "torstrasse 22 berlin"), ("lives in", "berlin")},
        ),
        (
            "I live at 14 Main Street, Boston.",
            "I moved to 22 Oak Avenue, Denver.",
            {("address is", "22 oak avenue denver"), ("lives in", "denver")},
        ),
        (
            "My home address is 14 Main Street.",
            "I changed my address to 22 Oak Avenue.",
            {("address is", "22 oak avenue")},
        ),
        (
            "I live in Berlin.",
            "My address is Hauptstraße 5, 10115 Berlin.",
            {("address is", "hauptstrasse 5 10115 berlin"), ("lives in", "berlin")},
        ),
    ],
)
def test_a_new_address_ends_the_older_one(
    before: str, after: str, now: set[tuple[str, str]]
) -> None:
    """In whatever form each is told, one holds; a street takes no town's place."""
    assert held(told(a_turn_a_day(before, after))) == now
