"""What is concluded goes no further than what was said: no promise, ending or value beyond it."""

from __future__ import annotations

import pytest

from tests.support.slot_labels import a_turn_a_day, answered, told


def _told(said: str) -> list[str]:
    return [one.content for one in answered({"text": said})]


def _known(*said: str) -> set[str]:
    known = told(a_turn_a_day(*said)).known.values()
    return {one.content for one in known if one.superseded_by is None}


PUT_OFF = [
    "She wants me to try a statin, I said I'd think about it.",
    "Told her I'd see how it goes.",
    "I told the physio I'd do my best.",
    "I told Dr Osei I'd give it a go.",
    "I said I'd wait and see.",
    "I said I'd see.",
    "I told them I'd think it over.",
    "I said I'd consider the offer.",
    "I told him I'd sleep on it.",
    "I told Ana I'd try my best.",
    "I said I'd never eat meat again lol",
    "I said I'd think about the house and the garden.",
    "I told Ana I'd see if I can make it.",
    "I told her I'd see how it goes and decide.",
    "I said I'd never smoke again haha, we'll see",
    "I'll take the oak desk.",
    "I'll take the oak desk, please.",
    "I'll take the flat.",
    "I'll have the soup.",
    "I'll have the salmon, please.",
    "I'll take the window seat.",
    "I'll take the blue one.",
    "I'll take the job.",
]
PROMISED = [
    ("I promised Mum I'd think about it.", "think about it"),
    ("I swore I'd never speak to Dan again.", "never speak to Dan"),
    ("I told Ben I'd see him on Friday.", "see him"),
    ("I said I'd see to the boiler.", "see to the boiler"),
    ("I told Ben I'd wait for him at the station.", "wait for him at the station"),
    ("I told Ana I'd take the dog for a walk.", "take the dog for a walk"),
    ("I told mum I'd take the bins out.", "take the bins out"),
    ("I told her I'd have the draft ready.", "have the draft ready"),
    ("I told Ana I'd give the shed a coat of paint.", "give the shed a coat of paint"),
    ("I promised Ana I'd see a doctor.", "see a doctor"),
    ("I told the GP I'd try the statin for a month.", "try the statin"),
    ("I told the physio I'd do my exercises.", "do their exercises"),
    ("I told Sam I'd look into it.", "look into it"),
    ("I told him I'd think about a name for the band.", "think about a name for the band"),
    ("I'll take the car to the garage on Friday.", "take the car to the garage"),
    ("I'll take the desk to the tip.", "take the desk to the tip"),
    ("I'll take the kids to school.", "take the kids to school"),
    ("I'll take the late shift on Friday for Ben.", "take the late shift"),
    ("I'll take the minutes.", "take the minutes"),
    ("I'll take the rubbish out.", "take the rubbish out"),
    ("I told mum I'd never smoke again", "never smoke"),
    ("I told Anna I'd pick her up at eight haha", "pick her up at eight"),
    ("I said I'd wash the car lol", "wash the car"),
    ("I told my boss I'd consider it and send the numbers tomorrow", "send the numbers"),
    ("I told mum I'd think about it and let her know.", "let her know"),
    ("I told her I'd sleep on it and call her on Friday.", "call her"),
    (
        "I told Tom I would think about the offer and call him on Friday",
        "think about the offer and call him",
    ),
    ("I told Anna I'd do my best to fix the sink by Friday", None),
    ("I'll take the migration", "take the migration"),
    ("I'll take the invoices", "take the invoices"),
    ("I'll take the QA part", "take the QA part"),
    ("I'll take the API", "take the API"),
    ("I'll take the catering", "take the catering"),
    ("I'll take the documentation", "take the documentation"),
    ("I'll take the keys", "take the keys"),
]


@pytest.mark.parametrize("said", PUT_OFF)
def test_who_puts_it_off_or_chooses_promises_nothing(said: str) -> None:
    """To think about it, to see how it goes and to take the oak desk are owed to nobody."""
    assert _told(said) == []


@pytest.mark.parametrize(("said", "deed"), PROMISED)
def test_what_is_promised_in_like_words_is_a_promise(said: str, deed: str) -> None:
    """A deed that is named, or promised in so many words, is owed."""
    promises = [one for one in answered({"text": said}) if one.category == "commitment"]
    assert [one.object for one in promises] == [deed]


@pytest.mark.parametrize(
    "said",
    [
        "I changed my mind about pink.",
        "I changed my mind about Wednesday.",
        "I've changed my mind about weddings.",
        "I changed my mind about morning runs.",
        "I changed my mind about Beijing.",
        "I changed my mind about everything.",
    ],
)
def test_a_changed_mind_ends_no_plan_that_it_does_not_name(said: str) -> None:
    """What nobody can do was no plan."""
    assert _told(said) == []


@pytest.mark.parametrize(
    ("said", "content"),
    [
        ("Changed my mind about reviewing Lin's thesis.", "review Lin's thesis"),
        ("I've changed my mind about going to the gym.", "go to the gym"),
    ],
)
def test_a_changed_mind_ends_the_plan_that_it_names(said: str, content: str) -> None:
    """What was to be done no longer is."""
    assert _told(said) == [f"The user no longer plans to {content}."]


@pytest.mark.parametrize(
    ("said", "known"),
    [
        (
            "We prefer deliveries in the morning, and never on Wednesday.",
            {"The user prefers deliveries in the morning."},
        ),
        ("I prefer texts over calls, never on Sundays.", {"The user prefers texts over calls."}),
        ("We like deliveries early and not on Mondays.", {"The user likes deliveries early."}),
        (
            "I like swimming in summer, never in winter.",
            {"The user likes swimming in summer."},
        ),
        ("I use vim, never emacs.", {"The user uses vim.", "The user does not use emacs."}),
        (
            "I speak Spanish, never French.",
            {"The user speaks Spanish.", "The user does not speak French."},
        ),
        ("I dislike mornings, never evenings.", {"The user dislikes mornings."}),
        (
            "I like short answers, never bullet points.",
            {"The user likes short answers.", "The user does not like bullet points."},
        ),
        (
            "I prefer tea, not coffee.",
            {"The user prefers tea.", "The user does not prefer coffee."},
        ),
        (
            "I love ramen on rainy Sundays, not a soul talking to me.",
            {"The user likes ramen on rainy Sundays."},
        ),
    ],
)
def test_what_limits_a_taste_ends_none(said: str, known: set[str]) -> None:
    """What is set aside was never liked, as far as anybody said."""
    assert _known(said) == known


@pytest.mark.parametrize(
    ("before", "after", "over"),
    [
        ("I like coffee.", "I like tea, not coffee.", "The user likes coffee."),
        ("I like coffee.", "I like tea now, not coffee.", "The user likes coffee."),
        ("I like jazz.", "I'm not into jazz any more.", "The user likes jazz."),
        (
            "I prefer tea in the evening.",
            "I don't prefer tea anymore.",
            "The user prefers tea in the evening.",
        ),
        (
            "I prefer deliveries on Mondays.",
            "I no longer prefer deliveries.",
            "The user prefers deliveries on Mondays.",
        ),
        ("I like jazz.", "I meant blues, not jazz. I like blues.", "The user likes jazz."),
        ("I prefer tea.", "I no longer prefer tea, I prefer coffee.", "The user prefers tea."),
        ("I live in Lisbon.", "I live in Porto, not Lisbon.", "The user lives in Lisbon."),
        ("I use Jira.", "I use Linear, not Jira.", "The user uses Jira."),
        ("I use vim.", "I use emacs now, never vim.", "The user uses vim."),
        ("I use vim.", "I use emacs, never vim.", "The user uses vim."),
        ("I speak French.", "I speak Spanish, never French.", "The user speaks French."),
    ],
)
def test_what_was_liked_and_is_set_aside_ends(before: str, after: str, over: str) -> None:
    """Of what is known, the same words are an end."""
    assert over in _known(before)
    assert over not in _known(before, after)


@pytest.mark.parametrize(
    ("before", "after", "stays"),
    [
        (
            "I prefer coffee in the morning.",
            "I prefer tea, not coffee.",
            "The user prefers coffee in the morning.",
        ),
        (
            "I prefer tea in the evening.",
            "I no longer prefer tea in the morning.",
            "The user prefers tea in the evening.",
        ),
        (
            "I prefer tea rooms in the country.",
            "I no longer prefer tea.",
            "The user prefers tea rooms in the country.",
        ),
        (
            "I prefer tea in the evening.",
            "I no longer prefer coffee.",
            "The user prefers tea in the evening.",
        ),
    ],
)
def test_what_is_preferred_at_one_time_outlives_another(
    before: str, after: str, stays: str
) -> None:
    """Only who no longer prefers the thing at all prefers it at no time."""
    assert stays in _known(before, after)


GIVEN_UP_THERE = [
    "kiln: dropped Jira, it's on Linear now",
    "kiln: we stopped using Jira",
    "billing-api: swapped Jira for Linear",
    "We stopped using Jira in the label printer.",
    "I stopped using Jira for my own tasks.",
    "We no longer use Jira in prod.",
    "We no longer use Jira for caching.",
    "I don't use Jira in production any more.",
    "I no longer use Jira on my phone.",
    "We no longer use Jira at Nordlicht.",
    "I stopped using Jira at the office.",
    "I stopped using Jira on my work laptop.",
    "I stopped using Jira on the billing team.",
    "We no longer use Jira in the platform team.",
    "We no longer use Jira in the payment process.",
    "We no longer use Jira in my own projects.",
    "We no longer use Jira in production at Christmas.",
    "We no longer use Jira for bug tracking.",
    "We no longer use Jira for notes.",
    "We no longer use Jira for music now.",
    "We no longer use Jira for my thesis.",
    "We no longer use Jira for the newsletter.",
    "We no longer use Jira for QA.",
    "We no longer use Jira for Android.",
    "We no longer use Jira for Acme tickets.",
    "atlas: we no longer use Jira",
    "I got rid of Jira in the new project.",
    "I stopped using Jira for Lent.",
]
GIVEN_UP = [
    "I stopped using Jira.",
    "I stopped using Jira for good.",
    "I stopped using Jira for now.",
    "I stopped using Jira in the end.",
    "I stopped using Jira in May.",
    "I stopped using Jira in the spring.",
    "I stopped using Jira on Monday.",
    "I stopped using Jira on principle.",
    "I stopped using Jira for privacy reasons.",
    "I stopped using Jira for a while now.",
    "I dropped Jira in favour of Linear.",
    "I dropped Jira for Linear.",
    "I dropped Jira for a better tracker.",
    "We ditched Jira for Linear in the platform team.",
    "I quit Jira in protest.",
    "I switched from Jira to Linear for my own tasks.",
    "I no longer use Jira in any project.",
    "We uninstalled Jira on all machines.",
    "update: I stopped using Jira",
    "PS: I no longer use Jira",
    "Decision: we no longer use Jira",
    "Monday: stopped using Jira",
    "We stopped using Jira for Linear",
    "I stopped using Jira for Tidal",
    "I stopped using Jira for vim",
    "I stopped using Jira for everything",
    "I no longer use Jira for anything",
    "I stopped using Jira for my sanity",
    "I stopped using Jira for my own good",
    "I stopped using Jira for my mental health",
    "I stopped using Jira for the kids' sake",
    "I stopped using Jira for peace of mind",
    "I stopped using Jira in my forties",
    "I stopped using Jira in my spare time",
    "I stopped using Jira in the early 2010s",
    "I stopped using Jira in the hope of saving money",
    "I stopped using Jira in lockdown",
    "I stopped using Jira in Lent",
    "I stopped using Jira in university",
    "I stopped using Jira in solidarity with artists",
    "I stopped using Jira on my birthday",
    "I stopped using Jira on our way to Rome",
    "I stopped using Jira on a whim",
    "I stopped using Jira at Easter",
    "I stopped using Jira at Christmas",
    "I stopped using Jira at New Year",
    "I stopped using Jira at my wife's request",
    "I stopped using Jira on my doctor's advice",
    "I no longer use Jira at work",
    "We no longer use Jira at work",
    "We no longer use Jira in the company",
    "We no longer use Jira in our team",
    "Heads-up: we no longer use Jira",
    "Infra: we no longer use Jira",
    "infra: we no longer use Jira",
    "Database: we no longer use Jira",
    "Tooling: we no longer use Jira",
    "Short: we no longer use Jira",
    "Progress: dropped Jira",
]


@pytest.mark.parametrize("said", GIVEN_UP_THERE)
def test_a_tool_that_is_given_up_for_one_thing_stays_in_use(said: str) -> None:
    """The end in one project, place or task is not that of the tool."""
    assert "The user uses Jira." in _known("I use Jira.", said)


@pytest.mark.parametrize(
    ("before", "after", "stays"),
    [
        ("I use Notion for notes", "I no longer use Notion for notes", False),
        ("We use Redis for caching.", "We no longer use Redis for caching any more.", False),
        ("I use Slack at work", "I no longer use Slack at work", False),
        ("We use Redis at work", "We no longer use Redis at work", False),
        ("We use Redis in prod.", "We no longer use Redis in prod.", False),
        ("We use Redis for caching.", "We no longer use Redis for queues.", True),
        ("We use Redis.", "We no longer use Redis for caching.", True),
        ("We use Redis in prod.", "We no longer use Redis in the label printer.", True),
    ],
)
def test_a_tool_ends_where_it_was_used(before: str, after: str, stays: bool) -> None:
    """Who used it for nothing else uses it no longer."""
    tool = "Notion" if "Notion" in before else "Slack" if "Slack" in before else "Redis"
    assert (f"The user uses {tool}." in _known(before, after)) is stays


@pytest.mark.parametrize("said", GIVEN_UP)
def test_a_tool_that_is_given_up_ends(said: str) -> None:
    """When, why and what for in its place are no limits."""
    assert "The user uses Jira." not in _known("I use Jira.", said)


@pytest.mark.parametrize(
    "preferred",
    [
        "deliveries in the morning",
        "calls in the evening",
        "standups in the afternoon",
        "parcels on Thursdays",
        "pickup at the shop on Saturdays",
        "meetings before lunch",
        "dark mode at night",
        "emails to calls in the evening",
    ],
)
def test_when_something_is_preferred_is_a_part_of_it(preferred: str) -> None:
    """Who prefers deliveries in the morning says nothing of deliveries."""
    assert _told(f"We prefer {preferred}.") == [f"The user prefers {preferred}."]


@pytest.mark.parametrize("when", ["at the moment", "these days", "in general", "since last year"])
def test_since_when_something_is_preferred_is_no_part_of_it(when: str) -> None:
    """What is said by the way of any preference narrows none."""
    assert _told(f"I prefer tea {when}.") == ["The user prefers tea."]


@pytest.mark.parametrize(
    "said",
    [
        "I'm 86.4 now.",
        "I'm 86,4 now.",
        "I'm 7.9 this morning, before breakfast.",
        "I'm 38.1 and shivering.",
        "I'm 78.2 today.",
        "I'm 18.5 in BMI terms.",
    ],
)
def test_a_reading_is_no_age(said: str) -> None:
    """Of what a number is that stands for no years, it does not say."""
    assert _told(said) == []


@pytest.mark.parametrize(
    ("said", "age"),
    [
        ("I'm 45.", "45"),
        ("I'm 45 now.", "45"),
        ("I'm 38, and shivering.", "38"),
        ("I'm 45 and tired.", "45"),
        ("I'm 1.82 m tall.", None),
    ],
)
def test_whole_years_are_an_age(said: str, age: str | None) -> None:
    """A height is told, and is none."""
    assert [(one.predicate, one.object) for one in answered({"text": said})] == [
        ("is aged" if age else None, age)
    ]


@pytest.mark.parametrize(
    ("said", "content"),
    [
        ("My number has changed: +44 7700 900123 instead of +44 7700 900456", "+44 7700 900123"),
        ("My number has changed, it's +44 7700 900123, not +44 7700 900456", "+44 7700 900123"),
        ("New number: +44 7700 900123 instead of +44 7700 900456", "+44 7700 900123"),
    ],
)
def test_a_new_number_is_told_without_the_old_one(said: str, content: str) -> None:
    """The number that it takes the place of is no part of it."""
    assert _told(said) == [f"The user's number is {content}."]


@pytest.mark.parametrize(
    ("said", "content"),
    [
        (
            'Correction: the flag is "--lf", not "--ff"',
            'The user corrected: the flag is "--lf", not "--ff".',
        ),
        (
            "Correction: the flag is '--lf', not '--ff'",
            "The user corrected: the flag is '--lf', not '--ff'.",
        ),
        (
            'Sorry I meant the "beta" channel not the "stable" channel',
            'The user corrected: the user meant the "beta" channel not the "stable" channel.',
        ),
        (
            "That's wrong, my lead said 'don't use uv', not poetry",
            "The user corrected: that's wrong, the user's lead said 'don't use uv', not poetry.",
        ),
        (
            '"Many nuts" was a slip of the tongue, "few"',
            'The user corrected: "Many nuts" was a slip of the tongue, "few".',
        ),
        (
            'I was wrong about it. "Few" is what it was, and Bob had "many"',
            'The user corrected: the user was wrong about it. "Few" is what it was, '
            'and Bob had "many".',
        ),
        (
            "Correction: it's “Blue”, not „Red“",
            "The user corrected: it's “Blue”, not „Red“.",
        ),
    ],
)
def test_a_correction_has_the_words_that_it_quotes(said: str, content: str) -> None:
    """What is blank while rules look for what is said stands in what they conclude."""
    assert _told(said) == [content]


@pytest.mark.parametrize(
    "said",
    [
        "I got the wrong size.",
        "I got the wrong end of the stick lol",
        "I had the wrong shoes on.",
        "I put the wrong fuel in the car.",
        "I got the name of the wrong street.",
        "I said the wrong thing to her.",
    ],
)
def test_who_got_the_wrong_thing_corrects_nothing(said: str) -> None:
    """Nothing that was said before is wrong."""
    assert _told(said) == []


@pytest.mark.parametrize(
    "said",
    [
        "I got the date wrong, it's the 5th.",
        "I got the wrong date, it's 5 May.",
        "I wrote the wrong name there, it's Anna.",
        "I spelled her name wrong, it's Anna.",
        "I got my age wrong.",
        "I got it totally wrong.",
        "I've got the days the wrong way round.",
    ],
)
def test_who_got_something_wrong_corrects_it(said: str) -> None:
    """So does who says what is right instead of "the wrong date"."""
    assert [one.category for one in answered({"text": said})] == ["correction"]
