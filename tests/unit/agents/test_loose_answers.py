"""Answers that keep to the form in part: what is plainly meant is read, and nothing is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from engram.agents.extraction import ExtractionAgent
from engram.agents.requests import ExtractionRequest, read_prompt
from engram.contracts.consolidation import ExtractOutput
from engram.domain.learning import LearningRules
from engram.domain.memories import Category
from tests.support.reconciliation import said
from tests.support.scripted_model import scripted, statement, user_prompt

HOME = {"content": "Ada lives in Lisbon.", "quotes": ["I live in Lisbon"], "subject": "user"}
HOME |= {"predicate": "lives in", "object": "Lisbon"}


async def _read_of(words: str, *answers: dict[str, Any]) -> tuple[ExtractOutput, int]:
    """What is read of a turn with these words, and how often the model was asked."""
    model, asked = scripted(*answers)
    turn = said(1).model_copy(update={"content": words})
    return await ExtractionAgent(model).extract([turn]), len(asked)


@pytest.mark.parametrize("alias", ["E1", "[e1]", " e1 ", "1", 1, "e01", "e1, e1"])
async def test_an_alias_that_is_put_otherwise_is_understood(alias: object) -> None:
    """No statement is lost, and none asked for again, for the sake of a bracket."""
    answer = {"reasoning": "", "statements": [statement("e1") | {"sources": [alias]}]}
    output, asked = await _read_of("I like tea.", answer)
    assert [one.episode_ids for one in output.statements] == [(said(1).id,)]
    assert (asked, output.dropped_references) == (1, 0)


@pytest.mark.parametrize("alias", ["b1", "e2", "0", "turn", ""])
async def test_an_alias_of_no_turn_that_was_shown_means_none(alias: str) -> None:
    """Neither what stood before nor a number too far is taken for the turn."""
    answer = {"reasoning": "", "statements": [statement(alias)]}
    output, asked = await _read_of("I like tea.", *[answer] * 3)
    assert (output.statements, asked, output.dropped_references) == ((), 3, 1)


@pytest.mark.parametrize(
    ("quote", "kept"),
    [
        ("i've moved to Lisbon", "I’ve moved to Lisbon"),
        ("I’ve moved to Lisbon.", "I’ve moved to Lisbon"),
        ('"I\'ve moved to Lisbon"', "I’ve moved to Lisbon"),
        ("…moved to Lisbon - at last", "moved to\n Lisbon — at last"),
    ],
)
async def test_a_quotation_is_kept_in_the_letters_of_its_turn(quote: str, kept: str) -> None:
    """Other signs, another case and a full stop make no other words of it."""
    words = "Guess what: I’ve moved to Lisbon!" if "\n" not in kept else f"Yes, {kept}."
    output, asked = await _read_of(
        words, {"reasoning": "", "statements": [statement("e1", **HOME | {"quotes": [quote]})]}
    )
    (one,) = output.statements
    assert [evidence.words for evidence in one.evidence] == [kept]
    assert (one.predicate, one.object, asked) == ("lives in", "Lisbon", 1)


@pytest.mark.parametrize(
    "more",
    [
        {"tags": [f"topic{number}" for number in range(12)]},
        {"tags": None, "entities": "Lisbon", "holds": None, "importance": 7},
        {"quotes": ["I live in Lisbon", "I live", "I", "live", "in", "Lisbon"]},
        {"quotes": "I live in Lisbon", "sources": "e1"},
        {"confidence": 95},
        {"confidence": "high", "category": "Residence"},
        {"happened_at": "last spring", "ended": "moved"},
        {"category": "FACT"},
    ],
    ids=str,
)
async def test_a_detail_in_another_form_costs_no_answer(more: dict[str, Any]) -> None:
    """What was said stands, with what is beside it; only the detail is cut or left out."""
    statements = [statement("e1", **HOME | more), statement("e1", content="Ada says hello.")]
    output, asked = await _read_of(
        "I live in Lisbon.", {"reasoning": "long " * 1000, "statements": statements}
    )
    home, hello = output.statements
    assert (home.predicate, home.object, home.holds) == ("lives in", "Lisbon", True)
    assert (hello.content, asked, output.dropped_malformed) == ("Ada says hello.", 1, 0)
    assert home.confidence in {0.8, 0.5}


async def test_a_category_that_there_is_not_is_looked_for_among_the_tags() -> None:
    """Where a namespace's own category is given as if it were one of the ten, it is found."""
    learning = LearningRules.model_validate(
        {"categories": [{"name": "medication", "category": "principle"}]}
    )
    one = statement("e1", category="Medication", tags=["pills"])
    model, _ = scripted({"reasoning": "", "statements": [one]})
    (read,) = (await ExtractionAgent(model).extract([said(1)], learning=learning)).statements
    assert (read.category, read.tags) == (Category.PRINCIPLE, ("medication", "pills"))


async def test_of_far_too_many_statements_the_first_are_taken_and_the_answer_is_full() -> None:
    """So that the turns are read in halves, and nobody is asked to write all of it again."""
    many = [statement("e1", content=f"Ada likes tea number {n}.") for n in range(500)]
    output, asked = await _read_of("I like tea.", {"reasoning": "", "statements": many})
    assert (len(output.statements), output.full, asked) == (120, True, 1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"content": ""},
        {"content": "so " * 400},
        {"sources": []},
        # Left to its default it would be said of the user, end all that they like, or hold.
        {"subject": ["Ana", "Tom"], "predicate": "lives in", "object": "Oslo"},
        {"subject": "Ana " * 100, "predicate": "lives in", "object": "Oslo"},
        {"predicate": "likes", "object": ["tea", "coffee"], "holds": False},
        {"predicate": "lives in", "object": "Oslo", "holds": "until last year"},
    ],
    ids=str,
)
async def test_a_statement_of_which_nothing_can_be_made_is_asked_for_and_then_left_out(
    wrong: dict[str, Any],
) -> None:
    """The model is told which one; in the end what was right beside it stays, and it is counted."""
    answer = {"reasoning": "", "statements": [statement("e1"), statement("e1") | wrong]}
    model, asked = scripted(*[answer] * 3)
    output = await ExtractionAgent(model).extract([said(1)])
    assert [one.content for one in output.statements] == ["Ada likes tea."]
    assert (len(asked), output.dropped_malformed) == (3, 1)
    assert "statements.2." in str(asked[1][-1])


async def test_an_answer_whose_list_has_another_name_is_not_taken_for_an_empty_one() -> None:
    """What it holds would be lost without a word: the model is asked again."""
    wrong = {"reasoning": "", "facts": [statement("e1")]}
    right = {"reasoning": "", "statements": [statement("e1")]}
    output, asked = await _read_of("I like tea.", wrong, right)
    assert (len(output.statements), asked) == (1, 2)


@pytest.mark.parametrize("broken", [0, 1])
async def test_an_answer_in_several_calls_is_read_whole(broken: int) -> None:
    """All of them are taken; where one cannot be read, all are asked for again."""
    parts = [
        {"reasoning": "", "statements": [statement("e1", content=f"Ada likes {what}.")]}
        for what in ("tea", "rain", "tea")
    ]
    asked = list[list[ModelMessage]]()

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked.append(messages)
        name = info.output_tools[0].name
        calls = [json.dumps(part) for part in parts]
        if broken and len(asked) == 1:
            calls[1] = calls[1][:-9]
        return ModelResponse(parts=[ToolCallPart(name, one) for one in calls])

    output = await ExtractionAgent(FunctionModel(answer)).extract([said(1)])
    assert [one.content for one in output.statements] == ["Ada likes tea.", "Ada likes rain."]
    assert len(asked) == 1 + broken


@pytest.mark.parametrize(
    ("put", "meant"),
    [
        ("2019", "2019-01-01"),
        ("2019-05", "2019-05-01"),
        ("2019-05-03", "2019-05-03"),
        ("20190503", None),
        ("1556841600", None),
        (2019, None),
        ("", None),
        ("null", None),
        ("in spring", None),
        ("2019-13-45", None),
    ],
)
async def test_a_date_that_a_model_puts_in_its_own_way_is_that_date_or_none(
    put: object, meant: str | None
) -> None:
    """A year is no number of seconds after 1970, and no number is a date."""
    answer = {"reasoning": "", "statements": [statement("e1", happened_at=put)]}
    output, asked = await _read_of("I have liked tea since my time in Leeds.", answer)
    at = output.statements[0].event_at
    assert (at and at.date().isoformat(), asked) == (meant, 1)


async def test_who_lives_somewhere_lives_where_they_lived() -> None:
    """A statement that names no value of what can have one takes no value's place."""
    words = "I live in a lovely place."
    one = statement("e1", **HOME | {"quotes": [words], "object": None})
    output, _ = await _read_of(words, {"reasoning": "", "statements": [one]})
    assert [(s.content, s.predicate) for s in output.statements] == [("Ada lives in Lisbon.", None)]


@pytest.mark.parametrize(
    ("words", "quote", "thing"),
    [
        ("東京に住んでいます。", "東京に住んでいます", "東京"),
        ("ฉันอยู่กรุงเทพ", "ฉันอยู่กรุงเทพ", "กรุงเทพ"),
    ],
)
async def test_what_is_said_without_spaces_has_its_slot(words: str, quote: str, thing: str) -> None:
    """So that it can be replaced by what is said later; another thing is not found in it."""
    told = [{"quotes": [quote], "object": each} for each in (thing, "大阪")]
    answer = {"reasoning": "", "statements": [statement("e1", **HOME | one) for one in told]}
    output, _ = await _read_of(words, answer)
    assert [one.object for one in output.statements] == [thing, None]


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        (HOME, (None, "2030-06-01")),
        (HOME | {"begins": True}, (None, "2030-06-01")),
        (HOME | {"predicate": "uses", "begins": True}, (None, "2030-06-01")),
        (HOME | {"predicate": "uses", "holds": False}, (None, "2030-06-01")),
        (HOME | {"predicate": "plans to"}, ("plans to", "2030-06-01")),
        (HOME | {"subject": "Fair", "predicate": "is scheduled for"}, ("is scheduled for", None)),
    ],
    ids=["home", "move", "beginning", "ending", "plan", "date"],
)
async def test_what_is_to_come_takes_no_place_before_it_is_there(
    told: dict[str, Any], kept: tuple[str | None, str | None]
) -> None:
    """Who moves in June lives until then where they live; a date that is set is set at once."""
    words = "I live in Lisbon from 1 June 2030."
    one = statement("e1", **told, happened_at="2030-06-01T00:00:00Z")
    output, _ = await _read_of(words, {"reasoning": "", "statements": [one]})
    (read,) = output.statements
    at = read.event_at and read.event_at.date().isoformat()
    assert (read.predicate, at, read.holds) == (*kept, True)


async def test_long_turns_are_shown_again_by_their_ends_only() -> None:
    """What was read and paid for once costs little where it stands before the next turns."""
    long = said(1).model_copy(
        update={"content": "Dear diary, " + "so it went. " * 9000 + "The end."}
    )
    model, asked = scripted({"reasoning": "", "statements": []})
    await ExtractionAgent(model).extract([said(2)], before=[long])
    request = read_prompt(user_prompt(asked[0]))
    assert isinstance(request, ExtractionRequest)
    (before,) = request.before
    assert (before.content[:11], before.content[-8:]) == ("Dear diary,", "The end.")
    assert len(before.content) < 2100


@pytest.mark.parametrize(
    ("quote", "meant"),
    [
        ("I live in Lisbon", [2]),
        ("we live in Lisbon", [1]),
        ("Lisbon", [1]),
        ("Lisbon has a river", []),
    ],
    ids=["another turn", "no turn", "a word of several", "what the assistant said"],
)
async def test_words_that_stand_in_one_turn_alone_say_which_was_meant(
    quote: str, meant: list[int]
) -> None:
    """A model that miscounts turns does not make another one the source of what was said."""
    told = ["I like tea.", "I live in Lisbon.", "Lisbon has a river.", "Back to Lisbon!"]
    turns = [said(n).model_copy(update={"content": text}) for n, text in enumerate(told, 1)]
    turns[2] = turns[2].model_copy(update={"role": "assistant"})
    one = statement("e1", **HOME | {"quotes": [quote]})
    model, _ = scripted(*[{"reasoning": "", "statements": [one]}] * 2)
    read = (await ExtractionAgent(model).extract(turns)).statements
    assert [one.episode_ids for one in read] == [(turns[n - 1].id,) for n in meant]
    assert all((one.predicate == "lives in") is (meant == [2]) for one in read)


@pytest.mark.parametrize("where", ["Lisbon", "Oslo"])
async def test_what_a_model_says_to_hold_alongside_needs_the_words_of_the_turn(where: str) -> None:
    """A second home stands beside the first where its words are there, and only then."""
    words = "I live in Lisbon as well."
    one = statement("e1", **HOME | {"object": where, "alongside": True})
    output, _ = await _read_of(words, {"reasoning": "", "statements": [one]})
    assert [one.alongside for one in output.statements] == [where in words]


@pytest.mark.parametrize(
    ("words", "quote", "evidence"),
    [
        ("I have a cat.", "a", ()),
        ("I have a cat.", "I have", ()),
        ("I ordered the catering.", "cat", ()),
        ("I have a cat.", "cat", ("cat",)),
        ("I do.", "I do", ("I do",)),
        ("I did, in May.", "I did", ("I did",)),
        ("I have to go, in May.", "I have", ()),
        ("Yes.", "yes", ("Yes",)),
        ("我住在东京。", "东京", ("东京",)),
    ],
)
async def test_what_stands_in_any_turn_is_no_evidence(
    words: str, quote: str, evidence: tuple[str, ...]
) -> None:
    """A letter, small words alone and a part of a word show nothing; a whole turn does."""
    told = {"reasoning": "", "statements": [statement("e1", content="So it is.", quotes=[quote])]}
    output, _ = await _read_of(words, told, told)
    assert [tuple(q.words for q in one.evidence) for one in output.statements] == [evidence]


@pytest.mark.parametrize(
    ("words", "quote", "thing", "slot"),
    [
        ("I use R and Python.", "R", "R", ("uses", "R")),
        ("I use r and Python.", "R", "R", (None, None)),
        ("I use R and Python.", "R", "Ruby", (None, None)),
        ("I use a lot of Python.", "a", "a", (None, None)),
    ],
)
async def test_one_letter_is_evidence_where_it_is_a_name(
    words: str, quote: str, thing: str, slot: tuple[str | None, str | None]
) -> None:
    """In upper case, of what is stated: there is a language of that name."""
    one = statement("e1", subject="user", predicate="uses", object=thing, quotes=[quote])
    told = {"reasoning": "", "statements": [one]}
    output, _ = await _read_of(words, told, told)
    assert [(one.predicate, one.object) for one in output.statements] == [slot]
