"""Logs: readable or JSON, with Temporal's ids, silent on replay, never with memory content."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
from collections.abc import Iterator
from datetime import timedelta

import pytest
import structlog
from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy
from temporalio.worker import Replayer, Worker

from engram.activities.runtime import TypedErrorInterceptor
from engram.logging import (
    configure_default_logging,
    configure_logging,
    configure_logging_late,
    get_logger,
    where,
)
from engram.temporal.encryption import for_replays
from engram.workflows.worker import sandbox_runner


@pytest.fixture
def restored() -> Iterator[None]:
    """Logging as it was, afterwards."""
    root = logging.getLogger()
    handlers, level, configuration = root.handlers[:], root.level, structlog.get_config()
    yield
    root.handlers = handlers
    # Not by its attribute: loggers remember what they may say.
    root.setLevel(level)
    structlog.configure(**configuration)


@pytest.mark.usefixtures("restored")
def test_json_is_one_document_a_line() -> None:
    """Every line parses, with level, time and fields; debug is left out at info."""
    out = io.StringIO()
    configure_logging(level="info", style="json", stream=out)
    log = structlog.get_logger("engram.test")
    log.debug("hidden")
    log.info("stored", turns=3)
    logging.getLogger("other").warning("from a library")
    first, second = (json.loads(line) for line in out.getvalue().splitlines())
    assert (first["event"], first["level"], first["turns"]) == ("stored", "info", 3)
    assert "timestamp" in first
    assert second["event"] == "from a library"


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("first", ["own", "library", "other part"])
def test_logging_is_set_up_with_the_first_line(
    first: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was asked for holds for the line that sets it up, wherever that comes from."""
    structlog.reset_defaults()
    configure_logging_late(level="error", style="json")
    assert not structlog.is_configured()
    if first == "own":
        get_logger("engram.test").error("broken", parts=2)
    elif first == "library":
        logging.getLogger("other").error("broken")
    else:
        configure_default_logging()
        structlog.get_logger("engram.test").error("broken")
    get_logger("engram.test").warning("hidden")
    logging.getLogger("other").warning("hidden as well")
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = (json.loads(line) for line in err.splitlines())
    assert (line["event"], line["level"]) == ("broken", "error")


@pytest.mark.usefixtures("restored")
def test_the_line_that_sets_logging_up_is_hidden_where_it_is_none_that_was_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A warning of another library is not printed where errors alone are, not even the first."""
    configure_logging_late(level="error", style="json")
    logging.getLogger("other").warning("hidden")
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("restored")
def test_who_configures_structlog_decides(capsys: pytest.CaptureFixture[str]) -> None:
    """Where nothing was asked for, warnings go to standard error; a program's own setting stays."""
    structlog.reset_defaults()
    get_logger("engram.test").info("hidden")
    get_logger("engram.test").warning("seen")
    # What stamina says of each attempt: Engram says once what it waits for.
    structlog.get_logger("stamina").warning("stamina.retry_scheduled", args="hidden")
    out, err = capsys.readouterr()
    assert (out, "seen" in err, "hidden" in err) == ("", True, False)
    structlog.configure(processors=[lambda _, __, event: f"mine: {event['event']}"])
    get_logger("engram.test").warning("seen")
    assert capsys.readouterr().err == "mine: seen\n"


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("style", ["json", "console"])
def test_a_traceback_shows_no_local_variables(style: str) -> None:
    """An exception is logged with frames, and without what the variables held."""
    out = io.StringIO()
    configure_logging(style="json" if style == "json" else "console", stream=out)
    content = "my secret " + "diary"
    try:
        raise RuntimeError(f"failed after {len(content)} characters")  # noqa: TRY301 - it is what is logged
    except RuntimeError:
        structlog.get_logger("engram.test").exception("went wrong")
    assert "failed after 15 characters" in out.getvalue()
    assert content not in out.getvalue()


@pytest.mark.usefixtures("restored")
def test_a_traceback_of_a_library_is_a_text_in_json_too() -> None:
    """What the SDK logs of a failure names its frames and causes, without local variables."""
    out = io.StringIO()
    configure_logging(style="json", stream=out)
    content = "my secret " + "diary"
    try:
        try:
            raise ValueError("the cause")  # noqa: TRY301 - it is what is logged
        except ValueError as cause:
            raise RuntimeError(f"failed after {len(content)} characters") from cause
    except RuntimeError:
        logging.getLogger("temporalio.activity").warning("Completing as failed", exc_info=True)
    line = json.loads(out.getvalue())
    assert (line["event"], line["level"]) == ("Completing as failed", "warning")
    assert "exc_info" not in line
    told = line["exception"]
    assert re.search(r"ValueError: the cause\n.*test_logging.py.*RuntimeError", told, re.DOTALL)
    assert told.endswith("failed after 15 characters")
    assert content not in out.getvalue()


@activity.defn(name="logging-activity")
async def log_in_activity() -> None:
    """Log a line."""
    structlog.get_logger("engram.test").info("from the activity")


@workflow.defn(name="logging-workflow", sandboxed=False)
class LoggingWorkflow:
    """Logs, and has an activity log."""

    @workflow.run
    async def run(self) -> None:
        """Log a line on both sides."""
        structlog.get_logger("engram.test").info("from the workflow")
        await workflow.execute_activity(
            log_in_activity, start_to_close_timeout=timedelta(seconds=5)
        )


@pytest.mark.usefixtures("restored")
async def test_temporal_ids_are_bound_and_replays_are_silent(temporal_client: Client) -> None:
    """Lines name their workflow, run and activity by themselves; a replay logs nothing."""
    out = io.StringIO()
    configure_logging(style="json", stream=out)
    async with Worker(
        temporal_client,
        task_queue="logging",
        workflows=[LoggingWorkflow],
        activities=[log_in_activity],
        workflow_runner=sandbox_runner(),
    ):
        handle = await temporal_client.start_workflow(
            "logging-workflow", id="logging", task_queue="logging"
        )
        await handle.result()
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    from_workflow, from_activity = (
        next(line for line in lines if line["event"] == f"from the {where}")
        for where in ("workflow", "activity")
    )
    assert from_workflow["workflow_id"] == from_activity["workflow_id"] == "logging"
    assert from_workflow["run_id"] == handle.result_run_id
    assert (from_activity["activity"], from_activity["attempt"]) == ("logging-activity", 1)
    before = out.getvalue()
    replayer = Replayer(
        workflows=[LoggingWorkflow],
        workflow_runner=sandbox_runner(),
        data_converter=for_replays(temporal_client.data_converter),
    )
    await replayer.replay_workflow(await handle.fetch_history())
    assert out.getvalue() == before


@activity.defn(name="slow-activity")
async def slow_activity() -> None:
    """Takes longer than it may, at the first attempt."""
    if activity.info().attempt == 1:
        await asyncio.sleep(60)


@workflow.defn(name="impatient-workflow", sandboxed=False)
class ImpatientWorkflow:
    """Cuts an activity off, as storing is that is slow for once."""

    @workflow.run
    async def run(self) -> None:
        """Give it a moment."""
        await workflow.execute_local_activity(
            slow_activity,
            start_to_close_timeout=timedelta(seconds=0.2),
            retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=10)),
        )


async def test_what_was_cut_off_and_goes_on_shows_no_traceback(
    temporal_client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """An activity that ran out of time is tried again; no program reads of it as of a failure."""
    async with Worker(
        temporal_client,
        task_queue="impatient",
        workflows=[ImpatientWorkflow],
        activities=[slow_activity],
        workflow_runner=sandbox_runner(),
        interceptors=[TypedErrorInterceptor()],
    ):
        await temporal_client.execute_workflow(
            "impatient-workflow", id="impatient", task_queue="impatient"
        )
    assert [line for line in caplog.records if line.name == "temporalio.activity"] == []


def test_where_an_error_was_raised_is_told_in_few_words() -> None:
    """However deep it lay: file, line and function of the innermost frames, and no values."""

    def deep(left: int, secret: str) -> None:
        if not left:
            raise ValueError(secret)
        deep(left - 1, secret)

    try:
        deep(200, "hunter2")
    except ValueError as error:
        told = where(error)
    assert told.endswith("deep")
    assert "test_logging.py:" in told
    assert len(told) <= 1000
    assert "hunter2" not in told
