"""What becomes of two values of one moment, repeated words, promises that end, and echoes."""

from __future__ import annotations

from engram.domain.confidence import ExtractionMethod, Verification
from engram.domain.memories import (
    Category,
    Episode,
    Evidence,
    MemoryKind,
    MemoryStatus,
    Resolution,
    SemanticMemory,
)
from engram.domain.plan import Discard, Reason, StoreEpisode
from engram.domain.sources import FIRST_KEPT, LATEST_KEPT
from engram.domain.statements import Statement
from tests.unit.consolidation.support import Mind, on, said, stated


def turn(days: int, name: str, session: str, sequence: int = 0) -> Episode:
    """A turn of a session."""
    return said(days, name).model_copy(update={"session_id": session, "sequence": sequence})


def lives(mind: Mind, episode: Episode, city: str) -> None:
    """The turn says that the user lives there."""
    mind.hear(episode, stated(episode, "lives in", city))


def only(mind: Mind, what: str) -> SemanticMemory:
    """The one memory of that object."""
    (memory,) = mind.of(what)
    return memory


def test_what_two_conversations_say_of_one_moment_is_disputed_until_one_says_it_again() -> None:
    """Nothing orders them, so neither goes; a later telling of one settles it."""
    mind = Mind()
    lives(mind, turn(1, "a", "s1"), "Paris")
    lives(mind, turn(1, "b", "s2"), "Rome")
    paris, rome = only(mind, "paris"), only(mind, "rome")
    assert {paris.status, rome.status} == {MemoryStatus.ACTIVE}
    assert (paris.disputed_with, rome.disputed_with) == ((rome.id,), (paris.id,))
    assert {m.confidence.verification for m in (paris, rome)} == {Verification.DISPUTED}
    assert {m.confidence.contradictions for m in (paris, rome)} == {1}

    lives(mind, turn(5, "c", "s3"), "Rome")
    paris, rome = only(mind, "paris"), only(mind, "rome")
    assert rome.status is MemoryStatus.ACTIVE
    assert (paris.superseded_by, paris.superseded_known_at) == (rome.id, on(5))
    assert paris.disputed_with == rome.disputed_with == ()
    assert rome.confidence.contradictions == 0
    assert rome.confidence.verification is Verification.UNCHECKED


def test_a_third_value_told_later_settles_the_dispute_of_two() -> None:
    """Both give way to it."""
    mind = Mind()
    lives(mind, turn(1, "a", "s1"), "Paris")
    lives(mind, turn(1, "b", "s2"), "Rome")
    lives(mind, turn(5, "c", "s3"), "Oslo")
    oslo = only(mind, "oslo")
    assert {only(mind, "paris").superseded_by, only(mind, "rome").superseded_by} == {oslo.id}
    assert not any(m.disputed_with for m in mind.known.values())


def test_turns_of_one_conversation_follow_each_other_whatever_their_timestamps() -> None:
    """An application may give a whole list of turns one timestamp."""
    for order in ((0, 1), (1, 0)):
        mind = Mind()
        turns = [turn(1, "a", "s1", 0), turn(1, "b", "s1", 1)]
        cities = ["Rome", "Paris"]
        for number in order:
            lives(mind, turns[number], cities[number])
        assert mind.current() == {"The user lives in Paris."}
        assert not only(mind, "paris").disputed_with


def test_a_dispute_read_again_changes_nothing() -> None:
    """Row C6 counts a contradiction once."""
    mind = Mind()
    turns = [(turn(1, "a", "s1"), "Paris"), (turn(1, "b", "s2"), "Rome")]
    for episode, city in turns:
        lives(mind, episode, city)
    before = dict(mind.known)
    for episode, city in turns:
        lives(mind, episode, city)
    assert mind.known == before


def test_a_thousand_tellings_are_counted_and_kept_in_bounds() -> None:
    """Row C3: each independent episode counts once, first and latest sources stay whole."""
    mind, turns = Mind(), [said(day) for day in range(300)]
    for start in range(0, 300, 20):
        for episode in turns[start : start + 20]:
            mind.episodes[episode.id] = episode
        mind.take([stated(e, "lives in", "Paris") for e in turns[start : start + 20]])
    paris = only(mind, "paris")
    assert paris.confidence.supporting_episodes == 300
    assert len(paris.source_episode_ids) == FIRST_KEPT + LATEST_KEPT
    assert paris.source_episode_ids[0] == turns[0].id
    assert paris.source_episode_ids[-1] == turns[-1].id
    assert len(paris.model_dump_json()) < 30_000
    assert (paris.known_at, paris.confidence.last_confirmed) == (on(0), on(299))

    again = mind.take([stated(e, "lives in", "Paris") for e in turns])
    assert not again.new_memories()
    assert not list(again.amendments())
    assert only(mind, "paris") == paris


def test_a_quotation_makes_it_extracted_and_a_later_one_does_so_too() -> None:
    """Row C2: inferred without a quotation, extracted with one; sources keep their words."""
    mind, first, second = Mind(), said(1), said(2)
    mind.hear(first, stated(first, "uses", "Vim"))
    vim = only(mind, "vim")
    assert vim.confidence.method is ExtractionMethod.INFERRED
    quote = Evidence(episode_id=second.id, words="turn 2")
    mind.hear(second, stated(second, "uses", "Vim", evidence=(quote,)))
    vim = only(mind, "vim")
    assert vim.evidence == (quote,)
    assert vim.confidence.method is ExtractionMethod.EXTRACTED
    assert vim.confidence.verification is Verification.EVIDENCE_FOUND


def test_a_turn_in_engrams_own_words_is_no_evidence() -> None:
    """The memory said back, letter by letter, corroborates nothing; it is counted."""
    mind, first = Mind(), said(1)
    mind.hear(first, stated(first, "uses", "Vim"))
    echo = said(2)
    quote = Evidence(episode_id=echo.id, words="The user uses Vim.")
    plan = mind.hear(echo, stated(echo, "uses", "Vim", evidence=(quote,)))
    assert [a.reason for a in plan.actions if isinstance(a, Discard)] == [Reason.ECHO]
    assert only(mind, "vim").confidence.supporting_episodes == 1


def test_what_happened_is_stored_as_an_episode_that_nothing_replaces() -> None:
    """Row W7: it has no slot, and the same words again only corroborate it."""
    mind, first, second = Mind(), said(1), said(2)

    def met(episode: Episode) -> Statement:
        return stated(episode, "met", "Ana", kind=MemoryKind.EPISODE)

    plan = mind.hear(first, met(first))
    assert [type(a) for a in plan.actions] == [StoreEpisode]
    mind.hear(second, met(second))
    mind.hear(said(3), stated(said(3), "met", "Ana", holds=False))
    (memory, *_) = [m for m in mind.known.values() if m.kind is MemoryKind.EPISODE]
    assert memory.slot is None
    assert memory.status is MemoryStatus.ACTIVE
    assert memory.confidence.supporting_episodes == 2


def test_a_promise_that_no_longer_holds_was_kept_unless_the_turn_says_otherwise() -> None:
    """Row D8: a later statement resolves a commitment."""
    for ended, resolution in (
        (None, Resolution.FULFILLED),
        (Resolution.EXPIRED, Resolution.EXPIRED),
    ):
        mind, first, later = Mind(), said(1), said(9)
        promise = {"category": Category.COMMITMENT}
        mind.hear(first, stated(first, "promised to", "call Bo", **promise))
        end = stated(later, "promised to", "call Bo", holds=False, ended=ended, **promise)
        mind.hear(later, end)
        called = min(mind.of("call bo"), key=lambda m: m.known_at)
        assert (called.resolution, called.resolved_at) == (resolution, on(9))
