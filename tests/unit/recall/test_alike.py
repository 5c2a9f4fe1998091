"""Turns in nearly the same words: the newest of one thing first, and none in place of another's."""

import pytest

from engram.language.query import analyse
from engram.recall.results import Ranked
from engram.recall.stages import newest_first
from tests.support.recall_memories import NOW, Memories, contents, episode

# Told in this order, each in a session of its own, and asked for.
ANOTHER_THING = [
    (
        "The author of Dune is Frank Herbert.",
        "The author of Emma is Dune.",
        "Who is the author of Dune?",
    ),
    (
        "I paid 20 euros for the taxi in Rome.",
        "I paid 35 euros for the taxi in Milan.",
        "What did I pay for the taxi in Rome?",
    ),
    (
        "I booked a hotel in Rome for June 3.",
        "I booked a hotel in Milan for June 9.",
        "When is my hotel in Rome booked?",
    ),
    (
        "I rate the restaurant Alba 4 stars.",
        "I rate the restaurant Como 2 stars.",
        "How do I rate the restaurant Alba?",
    ),
    (
        "I rate Alba's restaurant 4 stars.",
        "I rate Como's restaurant 2 stars.",
        "How do I rate the restaurant Alba?",
    ),
    ("The server is 10.0.0.7.", "The server db is 10.0.0.17.", "10.0.0.7"),
    ("Ticket ENG-7 is blocked by Tim.", "Ticket ENG-17 is blocked by Sue.", "Who blocks ENG-7?"),
    ("I like fruit number 7 called zorb7.", "I like fruit number 17 called zorb17.", "zorb7"),
    (
        "I paid 12 euros for lunch on Monday.",
        "I paid 19 euros for lunch on Friday.",
        "What did I pay for lunch on Monday?",
    ),
    (
        "Ticket OPS-12 is assigned to Mia.",
        "Ticket OPS-122 is assigned to Noah.",
        "Who has OPS-12?",
    ),
    (
        "The flight to Oslo leaves at 7:10.",
        "The flight to Bergen leaves at 9:40.",
        "When does the flight to Oslo leave?",
    ),
    (
        "I read chapter 3 in two hours.",
        "I read chapter 13 in four hours.",
        "How long did chapter 3 take?",
    ),
    ("Room A12 has a projector.", "Room A1 has a whiteboard.", "What is in room A12?"),
    ("Lena's birthday is May 3.", "Tom's birthday is June 8.", "When is Lena's birthday?"),
    (
        "The machine at 192.168.1.5 runs Redis.",
        "The machine at 192.168.1.50 runs Postgres.",
        "What runs on 192.168.1.5?",
    ),
    ("My dentist is in Braga.", "My doctor is in Lisbon.", "Where is my dentist?"),
    (
        "The port of the api server is 8080.",
        "The port of the db server is 9090.",
        "Which port does the api server use?",
    ),
    (
        "I gave the blue bike to Sam.",
        "I gave the red bike to Lou.",
        "Who did I give the blue bike to?",
    ),
    ("I met Andre in the new gym.", "I met Andres in the old gym.", "Where did I meet Andre?"),
    ("Invoice 2024-07 is paid.", "Invoice 2024-071 is open.", "Is invoice 2024-07 paid?"),
    (
        "my visa for peru costs 40 euros",
        "my visa for chile costs 75 euros",
        "what does my visa for peru cost?",
    ),
    (
        "The build v1.2.3 failed on the linter.",
        "The build v1.2.30 failed on the tests.",
        "Why did v1.2.3 fail?",
    ),
    (
        "The code of the front door is 4411.",
        "The code of the back door is 9020.",
        "What is the code of the front door?",
    ),
    (
        "The backup script is /opt/tools/backup.sh",
        "The restore script is /opt/tools/restore.sh",
        "/opt/tools/backup.sh",
    ),
    (
        "The config is at /etc/nginx/nginx.conf",
        "The config is at /etc/redis/redis.conf",
        "where is the config of nginx?",
    ),
    ("docs at example.org/foo/help", "docs at example.org/bar/help", "example.org/foo/help"),
    ("room a is booked by finance", "room b is booked by sales", "who booked room a?"),
    ("SELECT name FROM users", "SELECT name FROM orders", "FROM users"),
    ("🍎 costs one euro", "🍌 costs two euro", "what does 🍎 cost?"),
    ("C++ is for work", "C# is for work", "C++"),
]
ANOTHER_VALUE = [
    (
        "The author of Dune is Frank.",
        "The author of Dune is Herbert.",
        "Who is the author of Dune?",
    ),
    (
        "My favourite colour is green.",
        "My favourite colour is orange.",
        "What is my favourite colour?",
    ),
    (
        "The deadline of Falcon is May 3.",
        "The deadline of Falcon is May 19.",
        "When is the deadline of Falcon?",
    ),
    ("My gym is open until 9 pm.", "My gym is open until 11 pm.", "How long is my gym open?"),
    ("Order 7 is with DHL.", "Order 7 is with UPS.", "Who delivers order 7?"),
    (
        "The port of the api server is 8080.",
        "The port of the api server is 9090.",
        "Which port does the api server use?",
    ),
    ("My sister lives in Leeds.", "My sister lives in York.", "Where does my sister live?"),
    (
        "The wifi password of the office is Tulip1.",
        "The wifi password of the office is Tulip2.",
        "What is the wifi password of the office?",
    ),
    (
        "The deploy key lives in Vault.",
        "The deploy key is in 1Password now.",
        "Where does the deploy key live?",
    ),
    (
        "I rate the restaurant Alba in Porto 4 stars.",
        "I gave the restaurant Alba in Porto 2 stars.",
        "How do I rate the restaurant Alba?",
    ),
    (
        "The old passport of my son Tim is kept in the drawer.",
        "The old passport of my son Tim is stored in the safe.",
        "Where is the passport of my son Tim kept?",
    ),
    ("Ticket ENG-7 is blocked by Tim.", "Ticket ENG-7 is blocked by Sue.", "Who blocks ENG-7?"),
    (
        "I pay 40 euros a month for the gym.",
        "I pay 55 euros a month for the gym.",
        "What do I pay for the gym?",
    ),
    ("Alba's rating is 4 stars.", "The rating of Alba is 2 stars.", "What is Alba's rating?"),
    (
        "The daily standup of the team is at 9:30 on Zoom.",
        "The daily standup of the team is at 10:15 on Zoom.",
        "When is the daily standup of the team?",
    ),
    (
        "the key of the shed hangs in the hall",
        "the key of the shed hangs in the attic",
        "where does the key of the shed hang?",
    ),
    (
        "My phone number at work is 555-0101.",
        "My number at work is 555-0199 now.",
        "What is my phone number at work?",
    ),
    (
        "The deploy key lives in Vault.",
        "The deploy key lives in Azure.",
        "Does the deploy key still live in Vault?",
    ),
    (
        "The deploy key of the shop lives in Vault.",
        "The deploy key of the shop is in Azure now.",
        "Is the deploy key of the shop in Vault?",
    ),
    (
        "The backup script is /opt/tools/backup.sh",
        "The backup script is /srv/jobs/backup.py now",
        "Where is the backup script?",
    ),
    (
        "The api docs of the team are at example.org/v1/docs",
        "The api docs of the team are at example.com/help",
        "Where are the api docs of the team?",
    ),
]


@pytest.mark.parametrize(("older", "newer", "asked"), ANOTHER_THING)
def test_what_is_said_of_another_thing_takes_no_place(older: str, newer: str, asked: str) -> None:
    """The question names what only the older turn is about: both stay where they are."""
    found = [Ranked(episode(older, 1), 0.7), Ranked(episode(newer, 8), 0.3)]
    assert newest_first(found, asked, analyse(asked, NOW)) == found


@pytest.mark.parametrize(("older", "newer", "asked"), ANOTHER_VALUE)
def test_the_newest_value_of_one_thing_stands_first(older: str, newer: str, asked: str) -> None:
    """What differs is what is told, not what the question is about: they change places."""
    found = [Ranked(episode(older, 1), 0.7), Ranked(episode(newer, 8), 0.6)]
    first, second = newest_first(found, asked, analyse(asked, NOW))
    assert [first.memory, second.memory] == [found[1].memory, found[0].memory]
    assert first.score == 0.7


@pytest.mark.parametrize(
    ("older", "newer", "asked", "first"),
    [(*told, 0) for told in ANOTHER_THING] + [(*told, 1) for told in ANOTHER_VALUE],
)
async def test_the_turn_about_what_is_asked_for_is_found_first(
    memories: Memories, older: str, newer: str, asked: str, first: int
) -> None:
    """Through all of recall, for a pair of either kind."""
    await memories.keep(episode(older, 1, session_id="s1"), episode(newer, 8, session_id="s2"))
    assert contents(await memories.ask(asked))[0] == (older, newer)[first]


def test_no_turn_is_pushed_to_nothing_by_many_newer_ones() -> None:
    """The newest is first, each older one further behind, and keeps half of what it had."""
    told = [f"The author of Dune is {name}." for name in ("Ann", "Bea", "Cid", "Dan", "Eve")]
    scores = [0.9, 0.8, 0.2, 0.1, 0.0]
    found = [Ranked(episode(text, n), scores[n]) for n, text in enumerate(told)]
    asked = "Who is the author of Dune?"
    kept = newest_first(found, asked, analyse(asked, NOW))
    assert [one.memory.content for one in kept] == told[::-1]
    assert kept[0].score == 0.9
    assert all(one.score >= scores[told.index(one.memory.content)] * 0.49 for one in kept)
    assert kept[-1].score > 0.4


async def test_of_many_turns_in_one_form_the_one_with_the_word_is_first(
    memories: Memories,
) -> None:
    """Forty alike but for their numbers: each is found by its own, and above nothing."""
    told = [f"I like fruit number {n} called zorb{n}." for n in range(1, 41)]
    await memories.keep(
        *(episode(text, n, session_id=f"s{n}") for n, text in enumerate(told, start=1))
    )
    for n in (1, 7, 20):
        hits = await memories.ask(f"zorb{n}")
        assert hits[0].memory.content == told[n - 1]
        assert hits[0].score > hits[1].score
