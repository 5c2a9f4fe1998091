"""What is said before and after a statement is no part of it, and hides it seldom."""

from __future__ import annotations

from itertools import cycle

import pytest

from tests.support.slot_labels import answered
from tests.support.statement_labels import DATA

WAYS = [
    line
    for line in (DATA / "around.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]
PLAIN = [
    ("I use Firefox", "uses", "firefox"),
    ("I have a parrot", "has", "parrot"),
    ("I speak Danish", "speaks", "danish"),
    ("I like olives", "likes", "olives"),
    ("I'm allergic to penicillin", "is allergic to", "penicillin"),
    ("I own a canoe", "owns", "canoe"),
    ("I live in Ghent", "lives in", "ghent"),
    ("I work at Bosch", "works at", "bosch"),
    ("I work as a nurse", "works as", "nurse"),
    ("I'm married to Ana", "is married to", "ana"),
]
MISREAD = 0.09
"""Of all; .07 to .08 are, and .21 were before objects ended where adverbs begin."""


@pytest.mark.parametrize("shift", range(3))
def test_a_plain_statement_is_read_whatever_stands_around_it(shift: int) -> None:
    """Some 900 ways to begin or to end a sentence, with one statement each."""
    plain = cycle(PLAIN[shift:] + PLAIN[:shift])
    wrong = [
        _around(way, says)
        for way, (says, predicate, value) in zip(WAYS, plain, strict=False)
        if (predicate, value) not in _stated(_around(way, says))
    ]
    assert len(wrong) <= MISREAD * len(WAYS), wrong


def _around(way: str, says: str) -> str:
    said = way.replace("...", says)
    return said if said[-1] in "?.!" else f"{said}."


def _stated(text: str) -> set[tuple[str, str]]:
    found = [one for one in answered({"text": text}) if one.holds]
    return {(one.predicate or "", (one.object or "").casefold()) for one in found}
