"""How much one caller may ask for: each bound has an error that says what is allowed."""

from __future__ import annotations

import time
from datetime import timedelta
from uuid import uuid4

import pytest
from pydantic import ValidationError

from engram.contracts.consolidation import ConsolidationPolicy, EpisodeBatch, SelectDueOutput
from engram.contracts.importing import ImportBatch
from engram.domain.scope import Scope
from engram.domain.turns import Turn
from engram.errors import (
    InvalidInput,
    InvalidQuery,
    InvalidSettings,
    InvalidTurn,
    TooManyRequests,
)
from engram.operations.memories import CountMemories
from engram.operations.registry import Intake, RunningQuota
from engram.operations.trials import DeleteTests
from engram.operations.turns import ENCODE, Encode
from engram.recall.request import RecallRequest
from engram.settings import Settings
from engram.transfer.batches import check_packed
from tests.support.clock import NOW

ADA, BOB = Scope.of("default", "ada"), Scope.of("default", "bob")
SETTINGS = Settings.load()


def quota(idle: timedelta = timedelta(hours=1)) -> RunningQuota:
    """Two at a time."""
    return RunningQuota("sessions", 2, idle, "End one.")


def test_a_call_takes_so_many_turns() -> None:
    """1,000 pass, one more is refused before any of them is looked at."""
    intake = Intake(SETTINGS, lambda: NOW, lambda: "id", "default")
    turns = tuple(Turn(content="Hello.") for _ in range(1000))
    assert len(ENCODE.accept(Encode(session_id="s", turns=turns), intake).turns) == 1000
    many = Encode(session_id="s", turns=(*turns, Turn.model_construct(content="\x00")))
    with pytest.raises(InvalidTurn, match="up to 1000 at once"):
        ENCODE.accept(many, intake)


def test_as_many_run_for_a_user_as_are_allowed() -> None:
    """One more is refused; those that run go on, and so do others; one that ends makes room."""
    running = quota()
    running.admit(ADA, "a")
    running.admit(ADA, "b")
    with pytest.raises(TooManyRequests, match=r"up to 2 at the same time.* End one") as refused:
        running.admit(ADA, "c")
    assert refused.value.retryable
    running.admit(ADA, "a")
    running.admit(BOB, "c")
    running.ended(ADA, "b")
    running.admit(ADA, "c")


def test_nothing_of_an_erased_user_counts() -> None:
    """There is room for as many again; others are counted as before."""
    running = quota()
    for scope in (ADA, BOB):
        running.admit(scope, "a")
        running.admit(scope, "b")
    running.forget(ADA)
    running.admit(ADA, "c")
    running.admit(ADA, "d")
    with pytest.raises(TooManyRequests, match="2 sessions of this user were begun here"):
        running.admit(BOB, "c")


def test_what_is_idle_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """After its idle time a session has ended by itself; one that is used has not."""
    running = quota(timedelta(minutes=30))
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    running.admit(ADA, "a")
    running.admit(ADA, "b")
    now += 1500
    running.admit(ADA, "a")
    now += 600
    running.admit(ADA, "c")
    with pytest.raises(TooManyRequests):
        running.admit(ADA, "d")


def test_lists_of_requests_have_a_bound() -> None:
    """Tags, types, forms and ids: more than there can be are refused, in our words."""
    for options in (
        {"tags": ["t"] * 65},
        {"tags": ["t" * 257]},
        {"memory_types": ["semantic"] * 33},
        {"forms": ["topic"] * 33},
    ):
        with pytest.raises(InvalidQuery, match="up to"):
            RecallRequest.of("Where?", settings=SETTINGS, **options)
    with pytest.raises(ValidationError):
        CountMemories.model_validate({"memory_types": ["semantic"] * 33})
    with pytest.raises(ValidationError):
        DeleteTests.model_validate({"memory_ids": ["m"] * 1001})


def test_a_batch_of_an_import_has_so_many_entries() -> None:
    """More than a client of ours sends are refused before they are unpacked."""
    with pytest.raises(InvalidInput, match="800 entries"):
        check_packed(ImportBatch(first=0, count=801, packed="x"))


def test_defaults_protect() -> None:
    """Rate, bodies, turns, sessions, imports and connections are bounded where nobody set them."""
    asked = Settings.model_fields
    assert asked["http_requests_per_second"].default == 200
    assert asked["http_max_body_bytes"].default == 8 * 1024 * 1024
    assert asked["max_turns_per_call"].default == 1000
    assert asked["max_running_sessions"].default == 1000
    assert asked["max_running_imports"].default == 20
    assert asked["http_connections"].default == 1000


def test_all_that_a_pass_selects_at_once_fits_into_what_temporal_carries() -> None:
    """The most that the setting takes, each turn of a session of its own: below 2 MB."""
    most = 20_000
    policy = ConsolidationPolicy.fixed_by(Settings.load(pass_episodes=most))
    assert policy.pass_episodes == most
    with pytest.raises(InvalidSettings):
        Settings.load(pass_episodes=most + 1)
    batches = tuple(
        EpisodeBatch(session_id=f"session-{n}", episode_ids=(str(uuid4()),)) for n in range(most)
    )
    assert len(SelectDueOutput(batches=batches).model_dump_json()) < 2 * 2**20
