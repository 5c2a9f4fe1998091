"""Bringing memory in and taking it out, by API and command; the same answers afterwards."""

from __future__ import annotations

import asyncio
import json
import runpy
import zipfile
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

import engram
from engram import MemoryStore, Settings, Turn
from engram.contracts import names
from engram.domain.memories import DerivedMemory, MemoryStatus, MemoryType, SemanticMemory
from engram.domain.scope import Scope
from engram.errors import InvalidInput, UnreadableSource
from tests.support.clock import NOW
from tests.support.durability_checks import unfinished
from tests.support.personal_canaries import (
    CANARIES,
    bring_in,
    import_all,
    restore,
    tell_all,
    write_export,
    write_turns,
)
from tests.support.raw_files import holders
from tests.support.temporal_server import client_of

MOVED = NOW - timedelta(days=100)
QUIET: dict[str, Any] = {
    "temporal_ui": False,
    "schedules": False,
    "personal_data_by_namespace": {"clinic": "mask"},
    "lifecycle": {"energy_namespaces": ("games",)},
    # Being recalled changes scores; here nothing is noted while answers are compared.
    "access_flush_interval": timedelta(hours=1),
}
STORY = (
    ("first", -400, "I live in Porto and I use Mongo. My email is ada@example.org."),
    ("first", -400, "My sister Ines plays the cello in an orchestra."),
    ("first", -399, "I promised to send Ines the photos of the regatta."),
    ("second", -100, "I moved to Lisbon."),
    ("second", -100, "I don't use Mongo any more, I use Postgres."),
    ("second", -99, "Ines adopted a greyhound, his name is Biscuit."),
    ("third", -3, "I like green tea. My email is ada@example.org."),
    ("third", -3, "Just so you know: `uv sync --frozen` has to run first."),
)
QUESTIONS = (
    *("Where does the user live?", "Which database is used?", "What does Ines play?"),
    *("greyhound", "tea", "How can I reach Ada?", "What was promised?", "Mongo"),
)


# What runs is started once, in one process.
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("transfer")]


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[MemoryStore]:
    """An embedded memory at a fixed time."""
    settings = Settings.load(data_dir=folder, **QUIET)
    async with engram.open(folder, user_id="ada", settings=settings, clock=lambda: NOW) as memory:
        yield memory


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def home(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[MemoryStore, Path]]:
    """A running memory, and its folder."""
    folder = tmp_path_factory.mktemp("home")
    async with opened(folder) as memory:
        yield memory, folder


@pytest.fixture
def memory(home: tuple[MemoryStore, Path]) -> MemoryStore:
    """The memory of somebody new."""
    return home[0].for_user(f"u-{uuid4().hex[:8]}")


async def settled(folder: Path, scope: Scope) -> None:
    """Wait until no workflow of the user runs."""
    client = await client_of(folder)
    assert await unfinished(client, 100, f"{names.USER_ATTRIBUTE} = '{scope.tenant}'") == []


async def tell(memory: MemoryStore) -> None:
    """Tell the story, consolidating between its sessions."""
    for session in ("first", "second", "third"):
        turns = [
            Turn(content=text, timestamp=NOW + timedelta(days=days, minutes=n), message_id=f"m{n}")
            for n, (where, days, text) in enumerate(STORY)
            if where == session
        ]
        await memory.encode(turns, session_id=session)
        await memory.end_session(session)
        await memory.consolidate()


async def answers(memory: MemoryStore) -> list[list[tuple[str, str, float, str]]]:
    """What is answered to each question: now, before the move, and with everything."""
    found = []
    for question in QUESTIONS:
        for options in ({}, {"as_of": MOVED - timedelta(days=1)}, {"include_archived": True}):
            hits = await memory.recall(question, limit=8, include_sources=True, **options)
            found.append(
                [
                    (
                        hit.memory.content,
                        str(hit.memory.status),
                        round(hit.score, 9),
                        " | ".join(source.content for source in hit.sources),
                    )
                    for hit in hits
                ]
            )
    return found


async def everything(memory: MemoryStore) -> list[Any]:
    """All memories, tests too."""
    found: list[Any] = []
    cursor = None
    while True:
        page = await memory.list(limit=100, cursor=cursor)
        found += page.memories
        cursor = page.cursor
        if cursor is None:
            return found


async def test_an_export_gives_the_same_answers_elsewhere(
    home: tuple[MemoryStore, Path], tmp_path: Path
) -> None:
    """In a fresh folder and for another user: same contents, order, scores, history, links."""
    file = tmp_path / "ada.jsonl"
    memory, folder = home
    await tell(memory)
    await settled(folder, memory.scope)
    count = await memory.export_file(file)
    expected = await answers(memory)
    kept = await everything(memory)
    again = [line async for line in memory.export_lines()]
    other = memory.for_user("bob", namespace="elsewhere")
    done = await other.import_file(file)
    assert (done.tally.stored, done.tally.conflicts, done.format) == (count, 0, "engram")
    for got, wanted in zip(await answers(other), expected, strict=True):
        assert got == wanted
    moved = await everything(other)
    assert_whole(moved)
    # Told the same again, the other user learns nothing new under another id.
    before = len(moved)
    turns = [
        Turn(content=text, timestamp=NOW + timedelta(days=days, minutes=n), message_id=f"m{n}")
        for n, (where, days, text) in enumerate(STORY)
        if where == "first"
    ]
    await other.encode(turns, session_id="first")
    assert len(await everything(other)) == before
    assert count == len(kept) == len(again) - 2
    assert all(any(len(answer) for answer in part) for part in (expected[::3], expected[1::3]))
    assert any(isinstance(one, SemanticMemory) and one.supersedes for one in kept)
    async with opened(tmp_path / "b") as memory:
        done = await memory.import_file(file)
        assert done.tally.stored == count
        assert await answers(memory) == expected
        own = {"write_id"}
        restored = {one.id: one.model_dump(exclude=own) for one in await everything(memory)}
        assert restored == {one.id: one.model_dump(exclude=own) for one in kept}
        # Again: nothing is added. Newer state stays.
        changed = next(one for one in kept if isinstance(one, DerivedMemory))
        await memory.protect(changed.id)
        done = await memory.import_file(file)
        assert (done.tally.stored, done.tally.known) == (0, count)
        assert (await memory.get(changed.id)).policy_class == "protected"


def assert_whole(memories: Iterable[Any]) -> None:
    """Every reference of every memory names a memory that is there."""
    there = {one.id for one in memories}
    for one in memories:
        if isinstance(one, DerivedMemory):
            named = {*one.source_episode_ids, *one.related_ids, *one.supersedes}
            named |= {one.superseded_by} if one.superseded_by else set()
            assert named <= there, one.content


async def test_test_memories_only_when_asked(memory: MemoryStore) -> None:
    """Test memories stay behind unless they are asked for."""
    await memory.encode("I like pretending.", session_id="trial", is_test=True)
    await memory.encode("I like tea.", session_id="real")
    without = [line async for line in memory.export_lines()]
    with_tests = [line async for line in memory.export_lines(include_test=True)]
    assert not any("pretending" in line for line in without)
    assert any("pretending" in line for line in with_tests)
    assert json.loads(without[0])["counts"]["episodic"] == 1
    assert "dense" not in "".join(without)


def chatgpt(count: int, first: int = 0) -> list[dict[str, Any]]:
    """An export of so many conversations."""
    return [
        {
            "conversation_id": f"c{number}",
            "create_time": 1_700_000_000 + number * 1000,
            "current_node": f"n{number}-2",
            "mapping": {
                f"n{number}-{n}": {
                    "parent": f"n{number}-{n - 1}" if n else None,
                    "children": [],
                    "message": {
                        "id": f"m{number}-{n}",
                        "author": {"role": "assistant" if n % 2 else "user"},
                        "create_time": 1_700_000_000 + number * 1000 + n,
                        "content": {"content_type": "text", "parts": [words]},
                    },
                }
                for n, words in enumerate(
                    (f"I planted tree number {number}.", "Well done!", f"It is oak {number}.")
                )
            },
        }
        for number in range(first, first + count)
    ]


async def test_a_zip_once_again_and_longer(memory: MemoryStore, tmp_path: Path) -> None:
    """Imported, imported again, and imported as a later, longer export: each turn once."""
    archive = tmp_path / "export.zip"

    def write(conversations: list[dict[str, Any]]) -> None:
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
            packed.writestr("chat.html", "<html>")
            packed.writestr("conversations.json", json.dumps(conversations))

    write(chatgpt(6))
    dry = await memory.import_file(archive, dry_run=True)
    assert dry.read is not None
    assert (dry.format, dry.read.turns, dry.read.conversations) == ("chatgpt", 18, 6)
    assert (await memory.stats()).counts[MemoryType.EPISODIC] == 0
    seen: list[int] = []
    first = await memory.import_file(archive, on_progress=lambda p: seen.append(p.position))
    assert first.tally.stored == 18
    assert (seen[0], seen[-1]) == (0, 18)
    assert (await memory.import_file(archive)).tally.known == 18
    write(chatgpt(8))
    longer = await memory.import_file(archive)
    assert (longer.tally.stored, longer.tally.known) == (6, 18)
    assert longer.import_id != first.import_id
    hits = await memory.recall("tree number 7", as_of=NOW, memory_types="episodic", limit=1)
    assert hits[0].memory.session_id == "chatgpt-c7"
    early = datetime.fromtimestamp(1_700_000_500, UTC)
    hits = await memory.recall("tree number 7", as_of=early)
    assert {hit.memory.session_id for hit in hits} == {"chatgpt-c0"}
    # Consolidation follows by itself; waiting for it finds nothing left to do.
    await memory.consolidate()
    assert (await memory.stats()).waiting == 0
    with pytest.raises(InvalidInput, match="chatgpt, claude"):
        await memory.import_file(archive, format="gedcom")
    with pytest.raises(InvalidInput):
        await memory.import_file(archive, session_prefix="not/allowed")
    given = [("s", Turn(content="I sing.", timestamp=NOW)), ("s", Turn(content="Often."))]
    assert (await memory.import_turns(given)).tally.stored == 2
    assert (await memory.import_turns(given)).tally.known == 2


async def test_old_turns_do_not_fade_at_once(memory: MemoryStore, tmp_path: Path) -> None:
    """What was said years ago counts from the day it is imported."""
    file = tmp_path / "old.jsonl"
    line = {"content": "I plant trees.", "timestamp": "2016-05-01T10:00:00Z"}
    file.write_text(json.dumps(line) + "\n")
    await memory.import_file(file, consolidate=False)
    # Of a turn that is said today, neither more nor less becomes in two months.
    today = memory.for_user("today")
    await today.encode(Turn(content="I plant trees.", timestamp=NOW), session_id="s1")
    of_old, of_new = [
        (await one.decay(dry_run=True, at=NOW + timedelta(days=60))).changes
        for one in (memory, today)
    ]
    assert [(c.rule, c.target) for c in of_old] == [(c.rule, c.target) for c in of_new]
    assert "archived" not in {change.target for change in of_old}
    assert (await memory.recall("trees"))[0].memory.known_at.year == 2016


async def test_an_imported_archive_stays_in_an_energy_namespace(
    home: tuple[MemoryStore, Path], tmp_path: Path
) -> None:
    """Where a turn that is said expires after hours, one that is imported has lived already."""
    games = home[0].for_user("player", namespace="games")
    file = tmp_path / "old.jsonl"
    line = {"content": "I plant trees.", "timestamp": "2016-05-01T10:00:00Z"}
    file.write_text(json.dumps(line) + "\n")
    await games.import_file(file, consolidate=False)
    (said,) = await everything(games)
    for days, expired in ((0.2, 0), (180, 0), (200, 1)):
        at = said.created_at + timedelta(days=days)
        assert (await games.decay(dry_run=True, at=at)).count("energy") == expired


async def test_a_denial_that_was_taken_back_stays_so_elsewhere(
    memory: MemoryStore, tmp_path: Path
) -> None:
    """As history that denies for its own time, and again where what ended it is forgotten."""
    said = (("I don't eat meat.", -30), ("I'm eating meat again.", -10))
    for session, (text, days) in enumerate(said):
        at = NOW + timedelta(days=days)
        await memory.encode([Turn(content=text, timestamp=at)], session_id=f"s{session}")
        await memory.consolidate()
    file = tmp_path / "taken-back.jsonl"
    await memory.export_file(file)
    other = memory.for_user(f"u-{uuid4().hex[:8]}")
    await other.import_file(file)
    await other.consolidate()
    for one in (memory, other):
        [denial] = [m for m in await everything(one) if m.type is MemoryType.NEGATION]
        assert denial.status is MemoryStatus.SUPERSEDED
        before = await one.recall("Do I eat meat?", as_of=NOW - timedelta(days=20))
        assert denial.content in [hit.memory.content for hit in before]
        now = await one.recall("Do I eat meat?")
        assert denial.content not in [hit.memory.content for hit in now]
    [turn] = [m for m in await everything(other) if m.content == said[1][0]]
    await other.forget(turn.id)
    [denial] = [m for m in await everything(other) if m.type is MemoryType.NEGATION]
    assert denial.status is MemoryStatus.ACTIVE


async def test_a_backup_takes_nothing_back_of_what_was_told_since(
    memory: MemoryStore, tmp_path: Path
) -> None:
    """Erased, told anew and restored: what is known is what telling all of it in order comes to."""

    async def say(days: int, *texts: str) -> None:
        at = NOW + timedelta(days=days)
        turns = [Turn(content=text, timestamp=at, message_id=f"{days}-{text}") for text in texts]
        await memory.encode(turns, session_id=f"s{-days}")
        await memory.consolidate()

    file = tmp_path / "backup.jsonl"
    await say(-90, "I live in Porto.", "I work at Acme. I don't use Mongo any more.")
    await memory.export_file(file)
    await memory.erase()
    await memory.erased()
    await say(-30, "I moved to Lisbon. I work at Globex now.", "I use Mongo again.")
    for stored in (True, False):
        done = await memory.import_file(file)
        assert bool(done.tally.stored) is stored
        active = {m.content for m in await everything(memory) if m.status is MemoryStatus.ACTIVE}
        assert {"The user lives in Lisbon.", "The user works at Globex."} <= active
        assert not {"The user lives in Porto.", "The user works at Acme."} & active
        assert "The user does not use Mongo." not in active
        assert [m for m in active if m.startswith("The user (user)")] == [
            "The user (user):\nThe user lives in Lisbon.\nThe user works at Globex.\n"
            "The user uses Mongo."
        ]
    then = await memory.recall("Where does the user live?", as_of=NOW - timedelta(days=60))
    assert "The user lives in Porto." in [hit.memory.content for hit in then]
    assert (await memory.validate()).findings == ()


async def test_an_export_that_was_cut_off_is_refused(memory: MemoryStore, tmp_path: Path) -> None:
    """Without its last line, of another version, or changed by hand: typed, nothing stored."""
    await memory.encode("I like tea.", session_id="s")
    lines = [line async for line in memory.export_lines()]
    wrong = {
        "cut off": lines[:-1],
        "version 99": [lines[0].replace('"engram_export":1', '"engram_export":99')],
        "not derived": [*lines[:1], lines[1].replace('"session_id":"s"', '"session_id":"t"')],
    }
    for match, text in wrong.items():
        file = tmp_path / "wrong.jsonl"
        file.write_text("\n".join(text) + "\n")
        with pytest.raises(UnreadableSource, match=match):
            await memory.for_user("bob").import_file(file)
    assert await everything(memory.for_user("bob")) == []


@pytest.mark.slow
async def test_nothing_that_a_namespace_masks_is_in_the_folder_or_an_export(
    home: tuple[MemoryStore, Path], tmp_path: Path
) -> None:
    """Twenty canaries, told, imported, restored and brought in: in no byte of store and history."""
    said, export, out = (tmp_path / name for name in ("said.jsonl", "export.jsonl", "out"))
    write_turns(said)
    write_export(export)
    out.mkdir()
    teller, importer, restorer, mover = (
        home[0].for_user(user, namespace="clinic") for user in ("t", "i", "r", "m")
    )
    await tell_all(teller)
    await import_all(importer, said)
    await restore(restorer, export)
    await bring_in(mover)
    for number, memory in enumerate((teller, importer, restorer, mover)):
        await memory.export_file(out / f"{number}.jsonl", include_test=True)
    # The search finds what is there.
    await home[0].for_user("t").encode("It is the thylacine.", session_id="s1")
    found = holders(home[1], [*CANARIES, "thylacine"])
    assert set().union(*found.values()) == {"thylacine"}
    assert holders(out, CANARIES) == {}


@pytest.mark.checkout
async def test_who_moves_to_servers_finds_every_user_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of all namespaces, also whoever has only test memories; nobody twice."""
    async with engram.open(tmp_path / "data", user_id="ada") as ada:
        await ada.encode(["I live in Porto.", "I like tea."], session_id="s1")
        await ada.for_user("bob", namespace="work").encode("I live in Rome.", session_id="s1")
        await ada.for_user("cyd").encode("I live in Bonn.", session_id="s1", is_test=True)
    page = (Path(__file__).parents[2] / "docs" / "operations.md").read_text("utf-8")
    told = page.partition("### Moving to servers")[2].partition("```python\n")[2]
    program = tmp_path / "users.py"
    program.write_text(told.partition("```")[0], "utf-8")
    monkeypatch.setenv("ENGRAM_DATA_DIR", str(tmp_path / "data"))
    capsys.readouterr()
    await asyncio.to_thread(runpy.run_path, str(program))
    assert capsys.readouterr().out.split() == ["default/ada", "default/cyd", "work/bob"]
