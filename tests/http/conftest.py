"""The public application over an engine made by hand, and keys for it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import httpx
import pytest
import structlog
from fastapi import FastAPI
from structlog.testing import capture_logs
from structlog.typing import EventDict

from engram.server.keys import KeyFile
from engram.server.run import public_app
from engram.settings import Settings
from tests.support.clock import NOW
from tests.support.fake_engine import FakeEngine
from tests.support.key_maker import KeyMaker
from tests.support.live_engram import LiveEngram, live_engram


@dataclass
class Shared:
    """One application for all tests, which takes long to make; what it knows is made anew."""

    key_maker: KeyMaker
    fake: FakeEngine
    settings: Settings
    app: FastAPI


@pytest.fixture(scope="session")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Shared:
    """The parts, put together once."""
    key_maker = KeyMaker(KeyFile(tmp_path_factory.mktemp("http") / "data" / "keys.json"))
    fake, settings = FakeEngine(key_maker.clock), Settings.load(keys_file=key_maker.file.path)
    return Shared(key_maker, fake, settings, public_app(fake, settings, key_maker.clock))


@pytest.fixture(autouse=True)
def shared(everything: Shared) -> Shared:
    """The parts, as new."""
    vars(everything.fake).clear()
    everything.fake.__init__(everything.key_maker.clock)  # type: ignore[misc]  # the application holds this very engine
    key_maker = everything.key_maker
    key_maker.file = KeyFile(everything.settings.keys_path)
    key_maker.file.path.unlink(missing_ok=True)
    key_maker.now = NOW
    key_maker.tokens.clear()
    return everything


@pytest.fixture
def key_maker(shared: Shared) -> KeyMaker:
    """Makes keys."""
    return shared.key_maker


@pytest.fixture
def settings(shared: Shared) -> Settings:
    """Of the server."""
    return shared.settings


@pytest.fixture
def fake(shared: Shared) -> FakeEngine:
    """The engine behind."""
    return shared.fake


@pytest.fixture
def app(shared: Shared) -> FastAPI:
    """The application that takes keys."""
    return shared.app


@pytest.fixture
async def web(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """Anybody who reaches the port."""
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8745"
    ) as client:
        yield client


@pytest.fixture
def lines() -> Iterator[list[EventDict]]:
    """What is logged at info and above, whatever other tests have set up."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    try:
        with capture_logs(processors=[structlog.contextvars.merge_contextvars]) as found:
            yield found
    finally:
        structlog.configure(**before)


@pytest.fixture(scope="package")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveEngram]:
    """A whole Engram, for every file in the group ``live``."""
    with live_engram(tmp_path_factory.mktemp("live") / "data") as running:
        yield running
