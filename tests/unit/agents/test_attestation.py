"""What the sentence around a quotation says of what a model concludes from it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from engram.agents.extraction import ExtractionAgent
from engram.contracts.consolidation import ExtractOutput
from engram.domain.memories import Episode
from engram.domain.plan import Statement
from tests.support.reconciliation import said
from tests.support.scripted_model import scripted, statement

MAY = datetime(2026, 5, 1, 10, tzinfo=UTC)


def _turn(content: str, number: int = 1, **more: Any) -> Episode:
    return said(number).model_copy(update={"content": content, "timestamp": MAY, **more})


async def _read_of(turns: list[Episode], **stated: Any) -> ExtractOutput:
    one = {"subject": "user", "content": "So it is.", **stated}
    alias = f"e{len(turns)}"
    model, _ = scripted({"reasoning": "", "statements": [statement(alias, **one)]})
    return await ExtractionAgent(model).extract(turns)


def _slots(output: ExtractOutput) -> list[tuple[str | None, str | None]]:
    return [(one.predicate, one.object) for one in output.statements]


# --- what is denied


@pytest.mark.parametrize(
    ("words", "quote", "predicate", "thing"),
    [
        ("I don't use MongoDB any more.", "use MongoDB", "uses", "MongoDB"),
        ("I don't use MongoDB any more.", "I don't use MongoDB any more", "uses", "MongoDB"),
        ("I don't like tea.", "like tea", "likes", "tea"),
        ("I have never lived in Oslo.", "lived in Oslo", "lives in", "Oslo"),
        ("Right, we no longer use Slack.", "use Slack", "uses", "Slack"),
    ],
)
async def test_what_the_sentence_denies_is_not_so(
    words: str, quote: str, predicate: str, thing: str
) -> None:
    """A quotation from which the "not" was cut off is counted, and nothing is known by it."""
    output = await _read_of([_turn(words)], quotes=[quote], predicate=predicate, object=thing)
    assert (output.statements, output.dropped_unattested) == ((), 1)


async def test_what_a_speaker_with_a_name_denies_is_not_so_of_them() -> None:
    """Whoever has the turn is "I" there."""
    turn = _turn("I don't use MongoDB any more.", speaker="Ada")
    told = {"subject": "Ada", "predicate": "uses", "object": "MongoDB"}
    assert not (await _read_of([turn], quotes=["use MongoDB"], **told)).statements


@pytest.mark.parametrize(
    ("words", "quote", "more"),
    [
        ("I don't use MongoDB any more, I use Postgres.", "I use Postgres", {"object": "Postgres"}),
        ("I never used Zed before, but now I use Zed.", "now I use Zed", {"object": "Zed"}),
        ("I don't use Zed.", "I don't use Zed", {"object": "Zed", "holds": False}),
        ("Ich nutze Zed, nicht Vim.", "nutze Zed", {"object": "Zed"}),
    ],
)
async def test_what_is_said_beside_a_denial_is_so(
    words: str, quote: str, more: dict[str, Any]
) -> None:
    """Of something else, of the same later on, that it is not so, or in another language."""
    output = await _read_of([_turn(words)], quotes=[quote], predicate="uses", **more)
    assert _slots(output) == [("uses", more["object"])]


# --- what is said of others, asked or supposed


@pytest.mark.parametrize(
    ("words", "quote", "predicate", "thing"),
    [
        ("My sister lives in Oslo.", "lives in Oslo", "lives in", "Oslo"),
        ("My sister, who lives in Oslo, called.", "lives in Oslo", "lives in", "Oslo"),
        ("My best friend now works at Acme.", "works at Acme", "works at", "Acme"),
        ("She moved to Oslo.", "moved to Oslo", "lives in", "Oslo"),
        ("If I lived in Oslo I would ski every day.", "If I lived in Oslo", "lives in", "Oslo"),
        ("I would ski if I lived in Oslo.", "lived in Oslo", "lives in", "Oslo"),
        ("Do I live in Oslo?", "I live in Oslo", "lives in", "Oslo"),
        ("Should I marry Anna?", "marry Anna", "is married to", "Anna"),
    ],
)
async def test_what_is_not_told_of_the_user_takes_the_place_of_nothing(
    words: str, quote: str, predicate: str, thing: str
) -> None:
    """Of a sister's home, or of a question, there is a note at most."""
    output = await _read_of([_turn(words)], quotes=[quote], predicate=predicate, object=thing)
    assert _slots(output) == [(None, None)]


@pytest.mark.parametrize(
    ("words", "quote", "predicate", "thing"),
    [
        ("I live in Oslo, know any good bars?", "I live in Oslo", "lives in", "Oslo"),
        ("Can you name a gym now that I live in Oslo?", "live in Oslo", "lives in", "Oslo"),
        ("If you must know, I live in Oslo.", "I live in Oslo", "lives in", "Oslo"),
        ("Not only do I live in Oslo, I like it.", "I live in Oslo", "lives in", "Oslo"),
        ("My sister and I live in Oslo.", "live in Oslo", "lives in", "Oslo"),
        ("My wife says we live in Oslo now.", "we live in Oslo", "lives in", "Oslo"),
        ("My boss at Acme is kind.", "My boss at Acme", "works at", "Acme"),
        ("My wife is called Anna.", "My wife is called Anna", "is married to", "Anna"),
        ("Lives in Oslo, works at Acme.", "Lives in Oslo", "lives in", "Oslo"),
        ("Wohne ich nicht in Oslo?", "Wohne ich nicht in Oslo", "lives in", "Oslo"),
    ],
)
async def test_what_is_told_of_the_user_keeps_its_slot(
    words: str, quote: str, predicate: str, thing: str
) -> None:
    """Beside a question, a condition or somebody else; and in another language as it was read."""
    output = await _read_of([_turn(words)], quotes=[quote], predicate=predicate, object=thing)
    assert _slots(output) == [(predicate, thing)]


# --- when it was


async def _placed(*turns: Episode, at: str, quote: str, **more: Any) -> Statement:
    output = await _read_of(
        list(turns), quotes=[quote], predicate="lives in", object="Porto", begins=True,
        happened_at=at, **more,
    )  # fmt: skip
    (read,) = output.statements
    return read


@pytest.mark.parametrize(
    ("words", "by_the_model", "placed"),
    [
        ("I moved to Porto.", "2024-05-01T00:00:00Z", None),
        ("I moved to Porto.", "2099-05-01T00:00:00Z", None),
        ("I moved to Porto.", "2026-05-01T00:00:00Z", "2026-05-01"),
        ("I moved to Porto on March 2nd.", "2024-03-02T00:00:00Z", "2026-03-02"),
        ("I moved to Porto on March 2nd.", "2026-03-02T00:00:00Z", "2026-03-02"),
        ("I moved to Porto two years ago.", "2024-04-01T00:00:00Z", "2024-04-01"),
        ("I moved to Porto before 2020.", "2018-04-01T00:00:00Z", "2018-04-01"),
        ("I moved to Porto after the war.", "1946-04-01T00:00:00Z", "1946-04-01"),
        ("Ich bin letztes Jahr nach Porto gezogen.", "2025-06-01T00:00:00Z", "2025-06-01"),
        ("Ich bin nach Porto gezogen.", "1999-06-01T00:00:00Z", None),
    ],
)
async def test_a_day_that_nobody_told_is_none(
    words: str, by_the_model: str, placed: str | None
) -> None:
    """What the words tell counts; without any it is when it was said, and takes its place then."""
    read = await _placed(_turn(words), at=by_the_model, quote=words)
    assert (read.event_at and str(read.event_at.date())) == placed
    assert read.predicate == "lives in"


async def test_a_day_may_be_told_by_the_turn_that_is_answered() -> None:
    """Who says yes to a year has said it."""
    asked = _turn("Did you move in 2024?", role="assistant")
    read = await _placed(
        asked, _turn("Yes, to Porto.", 2), at="2024-01-01T00:00:00Z", quote="Yes, to Porto"
    )
    assert read.event_at == datetime(2024, 1, 1, tzinfo=UTC)


# --- where one lives and works, by another name


@pytest.mark.parametrize(
    ("words", "predicate", "thing", "named"),
    [
        ("I moved to Porto and joined Acme.", "moved to", "Porto", "lives in"),
        ("I moved to Porto and joined Acme.", "joined", "Acme", "works at"),
        ("I relocated to Faro.", "relocated to", "Faro", "lives in"),
        ("I started at Acme on March 2nd.", "started at", "Acme", "works at"),
        ("I moved to Linux.", "moved to", "Linux", "moved to"),
        ("I joined the choir.", "joined", "the choir", "joined"),
    ],
)
async def test_where_one_moved_to_is_where_one_lives(
    words: str, predicate: str, thing: str, named: str
) -> None:
    """By the name that replaces what was before; what else one joins replaces nothing."""
    output = await _read_of(
        [_turn(words)], quotes=[words], predicate=predicate, object=thing, begins=True
    )
    assert _slots(output) == [(named, thing)]
