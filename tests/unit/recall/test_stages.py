"""Single stages of recall: what a question asks for, cues, periods, links, folding, context."""

import gc
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from engram.activities.removal import ErasureActivitiesImpl
from engram.contracts.removal import ErasureInput
from engram.domain.memories import (
    AnyMemory,
    LifecycleState,
    Link,
    LinkKind,
    MemoryForm,
    MemoryStatus,
    MemoryType,
    NegationFact,
)
from engram.domain.rules import EdgeRules, RankingFactors
from engram.domain.scope import Scope
from engram.domain.turns import context_block, without_context_blocks
from engram.errors import InvalidQuery
from engram.language.periods import period_named
from engram.language.query import AskedFor, analyse, holds_cue
from engram.lifecycle.accesses import AccessLog
from engram.operations.recall import ContextRequest, RecallHandlers
from engram.ports import Match, Page, SearchRequest
from engram.recall import denials as recall_denials
from engram.recall.context import CHARACTERS_PER_TOKEN, block_of
from engram.recall.pipeline import Recaller
from engram.recall.request import RecallRequest
from engram.recall.results import Ranked, RecallHit
from engram.recall.score import lifecycle_weight
from engram.recall.search import PreparedQuery
from engram.recall.stages import follow, newest_first, without_repeats
from tests.support.recall_memories import (
    ADA,
    BOB,
    KNOWLEDGE,
    NOW,
    SETTINGS,
    Memories,
    contents,
    day,
    episode,
    negation,
    semantic,
)

ASKED_AT = datetime(2024, 5, 15, 12, tzinfo=UTC)  # a Wednesday


@pytest.mark.parametrize(
    ("query", "begin", "end"),
    [
        ("What happened in May 2023?", (2023, 5, 1), (2023, 6, 1)),
        ("What did I do in June?", (2023, 6, 1), (2023, 7, 1)),
        ("Who came on 5 July 2023?", (2023, 7, 5), (2023, 7, 6)),
        ("Who came on March 3rd?", (2024, 3, 3), (2024, 3, 4)),
        ("Where was I in 2022?", (2022, 1, 1), (2023, 1, 1)),
        ("What did we eat yesterday?", (2024, 5, 14), (2024, 5, 15)),
        ("Who called last week?", (2024, 5, 6), (2024, 5, 13)),
        ("What was new last month?", (2024, 4, 1), (2024, 5, 1)),
        ("What was new last year?", (2023, 1, 1), (2024, 1, 1)),
        ("Whom did I meet last Thursday?", (2024, 5, 9), (2024, 5, 10)),
        ("What did we eat the day before yesterday?", (2024, 5, 13), (2024, 5, 14)),
        ("Who called in the past month?", (2024, 4, 15), (2024, 5, 16)),
        ("Who called in the past year?", (2023, 5, 15), (2024, 5, 16)),
        ("How was the March trip?", (2024, 3, 1), (2024, 4, 1)),
        ("What happened on 2024-01-06?", (2024, 1, 6), (2024, 1, 7)),
        ("What will I do in June?", (2024, 6, 1), (2024, 7, 1)),
    ],
)
def test_a_question_names_a_time(
    query: str, begin: tuple[int, int, int], end: tuple[int, int, int]
) -> None:
    """Months, days, years, and times seen from now."""
    period = period_named(query, ASKED_AT)
    assert period is not None
    assert (period.begin, period.end) == (
        datetime(*begin, tzinfo=UTC),
        datetime(*end, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    "query",
    ["Where may I park?", "What is on 31 February 2024?", "When did it break?", "9999999 days ago"],
)
def test_a_question_without_a_time_names_none(query: str) -> None:
    """A modal verb is no month, and what no calendar has is no day."""
    assert period_named(query, ASKED_AT) is None


def test_some_days_ago_leaves_leeway() -> None:
    """So many days ago is that day, with a day on both sides."""
    period = period_named("What did I buy 3 days ago?", ASKED_AT)
    assert period is not None
    assert period.holds(datetime(2024, 5, 12, 12, tzinfo=UTC))
    assert not period.holds(datetime(2024, 5, 15, tzinfo=UTC))
    spelt = period_named("What did I buy fourteen days ago?", ASKED_AT)
    assert spelt is not None
    assert spelt.holds(datetime(2024, 5, 1, 12, tzinfo=UTC))


def test_a_question_is_understood() -> None:
    """Whom it is about, and what kind of thing it asks for."""
    found = analyse("When did my brother Carl move?", ASKED_AT)
    assert {"carl", "brother", "user"} <= found.subjects
    assert found.asked == {AskedFor.TIME}
    assert analyse("How many cats are there?", ASKED_AT).asked == {AskedFor.NUMBER}
    assert analyse("What's the fee for the course?", ASKED_AT).asked == {AskedFor.NUMBER}
    assert analyse("How come we left the vet?", ASKED_AT).asked == {AskedFor.REASON}
    assert analyse("Who is the name of it?", ASKED_AT).asked == {AskedFor.NAME}
    assert analyse("cats", ASKED_AT).asked == frozenset()


@pytest.mark.parametrize(
    ("text", "user", "assistant", "advice"),
    [
        ("Where did I park?", True, False, False),
        ("Can you tell me where I parked?", True, False, False),
        ("Which book did Anna recommend?", False, False, False),
        ("What has my doctor suggested?", True, False, False),
        ("Which hotel did you suggest to me?", False, True, False),
        ("What was the name you gave me in our last chat?", False, True, False),
        ("What do you like?", False, True, False),
        ("Suggest a hotel for my trip", True, False, True),
        ("What should I cook tonight?", True, False, True),
        ("Any tips for Lisbon?", True, False, True),
        ("Could you recommend a shampoo?", True, False, True),
        ("What is best for my slides?", True, False, True),
        ("What was best for my slides?", True, False, False),
        ("How much is best for my slides?", True, False, False),
        ("Which bouquet should be on the table?", True, False, True),
        ("What do I serve with coffee?", True, False, True),
        ("What time do I get up?", True, False, False),
        ("Where to spend June?", True, False, True),
        ("Which swimming cap?", True, False, True),
        ("What film with the family?", True, False, True),
        ("Which couple won?", False, False, False),
        ("What happened to Carl's boat?", False, False, False),
        ("Who is the best cook?", False, False, False),
        ("Book a table for Friday", True, False, True),
        ("What advice does Anna give on boats?", False, False, False),
        ("When did I find a flat?", True, False, False),
        ("Which book was recommended in the lecture?", False, False, False),
        ("Where are we planning to stay for my birthday?", True, False, False),
        ("Which game is it that Carl recommends?", False, False, False),
        ("What should I wear to the wedding I was invited to?", True, False, True),
        ("What has a good taste for my tea?", True, False, True),
        ("I was thinking of a new sofa. Any ideas?", True, False, True),
        ("When did Carl move?", False, False, False),
    ],
)
def test_whom_a_question_is_about_and_whether_it_wants_advice(
    text: str, *, user: bool, assistant: bool, advice: bool
) -> None:
    """What the assistant said is asked for by naming it; addressing it is not."""
    found = analyse(text, ASKED_AT)
    assert ("user" in found.subjects, "assistant" in found.subjects) == (user, assistant)
    assert found.advice is advice


def test_of_turns_that_say_the_same_the_newest_stands_first() -> None:
    """One voice, nearly the same words, no question; they change places, and explain it."""
    old = Ranked(episode("the deploy key lives in Vault", 1), 0.9)
    new = Ranked(episode("the deploy key lives in 1Password now", 8), 0.8)
    asked = "where does the deploy key live?"
    first, second = newest_first([old, new], asked, analyse(asked, ASKED_AT))
    assert [first.memory, second.memory] == [new.memory, old.memory]
    assert [first.score, second.score] == [0.9, 0.8]
    assert [first.parts[-1].name, second.parts[-1].name] == ["newest", "older"]
    in_order = [Ranked(new.memory, 0.9), Ranked(old.memory, 0.8)]
    assert newest_first(in_order, asked, analyse(asked, ASKED_AT)) == in_order


@pytest.mark.parametrize(
    ("content", "more"),
    [
        ("the deploy key lives in 1Password now", {"speaker": "Ada"}),
        ("the deploy key lives in 1Password?", {}),
        ("the deploy went wrong again today", {}),
        ("the deploy key lives in 1Password now " * 9, {}),
    ],
)
def test_turns_of_other_voices_or_other_words_keep_their_places(
    content: str, more: dict[str, Any]
) -> None:
    """Somebody else, a question, another matter, or too much for one statement."""
    old = Ranked(episode("the deploy key lives in Vault", 1), 0.9)
    asked = "where does the deploy key live?"
    found = [old, Ranked(episode(content, 8, **more), 0.8)]
    assert newest_first(found, asked, analyse(asked, ASKED_AT))[0] == old


def test_what_tells_of_a_change_stands_just_before_what_it_changed() -> None:
    """In other words than it, and what stands between them keeps its score."""
    old = Ranked(episode("the deploy key lives in Vault", 1), 0.9)
    other = Ranked(episode("the key of the shed hangs in the hall", 2), 0.8)
    new = Ranked(episode("we moved the deploy key to 1Password", 8), 0.3)
    asked = "where does the deploy key live?"
    found = newest_first([old, other, new], asked, analyse(asked, ASKED_AT))
    assert [one.memory for one in found] == [new.memory, old.memory, other.memory]
    assert [one.score for one in found] == pytest.approx([0.9, 0.9 * 0.999, 0.8])
    assert [one.parts[-1].name for one in found[:2]] == ["newest", "older"]
    assert found[2] == other


@pytest.mark.parametrize(
    ("content", "asked"),
    [
        ("we moved the deploy key to 1Password", "where did the deploy key live before?"),
        ("we keep the deploy key in 1Password", "where does the deploy key live?"),
        ("we moved the office to Lyon", "where does the deploy key live?"),
        ("the deploy is now green", "where does the deploy key live?"),
        ("We moved the deploy key. It was a long day.", "where does the deploy key live?"),
    ],
)
def test_no_other_turn_is_taken_for_a_change(content: str, asked: str) -> None:
    """What was is asked for, no word of change, another matter, too little of it, two sentences."""
    old = Ranked(episode("the deploy key lives in Vault", 1), 0.9)
    found = [old, Ranked(episode(content, 8), 0.8)]
    assert newest_first(found, asked, analyse(asked, ASKED_AT))[0] == old


@pytest.mark.parametrize(
    ("asked", "changes"), [("how many spare tyres are there?", False), ("any spare tyres?", True)]
)
def test_a_change_without_the_number_asked_for_is_no_newer_answer(
    asked: str, *, changes: bool
) -> None:
    """Where the older turn has one."""
    old = Ranked(episode("there are four spare tyres", 1), 0.9)
    new = Ranked(episode("the spare tyres are now black", 8), 0.3)
    found = newest_first([old, new], asked, analyse(asked, ASKED_AT))
    assert (found[0].memory == new.memory) is changes


def test_a_text_holds_what_is_asked_for() -> None:
    """A time, a number or a name is recognised by its looks alone."""
    assert holds_cue("We moved last week.", frozenset({AskedFor.TIME}))
    assert holds_cue("I have three cats.", frozenset({AskedFor.NUMBER}))
    assert holds_cue("I met my friend Carl.", frozenset({AskedFor.NAME}))
    assert holds_cue("The vet was too dear.", frozenset({AskedFor.REASON}))
    assert not holds_cue("Me too! I can't wait.", frozenset({AskedFor.REASON}))
    assert not holds_cue("It was nice.", frozenset(AskedFor))


def test_the_same_words_of_several_people_are_several_answers() -> None:
    """Each says it of their own; one who says it twice says it once."""
    words = "I'm coming on Friday!"
    ann, bob, cem = (
        episode(words, n, speaker=name) for n, name in enumerate(("Ann", "Bob", "Cem"))
    )
    again = episode("i'm coming on friday", 5, speaker="ann")
    answer = episode(words, 6, role="assistant")
    found = [Ranked(one, 0.5) for one in (ann, bob, again, cem, answer)]
    assert [one.memory for one in without_repeats(found)] == [ann, bob, cem, answer]
    concluded = semantic(words, 7)
    (first, *_) = without_repeats([*found, Ranked(concluded, 0.4)])
    assert first.memory == concluded


def test_a_memory_without_a_life_is_neither_raised_nor_lowered() -> None:
    """And the states rank as they should."""
    factors = RankingFactors()
    plain = semantic("The user likes tea")
    weights = {
        state: lifecycle_weight(plain.model_copy(update={"lifecycle": state}), factors)
        for state in (None, *LifecycleState)
    }
    assert weights[None] == 1.0
    assert weights[LifecycleState.VALIDATED] == weights[LifecycleState.ACTIVE] > 1.0
    assert 1.0 > weights[LifecycleState.CANDIDATE] > weights[LifecycleState.STALE]
    assert weights[LifecycleState.ARCHIVED] == weights[LifecycleState.STALE]
    disputed = plain.model_copy(update={"disputed_with": ("x",)})
    assert lifecycle_weight(disputed, factors) < 1.0


async def test_two_steps_away_is_found_and_weak_links_are_not(memories: Memories) -> None:
    """A chain of links is followed twice, each step weaker; a link under 0.2 not at all."""
    far = semantic("Relational stores keep rows", 1)
    weak = semantic("Penguins swim", 1)
    middle = semantic(
        "PostgreSQL is relational",
        1,
        links=(Link(target_id=far.id, confidence=0.9, first_seen=day(1), last_seen=NOW),),
    )
    near = semantic(
        "The shop runs on PostgreSQL",
        1,
        links=(
            Link(target_id=middle.id, confidence=0.87, first_seen=day(1), last_seen=NOW),
            Link(target_id=weak.id, confidence=0.19, first_seen=day(1), last_seen=NOW),
        ),
    )
    await memories.keep(near, middle, far, weak)
    found = await _led_to(memories, [Ranked(near, 0.9)])
    assert [one.memory.id for one in found] == [near.id, middle.id, far.id]
    assert [link.source_id for link in found[2].links] == [near.id, middle.id]
    assert found[1].score == pytest.approx(0.9 * 0.87 * 0.5)
    assert found[2].score == pytest.approx(0.9 * 0.87 * 0.5 * 0.9 * 0.5)

    hits = await memories.ask("shop", follow_links=True, explain=True, memory_types=KNOWLEDGE)
    explained = {hit.memory.id: hit.explanation for hit in hits}
    there = explained[middle.id]
    assert there is not None
    assert "conf=0.87" in there.text
    assert there.linked_from == near.id
    unlinked = explained[weak.id]
    assert unlinked is None or not unlinked.links


async def test_which_links_are_followed_and_how_often_they_count_is_set(
    memories: Memories,
) -> None:
    """The bound and the rounds are settings; without rounds each link counts once."""
    first, second = semantic("Rows are kept", 1), semantic("PostgreSQL is relational", 1)
    circle = _link(first.id, 0.3, NOW), _link(second.id, 0.3, NOW)
    first = first.model_copy(update={"links": (circle[1],)})
    second = second.model_copy(update={"links": (circle[0],)})
    near = semantic("The shop runs on PostgreSQL", 1, links=circle)
    await memories.keep(near, first, second)
    led = [Ranked(near, 0.9)]
    assert len(await _led_to(memories, led, EdgeRules(follow_from=0.31))) == 1
    often = {one.memory.id: one.score for one in await _led_to(memories, led)}
    once = {one.memory.id: one.score for one in await _led_to(memories, led, EdgeRules(rounds=0))}
    step = 0.9 * 0.3 * 0.5
    assert once[first.id] == pytest.approx(1 - (1 - step) * (1 - step * 0.15))
    assert often[first.id] > once[first.id]


async def test_no_answer_is_raised_by_its_own_echo(memories: Memories) -> None:
    """Links lead both ways: nothing is linked from itself; two answers raise each other once."""
    near, far = semantic("The shop runs on PostgreSQL", 1), semantic("Rows are kept", 1)
    near = near.model_copy(update={"links": (_link(far.id, 0.8, NOW),)})
    far = far.model_copy(update={"links": (_link(near.id, 0.8, NOW),)})
    await memories.keep(near, far)
    alone = {one.memory.id: one for one in await _led_to(memories, [Ranked(near, 0.9)])}
    assert (alone[near.id].score, alone[near.id].links) == (0.9, ())
    assert alone[far.id].score == pytest.approx(0.9 * 0.8 * 0.5)
    both = await _led_to(memories, [Ranked(near, 0.9), Ranked(far, 0.5)])
    (first, second) = both
    assert first.score == pytest.approx(0.9 + 0.1 * 0.5 * 0.8 * 0.5)
    assert second.score == pytest.approx(0.5 + 0.5 * 0.9 * 0.8 * 0.5)
    assert [[link.source_id for link in one.links] for one in both] == [[far.id], [near.id]]


async def test_a_link_weakens_until_it_is_found_again(memories: Memories) -> None:
    """Spreading goes by how sure a link is now: faded under 0.2 it is not followed."""
    lately = day(400 - 30 - 4 * 30)  # Past the grace period, four windows of 0.05 each.
    long_ago = day(1)
    fading = semantic("Relational stores keep rows", 1)
    faded = semantic("Penguins swim", 1)
    of_old = semantic("Whales sing", 1)
    lasting = semantic("The user always backs up the shop", 1)
    links = (
        _link(fading.id, 0.87, lately),
        _link(faded.id, 0.6, long_ago),
        # As links were kept before they had a confidence.
        Link.model_validate({"target_id": of_old.id, "first_seen": lately, "last_seen": NOW}),
        _link(lasting.id, 0.9, long_ago, LinkKind.PROMOTED_TO),
    )
    near = semantic("The shop runs on PostgreSQL", 1, links=links)
    await memories.keep(near, fading, faded, of_old, lasting)
    found = {one.memory.id: one for one in await _led_to(memories, [Ranked(near, 0.8)])}
    assert found.keys() == {near.id, fading.id, of_old.id, lasting.id}
    sure = {key: one.links[-1].confidence for key, one in found.items() if one.links}
    assert sure == pytest.approx({fading.id: 0.67, of_old.id: 1.0, lasting.id: 0.9})
    assert found[fading.id].score == pytest.approx(0.8 * 0.67 * 0.5)
    hits = await memories.ask("shop", follow_links=True, explain=True, memory_types=KNOWLEDGE)
    told = {hit.memory.id: hit.explanation.text for hit in hits if hit.explanation}
    assert "conf=0.67" in told[fading.id]
    # Seen from then, it was as sure as it had been found.
    back = await memories.ask(
        "shop",
        follow_links=True,
        explain=True,
        memory_types=KNOWLEDGE,
        as_of=lately + timedelta(days=1),
    )
    told = {hit.memory.id: hit.explanation.text for hit in back if hit.explanation}
    assert "conf=0.87" in told[fading.id]


def _link(target: str, confidence: float, at: datetime, kind: LinkKind = LinkKind.RELATED) -> Link:
    return Link(target_id=target, kind=kind, confidence=confidence, first_seen=at, last_seen=at)


async def _led_to(
    memories: Memories, seeds: list[Ranked], rules: EdgeRules | None = None
) -> list[Ranked]:
    """What links lead to from these answers."""
    request = RecallRequest.of("shop", settings=SETTINGS, follow_links=True)
    question = PreparedQuery(
        scope=ADA,
        request=request,
        vectors=await memories.embedder.embed_query("shop"),
        visibility=request.visibility(NOW),
        analysis=analyse("shop", NOW),
    )
    return await follow(memories.repository, question, seeds, lambda _: True, rules or EdgeRules())


async def test_a_summary_stands_for_its_notes(memories: Memories) -> None:
    """Notes that rank below the summary of them do not come back beside it."""
    notes = [semantic(f"The user drinks {tea} tea", n) for n, tea in enumerate(["green", "black"])]
    links = tuple(
        Link(
            target_id=note.id,
            kind=LinkKind.BELONGS_TO,
            confidence=1.0,
            first_seen=day(3),
            last_seen=day(3),
        )
        for note in notes
    )
    whole = "The user drinks tea: green tea and black tea every day"
    summary = semantic(whole, 3, form=MemoryForm.SUMMARY, links=links)
    await memories.keep(*notes, summary)
    said = contents(await memories.ask("tea every day", memory_types=KNOWLEDGE))
    assert said[0] == whole
    assert len(said) == 1


async def test_denials_at_hand_are_those_that_are_stored(
    memories: Memories, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked again, denials are not looked up, nor read again; what comes or goes counts at once."""
    repository = memories.repository
    ranked = repository.rank
    looked_up: list[bool] = []

    async def rank(scope: Scope, request: SearchRequest) -> list[Match]:
        looked_up.append(request.types == (MemoryType.NEGATION,))
        return await ranked(scope, request)

    listing, listed = repository.scroll, 0

    async def scroll(scope: Scope, memory_type: MemoryType, **more: Any) -> Page:
        nonlocal listed
        listed += memory_type is MemoryType.NEGATION
        return await listing(scope, memory_type, **more)

    monkeypatch.setattr(repository, "rank", rank)
    monkeypatch.setattr(repository, "scroll", scroll)
    coffee = negation("The user does not drink coffee", "drink coffee", 2)
    alone = negation("The user does not drink", "drink", 3)
    await memories.keep(episode("I drink coffee and tea.", 1), coffee)

    async def denied_by() -> tuple[str, ...]:
        looked_up.clear()
        (hit,) = await memories.ask("Who drinks coffee?", memory_types="episodic")
        return hit.negated_by

    assert [await denied_by(), any(looked_up)] == [(coffee.id,), True]
    for _ in range(2):
        assert [await denied_by(), any(looked_up)] == [(coffee.id,), False]
    await memories.keep(negation("The user does not drink coffee", "coffee", 2, scope=BOB))
    assert [await denied_by(), any(looked_up)] == [(coffee.id,), False]
    await memories.keep(alone)
    both = tuple(sorted((coffee.id, alone.id)))
    for _ in range(3):
        assert [await denied_by(), any(looked_up)] == [both, False]
    assert listed == 1
    await repository.delete(ADA, MemoryType.NEGATION, [coffee.id])
    for _ in range(3):
        assert await denied_by() == (alone.id,)


async def test_denials_that_are_too_many_to_keep_are_never_all_read(
    memories: Memories, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where not all can be at hand, each question looks them up, also when some are added."""
    monkeypatch.setattr(recall_denials, "TOGETHER", 2)
    monkeypatch.setattr(recall_denials, "_NEGATIONS_KEPT", 3)
    repository = memories.repository
    listed, read = repository.scroll, 0

    async def scroll(scope: Scope, memory_type: MemoryType, **more: Any) -> Page:
        nonlocal read
        read += memory_type is MemoryType.NEGATION
        return await listed(scope, memory_type, **more)

    monkeypatch.setattr(repository, "scroll", scroll)
    denials = [negation(f"The user does not drink coffee ({n})", "drink coffee", 2) for n in "abcd"]
    await memories.keep(episode("I drink coffee and tea.", 1), *denials[:3])

    async def all_deny(said: list[NegationFact]) -> None:
        for _ in range(3):
            (hit,) = await memories.ask("Who drinks coffee?", memory_types="episodic")
            assert hit.negated_by == tuple(sorted(one.id for one in said))

    await all_deny(denials[:3])
    assert read == 1
    await memories.keep(denials[3])
    await all_deny(denials)
    assert read == 1


async def test_other_forms_answer_only_when_asked_for(memories: Memories) -> None:
    """A profile is no answer by default."""
    profile = semantic("Ada: lives in Lisbon, likes tea", 2, form=MemoryForm.PROFILE)
    await memories.keep(profile, semantic("The user lives in Lisbon", 1))
    assert contents(await memories.ask("Lisbon")) == ["The user lives in Lisbon"]
    asked = await memories.ask("Lisbon", forms=["profile"], memory_types=KNOWLEDGE)
    assert contents(asked) == [profile.content]


async def test_an_explanation_sums_up_and_reads_well(memories: Memories) -> None:
    """Parts sum up to the score, of every answer, and the text names each."""
    await memories.keep(
        *(episode(f"We use tool{n} in May 2024.", n) for n in range(8)),
        semantic("The user uses tool3", 3, lifecycle=LifecycleState.STALE, importance=0.1),
        negation("The user does not use tool5", "use tool5", 9),
    )
    hits = await memories.ask("Which tool3 or tool5 in May 2024?", explain=True)
    assert hits
    for hit in hits:
        assert hit.explanation is not None
        total = sum(part.contribution for part in hit.explanation.parts)
        assert total == pytest.approx(hit.score, abs=1e-9)
        assert all(0 <= part.value <= 1 for part in hit.explanation.parts)
        for part in hit.explanation.parts:
            assert part.name in hit.explanation.text
    stale = next(hit for hit in hits if hit.memory.content == "The user uses tool3")
    assert stale.explanation is not None
    assert {"lifecycle", "importance", "confidence"} <= {p.name for p in stale.explanation.parts}


async def test_nobody_who_does_not_ask_why_has_other_answers(memories: Memories) -> None:
    """Parts are kept only where they are asked for; scores and order are the same without."""
    await memories.keep(
        *(episode(f"We use tool{n} in May 2024.", n) for n in range(8)),
        episode("Do we use tool3 in May 2024?", 20),
        episode("Yes, and tool5 since.", 21, role="assistant"),
        semantic("The user uses tool3", 3, lifecycle=LifecycleState.STALE, importance=0.1),
        negation("The user does not use tool5", "use tool5", 9),
    )
    for query in ("Which tool3 or tool5 in May 2024?", "Do we use tool3 in May 2024?"):
        explained = await memories.ask(query, explain=True)
        plain = await memories.ask(query)
        assert [(hit.memory.id, hit.score) for hit in plain] == [
            (hit.memory.id, hit.score) for hit in explained
        ]
    one = Ranked(episode("tea"), 0.5, explained=False)
    assert one.times(0.5, "halved") == one._replace(score=0.25)


async def test_many_superseded_memories_do_not_crowd_out_the_one_that_holds(
    memories: Memories,
) -> None:
    """What does not count is left out by the store where it would take all the places."""
    old = [
        semantic(
            f"The user lives in town{n}",
            n / 100,
            status=MemoryStatus.SUPERSEDED,
            superseded_known_at=day(n / 100 + 1),
        )
        for n in range(150)
    ]
    now = semantic("They have a flat somewhere in Lisbon by the river these days", 30)
    await memories.keep(*old, now)
    hits = await memories.ask("Where does the user live in town?", memory_types=KNOWLEDGE)
    assert contents(hits) == [now.content]


async def test_context_is_a_dated_block_with_what_holds_first(memories: Memories) -> None:
    """Facts, then denials, then turns; within the tokens; fenced."""
    said = episode("I live in Lisbon\nnow.", 5)
    known = semantic("The user lives in Lisbon", 5, source_episode_ids=(said.id,))
    denied = negation("The user does not live in Paris", "live in paris", 6)
    await memories.keep(said, known, denied)

    asked = ContextRequest.within("Where does the user live?", 400, SETTINGS, {})
    block = block_of(await memories.recaller.recall(ADA, asked, NOW), tokens=asked.tokens)
    lines = block.splitlines()
    assert block == context_block(lines[1:-1])
    assert lines[1] == "- The user lives in Lisbon (since 2024-01-06; said in s1 on 2024-01-06)"
    assert lines[2].startswith("- The user does not live in Paris (denied 2024-01-07; from turn ")
    assert lines[3] == "- I live in Lisbon now. (user, 2024-01-06; session s1)"
    assert len(block) <= 400 * CHARACTERS_PER_TOKEN
    assert without_context_blocks(block).strip() == ""
    hits = await memories.ask("Where does the user live?", include_sources=True)
    for tokens in range(32, 120, 4):
        assert len(block_of(hits, tokens=tokens)) <= tokens * CHARACTERS_PER_TOKEN
    assert block_of([], tokens=100) == ""
    for wrong in (3, True, 40.5, "many"):
        with pytest.raises(InvalidQuery):
            ContextRequest.within("tea", wrong, SETTINGS, {})  # type: ignore[arg-type]  # on purpose


async def test_thanks_and_greetings_take_no_line_of_a_block(memories: Memories) -> None:
    """Where there is room for everything, "Noted, thanks!" comes up too, and answers nothing."""
    await memories.keep(
        episode("The oolong tea is in the tin.", 1), episode("Noted, thanks!", 2), episode("Hi!", 3)
    )
    block = block_of(await memories.ask("Where is the tea?"), tokens=600)
    assert [line for line in block.splitlines() if line.startswith("- ")] == [
        line for line in block.splitlines() if "oolong" in line
    ]
    assert "oolong" in block


async def test_what_a_prompt_has_already_makes_room_in_its_context(memories: Memories) -> None:
    """Turns said in it, and quotations of them, are left out, and not noted; conclusions stay."""
    chat = [episode(f"Tea number {n} is a fine tea.", 9) for n in range(3)]
    older = episode("I bought tea once.", 1)
    known = semantic("The user likes tea", 9, source_episode_ids=(chat[0].id,))
    quoted = semantic("a fine tea", 9, source_episode_ids=(chat[1].id,), form=MemoryForm.ARTIFACT)
    await memories.keep(*chat, older, known, quoted)
    noted: list[AnyMemory] = []
    accesses = cast("AccessLog", SimpleNamespace(note=lambda _, found, __: noted.extend(found)))
    handlers = RecallHandlers(memories.recaller, lambda: NOW, accesses, lambda *_: None)

    asked = ContextRequest.within(
        "Which tea is fine?",
        400,
        SETTINGS,
        {"limit": 3, "already": ("tea number 0 is a fine tea",)},
    )
    lines = (await handlers.context(ADA, asked)).context
    assert "number 0" not in lines
    said = tuple(turn.content for turn in chat)
    noted.clear()
    block = await handlers.context(ADA, asked.model_copy(update={"already": said}))
    assert [line.split(" (")[0] for line in block.context.splitlines()[1:-1]] == [
        "- The user likes tea",
        "- I bought tea once.",
    ]
    assert {memory.id for memory in noted} == {known.id, older.id}
    # The turn that it was concluded from says when that was.
    assert set(block.memory_ids) == {known.id, older.id, chat[0].id}
    assert block.model_dump().keys() == {"context"}
    with pytest.raises(InvalidQuery, match="too many texts"):
        ContextRequest.within("tea", 400, SETTINGS, {"already": ("x",) * 257})


@pytest.mark.parametrize(("said", "limits"), [(0, [20]), (3, [20, 40]), (22, [20, 40, 80])])
async def test_a_prompt_that_has_much_asks_for_more_only_where_that_would_be_answered(
    memories: Memories, said: int, limits: list[int]
) -> None:
    """Two hundred texts cost nothing where none is found, and some doublings where many are."""
    chat = [episode(f"Tea number {n} is a fine tea.", 9) for n in range(said)]
    older = [episode(f"I bought tea of kind {n} once.", 1) for n in range(40)]
    await memories.keep(*chat, *older)
    asked_for: list[int] = []

    async def recall(scope: Scope, asked: RecallRequest, now: datetime) -> list[RecallHit]:
        asked_for.append(asked.limit)
        return await memories.recaller.recall(scope, asked, now)

    accesses = cast("AccessLog", SimpleNamespace(note=lambda *_: None))
    counted = cast("Recaller", SimpleNamespace(recall=recall))
    handlers = RecallHandlers(counted, lambda: NOW, accesses, lambda *_: None)
    already = (*(turn.content for turn in chat), *(f"something else, {n}" for n in range(200)))
    asked = ContextRequest.within(
        "Which tea is a fine tea?", 1000, SETTINGS, {"limit": 20, "already": already}
    )
    block = (await handlers.context(ADA, asked)).context
    assert block.count("I bought tea of kind") == 20
    assert asked_for == limits


async def test_a_turn_that_is_too_long_for_a_line_stands_there_by_its_summary(
    memories: Memories,
) -> None:
    """What the application says that a long turn comes to is told in its place, and marked."""
    long = episode("Tea, and tea again. " * 60, 1, summary="Ann talked about tea for an hour.")
    short = episode("Tea is fine.", 2, summary="Fine.")
    await memories.keep(long, short)
    lines = block_of(await memories.ask("tea"), tokens=1000).splitlines()
    assert any(line.startswith("- [summary] Ann talked about tea for an hour.") for line in lines)
    assert any(line.startswith("- Tea is fine.") for line in lines)


async def test_no_denial_of_an_erased_user_stays_in_memory(memories: Memories) -> None:
    """Neither where it was at hand nor where it was looked up, nor any word of what was read."""

    def denials() -> list[NegationFact]:
        gc.collect()
        return [
            one
            for one in gc.get_objects()
            if isinstance(one, NegationFact) and one.negates_pattern == "drink zibibbo"
        ]

    await memories.keep(
        episode("I drink zibibbo.", 1),
        negation("The user does not drink zibibbo", "drink zibibbo", 2),
    )
    for _ in range(3):
        (hit,) = await memories.ask("Who drinks zibibbo?", memory_types="episodic")
        assert hit.negated_by
    assert denials()
    client, repository = cast("Client", None), memories.repository
    erasing = ErasureActivitiesImpl(client, repository, lambda: "a secret")
    await ActivityEnvironment().run(erasing.erase_memories, ErasureInput(scope=ADA))
    assert denials() == []
    assert not recall_denials._object_terms.cache_info().currsize  # noqa: SLF001 - one of those with words


async def test_denials_that_are_dropped_while_others_are_read_still_count(
    memories: Memories, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is room for two only, so that reading the third drops what was known."""
    monkeypatch.setattr(recall_denials, "_NEGATIONS_KEPT", 2)
    repository = memories.repository
    first = [negation(f"The user does not drink coffee ({n})", "drink coffee", 2) for n in "ab"]
    await memories.keep(episode("I drink coffee and tea.", 1), *first)
    (hit,) = await memories.ask("Who drinks coffee?", memory_types="episodic")
    assert hit.negated_by == tuple(sorted(one.id for one in first))
    third = negation("The user does not drink coffee (c)", "drink coffee", 2)
    await memories.keep(third)
    monkeypatch.setattr(repository, "arrivals", lambda *_: None)
    (hit,) = await memories.ask("Who drinks coffee?", memory_types="episodic")
    assert hit.negated_by == tuple(sorted(one.id for one in (*first, third)))
