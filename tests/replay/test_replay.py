"""Histories of earlier versions replay against the present code.

Workflows that run somewhere have such histories; code that cannot replay them
stops those workflows. Histories are added, never written anew. Those of ``c57d23c_``
were recorded by that commit, and have its markers: they go when the deprecated patches go.
``once_forgetting``, ``unfenced_erasing`` and ``sleeping_refused_trigger`` are from before
forgetting looked again, erasing raised a fence, and a full session cut its pause short.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer
from temporalio.workflow import _Definition

from engram.workflows.worker import WORKFLOWS, sandbox_runner
from tests.replay.changed import OtherOrder

pytestmark = pytest.mark.xdist_group("replay")
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


async def failures_of(documents: Mapping[str, str], workflows: Sequence[type]) -> dict[str, str]:
    """What does not replay, by the name of its history; with what to do about it."""
    started = {name: json.loads(text)["events"][0] for name, text in documents.items()}
    histories = {
        name: WorkflowHistory.from_json(
            event["workflowExecutionStartedEventAttributes"]["workflowId"], documents[name]
        )
        for name, event in started.items()
    }

    async def given() -> AsyncIterator[WorkflowHistory]:
        for history in histories.values():
            yield history

    # One for all: each loads every workflow into its sandbox.
    replayer = Replayer(
        workflows=list(workflows),
        data_converter=pydantic_data_converter,
        workflow_runner=sandbox_runner(),
    )
    found: dict[str, str] = {}
    replayed: set[str] = set()
    async with replayer.workflow_replay_iterator(given()) as results:
        async for result in results:
            name = next(name for name, one in histories.items() if one is result.history)
            replayed.add(name)
            if result.replay_failure is not None:
                found[name] = TEACHING.format(name=name, failure=result.replay_failure)
    assert replayed == set(documents)
    return found


@pytest.fixture(scope="module")
def failures() -> dict[str, str]:
    """What of all committed histories the present code cannot replay."""
    return asyncio.run(failures_of(HISTORIES, WORKFLOWS))


@pytest.mark.parametrize("name", HISTORIES)
def test_a_history_replays(name: str, failures: dict[str, str]) -> None:
    """The present code makes the same commands in the same order."""
    if name in failures:
        pytest.fail(failures[name])


def test_every_workflow_has_histories() -> None:
    """No workflow type is without a committed history."""
    recorded = {
        json.loads(text)["events"][0]["workflowExecutionStartedEventAttributes"]["workflowType"][
            "name"
        ]
        for text in HISTORIES.values()
    }
    assert recorded == {_Definition.must_from_class(one).name for one in WORKFLOWS}


async def test_a_changed_command_order_fails_and_teaches() -> None:
    """The failure says what breaks and what to do instead of recording anew."""
    name = "conversation-session-1"
    failures = await failures_of({name: HISTORIES[name]}, [OtherOrder])
    assert "workflow.patched" in failures[name]
