"""Which memories count: the rule itself, and that store and rule agree."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engram.domain.memories import AnyMemory, LifecycleState, MemoryStatus, MemoryType, Slot
from engram.errors import InvalidQuery
from engram.ports import (
    After,
    AnyOf,
    Between,
    Condition,
    Either,
    Equals,
    Filter,
    Missing,
    NewMemory,
    Not,
    SparseVector,
    TextVectors,
)
from engram.recall.request import RecallRequest, Visibility, visible
from engram.settings import Settings
from tests.support.recall_memories import ADA, NOW, Memories, day, episode, negation, semantic
from tests.support.sizes import examples

# Few moments, so that equal ones are common: the edges are where rules disagree.
MOMENTS = st.sampled_from([day(-1), day(0), day(1), day(2), NOW])
MAYBE = st.none() | MOMENTS
FLAGS = st.booleans()
VISIBILITIES = st.builds(
    Visibility,
    now=st.just(NOW),
    as_of=MAYBE,
    valid_at=MAYBE,
    include_archived=FLAGS,
    include_test=FLAGS,
    include_stale=FLAGS,
    include_expired=FLAGS,
)
COMMON: dict[str, st.SearchStrategy[Any]] = {
    "status": st.sampled_from(MemoryStatus),
    "superseded_known_at": MAYBE,
    "expires_at": MAYBE,
    "is_test": FLAGS,
    "lifecycle": st.none() | st.sampled_from(LifecycleState),
}


@st.composite
def any_memory(draw: st.DrawFn, text: str = "tea") -> AnyMemory:
    """An episode or a piece of knowledge with any combination of times and flags."""
    fields = {name: draw(values) for name, values in COMMON.items()}
    known = draw(st.sampled_from([-1.0, 0.0, 1.0, 2.0]))
    if draw(FLAGS):
        return episode(text, known, **fields)
    return semantic(text, known, valid_from=draw(MAYBE), valid_to=draw(MAYBE), **fields)


def holds(condition: Condition, memory: AnyMemory) -> bool:
    """What the ports say a condition means."""
    match condition:
        case Not(inner):
            answer = not holds(inner, memory)
        case Either(conditions):
            answer = any(holds(inner, memory) for inner in conditions)
        case Missing(field):
            answer = getattr(memory, field, None) in {None, ()}
        case Equals(field, value):
            answer = getattr(memory, field, None) == value
        case AnyOf(field, values):
            answer = getattr(memory, field, None) in values
        case After(field, bound):
            answer = within(getattr(memory, field, None), lambda time: time > bound)
        case Between(field, low, high):
            answer = within(
                getattr(memory, field, None),
                lambda time: (low is None or low <= time) and (high is None or time <= high),
            )
        case other:
            raise AssertionError(other)
    return answer


def within(value: Any, bounds: Callable[[Any], bool]) -> bool:
    """A bound on a field that is absent does not hold."""
    return value is not None and bounds(value)


def all_hold(conditions: Filter, memory: AnyMemory) -> bool:
    """Whether a store with these conditions brings the memory up."""
    return all(holds(condition, memory) for condition in conditions)


@settings(max_examples=examples(1000), deadline=None)
@given(any_memory(), VISIBILITIES)
def test_the_store_is_asked_for_exactly_what_counts(
    memory: AnyMemory, visibility: Visibility
) -> None:
    """Rule and conditions agree on every combination."""
    assert visibility.counts(memory) == all_hold(visible(visibility, memory.type), memory)


@settings(
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(any_memory(), min_size=5, max_size=40), st.lists(VISIBILITIES, min_size=10))
async def test_the_engine_gives_exactly_what_counts(
    memories: Memories, drawn: list[AnyMemory], views: list[Visibility]
) -> None:
    """The real engine answers the conditions as the rule does."""
    stored = [
        one.model_copy(update={"id": f"00000000-0000-0000-0000-{number:012d}"})
        for number, one in enumerate(drawn)
    ]
    await memories.repository.erase(ADA)
    vectors = TextVectors((1.0,) * 256, SparseVector((1,), (1.0,)))
    await memories.repository.insert(ADA, [NewMemory(one, vectors) for one in stored])
    for view in views:
        for kind in (MemoryType.EPISODIC, MemoryType.SEMANTIC):
            page = await memories.repository.scroll(ADA, kind, where=visible(view, kind))
            expected = {one.id for one in stored if one.type is kind and view.counts(one)}
            assert {one.id for one in page.memories} == expected


@given(any_memory(), VISIBILITIES)
def test_nothing_counts_before_it_was_known_or_after_it_was_replaced(
    memory: AnyMemory, visibility: Visibility
) -> None:
    """Looking from a moment, later knowledge and what was replaced by then are out."""
    if not visibility.counts(memory) or visibility.as_of is None:
        return
    assert memory.known_at <= visibility.as_of
    replaced = memory.superseded_known_at
    if replaced is not None and replaced <= visibility.as_of:
        # Only when asked about a time before its end.
        assert visibility.valid_at is not None
        assert memory.type is MemoryType.SEMANTIC


@given(any_memory(), MOMENTS)
def test_what_becomes_of_a_memory_later_does_not_change_what_was_known(
    memory: AnyMemory, then: datetime
) -> None:
    """A later change of status or a later replacement leaves earlier answers as they were."""
    view = Visibility(now=NOW, as_of=then)
    later = memory.model_copy(
        update={
            "status": MemoryStatus.SUPERSEDED,
            "superseded_known_at": memory.superseded_known_at or then + timedelta(seconds=1),
        }
    )
    assert view.counts(memory) == view.counts(later)


@pytest.mark.parametrize(
    ("at", "expected"), [(0.5, False), (1.0, True), (4.9, True), (5.0, False), (6.0, False)]
)
def test_truth_begins_at_its_first_moment_and_ends_before_its_last(
    at: float, expected: bool
) -> None:
    """valid_from is inside the time something was true, valid_to is not."""
    memory = semantic("tea", 0, valid_from=day(1), valid_to=day(5))
    assert Visibility(now=NOW, valid_at=day(at)).counts(memory) is expected


def test_without_bounds_something_is_always_true() -> None:
    """A memory without valid_from and valid_to answers for any time."""
    memory = semantic("tea", 0)
    for moment in (day(-500), day(0), day(500)):
        assert Visibility(now=NOW, valid_at=moment).counts(memory)


def test_an_end_without_a_beginning_says_nothing_of_the_time_before_it() -> None:
    """That somebody no longer lives somewhere is true from when they left, not for any time."""
    slot = Slot(subject="user", predicate="no longer lives in", object="paris")
    left = semantic("no Paris", 3, event_at=day(2), slot=slot)
    for at in (1.0, 2.0, 4.0):
        assert Visibility(now=NOW, valid_at=day(at)).counts(left) is (at >= 2)


@pytest.mark.parametrize(
    ("told", "long_before"),
    [("The user doesn't drink wine.", False), ("The user has never drunk wine.", True)],
)
def test_a_denial_says_of_the_time_before_it_only_what_it_tells_of_it(
    told: str, *, long_before: bool
) -> None:
    """Who drinks no wine may have drunk it, unless they say that they never did."""
    denied = negation(told, "drink wine", 3)
    found = [Visibility(now=NOW, valid_at=day(at)).counts(denied) for at in (-500, 2, 3, 4)]
    assert found == [long_before, long_before, True, True]


def test_an_episode_is_not_bound_to_a_time_of_truth() -> None:
    """What was said was said, whatever time the question is about."""
    assert Visibility(now=NOW, valid_at=day(-500)).counts(episode("tea", 0))


def test_a_retracted_memory_was_never_true() -> None:
    """Replaced without an end of its truth (a correction), it answers for no time at all."""
    wrong = semantic("tea", 0, status=MemoryStatus.SUPERSEDED, superseded_known_at=day(5))
    for moment in (day(-1), day(1), day(10)):
        assert not Visibility(now=NOW, valid_at=moment).counts(wrong)


def test_an_end_learnt_later_was_not_known_then() -> None:
    """As known before the move was told, the old home was still true after it happened."""
    paris = semantic(
        "Paris",
        0,
        status=MemoryStatus.SUPERSEDED,
        superseded_known_at=day(30),
        valid_to=day(10),
    )
    assert Visibility(now=NOW, as_of=day(20), valid_at=day(15)).counts(paris)
    assert not Visibility(now=NOW, as_of=day(40), valid_at=day(15)).counts(paris)
    assert Visibility(now=NOW, as_of=day(40), valid_at=day(5)).counts(paris)


@pytest.mark.parametrize(("at", "expected"), [(4, True), (5, False), (6, False)])
def test_a_replaced_memory_counts_now_for_the_time_before_its_end(
    at: int, *, expected: bool
) -> None:
    """Whoever asks today what held then gets what held, until it ended."""
    paris = semantic("tea", 0, status=MemoryStatus.SUPERSEDED, valid_to=day(5))
    assert Visibility(now=NOW, valid_at=day(at)).counts(paris) is expected


def test_a_time_to_live_ends_at_its_moment() -> None:
    """A memory is gone from the moment it expires on, and was there before."""
    memory = semantic("tea", 0, expires_at=day(5))
    views = [Visibility(now=day(at)) for at in (4.9, 5.0)]
    assert [view.counts(memory) for view in views] == [True, False]
    assert Visibility(now=NOW, as_of=day(4)).counts(memory)


@pytest.mark.parametrize("archived", [True, False])
def test_archived_memories_count_where_they_are_asked_for(*, archived: bool) -> None:
    """Expired ones never do; without a word archived ones do not either."""
    view = Visibility(now=NOW, include_archived=archived)
    assert view.counts(semantic("tea", 0, status=MemoryStatus.ARCHIVED)) is archived
    assert not view.counts(semantic("tea", 0, status=MemoryStatus.EXPIRED))
    assert view.counts(semantic("tea", 0))


@pytest.mark.parametrize("status", [MemoryStatus.ARCHIVED, MemoryStatus.SUPERSEDED])
def test_what_does_not_stand_does_not_count_unless_asked_for(status: MemoryStatus) -> None:
    """By default one looks from now, at what is active."""
    view = Visibility(now=NOW)
    assert not view.counts(semantic("tea", 0, status=status, valid_to=day(5)))
    assert (view.include_archived, view.include_test) == (False, False)


@pytest.mark.parametrize("test", [True, False])
def test_test_memories_count_where_they_are_asked_for(*, test: bool) -> None:
    """Real ones count beside them."""
    view = Visibility(now=NOW, include_test=test)
    assert view.counts(semantic("tea", 0, is_test=True)) is test
    assert view.counts(semantic("tea", 0))


def test_a_test_memory_does_not_count_unless_asked_for() -> None:
    """Without a word about it, no test meets an application's answers."""
    assert not Visibility(now=NOW).counts(semantic("tea", 0, is_test=True))


@pytest.mark.parametrize(
    ("view", "standing"),
    [
        (Visibility(now=NOW), {"active"}),
        (Visibility(now=NOW, include_archived=True), {"active", "archived"}),
        (Visibility(now=NOW, include_expired=True), {"active", "expired"}),
        (Visibility(now=NOW, valid_at=day(1)), {"active", "superseded"}),
    ],
)
def test_a_store_is_asked_for_the_statuses_that_can_count(
    view: Visibility, standing: set[str]
) -> None:
    """Replaced memories only for a time at which they may have been true."""
    assert {status.value for status in view.standing} == standing


def test_one_looks_from_now_unless_from_another_moment() -> None:
    """What expires counts by that moment."""
    assert Visibility(now=NOW).moment == NOW
    assert Visibility(now=NOW, as_of=day(4)).moment == day(4)


def test_as_many_types_as_are_allowed_are_taken_and_not_one_more() -> None:
    """The bound itself is allowed; the error says what is."""
    usual = Settings.load()
    RecallRequest.of("where?", settings=usual, memory_types=["semantic"] * 32)
    with pytest.raises(InvalidQuery) as refused:
        RecallRequest.of("where?", settings=usual, memory_types=["semantic"] * 33)
    assert str(refused.value).startswith("Too many names are given. Allowed: up to 32")
