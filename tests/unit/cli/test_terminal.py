"""Nothing that somebody said, or called themselves, does anything to a terminal."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from rich.text import Text

from engram.cli import browse, output
from engram.domain.buffer import RememberedTurn
from engram.domain.digests import EntityKind
from engram.domain.sanitize import harmless
from engram.errors import InvalidInput
from engram.operations.digests import Profile, ProfileLine
from tests.support.clock import NOW
from tests.support.example_memories import episode, fact

EVIL = "Bo\x1b[2J\x1b]52;c;ZXZpbA==\x07\x9b31m\x7f\r\u202eob\u2066\u200f\x00"
# What rich writes itself: colours.
OWN = re.compile(r"\x1b\[[0-9;]*m")


def turn() -> RememberedTurn:
    """A turn of a session that runs."""
    return RememberedTurn(
        episode_id="e1", role="user", speaker=EVIL, content=EVIL, timestamp=NOW, is_test=False
    )


def profile() -> Profile:
    """What is known about somebody of that name."""
    line = ProfileLine.model_construct(text=EVIL, memory_ids=("m1",))
    return Profile(
        memory_id="m1",
        name=EVIL,
        kind=EntityKind.PERSON,
        aliases=(EVIL,),
        lines=(line,),
        merges=(),
        omitted=(),
        updated_at=NOW,
        generation=0,
    )


PRINTERS: dict[str, Callable[[], Any]] = {
    "table": lambda: output.print_table((EVIL, "b"), [(EVIL, Text(EVIL))], title=EVIL),
    "fields": lambda: output.print_fields(EVIL, episode(EVIL, content=EVIL)),
    "memories": lambda: output.print_memories([episode("e1", content=EVIL), fact(summary=EVIL)]),
    "error": lambda: output.print_error(InvalidInput(EVIL, allowed=EVIL, hint=EVIL), as_json=True),
    "warning": lambda: output.warn(EVIL),
    "json": lambda: output.print_json({EVIL: [EVIL, timedelta(1)]}),
    "line of an export": lambda: output.print_document(f'{{"a": "{EVIL[:2]}\x9b\x7f\u202e"}}'),
    "working memory": lambda: browse._print_turns([turn()]),  # noqa: SLF001 - what the command prints
    "profile": lambda: browse._print_profile(profile()),  # noqa: SLF001 - same
    "context": lambda: browse._print_context(EVIL),  # noqa: SLF001 - same
}


@pytest.mark.parametrize("name", PRINTERS)
@pytest.mark.parametrize("terminal", [True, False])
def test_what_is_printed_is_only_shown(
    name: str, *, terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal no escape, C1, DEL or sign that reorders words gets out of any printer."""
    shown = io.StringIO()
    for which in ("console", "errors"):
        console = output.PipeConsole(
            file=shown, highlight=False, force_terminal=terminal, width=200, _environ={}
        )
        monkeypatch.setattr(output, which, console)
    PRINTERS[name]()
    printed = OWN.sub("", shown.getvalue()) if terminal else shown.getvalue()
    assert "ob" in printed or name == "line of an export"
    if terminal or name not in ("json", "error", "line of an export"):
        assert harmless(printed) == printed


def test_what_is_no_text_is_escaped_in_json_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of a file that is no UTF-8 comes back from the JSON document as it was given."""
    written = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    monkeypatch.setattr(output, "console", output.PipeConsole(file=written))
    output.print_json({"message": "The file caf\udce9 cannot be read."})
    written.flush()
    document = written.buffer.getvalue()
    assert json.loads(document) == {"message": "The file caf\udce9 cannot be read."}
