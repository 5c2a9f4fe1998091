"""Looking at memories' lives: status, energy, promotions, health, validation, repair."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from engram.domain.memories import (
    AnyMemory,
    Category,
    DerivedMemory,
    LifecycleState,
    Link,
    LinkKind,
    MemoryStatus,
    MemoryType,
    PolicyClass,
    Resolution,
    SemanticMemory,
    Vitals,
)
from engram.embedding.choice import make_embedder
from engram.language.negation_scope import covers
from engram.lifecycle.checks import Ailment, Problem
from engram.lifecycle.policies import trust
from engram.lifecycle.promotion import promotable
from engram.operations import admin as ops
from engram.operations.lifecycle import ACTIONS, DECAY, PROMOTE, RunDecay, RunPass
from engram.operations.memories import ActOn
from engram.operations.registry import AboutMemory
from engram.ports import StoreInfo
from engram.recall.pipeline import Recaller
from engram.recall.request import RecallRequest
from tests.support.clock import NOW
from tests.support.handled_store import ADA, HandledStore, ago
from tests.support.lifecycle_workers import knowledge, turn

REAL = ops.OfPopulation()
TESTS = ops.OfPopulation(test_only=True)
NOWHERE = "6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11"


async def told(handled: HandledStore, words: str, days: float = 1, **more: Any) -> SemanticMemory:
    """A conclusion and the turn it was drawn from."""
    memory = knowledge(ADA, words, ago(days), **more)
    await handled.keep(turn(ADA, words, ago(days), is_test=memory.is_test), memory)
    return memory


def link(target: str, kind: LinkKind = LinkKind.RELATED) -> Link:
    """A link."""
    return Link(target_id=target, kind=kind, first_seen=ago(1), last_seen=ago(1))


async def problems(handled: HandledStore) -> Counter[str]:
    """What validating finds."""
    report = await handled.ask(ops.VALIDATE, REAL)
    return Counter(report.counts)


async def ailments(handled: HandledStore) -> set[Ailment]:
    """What is not well."""
    return {one.ailment for one in (await handled.ask(ops.HEALTH, REAL)).diagnoses}


async def test_status_counts_real_and_test_memories_apart(handled: HandledStore) -> None:
    """By type and status, what is due, what waits."""
    await told(handled, "The user likes tea")
    await told(handled, "a test", is_test=True)
    await handled.keep(turn(ADA, "old", ago(200)))
    report = await handled.ask(ops.STATUS, REAL)
    assert report.policy == "retention"
    assert report.types[MemoryType.EPISODIC].memories == 2
    assert report.types[MemoryType.EPISODIC].due == 1
    assert report.types[MemoryType.SEMANTIC].by_status == {MemoryStatus.ACTIVE: 1}
    assert (report.test_memories, report.waiting) == (2, 2)
    assert (await handled.ask(ops.STATUS, TESTS)).types[MemoryType.EPISODIC].memories == 1


async def test_energy_is_told_by_tier_and_the_faintest_first(handled: HandledStore) -> None:
    """What leaves next comes first."""
    old, new = turn(ADA, "old", ago(60)), turn(ADA, "new", ago(1))
    await handled.keep(old, new)
    report = await handled.ask(ops.ENERGY, REAL)
    assert [one.memory_id for one in report.faintest] == [old.id, new.id]
    (tier,) = report.tiers
    assert (tier.tier, tier.memories) == ("working", 2)
    assert tier.lowest <= tier.mean <= tier.highest
    assert report.faintest[0].leaves_at is not None


async def test_when_a_memory_leaves_is_told_by_the_rule_that_takes_it(
    handled: HandledStore,
) -> None:
    """By its own end or a resolution where that is first; never what is protected or has left."""
    fades, ends, kept, gone, done = (
        turn(ADA, "fades", ago(1)),
        turn(ADA, "ends", ago(1), expires_at=ago(-3)),
        turn(ADA, "kept", ago(1), policy_class=PolicyClass.PROTECTED),
        turn(ADA, "gone", ago(90), status=MemoryStatus.ARCHIVED, archived_at=ago(1)),
        knowledge(
            ADA,
            "The user promised to call Bo",
            ago(1),
            category=Category.COMMITMENT,
            resolution=Resolution.FULFILLED,
            resolved_at=ago(1),
        ),
    )
    await handled.keep(fades, ends, kept, gone, done)

    async def leaves(memory: AnyMemory) -> float | None:
        found = await handled.ask(ops.INSPECT, AboutMemory(memory_id=memory.id))
        return None if found.leaves_at is None else (found.leaves_at - NOW) / timedelta(days=1)

    assert await leaves(ends) == 3
    assert await leaves(done) == 89
    assert await leaves(fades) == pytest.approx(68, abs=0.1)
    assert (await leaves(kept), await leaves(gone)) == (None, None)
    report = await handled.ask(ops.ENERGY, REAL)
    order = [one.memory_id for one in report.faintest]
    assert order == [ends.id, fades.id, done.id, kept.id]
    assert [one.leaves_at is None for one in report.faintest] == [False, False, False, True]


async def test_what_has_left_says_by_which_rule(handled: HandledStore) -> None:
    """Whether time or the user took it; what comes back says nothing of that any more."""
    faded, aside, denied = (
        knowledge(ADA, f"The user likes {what}", ago(4_000)) for what in ("tea", "milk", "rum")
    )
    await handled.keep(faded, aside, denied)
    await handled.ask(ACTIONS["demote"].operation, ActOn(memory_id=aside.id))
    await handled.ask(ACTIONS["dispute"].operation, ActOn(memory_id=denied.id))
    await handled.ask(DECAY, RunDecay())

    async def why(memory: AnyMemory) -> list[str]:
        found = await handled.ask(ops.INSPECT, AboutMemory(memory_id=memory.id))
        return [one for one in found.explanations if one.startswith("left by")]

    assert await why(faded) == [
        "left by retention: retention score below `retention.archive_below`"
    ]
    assert await why(aside) == ["left by demoted_archived: archived by hand; not if protected"]
    (said,) = await why(denied)
    assert said.startswith("left by disputed_superseded: the user disputes it")
    for memory in (faded, aside, denied):
        await handled.ask(ACTIONS["confirm"].operation, ActOn(memory_id=memory.id))
        assert await why(memory) == []


async def test_promotions_name_what_is_ready_and_what_lacks_little(handled: HandledStore) -> None:
    """A candidate says what it lacks."""
    earned = {"selectivity": 0.6, "consolidation_passes": 3}
    ready = await told(handled, "The user always drinks tea", **earned)
    nearly = await told(handled, "The user prefers dark mode", selectivity=0.6)
    await told(handled, "The user lives in Lisbon")
    report = await handled.ask(ops.PROMOTIONS, REAL)
    assert {one.memory_id: len(one.missing) for one in report.candidates} == {
        ready.id: 0,
        nearly.id: 1,
    }
    assert report.habits == 0


async def test_what_was_promoted_is_no_candidate_any_more(handled: HandledStore) -> None:
    """It stands among the habits, and lacks nothing."""
    earned = {"selectivity": 0.6, "consolidation_passes": 3}
    await told(handled, "The user always drinks tea", **earned)
    assert len((await handled.ask(ops.PROMOTIONS, REAL)).candidates) == 1
    await handled.ask(PROMOTE, RunPass())
    report = await handled.ask(ops.PROMOTIONS, REAL)
    assert (report.habits, report.candidates) == (1, ())


async def test_inspecting_explains_every_number(handled: HandledStore) -> None:
    """States, values, sentences, links and problems of one memory."""
    memory = await told(handled, "The user likes tea", days=400, links=(link(NOWHERE),))
    found = await handled.ask(ops.INSPECT, AboutMemory(memory_id=memory.id))
    assert found.states["lifecycle"] == "candidate"
    assert set(found.values) == {"quality", "durable", "heat", "decay", "energy"}
    assert any("base" in sentence for sentence in found.explanations)
    assert found.next_step is not None
    assert [(x.target_id, x.exists) for x in found.links] == [(NOWHERE, False)]
    assert {one.problem for one in found.problems} == {Problem.BROKEN_LINK}
    assert found.missing_sources == ()


async def test_a_sound_memory_is_valid_and_healthy(handled: HandledStore) -> None:
    """Nothing is found where nothing is wrong."""
    await told(handled, "The user likes tea")
    await told(handled, "The user likes coffee")
    assert await problems(handled) == {}
    assert await ailments(handled) == set()


async def test_every_problem_is_found_and_mended_once(handled: HandledStore) -> None:
    """Orphans, broken and one-way links, duplicates, bad fields; mending twice changes nothing."""
    good = await told(handled, "The user likes tea")
    orphan = knowledge(ADA, "The user likes mate", ago(3))
    one_way = await told(handled, "The user likes rooibos", links=(link(good.id), link(NOWHERE)))
    twin = await told(
        handled, "the user likes TEA!", days=2, identity="other", id=NOWHERE[:-1] + "2"
    )
    bad = await told(handled, "The user likes cocoa", status=MemoryStatus.ARCHIVED, access_count=4)
    await handled.keep(orphan)
    assert await problems(handled) == {
        "orphan": 1,
        "broken_link": 1,
        "one_way_link": 1,
        "duplicate": 1,
        "bad_field": 2,
    }
    tried = await handled.ask(ops.REPAIR, ActOn(memory_id=orphan.id, dry_run=True))
    assert (len(tried.found), tried.mended) == (1, ())
    for memory in (orphan, one_way, twin, bad):
        report = await handled.ask(ops.REPAIR, ActOn(memory_id=memory.id))
        assert report.mended == report.found
    assert await problems(handled) == {}
    aside = await handled.now_is(orphan)
    assert (aside.status, aside.lifecycle) == (MemoryStatus.ARCHIVED, LifecycleState.ARCHIVED)
    pair = [await handled.now_is(good), await handled.now_is(twin)]
    assert {one.status for one in pair} == {MemoryStatus.ACTIVE, MemoryStatus.SUPERSEDED}
    before = {m.id: (await handled.now_is(m)).revision for m in (orphan, one_way, twin, bad, good)}
    for memory_id in before:
        await handled.ask(ops.REPAIR, ActOn(memory_id=memory_id))
    assert {
        m.id: (await handled.now_is(m)).revision for m in (orphan, one_way, twin, bad, good)
    } == (before)


async def test_duplicates_become_one_with_all_sources(handled: HandledStore) -> None:
    """The one that was known first is kept, and gains what the other had."""
    first = await told(
        handled, "The user likes tea", days=9, access_count=2, last_accessed_at=ago(3)
    )
    twin = await told(
        handled,
        "the user likes TEA!",
        days=2,
        identity="other",
        id=NOWHERE,
        access_count=1,
        last_accessed_at=ago(1),
    )
    await handled.ask(ops.REPAIR, ActOn(memory_id=twin.id))
    kept, other = await handled.now_is(first), await handled.now_is(twin)
    assert isinstance(kept, DerivedMemory)
    assert isinstance(other, DerivedMemory)
    assert set(kept.source_episode_ids) == {*first.source_episode_ids, *twin.source_episode_ids}
    assert (kept.access_count, kept.last_accessed_at) == (3, ago(1))
    assert kept.confidence.supporting_episodes == 2
    assert (other.status, other.superseded_by) == (MemoryStatus.SUPERSEDED, first.id)


async def test_health_finds_wrong_energies_and_orphans(handled: HandledStore) -> None:
    """Each is named with examples and what to look at."""
    await told(handled, "wrong", vitals=Vitals(energy=9.0, energy_at=ago(1), peak_energy=2.0))
    await handled.keep(knowledge(ADA, "orphan", ago(1)))
    report = await handled.ask(ops.HEALTH, REAL)
    assert {one.ailment for one in report.diagnoses} == {
        Ailment.WRONG_ENERGIES,
        Ailment.ORPHANS,
    }
    assert all(one.examples and one.hint for one in report.diagnoses)


async def test_what_the_store_has_lost_is_told_before_anything_is_archived(
    handled: HandledStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who lost turns is sent to the backup, not to archiving the knowledge that is left."""
    await handled.keep(knowledge(ADA, "orphan", ago(1)))
    info = await handled.store.info()

    async def lost() -> StoreInfo:
        return replace(info, details={**info.details, "missing": 7})

    monkeypatch.setattr(handled.store, "info", lost)
    report = await handled.ask(ops.HEALTH, REAL)
    told = {one.ailment: one for one in report.diagnoses}
    assert told[Ailment.MISSING].memories == 7
    assert "backup" in told[Ailment.MISSING].hint
    assert "backup" in told[Ailment.ORPHANS].hint
    assert (await problems(handled))["missing"] == 7


async def test_health_finds_that_nothing_promotes(handled: HandledStore) -> None:
    """Something has long had what promotion asks for."""
    earned = {"selectivity": 0.6, "consolidation_passes": 3}
    await told(handled, "The user always drinks tea", days=40, **earned)
    assert await ailments(handled) == {Ailment.NOTHING_PROMOTES}


@pytest.mark.parametrize("share", [0.5, 0.9])
async def test_health_finds_that_everything_promotes(handled: HandledStore, share: float) -> None:
    """Only where nearly all that there is became a habit."""
    number = 200
    memories = [
        knowledge(
            ADA,
            f"The user always does thing {n}",
            ago(5),
            links=(link(NOWHERE, LinkKind.PROMOTED_TO),) if n < number * share else (),
        )
        for n in range(number)
    ]
    await handled.keep(*memories)
    assert (Ailment.EVERYTHING_PROMOTES in await ailments(handled)) == (share > 0.8)


@pytest.mark.parametrize(("left", "eager"), [(2, False), (9, True)])
async def test_health_finds_decay_that_is_too_eager(
    handled: HandledStore, left: int, eager: bool
) -> None:
    """Young memories should not leave."""
    gone = [
        turn(ADA, f"gone {n}", ago(3), status=MemoryStatus.ARCHIVED, archived_at=ago(1))
        for n in range(left)
    ]
    kept = [turn(ADA, f"kept {n}", ago(3)) for n in range(20)]
    await handled.keep(*gone, *kept)
    assert (Ailment.EAGER_DECAY in await ailments(handled)) == eager


async def test_what_ends_at_its_own_date_is_no_eager_decay(handled: HandledStore) -> None:
    """Turns that were kept for hours, as their application asked, are no sign of an illness."""
    ended = {"status": MemoryStatus.EXPIRED, "expires_at": ago(1), "expired_at": ago(1)}
    await handled.keep(
        *(turn(ADA, f"for today {n}", ago(2), **ended) for n in range(30)),
        *(turn(ADA, f"kept {n}", ago(2)) for n in range(20)),
    )
    assert await ailments(handled) == set()


async def test_a_recalled_memory_has_one_confidence(handled: HandledStore) -> None:
    """Answers, their bound and explanation, inspection and promotion all count the recall."""
    told = knowledge(
        ADA, "The user always drinks tea", ago(300), access_count=1, last_accessed_at=ago(1)
    )
    told = told.model_copy(update={"selectivity": 1.0, "consolidation_passes": 9})
    await handled.keep(told)
    rules, embedder = handled.settings.lifecycle_rules, make_embedder("wordllama")
    sure = trust(told, NOW, rules)
    assert sure > told.confidence.score(NOW) + 0.05
    recaller = Recaller(handled.store, embedder, rules.weights, handled.settings, covers)
    asked = RecallRequest.of(
        "tea", settings=handled.settings, min_confidence=sure - 0.01, explain=True
    )
    (hit,) = await recaller.recall(ADA, asked, NOW)
    assert hit.confidence == sure
    assert hit.explanation is not None
    shown = (await handled.ask(ops.INSPECT, AboutMemory(memory_id=told.id))).explanations
    assert hit.explanation.confidence == shown[-1]
    assert shown[-1].startswith(f"{sure:.2f}: ")
    assert "last confirmed 10 months ago, recalled 1 day ago" in shown[-1]
    wanting = rules.model_copy(
        update={"promotion": rules.promotion.model_copy(update={"confidence": sure - 0.01})}
    )
    assert promotable(told, NOW, wanting).missing == ()
