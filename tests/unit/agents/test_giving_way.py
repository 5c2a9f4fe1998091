"""What gives way to what in a person's own life, told as people tell it, and what only looks so."""

from __future__ import annotations

import pytest

from tests.support.slot_labels import Verdict, a_turn_a_day, judged, told

# Turns, what is so after them, and what was so.
CHANGED = [
    ("Born in Rome, living in Bonn.", "was born in=Rome; lives in=Bonn", ""),
    ("After eleven years I was let go. Now I work for Canon.", "works at=Canon", ""),
    ("Berlin is where I live, though I'm a Londoner by birth.", "lives in=Berlin", ""),
    ("I'm a Londoner by birth but Berlin is where I live.", "lives in=Berlin", ""),
    ("I've a flat in Minsk and that's where I live.", "lives in=Minsk", ""),
    ("Dublin bled me dry so I gave up and moved to Cork.", "lives in=Cork", ""),
    (
        "I use Mailchimp. | I've had enough of Mailchimp, moved to Buttondown.",
        "uses=Buttondown",
        "uses=Mailchimp",
    ),
    ("I study law. | I quit my degree.", "", "studies=law"),
    (
        "I have two guinea pigs. | I have one guinea pig now.",
        "has=one guinea pig",
        "has=two guinea pigs",
    ),
    ("I own a flat above a chip shop. | I sold the flat.", "", "owns=flat above a chip shop"),
    (
        "My bank is Lloyds. | I switched, my bank is Starling now.",
        "bank is=Starling",
        "bank is=Lloyds",
    ),
    (
        "Born in Split, living in Zadar. | Zadar's behind me, I traded it for Rijeka.",
        "lives in=Rijeka",
        "lives in=Zadar",
    ),
    (
        "I hate olives. | Olives have grown on me, I actually love them now.",
        "likes=olives",
        "dislikes=olives",
    ),
    ("I have a dog. | The dog went to a good home.", "", "has=dog"),
    ("I have a dog. | We had to give the dog away.", "", "has=dog"),
    (
        "I have a pollen allergy. | Turns out it's dust, not pollen, that I'm allergic to.",
        "is allergic to=dust",
        "is allergic to=pollen",
    ),
    (
        "I live in Basel. | Basel got too pricey so it's Lörrach now.",
        "lives in=Lörrach",
        "lives in=Basel",
    ),
    ("I live in Rome. | I've left Rome for the weekend.", "lives in=Rome", ""),
    (
        "I live in Turin. | Made it to Boston, all eleven boxes. I live here now.",
        "lives in=Boston",
        "lives in=Turin",
    ),
    ("I own a boat. | The boat went to a new owner on Saturday.", "", "owns=boat"),
    ("I picked up work at Ikea.", "works at=Ikea", ""),
    (
        "I reside in Kobe. | I've left Kobe, and I'm couch surfing till I find somewhere.",
        "",
        "lives in=Kobe",
    ),
    ("I run Ubuntu. | Wiped Ubuntu and installed Fedora.", "uses=Fedora", "uses=Ubuntu"),
    ("I use Chrome. | Firefox is my browser now.", "uses=Firefox", "uses=Chrome"),
    ("I was born in 1988. | Typo: 1989.", "was born in=1989", ""),
    ("I was born on 4 May 1990. | Sorry, 5 May 1990.", "was born on=5 May 1990", ""),
    (
        "I was married to Kim. | I remarried: Dana and I said yes on Saturday.",
        "is married to=Dana",
        "",
    ),
    (
        "I work at Philips. | First day at ASML tomorrow. | Survived my first day at ASML!",
        "works at=ASML",
        "works at=Philips",
    ),
    (
        "I work at Redfern Mills in dispatch. | I've moved jobs and I'm at Talbot Freight now.",
        "works at=Talbot Freight",
        "works at=Redfern Mills",
    ),
    ("I work at Shell. | I'm done at Shell for today.", "works at=Shell", ""),
    (
        "I work at a law firm called Bosman. | Bosman merged with Kessler and I'm at Kessler now.",
        "works at=Kessler",
        "works at=Bosman",
    ),
    (
        "I work at the Pearson Library. | Thirty years at Pearson Library and today was my last.",
        "",
        "works at=Pearson Library",
    ),
    (
        "I work for Altona Shipping. | turned in my keys today, done at Altona Shipping",
        "",
        "works at=Altona Shipping",
    ),
    (
        "I'm allergic to cats. | The doctor says I've outgrown my cat allergy.",
        "",
        "is allergic to=cats",
    ),
    (
        "I'm allergic to peanuts. | New test: no peanut allergy after all!",
        "",
        "is allergic to=peanuts",
    ),
    (
        "I'm doing a master's in physics. | Finished my physics master's in July.",
        "",
        "studies=physics",
    ),
    (
        "I'm living in Kyoto. | My lease ran out and I went to live with my parents in Nara.",
        "lives in=Nara",
        "lives in=Kyoto",
    ),
    ("I'm married to Ben. | The divorce from Ben came through.", "", "is married to=Ben"),
    ("I'm with Accenture. | Jumped ship to Capgemini.", "works at=Capgemini", ""),
    (
        "I've been a Bristol resident since 2012. | Packed up Bristol and headed for Cardiff.",
        "lives in=Cardiff",
        "",
    ),
    ("Jazz has grown on me.", "likes=Jazz", ""),
    (
        "My favourite bar is Smoke. | Smoke closed, so it's Otto's now.",
        "favourite bar=Otto's",
        "favourite bar=Smoke",
    ),
    ("My mum lives in Faro, and so do I.", "lives in=Faro", ""),
    (
        "My name is Leila Haddad. | I got married, so it's Leila Novak now.",
        "is called=Leila Novak",
        "is called=Leila Haddad",
    ),
    (
        "We use Jira at work. | The team voted Jira off the island; Linear it is.",
        "uses=Linear",
        "uses=Jira",
    ),
]
_BORN = "was born on=5 May 1990"
# Turns, what is so after them, and what never was.
ONLY_LOOKS_SO = [
    ("I went from Rome to Paris by train.", "", "lives in=Paris"),
    ("I've moved on from Ravel to Debussy.", "", "lives in=Debussy"),
    ("I work at Heineken. | Left Heineken early to go to Anfield.", "works at=Heineken", ""),
    (
        "I drive a Mini. | Swapped the Mini for a Golf for the weekend.",
        "drives=Mini",
        "drives=Golf",
    ),
    ("My course is now full.", "", "studies=full"),
    ("I found my keys in Hull.", "", "lives in=Hull"),
    ("In the play I'm a vet.", "", "works as=vet"),
    ("On the plus side Wilko took me on.", "works at=Wilko", "works at=On"),
    ("I study Korean. | It's Japanese I'm learning now.", "", "studies=Japanese they are learning"),
    ("We've dropped Salesforce for HubSpot.", "", "works at=HubSpot"),
    ("The doctor left; I'm now with Dr Bell.", "", "works at=Dr Bell"),
    (
        "I live in Bristol. | My brother packed up Bristol and headed for Cardiff.",
        "lives in=Bristol",
        "lives in=Cardiff",
    ),
    ("I use Slack. | Slack is down, I'm on Teams for this call.", "uses=Slack", ""),
    ("I use Chrome. | Chrome is too slow today.", "uses=Chrome", ""),
    ("I live in Rome. | Rome is too hot, I'm in Oslo this week.", "lives in=Rome", ""),
    (
        "I live in Rome. | Left Rome yesterday, headed for Oslo on business.",
        "lives in=Rome",
        "lives in=Oslo",
    ),
    (
        "I live in Rome. | After Rome we went to Oslo for the weekend.",
        "lives in=Rome",
        "lives in=Oslo",
    ),
    (
        "I work at Shell. | Shell is closed today, I'm at Starbucks.",
        "works at=Shell",
        "works at=Starbucks",
    ),
    ("I work at Shell. | Finished at Shell early, off to Bonn.", "works at=Shell", ""),
    ("I work at Shell. | I finished at Shell at six.", "works at=Shell", ""),
    ("I'm allergic to peanuts. | My son outgrew his peanut allergy.", "is allergic to=peanuts", ""),
    (
        "I'm allergic to peanuts. | No peanut allergy warnings on this menu.",
        "is allergic to=peanuts",
        "",
    ),
    ("I'm allergic to peanuts. | Is there no peanut allergy label?", "is allergic to=peanuts", ""),
    ("I'm allergic to peanuts. | My son has no peanut allergy.", "is allergic to=peanuts", ""),
    ("I'm allergic to nuts. | Tom got over the nut allergy.", "is allergic to=nuts", ""),
    ("I'm allergic to nuts. | Ana says the nut allergy is gone.", "is allergic to=nuts", ""),
    (
        "I live in Oslo. | Oslo is too expensive, so we're going to Sweden to shop.",
        "lives in=Oslo",
        "lives in=Sweden",
    ),
    ("I live in Oslo. | Just left Oslo, heading to Bergen.", "lives in=Oslo", "lives in=Bergen"),
    (
        "I live in Oslo. | We left Oslo and headed to Bergen to see the fjords.",
        "lives in=Oslo",
        "lives in=Bergen",
    ),
    ("I live in Oslo. | Leaving Oslo, off to Bergen.", "lives in=Oslo", "lives in=Bergen"),
    ("I live in Oslo. | Oslo is over. It's Bergen I love.", "lives in=Oslo", "lives in=Bergen"),
    ("I live in Italy. | Italy is out. It's France.", "lives in=Italy", "lives in=France"),
    ("I'm from Italy. | Italy is out, so it's France for me.", "is from=Italy", "is from=France"),
    ("I use Firefox. | Firefox closed. I got Chrome to open the file.", "uses=Firefox", ""),
    (
        "I work at Shell. | Shell is over at five, then I'm at Costco.",
        "works at=Shell",
        "works at=Costco",
    ),
    ("I work at Shell. | The bank let me go overdrawn.", "works at=Shell", ""),
    ("I work at Shell. | The shop let me go first.", "works at=Shell", ""),
    ("I have a dog. | We had to give our dog up to the vet for a night.", "has=dog", ""),
    ("Ana and I said yes to the wedding invitation.", "", "is married to=Ana"),
    ("I was born on 5 May 1990. The party is on Saturday. | No, 6 May.", _BORN, ""),
    ("I was born on 5 May 1990. | Book a dentist for 3 June. | Sorry, 6 June.", _BORN, ""),
    ("I was born in 1988. | Sorry, 10 minutes late.", "was born in=1988", ""),
    ("I was born in 1988. | No, 2020 was worse.", "was born in=1988", ""),
    ("I was born in 1988. | Wait, 1999?", "was born in=1988", ""),
    (
        "My favourite film is Alien. | Alien is too scary for her, so we watched Up.",
        "favourite film=Alien",
        "",
    ),
    ("I got a promotion! Doctor called too.", "", "works as=Doctor"),
    ("New job! Teacher wanted to see me.", "", "works as=Teacher"),
    ("I live in Turin. | Made it to Boston, what a flight.", "lives in=Turin", "lives in=Boston"),
    ("I'm with my parents in Nara now for Christmas.", "", "lives in=Nara"),
    ("I'm on a train in Norway now.", "", "lives in=Norway"),
    ("I'm at a cafe in Paris now.", "", "lives in=Paris"),
    ("I'm on holiday in Spain now.", "", "lives in=Spain"),
    ("I'm at work in Leeds now.", "", "lives in=Leeds"),
    ("I write for fun. I write for Ana.", "", "works at=Ana"),
    ("I shop for Grandma.", "", "works at=Grandma"),
    ("I cook for Tom.", "", "works at=Tom"),
    ("I found something at Ikea.", "", "works at=Ikea"),
    ("I got something at Target.", "", "works at=Target"),
    ("Ana and I said yes to the offer.", "", "is married to=Ana"),
    ("Ana and I hitched a ride.", "", "is married to=Ana"),
    ("He's from Naples, living in Munich.", "", "lives in=Munich"),
    ("I heard from Tom, living in Munich.", "", "lives in=Munich"),
    ("I got a letter from Ana, living in Rome.", "", "lives in=Rome"),
    ("Tea it is.", "", "uses=Tea"),
    ("Paris is where we are now, back on Sunday.", "", "lives in=Paris"),
    ("I'm married to Ben. | My sister's divorce is through.", "is married to=Ben", ""),
    ("I'm married to Ben. | The divorce is final for Ana and Tom.", "is married to=Ben", ""),
    ("I have a dog. | We had to give the dog a bath.", "has=dog", ""),
    ("I have a dog. | I had to give the dog to my sister for a week.", "has=dog", ""),
    ("I own a boat. | The boat went to the marina.", "owns=boat", ""),
]


def _labels(values: str) -> list[dict[str, str]]:
    pairs = (one.split("=", 1) for one in values.split("; ") if one)
    return [{"predicate": predicate, "object": what} for predicate, what in pairs]


def _judged(story: str, *, current: str = "", past: str = "", never: str = "") -> Verdict:
    turns = a_turn_a_day(*story.split(" | "))
    labels = {"current": _labels(current), "past": _labels(past), "never": _labels(never)}
    return judged(labels, told(turns))


@pytest.mark.parametrize(("story", "current", "past"), CHANGED)
def test_what_is_said_to_be_so_now_replaces_what_was(story: str, current: str, past: str) -> None:
    """By its name, by what it is, or by what else the turn says of it."""
    assert _judged(story, current=current, past=past).right


@pytest.mark.parametrize(("story", "current", "never"), ONLY_LOOKS_SO)
def test_what_lasts_a_while_or_is_said_of_others_replaces_nothing(
    story: str, current: str, never: str
) -> None:
    """Journeys, other people's lives, and words that say something else."""
    verdict = _judged(story, current=current, never=never)
    assert (verdict.missing, verdict.superfluous, verdict.false) == ((), (), ())


ENDED = [
    ("Our supplier is Northgate.", "Northgate is out."),
    ("We have a new supplier, Northgate.", "Sadly Northgate is off the list."),
    ("Our venue is Garden Hall.", "The Garden Hall is out of the running."),
    ("I'll send Ana the numbers.", "Numbers are in!"),
    ("I'll write the report.", "Report's in."),
    ("I promised Tom to hand in the form.", "The form is finally in."),
]
STILL_SO = [
    ("Our boss is Tom.", "Tom is out."),
    ("Our supplier is Northgate.", "Northgate is out of pens."),
    ("I promised to pick up the kids.", "The kids are in."),
    ("I'll write the report.", "The report is in German."),
]


def _current(*turns: str) -> list[str]:
    """What is so after these turns, without what only says that something ended."""
    known = told(a_turn_a_day(*turns)).known.values()
    held = (m for m in known if m.superseded_by is None and m.resolution is None)
    return [m.content for m in held if m.slot and not m.slot.predicate.startswith("no longer")]


@pytest.mark.parametrize(("turn", "ending"), ENDED)
def test_what_is_out_or_in_has_ended(turn: str, ending: str) -> None:
    """A choice that is out is none any more, and what is in has been handed in."""
    assert _current(turn)
    assert not _current(turn, ending)


@pytest.mark.parametrize(("turn", "remark"), STILL_SO)
def test_who_is_out_for_a_while_is_still_what_they_were(turn: str, remark: str) -> None:
    """Somebody out of the office, or something out of stock."""
    assert set(_current(turn)) <= set(_current(turn, remark))
