"""The vocabulary of kinds, from its data file."""

from __future__ import annotations

import re
from functools import cache

from engram.domain.kinds import KindWords
from engram.extraction.vocabulary import load, words

_FILE = "kinds"


@cache
def kind_words() -> KindWords:
    """The words that say of what kind a statement is."""
    table = load(_FILE)
    names = {name: table[name] for name in ("weekday", "month", "year")}
    phrases = [_filled(phrase, names) for phrase in table["markers"]]
    return KindWords(
        marker=re.compile(rf"(?<![\w-])(?:{'|'.join(phrases)})(?![\w-])"),
        habits=words(_FILE, "habits"),
        possible=words(_FILE, "possible"),
        states_before=words(_FILE, "states_before"),
        no_actions=words(_FILE, "no_actions"),
        episode_categories=words(_FILE, "episode_categories"),
        note_categories=words(_FILE, "note_categories"),
        episode_tags=words(_FILE, "episode_tags"),
        note_tags=words(_FILE, "note_tags"),
        note_keywords=words(_FILE, "note_keywords"),
    )


def _filled(phrase: str, names: dict[str, str]) -> str:
    for name, pattern in names.items():
        phrase = phrase.replace("{" + name + "}", pattern)
    return phrase
