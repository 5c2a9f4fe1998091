"""Who does something less often, or only at other times, goes on doing it."""

from __future__ import annotations

import pytest

from tests.support.not_said import concluded

LIMITED = [
    "I'm not going to run every day any more, only twice a week.",
    "I'm not going to weigh myself daily anymore, only on Mondays.",
    "I'm not going to eat meat on weekdays any more.",
    "I'm not planning to cook daily any more.",
    "I'm not planning to swim every morning any more.",
    "I'm not going to train twice a week any more, only once.",
    "I no longer plan to swim every day, just on Sundays.",
    "I no longer plan to swim daily.",
    "I don't drink coffee in the evening any more.",
    "I don't drink coffee in the afternoon any more.",
    "I don't drink coffee any more, only on Sundays.",
    "I don't drink beer during the week any more.",
    "I don't eat chocolate on weekdays any more.",
    "I don't eat chocolate after dinner any more.",
    "I don't use Slack at night any more.",
    "I don't use my phone before bed any more.",
    "I don't use Twitter as often any more.",
    "We don't use Jira every day any more.",
    "I don't drive the Volvo at night any more.",
    "I don't drive the Golf on Mondays any more, just at weekends.",
    "I don't work at Tesco on Saturdays any more.",
]
OVER = [
    ("I'm not going to Rome any more.", "plans to"),
    ("I'm not going to run the marathon any more.", "plans to"),
    ("I'm not going to Berlin on Friday any more.", "plans to"),
    ("I'm not going to call mum every evening any more.", "plans to"),
    ("I no longer plan to move to Oslo in the spring.", "plans to"),
    ("I'm not planning to sell the boat any more.", "plans to"),
    ("I don't like tea any more.", "likes"),
    ("I don't like coffee any more, it keeps me up at night.", "likes"),
    ("I don't like coffee any more, only tea.", "likes"),
    ("I don't like coffee any more.", "likes"),
    ("I don't like chocolate any more, just fruit.", "likes"),
    ("I no longer like running before breakfast.", "likes"),
    ("I no longer use Slack.", "uses"),
    ("I don't use Slack any more, only Teams.", "uses"),
    ("I don't use Jenkins any more, just GitHub Actions.", "uses"),
    ("We stopped using Jira in March.", "uses"),
    ("I don't use Twitter any more, it cost me every evening.", "uses"),
    ("I no longer drive the Volvo.", "drives"),
    ("I don't drive the Golf any more, I cycle every day.", "drives"),
    ("I don't work at Tesco any more.", "works at"),
    ("I no longer work at Tesco, I start at Aldi on Monday.", "works at"),
]


@pytest.mark.parametrize("said", LIMITED)
def test_a_limit_ends_nothing(said: str) -> None:
    """Neither what is planned nor what is liked, used or driven is over."""
    assert [one.content for one in concluded(said) if not one.holds] == []


@pytest.mark.parametrize(("said", "predicate"), OVER)
def test_what_is_over_is_over_whatever_else_is_said_of_times(said: str, predicate: str) -> None:
    """A time that says when it ended, or why, is no limit."""
    assert predicate in {one.predicate for one in concluded(said) if not one.holds}
