"""Digests in a real store: versioned, rebuilt harmlessly, at the cost of what was touched."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import nullcontext
from typing import Any

import pytest

from engram.consolidation.apply import PlanWriter
from engram.digests import stage
from engram.digests.guidelines import current_guidance
from engram.digests.mentions import MentionEvidence, memory_clues
from engram.digests.store import DigestStore, Put
from engram.digests.versions import Composer
from engram.domain.confidence import Confidence, ExtractionMethod
from engram.domain.digests import ConsolidationEffect, EntityKind, SealReason
from engram.domain.identity import content_hash, derived_id
from engram.domain.memories import (
    Category,
    Episode,
    Fact,
    FactCategory,
    LinkKind,
    MemoryForm,
    MemoryType,
    NegationFact,
    SemanticMemory,
)
from engram.domain.slots import slot_of
from engram.errors import InvalidQuery, MemoryNotFound, StorageUnavailable
from engram.language.text import content_words
from engram.operations.digests import AboutBoxes, AboutSomebody
from engram.operations.registry import Question
from tests.support.digest_memories import ADA, CHESS, episode, known, minute
from tests.support.digested_memory import POLICY, DigestedMemory
from tests.support.edge_stores import borrowed_store


@pytest.fixture
async def kept() -> AsyncIterator[DigestedMemory]:
    """An empty memory."""
    async with borrowed_store() as repository:
        yield DigestedMemory(repository)


PORTO = known("The user lives in Porto.", 1, slot=("user", "lives in", "Porto"))
LISBON = known("The user lives in Lisbon.", 100, slot=("user", "lives in", "Lisbon"))
BOSS = known("Sam Okafor is the user's boss.", 2, entities=("Sam Okafor",))
SAM = known("Sam plays chess.", 3, slot=("Sam", "plays", "chess"), entities=("Sam",))
BARBER = known("Sam Pike is the user's barber.", 50, entities=("Sam Pike",))
TURNS = [
    episode("The tomato seeds in my garden sprouted.", 0),
    episode("How many tomato seeds does a garden need?", 1),
    episode("My motorcycle engine lost its brake fluid.", 2),
    episode("The engine and the brake are fixed.", 40),
    episode("The tomato seeds in the garden died.", 80),
]


def named(name: str, turn: Episode) -> Fact:
    """Whose turn says what they are called."""
    content = f"name: {name}"
    return Fact(
        **_derived(MemoryType.FACTUAL, content, turn),
        category=FactCategory.NAME,
        value=name,
        evidence=name,
        slot=slot_of("user", "is called", name),
    )


def denied(content: str, pattern: str, subject: str, at: float) -> NegationFact:
    """Something that is said not to be so."""
    return NegationFact(
        **_derived(MemoryType.NEGATION, content, episode(content, at)),
        negates_pattern=pattern,
        subject=subject,
        evidence=content,
    )


def _derived(memory_type: MemoryType, content: str, turn: Episode) -> dict[str, Any]:
    """What a pattern finds in a turn, but for what it says."""
    identity, at = content_hash(content), turn.timestamp
    return {
        "id": derived_id(ADA, memory_type, identity, 0),
        "namespace": ADA.namespace,
        "user_id": ADA.user_id,
        "content": content,
        "known_at": at,
        "created_at": at,
        "derived_at": at,
        "event_at": at,
        "source_episode_ids": (turn.id,),
        "identity": identity,
        "confidence": Confidence(
            method=ExtractionMethod.VERBATIM, extraction=0.9, last_confirmed=at
        ),
    }


async def test_rebuilding_what_did_not_change_writes_nothing(kept: DigestedMemory) -> None:
    """A second digest of the same makes no write at all."""
    await kept.keep(PORTO, BOSS, SAM, *CHESS, *TURNS)
    await kept.digest(PORTO, BOSS, SAM, *CHESS, *TURNS, ended=["s1"])
    before, writes = await kept.picture(), kept.store.writes
    await kept.digest(PORTO, BOSS, SAM, *CHESS, *TURNS, ended=["s1"])
    assert (await kept.picture(), kept.store.writes) == (before, writes)
    assert writes > 0


async def test_a_profile_of_then_stays_readable(kept: DigestedMemory) -> None:
    """A change is a new generation; ``as_of`` brings the profile that counted then."""
    await kept.keep(PORTO, *CHESS)
    await kept.digest(PORTO, *CHESS)
    await kept.keep(LISBON)
    await kept.supersede(PORTO, LISBON)
    await kept.digest(PORTO, LISBON)
    now = await kept.asked.profile(ADA, AboutSomebody())
    then = await kept.asked.profile(ADA, AboutSomebody(as_of=minute(50)))
    assert (now.lines[0].text, now.generation) == ("The user lives in Lisbon.", 1)
    assert (then.lines[0].text, then.generation) == ("The user lives in Porto.", 0)
    assert now.lines[0].memory_ids == (LISBON.id,)
    assert now.updated_at == LISBON.known_at
    assert len(now.lines) == 4


async def test_a_first_name_is_split_off_when_another_bearer_shows_up(kept: DigestedMemory) -> None:
    """Sam is Sam Okafor as long as there is no other; then "Sam" is nobody's."""
    await kept.keep(BOSS, SAM)
    await kept.digest(BOSS, SAM)
    sam = await kept.asked.profile(ADA, AboutSomebody(name="sam"))
    assert (sam.name, sam.aliases) == ("Sam Okafor", ("Sam",))
    assert {line.text for line in sam.lines} == {BOSS.content, SAM.content}
    assert [merge.reason for merge in sam.merges] == ["short form with one bearer"]
    await kept.keep(BARBER)
    await kept.digest(BARBER)
    names = {profile.name for profile in await kept.asked.profiles(ADA, Question())}
    assert names == {"Sam", "Sam Okafor", "Sam Pike"}
    boss = await kept.asked.profile(ADA, AboutSomebody(name="Sam Okafor"))
    assert [line.text for line in boss.lines] == [BOSS.content]
    assert boss.merges == ()
    alone = await kept.asked.profile(ADA, AboutSomebody(name="Sam"))
    assert [line.text for line in alone.lines] == [SAM.content]


async def test_a_name_that_several_bear_or_nobody_does_is_an_error(kept: DigestedMemory) -> None:
    """Asking for one of two says so; asking for nobody does too."""
    await kept.keep(BOSS, BARBER)
    await kept.digest(BOSS, BARBER)
    with pytest.raises(InvalidQuery, match="2 profiles"):
        await kept.asked.profile(ADA, AboutSomebody(name="Sam"))
    with pytest.raises(MemoryNotFound):
        await kept.asked.profile(ADA, AboutSomebody(name="Zoe"))


async def test_of_a_new_user_nothing_is_known(kept: DigestedMemory) -> None:
    """Their own profile is empty and no error: nobody asked for a name that is not there."""
    for as_of in (None, minute(1)):
        profile = await kept.asked.profile(ADA, AboutSomebody(as_of=as_of))
        assert (profile.kind, profile.name, profile.lines) == (EntityKind.USER, "The user", ())
        assert (profile.memory_id, profile.updated_at) == (None, None)
    assert await kept.asked.profiles(ADA, Question()) == ()


async def test_what_was_denied_since_stands_in_no_profile(kept: DigestedMemory) -> None:
    """As in recall, before any consolidation: in that of somebody else as in the user's."""
    leo = known("Leo is allergic to nuts.", 1, slot=("Leo", "is allergic to", "nuts"),
                entities=("Leo",))  # fmt: skip
    own = known("The user uses Mongo.", 1, slot=("user", "uses", "Mongo"))
    tea = known("The user likes tea.", 1, slot=("user", "likes", "tea"))
    await kept.keep(leo, own, tea)
    await kept.digest(leo, own, tea)
    await kept.keep(
        denied("Leo isn't allergic to nuts.", "be allergic to nuts", "leo", 5),
        denied("The user does not use Mongo.", "use mongo", "user", 5),
        # Said before: what was learnt since is the newer word.
        denied("The user does not like tea.", "like tea", "user", 0),
    )
    asked = kept.asked
    assert (await asked.profile(ADA, AboutSomebody(name="Leo"))).lines == ()
    lines = (await asked.profile(ADA, AboutSomebody())).lines
    assert [line.text for line in lines] == [tea.content]
    listed = {p.name: len(p.lines) for p in await asked.profiles(ADA, Question())}
    assert listed == {"The user": 1}
    then = await asked.profile(ADA, AboutSomebody(name="Leo", as_of=minute(3)))
    assert [line.text for line in then.lines] == [leo.content]


async def test_what_turns_say_about_names_is_kept_for_later(kept: DigestedMemory) -> None:
    """An alias that comes before anything is known about its bearer still joins them."""
    turn = episode("My uncle is Robert, everyone calls him Bob.", 1)
    await kept.keep(turn)
    await kept.digest(turn)
    fact = known("Bob fixed the tractor.", 9, entities=("Bob",))
    await kept.keep(fact)
    await kept.digest(fact)
    robert = await kept.asked.profile(ADA, AboutSomebody(name="Robert"))
    assert [line.text for line in robert.lines] == [fact.content]
    assert turn.id in {s for merge in robert.merges for s in merge.source_ids}


async def test_the_user_has_one_profile_under_their_own_name(kept: DigestedMemory) -> None:
    """Who said "I'm Maria Keller" is found by it; another Maria stays another."""
    turn, signed = episode("I'm Maria Keller.", 1), episode("Regards, Maria Keller", 2)
    name = named("Maria Keller", turn)
    await kept.keep(turn, signed)
    await kept.digest(signed)
    assert (await kept.asked.profile(ADA, AboutSomebody(name="Maria Keller"))).lines == ()
    # Found by name, and not listed: it has nothing to tell.
    assert await kept.asked.profiles(ADA, Question()) == ()
    await kept.keep(name, PORTO)
    await kept.digest(turn, signed)
    assert (await kept.asked.profile(ADA, AboutSomebody())).name == "Maria Keller"
    await kept.digest(PORTO)
    own = await kept.asked.profile(ADA, AboutSomebody(name="Maria"))
    assert (own.kind, [line.text for line in own.lines]) == (EntityKind.USER, [PORTO.content])
    sister = known("Maria is the user's sister.", 3, slot=("Maria", "is the user's", "sister"),
                   entities=("Maria",))  # fmt: skip
    await kept.keep(sister)
    await kept.digest(sister)
    listed = {p.name: p.kind for p in await kept.asked.profiles(ADA, Question())}
    assert listed == {"Maria Keller": EntityKind.USER, "Maria": EntityKind.PERSON}


async def test_topics_gather_what_is_known_under_a_word(kept: DigestedMemory) -> None:
    """Three memories make a topic; a fourth joins it in a new version."""
    await kept.keep(*CHESS)
    await kept.digest(*CHESS[:2])
    (chess,) = await kept.asked.topics(ADA, Question())
    assert (chess.name, len(chess.member_ids)) == ("chess", 3)
    await kept.keep(SAM)
    await kept.digest(SAM)
    (again,) = await kept.asked.topics(ADA, Question())
    assert (len(again.member_ids), again.generation) == (4, 1)


async def test_boxes_are_sealed_once_and_traced(kept: DigestedMemory) -> None:
    """Turn by turn or all at once: the same boxes; a topic that comes back shares a trace."""
    fact = known("The user's tomato seeds sprouted.", 1, sources=[TURNS[0].id])
    await kept.keep(*TURNS, fact)
    for turn in TURNS:
        await kept.digest(turn)
    *stored, still_open = await kept.asked.boxes(ADA, AboutBoxes(session_id="s1"))
    assert len(stored) == 3
    assert (still_open.sealed, still_open.episode_ids) == (None, (TURNS[-1].id,))
    await kept.digest(ended=["s1"])
    boxes = await kept.asked.boxes(ADA, AboutBoxes(session_id="s1"))
    assert [box.sealed for box in boxes] == [
        SealReason.TOPIC,
        SealReason.IDLE,
        SealReason.IDLE,
        SealReason.ENDED,
    ]
    assert [e for box in boxes for e in box.episode_ids] == [turn.id for turn in TURNS]
    garden, engine, fixed, again = boxes
    assert garden.trace_id == again.trace_id
    assert engine.trace_id == fixed.trace_id != garden.trace_id
    found = await kept.store.get(ADA, [fact.id, garden.memory_id])
    for one, other in ((fact.id, garden.memory_id), (garden.memory_id, fact.id)):
        (link,) = found[one].links
        assert (link.target_id, link.kind) == (other, LinkKind.BELONGS_TO)
    assert await kept.asked.boxes(ADA, AboutBoxes(session_id="s2")) == ()


async def test_turns_are_boxed_while_others_are_answered(
    kept: DigestedMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Turns may be long and many: no whole one is read by the thread that answers everybody."""
    turns, waits = [one.content for one in TURNS], threading.get_ident()
    read: list[bool] = []

    def watched(text: str) -> Counter[str]:
        read.extend([threading.get_ident() == waits] * (text in turns))
        return content_words(text)

    monkeypatch.setattr("engram.digests.boxes.content_words", watched)
    await kept.keep(*TURNS)
    await kept.digest(*TURNS, ended=["s1"])
    assert len(read) == len(TURNS)
    assert not any(read)


async def test_what_is_in_no_box_yet_is_shown_as_open(kept: DigestedMemory) -> None:
    """Before any pass all runs show, the last one open; sealed, each shows once, with its id."""
    other = episode("The violin concert was long.", 81, "s2")
    trial = episode("The violin is a test.", 82, "s3", is_test=True)
    await kept.keep(*TURNS, other, trial)
    writes = kept.store.writes
    runs = await kept.asked.boxes(ADA, AboutBoxes())
    assert [run.memory_id for run in runs] == [None] * 5
    assert [run.sealed for run in runs if run.session_id == "s1"][-2:] == [SealReason.IDLE, None]
    assert [e for run in runs for e in run.episode_ids] == [turn.id for turn in (*TURNS, other)]
    (own,) = await kept.asked.boxes(ADA, AboutBoxes(session_id="s2"))
    assert (own.sealed, own.topic[:1]) == (None, ("concert",))
    assert kept.store.writes == writes
    await kept.digest(*TURNS, other, ended=["s1", "s2"])
    boxes = await kept.asked.boxes(ADA, AboutBoxes())
    assert [box.episode_ids for box in boxes] == [run.episode_ids for run in runs]
    assert all(box.sealed and box.memory_id for box in boxes)


async def test_turns_that_are_forgotten_while_they_are_boxed_get_no_box(
    kept: DigestedMemory,
) -> None:
    """Nothing is written of what went in between, and the stage goes on to its end."""
    await kept.keep(*TURNS)
    kept.store.forgets_turns = True
    await kept.digest(ended=["s1"])
    assert await kept.asked.boxes(ADA, AboutBoxes(session_id="s1")) == ()
    assert await kept.picture() == []


async def test_a_box_leads_to_no_summary(kept: DigestedMemory) -> None:
    """A summary of notes of its turns, standing or replaced, is none of what the box holds."""
    fact = known("The user likes tomatoes.", 1, sources=[TURNS[0].id])
    whole = known("The user likes tomatoes and figs.", 1, sources=[TURNS[0].id])
    summary = whole.model_copy(update={"form": MemoryForm.SUMMARY})
    await kept.keep(*TURNS, fact, summary)
    await kept.digest(*TURNS)
    box = (await kept.asked.boxes(ADA, AboutBoxes(session_id="s1")))[0]
    found = await kept.store.get(ADA, [summary.id, box.memory_id])
    assert (found[summary.id].links, found[box.memory_id].related_ids) == ((), (fact.id,))


async def test_turns_of_one_moment_are_boxed_once(kept: DigestedMemory) -> None:
    """An import whose turns all have one timestamp is cut by size, each turn in one box."""
    turns = [episode("The tomato grows.", 1, message_id=f"m{n}", id=episode(f"{n}", 1).id,
                     sequence=n) for n in range(60)]  # fmt: skip
    await kept.keep(*turns)
    await kept.digest(*turns)
    await kept.digest(*turns, ended=["s1"])
    boxes = await kept.asked.boxes(ADA, AboutBoxes())
    assert sorted(len(box.episode_ids) for box in boxes) == [10, 50]
    assert {e for box in boxes for e in box.episode_ids} == {turn.id for turn in turns}


async def test_turns_of_an_earlier_time_get_a_box_of_their_own(kept: DigestedMemory) -> None:
    """What is imported after a later box was sealed is boxed too, once."""
    await kept.keep(*TURNS)
    await kept.digest(*TURNS, ended=["s1"])
    late = episode("The violin concert was long.", 20)
    await kept.keep(late)
    await kept.digest(late)
    await kept.digest(late)
    boxes = await kept.asked.boxes(ADA, AboutBoxes())
    boxed = [e for box in boxes for e in box.episode_ids]
    assert sorted(boxed) == sorted(turn.id for turn in (*TURNS, late))
    assert [box.sealed for box in boxes if late.id in box.episode_ids] == [SealReason.LATE]


async def _disturbed(fails_at: int) -> tuple[list[tuple[Any, ...]], int]:
    """What two digest stages leave, the second failing once at that write; and its writes."""
    async with borrowed_store() as repository:
        kept = DigestedMemory(repository)
        sprouted = known("The user's tomato seeds sprouted.", 1, sources=[TURNS[0].id])
        await kept.keep(PORTO, BOSS, SAM, sprouted, *CHESS, *TURNS)
        await kept.digest(PORTO, BOSS, SAM, *CHESS)
        await kept.keep(LISBON, BARBER)
        await kept.supersede(PORTO, LISBON)
        kept.store.writes, kept.store.fails_at = 0, fails_at
        try:
            await kept.digest(PORTO, LISBON, BARBER, *TURNS, ended=["s1"])
        except StorageUnavailable:
            await kept.digest(PORTO, LISBON, BARBER, *TURNS, ended=["s1"])
        return await kept.picture(), kept.store.writes


@pytest.mark.slow
async def test_a_crash_between_any_two_writes_repeats_harmlessly() -> None:
    """Failing at each write in turn, then doing it again, leads to the same digests."""
    undisturbed, writes = await _disturbed(0)
    assert writes >= 7
    for fails_at in range(1, writes + 1):
        after, _ = await _disturbed(fails_at)
        assert after == undisturbed, f"failing at write {fails_at}"


async def test_a_box_is_linked_whose_sealer_died_in_between(
    kept: DigestedMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several that were sealed at once, also the one with none of the turns that are new."""
    fact = known("The user's tomato seeds sprouted.", 1, sources=[TURNS[0].id])
    await kept.keep(*TURNS[:2], fact)
    await kept.digest(*TURNS[:2])
    await kept.keep(*TURNS[2:])

    async def dies(*_: Any) -> None:
        raise StorageUnavailable("The store is away.")

    new, composer = [turn.id for turn in TURNS[2:]], Composer(ADA, minute(20_000), "w", "r")
    with monkeypatch.context() as patched:
        patched.setattr(PlanWriter, "write", dies)
        with pytest.raises(StorageUnavailable):
            await kept.digests.sessions(composer, new, (), POLICY)
    await kept.digests.sessions(composer, new, (), POLICY)
    garden, *others = await kept.asked.boxes(ADA, AboutBoxes(session_id="s1"))
    assert [one.sealed is None for one in others] == [False, False, True]
    found = await kept.store.get(ADA, [fact.id, garden.memory_id])
    assert found[fact.id].related_ids == (garden.memory_id,)
    assert found[garden.memory_id].related_ids == (fact.id,)


async def test_a_box_is_written_once_with_its_links(kept: DigestedMemory) -> None:
    """It leads to what was derived from its turns from its first write on, and that back to it."""
    fact = known("The user's tomato seeds sprouted.", 1, sources=[TURNS[0].id])
    await kept.keep(*TURNS, fact)
    await kept.digest(*TURNS)
    garden = (await kept.asked.boxes(ADA, AboutBoxes(session_id="s1")))[0]
    found = await kept.store.get(ADA, [fact.id, garden.memory_id])
    box = found[garden.memory_id]
    assert (box.related_ids, box.revision) == ((fact.id,), 0)
    (there,), (back,) = box.links, found[fact.id].links
    assert (back.target_id, found[fact.id].revision) == (box.id, 1)
    assert back.model_copy(update={"target_id": there.target_id}) == there


@pytest.mark.parametrize("at_once", [1, 3, 7])
@pytest.mark.parametrize("ended", [(), ("s2",)])
async def test_sessions_are_cut_alike_however_many_turns_are_sorted_at_once(
    at_once: int, ended: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Boxes are the same; where one session follows the other, so is what is written."""
    others = [episode(turn.content, number * 30, "s2") for number, turn in enumerate(TURNS)]
    one_by_one = [turn for pair in zip(TURNS, others, strict=True) for turn in pair]

    async def boxed(turns: Sequence[Episode]) -> tuple[list[tuple[Any, ...]], int]:
        async with borrowed_store() as repository:
            kept = DigestedMemory(repository)
            await kept.keep(*turns)
            await kept.digest(*turns, ended=ended)
            return await kept.picture(), kept.store.writes

    following, mixed = await boxed([*TURNS, *others]), await boxed(one_by_one)
    monkeypatch.setattr(stage, "_SORTED_AT_ONCE", at_once)
    assert await boxed([*TURNS, *others]) == following
    assert (await boxed(one_by_one))[0] == mixed[0]
    assert len(following[0]) > len(ended)


@pytest.mark.parametrize("dies", [False, True])
async def test_a_box_leads_to_nothing_that_was_forgotten_while_it_was_stored(
    kept: DigestedMemory, monkeypatch: pytest.MonkeyPatch, dies: bool
) -> None:
    """Also where whoever stored it died before the other halves of its links."""
    fact = known("The user's tomato seeds sprouted.", 1, sources=[TURNS[0].id])
    await kept.keep(*TURNS, fact)
    puts = DigestStore.put

    async def forgetting(*args: Any) -> Put:
        made = await puts(*args)
        await kept.store.inner.delete(ADA, MemoryType.SEMANTIC, [fact.id])
        if dies:
            raise StorageUnavailable("The store is away.")
        return made

    new, composer = [turn.id for turn in TURNS], Composer(ADA, minute(20_000), "w", "r")
    with monkeypatch.context() as patched:
        patched.setattr(DigestStore, "put", forgetting)
        with pytest.raises(StorageUnavailable) if dies else nullcontext():
            await kept.digests.sessions(composer, new, (), POLICY)
    await kept.digests.sessions(composer, new, (), POLICY)
    boxes = await kept.asked.boxes(ADA, AboutBoxes(session_id="s1"))
    found = await kept.store.get(ADA, [box.memory_id for box in boxes if box.memory_id])
    assert found
    assert {memory.related_ids for memory in found.values()} == {()}


async def test_what_was_done_counts_once_and_becomes_guidance(kept: DigestedMemory) -> None:
    """Twelve memories of a kind, eight of them pruned: a warning, also when it is retried."""
    memories = [
        known(f"The user likes thing{n}.", n, slot=("user", "likes", f"thing{n}"),
              category=Category.PREFERENCE)
        for n in range(12)
    ]  # fmt: skip
    await kept.keep(*memories)
    stored = [(ConsolidationEffect.STORED, m.id) for m in memories]
    pruned = [(ConsolidationEffect.PRUNED, m.id) for m in memories[:8]]
    for operation, deeds in (("one", stored), ("one", stored), ("two", pruned), ("two", pruned)):
        composer = Composer(ADA, minute(10_000))
        await kept.digests.learn(composer, deeds, operation, POLICY)
    learnt = await kept.asked.guidelines(ADA, Question())
    (tally,) = learnt.tallies
    assert (tally.stored, tally.pruned) == (12, 8)
    (line,) = learnt.guidance
    assert line == (
        'Be more careful with statements of category preference with "likes": '
        "of 12 so far, 67% turned out not worth keeping."
    )
    assert await current_guidance(kept.store.inner, ADA) == ((line,), True)
    page = await kept.store.inner.scroll(ADA, MemoryType.SEMANTIC, limit=50)
    assert learnt.memory_ids == tuple(m.id for m in page.memories if line in m.content)
    assert learnt.model_dump().keys() == {"guidance", "tallies"}


async def test_what_was_touched_is_looked_through_once_not_for_each_entity(
    kept: DigestedMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty memories of twenty people are asked a few times each what they name."""
    asked: list[str] = []

    def noted(memory: SemanticMemory) -> MentionEvidence:
        asked.append(memory.id)
        return memory_clues(memory)

    monkeypatch.setattr(stage, "memory_clues", noted)
    people = [known(f"Person{n}x is a friend.", n, entities=(f"Person{n}x",)) for n in range(20)]
    await kept.keep(*people)
    await kept.digest(*people)
    assert len(people) <= len(asked) <= 4 * len(people)


@pytest.mark.slow
async def test_a_digest_costs_what_was_touched_not_what_is_stored() -> None:
    """The same touch asks and reads as much with 2,000 memories stored as with 100."""
    costs = []
    for stored in (100, 2000):
        async with borrowed_store() as repository:
            kept = DigestedMemory(repository)
            others = [
                known(f"Person{n % 90} collects stamp{n}.", n / 100, entities=(f"Person{n % 90}",),
                      slot=(f"Person{n % 90}", "collects", f"stamp{n}"))
                for n in range(stored)
            ]  # fmt: skip
            await kept.keep(*others, PORTO, BOSS, SAM, *CHESS)
            kept.store.calls.clear()
            kept.store.read = 0
            await kept.digest(PORTO, BOSS, SAM, *CHESS)
            costs.append((sum(kept.store.calls.values()), kept.store.read))
    (calls, read), (more_calls, more_read) = costs
    assert more_calls <= calls * 1.2
    assert more_read <= read * 1.5
