"""What became of what was told, in other words than those of an end; and what did not."""

from __future__ import annotations

import pytest

from engram.language.statements import patterns
from engram.language.statements.clauses import sentences
from tests.support.slot_labels import a_turn_a_day, judged, told
from tests.support.statement_labels import labelled

# A story, and what holds after it and what does not: "+uses=Vim; -uses=Emacs".
GONE = [
    ("I have a piano. | The piano went to my niece in the end.", "-has=piano"),
    ("I own a sailboat. | The sailboat went to a young couple from Kiel.", "-owns=sailboat"),
    (
        "I own a caravan. | The caravan went on Gumtree and was gone within an hour.",
        "-owns=caravan",
    ),
    ("I own a camper van. | Listed the camper van on eBay, gone by tea.", "-owns=camper van"),
    ("I own a laundromat. | it burned down.", "-owns=laundromat"),
    ("I own a scooter. | It was nicked from the hallway.", "-owns=scooter"),
    ("I own a tandem. | Gave the tandem to two newlyweds.", "-owns=tandem"),
    ("I own a racehorse. | We've signed our racehorse over to the groom.", "-owns=racehorse"),
    ("I've got a scholarship. | They took the scholarship away.", "-has=scholarship"),
    ("i have braces | BRACES ARE OFF!!!!", "-has=braces"),
    ("I have a lodger. | My lodger moved back to Tartu.", "-has=lodger; -lodger is=Tartu"),
    ("I have a nanny. | Our nanny has left, she's gone home.", "-has=nanny"),
    ("I use a Kindle. | The Kindle bricked itself.", "-uses=Kindle"),
    ("I use an iPad. | The iPad's cracked and I use paper instead.", "-uses=iPad; +uses=paper"),
    ("I use insulin pens. | The clinic took me off the pens.", "-uses=insulin pens"),
    ("I use Windows. | Wiped the laptops. Goodbye, Windows.", "-uses=Windows"),
    ("I use Trello. | Trello and I are done.", "-uses=Trello"),
    ("i work at nandos | nandos sacked me over a chicken", "-works at=nandos"),
    ("I work at Zalando. | Last shift done! Zalando is history.", "-works at=Zalando"),
    ("I'm allergic to eggs. | The allergist says I have outgrown it.", "-is allergic to=eggs"),
    ("I'm allergic to kiwi. | Kiwi is safe for me now.", "-is allergic to=kiwi"),
    ("I'm allergic to wheat. | My allergy is gone.", "-is allergic to=wheat"),
    ("im on keto | quit keto. i eat everything again", "-diet is=keto"),
    ("I'm vegan. | I eat everything again.", "-diet is=vegan"),
    (
        "My favourite pub is Chez Odile. | I don't have a favourite pub any more.",
        "-favourite pub=Chez Odile",
    ),
    ("I study dentistry. | Diploma in hand, I am not a student any more.", "-studies=dentistry"),
    ("I study law. | No more studying!", "-studies=law"),
    ("I study veterinary medicine. | I'm a qualified vet!!!", "-studies=veterinary medicine"),
    (
        "I'm a vet nurse. | Packed in the vet nursing, I'm a smallholder now.",
        "+works as=smallholder",
    ),
]
STILL_SO = [
    ("I have a piano. | The piano went to the tuner on Monday.", "+has=piano"),
    ("I have a daughter. | My daughter went to a museum.", "+has=daughter"),
    ("I own a telescope. | Put the telescope on eBay, no takers so far.", "+owns=telescope"),
    ("I own a laundromat. | It nearly burned down once.", "+owns=laundromat"),
    ("I own a laundromat. | The bakery next door burned down.", "+owns=laundromat"),
    ("I own a keyboard. | Gave the keyboard to the school for the weekend.", "+owns=keyboard"),
    ("I've got a scholarship. | They threatened to take the scholarship away.", "+has=scholarship"),
    ("I have braces. | The braces are coming off in May.", "+has=braces"),
    ("I have a lodger. | My lodger moved the sofa to the window.", "+has=lodger"),
    ("I have a nanny. | Our nanny has left early today.", "+has=nanny"),
    ("I use an iPad. | The iPad's cracked but it still works.", "+uses=iPad"),
    ("I use insulin pens. | The clinic took me off the waiting list.", "+uses=insulin pens"),
    ("I use ChatGPT. | Goodbye, ChatGPT!", "+uses=ChatGPT"),
    ("I use Trello. | Trello and I are done for today.", "+uses=Trello"),
    ("i work at nandos | nandos nearly sacked me", "+works at=nandos"),
    ("I work at Zalando. | The Zalando strike is history.", "+works at=Zalando"),
    ("I'm allergic to eggs. | The coat is too small, I have outgrown it.", "+is allergic to=eggs"),
    ("I'm allergic to eggs. | Eggs are fine for me if baked.", "+is allergic to=eggs"),
    ("I'm allergic to wheat. | My allergy is gone thanks to the pills.", "+is allergic to=wheat"),
    ("I'm on keto. | I gave up keto, then started again.", "+diet is=keto"),
    (
        "My favourite pub is Chez Odile. | I don't have a favourite song any more.",
        "+favourite pub=Chez Odile",
    ),
    ("I study law. | No more studying for today!", "+studies=law"),
    ("I study nursing. | In two years I'm a qualified nurse.", "+studies=nursing"),
    (
        "I'm a nurse. | Packed in the gym, I'm a couch potato now.",
        "+works as=nurse; -works as=couch potato",
    ),
]
SAID_OTHERWISE = [
    ("My name is Martin. | I'm Marcin, not Martin.", "+is called=Marcin; -is called=Martin"),
    ("I'm Lena, nice to meet you.", "+is called=Lena"),
    ("My name is Martin. | My son is called Marcin, not Martin.", "+is called=Martin"),
    (
        "I study metrology | autocorrect is killing me. its meteorology!!",
        "+studies=meteorology; -studies=metrology",
    ),
    (
        "I study geology. | autocorrect is killing me. its amazing!!",
        "+studies=geology; -studies=amazing",
    ),
    (
        "I live in Springvale. | autocorrect strikes again: not Springvale, Springfield.",
        "+lives in=Springfield",
    ),
    (
        "I'm from Guinea. | The country I'm from is Guinea-Bissau, not Guinea.",
        "+is from=Guinea-Bissau",
    ),
    ("I own a Gibson. | Ha, I wish. It's an Epiphone I own.", "+owns=Epiphone; -owns=Gibson"),
    ("It's a Monday I like.", "-likes=Monday"),
    (
        "I study Sanskrit. | Besides the Sanskrit I've enrolled for Pali.",
        "+studies=Sanskrit; +studies=Pali",
    ),
    (
        "I study law. | I've added linguistics, so I'm a double major.",
        "+studies=law; +studies=linguistics",
    ),
    (
        "I study law. | I've added chemistry to the reading list.",
        "+studies=law; -studies=chemistry",
    ),
    ("I drive a Volvo. | In town I drive a Suzuki Jimny.", "+drives=Volvo; +drives=Suzuki Jimny"),
    ("I drive a Volvo. | These days I drive a Mini.", "-drives=Volvo; +drives=Mini"),
    ("I like tea. | I like cocoa just as much.", "+likes=tea; +likes=cocoa"),
    ("I promised to run the raffle on top.", "+promised to=run the raffle"),
    ("I promised to put a cherry on top.", "+promised to=put a cherry on top"),
    (
        "I can't stand jazz. | I take it all back about jazz. Now I love it.",
        "+likes=jazz; -dislikes=jazz",
    ),
    ("I can't stand jazz. | I went to the opera and now I love it.", "+dislikes=jazz; -likes=jazz"),
    ("I own a Vespa. | I sold my Vespa. | Bought the Vespa back today!", "+owns=Vespa"),
    ("I own a Vespa. | I sold my Vespa. | Ray bought it back.", "-owns=Vespa"),
    (
        "I work at Corvid Press. | I left Corvid Press. | Corvid Press took me back.",
        "+works at=Corvid Press",
    ),
    ("Anna took me back after the row.", "-works at=Anna"),
    ("From today it's Café Tero that pays me.", "+works at=Café Tero"),
    ("It's Karma that pays me.", "-works at=Karma"),
    (
        "I work at Lidl. | I've taken on Sundays at the garden centre, so I work at both.",
        "+works at=Lidl; +works at=garden centre",
    ),
    ("I picked up two nights at the Ritz.", "-works at=Ritz"),
    (
        "I'm a mechanic. | I am not mechanic any more, since two months I am driving instructor.",
        "-works as=mechanic; +works as=driving instructor",
    ),
    ("I'm judge, jury and executioner in this house.", "-works as=judge"),
    (
        "I live in Rio de Janeiro. | We left Rio in the end. Florianópolis is home now.",
        "+lives in=Florianópolis",
    ),
    ("I live in Oakland. | we bailed on the bay, new digs in Sacramento", "+lives in=Sacramento"),
    ("New digs in Athens unearthed a temple.", "-lives in=Athens"),
    ("We moved the meeting. The new city is Oslo.", "-lives in=Oslo"),
    ("I do nights as a porter.", "+works as=porter"),
    ("My residence is in Leuven, Belgium.", "+lives in=Leuven"),
    ("lived in Hull all me life and still do", "+lives in=Hull"),
    ("It must be halal for me.", "+diet is=halal"),
    ("It must be halal for my guests.", "-diet is=halal"),
    ("I plan to move to Chile. | Chile is out, I plan to move to Peru.", "-plans to=move to Chile"),
    ("I plan to move to Chile. | Chile is out of the World Cup.", "+plans to=move to Chile"),
]


@pytest.mark.parametrize(("story", "holds"), [*GONE, *STILL_SO, *SAID_OTHERWISE])
def test_what_holds_after_a_story_is_what_it_says(story: str, holds: str) -> None:
    """Things that went elsewhere, work and studies that are over, slips of a name, and traps."""
    labels: dict[str, list[dict[str, str]]] = {"current": [], "past": [], "never": []}
    for mark in holds.split("; "):
        predicate, what = mark[1:].split("=", 1)
        kind = "current" if mark[0] == "+" else "past"
        labels[kind].append({"predicate": predicate, "object": what})
    verdict = judged(labels, told(a_turn_a_day(*story.split(" | "))))
    assert verdict.right_now


def test_no_wording_is_passed_over_for_its_letters() -> None:
    """What is asked first, of a sentence in lower case, leaves out none that holds an object."""
    around = [one for one in patterns.patterns() if patterns.is_inside(one)]
    said = [turn["text"] for story in labelled("slots.seen.jsonl") for turn in story["turns"]]
    asked = {sentence.text for text in said for sentence in sentences(text)}
    found = [(one, text) for text in asked for one in around if one.says.search(text)]
    assert found
    assert all(one in patterns.inside(text) for one, text in found)
