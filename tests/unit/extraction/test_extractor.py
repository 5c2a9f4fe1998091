"""The extractor: roles, signals, any text at all, and speed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from time import thread_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.contracts.sessions import Signal
from engram.extraction.extractor import Extractor
from engram.extraction.models import Extraction
from engram.extraction.signals import scan
from engram.settings import Settings
from tests.support.extraction_labels import is_verbatim, items

NOW = datetime(2026, 3, 11, 9, 30, tzinfo=UTC)
EXTRACTOR = Extractor(Settings())
LARGEST = 32 * 1024
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


@settings(max_examples=300, deadline=None)
@given(TEXTS, MOMENTS)
def test_any_text_is_taken(text: str, at: datetime) -> None:
    """No text and no moment raises, and all evidence stands in the text."""
    assert is_verbatim(extract(text, at=at), text)


@settings(max_examples=100, deadline=None)
@given(TEXTS)
def test_same_turn_yields_the_same(text: str) -> None:
    """A second reading finds what the first did, value for value."""
    assert extract(text) == extract(text)


@settings(max_examples=100, deadline=None)
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


def test_what_is_found_raises_the_signal() -> None:
    """A denial is urgent and an address matters, however they are put."""
    assert extract("My cousin hasn't got a passport").signal is Signal.HIGH
    assert extract("the clinic is at https://clinic.example").signal is Signal.MEDIUM


ADVERSARIAL = [
    "a ", "1", "12 ", "@", "a@", "not ", "\n", "I don't ", "'a ", '"a ', "call me ", "I'm Ben ",
    "$", "$1 ", "1.", "www.", "http://", "(", "+1 ", "on Friday ", "May ", "in a ", " ", ", ",
    "no ", "a", "tomorrow ", "I don't eat. ", "we live in A, not B. ", "10/10/", "A ", "-", ".",
    "i used to ", "Ab here ", "a@b.co ", "5 eur ", "5 pounds ", "one hundred ",
    "call (415) 555-2671 ",
    "Hello, my name is Ada and I paid $5 on 3 May 2024. ", "\u0130", "\u201c", "?!", "i'm ",
]  # fmt: skip


def fastest(work: Callable[[], object], rounds: int) -> float:
    """Seconds of processor time of the fastest round: what else the machine does is left out."""
    times = []
    for _ in range(rounds):
        start = thread_time()
        work()
        times.append(thread_time() - start)
    return min(times)


@pytest.mark.parametrize("piece", ADVERSARIAL)
def test_no_text_takes_long(piece: str) -> None:
    """The largest turn, filled with what patterns stumble over, takes less than 100 ms."""
    text = (piece * (LARGEST // len(piece) + 1))[:LARGEST]
    extract(text)
    assert fastest(lambda: extract(text), 5) < 0.100


@pytest.mark.parametrize(
    ("topic", "limit"),
    [("ordinary", 200e-6), ("dates", 1e-3), ("contacts", 1e-3), ("negations", 1e-3)],
)
def test_typical_turn_is_cheap(topic: str, limit: float) -> None:
    """An ordinary turn takes less than 0.2 ms on average, one with finds less than 1 ms."""
    texts = [item["text"] for item in items(topic, "seen")]
    for text in texts:
        extract(text)
    assert fastest(lambda: [extract(text) for text in texts], 5) / len(texts) < limit


def test_scan_stays_far_below_its_limit() -> None:
    """The signal of the largest turn takes less than 10 ms."""
    text = ("I think the weather is nice and the lake froze over. " * 700)[:LARGEST]
    assert fastest(lambda: scan(text, "user"), 5) < 0.010
