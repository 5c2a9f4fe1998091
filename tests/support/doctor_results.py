"""What `engram doctor` looks at, and what a result of it must say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from engram.cli.config.effective import effective
from engram.cli.doctor.installation import CheckContext, CheckResult, State


def around(
    path: Path,
    variables: Mapping[str, str] | None = None,
    *,
    connected: bool = False,
    ask_model: bool = False,
) -> CheckContext:
    """A data folder and some variables."""
    told, settings = effective({"ENGRAM_DATA_DIR": str(path), **(variables or {})})
    return CheckContext(settings, told, connected=connected, ask_model=ask_model)


def says(found: CheckResult, state: State, *words: str) -> None:
    """Check a result; what is not well comes with advice."""
    assert found.state is state, found
    for word in words:
        assert word in f"{found.found} {found.advice}", found
    assert (found.advice is None) is (state is State.OK)
