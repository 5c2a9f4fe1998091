"""What commands that stay say of themselves, for people and for machines."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy
from temporalio.runtime import Runtime
from temporalio.worker import Worker

from engram.cli import serving
from engram.errors import TemporalUnavailable
from engram.settings import Settings
from engram.workflows.worker import sandbox_runner
from tests.support.ports import free_port


@pytest.mark.parametrize("command", ["worker", "serve"])
async def test_a_log_for_machines_has_nothing_else_in_it_and_waiting_ends(command: str) -> None:
    """What a server says while it starts is one object a line, and SIGTERM ends its waiting."""
    surroundings = {name: text for name, text in os.environ.items() if "ENGRAM_" not in name}
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "engram.cli", command),
        env={
            **surroundings,
            "ENGRAM_LOG_FORMAT": "json",
            "ENGRAM_TEMPORAL_ADDRESS": f"127.0.0.1:{free_port()}",
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert program.stdout is not None
    async with asyncio.timeout(60):
        line = json.loads(await program.stdout.readline())
    assert line["event"].startswith("Waiting for Temporal")
    assert line["level"] == "info"
    program.send_signal(signal.SIGTERM)
    async with asyncio.timeout(30):
        # Also where it is the first process of a container, which no signal ends by itself.
        assert await program.wait() == 0


@activity.defn(name="late-activity")
async def late_activity() -> None:
    """Takes longer than it may, at the first attempt."""
    if activity.info().attempt == 1:
        await asyncio.sleep(60)


@workflow.defn(name="warned-workflow", sandboxed=False)
class WarnedWorkflow:
    """Has the SDK's core warn of an activity that ends after it was given up."""

    @workflow.run
    async def run(self) -> None:
        """Give it a moment."""
        await workflow.execute_local_activity(
            late_activity,
            start_to_close_timeout=timedelta(seconds=0.2),
            retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=10)),
        )


@pytest.mark.parametrize("serve", [serving.serve_worker, serving.serve_api])
async def test_the_core_of_the_sdk_logs_json_too(
    serve: Callable[[Settings], Awaitable[None]],
    temporal_address: str,
    temporal_client: Client,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """What Temporal's core prints by itself is JSON where the log is."""
    runtimes: list[Runtime] = []

    async def nobody(*_: object) -> None:
        raise TemporalUnavailable("Nobody answers.")

    monkeypatch.setattr(serving, "_waited_for", nobody)
    monkeypatch.setattr(Runtime, "set_default", lambda runtime, **_: runtimes.append(runtime))
    for style in ("console", "json"):
        with pytest.raises(TemporalUnavailable):
            await serve(Settings.load(log_format=style))
    (runtime,) = runtimes
    client = await Client.connect(
        temporal_address, namespace=temporal_client.namespace, runtime=runtime
    )
    queue = f"warned-{serve.__name__}"
    async with Worker(
        client,
        task_queue=queue,
        workflows=[WarnedWorkflow],
        activities=[late_activity],
        workflow_runner=sandbox_runner(),
    ):
        await client.execute_workflow("warned-workflow", id=queue, task_queue=queue)
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert "WARN" in {line["level"] for line in lines}
