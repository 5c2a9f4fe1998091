"""Each row of the table, each state and each event, reached on a real path; and the page."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from engram.domain.memories import (
    AnyMemory,
    LifecycleState,
    MemoryForm,
    MemoryStatus,
    Placement,
    PolicyClass,
    Resolution,
    Tier,
)
from engram.domain.rules import LifecycleRules
from engram.lifecycle import decisions
from engram.lifecycle.decisions import (
    Settled,
    Transition,
    fingerprint,
    lifecycle_of,
    review_at,
    rulebook,
    settle,
)
from engram.lifecycle.table import ERASED_STATE, TABLE, Aspect, Event
from tests.support.lifecycle_memories import (
    ENERGY,
    RULES,
    T0,
    day,
    episode,
    fact,
    negation,
    recalled,
    rules,
    semantic,
)
from tests.support.page_makers import DOCS, page_maker

ERASING = rules(expiry={"erase_after_days": 30.0})
ARCHIVAL = rules(archival={"enabled": True})
PLACING = rules(placement={"enabled": True})
HOUR = timedelta(hours=1)
WEAK = {"method": "inferred", "contradictions": 5, "verification": "disputed"}


def timed(memory: AnyMemory, now: datetime, under: LifecycleRules = RULES) -> Settled:
    """What time makes of a memory."""
    return settle(memory, now, under)


def after(memory: AnyMemory, now: datetime, under: LifecycleRules = RULES) -> AnyMemory:
    """The same, of one that is not erased."""
    found = settle(memory, now, under).memory
    assert found is not None
    return found


def stale() -> AnyMemory:
    """A turn that went stale."""
    return after(episode(), day(40))


def cold() -> AnyMemory:
    """A turn that was put aside."""
    return after(episode(), day(45), PLACING)


def superseded() -> AnyMemory:
    """Knowledge that was replaced."""
    return semantic(status="superseded", superseded_by="x", valid_to=T0)


def gone() -> AnyMemory:
    """Speculation that expired."""
    return after(semantic(confidence={"extraction": 0.2}), day(31))


PATHS: dict[str, Callable[[], tuple[Transition, ...]]] = {
    "time_to_live": lambda: timed(episode(expires_at=day(2)), day(2)).transitions,
    "speculation": lambda: timed(semantic(confidence={"extraction": 0.2}), day(30)).transitions,
    "commitment": lambda: (
        timed(
            decisions.resolve(semantic(category="commitment"), Resolution.FULFILLED, day(1)).memory,
            day(91),
        ).transitions
    ),
    "retention": lambda: timed(episode(), day(70)).transitions,
    "energy": lambda: timed(episode(), T0 + 5 * HOUR, ENERGY).transitions,
    "old_and_unused": lambda: timed(fact(importance=0.2), day(91), ARCHIVAL).transitions,
    "debris": lambda: (
        timed(semantic(confidence=WEAK, importance=1.0), day(500), rules()).transitions
    ),
    "erase": lambda: timed(after(episode(), day(70)), day(100), ERASING).transitions,
    "doubted": lambda: (
        timed(
            after(recalled(semantic(), T0), T0).model_copy(update={"disputed_with": ("x",)}), T0
        ).transitions
    ),
    "supported": lambda: timed(semantic(confidence={"supporting_episodes": 2}), T0).transitions,
    "used": lambda: timed(recalled(semantic(), T0), T0).transitions,
    "grown_stale": lambda: timed(episode(), day(40)).transitions,
    "fresh_again": lambda: timed(recalled(stale(), day(41)), day(41)).transitions,
    "returned": lambda: (
        timed(
            after(superseded(), T0, ERASING).model_copy(update={"status": MemoryStatus.ACTIVE}), T0
        ).transitions
    ),
    "replaced": lambda: timed(superseded(), T0, ERASING).transitions,
    "to_short_term": lambda: timed(recalled(episode(), T0, 1, ENERGY), T0, ENERGY).transitions,
    "to_long_term": lambda: timed(recalled(episode(), T0, 4, ENERGY), T0, ENERGY).transitions,
    "session_end": lambda: (
        decisions.end_session(
            recalled(episode(), T0 + HOUR, 1, ENERGY), T0 + HOUR, ENERGY
        ).transitions
    ),
    "cooled": lambda: timed(episode(), day(45), PLACING).transitions,
    "warmed": lambda: timed(recalled(cold(), day(46), 3), day(46), PLACING).transitions,
    "told_again_active": lambda: (
        rulebook(RULES, "default").fire(gone(), Event.TOLD_AGAIN, day(40)).transitions
    ),
    "confirmed_user_confirmed": lambda: decisions.confirm(fact(), T0, RULES).transitions,
    "confirmed_active": lambda: decisions.confirm(gone(), day(40), RULES).transitions,
    "confirmed_validated": lambda: decisions.confirm(fact(), T0, RULES).transitions,
    "disputed_disputed": lambda: decisions.dispute(fact(), T0, RULES).transitions,
    "disputed_candidate": lambda: (
        decisions.dispute(decisions.confirm(fact(), T0, RULES).memory, T0, RULES).transitions
    ),
    "disputed_superseded": lambda: decisions.dispute(fact(), T0, RULES).transitions,
    "protected_protected": lambda: decisions.protect(episode(), T0, RULES).transitions,
    "protected_active": lambda: (
        decisions.protect(after(episode(), day(70)), day(71), RULES).transitions
    ),
    "unprotected_durable": lambda: (
        decisions.unprotect(decisions.protect(episode(), T0, RULES).memory, T0, RULES).transitions
    ),
    "demoted_archived": lambda: decisions.demote(fact(), T0, RULES).transitions,
    "forced_long_term": lambda: (
        decisions.force_promote(
            decisions.force_promote(episode(), T0, RULES).memory, T0, RULES
        ).transitions
    ),
    "forced_short_term": lambda: decisions.force_promote(episode(), T0, RULES).transitions,
}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_each_row_is_reached(row: object) -> None:
    """Every rule acts on some memory, changes what its row says, and gives its reason."""
    rows = {one.name: one for one in TABLE}
    name = row.name  # type: ignore[attr-defined]  # a Row, as parametrize hides
    step = next(one for one in PATHS[name]() if one.rule == name)
    assert step.source in rows[name].sources
    assert (step.event, step.aspect) == (rows[name].event, rows[name].aspect)
    assert step.target == rows[name].target
    assert f"{step.why}: ".startswith(f"{rows[name].condition}: ")


def test_every_path_and_name_is_in_the_table() -> None:
    """Names are unique, and no path here has lost its row."""
    names = [row.name for row in TABLE]
    assert sorted(names) == sorted(set(names))
    assert set(PATHS) == set(names)


def test_every_state_event_and_aspect_occurs() -> None:
    """Nothing in the enumerations is only a word."""
    steps = [step for path in PATHS.values() for step in path()]
    assert {step.event for step in steps} == set(Event)
    assert {step.aspect for step in steps} == set(Aspect)
    seen = {(step.aspect, value) for step in steps for value in (step.source, step.target)}
    for aspect, values in (
        (Aspect.STATUS, set(MemoryStatus)),
        (Aspect.LIFECYCLE, set(LifecycleState)),
        (Aspect.PLACEMENT, set(Placement)),
        (Aspect.TIER, set(Tier)),
        (Aspect.POLICY_CLASS, {PolicyClass.DURABLE, PolicyClass.PROTECTED}),
    ):
        assert {(aspect, value) for value in values} <= seen
    assert (Aspect.STATUS, ERASED_STATE) in seen


def test_what_happened_is_reported_by_name() -> None:
    """Reports, metrics and histories have these names; so do the pages that read them."""
    assert {event.value for event in Event} == {
        *("time", "session_ended", "told_again", "confirmed", "disputed", "protected"),
        *("unprotected", "demoted", "forced"),
    }
    assert {aspect.value for aspect in Aspect} == {
        *("status", "lifecycle", "placement", "tier", "verification", "policy_class"),
    }


@pytest.mark.parametrize(
    ("under", "acting"),
    [
        (RULES, {"retention"}),
        (ENERGY, {"energy", "to_short_term", "to_long_term", "session_end"}),
        (ARCHIVAL, {"retention", "old_and_unused"}),
        (PLACING, {"retention", "cooled", "warmed"}),
        (ERASING, {"retention", "erase", "replaced"}),
        (rules(expiry={"erase_after_days": 0.5}), {"retention", "erase", "replaced"}),
    ],
)
def test_which_rules_a_setting_switches_on(under: LifecycleRules, acting: set[str]) -> None:
    """One decay policy at a time, and nothing that was not asked for; all others always act."""
    switched = {"retention", "energy", "to_short_term", "to_long_term", "session_end"}
    switched |= {"old_and_unused", "cooled", "warmed", "erase", "replaced"}
    act = {row.name for row in TABLE if row.enabled(under, under.policy_name("default"))}
    assert act == {row.name for row in TABLE} - switched | acting


def test_a_transition_is_a_record() -> None:
    """Nobody changes one afterwards, and one with fields that are unknown is not taken for it."""
    (step,) = timed(episode(), day(40)).transitions
    with pytest.raises(ValidationError, match="frozen"):
        step.why = "because"  # type: ignore[misc]  # that is the point
    with pytest.raises(ValidationError, match="extra_forbidden"):
        Transition.model_validate({**step.model_dump(), "mood": "merry"})


def test_the_reason_has_the_numbers_and_no_content() -> None:
    """Why a memory faded can be read off its transition; what it says cannot."""
    stale, step = timed(episode("My secret."), day(75)).transitions
    assert rulebook(RULES, "default").decide(episode("My secret."), day(75)) == stale
    assert "archived below 0.05" in step.why
    assert "secret" not in step.model_dump_json()


def test_the_reason_for_fading_is_worked_out_at_that_time() -> None:
    """Asked what would happen, or made to happen: the same number stands in the reason."""
    aged = after(episode(), day(40))
    step = rulebook(RULES, "default").decide(aged, day(75))
    assert step is not None
    assert timed(aged, day(75)).transitions == (step,)
    assert "0.04: 1 base x 0.08 for 75.0 days since the last use" in step.why


def test_each_namespace_fades_by_its_own_policy() -> None:
    """The same turn at the same time: energy in the one, retention in the other."""
    mixed = rules(energy_namespaces=["games"])
    game = episode(namespace="games")
    assert after(game, T0 + 5 * HOUR, mixed).status is MemoryStatus.EXPIRED
    assert after(episode(), T0 + 5 * HOUR, mixed).status is MemoryStatus.ACTIVE
    assert "expires below 0.1" in timed(game, T0 + 5 * HOUR, mixed).transitions[-1].why
    assert rulebook(mixed, "games").decide(game, T0 + 5 * HOUR) is not None
    assert rulebook(mixed, "default").decide(episode(), T0 + 5 * HOUR) is None
    assert review_at(game, mixed) == review_at(game, rules(decay_policy="energy"))
    assert review_at(game, mixed) != review_at(episode(), mixed)
    assert fingerprint(mixed, "games") != fingerprint(mixed, "default")


def test_what_is_written_says_when_to_look_again() -> None:
    """The moment, and by which rules it was worked out: a pass asks for one or the other."""
    written = rulebook(RULES, "default").stamped(episode())
    assert written.review_at == review_at(episode(), RULES) != episode().review_at
    assert written.policy_fingerprint == fingerprint(RULES, "default")


def test_where_a_life_begins() -> None:
    """What was said needs no confirming; what was concluded does."""
    assert lifecycle_of(episode()) is LifecycleState.ACTIVE
    assert lifecycle_of(fact()) is LifecycleState.CANDIDATE
    assert lifecycle_of(fact(lifecycle="stale")) is LifecycleState.STALE


def test_only_what_leaves_is_stamped_as_gone() -> None:
    """Maturing and going stale stamp nothing; what is back has no stamp of either kind left."""
    assert (stale().archived_at, stale().expired_at) == (None, None)
    away: dict[str, Any] = {"lifecycle": "archived", "archived_at": day(1), "expired_at": day(1)}
    back = after(episode(**away), day(2))
    assert back.lifecycle is LifecycleState.ACTIVE
    assert (back.archived_at, back.expired_at) == (None, None)
    kept = decisions.protect(after(episode(), day(70)), day(71), RULES).memory
    assert (kept.status, kept.archived_at) == (MemoryStatus.ACTIVE, None)


def test_what_has_left_names_the_rule_and_what_answers_again_does_not() -> None:
    """Noted with the status, kept while it is archived for good, gone once it is back."""
    gone = after(episode(), day(90))
    assert gone.left_by == "retention"
    assert decisions.why_left(gone) == (
        "left by retention: retention score below `retention.archive_below`"
    )
    denied = decisions.dispute(semantic(), day(1), ERASING).memory
    assert denied.left_by == "disputed_superseded"
    archived = after(denied, day(2), ERASING)
    assert archived.lifecycle is LifecycleState.ARCHIVED
    assert archived.left_by == "disputed_superseded"
    back = decisions.confirm(archived, day(3), ERASING).memory
    assert (back.status, back.left_by) == (MemoryStatus.ACTIVE, None)
    assert decisions.why_left(back) is None
    left = {"lifecycle": LifecycleState.ARCHIVED, "archived_at": day(1), "left_by": "retention"}
    assert after(semantic().model_copy(update=left), day(2)).left_by is None
    unknown = gone.model_copy(update={"left_by": "a_rule_to_come"})
    assert decisions.why_left(unknown) == "left by a_rule_to_come: a rule of another version"


def test_what_comes_back_keeps_an_end_that_has_not_come() -> None:
    """Archived before its own end: told again, that end still holds; an end that came does not."""
    told = rulebook(RULES, "default")
    archived = decisions.demote(semantic(expires_at=day(50)), day(1), RULES).memory
    back = told.fire(archived, Event.TOLD_AGAIN, day(2)).memory
    assert back is not None
    assert (back.status, back.expires_at) == (MemoryStatus.ACTIVE, day(50))
    expired = after(semantic(expires_at=day(50)), day(50))
    again = told.fire(expired, Event.TOLD_AGAIN, day(60)).memory
    assert again is not None
    assert (again.status, again.expires_at) == (MemoryStatus.ACTIVE, None)


def test_a_pass_at_the_last_moment_is_done_with_it() -> None:
    """At the very moment of going stale, it is not also fresh again: the next look is later."""
    turn = episode()
    stales = review_at(turn, RULES)
    assert stales is not None
    seen = after(turn, stales)
    assert seen.lifecycle is LifecycleState.STALE
    following = review_at(seen, RULES)
    assert following is not None
    assert following > stales


def test_what_is_protected_never_leaves() -> None:
    """No rule of time takes it: not after ages, not by its own date, not by any setting."""
    strict = rules(
        time_to_live={"semantic_days": 1.0},
        expiry={"erase_after_days": 1.0},
        archival={"enabled": True},
        placement={"enabled": True},
    )
    for under in (strict, strict.model_copy(update={"decay_policy": "energy"})):
        weak = semantic(expires_at=day(1), importance=0.0, confidence={"extraction": 0.1, **WEAK})
        kept = decisions.protect(weak, T0, under).memory
        settled = timed(kept, day(100_000), under)
        assert settled.memory is not None
        assert settled.memory.status is MemoryStatus.ACTIVE
        assert review_at(settled.memory, under) is None
        assert decisions.demote(kept, day(9), under).transitions == ()


@pytest.mark.parametrize("form", [MemoryForm.PROFILE, MemoryForm.TOPIC, MemoryForm.GUIDELINE])
@pytest.mark.parametrize("under", [rules(archival={"enabled": True}), ENERGY])
def test_digests_live_as_long_as_what_they_say(form: MemoryForm, under: LifecycleRules) -> None:
    """No age takes a version that counts; one that was replaced is erased as any memory is."""
    digest = semantic(form=form, importance=0.0)
    assert timed(digest, day(100_000), under).transitions == ()
    assert decisions.demote(digest, day(9), under).memory.status is MemoryStatus.ARCHIVED
    replaced = digest.model_copy(update={"status": MemoryStatus.SUPERSEDED})
    gone = settle(replaced, day(9), ERASING).memory
    assert gone is not None
    assert settle(gone, day(100), ERASING).memory is None


def test_a_box_fades_as_the_turns_in_it_do() -> None:
    """It says nothing that memories say: it is the trace of a talk, and gets old with it."""
    assert after(semantic(form=MemoryForm.BOX), day(1000)).status is MemoryStatus.ARCHIVED


def test_a_turn_that_is_kept_is_noted_as_looked_at() -> None:
    """Nothing happens to it, and it is not due until it is looked at again."""
    book, turn = rulebook(ERASING, "default"), episode(status="archived", archived_at=day(2))
    assert book.settle(turn, day(40)).memory is None
    settled = book.settle(turn, day(40), erasing=False)
    kept = settled.memory
    assert kept is not None
    assert settled.transitions == ()
    assert kept.status is MemoryStatus.ARCHIVED
    assert review_at(kept, ERASING) == day(41)


def test_looking_ahead_counts_each_step_from_its_own_moment() -> None:
    """Archived after ten weeks, a turn is erased thirty days later; overdue, it begins today."""
    book, turn = rulebook(ERASING, "default"), episode()
    assert book.settle(turn, day(98), since=day(1)).memory is not None
    steps = book.settle(turn, day(101), since=day(1)).transitions
    assert [step.rule for step in steps] == ["grown_stale", "retention", "erase"]
    assert "for 69.1 days since the last use" in steps[1].why
    late = book.settle(turn, day(101), since=day(100)).memory
    assert late is not None
    assert late.archived_at == day(100)
    assert book.settle(turn, day(131), since=day(100)).memory is None
    # As of a moment that is past: judged as of then.
    past = book.settle(turn, day(80), since=day(100)).memory
    assert past is not None
    assert past.archived_at == day(80)


def test_a_memory_leaves_by_the_rule_that_comes_first() -> None:
    """By its own date, or else by fading; never where it is protected, and not once more."""
    book, turn = rulebook(ERASING, "default"), episode()
    assert book.leaves_at(episode(expires_at=day(2))) == day(2)
    fading = book.leaves_at(turn)
    assert fading is not None
    assert after(turn, fading - HOUR, ERASING).status is MemoryStatus.ACTIVE
    assert after(turn, fading, ERASING).status is MemoryStatus.ARCHIVED
    assert book.leaves_at(decisions.protect(turn, T0, ERASING).memory) is None
    assert book.leaves_at(gone()) is None
    assert review_at(gone(), ERASING) is not None


def test_time_alone_never_erases() -> None:
    """By default whatever left stays for ever, and is never due again."""
    for memory in (episode(), semantic(confidence={"extraction": 0.1}), negation()):
        left = after(memory, day(5000))
        assert left.status in {MemoryStatus.ARCHIVED, MemoryStatus.EXPIRED}
        assert left.lifecycle is LifecycleState.ARCHIVED
        assert review_at(left, RULES) is None


def test_what_was_replaced_is_erased_only_by_the_setting() -> None:
    """With the setting its time counts from when a pass first saw it replaced."""
    assert review_at(superseded(), RULES) is None
    seen = after(superseded(), day(3), ERASING)
    assert seen.archived_at == day(3)
    assert review_at(seen, ERASING) == day(33)
    assert timed(seen, day(33), ERASING).memory is None


def test_open_commitments_and_confirmed_speculation_stay() -> None:
    """An open commitment has no end, and is never stale; a second turn saves speculation."""
    weak = {"method": "inferred", "contradictions": 9}
    for under in (RULES, ENERGY, rules(expiry={"demote_below": 0.9})):
        kept = after(semantic(category="commitment", confidence=weak), day(9000), under)
        assert (kept.status, kept.lifecycle) == (MemoryStatus.ACTIVE, None)
    twice = semantic(confidence={"extraction": 0.2, "supporting_episodes": 2})
    assert after(twice, day(31)).status is MemoryStatus.ACTIVE


def test_a_promise_that_is_kept_after_years_leaves_ninety_days_later() -> None:
    """Its fading counts from when it ended, not from when it was made."""
    kept = decisions.resolve(semantic(category="commitment"), Resolution.FULFILLED, day(2000))
    assert after(kept.memory, day(2089)).status is MemoryStatus.ACTIVE
    assert after(kept.memory, day(2091)).status is MemoryStatus.ARCHIVED


@pytest.mark.parametrize(
    "changes",
    [
        {"importance": 0.3},
        {"access_count": 3},
        {"category": "correction"},
        {"category": "commitment"},
        {"category": "preference"},
        {"category": "decision"},
        {"category": "principle"},
        {"created_at": day(1)},
    ],
    ids=str,
)
def test_archival_needs_all_its_conditions(changes: dict[str, object]) -> None:
    """Off by default; where it is on, one condition that fails spares the memory."""
    plain, now = semantic(importance=0.2), day(90.5)
    spared = type(plain).model_validate({**dict(plain), **changes})
    assert after(plain, now).status is MemoryStatus.ACTIVE
    assert after(plain, now, ARCHIVAL).status is MemoryStatus.ARCHIVED
    assert after(spared, now, ARCHIVAL).status is MemoryStatus.ACTIVE


def test_placement_is_off_unless_asked_for() -> None:
    """Switched off, nothing moves, in neither direction."""
    assert after(episode(), day(45)).placement is None
    frozen = recalled(cold(), day(46), 3)
    assert after(frozen, day(46)).placement is Placement.COLD
    assert after(episode(), day(29), PLACING).placement is None


def test_ephemeral_memories_harden_only_by_the_user() -> None:
    """Being used or told again does not validate them; a confirmation does."""
    brief = semantic(expires_at=day(50), confidence={"supporting_episodes": 3})
    assert after(recalled(brief, T0), T0).lifecycle is None
    assert decisions.confirm(brief, T0, RULES).memory.lifecycle is LifecycleState.VALIDATED


def test_the_page_prints_the_table_that_runs() -> None:
    """docs/lifecycle.md has every row as the code has it."""
    text = (DOCS / "lifecycle.md").read_text("utf-8")
    again = "run: uv run python docs/generate_lifecycle.py"
    assert text == page_maker("lifecycle").page(text), again
    assert all(f"| `{row.name}` |" in text for row in TABLE)
