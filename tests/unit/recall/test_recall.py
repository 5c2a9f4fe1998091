"""Recall over a small conversation, on the real engine with the real embedder."""

from typing import Any

import pytest

from engram.consolidation.turns import turns_before
from engram.domain.confidence import ExtractionMethod
from engram.domain.memories import Episode, LifecycleState, Link, MemoryStatus, MemoryType
from engram.domain.scope import Scope
from engram.errors import InvalidQuery
from engram.ports import Page, Replacement
from engram.recall import denials as recall_denials
from engram.recall.request import RecallRequest
from tests.support.recall_memories import (
    ADA,
    BOB,
    KNOWLEDGE,
    NOW,
    SETTINGS,
    Memories,
    contents,
    covers_by_words,
    day,
    episode,
    negation,
    procedural,
    semantic,
)

TALK = (
    episode("I live in Paris, near the river.", 1),
    episode("My sister plays the cello in an orchestra.", 2),
    episode("We use PostgreSQL at work.", 3),
    episode("I am allergic to peanuts.", 4),
    episode("I moved to London last week.", 30),
    episode("The new office has a lovely garden.", 31),
)


async def test_the_answer_to_a_question_comes_first(memories: Memories) -> None:
    """Words and meaning together put the right turn on top."""
    await memories.keep(*TALK)
    assert contents(await memories.ask("What am I allergic to?"))[0].startswith("I am allergic")
    assert "cello" in contents(await memories.ask("Which instrument does my sister play?"))[0]
    assert "PostgreSQL" in contents(await memories.ask("postgresql"))[0]


async def test_scores_fall_and_stay_in_range(memories: Memories) -> None:
    """Answers come best first, scores within 0 to 1, no more than asked for."""
    await memories.keep(*TALK)
    hits = await memories.ask("Where do I live?", limit=4)
    scores = [hit.score for hit in hits]
    assert len(hits) == 4
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert hits == await memories.ask("Where do I live?", limit=4)


@pytest.mark.parametrize("limit", [1, 2, 5])
async def test_the_newest_of_many_stands_first_however_few_are_asked_for(
    memories: Memories, limit: int
) -> None:
    """More turns say the like of one thing than answers are wanted."""
    places = ("Vault", "Bitwarden", "KeePass", "Doppler", "1Password", "Infisical")
    said = [f"The deploy key lives in {place}." for place in places]
    await memories.keep(*(episode(words, 30 * at) for at, words in enumerate(said)))
    found = await memories.ask("Where does the deploy key live?", limit=limit)
    assert contents(found) == said[::-1][:limit]


async def test_nobody_else_is_heard(memories: Memories) -> None:
    """Another user's memories never answer."""
    await memories.keep(*TALK, episode("I am allergic to cats.", 5, scope=BOB))
    assert contents(await memories.ask("allergic", scope=BOB)) == ["I am allergic to cats."]
    assert "cats" not in " ".join(contents(await memories.ask("allergic to cats")))


async def test_a_turn_of_hours_before_is_no_context(memories: Memories) -> None:
    """Only what was said within the hour before a turn, in its session, leads over to it."""
    minute = 1 / (24 * 60)
    times = (0, 59 * minute, 120 * minute, 300 * minute, 301 * minute)
    turns = [episode(f"Note {n}.", at, sequence=n) for n, at in enumerate(times)]
    before = [
        turn and turn.content for turn in await turns_before(memories.repository, ADA, turns, turns)
    ]
    assert before == [None, "Note 0.", None, None, "Note 3."]


async def test_a_denied_memory_does_not_come_back_as_true(memories: Memories) -> None:
    """A derived memory that a later negation covers is out; the turn stays, and says so."""
    denial = negation("The user does not use MongoDB", "use mongodb", 20)
    said = episode("We use MongoDB for the shop.", 10)
    await memories.keep(said, semantic("The user does use MongoDB", 10), denial)
    hits = await memories.ask("Do I use MongoDB?")
    assert "The user does use MongoDB" not in contents(hits)
    marked = {hit.memory.id: hit.negated_by for hit in hits}
    assert marked[said.id] == (denial.id,)
    assert hits[0].memory.id == denial.id


async def test_the_newer_word_stands_against_an_older_denial(memories: Memories) -> None:
    """What was learnt after the negation is not covered by it."""
    await memories.keep(
        negation("The user does not use MongoDB", "use mongodb", 20),
        semantic("The user does use MongoDB again", 25),
        episode("We use MongoDB again!", 25),
    )
    hits = await memories.ask("Do I use MongoDB?")
    assert {"The user does use MongoDB again", "We use MongoDB again!"} <= set(contents(hits))
    assert all(hit.negated_by == () for hit in hits)


async def test_a_denial_counts_from_when_it_was_known(memories: Memories) -> None:
    """Looking from before the negation, the memory it covers still answers."""
    await memories.keep(
        semantic("The user does use MongoDB", 10),
        negation("The user does not use MongoDB", "use mongodb", 20),
    )
    asked = "Do I use MongoDB?"
    assert contents(await memories.ask(asked, as_of=day(15))) == ["The user does use MongoDB"]
    assert contents(await memories.ask(asked, as_of=day(25))) == ["The user does not use MongoDB"]


@pytest.mark.parametrize("at_hand", [True, False])
@pytest.mark.parametrize(
    ("became", "denies"),
    [
        ({"status": MemoryStatus.ARCHIVED}, True),
        ({"status": MemoryStatus.EXPIRED}, True),
        ({"status": MemoryStatus.EXPIRED, "expires_at": day(30)}, False),
        ({"lifecycle": LifecycleState.STALE}, True),
        ({"status": MemoryStatus.SUPERSEDED, "superseded_known_at": day(30)}, False),
    ],
)
async def test_a_denial_that_faded_goes_on_denying(
    memories: Memories,
    monkeypatch: pytest.MonkeyPatch,
    became: dict[str, Any],
    denies: bool,
    at_hand: bool,
) -> None:
    """It ends by its own end, or taken back, however it is looked up; not by leaving answers."""
    if not at_hand:
        monkeypatch.setattr(recall_denials, "_NEGATIONS_KEPT", 0)
        monkeypatch.setattr(recall_denials, "TOGETHER", 1)
    said = semantic("The user does use MongoDB", 10)
    denial = negation("The user does not use MongoDB", "use mongodb", 20, **became)
    await memories.keep(said, denial)
    hits = await memories.ask("Do I use MongoDB?", include_stale=False)
    assert contents(hits) == ([] if denies else [said.content])


async def test_a_denial_counts_whatever_is_asked_for(memories: Memories) -> None:
    """Asking for one type or one session does not switch negations off."""
    await memories.keep(
        semantic("The user does use MongoDB", 10, session_id="s1"),
        negation("The user does not use MongoDB", "use mongodb", 20, session_id="s2"),
    )
    asked = "Which database?"
    assert await memories.ask(asked, memory_types=KNOWLEDGE, session_id="s1") == []


async def test_a_denial_in_other_words_than_the_question_counts(memories: Memories) -> None:
    """Negations are also looked up by the words of what came up, among many others."""
    tools = [f"tool{number}" for number in range(150)]
    await memories.keep(
        *(semantic(f"The user does use {tool} daily", 1) for tool in tools),
        *(negation(f"The user does not use {tool}", f"use {tool} daily", 5) for tool in tools),
    )
    hits = await memories.ask("What is part of the day?", memory_types=KNOWLEDGE, limit=20)
    assert hits == []


async def test_the_same_words_are_one_answer(memories: Memories) -> None:
    """An episode and a derived memory with the same text: the derived one answers, once."""
    known = semantic("I am allergic to peanuts", 4)
    await memories.keep(*TALK, known, episode("I am allergic to peanuts!", 9, session_id="s2"))
    hits = await memories.ask("allergic to peanuts")
    same = [hit for hit in hits if "peanuts" in hit.memory.content]
    assert [hit.memory.id for hit in same] == [known.id]


async def test_what_was_replaced_answers_only_for_its_time(memories: Memories) -> None:
    """Paris before the move and London after, by knowledge and by truth."""
    london = semantic("The user lives in London", 30, valid_from=day(30))
    paris = semantic(
        "The user lives in Paris",
        1,
        status=MemoryStatus.SUPERSEDED,
        superseded_known_at=day(30),
        superseded_by=london.id,
        valid_to=day(30),
    )
    await memories.keep(paris, london)
    asked = "Where does the user live?"
    now = await memories.ask(asked, memory_types=KNOWLEDGE)
    assert contents(now) == ["The user lives in London"]
    then = await memories.ask(asked, memory_types=KNOWLEDGE, as_of=day(20))
    assert contents(then) == ["The user lives in Paris"]
    true_then = await memories.ask(asked, memory_types=KNOWLEDGE, valid_at=day(20))
    assert contents(true_then) == ["The user lives in Paris"]
    true_later = await memories.ask(asked, memory_types=KNOWLEDGE, valid_at=day(40))
    assert contents(true_later) == ["The user lives in London"]


async def test_what_is_composed_of_a_turn_does_not_keep_it_from_being_outdated(
    memories: Memories,
) -> None:
    """A turn whose conclusion was replaced comes second, whatever guidance names it as source."""
    old, new = episode("I live in Lisbon.", 1), episode("I live in Porto now.", 9)
    porto = semantic("The user lives in Porto.", 9, source_episode_ids=(new.id,))
    lisbon = semantic(
        "The user lives in Lisbon.",
        1,
        source_episode_ids=(old.id,),
        status="superseded",
        superseded_by=porto.id,
        superseded_known_at=day(9),
    )
    guidance = semantic("Nothing so far.", 2, form="guideline", source_episode_ids=(old.id,))
    await memories.keep(old, new, lisbon, porto, guidance)
    hits = await memories.ask("Where does the user live?", explain=True)
    turns = [hit.memory.content for hit in hits if isinstance(hit.memory, Episode)]
    assert turns == ["I live in Porto now.", "I live in Lisbon."]
    assert hits[-1].explanation is not None
    assert "outdated" in str(hits[-1].explanation)


async def test_what_is_replaced_between_two_questions_counts_at_once(memories: Memories) -> None:
    """However often was asked before: what is kept of the replaced is read anew."""
    old, new = episode("I live in Lisbon.", 1), episode("I live in Porto now.", 9)
    porto = semantic("The user lives in Porto.", 9, source_episode_ids=(new.id,))
    lisbon = semantic("The user lives in Lisbon.", 1, source_episode_ids=(old.id,))
    await memories.keep(old, new, lisbon, porto)

    async def said_of_lisbon() -> bool:
        hits = await memories.ask("Who lives in Lisbon?", explain=True)
        (turn,) = (hit for hit in hits if hit.memory.id == old.id)
        return "outdated" in str(turn.explanation)

    assert [await said_of_lisbon() for _ in range(3)] == [False] * 3
    replaced = {
        "status": MemoryStatus.SUPERSEDED,
        "superseded_by": porto.id,
        "superseded_known_at": day(9),
        "revision": 1,
        "write_id": "replaced",
    }
    changed = Replacement(lisbon.model_copy(update=replaced), 0)
    assert await memories.repository.replace(ADA, [changed]) == {lisbon.id}
    assert [await said_of_lisbon() for _ in range(3)] == [True] * 3


async def test_what_is_kept_of_the_replaced_is_not_listed_again(
    memories: Memories, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question that brings up an outdated turn lists what was concluded from it, once a type."""
    old, new = episode("I live in Lisbon.", 1), episode("I live in Porto now.", 9)
    porto = semantic("The user lives in Porto.", 9, source_episode_ids=(new.id,))
    lisbon = semantic(
        "The user lives in Lisbon.",
        1,
        source_episode_ids=(old.id,),
        status="superseded",
        superseded_by=porto.id,
        superseded_known_at=day(9),
    )
    await memories.keep(old, new, lisbon, porto)
    scroll, listed = memories.repository.scroll, list[MemoryType]()

    async def counted(scope: Scope, memory_type: MemoryType, **more: Any) -> Page:
        listed.append(memory_type)
        return await scroll(scope, memory_type, **more)

    monkeypatch.setattr(memories.repository, "scroll", counted)
    answers = []
    for _ in range(4):
        listed.clear()
        answers.append(contents(await memories.ask("Where does the user live?")))
    assert listed == [MemoryType.SEMANTIC, MemoryType.FACTUAL]
    assert answers == [answers[0]] * 4


async def test_what_was_replaced_never_stands_above_its_successor(memories: Memories) -> None:
    """Where both may have been true, the current one comes first, however well the old matches."""
    london = semantic("Home is London now", 30)
    paris = semantic(
        "The user lives in Paris France",
        1,
        status=MemoryStatus.SUPERSEDED,
        superseded_by=london.id,
        superseded_known_at=day(30),
        valid_to=day(30),
    )
    await memories.keep(paris, london)
    hits = await memories.ask("The user lives in Paris France", valid_at=day(20))
    assert contents(hits) == ["Home is London now", "The user lives in Paris France"]


async def test_sources_are_brought_in_one_answer(memories: Memories) -> None:
    """Each derived answer names its episodes; as_of hides those that came later."""
    early, late = episode("I like tea.", 1), episode("Tea it is, as ever.", 50)
    known = semantic("The user likes tea", 1, source_episode_ids=(early.id, late.id))
    await memories.keep(early, late, known)
    (hit,) = await memories.ask("tea", memory_types=KNOWLEDGE, include_sources=True)
    assert hit.sources == (early, late)
    (then,) = await memories.ask("tea", memory_types=KNOWLEDGE, include_sources=True, as_of=day(10))
    assert then.sources == (early,)
    (plain,) = await memories.ask("tea", memory_types=KNOWLEDGE)
    assert plain.sources == ()


async def test_links_are_followed_one_step(memories: Memories) -> None:
    """A linked memory answers although no word of the question is in it, and says whence."""
    far = semantic("Relational engines need vacuuming", 3)
    near = semantic(
        "The user works with PostgreSQL",
        3,
        links=(Link(target_id=far.id, confidence=0.9, first_seen=day(3), last_seen=day(390)),),
    )
    noise = [semantic(f"PostgreSQL note number {number}", 3) for number in range(60)]
    await memories.keep(far, near, *noise)
    asked = "Who works with PostgreSQL?"
    assert far.id not in {hit.memory.id for hit in await memories.ask(asked)}
    hits = await memories.ask(asked, follow_links=True, explain=True)
    linked = next(hit for hit in hits if hit.memory.id == far.id)
    assert linked.explanation is not None
    assert linked.explanation.linked_from == near.id
    earlier = await memories.ask(asked, follow_links=True, memory_types=["episodic"])
    assert earlier == []


async def test_every_part_of_a_score_is_told(memories: Memories) -> None:
    """The parts of an explanation sum up to the score."""
    await memories.keep(
        *TALK,
        semantic("The user does use MongoDB", 10),
        episode("We use MongoDB.", 10),
        episode("i am allergic to peanuts", 11),
        semantic("I am allergic to peanuts", 12),
        negation("The user does not use MongoDB", "use mongodb", 20),
    )
    for query in ("Do we use MongoDB?", "peanuts", "Where do I live?"):
        for hit in await memories.ask(query, explain=True):
            assert hit.explanation is not None
            total = sum(part.contribution for part in hit.explanation.parts)
            assert total == pytest.approx(hit.score)
            assert f"type={hit.memory.type.value}" in hit.explanation.filters


async def test_filters_of_our_own_do_not_starve_the_answer(memories: Memories) -> None:
    """Candidates that are too unsure make room: more are fetched until there are enough."""
    doubtful = [
        semantic(f"tea tea tea {number}", 1, method=ExtractionMethod.INFERRED)
        for number in range(120)
    ]
    sure = [semantic(f"some remark on tea and {number}", 1) for number in range(5)]
    await memories.keep(*doubtful, *sure)
    hits = await memories.ask("tea", limit=5, min_confidence=0.6)
    assert {hit.memory.id for hit in hits} == {memory.id for memory in sure}


async def test_the_least_confidence_is_that_of_the_day_one_looks_from(memories: Memories) -> None:
    """What was sure enough then answers as of then, though it is too old to be sure of now."""
    said = semantic("The user likes tea", 1, method=ExtractionMethod.VERBATIM)
    await memories.keep(said)
    (then,) = await memories.ask("tea", as_of=day(1), min_confidence=0.8)
    assert then.confidence == pytest.approx(said.confidence.score(day(1)))
    assert said.confidence.score(NOW) < 0.8
    assert await memories.ask("tea", min_confidence=0.8) == []


async def test_repeats_do_not_starve_the_answer(memories: Memories) -> None:
    """A hundred times the same words is one answer, and leaves room for the others."""
    await memories.keep(
        *(episode("Tea, please", 1, message_id=f"m{number}") for number in range(110)),
        *(episode(f"Some tea with guest {number}", 2) for number in range(4)),
    )
    assert len(await memories.ask("tea please", limit=5)) == 5


async def test_archived_test_and_expired_memories_stay_out(memories: Memories) -> None:
    """Only what was asked for comes back besides what is active."""
    await memories.keep(
        semantic("active tea", 1),
        semantic("archived tea", 1, status=MemoryStatus.ARCHIVED),
        semantic("lapsed tea", 1, expires_at=day(300)),
        semantic("test tea", 1, is_test=True),
        semantic("marked tea", 1, status=MemoryStatus.EXPIRED),
    )
    assert contents(await memories.ask("tea")) == ["active tea"]
    archived = await memories.ask("tea", include_archived=True)
    assert set(contents(archived)) == {"active tea", "archived tea"}
    tests = await memories.ask("tea", include_test=True)
    assert set(contents(tests)) == {"active tea", "test tea"}


async def test_sessions_tags_types_and_selectivity_bound_the_answer(memories: Memories) -> None:
    """Each filter lets through what it names, and selectivity concerns knowledge only."""
    await memories.keep(
        episode("tea in one", 1, session_id="s1", tags=("a", "b")),
        episode("tea in two", 1, session_id="s2", tags=("c",)),
        semantic("tea in mind", 1, selectivity=0.2),
        semantic("tea for sure", 1, selectivity=0.6),
    )
    assert contents(await memories.ask("tea", session_id="s2")) == ["tea in two"]
    assert contents(await memories.ask("tea", tags=["b", "x"])) == ["tea in one"]
    selective = await memories.ask("tea", min_selectivity=0.5)
    assert set(contents(selective)) == {"tea in one", "tea in two", "tea for sure"}
    chosen = await memories.ask("tea", memory_types=[MemoryType.EPISODIC])
    assert set(contents(chosen)) == {"tea in one", "tea in two"}


async def test_an_empty_memory_has_no_answers(memories: Memories) -> None:
    """Nothing stored, nothing back; a question without words is a question too."""
    assert await memories.ask("tea") == []
    await memories.keep(*TALK)
    assert len(await memories.ask("?!")) > 0


async def test_habits_answer_by_the_circumstances_that_are_told(memories: Memories) -> None:
    """Working late, the habit of working late comes first; at breakfast, that of breakfast."""
    late = procedural("The user always drinks tea when working late", "when working late", 1)
    early = procedural("The user always drinks tea at breakfast", "at breakfast", 1)
    await memories.keep(late, early)
    asked = "What tea does the user drink?"
    for context, first in (("I am working late", late), ("breakfast on holiday", early)):
        hits = await memories.ask(asked, context=context, explain=True)
        assert hits[0].memory.id == first.id
        explanation = hits[1].explanation
        assert explanation is not None
        assert "context" in {part.name for part in explanation.parts}


BAD: list[dict[str, object]] = [
    {"query": ""},
    {"query": " \n"},
    {"query": "\ud800"},
    {"query": "x" * (SETTINGS.max_turn_bytes + 1)},
    {"limit": 0},
    {"limit": SETTINGS.recall_max_limit + 1},
    {"limit": True},
    {"min_confidence": 1.1},
    {"min_confidence": float("nan")},
    {"min_selectivity": -0.1},
    {"as_of": NOW.replace(tzinfo=None)},
    {"valid_at": NOW.replace(tzinfo=None)},
    {"memory_types": ["dreams"]},
    {"memory_types": []},
    {"tags": []},
    {"tags": "a"},
    {"context": " "},
    {"context": 7},
    {"context": "x" * (SETTINGS.max_turn_bytes + 1)},
]


@pytest.mark.parametrize("wrong", BAD, ids=lambda wrong: next(iter(wrong)))
def test_bad_requests_say_what_is_allowed(wrong: dict[str, object]) -> None:
    """Every argument out of its range is refused before anything is searched."""
    arguments: dict[str, object] = {"query": "tea", **wrong}
    with pytest.raises(InvalidQuery) as caught:
        RecallRequest.of(**arguments, settings=SETTINGS)  # type: ignore[arg-type]  # wrong on purpose
    assert caught.value.allowed
    assert not caught.value.retryable


def test_types_are_told_in_any_form() -> None:
    """One name, a member or a list in any order; all by default."""
    one = RecallRequest.of("tea", settings=SETTINGS, memory_types="semantic")
    assert one.types == (MemoryType.SEMANTIC,)
    two = RecallRequest.of("tea", settings=SETTINGS, memory_types=["negation", "episodic"])
    assert two.types == (MemoryType.EPISODIC, MemoryType.NEGATION)
    assert len(RecallRequest.of("tea", settings=SETTINGS).types) == 5


def test_the_stand_in_rule_covers_what_it_should() -> None:
    """The rule these tests inject tells covered from not covered."""
    denial = negation("no", "use mongodb", 1)
    assert covers_by_words(denial, semantic("They use MongoDB"))
    assert not covers_by_words(denial, semantic("They use PostgreSQL"))
    assert denial.scope == ADA
