"""Measuring, comparing and fitting: on a memory of its own, with questions that tell."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from engram.domain.memories import AnyMemory, Slot
from engram.domain.rules import RankingWeights
from engram.domain.scope import Scope
from engram.domain.turns import Turn
from engram.errors import InvalidInput
from engram.evaluation import measuring
from engram.evaluation.answering import Examiner
from engram.evaluation.measuring import (
    AskedQuestion,
    RankedAnswer,
    bring_up,
    compare,
    counted,
    fit,
    measure,
)
from engram.evaluation.memories import MeasuredMemory, measured_memory
from engram.evaluation.questions import ENTITY, SLOT, exported_talk, shared_words
from engram.evaluation.report import Measured, markdown, picture
from engram.evaluation.sets import MISLEADING, load
from engram.evaluation.talks import Talk, TalkQuestion
from engram.settings import Settings
from engram.system import new_id, seeded_draw
from tests.support.exports import export_lines
from tests.support.recall_memories import day, episode, semantic

TALK = Path(__file__).parents[2] / "data" / "conversations.json"
NOW = datetime(2026, 6, 1, tzinfo=UTC)
DRAW = seeded_draw(1)


def unseen(_: int) -> None:
    """Nobody watches."""


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[MeasuredMemory]:
    """An empty memory."""
    async with measured_memory(
        tmp_path, Settings.load(), clock=lambda: NOW, new_id=new_id
    ) as opened:
        yield opened


@pytest.fixture
async def talks(memory: MeasuredMemory) -> list[Talk]:
    """A talk that is kept."""
    found = load(TALK)
    for talk in found:
        await memory.keep(talk)
    return found


async def test_every_question_is_answered_in_order(
    memory: MeasuredMemory, talks: list[Talk]
) -> None:
    """All turns of the talk come back ranked, and progress counts each question."""
    done: list[int] = []
    answers = await measure(memory, talks, Settings.load(), done.append)
    assert done == [1, 2, 3, 4]
    assert [len(one.ranking) for one in answers] == [7, 7, 7, 7]
    assert sum(one.found for one in counted(answers)) / 3 >= 0.8


@pytest.mark.parametrize(
    "wrong",
    [{"content": " "}, {"content": "x" * 40_000}, {"message_id": "3"}, {"timestamp": None}],
    ids=["empty", "too long", "an id twice", "no time"],
)
async def test_a_turn_that_cannot_be_kept_is_no_figure(
    memory: MeasuredMemory, wrong: dict[str, Any]
) -> None:
    """It is refused with its place: left out in silence, it would take those beside it along."""
    turns = [Turn(content=f"I keep {n} bees.", message_id=str(n), timestamp=NOW) for n in range(12)]
    turns[10] = turns[10].model_copy(update=wrong)
    talk = Talk.of("Ada Lövel", {"first": turns[:1], "a talk / of May": turns}, [])
    with pytest.raises(InvalidInput, match="Turn 11 of session 2 of Ada-L-vel") as refused:
        await memory.keep(talk)
    assert "bees" not in str(refused.value)


async def test_an_order_that_is_only_scored_is_that_of_recall(
    memory: MeasuredMemory, talks: list[Talk]
) -> None:
    """What a fit tries is what recall would answer."""
    settings = Settings.load()
    answers = await measure(memory, talks, settings, unseen)
    asked = await bring_up(memory, talks, settings, unseen)
    assert [one.ranking(settings) for one in asked] == [one.ranking for one in answers]


async def test_a_fit_finds_what_helps_and_refuses_too_few(
    memory: MeasuredMemory, talks: list[Talk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From weights that order by the wrong side it comes back; 99 questions are not enough."""
    wrong = Settings.load(recall_weights=RankingWeights(sparse=0.1, asking=30))
    asked = await bring_up(memory, talks, wrong, unseen)
    usable = [one for one in asked if one.question.kind != MISLEADING]
    many = (usable * 40)[:100]
    # Fewer steps than a user's questions deserve.
    monkeypatch.setattr(measuring, "_STEPS", (0.5, 2.0))
    found = fit(many, wrong, DRAW)
    assert found.questions == 100
    assert found.gain.first.mean >= 0.0
    assert mean_rank(many, wrong.model_copy(update={"recall_weights": found.weights})) >= mean_rank(
        many, wrong
    )
    with pytest.raises(InvalidInput, match="99 questions"):
        fit(many[:99], wrong, DRAW)


def mean_rank(asked: list[AskedQuestion], settings: Settings) -> float:
    """Mean of 1 / rank of the first evidence."""
    return sum(one.answer(settings).first for one in asked) / len(asked)


def answered(*places: int) -> list[RankedAnswer]:
    """Answers in which the evidence stands at these places, counted from 1."""
    return [
        RankedAnswer(TalkQuestion("?", ("x",), "kind"), (*(f"n{n}" for n in range(1, place)), "x"))
        for place in places
    ]


def test_a_comparison_says_what_is_noise() -> None:
    """Better everywhere is a gain, the same is no difference, one question of many is noise."""
    low, high = answered(*[15] * 30), answered(*[1] * 30)
    assert compare(low, high, DRAW).found.is_gain
    assert compare(high, low, DRAW).first.is_loss
    same = compare(low, low, DRAW)
    assert (same.found.mean, same.found.is_gain, same.found.is_loss) == (0.0, False, False)
    assert not compare(low, [*low[:-1], *answered(1)], DRAW).found.is_gain


def test_a_report_has_figures_difference_and_picture() -> None:
    """A table by kind, the verdict in words, bars for both, and nothing that breaks the markup."""
    low, high = answered(*[15] * 30), answered(*[1] * 30)
    one = Measured("a <b> & c", low, high, compare(low, high, DRAW), shared_words=0.25)
    page = markdown([one], {"ENGRAM_RECALL_POOL": "64"})
    assert "| all | 30 | 0.000 | 0.000 | 0.000 | 1.000 | 0.067 |" in page
    assert "- R@10: +1.000 [+1.000, +1.000]: better" in page
    assert "`ENGRAM_RECALL_POOL=64`" in page
    assert "25% of their words" in page
    drawn = picture([one])
    assert drawn.count("<rect") == 2
    assert "a &lt;b&gt; &amp; c" in drawn


# --- questions from an export


def exported(path: Path) -> Path:
    """An export with two turns, and two conclusions of which one was replaced."""
    turns = [episode("I moved to Porto.", 1), episode("Mia and I went climbing.", 2)]
    home = semantic(
        "The user lives in Porto.",
        3,
        source_episode_ids=(turns[0].id,),
        slot=Slot(subject="user", predicate="resides in", object="Porto"),
    )
    mia = semantic(
        "The user climbs with Mia.", 3, source_episode_ids=(turns[1].id,), entities=("Mia",)
    )
    old = semantic(
        "The user lives in Faro.",
        2,
        source_episode_ids=(turns[0].id,),
        slot=Slot(subject="user", predicate="resides in", object="Faro"),
        superseded_by=home.id,
        status="superseded",
    )
    memories: list[AnyMemory] = [*turns, old, home, mia]
    lines = export_lines(Scope.of(home.namespace, home.user_id), memories)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_an_export_asks_for_what_was_concluded(tmp_path: Path) -> None:
    """A value by its predicate, a name by itself; the turns that say so are the evidence."""
    file = exported(tmp_path / "ada.jsonl")
    (talk,) = load(file)
    assert talk == exported_talk(file)
    assert {(one.text, one.kind) for one in talk.questions} == {
        ("What is it that the user resides in?", SLOT),
        ("What was said about Mia?", ENTITY),
    }
    said = {turn.message_id: turn.content for one in talk.sessions for turn in one.turns}
    told = {one.kind: [said[turn] for turn in one.evidence] for one in talk.questions}
    assert told == {SLOT: ["I moved to Porto."], ENTITY: ["Mia and I went climbing."]}
    assert 0.0 < shared_words([talk]) < 1.0


# --- models that answer and judge


def answering(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Says the first line of what it was given."""
    given = str(messages[-1].parts[-1].content)  # type: ignore[union-attr]  # a prompt
    assert "Porto" in given
    return ModelResponse(parts=[TextPart("In Porto.")])


def judging(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Right where the right answer stands in the given one."""
    given = json.loads(str(messages[-1].parts[-1].content))  # type: ignore[union-attr]  # a prompt
    right = given["right_answer"] in given["given_answer"]
    return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, {"right": right})])


async def test_a_model_answers_and_another_judges(memory: MeasuredMemory) -> None:
    """Answers come from the context, right ones are counted, and both models are charged."""
    turn = Turn(content="I moved to Porto.", timestamp=day(1), message_id="t1")
    asked = [
        TalkQuestion("Where do I live?", ("t1",), "home", answer="Porto"),
        TalkQuestion("Where did I move?", ("t1",), "home", answer="Lisbon"),
        TalkQuestion("Where now?", ("t1",), "home"),
    ]
    talk = Talk.of("ada", {"s": [turn]}, asked)
    await memory.keep(talk)
    examiner = Examiner(FunctionModel(answering), FunctionModel(judging), tokens=500)
    found = await examiner.examine(memory, [talk], Settings.load(), unseen, most=10)
    assert (found.questions, found.right, found.without_answer) == (2, 1, 1)
    assert sum(one.requests for one in found.spent) == 4
    bare = Talk.of("ada", {"s": [turn]}, talk.questions[2:])
    with pytest.raises(InvalidInput, match="No question"):
        await examiner.examine(memory, [bare], Settings.load(), unseen, most=10)
