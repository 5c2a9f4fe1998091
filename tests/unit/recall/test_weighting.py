"""What a memory is, whatever was asked, as factors of its score: no store, no model."""

from __future__ import annotations

from typing import Any

import pytest

from engram.domain.confidence import Confidence, ConfidenceWeights, ExtractionMethod, Verification
from engram.domain.memories import AnyMemory, LifecycleState, Placement
from engram.domain.rules import LifecycleRules, PlacementRules, RankingFactors
from engram.lifecycle.policies import trust
from engram.recall.results import ExplainedLink, Part, Ranked
from engram.recall.score import lifecycle_weight, weighted
from tests.support.recall_memories import NOW, day, episode, procedural, semantic

RULES = LifecycleRules()
# Nothing that a memory is changes its score, but for what a test sets.
NEUTRAL: dict[str, float] = dict.fromkeys(RankingFactors.model_fields, 1.0)


def factors(**more: float) -> RankingFactors:
    """Factors of nothing but this."""
    return RankingFactors(**{**NEUTRAL, **more})


def after(
    memory: AnyMemory,
    by: RankingFactors,
    *,
    score: float = 0.5,
    rules: LifecycleRules = RULES,
) -> Ranked:
    """A memory of that score, weighted."""
    (one,) = weighted([Ranked(memory, score)], NOW, rules, by)
    return one


def test_nothing_found_is_nothing_weighted() -> None:
    """An empty recall has no namespace to go by."""
    assert weighted([], NOW, RULES, RankingFactors()) == []


def test_what_changes_nothing_leaves_no_part() -> None:
    """A factor of 1 is not told."""
    one = after(semantic("tea", lifecycle=LifecycleState.STALE), factors())
    assert one == Ranked(one.memory, 0.5)


def test_a_memory_keeps_how_it_was_found() -> None:
    """Its parts so far, the links that led to it, and what speaks against it."""
    found = Ranked(
        semantic("tea", lifecycle=LifecycleState.STALE),
        0.5,
        (Part("sparse", 0.5, 1.0),),
        (ExplainedLink(source_id="a", kind="related", confidence=0.9),),
        ("n",),
    )
    (one,) = weighted([found], NOW, RULES, factors(stale=0.8))
    assert one.parts[0] == found.parts[0]
    assert (one.memory, one.links, one.negated_by) == (found.memory, found.links, ("n",))
    assert [part.name for part in one.parts] == ["sparse", "lifecycle"]


def test_the_weighted_scores_decide_the_order_and_ties_go_by_id() -> None:
    """What was better by its words falls behind what is more than that in life."""
    stale = semantic("stale", lifecycle=LifecycleState.STALE).model_copy(update={"id": "c"})
    fresh = [semantic("fresh").model_copy(update={"id": name}) for name in "ba"]
    found = [Ranked(stale, 0.9), *(Ranked(one, 0.8) for one in fresh)]
    ranked = weighted(found, NOW, RULES, factors(stale=0.5))
    assert [one.memory.id for one in ranked] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("state", "weight"),
    [
        (LifecycleState.VALIDATED, 1.2),
        (LifecycleState.ACTIVE, 1.2),
        (LifecycleState.CANDIDATE, 0.9),
        (LifecycleState.STALE, 0.7),
        (LifecycleState.ARCHIVED, 0.7),
        (None, 1.0),
    ],
)
def test_a_state_in_life_has_its_factor_and_a_dispute_comes_on_top(
    state: LifecycleState | None, weight: float
) -> None:
    """What has no state has a factor of 1."""
    by = factors(validated=1.2, candidate=0.9, stale=0.7, disputed=0.5)
    memory = semantic("tea", lifecycle=state)
    assert lifecycle_weight(memory, by) == pytest.approx(weight)
    contested = semantic("tea", lifecycle=state, disputed_with=("other",))
    assert lifecycle_weight(contested, by) == pytest.approx(weight * 0.5)
    assert after(contested, by).score == pytest.approx(0.5 * weight * 0.5)


@pytest.mark.parametrize("state", [None, *LifecycleState])
def test_looking_back_no_state_of_now_counts(state: LifecycleState | None) -> None:
    """What became of a memory since, cold included, moves no score as of before; doubt does."""
    placing = LifecycleRules(placement=PlacementRules(enabled=True))
    by = factors(validated=1.2, candidate=0.9, stale=0.7, cold=0.8, disputed=0.5)

    def then(**more: Any) -> float:
        memory = semantic("tea", lifecycle=state, placement=Placement.COLD, **more)
        (one,) = weighted([Ranked(memory, 0.5)], NOW, placing, by, looking_back=True)
        return one.score

    assert then() == 0.5
    assert then(disputed_with=("other",)) == pytest.approx(0.25)


def test_a_factor_is_told_with_what_it_takes_and_what_it_is() -> None:
    """The explanation names it, and parts still sum up to the score."""
    one = after(semantic("tea", lifecycle=LifecycleState.STALE), factors(stale=0.8))
    (part,) = one.parts
    assert (part.name, part.weight, part.raw) == ("lifecycle", -1.0, 0.8)
    assert part.value == pytest.approx(0.1)
    assert one.score == pytest.approx(0.4)


def test_no_factor_lifts_a_score_above_one() -> None:
    """A part tells what was added, which is less than the factor would have."""
    memory = semantic("tea", lifecycle=LifecycleState.VALIDATED)
    one = after(memory, factors(validated=1.5), score=0.9)
    assert one.score == 1.0
    (part,) = one.parts
    assert (part.weight, part.raw) == (1.0, 1.5)
    assert part.value == pytest.approx(0.1)
    assert after(memory, factors(validated=1.5), score=0.6).score == pytest.approx(0.9)


def test_several_factors_are_multiplied_one_after_another() -> None:
    """Each takes from what the one before has left."""
    memory = semantic("tea", lifecycle=LifecycleState.STALE, importance=0.0)
    one = after(memory, factors(stale=0.8, unimportant=0.5))
    assert [part.name for part in one.parts] == ["lifecycle", "importance"]
    assert [part.contribution for part in one.parts] == pytest.approx([-0.1, -0.2])
    assert one.score == pytest.approx(0.2)


@pytest.mark.parametrize("enabled", [True, False])
def test_what_is_kept_cold_comes_behind_where_placement_is_switched_on(*, enabled: bool) -> None:
    """It still answers; where placement is off nothing is cold."""
    rules = LifecycleRules(placement=PlacementRules(enabled=enabled))
    cold = after(semantic("tea", placement=Placement.COLD), factors(cold=0.6), rules=rules)
    hot = after(semantic("tea", placement=Placement.HOT), factors(cold=0.6), rules=rules)
    assert cold.score == pytest.approx(0.3 if enabled else 0.5)
    assert [part.name for part in cold.parts] == (["cold"] if enabled else [])
    assert hot.score == 0.5


def test_weighting_keeps_what_is_known_of_a_score() -> None:
    """What asking took from it, and that nobody asks why: no parts come then."""
    stale = semantic("tea", lifecycle=LifecycleState.STALE)
    found = Ranked(stale, 0.5, asking=-0.3, explained=False)
    assert weighted([found], NOW, RULES, factors(stale=0.8)) == [found._replace(score=0.4)]


@pytest.mark.parametrize(
    ("importance", "factor"), [(0.0, 0.6), (0.25, 0.8), (0.5, 1.0), (1.0, 1.0)]
)
def test_what_matters_less_than_most_counts_less_in_proportion(
    importance: float, factor: float
) -> None:
    """From half importance on nothing is taken away, and nothing is ever added."""
    one = after(semantic("tea", importance=importance), factors(unimportant=0.6))
    assert one.score == pytest.approx(0.5 * factor)
    assert [part.name for part in one.parts] == (["importance"] if factor < 1 else [])


def confidence(verification: Verification, seen: float = 0.0) -> Confidence:
    """Of a quotation, as sure as verification makes it."""
    return Confidence(
        method=ExtractionMethod.VERBATIM,
        extraction=1.0,
        last_confirmed=day(seen),
        verification=verification,
    )


def test_what_engram_is_unsure_of_counts_less_in_proportion() -> None:
    """At confidence 0 the factor itself, at 1 nothing, half way in between the middle."""
    only = ConfidenceWeights(extraction=0, corroboration=0, recency=0, verification=1)
    rules = LifecycleRules(weights=only)
    by = factors(unsure=0.6)
    for verification, factor in (
        (Verification.USER_CONFIRMED, 1.0),
        (Verification.UNCHECKED, 0.8),
        (Verification.DISPUTED, 0.6),
    ):
        memory = semantic("tea", confidence=confidence(verification))
        one = after(memory, by, rules=rules)
        assert one.score == pytest.approx(0.5 * factor)
        assert [part.name for part in one.parts] == (["confidence"] if factor < 1 else [])


def test_confidence_is_that_of_the_moment_of_asking() -> None:
    """It fades with time, and the fading shows in the score."""
    memory = semantic("tea", confidence=confidence(Verification.UNCHECKED))
    sure = trust(memory, NOW, RULES)
    assert sure < trust(memory, day(0), RULES)
    assert after(memory, factors(unsure=0.6)).score == pytest.approx(0.5 * (0.6 + 0.4 * sure))


def test_a_fresh_turn_counts_in_full_and_one_that_has_faded_less() -> None:
    """Down to the factor itself once nothing of it is left; never more than in full."""
    by = factors(faded=0.6)
    fresh = episode("tea", 400, importance=1.0)
    assert after(fresh, by).score == pytest.approx(0.5)
    well_used = episode("tea", 400, importance=1.0, access_count=500)
    assert after(well_used, by).score == pytest.approx(0.5)
    gone = after(episode("tea", -100_000, importance=1.0), by)
    assert gone.score == pytest.approx(0.3)
    assert [part.name for part in gone.parts] == ["faded"]
    assert 0.3 < after(episode("tea", 380, importance=1.0), by).score < 0.5


@pytest.mark.parametrize(
    "memory",
    [semantic("tea", -300), semantic("tea", -300, importance=1.0)],
)
def test_a_conclusion_does_not_fade_and_a_turn_is_not_doubted(memory: AnyMemory) -> None:
    """How fresh a turn is, and how sure Engram is of a conclusion, are two things."""
    assert after(memory, factors(faded=0.1)).parts == ()
    turn = episode("tea", -300, importance=1.0)
    assert after(turn, factors(unsure=0.1)).parts == ()


def test_a_turn_fades_as_its_namespace_has_it() -> None:
    """Two decay policies give two worths of one turn, and so two scores."""
    turn = episode("tea", 398, importance=1.0)
    by = factors(faded=0.5)
    energetic = LifecycleRules(energy_namespaces=(turn.namespace,))
    elsewhere = LifecycleRules(energy_namespaces=("elsewhere",))
    plain = after(turn, by).score
    assert after(turn, by, rules=elsewhere).score == plain
    assert after(turn, by, rules=energetic).score != pytest.approx(plain)


def test_a_habit_of_other_circumstances_comes_further_behind() -> None:
    """In proportion to the words shared; what is bound to none, or is no habit, stays."""
    when = {"when working late": 1.0, "while working at home": 0.75, "at breakfast": 0.5}
    for trigger, factor in {**when, "tea": 1.0}.items():
        habit = procedural("The user drinks tea", trigger)
        (one,) = weighted(
            [Ranked(habit, 0.5)], NOW, RULES, factors(elsewhere=0.5), "I work late tonight"
        )
        assert one.score == pytest.approx(0.5 * factor)
        assert [part.name for part in one.parts] == (["context"] if factor < 1 else [])
        assert weighted([Ranked(habit, 0.5)], NOW, RULES, factors()) == [Ranked(habit, 0.5)]
    turn = semantic("tea at breakfast")
    assert weighted([Ranked(turn, 0.5)], NOW, RULES, factors(), "late") == [Ranked(turn, 0.5)]
    bound_to_nothing = Ranked(procedural("The user drinks tea", "tea"), 0.5)
    assert weighted([bound_to_nothing], NOW, RULES, factors(elsewhere=0.5), "the") == [
        bound_to_nothing
    ]
