"""Whether somebody answers, and whether what is behind them does."""

from __future__ import annotations

import asyncio
import os
import time
from importlib.metadata import version
from typing import Final, Literal

from fastapi import FastAPI, Request
from pydantic import BaseModel

from engram.errors import EngramError, StorageUnavailable, TemporalNotSetUp, TemporalUnavailable
from engram.http.callers import caller_of
from engram.http.guarded import takes
from engram.http.parts import Engine

VERSION: Final = version("engram-memory")
# Stand for the ids in the addresses that health gives; attached processes put theirs in.
WORKFLOW_PLACE: Final = "WORKFLOW-ID"
RUN_PLACE: Final = "RUN-ID"


class Health(BaseModel):
    """Who answers. All but the version is told to callers with a key only.

    Attributes:
        version: Of Engram.
        pid: The process.
        workflow_url: Where the Temporal UI shows a workflow, with a place for its id.
        run_url: The same for a run.
    """

    version: str
    pid: int | None = None
    workflow_url: str | None = None
    run_url: str | None = None


class Readiness(BaseModel):
    """What answers."""

    temporal: Literal["answers"] = "answers"
    store: Literal["answers"] = "answers"


async def health(request: Request, engine: Engine) -> Health:
    """Whether the process answers; says nothing about what is behind it."""
    if caller_of(request.scope).access is None:
        return Health(version=VERSION)
    return Health(
        version=VERSION,
        pid=os.getpid(),
        workflow_url=engine.run_url(WORKFLOW_PLACE),
        run_url=engine.run_url(WORKFLOW_PLACE, RUN_PLACE),
    )


class ReadinessCheck:
    """Asks Temporal and the store, once for all who ask within a second.

    Args:
        holds: Seconds for which an answer holds: everybody may ask, and asking costs.
        patience: Seconds in which what is behind has to answer.
    """

    def __init__(self, *, holds: float = 1.0, patience: float = 3.0) -> None:
        self._holds = holds
        self._patience = patience
        self._asking = asyncio.Lock()
        self._asked_at: float | None = None
        self._missing: EngramError | None = None

    async def ready(self, engine: Engine) -> Readiness:
        """Whether Temporal and the store answer; 503 if one of them does not."""
        async with self._asking:
            if self._asked_at is None or time.monotonic() - self._asked_at >= self._holds:
                self._missing = await _missing(engine, self._patience)
                self._asked_at = time.monotonic()
        if self._missing is not None:
            raise self._missing
        return Readiness()


async def _missing(engine: Engine, patience: float) -> EngramError | None:
    try:
        async with asyncio.timeout(patience):
            await engine.check()
    except TimeoutError:
        return StorageUnavailable("What is behind this server does not answer in time.")
    # Not their own words: they may hold addresses, and everybody may ask.
    except (TemporalUnavailable, TemporalNotSetUp):
        return TemporalUnavailable("Temporal does not answer.")
    except EngramError:
        return StorageUnavailable("The store does not answer.")
    return None


def add_health(app: FastAPI, readiness: ReadinessCheck) -> None:
    """Offer health and readiness; they need no key."""
    app.add_api_route(
        "/v1/health",
        health,
        operation_id="service_health",
        summary="Health",
        tags=["service"],
        openapi_extra=takes(None),
    )
    app.add_api_route(
        "/v1/ready",
        readiness.ready,
        operation_id="service_ready",
        summary="Ready",
        tags=["service"],
        openapi_extra=takes(None),
    )
