"""A real Chromium without a window, driven by its own protocol over a pair of pipes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_PATIENCE = 60.0


class Page:
    """One page of a browser.

    Attributes:
        said: What it wrote to its console as errors, and what it was kept from loading.
    """

    def __init__(self, commands: int, answers: int) -> None:
        self._commands = commands
        self._answers = answers
        self._read = b""
        self._number = 0
        self._session: str | None = None
        self.said: list[str] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Have it do something, by a method of the protocol."""
        self._number += 1
        asked: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            asked["sessionId"] = self._session
        os.write(self._commands, json.dumps(asked).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            self._note(answer)
        assert "error" not in answer, answer
        found: dict[str, Any] = answer["result"]
        return found

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._read:
            block = os.read(self._answers, 1 << 16)
            assert block, "the browser ended"
            self._read += block
        message, _, self._read = self._read.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def _note(self, event: dict[str, Any]) -> None:
        if event.get("method") == "Log.entryAdded":
            entry = event["params"]["entry"]
            if entry["level"] == "error":
                self.said.append(f"{entry['text']} {entry.get('url', '')}")

    def open(self, url: str) -> None:
        """Go there, as by the address bar."""
        self.ask("Page.navigate", url=url)

    def run(self, script: str) -> Any:
        """What an expression gives in the page."""
        done = self.ask(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        return done["result"].get("value")

    @property
    def text(self) -> str:
        """What people see."""
        return str(self.run("document.body ? document.body.innerText : ''"))

    def wait_for(self, word: str) -> str:
        """The text as soon as it has a word."""
        return self.wait_until(lambda text: word in text, word)

    def wait_until(self, seen: Callable[[str], bool], what: str) -> str:
        """The text as soon as it is as it should be."""
        deadline = time.monotonic() + _PATIENCE
        while not seen(text := self.text):
            assert time.monotonic() < deadline, f"{what} is not in: {text}\n{self.said}"
            time.sleep(0.2)
        return text

    def picture(self, path: Path) -> None:
        """Keep what it looks like."""
        path.write_bytes(b64decode(self.ask("Page.captureScreenshot")["data"]))


def find_browser() -> str:
    """The installed program."""
    for name in PROGRAMS:
        if found := shutil.which(name):
            return found
    raise AssertionError(f"a test of the browser needs one of {', '.join(PROGRAMS)} on the PATH")


@contextmanager
def browser(profile: Path) -> Iterator[Page]:
    """A browser that starts with nothing and keeps its things in ``profile``."""
    hear, ask = os.pipe()
    answers, tell = os.pipe()

    def pipes() -> None:
        # The protocol's own numbers. By way of others: these may be among them.
        one, two = os.dup(hear), os.dup(tell)
        os.dup2(one, 3)
        os.dup2(two, 4)

    process = subprocess.Popen(
        [
            *(find_browser(), "--headless=new", "--remote-debugging-pipe", "--no-sandbox"),
            *("--disable-gpu", "--no-first-run", "--window-size=1400,1000"),
            *("--disable-background-networking", f"--user-data-dir={profile}"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        close_fds=False,
        preexec_fn=pipes,  # noqa: PLW1509 - the protocol wants these two numbers
    )
    os.close(hear)
    os.close(tell)
    try:
        yield Page(ask, answers)
    finally:
        process.terminate()
        process.wait(30)
        os.close(ask)
        os.close(answers)
