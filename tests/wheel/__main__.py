"""Installs the wheel as users do, and runs the suite against what was installed.

    python -m tests.wheel                        # beside another package, then the suite
    python -m tests.wheel tests/unit/domain -x   # what pytest is to run instead

First an empty environment gets the wheel together with a distribution that has a package
``workflows`` of its own: both are imported, and the demo runs. That needs a network. Then the
tests run in an environment with the locked versions of what they need, from a copy of the
checkout that lacks the package's sources: what they import is the wheel. All of it lies in
``build/wheel``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.support.programs import ROOT, environment
from tests.support.wheels import built, uv

WORK: Final = ROOT / "build" / "wheel"
PACKAGE: Final = ("engram", "workflows", "activities")
OTHER: Final = "llama-index-workflows"
INSTALLED: Final = "import engram, sys; sys.exit(sys.prefix not in engram.__file__)"
WRONG: Final = 'raise SystemExit("the workflows.py of the current folder was imported")\n'


def main(arguments: Sequence[str]) -> int:
    """The command; what pytest answers."""
    wheel = built(ROOT, WORK / "dist")
    beside_another(wheel)
    python, copy = prepared(wheel)
    asked = ["-m", chosen(), *arguments]
    return run(python, "-m", "pytest", *asked, folder=copy, check=False)


def chosen() -> str:
    """The usual choice of the suite, without what is about files that a wheel does not have."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    options = project["tool"]["pytest"]["ini_options"]["addopts"]
    return f"{options[options.index('-m') + 1]} and not checkout"


def beside_another(wheel: Path) -> None:
    """Install the wheel and the other distribution together; import both, and run the demo."""
    folder = WORK / "user"
    shutil.rmtree(folder, ignore_errors=True)
    python = folder / "environment" / "bin" / "python"
    ask_uv("venv", "--python", sys.executable, str(folder / "environment"))
    ask_uv("pip", "install", "--python", str(python), f"{wheel}[embedded]", OTHER)
    empty, project = folder / "empty", folder / "project"
    for place in (empty, project):
        place.mkdir()
    run(python, "-c", "import engram, workflows; workflows.Workflow", folder=empty)
    (project / "workflows.py").write_text(WRONG, "utf-8")
    for place in (empty, project):
        run(python.with_name("engram"), "demo", folder=place)
    # This way the current folder comes first among those that are searched.
    run(python, "-m", "engram.cli", "demo", folder=project)


def prepared(wheel: Path) -> tuple[Path, Path]:
    """The Python that has the wheel and what tests need, and the folder that they run in."""
    place = WORK / "environment"
    kept = {**os.environ, "UV_PROJECT_ENVIRONMENT": str(place)}
    ask_uv("sync", "--frozen", "--no-install-project", "--python", sys.executable, env=kept)
    python = place / "bin" / "python"
    ask_uv("pip", "install", "--no-deps", "--reinstall", "--python", str(python), str(wheel))
    copy = copied(WORK / "checkout")
    # As an editable install does: tests start modules of tests, in whatever folder.
    (packages,) = place.glob("lib/python*/site-packages")
    (packages / "tests_beside.pth").write_text(f"{copy}\n", "utf-8")
    run(python, "-c", INSTALLED, folder=copy)
    return python, copy


def copied(into: Path) -> Path:
    """A copy of the checkout, without the package."""
    shutil.rmtree(into, ignore_errors=True)
    asked = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(asked, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if name.partition("/")[0] not in PACKAGE and (ROOT / name).is_file():
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, into / name)
    return into


def ask_uv(*words: str, env: dict[str, str] | None = None) -> None:
    """Have uv do something in the checkout."""
    subprocess.run([uv(), *words, "--quiet"], cwd=ROOT, env=env, check=True)


def run(program: Path, *words: str, folder: Path, check: bool = True) -> int:
    """Run a program of an environment in a folder; its exit code."""
    sys.stdout.write(f"{folder.name}: {program.name} {' '.join(words)}\n")
    sys.stdout.flush()
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    outside = environment(VIRTUAL_ENV=str(program.parents[1]), PATH=path)
    outside.pop("PYTHONPATH", None)
    done = subprocess.run([str(program), *words], cwd=folder, env=outside, check=check)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
