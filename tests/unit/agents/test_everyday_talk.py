"""What people say every day, and the false memories that the rules once made of it."""

from __future__ import annotations

import pytest

from engram.agents.requests import ExtractionRequest, TurnView
from engram.agents.rules import extract
from engram.language.dates import read
from engram.language.found import Masked
from engram.language.negation import find_negations
from tests.support.learnt_by_rules import SAID, learnt


@pytest.mark.parametrize(
    ("said", "learns", "never"),
    [
        (
            "My wife's name is Klara with a K.",
            ["The user is married to Klara."],
            ["The user is called Klara."],
        ),
        (
            "My sister is Clara. That's Clara with a C.",
            ["Clara is the user's sister."],
            ["The user is called Clara."],
        ),
        ("My name is Klara with a K.", ["The user is called Klara."], []),
        (
            "My phone number is 415 555 0123, no sorry 415 555 0199.",
            ["The user's phone number is 415 555 0199."],
            ["The user's phone number is 415 555 0123."],
        ),
        (
            "My phone number is 415 555 0123. Sorry, 415 555 0199.",
            ["The user's phone number is 415 555 0199."],
            ["The user's phone number is 415 555 0123."],
        ),
        (
            "My birthday is May 3rd, no sorry, May 13th.",
            ["The user's birthday is May 13th."],
            ["The user's birthday is May 3rd."],
        ),
        (
            "My birthday is May 3rd, no, the 13th.",
            ["The user's birthday is May 13th."],
            ["The user's birthday is May 3rd."],
        ),
        (
            "My birthday is May 3rd. Sorry, May 13th is my mother's.",
            ["The user's birthday is May 3rd."],
            ["The user's birthday is May 13th."],
        ),
        ("My birthday is May 3rd, no joke.", ["The user's birthday is May 3rd."], []),
        (
            "My rent is 900 euros. No wait, it's 950.",
            ["The user's rent is 950 euros."],
            ["The user's rent is 900 euros."],
        ),
        (
            "The meeting is at 3pm, sorry, 4pm.",
            ["The meeting is at 4pm."],
            ["The meeting is at 3pm."],
        ),
        (
            "The standup is on Monday, no wait, Tuesday.",
            ["The standup is on Tuesday."],
            ["The standup is on Monday."],
        ),
        (
            "I live in Rome, no sorry, Milan.",
            ["The user lives in Milan."],
            ["The user lives in Rome."],
        ),
        ("I started smoking again, sadly.", ["The user started smoking again, sadly."], []),
        ("I'd start smoking again if I could.", [], ["The user started smoking again."]),
        (
            "I left Google and joined a startup called Nimbus.",
            ["The user no longer works at Google.", "The user works at Nimbus."],
            ["The user no longer works at Nimbus.", "The user no longer uses Google."],
        ),
        ("I left Slack.", ["The user no longer uses Slack."], []),
        (
            "I've got a new number: 415-555-0199.",
            ["The user's number is 415-555-0199."],
            ["The number of I've is 415-555-0199."],
        ),
        ("Don't use emojis when you talk to me.", [], ["The user does not use emojis."]),
        ("Don't use Mongo any more.", ["The user no longer uses Mongo."], []),
        ("I'm not a morning person.", [], ["The user does not use morning person."]),
        (
            "My girlfriend Sara and I broke up.",
            ["The user is no longer together with Sara."],
            ["The user is no longer married to Sara."],
        ),
        ("Sara and I got divorced.", ["The user is no longer married to Sara."], []),
        ("Actually, it's spelled Maxx, with two x's.", [], ["The user is called Maxx."]),
        (
            "I moved to Chicago in 2020 and then to Seattle last year.",
            ["The user lives in Chicago.", "The user lives in Seattle."],
            [],
        ),
        (
            "I think green is my favourite colour now.",
            ["The user's favourite colour is green."],
            [],
        ),
        (
            "I watched Heat yesterday, it's my new favourite film.",
            ["The user's favourite film is Heat."],
            [],
        ),
        ("I watched Heat yesterday, it's a bit long.", [], ["The user's favourite film is Heat."]),
        (
            "My wife works at Siemens and I'm a freelance photographer.",
            ["The user's wife works at Siemens.", "The user works as a freelance photographer."],
            [],
        ),
        ("My wife changed jobs, she's at Bosch now.", ["The user's wife works at Bosch."], []),
        (
            "I used to work for Deloitte, now I teach math at a high school.",
            ["The user works at a high school."],
            [],
        ),
        ("I teach kids at the weekend.", [], ["The user works at the weekend."]),
        ("It's Zalando that I work for.", ["The user works at Zalando."], []),
        ("What I study is linguistics.", ["The user studies linguistics."], []),
        ("Where do I live? In Ghent, by the canal.", ["The user lives in Ghent."], []),
        ("Where do I live? Bonn or Cologne?", [], ["The user lives in Bonn."]),
        ("The flat I live in is tiny.", [], ["The user lives in tiny."]),
        ("I should add that I live in Hull.", ["The user lives in Hull."], []),
        ("I've gone back to Firefox.", ["The user uses Firefox."], ["The user lives in Firefox."]),
        ("I moved to Shell last year.", [], ["The user lives in Shell."]),
        (
            "We moved to Postgres 17.",
            ["The user uses Postgres 17."],
            ["The user lives in Postgres 17."],
        ),
        ("Moved to S3 last month.", [], ["The user lives in S3."]),
        ("We moved to Slack channel 4.", [], ["The user lives in Slack channel 4."]),
        ("I moved to Area 51.", ["The user lives in Area 51."], []),
        ("It made me want to work even harder.", [], ["The user works as a want."]),
        ("They made me head of sales.", ["The user works as a head of sales."], []),
        ("I got promoted to shift lead.", ["The user works as a shift lead."], []),
        ("I got promoted to the first team.", [], ["The user works as the first team."]),
        ("As a kid I loved reading.", [], ["The user no longer likes reading."]),
        ("I loved gin until I got ill.", ["The user no longer likes gin."], []),
        ("We have each other's back.", [], ["The user has each other's back."]),
        ("Speaking of bikes, I've got three of them.", [], ["The user has three of them."]),
        ("I used to have a dog back in Michigan.", ["The user no longer has a dog."], []),
        ("I just got back from Sunday mass.", [], ["The user no longer plans to go to Sunday."]),
        ("Our trip got off to a bad start.", [], ["The user no longer plans the trip."]),
        ("Anyway, back to Scythe.", [], ["The user lives in Scythe."]),
        ("I use Down Dog when I can't make it to yoga.", [], ["The user uses to yoga."]),
        ("I'm going to make it happen.", [], ["The user plans to happen."]),
        ("I'm planning to go out and was wondering.", [], ["The user plans to was wondering."]),
        ("It's based on a book that I love.", [], ["The user likes based."]),
        (
            "The solo was my favourite part.",
            [],
            ["The user's favourite part is no longer The solo."],
        ),
        (
            "I have a signed poster of my favourite artist's debut album.",
            [],
            ["The user's favourite artist is debut album."],
        ),
        ("I signed up for their rewards program.", [], ["The user studies their rewards program."]),
        (
            "I completed my undergraduate degree in physics.",
            ["The user no longer studies physics."],
            ["The user no longer studies undergraduate."],
        ),
        ("My wife is Thai.", [], ["The user is married to Thai."]),
        ("My boss is Irish.", [], ["Irish is the user's boss."]),
        ("My manager's Priya.", ["The user's manager is Priya."], []),
        ("I'm done with French fries.", [], ["The user no longer studies French."]),
        ("I got a Dacia Jogger.", ["The user drives a Dacia Jogger."], []),
        ("I bought my son a Tesla toy.", [], ["The user drives my son."]),
        ("We got a Kia as a second car.", [], ["The user drives a Kia."]),
        ("My phone is a mess.", [], ["The user uses a mess."]),
        ("Everything lives in Bear now.", ["The user uses Bear."], []),
        ("Book club has moved to Thursdays.", ["Book club is scheduled for Thursdays."], []),
        (
            "I'm from Ghana, grew up in Accra.",
            ["The user is from Ghana."],
            ["The user is from Accra."],
        ),
        ("After the divorce I went back to Horvath.", [], ["The user lives in Horvath."]),
        (
            "I switched from Notion to Obsidian and back to Notion.",
            ["The user uses Notion."],
            ["The user uses Obsidian."],
        ),
        ("We swapped the flat in Lyon for a house in Annecy.", ["The user lives in Annecy."], []),
        ("Quick intro: Petra, 34, living in Ghent.", ["The user lives in Ghent."], []),
        ("The company I work for is Crumb.", ["The user works at Crumb."], []),
        ("I'm down to two cats.", ["The user has two cats."], []),
        ("Down to two finalists.", [], ["The user has two finalists."]),
        ("I've got a new GP, Dr Yilmaz.", ["The user's gp is Dr Yilmaz."], []),
        (
            "I've moved to TCP/IP.",
            [],
            ["The user lives in TCP/IP.", "The user has lives in TCP/IP."],
        ),
        ("I swapped boots for sandals.", [], ["The user works at sandals."]),
        ("I dropped the plates.", [], ["The user no longer studies the plates."]),
        ("A friend keeps asking whether I work at Stripe.", [], ["The user works at Stripe."]),
        ("I'm with Ben, he got a new job.", [], ["The user works at Ben."]),
        ("I just quit, I'm with Deloitte now.", ["The user works at Deloitte."], []),
        ("I'm a vegetarian chef.", [], ["The user is vegetarian."]),
        ("Yesterday I crashed the car.", [], ["The user no longer owns the car."]),
        ("I prefer the first one.", [], ["The user prefers the first one."]),
        ("I switched to history.", ["The user studies history."], ["The user uses history."]),
        ("I'm going to Anna's tomorrow.", [], ["The user plans to go to Anna's."]),
        ("It's Danske Bank I work for.", ["The user works at Danske Bank."], []),
        (
            "I sold the boat, bought a flat in Zeist.",
            ["The user lives in Zeist."],
            [],
        ),
        ("Zoe is home now.", [], ["The user lives in Zoe."]),
        ("The garage closed down.", [], ["The user no longer works at The."]),
        (
            "Ditched the Samsung for an iPhone.",
            ["The user uses iPhone."],
            ["The user works at iPhone.", "The user no longer works at the Samsung."],
        ),
        ("I won't be late tonight.", [], ["The user won't be late tonight."]),
        (
            "I was raised by my aunt Petra.",
            ["Petra is the user's aunt."],
            ["The user was raised by their aunt Petra."],
        ),
        ("Some kid stole my bike last night.", ["The user no longer owns bike."], []),
        ("I cancelled my Spotify subscription.", ["The user no longer uses Spotify."], []),
        ("I don't mind flying any more.", ["The user no longer dislikes flying."], []),
        ("Nice doctor here.", [], ["The user works as a nice doctor."]),
        ("I lost my temper.", [], ["The user no longer owns temper."]),
        ("I'm back from Iceland.", [], ["The user is from Iceland."]),
        ("Rang my mum.", [], ["Rang is the user's mum."]),
        ("I owe you one.", [], ["The user owes you one."]),
        (
            "I owe Tess a dinner, I'll take her out next week.",
            ["The user promised to take her out."],
            ["The user owes Tess a dinner."],
        ),
        ("I promised the kids a trip to the zoo.", [], ["The user promised to zoo."]),
        ("I promised Rick not to tell anyone.", [], ["The user promised to tell anyone."]),
        (
            "I'm a nurse living in Leeds.",
            ["The user works as a nurse.", "The user lives in Leeds."],
            [],
        ),
        ("I'm a playwright based in Ghent.", ["The user lives in Ghent."], []),
        ("My brother is a nurse living in Leeds.", [], ["The user lives in Leeds."]),
        ("Still at Corvus Media, nothing new.", ["The user works at Corvus Media."], []),
        ("I've transferred to St James's.", [], ["The user lives in St James's."]),
        ("I transferred to Leeds.", ["The user lives in Leeds."], []),
        ("Greetings from Graz!", [], ["The user is from Graz."]),
        ("Switched to botany.", ["The user studies botany."], ["The user uses botany."]),
        ("Moved back to my mum's in Hull.", ["The user lives in Hull."], []),
        ("I've joined a charity, Shelter.", ["The user works at Shelter."], []),
        ("The team dumped Jira.", ["The user no longer uses Jira."], []),
        (
            "Took my husband's name, I'm Ana Ribeiro now.",
            ["The user is called Ana Ribeiro."],
            ["I'm Ana Ribeiro is the user's husband."],
        ),
        ("I'm Ana's neighbour now.", [], ["The user is called Ana's."]),
        ("The Crown closed down.", [], ["The user no longer works at The Crown."]),
        (
            "I've been promoted from cashier to supervisor.",
            ["The user works as a supervisor.", "The user no longer works as a cashier."],
            ["The from cashier of supervisor is I've."],
        ),
        ("Work moved from Zoom to Teams.", ["Work uses Teams."], ["Work lives in Teams."]),
        ("I'm in Bern! Moved last week.", ["The user lives in Bern."], []),
    ],
)
def test_everyday_talk_is_taken_as_it_is_meant(
    said: str, learns: list[str], never: list[str]
) -> None:
    """What it says is learnt, and what it does not say is not."""
    found = learnt(said)
    assert [one for one in learns if one not in found] == []
    assert [one for one in never if one in found] == []


@pytest.mark.parametrize(
    ("before", "said", "holds"),
    [
        (
            ["My birthday is on the 4th of May."],
            "Sorry, I meant the 14th of May.",
            "The user's birthday is on the 14th of May.",
        ),
        (
            ["My dog's name is Max."],
            "Actually, it's spelled Maxx, with two x's.",
            "The user's dog's name is Maxx.",
        ),
        (["My dog's name is Max."], "It's Maxx with two x's.", "The user's dog's name is Maxx."),
        (
            ["I work at KPMG.", "My dog's name is Max."],
            "Sorry, I meant Rex.",
            "The user's dog's name is Rex.",
        ),
        (
            ["My sister Clara lives in Rome."],
            "No, not Rome, she lives in Milan.",
            "Clara lives in Milan.",
        ),
    ],
)
def test_a_correction_mends_what_was_said_last(before: list[str], said: str, holds: str) -> None:
    """Of whomever it was said, and nothing else: not the user's employer, not the user's name."""
    found = learnt(*before, said)
    assert holds in found
    for wrong in ("The user is called", "The user works at", "Clara lives in No", "lives in she"):
        assert not [one for one in found if wrong in one]


@pytest.mark.parametrize(
    ("said", "denied"),
    [
        ("I quit smoking three weeks ago.", ["smoke"]),
        ("I stopped smoking about a month ago.", ["smoke"]),
        ("I stopped drinking coffee, the doctor told me to.", ["drink coffee"]),
        ("I don't use Mongo, he told me.", []),
        ("I left Google and joined a startup called Nimbus.", []),
        ("I left Google.", ["use google"]),
        ("No more coffee for me.", ["drink coffee"]),
        ("No more sugar for us, doctor's orders.", ["eat sugar"]),
        ("No more Facebook for me then.", ["use facebook"]),
        ("No more beer for me tonight.", []),
        ("No more worries for me.", []),
        ("There's no more coffee for me.", []),
    ],
)
def test_what_ended_is_denied_without_when_and_why(said: str, denied: list[str]) -> None:
    """No "does not smoke three weeks", no employer as a tool, and a reason is no quotation."""
    assert [one.negates_pattern for one in find_negations(said)] == denied


@pytest.mark.parametrize(
    ("said", "day"),
    [
        ("The dentist moved my appointment to January 20.", "2026-01-20"),
        ("I booked a table for March 3.", "2026-03-03"),
        ("We moved the launch to May 5th.", "2026-05-05"),
        ("I moved here on January 20.", "2025-01-20"),
    ],
)
def test_what_was_arranged_is_still_to_come(said: str, day: str) -> None:
    """The verb is past, the day is not."""
    assert [one.when.value for one in read(Masked(said), SAID)] == [day]


@pytest.mark.parametrize("said", ["Correction: I'm vegan.", "Sorry, I meant I work at Ikea."])
def test_a_correction_that_says_of_what_takes_no_other_value_s_place(said: str) -> None:
    """Where somebody lives is not mended by a sentence about something else."""
    assert not [one for one in learnt("I live in Lisbon.", said) if "live" in one]


@pytest.mark.parametrize(
    ("before", "said", "learns"),
    [
        (
            "I live in Perth and I work for Rio Tinto.",
            "I left Rio Tinto but I'm still in Perth.",
            ["The user no longer works at Rio Tinto."],
        ),
        ("I work at Merrow.", "I left Merrow station at nine.", []),
        ("I use Opera.", "Binned Opera, it was slow.", ["The user no longer uses Opera."]),
        ("I like oysters.", "Not any more, food poisoning.", ["The user no longer likes oysters."]),
        ("I like oysters and I own a boat.", "Not any more.", []),
        ("I like oysters.", "My brother is not any more of a fan.", []),
        (
            "I'm going to sell my flat.",
            "Sold the flat on Friday!",
            ["The user no longer plans to sell their flat."],
        ),
        ("I'm going to sell my flat.", "A flat next door was sold.", []),
        (
            "I drive a Skoda.",
            "I swapped the Skoda for a Kia.",
            ["The user drives Kia.", "The user no longer drives the Skoda."],
        ),
        ("I love gin.", "I've gone off gin completely.", ["The user no longer likes gin."]),
        ("I live in Lima.", "Moved again: Arequipa.", ["The user lives in Arequipa."]),
        ("i use a kobo", "the kobo broke so im back to paper", []),
        ("I work at Nando's.", "Nando's promoted me to manager!", ["The user works as a manager."]),
        ("I use Notion.", "I don't use it any more.", ["The user no longer uses Notion."]),
        (
            "I like horror films.",
            "Don't like them any more.",
            ["The user no longer likes horror films."],
        ),
        ("I have a lamp and a desk.", "I don't have it any more.", []),
        ("I own a caravan.", "Caravan's gone, sadly.", ["The user no longer owns a caravan."]),
        (
            "I own a Land Rover.",
            "The Land Rover's been sold.",
            ["The user no longer owns a Land Rover."],
        ),
        ("I own a Land Rover.", "The neighbour's Land Rover's been sold.", []),
        ("I own a boat.", "Sold it!", ["The user no longer owns a boat."]),
        ("I use a Kobo.", "I dropped it in the bath.", []),
        (
            "I have a motorbike.",
            "No more motorbike for me.",
            ["The user no longer has a motorbike."],
        ),
        ("I love gin.", "No more gin for me.", []),
        (
            "I'm planning to run the Berlin marathon.",
            "No Berlin marathon for me.",
            ["The user no longer plans to run the Berlin marathon."],
        ),
        (
            "I work in a bakery called Flourish.",
            "The bakery shut. I'm at Greggs now.",
            ["The user works at Greggs."],
        ),
        ("I work at Lidl.", "I'm at Tesco now, need anything?", []),
        (
            "My favourite pub is the Crown.",
            "The Crown closed down, so now it's Monday quiz at home.",
            [],
        ),
        (
            "My favourite restaurant is Lucca.",
            "Lucca closed down, so now it's Da Nino.",
            ["The user's favourite restaurant is Da Nino."],
        ),
        ("I live in Utrecht.", "Rotterdam now!", ["The user lives in Rotterdam."]),
        ("I live in Utrecht.", "Better now!", []),
        (
            "I'm a lifeguard.",
            "Season's over so no longer a lifeguard.",
            ["The user no longer works as a lifeguard."],
        ),
        ("I work at Bupa.", "Bupa closed down.", ["The user no longer works at Bupa."]),
        (
            "I'm planning to sell the house.",
            "House is sold!",
            ["The user no longer plans to sell the house."],
        ),
        ("I work at Onda.", "Onda and I parted ways.", ["The user no longer works at Onda."]),
    ],
)
def test_what_was_just_told_ends_by_its_name(before: str, said: str, learns: list[str]) -> None:
    """And nothing else that is said of the same name, or of something like it."""
    found = learnt(before, said)
    assert [one for one in learns if one not in found] == []
    assert learns or not [one for one in found if "no longer" in one or "lives in" in one]


def heard(asked: str, answer: str) -> list[str]:
    """What an answer to a turn of an assistant is taken to say."""
    turns = [
        TurnView(alias=alias, role=role, speaker=None, said_at=SAID, content=words)
        for alias, role, words in (("e1", "assistant", asked), ("e2", "user", answer))
    ]
    asking = ExtractionRequest(turns=(turns[1],), before=(turns[0],))
    return [one.content for one in extract(asking).statements]


@pytest.mark.parametrize(
    ("asked", "answer", "learns"),
    [
        ("Are you allergic to anything?", "Yes, penicillin.", ["is allergic to penicillin"]),
        ("Any allergies?", "Peanuts.", ["is allergic to peanuts"]),
        (
            "Nice to meet you. Do you have any allergies?",
            "Yes, nuts and shellfish.",
            ["is allergic to nuts", "is allergic to shellfish"],
        ),
        ("Are you allergic to anything?", "Not that I know of.", []),
        ("Are you allergic to anything?", "No.", []),
        ("Are you allergic to anything?", "Yes, terribly.", []),
        ("Are you allergic to anything?", "Yes, several things.", []),
        ("Are you allergic to anything?", "What time is it?", []),
        ("Is your son allergic to anything?", "Yes, penicillin.", []),
        ("Are you allergic to penicillin?", "Yes.", ["is allergic to penicillin"]),
        ("Any kids?", "Two.", ["has two kids"]),
        ("Do you have any kids?", "Yes, three.", ["has three kids"]),
        ("How many children do you have?", "Just one.", ["has one child"]),
        ("Any kids?", "Two o'clock works.", []),
        ("Any kids coming to the party?", "Two.", []),
        ("Do you have any pets?", "Two cats.", ["has two cats"]),
        ("Do you have any pets?", "Yes, two cats.", ["has two cats"]),
        ("Do you have any pets?", "A dog", ["has a dog"]),
        ("Do you have any pets?", "Yes.", []),
        ("Do you have any questions?", "Two.", []),
        ("Where do you live?", "Lisbon.", ["lives in Lisbon"]),
        ("Nice! So where do you live?", "In Lisbon, and you?", ["lives in Lisbon"]),
        ("Where are you based at the moment?", "Porto, since 2019.", ["lives in Porto"]),
        ("Which city do you live in?", "Italy", ["lives in Italy"]),
        ("What do you do for work?", "Nurse.", ["works as a nurse"]),
        ("What's your job?", "An engineer", ["works as an engineer"]),
        ("Who do you work for?", "Bosch", ["works at Bosch"]),
        ("What's your name?", "Kate", ["is called Kate"]),
        ("What's your wife's name?", "Clara.", ["is married to Clara"]),
        ("What is your wife called?", "It's Clara.", ["is married to Clara"]),
        ("What's the name of your dog?", "Rex.", ["'s dog's name is Rex"]),
        ("When is your birthday?", "May 3rd.", ["'s birthday is May 3rd"]),
        ("When's your birthday?", "On the 3rd of May", ["'s birthday is the 3rd of May"]),
        ("When were you born?", "1982", ["was born in 1982"]),
        ("Are you vegetarian?", "Yes, since 2019.", ["is vegetarian"]),
        ("Which database do you use?", "Postgres.", ["uses Postgres"]),
        ("Which editor do you use at work?", "Neovim", ["uses Neovim"]),
        ("Do you speak any other languages?", "Spanish", ["speaks Spanish"]),
        ("Which languages do you speak?", "German and French.", ["speaks German", "speaks French"]),
        ("What are you studying?", "Botany", ["studies Botany"]),
        ("What's your favourite colour?", "Green.", ["'s favourite colour is Green"]),
        ("What's your budget?", "900 euros", ["'s budget is 900 euros"]),
        ("Who is your dentist?", "Dr Fox.", ["'s dentist is Dr Fox"]),
        ("Where does your wife live?", "Rome.", ["'s wife lives in Rome"]),
        ("What does your wife do?", "Teacher.", ["'s wife works as a teacher"]),
        *[
            ("Where do you live?", said, [])
            for said in (
                "Why?",
                "Why do you ask?",
                "None of your business.",
                "Not sure yet.",
                "I'd rather not say.",
                "With my parents.",
                "Here and there.",
                "On a boat.",
                "Guess!",
                "lol",
                "It depends.",
                "Ask me later",
                "What time is it?",
            )
        ],
        ("Where do you live? Or work?", "Lisbon.", []),
        ("Where do you work?", "From home.", []),
        ("What do you do for fun?", "Chess.", []),
        ("What do you think?", "Postgres.", []),
        ("What's your question?", "Postgres.", []),
        ("When is your birthday?", "Tomorrow!", []),
        ("Which database do you use?", "All of them", []),
        ("What's your favourite colour?", "Depends on the day", []),
    ],
)
def test_a_bare_answer_says_what_was_asked(asked: str, answer: str, learns: list[str]) -> None:
    """As the user would say it in full; who says more, refuses or asks back, says no such thing."""
    assert heard(asked, answer) == [
        f"The user{one}." if one.startswith("'") else f"The user {one}." for one in learns
    ]


def test_a_yes_tells_since_when_as_well() -> None:
    """The answer's time is that of what was asked."""
    turns = [
        TurnView(alias=alias, role=role, speaker=None, said_at=SAID, content=words)
        for alias, role, words in (
            ("e1", "assistant", "Are you vegetarian?"),
            ("e2", "user", "Yes, since 2019."),
        )
    ]
    [one] = extract(ExtractionRequest(turns=(turns[1],), before=(turns[0],))).statements
    assert one.happened_at is not None
    assert one.happened_at.year == 2019


SLIPS = [
    "wait,",
    "hang on,",
    "no, hold on,",
    "make that",
    "scratch that,",
    "I mean",
    "er,",
    "rather",
]


@pytest.mark.parametrize("slip", [*SLIPS, "rather"])
@pytest.mark.parametrize(
    ("said", "old", "new"),
    [
        ("My birthday is on {}.", "May 3rd", "May 13th"),
        ("My birthday is on {}.", "the 3rd of May", "the 13th of May"),
        ("The meeting starts at {}.", "3", "4"),
        ("My rent is {}.", "900 euros", "950 euros"),
        ("I was born in {}.", "1982", "1983"),
        ("I live in {}.", "Oslo", "Bergen"),
        ("Tom lives in {}.", "Oslo", "Bergen"),
        ("I work at {}.", "Bosch", "Siemens"),
        ("My wife's name is {}.", "Clara", "Nora"),
        ("My sister is {}.", "Clara", "Nora"),
        ("I have {}.", "two cats", "three cats"),
    ],
)
def test_what_is_mended_at_once_was_never_said(slip: str, said: str, old: str, new: str) -> None:
    """Dates, times, numbers, places and names, by whichever word they are taken back."""
    meant = learnt(said.format(new))
    assert meant
    assert learnt(said.format(f"{old}, {slip} {new}")) == meant


@pytest.mark.parametrize(
    ("said", "learns"),
    [
        ("I like tea, no sugar.", ["The user likes tea."]),
        ("I love Rome, no kidding.", ["The user likes Rome."]),
        ("I use Slack, no, Teams is better.", ["The user uses Slack."]),
        ("I work at Bosch. Sorry, Tom!", ["The user works at Bosch."]),
        ("I live in Oslo. Well, Italy was nice.", ["The user lives in Oslo."]),
    ],
)
def test_what_only_sounds_like_mending_leaves_it(said: str, learns: list[str]) -> None:
    """Nothing of the same kind follows, or it is said of something else."""
    assert learnt(said) == learns


@pytest.mark.parametrize(
    ("told", "spelt", "learns"),
    [
        ("My wife's name is Clara.", "It's Klara with a K.", "The user is married to Klara."),
        ("My wife's name is Clara.", "That's Klara with a K", "The user is married to Klara."),
        ("My wife's name is Clara.", "Spelled K-L-A-R-A.", "The user is married to Klara."),
        ("My sister is Clara.", "Her name is spelled K-L-A-R-A.", "Klara is the user's sister."),
        ("My boss is Philip.", "It's Phillip with two l's.", "Phillip is the user's boss."),
        ("My dog is called Max.", "It's Maxx with two x's.", "The user's dog is called Maxx."),
        (
            "My name is Jon and I live in Oslo.",
            "That's John with an h.",
            "The user is called John.",
        ),
        ("I live in Marburg.", "It's Kate with a K.", "The user is called Kate."),
        ("My wife's name is Clara.", "My name is Klara with a K.", "The user is called Klara."),
    ],
)
def test_a_name_that_is_spelled_is_of_whom_it_was_told(told: str, spelt: str, learns: str) -> None:
    """In a turn of its own or in the same one; of the user only where nobody else is called so."""
    found = learnt(told, spelt)
    assert found[0] == learns
    assert not [one for one in found[1:] if " not " not in one and "no longer" not in one]


def test_a_name_that_is_spelled_in_the_same_turn_is_told_once() -> None:
    """No other spelling is learnt, and nobody else is called so."""
    said = "My wife's name is Clara. It's Klara with a K."
    assert learnt(said) == ["The user is married to Klara."]
    assert learnt("My sister is Clara, that's Klara with a K.") == ["Klara is the user's sister."]


@pytest.mark.parametrize(
    ("asked", "answer", "learns"),
    [
        (
            "You live in Porto, right?",
            "Not any more, Lisbon now.",
            ["lives in Lisbon", "no longer lives in Porto"],
        ),
        (
            "You live in Porto, right?",
            "No, not any more. I'm in Lisbon now.",
            ["lives in Lisbon", "no longer lives in Porto"],
        ),
        (
            "As you work at Nokia, ask there.",
            "No longer, it's Ericsson now.",
            ["works at Ericsson", "no longer works at Nokia"],
        ),
        ("You live in Porto, right?", "Not any more.", ["no longer lives in Porto"]),
        ("You live in Porto, right?", "Not any more, I hate it now.", ["no longer lives in Porto"]),
        ("You live in Porto. You use Vim.", "Not any more.", []),
        ("Porto is lovely.", "Not any more, Lisbon now.", []),
    ],
)
def test_what_was_just_said_of_the_user_is_so_no_more(
    asked: str, answer: str, learns: list[str]
) -> None:
    """And something else is, where the turn names it; what was said of them alone is meant."""
    assert heard(asked, answer) == [f"The user {one}." for one in learns]


@pytest.mark.parametrize(
    ("before", "said", "learns"),
    [
        (
            "I live in Oslo.",
            "It's not Oslo any more, it's Bergen.",
            ["The user lives in Bergen.", "The user no longer lives in Oslo."],
        ),
        (
            "I live in Oslo.",
            "Goodbye Oslo, hello Bergen!",
            ["The user lives in Bergen.", "The user no longer lives in Oslo."],
        ),
        ("I live in Oslo.", "We've upped sticks, it's Bergen now.", ["The user lives in Bergen."]),
        (
            "I use Notion.",
            "Notion's out, Obsidian's in.",
            ["The user uses Obsidian.", "The user no longer uses Notion."],
        ),
        (
            "I use Notion.",
            "Obsidian replaced Notion for me.",
            ["The user uses Obsidian.", "The user no longer uses Notion."],
        ),
        (
            "I use Notion.",
            "Notion got replaced by Obsidian.",
            ["The user uses Obsidian.", "The user no longer uses Notion."],
        ),
        (
            "The staging server runs on Debian.",
            "Debian gave way to Alpine.",
            [
                "The staging server runs on Alpine.",
                "It is not so that the staging server runs on Debian.",
            ],
        ),
        (
            "The deadline is on the 5th.",
            "It's not the 5th any more, it's the 9th.",
            ["The deadline is on the 9th.", "It is not so that the deadline is on the 5th."],
        ),
        (
            "I'm a nurse.",
            "I'm a teacher these days, not a nurse.",
            ["The user works as a teacher.", "The user no longer works as a nurse."],
        ),
        ("Tom lives in Bergen.", "Mum says Tom lives in Oslo now.", ["Tom lives in Oslo."]),
        ("Tom lives in Bergen.", "I heard that Tom lives in Oslo.", ["Tom lives in Oslo."]),
        ("Tom works at Nokia.", "Tom's working at Shell now.", ["Tom is working at Shell."]),
        (
            "Tom works at Nokia.",
            "Tom doesn't work at Nokia any more.",
            ["Tom no longer works at Nokia."],
        ),
        ("The gym opens at 7.", "The gym now open at 6.", ["The gym opens at 6."]),
        ("Hi.", "Coriander? Can't stand it.", ["The user dislikes Coriander."]),
        ("Hi.", "They call me Lu at work.", ["The user is called Lu."]),
        ("Hi.", "So from now on I work at Vestas.", ["The user works at Vestas."]),
    ],
)
def test_what_has_changed_is_read_however_it_is_said(
    before: str, said: str, learns: list[str]
) -> None:
    """By what was replaced, as others tell it, or as what goes on."""
    assert learnt(before, said) == learns


@pytest.mark.parametrize(
    "said",
    [
        "From Monday standup is at 10:15.",
        "Tom is working at the library today.",
        "The shop is open at 9.",
        "Please leave at 8.",
        "Tea? No thanks.",
        "Replaced the battery, not the screen.",
        "It's hot, not cold.",
    ],
)
def test_what_only_looks_like_it_says_nothing_of_the_kind(said: str) -> None:
    """Nobody comes from Monday, and who works somewhere today may not tomorrow."""
    assert learnt(said) == []


def test_no_word_is_taken_for_a_person() -> None:
    """Whom a preposition or "not" stands before is introduced by no name."""
    assert learnt("With my parents.") == []
    assert not [one for one in learnt("Not my cousin, my nephew.") if "is the user's" in one]


@pytest.mark.parametrize(
    ("before", "said", "learns", "never"),
    [
        ("I like anchovies.", "Not anymore.", "The user no longer likes anchovies.", ""),
        ("I use Slack.", "We don't any more.", "The user no longer uses Slack.", ""),
        ("I start at Elis on Monday.", "First week at Elis done.", "The user works at Elis.", ""),
        ("My son starts at Elis.", "First day at Elis!", "", "The user works at Elis."),
        ("I'm moving to Graz.", "Day one in Graz!", "The user lives in Graz.", ""),
        ("I'm moving to Graz.", "First day in Linz!", "", "The user lives in Linz."),
        ("I'm in Porto.", "Yes, I live here.", "The user lives in Porto.", ""),
        ("I'm in Porto.", "My cousins live here.", "", "The user lives in Porto."),
        ("Our rent is 850.", "The rent went up to 910.", "The user's rent is 910.", ""),
        ("My name is Jon.", "The name is on the list.", "", "The user is called on the list."),
        ("My train is at 9:15.", "They pushed it to 9:40.", "The user's train is at 9:40.", ""),
        (
            "My dentist is Dr Ro.",
            "I don't see Dr Ro any more.",
            "The user's dentist is no longer Dr Ro.",
            "",
        ),
        (
            "My dentist is Dr Ro.",
            "Dr Ro retired, now I see Dr Li.",
            "The user's dentist is Dr Li.",
            "",
        ),
        (
            "My dentist is Dr Ro.",
            "My mum left Dr Ro.",
            "",
            "The user's dentist is no longer Dr Ro.",
        ),
        (
            "I drive a Renault Zoe.",
            "The Zoe was swapped for a Kia Niro.",
            "The user drives a Kia Niro.",
            "",
        ),
        ("My mum's allergic to nuts.", "So am I.", "The user is allergic to nuts.", ""),
        (
            "My favourite tea is Assam.",
            "Lapsang is my favourite now.",
            "The user's favourite tea is Lapsang.",
            "",
        ),
        ("I'm a nurse.", "I don't work there anymore.", "", "The user no longer works as a nurse."),
        (
            "My manager is Ann.",
            "Ann left, Gus is my manager now.",
            "Gus is the user's manager.",
            "",
        ),
        ("We took in a cat.", "She's called Olive.", "The user's cat is called Olive.", ""),
    ],
)
def test_what_leans_on_the_turn_before_is_told_of_the_user(
    before: str, said: str, learns: str, never: str
) -> None:
    """What was told before says what is meant; where it says nothing of the user, nothing is."""
    found = learnt(before, said)
    assert not learns or learns in found, found
    assert never not in found


@pytest.mark.parametrize(
    ("asked", "said", "learns"),
    [
        ("So you live in Sofia?", "Plovdiv.", ["The user lives in Plovdiv."]),
        ("You said you live in Riga, right?", "No, Vilnius.", ["The user lives in Vilnius."]),
        ("Do you live in Porto or Lisbon?", "Lisbon.", ["The user lives in Lisbon."]),
        ("Do you live in London?", "Nearby.", []),
        ("Do you live in London?", "Sometimes.", []),
        ("Do you work for Bosch?", "No, Siemens.", ["The user works at Siemens."]),
        ("Your name is Anna, right?", "Hanna.", ["The user is called Hanna."]),
        ("Are you Scottish?", "Welsh.", []),
        ("Do you use Chrome?", "Firefox.", ["The user uses Firefox."]),
        ("Do you use Instagram?", "Religiously.", []),
        ("Do you study law?", "Part-time.", []),
        ("Did you move to Toulouse?", "Yes! Two weeks ago.", ["The user lives in Toulouse."]),
        ("Did you move to Toulouse?", "No.", []),
    ],
)
def test_a_bare_answer_to_what_is_taken_to_be_so_says_what_is(
    asked: str, said: str, learns: list[str]
) -> None:
    """Another value than the one that is asked for, and nothing that is none."""
    views = [
        TurnView(alias=alias, role=role, speaker=None, said_at=SAID, content=words)
        for alias, role, words in (("e1", "assistant", asked), ("e2", "user", said))
    ]
    request = ExtractionRequest(turns=(views[1],), before=(views[0],))
    assert [one.content for one in extract(request).statements] == learns
