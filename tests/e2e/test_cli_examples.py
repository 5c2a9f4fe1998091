"""The examples of the commands' help are run, one after the other, beside `engram up`."""

from __future__ import annotations

import io
import json
import re
import shlex
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import cli
from tests.support.cli import COMMANDS, examples
from tests.support.running_up import Up, running_up

# Two minutes; that every example parses is shown beside the tests of the whole command line.
pytestmark = pytest.mark.slow

# They stay until they are ended, wait long for the server, or take no folder; other tests run
# them, and the examples of all commands are parsed beside the tests of the whole command line.
LASTING = {
    *("demo", "up", "ui", "codec", "temporal", "worker", "serve", "mcp"),
    *("erase", "compact", "test learning", "eval answers", "eval fit", "eval recall"),
}
AN_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
EXAMPLES = [
    (path, example)
    for path, command in COMMANDS.items()
    if path not in LASTING
    for example in examples(command)
]
# What examples say of an installation without servers, whose master key is in its folder already,
# and of a memory without disputes.
CODES = {
    "engram encryption rotate --into-folder": 1,
    "engram doctor --connected --ask-model": 1,
    "engram review 6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11 -u ada --keep newest": 3,
}


@dataclass
class Known:
    """A memory with something in it, and the ids of some of that.

    Attributes:
        up: The running Engram.
        conclusion: A semantic memory.
        commitment: One that can be resolved.
        turn: One that was encoded.
        folder: With the files that examples read.
    """

    up: Up
    conclusion: str
    commitment: str
    turn: str
    folder: Path


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Known]:
    """`engram up`, some turns and conclusions, and files to read."""
    folder = tmp_path_factory.mktemp("examples")
    line = {"content": "I play the oboe.", "timestamp": "2020-05-01T10:00:00Z"}
    (folder / "memories.jsonl").write_text(json.dumps(line) + "\n")
    (folder / "conversations.zip").write_bytes(archive())
    with running_up(folder) as up:

        def told(*arguments: str) -> str:
            done = run(up, *arguments, "-u", "ada", "--json")
            assert done.code == 0, done.stderr
            return done.stdout

        first = told(
            "encode", "I live in Porto. My colleague Sam Okafor works at Acme.", "-s", "s1"
        )
        told("encode", "I will send the report to Sam Okafor on Friday.", "-s", "monday")
        told("consolidate")
        semantic = json.loads(told("list", "-t", "semantic"))["memories"]
        promises = [one["id"] for one in semantic if one["category"] == "commitment"]
        run(up, "keys", "create", "phone", "--access", "read")
        turn = json.loads(first)["episode_ids"][0]
        yield Known(up, semantic[0]["id"], promises[0], turn, folder)


def archive() -> bytes:
    """A small export of ChatGPT's."""
    written = io.BytesIO()
    message = {
        "id": "m1",
        "author": {"role": "user"},
        "create_time": 1700000000,
        "content": {"content_type": "text", "parts": ["I keep bees."]},
    }
    conversation = {
        "title": "Bees",
        "create_time": 1700000000,
        "current_node": "m1",
        "mapping": {"m1": {"id": "m1", "message": message, "parent": None, "children": []}},
    }
    with zipfile.ZipFile(written, "w") as file:
        file.writestr("conversations.json", json.dumps([conversation]))
    return written.getvalue()


def run(up: Up, *arguments: str, stdin: str | None = None) -> cli.Said:
    """A command in this process, on the running folder."""
    return cli.engram(*arguments, "-d", str(up.folder), stdin=stdin)


@pytest.mark.parametrize(("path", "example"), EXAMPLES, ids=[e for _, e in EXAMPLES])
def test_example(path: str, example: str, known: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example does what its command is for, as it stands but for ids."""
    monkeypatch.chdir(known.folder)
    takes = {"resolve": known.commitment, "wait": known.turn}
    if path == "test boost":
        # Of its own: the example of deleting them is one of these, too.
        made = run(known.up, "test", "create", "I like xylophones.", "-u", "ada", "--json")
        takes[path] = json.loads(made.stdout)[0]["id"]
    words = shlex.split(AN_ID.sub(takes.get(path, known.conclusion), example))
    if path == "forget":
        stored = run(known.up, "encode", "Forget this.", "-u", "ada", "--json")
        words[2] = json.loads(stored.stdout)["episode_ids"][0]
    if path == "keys revoke":
        words[words.index("laptop")] = "phone"
    stdin = None
    if "<" in words:
        words, stdin = words[: words.index("<")], "I water the plants on Mondays."
    done = run(known.up, *words[1:], stdin=stdin)
    assert done.code == CODES.get(example, 0), done.stderr
    if "--json" in words:
        json.loads(done.stdout)
