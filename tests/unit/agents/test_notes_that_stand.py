"""A note says of whom or what it is, or is none: nobody can tell later what "it" was."""

from __future__ import annotations

import pytest

from tests.support.slot_labels import answered

DANGLING = [
    "Am I supposed to take magnesium for the migraines? I'm not taking it currently.",
    "Magnesium? I'm not taking it any more.",
    "Please stop adding type: ignore comments, I hate those.",
    "I don't want that.",
    "I don't want this any more.",
    "I don't fancy it today.",
    "I can't stand them.",
    "I've decided on that one.",
    "We decided against it.",
    "I went with this one.",
    "We've agreed on that.",
    "I turned it down.",
    "I said no to that.",
    "I always do that.",
    "I swear by it.",
    "I avoid those.",
    "I lost it yesterday.",
    "I climbed it last year.",
    "I volunteered for that.",
    "She's called Renate.",
    "He's called Otto.",
    "We call her Oma Anna.",
    "Everyone calls him Bear.",
]
STANDING = [
    "I hate those grey mornings.",
    "I don't want that job.",
    "I don't want long mails.",
    "I like it with milk.",
    "I love it when it rains.",
    "I like them short.",
    "I can't stand that noise.",
    "I can't stand them leaving.",
    "I've decided on the blue tiles.",
    "We decided against that kitchen.",
    "I went with this plumber.",
    "We've agreed on that date.",
    "I turned down the offer.",
    "I said no to that offer.",
    "I always lock that door.",
    "I avoid those crowds.",
    "I lost my ring yesterday.",
    "I climbed Ben Nevis last year.",
    "We have a new puppy. We named her Biscuit.",
    "My neighbour moved in. She's called Renate.",
    "We found a cat in the garden. It's called Otto.",
    "We call our car Bertha.",
]


@pytest.mark.parametrize("said", DANGLING)
def test_what_only_points_at_something_is_no_note(said: str) -> None:
    """Nor is what names somebody who is only "she"."""
    assert [one.content for one in answered({"text": said}) if one.predicate is None] == []


@pytest.mark.parametrize("said", STANDING)
def test_what_names_what_it_is_about_is_one(said: str) -> None:
    """Also where the sentence before names it."""
    assert answered({"text": said})
