"""Forgetting beside other writers: nothing forgotten comes back, and nothing more goes."""

from __future__ import annotations

from uuid import uuid4

import pytest

from engram.consolidation.amendments import FIRST_KEPT, LATEST_KEPT, folded
from engram.consolidation.apply import PlanWriter
from engram.consolidation.forgetting import Forgetter
from engram.domain.identity import derived_id
from engram.domain.memories import (
    Episode,
    Evidence,
    MemoryStatus,
    MemoryType,
    ProceduralMemory,
    SemanticMemory,
)
from engram.domain.plan import ConsolidationPlan, StoreNote, Supersession, UpdateNote
from engram.ports import MemoryRepository
from tests.support.conclusions import EMBEDDER, SAID, SCOPE, keep, statement, turn

_ENDED = {"status": MemoryStatus.SUPERSEDED, "valid_to": SAID, "superseded_known_at": SAID}


def new_write_id() -> str:
    """A value that no other write has."""
    return uuid4().hex


async def test_two_turns_forgotten_at_once_take_what_both_supported(
    repository: MemoryRepository,
) -> None:
    """Each run thinks the other turn stays; what is left without a source goes all the same."""
    one, two = turn("one"), turn("two")
    shared = statement("The user is ill.", one, two)
    await keep(repository, [one, two, shared])
    forgetter = Forgetter(repository, new_write_id)
    plans = [await forgetter.plan(SCOPE, gone.id) for gone in (one, two)]
    for plan in plans:
        await forgetter.apply(SCOPE, plan)
    assert await repository.get(SCOPE, [one.id, two.id, shared.id]) == {}


async def test_what_gained_a_source_meanwhile_stays(repository: MemoryRepository) -> None:
    """A conclusion that another turn confirmed after the plan was made is not deleted with it."""
    one, two = turn("one"), turn("two")
    known = statement("The user is well.", one)
    await keep(repository, [one, two, known])
    forgetter, writer = Forgetter(repository, new_write_id), _writer(repository)
    plan = await forgetter.plan(SCOPE, one.id)
    confirming = UpdateNote(why="said again", memory_id=known.id, add_sources=(two.id,))
    await writer.write(SCOPE, ConsolidationPlan(actions=(confirming,)))
    await forgetter.apply(SCOPE, plan)
    left = (await repository.get(SCOPE, [one.id, known.id]))[known.id]
    assert isinstance(left, SemanticMemory)
    assert left.source_episode_ids == (two.id,)


async def test_a_plan_written_after_forgetting_brings_nothing_back(
    repository: MemoryRepository,
) -> None:
    """New memories whose turns are gone are not stored, and replace nothing."""
    one, two = turn("one"), turn("two")
    before = statement("The user lives in Paris.", one)
    after = statement("The user lives in London.", two)
    await keep(repository, [one, two, before])
    ending = Supersession(superseded_by=after.id, valid_to=SAID, superseded_known_at=SAID)
    plan = ConsolidationPlan(
        actions=(
            StoreNote(why="moved", memory=after),
            UpdateNote(why="moved", memory_id=before.id, supersession=ending),
        )
    )
    forgetter, writer = Forgetter(repository, new_write_id), _writer(repository)
    await forgetter.apply(SCOPE, await forgetter.plan(SCOPE, two.id))
    assert (await writer.write(SCOPE, plan)).stored == ()
    await writer.retire(SCOPE, plan)
    found = await repository.get(SCOPE, [before.id, after.id])
    assert found.keys() == {before.id}
    assert found[before.id].status is MemoryStatus.ACTIVE


async def test_what_was_merged_into_a_forgotten_conclusion_goes_with_it(
    repository: MemoryRepository,
) -> None:
    """Doubles of it say the same words, and doubles of those; what it replaced holds again."""
    one, two, three = turn("one"), turn("two"), turn("three")
    kept = statement("The user has asthma.", one, two, three)
    double = statement("The user suffers from asthma.", two)
    again = statement("Asthma troubles the user.", three)
    before = statement("The user is well.", one)
    merged = [
        memory.model_copy(update={"duplicate_of": into, "superseded_by": into, **_ENDED})
        for memory, into in ((double, kept.id), (again, double.id))
    ]
    # Merged into what was merged: the sources are those of the last in the row.
    merged[0] = merged[0].model_copy(update={"source_episode_ids": (two.id, three.id)})
    replaced = before.model_copy(update={"superseded_by": kept.id, **_ENDED})
    await keep(repository, [one, two, three, kept, *merged, replaced])
    forgetter = Forgetter(repository, new_write_id)
    await forgetter.apply(SCOPE, await forgetter.plan(SCOPE, kept.id))
    left = await repository.get(SCOPE, [kept.id, double.id, again.id, before.id])
    assert left.keys() == {before.id}
    assert left[before.id].status is MemoryStatus.ACTIVE


@pytest.mark.parametrize(("said", "goes"), [("I said one.", False), ("Only on Sundays.", True)])
async def test_a_habit_with_words_of_the_forgotten_turn_goes(
    repository: MemoryRepository, said: str, goes: bool
) -> None:
    """One of two sources is forgotten: the habit stays only if the other one says all of it."""
    one, two = turn("one"), turn("two")
    one = one.model_copy(update={"content": f"I row on Sundays. {said}"})
    two = two.model_copy(update={"content": "Sundays I row." if not goes else "I row at dawn."})
    basis = statement("The user rows.", one, two)
    fields = basis.model_dump(include=set(ProceduralMemory.model_fields), exclude={"type"})
    habit = ProceduralMemory.model_validate(
        fields
        | {
            "id": derived_id(SCOPE, MemoryType.PROCEDURAL, "rows", 0),
            "content": "The user rows on Sundays.",
            "trigger_context": "",
        }
    )
    await keep(repository, [one, two, basis, habit])
    forgetter = Forgetter(repository, new_write_id)
    await forgetter.apply(SCOPE, await forgetter.plan(SCOPE, one.id))
    left = await repository.get(SCOPE, [basis.id, habit.id])
    assert left.keys() == ({basis.id} if goes else {basis.id, habit.id})


async def test_what_was_drawn_between_looking_and_deleting_is_found_by_looking_again(
    repository: MemoryRepository,
) -> None:
    """A pass stores a conclusion when it is settled already what goes with the turn."""
    one, two = turn("Zenobia"), turn("two")
    await keep(repository, [one, two])
    late = statement("The user knows Zenobia.", one)
    late = late.model_copy(update={"evidence": (Evidence(episode_id=one.id, words="Zenobia"),)})
    forgetter, writer = Forgetter(repository, new_write_id), _writer(repository)
    plan = await forgetter.plan(SCOPE, one.id)
    note = StoreNote(why="said", memory=late)
    assert (await writer.write(SCOPE, ConsolidationPlan(actions=(note,)))).stored
    await forgetter.apply(SCOPE, plan)
    further = await forgetter.look_again(SCOPE, plan)
    assert further.ids == {late.id}
    await forgetter.apply(SCOPE, further)
    assert not (await forgetter.look_again(SCOPE, plan.plus(further))).ids
    assert (await repository.get(SCOPE, [one.id, two.id, late.id])).keys() == {two.id}


async def test_a_plan_that_read_a_forgotten_turn_among_others_keeps_none_of_its_words(
    repository: MemoryRepository,
) -> None:
    """What rests on it and on another turn is not stored; the other turn is read again."""
    one, two = turn("one"), turn("Zenobia")
    await keep(repository, [one, two])
    known = statement("The user is well.", one)
    await keep(repository, [known])
    quote = Evidence(episode_id=two.id, words="I said Zenobia.")
    both = statement("The user knows Zenobia.", one, two).model_copy(update={"evidence": (quote,)})
    plan = ConsolidationPlan(
        actions=(
            StoreNote(why="said", memory=both),
            UpdateNote(
                why="again", memory_id=known.id, add_sources=(two.id,), add_evidence=(quote,)
            ),
        )
    )
    forgetter, writer = Forgetter(repository, new_write_id), _writer(repository)
    await forgetter.apply(SCOPE, await forgetter.plan(SCOPE, two.id))
    written = await writer.write(SCOPE, plan)
    assert (written.stored, written.reread) == ((), (one.id,))
    left = await repository.get(SCOPE, [both.id, known.id])
    assert left.keys() == {known.id}
    assert "Zenobia" not in left[known.id].model_dump_json()
    assert two.id not in left[known.id].model_dump_json()


async def test_a_statement_in_words_of_the_forgotten_turn_goes_and_the_other_is_read_again(
    repository: MemoryRepository,
) -> None:
    """Two turns support it, and one of them gave it its words."""
    one, two = turn("one"), turn("Zenobia")
    read = {"consolidated_at": SAID}
    both = statement("The user has met Zenobia.", one, two)
    await keep(repository, [one.model_copy(update=read), two.model_copy(update=read), both])
    forgetter = Forgetter(repository, new_write_id)
    await forgetter.apply(SCOPE, await forgetter.plan(SCOPE, two.id))
    left = await repository.get(SCOPE, [one.id, two.id, both.id])
    assert left.keys() == {one.id}
    again = left[one.id]
    assert isinstance(again, Episode)
    assert again.consolidated_at is None


def test_a_quotation_goes_with_the_source_that_is_folded() -> None:
    """Past the bound of sources nothing is quoted that forgetting could not find."""
    turns = [turn(f"number {n}") for n in range(FIRST_KEPT + LATEST_KEPT + 6)]
    quotes = tuple(Evidence(episode_id=t.id, words=t.content) for t in turns[10:26])
    many = statement("The user counts.", *turns).model_copy(update={"evidence": quotes})
    few = folded(many)
    assert len(few.source_episode_ids) == FIRST_KEPT + LATEST_KEPT
    assert {quote.episode_id for quote in few.evidence} <= set(few.source_episode_ids)
    assert few.evidence


def _writer(repository: MemoryRepository) -> PlanWriter:
    return PlanWriter(repository, EMBEDDER, new_write_id)
