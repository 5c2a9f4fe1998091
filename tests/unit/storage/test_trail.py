"""The audit trail's files: what is noted is read back, and what was done to them is noticed."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engram.contracts.names import AUDIT_KEY_OWNER
from engram.domain.deeds import Actor, AuditEntry, AuditFilter, Door, Outcome
from engram.domain.scope import Scope
from engram.errors import AuditUnwritable, EncryptionKeysUnusable, InvalidQuery
from engram.storage.chain import BreakKind, ChainBreak, ChainWriter, read_chain
from engram.storage.trail import MOST_IDS, AuditTrail
from engram.system import draft_of, new_secret
from engram.temporal.keys import FolderKeyStore
from tests.support.folders import quick_folder
from tests.support.raw_files import holders

ADA, BOB = Scope.of("default", "ada-lovelace"), Scope.of("clinic", "bob")
KEY = b"k" * 32
NOON = datetime(2026, 3, 11, 12, tzinfo=UTC)


@dataclass
class Noted:
    """A folder with a trail, and the present of whoever writes."""

    folder: Path
    now: datetime = NOON
    open_ones: list[AuditTrail] = field(default_factory=list)

    async def open(self, *, required: bool = False, days: int = 30) -> AuditTrail:
        """Another process that writes and reads it."""
        keys = FolderKeyStore.create(self.folder / "keys", new_secret=new_secret, since=None)
        trail = await AuditTrail.open(
            self.folder / "audit",
            keys,
            clock=lambda: self.now,
            new_secret=new_secret,
            days=days,
            required=required,
        )
        self.open_ones.append(trail)
        return trail

    def files(self) -> list[Path]:
        """The chains of days."""
        return sorted((self.folder / "audit").glob("2*.jsonl"))


@pytest.fixture
def noted(folder: Path) -> Any:
    """A trail that nobody has begun."""
    made = Noted(folder)
    yield made
    for trail in made.open_ones:
        trail.close()


def note(trail: AuditTrail, scope: Scope = ADA, action: str = "recall", **more: Any) -> str:
    """One entry; its id."""
    entry_id = more.pop("entry_id", str(uuid4()))
    actor = more.pop("actor", Actor(door=Door.HTTP, key_id="k1"))
    outcome = more.pop("outcome", Outcome.DONE)
    trail.record(entry_id, actor, action, scope, outcome, **more)
    return str(entry_id)


def entries(trail: AuditTrail, **wanted: Any) -> tuple[AuditEntry, ...]:
    """What is asked for, on one page."""
    return trail.read(AuditFilter(**wanted), limit=1000).entries


# --- what is noted is read back


async def test_entries_come_back_newest_first_by_what_is_asked_for(noted: Noted) -> None:
    """Filters by user, operation, key, memory and time each bring what they name, in pages."""
    trail = await noted.open()
    about = [str(uuid4()) for _ in range(3)]
    for number, memory_id in enumerate(about):
        noted.now = NOON + timedelta(days=number)
        note(trail, memory_ids=[memory_id], keep_name=True)
        note(trail, BOB, "forget", actor=Actor(door=Door.CLI), memory_ids=[memory_id])
    assert [e.at for e in entries(trail)] == sorted((e.at for e in entries(trail)), reverse=True)
    assert {e.user_id for e in entries(trail, scope=ADA)} == {"ada-lovelace"}
    assert {e.action for e in entries(trail, action="forget")} == {"forget"}
    assert {e.actor.key_id for e in entries(trail, key_id="k1")} == {"k1"}
    assert [e.memory_ids for e in entries(trail, memory_id=about[1])] == [(about[1],)]
    middle = NOON + timedelta(days=1)
    assert len(entries(trail, since=middle, until=middle + timedelta(days=1))) == 2
    paged, cursor = list[AuditEntry](), None
    while True:
        page = trail.read(AuditFilter(), limit=1, cursor=cursor)
        paged += page.entries
        cursor = page.cursor
        if cursor is None:
            break
    assert tuple(paged) == entries(trail)
    with pytest.raises(InvalidQuery):
        trail.read(AuditFilter(), limit=1, cursor="yesterday")


async def test_what_ends_behind_midnight_is_one_entry_of_the_day_on_which_it_began(
    noted: Noted,
) -> None:
    """Begun in the file of one day and done in that of the next: once, on whatever page."""
    noted.now = NOON.replace(hour=23, minute=59)
    trail = await noted.open()
    begun = noted.now
    over = note(trail, action="erase", outcome=Outcome.BEGUN)
    noted.now += timedelta(minutes=2)
    note(trail, action="erase", entry_id=over)
    note(trail)
    (last, first) = entries(trail)
    assert (first.id, first.at, first.outcome) == (over, begun, Outcome.DONE)
    assert entries(trail, since=noted.now) == (last,)
    assert entries(trail, until=noted.now) == (first,)
    page = trail.read(AuditFilter(), limit=1)
    assert page.entries == (last,)
    assert trail.read(AuditFilter(), limit=1, cursor=page.cursor).entries == (first,)


async def test_what_is_told_twice_is_one_entry_and_what_died_is_begun(noted: Noted) -> None:
    """A retried activity, and an operation that was begun and done, count once."""
    trail = await noted.open()
    done = note(trail, outcome=Outcome.BEGUN)
    noted.now += timedelta(seconds=5)
    for _ in range(2):
        note(trail, entry_id=done)
    died = note(trail, outcome=Outcome.BEGUN)
    found = {e.id: e for e in entries(trail)}
    assert (found[done].outcome, found[done].at) == (Outcome.DONE, NOON)
    assert found[died].outcome is Outcome.BEGUN
    assert len(found) == 2


async def test_processes_that_write_at_once_share_a_trail(noted: Noted) -> None:
    """Each has a file of its own; reading merges them; who comes later goes on in one of them."""
    one, other = await noted.open(), await noted.open()
    for number in range(6):
        noted.now += timedelta(seconds=1)
        note((one, other)[number % 2])
    assert len(noted.files()) == 2
    one.close()
    third = await noted.open()
    note(third)
    assert len(noted.files()) == 2
    assert len(entries(other)) == 7
    assert third.check() == (2, ())


async def test_neither_names_nor_ids_stand_in_the_files(noted: Noted) -> None:
    """Whoever reads the bytes without the key learns neither the user nor a memory's id."""
    trail, memory_id = await noted.open(), str(uuid4())
    note(trail, memory_ids=[memory_id, "what ada said"], keep_name=True)
    assert holders(noted.folder, ["lovelace", memory_id, memory_id.replace("-", ""), "said"]) == {}
    (entry,) = entries(trail)
    assert (entry.user_id, entry.memory_ids, entry.touched) == ("ada-lovelace", (memory_id,), 1)


async def test_an_entry_names_a_bounded_number_of_memories_and_counts_all(noted: Noted) -> None:
    """Of 1,500 memories the first 1,000 are named."""
    trail = await noted.open()
    ids = [str(uuid4()) for _ in range(1500)]
    note(trail, memory_ids=ids, keep_name=True)
    (entry,) = entries(trail)
    assert (entry.memory_ids, entry.touched) == (tuple(ids[:MOST_IDS]), 1500)


async def test_what_a_killed_writer_left_names_nobody_who_is_erased(noted: Noted) -> None:
    """The draft of a user's file holds the name; it goes with the user."""
    trail = await noted.open()
    note(trail, keep_name=True)
    (kept,) = (noted.folder / "audit" / "users").iterdir()
    shutil.copy(kept, draft_of(kept))
    trail.forget_user(ADA)
    assert not list((noted.folder / "audit" / "users").iterdir())


async def test_who_is_erased_stays_as_a_mark_and_numbers(noted: Noted) -> None:
    """Name and ids are gone for every process; what was done stays, and the user's life goes on."""
    trail, other = await noted.open(), await noted.open()
    for each in (trail, other):
        note(each, memory_ids=[str(uuid4())], keep_name=True)
    note(trail, BOB, memory_ids=[str(uuid4())], keep_name=True)
    for _ in range(2):
        other.forget_user(ADA)
    note(trail, action="erase", memory_ids=[str(uuid4())])
    note(trail, BOB, memory_ids=[str(uuid4())])
    found = entries(trail, scope=ADA)
    assert [(e.user_id, e.memory_ids, e.touched) for e in found] == [(None, (), 1)] * 3
    assert {e.user_mark for e in found} == {found[0].user_mark}
    assert all(e.user_id == "bob" and e.memory_ids for e in entries(trail, scope=BOB))
    later = str(uuid4())
    note(trail, memory_ids=[later], keep_name=True)
    assert sorted(e.memory_ids for e in entries(trail, scope=ADA)) == [(), (), (), (later,)]
    assert trail.check() == (2, ())


# --- what was done to the files is noticed


def written(folder: Path, lines: int) -> Path:
    """A chain with so many lines."""
    path = folder / "2026-03-11.1.jsonl"
    writer = ChainWriter(path, KEY)
    assert writer.try_open()
    for number in range(lines):
        writer.append({"number": number, "id": str(uuid4())})
    writer.close()
    return path


def breaks_of(path: Path, key: bytes = KEY) -> list[ChainBreak]:
    """What reading finds."""
    breaks: list[ChainBreak] = []
    list(read_chain(path, key, breaks))
    return breaks


Change = Callable[[list[bytes], int, int], list[bytes]]


def _flipped(lines: list[bytes], at: int, other: int) -> list[bytes]:
    place = other % (len(lines[at]) - 1)
    lines[at] = lines[at][:place] + bytes([lines[at][place] ^ 1]) + lines[at][place + 1 :]
    return lines


CHANGES: dict[str, Change] = {
    "changed": _flipped,
    "removed": lambda lines, at, _: lines[:at] + lines[at + 1 :],
    "doubled": lambda lines, at, _: [*lines[: at + 1], *lines[at:]],
    "moved": lambda lines, at, other: [
        *(rest := lines[:at] + lines[at + 1 :])[: other % len(rest)],
        lines[at],
        *rest[other % len(rest) :],
    ],
    "cut": lambda lines, at, _: lines[:at],
    "torn": lambda lines, at, other: [*lines[:at], lines[at][: other % len(lines[at])]],
}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    how=st.sampled_from(sorted(CHANGES)),
    lines=st.integers(2, 8),
    at=st.integers(0, 8),
    other=st.integers(0, 400),
)
def test_any_line_changed_removed_doubled_moved_or_cut_is_reported(
    how: str, lines: int, at: int, other: int
) -> None:
    """Whatever is done to any line, the head and the last one too, reading reports it."""
    with quick_folder() as folder:
        path = written(folder, lines)
        assert breaks_of(path) == []
        before = path.read_bytes()
        changed = b"".join(CHANGES[how](before.splitlines(keepends=True), at % (lines + 1), other))
        path.write_bytes(changed)
        assert bool(breaks_of(path)) == (changed != before)


def test_what_was_written_with_another_key_is_no_part_of_the_trail(folder: Path) -> None:
    """Who has not the key writes no line, no head and no file that passes for the trail's."""
    path = written(folder, 3)
    assert {one.kind for one in breaks_of(path, b"o" * 32)} == {BreakKind.CHANGED, BreakKind.CUT}
    renamed = path.rename(path.with_name("2026-03-12.1.jsonl"))
    assert breaks_of(renamed)
    assert not ChainWriter(renamed, KEY).try_open()


def test_a_process_that_died_between_line_and_head_leaves_a_whole_chain(folder: Path) -> None:
    """The next process goes on behind its last line, and nothing is reported."""
    path = written(folder, 2)
    head = path.read_bytes()[: path.read_bytes().index(b"\n") + 1]
    written_on = ChainWriter(path, KEY)
    assert written_on.try_open()
    written_on.append({"number": 2})
    written_on.close()
    path.write_bytes(head + path.read_bytes()[len(head) :])
    assert breaks_of(path) == []
    after = ChainWriter(path, KEY)
    assert after.try_open()
    after.append({"number": 3})
    after.close()
    assert breaks_of(path) == []
    assert [line.body["number"] for line in read_chain(path, KEY, [])] == [0, 1, 2, 3]


async def test_a_damaged_end_is_left_as_it_is_and_another_file_begun(noted: Noted) -> None:
    """What was cut is not written on, so that it stays reported, as is a line that was changed."""
    trail = await noted.open()
    note(trail)
    note(trail)
    trail.close()
    (path,) = noted.files()
    lines = path.read_bytes().replace(b'"recall"', b'"encode"', 1).splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    after = await noted.open()
    note(after, action="forget")
    assert path.read_bytes() == b"".join(lines[:-1])
    assert after.check() == (
        2,
        (ChainBreak(path.name, 1, BreakKind.CHANGED), ChainBreak(path.name, 2, BreakKind.CUT)),
    )
    assert {(e.action, e.intact) for e in entries(after)} == {("forget", True), ("encode", False)}


async def test_a_file_that_is_taken_away_is_missed_and_never_made_again(noted: Noted) -> None:
    """Also while it is written: what comes then goes to another file, and the first is missed."""
    trail = await noted.open()
    note(trail)
    (path,) = noted.files()
    path.unlink()
    assert trail.flushing() is None
    note(trail)
    assert [file.name for file in noted.files()] == ["2026-03-11.2.jsonl"]
    missing = ChainBreak(path.name, 0, BreakKind.MISSING)
    assert trail.read(AuditFilter(scope=BOB), limit=1).breaks == (missing,)
    (noted.folder / "audit" / "files.jsonl").unlink()
    assert trail.check()[1] == (ChainBreak("files.jsonl", 0, BreakKind.MISSING),)


async def test_days_that_are_over_for_longer_than_it_is_kept_are_pruned(noted: Noted) -> None:
    """After 30 days a day's file goes, no day before, and nothing is missed."""
    trail = await noted.open(days=30)
    for _ in range(3):
        note(trail)
        noted.now += timedelta(days=1)
    noted.now = NOON + timedelta(days=31)
    note(trail)
    assert trail.prune() == 1
    assert trail.prune() == 0
    assert [path.name for path in noted.files()] == [
        *("2026-03-12.1.jsonl", "2026-03-13.1.jsonl", "2026-04-11.1.jsonl"),
    ]
    assert trail.check() == (3, ())


# --- when it cannot be written


def _full(*_: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def test_what_could_not_be_noted_is_counted_and_reported(
    noted: Noted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk stops nobody; the first line that is written again says that some are missing."""
    trail = await noted.open()
    note(trail)
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", _full)
        note(trail)
        note(trail)
    note(trail)
    assert len(entries(trail)) == 2
    assert trail.check()[1] == (ChainBreak("2026-03-11.1.jsonl", 2, BreakKind.MISSED),)


async def test_half_a_line_on_a_full_disk_is_taken_back(
    noted: Noted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line of which only a part could be written leaves the chain whole."""
    trail, real = await noted.open(), os.pwrite
    note(trail)
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", lambda f, data, at: real(f, data[: len(data) // 2], at))
        note(trail)
    (path,) = noted.files()
    note(trail)
    assert [one.kind for one in trail.check()[1]] == [BreakKind.MISSED]
    assert path.read_bytes().endswith(b"}\n")


async def test_a_required_trail_that_cannot_be_written_refuses(
    noted: Noted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Typed, and to be tried again."""
    trail = await noted.open(required=True)
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", _full)
        with pytest.raises(AuditUnwritable) as refused:
            note(trail)
    assert refused.value.retryable
    note(trail)


async def test_without_its_key_a_trail_is_not_opened(noted: Noted) -> None:
    """Keys that were lost are not replaced by others, under which nothing could be checked."""
    note(await noted.open())
    keys = FolderKeyStore(noted.folder / "keys", new_secret=new_secret)
    await keys.retire(AUDIT_KEY_OWNER)
    note(await noted.open())
    await keys.shred(AUDIT_KEY_OWNER)
    with pytest.raises(EncryptionKeysUnusable):
        await noted.open()


def test_two_processes_that_begin_a_trail_at_once_begin_one(noted: Noted) -> None:
    """Both read what the other writes."""

    async def both() -> None:
        one, other = await asyncio.gather(noted.open(), noted.open())
        note(one)
        assert len(entries(other)) == 1

    asyncio.run(both())
