"""A running `engram up` on a folder of its own, and commands beside it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.cli import Said, engram


@dataclass
class Up:
    """A running `engram up`, and whose memory its commands mean."""

    folder: Path
    process: subprocess.Popen[str]
    log: Path
    user: str = "ada"

    def engram(self, *arguments: str, stdin: str | None = None) -> Said:
        """Run a command against the folder, in this process: starting one takes a second."""
        return engram(
            *arguments, "-d", str(self.folder), env={"ENGRAM_USER": self.user}, stdin=stdin
        )

    def json(self, *arguments: str) -> object:
        """What a command prints as JSON."""
        done = self.engram(*arguments, "--json")
        assert done.code == 0, done.stderr
        return json.loads(done.stdout)

    def program(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command as a program of its own."""
        return subprocess.run(
            [sys.executable, "-m", "engram.cli", *arguments, "-d", str(self.folder)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env={**os.environ, "COLUMNS": "200", "ENGRAM_USER": self.user},
        )


@contextmanager
def running_up(parent: Path, **settings: str) -> Iterator[Up]:
    """`engram up` on a fresh folder with these settings, stopped with SIGTERM afterwards."""
    folder = parent / "data"
    log = folder.parent / "up.log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "engram.cli", "up", "-d", str(folder)],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={
                **os.environ,
                "ENGRAM_LOG_FORMAT": "json",
                "ENGRAM_LOG_LEVEL": "info",
                # Other tests, or this machine's user, may have the port.
                "ENGRAM_HTTP_ENABLED": "false",
                **settings,
            },
        )
        assert process.stdout is not None
        for line in process.stdout:
            if "Ctrl-C stops" in line:
                break
        else:
            raise AssertionError(f"`engram up` ended at once: {log.read_text()}")
        yield Up(folder, process, log)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        process.stdout.close()


@contextmanager
def running_codec(up: Up) -> Iterator[str]:
    """`engram codec` beside it, stopped afterwards; the address that it hands on by a file."""
    file = up.log.with_name("codec.address")
    arguments = ("codec", "-d", str(up.folder), "--address-file", str(file))
    process = subprocess.Popen(
        [sys.executable, "-m", "engram.cli", *arguments],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    # Open to the end: it goes on to say what the address is for.
    with process.stdout as told:
        try:
            line = next(line for line in told if line.startswith("Codec: "))
            assert "http" not in line
            yield file.read_text().strip()
        finally:
            process.terminate()
            process.wait(30)
    assert not file.exists()
