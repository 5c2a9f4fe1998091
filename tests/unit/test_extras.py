"""A small installation says what is missing, and how to get it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from engram.distribution import DISTRIBUTION, VERSION
from tests.support.ports import free_port

# What every installation has is loaded once; each case goes on in a copy of that program.
CASES = """
import json, os, sys
import pydantic_ai, qdrant_client, temporalio.client, temporalio.worker

for number, (packages, arguments) in enumerate(json.loads(sys.argv[1])):
    if not (child := os.fork()):
        said = os.open(f"{number}", os.O_CREAT | os.O_WRONLY)
        os.dup2(said, 1)
        os.dup2(said, 2)
        sys.modules.update(dict.fromkeys(packages))
        if not arguments:
            import engram.client.servers
            raise SystemExit
        sys.argv = ["engram", *arguments]
        from engram.cli import main
        main()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
MISSING = (
    ("phonenumbers", ["up"], "embedded"),
    ("fastapi", ["up"], "embedded"),
    ("phonenumbers", ["worker"], "worker"),
    ("mcp", ["mcp", "-u", "ada"], "mcp"),
)
ROOT = Path(__file__).parents[2]
INSTALLED = re.compile(r"pip install +(?P<what>'[^']*'|[^\s`]+)")
ASKED_FOR = re.compile(r"""(?:how_to_install|needs_extra)\(["'](\w+)["']\)""")
OF_EXTRAS = ("phonenumbers", "qdrant_edge", "wordllama", "fastapi", "uvicorn")


def test_a_missing_package_names_its_extra_and_a_client_needs_none(tmp_path: Path) -> None:
    """Commands exit 1 with the line to type, not with a traceback; the connected client loads."""
    asked = [*(([package], command) for package, command, _ in MISSING), (OF_EXTRAS, [])]
    done = subprocess.run(
        [sys.executable, "-c", CASES, json.dumps(asked)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=tmp_path,
        env={
            "HOME": str(tmp_path),
            "PATH": "/usr/bin:/bin",
            "COLUMNS": "200",
            "ENGRAM_HTTP_PORT": str(free_port()),
        },
    )
    assert done.stdout.split() == [*("1" for _ in MISSING), "0"], done.stderr
    for number, (package, _, extra) in enumerate(MISSING):
        said = (tmp_path / str(number)).read_text()
        assert f"pip install '.[{extra}]' in a checkout" in said
        assert package in said
        assert "Traceback" not in said


def test_whoever_asks_over_http_loads_neither_engine_nor_models() -> None:
    """A command with ``--url`` starts with what a request takes; Temporal and agents stay out."""
    code = (
        "import sys\n"
        "for name in ('temporalio', 'pydantic_ai', 'qdrant_client', 'numpy'):\n"
        "    sys.modules[name] = None\n"
        "import engram.client.connect\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    """What pyproject.toml says of the project."""
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return found


def test_name_and_version_are_those_of_the_package(project: dict[str, Any]) -> None:
    """What the program says of itself, and asks its own metadata for, is what is installed."""
    assert (project["name"], project["version"]) == (DISTRIBUTION, VERSION)


@pytest.mark.checkout
def test_extras_that_errors_name_exist(project: dict[str, Any]) -> None:
    """Each hint names an extra that there is."""
    sources = [
        path
        for folder in ("engram", "workflows", "activities")
        for path in (ROOT / folder).rglob("*.py")
    ]
    named = {extra for path in sources for extra in ASKED_FOR.findall(path.read_text("utf-8"))}
    assert {"embedded", "fastembed"} <= named
    assert named <= project["optional-dependencies"].keys()


def test_pages_install_nothing_but_the_checkout(project: dict[str, Any]) -> None:
    """No page has a reader install a package of an index as Engram: none there is ours."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "examples").glob("*.md")]
    pages += [*(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").rglob("*.md")]
    texts = [page.read_text("utf-8") for page in pages]
    asked = {found["what"].strip("'") for text in texts for found in INSTALLED.finditer(text)}
    checkouts = {what for what in asked if what.startswith(".[")}
    assert checkouts
    assert asked - checkouts == {"uv"}
    extras = {extra for what in checkouts for extra in what[2:-1].split(",")}
    assert extras <= project["optional-dependencies"].keys()
