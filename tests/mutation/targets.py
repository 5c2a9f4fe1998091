"""What is mutated, and which tests are to notice."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]

# Tests that need no server and no engine. For what runs inside functions, those of them that
# come past a line are asked about it.
TESTS: Final = (
    "tests/unit/domain",
    "tests/unit/lifecycle",
    "tests/unit/consolidation",
    "tests/unit/recall",
    "tests/unit/digests",
)
# Tests that have one of these open an engine and are left out, like those that borrow a store.
NOT_PURE: Final = frozenset({"tmp_path", "tmp_path_factory"})

_LEFT_OUT: Final = tomllib.loads(Path(__file__).with_name("left_out.toml").read_text("utf-8"))


@dataclass(frozen=True, slots=True)
class Target:
    """A module, and its own tests.

    Attributes:
        module: Its dotted name.
        tests: Files whose tests are to notice changed constants, tables and fields, too,
            for which everything has to be loaded anew.
    """

    module: str
    tests: tuple[str, ...]

    @property
    def path(self) -> Path:
        """Where its source is."""
        return ROOT / (self.module.replace(".", "/") + ".py")

    @property
    def left_out(self) -> frozenset[str]:
        """Top-level names that are not mutated."""
        return frozenset(_LEFT_OUT.get(self.module, ()))


TARGETS: Final = (
    Target("engram.domain.confidence", ("tests/unit/domain/test_confidence.py",)),
    Target("engram.domain.buffer", ("tests/unit/domain/test_buffer.py",)),
    Target(
        "engram.lifecycle.policies",
        ("tests/unit/lifecycle/test_policies.py", "tests/unit/lifecycle/test_values.py"),
    ),
    Target(
        "engram.lifecycle.table",
        (
            "tests/unit/lifecycle/test_table.py",
            "tests/unit/lifecycle/test_actions.py",
            "tests/unit/lifecycle/test_settings_matter.py",
        ),
    ),
    Target(
        "engram.lifecycle.decisions",
        (
            "tests/unit/lifecycle/test_table.py",
            "tests/unit/lifecycle/test_policies.py",
        ),
    ),
    Target("engram.lifecycle.windows", ("tests/unit/lifecycle/test_windows.py",)),
    Target("engram.lifecycle.promotion", ("tests/unit/lifecycle/test_promotion.py",)),
    Target("engram.consolidation.reconcile", ("tests/unit/consolidation/test_batches.py",)),
    Target("engram.consolidation.timeline", ("tests/unit/consolidation/test_stretches.py",)),
    Target(
        "engram.recall.request",
        ("tests/unit/recall/test_visibility.py", "tests/unit/recall/test_filters.py"),
    ),
    Target(
        "engram.recall.score",
        (
            "tests/unit/recall/test_scoring.py",
            "tests/unit/recall/test_weighting.py",
        ),
    ),
    Target("engram.recall.search", ("tests/unit/recall/test_fusion.py",)),
    Target("engram.storage.updates", ("tests/unit/consolidation/test_update_races.py",)),
)
