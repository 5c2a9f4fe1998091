"""Whatever takes long says how far it is, on standard error, for who reads a log as well."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from engram.cli import output
from engram.cli.running import StoreOptions
from engram.client.importing import ImportSummary
from engram.contracts.consolidation import ConsolidationReport
from engram.contracts.importing import ImportProgress
from engram.contracts.lifecycle import (
    DecayReport,
    MaintenanceProgress,
    MaintenanceReport,
    PassKind,
    PromotionReport,
    UserChanges,
)
from engram.contracts.removal import CompactReceipt, ErasureReceipt, ForgetReceipt
from engram.domain.scope import Scope
from engram.operations.admin import ValidationReport
from engram.operations.learning import LearningTrial
from engram.operations.trials import Scenario, ScenarioReport
from engram.settings import Settings
from engram.transfer.memories import ImportReport
from tests.support.cli import engram

TESTS = Path(__file__).parents[2]
_HISTORY = next(iter(sorted((TESTS / "replay" / "histories").rglob("*.json"))))
_WHOSE = ("-u", "ada")
_OLD = {"content": "I play the oboe.", "timestamp": "2020-05-01T10:00:00Z"}
_ERASED = ErasureReceipt(
    namespace="default",
    user_id="ada",
    erased_at=datetime(2025, 1, 1, tzinfo=UTC),
    memories={},
    workflows_stopped=0,
    histories_deleted=0,
    histories_kept=0,
    workflow_id="w",
)
_ANSWERS: dict[str, Any] = {
    "consolidate": ConsolidationReport(),
    "decay": DecayReport(),
    "promote": PromotionReport(),
    "forget": ForgetReceipt(memory_id="m", forgotten={}, workflow_id="w"),
    "erase": _ERASED,
    "erased": _ERASED,
    "compact": CompactReceipt(),
    "play_scenario": ScenarioReport(name=Scenario.FADE, passed=True, steps=()),
    "validate": ValidationReport(memories=3),
    "import_memories": ImportReport(),
    "count": 3,
    # As `status` has it: two turns wait, of three memories.
    "status": SimpleNamespace(
        waiting=2, to_consider=2, test_memories=0, types={"e": SimpleNamespace(memories=3, due=2)}
    ),
}


async def _some_time() -> None:
    """Long enough for a few looks."""
    await asyncio.sleep(0.02)


class LongMemory:
    """Everything that is asked of it takes some time."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """A method that answers what the command can print."""
        answer = _ANSWERS[name]

        async def asked(*_: Any, **__: Any) -> Any:
            if name not in {"status", "count"}:
                await _some_time()
            return answer

        return asked

    async def export_file(self, *_: Any, on_progress: Callable[[int], None], **__: Any) -> int:
        """Three memories, one after another."""
        for done in (1, 2, 3):
            on_progress(done)
        return 3

    async def export_lines(self, **_: Any) -> AsyncIterator[str]:
        """A line before three memories, and one behind them."""
        for number in range(5):
            yield json.dumps({"line": number})

    async def import_file(
        self, *_: Any, on_progress: Callable[[ImportProgress], None] = lambda _: None, **__: Any
    ) -> ImportSummary:
        """Three turns."""
        for done in (1, 2, 3):
            on_progress(ImportProgress(import_id="i", position=done))
        return ImportSummary(format="jsonl", total=3)


class LongPasses:
    """Passes over all users that take some time."""

    def __init__(self, *_: Any) -> None: ...

    async def maintain(self, kind: PassKind, *, dry_run: bool, **_: Any) -> MaintenanceReport:
        """Three users are due."""
        await _some_time()
        users = (UserChanges(scope=Scope.of("default", f"u{n}")) for n in range(3))
        return MaintenanceReport(kind=kind, dry_run=dry_run, would_change=tuple(users))

    async def progress(self, *_: Any, **__: Any) -> MaintenanceProgress:
        """The second one's turn."""
        return MaintenanceProgress(found=3, served=1)


@pytest.fixture
def _long(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Commands meet what takes long, look often, and say at once what they see."""
    monkeypatch.chdir(tmp_path)

    @asynccontextmanager
    async def memory_of(_: StoreOptions, __: str) -> AsyncIterator[LongMemory]:
        yield LongMemory()

    @asynccontextmanager
    async def temporal(_: StoreOptions) -> AsyncIterator[tuple[Any, Settings]]:
        yield SimpleNamespace(data_converter=None), Settings()

    async def tried(*_: Any, **__: Any) -> LearningTrial:
        await _some_time()
        return LearningTrial(
            namespace="default",
            model="m",
            version=None,
            not_followed=(),
            turns=1,
            remaining=False,
            learnt=(),
            without=(),
        )

    async def consolidated(*_: Any, **__: Any) -> ConsolidationReport:
        return ConsolidationReport(dry_run=True)

    async def saved(histories: AsyncIterator[Any], *_: Any) -> Any:
        from engram.workflows.replaying import Saved  # noqa: PLC0415 - as the command loads it

        return Saved(folder="h", files=tuple([f"{one}" async for one in histories]))

    async def recent(*_: Any, **__: Any) -> AsyncIterator[Any]:
        for number in range(3):
            yield number

    monkeypatch.setattr(StoreOptions, "memory_of", memory_of)
    monkeypatch.setattr("engram.cli.passes.temporal", temporal)
    monkeypatch.setattr("engram.cli.histories.temporal", temporal)
    monkeypatch.setattr("engram.temporal.passes.PassRunner", LongPasses)
    monkeypatch.setattr("engram.temporal.gateway.PassRunner", LongPasses)
    monkeypatch.setattr("engram.temporal.gateway.WorkflowGateway.consolidate", consolidated)
    monkeypatch.setattr("engram.operations.learning.try_learning", tried)
    monkeypatch.setattr("engram.workflows.replaying.save", saved)
    monkeypatch.setattr("engram.workflows.replaying.recent_histories", recent)
    monkeypatch.setattr("engram.cli.running._LOOK_EVERY", 0.001)
    monkeypatch.setattr("engram.cli.output.SAY_SO", 0.0)
    Path("old.jsonl").write_text(json.dumps(_OLD) + "\n")
    Path("turns.jsonl").write_text(json.dumps({"content": "I live in Oslo."}) + "\n")


LONG: dict[str, tuple[tuple[str, ...], str]] = {
    "consolidate": (_WHOSE, "Consolidating: 0 of 2"),
    "decay": (_WHOSE, "Reviewing what is due: 0 of 2"),
    "promote": (_WHOSE, "Promoting what is ready: 0 of 2"),
    "consolidate --all": ((), "Passing over all users: consolidation: 1 of 3"),
    "consolidate --all --dry-run": ((), "Passing over all users: consolidation: 3 of 3"),
    "decay --all": ((), "Passing over all users: decay: 1 of 3"),
    "promote --all --dry-run": ((), "Passing over all users: promotion: 1 of 3"),
    "forget m --yes": (_WHOSE, "Forgetting: 0 s"),
    "erase --yes": (_WHOSE, "Erasing: 0 of 3"),
    "compact": ((), "Rewriting files: 0 s"),
    "validate": (_WHOSE, "Looking: 0 s"),
    "export all.jsonl": (_WHOSE, "Exporting: 2 of 3"),
    "export -": (_WHOSE, "Exporting: 2 of 3"),
    "import turns.jsonl": (_WHOSE, "2 of 3"),
    "migrate old.jsonl": (_WHOSE, "Importing: 1 of 1"),
    "test scenario fade": (_WHOSE, "Playing fade: 0 s"),
    "test learning turns.jsonl": ((), "Asking the model: 0 s"),
    f"replay --file {_HISTORY}": ((), "Replaying: 1 histories"),
    "save-histories h --recent": ((), "Saving: 2 histories"),
    f"eval recall {TESTS / 'data' / 'conversations.json'}": ((), "Asking: 1 of 4"),
}
"""Commands that can take long, and what of how far they are they say."""


@pytest.mark.usefixtures("_long")
@pytest.mark.parametrize(
    ("command", "whose", "told"),
    [(command, *rest) for command, rest in LONG.items()],
    ids=[" ".join(command.split()[:2]) for command in LONG],
)
def test_what_takes_long_says_how_far_it_is(
    command: str, whose: tuple[str, ...], told: str
) -> None:
    """Numbers where they are known, else the time; never among the answer."""
    done = engram(*command.split(), *whose)
    assert done.code == 0, done.stderr
    assert any(line.startswith(told) for line in done.stderr.splitlines()), done.stderr
    assert told not in done.stdout


@pytest.mark.usefixtures("_long")
def test_lines_that_are_looked_at_have_no_progress_between_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An export onto a terminal is its own progress."""
    monkeypatch.setattr(type(output.console), "is_terminal", property(_is_no_error))
    done = engram("export", "-", *_WHOSE)
    assert done.code == 0
    assert len(done.stdout.splitlines()) == 5
    assert "Exporting" not in done.stderr


def _is_no_error(console: Console) -> bool:
    return console is output.console
