"""A session is cut into boxes: each turn in one, by topic, silence and size."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import cast

from hypothesis import given, settings
from hypothesis import strategies as st

from engram.digests.boxes import Box, Said, Traces, overlap, recurs, segment
from engram.digests.store import DigestStore
from engram.domain.digests import BoxDetail, SealReason
from engram.domain.memories import SemanticMemory
from engram.domain.rules import DigestPolicy
from tests.support.digest_memories import ADA, minute, said
from tests.support.sizes import examples

POLICY = DigestPolicy()
SMALL = DigestPolicy(box_turns=5)
WORDS = "garden tomato seed engine wheel brake violin concert sonata ok yes the please".split()
TURNS = st.lists(
    st.tuples(st.lists(st.sampled_from(WORDS), max_size=6), st.integers(0, 45)), max_size=30
)


def session(drawn: list[tuple[list[str], int]]) -> list[Said]:
    """Turns with these words and silences before them."""
    at, turns = 0, []
    for number, (words, gap) in enumerate(drawn):
        at += gap
        turns.append(Said(id=f"e{number:03}", at=minute(at), text=" ".join(words), sequence=number))
    return turns


@given(TURNS)
@settings(max_examples=examples(150), deadline=None)
def test_every_turn_is_in_exactly_one_box(drawn: list[tuple[list[str], int]]) -> None:
    """The boxes hold the turns, all of them, once, and in order."""
    turns = session(drawn)
    boxes = segment(turns, SMALL)
    assert [turn for box in boxes for turn in box.turns] == turns
    assert all(box.sealed is not None for box in boxes[:-1])
    assert all(len(box.turns) <= SMALL.box_turns for box in boxes)
    assert not boxes or boxes[-1].sealed is None


@given(TURNS, st.integers(0, 30))
@settings(max_examples=examples(150), deadline=None)
def test_cutting_goes_on_after_the_last_sealed_box(
    drawn: list[tuple[list[str], int]], cut: int
) -> None:
    """Boxes that are cut as turns arrive are those of the whole session."""
    turns = session(drawn)
    sealed = [box for box in segment(turns[:cut], SMALL) if box.sealed is not None]
    boxed = {turn.id for box in sealed for turn in box.turns}
    rest = segment([turn for turn in turns if turn.id not in boxed], SMALL)
    assert [*sealed, *rest] == segment(turns, SMALL)


@given(TURNS)
@settings(max_examples=examples(100), deadline=None)
def test_the_order_of_arrival_does_not_matter(drawn: list[tuple[list[str], int]]) -> None:
    """Turns are taken by when they were said."""
    turns = session(drawn)
    assert segment(reversed(turns), SMALL) == segment(turns, SMALL)


def test_a_new_topic_seals_a_box_and_a_short_reply_does_not() -> None:
    """What shares no word with the box ends it; "ok" and "yes, please" stay in it."""
    turns = said(
        "My tomato seeds in the garden finally sprouted.",
        "How many tomato seeds did the garden get?",
        "Yes, please.",
        "ok",
        "About forty seeds, the garden is full.",
        "The engine of my motorcycle lost its brake fluid again.",
    )
    first, second = segment(turns, POLICY, ended=SealReason.ENDED)
    assert (len(first.turns), first.sealed) == (5, SealReason.TOPIC)
    assert (len(second.turns), second.sealed) == (1, SealReason.ENDED)
    assert set(first.topic[:2]) == {"garden", "seeds"}


def test_half_an_hour_of_silence_seals_a_box() -> None:
    """Thirty minutes do, twenty-nine do not, whatever is said."""
    turns = said("The tomato grows.", "The tomato grows.", gap=29)
    assert len(segment(turns, POLICY)) == 1
    turns = said("The tomato grows.", "The tomato grows.", gap=30)
    assert [box.sealed for box in segment(turns, POLICY)] == [SealReason.IDLE, None]


def test_a_box_takes_fifty_turns() -> None:
    """The fifty-first opens another."""
    boxes = segment(said(*["The tomato grows."] * 51), POLICY)
    assert [(len(box.turns), box.sealed) for box in boxes] == [(50, SealReason.FULL), (1, None)]


@given(st.frozensets(st.sampled_from(WORDS)), st.frozensets(st.sampled_from(WORDS)))
def test_overlap_is_symmetric_and_bounded(first: frozenset[str], second: frozenset[str]) -> None:
    """0 to 1, the same from both sides, and never lower with smoothing."""
    plain = overlap(first, second)
    assert 0 <= plain <= 1
    assert plain == overlap(second, first)
    assert overlap(first, second, 1.5) >= plain - 1e-9


def test_no_password_and_no_key_is_a_topic() -> None:
    """The longest words tell most, but for those that nobody reads."""
    said = "The tomato seeds: my password is Kaffee!2019Basel, garden app key 8f3ab41c99d04e7b21."
    (box,) = segment([Said(id="e1", at=minute(0), text=said)], POLICY)
    assert set(box.topic) == {"tomato", "seeds", "password", "garden", "app", "key"}


def test_a_topic_comes_back_by_more_than_one_word() -> None:
    """One shared word links no boxes; a third of the words does."""
    earlier = frozenset("tomato garden seed water soil".split())
    assert recurs(frozenset(["tomato"]), earlier, POLICY) == 0
    assert recurs(frozenset("tomato garden engine".split()), earlier, POLICY) > POLICY.box_overlap
    assert recurs(frozenset("tomato garden".split()), frozenset("a b c d e".split()), POLICY) == 0


@dataclass
class NoBoxes:
    """A store without boxes."""

    asked: list[object] = field(default_factory=list)

    async def semantic(self, *asked: object, limit: int) -> list[SemanticMemory]:
        """None are there."""
        self.asked += asked
        return []


@given(
    st.lists(st.tuples(st.integers(0, 9), st.sets(st.sampled_from(WORDS[:3]))), max_size=80),
    st.integers(0, 10),
)
@settings(max_examples=examples(100), deadline=None)
def test_earlier_boxes_are_those_that_a_look_at_each_would_find(
    drawn: list[tuple[int, set[str]]], opened: int
) -> None:
    """The latest that end by then with one of the words; of equals the first noted of a word."""
    boxes = [
        BoxDetail(
            keys=(f"box:{number}", *(f"word:{word}" for word in sorted(words))),
            session_id="s1",
            opened=minute(0),
            last=minute(end),
            sealed=SealReason.TOPIC,
            episode_ids=(f"e{number}",),
            trace_id=f"t{number}",
        )
        for number, (end, words) in enumerate(drawn)
    ]
    traces = Traces(cast("DigestStore", NoBoxes()), ADA)

    async def before() -> list[BoxDetail]:
        await traces.look_up(WORDS[:3])
        for box in boxes:
            traces.add(box)
        turn = Said(id="now", at=minute(opened), text="")
        return await traces.before(Box((turn,), frozenset(), None, ()), WORDS[:3])

    with_words = [b for word in WORDS[:3] for b in boxes if f"word:{word}" in b.keys]
    ended = dict.fromkeys(b.keys[0] for b in with_words if b.last <= minute(opened))
    by_key = {box.keys[0]: box for box in boxes}
    plain = sorted((by_key[key] for key in ended), key=lambda box: box.last, reverse=True)
    assert asyncio.run(before()) == plain[:24]
