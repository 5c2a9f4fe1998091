"""From what readers find to turns that are stored: ids, times, lengths, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from engram.contracts.importing import ImportedTurn
from engram.domain.scope import Scope
from engram.transfer.accept import Acceptance, Acceptor, ReadReport, repaired, session_name, split
from engram.transfer.batches import MOST_ENTRIES, TURNS, turn_batches, unpack
from engram.transfer.gate import check_turns
from engram.transfer.readers.reading import FoundTurn, LeftOut, ReadEntry
from tests.support.clock import NOW

HOW = Acceptance(
    session_prefix="p-",
    zone=UTC,
    undated_at=NOW - timedelta(days=9),
    now=NOW,
    max_turn_bytes=100,
    namespace="default",
)


def turn(content: str, session: str = "s", **more: object) -> FoundTurn:
    """A turn of a source."""
    fields: dict[str, object] = {"timestamp": NOW - timedelta(days=3), **more}
    return FoundTurn(session=session, place="line 1", content=content, **fields)  # type: ignore[arg-type]  # fields of a turn


def accepted(*found: ReadEntry, how: Acceptance = HOW) -> tuple[list[ImportedTurn], ReadReport]:
    """What can be stored, and what was found."""
    acceptor = Acceptor(how)
    return list(acceptor.turns(found)), acceptor.report()


def test_ids_are_the_sources_own_or_derived() -> None:
    """A turn without id gets the same one each time, and another one for another place or word."""
    found = [turn("Hi."), turn("Hi."), turn("Hi.", message_id="own"), turn("Hi.", "other")]
    first, _ = accepted(*found)
    again, _ = accepted(*found)
    assert [one.message_id for one in first] == [one.message_id for one in again]
    assert len({(one.session_id, one.message_id) for one in first}) == 4
    assert first[2].message_id == "own"
    assert [one.session_id for one in first] == ["p-s", "p-s", "p-s", "p-other"]
    assert [one.sequence for one in first] == [0, 1, 2, 0]


def test_times_get_a_zone_and_an_order() -> None:
    """A time without zone is of the zone that is named; without any, it follows the turn before."""
    lisbon = replace(HOW, zone=ZoneInfo("Europe/Lisbon"))
    plain = datetime(2024, 7, 1, 12)  # noqa: DTZ001 - as a source has it
    turns, report = accepted(
        turn("a", timestamp=plain),
        turn("b", timestamp=None),
        turn("c", "t", timestamp=None),
        how=lisbon,
    )
    assert turns[0].timestamp.isoformat() == "2024-07-01T12:00:00+01:00"
    assert timedelta(0) < turns[1].timestamp - turns[0].timestamp < timedelta(seconds=1)
    assert timedelta(0) < turns[2].timestamp - HOW.undated_at < timedelta(seconds=1)
    assert report.undated == 2


def test_what_cannot_be_kept_is_counted_with_its_place() -> None:
    """Impossible times, roles and names: nothing is dropped without a word, nothing is quoted."""
    turns, report = accepted(
        turn("secret", timestamp=NOW + timedelta(days=400)),
        turn("secret", timestamp=datetime(1600, 1, 1, tzinfo=UTC)),
        turn("secret", role="narrator"),
        turn("secret", speaker="x" * 999),
        turn("secret", importance=7.0),
        turn("secret", metadata={"x": "y" * 99_999}),
        LeftOut("hidden", "conversation 3, message 4"),
        turn("fine"),
    )
    assert [one.content for one in turns] == ["fine"]
    assert sum(report.skipped.values()) == 7
    assert report.places["hidden"] == ("conversation 3, message 4",)
    assert "secret" not in report.model_dump_json()
    assert report.turns == report.conversations == 1


def test_long_turns_become_several() -> None:
    """A turn over the limit is kept whole, in numbered parts that end where one pauses."""
    words = "One sentence here. " * 4 + "\n\n" + "Another paragraph, ünïcödé. " * 6
    turns, report = accepted(turn(words, message_id="m"), turn("after"))
    parts = turns[:-1]
    assert len(parts) > 1
    assert [one.message_id for one in parts] == [f"m#{n}" for n in range(1, len(parts) + 1)]
    assert "".join("".join(one.content.split()) for one in parts) == "".join(words.split())
    assert all(len(one.content.encode()) <= 100 for one in parts)
    assert parts[0].metadata == {"part": 1, "parts": len(parts)}
    assert [one.sequence for one in turns] == list(range(len(turns)))
    assert sorted(one.timestamp for one in parts) == [one.timestamp for one in parts]
    assert (report.split, report.turns) == (1, len(turns))


@given(st.text(max_size=400), st.integers(4, 60))
def test_splitting_loses_nothing_but_space(text: str, limit: int) -> None:
    """Any text, any limit: every part fits, and together they are the text."""
    text = repaired(text)
    parts = split(text, limit)
    assert "".join("".join(part.split()) for part in parts) == "".join(text.split())
    assert all(len(part.encode()) <= limit for part in parts) or not text.strip()


@given(st.text(st.characters(), max_size=40))
def test_any_name_becomes_a_session(name: str) -> None:
    """Names of other programs become ids, different ones different ids."""
    made = session_name(name)
    assert session_name(made) == made
    assert session_name(name + "!") != made


def test_what_no_text_can_hold_is_replaced() -> None:
    """NUL and lone halves of surrogates are replaced, pairs put together; it is counted."""
    turns, report = accepted(turn("a\x00b"), turn("\ud83d\ude00 ok"), turn("x \ud83d y"))
    assert [one.content for one in turns] == ["a\ufffdb", "😀 ok", "x \ufffd y"]
    assert report.repaired == 3


def test_batches_resume_anywhere() -> None:
    """From any position the rest of the source comes, with what was said before it."""
    found = [turn(f"Turn {n} of it.", f"s{n // 700}") for n in range(1500)]
    turns, _ = accepted(*found)
    whole = [one for b in turn_batches(turns) for one in unpack(b, TURNS)]
    assert [one.content for one in whole] == [one.content for one in turns]
    assert max(b.count for b in turn_batches(turns)) == MOST_ENTRIES
    for position in (0, 1, 399, 400, 701, 1499, 1500):
        batches = list(turn_batches(turns, position))
        rest = [one for b in batches for one in unpack(b, TURNS)]
        assert [one.message_id for one in rest] == [one.message_id for one in turns[position:]]
        assert sum(b.count for b in batches) == 1500 - position
        if rest and rest[0].sequence:
            assert rest[0].before == turns[position - 1].content


def test_mixed_sessions_know_what_was_said_before() -> None:
    """Where a source comes back to a session, the turn says what was said there last."""
    turns, _ = accepted(turn("a1", "a"), turn("b1", "b"), turn("a2", "a"), turn("a3", "a"))
    assert [one.before for one in turns] == [None, None, "a1", None]


def test_what_is_accepted_passes_the_gate_of_the_worker() -> None:
    """Names with line ends, ids of split turns, metadata at its bound: no batch is refused."""
    found = [
        turn("Hi.", speaker="Bob\n- 2026-01-01 Bob"),
        turn("A long turn. " * 40, message_id="x" * 256),
        turn("Short.", metadata={"a": "x" * 8160}),
        turn("A long turn. " * 40, metadata={"a": "x" * 8160}),
    ]
    turns, report = accepted(*found)
    assert turns[0].speaker == "Bob - 2026-01-01 Bob"
    assert sum(report.skipped.values()) == 1
    (sent,) = turn_batches(turns)
    scope = Scope.of("default", "ada")
    check_turns(scope, sent, unpack(sent, TURNS), now=NOW, max_bytes=HOW.max_turn_bytes)
