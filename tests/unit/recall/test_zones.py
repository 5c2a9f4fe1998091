"""Where the user is: what day "yesterday" is there, and which days a prompt is shown."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.domain.memories import AnyMemory, Episode, MemoryStatus
from engram.errors import InvalidQuery
from engram.language.periods import period_named
from engram.operations.recall import ContextRequest
from engram.recall.context import block_of
from engram.recall.request import RecallRequest
from engram.recall.results import RecallHit
from tests.support.recall_memories import ADA, SETTINGS, Memories, episode, negation, semantic

LISBON = ZoneInfo("Europe/Lisbon")
# In Tokyo the second of July, eight in the morning.
MORNING = datetime(2024, 7, 1, 23, tzinfo=UTC)


def said(text: str, at: str, **more: Any) -> Episode:
    """A turn of that moment."""
    moment = datetime.fromisoformat(at).astimezone(UTC)
    return episode(text).model_copy(
        update={"timestamp": moment, "known_at": moment, "session_id": None, **more}
    )


def concluded(text: str, known: str, happened: str, **more: Any) -> AnyMemory:
    """Knowledge of a turn of one moment, about another."""
    times = {
        "known_at": datetime.fromisoformat(known),
        "event_at": datetime.fromisoformat(happened),
    }
    return semantic(text).model_copy(update={**times, **more})


def line(memory: AnyMemory, timezone: str | None = None, *sources: Episode) -> str:
    """The one line of its block, without the words."""
    zone = RecallRequest.of("tea", settings=SETTINGS, timezone=timezone).zone
    block = block_of([RecallHit(memory=memory, score=1, sources=sources)], tokens=500, zone=zone)
    return block.splitlines()[1].partition(" (")[2].removesuffix(")")


async def named(
    memories: Memories, query: str, timezone: str | None = None, now: datetime = MORNING
) -> list[str]:
    """What counts as of the time that a question names."""
    request = RecallRequest.of(query, settings=SETTINGS, timezone=timezone, explain=True)
    return sorted(
        hit.memory.content
        for hit in await memories.recaller.recall(ADA, request, now)
        if hit.explanation is not None
        and any(part.name == "period" and part.value == 1 for part in hit.explanation.parts)
    )


async def test_yesterday_is_that_of_the_user(memories: Memories) -> None:
    """At eight in Tokyo it is the day that has just ended there, which began in UTC the day before.

    Without a zone it is the one of UTC, and with another that one's.
    """
    await memories.keep(
        said("We saw otters", "2024-06-30T10:00+00:00"),
        said("We saw planets", "2024-06-30T23:00+00:00"),
        said("We saw dinosaurs", "2024-07-01T14:00+00:00"),
        said("We saw mummies", "2024-07-01T16:00+00:00"),
    )
    asked = "What did we see yesterday?"
    assert await named(memories, asked, "Asia/Tokyo") == ["We saw dinosaurs", "We saw planets"]
    assert await named(memories, asked, "UTC") == ["We saw otters", "We saw planets"]
    assert await named(memories, asked) == ["We saw otters", "We saw planets"]


@pytest.mark.parametrize("timezone", ["America/Los_Angeles", "Asia/Tokyo", "Pacific/Kiritimati"])
async def test_a_day_that_was_told_is_that_day_everywhere(
    memories: Memories, timezone: str
) -> None:
    """Kept as the day in UTC, it is found by who asks for it from the west or the east."""
    await memories.keep(
        concluded("We saw whales", "2024-07-04T12:00+00:00", "2024-07-01T00:00+00:00"),
        concluded("We saw seals", "2024-07-04T12:00+00:00", "2024-07-03T00:00+00:00"),
    )
    later = datetime(2024, 7, 6, 12, tzinfo=UTC)
    assert await named(memories, "What was on July 1?", timezone, later) == ["We saw whales"]


async def test_a_conclusion_without_a_time_of_its_own_is_of_its_turns_moment(
    memories: Memories,
) -> None:
    """Said early on the second in Tokyo, on the first in UTC: not what happened on the first."""
    at = "2024-07-01T20:00+00:00"
    await memories.keep(concluded("We saw herons", at, at))
    assert await named(memories, "What did we see yesterday?", "Asia/Tokyo") == []
    assert await named(memories, "What did we see today?", "Asia/Tokyo") == ["We saw herons"]


@pytest.mark.parametrize(
    ("asked", "now", "begin", "end"),
    [
        ("What did I do yesterday?", "2026-03-30T09:00+01:00", "29T00:00+00:00", "30T00:00+01:00"),
        ("What did I do yesterday?", "2026-03-29T09:00+01:00", "28T00:00+00:00", "29T00:00+00:00"),
        ("What did I do last week?", "2026-03-30T09:00+01:00", "23T00:00+00:00", "30T00:00+01:00"),
        ("Who called this morning?", "2026-03-29T13:00+01:00", "29T05:00+01:00", "29T12:00+01:00"),
        (
            "What did I write in the last 3 hours?",
            "2026-03-29T03:00+01:00",
            "28T23:00+00:00",
            "29T03:00+01:00",
        ),
        (
            "What did I say 2 hours ago?",
            "2026-03-29T03:00+01:00",
            "28T23:30+00:00",
            "29T00:30+00:00",
        ),
    ],
)
def test_days_and_hours_are_right_where_the_clocks_change(
    asked: str, now: str, begin: str, end: str
) -> None:
    """On March 29th in Lisbon, of 23 hours: the day ends with it, and hours are those passed."""
    here = datetime.fromisoformat(now).astimezone(LISBON)
    period = period_named(asked, here)
    assert period is not None
    bounds = [one and one.astimezone(UTC) for one in (period.begin, period.end)]
    assert bounds == [datetime.fromisoformat(f"2026-03-{one}") for one in (begin, end)]


def test_a_block_shows_the_days_of_the_user() -> None:
    """Of turns and of what was concluded from them; without a zone those of UTC."""
    turn = said("We saw otters", "2024-06-30T23:00+00:00", session_id="s1")
    at = turn.timestamp.isoformat()
    known = concluded("The user likes otters.", at, at)
    assert (line(turn), line(turn, "Asia/Tokyo")) == (
        "user, 2024-06-30; session s1",
        "user, 2024-07-01; session s1",
    )
    assert line(known, None, turn) == "since 2024-06-30; said in s1 on 2024-06-30"
    assert line(known, "Asia/Tokyo", turn) == "since 2024-07-01; said in s1 on 2024-07-01"
    said_again = known.model_copy(update={"known_at": MORNING})
    assert line(said_again, "Asia/Tokyo", turn).startswith("since 2024-07-01; ")
    denied = negation("no otters", "otters").model_copy(update={"known_at": turn.timestamp})
    assert line(denied, "Asia/Tokyo").startswith("denied 2024-07-01; ")
    ends = known.model_copy(update={"expires_at": turn.timestamp})
    assert line(ends, "Asia/Tokyo", turn).startswith("since 2024-07-01; until 2024-07-01; ")


def test_a_block_leaves_days_that_were_told_as_they_are() -> None:
    """The first of May is no other day in California; nor is the end that another value brought."""
    at = "2024-06-30T03:00+00:00"
    known = concluded("The user lives in Porto.", at, "2024-05-01T00:00+00:00")
    assert line(known, "America/Los_Angeles").startswith("since 2024-05-01; ")
    over: dict[str, Any] = {"status": MemoryStatus.SUPERSEDED, "superseded_known_at": MORNING}
    told = datetime(2024, 6, 1, tzinfo=UTC)
    until_told = known.model_copy(update={**over, "valid_to": told})
    assert line(until_told, "America/Los_Angeles").startswith("until 2024-06-01; ")
    until_said = known.model_copy(update={**over, "valid_to": MORNING})
    assert line(until_said, "Asia/Tokyo").startswith("until 2024-07-02; ")


def test_a_turn_keeps_the_day_on_which_it_was_said() -> None:
    """By it "tomorrow" is read: where its own zone is known, no other one takes its place."""
    turn = said("See you tomorrow", "2024-06-30T20:00-07:00", utc_offset=-7 * 3600)
    known = concluded("The user meets.", turn.timestamp.isoformat(), turn.timestamp.isoformat())
    assert line(turn, "Asia/Tokyo") == "user, 2024-06-30"
    assert line(known, "Asia/Tokyo", turn).startswith("since 2024-06-30; ")


@pytest.mark.parametrize(
    "wrong",
    ["Tokyo", "JST-9", "+09:00", "", "Asia", "../etc/passwd", "a" * 300, "\x00", "\ud800", 9],
)
def test_an_unknown_zone_is_refused_with_what_is_allowed(wrong: Any) -> None:
    """What it may be, and that an offset is none; not what was given."""
    for form in (RecallRequest, ContextRequest):
        with pytest.raises(InvalidQuery) as refused:
            form.of("tea", settings=SETTINGS, timezone=wrong)
        assert str(refused.value) == (
            "The zone is unknown. Allowed: a name of the IANA database, such as Europe/Lisbon or "
            "Asia/Tokyo. An offset such as +09:00 is no name: it does not say when clocks "
            "change."
        )


def test_zones_are_known_where_the_system_has_none() -> None:
    """Slim images and Windows have no database of their own: one is installed with Engram."""
    code = "from engram.domain.values import zone_named; print(zone_named('Asia/Tokyo'))"
    bare = {**os.environ, "PYTHONTZPATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", code], env=bare, capture_output=True, text=True, check=True
    )
    assert done.stdout == "Asia/Tokyo\n"


def test_a_request_of_before_is_read() -> None:
    """One that was written without the option asks without a zone."""
    told = '{"query": "Who?", "limit": 3, "context": null}'
    assert RecallRequest.model_validate_json(told).timezone is None
    assert RecallRequest.model_validate_json(told).zone is None


@given(st.datetimes(min_value=datetime(1990, 1, 1), max_value=datetime(2040, 1, 1)))  # noqa: DTZ001
def test_where_the_user_is_moves_no_moment(now: datetime) -> None:
    """Only the reading of days has a zone: the present itself stays what it is, by every clock."""
    asked = RecallRequest.of("tea", settings=SETTINGS, timezone="America/St_Johns")
    there = asked.asked_at(now.replace(tzinfo=UTC))
    assert there.astimezone(UTC) == now.replace(tzinfo=UTC)
    assert there.utcoffset() == there.replace(tzinfo=ZoneInfo("America/St_Johns")).utcoffset()
