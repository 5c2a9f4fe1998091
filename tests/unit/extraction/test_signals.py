"""The signal scan."""

from __future__ import annotations

import pytest

from engram.domain.buffer import Signal
from engram.language.signals import scan
from tests.support.extraction_labels import items

CASES = [
    (Signal.HIGH, "Actually, it's Thursday."),
    (Signal.HIGH, "No, I meant Ben."),
    (Signal.HIGH, "That's not right, my train is at nine."),
    (Signal.HIGH, "Remember that the door code changed"),
    (Signal.HIGH, "From now on, answer in French."),
    (Signal.HIGH, "Never use tabs in my code."),
    (Signal.HIGH, "My name is Ada"),
    (Signal.HIGH, "I'm allergic to peanuts"),
    (Signal.HIGH, "We decided to go with Postgres."),
    (Signal.HIGH, "We moved to Leeds"),
    (Signal.HIGH, "I don't use Mongo any more"),
    (Signal.HIGH, "I don\u2019t use Mongo anymore"),
    (Signal.MEDIUM, "I like tea"),
    (Signal.MEDIUM, "My sister lives in Rome"),
    (Signal.MEDIUM, "I'll call the bank"),
    (Signal.MEDIUM, "write to ada@example.org"),
    (Signal.LOW, "What is the capital of France?"),
    (Signal.LOW, "The lake froze over."),
    (Signal.NONE, "Thanks!"),
    (Signal.NONE, "ok"),
    (Signal.NONE, "Haha thanks, sounds good!"),
    (Signal.NONE, "Good morning! How are you?"),
    (Signal.NONE, "\U0001f44d"),
    (Signal.NONE, ""),
]


@pytest.mark.parametrize(("signal", "text"), CASES)
def test_signal_of_a_turn(signal: Signal, text: str) -> None:
    """Each kind of turn asks for consolidation as urgently as it should."""
    assert scan(text, "user") is signal


@pytest.mark.parametrize("role", ["assistant", "system", "tool"])
def test_only_the_user_signals(role: str) -> None:
    """What others say asks for nothing."""
    assert scan("Remember that my name is Ada", role) is Signal.NONE


def test_ordinary_talk_is_seldom_urgent() -> None:
    """Less than one in twenty ordinary turns triggers consolidation at once."""
    turns = items("ordinary", "seen")
    urgent = [turn["text"] for turn in turns if scan(turn["text"], "user") is Signal.HIGH]
    assert len(urgent) * 20 < len(turns), urgent
