"""What commands say of a dry run over all users: what would change, user by user."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from engram.cli.running import StoreOptions
from engram.contracts.consolidation import ConsolidationReport
from engram.contracts.lifecycle import (
    Change,
    DecayReport,
    MaintenanceReport,
    PassKind,
    RuleCount,
)
from engram.domain.memories import MemoryType
from engram.domain.scope import Scope
from engram.settings import Settings
from engram.temporal.gateway import ConsolidationRehearsal, UserRehearsal
from tests.support.cli import engram


def due(count: int) -> DecayReport:
    """So many memories of one user that would leave."""
    changes = [
        Change(
            memory_id=f"m{number}",
            memory_type=MemoryType.EPISODIC,
            rule="retention",
            source="active",
            target="archived",
            why="faint",
        )
        for number in range(count)
    ]
    step = RuleCount(
        rule="retention", aspect="status", source="active", target="archived", memories=count
    )
    return DecayReport(transitions=(step,), changes=tuple(changes))


class _Passes:
    """A pass over two users, of whom one has much that is due."""

    def __init__(self, *_: Any) -> None: ...

    async def maintain(self, kind: PassKind, *, dry_run: bool, **_: Any) -> MaintenanceReport:
        report = MaintenanceReport(kind=kind, dry_run=dry_run)
        report = report.with_user(Scope.of("default", "ada"), due(1))
        return report.with_user(Scope.of("default", "bob"), due(25))

    async def progress(self, *_: Any, **__: Any) -> None:
        return None


@pytest.fixture(autouse=True)
def _passes(monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def temporal(_: StoreOptions) -> AsyncIterator[tuple[Any, Settings]]:
        yield None, Settings()

    monkeypatch.setattr("engram.cli.passes.temporal", temporal)
    monkeypatch.setattr("engram.temporal.passes.PassRunner", _Passes)


def test_a_dry_run_over_all_users_lists_what_would_change_for_each() -> None:
    """A line for each change with whose it is, twenty of a user, and how many more there are."""
    shown = engram("decay", "--all", "--dry-run").stdout.splitlines()
    rows = [line.split("\t") for line in shown if line.startswith("default/")]
    assert rows[0] == ["default/ada", "m0", "retention", "active", "archived"]
    assert [row[0] for row in rows] == ["default/ada"] + ["default/bob"] * 20
    assert shown[-1].startswith("and 5 more")


def test_a_real_pass_over_all_users_gives_numbers_alone() -> None:
    """It changed what it says; whose that was stands in their own runs."""
    assert "default/" not in engram("decay", "--all").stdout


@pytest.mark.parametrize(
    ("users", "said", "unread"),
    [(0, "Nothing waits.", False), (3, "Nothing would change.", True)],
)
def test_a_rehearsal_says_whom_it_did_not_read(
    monkeypatch: pytest.MonkeyPatch, users: int, said: str, unread: bool
) -> None:
    """Nobody takes what was left unread for what would not change."""
    read = UserRehearsal(scope=Scope.of("default", "ada"), report=ConsolidationReport())

    async def rehearsed(*_: Any) -> ConsolidationRehearsal:
        of_users = (read,) if users else ()
        return ConsolidationRehearsal(
            kind=PassKind.CONSOLIDATION, users=users, of_users=of_users, dry_run=True
        )

    monkeypatch.setattr("engram.temporal.gateway.rehearse_consolidation", rehearsed)
    shown = engram("consolidate", "--all", "--dry-run")
    assert said in shown.stderr
    assert ("Of 2 more users, nothing was read." in shown.stdout) == unread
