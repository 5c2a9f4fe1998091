"""What ends without being named as it was told: pets that died, tools that gave way, promises."""

from __future__ import annotations

from uuid import uuid4

import pytest

from engram.domain.memories import MemoryStatus, MemoryType, SemanticMemory
from engram.domain.scope import Scope
from engram.storage.edge import EdgeRepository
from engram.storage.updates import every_page
from tests.support.in_process_memory import InProcessMemory
from tests.support.recall_memories import NOW, day


class Days:
    """Somebody who talks, one conversation every five days."""

    def __init__(self, repository: EdgeRepository) -> None:
        self.memory, self.scope = InProcessMemory(repository), Scope.of("days", uuid4().hex)
        self._repository, self._said = repository, 0

    async def talk(self, *days: str | tuple[str, ...]) -> None:
        """Say what is said each day, and conclude from it; then once more, as after a crash."""
        for number, said in enumerate(days):
            turns, at = (said,) if isinstance(said, str) else said, day(1 + 5 * number)
            ids = await self.memory.hear(self.scope, turns, self._said, at=at, session=f"s{number}")
            self._said += len(turns)
            await self.memory.conclude(self.scope, ids, at)
            before = await self.known()
            await self.memory.conclude(self.scope, ids, at)
            assert await self.known() == before

    async def known(self) -> dict[str, bool]:
        """Each conclusion, and whether it stands."""
        pages = every_page(self._repository, self.scope, MemoryType.SEMANTIC)
        return {
            one.content: one.status is MemoryStatus.ACTIVE
            async for page in pages
            for one in page
            if isinstance(one, SemanticMemory)
        }

    async def answers(self, question: str) -> list[str]:
        """What recall says, best first."""
        found = await self.memory.recall(self.scope, question, NOW)
        return [hit.memory.content for hit in found]


@pytest.fixture
def days(repository: EdgeRepository) -> Days:
    """A memory over the shared store."""
    return Days(repository)


@pytest.mark.parametrize(
    ("before", "then", "over", "holds"),
    [
        (
            "We have a cat called Miso.",
            "Miso died last night, we are heartbroken.",
            "The user has a cat called Miso.",
            "The user no longer has a cat called Miso.",
        ),
        (
            "I have a dog named Rex and a cat called Miso.",
            "Sadly our cat Miso passed away on Monday.",
            "The user has a cat called Miso.",
            "The user has a dog called Rex.",
        ),
        (
            "I have a cat called Miso and a cat called Luna.",
            "Miso died.",
            "The user has a cat called Miso.",
            "The user has a cat called Luna.",
        ),
        (
            "I have a cat called Pip.",
            "I gave Pip to my sister because of my allergy.",
            "The user has a cat called Pip.",
            "The user no longer has a cat called Pip.",
        ),
        (
            "I use VS Code for everything.",
            "I switched to Neovim last week.",
            "The user uses VS Code.",
            "The user uses Neovim.",
        ),
        (
            "I drive a red Golf.",
            "I sold the Golf and bought a Tesla Model 3.",
            "The user drives a red Golf.",
            "The user owns a Tesla Model 3.",
        ),
        (
            "I'm vegetarian.",
            "I'm not vegetarian after all.",
            "The user is vegetarian.",
            "The user is no longer vegetarian.",
        ),
        (
            "I use a ThinkPad X1.",
            "I don't use the ThinkPad any more.",
            "The user uses a ThinkPad X1.",
            "The user no longer uses a ThinkPad X1.",
        ),
        (
            "I use a Pixel 8.",
            "I switched from the Pixel to an iPhone.",
            "The user uses a Pixel 8.",
            "The user uses iPhone.",
        ),
        (
            "I use Windows 11.",
            "I don't use Windows any more.",
            "The user uses Windows 11.",
            "The user no longer uses Windows 11.",
        ),
        (
            "I use a MacBook Pro.",
            "I no longer use the MacBook.",
            "The user uses a MacBook Pro.",
            "The user no longer uses a MacBook Pro.",
        ),
        (
            "I work as a nurse.",
            "I quit my job.",
            "The user works as a nurse.",
            "The user no longer works as a nurse.",
        ),
        (
            "I'm a nurse.",
            "I got fired.",
            "The user works as a nurse.",
            "The user has left their job.",
        ),
        (
            "I'm a nurse at Mercy Hospital.",
            "I'm unemployed now.",
            "The user works as a nurse.",
            "The user has left their job.",
        ),
        (
            "I'm a nurse.",
            "I lost my job, I work as a cook now.",
            "The user works as a nurse.",
            "The user works as a cook.",
        ),
        (
            "I work as a nurse at St. Mary's Hospital.",
            "I retired from nursing.",
            "The user works at St. Mary's Hospital.",
            "The user no longer works as a nurse.",
        ),
        (
            "I work as a nurse at Mercy Hospital.",
            "I quit my job as a nurse.",
            "The user works at Mercy Hospital.",
            "The user no longer works as a nurse.",
        ),
        (
            "My son Leo is allergic to peanuts.",
            "Leo isn't allergic to peanuts.",
            "Leo is allergic to peanuts.",
            "Leo is not allergic to peanuts.",
        ),
        (
            "My son Leo is allergic to peanuts.",
            "My son isn't allergic to peanuts after all.",
            "Leo is allergic to peanuts.",
            "Leo is no longer allergic to peanuts.",
        ),
        *(
            (
                f"My {role} Ana is allergic to nuts.",
                f"My {role} isn't allergic to nuts after all.",
                "Ana is allergic to nuts.",
                "Ana is no longer allergic to nuts.",
            )
            for role in ("daughter", "sister", "boss")
        ),
        (
            "My cousin Eva is allergic to nuts.",
            "My cousin is no longer allergic to nuts.",
            "Eva is allergic to nuts.",
            "Eva is no longer allergic to nuts.",
        ),
        (
            "My brother Leo is allergic to nuts.",
            "My brother isn't allergic to nuts after all.",
            "Leo is allergic to nuts.",
            "Leo is no longer allergic to nuts.",
        ),
        (
            "My son Leo has a dog.",
            "Leo doesn't have a dog any more.",
            "Leo has a dog.",
            "Leo no longer has a dog.",
        ),
        (
            "My boss Tom likes golf.",
            "My boss doesn't like golf any more.",
            "Tom likes golf.",
            "Tom no longer likes golf.",
        ),
        (
            "My boss Tom likes golf.",
            "Tom doesn't like golf.",
            "Tom likes golf.",
            "Tom dislikes golf.",
        ),
        (
            "I weigh 82 kg.",
            "I weigh 78 kg now.",
            "The user weighs 82 kg.",
            "The user weighs 78 kg.",
        ),
        (
            "My girlfriend is called Lena.",
            "Lena and I broke up.",
            "Lena is the user's girlfriend.",
            "The user is no longer together with Lena.",
        ),
        (
            "My dad works at Siemens.",
            "My dad retired in May.",
            "The user's dad works at Siemens.",
            "The user's dad has retired.",
        ),
        (
            "I work at Intel in the validation team.",
            "They laid me off last week.",
            "The user works at Intel.",
            "The user has left their job.",
        ),
        ("I'm vegan.", "I'm eating fish again.", "The user is vegan.", "The user eats fish."),
        (
            "I'm a vegetarian.",
            "I had a steak last night, no longer vegetarian.",
            "The user is vegetarian.",
            "The user is no longer vegetarian.",
        ),
        (
            "We're going to Portugal in June.",
            "The trip got cancelled.",
            "The user plans to go to Portugal.",
            "The user no longer plans to go to Portugal.",
        ),
        (
            "I'm going to visit Japan next spring.",
            "We had to call off the Japan trip.",
            "The user plans to visit Japan.",
            "The user no longer plans to visit Japan.",
        ),
        (
            "I'm a bus driver.",
            "I retired last month.",
            "The user works as a bus driver.",
            "The user has retired.",
        ),
        (
            "I study chemistry.",
            "I switched to biology.",
            "The user studies chemistry.",
            "The user studies biology.",
        ),
        (
            "I study economics.",
            "I switched my major, I'm studying sociology now.",
            "The user studies economics.",
            "The user studies sociology.",
        ),
        (
            "I study law at Leuven.",
            "I graduated in July!",
            "The user studies law.",
            "The user graduated in July.",
        ),
        (
            "I'm studying nursing.",
            "I passed my finals!",
            "The user studies nursing.",
            "The user no longer studies nursing.",
        ),
        (
            "I'm engaged to Pilar.",
            "Pilar and I got married on Saturday.",
            "The user is engaged to Pilar.",
            "The user is married to Pilar.",
        ),
        (
            "I'm engaged to Pilar.",
            "We got married on Saturday!",
            "The user is engaged to Pilar.",
            "The user is married to Pilar.",
        ),
        (
            "My fiancé is called Tom.",
            "Tom and I tied the knot in June.",
            "Tom is the user's fiancé.",
            "The user is married to Tom.",
        ),
        (
            "My husband's called Rolf.",
            "Rolf passed away in January.",
            "The user is married to Rolf.",
            "Rolf has died.",
        ),
        (
            "I have three cats.",
            "One of our cats died yesterday.",
            "The user has three cats.",
            "The user has two cats.",
        ),
        (
            "We have two dogs.",
            "Sadly one of my dogs had to be put down.",
            "The user has two dogs.",
            "The user has one dog.",
        ),
        (
            "I have two sisters.",
            "Correction: I have three sisters.",
            "The user has two sisters.",
            "The user has three sisters.",
        ),
        (
            "I'm going to Iceland in March.",
            "I'm back from Iceland.",
            "The user plans to go to Iceland.",
            "The user no longer plans to go to Iceland.",
        ),
        (
            "I'm going to visit Japan next spring.",
            "Just back from Japan, so jetlagged.",
            "The user plans to visit Japan.",
            "The user no longer plans to visit Japan.",
        ),
        (
            "I'm planning to travel to Peru in June.",
            "Our trip to Peru was amazing.",
            "The user plans to travel to Peru.",
            "The user no longer plans to travel to Peru.",
        ),
        (
            "I'm a nurse.",
            "I quit nursing.",
            "The user works as a nurse.",
            "The user no longer works as a nurse.",
        ),
        (
            "I'm a maths teacher.",
            "I left teaching last summer.",
            "The user works as a maths teacher.",
            "The user no longer works as a maths teacher.",
        ),
        (
            "I work as a software engineer.",
            "I quit programming to open a café.",
            "The user works as a software engineer.",
            "The user no longer works as a software engineer.",
        ),
        (
            "I'm a baker.",
            "I stopped baking for a living.",
            "The user works as a baker.",
            "The user no longer works as a baker.",
        ),
        (
            "I study nursing.",
            "I quit nursing.",
            "The user studies nursing.",
            "The user no longer studies nursing.",
        ),
        (
            "I have three dogs.",
            "One of the dogs died.",
            "The user has three dogs.",
            "The user has two dogs.",
        ),
        (
            "I owe my brother £200 for the car.",
            "Paid my brother back at last.",
            "The user owes their brother £200 for the car.",
            "The user no longer owes their brother £200 for the car.",
        ),
        (
            "I have one daughter.",
            "I have two daughters now.",
            "The user has one daughter.",
            "The user has two daughters.",
        ),
        (
            "I prefer tea to coffee.",
            "I prefer coffee to tea.",
            "The user prefers tea to coffee.",
            "The user prefers coffee to tea.",
        ),
        (
            "I prefer tea.",
            "Changed my mind, I prefer coffee.",
            "The user prefers tea.",
            "The user prefers coffee.",
        ),
        (
            "I use Firefox.",
            "It kept crashing, so now I use Brave.",
            "The user uses Firefox.",
            "The user uses Brave.",
        ),
        (
            "I'm engaged to Rob.",
            "The wedding's off, we split up.",
            "The user is engaged to Rob.",
            "The user and their partner have broken up.",
        ),
        (
            "I live in Nice.",
            "Linz is home now.",
            "The user lives in Nice.",
            "The user lives in Linz.",
        ),
        (
            "I live in Nice.",
            "Zwettl is home now, we moved in March.",
            "The user lives in Nice.",
            "The user lives in Zwettl.",
        ),
    ],
)
async def test_it_ends_by_what_is_known(
    days: Days, before: str, then: str, over: str, holds: str
) -> None:
    """The old value is history, and what holds stands."""
    await days.talk(before, then)
    known = await days.known()
    assert (known[over], known[holds]) == (False, True)


@pytest.mark.parametrize(
    ("before", "then", "stays"),
    [
        ("I have a bike and a bike lock.", "I sold my bike lock.", "The user has a bike."),
        (
            "I have a cat called Miso and a cat called Luna.",
            "Our cat died.",
            "The user has a cat called Luna.",
        ),
        ("I have a cat called Miso.", "Tom died.", "The user has a cat called Miso."),
        (
            "I use Slack.",
            "We switched to Teams for calls with one client.",
            "The user uses Slack.",
        ),
        ("I use Slack.", "I started using Teams.", "The user uses Slack."),
        ("I use Firefox.", "My brother switched to Chrome.", "The user uses Firefox."),
        ("I use Firefox.", "I switched to Neovim.", "The user uses Firefox."),
        ("I use React Native.", "I don't use React any more.", "The user uses React Native."),
        (
            "I use a Pixel 8 and a Pixel 9.",
            "I don't use the Pixel any more.",
            "The user uses a Pixel 8.",
        ),
        (
            "I use Windows and Windows 11.",
            "I don't use Windows any more.",
            "The user uses Windows 11.",
        ),
        (
            "I use Firefox and Chrome.",
            "I switched to Brave.",
            "The user uses Chrome.",
        ),
        (
            "My girlfriend is called Lena.",
            "My friend Tom and his wife got divorced.",
            "Lena is the user's girlfriend.",
        ),
        (
            "I have a dog called Rex.",
            "Rex died of laughter, just kidding.",
            "The user has a dog called Rex.",
        ),
        ("I'm pescatarian.", "I'm eating fish again.", "The user is pescatarian."),
        (
            "We're going to Portugal in June.",
            "The Japan trip is cancelled.",
            "The user plans to go to Portugal.",
        ),
        ("I'm going to learn Welsh.", "The trip got cancelled.", "The user plans to learn Welsh."),
        ("I study chemistry.", "I quit my job.", "The user studies chemistry."),
        (
            "I study chemistry.",
            "I started studying law as well.",
            "The user studies chemistry.",
        ),
        ("I'm a nurse.", "I retired early last night.", "The user works as a nurse."),
        ("I'm a nurse.", "My dad retired in May.", "The user works as a nurse."),
        (
            "I'm a nurse. I also work as a postman.",
            "I quit my job.",
            "The user works as a postman.",
        ),
        (
            "I work as a nurse. I work at Costa. I also work at Tesco.",
            "I quit my job.",
            "The user works as a nurse.",
        ),
        (
            "I'm a nurse at Mercy Hospital.",
            "I left my job at Mercy Hospital.",
            "The user works as a nurse.",
        ),
        (
            "I'm a nurse at Mercy Hospital.",
            "I'm not a nurse any more, I'm head of the ward.",
            "The user works at Mercy Hospital.",
        ),
        ("I'm a nurse.", "My sister lost her job.", "The user works as a nurse."),
        (
            "My son Leo is allergic to nuts. My son Max is allergic to nuts.",
            "My son isn't allergic to nuts.",
            "Leo is allergic to nuts.",
        ),
        *(
            (
                f"My {role} Anna is allergic to nuts.",
                f"I'm cooking on Friday. My {role} isn't allergic to nuts.",
                "Anna is allergic to nuts.",
            )
            for role in ("friend", "neighbour", "colleague", "cousin")
        ),
        (
            "My son Leo is allergic to nuts.",
            "She isn't allergic to nuts.",
            "Leo is allergic to nuts.",
        ),
        (
            "My son Leo is allergic to nuts.",
            "Tom says Leo isn't allergic to nuts.",
            "Leo is allergic to nuts.",
        ),
        ("My son Leo likes golf.", "Max doesn't like golf.", "Leo likes golf."),
        ("I'm a nurse.", "I almost quit my job.", "The user works as a nurse."),
        ("I'm a cook now, I quit my job.", "It's raining.", "The user works as a cook."),
        ("I study physics.", "My sister graduated in July.", "The user studies physics."),
        ("I study physics.", "I graduated from high school in 2015.", "The user studies physics."),
        ("I study physics and law.", "I graduated.", "The user studies physics."),
        (
            "I'm engaged to Pilar.",
            "My brother got married on Saturday.",
            "The user is engaged to Pilar.",
        ),
        (
            "I have a cat called Miso and a cat called Luna.",
            "One of my cats died.",
            "The user has a cat called Luna.",
        ),
        ("I have three cats.", "One of my sister's cats died.", "The user has three cats."),
        ("I have two dogs.", "I have three cats.", "The user has two dogs."),
        ("I have one sister.", "I have two brothers.", "The user has one sister."),
        ("I prefer window seats.", "I prefer coffee to tea.", "The user prefers window seats."),
        ("I use Obsidian.", "Now I use Brave.", "The user uses Obsidian."),
        ("I have two dogs.", "One of the cats in the film died.", "The user has two dogs."),
        (
            "I'm going to Iceland in March.",
            "I'm back from Rome.",
            "The user plans to go to Iceland.",
        ),
        (
            "I'm going to Iceland in March.",
            "My sister is back from Iceland.",
            "The user plans to go to Iceland.",
        ),
        ("I'm a teacher.", "I left teaching materials at home.", "The user works as a teacher."),
        ("I'm a painter.", "I quit smoking.", "The user works as a painter."),
        (
            "I owe Ana a coffee.",
            "I paid Stefan back.",
            "The user owes Ana a coffee.",
        ),
        ("I live in Nice.", "Tom is home now.", "The user lives in Nice."),
        ("I live in Nice.", "Mum's home again, she's fine.", "The user lives in Nice."),
    ],
)
async def test_nothing_ends_that_was_not_meant(
    days: Days, before: str, then: str, stays: str
) -> None:
    """Something else, somebody else's, or which of several nobody can tell."""
    await days.talk(before, then)
    assert (await days.known())[stays]


@pytest.mark.parametrize(("pronoun", "holds"), [("He", False), ("She", True)])
async def test_what_is_not_so_of_him_is_not_so_of_whom_the_turn_before_names(
    days: Days, pronoun: str, holds: bool
) -> None:
    """A son is no "she": of whom nobody can tell who it is, nothing is concluded."""
    await days.talk(
        ("My son Leo is allergic to peanuts.", f"{pronoun} isn't allergic to peanuts any more.")
    )
    known = await days.known()
    assert known["Leo is allergic to peanuts."] is holds
    assert not any(one.startswith(pronoun) for one in known)


async def test_a_new_job_says_enough_of_the_old_one(days: Days) -> None:
    """Whoever tells both in one turn need not be told that they do the old work no longer."""
    await days.talk("I'm a nurse.", "I quit my job, I work as a cook now.")
    assert "The user no longer works as a nurse." not in await days.known()


@pytest.mark.parametrize(
    ("promised", "done", "how"),
    [
        ("I promised Tom I'd send him the slides.", "I sent Tom the slides this morning.", "kept"),
        (
            "I promised Mira to bring the folding chairs on Saturday.",
            "Brought the folding chairs over to Mira today.",
            "kept",
        ),
        (
            "I promised Leo to fix his bike.",
            "I can't fix Leo's bike after all, the frame is broken.",
            "no longer means",
        ),
        ("I promised Tom I'd send him the slides.", "I sent Tom a birthday card.", None),
        ("I promised my mum to call her every Sunday.", "I called my mum yesterday.", None),
        ("I told Ana I'd help her move on Friday.", "I helped Ana with her tax return.", None),
        ("I promised Tom I'd send him the slides.", "Done, finally!", None),
        ("I promised Ada my quilt, I'd give it to her.", "Ada got a quilt from the shop.", None),
        (
            "I promised to bring the cake to Mia's party.",
            "Mia got a cake from the bakery for the party.",
            "no longer means",
        ),
        (
            "I promised to bring the cake to Mia's party.",
            "Mia got her cake in time for the party, three tiers of it.",
            "kept",
        ),
        ("I promised Jo to buy the milk.", "The milk is off.", None),
        ("I promised Jo to fix the heating.", "The heating is off again.", None),
        ("I promised to organise the picnic.", "The picnic is off.", "no longer means"),
        (
            "I promised to write a review of Kai's book.",
            "Kai's book was published on Monday.",
            None,
        ),
        (
            "I promised to write a review of Kai's book.",
            "The review of Kai's book was published on Monday.",
            "kept",
        ),
        (
            "I promised to write a summary of the report.",
            "The report has been submitted.",
            None,
        ),
        (
            "I promised Mrs Doyle to fix the gate.",
            "Mrs Doyle got her nephew to fix the gate.",
            "no longer means",
        ),
        ("I promised Pavel to return the drill.", "I returned the wrong drill.", None),
        ("I promised the club to repair the boat.", "The boat's sound again.", "kept"),
        ("I promised my wife to give up sugar.", "I caved and had one.", "no longer means"),
        ("I promised my wife to quit smoking.", "Caved.", "no longer means"),
        ("I promised my wife to give up sugar.", "I caved and bought the shoes.", None),
        ("I promised my wife to buy sugar.", "I caved and had one.", None),
        ("I promised to write the article.", "The article isn't written.", None),
        ("I promised to give up crisps.", "Ate a whole bag of crisps, oops.", "no longer means"),
        ("I promised to give up crisps.", "My son ate a whole bag of crisps.", None),
        ("I promised Tove to book the room.", "The room's not booked yet.", None),
        ("I told Jun I'd proofread the essay.", "The essay is proofread.", "kept"),
        ("I promised to delete the photos.", "The photos are gone.", "kept"),
        ("I told Gran I'd take the car to the garage.", "The car's at the garage.", "kept"),
        ("I told Gran I'd take the car to the garage.", "The car's at the station.", None),
        ("I promised to clean the oven.", "Paid someone to do it, the oven.", "no longer means"),
        ("I promised to sing the solo.", "Freya is doing the solo.", "no longer means"),
        ("I promised to book the restaurant.", "The table's booked for eight.", "kept"),
        ("I promised to book the restaurant.", "I booked the hotel.", None),
        ("I promised to help Pilar paint the shed.", "Spent Saturday painting the shed.", "kept"),
    ],
)
async def test_a_promise_of_another_conversation_ends_where_it_is_named(
    days: Days, promised: str, done: str, how: str | None
) -> None:
    """Kept or called off without "as promised"; what is only like it leaves it open."""
    await days.talk(promised, done)
    known = await days.known()
    (still_open,) = [stands for one, stands in known.items() if " promised " in one]
    ended = [one for one in known if "their promise" in one or "no longer means" in one]
    assert still_open is (how is None)
    assert [how is not None and how in one for one in ended] == ([] if how is None else [True])


@pytest.mark.parametrize(
    ("first", "then", "stands"),
    [
        (
            "I promised Mum to call Grandma.",
            "I'll ring Grandma tomorrow.",
            "The user promised Mum to call Grandma.",
        ),
        (
            "I'll send Mira the slides.",
            "I promised to email the slides to Mira.",
            "The user promised to send Mira the slides.",
        ),
        (
            "I owe Stefan 50 euros.",
            "I still owe Stefan the money.",
            "The user owes Stefan 50 euros.",
        ),
        (
            "I promised to pay Stefan back.",
            "I still owe Stefan the money.",
            "The user promised to pay Stefan back.",
        ),
    ],
)
async def test_a_promise_made_again_in_other_words_is_the_same(
    days: Days, first: str, then: str, stands: str
) -> None:
    """One memory, in the words in which it was first told."""
    await days.talk(first, then)
    known = await days.known()
    assert [one for one in known if " promised " in one or " owes " in one] == [stands]


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("I promised to send Tom 20 euros.", "I'll send Tom 50 euros."),
        ("I promised to call Grandma.", "I'll call Aunt Petra tomorrow."),
        ("I promised to call Grandma every Sunday.", "I'll ring Grandma tomorrow."),
        ("I owe Ana a coffee.", "I owe Ana 20 euros."),
    ],
)
async def test_another_promise_is_one_more(days: Days, first: str, then: str) -> None:
    """To somebody else, of something else, or once what was promised for every week."""
    await days.talk(first, then)
    known = await days.known()
    assert [stands for one, stands in known.items() if " promised " in one or " owes " in one] == [
        True,
        True,
    ]


@pytest.mark.parametrize(
    ("said", "question", "first"),
    [
        (
            ["I have never been to Japan.", "We just came back from Japan, it was amazing."],
            "Have I been to Japan?",
            "We just came back from Japan, it was amazing.",
        ),
        (
            ["I've never been to Japan, but I'd love to go.", "I went to Japan in March."],
            "Have I been to Japan?",
            "The user went to Japan in March.",
        ),
        (
            ["I've never been to Japan.", "I'm going to Japan in May!"],
            "Have I been to Japan?",
            "The user has never been to Japan.",
        ),
        (
            ["I've never been to Japan.", "My sister came back from Japan."],
            "Have I been to Japan?",
            "The user has never been to Japan.",
        ),
        (
            [
                "I use Obsidian for my notes.",
                "I don't use Obsidian any more, I switched to Logseq.",
            ],
            "What do I use for notes?",
            "The user uses Logseq.",
        ),
        (
            ["My editor is VS Code.", "I've switched to Neovim."],
            "Which editor do I use?",
            "The user uses Neovim.",
        ),
        (
            ["I use Slack.", "I don't use Slack any more, I switched to Teams."],
            "Do I use Slack?",
            "The user does not use Slack.",
        ),
        (
            ["My sister Clara lives in Rome with her boyfriend.", "Clara moved to Milan for work."],
            "Where does my sister live?",
            "Clara lives in Milan for work.",
        ),
        (
            ["My flight is at 7am.", "Sorry, I got that wrong, my flight is at 9am."],
            "When is my flight?",
            "The user's flight is at 9am.",
        ),
        (
            [
                "My favourite band is Radiohead.",
                "Lately I prefer Pulp, they're my favourite band now.",
            ],
            "What is my favourite band?",
            "The user's favourite band is Pulp.",
        ),
        (
            ["We're going to Portugal in June.", "The trip got cancelled."],
            "Where are we going in June?",
            "The user no longer plans to go to Portugal.",
        ),
    ],
)
async def test_the_answer_is_what_holds_now(
    days: Days, said: list[str], question: str, first: str
) -> None:
    """Before what it replaced, what is over, and what was denied in the same breath."""
    await days.talk(*said)
    assert (await days.answers(question))[0] == first


@pytest.mark.parametrize(
    ("said", "owes", "over"),
    [
        (
            ["I owe Ana 20 euros.", "I owe Stefan 50 euros.", "I paid Ana back."],
            ["The user owes Stefan 50 euros."],
            ["The user owes Ana 20 euros."],
        ),
        (
            [("I owe Ana 20 euros.", "I owe Stefan 50 euros."), "Paid Stefan back on Friday."],
            ["The user owes Ana 20 euros."],
            ["The user owes Stefan 50 euros."],
        ),
        (
            ["I owe Ana 20 euros.", "I paid Ana back.", "I owe Ana 30 euros."],
            ["The user owes Ana 30 euros."],
            ["The user owes Ana 20 euros."],
        ),
        (
            ["I owe Ana and Stefan 20 euros each.", "I paid Ana back."],
            ["The user owes Stefan 20 euros."],
            ["The user owes Ana 20 euros."],
        ),
        # A part of it, all of it, and one of two.
        (["I owe Ana 20 euros.", "I paid Ana back 5 euros."], ["The user owes Ana 20 euros."], []),
        (["I owe Ana 20 euros.", "I paid Ana back half."], ["The user owes Ana 20 euros."], []),
        (
            ["I owe Ana 20 euros.", "I paid Ana back the 20 euros."],
            ["The user no longer owes Ana 20 euros."],
            ["The user owes Ana 20 euros."],
        ),
        (
            ["I owe Ana 20 euros.", "I paid Ana back the rest, 15 euros."],
            ["The user no longer owes Ana 20 euros."],
            ["The user owes Ana 20 euros."],
        ),
        (
            ["I owe Ana 20 euros.", "I earned 500 euros and paid Ana back."],
            ["The user no longer owes Ana 20 euros."],
            ["The user owes Ana 20 euros."],
        ),
        (
            ["I owe Ana for lunch.", "I paid Ana back 12 euros."],
            ["The user no longer owes Ana for lunch."],
            ["The user owes Ana for lunch."],
        ),
        (
            ["I owe Ana 20 euros.", "I owe Ana 30 euros for tickets.", "I paid Ana back 20 euros."],
            ["The user owes Ana 30 euros for tickets."],
            ["The user owes Ana 20 euros."],
        ),
    ],
)
async def test_who_is_paid_back_is_owed_no_more(
    days: Days, said: list[str], owes: list[str], over: list[str]
) -> None:
    """And whoever else is, still; what is owed later stays, and what was paid in part only."""
    await days.talk(*said)
    known = await days.known()
    assert all(known[one] for one in owes)
    assert not any(known[one] for one in over)


async def test_a_denial_stands_behind_what_its_turn_says_instead(days: Days) -> None:
    """Who asks where somebody lives is not told where they do not."""
    await days.talk("I live in Bern.", "I don't live in Zurich, I live in Bern.")
    found = await days.answers("Where do I live?")
    assert found.index("The user lives in Bern.") < found.index("The user does not live in Zurich.")


async def test_who_mistyped_mends_with_the_value_alone(days: Days) -> None:
    """The user's own slip, told as one, in the next sentence."""
    await days.talk(("My birthday is on 3 May.", "Wait, I typed that wrong. It's 5 May."))
    known = await days.known()
    assert known["The user's birthday is on 5 May."]
    assert not known.get("The user's birthday is on 3 May.", False)


@pytest.mark.parametrize(
    ("said", "size"),
    [
        (("My shoe size is 42.", "No wait, 43."), "43"),
        (("My shoe size is 42.", "Sorry, it's 43"), "43"),
        (("My shoe size is 42.", "Sorry, 5 minutes, please."), "42"),
        (("My rent is 900.", "My shoe size is 42.", "I have 3 pairs.", "No wait, 2."), "42"),
    ],
)
async def test_a_number_alone_mends_the_only_one_that_was_told(
    days: Days, said: tuple[str, ...], size: str
) -> None:
    """Nobody need say again of what; of several numbers nobody can tell which is meant."""
    await days.talk(said)
    known = await days.known()
    assert [one for one, holds in known.items() if holds and one.startswith("The user's shoe")] == [
        f"The user's shoe size is {size}."
    ]


async def test_a_trip_that_is_cancelled_was_no_possession(days: Days) -> None:
    """No "does not have Portugal"."""
    await days.talk("We cancelled Portugal, we're going to Wales instead.")
    assert not [one for one in await days.answers("Portugal") if "not have" in one]


@pytest.mark.parametrize(
    "mended",
    [
        "Sorry, my son's name is Leon.",
        "No, wait, our son is called Leon.",
        "Oops, my mistake: my son is called Leon.",
    ],
)
async def test_a_name_that_is_mended_takes_the_place_of_the_wrong_one(
    days: Days, mended: str
) -> None:
    """Of the one son that is known, also in another conversation."""
    await days.talk("My son's name is Leo Johnson.", mended)
    known = await days.known()
    assert known["Leon is the user's son."]
    assert not known["Leo Johnson is the user's son."]
    assert known["Leon is the user's son, not Leo Johnson."]


@pytest.mark.parametrize(
    "said",
    [
        ("My son's name is Leo.", "My son's name is Leon."),
        ("My son's name is Leo.", "Sorry, my other son's name is Leon."),
        ("My son's name is Leo.", "Sorry, my daughter's name is Leonie."),
        ("My son's name is Leo.", "My son's name is Max.", "Sorry, my son's name is Leon."),
    ],
)
async def test_one_more_name_ends_no_other(days: Days, said: tuple[str, ...]) -> None:
    """Nothing was mended, somebody else was named, or which of two was meant nobody knows."""
    await days.talk(*said)
    assert (await days.known())["Leo is the user's son."]


@pytest.mark.parametrize(
    ("now", "long_ago", "said"),
    [
        ("I'm married to Ann.", "I married Beth in 2001.", "married to"),
        ("I'm married to Ann.", "I got married to Beth in 2001.", "married to"),
        ("I'm married to Ann.", "Beth and I tied the knot in 2001.", "married to"),
        ("I'm engaged to Ann.", "I got engaged to Beth in 2010.", "engaged to"),
    ],
)
async def test_a_wedding_of_long_ago_ends_no_marriage_of_now(
    days: Days, now: str, long_ago: str, said: str
) -> None:
    """It is of its own date, like a move; what holds now goes on."""
    await days.talk(now, long_ago)
    assert await days.known() == {
        f"The user is {said} Ann.": True,
        f"The user is {said} Beth.": False,
    }


@pytest.mark.parametrize(
    ("now", "said", "holds"),
    [
        ("I have a cat called Miso.", "My old cat died when I was five.", "has a cat called Miso"),
        ("I have a cat called Miso.", "Our cat died when we were kids.", "has a cat called Miso"),
        ("I have a cat called Miso.", "Our first cat died.", "has a cat called Miso"),
        ("I have a cat called Miso.", "My cat died when I was 12.", "has a cat called Miso"),
        ("I have a cat called Miso.", "My cat died as a kid in Spain.", "has a cat called Miso"),
        ("I'm married to Ann.", "We split up but got back together.", "is married to Ann"),
        ("I'm married to Ann.", "I left Ann, but we're back together.", "is married to Ann"),
        ("I use Vim.", "I don't use Vim any more, only on Mondays I do.", "uses Vim"),
        ("I use Vim.", "I don't use Vim any more, only in the London office.", "uses Vim"),
    ],
)
async def test_what_is_over_long_since_or_not_after_all_ends_nothing(
    days: Days, now: str, said: str, holds: str
) -> None:
    """The cat of a childhood is not the cat of today, and a couple that made up is one."""
    await days.talk(now, said)
    assert await days.known() == {f"The user {holds}.": True}


@pytest.mark.parametrize(
    ("now", "said", "over"),
    [
        ("I have a cat called Miso.", "Our cat died when I was in Spain.", "has a cat called Miso"),
        ("I have a cat called Miso.", "My old cat died.", "has a cat called Miso"),
        ("I have a dog.", "My first dog died, and now the second one died too.", "has a dog"),
        ("I have a cat.", "My cat died as a teenager hit her with a car.", "has a cat"),
        ("I have a dog.", "My dog died when I was 40.", "has a dog"),
        ("I have a cat.", "My childhood cat died last week.", "has a cat"),
        ("I'm married to Ann.", "We split up, and won't get back together.", "is married to Ann"),
        ("I'm married to Tom.", "I divorced Tom; I'm back together with Max.", "is married to Tom"),
        (
            "I'm married to Tom.",
            "We're back together on Zoom only, I divorced Tom.",
            "is married to Tom",
        ),
        ("I use Vim.", "I no longer use Vim, only in the evening Emacs.", "uses Vim"),
        ("I use Vim.", "I don't use Vim any more, but only on Mondays Nano.", "uses Vim"),
    ],
)
async def test_what_is_over_now_is_over(days: Days, now: str, said: str, over: str) -> None:
    """Neither when it happened nor what did not come of it makes it doubtful."""
    await days.talk(now, said)
    assert (await days.known())[f"The user {over}."] is False


async def told_late(days: Days, *said: tuple[int, str]) -> dict[str, bool]:
    """What is known of turns of these days, each taken up, and once more, when all are heard."""
    heard = [
        await days.memory.hear(days.scope, [words], n, at=day(at), session=f"s{n}")
        for n, (at, words) in enumerate(said)
    ]
    for ids in heard:
        await days.memory.conclude(days.scope, ids, NOW)
        before = await days.known()
        await days.memory.conclude(days.scope, ids, NOW)
        assert await days.known() == before
    return await days.known()


@pytest.mark.parametrize(
    ("before", "then", "over"),
    [
        ("I have a cat called Miso.", "Our cat died.", "has a cat called Miso"),
        ("I have a cat called Miso.", "Miso died.", "has a cat called Miso"),
        ("I use Vim.", "I switched to Neovim.", "uses Vim"),
        ("I use a ThinkPad X1.", "I don't use the ThinkPad any more.", "uses a ThinkPad X1"),
        ("I owe Tom 20 euros.", "I paid Tom back.", "owes Tom 20 euros"),
        ("I'm engaged to Ann.", "I got married to Ann.", "is engaged to Ann"),
        ("I work as a nurse.", "I got fired.", "works as a nurse"),
        ("I own a red Golf.", "I sold the Golf.", "owns a red Golf"),
        ("I have two sisters.", "I have three sisters.", "has two sisters"),
    ],
)
async def test_what_had_ended_by_another_name_ends_when_it_comes_in_late(
    days: Days, before: str, then: str, over: str
) -> None:
    """Told in May and imported after its end of June, it is over as if it had come in order."""
    known = await told_late(days, (6, then), (1, before))
    assert known[f"The user {over}."] is False


@pytest.mark.parametrize(
    ("said", "stands"),
    [
        # Told again since, or of another time, or by another name.
        ([(6, "Our cat died."), (9, "I have a cat called Miso.")], "has a cat called Miso"),
        ([(6, "Our dog died."), (1, "I have a cat called Miso.")], "has a cat called Miso"),
        ([(6, "Luna died."), (1, "I have a cat called Miso.")], "has a cat called Miso"),
        ([(6, "I use Neovim."), (1, "I use Vim.")], "uses Vim"),
        ([(6, "I paid Tom back 5 euros."), (1, "I owe Tom 20 euros.")], "owes Tom 20 euros"),
        # Two could be meant.
        (
            [
                (1, "I have a cat called Luna and a cat called Tiger."),
                (6, "Our cat died."),
                (2, "I have a cat called Miso."),
            ],
            "has a cat called Miso",
        ),
    ],
)
async def test_what_comes_in_late_stands_where_nothing_ended_it(
    days: Days, said: list[tuple[int, str]], stands: str
) -> None:
    """As where it comes in order: of what follows, nothing means it."""
    assert (await told_late(days, *said))[f"The user {stands}."] is True
