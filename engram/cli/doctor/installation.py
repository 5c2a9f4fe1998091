"""What a check found, and the checks of this Python and its packages."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, ConfigDict

from engram.distribution import DISTRIBUTION, how_to_install
from engram.embedded.program import find_temporal
from engram.errors import EmbeddedPartMissing

if TYPE_CHECKING:
    from engram.cli.config.effective import Effective
    from engram.settings import Settings

# --- what a check found


class State(StrEnum):
    """How a check came out."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


class CheckResult(BaseModel):
    """What one check found.

    Attributes:
        check: What was looked at.
        state: Whether it is well.
        found: What there is, in words.
        advice: What to do, where it is not well.
    """

    model_config = ConfigDict(frozen=True)

    check: str
    state: State
    found: str
    advice: str | None = None


def ok(check: str, found: str) -> CheckResult:
    """It is as it should be."""
    return CheckResult(check=check, state=State.OK, found=found)


def warning(check: str, found: str, advice: str) -> CheckResult:
    """It works, and is not as it should be."""
    return CheckResult(check=check, state=State.WARNING, found=found, advice=advice)


def failed(check: str, found: str, advice: str) -> CheckResult:
    """It cannot work like this."""
    return CheckResult(check=check, state=State.FAILED, found=found, advice=advice)


@dataclass(frozen=True)
class CheckContext:
    """What checks look at.

    Attributes:
        settings: As they are used; those that cannot be used have their default.
        effective: The same, with where each comes from and what is wrong.
        connected: Whether servers are to be used rather than the data folder.
        ask_model: Whether the language model may be asked something, over the network.
        environment: The environment's variables.
        away: Servers that did not answer a check: those after it do not wait for them again.
    """

    settings: Settings
    effective: Effective
    connected: bool = False
    ask_model: bool = False
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    away: set[str] = field(default_factory=set)


Check = Callable[[CheckContext], CheckResult | Awaitable[CheckResult]]


# --- whether this Python has what Engram needs

_OLDEST: Final = (3, 11)
_SYSTEMS: Final = ("Linux", "Darwin")
_MACHINES: Final = ("x86_64", "amd64", "arm64", "aarch64")
_CONNECTED_INSTEAD: Final = "use the connected mode here (--connected)"
_SECONDS: Final = 10.0


def python(around: CheckContext) -> CheckResult:
    """The interpreter is new enough, and the platform one that the embedded parts exist for."""
    found = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    if sys.version_info[:2] < _OLDEST:
        return failed("python", found, f"install Python {'.'.join(map(str, _OLDEST))} or newer")
    fits = platform.system() in _SYSTEMS and platform.machine().lower() in _MACHINES
    if not fits and not around.connected:
        return failed(
            "python", found, f"the embedded mode needs Linux or macOS; {_CONNECTED_INSTEAD}"
        )
    return ok("python", found)


def needed_extra(around: CheckContext) -> CheckResult:
    """The packages that this mode cannot do without."""
    extra = "worker" if around.connected else "embedded"
    missing = missing_packages(extra)
    if not missing:
        return ok(f"extra {extra}", "installed")
    found = f"missing: {', '.join(missing)}"
    install = how_to_install(extra)
    if around.connected:
        return warning("extra worker", found, f"`engram worker` cannot run here without: {install}")
    return failed("extra embedded", found, f"{install}, or {_CONNECTED_INSTEAD}")


def optional_extras(_: CheckContext) -> CheckResult:
    """The packages that some commands need; nothing is wrong where they are missing."""
    words = []
    for extra, for_what in (("serve", "the HTTP API"), ("mcp", "MCP clients")):
        there = not missing_packages(extra)
        words.append(f"{for_what}: {'installed' if there else how_to_install(extra)}")
    return ok("optional extras", "; ".join(words))


def temporal_program(around: CheckContext) -> CheckResult:
    """The Temporal CLI is there and runs."""
    if around.connected:
        return ok("temporal program", "not needed with servers")
    try:
        program = find_temporal()
    except EmbeddedPartMissing as error:
        return failed("temporal program", error.message, error.hint or how_to_install("embedded"))
    try:
        answer = subprocess.run(  # noqa: S603 - the program that the embedded mode starts
            [str(program), "--version"],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return failed(
            "temporal program",
            f"{program} does not run ({type(error).__name__})",
            f"for this machine, again: {how_to_install('embedded')}",
        )
    return ok("temporal program", answer.stdout.strip().splitlines()[0])


def missing_packages(extra: str) -> list[str]:
    """Packages of an extra that are not installed, by what the installed Engram asks for."""
    try:
        wanted = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        # Run from its source without being installed: nothing is known about extras.
        return []
    missing = []
    for requirement in wanted:
        name, _, condition = requirement.partition(";")
        if re.search(rf"extra == ['\"]{re.escape(extra)}['\"]", condition):
            package = re.split(r"[^\w.-]", name.strip(), maxsplit=1)[0]
            try:
                importlib.metadata.version(package)
            except importlib.metadata.PackageNotFoundError:
                missing.append(package)
    return missing
