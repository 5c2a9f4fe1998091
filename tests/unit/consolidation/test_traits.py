"""What a conclusion has of its turns: importance, agreed metadata, an end."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from engram.consolidation.amendments import MOST_AGREED, corroborated, traits
from engram.consolidation.summaries import group_of
from engram.digests.profiles import answers
from engram.domain.memories import Episode, MemoryStatus
from engram.domain.turns import MAX_TAGS
from tests.support.reconciliation import ReconciledKnowledge, on, said, stated

FAR, FARTHER = on(4000), on(5000)


def turn(days: int, name: str = "", **more: Any) -> Episode:
    """A turn said on that day, with what its caller gave it."""
    return said(days, name).model_copy(update=more)


def test_what_a_caller_gives_a_turn_reaches_what_is_concluded_from_it() -> None:
    """Importance, plain metadata and expiry of the turn are those of the conclusion."""
    knowledge = ReconciledKnowledge()
    told = turn(1, importance=0.9, metadata={"app": "diary", "raw": [1]}, expires_at=FAR)
    knowledge.hear(told, stated(told, "uses", "Vim", importance=0.6))
    (memory,) = knowledge.of("vim")
    assert (memory.importance, memory.expires_at) == (0.9, FAR)
    assert memory.metadata == {"app": "diary"}


@pytest.mark.parametrize("given", [0.0, 0.1, 0.9])
def test_a_given_importance_stands_for_the_extractions(given: float) -> None:
    """What the caller says of its only turn counts, also where it is little."""
    knowledge = ReconciledKnowledge()
    told = turn(1, importance=given)
    knowledge.hear(told, stated(told, "uses", "Vim", importance=0.7))
    assert knowledge.of("vim")[0].importance == given


def test_importance_is_that_of_the_most_important_turn() -> None:
    """A later turn lifts it, and none lowers it."""
    knowledge = ReconciledKnowledge()
    for told in (turn(1), turn(2, importance=0.9), turn(3, importance=0.2), turn(4)):
        knowledge.hear(told, stated(told, "uses", "Vim", importance=0.6))
    assert knowledge.of("vim")[0].importance == 0.9


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_an_end_lasts_as_long_as_its_longest_turn_in_any_order(order: tuple[int, ...]) -> None:
    """The latest end of all turns holds, whichever came first."""
    turns = [turn(1, expires_at=FAR), turn(2, expires_at=FARTHER), turn(3, expires_at=on(99))]
    knowledge = ReconciledKnowledge()
    for number in order:
        told = turns[number]
        knowledge.hear(told, stated(told, "uses", "Vim"))
    assert knowledge.of("vim")[0].expires_at == FARTHER


@pytest.mark.parametrize("later", [False, True])
def test_a_turn_without_an_end_takes_the_end_away(*, later: bool) -> None:
    """An expiry holds for what was concluded from that turn alone."""
    ends, stays = turn(1, expires_at=FAR), turn(2)
    knowledge = ReconciledKnowledge()
    for told in (ends, stays) if later else (stays, ends):
        knowledge.hear(told, stated(told, "uses", "Vim"))
    assert knowledge.of("vim")[0].expires_at is None


def test_two_turns_of_one_batch_are_joined_as_two_batches_are() -> None:
    """Whether turns are read together or apart makes no difference."""
    turns = [
        turn(1, importance=0.8, metadata={"app": "a", "n": 1}, expires_at=FAR),
        turn(2, importance=0.9, metadata={"app": "a", "n": 2}, expires_at=FARTHER),
    ]
    together, apart = ReconciledKnowledge(), ReconciledKnowledge()
    together.episodes |= {one.id: one for one in turns}
    together.take([stated(one, "lives in", "Oslo") for one in turns])
    for one in turns:
        apart.hear(one, stated(one, "lives in", "Oslo"))
    found = [known.of("oslo")[0] for known in (together, apart)]
    assert [(m.importance, m.expires_at, m.metadata) for m in found] == [
        (0.9, FARTHER, {"app": "a"})
    ] * 2


def test_metadata_is_what_all_turns_agree_on() -> None:
    """A key with another value, another type, or none in some turn is not taken over."""
    turns = [
        turn(1, metadata={"app": "diary", "n": 1, "x": True, "only": "here"}),
        turn(2, metadata={"app": "diary", "n": 2, "x": 1}),
    ]
    assert traits(turns, 0.5)["metadata"] == {"app": "diary"}
    knowledge = ReconciledKnowledge()
    for told in turns:
        knowledge.hear(told, stated(told, "uses", "Vim"))
    assert knowledge.of("vim")[0].metadata == {"app": "diary"}


def test_metadata_that_is_taken_over_is_bounded() -> None:
    """Long texts, lists and objects stay with the turn, and of many keys the first by name go."""
    many = {f"k{number:02}": number for number in range(40)}
    found = traits([turn(1, metadata={"long": "x" * 200, "deep": {"a": 1}, **many})], 0.5)
    assert list(found["metadata"]) == sorted(many)[:MOST_AGREED]


def test_what_comes_back_ends_when_the_turn_that_says_so_again_ends() -> None:
    """Told again after its end, a conclusion lasts as long as the new turn, and not for ever."""
    knowledge = ReconciledKnowledge()
    told = turn(1, expires_at=on(2))
    knowledge.hear(told, stated(told, "uses", "Vim"))
    gone = knowledge.of("vim")[0].model_copy(
        update={"status": MemoryStatus.EXPIRED, "expired_at": on(2)}
    )
    back = corroborated(gone, [turn(5, expires_at=FAR)])
    assert back is not None
    assert (back.status, back.expires_at) == (MemoryStatus.ACTIVE, FAR)


def test_what_ends_stands_in_no_digest_and_no_summary() -> None:
    """A profile, a topic or a summary would go on saying what has ended by its own date."""
    knowledge, told = ReconciledKnowledge(), turn(1, expires_at=FAR)
    knowledge.hear(told, stated(told, "likes", "tea"))
    (memory,) = knowledge.of("tea")
    lasting = memory.model_copy(update={"expires_at": None})
    assert not answers(memory)
    assert answers(lasting)
    assert group_of(memory) is None
    assert group_of(lasting) is not None


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_tags_are_those_of_all_turns_in_any_order(order: tuple[int, ...]) -> None:
    """Told again under another tag, a conclusion is found by both."""
    turns = [turn(1, tags=("work",)), turn(2, tags=("home", "work"))]
    knowledge = ReconciledKnowledge()
    for number in order:
        told = turns[number]
        knowledge.hear(told, stated(told, "uses", "Vim"))
    assert knowledge.of("vim")[0].tags == ("home", "work")


def test_tags_that_are_taken_over_are_bounded() -> None:
    """As many as a turn may have, the same ones whichever turn came first."""
    many = [turn(n, tags=tuple(f"t{n}{letter:02}" for letter in range(40))) for n in (1, 2)]
    found = traits(many, 0.5)["tags"]
    assert found == traits(many[::-1], 0.5)["tags"]
    assert len(found) == MAX_TAGS
