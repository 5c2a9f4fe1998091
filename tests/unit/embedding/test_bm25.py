"""BM25 term weights: what is findable, and the form the engines need."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.embedding.bm25 import (
    STOP_WORDS,
    encode_document,
    encode_query,
    language_of,
    term_id,
    terms_of,
)
from engram.ports import SparseVector

TEXTS = st.text(max_size=200)


def matches(question: str, document: str) -> float:
    """The BM25 score without IDF."""
    stored = dict(zip(*_parts(encode_document(document)), strict=True))
    asked = encode_query(question)
    return sum(
        weight * stored.get(index, 0.0)
        for index, weight in zip(asked.indices, asked.values, strict=True)
    )


def _parts(vector: SparseVector) -> tuple[tuple[int, ...], tuple[float, ...]]:
    return vector.indices, vector.values


@pytest.mark.parametrize(
    ("question", "document"),
    [
        ("C++", "I write c++ at work."),
        ("c#", "We moved to C#, finally."),
        (".NET", "It runs on .net"),
        ("ada@example.org", "Mail me at <Ada@Example.org>."),
        ("example.org", "Mail me at ada@example.org, please"),
        ("1.50", "It costs $1.50!"),
        ("+1 415-555-0100", "Call (415) 555-0100."),
        ("jose", "I met José yesterday"),
        ("café", "the cafe\u0301 around the corner"),
        ("STRASSE", "die Straße"),
        ("running", "I ran and runs are fun"),
        ("里斯本", "我住在里斯本"),
        ("don\u2019t panic", "the guide says DON'T PANIC"),
        ("ada's", "Ada likes tea"),
        ("👍", "great 👍"),
        ("नमस्ते", "उसने नमस्ते कहा"),
        ("x/y", "see https://host.example/x/y"),
    ],
)
def test_what_people_ask_for_is_found(question: str, document: str) -> None:
    """Symbols, addresses, numbers, accents, inflection and other scripts match."""
    assert matches(question, document) > 0


def test_symbols_tell_languages_apart() -> None:
    """A question for C++ prefers C++ to C#, and the other way round."""
    plus, sharp = "I write C++ daily", "I write C# daily"
    assert matches("C++", plus) > matches("C++", sharp)
    assert matches("C#", sharp) > matches("C#", plus)


def test_function_words_do_not_match_by_themselves() -> None:
    """A document is not found for its function words, unless it has no other."""
    assert matches("where is the", "the dog is where it was") == 0
    assert terms_of("to be or not to be") != []


def test_repetition_saturates_and_length_costs() -> None:
    """A term said twice weighs more, less than double; in a longer text it weighs less."""
    once = matches("lisbon", "lisbon")
    twice = matches("lisbon", "lisbon lisbon")
    assert once < twice < 2 * once
    padded = "lisbon " + " ".join(f"word{n}" for n in range(60))
    assert matches("lisbon", padded) < once


@given(TEXTS)
def test_indices_ascend_and_fit_32_bits(text: str) -> None:
    """Both sides give ascending, unique 32-bit indices with positive finite weights."""
    for vector in (encode_document(text), encode_query(text)):
        assert len(vector.indices) == len(vector.values)
        assert list(vector.indices) == sorted(set(vector.indices))
        assert all(0 <= index < 2**32 for index in vector.indices)
        assert all(0 < value < float("inf") for value in vector.values)


@given(TEXTS, TEXTS)
def test_every_word_of_a_document_finds_it(before: str, after: str) -> None:
    """Whatever surrounds it, a word of the document brings the document up."""
    assert matches("lisbon", f"{before} Lisbon {after}") > 0


@given(st.text(min_size=1, max_size=30).filter(lambda text: not text.isspace()))
def test_a_text_finds_itself(text: str) -> None:
    """A document is found by its own text."""
    if terms_of(text):
        assert matches(text, text) > 0


@given(st.lists(st.sampled_from(["tea", "coffee", "lisbon", "ran", "c++"]), max_size=20))
def test_order_of_words_does_not_matter(words: list[str]) -> None:
    """The vector depends on the bag of words only."""
    assert encode_document(" ".join(words)) == encode_document(" ".join(reversed(words)))


def test_colliding_terms_are_summed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two terms with one id share one index, their weights added."""
    separate = encode_document("tea coffee")
    monkeypatch.setattr("engram.embedding.bm25.term_id", lambda _: 7)
    together = encode_document("tea coffee")
    assert together.indices == (7,)
    assert together.values[0] == pytest.approx(sum(separate.values))


def test_term_ids_are_the_same_in_another_process() -> None:
    """Ids come from the term alone, not from a per-process hash seed."""
    code = "from engram.embedding.bm25 import term_id; print(term_id('lisbon'))"
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert runs == {f"{term_id('lisbon')}\n"}


def test_months_and_names_are_not_function_words() -> None:
    """Words that people ask for are kept although they are function words too."""
    assert not STOP_WORDS & {"may", "will", "us", "march"}


@pytest.mark.parametrize(
    ("question", "document", "language"),
    [
        ("Wo sind die Schlüssel?", "Er dankt mit den Schlüsseln", "german"),
        ("Où sont les chevaux ?", "Le cheval est dans le pré", "french"),
        ("¿Dónde trabajamos?", "Los vecinos trabajan en la sala", "spanish"),
        ("Onde nós trabalhamos?", "Os vizinhos não trabalham na sala", "portuguese"),
    ],
)
def test_words_of_other_languages_are_found_in_other_forms(
    question: str, document: str, language: str
) -> None:
    """A text is found by the stems of its own language, told by its function words."""
    assert (language_of(question), language_of(document)) == (language, language)
    before = {term_id(term) for term in {*terms_of(question)} & {*terms_of(document)}}
    shared = {*encode_query(question).indices} & {*encode_document(document).indices}
    assert shared > before


def test_what_was_stored_before_its_language_was_told_is_still_found() -> None:
    """A question in another language also asks for the terms that every text had before."""
    question = "Wo liegt der Schlüssel für die Werkstatt?"
    asked = dict(zip(*_parts(encode_query(question)), strict=True))
    assert {term_id(term) for term in terms_of(question)} <= set(asked)
    assert sum(asked.values()) == pytest.approx(len(set(terms_of(question))))


@pytest.mark.parametrize(
    "text",
    [
        "Die Hard is the film that I saw with my son in Paris",
        "See ya at the El Camino, no rush",
        "Le Creuset pans were on sale",
        "de facto",
        "The Los Angeles trip was fun",
    ],
)
def test_english_keeps_the_terms_it_had(text: str) -> None:
    """No stem of another language is added to what is English, or might be."""
    assert language_of(text) is None
    assert set(encode_document(text).indices) == {term_id(term) for term in terms_of(text)}
