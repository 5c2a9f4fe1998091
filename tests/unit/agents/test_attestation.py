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


@pytest.mark.parametrize(
    ("words", "thing"),
    [
        ("I never liked tea, but now I do.", "tea"),
        ("I don't like olives, I love them!", "olives"),
        ("I don't like olives but these days I do.", "olives"),
    ],
)
async def test_what_is_asserted_anew_is_so(words: str, thing: str) -> None:
    """The words behind the denial say so without naming it again."""
    output = await _read_of([_turn(words)], quotes=[words], predicate="likes", object=thing)
    assert _slots(output) == [("likes", thing)]


@pytest.mark.parametrize(
    "words",
    [
        "I don't like tea, but now I do yoga.",
        "I don't like tea, but I love it when others do.",
    ],
)
async def test_what_else_is_asserted_leaves_a_denial(words: str) -> None:
    """Of something else, or of less than that."""
    output = await _read_of([_turn(words)], quotes=[words], predicate="likes", object="tea")
    assert not output.statements


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
        ("My sister lives in Oslo, I miss her too.", "lives in Oslo", "lives in", "Oslo"),
        ("My sister lives in Oslo, which is far for me.", "lives in Oslo", "lives in", "Oslo"),
        ("Should I move in with my sister in Oslo?", "my sister in Oslo", "lives in", "Oslo"),
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
        ("May I introduce myself: my name is Dana.", "my name is Dana", "is called", "Dana"),
        (
            "Can I get a refund, my order number is 77213?",
            "my order number is 77213",
            "order number is",
            "77213",
        ),
        (
            "Can I register my new number 555-0134, please?",
            "my new number 555-0134",
            "phone number is",
            "555-0134",
        ),
        ("Should I tell my husband Marco?", "my husband Marco", "is married to", "Marco"),
        (
            "What should I get my wife Anna for her birthday?",
            "my wife Anna",
            "is married to",
            "Anna",
        ),
        (
            "Could I get this sent to my home address, 12 Elm Street, please?",
            "my home address, 12 Elm Street",
            "lives at",
            "12 Elm Street",
        ),
        ("If we go out, remember my home is in Porto.", "my home is in Porto", "lives in", "Porto"),
        ("How lucky am I to work at Novartis!", "work at Novartis", "works at", "Novartis"),
        ("Only last week did I move to Basel.", "move to Basel", "lives in", "Basel"),
        (
            "My wife works at Roche, where I work too.",
            "works at Roche, where I work too",
            "works at",
            "Roche",
        ),
        ("My sister lives in Basel, same as me.", "lives in Basel", "lives in", "Basel"),
        ("My girlfriend moved to Basel with me.", "moved to Basel with me", "lives in", "Basel"),
        (
            "My parents moved to Basel when I was five, and I never left.",
            "moved to Basel when I was five",
            "lives in",
            "Basel",
        ),
        (
            "My sister visits often because Basel is home for me.",
            "Basel is home for me",
            "lives in",
            "Basel",
        ),
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


NOVEMBER = datetime(2026, 11, 20, 12, tzinfo=UTC)
_STATES_WORK = {"predicate": "works at", "object": "Novartis", "begins": True}
_STATES_HOME = {"predicate": "lives in", "object": "Basel", "begins": True}


@pytest.mark.parametrize(
    ("words", "day", "stated"),
    [
        ("Last week I celebrated ten years at Novartis.", "2016-11-19", _STATES_WORK),
        ("Today marks twenty years since I moved to Basel.", "2006-11-20", _STATES_HOME),
        (
            "Yesterday we celebrated our tenth wedding anniversary, Marco and I.",
            "2016-11-19",
            {"predicate": "is married to", "object": "Marco", "begins": True},
        ),
        (
            "My daughter Mia turned five yesterday.",
            "2021-11-19",
            {"subject": "user's daughter", "predicate": "is called", "object": "Mia"},
        ),
        (
            "I've been sober for exactly a year as of yesterday.",
            "2025-11-19",
            {"predicate": "is", "object": "sober", "begins": True},
        ),
        (
            "I joined Novartis when I was 25, as I told you yesterday.",
            "2010-06-01",
            _STATES_WORK,
        ),
        (
            "Someone stole my bike yesterday, the Trek I got for my graduation.",
            "2012-06-01",
            {"predicate": "owns", "object": "the Trek", "begins": True},
        ),
        ("I joined Novartis last summer.", "2026-01-15", _STATES_WORK),
        ("I joined Novartis on March 2nd, 2024.", "2024-03-02", _STATES_WORK),
        ("I told Anna yesterday that I joined Novartis.", "2019-03-02", _STATES_WORK),
        ("I joined Novartis on March 2nd, and 2024 it was.", "2024-03-02", _STATES_WORK),
    ],
)
async def test_a_time_of_something_else_dates_nothing(
    words: str, day: str, stated: dict[str, Any]
) -> None:
    """What a feast, an age, a season or another clause is told with leaves the model's day."""
    turn = _turn(words, timestamp=NOVEMBER)
    output = await _read_of([turn], quotes=[words], happened_at=f"{day}T00:00:00Z", **stated)
    assert [str(one.event_at)[:10] for one in output.statements] == [day]


async def test_a_plain_day_counts_whatever_the_model_makes_of_it() -> None:
    """A sentence that the rules read as well, with no other time in it."""
    turn = _turn("I started at Acme on March 2nd.", timestamp=datetime(2026, 3, 5, 9, tzinfo=UTC))
    output = await _read_of(
        [turn], quotes=["I started at Acme on March 2nd"], predicate="works at", object="Acme",
        begins=True, happened_at="2024-03-02T00:00:00Z",
    )  # fmt: skip
    assert [str(one.event_at)[:10] for one in output.statements] == ["2026-03-02"]


@pytest.mark.parametrize(
    ("words", "day"),
    [
        ("I moved to Basel last quarter.", "2026-08-01"),
        ("I moved to Basel last semester.", "2026-03-01"),
        ("I moved to Basel last term.", "2026-03-01"),
        ("I moved to Basel the season we won the cup.", "2022-09-01"),
        ("I moved to Basel a fortnight back.", "2026-11-06"),
        ("I moved to Basel at Diwali.", "2026-11-08"),
        ("I moved to Basel on Valentine's.", "2026-02-14"),
        ("I moved to Basel on Valentine’s Day.", "2026-02-14"),
        ("I moved to Basel over Passover.", "2026-04-02"),
        ("I moved to Basel on Boxing Day.", "2025-12-26"),
        ("I moved to Basel straight out of the academy.", "2015-07-01"),
        ("Ich wohne seit fünfzehn Jahren in Basel.", "2011-11-20"),
        ("Vor zwölf Jahren bin ich nach Basel gezogen.", "2014-11-20"),
        ("Hace veinte años que vivo en Basel.", "2006-11-20"),
        ("J'habite à Basel depuis quinze ans.", "2011-11-20"),
        ("二十年前にBaselに引っ越しました。", "2006-11-20"),
    ],
)
async def test_a_day_by_a_term_a_feast_or_years_counted_is_told(words: str, day: str) -> None:
    """In other languages at least by the word for years."""
    turn = _turn(words, timestamp=NOVEMBER)
    output = await _read_of([turn], quotes=[words], happened_at=f"{day}T00:00:00Z", **_STATES_HOME)
    assert [str(one.event_at)[:10] for one in output.statements] == [day]


async def test_a_day_may_be_told_some_turns_before() -> None:
    """Whatever was heard may say when it was."""
    turns = [
        _turn("We married in May 2019."),
        _turn("How lovely!", 2, role="assistant"),
        _turn("Oh yes. So I moved to Porto.", 3),
    ]
    read = await _placed(*turns, at="2019-06-01T00:00:00Z", quote="So I moved to Porto")
    assert read.event_at == datetime(2019, 6, 1, tzinfo=UTC)


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
        ("I moved to Basel in May and I love Basel now.", "likes", "Basel", "likes"),
        ("I started at Google, and now I use Google for everything.", "uses", "Google", "uses"),
        (
            "I've joined Notion, and I switched to Notion for my notes.",
            "switched to",
            "Notion",
            "switched to",
        ),
        (
            "I moved to Basel and bought a flat in Basel.",
            "owns a flat in",
            "Basel",
            "owns a flat in",
        ),
        (
            "I joined Novartis and bought shares of Novartis.",
            "bought shares of",
            "Novartis",
            "bought shares of",
        ),
        ("I have moved to Porto.", "has moved to", "Porto", "lives in"),
        ("I started working at Acme.", "started working at", "Acme", "works at"),
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
