"""`engram ui` in a real Chromium: what people see there, in both modes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

import engram
from engram import MemoryStore, Settings
from engram.contracts.names import key_owner_of
from engram.embedded.keys import folder_keys
from tests.support.browser import Page, browser

pytestmark = pytest.mark.browser

WORD = "zanzibarian"
SESSION = "session/default/ada/s1"
CONSOLIDATION = "consolidation/default/ada"
DOCS = Path(__file__).parents[2] / "docs"
WORKFLOWS = "/namespaces/default/workflows"


@asynccontextmanager
async def told(folder: Path) -> AsyncIterator[MemoryStore]:
    """A memory that runs on a folder and was told a secret."""
    settings = Settings.load(schedules=False)
    async with engram.open(folder, user_id="ada", settings=settings) as memory:
        await memory.encode(f"My password is {WORD}.", session_id="s1")
        yield memory


@contextmanager
def command(*arguments: str, **variables: str) -> Iterator[str]:
    """`engram ui` as a program; its address. Ended by Ctrl-C, as people do."""
    process = subprocess.Popen(
        [sys.executable, "-m", "engram.cli", "ui", "--no-open", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **variables},
    )
    assert process.stdout is not None
    with process.stdout as said:
        address = next(line for line in said if line.startswith("http://")).strip()
        yield address
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130


def see_the_word(page: Page, address: str, pictures: Path) -> None:
    """Go through the pages as somebody who debugs does."""
    page.open(address)
    page.wait_for(SESSION)
    page.picture(pictures / "list.png")
    origin = page.run("location.origin")
    session = f"{origin}{WORKFLOWS}/{quote(SESSION, safe='')}"
    page.open(session)
    page.wait_for('"session_id": "s1"')
    page.picture(pictures / "session.png")
    # What was said: the update that brought it.
    run_id = page.run("location.href").split("/")[-2]
    page.open(f"{session}/{run_id}/history/events/5")
    page.wait_for(WORD)
    page.picture(pictures / "turn.png")
    assert page.said == []


async def test_people_read_what_was_said_and_only_in_that_browser(tmp_path: Path) -> None:
    """Beside who runs it: decoded where the address was opened first, elsewhere nothing."""
    folder = tmp_path / "data"

    def look() -> None:
        with (
            command("--data-dir", str(folder)) as address,
            browser(tmp_path / "first") as page,
            browser(tmp_path / "second") as other,
        ):
            see_the_word(page, address, tmp_path)
            origin = page.run("location.origin")
            for url in (address, f"{origin}{WORKFLOWS}", f"{origin}/api/v1/settings"):
                other.open(url)
                assert WORD not in other.wait_for("access_denied")

    async with told(folder):
        await asyncio.to_thread(look)


async def test_people_read_what_a_server_keeps(tmp_path: Path) -> None:
    """Connected: the server and the keys are those that the settings name."""
    folder = tmp_path / "data"

    def look() -> None:
        port = json.loads((folder / "server.json").read_text())["port"]
        with (
            command(
                "--connected",
                ENGRAM_TEMPORAL_ADDRESS=f"127.0.0.1:{port}",
                ENGRAM_ENCRYPTION_KEYS=str(folder / "encryption"),
                ENGRAM_DATA_DIR=str(tmp_path / "none"),
            ) as address,
            browser(tmp_path / "first") as page,
        ):
            see_the_word(page, address, tmp_path)

    async with told(folder):
        await asyncio.to_thread(look)


def framed(page: Page) -> str:
    """What people see in frames: what is written in Markdown."""
    frames = "[...document.querySelectorAll('iframe')]"
    return str(page.run(f"{frames}.map(one => one.contentDocument?.body?.innerText).join()"))


async def test_a_run_reads_like_a_story(tmp_path: Path) -> None:
    """Summaries say what and how much, details what came of it; these are the pictures of the docs.

    With ENGRAM_PICTURES they are written to docs/pictures anew.
    """
    folder = tmp_path / "data"
    pictures = DOCS / "pictures" if os.environ.get("ENGRAM_PICTURES") else tmp_path
    pictures.mkdir(exist_ok=True)

    def look() -> None:
        with (
            command("--data-dir", str(folder)) as address,
            browser(tmp_path / "first") as page,
        ):
            page.open(address)
            page.wait_for(SESSION)
            page.picture(pictures / "runs.png")
            origin = page.run("location.origin")
            session = f"{origin}{WORKFLOWS}/{quote(SESSION, safe='')}"
            page.open(session)
            page.wait_for("engram.store_turns")
            page.open(f"{page.run('location.href').rpartition('/')[0]}/user-metadata")
            page.wait_until(lambda _: "turns accepted" in framed(page), "current details")
            assert "session s1 of default/ada" in framed(page)
            assert CONSOLIDATION in framed(page)
            assert f"engram list -u ada --run-id {run_id}" in framed(page)
            page.picture(pictures / "session.png")
            page.open(f"{origin}{WORKFLOWS}/{quote(CONSOLIDATION, safe='')}")
            page.wait_for("engram.consolidate_turns")
            page.picture(pictures / "consolidation.png")
            assert page.said == []

    settings = Settings.load(schedules=False)
    async with engram.open(folder, user_id="ada", settings=settings) as memory:
        said = ["I live in Porto.", "My sister Ines plays the cello."]
        receipt = await memory.encode(said, session_id="s1")
        assert receipt.run is not None
        assert receipt.run.workflow_id == SESSION
        run_id = receipt.run.run_id
        await memory.consolidate()
        (hit, *_) = await memory.recall("Where do I live?")
        assert hit.run is not None
        assert hit.run.run_id
        await asyncio.to_thread(look)


async def test_what_was_erased_shows_as_not_readable(tmp_path: Path) -> None:
    """A history whose key is gone is a page as any other, without a word."""
    folder = tmp_path / "data"

    def look() -> None:
        with (
            command("--data-dir", str(folder)) as address,
            browser(tmp_path / "first") as page,
        ):
            page.open(address)
            page.wait_for(SESSION)
            page.open(f"{page.run('location.origin')}{WORKFLOWS}/{quote(SESSION, safe='')}")
            assert '"session_id"' not in page.wait_for("Not readable: its key was erased")
            page.picture(tmp_path / "erased.png")
            assert page.said == []

    async with told(folder):
        keys, owner = folder_keys(folder, Settings.load()), key_owner_of(SESSION)
        await keys.retire(owner)
        await keys.shred(owner)
        await asyncio.to_thread(look)
