"""What an installed Engram puts on a user's machine, and that it runs beside other packages."""

from __future__ import annotations

import subprocess
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from tests.support.folders import quick_folder
from tests.support.programs import ROOT
from tests.support.sources import MODULES, PACKAGE, place_of
from tests.support.wheels import built, uv

pytestmark = pytest.mark.checkout

# Every Temporal project has a module of this name, and so do other distributions.
_OTHER = '"""Somebody else\'s workflows."""\n'
_WRONG = 'raise SystemExit("the workflows.py of the current folder was imported")\n'
_PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "other-workflows"
version = "1"

[tool.hatch.build.targets.wheel]
packages = ["workflows"]
"""


def installed(folder: Path, *wheels: Path) -> Path:
    """The scripts of a new environment with these wheels, and else with what runs the tests."""
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    subprocess.run(
        [
            uv(),
            "pip",
            "install",
            "--offline",
            "--no-deps",
            "--python",
            str(python),
            *map(str, wheels),
        ],
        check=True,
        capture_output=True,
        timeout=60,
    )
    (packages,) = folder.glob("lib/python*/site-packages")
    # After the environment's own: what is found there is the wheel, not the checkout.
    (packages / "beside.pth").write_text(sysconfig.get_path("purelib") + "\n", "utf-8")
    return python.parent


def run(command: list[str], folder: Path) -> str:
    """What a command prints in a folder, with nothing of this process's environment."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "TMPDIR": str(folder), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def here() -> Iterator[Path]:
    """A folder with a name short enough for a socket in a folder in it."""
    with quick_folder() as folder:
        yield folder


def test_the_wheel_holds_the_whole_package_and_nothing_else() -> None:
    """Its only top level is `engram`; modules, data and the mark of its types are all in it."""
    held = {one.distribution_path for one in WheelBuilder(str(ROOT)).recurse_included_files()}
    assert {name.partition("/")[0] for name in held} == {"engram"}
    assert {"engram/workflows/session.py", "engram/activities/session.py"} <= held
    data = [path for end in ("toml", "json") for path in PACKAGE.rglob(f"*.{end}")]
    assert len(data) > 5
    assert held == {*map(place_of, MODULES), *map(place_of, data), "engram/py.typed"}


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_wheel_runs_beside_other_packages_called_workflows(tmp_path: Path, here: Path) -> None:
    """A package and a file called workflows change nothing."""
    wheel = built(ROOT, tmp_path / "engram")
    other = tmp_path / "other"
    (other / "workflows").mkdir(parents=True)
    (other / "workflows" / "__init__.py").write_text(_OTHER, "utf-8")
    (other / "pyproject.toml").write_text(_PROJECT, "utf-8")
    scripts = installed(tmp_path / "venv", wheel, built(other, tmp_path / "others"))

    found = run([str(scripts / "python"), "-c", "import engram; print(engram.__file__)"], here)
    assert Path(found.strip()).is_relative_to(tmp_path / "venv")
    found = run([str(scripts / "python"), "-c", "import workflows; print(workflows.__doc__)"], here)
    assert found.strip() == "Somebody else's workflows."

    (here / "workflows.py").write_text(_WRONG, "utf-8")
    assert run([str(scripts / "engram"), "--version"], here).startswith("engram ")
    # This way the current folder comes first among those that are searched.
    printed = run([str(scripts / "python"), "-m", "engram.cli", "demo"], here)
    assert "Lisbon" in printed
