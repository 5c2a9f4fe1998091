"""What held one after another, by tellings made by hand: moments, ties and limits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from engram.consolidation.timeline import TimelineEntry, ValidityInterval, same_value, stretches
from engram.domain.memories import Slot, Telling
from tests.support.reconciliation import on

LIVES, NO_LONGER = "lives in", "no longer lives in"


def told(
    what: str,
    event: float,
    known: float | None = None,
    *,
    predicate: str = LIVES,
    begins: bool = False,
    alongside: bool = False,
    session: str | None = "s1",
    sequence: int = 0,
    turn: str = "",
    lasts: float | None = None,
) -> TimelineEntry:
    """One telling of what was so on one day, said that day unless another is given."""
    said = on(0) + timedelta(days=event if known is None else known)
    return TimelineEntry(
        Slot(subject="user", predicate=predicate, object=what),
        Telling(
            event_at=on(0) + timedelta(days=event),
            event_from=None if lasts is None else on(0) + timedelta(days=event),
            event_by=None if lasts is None else on(0) + timedelta(days=event + lasts),
            known_at=said,
            begins=begins,
            alongside=alongside,
            episode_ids=(turn or f"{session} {said} {sequence}",),
            session_id=session,
            sequence=sequence,
        ),
    )


def ended(
    what: str, event: float, known: float | None = None, *, session: str = "s1"
) -> TimelineEntry:
    """One telling that it is no longer so."""
    return told(what, event, known, predicate=NO_LONGER, session=session)


def order(*tellings: TimelineEntry) -> list[str]:
    """The values one after another, each with where it ends, as "paris > rome"."""
    return [
        one.slot.object + ("" if one.closed_by is None else f" > {one.closed_by.slot.object}")
        for one in stretches(tellings)
    ]


def by_name(*tellings: TimelineEntry) -> dict[str, ValidityInterval]:
    """The stretches of values that come once each."""
    found = stretches(tellings)
    assert len({one.slot.object for one in found}) == len(found)
    return {one.slot.object: one for one in found}


def disputed(*tellings: TimelineEntry) -> set[str]:
    """The values with which nothing is settled."""
    return {one.slot.object for one in stretches(tellings) if one.disputed_with}


def test_a_value_is_the_same_if_predicate_and_object_are() -> None:
    """Another city is another value, and disliking something is not liking it."""
    paris = told("paris", 1).slot
    assert same_value(paris, told("paris", 9).slot)
    assert not same_value(paris, told("rome", 1).slot)
    assert not same_value(paris, ended("paris", 1).slot)


def test_a_telling_is_carried_by_nothing_and_comes_from_nowhere_unless_it_says_so() -> None:
    """Neither a memory that knows of it nor a statement that says it is made up."""
    one = told("paris", 1)
    bare = TimelineEntry(one.slot, one.telling)
    assert (bare.carriers, bare.statement) == ((), None)


def test_nothing_told_is_no_history() -> None:
    """No telling, no stretch."""
    assert stretches([]) == []


def test_a_value_that_is_told_again_is_one_stretch_with_both_tellings() -> None:
    """In the order of what they tell, and known since the first of them was."""
    late, early = told("paris", 9), told("paris", 1, 20)
    (paris,) = stretches([late, early])
    assert paris.told == [early, late]
    assert (paris.event_at, paris.known_at, paris.last) == (on(1), on(9), (on(9), on(9)))
    assert (paris.closed_by, paris.hidden_at, paris.valid_to, paris.valid_from) == (None,) * 4


def test_one_value_ends_where_the_next_begins_and_each_names_the_other() -> None:
    """Only what replaced something, or is said to have begun, is known to have begun."""
    found = by_name(told("paris", 1), told("rome", 5))
    paris, rome = found["paris"], found["rome"]
    assert (paris.closed_by, rome.closes) == (rome, [paris])
    assert (paris.valid_from, paris.valid_to, paris.hidden_at) == (None, on(5), on(5))
    assert (rome.valid_from, rome.valid_to, rome.hidden_at) == (on(5), None, None)
    (moved,) = stretches([told("paris", 1, 3, begins=True)])
    assert moved.valid_from == on(1)


def test_what_begins_by_a_later_telling_alone_is_not_known_to_have_begun_before() -> None:
    """The first telling says from when; one that follows it does not."""
    (paris,) = stretches([told("paris", 1), told("paris", 50, begins=True)])
    assert paris.valid_from is None


def test_what_was_so_from_the_beginning_goes_by_when_it_was_said() -> None:
    """The latest word about a birthplace counts; it ends no earlier than it began."""
    found = by_name(
        told("paris", 5, 5, predicate="was born in"),
        told("rome", -300, 9, predicate="was born in"),
    )
    assert found["paris"].closed_by is found["rome"]
    assert found["paris"].valid_to == on(5)
    assert found["rome"].last == (on(9), on(9))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        # By when it happened.
        (told("rome", 1, 9), told("paris", 2, 3)),
        # What holds before what ends, whichever was known first.
        (told("rome", 1, 9), ended("rome", 1, 3)),
        # By when it was said.
        (told("rome", 1, 3), told("paris", 1, 9)),
        # By their place in their conversation.
        (told("rome", 1, sequence=2), told("paris", 1, sequence=10)),
        # By what was said, where nothing else tells them apart.
        (told("paris", 1, turn="b"), told("rome", 1, turn="a")),
    ],
)
def test_what_orders_two_tellings(first: TimelineEntry, second: TimelineEntry) -> None:
    """Whichever way they come in, the one is history and the other holds."""
    for tellings in ((first, second), (second, first)):
        old, new = stretches(tellings)
        assert (old.slot, new.slot) == (first.slot, second.slot)
        assert old.closed_by is new
        assert new.closed_by is None


def test_tellings_of_one_moment_come_in_the_same_order_on_every_run() -> None:
    """By conversation, those without one first; and by turn where all else is the same."""
    tellings = [
        told("rome", 1, session=None),
        told("paris", 1, session="A"),
        told("oslo", 1, session="B"),
    ]
    for way in (tellings, tellings[::-1]):
        assert order(*way) == ["rome", "paris", "oslo"]
    twice = [told("rome", 1, turn="a"), told("rome", 1, turn="b")]
    for way in (twice, twice[::-1]):
        assert stretches(way)[0].told == twice


def test_opposed_predicates_of_one_moment_come_in_the_same_order_on_every_run() -> None:
    """By predicate: of two that were said at once, the order they come in does not decide."""
    likes = told("tea", 1, predicate="likes", turn="a")
    dislikes = told("tea", 1, predicate="dislikes", turn="b")
    for way in ((likes, dislikes), (dislikes, likes)):
        old, new = stretches(way)
        assert (old.slot.predicate, new.slot.predicate) == ("dislikes", "likes")
        assert old.closed_by is new


def test_an_ending_ends_what_it_names_and_leaves_the_rest() -> None:
    """Of two homes the second ends; one that names no city ends both."""
    homes = [told("lisbon", 1, turn="a"), told("porto", 1, turn="a")]
    assert order(*homes, ended("porto", 5)) == ["lisbon", "porto > porto", "porto"]
    assert order(*homes, ended("lisbon", 5)) == ["lisbon > lisbon", "porto", "lisbon"]
    assert order(*homes, ended("", 5)) == ["lisbon > ", "porto > ", ""]
    assert order(*homes, ended("rome", 5)) == ["lisbon", "porto", "rome"]


def test_an_ending_ends_no_other_predicate() -> None:
    """Who no longer likes tea may still dislike it."""
    dislikes = told("tea", 1, predicate="dislikes")
    assert [
        one.closed_by for one in stretches([dislikes, told("tea", 5, predicate="no longer likes")])
    ] == [None, None]


def test_an_ending_stands_until_what_it_names_holds_again() -> None:
    """Rome says nothing of having left Paris; Paris does, and any city of having left all."""
    assert order(ended("paris", 1), told("rome", 5)) == ["paris", "rome"]
    assert order(ended("paris", 1), told("paris", 5)) == ["paris > paris", "paris"]
    assert order(ended("", 1), told("rome", 5)) == [" > rome", "rome"]


def test_endings_end_no_endings() -> None:
    """Told twice it is one, told of another it is a second, and told of all it ends none."""
    assert order(ended("paris", 1), ended("paris", 5)) == ["paris"]
    assert order(ended("paris", 1), ended("rome", 5), ended("", 9)) == ["paris", "rome", ""]


def test_a_value_that_returns_is_a_stretch_of_its_own() -> None:
    """What was replaced does not stand any more, so that its return is news."""
    assert order(told("paris", 1), told("rome", 5), told("paris", 9)) == [
        "paris > rome",
        "rome > paris",
        "paris",
    ]
    first, _, third = stretches([told("paris", 1), told("rome", 5), told("paris", 9)])
    assert [len(one.told) for one in (first, third)] == [1, 1]


def test_two_values_of_one_breath_stand_until_a_third_comes() -> None:
    """Both give way to it, and told again neither is another one."""
    homes = [told("lisbon", 1, turn="a"), told("porto", 1, turn="a")]
    assert order(*homes, told("rome", 9)) == ["lisbon > rome", "porto > rome", "rome"]
    found = by_name(*homes, told("porto", 5, turn="b"), told("lisbon", 6, turn="c"))
    assert [len(found[city].told) for city in ("lisbon", "porto")] == [2, 2]


def test_one_turn_that_tells_of_two_times_tells_of_a_change() -> None:
    """Living in Lisbon then and in Porto now is not living in both."""
    assert order(told("lisbon", 1, 9, turn="a"), told("porto", 5, 9, turn="a")) == [
        "lisbon > porto",
        "porto",
    ]


def test_two_conversations_that_tell_of_one_moment_are_in_dispute() -> None:
    """Neither gives way, and each is the other's rival; nothing hides either."""
    found = by_name(told("paris", 1, session="a"), told("rome", 1, session="b"))
    paris, rome = found["paris"], found["rome"]
    assert (paris.rivals, rome.rivals) == ([rome], [paris])
    assert (paris.disputed_with, rome.disputed_with) == ([rome], [paris])
    assert (paris.closed_by, rome.closed_by) == (None, None)
    assert (paris.hidden_at, rome.hidden_at) == (None, None)


@pytest.mark.parametrize(
    ("first", "second", "dispute"),
    [
        ((1, 1), (1, 1), True),
        # Told of one moment, but not at one; or at one moment, but not of one.
        ((1, 5), (1, 6), False),
        ((1, 6), (2, 6), False),
    ],
)
def test_only_what_is_told_of_one_moment_at_one_moment_is_in_dispute(
    first: tuple[int, int], second: tuple[int, int], *, dispute: bool
) -> None:
    """Anything that orders them decides."""
    tellings = told("paris", *first, session="a"), told("rome", *second, session="b")
    assert disputed(*tellings) == ({"paris", "rome"} if dispute else set())


@pytest.mark.parametrize(
    ("first", "second", "dispute"),
    [("a", "a", False), ("a", "b", True), (None, None, True), (None, "a", True)],
)
def test_only_turns_of_one_conversation_are_ordered_by_it(
    first: str | None, second: str | None, *, dispute: bool
) -> None:
    """Turns without a conversation are not of the same one."""
    tellings = [
        told("paris", 1, session=first, turn="1"),
        told("rome", 1, session=second, turn="2"),
    ]
    assert bool(disputed(*tellings)) is dispute


@pytest.mark.parametrize("begins", [(True, False), (False, True)])
def test_a_change_is_in_dispute_with_nothing(begins: tuple[bool, bool]) -> None:
    """One of them says that it began then: that is an order."""
    first, second = begins
    tellings = [
        told("paris", 1, session="a", begins=first),
        told("rome", 1, session="b", begins=second),
    ]
    assert order(*tellings) == ["paris > rome", "rome"]


def test_an_ending_is_in_dispute_with_nothing() -> None:
    """What holds comes before what ends, also in two conversations."""
    assert disputed(told("paris", 1, session="a"), ended("paris", 1, session="b")) == set()
    assert order(told("paris", 1, session="b"), ended("paris", 1, session="a")) == [
        "paris > paris",
        "paris",
    ]


def test_only_where_one_value_holds_at_a_time_is_there_a_dispute() -> None:
    """Of liking and disliking, the word that comes last counts."""
    dislikes = told("tea", 1, predicate="dislikes", session="a")
    likes = told("tea", 1, predicate="likes", session="b")
    old, new = stretches([dislikes, likes])
    assert old.closed_by is new
    assert not new.disputed_with


def test_the_latest_telling_of_a_value_is_what_a_rival_is_measured_by() -> None:
    """Told again at the rival's moment, by another conversation, an old value is in dispute."""
    old = told("paris", 1, session="a")
    tellings = [old, told("paris", 5, session="a"), told("rome", 5, session="b")]
    assert disputed(*tellings) == {"paris", "rome"}
    same = [old, told("paris", 5, session="b"), told("rome", 5, session="b", sequence=1)]
    assert order(*same) == ["paris > rome", "rome"]


RIVALS = told("paris", 1, session="a"), told("rome", 1, session="b")


def test_a_value_told_again_later_settles_its_dispute() -> None:
    """Its rival ends, from when that was said; the value keeps its place and its beginning."""
    found = by_name(*RIVALS, told("rome", 4, 9, session="c"))
    paris, rome = found["paris"], found["rome"]
    assert (paris.closed_by, rome.closes, rome.closed_by) == (rome, [paris], None)
    assert (paris.settled_at, paris.hidden_at, rome.hidden_at) == (on(9), on(9), None)
    assert (paris.disputed_with, rome.disputed_with) == ([], [])
    assert (paris.valid_to, rome.last) == (on(1), (on(4), on(9)))


def test_told_again_of_the_same_moment_nothing_is_settled() -> None:
    """A third conversation of the same moment orders them no better."""
    assert disputed(*RIVALS, told("paris", 1, session="c")) == {"paris", "rome"}


def test_a_dispute_of_three_is_settled_with_all_of_them() -> None:
    """Each rival gives way, and does not stand any more."""
    three = (*RIVALS, told("oslo", 1, session="c"))
    assert disputed(*three) == {"paris", "rome", "oslo"}
    settled = (*three, told("rome", 5, session="d"))
    assert order(*settled) == ["paris > rome", "rome", "oslo > rome"]
    assert order(*settled, told("paris", 9, session="e"))[1:] == [
        "rome > paris",
        "oslo > rome",
        "paris",
    ]


def test_a_dispute_ends_for_both_with_what_replaces_both() -> None:
    """What is closed is in dispute with nothing, and nothing with it."""
    found = by_name(*RIVALS, told("oslo", 5, session="c"))
    assert [one.closed_by for one in found.values()] == [found["oslo"], found["oslo"], None]
    assert not any(one.disputed_with for one in found.values())
    one_ended = stretches([*RIVALS, ended("paris", 5, session="c")])
    assert not any(one.disputed_with for one in one_ended)
    assert [one.closed_by is None for one in one_ended] == [False, True, True]


def test_what_came_later_and_was_known_first_hides_what_was_before() -> None:
    """Word of what lies between comes late; until then it is what came last that hides."""
    tellings = told("paris", 1), told("rome", 5, 20), told("oslo", 9)
    found = by_name(*tellings)
    assert [found[city].hidden_at for city in ("paris", "rome", "oslo")] == [on(9), on(20), None]


def test_the_same_value_later_hides_the_earlier_time_of_it() -> None:
    """Paris, later Paris, and late word of Rome between: each moment shows one of them."""
    first, rome, second = stretches([told("paris", 1), told("rome", 5, 20), told("paris", 9)])
    assert (first.hidden_at, rome.hidden_at, second.hidden_at) == (on(9), on(20), None)


def test_what_a_value_does_not_give_way_to_does_not_hide_it() -> None:
    """A home of the same breath, or the ending of another one, leaves it to be seen."""
    homes = [told("lisbon", 1, turn="a"), told("porto", 1, turn="a")]
    lisbon, porto, *_ = stretches([*homes, ended("porto", 5), told("rome", 9)])
    assert (lisbon.hidden_at, porto.hidden_at) == (on(9), on(5))


def test_nothing_is_hidden_before_it_is_known() -> None:
    """History that is learnt late is hidden from the moment it is learnt."""
    paris, rome = stretches([told("paris", 1, 30), told("rome", 5)])
    assert (paris.hidden_at, rome.hidden_at) == (on(30), None)


def test_a_rival_hides_only_from_when_the_dispute_was_settled() -> None:
    """Until then both were to be seen; a third value that was known before hides it earlier."""
    found = by_name(*RIVALS, told("rome", 5, session="c"), told("oslo", 9, session="d"))
    assert [found[city].hidden_at for city in ("paris", "rome")] == [on(5), on(9)]


def test_a_dispute_over_what_is_learnt_late_is_not_settled_before_it_is_known() -> None:
    """What settled it is on record at once, what it settled only since its own telling."""
    paris = told("paris", 1, 30, session="a")
    rome = told("rome", 1, 30, session="b")
    found = by_name(paris, rome, told("rome", 5, 9, session="c"))
    assert found["paris"].closed_by is found["rome"]
    assert found["paris"].hidden_at == on(30)


def test_the_first_word_of_what_came_next_hides_a_value_whatever_else_was_known() -> None:
    """Not a later word, where only the end of something else was known sooner."""
    found = stretches(
        [told("paris", 1), told("rome", 5, 9), told("lisbon", 6, 20), ended("oslo", 7, 2)]
    )
    paris = next(one for one in found if one.slot.object == "paris")
    assert paris.hidden_at == on(9)


def test_what_comes_after_its_rival_hides_a_value() -> None:
    """A rival hides nothing, and what replaces both does."""
    found = by_name(*RIVALS, told("oslo", 9))
    assert [found[city].hidden_at for city in ("paris", "rome")] == [on(9), on(9)]


def happened(change: TimelineEntry, *others: TimelineEntry) -> float:
    """On which day a change happened, given what else was told."""
    (found,) = [one for one in stretches([change, *others]) if change in one.told]
    when = found.event_at if found.told[0] is change else found.last[0]
    return (when - on(0)) / timedelta(days=1)


MOVED = told("lisbon", 0, 40, begins=True, session="m")


@pytest.mark.parametrize(
    ("other", "day"),
    [
        # Seen elsewhere within the month that was named.
        (told("porto", 10), 10),
        (told("porto", 31), 31),
        (told("porto", 31.5), 0),
        # At the moment that was named, or before it.
        (told("porto", 0), 0),
        (told("porto", -3), 0),
        # What was said to hold in the same place is no word of living elsewhere.
        (told("lisbon", 10), 0),
        # A move of its own day is seen as well, one that only names its month is not.
        (told("porto", 10, begins=True), 10),
        (told("porto", 10, 12, begins=True), 0),
        # What was no longer so is not where they lived.
        (ended("porto", 10), 0),
    ],
)
def test_a_month_that_is_named_lasts_until_what_was_last_seen_in_it(
    other: TimelineEntry, day: float
) -> None:
    """Who moved in May, and was seen elsewhere on the tenth, moved after that."""
    assert happened(MOVED, other) == day


def test_where_somebody_was_on_the_very_day_counts() -> None:
    """Who lived elsewhere that noon moved after it."""
    assert happened(MOVED, told("porto", 0.5)) == 0.5


def test_the_last_that_was_seen_in_the_month_counts() -> None:
    """Of several days in the old place, the latest."""
    assert happened(MOVED, told("porto", 20), told("porto", 10)) == 20


@pytest.mark.parametrize(
    ("lasts", "seen", "day"),
    [(92, 60, 60), (92, 92, 92), (92, 93, 0), (7, 6, 6), (7, 8, 0), (1, 2, 0)],
)
def test_a_change_happened_within_the_time_that_its_words_name(
    lasts: float, seen: float, day: float
) -> None:
    """A summer lasts longer than "two weeks ago" leaves open, and 4 May is that day."""
    move = told("lisbon", 0, 200, begins=True, session="m", lasts=lasts)
    assert happened(move, told("porto", seen)) == day


def test_a_move_on_a_day_that_is_named_says_where_somebody_lived() -> None:
    """Moved to Porto "on 10 May", told on the 12th: who came to Lisbon in May came later."""
    assert happened(MOVED, told("porto", 10, 12, begins=True, lasts=1)) == 10
    assert happened(MOVED, told("porto", 10, 12, begins=True, lasts=7)) == 0


@pytest.mark.parametrize(
    ("hour", "known", "after"),
    [(0.2, 20.2, ["paris > lisbon", "lisbon"]), (-0.2, 59.8, ["lisbon > paris", "paris"])],
    ids=["told before", "told after"],
)
def test_of_what_happened_on_one_day_that_told_last_came_last(
    hour: float, known: float, after: list[str]
) -> None:
    """The hour at which somebody tells of a day says nothing of the hour at which it happened."""
    other = told("paris", hour, known, begins=True)
    assert order(MOVED, other) == after


@pytest.mark.parametrize(
    ("known", "after"),
    [(0.95, ["lisbon > paris", "paris"]), (1, ["paris > lisbon", "lisbon"])],
    ids=["within a day", "a day later"],
)
def test_what_is_told_a_day_later_is_told_of_its_day(known: float, after: list[str]) -> None:
    """Told sooner, it is told of its moment, before what was so later that day."""
    earlier = told("lisbon", 0, known, begins=True, session="m")
    assert order(earlier, told("paris", 0.2, 0.9, begins=True)) == after


@pytest.mark.parametrize("lasts", [0.3, 40], ids=["of that day", "of that summer"])
def test_told_after_another_change_of_the_same_day_it_came_after_it(lasts: float) -> None:
    """Of two changes that their words put on one day, the one told last is the one that holds."""
    other = told("paris", 0.15, 1.15, begins=True, lasts=0.3)
    later = told("rome", 0.1, 60, begins=True, session="m", lasts=lasts)
    assert order(other, later) == ["paris > rome", "rome"]


def test_what_follows_a_day_follows_all_that_was_told_of_it() -> None:
    """Also what was told of it later than what was last seen that day."""
    moved = told("paris", 0.15, 1.15, begins=True, lasts=0.3)
    later = told("rome", 0.1, 60, begins=True, session="m", lasts=40)
    assert order(moved, told("paris", 0.2), later) == ["paris > rome", "rome"]


@pytest.mark.parametrize("known", ["event_from", "event_by"])
def test_half_of_a_named_time_names_none(known: str) -> None:
    """What has no beginning or no end does not show where somebody was on a day."""
    other = told("porto", 10, 12, begins=True)
    half = other.telling.model_copy(update={known: on(10)})
    assert happened(MOVED, TimelineEntry(other.slot, half)) == 0


def test_what_only_holds_happened_when_it_says() -> None:
    """Living somewhere is no change, and is moved by nothing."""
    lives = told("lisbon", 0, 40, session="m")
    assert happened(lives, told("porto", 10)) == 0


def test_what_was_seen_after_the_change_was_first_told_is_no_news_of_it() -> None:
    """Told on the fifth, it had happened by then, however often it is told."""
    told_first = told("lisbon", 0, 5, begins=True, session="m")
    assert happened(told_first, told("porto", 10)) == 0
    assert happened(told_first, told("porto", 5)) == 0
    assert happened(told_first, told("porto", 4)) == 4
    assert happened(MOVED, told("porto", 10), told("lisbon", 3, 5, begins=True)) == 0


@pytest.mark.parametrize(
    ("earlier", "day"),
    [
        # The same change, told of within a month.
        (told("lisbon", 31, 5, begins=True), 0),
        (told("lisbon", -31, 5, begins=True), 0),
        # Another time of it, another change, and what only holds.
        (told("lisbon", -31.5, 5, begins=True), 10),
        (told("oslo", -20, 5, begins=True), 10),
        (told("lisbon", -20, 5), 10),
    ],
)
def test_only_the_same_change_told_before_says_that_it_had_happened(
    earlier: TimelineEntry, day: float
) -> None:
    """The same value, as a change, and named for about the same time."""
    assert happened(MOVED, told("porto", 10), earlier) == day


LEFT = ended("porto", 0, 40, session="m")


@pytest.mark.parametrize(
    ("other", "day"),
    [
        (told("porto", 10), 10),
        (told("lisbon", 10), 0),
        (ended("porto", 10), 0),
        (ended("lisbon", 10), 0),
    ],
)
def test_an_ending_comes_after_what_it_ends_was_last_seen(other: TimelineEntry, day: float) -> None:
    """Who left Porto in May and was seen there on the tenth left after that."""
    assert happened(LEFT, other) == day


@pytest.mark.parametrize(("day", "left"), [(31, 31), (32, 32), (366, 366), (366.5, 0)])
def test_an_ending_of_what_it_names_reaches_back_a_year(day: float, left: float) -> None:
    """Told to be married in October, "we divorced in March" means that it is over."""
    ending = ended("porto", 0, 400, session="m")
    assert happened(ending, told("porto", day)) == left
    assert happened(ended("", 0, 400, session="m"), told("porto", 31.5)) == 0
    last_week = told("", 0, 9, predicate=NO_LONGER, session="m", lasts=7)
    assert happened(last_week, told("porto", 8)) == 8


def test_an_ending_that_names_nothing_comes_after_whatever_was_seen() -> None:
    """It ends any home, so any home that month puts it later."""
    assert happened(ended("", 0, 40, session="m"), told("rome", 10)) == 10


def test_an_ending_told_before_had_happened_by_then() -> None:
    """The first telling of the same ending counts, not that of another."""
    seen = told("porto", 10)
    assert happened(LEFT, seen, ended("porto", -20, 5)) == 0
    assert happened(LEFT, seen, ended("rome", -20, 5)) == 10


@pytest.mark.parametrize(
    ("named", "seen", "later"),
    [
        (datetime(2023, 1, 1, tzinfo=UTC), datetime(2023, 11, 5, tzinfo=UTC), True),
        (datetime(2023, 1, 1, tzinfo=UTC), datetime(2024, 1, 5, tzinfo=UTC), False),
        (datetime(2023, 6, 1, tzinfo=UTC), datetime(2023, 8, 20, tzinfo=UTC), True),
        (datetime(2023, 6, 1, tzinfo=UTC), datetime(2023, 9, 20, tzinfo=UTC), False),
        (datetime(2023, 6, 1, tzinfo=UTC), datetime(2023, 9, 1, 12, tzinfo=UTC), False),
        (datetime(2023, 6, 8, tzinfo=UTC), datetime(2023, 8, 20, tzinfo=UTC), False),
        (datetime(2023, 6, 2, tzinfo=UTC), datetime(2023, 8, 20, tzinfo=UTC), False),
        (datetime(2023, 1, 1, tzinfo=UTC), datetime(2024, 1, 2, tzinfo=UTC), False),
    ],
    ids=[
        "in the year",
        "after it",
        "in summer",
        "after that",
        "on the day after",
        "no season",
        "a day",
        "366 days",
    ],
)
def test_a_year_and_a_season_last_as_a_month_does(
    named: datetime, seen: datetime, later: bool
) -> None:
    """Who moved "last summer", and lived elsewhere in August, moved after that."""
    days = [(one - on(0)) / timedelta(days=1) for one in (named, seen)]
    move = told("porto", days[0], 900, begins=True, session="m")
    assert happened(move, told("lyon", days[1])) == days[later]


@pytest.mark.parametrize(
    ("seen", "day"), [("lyon", 0), ("kyoto", 10)], ids=["left elsewhere", "left from there"]
)
def test_a_move_comes_after_what_was_seen_where_that_was_left(seen: str, day: float) -> None:
    """Who moved from Kyoto, and lived there on the tenth, moved later; Lyon was not left by it."""
    move = told("porto", 0, 40, begins=True, turn="move")
    away = told("kyoto", 0, 40, predicate=NO_LONGER, turn="move")
    assert happened(move, away, told(seen, 10)) == day


@pytest.mark.parametrize(("seen", "day"), [(10, 10), (31, 0), (40, 0)])
def test_within_the_time_that_a_move_names_what_is_told_later_counts(
    seen: float, day: float
) -> None:
    """Seen in Lyon on the tenth, told later to have moved from Kyoto that month: Lyon is over."""
    move = told("porto", 0, 90, begins=True, turn="move", lasts=31)
    away = told("kyoto", 0, 90, predicate=NO_LONGER, turn="move", lasts=31)
    assert happened(move, away, told("lyon", seen)) == day


@pytest.mark.parametrize(
    ("before", "day"),
    [
        (told("porto", 5, begins=True, turn="before"), 0),
        (told("porto", -1, begins=True, turn="before"), 10),
        (told("porto", -3, -1, begins=True, turn="before"), 0),
        (told("porto", 40, begins=True, turn="before"), 10),
        (told("porto", -25, 5, begins=True, turn="before", lasts=60), 0),
    ],
    ids=["in that time", "on a day before it", "about then", "on a day after it", "longer"],
)
def test_only_a_move_that_may_be_the_same_says_that_it_had_happened(
    before: TimelineEntry, day: float
) -> None:
    """A move to Porto on a day that is known is not that of another month."""
    move = told("porto", 0, 90, begins=True, turn="move", lasts=31)
    assert happened(move, before, told("lyon", 10)) == day


@pytest.mark.parametrize(("before", "seen"), [(30.6, 30.8), (-0.2, 10)], ids=["last", "first"])
def test_a_move_on_the_first_or_last_day_of_a_named_time_may_be_the_same(
    before: float, seen: float
) -> None:
    """The days at both ends belong to it."""
    move = told("porto", 0, 90, begins=True, turn="move", lasts=31)
    known = told("porto", before, begins=True, turn="before")
    assert happened(move, known, told("lyon", seen)) <= 0


@pytest.mark.parametrize(("day", "same"), [(19, True), (20, False)], ids=str)
def test_the_day_on_which_a_named_time_is_over_is_none_of_it(day: int, *, same: bool) -> None:
    """Twenty days from the midnight before day 0 end with the midnight before day 20."""
    move = told("porto", -0.5, 90, begins=True, turn="move", lasts=20)
    planned = told("porto", day - 0.5, 5, begins=True, turn="planned", lasts=0.5)
    assert (happened(move, planned, told("lyon", 10)) < 10) == same


@pytest.mark.parametrize(("back", "home"), [(12, "lyon"), (2, "porto")])
def test_counting_back_to_a_change_again_does_not_make_it_happen_again(
    back: int, home: str
) -> None:
    """Moved to Porto on the ninth, seen in Lyon on the 14th, and then "two weeks ago" again."""
    first = told("porto", 9, 10, begins=True, lasts=1)
    again = TimelineEntry(
        first.slot,
        Telling(
            event_at=on(25 - back),
            event_from=on(25 - back - 3),
            event_by=on(25 - back + 4),
            known_at=on(25),
            begins=True,
            episode_ids=("again",),
        ),
    )
    found = stretches([first, told("lyon", 14), again])
    assert [one.slot.object for one in found if one.closed_by is None] == [home]


@pytest.mark.parametrize(
    ("day", "same"), [(15, False), (16, True), (30, True), (31, False)], ids=str
)
def test_counting_back_is_off_by_half_of_what_it_leaves_open(day: int, *, same: bool) -> None:
    """A week around the 23rd is 20 to 26, told from memory 16 to 30, and no day further."""
    # What is at noon begins half a day before.
    week = told("porto", 20 - 0.5, 60, begins=True, turn="counted", lasts=7)
    counted = TimelineEntry(week.slot, week.telling.model_copy(update={"event_at": on(23)}))
    known = told("porto", day, 1, begins=True, turn="known", lasts=0.5)
    assert (happened(counted, known, told("lyon", 26)) < 26) == same


@pytest.mark.parametrize(("gone", "home"), [("kyoto", "lyon"), ("rome", "porto"), ("", "lyon")])
def test_a_move_from_elsewhere_is_another_move(gone: str, home: str) -> None:
    """Came to Porto from Rome on the fifth, and from Kyoto, seen in Lyon between: came twice.

    Who left, nobody says what, may have left Kyoto.
    """
    first = told("porto", 5, begins=True, turn="first")
    left = told(gone, 5, predicate=NO_LONGER, turn="first")
    move = told("porto", 0, 90, begins=True, turn="move", lasts=31)
    away = told("kyoto", 0, 90, predicate=NO_LONGER, turn="move", lasts=31)
    found = stretches([first, left, move, away, told("lyon", 10)])
    holds = [one for one in found if one.slot.predicate == LIVES and one.closed_by is None]
    assert [one.slot.object for one in holds] == [home]


def test_an_ending_that_says_what_began_reaches_no_further_than_its_words() -> None:
    """Seen in Porto in May, "we moved from Porto to Rome in March" tells of a time before that."""
    away = told("porto", 0, 200, predicate=NO_LONGER, turn="move", lasts=31)
    move = told("rome", 0, 200, begins=True, turn="move", lasts=31)
    seen = told("porto", 60)
    assert stretches([move, away, seen])[-1].slot == seen.slot
    assert stretches([away, seen])[-1].slot == away.slot


def test_a_longer_timeline_costs_in_proportion(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each value is compared with what comes next, not with all that comes later."""
    compared: list[None] = []

    def counted(first: Slot, second: Slot) -> bool:
        compared.append(None)
        return same_value(first, second)

    monkeypatch.setattr("engram.consolidation.timeline.same_value", counted)
    counts: list[int] = []
    for days in (50, 200):
        del compared[:]
        stretches([told(f"city {day}", day, begins=True) for day in range(days)])
        counts.append(len(compared))
    assert counts[1] <= 4.2 * counts[0]


# --- values that are told to hold beside each other


def test_what_is_told_to_hold_alongside_ends_nothing() -> None:
    """A second job and a third; being told again, either way, changes nothing."""
    second, third = told("b", 2, alongside=True), told("c", 3, alongside=True)
    assert order(told("a", 1), second, third) == ["a", "b", "c"]
    assert order(told("a", 1), second, told("a", 4), told("b", 5)) == ["a", "b"]


def test_what_holds_alongside_ends_by_its_name_and_by_what_comes_in_place_of_all() -> None:
    """Leaving one leaves the other; what is plainly told next takes the place of both."""
    second = told("b", 2, alongside=True)
    assert order(told("a", 1), second, ended("b", 3)) == ["a", "b > b", "b"]
    assert order(told("a", 1), second, ended("a", 3)) == ["a > a", "b", "a"]
    assert order(told("a", 1), second, told("c", 3)) == ["a > c", "b > c", "c"]
