"""What people paste: text without spaces, sentences without ends."""

from __future__ import annotations

import pytest

from engram.language.statements.clauses import clauses, sentences, verbatim
from tests.support.odd_texts import FILLS, largest


@pytest.mark.parametrize("fill", FILLS)
def test_the_longest_turn_is_read(fill: str) -> None:
    """A whole turn of one kind of character hides no sentence, and each is a part of it."""
    text = "I moved. " + largest(fill)
    found = sentences(text)
    assert found[0].text == "I moved"
    assert sum(len(sentence.text) for sentence in found) <= len(text)
    for sentence in found:
        assert all(0 <= clause.at <= len(text) for clause in clauses(sentence))


def test_links_say_nothing() -> None:
    """Addresses are set apart whole, with a sign for each; the words around them stay."""
    text = "See http://x.org/I,like,tea or ada@example.org and @ada, now"
    (sentence,) = sentences(text)
    own = ["See", "\U00100000", "or", "\U00100001", "and", "@ada,", "now"]
    assert sentence.text.split() == own
    assert verbatim(text, sentence) == text
