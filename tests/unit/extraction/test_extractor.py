"""The extractor: roles, signals, any text at all."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.domain.buffer import Signal
from engram.language.extractor import Extractor
from engram.language.found import Extraction
from engram.settings import Settings
from tests.support.extraction_labels import is_verbatim
from tests.support.odd_texts import ADVERSARIAL, largest
from tests.support.sizes import examples

NOW = datetime(2026, 3, 11, 9, 30, tzinfo=UTC)
EXTRACTOR = Extractor(Settings())
ROLES = ["user", "assistant", "system", "tool"]

_PIECES = st.sampled_from(
    (
        "I I'm don't not never no longer use live in Mongo, and or but the a my name is call me "
        "here on next last this Friday May 12 12th 2025 2025-05-12 in two weeks ago $ 5 1,200.50 "
        "k euros dollars @ ada@example.org +1 202 555 0143 www. https://x.org/ ' . ? ! \n stopped "
        'using quit dropped neither nor used to \x00 " \u20ac \u2019 \u201c \u0130 \u212a \u00a0 '
        "\u3042 \U0001f44d"
    ).split(" ")
)
TEXTS = st.one_of(
    st.text(max_size=300),
    st.lists(_PIECES, max_size=30).map(" ".join),
    st.lists(_PIECES, max_size=30).map("".join),
)
MOMENTS = st.datetimes(
    min_value=datetime(1900, 1, 1),  # noqa: DTZ001 - hypothesis adds the zone itself
    max_value=datetime(9999, 12, 30),  # noqa: DTZ001 - same
    timezones=st.just(UTC),
)


def extract(text: str, role: str = "user", at: datetime = NOW) -> Extraction:
    """What one turn yields."""
    return EXTRACTOR.extract(text, role, None, at)


@settings(max_examples=examples(300), deadline=None)
@given(TEXTS, MOMENTS)
def test_any_text_is_taken(text: str, at: datetime) -> None:
    """No text and no moment raises, and all evidence stands in the text."""
    assert is_verbatim(extract(text, at=at), text)


@settings(max_examples=examples(100), deadline=None)
@given(TEXTS)
def test_same_turn_yields_the_same(text: str) -> None:
    """A second reading finds what the first did, value for value."""
    assert extract(text) == extract(text)


@settings(max_examples=examples(100), deadline=None)
@given(TEXTS)
def test_facts_and_negations_are_unique(text: str) -> None:
    """No value is found twice in one turn."""
    found = extract(text)
    facts = [(fact.category, fact.value) for fact in found.facts]
    negations = [(item.subject, item.negates_pattern) for item in found.negations]
    assert len(set(facts)) == len(facts)
    assert len(set(negations)) == len(negations)


@pytest.mark.parametrize("text", ["I'm Ada. Mail me at ada@example.org, I don't eat meat."])
@pytest.mark.parametrize("role", ROLES[1:])
def test_only_the_user_yields(role: str, text: str) -> None:
    """An assistant's, system's or tool's words are context."""
    assert extract(text, role) == Extraction()
    assert len(extract(text).facts) == 2
    assert len(extract(text).negations) == 1


def test_saying_it_twice_adds_nothing() -> None:
    """A repeated sentence yields the facts and negations of one."""
    text = "I'm Ada, I don't eat meat, call +1 202 555 0143 on Friday. "
    once, twice = extract(text), extract(text * 2)
    assert [fact.value for fact in twice.facts] == [fact.value for fact in once.facts]
    assert [item.content for item in twice.negations] == [item.content for item in once.negations]


def test_what_is_replaced_at_once_is_not_denied_as_well() -> None:
    """The address that holds says it; without one, that it is over is all that is known."""
    assert extract("Email me at sam@x.com, not sam@y.com.").negations == ()
    (over,) = extract("Don't use sam@y.com any more.").negations
    assert over.negates_pattern == "use sam@y.com"


@pytest.mark.parametrize(
    "text",
    [
        "Please don't send it to dana@acme.example before Monday, I am on leave.",
        "dana@acme.example is not reachable this week.",
        "dana@acme.example is closed until Monday.",
        "Please never send passwords to dana@acme.example.",
        "Don't send attachments to dana@acme.example, the mailbox is full.",
        "Send this one copy to billing@acme.example instead of dana@acme.example.",
        "Send the report to billing@acme.example, not dana@acme.example.",
        "Don't use dana@acme.example for invoices, use billing@acme.example for those.",
        "Please do not call me on +1 415 555 0123 while I am in meetings.",
        "While I am in meetings, please don't call me on +1 415 555 0123.",
        "You can't reach me on +1 415 555 0123 tomorrow.",
        "Don't call +1 415 555 0199 before noon, Eve sleeps long.",
        "Never write to ceo@acme.example without asking me.",
        "Never write to ceo@acme.example.",
        "Don't send people to https://acme.example before the launch.",
    ],
)
def test_an_address_not_to_be_used_now_or_for_this_is_still_one(text: str) -> None:
    """What is said of a time, a purpose or one message takes no address from anybody."""
    found = extract(text)
    assert found.negations == ()
    assert not any(fact.over for fact in found.facts)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("My new email is b@acme.example, don't write to a@acme.example any more.", "a@"),
        ("Don't write to a@acme.example, my new email is b@acme.example.", "a@"),
        ("Never write to a@acme.example again.", "a@"),
        ("Don't send mail to a@acme.example any more.", "a@"),
        ("Use b@acme.example instead of a@acme.example.", "a@"),
        ("Don't use a@acme.example for anything.", "a@"),
        ("a@acme.example is dead.", "a@"),
        ("You can no longer reach me on +1 415 555 0123.", "+1415"),
    ],
)
def test_an_address_that_is_given_up_is_over(text: str, value: str) -> None:
    """For good, and for whatever it was there for."""
    (over,) = (fact for fact in extract(text).facts if fact.over)
    assert over.value.startswith(value)


def test_whose_address_is_over_is_not_guessed() -> None:
    """Eve's number is no number of whoever says that it is dead."""
    (over,) = extract("Don't call +1 415 555 0199 any more, Eve has moved.").negations
    assert over.content == "+14155550199 is no longer in use."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("My son Leo had a test. He isn't allergic to nuts any more.", ["leo"]),
        ("My sister Ana lives in Rome. She doesn't drive.", ["ana"]),
        ("He isn't allergic to nuts any more.", []),
        ("My son Leo had a test. She isn't allergic to nuts.", []),
        ("My son Leo met Tom. He doesn't like jazz.", []),
        ("My son Leo isn't allergic to nuts. They don't like jazz.", ["my son leo"]),
    ],
)
def test_whom_a_pronoun_means_the_turn_says_or_nothing_is_denied(
    text: str, expected: list[str]
) -> None:
    """Where a turn names the one person that it can be, the denial has their name."""
    found = extract(text).negations
    assert [one.subject for one in found] == expected
    assert not any(one.content.startswith(("He ", "She ", "They ")) for one in found)


def test_what_is_found_raises_the_signal() -> None:
    """A denial is urgent and an address matters, however they are put."""
    assert extract("My cousin hasn't got a passport").signal is Signal.HIGH
    assert extract("the clinic is at https://clinic.example").signal is Signal.MEDIUM


@pytest.mark.slow
@pytest.mark.parametrize("piece", ADVERSARIAL)
def test_the_largest_turn_of_odd_pieces_is_taken(piece: str) -> None:
    """Filled with what patterns stumble over, it is read to its end; evidence stands in it."""
    text = largest(piece)
    assert is_verbatim(extract(text), text)
