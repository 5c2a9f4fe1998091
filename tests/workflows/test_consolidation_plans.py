"""Every action of a plan on its real path: written, linked both ways, replaced, and repeated."""

from __future__ import annotations

from typing import Any

import pytest
from temporalio.client import Client
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from engram.contracts import names
from engram.domain.memories import AnyMemory, Episode, LinkKind, MemoryForm, MemoryStatus
from engram.ports import MemoryRepository
from engram.settings import Settings
from engram.storage.updates import update_memories
from tests.support.consolidation_workers import Faults, Memory, consolidating, day
from tests.support.deciding_model import Deciding, newest_replaces_all, using_replaces_having
from tests.support.edge_stores import borrowed_store
from tests.support.stores import worker_settings

SAID = (
    ("I like tea, and I have a dog called Rex.", day(1)),
    ("I like milk.", day(2)),
    ("I like mead. My setup is:\n```\nuv sync --frozen\n```", day(3)),
    ("I like cider.", day(4)),
    ("I live in Paris.", day(5)),
    ("I moved to Rome.", day(6)),
)


async def everything(memory: Memory) -> list[dict[str, Any]]:
    """Every stored point, with its revision and write id."""
    points = [*await memory.semantic(), *await memory.episodes()]
    return [one.model_dump(mode="json") for one in sorted(points, key=lambda m: m.id)]


async def stated(memory: Memory) -> list[dict[str, Any]]:
    """What consolidation itself made: statements, artifacts and summaries."""
    forms = {MemoryForm.STATEMENT.value, MemoryForm.ARTIFACT.value, MemoryForm.SUMMARY.value}
    return [m for m in await memory.picture() if m["form"] in forms]


def _due_again(memory: AnyMemory) -> AnyMemory | None:
    if not isinstance(memory, Episode):
        return None
    return memory.model_copy(update={"consolidated_at": None})


async def test_artifacts_and_summaries_are_kept_linked_and_counted(
    temporal_client: Client, repository: MemoryRepository, settings: Settings
) -> None:
    """By one pass over a conversation; each link stands on both ends."""
    async with consolidating(temporal_client, repository, settings) as memory:
        await memory.say(*SAID)
        report = await memory.consolidate()
        known = {m.id: m for m in await memory.semantic()}
    (kept,) = [m for m in known.values() if m.form is MemoryForm.ARTIFACT]
    (summed,) = [m for m in known.values() if m.form is MemoryForm.SUMMARY]
    assert kept.content == "uv sync --frozen"
    assert summed.content == "The user likes tea, milk, mead and cider."
    members = {m.id for m in known.values() if m.slot and m.slot.predicate == "likes"}
    members.discard(summed.id)
    assert members <= set(summed.related_ids)
    for one in (kept, summed):
        belongs = [link for link in one.links if link.kind is LinkKind.BELONGS_TO]
        # Boxes, which are not among these, link what lies in them as well.
        stated_ones = [link for link in belongs if link.target_id in known]
        assert stated_ones
        for link in stated_ones:
            back = {(x.target_id, x.kind) for x in known[link.target_id].links}
            assert (one.id, LinkKind.BELONGS_TO) in back
    assert (report.actions["create_artifact"], report.actions["summarize_node"]) == (1, 1)


async def test_consolidating_twice_changes_not_a_byte(
    temporal_client: Client, repository: MemoryRepository, settings: Settings
) -> None:
    """Nothing is due the second time; and reading every turn again leads to the same memory."""
    async with consolidating(temporal_client, repository, settings) as memory:
        await memory.say(*SAID)
        await memory.consolidate()
        before = await everything(memory)
        await memory.consolidate()
        assert await everything(memory) == before

        knowledge = await stated(memory)
        ids = [e.id for e in await memory.episodes()]
        await update_memories(
            repository, memory.scope, ids, _due_again, new_write_id=lambda: "again"
        )
        again = await memory.consolidate()
        assert (again.stored, again.corroborated, again.superseded) == (0, 0, 0)
        assert await stated(memory) == knowledge


async def test_a_judgement_of_the_model_retires_what_it_replaces(
    temporal_client: Client, repository: MemoryRepository, settings: Settings
) -> None:
    """Written, read back, and only then retired."""
    model, faults = Deciding(using_replaces_having), Faults()
    async with consolidating(
        temporal_client, repository, settings, model=model, faults=faults
    ) as memory:
        await memory.say(("I have a bike.", day(1)), ("I use a bike to commute.", day(9)))
        report = await memory.consolidate()
        known = {m.content: m for m in await memory.semantic() if m.slot}
    linking = faults.calls.index(names.LINK_ACTIVITY)
    retired = [m for m in known.values() if m.status is MemoryStatus.SUPERSEDED]
    assert (report.superseded, len(retired)) == (1, 1), list(known)
    assert faults.calls[linking + 1] == names.APPLY_PLAN_ACTIVITY


async def test_an_answer_that_tries_to_retire_everything_changes_nothing(
    temporal_client: Client, repository: MemoryRepository, settings: Settings
) -> None:
    """It is counted, and every memory stays as active as it was."""
    model = Deciding(newest_replaces_all)
    async with consolidating(temporal_client, repository, settings, model=model) as memory:
        await memory.say(*((f"I use Tool{n}.", day(n)) for n in range(1, 9)))
        report = await memory.consolidate()
        known = [m for m in await memory.semantic() if m.form is MemoryForm.STATEMENT]
    assert report.dropped_retirements == len(known) - 1
    assert report.superseded == 0
    assert {m.status for m in known} == {MemoryStatus.ACTIVE}


class _NewerAnswers(Faults):
    """A worker that answers with an action, and with a context, that nobody here knows."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002 - the parameter's name belongs to Temporal's interface
        """See the base class."""
        return _Answering(super().intercept_activity(next))


class _Answering(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002 - the parameter's name belongs to Temporal's interface
        answer = await super().execute_activity(input)
        if input.fn.__name__ != "link":
            return answer
        raw = answer.model_dump(mode="json")
        for action in raw["plan"]["actions"]:
            action["eligibility"] = {"mood": 1, "confidence": "very"}
        raw["plan"]["actions"].append({"action": "dream", "why": "new in 2.0"})
        return raw


async def test_what_nobody_knows_of_a_plan_is_counted_and_the_rest_is_done(
    temporal_client: Client, repository: MemoryRepository, settings: Settings
) -> None:
    """An answer from elsewhere with an unknown action and unreadable contexts holds nothing up."""
    model = Deciding(using_replaces_having)
    async with consolidating(
        temporal_client, repository, settings, model=model, faults=_NewerAnswers()
    ) as memory:
        await memory.say(("I have a bike.", day(1)), ("I use a bike to commute.", day(9)))
        report = await memory.consolidate()
    assert (report.superseded, report.dropped_actions, report.discarded) == (1, 1, 1)
    assert report.failures == ()


@pytest.mark.parametrize("step", [names.CONSOLIDATE_TURNS_ACTIVITY, names.LINK_ACTIVITY])
@pytest.mark.parametrize("crash", ["before", "after"])
async def test_a_crash_leaves_the_same_artifacts_and_summaries(
    temporal_client: Client,
    repository: MemoryRepository,
    settings: Settings,
    step: str,
    crash: str,
) -> None:
    """Neither a second one nor a link with one end."""
    faults = Faults(before={step}) if crash == "before" else Faults(after={step})
    async with consolidating(temporal_client, repository, settings, faults=faults) as memory:
        await memory.say(*SAID)
        await memory.consolidate()
        assert not faults.before | faults.after
        disturbed, scope = await stated(memory), memory.scope
    quiet_settings = worker_settings()
    async with (
        borrowed_store() as other,
        consolidating(temporal_client, other, quiet_settings, scope=scope) as undisturbed,
    ):
        await undisturbed.say(*SAID)
        await undisturbed.consolidate()
        assert await stated(undisturbed) == disturbed
