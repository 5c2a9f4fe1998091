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
_TAKEN |= {
    "I started amoxicillin today": ["amoxicillin"],
    "I started ramipril in May": ["ramipril"],
    "They put me on ramipril this morning": ["ramipril"],
    "I've been on ramipril for two years": ["ramipril"],
    "I've been on antibiotics for a week": ["antibiotics"],
    "I've been taking lithium since 2010": ["lithium"],
    "I've been on ramipril since my operation in 2019": ["ramipril"],
    "I take metformin, diagnosed in 2010": ["metformin"],
    "They put me on ramipril and I quit smoking": ["ramipril"],
    "They've put me on statins": ["statins"],
    "I'm back on ramipril": ["ramipril"],
    "The GP put me on omeprazole because my stomach hurts": ["omeprazole"],
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
# For a time that is over, or named.
_TAKEN_ONCE = [
    "They put me on steroids in 2010",
    "At 14 they put me on ritalin",
    "As a kid they put me on ritalin",
    "When I broke my leg they put me on morphine",
    "The doctor put me on antibiotics last year, it helped",
    "I started antibiotics in 2012",
    "I started prednisone in May and finished in June",
    "I've been on antibiotics for a week last year",
    "I'm on antibiotics until Friday",
    "We're on antibiotics this week in class",
    "In the hospital they put me on morphine",
    "They started me on insulin but it was a mistake",
    "I'm on antibiotics this week",
    "They put me on statins and I quit after a week",
    "I started ramipril after my operation",
    "They put me on codeine during my stay",
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
    ("I take metformin", "I stopped metformin today"),
    ("I take metformin", "I came off metformin this week"),
    ("I take metformin", "I quit metformin for good"),
    ("I take metformin", "I stopped metformin for health reasons"),
    ("I take metformin", "I came off metformin again"),
    ("I take metformin", "I'm off metformin, and back on track"),
    ("I take metformin 500 mg at night", "I no longer take metformin at night"),
    ("I take metformin 500 mg", "I stopped taking metformin because of the side effects"),
    ("I take ramipril", "they switched me from ramipril to losartan for my blood pressure"),
    ("I take ramipril", "we switched from ramipril to losartan"),
    ("I take ramipril", "I switched from ramipril to Entresto 50 mg"),
    ("I take antibiotics", "I finished my antibiotics yesterday"),
    ("I take prednisone", "I finished the course of prednisone"),
    ("I'm on statins", "I'm no longer on statins"),
    ("I take metformin", "I'm not on metformin any more"),
    ("I take warfarin", "I stopped warfarin and I'm so glad. I'm back on my bike again!"),
    ("I take warfarin", "I stopped taking warfarin, paused my gym membership too"),
    ("I take metformin 500 mg", "I take metformin 1 g now"),
    ("I take metformin 500 mg in the morning", "I take metformin 1000 mg in the morning"),
    ("I take metformin 500 mg in the morning", "They put me on metformin 1000 mg at night instead"),
    (
        "I take metformin 500 mg once a day",
        "They raised it, I take metformin 1000 mg twice a day now",
    ),
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
    ("I take metformin 500 mg twice a day", "I stopped taking metformin in the evening"),
    ("I take metformin 500 mg in the morning", "I stopped taking metformin at night"),
    ("I take metformin", "I don't take metformin at night anymore"),
    ("I take metformin 500 mg twice a day", "I no longer take metformin twice a day, just once"),
    ("I take insulin", "I'm off insulin for the scan tomorrow"),
    ("I take metformin", "I came off metformin for the surgery but I'm back on it"),
    ("I take metformin", "I stopped metformin, then my doctor put me back on it"),
    ("I take ibuprofen", "I stopped ibuprofen yesterday and started again today"),
    ("I take ibuprofen", "I'm off ibuprofen today"),
    ("I take ibuprofen", "I'm off ibuprofen this week"),
    ("I take ibuprofen", "I'm off ibuprofen until Monday"),
    ("I take warfarin", "I went off warfarin for two weeks"),
    ("I take warfarin", "They moved me off warfarin and then back on it"),
    ("I take omeprazole", "I finished my omeprazole, need a refill"),
    ("I take insulin", "I finished my insulin, the pharmacy is closed"),
    ("I take lithium", "we switched from lithium to sodium batteries at work"),
    ("I take insulin", "they switched me from insulin to an insulin pump"),
    ("I take metformin 500 mg in the morning", "I now take metformin 1000 mg at night too"),
    ("I take metformin 500 mg in the morning", "I also started metformin 1000 mg at night"),
    ("I take ibuprofen 400 mg", "I take ibuprofen 600 mg for my back"),
    ("I take ibuprofen 200 mg", "I take ibuprofen 600 mg as well"),
    ("I take ibuprofen 200 mg", "I take ibuprofen 600 mg today"),
    ("I take ibuprofen 200 mg", "I take ibuprofen 600 mg this week"),
    ("I take ibuprofen 200 mg", "For migraines I take ibuprofen 600 mg"),
    ("I take prednisone 10 mg", "I take prednisone 20 mg until Friday"),
    ("I take aspirin 75 mg", "Started aspirin 300 mg for three days"),
    ("I take 5 mg diazepam at night", "They started me on 10 mg diazepam for flying"),
    ("I take levothyroxine 50 mcg", "I take levothyroxine 0.05 mg"),
    ("I take warfarin", "I stopped warfarin. I'm back on it now."),
    ("I take ibuprofen", "I stopped ibuprofen before the operation"),
    ("I take warfarin", "I'm off warfarin while I'm pregnant"),
    ("I take warfarin", "I'm not taking warfarin until the operation"),
    ("I take metformin 1 g", "I take metformin 1000 mg now"),
    ("I take metformin 500 mg", "I take 2 tablets of metformin now"),
    ("I take metformin", "I came off metformin and restarted last week"),
    ("I take metformin 500 mg", "I take metformin 250 mg in addition"),
]
_IN_FULL = {
    "I take ibuprofen 600 mg today": "The user takes ibuprofen 600 mg today.",
    "I take ibuprofen 600 mg this week": "The user takes ibuprofen 600 mg this week.",
    "I take prednisone 20 mg until Friday": "The user takes prednisone 20 mg until Friday.",
    "I take aspirin 300 mg for three days": "The user takes aspirin 300 mg for three days.",
}


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


@pytest.mark.parametrize("said", _TAKEN_ONCE)
def test_what_was_taken_once_is_not_taken_now(said: str) -> None:
    """Years ago, as a child, in hospital, until Friday: nothing is concluded of today."""
    assert _taken(said) == []


@pytest.mark.parametrize("said", sorted(_IN_FULL))
def test_what_is_taken_for_some_days_is_told_with_them(said: str) -> None:
    """As it was said, and of no slot: it takes the place of nothing."""
    (only,) = told(a_turn_a_day(said)).known.values()
    assert (only.content, only.slot) == (_IN_FULL[said], None)


@pytest.mark.parametrize(("before", "after"), _OVER)
def test_a_medicine_ends_by_its_name_or_with_another_dose(before: str, after: str) -> None:
    """Whoever comes off it takes no dose of it, and the newest dose of one is what is taken."""
    first, *_ = _taken(before, after)
    assert first.superseded_by is not None


@pytest.mark.parametrize(("before", "after"), _GOES_ON)
def test_a_medicine_goes_on_where_nothing_takes_its_place(before: str, after: str) -> None:
    """Another one, another time or purpose, a wish, a question, a pause, somebody else."""
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


@pytest.mark.parametrize(
    ("one", "other", "differs"),
    [
        ("levothyroxine 50 mcg", "levothyroxine 0.05 mg", False),
        ("metformin 1 g", "metformin 1,000 mg", False),
        ("metformin 500 mg", "metformin 1 g", True),
        ("metformin 500 mg", "2 tablets of metformin", False),
        ("colecalciferol 1000 IU", "colecalciferol 2000 i.u.", True),
        ("metformin", "metformin 500 mg", False),
    ],
)
def test_doses_are_compared_in_one_unit(one: str, other: str, differs: bool) -> None:
    """What is weighed in another unit is the same dose; what is counted may be."""
    first, second = medicine_in(one), medicine_in(other)
    assert first is not None
    assert second is not None
    assert first.has_another_dose(second) is differs
