"""Same is same, different stays different."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.domain.identity import content_hash, normalise

WORDS = st.from_regex(r"[a-z]{1,8}", fullmatch=True)
SENTENCE = st.lists(WORDS, min_size=1, max_size=8)


@given(SENTENCE, st.data())
def test_case_spacing_and_edge_punctuation_do_not_matter(
    words: list[str], data: st.DataObject
) -> None:
    """The same words count as the same however they are spaced, cased and punctuated."""
    dressed = [
        data.draw(st.sampled_from(["", "(", '"', "“", "["]))
        + data.draw(st.sampled_from([word, word.upper(), word.title()]))
        + data.draw(st.sampled_from(["", ".", ",", "!", "?!", ")", '"', "…"]))
        for word in words
    ]
    text = data.draw(st.sampled_from([" ", "  ", "\n", "\t "])).join(dressed)
    assert content_hash(text) == content_hash(" ".join(words))


@given(SENTENCE, SENTENCE)
def test_different_words_stay_different(one: list[str], other: list[str]) -> None:
    """Two sentences share a hash only if they share every word."""
    same = content_hash(" ".join(one)) == content_hash(" ".join(other))
    assert same == (one == other)


@given(st.text())
def test_normalising_twice_is_normalising_once(text: str) -> None:
    """The normal form is its own normal form."""
    once = normalise(text)
    assert normalise(once) == once


@given(st.text(min_size=1).filter(lambda text: text.strip() != ""))
def test_nothing_visible_becomes_nothing(text: str) -> None:
    """A text with something in it never normalises to the empty text."""
    assert normalise(text) != ""


@given(st.text())
def test_composed_and_decomposed_unicode_are_the_same(text: str) -> None:
    """The same characters in composed or decomposed form count as the same."""
    assert content_hash(unicodedata.normalize("NFD", text)) == content_hash(
        unicodedata.normalize("NFC", text)
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("C++", "C"),
        ("C++", "C#"),
        (".NET", "net"),
        ("$1.50", "$150"),
        ("-5 degrees", "5 degrees"),
        ("<5 kg", "5 kg"),
        ("<$5", "$5"),
        ("+46 8 123", "46 8 123"),
        ("\N{THUMBS UP SIGN}", "\N{THUMBS DOWN SIGN}"),
        (":-)", ":-("),
        ("?!", ""),
        ("…", ""),
        ("5'", '5"'),
        ("x²", "x2"),
        ("can't", "cant"),
        ("re-sign", "resign"),
        ("jo.hn@x.org", "john@x.org"),
    ],
)
def test_meaning_at_the_edge_survives(one: str, other: str) -> None:
    """Sign, point, plus, hash, symbols and inner punctuation tell texts apart."""
    assert content_hash(one) != content_hash(other)
