"""Knowledge becomes a habit; memories from elsewhere."""

from __future__ import annotations

from datetime import timedelta

import pytest

from engram.domain.memories import (
    DerivedMemory,
    LifecycleState,
    LinkKind,
    MemoryForm,
    MemoryStatus,
    ProceduralMemory,
    Provenance,
    SemanticMemory,
    Slot,
    Tier,
    Vitals,
)
from engram.lifecycle.decisions import dispute, protect, settle
from engram.lifecycle.links import MAX_LINKS, Observed, linked
from engram.lifecycle.policies import Energy
from engram.lifecycle.promotion import following, is_habit, promotable, promoted, trigger_context
from engram.transfer.memories import migrated
from tests.support.lifecycle_memories import ENERGY, RULES, T0, day, episode, habit, rules, semantic

READY = {"selectivity": 0.5, "consolidation_passes": 2}


def ready(content: str = "The user always drinks tea in the morning.") -> SemanticMemory:
    """Knowledge that has earned it."""
    return semantic(content, **READY)


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({"selectivity": 0.4}, "selectivity 0.5 (is 0.4)"),
        ({"consolidation_passes": 1}, "2 passes (has 1)"),
        ({"content": "The user lives in Lisbon."}, "a behavioural pattern"),
        ({"status": "archived"}, "active (is archived)"),
        ({"form": "summary"}, "a statement (is a summary)"),
        ({"disputed_with": ("x",)}, "not disputed"),
        ({"expires_at": day(9)}, "not ephemeral"),
        ({"category": "commitment"}, "no commitment"),
        ({"vitals": Vitals(refused_at=T0)}, "not denied when it was looked at"),
    ],
)
def test_promotion_needs_all_its_conditions(changes: dict[str, object], missing: str) -> None:
    """One condition that fails is named, and stands in the way."""
    assert promotable(ready(), T0, RULES)
    lacking = SemanticMemory.model_validate({**dict(ready()), **changes})
    assert promotable(lacking, T0, RULES).missing == (missing,)


def test_promotion_needs_confidence_at_that_time() -> None:
    """0.7 of the composite, which falls when nothing confirms."""
    inferred = semantic(ready().content, confidence={"method": "inferred"}, **READY)
    assert promotable(inferred, T0, RULES).missing == ("confidence 0.7 (is 0.60)",)
    assert promotable(ready(), day(500), RULES).missing == ("confidence 0.7 (is 0.64)",)
    assert promotable(inferred, T0, rules(promotion={"confidence": 0.6}))
    assert promotable(inferred, T0, RULES, forced=True)


@pytest.mark.parametrize(
    ("content", "habit"),
    [
        ("The user prefers tea to coffee.", True),
        ("The user always walks to work.", True),
        ("The user tends to answer late.", True),
        ("The user goes running every Sunday.", True),
        ("The user moved to Lisbon.", False),
        ("The user has a dog called Rex.", False),
    ],
)
def test_behavioural_patterns(content: str, habit: bool) -> None:
    """Prefers, always, tends to, every Sunday: a pattern; what is or was: none."""
    assert is_habit(content) is habit


@pytest.mark.parametrize(
    "words",
    [
        *("always", "usually", "regularly", "often", "never", "seldom", "whenever"),
        *("every day", "every month", "every year", "every time", "every Monday", "every Sunday"),
        *("on Mondays", "on Sundays", "prefers", "likes to", "tends to", "makes a habit of"),
        *("makes it a habit of", "in the habit of", "would rather", "insists on", "avoids"),
    ],
)
def test_each_word_for_a_rule_is_known(words: str) -> None:
    """As a word of its own, in small or capital letters; not as a part of another."""
    assert is_habit(f"The user {words} something.")
    assert is_habit(f"{words.capitalize()} something.")
    assert is_habit(words.upper())
    assert not is_habit(f"The user x{words}x something.")


@pytest.mark.parametrize(
    "begin",
    [
        *("when", "whenever", "if", "before", "after", "while", "during", "every", "each time"),
        *("at", "on", "in the", "for"),
    ],
)
def test_each_word_for_an_occasion_begins_a_trigger(begin: str) -> None:
    """From that word to the end of its clause, as it is written; not as a part of another."""
    assert trigger_context(semantic(f"Reads {begin} it rains ; likes it.")) == f"{begin} it rains"
    assert trigger_context(semantic(f"{begin.upper()} RAIN, reads.")) == f"{begin.upper()} RAIN"
    assert trigger_context(semantic(f"Reads x{begin}x rain.")) == f"Reads x{begin}x rain."


def test_thresholds_are_enough() -> None:
    """What reaches a threshold exactly has reached it; more is as good."""
    score = ready().confidence.score(T0)
    assert promotable(ready(), T0, rules(promotion={"confidence": score}))
    unsure = rules(weights={"extraction": 0.05, "corroboration": 0.7})
    assert promotable(ready(), T0, unsure).missing == ("confidence 0.7 (is 0.53)",)
    more = ready().model_copy(update={"selectivity": 0.9, "consolidation_passes": 7})
    assert promotable(more, T0, RULES)


def test_force_does_not_promote_what_makes_no_sense() -> None:
    """Earning it can be skipped by hand; being there, being one statement and undisputed not."""
    plain = semantic("The user lives in Lisbon.", category="commitment", expires_at=day(9))
    assert promotable(plain, T0, RULES, forced=True)
    senseless = plain.model_copy(
        update={
            "status": MemoryStatus.ARCHIVED,
            "form": MemoryForm.SUMMARY,
            "disputed_with": ("x",),
            "links": promoted(ready(), T0, RULES).source.links,
        }
    )
    assert promotable(senseless, T0, RULES, forced=True).missing == (
        *("active (is archived)", "a statement (is a summary)", "not disputed"),
        "not promoted already",
    )


def test_a_habit_keeps_what_is_known_of_its_source() -> None:
    """Everything that says whose it is, where from, how sure and since when is the same."""
    source = ready().model_copy(
        update={
            "namespace": "work",
            "user_id": "bo",
            "session_id": "s7",
            "importance": 0.9,
            "tags": ("drinks",),
            "metadata": {"app": "diary"},
            "expires_at": day(40),
            "is_test": True,
            "provenance": Provenance(workflow_id="w", run_id="3"),
            "known_at": day(-3),
            "event_at": day(-4),
            "valid_from": day(-5),
            "generation": 2,
        }
    )
    made = promoted(source, day(10), RULES).habit
    for name in (
        *("namespace", "user_id", "content", "known_at", "session_id", "importance", "tags"),
        *("is_test", "provenance", "source_episode_ids", "event_at", "confidence", "identity"),
        *("generation", "valid_from", "metadata", "expires_at"),
    ):
        assert getattr(made, name) == getattr(source, name), name
    assert made.created_at == made.derived_at == day(10)
    assert made.vitals == Vitals(promoted_from=source.id, tier=Tier.LONG_TERM)
    (link,) = made.links
    # As old and as fresh as the knowledge: promoting tells nothing new.
    assert (link.first_seen, link.last_seen) == (day(-3), source.confidence.last_confirmed)
    assert link.confidence == 1.0
    (link,) = promoted(source, day(10), RULES).source.links
    # As old and as fresh as the knowledge: promoting tells nothing new.
    assert (link.first_seen, link.last_seen) == (day(-3), source.confidence.last_confirmed)
    assert link.confidence == 1.0
    ids = {made.id} | {
        promoted(source.model_copy(update=change), day(10), RULES).habit.id
        for change in ({"namespace": "home"}, {"user_id": "cy"}, {"generation": 3})
    }
    assert len(ids | {promoted(semantic("Other."), T0, RULES).habit.id}) == 5


def test_a_habit_is_found_again_by_later_versions() -> None:
    """Its id follows from the knowledge alone; another way to make it would double every habit."""
    assert promoted(ready(), day(3), RULES).habit.id == "2adfebaf-c8e1-5290-8f96-6881e11c209e"


def test_a_habit_names_who_made_it() -> None:
    """Promoted by an operator's hand, its provenance is that, and not the source's."""
    by_hand = Provenance(workflow_id="by hand")
    made = promoted(ready(), T0, RULES, by_hand)
    assert made.habit.provenance == by_hand
    assert made.source.provenance == ready().provenance


def test_promoting_again_at_the_same_moment_is_noted() -> None:
    """The attempt is counted beside what else was written of its life; there is one link."""
    lived = ready().model_copy(update={"vitals": Vitals(energy=3.0, promotion_attempts=4)})
    once = promoted(lived, day(1), RULES).source
    assert once.vitals == Vitals(energy=3.0, promotion_attempts=5, last_promotion=day(1))
    twice = promoted(once, day(1), RULES).source
    assert twice.vitals == Vitals(energy=3.0, promotion_attempts=6, last_promotion=day(1))
    assert twice.links == once.links


def test_a_promotion_links_both_and_makes_no_duplicates() -> None:
    """The habit names its source, when it applies, and is the same however often it is made."""
    first, again = (promoted(ready(), day(n), RULES) for n in (10, 20))
    assert first.habit.id == again.habit.id
    assert first.habit.trigger_context == "in the morning"
    assert first.habit.lifecycle is LifecycleState.VALIDATED
    assert first.habit.vitals is not None
    assert first.habit.vitals.promoted_from == first.source.id
    (to,), (back,) = first.source.links, first.habit.links
    assert (to.target_id, to.kind) == (first.habit.id, LinkKind.PROMOTED_TO)
    assert (back.target_id, back.kind) == (first.source.id, LinkKind.PROMOTED_TO)
    assert first.source.vitals is not None
    assert (first.source.vitals.last_promotion, first.source.vitals.promotion_attempts) == (
        day(10),
        1,
    )
    assert promotable(first.source, day(11), RULES).missing == ("not promoted already",)


def test_knowledge_with_all_the_links_it_may_have_is_promoted_once() -> None:
    """The link to its habit has room past the bound, so that no pass promotes it again."""
    full: DerivedMemory = ready()
    for number in range(MAX_LINKS):
        full = linked(full, f"m{number}", LinkKind.RELATED, 0.5, Observed.at(T0)) or full
    assert isinstance(full, SemanticMemory)
    assert len(full.links) == MAX_LINKS
    assert promotable(full, T0, RULES)
    done = promoted(full, T0, RULES)
    assert not promotable(done.source, T0, RULES)
    assert {link.target_id for link in full.links} < {link.target_id for link in done.source.links}
    assert linked(done.source, "one more", LinkKind.RELATED, 0.5, Observed.at(T0)) is None


def test_from_the_short_term_tier_it_crystallises() -> None:
    """The link says which of the two it was."""
    early = rules(energy={"conclusion_tier": "short_term"})
    assert promoted(ready(), T0, early).source.links[0].kind is LinkKind.CRYSTALLIZED_INTO


def test_the_trigger_falls_back_to_what_it_is_about() -> None:
    """Without a clause of its own: the slot's object, the entities, the words themselves."""
    slot = Slot(subject="user", predicate="prefers", object="tea")
    plain = semantic("The user prefers tea.")
    assert trigger_context(plain.model_copy(update={"slot": slot})) == "tea"
    assert trigger_context(plain.model_copy(update={"entities": ("Ada", "Rex")})) == "Ada, Rex"
    assert trigger_context(plain) == "The user prefers tea."
    assert trigger_context(semantic("Whenever it rains, the user reads.")) == "Whenever it rains"


def test_a_habit_follows_its_source() -> None:
    """It ends when what it came from is replaced, and comes back with it."""
    made = promoted(ready(), day(1), RULES)
    assert following(made.habit, made.source) is None
    over = made.source.model_copy(
        update={
            "status": MemoryStatus.SUPERSEDED,
            "superseded_by": "x",
            "valid_to": day(5),
            "superseded_known_at": day(6),
        }
    )
    ended = following(made.habit, over)
    assert ended is not None
    assert (ended.status, ended.superseded_by) == (MemoryStatus.SUPERSEDED, "x")
    assert (ended.valid_to, ended.superseded_known_at) == (day(5), day(6))
    assert following(ended, over) is None
    assert following(made.habit.model_copy(update={"vitals": None}), over) is None
    assert following(habit(), over) is None
    back = following(ended, made.source)
    assert back is not None
    assert (back.status, back.valid_to) == (MemoryStatus.ACTIVE, None)
    assert following(made.habit, semantic("something else")) is None


def test_a_habit_is_as_true_as_its_source_and_rests_on_the_same_turns() -> None:
    """What is told again of the knowledge is told of the habit; refuted, neither comes back."""
    made = promoted(ready(), day(1), RULES)
    confidence = made.source.confidence.model_copy(
        update={"supporting_episodes": 2, "last_confirmed": day(9)}
    )
    sources = (*made.source.source_episode_ids, "another")
    told = {"source_episode_ids": sources, "confidence": confidence, "known_at": day(-5)}
    again = made.source.model_copy(update=told)
    more = following(made.habit, again)
    assert more is not None
    assert (more.source_episode_ids, more.known_at) == (sources, day(-5))
    assert more.confidence == confidence
    assert following(more, again) is None
    refuted = dispute(again, day(10), RULES).memory
    assert isinstance(refuted, SemanticMemory)
    gone = following(more, refuted)
    assert gone is not None
    assert (gone.status, gone.refuted_at) == (MemoryStatus.SUPERSEDED, day(10))
    assert following(gone, refuted) is None
    aside = again.model_copy(update={"status": MemoryStatus.ARCHIVED, "archived_at": day(11)})
    still = following(gone, aside)
    assert still is not None
    assert still.status is MemoryStatus.SUPERSEDED


def test_a_habit_has_what_its_source_has_by_now() -> None:
    """Told again, the knowledge lasts, matters and is labelled otherwise; so is the habit."""
    made = promoted(ready().model_copy(update={"expires_at": day(9)}), day(1), RULES)
    now = {"expires_at": None, "importance": 0.9, "tags": ("drinks",), "metadata": {"app": "x"}}
    told = made.source.model_copy(update=now)
    after = following(made.habit, told)
    assert after is not None
    assert {name: getattr(after, name) for name in now} == now
    assert following(after, told) is None
    kept = protect(made.habit, day(2), RULES).memory
    assert isinstance(kept, ProceduralMemory)
    assert following(kept, made.source) is None


def test_a_habit_has_from_its_source_when_an_old_turn_was_brought_in() -> None:
    """What tells when it was told fades the habit as late as the knowledge."""
    made = promoted(ready(), day(1), RULES)
    assert made.source.vitals is not None
    vitals = made.source.vitals.model_copy(update={"told_at": day(7)})
    after = following(made.habit, made.source.model_copy(update={"vitals": vitals}))
    assert after is not None
    assert after.vitals is not None
    assert (after.vitals.told_at, after.vitals.promoted_from) == (day(7), made.source.id)
    assert following(after, made.source.model_copy(update={"vitals": vitals})) is None
    none_told = following(after, made.source.model_copy(update={"vitals": None}))
    assert none_told is not None
    assert none_told.vitals is not None
    assert none_told.vitals.told_at is None


def test_an_archived_habit_comes_back_when_its_source_is_told_again() -> None:
    """Told before it left, it stays away; an archived source brings nothing back."""
    made = promoted(ready(), day(1), RULES)
    left = {"status": MemoryStatus.ARCHIVED, "archived_at": day(20)}
    habit_then = made.habit.model_copy(update=left)
    assert following(habit_then, made.source) is None
    confidence = made.source.confidence.model_copy(update={"last_confirmed": day(21)})
    told = made.source.model_copy(update={"confidence": confidence})
    back = following(habit_then, told)
    assert back is not None
    assert (back.status, back.archived_at) == (MemoryStatus.ACTIVE, None)
    still = following(habit_then, told.model_copy(update=left))
    assert still is not None
    assert still.status is MemoryStatus.ARCHIVED


def test_migrated_memories_had_a_life_before() -> None:
    """Long-term, energy 10, one access, last accessed when known if unknown."""
    old = episode(known_at=T0 - timedelta(days=700), timestamp=T0 - timedelta(days=700))
    moved = migrated(old, T0, instance_id="elsewhere")
    assert moved.vitals is not None
    assert (moved.vitals.tier, moved.vitals.energy) == (Tier.LONG_TERM, 10.0)
    assert moved.vitals.instance_id == "elsewhere"
    assert (moved.access_count, moved.last_accessed_at) == (1, old.known_at)
    assert migrated(old, T0, last_accessed_at=day(-3)).last_accessed_at == day(-3)
    assert Energy(ENERGY.energy).value(moved, T0) == 10
    assert migrated(semantic(), T0).confidence.seed == 0.25
    for under in (RULES, ENERGY):
        kept = settle(moved, day(60), under).memory
        assert kept is not None
        assert kept.status is MemoryStatus.ACTIVE
