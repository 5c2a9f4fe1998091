"""What a turn costs Temporal: billable actions, and bytes of history that are kept."""

from __future__ import annotations

from collections import Counter

from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from tests.support.remembering import remembering, said

TURNS = 23
MOST_ENCODE_ACTIONS = 3.0
MOST_CONSOLIDATION_ACTIONS = 1.0
MOST_ENCODE_BYTES = 2700
MOST_CONSOLIDATION_BYTES = 2048
MOST_EVENTS = 60
# What Temporal bills, by the event that stands for it. Heartbeats of long steps come on top.
ACTIONS = {
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
    EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
    EventType.EVENT_TYPE_TIMER_STARTED,
    EventType.EVENT_TYPE_MARKER_RECORDED,
    EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES,
    EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED,
}


async def _cost(client: Client, workflow_id: str) -> tuple[int, int, int]:
    """Actions, bytes and events of all runs of a workflow."""
    kinds, size = Counter[int](), 0
    async for run in client.list_workflows(f"WorkflowId='{workflow_id}'"):
        history = await client.get_workflow_handle(run.id, run_id=run.run_id).fetch_history()
        kinds.update(event.event_type for event in history.events)
        size += sum(event.ByteSize() for event in history.events)
    return sum(kinds[one] for one in ACTIONS), size, kinds.total()


async def test_a_turn_costs_few_actions_and_little_history(temporal_client: Client) -> None:
    """One caller's turns, each by itself: three actions to encode, a fraction to consolidate."""
    texts = [f"I use Tool{n} on day {n}, as in Town{n % 5}." for n in range(TURNS)]
    async with remembering(temporal_client, buffer_turns=500) as (memory, _):
        for number, text in enumerate(texts):
            receipt = await memory.encode(said(text, number), session_id="s1")
        report = await memory.consolidate()
        assert report.episodes == TURNS
        assert receipt.workflow_id is not None
        assert report.workflow_id is not None
        encode = await _cost(temporal_client, receipt.workflow_id)
        consolidation = await _cost(temporal_client, report.workflow_id)
    print("encode", encode, "consolidation", consolidation, "for", TURNS)  # noqa: T201 - docs/operations.md quotes these
    assert encode[0] <= MOST_ENCODE_ACTIONS * TURNS
    assert consolidation[0] <= MOST_CONSOLIDATION_ACTIONS * TURNS
    assert consolidation[2] <= MOST_EVENTS
    assert encode[1] <= MOST_ENCODE_BYTES * TURNS
    assert consolidation[1] <= MOST_CONSOLIDATION_BYTES * TURNS
