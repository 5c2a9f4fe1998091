"""Histories of earlier versions replay against the present code.

Workflows that run somewhere have such histories; code that cannot replay them
stops those workflows. Histories are added, never written anew. Those of ``c57d23c_``
were recorded by that commit, and have its markers: they go when the deprecated patches go.
``once_forgetting`` and ``unfenced_erasing`` are from before forgetting looked again and
erasing raised a fence.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer

from engram.contracts import names
from engram.workflows.worker import WORKFLOWS, sandbox_runner
from tests.replay.changed import OtherOrder

HISTORIES = {
    path.stem: path.read_text("utf-8")
    for path in sorted((Path(__file__).parent / "histories").glob("*.json"))
}
TEACHING = """
The history {name} does not replay: {failure}

A workflow that is running somewhere with this history would stop with the code
as it is now. Do not record the history again. Instead, either
  - keep the old order of commands for old histories with workflow.patched("..."), or
  - give the new behaviour a workflow type of its own and let the old one run out,
and then ADD a history of the new behaviour: uv run python -m tests.replay.record NAME.
docs/decisions/0007-workflow-versioning.md says when to choose which.
"""


async def replay(name: str, text: str, workflows: Sequence[type]) -> None:
    """Replay one history; a failure explains what to do."""
    started = json.loads(text)["events"][0]["workflowExecutionStartedEventAttributes"]
    history = WorkflowHistory.from_json(started["workflowId"], text)
    replayer = Replayer(
        workflows=list(workflows),
        data_converter=pydantic_data_converter,
        workflow_runner=sandbox_runner(),
    )
    result = await replayer.replay_workflow(history, raise_on_replay_failure=False)
    if result.replay_failure is not None:
        pytest.fail(TEACHING.format(name=name, failure=result.replay_failure))


@pytest.mark.parametrize("name", HISTORIES)
async def test_a_history_replays(name: str) -> None:
    """The present code makes the same commands in the same order."""
    await replay(name, HISTORIES[name], WORKFLOWS)


def test_every_workflow_has_histories() -> None:
    """No workflow type is without a committed history."""
    recorded = {
        json.loads(text)["events"][0]["workflowExecutionStartedEventAttributes"]["workflowType"][
            "name"
        ]
        for text in HISTORIES.values()
    }
    assert recorded == {
        names.SESSION_WORKFLOW,
        names.CONSOLIDATION_WORKFLOW,
        names.ASKED_CONSOLIDATION_WORKFLOW,
        names.ERASURE_WORKFLOW,
        names.HISTORY_ERASURE_WORKFLOW,
        names.FORGETTING_WORKFLOW,
        names.DECAY_WORKFLOW,
        names.PROMOTION_WORKFLOW,
        names.MAINTENANCE_WORKFLOW,
        names.IMPORT_WORKFLOW,
        names.REVIEW_WORKFLOW,
    }


async def test_a_changed_command_order_fails_and_teaches() -> None:
    """The failure says what breaks and what to do instead of recording anew."""
    name = "conversation-session-1"
    with pytest.raises(pytest.fail.Exception, match=r"workflow\.patched"):
        await replay(name, HISTORIES[name], [OtherOrder])
