"""Words and meaning on one scale, by hand-made matches: no store, no model."""

from __future__ import annotations

import math

import pytest

from engram.domain.memories import MemoryType
from engram.ports import Match
from engram.recall.search import Sides, best_by_words, sides_of, was_cut

FACT, NOTE = MemoryType.FACTUAL, MemoryType.SEMANTIC
# So many were asked for that nothing was cut.
PLENTY = 100


def found(
    name: str,
    *,
    dense: float | None = None,
    sparse: float | None = None,
    kind: MemoryType = NOTE,
) -> Match:
    """What a store brings up for that memory."""
    return Match(kind, name, dense, sparse)


def sides(
    *matches: Match,
    limit: int = PLENTY,
    scale: dict[MemoryType, float] | None = None,
    most: int = PLENTY,
) -> dict[str, Sides]:
    """The sides of each, by name, best first."""
    chosen = sides_of(matches, limit=limit, scale=scale or {}, most=most)
    return {one.match.memory_id: one for one in chosen}


def near(*matches: Match) -> dict[str, float]:
    """How near in meaning each is."""
    return {name: one.near for name, one in sides(*matches).items()}


def words(
    *matches: Match, limit: int = PLENTY, scale: dict[MemoryType, float] | None = None
) -> dict[str, float]:
    """How well the words of each match."""
    return {name: one.words for name, one in sides(*matches, limit=limit, scale=scale).items()}


def test_nearness_spans_the_candidates_from_worst_to_best() -> None:
    """Cosines in a narrow band are spread over 0 to 1; what was not found near gets 0."""
    matches = [found("a", dense=0.8), found("b", dense=0.7), found("c", dense=0.6)]
    assert near(*matches, found("d", sparse=2.0)) == pytest.approx(
        {"a": 1.0, "b": 0.5, "c": 0.0, "d": 0.0}
    )


def test_nearness_may_be_negative() -> None:
    """A cosine below 0 is still the best if the others lie lower."""
    assert near(found("a", dense=-0.2), found("b", dense=-0.6)) == pytest.approx(
        {"a": 1.0, "b": 0.0}
    )


def test_candidates_that_are_all_equally_near_are_all_the_best() -> None:
    """One alone has nothing to be worse than, nor have equal ones."""
    assert near(found("a", dense=0.3)) == pytest.approx({"a": 1.0})
    assert near(found("a", dense=0.3), found("b", dense=0.3)) == pytest.approx({"a": 1.0, "b": 1.0})


def test_words_are_measured_against_the_best_of_the_type() -> None:
    """Scores of two types do not compare: each type has its own 1."""
    matches = [
        found("a", sparse=8.0),
        found("b", sparse=2.0),
        found("c", sparse=3.0, kind=FACT),
        found("d", sparse=1.5, kind=FACT),
    ]
    assert words(*matches) == pytest.approx({"a": 1.0, "b": 0.25, "c": 1.0, "d": 0.5})


def test_the_words_of_a_type_count_as_much_as_they_are_said_to() -> None:
    """A type whose best holds half of the question's words is scaled by a half."""
    matches = [found("a", sparse=8.0), found("c", sparse=3.0, kind=FACT)]
    assert words(*matches, scale={FACT: 0.5}) == pytest.approx({"a": 1.0, "c": 0.5})


def test_words_that_all_memories_hold_are_hardly_a_match() -> None:
    """Below what a word in every memory scores, the best of a type is no full match."""
    nothing_told = math.log(4 / 3)
    assert words(found("a", sparse=nothing_told / 2)) == pytest.approx({"a": 0.5})
    assert words(found("a", sparse=nothing_told)) == pytest.approx({"a": 1.0})


def test_what_the_words_did_not_find_counts_nothing_where_all_were_found() -> None:
    """A list that was not cut holds every memory with a word in common."""
    matches = [found("a", sparse=4.0), found("b", dense=0.9)]
    assert words(*matches) == pytest.approx({"a": 1.0, "b": 0.0})
    assert words(*matches, limit=3)["b"] == 0.0


def test_what_the_words_did_not_find_counts_as_the_last_they_did_where_the_list_was_cut() -> None:
    """It may have just missed the list: half of what was asked for counts as a full one."""
    matches = [found("a", sparse=4.0), found("b", sparse=1.0), found("c", dense=0.9)]
    assert words(*matches, limit=4) == pytest.approx({"a": 1.0, "b": 0.25, "c": 0.25})
    assert words(*matches, limit=5)["c"] == 0.0


def test_a_list_is_cut_by_matches_of_its_own_type_that_have_a_word_in_common() -> None:
    """Neither another type's matches nor those with a score of 0 fill it, nor give its floor."""
    matches = [found("a", sparse=4.0), found("b", sparse=0.0), found("c", dense=0.9)]
    other = [found("d", sparse=2.0, kind=FACT), found("e", dense=0.1, kind=FACT)]
    assert words(*matches, *other, limit=4) == pytest.approx(
        {"a": 1.0, "b": 0.0, "c": 0.0, "d": 1.0, "e": 0.0}
    )
    full = [*matches, found("f", sparse=2.0)]
    assert words(*full, *other, limit=4)["c"] == pytest.approx(0.5)
    assert words(*full, *other, limit=4)["e"] == 0.0


def test_a_score_below_nothing_counts_as_nothing() -> None:
    """No store should give one; if it does, it does not take from the score."""
    matches = [found("a", sparse=4.0), found("b", sparse=-1.0)]
    assert words(*matches) == pytest.approx({"a": 1.0, "b": 0.0})
    assert words(found("a", sparse=-1.0), found("b", sparse=0.0)) == {"a": 0.0, "b": 0.0}


def test_words_count_seven_parts_and_meaning_three() -> None:
    """What the two sides say together decides which candidates are read."""
    matches = [
        # .7 * .5 + .3 * 1, .7 * 1 + .3 * .5, nothing, and .7 * .9 + .3 * .05
        found("a", dense=0.9, sparse=2.0),
        found("b", dense=0.5, sparse=4.0),
        found("c", dense=0.1, sparse=None),
        found("d", dense=0.14, sparse=3.6),
    ]
    assert list(sides(*matches)) == ["b", "a", "d", "c"]


def test_a_clear_match_of_words_beats_the_nearest_in_meaning() -> None:
    """The weak side does not overrule the strong one."""
    assert list(sides(found("near", dense=0.9), found("words", sparse=3.0, dense=0.1))) == [
        "words",
        "near",
    ]


def test_only_the_best_are_chosen_and_ties_go_by_id() -> None:
    """Equal matches come in one order, whatever order the store gave them in."""
    matches = [found(name, sparse=2.0) for name in "cab"] + [found("best", sparse=4.0)]
    assert list(sides(*matches)) == ["best", "a", "b", "c"]
    assert list(sides(*matches, most=2)) == ["best", "a"]
    assert not sides(*matches, most=0)


def test_sides_come_with_the_match_they_are_of() -> None:
    """Reordering does not mix them up: each keeps its type and what was measured."""
    low, high = found("low", sparse=1.0, kind=FACT), found("high", dense=0.4, sparse=9.0)
    assert {name: one.match for name, one in sides(low, high).items()} == {"low": low, "high": high}


def test_nothing_found_has_no_sides() -> None:
    """An empty store is no error."""
    assert sides_of([], limit=10, scale={}, most=5) == []


def test_the_best_by_words_is_one_match_of_each_type() -> None:
    """The first id of equal ones, however the store orders them; never what has no word."""
    first, second = found("first", sparse=0.5), found("second", sparse=0.5)
    other = found("other", sparse=0.2, kind=FACT)
    without = found("without", dense=0.9, sparse=0.0, kind=MemoryType.EPISODIC)
    unread = found("unread", dense=0.9, kind=MemoryType.NEGATION)
    low = found("low", sparse=0.4)
    best = {NOTE: first, FACT: other}
    assert best_by_words([low, first, other, without, unread, second]) == best
    assert best_by_words([second, unread, without, other, first, low]) == best


@pytest.mark.parametrize(("limit", "cut"), [(3, True), (4, True), (5, False)])
@pytest.mark.parametrize("of", [(0.5, None), (None, 0.5)])
def test_half_of_what_was_asked_for_may_be_a_list_that_was_cut(
    of: tuple[float | None, float | None], limit: int, *, cut: bool
) -> None:
    """A store may leave out equal scores at the end rather than cut through them."""
    matches = [Match(NOTE, name, *of) for name in "ab"]
    assert was_cut(matches, limit) is cut


def test_types_and_sides_are_cut_each_for_themselves() -> None:
    """Two matches of two types, or of two sides, are two lists with one each."""
    assert not was_cut([found("a", dense=0.5), found("b", dense=0.5, kind=FACT)], 4)
    assert not was_cut([found("a", dense=0.5), found("b", sparse=0.5)], 4)
    assert not was_cut([], 1)
