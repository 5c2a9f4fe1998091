"""How the rules read turns, word by word."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from engram.agents.requests import ExtractionRequest, LinkingRequest, MemoryView, TurnView
from engram.agents.rules.linking import link
from engram.agents.rules.moments import began
from engram.agents.rules.statements import statements
from engram.agents.rules.turns import extract
from engram.domain.memories import Category, Slot

SAID = datetime(2025, 6, 20, 18, tzinfo=UTC)


def contents(text: str, *, role: str = "user", speaker: str | None = None) -> list[str]:
    """The sentences that a turn becomes."""
    turn = TurnView(alias="e1", role=role, speaker=speaker, said_at=SAID, content=text)
    return [s.content for s in extract(ExtractionRequest(turns=(turn,))).statements]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I live in Lisbon.", ["The user lives in Lisbon."]),
        ("I'm a nurse at Charité.", ["The user works as a nurse.", "The user works at Charité."]),
        ("I own a narrowboat.", ["The user owns a narrowboat."]),
        ("I no longer live in Oslo.", ["The user no longer lives in Oslo."]),
        ("I'm no longer married to Tom.", ["The user is no longer married to Tom."]),
        ("I promised Mila to build a treehouse.", ["The user promised Mila to build a treehouse."]),
        ("I plan to sell my car.", ["The user plans to sell their car."]),
        ("I have a cat called Miso.", ["The user has a cat called Miso."]),
        (
            "I was born in Lagos in 1990.",
            ["The user was born in Lagos.", "The user was born in 1990."],
        ),
        ("I prefer oat milk to soy milk.", ["The user prefers oat milk to soy milk."]),
        ("I live in the Netherlands.", ["The user lives in the Netherlands."]),
        ("I like to cook.", ["The user likes to cook."]),
    ],
)
def test_statements_become_sentences_in_the_third_person(text: str, expected: list[str]) -> None:
    """Each is self-contained, and keeps the words that were said."""
    assert contents(text) == expected


def test_a_speaker_with_a_name_is_the_subject() -> None:
    """Two people in one conversation are told apart."""
    assert contents("I live in Lisbon.", speaker="Ada") == ["Ada lives in Lisbon."]
    assert contents("I live in Rome.", role="assistant", speaker="Bo") == ["Bo lives in Rome."]


@pytest.mark.parametrize(
    ("role", "speaker"),
    [("assistant", None), ("system", None), ("tool", None), ("assistant", "Helper Bot")],
)
def test_machines_say_nothing_about_themselves(role: str, speaker: str | None) -> None:
    """What an assistant or a tool says in the first person is no memory."""
    assert contents("I live in Lisbon.", role=role, speaker=speaker) == []


@pytest.mark.parametrize(
    "text",
    [
        "If I lived in Rome I'd eat better.",
        "My boss says I work at a circus.",
        "I wish I lived in Rome.",
        "Do I live in Lisbon?",
        "I almost moved to Rome.",
        "He said: 'I live in Rome.'",
        "Write a poem that begins: I live in Rome.",
        "`I live in Rome`",
        "I live in hope.",
        "I work from home.",
        "I have a question about my order.",
        "I'm going to the dentist.",
        "I'm going to bed.",
        "I love you.",
        "I'm a morning person.",
        "I was married to Tom.",
        "I moved to a new flat.",
        "My friend uses Vim.",
        "the flat I live in is cold",
    ],
)
def test_what_is_not_stated_is_not_remembered(text: str) -> None:
    """Questions, wishes, hearsay, quotations and idioms yield nothing."""
    assert statements(text) == []


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("I moved in May.", datetime(2025, 5, 1, tzinfo=UTC)),
        ("I moved in August.", datetime(2024, 8, 1, tzinfo=UTC)),
        ("I moved in May 2022.", datetime(2022, 5, 1, tzinfo=UTC)),
        ("I have lived here since 2019.", datetime(2019, 1, 1, tzinfo=UTC)),
        ("I moved two years ago.", datetime(2023, 6, 1, tzinfo=UTC)),
        ("I moved three weeks ago.", datetime(2025, 5, 30, 18, tzinfo=UTC)),
        ("I moved last year.", datetime(2024, 1, 1, tzinfo=UTC)),
        ("I moved in 2040.", None),
        ("I may move.", None),
    ],
)
def test_when_something_began(text: str, day: datetime | None) -> None:
    """Resolved against the turn's own time, and never in the future."""
    assert began(text, SAID) == day


def seen(alias: str, what: str, *, fresh: bool, entities: tuple[str, ...] = ()) -> MemoryView:
    """A memory as the linking rules see it."""
    slot = Slot(subject="user", predicate="uses", object=what)
    return MemoryView(
        alias=alias,
        content=f"The user uses {what}.",
        category=Category.FACT,
        slot=slot,
        entities=entities,
        event_at=SAID,
        known_at=SAID,
        fresh=fresh,
    )


def test_what_names_the_same_is_linked_if_one_of_them_is_new() -> None:
    """Old pairs were looked at before; the user alone links nothing."""
    memories = (
        seen("m1", "linear", fresh=True, entities=("Rise",)),
        seen("m2", "oven", fresh=False, entities=("Rise",)),
        seen("m3", "till", fresh=False, entities=("Rise",)),
        seen("m4", "pen", fresh=True),
    )
    answer = link(LinkingRequest(memories=memories))
    assert [(x.source, x.target) for x in answer.links] == [("m1", "m2"), ("m1", "m3")]
    assert answer.pruned == []


def test_the_same_turn_gives_the_same_answer() -> None:
    """The rules are deterministic."""
    text = "I live in Lisbon, I use Vim and I'm allergic to cats, dogs and pollen."
    assert contents(text) == contents(text)
    assert len(contents(text)) == 5
