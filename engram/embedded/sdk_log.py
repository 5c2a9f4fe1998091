"""What Temporal's SDK says by itself, kept out of the standard output of our programs."""

from __future__ import annotations

from functools import cache

from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter


@cache
def runtime() -> Runtime:
    """The SDK's runtime for the embedded mode, one a process.

    The SDK's core writes its log to standard output, where commands print what they
    answer. Its warnings are about outages of a server that we watch and start again,
    and about work that was cancelled: what matters of these, we log ourselves.
    Handing its log to Python instead has its threads call into an interpreter that
    is perhaps just ending.
    """
    only_errors = TelemetryFilter(core_level="ERROR", other_level="ERROR")
    return Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(filter=only_errors)))
