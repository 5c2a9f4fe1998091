"""Friendly talk, in which much is said and little told: of what tells nothing no memory is made."""

from __future__ import annotations

from datetime import date

import pytest

from engram.agents.requests import ExtractionRequest, TurnView
from engram.agents.rules import extract
from tests.support.learnt_by_rules import SAID, learnt


@pytest.mark.parametrize(
    "said",
    [
        # Cheering up.
        "We can make a real difference here!",
        "You got this, Marta! Don't let them get you down.",
        "I believe in you. Never give up!",
        "Always happy to help. Always here for a chat!",
        "We'll get through this, hang in there!",
        "I'm gonna keep pushing forward and working hard.",
        "I'll keep working at it and hopefully it'll all become clearer soon.",
        "I'm going to give it a shot and see how it goes.",
        "I'm determined to make it work.",
        "I'll definitely check it out, thanks for the tip!",
        # Comments on what is at hand.
        "Wow, that's gorgeous! I love how the light falls on it.",
        "I love your curtains so much!",
        "I love the colors and the texture of it.",
        "I love the freedom it brings.",
        "I'm a huge fan of it, that's why I keep coming back.",
        "I love watching them.",
        # What is about it, this and that.
        "It taught me patience and how to ask for help.",
        "This was a great reminder for me.",
        "That was a big step towards my own place.",
        # Words that only look like something else.
        "Marrying my partner was the best part of the summer.",
        "Seeing my neighbour so happy made the day.",
        "I'm seeing progress every week now.",
        "I'm here for you, rooting for you all the way.",
        "They bring so much joy and love.",
        # Broken off before it is said what.
        "I'll ask around to see if anybody knows.",
        "I'm passionate about creating a safe, friendly club.",
        "I'm passionate about making sure everybody is heard.",
    ],
)
def test_nothing_is_learnt_where_nothing_is_told(said: str) -> None:
    """Each of these once became a preference, a plan, a promise, a skill or somebody's partner."""
    assert learnt(said) == []


@pytest.mark.parametrize(
    ("said", "learns"),
    [
        ("I can sail a dinghy, by the way.", "The user can sail a dinghy"),
        ("I believe in second chances.", "The user believes in second chances."),
        ("Never lend money to friends.", "Never lend money to friends."),
        ("I'll send Ines the slides tomorrow.", "The user promised to send Ines the slides"),
        ("I'm going to keep bees next year.", "The user plans to keep bees"),
        ("I love watching the news with my dad.", "The user likes watching the news"),
        ("I love the sea.", "The user likes the sea."),
        ("Ming, my brother, lives in York.", "Ming is the user's brother."),
        ("I'm seeing someone called Noor.", "The user is seeing someone called Noor."),
        ("I'm passionate about creating a safe club.", "The user likes creating a safe club."),
    ],
)
def test_what_is_told_beside_it_is_learnt(said: str, learns: str) -> None:
    """The same words with something in them are understood as before."""
    assert any(one.startswith(learns) for one in learnt(said)), learnt(said)


@pytest.mark.parametrize(
    "said",
    [
        "from slack:\nPiotr: can you look at this",
        "from sentry:\nKeyError: 'parcel_id'",
        "from memory, it was 42",
        "from scratch",
        "from birth",
        "From Berlin: 3 packages",
        "From Slack here are the logs",
        "From Paris, the train takes 2 hours",
        "from London with love",
        "from a colleague in Berlin",
        "from the Berlin team, thanks!",
        "from main, not dev",
        "From Slack",
        "nicked. from INSIDE the hallway.",
        "from jira:\nDISP-9 is blocked",
        "from grafana:\np99 = 1.2s",
        "from hanneke: pls rebase",
        "From Piotr:\nI'm moving to Gdansk in april",
        "from memory: the flag is --no-verify",
        "from memory the flag is --lf",
        "from prod: 502s since noon",
        "from outlook:\nthe call is off",
        "from Slack: I prefer tabs",
        "From London, I flew to Rome",
        "From Leeds, we drove to York",
        "From London, we could take a train",
        "From Hanneke, actually",
        "From Piotr, Marketing Team",
        "From Piotr in Berlin",
        "From Piotr, 14:02",
        "From Support in Berlin",
        "From Grafana, Error Rate",
        "From Monday, actually",
        "From Gate, 20 minutes",
        "From Jira, actually",
        "From sunny Leeds to rainy York",
        "From the Berlin office",
    ],
)
def test_words_that_begin_with_from_are_no_origin(said: str) -> None:
    """What something is from, or quoted from, is not where its user comes from."""
    assert [one for one in learnt(said) if "is from" in one] == []


@pytest.mark.parametrize(
    ("said", "place"),
    [
        ("from Leeds", "Leeds"),
        ("Originally from Grimsby", "Grimsby"),
        ("From Zweeloo originally", "Zweeloo"),
        ("From Zweeloo.", "Zweeloo"),
        ("From Zweeloo, small village in Drenthe", "Zweeloo"),
        ("From Zweeloo, living in Utrecht now", "Zweeloo"),
        ("from a small village near Bath", "a small village near Bath"),
        ("hi! from Ghent here", "Ghent"),
        ("From Leeds, 34, nurse", "Leeds"),
        ("still from Leeds lol", "Leeds"),
        ("from the Netherlands", "the Netherlands"),
        ("From Hull, East Yorkshire", "Hull"),
        ("From Bavaria, actually", "Bavaria"),
        ("From rural Ohio", "Ohio"),
        ("From sunny Brighton", "Brighton"),
        ("From Kerala, India", "Kerala"),
        ("From Otley, UK", "Otley"),
        ("from Ilkley in Yorkshire", "Ilkley"),
        ("From Skipton in North Yorkshire", "Skipton"),
        ("From Ilkley, 34, nurse", "Ilkley"),
        ("From Skipton, 41", "Skipton"),
        ("From Scotland, I love it here", "Scotland"),
        ("From Scotland, I came to London for work", "Scotland"),
        ("From Ghana, I've lived here for ten years", "Ghana"),
    ],
)
def test_where_somebody_is_from_is_told_without_i_am(said: str, place: str) -> None:
    """A place, or what says that it is one, makes "from ..." an origin."""
    assert f"The user is from {place}." in learnt(said)


@pytest.mark.parametrize(
    ("said", "learns"),
    [
        ("I moved to Nashville for a marketing job", "lives in Nashville"),
        ("I moved to Asheville from Knoxville with my wife", "lives in Asheville"),
        ("I moved to Asheville from London", "lives in Asheville"),
        ("We moved to Penge for the schools", "lives in Penge"),
        ("moved to Zweeloo for love", "lives in Zweeloo"),
        ("moved to Zweeloo in May", "lives in Zweeloo"),
        ("I moved to Totnes and cancelled the gym", "lives in Totnes"),
        ("I moved to Whitstable, broadband is awful", "lives in Whitstable"),
        ("I moved from Emmen to Zweeloo", "lives in Zweeloo"),
        ("I moved to the Frankfurt region", "lives in the Frankfurt"),
        ("moved: Lisbon now", "lives in Lisbon"),
        ("Update: moved, Porto now", "lives in Porto"),
        ("Moved again: Arequipa", "lives in Arequipa"),
        ("We've moved: Whitby", "lives in Whitby"),
        ("I relocated, Tartu now", "lives in Tartu"),
        ("my company moved me to Dungloe", "lives in Dungloe"),
        ("the army relocated me to Aldershot", "lives in Aldershot"),
        ("They transferred me to Singapore", "lives in Singapore"),
        ("We live in Bear, Delaware", "lives in Bear"),
        ("I quit Tesco and moved to Lidl", "works at Lidl"),
        ("moved to Lidl as a shift manager", "works at Lidl"),
        ("Got a new job, moved to Lloyds", "works at Lloyds"),
        ("I moved to Aldi, better pay", "works at Aldi"),
        ("I moved to Bosch for the salary", "works at Bosch"),
        ("I moved from Tesco to Aldi, same role", "works at Aldi"),
    ],
)
def test_whoever_moves_has_a_new_home_or_job(said: str, learns: str) -> None:
    """A place nobody lists is a home, too, and a shop with a word about work is an employer."""
    assert any(one.startswith(f"The user {learns}") for one in learnt(said)), learnt(said)


def test_a_memory_names_what_its_turn_put_into_quotation_marks() -> None:
    """A title is blank while the rules read, and stands in what they make of the sentence."""
    (learns,) = learnt('Last night we finally watched "The Third Man" at home.')
    assert '"The Third Man"' in learns
    (learns,) = learnt('I recently saw a film that blew my mind, I think it was "Memento".')
    assert learns.endswith('"Memento".')


def test_whoever_says_let_us_is_nobody_who_takes_over() -> None:
    """No promise ends by "Let's keep spreading kindness", which is something like it."""
    learns = learnt("I'll spread the word about the fair.", "Let's spread the news about the club.")
    assert not [one for one in learns if "no longer" in one]


def test_a_tool_gives_way_to_the_one_that_is_named_as_its_successor() -> None:
    """Where a sentence says what was left, nothing else of that kind is taken to be."""
    told = learnt("I don't use Terraform any more, I switched to MongoDB.")
    assert told == ["The user no longer uses Terraform.", "The user uses MongoDB."]


@pytest.mark.parametrize("said", ["No, I meant Redis, not Redis.", "I meant Bath, not Bath."])
def test_what_is_mended_to_itself_changes_nothing(said: str) -> None:
    """A correction that names one value twice takes nothing back and puts nothing in place."""
    learns = learnt("I live in Cork.", said)
    assert not [one for one in learns if "lives in" in one or "live in" in one]


@pytest.mark.parametrize(
    ("said", "began"),
    [
        ("We moved to Graz last summer.", date(2025, 6, 1)),
        ("We moved to Graz in spring 2024.", date(2024, 3, 1)),
        ("We moved to Graz two winters ago.", date(2023, 12, 1)),
        ("We moved to Graz last year.", date(2025, 1, 1)),
    ],
)
def test_a_change_began_with_the_season_that_is_named(said: str, began: date) -> None:
    """Not when it was told: what was told of a later day holds after it."""
    turn = TurnView(alias="e1", role="user", speaker=None, said_at=SAID, content=said)
    told = extract(ExtractionRequest(turns=(turn,))).statements
    assert [one.happened_at and one.happened_at.date() for one in told] == [began]


def test_what_mends_the_word_on_one_person_says_nothing_of_another() -> None:
    """Who lives in Ghent, and not in Turin, is Priya; Hanna still lives in Turin."""
    hanna = "Actually, Hanna lives in Turin, not Lyon."
    learns = learnt(hanna, "Actually, Priya lives in Ghent, not Turin.")
    assert not [one for one in learns if "Hanna" in one]
    assert "Hanna lives in Pisa." in learnt(hanna, "Actually, Hanna lives in Pisa, not Turin.")
    assert not [
        one
        for one in learnt("I live in Cork.", "Actually, Mei lives in Bern, not Cork.")
        if "The user" in one
    ]
