"""Signs, quotations, sentences and words: what every reader of language goes by."""

from __future__ import annotations

import pytest

from engram.language.text import (
    QUOTED,
    WORDS_AND_SIGNS,
    as_spelled,
    collapsed,
    plain,
    set_apart,
    split_sentences,
    without_quotations,
)


def told(text: str, *, semicolons: bool = False) -> list[str]:
    """The sentences, without the marks that end them."""
    pieces = split_sentences(text, semicolons=semicolons)
    return [text[one.start : one.end].strip() for one in pieces]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Ask Dr. Reed. She knows.", ["Ask Dr. Reed", "She knows"]),
        ("I finished my master's. I rest.", ["I finished my master's", "I rest"]),
        ("He said it (twice.) I left.", ["He said it (twice", "I left"]),
        ("Take 20 ms. Then stop!Now", ["Take 20 ms", "Then stop", "Now"]),
        ("See e.g. Rome\nI went", ["See e.g. Rome", "I went"]),
        ("I use Node.js 1.5...daily", ["I use Node.js 1.5", "daily"]),
    ],
)
def test_sentences_end_where_they_end(text: str, sentences: list[str]) -> None:
    """Not after a title or an initial, and together with the bracket that closes them."""
    assert told(text) == sentences


def test_a_semicolon_ends_a_statement_only_where_it_is_asked_for() -> None:
    """Negations look at each half by itself, statements need the subject of the first."""
    text = "I moved to Rome; still at Fiat."
    assert told(text) == ["I moved to Rome; still at Fiat"]
    assert told(text, semicolons=True) == ["I moved to Rome", "still at Fiat"]


def test_quotations_are_hidden_in_their_own_length() -> None:
    """Apostrophes open none; a quoted name stays where only speech is hidden."""
    text = "I don't use 'Mongo', and he said \"I love it\"."
    assert QUOTED not in without_quotations("I don't, it's the users' choice")
    hidden = without_quotations(text)
    assert (len(hidden), hidden.count(QUOTED)) == (len(text), 2)
    assert "'Mongo'" in without_quotations(text, only_speech=True)
    assert "love" not in without_quotations(text, only_speech=True)


def test_code_and_links_are_set_apart_in_their_own_length() -> None:
    """The mark after them stays, their place is found again, and so are their words."""
    text = "Run `make test`, then mail a@b.example. See https://c.example/d?e=f, please!"
    apart = set_apart(text)
    assert len(apart.text) == len(text)
    assert apart.words == ("`make test`", "a@b.example", "https://c.example/d?e=f")
    short = collapsed(apart.text)
    assert short.text == "Run \U00100000, then mail \U00100001. See \U00100002, please!"
    assert text[short.original(short.text.index("please")) :] == "please!"
    assert apart.put_back(short.text) == apart.put_back(apart.text) == text


def test_there_are_signs_for_as_many_links_as_a_turn_can_hold() -> None:
    """More of them share one, which is past all that is read."""
    text = "`` " * 66_000
    apart = set_apart(text)
    assert (len(apart.text), len(apart.words)) == (len(text), 66_000)


def test_signs_become_plain_in_place() -> None:
    """One for one; dashes stay where clauses are read by them."""
    assert plain("I’m “in”\u00a0Rome—now") == 'I\'m "in" Rome-now'
    assert plain("I’m in Rome—now", dashes=False) == "I'm in Rome—now"


def test_a_word_is_what_stands_without_a_space() -> None:
    """Technical names are one word, other signs words by themselves."""
    found = WORDS_AND_SIGNS.findall("c++, r&d (and/or node.js)")
    assert found == ["c++", ",", "r&d", "(", "and/or", "node.js", ")"]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("I work at St. Mary's. It is big.", ["I work at St. Mary's", "It is big"]),
        ("I live on Baker St. It is old.", ["I live on Baker St", "It is old"]),
        ("Did it rain? No. I stayed.", ["Did it rain", "No", "I stayed"]),
        ("See No. 7 of it. Done.", ["See No. 7 of it", "Done"]),
        ("I left Acme Inc. in May. Fine.", ["I left Acme Inc. in May", "Fine"]),
        ("I left Acme Inc. I am free.", ["I left Acme Inc", "I am free"]),
    ],
)
def test_a_shortened_word_ends_a_sentence_only_where_nothing_goes_on(
    text: str, sentences: list[str]
) -> None:
    """Titles never, companies and streets by what follows, "No." unless a number follows."""
    assert told(text) == sentences


@pytest.mark.parametrize(
    ("wanted", "text", "spelled"),
    [
        ("tea", "The user likes Tea.", "Tea"),
        ("jörg strauss", "The user is called Jörg Strauß.", "Jörg Strauß"),
        ("tea", "Weiß likes İzmir and Tea.", "Tea"),
        ("user", "The User knows the user.", "user"),
        ("milk", "The user likes tea.", "milk"),
        ("", "The user left.", ""),
    ],
)
def test_words_come_in_the_letters_of_a_text(wanted: str, text: str, spelled: str) -> None:
    """Also where a letter is longer when it is folded; what is not there stays as it is."""
    assert as_spelled(wanted, text) == spelled
