"""Personal data: what the detector finds and leaves, and what the guard does with it."""

from __future__ import annotations

from datetime import UTC
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.agents.extraction import read
from engram.agents.requests import ExtractionAnswer, StatedKnowledge
from engram.domain.personal_data import TOKENS, PersonalKind, PersonalSpan, holds_token
from engram.domain.turns import MAX_METADATA_DEPTH, Turn
from engram.errors import InvalidTurn, UnmaskedPersonalData
from engram.language.extractor import Extractor
from engram.language.guarding import UNGUARDED, PersonalDataGuard
from engram.language.kinds import kind_words
from engram.language.personal_data import BuiltInDetector
from engram.operations.registry import Intake
from engram.operations.session_writer import TurnIntake
from engram.operations.turns import ENCODE, Encode
from engram.settings import Settings
from engram.transfer.accept import Acceptance, Acceptor
from engram.transfer.readers.reading import FoundTurn
from tests.support.clock import NOW
from tests.support.example_memories import episode
from tests.support.personal_sentences import Sentence, sentences

PRECISION = 0.98
RECALL = 0.95
DETECTOR = BuiltInDetector()
MASKING = PersonalDataGuard("mask")
CARD = "4111 1111 1111 1111"
WIDE_AT, WIDE_ADA = "\uff20", "\uff41\uff44\uff41"


def found(text: str) -> list[tuple[str, str]]:
    """What the detector finds: the words, and what they are."""
    return [(text[span.start : span.end], str(span.kind)) for span in DETECTOR.find(text)]


def masked(turn: Turn) -> Turn:
    """The turn as it leaves the client."""
    return turn.model_copy(update=MASKING.masked("default", turn))


# --- how much is found, and how much of that is right


def test_the_sentences_are_a_thousand_and_half_of_them_hold_something() -> None:
    """More than 200 lines of each kind, half of the lines kept aside, no sentence twice."""
    made = sentences()
    assert len({one.text for one in made}) == len(made) == 1000
    assert sum(bool(one.spans) for one in made) == 500
    assert 400 < sum(one.held for one in made) < 600


@pytest.mark.parametrize("held", [False, True], ids=["seen", "held"])
def test_personal_data_is_found_and_what_looks_like_it_is_left(held: bool) -> None:
    """By stretch, to the letter: precision .98 or more, recall .95 or more, in each half."""
    half = [one for one in sentences() if one.held == held]
    right = sum(len(_said(one) & _seen(one)) for one in half)
    assert right / sum(len(_seen(one)) for one in half) >= PRECISION
    assert right / sum(len(_said(one)) for one in half) >= RECALL


def _said(one: Sentence) -> set[PersonalSpan]:
    return set(one.spans)


def _seen(one: Sentence) -> set[PersonalSpan]:
    return set(DETECTOR.find(one.text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"Pay with {CARD} 12/27.", [(CARD, "card")]),
        ("Pay with 4111 1111 1111 1112.", []),
        ("DE89 3704 0044 0532 0130 00 is mine", [("DE89 3704 0044 0532 0130 00", "iban")]),
        ("DE88 3704 0044 0532 0130 00 is not", []),
        ("call 212 555 0142 10 times", [("212 555 0142", "phone")]),
        ("postgres://me:s3cretive@db.example.com/x", [("s3cretive", "secret")]),
        ("It runs on 127.0.0.1, version 1.2.3.4", []),
        ("upgrade from 3.11.0.9 to 4.0.0.1 broke it", []),
        ("subnet 10.0.0.0/8 is internal", []),
        ("the server answers at 9.9.9.9", [("9.9.9.9", "ip")]),
        ("the password is required", []),
        ("In 2008 Wall Street fell", []),
        ("-----BEGIN PRIVATE KEY-----\nMIIE", [("-----BEGIN PRIVATE KEY-----\nMIIE", "secret")]),
    ],
)
def test_checksums_and_context_decide(text: str, expected: list[tuple[str, str]]) -> None:
    """What fails its checksum stays, and so does what the words around call something else."""
    assert found(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://x.org/?email=ada%40example.org&a=b", [("ada%40example.org", "e-mail")]),
        ("https://x.org/?to=ada%2540example%2Eorg", [("ada%2540example%2Eorg", "e-mail")]),
        (f"ada{WIDE_AT}example.org", [(f"ada{WIDE_AT}example.org", "e-mail")]),
        (f"Ask {WIDE_ADA}@example.org!", [(f"{WIDE_ADA}@example.org", "e-mail")]),
        ("ada@exam\u200bple.org", [("ada@exam\u200bple.org", "e-mail")]),
        ("a\u2060da.love@example.org.", [("a\u2060da.love@example.org", "e-mail")]),
        ("card 4111\u200b 1111 1111 1111", [("4111\u200b 1111 1111 1111", "card")]),
        ("db://ada:p%40ss1word@10.0.0.1/x", [("p%40ss1word", "secret"), ("10.0.0.1", "ip")]),
        ("It grew by 40%20 times, and 5% 40 more.", []),
        ("https://x.org/a%20b%3Fc", []),
        ("Schöne Grüße … bis 10²", []),
    ],
)
def test_what_is_shown_counts_however_it_is_written(
    text: str, expected: list[tuple[str, str]]
) -> None:
    """Encoded for an address, in full-width letters, with signs between that nobody sees."""
    assert found(text) == expected


def test_all_of_a_long_list_is_found() -> None:
    """A table of a thousand numbers is masked to its end: there is no bound on how many."""
    table = "\n".join(f"x{n}@example.org, +47 22 12 {n // 100:02} {n % 100:02}" for n in range(999))
    assert len(DETECTOR.find(table)) == 2 * 999


# --- masking


@pytest.mark.property
@given(
    st.lists(st.sampled_from([one.text for one in sentences()]), min_size=1, max_size=6),
    st.sampled_from([" ", "", "\n", ", ", "@", ".", "-"]),
)
def test_masking_twice_is_masking_once(parts: list[str], between: str) -> None:
    """What was masked is let through by the same guard, as it is: a retry sends the same."""
    turn = Turn(content=between.join(parts))
    try:
        once = masked(turn)
    except InvalidTurn:
        return
    assert masked(once) == once
    MASKING.check("default", once)


def test_every_field_with_words_of_a_turn_is_masked() -> None:
    """Content, speaker, tags, and metadata with its keys, numbers, and what keys say of values."""
    turn = Turn(
        content="Mail ada@example.org.",
        speaker="+1 212 555 0142",
        tags=("work", "ada@example.org"),
        metadata={
            "api_key": "Zx81hhd72JKs91ks",
            "ada@example.org": {"card": int(CARD.replace(" ", ""))},
            "list": ["212-555-0142", 7, None, 1.5, True],
            "at": 1715688000,
        },
        message_id="m1",
    )
    with pytest.raises(UnmaskedPersonalData) as refused:
        MASKING.check("default", turn)
    assert refused.value.details["kinds"] == ["card", "e-mail", "phone", "secret"]
    assert "ada" not in str(refused.value)
    assert masked(turn) == Turn(
        content="Mail [e-mail].",
        speaker="[phone]",
        tags=("work", "[e-mail]"),
        metadata={
            "api_key": "[secret]",
            "[e-mail]": {"card": "[card]"},
            "list": ["[phone]", 7, None, 1.5, True],
            "at": 1715688000,
        },
        message_id="m1",
    )


def test_two_keys_that_are_masked_alike_keep_their_values() -> None:
    """Nothing of metadata is lost because two addresses become one token."""
    turn = Turn(content="x", metadata={"a@example.org": 1, "b@example.org": 2})
    assert masked(turn).metadata == {"[e-mail]": 1, "[e-mail] 2": 2}


def test_what_is_nested_without_end_is_refused() -> None:
    """Looking into metadata that no gate has seen yet ends at a bound, not in the interpreter."""
    deep: Any = "x"
    for _ in range(20 * MAX_METADATA_DEPTH):
        deep = [deep]
    with pytest.raises(InvalidTurn, match="nested"):
        MASKING.masked("default", Turn(content="x", metadata={"deep": deep}))


def test_each_namespace_has_its_rule() -> None:
    """Off by default, marked here and masked there, each only where it was asked for."""
    guard = PersonalDataGuard.of(
        Settings.load(personal_data_by_namespace={"clinic": "mask", "shop": "mark"})
    )
    turn = Turn(content="Mail ada@example.org or call 212-555-0142.")
    assert guard.masked("default", turn) == guard.masked("shop", turn) == {}
    assert guard.masked("clinic", turn) == {"content": "Mail [e-mail] or call [phone]."}
    kinds = (PersonalKind.EMAIL, PersonalKind.PHONE)
    assert (guard.marks("shop", turn), guard.marks("clinic", turn)) == (kinds, ())
    guard.check("shop", turn)
    with pytest.raises(UnmaskedPersonalData):
        guard.check("clinic", turn)
    assert UNGUARDED.marks("clinic", turn) == ()


def test_a_turn_that_outgrows_its_bound_when_masked_is_refused() -> None:
    """A token may be longer than what it stands for: the client says so, not the worker."""
    intake = TurnIntake(lambda: NOW, lambda: "id", max_bytes=70, guard=MASKING)
    (kept,) = intake.accept("a@b.co is mine", namespace="default")
    assert kept.content == "[e-mail] is mine"
    with pytest.raises(InvalidTurn, match="bytes"):
        intake.accept(" ".join(["a@b.co"] * 10), namespace="default")


def test_the_door_masks_for_a_client_that_does_not() -> None:
    """What comes over HTTP is masked by the rule of the namespace in its address."""
    settings = Settings.load(personal_data_by_namespace={"clinic": "mask"})
    asked = Encode(session_id="s1", turns=(Turn(content="Mail ada@example.org."),))
    for namespace, kept in (("clinic", "Mail [e-mail]."), ("other", "Mail ada@example.org.")):
        (turn,) = ENCODE.accept(asked, Intake(settings, lambda: NOW, lambda: "id", namespace)).turns
        assert turn.content == kept


def test_an_import_masks_before_it_cuts_and_names() -> None:
    """No number is cut in two and passes, and no id is made from words that are masked."""
    how = Acceptance("", UTC, NOW, NOW, 60, "default", MASKING)
    words = f"I pay everything by card, and the number of it is {CARD}, she said. {CARD}"
    turns = list(Acceptor(how).turns([FoundTurn("s", "line 1", words, timestamp=NOW)]))
    assert len(turns) > 1
    assert CARD[:9] not in str(turns)
    raw, other = (
        next(
            Acceptor(how).turns(
                [FoundTurn("s", "line 1", f"Mail {name}@example.org", timestamp=NOW)]
            )
        )
        for name in ("ada", "bob")
    )
    assert raw.message_id == other.message_id


# --- what was masked is no news of anybody


@pytest.mark.parametrize("token", TOKENS.values())
def test_a_token_becomes_no_fact(token: str) -> None:
    """Neither the patterns nor a model's statement turn it into something that is known."""
    said = f"My e-mail is {token}, I don't use {token}, and I was born on 12 May 1990."
    extraction = Extractor(Settings()).extract(said, "user", None, NOW)
    assert [fact.value for fact in extraction.facts] == ["1990-05-12"]
    assert not any(holds_token(one.content) for one in extraction.negations)
    statements = [
        StatedKnowledge(content=content, sources=["e1"], quotes=[said], confidence=0.9)
        for content in (f"The user's e-mail is {token}.", "The user was born in May.")
    ]
    answer = ExtractionAnswer(reasoning="", statements=statements)
    output = read(answer, {"e1": episode("e1", content=said)}, kind_words())
    assert [one.content for one in output.statements] == ["The user was born in May."]
    assert output.dropped_masked == 1
