"""structlog, set up once by a program: console for people, JSON for machines.

Temporal ids are bound by themselves wherever a line is logged inside a workflow
or an activity, and a workflow that replays says nothing a second time. Memory
content never goes into a line at info level or above.

structlog is loaded with the first line, or by what does more than ask another process:
loading it takes an eighth of a command that does not log at all.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO, TypeAlias

if TYPE_CHECKING:
    from structlog.typing import EventDict, Processor, WrappedLogger

Level: TypeAlias = Literal["debug", "info", "warning", "error"]
Style: TypeAlias = Literal["console", "json"]

_FRAMES = 12
# Characters.
_LONGEST_TRACEBACK_PLACE = 1000
_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def bind_temporal_ids(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Processor: add the ids of the workflow or activity that is logging."""
    # A process that has not loaded Temporal runs neither, and need not load it to log.
    if "temporalio" not in sys.modules:
        return event
    import structlog  # noqa: PLC0415 - loaded: it is what calls
    from temporalio import activity, workflow  # noqa: PLC0415 - see above

    if workflow.in_workflow():
        if workflow.unsafe.is_replaying():
            raise structlog.DropEvent
        running = workflow.info()
        event.setdefault("workflow_id", running.workflow_id)
        event.setdefault("run_id", running.run_id)
    elif activity.in_activity():
        doing = activity.info()
        event.setdefault("activity", doing.activity_type)
        event.setdefault("attempt", doing.attempt)
        event.setdefault("workflow_id", doing.workflow_id)
        event.setdefault("run_id", doing.workflow_run_id)
    return event


def no_attempts(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Processor: drop what stamina says of each attempt; Engram says once what it waits for."""
    import structlog  # noqa: PLC0415 - loaded: it is what calls

    if event.get("event") == "stamina.retry_scheduled":
        raise structlog.DropEvent
    return event


def configure_logging(
    *,
    level: Level = "info",
    style: Style = "console",
    stream: TextIO | None = None,
) -> None:
    """Send structlog and standard logging to ``stream`` (standard error by default)."""
    global _asked  # noqa: PLW0603 - like what it sets up, one for the process
    import structlog  # noqa: PLC0415 - see the top

    _asked = None
    out = stream or sys.stderr
    shared: list[Processor] = [
        no_attempts,
        structlog.contextvars.merge_contextvars,
        bind_temporal_ids,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: Processor = (
        structlog.processors.JSONRenderer()
        if style == "json"
        # The default formatter prints local variables, and those hold memory content.
        else structlog.dev.ConsoleRenderer(
            colors=out.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    )
    # Of JSON, a traceback is a text; the renderer for people lays it out itself.
    traceback_told = structlog.processors.format_exc_info if style == "json" else _keep
    structlog.configure(
        processors=[
            *shared,
            structlog.processors.StackInfoRenderer(),
            traceback_told,
            last,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(out),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                traceback_told,
                last,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    # Other libraries speak up only when something is wrong.
    root.setLevel(max(_LEVELS[level], logging.WARNING))


def _keep(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    return event


def where(error: BaseException) -> str:
    """Where an error nobody foresaw was raised, for a line of the log: the innermost frames.

    Neither its text nor the values in its frames: both may hold what is remembered. And
    never much: it is written again with each retry.
    """
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    told = " > ".join(f"{Path(one.filename).name}:{one.lineno} {one.name}" for one in frames)
    return told[-_LONGEST_TRACEBACK_PLACE:]


# What is to be set up when the first line comes.
_asked: Callable[[], None] | None = None


def configure_logging_late(*, level: Level, style: Style) -> None:
    """Do what :func:`configure_logging` does when there is a line to log, or more than a request.

    :func:`configure_default_logging` does it where structlog is needed: what loads it besides
    this module comes behind such a call.
    """
    global _asked  # noqa: PLW0603 - see above
    _asked = partial(configure_logging, level=level, style=style)
    logging.getLogger().handlers = [_LateHandler()]


class _LateHandler(logging.Handler):
    """Hands a line of standard logging to what is set up for it."""

    def emit(self, record: logging.LogRecord) -> None:
        configure_default_logging()
        root = logging.getLogger()
        # What was set up may ask for less than what it was handed here for.
        if root.isEnabledFor(record.levelno):
            root.handle(record)


def configure_default_logging() -> None:
    """Set up what was asked for; or else say what is wrong, on standard error, and no more.

    Unconfigured, structlog prints every line on standard output, which belongs to
    the program. A program that configures structlog, before or later, decides itself.
    """
    import structlog  # noqa: PLC0415 - see the top

    if _asked is not None:
        _asked()
    elif not structlog.is_configured():
        structlog.configure(
            processors=[no_attempts, *structlog.get_config()["processors"]],
            wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
            # Asked for with each line: a program may exchange its standard error.
            logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
        )


class _LateLogger:
    """A logger of structlog, which is loaded with its first line."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, method: str) -> Any:
        configure_default_logging()
        import structlog  # noqa: PLC0415 - see the top

        return getattr(structlog.get_logger(self._name), method)


def get_logger(name: str) -> Any:
    """A logger, as ``structlog.get_logger`` gives it, for what should load without structlog."""
    return _LateLogger(name)
