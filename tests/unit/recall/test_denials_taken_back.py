"""A denial ends when the same person says what it denies: what was said last is what holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engram.consolidation.forgetting import Forgetter
from engram.contracts.consolidation import MarkConsolidatedInput
from engram.domain.memories import MemoryStatus, MemoryType, NegationFact, SemanticMemory
from engram.domain.scope import Scope
from engram.language.negation_scope import covers
from engram.lifecycle.decisions import settle
from engram.recall.context import Briefing
from engram.storage.edge import EdgeRepository
from engram.storage.updates import every_page, one_memory, update_memories
from tests.support.in_process_memory import InProcessMemory, run
from tests.support.recall_memories import day
from tests.support.sizes import examples

NOW = day(27)
LATER = day(900)


@dataclass
class Somebody:
    """A user, and what they have said so far."""

    memory: InProcessMemory
    scope: Scope = field(default_factory=lambda: Scope.of("denials", uuid4().hex))
    said: int = 0

    async def says(
        self, *words: str, role: str = "user", on: int | None = None, read: bool = True
    ) -> str:
        """One turn after the other, each on a day of its own; the id of the last."""
        last = ""
        for one in words:
            self.said += 1
            at = day(self.said if on is None else on)
            (last,) = await self.memory.hear(self.scope, [one], self.said, role, at=at)
            if read:
                await self.memory.consolidate(self.scope, NOW)
        return last

    async def denials(self, status: MemoryStatus = MemoryStatus.ACTIVE) -> list[NegationFact]:
        """What is denied, or was."""
        pages = every_page(self.memory.repository, self.scope, MemoryType.NEGATION)
        every = [one async for page in pages for one in page]
        return [one for one in every if isinstance(one, NegationFact) and one.status is status]

    async def fade_denials(self) -> None:
        """Nobody asks for what is denied for so long that it leaves the answers."""
        rules = self.memory.settings.lifecycle_rules
        ids = [one.id for one in await self.denials()]
        await update_memories(
            self.memory.repository,
            self.scope,
            ids,
            lambda one: settle(one, LATER, rules).memory,
            new_write_id=lambda: uuid4().hex,
        )

    async def answers(self, question: str, now: datetime = NOW, **more: Any) -> list[str]:
        """What is concluded of it, the best first."""
        hits = await self.memory.recall(self.scope, question, now, **more)
        kinds = (MemoryType.SEMANTIC, MemoryType.NEGATION)
        return [hit.memory.content for hit in hits if hit.memory.type in kinds]

    async def briefing(self) -> list[str]:
        """What a conversation begins with."""
        rules, negations = self.memory.settings.lifecycle_rules, self.memory.recaller.negations
        briefing = Briefing(self.memory.repository, rules, negations, 100)
        return [one.memory.content for one in await briefing.of(self.scope, NOW, 10)]

    async def forget(self, memory_id: str) -> None:
        """Forget it, and look again."""
        forgetter = Forgetter(self.memory.repository, lambda: uuid4().hex)
        plan = await forgetter.plan(self.scope, memory_id)
        await forgetter.apply(self.scope, plan)
        await forgetter.look_again(self.scope, plan)


@pytest.fixture
def ada(repository: EdgeRepository) -> Somebody:
    """A user of whom nothing is known."""
    return Somebody(InProcessMemory(repository))


TAKEN_BACK = [
    ("I use Mongo.", "I don't use Mongo any more.", "I use Mongo again."),
    ("I don't use Mongo.", "I use Mongo."),
    ("I don't like coffee.", "I like coffee now."),
    ("I don't speak French.", "I learned French, I speak it fluently now."),
    ("I am not married.", "I got married to Tim yesterday."),
    ("I've never been to Japan.", "I went to Japan last month."),
    ("I don't eat meat.", "I started eating meat again."),
    ("I don't have a car.", "I bought a car."),
    ("I don't have a dog.", "We adopted a dog."),
    ("I don't smoke.", "I started smoking again, sadly."),
    ("I don't drive.", "I'm driving again."),
    ("I don't cook.", "I cook every day now."),
    ("I don't smoke.", "I smoke again when I'm out."),
    ("I don't drink.", "I drink socially these days."),
    ("I don't take ibuprofen.", "I take ibuprofen again, for my back."),
    ("I don't eat meat.", "I eat meat once again for my iron."),
    ("I don't drink coffee.", "I drink coffee twice a day, when I'm at work."),
    ("I don't have a dog.", "I got a dog from the shelter."),
    ("I don't drink coffee.", "I drink coffee again."),
    ("I don't drink alcohol.", "So, I drink alcohol again since yesterday."),
    ("I don't eat gluten.", "I eat gluten again, the test was wrong."),
    ("I don't have an iPhone.", "I have an iPhone."),
    ("I don't have an iPhone.", "I bought an iPhone 17."),
    ("I don't have Netflix.", "I have Netflix now."),
    ("I don't have WhatsApp.", "I have WhatsApp, what's the number?"),
    ("I don't have a credit card.", "I have a credit card now."),
]


@pytest.mark.parametrize("apart", [True, False], ids=["one by one", "together"])
@pytest.mark.parametrize("turns", TAKEN_BACK, ids=lambda turns: turns[-1])
async def test_a_later_affirmation_ends_the_denial(
    ada: Somebody, turns: tuple[str, ...], apart: bool
) -> None:
    """Whatever it is about, and however the turns are read, nothing denies it any more."""
    await ada.says(*turns, read=apart)
    await ada.memory.consolidate(ada.scope, NOW)
    assert await ada.denials() == []
    (ended,) = await ada.denials(MemoryStatus.SUPERSEDED)
    by = await one_memory(ada.memory.repository, ada.scope, ended.superseded_by or "")
    assert covers(ended, by) or "bought" in by.content or "adopted" in by.content
    assert isinstance(by, SemanticMemory)
    assert ended.id in by.supersedes
    assert ended.superseded_known_at == day(ada.said)
    told = await ada.answers(turns[-1])
    assert told
    assert not any("not" in one or "n't" in one or "never" in one for one in told)


@pytest.mark.parametrize("few", [True, False])
async def test_a_denial_that_faded_denies_until_it_is_taken_back(
    ada: Somebody, monkeypatch: pytest.MonkeyPatch, few: bool
) -> None:
    """Leaving the answers takes nothing back; saying the opposite does, however many there are."""
    if not few:
        monkeypatch.setattr("engram.lifecycle.denials._FEW", 0)
    await ada.says("I always drink green tea in the morning.", "I don't drink green tea.")
    await ada.fade_denials()
    assert await ada.denials() == []
    so = "The user always drinks green tea in the morning."
    assert so not in await ada.answers("What do I drink in the morning?", LATER)
    assert so not in await ada.briefing()
    await ada.says("I drink green tea again.")
    (ended,) = await ada.denials(MemoryStatus.SUPERSEDED)
    assert ended.superseded_by
    told = {so, "The user drinks green tea."}
    assert set(await ada.answers("What do I drink in the morning?", LATER)) == told


async def test_a_denial_that_faded_comes_back_as_that(ada: Somebody) -> None:
    """Forgetting what took it back does not offer it again."""
    await ada.says("I don't drink green tea.")
    await ada.fade_denials()
    turn = await ada.says("I drink green tea again.")
    assert len(await ada.denials(MemoryStatus.SUPERSEDED)) == 1
    await ada.forget(turn)
    assert await ada.denials() == []
    (back,) = await ada.denials(MemoryStatus.ARCHIVED)
    assert (back.superseded_by, back.valid_to) == (None, None)


async def test_who_does_not_drink_it_any_more_may_like_it(ada: Somebody) -> None:
    """Nothing is said of liking, so nothing of it is left when it is drunk again."""
    await ada.says("I like gin.", "I don't drink gin any more.")
    assert "The user likes gin." in await ada.answers("Do I like gin?")
    await ada.says("I drink gin again.")
    told = await ada.answers("Do I like gin?")
    assert set(told) == {"The user likes gin.", "The user drinks gin."}


async def test_before_it_was_taken_back_it_still_denies(ada: Somebody) -> None:
    """As of an earlier day, what was said by then is the answer."""
    await ada.says("I don't like coffee.", "I like coffee now.")
    then = await ada.answers("Do I like coffee?", as_of=day(1))
    assert "The user does not like coffee." in then
    assert "The user likes coffee." not in then


@pytest.mark.parametrize(
    "words",
    [
        "If I used Mongo, it would be slow.",
        "Should I use Mongo?",
        "My colleague uses Mongo.",
        "I used Mongo in 2015.",
        "I plan to use Mongo one day.",
        "I don't use Mongo.",
        "I use Mongoose.",
    ],
)
async def test_what_does_not_affirm_it_ends_no_denial(ada: Somebody, words: str) -> None:
    """Neither what is asked, supposed, of others or long ago, nor the denial told again."""
    await ada.says("I don't use Mongo.", words)
    assert [one.content for one in await ada.denials()] == ["The user does not use Mongo."]


@pytest.mark.parametrize(
    ("denied", "words"),
    [
        ("I don't drink.", "I drink two litres of water a day."),
        ("I don't smoke.", "I smoke salmon at home."),
        ("I don't dance.", "I dance around the topic."),
        ("I don't vote.", "I vote for pizza tonight."),
        ("I never gamble.", "I gamble with my health."),
        ("I don't drive.", "I always drive my kids crazy."),
    ],
)
async def test_a_verb_denied_alone_is_not_affirmed_by_what_is_done_to_something(
    ada: Somebody, denied: str, words: str
) -> None:
    """Who smokes salmon does not smoke."""
    await ada.says(denied)
    before = await ada.denials()
    await ada.says(words)
    assert await ada.denials() == before != []


@pytest.mark.parametrize(
    "words",
    [
        "I take ibuprofen only in an emergency.",
        "I take ibuprofen rarely.",
        "I take ibuprofen seldom.",
        "I take ibuprofen when it's bad.",
        "I take ibuprofen too much.",
        "I take ibuprofen too often.",
        "I take ibuprofen too lightly.",
        "I take ibuprofen in an emergency.",
        "I take ibuprofen in emergencies.",
        "I eat meat once a year.",
        "I eat meat twice a year.",
        "I eat meat a few times a year.",
        "I eat meat once in a while.",
        "I eat meat once every winter.",
        "I take ibuprofen and then I get hives.",
        "I take ibuprofen and ten minutes later I get hives.",
        "I take ibuprofen and two hours later I get hives.",
        "I take ibuprofen at parties.",
        "My mum says I take ibuprofen.",
    ],
)
async def test_what_is_said_with_a_limit_or_by_others_ends_no_denial(
    ada: Somebody, words: str
) -> None:
    """Nothing but that it is so is the opposite of that it is not so."""
    await ada.says("I don't take ibuprofen.", "I don't eat meat.")
    before = await ada.denials()
    await ada.says(words)
    assert await ada.denials() == before
    assert not {"The user takes ibuprofen.", "The user eats meat."} & set(await ada.answers(words))


async def test_what_is_noted_with_its_limit_takes_the_place_of_the_denial(ada: Somebody) -> None:
    """What holds by then is said as it was told: "once a year"."""
    await ada.says("I don't take ibuprofen.", "I take ibuprofen once a year.")
    assert await ada.denials() == []
    assert "The user takes ibuprofen once a year." in await ada.answers("Do I take ibuprofen?")


@pytest.mark.parametrize(
    "words",
    ["I bought a car for my brother.", "I got a car from the rental place.",
     "I bought a car wash.", "I got rid of a car.",
     "In 2015 I bought a car."],
)  # fmt: skip
async def test_what_does_not_make_it_so_ends_no_denial(ada: Somebody, words: str) -> None:
    """What was bought for somebody else, is something else, or was long ago, is not had now."""
    await ada.says("I don't have a car.", words)
    assert [one.content for one in await ada.denials()] == ["The user does not have a car."]


@pytest.mark.parametrize(
    "words",
    [
        "If I drink coffee, I get a headache.",
        "When I drink coffee I get a headache.",
        "Do I drink coffee?",
        "I wish I drank coffee.",
        "I might drink coffee again.",
        "I want to drink coffee again.",
        'The doctor asked: "I drink coffee again, is that you?"',
        "My mum thinks I drink coffee.",
        "I hardly drink coffee.",
        "I drink coffee substitute.",
        "My son drinks coffee.",
    ],
)
async def test_what_no_statement_affirms_is_affirmed_by_plain_words_alone(
    ada: Somebody, words: str
) -> None:
    """Of a verb that no rule knows: nothing asked, supposed, wished, quoted, or of others."""
    await ada.says("I don't drink coffee.", words)
    assert [one.content for one in await ada.denials()] == ["The user does not drink coffee."]
    assert "The user drinks coffee." not in await ada.answers("Do I drink coffee?")


async def test_what_is_affirmed_is_known_from_its_turn_alone(ada: Somebody) -> None:
    """The conclusion quotes the sentence, and goes with the turn; then the denial holds again."""
    await ada.says("I don't drink coffee.")
    turn = await ada.says("It's a long story. I drink coffee again, sadly.")
    assert (await ada.answers("Do I drink coffee?"))[:1] == ["The user drinks coffee."]
    (ended,) = await ada.denials(MemoryStatus.SUPERSEDED)
    by = await one_memory(ada.memory.repository, ada.scope, ended.superseded_by or "")
    assert isinstance(by, SemanticMemory)
    assert [one.words for one in by.evidence] == ["I drink coffee again, sadly"]
    await ada.forget(turn)
    assert len(await ada.denials()) == 1
    assert "The user drinks coffee." not in await ada.answers("Do I drink coffee?")


async def test_what_others_say_ends_no_denial(ada: Somebody) -> None:
    """An assistant does not know better what its user does."""
    await ada.says("I don't use Mongo.")
    await ada.says("You use Mongo, so add an index.", role="assistant")
    assert len(await ada.denials()) == 1


async def test_what_was_affirmed_before_the_denial_ends_nothing(ada: Somebody) -> None:
    """Also where the older turn is read later: the conversation's time counts."""
    await ada.says("I don't eat meat.", on=9)
    await ada.says("I'm eating meat again.", on=4)
    assert len(await ada.denials()) == 1
    await ada.says("I'm eating meat again.", on=12)
    assert await ada.denials() == []


async def test_a_denial_that_is_read_late_has_ended_already(ada: Somebody) -> None:
    """What was taken back since is history at once, and so is the statement of the same turn."""
    await ada.says("I'm eating meat again.", on=9)
    await ada.says("I don't eat meat.", on=4)
    assert await ada.denials() == []
    assert await ada.answers("Do I eat meat?") == ["The user eats meat."]


async def test_forgetting_the_affirming_turn_brings_the_denial_back(ada: Somebody) -> None:
    """And the statement that says the same."""
    await ada.says("I don't eat meat.")
    turn = await ada.says("I'm eating meat again.")
    assert await ada.denials() == []
    await ada.forget(turn)
    (again,) = await ada.denials()
    assert (again.superseded_by, again.superseded_known_at, again.valid_to) == (None, None, None)
    assert "The user doesn't eat meat." in await ada.answers("Do I eat meat?")


async def test_forgetting_it_brings_the_denial_back_where_it_was_said_before_as_well(
    ada: Somebody,
) -> None:
    """The conclusion stays, drawn from what was said before the denial, and ends nothing."""
    await ada.says("I'm eating meat again.", "I don't eat meat.")
    turn = await ada.says("I'm eating meat again.")
    assert await ada.denials() == []
    await ada.forget(turn)
    assert len(await ada.denials()) == 1


async def test_taking_up_again_changes_nothing(ada: Somebody) -> None:
    """Whoever marks the turns once more ends nothing twice."""
    turn = await ada.says("I don't eat meat.", "I'm eating meat again.")
    before = await ada.denials(MemoryStatus.SUPERSEDED)
    again = MarkConsolidatedInput(scope=ada.scope, now=NOW, episode_ids=(turn,))
    await run(ada.memory.storing.mark_consolidated, again)
    assert await ada.denials(MemoryStatus.SUPERSEDED) == before


TOLD = {
    "meat": ("I don't eat meat.", "I'm eating meat again."),
    "Mongo": ("I don't use Mongo.", "I use Mongo."),
    "coffee": ("I don't like coffee.", "I like coffee."),
    "smoke": ("I don't smoke.", "I'm smoking again."),
    "wine": ("I don't drink wine.", "I drink wine again."),
}


@pytest.mark.parametrize("told", TOLD.values(), ids=TOLD)
async def test_a_denial_that_comes_late_was_taken_back(
    ada: Somebody, told: tuple[str, str]
) -> None:
    """What was said after it may be read already, and nothing was concluded from it then."""
    denied, affirmed = told
    await ada.says(affirmed, on=2)
    await ada.says(denied, on=1)
    assert await ada.denials() == []
    await ada.says(denied, on=3)
    assert len(await ada.denials()) == 1


@settings(
    max_examples=examples(15),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.sampled_from(sorted(TOLD)),
    st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=6),
    st.randoms(use_true_random=False),
)
async def test_the_last_word_holds(
    repository: EdgeRepository, what: str, told: list[tuple[bool, bool]], chance: Any
) -> None:
    """However the turns are split into calls and passes, and in whichever order they come."""
    ada = Somebody(InProcessMemory(repository))
    denied, affirmed = TOLD[what]
    order = list(range(len(told)))
    if chance.random() < 0.3:
        chance.shuffle(order)
    for place in order:
        so, read = told[place]
        await ada.says(affirmed if so else denied, on=place + 1, read=read)
    await ada.memory.consolidate(ada.scope, NOW)
    standing = await ada.denials()
    answers = await ada.answers(affirmed)
    if told[-1][0]:
        assert standing == []
        assert not any("not " in one or "n't " in one for one in answers)
    else:
        assert len(standing) == 1
        assert all("not " in one or "n't " in one or "dislikes" in one for one in answers)


async def test_a_briefing_leaves_out_what_was_denied_again(ada: Somebody) -> None:
    """It holds a denial for as late as it was told last, as recall does."""
    said = ["I don't play the piano.", "I play the piano.", "I don't play the piano."]
    await ada.says(*said, read=False)
    await ada.memory.consolidate(ada.scope, NOW)
    assert await ada.answers("Do I play the piano?") == ["The user does not play the piano."]
    assert await ada.briefing() == ["The user does not play the piano."]
