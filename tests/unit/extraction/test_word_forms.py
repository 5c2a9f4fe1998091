"""Word forms: lemmas, pasts and stems."""

from __future__ import annotations

import pytest

from engram.language.text import is_past, stem, verb_lemma


@pytest.mark.parametrize(
    ("word", "lemma"),
    [
        ("using", "use"), ("uses", "use"), ("used", "use"), ("lives", "live"), ("living", "live"),
        ("running", "run"), ("stopped", "stop"), ("ate", "eat"), ("gone", "go"), ("goes", "go"),
        ("studies", "study"), ("studied", "study"), ("watches", "watch"), ("missed", "miss"),
        ("adding", "add"), ("travelling", "travel"), ("coding", "code"), ("need", "need"),
        ("giving", "give"), ("driving", "drive"), ("seeing", "see"), ("is", "be"),
        ("has", "have"), ("bring", "bring"), ("sing", "sing"), ("use", "use"),
    ],
)  # fmt: skip
def test_any_form_gives_the_lemma(word: str, lemma: str) -> None:
    """Regular and irregular forms come back to the base form, base forms stay."""
    assert verb_lemma(word) == lemma


def test_past_is_told_from_what_only_looks_like_it() -> None:
    """Words that merely end like a past, or are also present, are no past."""
    assert all(is_past(word) for word in ("went", "moved", "was", "left", "taken"))
    assert not any(is_past(word) for word in ("need", "put", "go", "is", "hundred", "bed"))


def test_stems_join_forms() -> None:
    """Number and tense do not separate words; different words stay apart."""
    assert stem("databases") == stem("database")
    assert stem("ate") == stem("eating")
    assert stem("coffee") != stem("coffin")
