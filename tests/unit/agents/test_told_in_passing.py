"""Changes told in passing: by a value alone, an idiom, a sigh, and what only sounds like them."""

from __future__ import annotations

import pytest

from tests.support.slot_labels import judged, told

# Turns, and what is so of the user after them.
CHANGED = [
    ("I work at Imco, argh, autocorrect, I work at Imtec.", "works at=Imtec"),
    ("I was born on 3 June 1988. 13 June, sorry.", "was born on=13 June 1988"),
    ("I have two cats. Three, sorry.", "has=three cats"),
    ("I work at Natwest, tsk, Nationwide, I work at Nationwide.", "works at=Nationwide"),
    ("I work at Audi, ha, I wish, I work at Seat.", "works at=Seat"),
    ("I speak Slovak. | Why did I write Slovak? I speak Slovene.", "speaks=Slovene"),
    (
        "I study chemistry. | Sent that before my coffee. I study chemical engineering.",
        "studies=chemical engineering",
    ),
    (
        "I work at Fenwick Motors. | I've joined Tesla! | April fool, you muppet.",
        "works at=Fenwick Motors",
    ),
    ("I'm studying history. | Jumped ship: it's archaeology for me now.", "studies=archaeology"),
    ("I live in Santa Fe. | Taos, as of Sunday.", "lives in=Taos"),
    ("I live in Timaru. | It's Nelson now, cross the other one out.", "lives in=Nelson"),
    ("I work at Umber Studio. | Ochre Studio now, no paint jokes please.", "works at=Ochre Studio"),
    ("work at tesco, bakery bit | aldi now, 40p more an hour", "works at=aldi"),
    (
        "I'm a bus driver. | I work as a scheduler now. | Bus driver once more, same 14.",
        "works as=bus driver",
    ),
    ("I'm studying Arabic. | Persian this term.", "studies=Persian"),
    ("I use Spotify. | Tidal, as of this month, Spotify got too dear.", "uses=Tidal"),
    ("I have three hens. | Four hens now!", "has=four hens"),
    (
        "I live in Ghent. | I live in Rotterdam for now. | Home to Ghent, I live here again.",
        "lives in=Ghent",
    ),
    (
        "I work at Fennimore's. | I left Fennimore's. | Fennimore's rang, I'm back there.",
        "works at=Fennimore's",
    ),
    ("I live in Tartu. | Swapped Tartu for Tallinn. | Tartu has us back.", "lives in=Tartu"),
    (
        "I work at Lindqvist Timber. | New badge, new car park: Hedlund Timber.",
        "works at=Hedlund Timber",
    ),
    (
        "I live in Bogotá. | I've swapped Bogotá for Medellín. | And Medellín for Cali.",
        "lives in=Cali",
    ),
    ("I use a Garmin. | The Garmin drowned in Lake Bled. I use a Coros now.", "uses=Coros"),
    ("I own a burger van. | A couple from Hull drove the burger van away. Sold!", ""),
    ("I live in Busan. | Handed back the keys to the Busan place.", ""),
    (
        "I work at Nimbus Gaming. | Ten minutes later none of us worked at Nimbus Gaming any more.",
        "",
    ),
    ("I work at Grand. | Told Grand where they could put their split shifts.", ""),
    ("I live in Cork. | Rent went up, so it's goodbye Cork.", ""),
    ("I work at Vestas, up the turbines | harness is on the hook. vestas and me are quits", ""),
    ("I own a bakery. | Signed the bakery over to my son.", ""),
    ("I have a parrot called Rio. | Rio flew off on Sunday.", ""),
    ("I own a Vespa. | Some toerag nicked my Vespa.", ""),
    ("I plan to learn the cello. | The cello plan is dead.", ""),
    ("I work at Amazon. | Packed my last parcel at Amazon on Sunday.", ""),
    ("I study theology. | Viva done, no longer studying theology, free woman.", ""),
    ("I promised to fix Gran's letterbox. | Fixed it! Only one thumb harmed.", ""),
    ("I was born in Cork but it's Galway I live in.", "was born in=Cork; lives in=Galway"),
    ("Weekdays I work at Rye Books.", "works at=Rye Books"),
    ("heating's off in all of Novi Sad and guess who lives in Novi Sad. me.", "lives in=Novi Sad"),
    ("They wanted 'nature' so we own a tent now.", "owns=tent"),
]
# Turns, and one after which the same is so as before.
NOTHING_CHANGED = [
    ("I live in Porto.", "Braga it is for the weekend!"),
    ("I live in Porto.", "Where are we off to? Braga it is."),
    ("I live in Porto and study law.", "It's tea for me now."),
    ("I live in Porto.", "It's bedtime for me now."),
    ("I work as a nurse.", "It's Friday for us now, finally."),
    ("I work at Acme.", "It's Monday from here on."),
    ("I work at Acme.", "My brother was at Bexley Library. It's Orpington Library for him now."),
    ("I work at Fennimore's.", "Fennimore's rang, Ben's back there now."),
    (
        "I used to work at Fennimore's.",
        "I popped into Fennimore's, I'm back there tomorrow to collect my things.",
    ),
    ("I used to live in Rome.", "Rome was lovely, I'm back there for a week in May."),
    ("I used to live in Rome.", "I wish I was back there in Rome."),
    ("I speak Slovak.", "Did I tell you I speak Slovak?"),
    ("I own a burger van.", "Sold! The house at number 9, I mean."),
    ("I own a burger van.", "The tickets are gone. Sold!"),
    ("I own a burger van.", "Hull rang about the burger van. Not sold."),
    ("I live in Seoul.", "We handed back the keys to the Airbnb."),
    ("I use a Garmin.", "My brother's Garmin drowned. He uses a Coros now."),
    ("I use a Garmin.", "The Garmin drowned in praise at the awards."),
    ("I live in Hull.", "Back to Ghent for the weekend, my sister lives here."),
    ("I live in Ghent.", "None of my friends work at Acme any more."),
    ("I work at Acme.", "None of us want to work at Acme any more."),
    ("I work at Acme.", "None of us work late at Acme any more."),
    ("I live in Galway.", "Sober, as of Sunday."),
    ("I live in Galway.", "Retired since Friday."),
    ("I live in Galway.", "It's Monday again."),
    ("I live in Galway.", "It's Christmas again, hooray."),
    ("I live in Galway.", "It's Dave now who has the flu."),
    ("I live in Galway.", "My sister moved out. Limerick now."),
    ("I live in Galway.", "My sister works at Tesco, Aldi now actually."),
    ("I live in Galway.", "On the train. Dublin now."),
    ("I live in Galway.", "It's raining in Cork again."),
    ("I live in Galway.", "Cork again this weekend."),
    ("I live in Galway.", "I wish it was Cork again."),
    ("I live in Galway.", "Is it Cork now?"),
    ("I live in Galway.", '"Cork now!" he shouted.'),
    ("I live in Galway.", "It's Netflix for us now."),
    ("I work at Tesco.", "Monday again, ugh."),
    ("I work at Tesco.", "Ben's at Lidl. Happy again."),
    ("I work at Tesco.", "It's Greek food again."),
    ("I use Spotify.", "Netflix again tonight."),
    ("I use Spotify.", "Coffee now, then Slack."),
    ("I'm a nurse.", "Doctor now please, this hurts."),
    ("I'm a nurse.", "Pilot episode again."),
    ("I'm a teacher.", "The plumber again, third time this week."),
    ("I'm a teacher.", "It's the plumber again, third time this week."),
    ("I study law.", "Maths again with the kids."),
    ("I study law.", "It's maths again for my daughter."),
    ("I study law.", "Physics homework now, for the kid."),
    ("I live in Leeds.", "Leeds again in the cup."),
    ("I live in Leeds.", "Sheffield now, then a train to York."),
    ("I live in Leeds.", "Meeting in Sheffield since Monday."),
    ("I live in Leeds.", "It's Leeds again, the delivery, they never get the address right."),
    ("I work at Asda.", "Nothing but Aldi again in the news."),
    ("I live in Cork.", "Shut the door on Cork's worst taxi driver."),
    ("I live in Cork.", "My brother shut the door on Cork for the last time."),
    ("I live in Cork.", "Goodbye Cork, see you on Sunday!"),
    ("I live in Cork.", "Bye Cork, off for two weeks in the sun."),
    ("I live in Cork.", "One day it'll be goodbye Cork."),
    ("I live in Cork.", "If the rent goes up it's goodbye Cork."),
    ("I live in Cork.", '"Goodbye Cork," sang the band.'),
    ("I live in Cork.", "That's Cork for you."),
    ("I work at Hollis Farm.", "Strawberries are over and so am I."),
    ("I work at Hollis Farm.", "Hollis Farm and I are finished with the hay."),
    ("I work at Hollis Farm.", "Cleared out the fridge at Hollis Farm today."),
    ("I work at Hollis Farm.", "My boss and me are done at Hollis Farm for today."),
    ("I work at Hollis Farm.", "Hollis Farm is behind me, you can see it in the picture."),
    ("I own a bakery.", "Signed for a parcel at the bakery."),
    ("I own a van.", "Handed the van over for its MOT."),
    ("I own a van.", "Gave the van back its shine."),
    ("I have a dog.", "Gave the dog back his ball."),
    ("I use a Kindle.", "The Kindle's in the drawer next to the bed."),
    ("I live in Hull.", "April fool's day at school was fun."),
    ("I live in Hull.", "Not really sure about the weather."),
    ("I study chemistry.", "Ignore me, I study too hard."),
    ("I work at Lindqvist Timber.", "New boss: Karl Hedlund."),
    ("I work at Lindqvist Timber.", "New company car: Volvo."),
    ("I live in Hull.", "New neighbours: the Patels."),
    ("I live in Hull.", "My sister has a new flat: Whitby."),
    ("I used to live in Tartu.", "Tartu has us back for a reunion gig."),
    ("I live in Bogotá.", "And love for Cali."),
    ("I like Tesco.", "Coffee at Tesco? Not since Easter."),
    ("I have a hamster.", "There's no hamster food left."),
    ("I have a hamster.", "No hamster left behind!"),
    ("I work at Acme.", "no more Acme, please, talk about something else."),
    ("I own a Vespa.", "Some toerag nicked my lunch."),
    ("I own a Vespa.", "My neighbour's kid wrote off his Vespa."),
    ("I own a piano.", "The piano went to the tuner."),
    ("I own a piano.", "The piano should go to a school."),
    ("I own a piano.", "If it gets worse the piano goes to a school."),
    ("I own a van.", "The van went to a nice garage in Hull for repairs."),
    ("I have a parrot called Rio.", "Rio didn't make it to the show."),
    ("I have a parrot.", "The neighbour's parrot flew off."),
    ("I plan to learn the cello.", "The guitar plan is dead."),
    ("I plan to learn the cello.", "The cello plan is on hold until May."),
    ("I work at Amazon.", "Packed my last parcel at the post office."),
    ("I work at Amazon.", "My dad packed his last parcel at Amazon."),
    ("I work at Amazon.", "Had my last interview at Amazon years ago."),
    ("I work at Amazon.", "Friday is my last day at Amazon's old site."),
    ("I work at Amazon.", "It was the last day of term."),
    ("I work at Amazon.", "My wife works at Tesco and Friday was her last day there."),
    ("I use Slack.", "Boss binned the coffee machine."),
    ("I use Slack.", "My sister's boss binned Slack."),
    ("I'm Jo.", "I'm officially tired."),
    ("I work at Acme.", "Defected to the biscuits."),
    ("I live in Hull.", "I'm back at my desk in Leeds."),
    ("I live in Hull.", "I'm back at my parents' in Brest for Christmas."),
    ("I promised to feed the cat.", "Done with work for today."),
    ("I promised to feed the cat.", "Feeding the cat is on my list."),
    ("I promised to feed the cat.", "Ben said he fed it."),
    ("I study law.", "It's not law, is it?"),
    ("I study law.", "It is not law. I study hard."),
    ("I live in Hull.", "Why did I say Hull? Because I live in Hull."),
    ("I have two cats and a dog.", "My brother has no dog any more."),
    ("I use vim.", "No more vim jokes, please."),
    ("I live in Leeds.", "I still live here, obviously."),
    ("I live in Leeds.", "New place: Nando's on the corner."),
    ("I live in Leeds.", "Got new keys: Yale, apparently."),
    ("I work at Acme.", "New desk: IKEA."),
    ("I work at Acme.", "New uniform. Blue."),
    ("I like Leeds.", "It's Leeds again for me."),
    ("I was born in Leeds.", "It's Leeds again for me."),
    ("I was born on 9 March 1979.", "My sister's birthday is a typo on the cake. 4 May."),
    ("My favourite colour is green.", "It's late now."),
    ("My favourite colour is green.", "It's raining now."),
    ("My favourite food is ramen.", "It's cold now."),
    ("I'm a waiter.", "No more waiters, please."),
    ("I work at Halliday's.", "Halliday's and I have a meeting."),
    ("I live in Oslo.", "I live in Bergen, says Tom."),
    ("I study law.", "My sister got her degree."),
    ("I live in Kraków.", "Kraków's a closed city on Sundays."),
    ("I live in Hull.", "I'd never say goodbye Hull."),
    ("I live in Hull.", "He said it's Leeds from now on."),
    ("I live in Hull.", "The office is moving: Leeds from Monday."),
    ("I live in Hull.", "The meeting room is called Leeds now."),
    ("I live in Hull.", "The team's playing Leeds now."),
    ("I work at Acme.", "The client is Bosch now."),
    ("I work at Acme.", "Our supplier? Bosch now."),
    ("I use Slack.", "The kids use Discord now."),
    ("I use Slack.", "Discord now has threads."),
    ("I'm a nurse.", "My daughter: doctor as of Monday!"),
    ("I'm a nurse.", "Patient again, third time this year."),
    ("I'm a nurse.", "I'm patient number six now."),
    ("I'm a nurse.", "I'm designated driver now, sadly."),
    ("I'm a nurse.", "I'm mum taxi driver now."),
    ("I study law.", "The topic is history now."),
    ("I study law.", "History again at the museum."),
    ("I live in Hull.", "They had me back at the dentist."),
    ("I work at Acme.", "Acme rang, they want my laptop, I'm still here at home."),
    ("I have a cat.", "One cat is enough, so no more cats."),
    ("I have two cats.", "Three cats on the fence now!"),
    ("I have three hens.", "Two hens now on the roof."),
    ("I live in Hull.", "New town in the game: Riverwood."),
    ("I live in Hull.", "They're building a new town: Northstowe."),
]


def _turns(story: str) -> list[dict[str, str]]:
    """A turn a month."""
    return [
        {"text": text, "timestamp": f"2025-0{month}-03T12:00:00+00:00"}
        for month, text in enumerate(story.split(" | "), start=1)
    ]


def _so(story: str) -> set[tuple[str, str]]:
    known = told(_turns(story)).known.values()
    held = (m for m in known if m.superseded_by is None and m.resolution is None)
    return {
        (m.slot.predicate, m.slot.object)
        for m in held
        if m.slot and m.slot.subject == "user" and not m.slot.predicate.startswith("no longer")
    }


@pytest.mark.parametrize(("story", "current"), CHANGED)
def test_what_is_told_in_passing_is_known(story: str, current: str) -> None:
    """What is so then is known, and nothing else is."""
    pairs = (one.split("=", 1) for one in current.split("; ") if one)
    labels = [{"predicate": predicate, "object": what} for predicate, what in pairs]
    verdict = judged({"current": labels, "past": [], "never": []}, told(_turns(story)))
    assert (verdict.missing, verdict.superfluous) == ((), ())
    assert len(_so(story)) == len(labels)


@pytest.mark.parametrize(("before", "remark"), NOTHING_CHANGED)
def test_what_only_sounds_like_a_change_leaves_everything_as_it_was(
    before: str, remark: str
) -> None:
    """Others' lives, wishes, journeys, quotations, plans, and things that are lent or mended."""
    assert _so(f"{before} | {remark}") == _so(before)
