"""Where a thing ends that somebody has, uses or likes, and what a correction in full replaces."""

from __future__ import annotations

import pytest

from engram.language.statements.objects import thing
from tests.support.reconciliation import ReconciledKnowledge
from tests.support.slot_labels import a_turn_a_day, answered, held, told


def heard(*texts: str) -> ReconciledKnowledge:
    """What is known after these turns, a day apart."""
    return told(a_turn_a_day(*texts))


@pytest.mark.parametrize(
    "said",
    [
        "religiously", "almost every day", "like everyone else", "like a normal person", "badly",
        "even in winter", "or something", "all year round", "no question", "ngl", "I suppose",
        "day and night", "three days a week", "very occasionally", "weather permitting",
        "and always have",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("says", "stated"),
    [
        ("I use Firefox", "uses Firefox"),
        ("I like olives", "likes olives"),
        ("I own a canoe", "owns canoe"),
        ("I'm allergic to penicillin", "is allergic to penicillin"),
    ],
)
def test_what_belongs_to_the_verb_is_no_part_of_the_thing(
    says: str, said: str, stated: str
) -> None:
    """How, how often, where or how surely, at the end of the sentence."""
    found = [f"{one.predicate} {one.object}" for one in answered({"text": f"{says} {said}."})]
    assert found == [stated]


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ("a big family", "big family"),
        ("my family", "family"),
        ("a curly dog", "curly dog"),
        ("a butterfly", "butterfly"),
        ("peanut butter and jelly", "peanut butter"),
        ("cheddar in jelly", "cheddar"),
        ("a house in Sicily", "house"),
        ("strawberry jelly", "strawberry jelly"),
        ("Truly Madly Deeply", "Truly Madly Deeply"),
        ("eating slowly", "eating slowly"),
        ("dogs barking constantly", "dogs barking constantly"),
        ("michael connelly", "michael connelly"),
        ("QuickBooks Online", "QuickBooks Online"),
        ("the great outdoors", "great outdoors"),
        ("an antique doily", "antique doily"),
        ("Sass and Less", "Sass"),
    ],
)
def test_a_thing_that_ends_like_an_adverb_stays_whole(said: str, named: str) -> None:
    """Nouns and names in "ly", adjectives before a noun, and how something is done."""
    found = thing(said)
    assert found is not None
    assert found.name == named


@pytest.mark.parametrize(
    ("said", "named"), [(".NET", ".NET"), (".NET.", ".NET"), ("...olives", "olives")]
)
def test_a_point_that_a_name_begins_with_belongs_to_it(said: str, named: str) -> None:
    """Points of omission, and a full stop behind, do not."""
    found = thing(said)
    assert found is not None
    assert found.name == named


def said_of_tastes(text: str) -> list[str]:
    """What a turn is read to say of its speaker's likes and dislikes."""
    said = (one.content for one in answered({"text": text}))
    return [one.removeprefix("The user ").removesuffix(".") for one in said]


SEASONS = ("spring", "the summer", "autumn", "fall", "winter")
WEEKDAYS = ("Mon", "Tues", "Wednes", "Thurs", "Fri", "Satur", "Sun")
TIMES = (
    *(f"in {season}" for season in SEASONS),
    *(f"on {day}days" for day in WEEKDAYS),
    *("at night", "in the morning", "over the weekend", "at home", "at work", "at school"),
    "for work",
)


@pytest.mark.parametrize("when", TIMES)
def test_what_limits_a_dislike_or_something_to_do_is_part_of_it(when: str) -> None:
    """Who hates driving at night may like to drive; a thing is liked whenever it is had."""
    assert said_of_tastes(f"I hate driving {when}.") == [f"dislikes driving {when}"]
    assert said_of_tastes(f"I don't like phones {when}.") == [f"dislikes phones {when}"]
    assert said_of_tastes(f"I like singing {when}.") == [f"likes singing {when}"]
    assert said_of_tastes(f"I like phones {when}.") == ["likes phones"]
    narrowed = f"people who sing {when}"
    if when not in {"at home", "at work", "at school"}:
        assert said_of_tastes(f"I like {narrowed}.") == [f"likes {narrowed}"]


@pytest.mark.parametrize("aside", ["at all", "in general", "at the moment", "to be honest"])
def test_what_is_said_by_the_way_is_no_part_of_a_dislike(aside: str) -> None:
    """Neither of a thing nor of something to do."""
    assert said_of_tastes(f"I hate driving {aside}.") == ["dislikes driving"]
    assert said_of_tastes(f"I don't like phones {aside}.") == ["dislikes phones"]


@pytest.mark.parametrize(
    ("said", "liked"),
    [
        ("bands like Radiohead and Muse", ["bands like Radiohead and Muse"]),
        ("bands like Radiohead and the Cure", ["bands like Radiohead and the Cure"]),
        ("sports like tennis, squash and padel", ["sports like tennis, squash and padel"]),
        ("cheeses such as brie and gouda", ["cheeses such as brie and gouda"]),
        ("games including chess and go", ["games including chess and go"]),
        ("films like Alien and dogs", ["films like Alien", "dogs"]),
        ("fruit, especially figs and mangoes", ["fruit"]),
        ("fruit particularly figs", ["fruit"]),
        ("fruit, like figs", ["fruit"]),
        ("fruit, such as figs and mangoes", ["fruit"]),
        ("fruit, including figs and mangoes", ["fruit"]),
        *((f"olives including {at} work", ["olives"]) for at in ("at", "in", "on")),
    ],
)
def test_examples_say_which_are_liked(said: str, liked: list[str]) -> None:
    """What is named only by the way is left out, and what is none of them is another thing."""
    assert said_of_tastes(f"I love {said}.") == [f"likes {one}" for one in liked]


KINDS = (
    *("Turkish", "Chinese", "Italian", "Mexican", "Korean", "romantic", "classical"),
    *("Thai", "French", "Greek", "German", "action", "horror", "crime", "sci-fi", "fiction"),
    *("fantasy", "rock", "indie", "folk", "red", "black", "old", "new", "board", "science fiction"),
)


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_share_the_noun_of_the_last(kind: str) -> None:
    """None of them is liked by itself."""
    assert said_of_tastes(f"I like {kind} and funny films.") == [f"likes {kind} and funny films"]


@pytest.mark.parametrize(
    ("said", "liked"),
    [
        ("pizza and Indian food", ["pizza", "Indian food"]),
        ("fish and Indian food", ["fish", "Indian food"]),
        ("music and old films", ["music", "old films"]),
        ("going to the gym and sushi", ["going to the gym", "sushi"]),
        ("going to the gym and the pool", ["going to the gym and the pool"]),
        ("visiting a museum and sushi", ["visiting a museum", "sushi"]),
        ("eating an orange and sushi", ["eating an orange", "sushi"]),
        ("walking my dog and sushi", ["walking their dog", "sushi"]),
        ("cleaning our flat and sushi", ["cleaning their flat", "sushi"]),
        ("people who listen and dogs", ["people who listen", "dogs"]),
        ("dogs that bark and cats", ["dogs that bark", "cats"]),
        ("hats which fit and shoes", ["hats which fit", "shoes"]),
        ("people who listen and laugh", ["people who listen and laugh"]),
        ("people who help others and animals", ["people who help others and animals"]),
    ],
)
def test_what_has_its_own_noun_is_a_further_thing(said: str, liked: list[str]) -> None:
    """Joined to what it has nothing to do with, it would end with that."""
    assert said_of_tastes(f"I like {said}.") == [f"likes {one}" for one in liked]


@pytest.mark.parametrize(
    ("before", "after", "now"),
    [
        ("I speak Farsi.", "Let me fix that, I speak Dari.", ("speaks", "dari")),
        ("I use Slack.", "Correction: I use Teams.", ("uses", "teams")),
        ("I have a dog.", "Scratch that. I have a cat and need a vet.", ("has", "cat")),
        ("I use Slack.", "Sorry, I got that wrong. I use Teams.", ("uses", "teams")),
    ],
)
def test_a_correction_in_full_replaces_what_was_just_said(
    before: str, after: str, now: tuple[str, str]
) -> None:
    """Also of what one can have several of: it was wrong."""
    assert held(heard(before, after)) == {now}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("I speak Farsi.", "Let me fix that, I speak Dari too."),
        ("I use Slack.", "Typo in the doc, I use Notion for it."),
        ("I use Slack.", "My mistake cost us a day. I use Teams."),
        ("I use Slack.", "The correction of the exam is out. I use Teams."),
        ("I use Slack.", "That was wrong of them. I use Teams."),
        ("I use Slack.", "I use Teams, scratch that itch."),
        ("I use Slack.", "Let me fix that bug, I use Vim for it."),
        ("I'm allergic to peanuts.", "Correction: I'm allergic to peanuts and tree nuts."),
        ("I have a son.", "My bad, phone died. I have a daughter called Mia."),
        ("I use Vim.", "Correction. The build fails on CI. I use Python 3.12."),
        ("I love pizza.", "Scratch that. I love pasta more."),
        ("I plan to learn Greek.", "Scratch that, I plan to buy a boat first."),
        ("I have a dog.", "Correction: I have a small dog."),
        ("I'm allergic to penicillin.", "Let me rephrase that. I'm allergic to antibiotics."),
    ],
)
def test_what_only_sounds_like_a_correction_ends_nothing(before: str, after: str) -> None:
    """Additions, talk of other mistakes, and what is said more exactly."""
    assert held(heard(before)) <= held(heard(before, after))


@pytest.mark.parametrize(
    ("before", "after", "left"),
    [
        ("I have a greenhouse.", "I haven't got a greenhouse any more, just glass.", set()),
        ("I have a dog.", "I haven't got a dog sitter yet.", {("has", "dog")}),
        ("i live in galway", "ok technically not galway, i live in cork", {("lives in", "cork")}),
        ("I like tea.", "Well, definitely not now.", {("likes", "tea")}),
    ],
)  # fmt: skip
def test_what_is_had_or_so_no_more_ends(
    before: str, after: str, left: set[tuple[str, str]]
) -> None:
    """In the words of speech, and hedges are no value."""
    assert held(heard(before, after)) == left


@pytest.mark.parametrize(
    "said",
    [
        "Some online quiz says my favourite colour is beige.",
        "My wife thinks that my favourite film is Jaws.",
    ],
)
def test_what_others_say_of_a_favourite_is_not_the_users_word(said: str) -> None:
    """As of anything else that is only reported."""
    assert held(heard(said)) == set()


@pytest.mark.parametrize(
    "before",
    [
        "It turns out that", "Please note that", "You ought to know that", "In case it helps,",
        "If you're wondering,", "I'd like you to know that", "Let me add that",
        "Can you remember that", "That said,",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("says", "stated"),
    [("I use Firefox", ("uses", "firefox")), ("I live in Ghent", ("lives in", "ghent"))],
)
def test_what_is_said_to_say_something_says_nothing_else(
    before: str, says: str, stated: tuple[str, str]
) -> None:
    """What follows it is stated as if it stood alone."""
    assert held(heard(f"{before} {says}.")) == {stated}


@pytest.mark.parametrize(
    "said",
    [
        "If it helps, could you use Firefox?",
        "If you need it, I can use Firefox.",
        "If it helps, I'll use Firefox.",
        "Can you add I use Firefox to my CV.",
        "I'm afraid that I have diabetes.",
        "If anyone asks, I live in Ghent.",
        "If I lived in Ghent, it would help.",
        "Because of the noise I want to live in Ghent.",
        "I'd like you to know that Tom uses Firefox.",
        "Did I mention that I use Firefox?",
    ],
)
def test_conditions_wishes_and_questions_state_nothing(said: str) -> None:
    """However the sentence begins, nothing is concluded from it."""
    assert held(heard(said)) == set()


@pytest.mark.parametrize(
    "said",
    [
        "She is my wife.",
        "He's my manager.",
        "Tobias with an s. That's my husband's name.",
        "Tom is my wife's brother.",
        "In Germany, my husband cooks.",
    ],
)
def test_a_pronoun_or_a_place_is_nobodys_spouse_or_manager(said: str) -> None:
    """Who it is, another turn may say."""
    assert held(heard(said)) == set()
