"""Pattern facts, phrase by phrase."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from engram.language.dates import starts
from engram.language.extractor import extract_facts

WEDNESDAY = datetime(2026, 3, 11, 9, 30, tzinfo=UTC)

# What is said, and the facts in it: category and canonical value.
CASES: list[tuple[str, list[str]]] = [
    ("I'm Italian", []),
    ("I'm tired", []),
    ("I'm in London", []),
    ("I'm sure", []),
    ("I'm Ben's sister", []),
    ("call me later", []),
    ("Call me Lex", ["name:Lex"]),
    ("Tom here", ["name:Tom"]),
    ("I'm Ben, by the way", ["name:Ben"]),
    ("My name's José María", ["name:José María"]),
    ("this is Anna de Vries from Utrecht", ["name:Anna de Vries"]),
    ("I'm Dr. Sarah Chen, your new physician", ["name:Sarah Chen"]),
    ("Hello! I'm Mary-Jane O'Neill.", ["name:Mary-Jane O'Neill"]),
    ("my name is ada", ["name:Ada"]),
    ("I'm Monday to Friday only", []),
    ("I'm Paris based", []),
    ("I am Ironman", ["name:Ironman"]),
    ("Nice to meet you, I'm Olga", ["name:Olga"]),
    ("They call me Bear", ["name:Bear"]),
    ("Don't call me Shirley", []),
    ("This is Spain", []),
    ("This is Python", []),
    ("Hi, it's Tuesday", []),
    ("Hey, it's me", []),
    ("Coffee here is great", []),
    ("Winter here again", []),
    ("Same here", []),
    ("Generally speaking, yes", []),
    ("My name is Not Important", []),
    ("I got married: my name is now Ada Lovelace", ["name:Ada Lovelace"]),
    ("My name is Ada Lovelace now", ["name:Ada Lovelace"]),
    ("My new name is Ada Lovelace", ["name:Ada Lovelace"]),
    ("We moved, and I've changed my name to Ada Lovelace", ["name:Ada Lovelace"]),
    ("I never changed my name to Ada Lovelace", []),
    ("She says I should have changed my name to Ada Lovelace", []),
    ("I changed my name to protect my family", []),
    ("My name is now on the list", []),
    ("He thinks my name is Tom", []),
    ("I'm Sam and I love hiking", ["name:Sam"]),
    ("I'm OK", []),
    ("I'm Happy to help", []),
    ("I'm Vegan", []),
    ("I'm ADHD", []),
    ("I am Sorry", []),
    ("I'm Chris with the blue car", ["name:Chris"]),
    ("Everyone calls me Mo", ["name:Mo"]),
    ("My dog's name is Rex", []),
    ("I'm reading Dune", []),
    ("I'm Team Coffee", []),
    ("This is Maria calling about the flat", ["name:Maria"]),
    ("I'm Liverpool fan", []),
    ("I'm Google certified", []),
    ("You can call me Al", ["name:Al"]),
    ("I'd call me lucky", []),
    ("My username is ada99", []),
    ("My name is Ada, not Eda", ["name:Ada"]),
    ("Good morning, Raj here from support", ["name:Raj"]),
    ("I'm Jack's mum", []),
    ("I'm Type 1 diabetic", []),
    ("I'm Gen Z", []),
    ("dinner in two weeks", ["date:2026-03-25"]),
    ("I finished it in two days", []),
    ("I haven't seen him in two years", []),
    ("Rome wasn't built in a day", []),
    ("an apple a day", []),
    ("three times in a week", []),
    ("for the first time in two years", []),
    ("I'll call on Monday", ["date:2026-03-16"]),
    ("on Fridays we play chess", []),
    ("every Monday I swim", []),
    ("I usually swim on Monday", []),
    ("may I come in?", []),
    ("I may 5 times", []),
    ("March on Rome", []),
    ("the march 5 miles long", []),
    ("April is my sister", []),
    ("May 5 works", ["date:2026-05-05"]),
    ("12/05/2025", []),
    ("13/05/2025", ["date:2025-05-13"]),
    ("05/05/2025", ["date:2025-05-05"]),
    ("12/25/2025", ["date:2025-12-25"]),
    ("12.05.2025", ["date:2025-05-12"]),
    ("last summer", []),
    ("in 2000 words or less", []),
    ("since 1999 we farm", ["date:1999"]),
    ("version 2024.1", []),
    ("room 2019", []),
    ("in 2025-26 season", []),
    ("I ran 2024 steps", []),
    ("the 1990s were fun", []),
    ("Call 2025550143", ["phone:+12025550143"]),
    ("invoice 2025550143", []),
    ("order 202-555-0143", []),
    ("202-555-0143", ["phone:+12025550143"]),
    ("next Friday", ["date:2026-03-20"]),
    ("this Friday", ["date:2026-03-13"]),
    ("last Friday", ["date:2026-03-06"]),
    ("last Wednesday", ["date:2026-03-04"]),
    ("next Wednesday", ["date:2026-03-18"]),
    ("this coming Friday", ["date:2026-03-13"]),
    ("Friday next week", ["date:2026-03-20"]),
    ("the week after next", ["date:2026-W13"]),
    ("next year", ["date:2027"]),
    ("over the last year", []),
    ("for the next month", []),
    ("the last week of March", []),
    ("the day before the wedding", []),
    ("tonight at 8", ["date:2026-03-11T20:00"]),
    ("tomorrow morning at 9", ["date:2026-03-12T09:00"]),
    ("tomorrow at noon", ["date:2026-03-12T12:00"]),
    ("tomorrow at 15:00", ["date:2026-03-12T15:00"]),
    ("yesterday", ["date:2026-03-10"]),
    ("I left last night", ["date:2026-03-10"]),
    ("Black Friday", []),
    ("Friday the 13th", []),
    ("Good Friday", []),
    ("I was born on June 3", []),
    ("I signed up for the half marathon, it's on October 26", ["date:2026-10-26"]),
    ("We hired Ola, she starts in May", ["date:2026-05"]),
    ("They bought a house and her last day is May 3", ["date:2026-05-03"]),
    (
        "I rented a cottage last year, and we've reserved it from August 2",
        ["date:2025", "date:2026-08-02"],
    ),
    ("If I ran the marathon in November, would my knee survive?", []),
    ("I ran the marathon in November", ["date:2025-11"]),
    ("She left in June, it's quiet here", ["date:2025-06"]),
    ("I was born on June 3, 1990", ["date:1990-06-03"]),
    ("31 June 2025", []),
    ("30 February 2024", []),
    ("29 February 2024", ["date:2024-02-29"]),
    ("29 February 2023", []),
    ("FEB 29, 2000", ["date:2000-02-29"]),
    ("29 February 1900", []),
    ("Sept. 5th, 2019", ["date:2019-09-05"]),
    ("0 May 2019", []),
    ("the 09 of sep 2018", ["date:2018-09-09"]),
    ("5 May 19", ["date:2026-05-05"]),
    ("5\tMay 2019", ["date:2019-05-05"]),
    ("29 February 2025", []),
    ("we moved in May", ["date:2025-05"]),
    ("we'll move in May", ["date:2026-05"]),
    ("it rains in May", []),
    ("an hour ago", []),
    ("a couple of weeks ago", []),
    ("over a year ago", []),
    ("in a week or two", []),
    ("in a minute", []),
    ("Nineteen Eighty-Four", []),
    ("2025-05-12T10:30:00Z", ["date:2025-05-12T10:30"]),
    ("on 3rd of March", ["date:2027-03-03"]),
    ("March 12th at 3pm", ["date:2026-03-12T15:00"]),
    ("$5 bill", ["money:USD 5.00"]),
    ("$1.5k", ["money:USD 1500.00"]),
    ("€1.200,50", ["money:EUR 1200.50"]),
    ("1 200,50 €", ["money:EUR 1200.50"]),
    ("1.200 euros", ["money:EUR 1200.00"]),
    ("CHF 20", ["money:CHF 20.00"]),
    ("five hundred dollars", ["money:USD 500.00"]),
    ("a hundred bucks", ["money:USD 100.00"]),
    ("two million euros", ["money:EUR 2000000.00"]),
    ("half a million pounds in debt, pay", ["money:GBP 500000.00"]),
    ("I weigh 150 pounds", []),
    ("rent is 800 pounds", ["money:GBP 800.00"]),
    ("you look like a million dollars", []),
    ("$50-60", ["money:USD 50.00", "money:USD 60.00"]),
    ("5 bucks", ["money:USD 5.00"]),
    ("$PATH and $1 in bash", []),
    ("¥5000", ["money:JPY 5000"]),
    ("5000 yen", ["money:JPY 5000"]),
    ("10 EUR", ["money:EUR 10.00"]),
    ("try 5 times", []),
    ("sos 5 cop 3", []),
    ("all 5 of us", []),
    ("I'd try 10 more", []),
    ("C$40", ["money:CAD 40.00"]),
    ("20 quid", ["money:GBP 20.00"]),
    ("US$ 1,000,000", ["money:USD 1000000.00"]),
    ("50%", []),
    ("a@b", []),
    ("x@y.co, z@w.org", ["email:x@y.co", "email:z@w.org"]),
    ("mailto:Joe@Ex.com", ["email:joe@ex.com"]),
    ("jörg@example.de", []),
    ("user@host", []),
    ("@ada follow me", []),
    ("HTTP://Example.COM/A?b=C#d.", ["url:http://example.com/A?b=C#d"]),
    ("(see www.a.com)", ["url:https://www.a.com"]),
    ("www.", []),
    ("http://", []),
    ("main.py", []),
    ("1.2.3.4", []),
    ("(https://x.org/a_(b))", ["url:https://x.org/a_(b)"]),
    ("Hi there, I'm Wanjiru and I'm new here", ["name:Wanjiru"]),
    ("hello, im Pete", ["name:Pete"]),
    ("My name is Dr. Amara Okafor.", ["name:Amara Okafor"]),
    ("it's Lena from the choir", ["name:Lena"]),
    ("It's me, Jo", []),
    ("Priya here, quick question", ["name:Priya"]),
    ("I'm Luca. I live in Turin.", ["name:Luca"]),
    ("I'm called Freya, nice to meet you", ["name:Freya"]),
    ("everyone calls me Bibi", ["name:Bibi"]),
    ("You may call me Ishmael.", ["name:Ishmael"]),
    ("people call me Mo for short", ["name:Mo"]),
    ("My full name is Maria del Carmen Ruiz", ["name:Maria del Carmen Ruiz"]),
    ("I go by Sam", ["name:Sam"]),
    ("This is Kenji speaking", ["name:Kenji"]),
    ("Speaking, who is this?", []),
    ("This is Amazing", []),
    ("This is Bad news", []),
    ("this is Captain Haddock calling from the boat", ["name:Captain Haddock"]),
    ("I'm Aunt Petunia", []),
    ("I'm Scottish-Nigerian", []),
    ("I'm Batman", []),
    ("I'm Nobody", []),
    ("I am the Walrus", []),
    ("I'm Anna Schmidt's assistant", []),
    ("I'm Hangry", []),
    ("I'm Hodor, hodor", ["name:Hodor"]),
    ("ask for Tom", []),
    ("Tom is here", []),
    ("Is Tom here?", []),
    ("Yours, Tom", []),
    ("I'm Team Leader at Acme", []),
    ("I'm Head of Sales", []),
    ("I'm Senior Engineer", []),
    ("I'm Muslim", []),
    ("I'm Type O negative", []),
    ("I'm Taurus", []),
    ("I'm In Love", []),
    ("I'm Android user", []),
    ("I'm Windows guy", []),
    ("I'm Chinese, from Wuhan", []),
    ("Good evening, Rashida speaking", ["name:Rashida"]),
    ("Nice weather here", []),
    ("Greetings from Rome", []),
    ("I'm with Sandra", []),
    ("I'm Peter Pan", ["name:Peter Pan"]),
    ("I'm X", []),
    ("my name is on the list", []),
    ("My name is Legion", ["name:Legion"]),
    ("May 12", ["date:2026-05-12"]),
    ("my flight is at 6am on 3 April", ["date:2026-04-03T06:00"]),
    ("we met on 5 January", ["date:2026-01-05"]),
    ("The exam was on February 2nd", ["date:2026-02-02"]),
    ("the party is on the 5th of November", ["date:2026-11-05"]),
    ("on Nov 5", ["date:2026-11-05"]),
    ("Sept 3rd, 2024", ["date:2024-09-03"]),
    ("Sunday, 15 March 2026", ["date:2026-03-15"]),
    ("since Monday", ["date:2026-03-09"]),
    ("by Friday", ["date:2026-03-13"]),
    ("until next Tuesday", ["date:2026-03-17"]),
    ("I went there on Tuesday", ["date:2026-03-10"]),
    ("on Wednesday we will", ["date:2026-03-18"]),
    ("On Wednesday I was there", ["date:2026-03-04"]),
    ("two years ago", ["date:2024-03-11"]),
    ("six months ago", ["date:2025-09-11"]),
    ("in a fortnight", []),
    ("in 10 days", ["date:2026-03-21"]),
    ("ten days from now", ["date:2026-03-21"]),
    ("a week from today", ["date:2026-03-18"]),
    ("the year 2024", ["date:2024"]),
    ("back in 2015", ["date:2015"]),
    ("class of 2010", ["date:2010"]),
    ("by 2030", ["date:2030"]),
    ("in the summer of 2018", ["date:2018"]),
    ("in early 2024", ["date:2024"]),
    ("March 2024", ["date:2024-03"]),
    ("last year", ["date:2025"]),
    ("this year", ["date:2026"]),
    ("this week", ["date:2026-W11"]),
    ("next month", ["date:2026-04"]),
    ("month before last", []),
    ("last Christmas", []),
    ("last time", []),
    ("next time", []),
    ("this time next year", ["date:2027"]),
    ("I'm free Friday", []),
    ("Friday at 6pm works", ["date:2026-03-13T18:00"]),
    ("on Saturday morning", ["date:2026-03-14"]),
    ("on Saturday at 7:30pm", ["date:2026-03-14T19:30"]),
    ("on Saturday 7:30 p.m.", ["date:2026-03-14T19:30"]),
    ("tomorrow 10:15", ["date:2026-03-12T10:15"]),
    ("yesterday evening", ["date:2026-03-10"]),
    ("the day before yesterday at noon", ["date:2026-03-09T12:00"]),
    ("this afternoon at 3", ["date:2026-03-11T15:00"]),
    ("at 10 tonight", ["date:2026-03-11"]),
    ("on 2025-01-31 at 14:00", ["date:2025-01-31T14:00"]),
    ("2025/01/31", ["date:2025-01-31"]),
    ("31/01/2025", ["date:2025-01-31"]),
    ("2/3/2025", []),
    ("lasts 2 weeks", []),
    ("every two weeks", []),
    ("for two weeks", []),
    ("two weeks notice", []),
    ("Sunday roast", []),
    ("Monday blues", []),
    ("We eat at 7", []),
    ("the March issue", []),
    ("April and May are sisters", []),
    ("I marched on", []),
    ("June is a lovely name", []),
    ("see you at Augusta", []),
    ("on time", []),
    ("in time", []),
    ("in two minds", []),
    ("one day", []),
    ("some day in May", []),
    ("twice a week", []),
    ("the 2010s", []),
    ("Area 51", []),
    ("Windows 2000", []),
    ("in 1984 by Orwell", ["date:1984"]),
    ("£12.99", ["money:GBP 12.99"]),
    ("12,99 €", ["money:EUR 12.99"]),
    ("12.99 EUR", ["money:EUR 12.99"]),
    ("about $2k a month", ["money:USD 2000.00"]),
    ("$3.5bn", ["money:USD 3500000000.00"]),
    ("A$40", ["money:AUD 40.00"]),
    ("40 Canadian dollars", ["money:CAD 40.00"]),
    ("1 million yen", ["money:JPY 1000000"]),
    ("₹500", ["money:INR 500.00"]),
    ("10,000 rupees", ["money:INR 10000.00"]),
    ("$0.99", ["money:USD 0.99"]),
    ("Fr. 50", []),
    ("50 cents", []),
    ("a dollar", []),
    ("twenty dollars", ["money:USD 20.00"]),
    ("twenty-five euros", ["money:EUR 25.00"]),
    ("$1,2", ["money:USD 1.20"]),
    ("£1,000,000.50", ["money:GBP 1000000.50"]),
    ("5 pounds of flour", []),
    ("5 pounds for parking, pay at the gate", ["money:GBP 5.00"]),
    ("GBP3m", ["money:GBP 3000000.00"]),
    ("€ 20", ["money:EUR 20.00"]),
    ("costs 20€.", ["money:EUR 20.00"]),
    ("USD", []),
    ("100 percent", []),
    ("+44 20 7946 0018", ["phone:+442079460018"]),
    ("tel: 212-555-0187.", ["phone:+12125550187"]),
    ("(212)555-0187", ["phone:+12125550187"]),
    ("212.555.0187", ["phone:+12125550187"]),
    ("1-800-555-0199", ["phone:+18005550199"]),
    ("1 (212) 555-0187", ["phone:+12125550187"]),
    ("ticket 212-555-0187", []),
    ("4111 1111 1111 1111", []),
    ("123-45-6789", []),
    ("192.168.1.100", []),
    ("2026-03-11 2125550187", ["date:2026-03-11"]),
    ("ISBN 9780262033848", []),
    ("my account number is 2125550187", []),
    ("+12 345", []),
    ("text me: +1-212-555-0187 ext. 5", ["phone:+12125550187;ext=5"]),
    ("call 212-555-0187, extension 12", ["phone:+12125550187;ext=12"]),
    ("call +44 20 7946 0018 x5y", ["phone:+442079460018"]),
    ("I lost -$20", ["money:USD -20.00"]),
    ("a refund (−20 EUR)", ["money:EUR -20.00"]),
    ("it made minus 5 dollars", ["money:USD -5.00"]),
    ("- milk\n-$20 for lunch", ["money:USD 20.00"]),
    ("$50-$60", ["money:USD 50.00", "money:USD 60.00"]),
    ("5 dollars and 20 cents", ["money:USD 5.20"]),
    ("five euros twenty cents", ["money:EUR 5.20"]),
    ("5 dollars and 20 people", ["money:USD 5.00"]),
    ("clone git@github.com:foo/bar.git", []),
    ("scp it to root@host.org:~/in", []),
    ("use logo@2x.png", []),
    ("ada@x.org: hello", ["email:ada@x.org"]),
    ("00 44 20 7946 0018", []),
]


@pytest.mark.parametrize(("text", "facts"), CASES)
def test_phrase_yields(text: str, facts: list[str]) -> None:
    """Each phrase yields exactly these facts."""
    found = extract_facts(text, WEDNESDAY)
    assert [f"{fact.category}:{fact.value}" for fact in found] == facts


def test_facts_come_in_order_once_with_evidence() -> None:
    """Order of appearance; a repeated value is one fact; evidence is verbatim."""
    text = "Mail a@b.co or A@B.co, call +1 202 555 0143, \u20ac5 by next Friday."
    found = extract_facts(text, WEDNESDAY)
    assert [fact.category for fact in found] == ["email", "phone", "money", "date"]
    assert [fact.evidence for fact in found] == [
        "a@b.co",
        "+1 202 555 0143",
        "\u20ac5",
        "next Friday",
    ]
    assert found[3].content == "date: 2026-03-20 (next Friday)"


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("My number is 415 555 0123, no sorry 415 555 0199.", [("+14155550199", True)]),
        ("My number is 415 555 0123. Sorry, 415 555 0199.", [("+14155550199", True)]),
        ("My email is a@x.org, sorry, b@x.org.", [("b@x.org", True)]),
        ("My email is a@x.org. Oops, typo: b@x.org", [("b@x.org", True)]),
        ("My email is a@x.org, no b@x.org, wait, c@x.org.", [("c@x.org", True)]),
        ("Lunch was 10 euros, actually 12 euros", [("EUR 12.00", False)]),
        ("Was it $5? No, $7.", [("USD 5.00", False), ("USD 7.00", False)]),
        ("Write to a@x.org or b@x.org.", [("a@x.org", False), ("b@x.org", False)]),
        (
            "My email is a@x.org. Sorry, b@x.org is my wife's.",
            [("a@x.org", True), ("b@x.org", False)],
        ),
        ("Email me at a@x.org, not b@x.org.", [("a@x.org", True), ("b@x.org", False)]),
    ],
)
def test_what_is_taken_back_at_once_is_no_fact(text: str, facts: list[tuple[str, bool]]) -> None:
    """The value that follows takes its place, and is whose the first one was said to be."""
    found = extract_facts(text, WEDNESDAY)
    assert [(one.value, one.slot is not None) for one in found] == facts
    assert all(one.slot is None or one.slot.object == one.value for one in found)


@pytest.mark.parametrize(
    ("text", "speaker", "whose"),
    [
        ("I'm Maria Keller.", None, "user"),
        ("Hi, I am Maria and I live in Potsdam.", None, "user"),
        ("I'm Maria Keller.", "Maria", "maria"),
        ("She said: I'm Maria Keller.", None, None),
        ('"I\'m Maria Keller."', None, None),
    ],
)
def test_who_says_i_am_names_themselves(text: str, speaker: str | None, whose: str | None) -> None:
    """The name is the speaker's, as after "my name is"; not where it is told what was said."""
    (fact,) = extract_facts(text, WEDNESDAY, speaker=speaker)
    of = None if fact.slot is None else (fact.slot.subject, fact.slot.predicate)
    assert of == (None if whose is None else (whose, "is called"))


@pytest.mark.parametrize(
    ("text", "theirs"),
    [
        ("In an emergency call 212-555-0187.", False),
        ("Remind me to call 212-555-0187 now.", False),
        ("For billing questions use billing@corp.com.", False),
        ("He told me to write to hr@corp.com from now on", False),
        ("Write to hr@corp.com, not to me.", False),
        ("Write to bob@example.org.", False),
        ("Please use ada@y.org from now on.", True),
        ("I want you to use ada@y.org instead.", True),
        ("Write to ada@y.org, not ada@x.org.", True),
        ("Write to me at ada@y.org.", True),
        ("Call me on 212-555-0187.", True),
        ("My old number's dead, use 212-555-0187.", True),
        ("The new number is 212-555-0187.", True),
    ],
)
def test_an_address_to_write_to_is_anybodys(text: str, theirs: bool) -> None:
    """It is the speaker's where "me" is said, or that it takes the place of another."""
    (first, *_) = extract_facts(text, WEDNESDAY)
    assert (first.slot is not None) is theirs


_NEW, _OLD = "new@y.example", "old@x.example"
REPLACED = (
    f"My e-mail has changed, please use {_NEW} from now on, the old {_OLD} will be closed",
    f"my email has changed, use {_NEW}, the old {_OLD} will be closed",
    f"pls change my mail from {_OLD} to {_NEW}",
    f"Please change my email from {_OLD} to {_NEW}.",
    f"Hi, can you update my email address from {_OLD} to {_NEW}?",
    f"Use {_NEW}, not the old {_OLD}.",
    f"Write to {_NEW} instead of my old address {_OLD}.",
    f"Our email has changed; please write to {_NEW}. The old {_OLD} is going away.",
    f"My email changed: it's now {_NEW}. The old one, {_OLD}, will be shut down in March.",
    f"Please move my address from {_OLD} to {_NEW}",
    f"Please move our email address from {_OLD} to {_NEW}. Thanks!",
    f"Please change my email from {_OLD} to {_NEW} once and for all",
    f"I've told you my email has changed, use {_NEW}, the old {_OLD} will be closed",
)
NOT_REPLACED = (
    f"Should I change my email from {_OLD} to {_NEW}?",
    f"How do I change my email from {_OLD} to {_NEW}?",
    f"I want to change my email from {_OLD} to {_NEW}.",
    f"Tom asked me to change his email from {_OLD} to {_NEW}.",
    f"Please change my email from {_OLD} to {_NEW} for this order.",
    f"Please change my booking from {_OLD} to {_NEW}.",
    f"Can you change my email to {_NEW} just for today? I keep {_OLD}.",
    f"Can you change my email to {_NEW} until Friday? I keep {_OLD}.",
    f"If my email has changed, use {_NEW}. Otherwise {_OLD}.",
    f"My email has changed three times, {_NEW} was the first, {_OLD} the second.",
    f"Change my password and send it to {_NEW}, not me, at {_OLD}.",
    f"The old {_OLD} still works, so does {_NEW}.",
    f"Keep using the old {_OLD}, {_NEW} is Tom's.",
    f"The old {_OLD} will be closed unless I log in. {_NEW} is for Tom.",
    f"The mailbox {_OLD} will be closed next month, {_NEW} is new.",
    f"Please move my mail from {_OLD} to {_NEW}",
    f"Please move our mail from {_OLD} to {_NEW}",
    f"Please move my mail from the old address {_OLD} to {_NEW}",
    f"Change my email to {_NEW}. Just kidding. I keep {_OLD}.",
    f"Change my email from {_OLD} to {_NEW}. Just kidding.",
    f"Please change my address from {_OLD} to {_NEW} once I say so",
    f"Please change my address from {_OLD} to {_NEW} as soon as I say so",
    f"Please change my address from {_OLD} to {_NEW} when I say so",
    f"Please change my address from {_OLD} to {_NEW}, but not yet",
    f"Tom says my email has changed, please use {_NEW}. It is {_OLD}.",
    f"The bank told me our email has changed, please use {_NEW}. I have {_OLD}.",
)


@pytest.mark.parametrize("text", REPLACED)
def test_an_address_is_over_where_its_change_is_told_or_asked_for(text: str) -> None:
    """The new one is the user's, and the old one, which ends or is to be changed, is over."""
    found = {one.value: one for one in extract_facts(text, WEDNESDAY)}
    assert found[_NEW].slot is not None
    assert found[_OLD].over


@pytest.mark.parametrize("text", NOT_REPLACED)
def test_an_address_stays_where_no_change_is_asked_for_or_for_good(text: str) -> None:
    """Questions, wishes, requests for another thing or a while, and what still works."""
    found = {one.value: one for one in extract_facts(text, WEDNESDAY)}
    assert (found[_NEW].slot, found[_NEW].over, found[_OLD].over) == (None, False, False)


def test_a_site_is_nobodys_by_where_it_is_to_point() -> None:
    """A link in a page is changed for somebody; it is no address of theirs."""
    (site,) = extract_facts("Please update my link to https://docs.example.org", WEDNESDAY)
    assert site.slot is None


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("I promised to call Tom on Friday.", "2026-03-13"),
        ("I agreed to meet Ann on Monday.", "2026-03-16"),
        ("We've decided to move on Friday.", "2026-03-13"),
        ("I promised Tom to call on Friday.", "2026-03-13"),
        ("I planned to see Tom on Friday.", "2026-03-13"),
        # Said on that day, done by somebody else on it, or done: it is past.
        ("On Friday I agreed to move.", "2026-03-06"),
        ("I agreed to meet Ann, who called on Friday.", "2026-03-06"),
        ("I managed to call Tom on Friday.", "2026-03-06"),
        # Nothing was to be done on that day.
        ("I was offered a place to live on Friday.", "2026-03-06"),
        *(
            (f"I agreed to {what} on Friday.", "2026-03-06")
            for what in (
                *(
                    "the terms",
                    "a loan",
                    "an offer",
                    "this idea",
                    "that",
                    "these terms",
                    "those terms",
                    "it",
                ),
                *("my part", "our part", "your idea", "his idea", "her idea", "its terms"),
                "their idea",
            )
        ),
        ("I offered an hour to Tom on Friday.", "2026-03-06"),
        ("I agreed the terms to sign on Friday.", "2026-03-06"),
    ],
)
def test_what_was_promised_lies_ahead(text: str, day: str) -> None:
    """The promise was made before; the day is the one on which it is to be kept."""
    assert [fact.value for fact in extract_facts(text, WEDNESDAY) if fact.event_at] == [day]


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("I agreed to a loan on February 10th.", "2026-02-10"),
        ("I decided to stop smoking on January 1st.", "2026-01-01"),
        ("I offered to help her on February 1st, but she said no.", "2026-02-01"),
        ("We planned to leave on February 3rd but it snowed.", "2026-02-03"),
        ("We agreed to split the bill on February 20th, and I paid.", "2026-02-20"),
        ("I promised to call Tom on April 3rd.", "2026-04-03"),
        ("I decided to stop in January.", "2026-01"),
        ("I decided to stop in December.", "2025-12"),
        ("I decided to stop in May.", "2026-05"),
        # Who has decided it has it before them.
        ("I've decided to stop smoking on January 1st.", "2027-01-01"),
    ],
)
def test_what_was_to_be_done_on_a_day_may_be_past(text: str, day: str) -> None:
    """Without a year, it is the day that is closest, before or after it was told."""
    assert [fact.value for fact in extract_facts(text, WEDNESDAY) if fact.event_at] == [day]


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("My card was charged twice, $89.90 each on March 9th.", "2026-03-09"),
        ("The invoice of March 1st is wrong.", "2026-03-01"),
        ("My order from March 5th is missing.", "2026-03-05"),
        ("Where is my order of March 5th?", "2026-03-05"),
        ("There's a double charge of $89.90 on March 9th.", "2026-03-09"),
        ("The delivery from March 2nd never arrived.", "2026-03-02"),
        ("The payment of March 14th is due.", "2026-03-14"),
        # No thing of its day, and no verb that tells: the next one, as before.
        ("My appointment is on March 5th.", "2027-03-05"),
    ],
)
def test_what_is_spoken_of_by_its_day_was_there_lately(text: str, day: str) -> None:
    """A complaint is about the last such day, and not about one a year ahead."""
    assert [fact.value for fact in extract_facts(text, WEDNESDAY) if fact.event_at] == [day]


TO_COME = [
    "Pepper has torn a ligament, surgery 12 April.",
    "Bought the dress, wedding 24 April.",
    "Booked, dentist 5 April.",
    "Frieda lost a tooth, dentist on 5 April at 9:00.",
    "Flight cancelled, new one 8 May.",
    "Vet called, surgery on 12 April.",
    "They found a leak, plumber comes 5 April.",
    "Got the letter (hearing on 20 May).",
    "Sold the flat, handover 1 June.",
    "I passed the exam, ceremony on May 30th.",
    "We signed, keys on April 1st.",
    "She said yes: wedding on 6 June!",
    "Ordered the sofa, delivery April 20th.",
    "I quit, last day 30 April.",
    "Emil broke his arm, next X-ray 2 April.",
    "He's recovered, check-up 14 April.",
    "Paid the deposit, balance due 1 May.",
    "It rained, new date 18 April.",
    "The boiler died, engineer on 13 March.",
    "Finished the draft, deadline 15 March.",
]
GONE = [
    ("We got married on 24 April.", "2025-04-24"),
    ("It was great, 24 April.", "2025-04-24"),
    ("We moved here, on 24 April.", "2025-04-24"),
    ("I was ill, since 24 April.", "2025-04-24"),
    ("I bought the dress on 24 April, for the wedding.", "2025-04-24"),
    ("We met in Rome, on Friday, 24 April.", "2025-04-24"),
    ("The vet called on 12 April.", "2025-04-12"),
    ("The vet called, I went on 12 April.", "2025-04-12"),
    ("The vet called, surgery was 12 April.", "2025-04-12"),
    ("Frieda lost a tooth, the dentist saw her on 5 April.", "2025-04-05"),
    ("Flight cancelled, they rebooked me on 8 May.", "2025-05-08"),
    ("Vet called, surgery on 1 March.", "2026-03-01"),
    ("Bought the dress, wedding 24 February.", "2026-02-24"),
    ("We sold the flat, handover 1 December.", "2025-12-01"),
    ("I passed the exam, ceremony on June 30th.", "2025-06-30"),
    ("He died at home, early on 24 April.", "2025-04-24"),
    ("They left, around 1 May.", "2025-05-01"),
    ("We argued, last on 1 May.", "2025-05-01"),
    ("It broke, again on 3 May.", "2025-05-03"),
    ("I did it, the night of 3 May.", "2025-05-03"),
]


PUT_ON_A_DAY = [
    ("The physio had to move me to 2 April.", "2026-04-02"),
    ("They had to push it to 3 April.", "2026-04-03"),
    ("Zalvo asked us to switch by April 24.", "2026-04-24"),
    ("Zalvo wanted it done by 24 April.", "2026-04-24"),
    ("My boss expected the report by 3 April.", "2026-04-03"),
    ("He gave us until 24 April.", "2026-04-24"),
    ("GP rebooked me for 14 April.", "2026-04-14"),
    ("They gave me a slot on 14 April.", "2026-04-14"),
    ("They found me an appointment on 5 May.", "2026-05-05"),
    ("I got an appointment for 21 April.", "2026-04-21"),
    ("We got tickets for 14 April.", "2026-04-14"),
    ("I made a reservation for 2 May.", "2026-05-02"),
    ("Dr Osei wanted to see me again on 12 June.", "2026-06-12"),
    ("Claire told the driver to come on 2 April.", "2026-04-02"),
    ("I was told to stay at home on 2 April.", "2026-04-02"),
    ("We agreed on 9 April for the go-live.", "2026-04-09"),
    # Told after that day.
    ("She told me to see a doctor on 2 March.", "2026-03-02"),
    ("They gave me a slot on 14 February.", "2026-02-14"),
    ("They had to move me to 2 March.", "2026-03-02"),
    ("Mum wanted me to come on 2 April.", "2026-04-02"),
    ("He asked me to be there on 2 April.", "2026-04-02"),
    ("We agreed on 9 April as the date.", "2026-04-09"),
    ("They gave me a slot on 14 April, which was a relief.", "2026-04-14"),
]
DONE_ON_A_DAY = [
    ("I had to go to the hospital on 2 April.", "2025-04-02"),
    ("I had to take the dog to the vet on 2 April.", "2025-04-02"),
    ("We had to push the car to the garage on 3 April.", "2025-04-03"),
    ("I finished the report by 24 April.", "2025-04-24"),
    ("He asked me to marry him on 2 May.", "2025-05-02"),
    ("I got a parking ticket on 14 April.", "2025-04-14"),
    ("I got my scan results on 14 April.", "2025-04-14"),
    ("They gave me a scan on 14 April.", "2025-04-14"),
    ("They gave me a present on 14 April.", "2025-04-14"),
    ("I made the reservation on 2 May.", "2025-05-02"),
    ("I had an appointment on 14 April.", "2025-04-14"),
    ("I told her the news on 2 April.", "2025-04-02"),
    ("I told him to wait and left on 2 April.", "2025-04-02"),
    ("I asked for a refund on 2 April.", "2025-04-02"),
    ("I wanted a dog on 2 April.", "2025-04-02"),
    ("We agreed on 9 April that we would split.", "2025-04-09"),
    ("We visited them on 9 April for the funeral.", "2025-04-09"),
    ("I moved to Berlin on 2 April.", "2025-04-02"),
    ("I wanted to cry on 2 April.", "2025-04-02"),
    ("I wanted to go on 2 April but the shop was closed.", "2025-04-02"),
    ("Mum asked me to help on 2 April and I did.", "2025-04-02"),
    ("She asked me to dance on 2 April.", "2025-04-02"),
    ("He asked me to be his girlfriend on 2 April.", "2025-04-02"),
    ("The police told us to stop on 2 April.", "2025-04-02"),
    ("We decided on 2 April as a family to sell the house.", "2025-04-02"),
    ("We decided on 2 April for safety reasons to stay.", "2025-04-02"),
    ("We agreed on 2 April for the first time in years.", "2025-04-02"),
]
# Said on Wednesday, 18 March 2026.
ON_THE_LAST_WEEKDAY = [
    ("I got a dentist appointment on Friday and had two fillings.", "2026-03-13"),
    ("I got an interview on Monday at Siemens and I bombed it.", "2026-03-16"),
    ("We got a viewing on Saturday, the flat was tiny.", "2026-03-14"),
    ("Mum asked me to help on Saturday and I did.", "2026-03-14"),
    ("I asked them to deliver it on Monday and they did.", "2026-03-16"),
    ("Mum asked me to pick her up on Sunday, which I did.", "2026-03-15"),
    ("They told me to wait on Monday, I waited four hours.", "2026-03-16"),
    ("They told me to come in on Monday, so I went.", "2026-03-16"),
    ("I wanted to go on Monday but the shop was closed.", "2026-03-16"),
    ("I wanted to leave on Saturday, but the car broke down.", "2026-03-14"),
    ("I wanted to cry on Monday.", "2026-03-16"),
    ("She asked me to dance on Saturday.", "2026-03-14"),
    ("He asked me to be his girlfriend on Saturday.", "2026-03-14"),
    ("The police told us to stop on Saturday.", "2026-03-14"),
    ("We decided on Monday as a family to sell the house.", "2026-03-16"),
    ("We decided on Monday for safety reasons to stay.", "2026-03-16"),
    ("We agreed on Sunday for the first time in years.", "2026-03-15"),
]
ON_THE_NEXT_WEEKDAY = [
    ("I promised Tom to call on Friday.", "2026-03-20"),
    ("I agreed to meet Ann on Monday.", "2026-03-23"),
]


@pytest.mark.parametrize(("text", "day"), [*ON_THE_LAST_WEEKDAY, *ON_THE_NEXT_WEEKDAY])
def test_a_weekday_is_the_last_one_unless_something_was_promised_for_it(
    text: str, day: str
) -> None:
    """What was asked for, wanted or agreed on a weekday is told of what happened."""
    said_on = datetime(2026, 3, 18, 12, tzinfo=UTC)
    assert [fact.value for fact in extract_facts(text, said_on) if fact.event_at] == [day]


@pytest.mark.parametrize(("text", "day"), [*PUT_ON_A_DAY, *DONE_ON_A_DAY])
def test_what_was_put_on_a_day_is_on_the_closest_one(text: str, day: str) -> None:
    """Who was given a slot, or asked to come, has the day before them; what was done is past."""
    assert [fact.value for fact in extract_facts(text, WEDNESDAY) if fact.event_at] == [day]


@pytest.mark.parametrize("text", TO_COME)
def test_what_is_on_a_day_soon_lies_ahead_whatever_was_done_before(text: str) -> None:
    """The verb of another clause tells nothing of it."""
    (day,) = (fact.value for fact in extract_facts(text, WEDNESDAY) if fact.event_at)
    assert day.startswith("2026")


@pytest.mark.parametrize(("text", "day"), GONE)
def test_what_was_on_a_day_is_past_as_its_verb_says(text: str, day: str) -> None:
    """Its own verb, that of what the day alone is said beside, or where the day is far ahead."""
    assert [fact.value for fact in extract_facts(text, WEDNESDAY) if fact.event_at] == [day]


def test_event_at_is_in_the_zone_of_the_turn() -> None:
    """A relative day is reckoned where the speaker is."""
    late = datetime(2026, 3, 11, 23, 30, tzinfo=timezone(timedelta(hours=-8)))
    (fact,) = extract_facts("see you tomorrow at 9 am", late)
    assert fact.value == "2026-03-12T09:00"
    assert fact.event_at == datetime(2026, 3, 12, 9, tzinfo=late.tzinfo)


@pytest.mark.parametrize("hours", [-12, 14])
def test_a_day_is_kept_as_that_day_wherever_it_is_said(hours: int) -> None:
    """All times are kept in UTC, in which a day of another zone would begin on the one before."""
    there = datetime(2026, 3, 11, 23, 30, tzinfo=timezone(timedelta(hours=hours)))
    (fact,) = extract_facts("see you tomorrow", there)
    assert (fact.value, fact.event_at) == ("2026-03-12", datetime(2026, 3, 12, tzinfo=UTC))
    (start,) = starts("I moved here yesterday.", there)
    assert f"{start.at.astimezone(UTC):%d}" == "10"
    assert start.within is not None
    assert start.within.holds(start.at)
    (now,) = starts("I moved here today.", there)
    assert now.at <= there


def test_only_dates_have_a_time() -> None:
    """An address or a sum lies nowhere in time."""
    found = extract_facts("ada@example.org owes me $5", WEDNESDAY)
    assert [fact.event_at for fact in found] == [None, None]


def test_period_begins_on_its_first_day() -> None:
    """A week begins on Monday, a month and a year on their first."""
    found = extract_facts("next week, then in June 2027, then since 1999", WEDNESDAY)
    assert [(fact.value, fact.event_at) for fact in found] == [
        ("2026-W12", datetime(2026, 3, 16, tzinfo=UTC)),
        ("2027-06", datetime(2027, 6, 1, tzinfo=UTC)),
        ("1999", datetime(1999, 1, 1, tzinfo=UTC)),
    ]


def test_digits_in_an_address_are_no_phone() -> None:
    """What one category explains is hidden from the others."""
    found = extract_facts("https://x.org/2025550143?d=2026-03-13 call", WEDNESDAY)
    assert [fact.category for fact in found] == ["url"]


def test_phone_region_reads_national_numbers() -> None:
    """A number without a country code belongs to the region given."""
    (fact,) = extract_facts("call 020 7946 0018", WEDNESDAY, phone_region="GB")
    assert fact.value == "+442079460018"
