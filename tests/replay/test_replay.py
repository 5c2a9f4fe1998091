"""Histories of earlier versions replay against the present code.

Workflows that run somewhere have such histories; code that cannot replay them
stops those workflows. Histories are added, never written anew. Those of ``c57d23c_``
were recorded by that commit, and have its markers: they go when the deprecated patches go.
``once_forgetting``, ``unfenced_erasing``, ``sleeping_refused_trigger``, ``sleeping_review``,
``lost_ending``, ``ended_turn_after_end`` and ``once_failing_ending`` are from before forgetting
looked again, erasing raised a fence, a full session cut its pause short, an answer woke a review, a
session could end again while it was promoted, a turn after the end began a session, and promotion
went on past a session that fails.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer
from temporalio.workflow import _Definition

from engram.contracts import names
from engram.workflows.worker import WORKFLOWS, sandbox_runner
from tests.replay.changed import OtherOrder
from tests.replay.commands import Line, commands, lines_run, markers

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
NOT_RECORDED = """
No history comes this way, so that nobody would see a change break workflows that run:
{missing}
Add a scenario to tests/replay/record.py and record it: uv run python -m tests.replay.record NAME.
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
def replayed() -> tuple[dict[str, str], set[Line]]:
    """What of all committed histories the present code cannot replay, and the lines they ran."""
    with lines_run() as seen:
        return asyncio.run(failures_of(HISTORIES, WORKFLOWS)), seen


@pytest.fixture(scope="module")
def events() -> list[dict[str, Any]]:
    """Every event of every committed history."""
    return [event for text in HISTORIES.values() for event in json.loads(text)["events"]]


@pytest.mark.parametrize("name", HISTORIES)
def test_a_history_replays(name: str, replayed: tuple[dict[str, str], set[Line]]) -> None:
    """The present code makes the same commands in the same order."""
    failures, _ = replayed
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


def test_every_command_of_a_workflow_is_in_a_history(
    replayed: tuple[dict[str, str], set[Line]],
) -> None:
    """No activity, timer, wait or continue-as-new could change without a history that tells."""
    _, seen = replayed
    missing = [str(command) for command in commands() if not command.is_in(seen)]
    assert not missing, NOT_RECORDED.format(missing="\n".join(missing))


def test_every_marker_and_every_activity_is_in_a_history(events: list[dict[str, Any]]) -> None:
    """Each patch was taken by a recorded run, those that are deprecated now when they were not."""
    activities = {value for key, value in vars(names).items() if key.endswith("_ACTIVITY")}
    missing = sorted((activities | markers()) - _named(events))
    assert not missing, NOT_RECORDED.format(missing="\n".join(missing))


def _named(events: Sequence[dict[str, Any]]) -> set[str]:
    """The activities and the patches that these events are about."""
    found: set[str] = set()
    for event in events:
        if scheduled := event.get("activityTaskScheduledEventAttributes"):
            found.add(scheduled["activityType"]["name"])
        for data in event.get("markerRecordedEventAttributes", {}).get("details", {}).values():
            about = json.loads(b64decode(data["payloads"][0]["data"]))
            # Of a deprecated patch no run depends on the marker.
            if not about.get("deprecated"):
                found |= {about[key] for key in ("id", "activity_type") if key in about}
    return found


async def test_a_command_that_no_history_has_is_found() -> None:
    """Of a session that fits into one run, storing was replayed and continuing as new was not."""
    name = "conversation-session-1"
    with lines_run() as seen:
        assert not await failures_of({name: HISTORIES[name]}, WORKFLOWS)
    replayed = {str(one): one.is_in(seen) for one in commands() if one.file == "session.py"}
    (stored,) = [ran for text, ran in replayed.items() if "store_turns" in text]
    (went_on,) = [ran for text, ran in replayed.items() if "workflow.continue_as_new" in text]
    assert (stored, went_on) == (True, False)


async def test_a_changed_command_order_fails_and_teaches() -> None:
    """The failure says what breaks and what to do instead of recording anew."""
    name = "conversation-session-1"
    failures = await failures_of({name: HISTORIES[name]}, [OtherOrder])
    assert "workflow.patched" in failures[name]
