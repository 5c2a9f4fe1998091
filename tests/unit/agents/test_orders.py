"""What an assistant is told to do from then on, and who takes, has or does not eat what."""

from __future__ import annotations

import pytest

from engram.domain.memories import Category
from tests.support.slot_labels import answered

ORDERS = [
    ("Always use uv, never pip.", "Always use uv, never pip."),
    ("Please always answer in German.", "Always answer in German."),
    ("Always run the linter before you commit.", "Always run the linter before you commit."),
    ("Always send a summary at the end.", "Always send a summary at the end."),
    ("From now on write commit messages in English.", "Write commit messages in English."),
    ("From now on, use pnpm.", "Use pnpm."),
    ("From now on please translate my mail into French.", "Translate the user's mail into French."),
    ("From now on, always reply in English.", "Always reply in English."),
    ("And from now on no meetings before 10.", "No meetings before 10."),
    ("Answer in German from now on.", "Answer in German from now on."),
    ("Remember: no new packages without asking me.", "No new packages without asking the user."),
    ("And remember: use tabs in Makefiles.", "Use tabs in Makefiles."),
    ("No new APIs without telling me first.", "No new APIs without telling the user first."),
    ("Don't touch main.", "Don't touch main."),
    ("Please don't touch anything in vendor.", "Don't touch anything in vendor."),
    ("Do not push to main.", "Do not push to main."),
    ("Don't commit without running the tests.", "Don't commit without running the tests."),
    ("Don't schedule meetings on Fridays.", "Don't schedule meetings on Fridays."),
    ("Please don't use emojis.", "Don't use emojis."),
    ("Don't suggest seafood.", "Don't suggest seafood."),
    ("Don't call me before nine.", "Don't call the user before nine."),
    ("House rules: always use uv, never pip.", "House rules: always use uv, never pip."),
    ("No phones at the dinner table.", "No phones at the dinner table."),
    ("No shoes or boots in the house.", "No shoes or boots in the house."),
    ("No phones in the kitchen.", "No phones in the kitchen."),
    ("No food in the car.", "No food in the car."),
    ("Always use the stairs.", "Always use the stairs."),
    ("Rules of the project: never push to main.", "Rules of the project: never push to main."),
    (
        "Team rules: always put the ticket in the label.",
        "Team rules: always put the ticket in the label.",
    ),
    ("Rules of thumb: always test first.", "Rules of thumb: always test first."),
]  # fmt: skip
NO_ORDERS = [
    "Don't worry.",
    "Don't worry about the tests.",
    "Don't send it yet.",
    "Don't you think so?",
    "Don't mention it!",
    "Don't use that.",
    "Don't use the blue one.",
    "Please don't use tabs in this file.",
    "Don't push to main yet.",
    "Don't merge into main until I say so.",
    "Don't add too much.",
    "Don't give up!",
    "Don't be late.",
    "Don't forget the milk.",
    "Don't call me crazy.",
    "Always been curious about Japan.",
    "Always happy to help.",
    "Always use it.",
    "Remember when we went to Rome?",
    "Remember that staying positive matters.",
    "Remember: just do it.",
    "From now on it gets easier.",
    "From now on pretend you are a pirate.",
    "Write me a poem about the sea.",
    "Use the second one.",
    "No news after the interview.",
    "No nuts for me, please.",
    "No milk in the house.",
    "No wifi in the kitchen.",
    "No fridge in the kitchen at the moment.",
    "No kids in the house yet.",
    "No dogs in the house yet.",
    "No food in the house.",
    "Always use the bus to work.",
    "Always take the train home.",
    "The rules of chess: never move two pieces.",
    "The rules of the road: never overtake on the right.",
    "The instructions on the box: use only warm water.",
]


@pytest.mark.parametrize(("said", "told"), ORDERS)
def test_a_lasting_order_is_kept_in_its_own_words(said: str, told: str) -> None:
    """As a principle: it holds for whatever is asked later."""
    found = [(one.content, one.category) for one in answered({"text": said})]
    assert found == [(told, Category.PRINCIPLE)]


@pytest.mark.parametrize("said", NO_ORDERS)
def test_what_is_to_be_done_once_or_not_at_all_is_no_principle(said: str) -> None:
    """Nor what cheers somebody up, what is not there, nor what only looks like an order."""
    found = answered({"text": said})
    assert [one.content for one in found if one.category is Category.PRINCIPLE] == []


HEALTH = [
    ("I take L-thyroxine 75 mcg every day.", "The user takes L-thyroxine 75 mcg every day."),
    ("I take 20 mg of citalopram.", "The user takes 20 mg of citalopram."),
    ("I'm taking 50 mg sertraline.", "The user takes 50 mg sertraline."),
    ("I've been on 5 mg ramipril since May.", "The user takes 5 mg ramipril."),
    ("I take vitamin D 1000 IU.", "The user takes vitamin D 1000 IU."),
    ("I'm on metformin.", "The user takes metformin."),
    ("I'm on blood thinners.", "The user takes blood thinners."),
    ("I'm on the pill.", "The user takes the pill."),
    ("I take omeprazole.", "The user takes omeprazole."),
    ("I take iron tablets every morning.", "The user takes iron tablets every morning."),
    ("I take 5 g of creatine.", "The user takes 5 g of creatine."),
    ("I have Hashimoto's.", "The user has Hashimoto's."),
    ("I've got Addison and asthma.", "The user has got Addison and asthma."),
    ("I have Hashimoto.", "The user has Hashimoto."),
    ("I've got Raynaud's syndrome.", "The user has Raynaud's syndrome."),
    ("I get migraines twice a month.", "The user gets migraines twice a month."),
    ("Lactose doesn't agree with me.", "Lactose doesn't agree with the user."),
    ("Frieda is lactose intolerant.", "Frieda is lactose intolerant."),
    ("My mum is diabetic.", "The user's mum is diabetic."),
    ("Stefan is allergic to cats.", "Stefan is allergic to cats."),
    ("Mum's allergic to penicillin.", "The user's mum is allergic to penicillin."),
    ("My boss is vegan.", "The user's boss is vegan."),
    ("Emil is a vegetarian.", "Emil is vegetarian."),
]  # fmt: skip
NO_HEALTH = [
    "I'm taking 20 g off the recipe.",
    "I take 100 g flour and two eggs.",
    "I take 200 ml of olive oil.",
    "I've got Addison, Tom and Mia as kids.",
    "I take the bus every morning.",
    "I take my time.",
    "I take sugar.",
    "I take two kids to school.",
    "I'm on holiday.",
    "I'm on 3 committees.",
    "I'm on April's rota.",
    "I'm on the train.",
    "I'm on medication duty.",
    "I have Parkinson's book on PHP.",
    "I have Graves' number.",
    "I get the joke.",
    "It doesn't agree with me.",
    "Tom doesn't agree with me.",
    "Is Stefan allergic to cats?",
    "If Stefan is allergic to cats we need another flat.",
    "Everyone is allergic to work.",
    "My boss is allergic to criticism.",
    "Dinner is vegan.",
    "The lasagne is vegetarian.",
    "He is vegetarian.",
    "This is lactose intolerant.",
]


@pytest.mark.parametrize(("said", "told"), HEALTH)
def test_what_is_said_plainly_of_health_is_kept(said: str, told: str) -> None:
    """The speaker's, and that of whoever is named."""
    assert [one.content for one in answered({"text": said})] == [told]


@pytest.mark.parametrize("said", NO_HEALTH)
def test_nothing_else_is_kept_as_health(said: str) -> None:
    """Buses, trains and dishes have neither medicines nor diets, and recipes no doses."""
    assert [one.content for one in answered({"text": said})] == []


def test_children_with_their_ages_are_each_somebody() -> None:
    """Who is introduced as "Emil (12)" is Emil."""
    found = answered({"text": "My kids are Emil (12), Frieda (9) and Joni (6)."})
    assert [(one.subject, one.object) for one in found] == [
        ("Emil", "child"),
        ("Frieda", "child"),
        ("Joni", "child"),
    ]
