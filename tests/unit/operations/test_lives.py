"""What the user says of memories, the briefing, and imports."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from structlog.testing import capture_logs

from engram.consolidation.forgetting import Forgetter
from engram.digests.stage import Digests
from engram.domain.confidence import SEED_IMPORTED, Verification
from engram.domain.memories import (
    DIGEST_FORMS,
    Category,
    DerivedMemory,
    Episode,
    Evidence,
    LifecycleState,
    MemoryForm,
    MemoryStatus,
    MemoryType,
    PolicyClass,
    SemanticMemory,
    Tier,
)
from engram.domain.slots import slot_of
from engram.errors import (
    InvalidInput,
    InvalidQuery,
    InvalidTurn,
    MemoryNotFound,
    StorageUnavailable,
)
from engram.operations import lifecycle as ops
from engram.operations import trials
from engram.operations.memories import VERIFY, Acted, ActOn
from engram.operations.registry import AboutMemory, Operation
from engram.transfer.memories import ImportedMemory
from tests.support.clock import NOW
from tests.support.handled_store import ADA, HandledStore, ago
from tests.support.lifecycle_workers import knowledge, turn
from tests.support.recall_memories import negation

HABIT = "The user always drinks tea when working late"


def saying(name: str) -> Operation[ActOn, Acted]:
    """What a user says of a memory."""
    return ops.ACTIONS[name].operation


def about(memory_id: str, **more: bool) -> ActOn:
    """An action on one memory."""
    return ActOn(memory_id=memory_id, **more)


async def test_confirming_validates_and_brings_back(handled: HandledStore) -> None:
    """What had left answers again; confirming twice changes no state a second time."""
    gone = knowledge(
        ADA, "The user likes tea", ago(400), status=MemoryStatus.ARCHIVED, archived_at=ago(10)
    )
    await handled.keep(gone)
    acted = await handled.ask(saying("confirm"), about(gone.id))
    assert acted.memory.status is MemoryStatus.ACTIVE
    assert acted.memory.lifecycle is LifecycleState.VALIDATED
    assert {change.rule for change in acted.changes} >= {"confirmed_user_confirmed"}
    assert acted.memory.review_at is not None
    again = await handled.ask(saying("confirm"), about(gone.id))
    assert again.changes == ()


async def test_disputing_lowers_and_confirming_settles(handled: HandledStore) -> None:
    """The user's last word counts."""
    told = knowledge(ADA, "The user likes tea", ago(4))
    await handled.keep(told)
    disputed = (await handled.ask(saying("dispute"), about(told.id))).memory
    assert isinstance(disputed, DerivedMemory)
    assert disputed.confidence.verification is Verification.DISPUTED
    confirmed = (await handled.ask(saying("confirm"), about(told.id))).memory
    assert isinstance(confirmed, DerivedMemory)
    assert confirmed.confidence.verification is Verification.USER_CONFIRMED


async def test_reviews_are_told_what_the_user_settles(handled: HandledStore) -> None:
    """Of each settled pair and of what is refuted; a dry run names that, and tells nobody."""
    tea, milk = (knowledge(ADA, f"The user drinks {what}", ago(4)) for what in ("tea", "milk"))
    pair = (min(tea.id, milk.id), max(tea.id, milk.id))
    await handled.keep(
        tea.model_copy(update={"disputed_with": (milk.id,)}),
        milk.model_copy(update={"disputed_with": (tea.id,)}),
    )
    dry = await handled.ask(saying("confirm"), about(tea.id, dry_run=True))
    assert isinstance(dry.memory, SemanticMemory)
    assert dry.memory.disputed_with == ()
    assert (handled.reviews.settled, handled.reviews.opened) == ([], [])
    done = await handled.ask(saying("confirm"), about(tea.id))
    assert (handled.reviews.settled, handled.reviews.opened) == ([pair], [])
    assert [one.target for one in done.changes if one.memory_id == milk.id] == ["superseded"]
    assert dry.changes == done.changes
    gone = await handled.now_is(milk)
    assert isinstance(gone, SemanticMemory)
    assert (gone.status, gone.superseded_by) == (MemoryStatus.SUPERSEDED, tea.id)
    await handled.ask(saying("dispute"), about(tea.id))
    assert handled.reviews.opened == [(tea.id,)]


async def test_what_the_user_disputes_does_not_come_back_in_place_of_what_replaced_it(
    handled: HandledStore,
) -> None:
    """Neither when that is disputed, nor when it is forgotten; confirmed, it holds again."""
    for goes in ("disputed", "forgotten"):
        old, new = (
            knowledge(ADA, f"The user lives in {place}, {goes}", ago(4))
            for place in ("Rome", "Bonn")
        )
        replaced = {"superseded_by": new.id, "superseded_known_at": ago(2), "valid_to": ago(2)}
        old = old.model_copy(update={"status": MemoryStatus.SUPERSEDED, **replaced})
        await handled.keep(
            turn(ADA, f"I live here, {goes}", ago(4)),
            old,
            new.model_copy(update={"supersedes": (old.id,)}),
        )
        await handled.ask(saying("dispute"), about(old.id))
        if goes == "disputed":
            await handled.ask(saying("dispute"), about(new.id))
        else:
            forgetter = Forgetter(handled.store, lambda: uuid4().hex)
            await forgetter.apply(ADA, await forgetter.plan(ADA, new.id))
        left = await handled.now_is(old)
        assert isinstance(left, SemanticMemory)
        assert (left.status, left.superseded_by) == (MemoryStatus.SUPERSEDED, None)
        assert (left.refuted_at, left.superseded_known_at) == (NOW, ago(2))
        back = (await handled.ask(saying("confirm"), about(old.id))).memory
        assert back.status is MemoryStatus.ACTIVE


async def test_protected_memories_never_leave_until_unprotected(handled: HandledStore) -> None:
    """No rule takes what is protected; without protection the rules apply again."""
    old = turn(ADA, "keep me", ago(300))
    await handled.keep(old)
    kept = (await handled.ask(saying("protect"), about(old.id))).memory
    assert kept.policy_class is PolicyClass.PROTECTED
    assert (await handled.ask(ops.DECAY, ops.RunDecay())).count("retention") == 0
    assert (await handled.ask(saying("unprotect"), about(old.id))).memory.policy_class is None
    assert (await handled.ask(ops.DECAY, ops.RunDecay())).count("retention") == 1


def lives_in(place: str, days: float, **more: Any) -> SemanticMemory:
    """Where the user lives, told so many days ago."""
    slot = slot_of("user", "lives in", place)
    return knowledge(ADA, f"The user lives in {place}.", ago(days), slot=slot, **more)


async def told(handled: HandledStore) -> str:
    """The words of the user's profile, as a search finds them; none where there is none."""
    page = await handled.store.scroll(ADA, MemoryType.SEMANTIC, limit=100)
    (*found,) = (
        m.content
        for m in page.memories
        if isinstance(m, SemanticMemory)
        and (m.form, m.status) == (MemoryForm.PROFILE, MemoryStatus.ACTIVE)
        and m.content.startswith("The user (user)")
    )
    return "".join(found)


async def test_profiles_follow_what_the_user_says(handled: HandledStore) -> None:
    """What is refuted or put aside is in none, what holds again in its place is; and back."""
    porto, lisbon = lives_in("Porto", 9), lives_in("Lisbon", 4)
    before = porto.model_copy(
        update={
            "status": MemoryStatus.SUPERSEDED,
            "superseded_by": lisbon.id,
            "superseded_known_at": ago(4),
            "valid_to": ago(4),
        }
    )
    await handled.keep(before, lisbon.model_copy(update={"supersedes": (porto.id,)}))
    await handled.ask(saying("confirm"), about(lisbon.id))
    assert "Lisbon" in await told(handled)
    await handled.ask(saying("dispute"), about(lisbon.id, dry_run=True))
    assert "Lisbon" in await told(handled)
    await handled.ask(saying("dispute"), about(lisbon.id))
    assert "Lisbon" not in await told(handled)
    assert "Porto" in await told(handled)
    await handled.ask(saying("demote"), about(porto.id))
    assert await told(handled) == ""
    await handled.ask(saying("protect"), about(porto.id))
    assert "Porto" in await told(handled)


async def test_what_cannot_be_composed_holds_nothing_up(
    handled: HandledStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the user says is written; that profiles lag is logged, without a word of theirs."""

    async def broken(*_: object) -> None:
        raise StorageUnavailable("staged")

    monkeypatch.setattr(Digests, "knowledge", broken)
    tea = knowledge(ADA, "The user likes tea", ago(4))
    await handled.keep(tea)
    with capture_logs() as logs:
        acted = await handled.ask(saying("demote"), about(tea.id))
    assert acted.memory.status is MemoryStatus.ARCHIVED
    (line,) = logs
    assert (line["event"], line["code"]) == ("profiles do not follow yet", "storage_unavailable")


async def test_turns_are_neither_confirmed_nor_disputed(handled: HandledStore) -> None:
    """A turn was said, whatever one thinks of it; an unknown id is named as such."""
    said = turn(ADA, "I like tea", ago(1))
    await handled.keep(said)
    for operation in (saying("confirm"), saying("dispute")):
        with pytest.raises(InvalidInput, match="it was said"):
            await handled.ask(operation, about(said.id))
    with pytest.raises(MemoryNotFound):
        await handled.ask(saying("confirm"), about("6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11"))


@pytest.mark.parametrize("form", DIGEST_FORMS)
async def test_digests_are_not_judged_themselves(handled: HandledStore, form: MemoryForm) -> None:
    """Else an old profile comes back beside the newest; kept from fading they may be."""
    digest = knowledge(ADA, "The user: lives in Rome.", ago(1), form=form)
    await handled.keep(digest)
    for name in ("confirm", "dispute", "demote"):
        for dry_run in (True, False):
            with pytest.raises(InvalidInput, match=f"A {form} says only what other") as refused:
                await handled.ask(saying(name), about(digest.id, dry_run=dry_run))
            assert "Rome" not in str(refused.value)
    assert (await handled.now_is(digest)).revision == 0
    kept = await handled.ask(saying("protect"), about(digest.id))
    assert kept.memory.policy_class is PolicyClass.PROTECTED


async def test_putting_aside_and_bringing_back(handled: HandledStore) -> None:
    """Archived by hand once; a dry run only says so; what is protected stays."""
    told = knowledge(ADA, "The user likes tea", ago(1))
    kept = knowledge(ADA, "The user likes milk", ago(1), policy_class=PolicyClass.PROTECTED)
    await handled.keep(told, kept)
    tried = await handled.ask(saying("demote"), about(told.id, dry_run=True))
    assert (tried.dry_run, tried.memory.status) == (True, MemoryStatus.ARCHIVED)
    assert (await handled.now_is(told)).revision == 0
    acted = await handled.ask(saying("demote"), about(told.id))
    assert acted.memory.status is MemoryStatus.ARCHIVED
    assert "demoted_archived" in {change.rule for change in acted.changes}
    assert (await handled.ask(saying("demote"), about(told.id))).changes == ()
    assert (
        await handled.ask(saying("demote"), about(kept.id))
    ).memory.status is MemoryStatus.ACTIVE
    assert (
        await handled.ask(saying("confirm"), about(told.id))
    ).memory.status is MemoryStatus.ACTIVE
    with pytest.raises(InvalidInput, match="no test memory"):
        await handled.ask(saying("demote"), about(told.id, test_only=True))


async def test_what_is_said_of_a_habit_is_said_of_what_it_came_from(
    handled: HandledStore,
) -> None:
    """Refuted, neither answers, whatever passes run; confirmed, both do; put aside, neither.

    What is put aside is told of both, before and after.
    """
    told = knowledge(ADA, HABIT, ago(1))
    await handled.keep(turn(ADA, HABIT, ago(1)), told)
    habit_id = (await handled.ask(saying("force-promote"), about(told.id))).habit_id
    assert habit_id is not None

    async def both() -> list[tuple[MemoryStatus, bool]]:
        await handled.ask(ops.PROMOTE, ops.RunPass())
        found = await handled.store.get(ADA, [told.id, habit_id])
        derived = [m for m in found.values() if isinstance(m, DerivedMemory)]
        return [(m.status, m.refuted_at is not None) for m in derived]

    for of in (habit_id, told.id):
        tried = await handled.ask(saying("dispute"), about(of, dry_run=True))
        assert (tried.memory.id, tried.memory.status) == (of, MemoryStatus.SUPERSEDED)
        said = await handled.ask(saying("dispute"), about(of))
        assert said.memory.id == of
        assert "disputed_superseded" in {change.rule for change in said.changes}
        assert await both() == [(MemoryStatus.SUPERSEDED, True)] * 2
        assert handled.reviews.opened[-1] == (told.id,)
        assert (await handled.ask(saying("dispute"), about(of))).changes == ()
        confirmed = (await handled.ask(saying("confirm"), about(of))).memory
        assert isinstance(confirmed, DerivedMemory)
        assert confirmed.confidence.verification is Verification.USER_CONFIRMED
        assert await both() == [(MemoryStatus.ACTIVE, False)] * 2
        tried = await handled.ask(saying("demote"), about(of, dry_run=True))
        assert [one.memory_id for one in tried.changes][:1] == [of]
        assert {one.memory_id for one in tried.changes} == {told.id, habit_id}
        done = await handled.ask(saying("demote"), about(of))
        assert done.changes == tried.changes
        assert await both() == [(MemoryStatus.ARCHIVED, False)] * 2
        await handled.ask(saying("confirm"), about(of))
        assert await both() == [(MemoryStatus.ACTIVE, False)] * 2


async def test_a_habit_stands_as_what_it_was_made_of_does(handled: HandledStore) -> None:
    """The knowledge quotes the words; where that is gone, the habit rests on its turns."""
    said = turn(ADA, HABIT, ago(1))
    for words, stands in ((HABIT, True), ("never said", False)):
        quoted = (Evidence(episode_id=said.id, words=words),)
        told = knowledge(ADA, HABIT, ago(1), evidence=quoted)
        await handled.keep(said, told)
        habit_id = (await handled.ask(saying("force-promote"), about(told.id))).habit_id
        assert habit_id is not None
        for one in (told.id, habit_id):
            found = await handled.ask(VERIFY, AboutMemory(memory_id=one))
            assert (found.ok, len(found.evidence)) == (stands, int(stands))
        await handled.store.delete(ADA, MemoryType.SEMANTIC, (told.id,))
        assert (await handled.ask(VERIFY, AboutMemory(memory_id=habit_id))).ok
        await handled.store.delete(ADA, MemoryType.EPISODIC, (said.id,))
        assert not (await handled.ask(VERIFY, AboutMemory(memory_id=habit_id))).ok
        await handled.store.delete(ADA, MemoryType.PROCEDURAL, (habit_id,))


async def test_what_was_denied_is_no_habit_by_hand_either(handled: HandledStore) -> None:
    """Neither tried nor done: nobody would ever be told of it."""
    told = knowledge(ADA, HABIT, ago(4))
    denial = negation("The user does not drink tea", "drink tea", scope=ADA, known_at=ago(1))
    await handled.keep(told, denial)
    for dry_run in (True, False):
        acted = await handled.ask(saying("force-promote"), about(told.id, dry_run=dry_run))
        assert acted.habit_id is None


async def test_promoting_by_hand_makes_one_habit(handled: HandledStore) -> None:
    """Knowledge becomes a habit whatever it has earned; again gives the same habit."""
    told = knowledge(ADA, HABIT, ago(1))
    await handled.keep(told)
    first = await handled.ask(saying("force-promote"), about(told.id))
    again = await handled.ask(saying("force-promote"), about(told.id))
    assert first.habit_id is not None
    assert again.habit_id == first.habit_id
    assert await handled.store.count(ADA, MemoryType.PROCEDURAL) == 1


async def test_looking_ahead_goes_with_dry_runs_only(handled: HandledStore) -> None:
    """A pass that writes is judged by the present."""
    with pytest.raises(InvalidQuery, match="judged by the present"):
        await handled.ask(ops.DECAY, ops.RunDecay(at=NOW + timedelta(days=9)))


async def test_a_briefing_begins_with_what_matters_most(handled: HandledStore) -> None:
    """By importance, confidence and use, however long ago; nothing that does not hold."""
    matters = knowledge(ADA, "The user is allergic to nuts", ago(300), importance=0.9)
    used = knowledge(
        ADA, "The user works at Acme", ago(30), access_count=20, last_accessed_at=ago(1)
    )
    plain = knowledge(ADA, "The user saw a film", ago(1), importance=0.1)
    out = [
        knowledge(ADA, "superseded", ago(2), status=MemoryStatus.SUPERSEDED, importance=1.0),
        knowledge(ADA, "a test", ago(2), is_test=True, importance=1.0),
        knowledge(ADA, "a profile", ago(2), form=MemoryForm.PROFILE, importance=1.0),
        knowledge(ADA, "expired", ago(2), expires_at=ago(1), importance=1.0),
    ]
    await handled.keep(matters, used, plain, *out)
    found = await handled.ask(ops.BRIEFING, ops.Brief(limit=10))
    assert [one.memory.id for one in found] == [used.id, matters.id, plain.id]
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert "salience" in found[0].explanation
    assert [one.memory.id for one in await handled.ask(ops.BRIEFING, ops.Brief(limit=1))] == [
        used.id
    ]
    with pytest.raises(InvalidQuery):
        await handled.ask(ops.BRIEFING, ops.Brief(limit=0))


async def test_imports_have_had_a_life(handled: HandledStore) -> None:
    """Long-term, energy 10, one recall, used when it was told if unknown."""
    items = (
        ImportedMemory(content="I moved to Lisbon.", timestamp=ago(900), message_id="7"),
        ImportedMemory(
            content="The user prefers tea",
            timestamp=ago(500),
            conclusion=True,
            category=Category.PREFERENCE,
            last_accessed_at=ago(20),
            instance_id="elsewhere",
        ),
    )
    report = await handled.ask(trials.IMPORT, trials.Import(memories=items))
    assert (report.episodes, report.conclusions, report.known) == (2, 1, 0)
    page = await handled.store.scroll(ADA, MemoryType.SEMANTIC)
    (known,) = page.memories
    assert isinstance(known, SemanticMemory)
    assert known.vitals is not None
    assert (known.vitals.tier, known.vitals.energy) == (Tier.LONG_TERM, 10.0)
    assert (known.access_count, known.last_accessed_at) == (1, ago(20))
    assert known.vitals.instance_id == "elsewhere"
    assert known.confidence.seed == SEED_IMPORTED
    said = (await handled.store.scroll(ADA, MemoryType.EPISODIC)).memories[0]
    assert isinstance(said, Episode)
    assert (said.message_id, said.last_accessed_at) == ("7", ago(900))
    # What was imported counts as used when it was imported: nothing leaves at once.
    assert (await handled.ask(ops.DECAY, ops.RunDecay())).count("retention") == 0
    again = await handled.ask(trials.IMPORT, trials.Import(memories=items))
    assert (again.episodes, again.conclusions, again.known) == (0, 0, 3)


async def test_a_known_conclusion_that_is_imported_again_comes_back_and_stays(
    handled: HandledStore,
) -> None:
    """Though Engram words it in the same way, and though it was said long before."""
    told = ImportedMemory(
        content="The user is allergic to nuts.", timestamp=ago(900), conclusion=True
    )
    await handled.ask(trials.IMPORT, trials.Import(memories=(told,)))
    (known,) = (await handled.store.scroll(ADA, MemoryType.SEMANTIC)).memories
    aside = (await handled.ask(saying("demote"), about(known.id))).memory
    assert aside.status is MemoryStatus.ARCHIVED
    again = told.model_copy(update={"timestamp": ago(800)})
    report = await handled.ask(trials.IMPORT, trials.Import(memories=(again,)))
    assert (report.conclusions, report.known) == (0, 1)
    await handled.ask(ops.DECAY, ops.RunDecay())
    back = await handled.now_is(known)
    assert back.status is MemoryStatus.ACTIVE
    assert isinstance(back, SemanticMemory)
    assert len(back.source_episode_ids) == 2


async def test_an_import_is_checked_before_anything_is_stored(handled: HandledStore) -> None:
    """One line that cannot be kept stores nothing of the call."""
    items = (
        ImportedMemory(content="fine", timestamp=ago(1)),
        ImportedMemory(content="   ", timestamp=ago(1)),
    )
    with pytest.raises(InvalidTurn):
        await handled.ask(trials.IMPORT, trials.Import(memories=items))
    assert await handled.store.count(ADA, MemoryType.EPISODIC) == 0


def imported(content: str, days: float, **more: Any) -> ImportedMemory:
    """Knowledge of another program."""
    return ImportedMemory(content=content, timestamp=ago(days), conclusion=True, **more)


async def known_of(handled: HandledStore) -> dict[str, SemanticMemory]:
    """What is known of Ada, by its words."""
    page = await handled.store.scroll(ADA, MemoryType.SEMANTIC)
    return {m.content: m for m in page.memories if isinstance(m, SemanticMemory)}


async def test_migrated_knowledge_is_written_as_brought_by_somebody(handled: HandledStore) -> None:
    """No model and no rule proposes it: every action of its plan has the source ``manual``."""
    items = (imported("The user lives in Porto.", 900), imported("The user lives in Oslo.", 90))
    with capture_logs() as lines:
        await handled.ask(trials.IMPORT, trials.Import(memories=items))
    (told,) = [line for line in lines if line["event"] == "plan applied"]
    assert told["sources"] == {"manual": sum(told["actions"].values())}


async def test_migrated_knowledge_can_be_verified(handled: HandledStore) -> None:
    """Its own words are kept as evidence, also where they are long."""
    long = "Notes on the garden. " * 300
    items = (imported("The user lives in Porto.", 900), imported(long, 800))
    await handled.ask(trials.IMPORT, trials.Import(memories=items))
    for memory in (await known_of(handled)).values():
        found = await handled.ask(VERIFY, AboutMemory(memory_id=memory.id))
        assert (found.ok, len(found.evidence)) == (True, 1)


async def test_migrated_knowledge_is_replaced_and_replaces(handled: HandledStore) -> None:
    """The newest of what was imported holds, whatever comes first; the others are history."""
    first = (imported("Lives in Lisbon", 100), imported("The user lives in Faro.", 900))
    await handled.ask(trials.IMPORT, trials.Import(memories=first))
    second = (imported("User lives in Porto", 500), imported("The user likes tea", 500))
    report = await handled.ask(trials.IMPORT, trials.Import(memories=second))
    assert (report.episodes, report.conclusions) == (2, 2)
    known = await known_of(handled)
    standing = {words for words, one in known.items() if one.status is MemoryStatus.ACTIVE}
    assert standing == {"Lives in Lisbon", "The user likes tea"}
    history = known["The user lives in Faro."], known["User lives in Porto"]
    assert [one.superseded_by for one in history] == [history[1].id, known["Lives in Lisbon"].id]
    again = await handled.ask(trials.IMPORT, trials.Import(memories=(*second, *first)))
    assert (again.episodes, again.conclusions, again.known) == (0, 0, 8)
    assert await known_of(handled) == known
