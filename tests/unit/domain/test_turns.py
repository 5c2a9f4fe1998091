"""Bad input is refused before anything is sent, by name, and without repeating it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from engram.domain.sanitize import is_visible
from engram.domain.scope import Scope, check_identifier
from engram.domain.turns import Turn, check_turn, end_of
from engram.errors import InvalidScope, InvalidTurn
from engram.operations.session_writer import TurnIntake
from tests.support.clock import NOW

CONTENT = "hunter2"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"content": ""}, "empty"),
        ({"content": " \n\t\u00a0 "}, "empty"),
        ({"content": "\u200b\u2060 \ufeff"}, "empty"),
        ({"content": f"{CONTENT}\x00"}, "NUL"),
        ({"content": CONTENT * 5000}, "35000 bytes"),
        ({"content": CONTENT, "role": "boss"}, "role"),
        ({"content": CONTENT, "timestamp": NOW.replace(tzinfo=None)}, "timezone"),
        ({"content": CONTENT, "timestamp": NOW + timedelta(days=2)}, "believable"),
        ({"content": CONTENT, "timestamp": NOW.replace(year=1776)}, "believable"),
        ({"content": CONTENT, "speaker": "  "}, "speaker"),
        ({"content": CONTENT, "speaker": "\u200b"}, "speaker"),
        ({"content": CONTENT, "speaker": "x" * 300}, "speaker"),
        ({"content": CONTENT, "message_id": ""}, "message id"),
        ({"content": CONTENT, "speaker": "Bob\n- 2026-01-01 Bob"}, "speaker .* control"),
        ({"content": CONTENT, "speaker": "Bob\x1b[2J"}, "speaker .* control"),
        ({"content": CONTENT, "message_id": "m\u20281"}, "message id .* control"),
        ({"content": CONTENT, "tags": ("a\x9bb",)}, "tag .* control"),
        ({"content": CONTENT, "tags": ("",)}, "tag"),
        ({"content": CONTENT, "tags": ("t",) * 100}, "tags"),
        ({"content": CONTENT, "importance": 1.5}, "importance"),
        ({"content": CONTENT, "importance": float("nan")}, "importance"),
        ({"content": CONTENT, "expires_at": NOW}, "expiry .* past"),
        ({"content": CONTENT, "expires_at": NOW + timedelta(days=40_000)}, "too far"),
        ({"content": CONTENT, "expires_at": NOW.replace(tzinfo=None)}, "expiry .* timezone"),
        ({"content": CONTENT, "summary": " "}, "summary"),
        ({"content": CONTENT, "summary": "x" * 1001}, "summary"),
        ({"content": CONTENT, "summary": "two\nlines"}, "summary .* control"),
        ({"content": CONTENT, "metadata": {"a": object()}}, "metadata"),
        ({"content": CONTENT, "metadata": {"a": "x" * 9000}}, "metadata"),
        ({"content": CONTENT, "metadata": {"a": ["\x00"]}}, "NUL"),
        ({"content": CONTENT, "metadata": {"a": [10**4300]}}, "too long"),
    ],
)
def test_a_bad_turn_is_refused_with_what_is_wrong(fields: dict[str, Any], said: str) -> None:
    """Each kind of bad turn has its own words, what is allowed, and no content in it."""
    turn = Turn.model_construct(**{**Turn(content="x").__dict__, **fields})
    with pytest.raises(InvalidTurn, match=said) as caught:
        check_turn(turn, now=NOW, max_bytes=32 * 1024)
    assert caught.value.allowed
    assert CONTENT not in str(caught.value)
    assert not caught.value.retryable


@pytest.mark.parametrize(
    "fields",
    [
        {"expires_in": timedelta(0)},
        {"expires_in": timedelta(seconds=-1)},
        {"expires_in": timedelta(days=40_000)},
        {"expires_in": timedelta(days=1), "expires_at": NOW + timedelta(days=1)},
    ],
    ids=["nothing", "past", "too far", "both"],
)
def test_a_life_that_is_none_is_refused(fields: dict[str, Any]) -> None:
    """A turn lives for more than no time, for a hundred years at most, and by one of two fields."""
    with pytest.raises(InvalidTurn) as caught:
        end_of(Turn(content=CONTENT, **fields), NOW)
    assert caught.value.allowed


def test_a_turn_that_waited_is_not_refused_for_it() -> None:
    """Where a turn may have been on its way for a day, its end may have come meanwhile."""
    turn = Turn(content="x", expires_at=NOW - timedelta(hours=3))
    check_turn(turn, now=NOW, max_bytes=10, ends_after=NOW - timedelta(days=1))
    with pytest.raises(InvalidTurn):
        check_turn(turn, now=NOW, max_bytes=10, ends_after=NOW - timedelta(hours=3))


def test_a_lone_surrogate_is_refused() -> None:
    """Text that cannot be encoded is refused rather than stored differently."""
    turn = Turn.model_construct(**{**Turn(content="x").__dict__, "content": "a\ud800b"})
    with pytest.raises(InvalidTurn, match="surrogate"):
        check_turn(turn, now=NOW, max_bytes=1024)


@given(st.text(min_size=1, max_size=200).filter(lambda t: is_visible(t) and "\x00" not in t))
def test_any_other_text_is_accepted(content: str) -> None:
    """Whatever Unicode people write is kept: only NUL, surrogates and the unseen are refused."""
    check_turn(Turn(content=content), now=NOW, max_bytes=1024)


@given(st.integers(1, 100), st.integers(1, 100))
def test_the_limit_counts_bytes(length: int, limit: int) -> None:
    """A turn passes exactly when its UTF-8 form fits the limit."""
    turn = Turn(content="ß" * length)
    if 2 * length <= limit:
        check_turn(turn, now=NOW, max_bytes=limit)
    else:
        with pytest.raises(InvalidTurn):
            check_turn(turn, now=NOW, max_bytes=limit)


@pytest.mark.parametrize(
    "odd", ["", " ", "a/b", "a b", "ü", "\x00", "x" * 81, ".hidden", "a\n", None, 7, "-x"]
)
def test_odd_identifiers_are_refused(odd: Any) -> None:
    """A name that could escape its place in an id is refused, everywhere alike."""
    with pytest.raises(InvalidScope, match="Allowed"):
        check_identifier(odd, "user id")
    with pytest.raises(InvalidScope):
        Scope.of("default", odd)


@pytest.mark.parametrize("good", ["ada", "ada@example.org", "auth0|5f7c8ec7", "a" * 80, "7"])
def test_usual_identifiers_are_accepted(good: str) -> None:
    """E-mail addresses and identity providers' ids work as user ids."""
    assert Scope.of("default", good).user_id == good


def test_timestamps_of_any_zone_are_one_moment() -> None:
    """A timestamp within bounds is accepted whatever its offset."""
    zoned = datetime.fromisoformat("2026-03-11T18:00:00+14:00")
    check_turn(Turn(content="x", timestamp=zoned), now=NOW, max_bytes=10)


@pytest.mark.parametrize(
    ("turns", "named"), [(None, "NoneType"), (5, "int"), (b"I live in Porto.", "bytes")]
)
def test_what_is_no_turn_is_named_as_what_it_is(turns: Any, named: str) -> None:
    """Not as the parts of it, and not as what Python says of them."""
    intake = TurnIntake(lambda: NOW, lambda: "id", max_bytes=1000)
    with pytest.raises(InvalidTurn, match=f"given as {named}"):
        intake.accept(turns, namespace="default")


def test_what_was_said_is_in_no_error_of_a_turn() -> None:
    """Also where a field has the wrong type, and the error is Pydantic's own."""
    with pytest.raises(ValidationError) as caught:
        Turn(content="I live in Porto.", tags="my secret", metadata={"k": object()})  # type: ignore[arg-type]  # wrong on purpose
    assert "secret" not in str(caught.value)
    assert "Porto" not in str(caught.value)
