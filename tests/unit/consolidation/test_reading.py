"""Quotations are checked, recalled memories are no news, and context is no testimony."""

from __future__ import annotations

from typing import Any

import pytest

from engram.agents.extraction import ExtractionAgent
from engram.agents.requests import ExtractionRequest, read_prompt
from engram.domain.memories import Episode, Evidence, MemoryKind
from engram.domain.turns import context_block
from tests.support.reconciliation import said
from tests.support.scripted_model import scripted, statement, user_prompt


def turn(content: str, day: int = 1, **more: Any) -> Episode:
    """A turn with that content."""
    return said(day).model_copy(update={"content": content, **more})


def answer(*statements: dict[str, Any]) -> dict[str, Any]:
    """An answer with these statements."""
    return {"reasoning": "", "statements": list(statements)}


async def test_quotations_that_stand_in_their_source_are_evidence() -> None:
    """Letter by letter but for white space; the statement names the turn it found them in."""
    first, second = turn("Well, I  like tea."), turn("Truly!", 2)
    model, _ = scripted(answer(statement("e1", "e2", quotes=["I like tea"], tags=["Drinks", " "])))
    output = await ExtractionAgent(model).extract([first, second])
    (read,) = output.statements
    assert read.evidence == (Evidence(episode_id=first.id, words="I like tea"),)
    assert read.tags == ("drinks",)
    assert output.dropped_quotes == 0


async def test_a_misquotation_goes_back_once_then_is_dropped_and_counted() -> None:
    """What is rightly quoted beside it stays; the statement stays, as inferred."""
    wrong = statement("e1", quotes=["I love tea", "like"])
    model, asked = scripted(answer(wrong), answer(wrong))
    output = await ExtractionAgent(model).extract([turn("I like tea.")])
    assert len(asked) == 2
    assert "love" not in str(asked[1][-1])
    assert [e.words for e in output.statements[0].evidence] == ["like"]
    assert output.dropped_quotes == 1


async def test_recalled_memories_are_neither_shown_nor_evidence() -> None:
    """A turn that is nothing else is not shown at all."""
    block = context_block(["The user lives in Rome."])
    model, asked = scripted(
        answer(statement("e1", quotes=["The user lives in Rome."])),
        answer(statement("e1", quotes=["The user lives in Rome."])),
    )
    output = await ExtractionAgent(model).extract([turn(f"{block} Hello."), turn(block, 2)])
    request = read_prompt(user_prompt(asked[0]))
    assert isinstance(request, ExtractionRequest)
    assert [t.content.strip() for t in request.turns] == ["Hello."]
    assert output.statements[0].evidence == ()
    assert output.dropped_quotes == 1


async def test_turns_of_nothing_but_recalled_memories_ask_no_model() -> None:
    """There is nothing to read, and nothing is paid for it."""
    model, asked = scripted()
    output = await ExtractionAgent(model).extract([turn(context_block(["a"]))])
    assert (asked, output.statements, output.use) == ([], (), None)


@pytest.mark.parametrize(
    ("role", "speaker", "kept"),
    [
        ("user", None, True),
        ("assistant", None, False),
        ("assistant", "Support Bot", False),
        ("assistant", "Melanie", False),
        ("tool", "Melanie", False),
        ("system", None, False),
    ],
)
async def test_only_people_testify(role: str, speaker: str | None, *, kept: bool) -> None:
    """What an assistant, a tool or the system says is context; dropped alone, and counted."""
    model, _ = scripted(answer(statement("e1")))
    output = await ExtractionAgent(model).extract([turn("Tea!", role=role, speaker=speaker)])
    assert bool(output.statements) is kept
    assert output.dropped_unattested == int(not kept)


async def test_a_turn_that_confirms_is_the_source_and_its_context_is_not() -> None:
    """The assistant asks, the user says yes: one source, one witness."""
    asked_by, confirmed = turn("Do you like tea?", role="assistant"), turn("Yes!", 2)
    model, _ = scripted(answer(statement("e1", "e2", quotes=["Do you like tea?", "Yes!"])))
    output = await ExtractionAgent(model).extract([asked_by, confirmed])
    (read,) = output.statements
    assert read.episode_ids == (confirmed.id,)
    assert [e.words for e in read.evidence] == ["Yes!"]


async def test_the_kind_follows_the_words_that_were_said() -> None:
    """The quotation says when, even where the sentence made of it does not."""
    told = statement("e1", quotes=["yesterday I drank tea"], content="Ada drank tea.")
    model, _ = scripted(answer(told, statement("e1")))
    output = await ExtractionAgent(model).extract([turn("Well, yesterday I drank tea.")])
    assert [s.kind for s in output.statements] == [MemoryKind.EPISODE, MemoryKind.NOTE]
