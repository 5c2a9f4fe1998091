"""Named retry profiles, every one bounded. Which failures end them at once, errors say themselves.

A profile bounds attempts, the activity's timeouts bound each attempt.
"""

from __future__ import annotations

from datetime import timedelta

from temporalio.common import RetryPolicy

# Within the latency of an update: one more try, then the regular activity takes over.
LOCAL_STORE = RetryPolicy(
    initial_interval=timedelta(milliseconds=100),
    maximum_interval=timedelta(milliseconds=100),
    maximum_attempts=2,
)

# About a day: work that was accepted survives an outage of the store.
STORE_LONG = RetryPolicy(
    initial_interval=timedelta(milliseconds=200),
    backoff_coefficient=2.0,
    maximum_interval=timedelta(seconds=30),
    maximum_attempts=2900,
)

# About eight minutes between first and last attempt. A provider that names a delay
# is waited for as long as it says, because the failure carries it.
MODEL = RetryPolicy(
    initial_interval=timedelta(seconds=1),
    backoff_coefficient=3.0,
    maximum_interval=timedelta(minutes=2),
    maximum_attempts=9,
)

# Between passes that an outage stopped: from five minutes to four hours, about a day in all.
_FIRST_WAIT = timedelta(minutes=5)
_LONGEST_WAIT = timedelta(hours=4)
_MOST_WAITS = 11


def after_outage(number: int) -> timedelta | None:
    """How long to wait after the ``number``-th outage in a row, from 1; None: no longer."""
    if number > _MOST_WAITS:
        return None
    growth: int = 2 ** (number - 1)
    return min(_FIRST_WAIT * growth, _LONGEST_WAIT)
