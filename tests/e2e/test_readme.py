"""The README is run: its commands and its example do what it says."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.ports import free_port

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def block(language: str) -> str:
    """The marked block of this language."""
    found = re.search(rf"<!-- run -->\n```{language}\n(.*?)```", README, re.DOTALL)
    assert found is not None
    return found.group(1)


def environment(home: Path) -> dict[str, str]:
    """A user's environment with a home of its own."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    # The default port may be taken, by other tests or by this machine's user.
    port = {"ENGRAM_HTTP_PORT": str(free_port())}
    return {"HOME": str(home), "PATH": path, "COLUMNS": "160", **port}


def test_the_two_commands_come_first() -> None:
    """A new user meets the demo first and the tests second, as they are documented."""
    commands = re.findall(r"^```sh\n(pip install.*)\n```$", README, re.MULTILINE)
    assert commands == [
        "pip install uv && uv run engram demo",
        "pip install uv && uv run pytest",
    ]


@pytest.mark.long
def test_the_example_runs(tmp_path: Path) -> None:
    """The Python example, word for word, prints the new city with its source."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", block("python")],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env=environment(tmp_path),
    )
    assert done.returncode == 0, done.stderr
    first = done.stdout.splitlines()[0]
    assert "The user lives in Lisbon." in first
    assert "I moved to Lisbon" in first


@pytest.mark.long
def test_the_shell_commands_run(tmp_path: Path) -> None:
    """Each line of the shell block succeeds, in order, beside `engram up`."""
    first, *others = block("sh").splitlines()
    assert first == "engram up &"
    up = subprocess.Popen(
        ["engram", "up"], env=environment(tmp_path), stdout=subprocess.PIPE, text=True
    )
    try:
        assert up.stdout is not None
        while "Ctrl-C stops" not in up.stdout.readline():
            assert up.poll() is None
        printed = []
        for line in others:
            done = subprocess.run(
                shlex.split(line),
                env=environment(tmp_path),
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            printed.append(done.stdout)
        assert "ada@example.org" in printed[1]
        assert '"content"' in printed[-1]
    finally:
        up.send_signal(signal.SIGINT)
        assert up.wait(30) == 130
        if up.stdout is not None:
            up.stdout.close()


def test_links_lead_somewhere() -> None:
    """Every file that the README links to exists."""
    for target in re.findall(r"\]\((?!https?://)([^)#]+)", README):
        assert (ROOT / target).exists(), target
