"""How many forms a stored turn takes on its way to a conclusion.

Counted is each class of Engram of which a value that holds the turn's words, or its id, is
handed from one step to the next: selecting, asking, answering, reading, taking up, deciding,
storing. Parts of others count for themselves. What a step makes and keeps to itself is not
counted, nor what led to the stored turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from engram.agents.requests import ExtractionAnswer, read_prompt
from engram.consolidation.apply import PlanWriter
from engram.contracts.consolidation import ConsolidateTurnsInput, ExtractInput
from engram.domain.memories import MemoryType
from tests.support.edge_stores import borrowed_store
from tests.support.in_process_memory import InProcessMemory, run, when
from tests.support.scripted_model import scripted, statement, user_prompt

TOLD = "I collect Quxware."
NOW = when(1)
FORMS = {
    "which turns, as ids": {"SelectDueOutput", "EpisodeBatch", "ExtractInput"},
    "what a model is asked, and answers: aliases that nobody has checked": {
        *("ExtractionRequest", "TurnView"),
        *("ExtractionAnswer", "StatedKnowledge"),
    },
    "what the turns state: checked, with ids": {"Statement", "Evidence", "ExtractOutput"},
    "what is asked of the store": {"ConsolidateTurnsInput"},
    "what is decided, and stored": {"ConsolidationPlan", "StoreNote", "SemanticMemory"},
}
OF_WHAT_CAN_CHANGE = {"Slot", "Telling"}


def forms_of(value: object, marks: Iterable[str]) -> tuple[bool, set[str]]:
    """Whether a value holds one of the marks, and the classes of all in it that do."""
    parts: Iterable[object] = ()
    match value:
        case str():
            return any(mark in value.casefold() for mark in marks), set()
        case BaseModel():
            parts = [part for _, part in value]
        case Mapping():
            parts = [*value.keys(), *value.values()]
        case tuple() | list():
            parts = value
    found = [forms_of(part, marks) for part in parts]
    holds = any(held for held, _ in found)
    names = {name for _, further in found for name in further}
    if holds and isinstance(value, BaseModel):
        names.add(type(value).__name__)
    return holds, names


@pytest.mark.parametrize(
    ("of_its_slot", "further"),
    [
        ({}, set[str]()),
        (
            {"subject": "user", "predicate": "collects", "object": "Quxware"},
            OF_WHAT_CAN_CHANGE,
        ),
    ],
    ids=["a statement", "of what can change"],
)
async def test_a_turn_takes_fourteen_forms_to_a_conclusion(
    monkeypatch: pytest.MonkeyPatch, of_its_slot: dict[str, str], further: set[str]
) -> None:
    """No form is handed on but these; one more, or one that is gone, is noticed here."""
    said = {"content": "The user collects Quxware.", "quotes": [TOLD], **of_its_slot}
    stated = {"reasoning": "said", "statements": [statement("e1", **said)]}
    model, asked = scripted(stated)
    handed: list[Any] = []
    apply = PlanWriter.apply

    async def applied(writer: PlanWriter, scope: Any, plan: Any) -> Any:
        handed.append(plan)
        return await apply(writer, scope, plan)

    monkeypatch.setattr(PlanWriter, "apply", applied)
    async with borrowed_store() as repository:
        memory = InProcessMemory(repository, model)
        scope = memory.somebody()
        (turn,) = await memory.hear(scope, [TOLD])
        due = await run(memory.storing.select_due, memory.selecting(scope, NOW))
        (batch,) = due.batches
        reading = ExtractInput(scope=scope, now=NOW, episode_ids=batch.episode_ids)
        read = await run(memory.thinking.extract, reading)
        parts = (read.of(batch.episode_ids),)
        step = ConsolidateTurnsInput(scope=scope, now=NOW, parts=parts, workflow_id="w", run_id="r")
        await run(memory.storing.consolidate_turns, step)
        page = await repository.scroll(scope, MemoryType.SEMANTIC)
    talk = read_prompt(user_prompt(asked[0])), ExtractionAnswer.model_validate(stated)
    handed += [due, reading, *talk, read, step, *page.memories]
    _, names = forms_of(handed, (turn, "quxware"))
    assert len(page.memories) == 1
    assert names - further == set().union(*FORMS.values())
    assert names >= further
    assert sum(map(len, FORMS.values())) == 14
