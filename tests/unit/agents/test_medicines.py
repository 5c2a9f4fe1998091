"""Medicines: each by its name with its dose, another dose in its place, and their end."""

from __future__ import annotations

import pytest

from engram.domain.memories import SemanticMemory
from engram.language.statements.medicines import Medicine, medicine_in
from tests.support.slot_labels import a_turn_a_day, told

_TAKEN = {
    "I take metformin 500 mg twice a day.": ["metformin 500 mg twice a day"],
    "I take metformin for diabetes": ["metformin"],
    "I'm on 75 mcg of levothyroxine": ["75 mcg of levothyroxine"],
    "I take 500 mg metformin and 5 mg ramipril": ["500 mg metformin", "5 mg ramipril"],
    "I take ramipril and losartan every morning": ["ramipril", "losartan every morning"],
    "I take 75 mcg Euthyrox every morning": ["75 mcg euthyrox every morning"],
    "I take metformin 500 mg in the morning and 1000 mg at night": [
        "metformin 500 mg in the morning and 1000 mg at night"
    ],
    "they put me on metformin SR 1000mg once a day instead": ["metformin sr 1000mg once a day"],
    "I started taking sertraline 50 mg": ["sertraline 50 mg"],
    "I've been taking sertraline 50 mg since May": ["sertraline 50 mg"],
    "I switched from ramipril to losartan": ["losartan"],
    "My doctor changed me from ramipril to losartan.": ["losartan"],
}
_NOT_TAKEN = [
    "I take ibuprofen when my back hurts",
    "I take ibuprofen if it gets bad",
    "I take ibuprofen as needed",
    "If I take ramipril I cough.",
    "Should I take ibuprofen?",
    "Did they put me on metformin?",
    "If they put me on statins I'll refuse.",
    "They want to put me on statins.",
    "They might switch me to losartan.",
    "They never put me on statins.",
    "My mum takes ramipril.",
    "I took ibuprofen 400 mg yesterday",
    "I take 500 g flour and 2 eggs.",
    "I take 200 ml milk and 10 g salt.",
    "I take the bus every morning.",
    "I take notes twice a day.",
    "I take part in April.",
    "I'm on holiday until May.",
    "I'm on the train.",
    "The doctor put me on a diet.",
    "They put me on hold.",
    "He put me on the list.",
    "She switched me to the other queue.",
    "I started on the report.",
]
_OVER = [
    ("I take ramipril.", "came off ramipril last week"),
    ("I take ramipril.", "I came off the ramipril."),
    ("I take ramipril.", "doc switched me from ramipril to losartan"),
    ("I take ramipril.", "I switched from ramipril to losartan."),
    ("I take ramipril.", "I've stopped taking ramipril."),
    ("I take ramipril.", "I don't take ramipril any more."),
    ("I take ramipril.", "I was taken off ramipril in May."),
    ("I take amoxicillin 500 mg.", "I finished the amoxicillin yesterday."),
    ("I take metformin 500 mg twice a day.", "I came off metformin."),
    ("I take metformin 500 mg twice a day.", "I no longer take metformin."),
    ("I take metformin 500 mg twice a day.", "I take metformin 1000 mg twice a day now."),
    ("I take metformin 500 mg twice a day.", "I take metformin 1000 mg twice a day."),
    ("I take metformin 500 mg twice a day.", "They put me on metformin 1000 mg once a day."),
    ("I take sertraline 50 mg.", "They upped it, I take sertraline 100 mg."),
]
_GOES_ON = [
    ("I take metformin 500 mg in the morning.", "I take metformin 1000 mg at night."),
    ("I take metformin 500 mg.", "I take metformin every morning."),
    ("I take metformin.", "They put me on metformin SR 1000 mg once a day instead."),
    ("I take metformin 500 mg.", "I take ramipril 5 mg now."),
    ("I take ramipril.", "I came off the losartan."),
    ("I take ramipril.", "I'm off ramipril for the weekend."),
    ("I take ramipril.", "I want to come off ramipril."),
    ("I take ramipril.", "Should I come off ramipril?"),
    ("I take ramipril.", "They want to switch me from ramipril to losartan."),
    ("I take ramipril.", "My mum came off ramipril."),
    ("I take ramipril.", "I took ramipril two hours ago."),
    ("I take ramipril.", "I forgot the ramipril yesterday."),
]


def _taken(*said: str) -> list[SemanticMemory]:
    known = told(a_turn_a_day(*said)).known.values()
    found = [one for one in known if one.slot is not None and one.slot.predicate == "takes"]
    return sorted(found, key=lambda one: one.known_at)


@pytest.mark.parametrize("said", sorted(_TAKEN))
def test_each_medicine_is_known_by_its_name_and_dose(said: str) -> None:
    """As it is told: before the name or behind it, several at once, in whatever words."""
    found = {one.slot.object for one in _taken(said) if one.slot is not None}
    assert found == set(_TAKEN[said])


@pytest.mark.parametrize("said", _NOT_TAKEN)
def test_what_is_no_medicine_or_not_taken_as_a_rule_is_none(said: str) -> None:
    """Recipes, journeys, conditions, questions, what others take, and what was taken once."""
    assert _taken(said) == []


@pytest.mark.parametrize(("before", "after"), _OVER)
def test_a_medicine_ends_by_its_name_or_with_another_dose(before: str, after: str) -> None:
    """Whoever comes off it takes no dose of it, and the newest dose of one is what is taken."""
    first, *_ = _taken(before, after)
    assert first.superseded_by is not None


@pytest.mark.parametrize(("before", "after"), _GOES_ON)
def test_a_medicine_goes_on_where_nothing_takes_its_place(before: str, after: str) -> None:
    """Another one, another time of the day, a wish, a question, a weekend, somebody else."""
    first, *_ = _taken(before, after)
    assert first.superseded_by is None


def test_a_dose_is_told_apart_from_name_and_times() -> None:
    """However it is written; what is no medicine is none."""
    assert medicine_in("metformin 500 mg twice a day") == Medicine(
        "metformin", "500mg", "twice a day"
    )
    assert medicine_in("500mg of metformin twice a day") == Medicine(
        "metformin", "500mg", "twice a day"
    )
    assert medicine_in("the bus") is None


@pytest.mark.parametrize(
    ("said", "weighs"),
    [
        ("I weigh 84.8 now.", "84.8"),
        ("I weigh 84.8 today", "84.8"),
        ("I weigh about 85 at the moment.", "85"),
        ("I weigh 20 options before lunch.", None),
        ("I weigh 100 g of flour.", None),
        ("I'm at 84.8 now.", None),
    ],
)
def test_a_weight_needs_no_unit_where_it_is_weighed(said: str, weighs: str | None) -> None:
    """Nor is anything else one, and the newest takes the older one's place."""
    known = told(a_turn_a_day("I weigh 86.4 kg.", said)).known.values()
    of_weight = [one for one in known if one.slot is not None and one.slot.predicate == "weighs"]
    now = {one.content for one in of_weight if one.superseded_by is None}
    assert now == {f"The user weighs {weighs or '86.4 kg'}."}
