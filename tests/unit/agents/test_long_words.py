"""What people paste: text without spaces, sentences without ends."""

from __future__ import annotations

import time

import pytest

from engram.agents.rules.clauses import clauses
from engram.agents.rules.sentences import sentences

SIZE = 32 * 1024


@pytest.mark.parametrize(
    "fill", ["x", "-", "....", "\u0001", '"\\', "a@", "://", "'a", "`", "I ", "and "]
)
def test_the_longest_turn_is_read_at_once(fill: str) -> None:
    """A whole turn of one kind of character takes a fraction of a second, not seconds."""
    text = "I moved. " + fill * (SIZE // len(fill))
    began = time.perf_counter()
    for sentence in sentences(text):
        list(clauses(sentence))
    assert time.perf_counter() - began < 1.0


def test_links_say_nothing() -> None:
    """Addresses are left out whole; the words around them stay."""
    text = "See http://x.org/I,like,tea or ada@example.org and @ada, now"
    (sentence,) = sentences(text)
    assert sentence.text.split() == ["See", "or", "and", "@ada,", "now"]
    assert len(sentence.text) == len(text)
