"""The public application over an engine made by hand, and keys for it."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import httpx
import pytest
import structlog
from fastapi import FastAPI
from structlog.testing import capture_logs
from structlog.typing import EventDict

from engram.domain.access import Access
from engram.http.key_file import KeyFile
from engram.http.keys import ApiKey, new_key
from engram.http.serve import public_app
from engram.settings import Settings
from tests.conftest import NOW
from tests.support.fake_engine import FakeEngine


@dataclass
class Office:
    """Makes keys, and has the clock by which they expire."""

    file: KeyFile
    now: datetime = NOW
    tokens: list[str] = field(default_factory=list)

    def clock(self) -> datetime:
        """The present of the server."""
        return self.now

    def key(
        self,
        name: str = "key",
        access: Access = Access.ADMIN,
        namespace: str = "default",
        user: str | None = None,
        days: float | None = None,
    ) -> ApiKey:
        """A new key; its token is the last of ``tokens``."""
        token, key = new_key(
            os.urandom(32),
            name=name,
            access=access,
            namespace=namespace,
            user_id=user,
            now=self.now,
            expires_at=None if days is None else self.now + timedelta(days=days),
        )
        self.file.add(key, self.now)
        self.tokens.append(token)
        return key

    def token(
        self,
        name: str = "key",
        access: Access = Access.ADMIN,
        namespace: str = "default",
        user: str | None = None,
        days: float | None = None,
    ) -> str:
        """The token of a new key."""
        self.key(name, access, namespace, user, days)
        return self.tokens[-1]


@dataclass
class Shared:
    """One application for all tests, which takes long to make; what it knows is made anew."""

    office: Office
    fake: FakeEngine
    settings: Settings
    app: FastAPI


@pytest.fixture(scope="session")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Shared:
    """The parts, put together once."""
    office = Office(KeyFile(tmp_path_factory.mktemp("http") / "data" / "keys.json"))
    fake, settings = FakeEngine(), Settings.load(keys_file=office.file.path)
    return Shared(office, fake, settings, public_app(fake, settings, office.clock))


@pytest.fixture(autouse=True)
def shared(everything: Shared) -> Shared:
    """The parts, as new."""
    vars(everything.fake).clear()
    vars(everything.fake).update(vars(FakeEngine()))
    office = everything.office
    office.file = KeyFile(everything.settings.keys_path)
    office.file.path.unlink(missing_ok=True)
    office.now = NOW
    office.tokens.clear()
    return everything


@pytest.fixture
def office(shared: Shared) -> Office:
    """Makes keys."""
    return shared.office


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


def bearer(token: str) -> dict[str, str]:
    """The header with a key."""
    return {"Authorization": f"Bearer {token}"}
