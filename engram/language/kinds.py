"""Whether a statement is about an event or about a lasting fact."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from engram.domain.memories import Category, MemoryKind, Slot
from engram.domain.slots import held_predicate, is_functional
from engram.language.text import CLAUSE_END, SPOKEN_WORDS, is_past, plain, split_sentences
from engram.language.vocabulary import load, words

# --- whether a statement tells of something that happened or of something that holds

# How far before a past form its helping verb can stand ("is mostly called").
_HELPERS = 2


@dataclass(frozen=True, slots=True)
class KindWords:
    """The words that decide, lower case.

    Attributes:
        marker: Says when something happened, if the verb beside it is past.
        habits: A sentence with one of them tells what is done, not what was.
        possible: A sentence with one of them tells what may come, or might have been.
        states_before: Before a past form, they make a state of it ("is called").
        no_actions: Past forms that tell of no action ("had").
    """

    marker: re.Pattern[str]
    habits: frozenset[str]
    possible: frozenset[str]
    states_before: frozenset[str]
    no_actions: frozenset[str]
    episode_categories: frozenset[str]
    note_categories: frozenset[str]
    episode_tags: frozenset[str]
    note_tags: frozenset[str]
    note_keywords: frozenset[str]


def kind_of(
    texts: Iterable[str],
    words: KindWords,
    *,
    category: Category | None = None,
    tags: Iterable[str] = (),
    slot: Slot | None = None,
) -> MemoryKind:
    """The kind of a statement; the first of these that decides.

    A slot that tells what holds makes a note, whatever its marker: "moved to
    Lisbon in May" says where somebody lives. Then: a true temporal
    marker; the category; the tags, of which one for notes beats one for episodes;
    a past-tense action verb; a note keyword; else it is an episode.

    Args:
        texts: What was said, and what was made of it.
        words: The vocabulary.
        category: As the extraction gave it; None if it gave none.
        tags: Likewise.
        slot: What it is about, where it has one.
    """
    said = tuple(texts)
    if slot is not None and tells_a_state(slot, words):
        return MemoryKind.NOTE
    if any(happened(text, words) for text in said):
        return MemoryKind.EPISODE
    if category is not None and category.value in words.episode_categories:
        return MemoryKind.EPISODE
    if category is not None and category.value in words.note_categories:
        return MemoryKind.NOTE
    return _by_tags_and_verbs(said, frozenset(tag.casefold() for tag in tags), words)


def happened(text: str, words: KindWords) -> bool:
    """Whether the text says when something happened: once, and now past."""
    low = plain(text).casefold()
    return any(
        _tells_of_then(low[one.start : one.end], words)
        for one in split_sentences(low, semicolons=True)
        if "?" not in one.mark
    )


def tells_a_state(slot: Slot, words: KindWords) -> bool:
    """Whether the slot is about what holds, rather than about what somebody once did."""
    first = held_predicate(slot).partition(" ")[0]
    return is_functional(slot) or not is_past(first) or first in words.no_actions


def _by_tags_and_verbs(said: Iterable[str], tags: frozenset[str], words: KindWords) -> MemoryKind:
    if tags & words.note_tags:
        return MemoryKind.NOTE
    spoken = [_words(text) for text in said]
    if tags & words.episode_tags or any(_acts(one, words) for one in spoken):
        return MemoryKind.EPISODE
    if any(words.note_keywords.intersection(one) for one in spoken):
        return MemoryKind.NOTE
    return MemoryKind.EPISODE


def _tells_of_then(low: str, words: KindWords) -> bool:
    if words.marker.search(low) is None:
        return False
    # What stands in the marker itself ("fall", "back") is no verb of the sentence.
    spoken = _words(words.marker.sub(" ", low))
    if words.possible.intersection(spoken) or words.habits.intersection(spoken):
        return False
    marked = [clause for clause in CLAUSE_END.split(low) if words.marker.search(clause)]
    beside = [_words(words.marker.sub(" ", clause)) for clause in marked]
    looked_at = [clause for clause in beside if len(clause) > 1]
    # "Yesterday, ..." stands alone: its verb is in the rest of the sentence.
    if len(looked_at) < len(beside) or not beside:
        looked_at.append(spoken)
    return any(
        _is_told_as_past(clause, place, words)
        for clause in looked_at
        for place in range(len(clause))
    )


def _acts(spoken: list[str], words: KindWords) -> bool:
    return any(
        word not in words.no_actions and _is_told_as_past(spoken, place, words)
        for place, word in enumerate(spoken)
    )


def _is_told_as_past(spoken: list[str], place: int, words: KindWords) -> bool:
    if not is_past(spoken[place]):
        return False
    return not words.states_before.intersection(spoken[max(0, place - _HELPERS) : place])


def _words(text: str) -> list[str]:
    return SPOKEN_WORDS.findall(plain(text, dashes=False).casefold())


# --- the vocabulary of kinds, from its data file

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
