"""Decay passes on a real Temporal server and the real engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError

from engram.contracts import names
from engram.contracts.lifecycle import (
    Change,
    DecayReport,
    FindDueUsersInput,
    MaintenanceProgress,
    MaintenanceReport,
    PassKind,
    RuleCount,
    WalkInput,
    WalkPosition,
)
from engram.contracts.messages import Population
from engram.digests.stage import Digests
from engram.digests.versions import Composer
from engram.domain.memories import (
    AnyMemory,
    Category,
    DerivedMemory,
    LifecycleState,
    Link,
    LinkKind,
    MemoryForm,
    MemoryStatus,
    MemoryType,
    PolicyClass,
    SemanticMemory,
)
from engram.domain.scope import Scope
from engram.domain.slots import slot_of
from engram.embedding.choice import make_embedder
from engram.errors import StorageUnavailable, UnknownFailure
from engram.lifecycle.accesses import AccessLog
from engram.lifecycle.decisions import disputed, fingerprint
from engram.lifecycle.due import due_users
from engram.lifecycle.review import Reviewer
from engram.operations.digests import AboutSomebody
from engram.ports import Equals
from engram.settings import Settings
from engram.storage.edge import EdgeRepository
from engram.storage.payload import encode
from engram.temporal.passes import PassRunner
from tests.support.consolidation_workers import Faults
from tests.support.digested_memory import digests_of
from tests.support.lifecycle_workers import LifecycleUser, knowledge, lifecycle_workers, turn
from tests.support.recall_memories import negation
from tests.support.stores import worker_settings

NOW = datetime.now(UTC).replace(microsecond=0)


def ago(days: float) -> datetime:
    """So many days before the tests began."""
    return NOW - timedelta(days=days)


@pytest.fixture
def settings() -> Settings:
    """Small batches, so that passes need several."""
    return worker_settings(decay_batch=3)


async def test_what_is_due_leaves_and_everything_is_counted(lives: LifecycleUser) -> None:
    """Every step is counted by rule, and what is not due is not touched."""
    old = [turn(lives.scope, f"old {n}", ago(100)) for n in range(7)]
    stale = turn(lives.scope, "half gone", ago(50))
    fresh = turn(lives.scope, "fresh", ago(1))
    await lives.keep(*old, stale, fresh)
    report = await lives.passes.decay(lives.scope)
    assert report.reviewed == 8
    assert report.count("retention") == 7
    assert report.count("grown_stale") == 8
    assert {str(count) for count in report.transitions} == {
        "grown_stale: active -> stale (8)",
        "retention: active -> archived (7)",
    }
    assert {change.memory_id for change in report.changes} == {m.id for m in (*old, stale)}
    assert await lives.statuses(old) == {MemoryStatus.ARCHIVED}
    assert (await lives.now(stale)).status is MemoryStatus.ACTIVE
    assert (await lives.now(fresh)).revision == 0
    # Nothing is erased by time.
    assert await lives.store.count(lives.scope, MemoryType.EPISODIC) == 9


async def test_profiles_live_as_long_as_what_they_say(lives: LifecycleUser) -> None:
    """A profile outlasts its own age with what is kept, and goes without what leaves."""
    slot = slot_of("user", "lives in", "Porto")
    home = knowledge(lives.scope, "The user lives in Porto.", ago(500), slot=slot)
    kept = home.model_copy(update={"policy_class": PolicyClass.PROTECTED})
    tea = knowledge(
        lives.scope, "The user likes tea.", ago(500), slot=slot_of("user", "likes", "tea"),
        category=Category.PREFERENCE,
    )  # fmt: skip
    await lives.keep(kept, tea)
    digests = Digests(lives.store, make_embedder("wordllama"), lambda: uuid4().hex)
    composed = Composer(lives.scope, ago(500))
    await digests.knowledge(composed, [kept.id, tea.id], (), lives.settings.digests)
    await lives.passes.decay(lives.scope)
    assert (await lives.now(tea)).status is MemoryStatus.ARCHIVED
    profile = await digests_of(lives.store).profile(lives.scope, AboutSomebody())
    assert [line.text for line in profile.lines] == ["The user lives in Porto."]
    assert (await lives.passes.decay(lives.scope, dry_run=True)).reviewed == 0


async def test_a_second_pass_finds_nothing(lives: LifecycleUser) -> None:
    """What a pass has seen to is not due any more: the next one costs nothing and does nothing."""
    await lives.keep(*(turn(lives.scope, f"old {n}", ago(100)) for n in range(4)))
    await lives.passes.decay(lives.scope)
    again = await lives.passes.decay(lives.scope)
    assert (again.reviewed, again.transitions) == (0, ())


async def test_a_dry_run_says_it_all_and_writes_nothing(lives: LifecycleUser) -> None:
    """A dry run reports what the real pass then does; it can look ahead as well."""
    old = [turn(lives.scope, f"old {n}", ago(100)) for n in range(4)]
    later = turn(lives.scope, "later", ago(1))
    await lives.keep(*old, later)
    before = await lives.store.get(lives.scope, [m.id for m in (*old, later)])
    tried = await lives.passes.decay(lives.scope, dry_run=True)
    ahead = await lives.passes.decay(lives.scope, dry_run=True, at=NOW + timedelta(days=90))
    assert await lives.store.get(lives.scope, before) == before
    assert tried.dry_run
    assert tried.count("retention") == 4
    assert ahead.count("retention") == 5
    done = await lives.passes.decay(lives.scope)
    assert done.transitions == tried.transitions


async def test_what_expires_frees_what_it_contradicted_of_its_mark(lives: LifecycleUser) -> None:
    """In the same pass; what else the other contradicts, it goes on to contradict."""
    words = ("The user lives in Porto", "The user lives in Rome", "The user lives in Oslo")
    porto, rome, oslo = (knowledge(lives.scope, one, ago(1)) for one in words)
    over = disputed(porto, with_=[rome.id]).model_copy(update={"expires_at": ago(0.5)})
    await lives.keep(
        over, disputed(rome, with_=[porto.id, oslo.id]), disputed(oslo, with_=[rome.id])
    )
    report = await lives.passes.decay(lives.scope)
    assert report.reviewed == 1
    assert (await lives.now(porto)).status is MemoryStatus.EXPIRED
    left = await lives.now(rome)
    assert isinstance(left, SemanticMemory)
    assert left.disputed_with == (oslo.id,)
    assert left.confidence.contradictions == 1
    assert (await lives.now(oslo)).revision == 0


async def test_test_memories_are_looked_at_only_when_asked_for(lives: LifecycleUser) -> None:
    """Real and test memories never meet in a pass."""
    real = turn(lives.scope, "real", ago(100))
    test = turn(lives.scope, "test", ago(100), is_test=True)
    await lives.keep(real, test)
    report = await lives.passes.decay(lives.scope, population=Population.TEST)
    assert report.population is Population.TEST
    assert report.count("retention") == 1
    assert (await lives.now(test)).status is MemoryStatus.ARCHIVED
    assert (await lives.now(real)).status is MemoryStatus.ACTIVE
    await lives.passes.decay(lives.scope)
    assert (await lives.now(real)).status is MemoryStatus.ARCHIVED


async def test_other_rules_reach_every_memory(
    temporal_client: Client, store: EdgeRepository, settings: Settings
) -> None:
    """A change of settings or policy is seen by the fingerprint, whatever review_at says."""
    async with lifecycle_workers(temporal_client, store, settings) as lives:
        memories = [knowledge(lives.scope, f"I like tea {n}", ago(40 + n)) for n in range(5)]
        await lives.keep(*memories)
        assert (await lives.passes.decay(lives.scope)).reviewed == 0
    stricter = settings.model_copy(
        update={
            "lifecycle": settings.lifecycle.model_copy(
                update={
                    "retention": settings.lifecycle.retention.model_copy(
                        update={"semantic_days": 10.0}
                    )
                }
            )
        }
    )
    async with lifecycle_workers(temporal_client, store, stricter) as strict:
        found = await due_users(
            store,
            FindDueUsersInput(
                kind=PassKind.DECAY, now=NOW, rules=stricter.lifecycle_rules, most=10
            ),
        )
        assert lives.scope in found.users
        report = await strict.passes.decay(lives.scope)
        assert report.count("retention") == 5
        rules = stricter.lifecycle_rules
        for memory in memories:
            after = await strict.now(memory)
            assert after.policy_fingerprint == fingerprint(rules, lives.scope.namespace)
        assert (await strict.passes.decay(lives.scope)).reviewed == 0


async def test_a_namespace_can_change_its_policy(
    temporal_client: Client, store: EdgeRepository, settings: Settings
) -> None:
    """Memories of a namespace that goes over to energy are found though others keep retention."""
    async with lifecycle_workers(temporal_client, store, settings) as lives:
        stays = lives.scope
        moves = stays.model_copy(update={"namespace": "lively"})
        await lives.keep(turn(stays, "stays", ago(1)))
        await lives.keep(turn(moves, "moves", ago(1)), scope=moves)
    energetic = settings.model_copy(
        update={
            "lifecycle": settings.lifecycle.model_copy(update={"energy_namespaces": ("lively",)})
        }
    )
    asked = FindDueUsersInput(
        kind=PassKind.DECAY, now=NOW, rules=energetic.lifecycle_rules, most=10
    )
    assert (await due_users(store, asked)).users == (moves,)
    async with lifecycle_workers(temporal_client, store, energetic) as lively:
        report = await lively.passes.decay(moves)
        # A turn's energy in the working tier is gone within hours.
        assert report.count("energy") == 1
    assert (await due_users(store, asked)).users == ()


async def test_erasing_needs_the_explicit_setting(
    temporal_client: Client, store: EdgeRepository
) -> None:
    """Only with the retention setting does time remove memories, and then it says how many."""
    erasing = worker_settings(lifecycle={"expiry": {"erase_after_days": 10}})
    async with lifecycle_workers(temporal_client, store, erasing) as lives:
        gone = turn(
            lives.scope, "gone", ago(300), status=MemoryStatus.ARCHIVED, archived_at=ago(11)
        )
        kept = turn(lives.scope, "kept", ago(300), status=MemoryStatus.ARCHIVED, archived_at=ago(9))
        await lives.keep(gone, kept)
        tried = await lives.passes.decay(lives.scope, dry_run=True)
        assert tried.erased == 1
        report = await lives.passes.decay(lives.scope)
        assert report.erased == 1
        assert report.count("erase") == 1
        assert set(await lives.store.get(lives.scope, [gone.id, kept.id])) == {kept.id}


async def test_a_turn_is_erased_after_the_last_that_was_concluded_from_it(
    temporal_client: Client, store: EdgeRepository
) -> None:
    """Looked at once a day till then; what is erased leaves nothing behind that leads to it."""
    erasing = worker_settings(lifecycle={"expiry": {"erase_after_days": 10}})
    left = {"status": MemoryStatus.ARCHIVED, "archived_at": ago(11)}
    seen: dict[str, Any] = {"first_seen": ago(30), "last_seen": ago(30)}
    async with lifecycle_workers(temporal_client, store, erasing) as lives:
        said = turn(lives.scope, "I like tea", ago(30), **left)
        likes = knowledge(lives.scope, "The user likes tea", ago(30))
        goes = knowledge(lives.scope, "The user likes milk", ago(30), **left)
        before = knowledge(lives.scope, "The user likes mate", ago(30)).model_copy(
            update={
                "status": MemoryStatus.SUPERSEDED,
                "superseded_by": goes.id,
                "policy_class": PolicyClass.PROTECTED,
            }
        )
        drawn = {"source_episode_ids": (said.id,)}
        edge = Link(target_id=goes.id, kind=LinkKind.RELATED, confidence=1.0, **seen)
        await lives.keep(
            said,
            likes.model_copy(update={**drawn, "links": (edge,), "supersedes": (goes.id,)}),
            goes.model_copy(
                update={
                    "links": (edge.model_copy(update={"target_id": likes.id}),),
                    "supersedes": (before.id,),
                    "superseded_by": likes.id,
                }
            ),
            before,
        )
        assert (await lives.passes.decay(lives.scope, dry_run=True)).erased == 1
        assert (await lives.passes.decay(lives.scope)).erased == 1
        there = await lives.store.get(lives.scope, [said.id, likes.id, goes.id, before.id])
        assert set(there) == {said.id, likes.id, before.id}
        kept, was = there[likes.id], there[before.id]
        assert isinstance(kept, DerivedMemory)
        assert isinstance(was, DerivedMemory)
        assert (kept.links, kept.supersedes) == ((), ())
        assert (was.status, was.superseded_by) == (MemoryStatus.SUPERSEDED, likes.id)
        assert (await lives.passes.decay(lives.scope)).reviewed == 0
        await lives.store.delete(lives.scope, likes.type, [likes.id])
        assert (await _tomorrow(lives, erasing)).erased == 1
        assert set(await lives.store.get(lives.scope, [said.id])) == set()


async def test_looking_ahead_tells_what_will_be_erased_by_then(
    temporal_client: Client, store: EdgeRepository
) -> None:
    """A turn goes after what was concluded from it, if that goes by then; nothing is written."""
    erasing = worker_settings(lifecycle={"expiry": {"erase_after_days": 10}})
    async with lifecycle_workers(temporal_client, store, erasing) as lives:
        said, kept = (turn(lives.scope, f"I like {what}", ago(1)) for what in ("tea", "milk"))
        likes = knowledge(lives.scope, "I like tea", ago(1))
        stays = knowledge(lives.scope, "I like milk", ago(1), policy_class=PolicyClass.PROTECTED)
        await lives.keep(said, kept, likes, stays)

        async def erased(days: float) -> set[str]:
            at = NOW + timedelta(days=days)
            ahead = await lives.passes.decay(lives.scope, dry_run=True, at=at)
            gone = {one.memory_id for one in ahead.changes if one.rule == "erase"}
            assert ahead.erased == len(gone)
            return gone

        assert await erased(90) == set()
        assert await erased(420) == set()
        assert await erased(500) == {said.id, likes.id}
        assert {(await lives.now(one)).revision for one in (said, kept, likes, stays)} == {0}


async def test_a_denial_is_erased_after_the_last_that_it_denies(
    temporal_client: Client, store: EdgeRepository
) -> None:
    """Kept while that would answer again, looked at once a day; one that is over goes at once."""
    erasing = worker_settings(lifecycle={"expiry": {"erase_after_days": 10}})
    async with lifecycle_workers(temporal_client, store, erasing) as lives:
        left: dict[str, Any] = {
            "archived_at": ago(11),
            "lifecycle": LifecycleState.ARCHIVED,
            "scope": lives.scope,
            "known_at": ago(20),
        }
        denial, of_nothing, taken_back = (
            negation(f"The user does not drink {what}", f"drink {what}", status=status, **left)
            for what, status in (
                ("tea", MemoryStatus.ARCHIVED),
                ("milk", MemoryStatus.ARCHIVED),
                ("mate", MemoryStatus.SUPERSEDED),
            )
        )
        drinks, again = (
            knowledge(lives.scope, f"The user always drinks {what}", ago(30))
            for what in ("tea", "mate")
        )
        await lives.keep(denial, of_nothing, taken_back, drinks, again)
        assert (await lives.passes.decay(lives.scope, dry_run=True)).erased == 2
        assert (await lives.passes.decay(lives.scope)).erased == 2
        ids = [denial.id, of_nothing.id, taken_back.id]
        assert set(await lives.store.get(lives.scope, ids)) == {denial.id}
        assert (await lives.passes.decay(lives.scope)).reviewed == 0
        await lives.store.delete(lives.scope, drinks.type, [drinks.id])
        assert (await _tomorrow(lives, erasing)).erased == 1
        assert await lives.store.get(lives.scope, ids) == {}


async def _tomorrow(lives: LifecycleUser, settings: Settings) -> DecayReport:
    """What a pass does a day later."""
    work = WalkInput(
        scope=lives.scope,
        now=datetime.now(UTC) + timedelta(days=1, minutes=1),
        rules=settings.lifecycle_rules,
        batch=10,
        position=WalkPosition(),
    )
    reviewer = Reviewer(lives.store, make_embedder("wordllama"), lambda: uuid4().hex)
    return (await reviewer.review(work)).report


class _FailsToDelete:
    """A store that cannot be reached when something is to be erased, once."""

    def __init__(self, inner: EdgeRepository) -> None:
        self._inner = inner
        self._fails = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def delete_unchanged(self, *args: Any) -> None:
        fails, self._fails = self._fails, False
        if fails:
            raise StorageUnavailable("staged")
        await self._inner.delete_unchanged(*args)


@pytest.mark.parametrize("fails", [False, True])
async def test_no_box_keeps_the_words_of_an_erased_turn(
    temporal_client: Client, store: EdgeRepository, *, fails: bool
) -> None:
    """It goes with the turn, also where the turn goes at the second attempt; the rest is boxed."""
    erasing = worker_settings(lifecycle={"expiry": {"erase_after_days": 10}})
    wrap = _FailsToDelete if fails else lambda inner: inner
    async with lifecycle_workers(temporal_client, store, erasing, wrap=wrap) as lives:
        left = {"status": MemoryStatus.ARCHIVED, "archived_at": ago(11)}
        gone = turn(lives.scope, "My garden has a pond for koi", ago(30), **left)
        kept = turn(lives.scope, "My garden has a pond for frogs", ago(30))
        await lives.keep(gone, kept)
        digests = Digests(lives.store, make_embedder("wordllama"), lambda: uuid4().hex)
        composed, turns = Composer(lives.scope, ago(29)), [gone.id, kept.id]
        await digests.sessions(composed, turns, ["s1"], lives.settings.digests)
        assert [set(box.source_episode_ids) for box in await _boxes(lives)] == [{*turns}]
        assert (await lives.passes.decay(lives.scope)).count("erase") == 1
        boxes = await _boxes(lives)
        assert [box.source_episode_ids for box in boxes] == [(kept.id,)]
        assert "koi" not in boxes[0].model_dump_json()


async def _boxes(lives: LifecycleUser) -> list[SemanticMemory]:
    box = Equals("form", MemoryForm.BOX.value)
    page = await lives.store.scroll(lives.scope, MemoryType.SEMANTIC, where=(box,))
    return list(page.memories)


async def test_two_passes_at_once_and_recalls_lose_nothing(
    temporal_client: Client, store: EdgeRepository, settings: Settings
) -> None:
    """Two workers at the same pass, and recalls meanwhile: no recall lost, no step made twice."""
    async with lifecycle_workers(temporal_client, store, settings, workers=2) as lives:
        old = [turn(lives.scope, f"old {n}", ago(200)) for n in range(12)]
        used = [turn(lives.scope, f"used {n}", ago(50)) for n in range(12)]
        await lives.keep(*old, *used)
        rules = settings.lifecycle_rules
        logs = [
            AccessLog(
                store,
                rules,
                instance_id=f"process-{n}",
                new_write_id=lambda: uuid4().hex,
                interval=timedelta(seconds=60),
                most=1000,
            )
            for n in range(2)
        ]
        work = WalkInput(
            scope=lives.scope, now=datetime.now(UTC), rules=rules, batch=3, position=WalkPosition()
        )
        reviewers = [
            Reviewer(store, make_embedder("wordllama"), lambda: uuid4().hex) for _ in range(2)
        ]

        async def recalls(log: AccessLog) -> None:
            for _ in range(5):
                log.note(lives.scope, used, datetime.now(UTC))
                await log.flush()

        passing = asyncio.gather(*(reviewer.review(work) for reviewer in reviewers))
        recalling = asyncio.gather(*(recalls(log) for log in logs))
        third = await lives.passes.decay(lives.scope)
        reports = [done.report for done in await passing]
        await recalling
        made = sum(report.count("retention") for report in reports) + third.count("retention")
        assert made == 12
        for memory in used:
            after = await lives.now(memory)
            assert after.access_count == 10
            assert after.status is MemoryStatus.ACTIVE
        assert await lives.statuses(old) == {MemoryStatus.ARCHIVED}


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_crash_repeats_nothing(
    temporal_client: Client, store: EdgeRepository, settings: Settings, when: str
) -> None:
    """An activity that fails before or after its effect leads to the same memories and counts."""
    faults = Faults(**{when: {names.REVIEW_ACTIVITY}})  # type: ignore[arg-type]  # one of two fields
    async with lifecycle_workers(temporal_client, store, settings, interceptors=[faults]) as lives:
        old = [turn(lives.scope, f"old {n}", ago(100)) for n in range(5)]
        await lives.keep(*old)
        report = await lives.passes.decay(lives.scope)
        assert faults.calls.count(names.REVIEW_ACTIVITY) == 2
        assert report.count("retention") == 5
        assert {(await lives.now(one)).revision for one in old} == {1}


async def test_a_pass_over_all_users_serves_those_who_are_due(lives: LifecycleUser) -> None:
    """Users are found by what is due, each gets a pass of its own, and the sums are right."""
    due = [lives.other("due") for _ in range(3)]
    idle = lives.other("idle")
    for scope in due:
        await lives.keep(*(turn(scope, f"old {n}", ago(100)) for n in range(2)), scope=scope)
    await lives.keep(turn(idle, "fresh", ago(1)), scope=idle)
    report = await lives.passes.maintain(PassKind.DECAY)
    assert (report.users, report.busy, report.failed) == (3, 0, 0)
    assert report.reviewed == 6
    assert {count.rule: count.memories for count in report.transitions} == {
        "retention": 6,
        "grown_stale": 6,
    }
    ran = {
        scope.tenant
        for scope in (*due, idle)
        if await _has_run(lives, names.decay_workflow_id(scope))
    }
    assert ran == {scope.tenant for scope in due}
    assert (await lives.passes.maintain(PassKind.DECAY)).users == 0


async def test_what_cannot_be_read_holds_up_neither_other_memories_nor_the_pass(
    lives: LifecycleUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole page of what a newer version wrote, due first and for ever: the pass ends."""
    unread = [turn(lives.scope, f"unread {n}", ago(200)) for n in range(3)]
    old = turn(lives.scope, "old", ago(100))
    broken = {memory.id for memory in unread}

    def newer(scope: Scope, memory: AnyMemory) -> dict[str, Any]:
        return encode(scope, memory) | ({"status": "new in 2.0"} if memory.id in broken else {})

    with monkeypatch.context() as patched:
        patched.setattr("engram.storage.base.encode", newer)
        await lives.keep(*unread, old)
    async with asyncio.timeout(60):
        report = await lives.passes.maintain(PassKind.DECAY)
    assert (report.users, report.failed, report.reviewed) == (2, 0, 1)
    assert (await lives.now(old)).status is MemoryStatus.ARCHIVED


async def test_a_dry_run_over_all_users_says_what_would_change_for_each(
    lives: LifecycleUser,
) -> None:
    """User by user, memory by memory; nothing is written, and a real pass quotes nobody."""
    first, second = lives.other("first"), lives.other("second")
    one, two = turn(first, "old", ago(100)), turn(second, "half gone", ago(50))
    await lives.keep(one, scope=first)
    await lives.keep(two, turn(second, "fresh", ago(1)), scope=second)
    before = await lives.now(one)
    tried = await lives.passes.maintain(PassKind.DECAY, dry_run=True)
    told = {
        user.scope: {(change.memory_id, change.rule) for change in user.changes}
        for user in tried.would_change
    }
    assert told == {
        first: {(one.id, "retention"), (one.id, "grown_stale")},
        second: {(two.id, "grown_stale")},
    }
    assert await lives.now(one) == before
    done = await lives.passes.maintain(PassKind.DECAY)
    assert done.transitions == tried.transitions
    assert done.would_change == ()


def test_what_a_dry_run_over_all_users_quotes_has_an_end() -> None:
    """Reports travel in payloads: past 200 changes, and past 200 users, numbers alone go on."""
    report = MaintenanceReport(kind=PassKind.DECAY, dry_run=True)
    change = Change(
        memory_id="m", memory_type=MemoryType.EPISODIC, rule="r", source="a", target="b", why="w"
    )
    count = RuleCount(rule="r", aspect="status", source="a", target="b", memories=150)
    for number in range(250):
        of_one = DecayReport(transitions=(count,), changes=(change,) * 150)
        report = report.with_user(Scope.of("default", f"u{number}"), of_one)
    assert sum(len(user.changes) for user in report.would_change) == 200
    assert [len(user.changes) for user in report.would_change[:3]] == [150, 50, 0]
    assert (len(report.would_change), report.users) == (200, 250)


async def test_consolidation_is_asked_for_where_turns_wait(lives: LifecycleUser) -> None:
    """The scheduled consolidation reaches exactly the users with unconsolidated turns."""
    waits, done = lives.other("waits"), lives.other("done")
    await lives.keep(turn(waits, "new", ago(1)), scope=waits)
    await lives.keep(turn(done, "seen", ago(1), consolidated_at=NOW), scope=done)
    tests = lives.other("tests")
    await lives.keep(turn(tests, "a test", ago(1), is_test=True), scope=tests)
    report = await lives.passes.maintain(PassKind.CONSOLIDATION)
    assert report.users == 1
    assert [asked.reason for asked in lives.requests.seen] == ["scheduled"]
    assert lives.requests.seen[0].population is Population.REAL
    report = await lives.passes.maintain(PassKind.CONSOLIDATION, population=Population.TEST)
    assert report.users == 1
    assert [asked.population for asked in lives.requests.seen[1:]] == [Population.TEST]
    tried = await lives.passes.maintain(PassKind.CONSOLIDATION, dry_run=True)
    assert (tried.users, len(lives.requests.seen)) == (1, 2)
    assert [user.scope for user in tried.would_change] == [waits]


async def test_a_pass_over_all_users_says_how_far_it_is(
    temporal_client: Client, store: EdgeRepository, settings: Settings
) -> None:
    """Users who are served, of those who were found; nothing where no such pass runs."""
    reviewed, go_on = 0, asyncio.Event()
    held = asyncio.Event()

    async def hold_the_second() -> None:
        nonlocal reviewed
        reviewed += 1
        if reviewed == 2:
            held.set()
            await go_on.wait()

    faults = Faults(during={names.REVIEW_ACTIVITY: hold_the_second})
    settings = settings.model_copy(update={"pass_users": 1})
    async with lifecycle_workers(temporal_client, store, settings, interceptors=[faults]) as lives:
        assert await lives.passes.progress(PassKind.DECAY) is None
        for name in ("one", "two", "three"):
            user = lives.other(name)
            await lives.keep(turn(user, "old", ago(100)), scope=user)
        passing = asyncio.create_task(lives.passes.maintain(PassKind.DECAY))
        await held.wait()
        far = await lives.passes.progress(PassKind.DECAY)
        assert far == MaintenanceProgress(found=3, served=1)
        assert await lives.passes.progress(PassKind.PROMOTION) is None
        go_on.set()
        assert (await passing).users == 3
        assert await lives.passes.progress(PassKind.DECAY) is None


async def test_passes_that_overlap_take_turns(lives: LifecycleUser) -> None:
    """Callers at the same time each get a pass that began after they asked."""
    await lives.keep(*(turn(lives.scope, f"old {n}", ago(100)) for n in range(4)))
    reports = await asyncio.gather(*(lives.passes.decay(lives.scope) for _ in range(3)))
    assert sum(report.count("retention") for report in reports) == 4
    assert len({report.run_id for report in reports}) == 3


async def test_a_long_pass_goes_on_in_a_new_run(
    temporal_client: Client, store: EdgeRepository, settings: Settings, monkeypatch: Any
) -> None:
    """Counts, moment and position survive continue-as-new."""
    monkeypatch.setattr("engram.lifecycle.review.MOST_AT_ONCE", 2)
    monkeypatch.setattr(
        "temporalio.workflow.Info.is_continue_as_new_suggested",
        lambda info: info.get_current_history_length() > 10,
    )
    async with lifecycle_workers(temporal_client, store, settings, in_sandbox=False) as lives:
        old = [turn(lives.scope, f"old {n}", ago(100)) for n in range(12)]
        await lives.keep(*old)
        report = await lives.passes.decay(lives.scope)
        assert (report.reviewed, report.count("retention")) == (12, 12)
        handle = temporal_client.get_workflow_handle(names.decay_workflow_id(lives.scope))
        first = await handle.describe()
        assert first.raw_description.workflow_execution_info.first_run_id != report.run_id


async def _has_run(lives: LifecycleUser, workflow_id: str) -> bool:
    try:
        await lives.client.get_workflow_handle(workflow_id).describe()
    except RPCError:
        return False
    return True


@pytest.mark.parametrize(
    ("step", "named", "run"),
    [
        (names.REVIEW_ACTIVITY, names.decay_workflow_id, PassRunner.decay),
        (names.PROMOTE_ACTIVITY, names.promotion_workflow_id, PassRunner.promote),
    ],
)
async def test_a_cancelled_pass_is_cancelled(
    step: str,
    named: Callable[[Scope], str],
    run: Callable[[PassRunner, Scope], Coroutine[Any, Any, object]],
    temporal_client: Client,
    store: EdgeRepository,
    settings: Settings,
) -> None:
    """The run ends as cancelled, and its caller hears of that, not of a store that is away."""
    working, go_on = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        working.set()
        await go_on.wait()

    faults = Faults(during={step: work})
    async with lifecycle_workers(temporal_client, store, settings, interceptors=[faults]) as lives:
        await lives.keep(knowledge(lives.scope, "The user likes tea.", ago(100)))
        asking = asyncio.create_task(run(lives.passes, lives.scope))
        await working.wait()
        handle = temporal_client.get_workflow_handle(named(lives.scope))
        await handle.cancel()
        with pytest.raises(UnknownFailure, match="cancelled"):
            await asking
        described = await handle.describe()
        assert described.status is WorkflowExecutionStatus.CANCELED
        go_on.set()
