"""What a score is made of, part by part: no store, no model."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from engram.domain.confidence import ConfidenceWeights
from engram.domain.memories import AnyMemory
from engram.domain.rules import RankingWeights
from engram.domain.values import Period
from engram.language.query import Analysis, AskedFor
from engram.ports import Match, SparseVector, TextVectors
from engram.recall.request import RecallRequest
from engram.recall.results import Part, Ranked
from engram.recall.score import explain, score
from engram.recall.search import FoundMemory, PreparedQuery, Sides
from tests.support.recall_memories import ADA, NOW, day, episode, negation, semantic

NONE = dict.fromkeys(RankingWeights.model_fields, 0.0)


def weights(**more: float) -> RankingWeights:
    """Weights of nothing but this."""
    return RankingWeights(**{**NONE, **more})


def asks(
    *subjects: str,
    asked: frozenset[AskedFor] = frozenset(),
    period: Period | None = None,
    advice: bool = False,
) -> Analysis:
    """A question for this."""
    return Analysis(subjects=frozenset(subjects), asked=asked, period=period, advice=advice)


def brought_up(memory: AnyMemory, *, near: float = 0.0, words: float = 0.0) -> FoundMemory:
    """The memory with its sides; measured was ten times as much."""
    match = Match(memory.type, memory.id, near * 10, words * 10)
    return FoundMemory(memory, Sides(match, near, words))


def scored(
    *found: FoundMemory | AnyMemory, by: RankingWeights, question: Analysis | None = None
) -> list[Ranked]:
    """These with their scores."""
    whole = [one if isinstance(one, FoundMemory) else brought_up(one) for one in found]
    return score(whole, question or asks(), by)


def alone(
    found: FoundMemory | AnyMemory, *, by: RankingWeights, question: Analysis | None = None
) -> float:
    """The score of one that was brought up alone."""
    (one,) = scored(found, by=by, question=question)
    return one.score


def part(one: Ranked, name: str) -> Part | None:
    """The part of a score of that name, if it has one."""
    return next((each for each in one.parts if each.name == name), None)


def test_no_memory_has_a_score_above_one() -> None:
    """The weights are shares of the whole; what is taken away for asking is none."""
    turn = episode("I moved in 2024", 3, speaker="Ada")
    period = Period(day(3), day(4))
    found = [
        brought_up(turn.model_copy(update={"id": name}), near=1.0, words=1.0) for name in "abc"
    ]
    given = RankingWeights()
    # Who speaks is named, so that nearness is a fifth of what it is elsewhere.
    whole = sum(given.model_dump().values()) - given.asking - given.dense * 4 / 5
    dated = asks("ada", asked=frozenset({AskedFor.TIME}), period=period)
    advised = asks("ada", period=period, advice=True)
    # A time that all of them hold tells nothing between them, and who wants advice asks for none;
    # nor does he for what was said around, and half as much for words.
    for question, most, missing in (
        (dated, whole, given.cue + given.advice),
        (advised, whole - given.around - given.sparse / 2, given.cue),
    ):
        expected = [1.0 - missing / most] * 3
        assert [one.score for one in score(found, question, given)] == pytest.approx(expected)


def test_every_part_has_its_share_and_they_sum_up_to_the_score() -> None:
    """Value, weight and what was measured, of each part that a plain turn has."""
    turn = brought_up(episode("tea", session_id=None), near=0.4, words=0.6)
    (one,) = scored(turn, by=weights(sparse=4, dense=3, around=2, cue=1, asking=7))
    # Words and nearness by their shares, 4 to 3.
    both = (0.4 * 0.6 + 0.3 * 0.4) / (0.4 + 0.3)
    assert one.parts == (
        Part("sparse", 0.6, 0.4, 6.0),
        Part("dense", 0.4, 0.3, 4.0),
        Part("around", both, 0.2),
    )
    assert one.score == pytest.approx(0.24 + 0.12 + 0.2 * both)


def test_what_neither_words_nor_nearness_count_for_matches_by_nothing() -> None:
    """A session's best are compared by both; where both have no weight, none is better."""
    turn = brought_up(episode("tea", session_id=None), near=0.5, words=0.5)
    (one,) = scored(turn, by=weights(around=2))
    assert part(one, "around") == Part("around", 0.0, 1.0)


def test_weights_of_nothing_give_a_score_of_nothing() -> None:
    """All weights may be set to 0; then no order is better than another."""
    assert alone(brought_up(episode("tea"), near=1.0, words=1.0), by=weights()) == 0.0
    one, _ = scored(episode("why?", 1), episode("tea", 2), by=weights(asking=0.5))
    other, _ = scored(episode("tea?", 1), episode("tea", 2), by=weights(asking=0.5))
    assert (one.score, other.score) == (0.0, 0.0)


def test_the_best_come_first_and_ties_go_by_id() -> None:
    """Equal scores come in one order, whatever order they were brought up in."""
    notes = [semantic("tea").model_copy(update={"id": name}) for name in "bca"]
    found = [brought_up(note, words=0.5) for note in notes]
    found.append(brought_up(semantic("best"), words=0.6))
    ranked = scored(*found, by=weights(sparse=1))
    assert [one.memory.content for one in ranked] == ["best", "tea", "tea", "tea"]
    assert [one.memory.id for one in ranked[1:]] == ["a", "b", "c"]


@pytest.mark.parametrize("ids", ["ab", "ba"])
def test_ties_of_different_types_are_the_same_for_everybody(ids: str) -> None:
    """The ids of two users' same memories differ; what comes first does not."""
    first, second = tuple(ids)
    told = semantic("tea").model_copy(update={"id": first})
    said = episode("tea").model_copy(update={"id": second})
    found = [brought_up(told, words=0.5), brought_up(said, words=0.5)]
    ranked = scored(*found, by=weights(sparse=1))
    assert [one.memory.type.value for one in ranked] == ["episodic", "semantic"]


def session(name: str | None, *matching: float) -> list[FoundMemory]:
    """Turns of one session that match so well."""
    return [
        brought_up(episode("tea", number, session_id=name), words=value)
        for number, value in enumerate(matching)
    ]


def around(*found: FoundMemory, advice: bool = False) -> dict[float, float]:
    """How well what was said beside each answers, by how well it does itself."""
    ranked = score(found, asks(advice=advice), weights(sparse=1, around=1))
    own = {one.memory.id: one.sides.words for one in found}
    parts = {one.memory.id: part(one, "around") for one in ranked}
    return {own[key]: one.value for key, one in parts.items() if one is not None}


def test_a_turn_is_worth_what_the_three_best_of_its_session_are() -> None:
    """Their mean, for every turn of the session alike; the fourth best does not count."""
    assert around(*session("s1", 0.1, 0.9, 0.3, 0.6)) == pytest.approx(
        dict.fromkeys((0.1, 0.9, 0.3, 0.6), 0.6)
    )


def test_a_session_of_few_turns_is_worth_their_mean() -> None:
    """Where every turn is a session of its own, none is better for it."""
    assert around(*session("s1", 0.9)) == pytest.approx({0.9: 0.9})
    assert around(*session("s1", 0.9, 0.1)) == pytest.approx({0.9: 0.5, 0.1: 0.5})


def test_where_advice_is_wanted_nothing_around_counts_and_words_count_half() -> None:
    """What bears on it was said in passing, between other things and in other words."""
    assert around(*session("s1", 0.9, 0.1), advice=True) == {}
    turn = brought_up(episode("tea"), near=0.4, words=0.6)
    by = weights(sparse=4, dense=3, around=9)
    (one,) = scored(turn, by=by, question=asks(advice=True))
    assert one.parts == (Part("sparse", 0.6, 0.4, 6.0), Part("dense", 0.4, 0.6, 4.0))


def test_sessions_do_not_help_each_other() -> None:
    """What was said elsewhere does not count."""
    assert around(*session("s1", 0.9, 0.6), *session("s2", 0.3)) == pytest.approx(
        {0.9: 0.75, 0.6: 0.75, 0.3: 0.3}
    )


def test_a_turn_without_a_session_and_a_conclusion_stand_for_themselves() -> None:
    """Neither gets anything from what was said beside it, nor gives anything."""
    note = brought_up(semantic("tea", session_id="s1"), words=0.8)
    assert around(*session(None, 0.5, 0.4), *session("s1", 0.9), note) == pytest.approx(
        {0.5: 0.5, 0.4: 0.4, 0.9: 0.9, 0.8: 0.8}
    )


@pytest.mark.parametrize(
    ("memory", "of_use"),
    [
        (episode("Dust makes me sneeze."), True),
        (episode("Do stairs hurt me? They do hurt my knee."), True),
        (episode("Can you tell me a joke?"), False),
        (episode("Stairs are steep."), False),
        (episode("I recommend the stairs.", role="assistant"), False),
        (semantic("The user avoids stairs").model_copy(update={"category": "preference"}), True),
        (semantic("The user has stairs"), False),
    ],
)
def test_where_advice_is_wanted_what_is_told_of_oneself_gets_a_share(
    memory: AnyMemory, *, of_use: bool
) -> None:
    """A sentence of the user's about himself that asks nothing; of conclusions, preferences."""
    assert alone(memory, by=weights(advice=1), question=asks(advice=True)) == float(of_use)
    assert alone(memory, by=weights(advice=1)) == 0.0


def test_the_length_of_a_turn_adds_nothing() -> None:
    """A note of three words answers as well as a page."""
    by = RankingWeights()
    assert alone(episode("tea at four"), by=by) == alone(episode("tea at four " * 50), by=by)


@pytest.mark.parametrize(
    ("memory", "named"),
    [
        (episode("tea", speaker="Ada"), True),
        (episode("tea", speaker="ADA Lovelace"), True),
        (episode("tea", speaker="Lovelace-Ada"), True),
        (episode("Ada drinks tea", speaker="Bo"), False),
        (episode("tea"), False),
        (semantic("ADA drinks tea"), True),
        (semantic("It seems that Ada drinks tea"), True),
        (semantic("It seems now that Ada drinks tea"), False),
        (semantic("-" * 77 + "Ada drinks tea"), True),
        (semantic("-" * 78 + "Ada drinks tea"), False),
    ],
)
def test_a_question_names_the_speaker_or_what_a_conclusion_begins_with(
    memory: AnyMemory, *, named: bool
) -> None:
    """Whole words in any case: of the speaker, or among four in the first eighty characters."""
    value = alone(memory, by=weights(subject=1), question=asks("ada", "tree"))
    assert value == float(named)


def test_what_a_user_asked_tells_nothing_of_what_the_assistant_said() -> None:
    """Nobody learns from "What helps my knee?" what was suggested for it."""
    asked = episode("What helps my knee?")
    found = [brought_up(asked, words=0.9), brought_up(episode("ice", 9), words=0.9)]
    by = weights(sparse=2, asking=1)
    of_user = scored(*found, by=by, question=asks("user", "knee", "suggested"))
    of_assistant = scored(*found, by=by, question=asks("assistant", "knee", "suggested"))
    assert of_user[0].score == of_user[1].score
    assert of_assistant[1].memory == asked
    assert of_assistant[1].score < of_assistant[0].score


def test_the_role_names_who_speaks_where_no_speaker_is_known() -> None:
    """A question about oneself is one about the user; a name that is known takes its place."""
    question = asks("user")
    assert alone(episode("tea"), by=weights(subject=1), question=question) == 1.0
    named = episode("tea", speaker="Ada")
    assert alone(named, by=weights(subject=1), question=question) == 0.0
    nameless = episode("tea", speaker="")
    assert alone(nameless, by=weights(subject=1), question=question) == 0.0


def test_nearness_counts_a_fifth_where_the_question_names_who_speaks() -> None:
    """A name is near to whatever holds it; who speaks counts by the part for that."""
    turn = brought_up(episode("tea", speaker="Ada"), near=0.5, words=1.0)
    by = weights(sparse=1, dense=5)
    for name, share in (("ada", 0.5), ("bo", 5 / 6)):
        (one,) = scored(turn, by=by, question=asks(name))
        assert part(one, "dense") == Part("dense", 0.5, share, 5.0)


def test_a_memory_that_holds_what_is_asked_for_gets_the_share_of_that() -> None:
    """A time where a time is asked for; nothing where nothing of a kind is, or advice."""
    dated, undated = episode("since 2023", 1), episode("for long", 2)
    time = frozenset({AskedFor.TIME})
    first, second = scored(dated, undated, by=weights(cue=1), question=asks(asked=time))
    assert [first.memory, second.memory] == [dated, undated]
    assert (first.score, second.score) == (0.5, 0.0)
    name = asks(asked=frozenset({AskedFor.NAME}))
    for question in (name, asks(), asks(asked=time, advice=True)):
        both = scored(dated, undated, by=weights(cue=1), question=question)
        assert [one.score for one in both] == [0.0, 0.0]


@pytest.mark.parametrize(("dated", "worth"), [(1, 0.75), (2, 0.5), (3, 0.25), (4, 0.0)])
def test_what_is_asked_for_tells_the_more_the_fewer_hold_it(dated: int, worth: float) -> None:
    """Where every memory holds a time, holding one is no sign."""
    found = [episode("since 2023" if n < dated else "for long", n) for n in range(4)]
    question = asks(asked=frozenset({AskedFor.TIME}))
    assert scored(*found, by=weights(cue=1), question=question)[0].score == pytest.approx(worth)


def test_what_a_memory_alone_holds_is_no_sign() -> None:
    """There is no other that it could be told from."""
    question = asks(asked=frozenset({AskedFor.TIME}))
    (one,) = scored(episode("since 2023"), by=weights(cue=1), question=question)
    assert (one.score, part(one, "cue")) == (0.0, None)


@pytest.mark.parametrize(("at", "within"), [(2.9, False), (3.0, True), (3.9, True), (4.1, False)])
def test_what_was_said_or_happened_in_the_time_that_is_named_gets_the_share_of_that(
    at: float, *, within: bool
) -> None:
    """A turn counts by when it was said, a conclusion by when what it says happened."""
    question = asks(period=Period(day(3), day(4)))
    turn = episode("tea", 9).model_copy(update={"timestamp": day(at)})
    note = semantic("tea", 9).model_copy(update={"event_at": day(at)})
    assert alone(note, by=weights(period=1), question=question) == float(within)
    assert (alone(turn, by=weights(period=1), question=question) == 1.0) is within
    for memory in (turn, note):
        assert alone(memory, by=weights(period=1)) == 0.0


def test_a_day_that_was_told_is_that_day_wherever_it_is_asked_for() -> None:
    """The first of June in UTC is that in Tokyo; the moment of a turn is what it is."""
    begin = datetime(2026, 6, 1, tzinfo=ZoneInfo("Asia/Tokyo"))
    question = asks(period=Period(begin, begin + timedelta(days=1)))
    told = datetime(2026, 6, 1, 20, tzinfo=UTC)
    by = weights(period=1)
    dated = semantic("tea", 9).model_copy(update={"event_at": told})
    assert alone(dated, by=by, question=question) == 1.0
    undated = dated.model_copy(update={"known_at": told})
    assert alone(undated, by=by, question=question) == 0.0


@pytest.mark.parametrize(
    ("period", "at", "worth"),
    [
        (Period(day(3), day(4)), 4, 1.0),
        (Period(day(3), day(4)), 11, math.exp(-1)),
        (Period(day(3), day(4)), 18, math.exp(-2)),
        (Period(day(1), day(15)), 29, math.exp(-1)),
        (Period(None, day(4)), 11, math.exp(-1)),
        (Period(day(3), None), 99, 1.0),
        (Period(day(3), day(4)), 2, 0.0),
    ],
)
def test_a_turn_that_came_after_the_time_that_is_named_counts_less_the_later_it_came(
    period: Period, at: float, worth: float
) -> None:
    """What happened is told afterwards, within about as long as it lasted, a week at least."""
    turn = episode("tea", 9).model_copy(update={"timestamp": day(at)})
    by = weights(period=1)
    assert alone(turn, by=by, question=asks(period=period)) == pytest.approx(worth)


@pytest.mark.parametrize(
    ("memory", "asking"),
    [
        (episode("Who drinks tea?"), True),
        (episode("Who drinks tea? \n"), True),
        (episode("Who drinks tea? I do."), False),
        (episode("Who drinks my tea?"), False),
        (episode("Who drinks my tea?", speaker="Ada"), True),
        (episode("Shall I make tea?", role="assistant"), True),
        (semantic("Who drinks tea?"), False),
    ],
)
def test_a_turn_that_only_asks_is_worth_less(memory: AnyMemory, *, asking: bool) -> None:
    """Not a conclusion, nor what a user asks of himself: that tells of him."""
    found = [brought_up(memory, words=0.9), brought_up(episode("tea", 9), words=0.9)]
    ranked = scored(*found, by=weights(sparse=2, asking=1))
    (one,) = (each for each in ranked if each.memory is memory)
    assert one.score == pytest.approx(0.9 - (0.25 if asking else 0.0))
    assert one.asking == (-0.25 if asking else 0.0)
    assert part(one, "asking") == (Part("asking", 0.5, -0.5) if asking else None)


@pytest.mark.parametrize(
    ("turn", "words", "asking"),
    [
        ("Where do I live?", {"user", "live"}, True),
        ("Where do I live?", {"user", "live", "now"}, True),
        ("Who am I?", {"user"}, False),
        ("Where do I live in winter?", {"user", "live"}, False),
        ("Where do I live?", {"user", "work"}, False),
    ],
)
def test_the_question_itself_asked_before_only_asks(
    turn: str, words: set[str], *, asking: bool
) -> None:
    """What a user asks of himself tells of him, but not in the words of what is asked now."""
    found = [brought_up(episode(turn), words=0.9), brought_up(episode("tea", 9), words=0.9)]
    ranked = scored(*found, by=weights(sparse=2, asking=1), question=asks(*words))
    (one,) = (each for each in ranked if each.memory.content == turn)
    assert (part(one, "asking") is not None) == asking


def test_a_question_asked_before_does_not_match_itself() -> None:
    """However much more it is like what is asked: words and nearness of an echo count nothing."""
    echo = brought_up(episode("Where do I live?"), near=1.0, words=1.0)
    answer = brought_up(episode("I live in Porto.", 9), near=0.2, words=0.3)
    first, second = scored(echo, answer, by=RankingWeights(), question=asks("live", "user"))
    assert first.memory.content == "I live in Porto."
    assert [each.value for each in second.parts if each.name in {"sparse", "dense"}] == [0.0, 0.0]


def test_no_score_lies_below_nothing() -> None:
    """What asking would take beyond that is given back, in a part that says so."""
    found = [brought_up(episode("tea?", 1), words=0.1), brought_up(episode("tea", 2), words=0.9)]
    _, one = scored(*found, by=weights(sparse=2, asking=1))
    assert one.score == 0.0
    floor = part(one, "floor")
    assert floor is not None
    assert floor.contribution == pytest.approx(0.15)
    assert sum(each.contribution for each in one.parts) == pytest.approx(0.0)


def test_where_nobody_asks_why_a_score_keeps_no_parts() -> None:
    """Neither its own nor, later on, what is added to it; what asking costs is still known."""
    found = [brought_up(episode("tea?", 1), words=0.1), brought_up(episode("tea", 2), words=0.9)]
    _, plain = score(found, asks(), weights(sparse=2, asking=1), explained=False)
    assert (plain.parts, plain.explained, plain.score) == ((), False, 0.0)
    _, why = score(found, asks(), weights(sparse=2, asking=1))
    assert plain.asking == why.asking < 0.0


def every_part(**more: Any) -> Analysis:
    """A question that names a subject, a kind of thing and a time."""
    return asks("user", asked=frozenset({AskedFor.TIME}), period=Period(day(0), day(1)), **more)


def test_the_share_of_what_is_told_of_oneself_is_told_by_its_name() -> None:
    """An explanation shows why a turn that shares no word was taken for advice."""
    turn = episode("I love small hotels by the sea.", speaker="Ada")
    (one,) = scored(turn, by=weights(advice=1), question=asks(advice=True))
    assert part(one, "advice") == Part("advice", 1.0, 1.0)


def test_each_part_that_speaks_for_a_memory_is_told_by_its_name() -> None:
    """An explanation shows them all, each with the share that it has by its weight."""
    turn, other = episode("It began in 2024", 0.5), episode("tea", 9, speaker="Ada")
    by = weights(subject=5, cue=3, period=2)
    one, _ = scored(turn, other, by=by, question=every_part())
    assert [part(one, name) for name in ("subject", "cue", "period")] == [
        Part("subject", 1.0, 0.5),
        Part("cue", 0.5, 0.3),
        Part("period", 1.0, 0.2),
    ]
    assert one.score == pytest.approx(0.85)


@pytest.mark.parametrize(
    ("memory", "more", "told", "untold"),
    [
        (episode("tea"), {"valid_at": day(1)}, set(), {"true at"}),
        (semantic("tea"), {"valid_at": day(1)}, {"(since when is not known)"}, set()),
        (semantic("tea", valid_from=day(0)), {"valid_at": day(1)}, {"true at"}, {"(since"}),
        (semantic("tea"), {"as_of": day(9)}, {f"{day(9).isoformat()}, not replaced then"}, set()),
        (
            semantic("tea", superseded_known_at=day(5), valid_to=day(5)),
            {"as_of": day(9), "valid_at": day(1)},
            {f"known at {day(9).isoformat()}, true at"},
            {"not replaced"},
        ),
        (
            semantic("tea", superseded_known_at=day(9), valid_to=day(9)),
            {"as_of": day(9), "valid_at": day(1)},
            {"known at"},
            {"not replaced"},
        ),
    ],
    ids=["a turn", "no beginning", "with one", "known then", "replaced by then", "just then"],
)
def test_an_explanation_states_no_check_that_was_not_made(
    memory: AnyMemory, more: dict[str, Any], told: set[str], untold: set[str]
) -> None:
    """Nobody asks whether a turn was true, nor whether what was true before was replaced then."""
    request = RecallRequest(query="tea", **more)
    nothing = TextVectors((), SparseVector((), ()))
    question = PreparedQuery(ADA, request, nothing, request.visibility(NOW), asks())
    passed = ", ".join(explain(Ranked(memory, 1.0), question, ConfidenceWeights()).filters)
    assert all(words in passed for words in told)
    assert not any(words in passed for words in untold)


EVERYTHING = RecallRequest(
    query="tea",
    session_id="s1",
    tags=("home", "work"),
    without_tags=("old", "draft"),
    roles=("user", "assistant"),
    metadata={"app": "diary", "n": 1},
    include_stale=False,
    min_score=0.1,
    min_confidence=0.2,
    min_selectivity=0.3,
)
OF_ALL = (
    "session=s1",
    "tag in home, work",
    "no tag of old, draft",
    "metadata app, n",
    "not stale",
    "score>=0.1",
)


@pytest.mark.parametrize(
    ("memory", "request_", "told"),
    [
        (episode("tea"), EVERYTHING, {*OF_ALL, "role in user, assistant"}),
        (semantic("tea"), EVERYTHING, {*OF_ALL, "confidence>=0.2", "selectivity>=0.3"}),
        (negation("no tea", "tea"), EVERYTHING, {*OF_ALL, "confidence>=0.2"}),
        (episode("tea"), RecallRequest(query="tea"), set()),
        (semantic("tea"), RecallRequest(query="tea"), set()),
    ],
    ids=["a turn", "a conclusion", "a negation", "a turn, unasked", "a conclusion, unasked"],
)
def test_filters_that_were_asked_for_are_told_where_they_can_apply(
    memory: AnyMemory, request_: RecallRequest, told: set[str]
) -> None:
    """A turn has no confidence, a conclusion no role; what nobody asked for is not told."""
    question = PreparedQuery(
        ADA, request_, TextVectors((), SparseVector((), ())), request_.visibility(NOW), asks()
    )
    explanation = explain(Ranked(memory, 1.0), question, ConfidenceWeights())
    of_its_own = ("type=", "status=", "form=", "no negation")
    assert {f for f in explanation.filters if not f.startswith(of_its_own)} == told
