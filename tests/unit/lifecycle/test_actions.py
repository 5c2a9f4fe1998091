"""What users, operators and further turns do, as functions from memory to memory."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from engram.consolidation.amendments import corroborated
from engram.domain.confidence import Verification
from engram.domain.memories import (
    AnyMemory,
    DerivedMemory,
    Evidence,
    Fact,
    LifecycleState,
    MemoryStatus,
    PolicyClass,
    Resolution,
    SemanticMemory,
    Tier,
)
from engram.domain.rules import LifecycleRules
from engram.errors import InvalidInput
from engram.lifecycle import decisions
from engram.lifecycle.decisions import lifecycle_of, settle
from engram.lifecycle.policies import dispute_of
from tests.support.lifecycle_memories import (
    ENERGY,
    RULES,
    T0,
    day,
    episode,
    fact,
    recalled,
    rules,
    semantic,
)


def left(**more: object) -> SemanticMemory:
    """Speculation that expired after a month."""
    found = settle(semantic(**{"confidence": {"extraction": 0.2}, **more}), day(31), RULES).memory  # type: ignore[arg-type]  # fields by name
    assert isinstance(found, SemanticMemory)
    assert (found.status, found.expired_at) == (MemoryStatus.EXPIRED, day(31))
    return found


def stays(memory: AnyMemory, at: float) -> bool:
    """Whether a pass on that day leaves it where it is."""
    found = settle(memory, day(at), RULES).memory
    return found is not None and found.status is memory.status


def test_reviews_are_about_each_pair_or_about_what_was_refuted_alone() -> None:
    """A pair has one name, whichever of both is asked; a turn or a fact is in no dispute."""
    one = semantic(disputed_with=("a", "zz"))
    assert decisions.disputes_of(one) == [
        tuple(sorted((one.id, "a"))),
        tuple(sorted((one.id, "zz"))),
    ]
    refuted = semantic(disputed_with=("a",), refuted_at=day(3))
    assert decisions.disputes_of(refuted) == [tuple(sorted((refuted.id, "a"))), (refuted.id,)]
    assert decisions.disputes_of(wrong := fact(refuted_at=day(3))) == [(wrong.id,)]
    for none in (semantic(), fact(), episode()):
        assert decisions.disputes_of(none) == []


def test_a_confirmation_brings_back_and_holds() -> None:
    """Confirmed: verified by the user, validated, active again, and the next pass agrees."""
    confirmed = decisions.confirm(left(disputed_with=("x",)), day(40), RULES).memory
    assert isinstance(confirmed, SemanticMemory)
    assert confirmed.confidence.verification is Verification.USER_CONFIRMED
    assert confirmed.confidence.last_confirmed == day(40)
    assert (confirmed.status, confirmed.expired_at) == (MemoryStatus.ACTIVE, None)
    assert confirmed.lifecycle is LifecycleState.VALIDATED
    assert confirmed.disputed_with == ()
    assert stays(confirmed, 200)


def test_confirming_twice_is_confirming_once() -> None:
    """The same confirmation again changes nothing: an activity may run twice."""
    once = decisions.confirm(fact(), day(1), RULES).memory
    assert decisions.confirm(once, day(1), RULES) == decisions.Changed(once)


def test_what_a_confirmation_brings_back_does_not_leave_at_once() -> None:
    """Whichever rule had taken it, its clock starts anew."""
    resolved = decisions.resolve(semantic(category="commitment"), Resolution.EXPIRED, day(1)).memory
    brief = rules(time_to_live={"factual_days": 5.0}, archival={"enabled": True})
    for memory, under in (
        (resolved, RULES),
        (semantic(expires_at=day(3)), RULES),
        (fact(importance=0.01), RULES),
        (fact(), brief),
        (semantic(importance=0.2), brief),
    ):
        gone = settle(memory, day(120), under).memory
        assert gone is not None
        assert gone.status is not MemoryStatus.ACTIVE
        if memory.importance < 0.05:
            continue  # So unimportant that it is below the threshold from the first moment on.
        back = settle(decisions.confirm(gone, day(130), under).memory, day(131), under).memory
        assert back is not None
        assert back.status is MemoryStatus.ACTIVE


@pytest.mark.parametrize("put_aside", [True, False])
def test_a_confirmation_drops_an_end_that_has_come(put_aside: bool) -> None:
    """Also where no pass has seen to it, or it was put aside before; one to come still holds."""
    told: AnyMemory = semantic(expires_at=day(3))
    told = decisions.demote(told, day(1), RULES).memory if put_aside else told
    confirmed = decisions.confirm(told, day(3), RULES).memory
    assert (confirmed.status, confirmed.expires_at) == (MemoryStatus.ACTIVE, None)
    assert stays(confirmed, 4)
    before = decisions.confirm(told, day(2), RULES).memory
    assert (before.status, before.expires_at) == (MemoryStatus.ACTIVE, day(3))


def test_a_dispute_refutes_and_a_confirmation_takes_it_back() -> None:
    """Disputed: out of the answers, counted once, and all of it undone by a confirmation."""
    used = settle(recalled(semantic(), T0), T0, RULES).memory
    assert used is not None
    disputed = decisions.dispute(used, day(1), RULES).memory
    assert isinstance(disputed, SemanticMemory)
    assert disputed.lifecycle is LifecycleState.CANDIDATE
    assert (disputed.status, disputed.refuted_at) == (MemoryStatus.SUPERSEDED, day(1))
    assert disputed.superseded_known_at == day(1)
    assert disputed.confidence.contradictions == 1
    assert decisions.dispute(disputed, day(5), RULES) == decisions.Changed(disputed)
    assert disputed.confidence.score(day(1)) < semantic().confidence.score(day(1))
    settled = settle(disputed, day(2), RULES)
    assert settled.transitions == ()
    confirmed = decisions.confirm(disputed, day(3), RULES).memory
    assert isinstance(confirmed, SemanticMemory)
    assert confirmed.lifecycle is LifecycleState.VALIDATED
    assert (confirmed.status, confirmed.refuted_at) == (MemoryStatus.ACTIVE, None)
    assert confirmed.superseded_known_at is None
    assert confirmed.confidence.contradictions == 0


def test_what_was_refuted_returns_when_it_is_told_after_that() -> None:
    """A pattern fact or denial that the user says again holds; said before, it changes nothing."""
    refuted = decisions.dispute(fact(), day(10), RULES).memory
    assert isinstance(refuted, Fact)
    early, late = (episode(f"on {n}", timestamp=day(n), known_at=day(n)) for n in (9, 11))
    before = corroborated(refuted, [early])
    assert before is not None
    assert (before.status, before.refuted_at) == (MemoryStatus.SUPERSEDED, day(10))
    back = corroborated(refuted, [late])
    assert back is not None
    assert (back.status, back.refuted_at) == (MemoryStatus.ACTIVE, None)
    assert back.confidence.contradictions == 0


def test_a_confirmation_ends_what_was_kept_in_its_place() -> None:
    """What lost a dispute wins by a word of the user: it stands for the rivals from then on."""
    lost = semantic(
        status="superseded", refuted_at=day(1), superseded_by="kept", superseded_known_at=day(1)
    )
    assert decisions.rivals_of(lost) == ("kept",)
    back = decisions.confirm(lost, day(2), RULES).memory
    assert isinstance(back, SemanticMemory)
    assert (back.status, back.superseded_by, back.supersedes) == ("active", None, ("kept",))
    open_dispute = semantic(disputed_with=("one", "two"), supersedes=("one", "old"))
    assert decisions.rivals_of(open_dispute) == ("one", "two")
    won = decisions.confirm(open_dispute, day(2), RULES).memory
    assert isinstance(won, SemanticMemory)
    assert won.supersedes == ("one", "old", "two")


def test_only_conclusions_have_rivals_or_stand_for_others() -> None:
    """Turns contradict nothing, and what merely followed something else has no rival."""
    assert decisions.rivals_of(episode("hello")) == ()
    assert decisions.rivals_of(fact()) == ()
    assert decisions.rivals_of(semantic(status="superseded", superseded_by="next")) == ()
    turn = episode("hello")
    assert decisions.in_place_of(turn, ("x",)) is turn
    plain = semantic(supersedes=("y",))
    assert decisions.in_place_of(plain, ()) is plain
    assert decisions.in_place_of(fact(), ("x", "x")).supersedes == ("x",)  # type: ignore[union-attr]  # a fact


def test_what_is_taken_back_is_as_sure_as_before() -> None:
    """With evidence that was found again, unchecked without; nothing speaks against it."""
    quoted = semantic(evidence=(Evidence(episode_id="e", words="tea"),))
    for memory, verified in (
        (quoted, Verification.EVIDENCE_FOUND),
        (semantic(), Verification.UNCHECKED),
        (fact(), Verification.UNCHECKED),
    ):
        refuted = decisions.dispute(memory, day(1), RULES).memory
        assert isinstance(refuted, DerivedMemory)
        back = decisions.taken_back(refuted)
        assert back.confidence.verification is verified
        assert (back.confidence.contradictions, back.refuted_at) == (0, None)
        assert back.lifecycle is LifecycleState.ACTIVE
        assert decisions.taken_back(back) is back


@pytest.mark.parametrize(
    ("memory", "said"),
    [
        (semantic(), None),
        (episode("hello"), None),
        (semantic(status="superseded", superseded_by="next"), None),
        (semantic(refuted_at=day(1), status="superseded"), "refuted on 2026-01-02"),
        (
            semantic(refuted_at=day(1), status="superseded", superseded_by="kept"),
            "refuted on 2026-01-02, and kept was kept",
        ),
        (
            semantic(disputed_with=("one", "two")),
            "disputed: it contradicts one, two, and nothing settles which holds",
        ),
        (fact(confidence={"verification": "disputed"}), "disputed by the user"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_dispute_is_told_in_one_sentence(memory: AnyMemory, said: str | None) -> None:
    """Who or what speaks against it, by id; nothing where nothing does."""
    assert dispute_of(memory) == said


def test_history_that_is_disputed_is_refuted_since_then_and_was_true_of_no_time() -> None:
    """It left the answers when it was replaced; disputed again, nothing more happens."""
    replaced = semantic(status="superseded", superseded_by="x", superseded_known_at=day(1))
    disputed = decisions.dispute(
        replaced.model_copy(update={"valid_to": day(1)}), day(2), RULES
    ).memory
    assert isinstance(disputed, SemanticMemory)
    assert (disputed.status, disputed.refuted_at) == (MemoryStatus.SUPERSEDED, day(2))
    assert disputed.superseded_known_at == day(1)
    assert (disputed.superseded_by, disputed.valid_to) == (None, None)
    assert decisions.dispute(disputed, day(3), RULES).memory == disputed


def test_history_that_is_confirmed_stays_history() -> None:
    """What something else replaced is not brought back by a word about it."""
    replaced = semantic(status="superseded", superseded_by="x", superseded_known_at=day(1))
    confirmed = decisions.confirm(replaced, day(3), RULES).memory
    assert isinstance(confirmed, SemanticMemory)
    assert (confirmed.status, confirmed.superseded_by) == (MemoryStatus.SUPERSEDED, "x")
    # What it was called while it held is settled all the same.
    assert confirmed.lifecycle is LifecycleState.VALIDATED


@pytest.mark.parametrize("action", [decisions.confirm, decisions.dispute])
def test_turns_are_neither_confirmed_nor_disputed(action: object) -> None:
    """What was said was said: a typed error says what is allowed instead."""
    with pytest.raises(InvalidInput, match="it was said"):
        action(episode(), T0, RULES)  # type: ignore[operator]  # one of the two


def test_protection_brings_back_and_can_be_taken_back() -> None:
    """Protected: back, without an end of its own; unprotected: rules apply again."""
    kept = decisions.protect(left(expires_at=day(500)), day(40), RULES).memory
    assert (kept.policy_class, kept.expires_at) == (PolicyClass.PROTECTED, None)
    assert kept.status is MemoryStatus.ACTIVE
    assert stays(kept, 5000)
    assert decisions.protect(kept, day(41), RULES) == decisions.Changed(kept)
    free = decisions.unprotect(kept, day(41), RULES).memory
    assert free.policy_class is None
    assert not stays(free, 5000)


def test_only_commitments_are_resolved() -> None:
    """Resolved once however often it is said; what is no commitment is refused."""
    promise = semantic(category="commitment")
    done = decisions.resolve(promise, Resolution.FULFILLED, day(1)).memory
    assert isinstance(done, SemanticMemory)
    assert (done.resolution, done.resolved_at) == (Resolution.FULFILLED, day(1))
    assert decisions.resolve(done, Resolution.FULFILLED, day(9)).memory == done
    other = decisions.resolve(done, Resolution.EXPIRED, day(9)).memory
    assert isinstance(other, SemanticMemory)
    assert other.resolved_at == day(9)
    with pytest.raises(InvalidInput, match="Only commitments"):
        decisions.resolve(semantic(), Resolution.FULFILLED, T0)


def test_what_nothing_replaces_any_more_holds_unless_the_user_disputes_it() -> None:
    """Refuted since it was replaced, or last told; a dispute of two is settled elsewhere."""
    over: dict[str, Any] = {"status": "superseded", "superseded_by": "x"}
    over |= {"superseded_known_at": day(4), "valid_to": day(4)}
    plain = decisions.holding_again(semantic(**over))
    assert (plain.status, plain.superseded_by) == (MemoryStatus.ACTIVE, None)
    assert isinstance(plain, SemanticMemory)
    assert plain.refuted_at is None
    said = semantic(**over)
    doubted = said.confidence.model_copy(update={"verification": Verification.DISPUTED})
    refuted = decisions.holding_again(said.model_copy(update={"confidence": doubted}))
    assert (refuted.status, refuted.superseded_by) == (MemoryStatus.SUPERSEDED, None)
    assert (refuted.refuted_at, refuted.valid_to) == (day(4), None)
    undated = {"confidence": doubted, "superseded_known_at": None}
    since = decisions.holding_again(said.model_copy(update=undated))
    assert since.refuted_at == doubted.last_confirmed
    of_two = said.model_copy(update={"confidence": doubted, "disputed_with": ("other",)})
    assert decisions.holding_again(of_two).status is MemoryStatus.ACTIVE


def test_being_told_again_brings_back() -> None:
    """A further turn confirms what speculation had lost, and it stays."""
    again = episode("again", timestamp=day(40), known_at=day(40))
    back = corroborated(left(), [again])
    assert back is not None
    assert (back.status, back.expired_at) == (MemoryStatus.ACTIVE, None)
    assert lifecycle_of(back) is LifecycleState.ACTIVE
    assert stays(back, 200)
    replaced = semantic(status="superseded", superseded_by="x")
    still = corroborated(replaced, [again])
    assert still is not None
    assert still.status is MemoryStatus.SUPERSEDED


@pytest.mark.parametrize("under", [RULES, ENERGY, rules(time_to_live={"semantic_days": 30})])
def test_what_an_old_turn_tells_again_fades_from_when_it_was_brought_in(
    under: LifecycleRules,
) -> None:
    """An import of old talk counts when it is made: what comes back by it stays for a while."""
    born, made = T0 - timedelta(days=4000), day(-1)
    old = semantic(created_at=born, known_at=born, confidence={"last_confirmed": born})
    gone = settle(old, made, under).memory
    assert gone is not None
    assert gone.status is not MemoryStatus.ACTIVE
    said = born + timedelta(days=1)
    turn = episode("again", timestamp=said, known_at=said, created_at=made)
    assert isinstance(gone, SemanticMemory)
    back = corroborated(gone, [turn])
    assert back is not None
    assert back.confidence.last_confirmed == said
    kept = settle(back, day(20), under).memory
    assert kept is not None
    assert kept.status is MemoryStatus.ACTIVE
    live = episode("now", timestamp=made, known_at=made, created_at=made)
    told = corroborated(gone, [live])
    assert told is not None
    assert told.vitals == gone.vitals


def test_what_was_demoted_by_hand_stays_away() -> None:
    """Archived by hand: recalls do not bring it back, the user does."""
    away = decisions.demote(fact(), day(1), RULES)
    assert [step.rule for step in away.transitions] == ["demoted_archived"]
    assert stays(recalled(away.memory, day(2)), 3)
    assert decisions.demote(away.memory, day(3), RULES).transitions == ()
    assert decisions.confirm(away.memory, day(3), RULES).memory.status is MemoryStatus.ACTIVE


def test_promotion_by_hand_goes_one_tier_at_a_time() -> None:
    """Working to short-term to long-term, counted and stamped; at the top nothing happens."""
    once = decisions.force_promote(episode(), day(1), ENERGY).memory
    assert once.vitals is not None
    assert once.vitals.tier is Tier.SHORT_TERM
    assert (once.vitals.promotion_attempts, once.vitals.last_promotion) == (1, day(1))
    twice = decisions.force_promote(once, day(2), ENERGY).memory
    assert twice.vitals is not None
    assert (twice.vitals.tier, twice.vitals.promotion_attempts) == (Tier.LONG_TERM, 2)
    assert decisions.force_promote(twice, day(3), ENERGY) == decisions.Changed(twice)


def test_a_session_end_lifts_what_is_lively() -> None:
    """1.5 is enough at a session's end, under energy; under retention there are no tiers."""
    end = T0 + timedelta(hours=1)
    lively = recalled(episode(), end, under=ENERGY)
    assert lively.vitals is not None
    assert 1.5 < (lively.vitals.energy or 0) < 2
    assert settle(lively, end, ENERGY).transitions == ()
    lifted = decisions.end_session(lively, end, ENERGY).memory
    assert lifted.vitals is not None
    assert lifted.vitals.tier is Tier.SHORT_TERM
    assert decisions.end_session(episode(), end, ENERGY).transitions == ()
    assert decisions.end_session(lively, end + timedelta(hours=1), ENERGY).transitions == ()
    assert decisions.end_session(lively, end, RULES).transitions == ()
