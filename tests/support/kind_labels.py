"""Labelled turns: of an episode or of a note."""

from __future__ import annotations

import json
from pathlib import Path

from engram.language.kinds import kind_words

DATA = Path(__file__).parents[1] / "data"
WORDS = kind_words()


def labelled(name: str) -> list[dict[str, object]]:
    """The items of a data file."""
    return [json.loads(line) for line in (DATA / name).read_text("utf-8").splitlines()]
