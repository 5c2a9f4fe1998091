"""The command line beside a running `engram up`, and what it says and does not say."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.running_up import Up

CONTENT = "the marmalade is hidden behind the blue teapot"


# What runs is started once, in one process (tests/e2e/conftest.py).
pytestmark = pytest.mark.xdist_group("up")


def test_encode_recall_consolidate_and_end(up: Up) -> None:
    """The commands do their work in another process, and print what programs can read."""
    receipt = up.json("encode", "I live in Porto. Mail ada@example.org", "-s", "s1")
    assert isinstance(receipt, dict)
    assert len(receipt["episode_ids"]) == 1
    report = up.json("consolidate")
    assert isinstance(report, dict)
    assert report["remaining"] is False
    hits = up.json("recall", "Where does the user live?", "-n", "1", "-t", "semantic", "--sources")
    assert isinstance(hits, list)
    assert "Porto" in hits[0]["memory"]["content"]
    assert hits[0]["sources"][0]["id"] == receipt["episode_ids"][0]
    ended = up.json("end-session", "s1")
    assert isinstance(ended, dict)
    assert ended["turns_accepted"] == 1


def test_output_for_people_is_readable(up: Up) -> None:
    """Without --json the answer is a table with the words in it."""
    up.engram("encode", "-", stdin="My bicycle is green.")
    done = up.engram("recall", "bicycle")
    assert "user: My bicycle is green." in done.stdout
    assert "episodic" in done.stdout
    # Progress is for terminals, and a pipe gets a line for each row.
    assert done.stderr == ""
    assert done.stdout.splitlines()[0] == "score\ttype\tknown\tmemory"
    empty = up.engram("recall", "zeppelin timetable", "-t", "procedural")
    assert "Nothing that answers this is remembered." in empty.stderr
    assert empty.stdout == ""


def test_a_message_id_makes_sending_again_safe(up: Up) -> None:
    """The same message id twice gives the same receipt; other words give exit code 1."""
    first = up.json("encode", "I like tea.", "-s", "s2", "--message-id", "m1")
    again = up.json("encode", "I like tea.", "-s", "s2", "--message-id", "m1")
    assert isinstance(first, dict)
    assert isinstance(again, dict)
    assert first["episode_ids"] == again["episode_ids"]
    other = up.engram("encode", "I like coffee.", "-s", "s2", "--message-id", "m1")
    assert other.code == 1
    assert "used before in this session" in other.stderr
    assert "coffee" not in other.stderr


def test_a_turn_is_waited_for_and_found_by_what_was_given_with_it(up: Up) -> None:
    """Everything a turn can be given is an option, and so is each filter; waiting ends linked."""
    given = ("--tag", "travel", "--importance", "0.9", "--metadata", "app=diary")
    ends = ("--expires-in", "12h", "--summary", "Gate B12.", "--wait", "linked")
    told = up.json("encode", "My gate is B12.", "-s", "trip", *given, *ends)
    assert isinstance(told, dict)
    assert told["progress"]["reached"] is True
    (turn,) = told["episode_ids"]
    waited = up.json("wait", turn, "--until", "extracted")
    assert isinstance(waited, dict)
    assert waited["reached"] is True
    kept = up.json("show", turn)
    assert isinstance(kept, dict)
    assert (kept["importance"], kept["summary"], kept["metadata"]) == (
        *(0.9, "Gate B12."),
        {"app": "diary"},
    )
    assert kept["expires_at"] is not None
    assert kept["run"]["workflow_id"].endswith("/trip")
    filters = ("--tag", "travel", "--without-tag", "home", "-s", "trip", "--role", "user")
    more = (
        "--context",
        "at the airport",
        "--metadata",
        "app=diary",
        "--min-score",
        "0.1",
        "--min-confidence",
        "0",
        "--no-stale",
        "--zone",
        "Asia/Tokyo",
    )
    found = up.json("recall", "gate", *filters, *more, "--include-archived", "--include-test")
    assert isinstance(found, list)
    assert turn in {hit["memory"]["id"] for hit in found}
    nowhere = up.engram("recall", "gate", "--zone", "Tokyo")
    assert nowhere.code == 1
    assert "The zone is unknown." in nowhere.stderr
    others = up.json("recall", "gate", "--without-tag", "travel", "-t", "episodic")
    assert isinstance(others, list)
    assert turn not in {hit["memory"]["id"] for hit in others}
    listed = up.json("list", "--tag", "travel", "-t", "episodic")
    assert isinstance(listed, dict)
    assert [one["id"] for one in listed["memories"]] == [turn]


def test_a_listing_shows_digests_only_where_they_are_asked_for(up: Up) -> None:
    """What was concluded, and not what is composed of it, unless --form names that."""
    up.json("encode", "I live in Porto.", "-s", "s1", "-u", "lister")
    up.json("consolidate", "-u", "lister")
    forms = []
    for more in ((), ("--form", "profile")):
        listed = up.json("list", "-t", "semantic", "-u", "lister", *more)
        assert isinstance(listed, dict)
        forms.append({one["form"] for one in listed["memories"]})
    assert forms == [{"statement"}, {"profile"}]


def test_memories_are_checked_and_forgotten(up: Up) -> None:
    """A memory is verified by its words; forgotten, it is gone, and asking again says so."""
    receipt = up.json("encode", "Mail bob@example.org", "-s", "s3")
    assert isinstance(receipt, dict)
    (turn,), (fact,) = receipt["episode_ids"], receipt["fact_ids"]
    checked = up.json("verify", fact)
    assert isinstance(checked, dict)
    assert checked["ok"] is True
    assert checked["evidence"][0]["words"] == "bob@example.org"
    forgotten = up.json("forget", turn, "--yes")
    assert isinstance(forgotten, dict)
    assert forgotten["forgotten"] == {"episodic": 1, "factual": 1}
    again = up.engram("forget", turn, "--yes")
    assert again.code == 3
    assert "No memory with this id" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["encode", ""], 1, "content of a turn is empty"),
        (["encode", "x", "--at", "yesterday"], 1, "ISO 8601"),
        (["recall", "x", "-n", "0"], 1, "limit is out of range"),
        (["recall", "x", "-t", "imaginary"], 1, "memory type is unknown"),
        (["recall", "x", "--context", " "], 1, "context is empty"),
        (["recall", "x", "--form", "poem"], 1, "form of memories is unknown"),
        (["recall", "x", "--metadata", "app"], 1, "KEY=VALUE"),
        (["encode", "x", "--expires-in", "soon"], 1, "90s, 30m, 12h, 7d"),
        (["encode", "x", "--expires-at", "2001-01-01T00:00+00:00"], 1, "lies in the past"),
        (["wait", "x", "--until", "eaten"], 1, "stage is unknown"),
        (["encode", "x", "-u", "a/b"], 1, "user id is not usable"),
        (["decay", "--all", "--at", "2099-01-01T00:00:00Z"], 1, "for one user"),
        (["recall"], 2, "Missing argument"),
        (["imagine"], 2, "No such command"),
    ],
)
def test_mistakes_are_explained(up: Up, arguments: list[str], code: int, said: str) -> None:
    """Wrong input exits 1 with what is allowed, wrong usage exits 2; never a traceback."""
    done = up.engram(*arguments)
    assert done.code == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_memory_content_stays_out_of_the_logs(up: Up) -> None:
    """What is encoded, consolidated and recalled appears in no line of the server's log."""
    up.engram("encode", f"Remember that {CONTENT}.")
    up.engram("consolidate")
    assert CONTENT in up.engram("recall", "marmalade").stdout
    assert "marmalade" not in up.log.read_text("utf-8")


def test_doctor_finds_who_runs(up: Up) -> None:
    """Beside a running Engram all is well: owner, server and store are told and fit."""
    told = up.json("doctor")
    assert isinstance(told, dict)
    found = {each["check"]: each["found"] for each in told["checks"]}
    assert found["owner"] == f"process {up.process.pid} runs on the folder and answers"
    assert "answers at 127.0.0.1:" in found["temporal server"]
    assert "wordllama" in found["store"]


def test_a_second_up_says_that_one_runs(up: Up) -> None:
    """Starting on a folder that is served is no error, and changes nothing."""
    done = up.engram("up")
    assert done.code == 0
    assert "already runs" in done.stdout
    assert up.process.poll() is None


def test_help_names_every_command() -> None:
    """`engram --help` lists what there is, and --version the version."""
    help_text = subprocess.run(
        [sys.executable, "-m", "engram.cli", "--help"], capture_output=True, text=True, check=True
    ).stdout
    for command in (
        *("demo", "up", "worker", "encode", "recall", "consolidate", "end-session", "profile"),
        *("verify", "forget", "erase", "decay", "promote", "schedules", "health", "validate"),
    ):
        assert command in help_text
    version = subprocess.run(
        [sys.executable, "-m", "engram.cli", "--version"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert version.startswith("engram 0.")
