"""What a turn says takes the place of a value that was told, whatever the value is of."""

from __future__ import annotations

import pytest

from tests.support.reconciliation import ReconciledKnowledge, said, stated
from tests.support.slot_labels import a_turn_a_day, held, told

# What is told first, and of what: the predicate, the value, and what takes its place.
FACTS = [
    ("I live in Leeds.", "lives in", "Leeds", "Bath"),
    ("I work at Bosch.", "works at", "Bosch", "Siemens"),
    ("I'm a plumber.", "works as", "a plumber", "a roofer"),
    ("I use Evernote for my notes.", "uses", "Evernote", "Obsidian"),
    ("I drive a Golf.", "drives", "the Golf", "a Polo"),
    ("I study geology.", "studies", "geology", "botany"),
    ("My favourite band is Muse.", "favourite band", "Muse", "Foals"),
    ("I'm vegan.", "diet is", "vegan", "vegetarian"),
    ("My dentist is Dr Lee.", "dentist is", "Dr Lee", "Dr Khan"),
    ("I bank with Lunar.", "bank is", "Lunar", "Nordea"),
]
RENEWALS = [
    "{old} is history, it's {new} now.",
    "{old} didn't work out, so it's {new} now.",
    "No more {old}, it's {new} now.",
    "I'm done with {old}, it's {new} from now on.",
    "I swapped {old} for {new} last month.",
    "I switched from {old} to {new}.",
    "Update: {new} instead of {old}.",
    "It used to be {old}, these days it's {new}.",
    "{old}? Not any more, it's {new} now.",
    "Not {old} any more. {new}.",
    "btw it's {new} now, not {old}",
]


@pytest.mark.parametrize("renewal", RENEWALS)
@pytest.mark.parametrize(("first", "predicate", "old", "new"), FACTS)
def test_a_value_that_is_named_gives_way_to_the_new_one(
    first: str, predicate: str, old: str, new: str, renewal: str
) -> None:
    """Whichever predicate it is of, and in whichever of these ways it is said."""
    then = renewal.format(old=old, new=new)
    known = held(told(a_turn_a_day(first, f"{then[:1].upper()}{then[1:]}")))
    values = {value for what, value in known if what == predicate}
    assert values == {_bare(new)}


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("I live in Leeds.", "It's GMT now"),
        ("I live in Leeds.", "Leeds is history, it's raining now."),
        ("I work at Bosch.", "I swapped Bosch for Siemens for the day."),
        ("I use Slack.", "Slack is gone, it's a relief now."),
        ("I drive a Golf.", "Swapped the Golf for a Polo for the weekend."),
        ("My dentist is Dr Lee.", "Dr Lee? No, not bad now."),
        ("My name is Ada.", "I'm Back!"),
        ("My name is Ada.", "I'm Kidding."),
        ("My name is Ada.", "Im Pregnant"),
        ("I live in Oslo.", "I live in Oslo, it's now Winter."),
        ("I live in Oslo.", "I live in Oslo, it's now Chaos."),
        ("I lived in Oslo.", "I used to live in Oslo, it's now Late Autumn."),
        ("I live in Sweden.", "We crossed over to Denmark."),
    ],
)
def test_what_is_no_value_of_it_takes_no_place(first: str, then: str) -> None:
    """Nothing new is known where the words name none of the kind, or for a while."""
    before, after = (held(told(a_turn_a_day(*said))) for said in ((first,), (first, then)))
    assert after <= before


@pytest.mark.parametrize(
    ("first", "then", "predicate", "value"),
    [
        ("I use Postgres 14.", "Upgraded to Postgres 16.", "uses", "postgres 16"),
        ("I prefer tea to coffee.", "Lately I prefer coffee.", "prefers", "coffee"),
        ("My gym is Bold.", "I've moved gyms, I'm at Foundry now.", "gym is", "foundry"),
        ("My boss is Ruth.", "New boss since Monday: Femi.", "manager is", "femi"),
        ("I'm called Marta.", "*Martha, typo", "is called", "martha"),
    ],
)
def test_a_value_that_is_not_named_gives_way_as_well(
    first: str, then: str, predicate: str, value: str
) -> None:
    """Another version, the other of two that were compared, another of what one has one of."""
    known = held(told(a_turn_a_day(first, then)))
    assert {what for name, what in known if name == predicate} == {value}


def test_work_does_not_end_at_a_bank_that_one_leaves() -> None:
    """Who left Barclays and banks there has said nothing of their work."""
    known = told(a_turn_a_day("I bank with Barclays.", "Left Barclays, I'm with Monzo now."))
    assert not [m for m in known.known.values() if "works" in m.content]
    assert held(known) == {("bank is", "monzo")}


def test_who_is_back_together_with_somebody_else_left_for_good() -> None:
    """A couple that made up is one; who left Tom for Max, or for nobody, is none with Tom."""
    married = ("is married to", "tom")
    others = held(
        told(a_turn_a_day("I'm married to Tom.", "I left Tom; I'm back together with Max."))
    )
    again = held(told(a_turn_a_day("I'm married to Tom.", "I left Tom, but we're back together.")))
    assert married not in others
    assert married in again


def _bare(value: str) -> str:
    return value.removeprefix("a ").removeprefix("the ").lower()


@pytest.mark.parametrize("diet", ["vegetarian", "gluten-free"])
def test_who_eats_something_again_keeps_to_a_diet_that_nobody_knows(diet: str) -> None:
    """A model may name any diet; only of one whose foods are known does eating some end it."""
    knowledge = ReconciledKnowledge()
    told_first, then = said(1, "a"), said(2, "b")
    knowledge.hear(told_first, stated(told_first, "diet is", diet))
    knowledge.hear(then, stated(then, "eats", "fish"))
    diets = {value for what, value in held(knowledge) if what == "diet is"}
    assert diets == (set() if diet == "vegetarian" else {diet})


@pytest.mark.parametrize(
    "said",
    [
        "I've changed doctors, Dr. Behrens retires.",
        "I changed dentists, Dr. Lang is closing.",
        "I switched vets, Dr. Meier moved away.",
        "I've changed therapists, Mrs. Abel had no time.",
        "We switched lawyers, Mr. Moss was too slow.",
    ],
)
def test_a_title_alone_is_nobody(said: str) -> None:
    """Who is named with what they do leaves; nobody takes their place yet."""
    assert held(told(a_turn_a_day(said))) == set()


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("I've changed doctors, it's Dr. Virta now.", ("doctor is", "dr virta")),
        ("I changed dentists, Dr Lang.", ("dentist is", "dr lang")),
        ("I switched vets, the new one is Dr. Meier.", ("vet is", "dr meier")),
    ],
)
def test_a_title_with_a_name_is_somebody(said: str, value: tuple[str, str]) -> None:
    """With or without its full stop."""
    assert held(told(a_turn_a_day(said))) == {value}


SWITCHED = [
    "I switched to Neovim over the weekend.",
    "I switched to Neovim over the long weekend.",
    "I switched to Neovim over Christmas.",
    "I switched to Neovim over the holidays.",
    "I switched to Neovim over the summer.",
    "I switched to Neovim at the weekend.",
    "I switched to Neovim at Easter.",
    "I switched to Neovim on Monday.",
    "I switched to Neovim on Friday, and it's great.",
    "I switched to Neovim last weekend.",
    "I switched to Neovim over the weekend, no going back to VS Code.",
    "We moved to Neovim on Tuesday.",
    "I've switched to Neovim, there's no going back to VS Code.",
    "I've gone over to Neovim. I'm not going back to VS Code.",
]
BESIDE = [
    "I switched to Neovim for the workshop.",
    "I switched to Neovim on Monday for the workshop.",
    "I switched to Neovim over the weekend to try it.",
    "I switched to Neovim on my laptop.",
    "I switched to Neovim on Mondays.",
    "I switched to Neovim at work.",
    "I switched to Neovim over lunch.",
    "I use Neovim on Monday evenings.",
]


@pytest.mark.parametrize("then", SWITCHED)
def test_who_switched_at_some_time_switched(then: str) -> None:
    """A weekend or a day says when, and no more than that."""
    assert {
        value for what, value in held(told(a_turn_a_day("I use VS Code.", then))) if what == "uses"
    } == {"neovim"}


@pytest.mark.parametrize("then", BESIDE)
def test_who_switched_for_something_keeps_what_they_had(then: str) -> None:
    """A purpose, or a place, leaves the other tool where it was."""
    found = {
        value for what, value in held(told(a_turn_a_day("I use VS Code.", then))) if what == "uses"
    }
    assert "vs code" in found


@pytest.mark.parametrize(
    ("then", "kept"),
    [
        ("I'm not going back to VS Code.", False),
        ("No going back to VS Code for me.", False),
        ("I'm never going back to VS Code.", False),
        ("There's no going back to VS Code.", False),
        ("I'm back to VS Code.", True),
        ("I don't want to be back to VS Code.", True),
        ("I'm not going back to Vim.", True),
    ],
)
def test_who_never_goes_back_to_something_uses_it_no_longer(then: str, kept: bool) -> None:
    """Only what was told by that name."""
    assert (("uses", "vs code") in held(told(a_turn_a_day("I use VS Code.", then)))) is kept
