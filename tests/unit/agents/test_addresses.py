"""Street addresses: whole, one at a time, and no town to live in."""

from __future__ import annotations

import pytest

from tests.support.learnt_by_rules import learnt
from tests.support.slot_labels import a_turn_a_day, answered, held, told


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


_BASEL = "My address is Lindenweg 14, 4052 Basel."
_LEFT = [
    (_BASEL, "I moved to Zurich yesterday."),
    (_BASEL, "We've moved to Lyon."),
    (_BASEL, "We live in Rüschlikon now, moved yesterday."),
    (_BASEL, "I live in Oslo these days."),
    (_BASEL, "I relocated to Porto last month."),
    ("I live at 12 Rose Street, Edinburgh.", "I moved to Leeds."),
    ("We live at Hauptstrasse 5, 10115 Berlin.", "We moved to Hamburg in May."),
]
_KEPT = [
    (_BASEL, "I work in Zurich now."),
    (_BASEL, "I also live in Zurich."),
    (_BASEL, "I have a second home in Zurich."),
    (_BASEL, "I live in Basel now."),
    (_BASEL, "My sister moved to Zurich."),
    (_BASEL, "I was in Zurich yesterday."),
    (_BASEL, "I moved my desk to the window."),
    (_BASEL, "From 1 November our address will be Seestrasse 88, 8803 Rüschlikon."),
    ("My address is Lindenweg 14.", "I moved to Zurich yesterday."),
]


@pytest.mark.parametrize(("first", "then"), _LEFT)
def test_an_address_ends_with_the_home_in_its_town(first: str, then: str) -> None:
    """Who lives in another town lives at no address in the old one."""
    known = held(told(a_turn_a_day(first, then)))
    assert [value for what, value in known if what == "address is"] == []
    assert len([value for what, value in known if what == "lives in"]) == 1


@pytest.mark.parametrize(("first", "then"), _KEPT)
def test_an_address_stays_where_nobody_moved_out_of_its_town(first: str, then: str) -> None:
    """Work, a second home or a sister elsewhere end no address, nor does a day to come."""
    before, after = (held(told(a_turn_a_day(*said))) for said in ((first,), (first, then)))
    assert {one for one in before if one[0] == "address is"} <= after


@pytest.mark.parametrize(
    ("then", "lives"),
    [
        ("My new address is Seestrasse 88, 8803 Rüschlikon.", set()),
        ("We changed our address to Seestrasse 88, 8803 Rüschlikon.", set()),
        ("My new address is Rheingasse 3, 4058 Basel.", {"basel"}),
        ("My new address is Bahnhofstrasse 1, 8001 Zurich.", {"zurich"}),
        ("My new delivery address is Seestrasse 88, 8803 Rüschlikon.", {"basel"}),
    ],
)
def test_a_home_ends_with_the_address_in_its_town(then: str, lives: set[str]) -> None:
    """Nobody knows Rüschlikon; that it is not in Basel is known."""
    known = held(told(a_turn_a_day(_BASEL, then)))
    assert {value for what, value in known if what == "lives in"} == lives


def test_an_address_to_come_is_noted_with_its_day() -> None:
    """It is nobody's address yet, and takes no place."""
    (one,) = answered({"text": "From 1 November our address will be Seestrasse 88, 8803 Thalwil."})
    said = "From 1 November the user's address will be Seestrasse 88, 8803 Thalwil."
    assert (one.content, one.predicate) == (said, None)
