"""From a turn to the sentences that state something, each with its place in the turn."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

from engram.agents.rules.vocabulary import alternatives, vocabulary

QUOTED = "\x00"
# Each turn is read for statements, people, notes and promises, one after the other.
_TURNS_KEPT = 8
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`]*`", re.DOTALL)
_DOUBLE_QUOTED = re.compile(r"[\"“”«„][^\"“”»]*[\"“”»]")
_SINGLE_QUOTED = re.compile(r"(?<!\w)['‘](?=\w)[^'‘’\n]*(?:(?<=\w)['’](?=\w)[^'‘’\n]*)*['’](?!\w)")
# Tried once per word: 32 KB without a space, such as an encoded file, cost no time.
_LINK = re.compile(r"(?<!\S)\S+(?:://|@)\S+")
# From here on a turn passes for something else than what its speaker says.
_FRAME = re.compile(
    r"</?(?:turn|memor|system|user|assistant|message|context|instruction)|<\||\[/?(?:INST|SYSTEM)\]"
    r"|^[ \t]*(?:#+[ \t]*)?(?:system|user|assistant|human|ai|tool|developer)(?:[ \t]+message)?"
    r"[ \t]*:|\brole\"?[ \t]*[:=]|^[ \t]*#{2,}[ \t]*(?:context|system|memor)"
    r"|\[\{\"|\{\"|^[ \t]*\|.*\|[ \t]*$",
    re.I | re.M,
)
# A full stop ends a sentence only before a space, and not after an initial or a title.
_SENTENCE_END = re.compile(
    r"(?<!\b[A-Z])(?<!\bDr)(?<!\bMr)(?<!\bMs)(?<!\bMrs)(?<!\bSt)(?<!\bProf)(?<!\bJr)"
    r"(?:[.](?=\s|$)|[!?…]+|\.\.+|\n+)"
)
# "I live in Boise and my pipes froze, what now?": the statement before a question.
_ASKING = re.compile(
    r"[,;:]\s*(?:so\s+|and\s+|but\s+)?(?:what|how|can|could|do|does|did|any|where|who|which|why|when|is|are|"
    r"should|would|will|have|has|got|shall|may|might)\b",
    re.I,
)
# "Did I mention I speak Quechua?" asks nothing.
_MENTIONED = re.compile(
    r"(?:\w+,?\s+)?(?:did|have)\s+i\s+(?:ever\s+|already\s+|not\s+)?(?:mention(?:ed)?|tell\s+you|told\s+you|say|said)"
    r"\s+(?:that\s+)?(?=(?:i|i'm|i've|my|we|we're|we've|our)\b)",
    re.I,
)
_DECLARES = re.compile(r"(?:[\w ]{1,30}:\s*)?(?:i|i'm|i've|my|we|we're|we've|our)\b", re.I)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A part of a turn.

    Attributes:
        text: With plain apostrophes, and blanks for code, links and quotations.
        start: Where it begins in the turn; as long as what stands there.
    """

    text: str
    start: int


@lru_cache(maxsize=_TURNS_KEPT)
def sentences(text: str) -> tuple[Sentence, ...]:
    """Sentences that state something: no questions, quotations, conditions or role play."""
    return tuple(_sentences(text))


def _sentences(text: str) -> Iterator[Sentence]:
    plain = masked(text)
    if _fiction().search(plain):
        return
    start = 0
    for end in [*_SENTENCE_END.finditer(plain), None]:
        mark = end.group() if end else ""
        stop = end.start() if end else len(plain)
        said = plain[start:stop]
        began = start + len(said) - len(said.lstrip())
        start = end.end() if end else len(plain)
        sentence = said.strip()
        if "?" in mark:
            sentence = _before_the_question(sentence)
        if sentence and states(sentence):
            yield Sentence(sentence, began)


@lru_cache(maxsize=_TURNS_KEPT)
def masked(text: str) -> str:
    """The turn's own words, as long as the turn: what is quoted, code or a frame is blank."""
    plain = text.replace("’", "'")
    frame = _FRAME.search(plain)
    if frame:
        plain = plain[: frame.start()]
    plain = _LINK.sub(_blank, _CODE.sub(_blank, plain))
    return _SINGLE_QUOTED.sub(_quoted, _DOUBLE_QUOTED.sub(_quoted, plain))


def own_words(sentence: str) -> bool:
    """Whether nothing in the sentence is quoted."""
    return QUOTED not in sentence


def states(sentence: str) -> bool:
    """Whether it says how things are, not how they might be or what to do with memories."""
    lowered = sentence.casefold()
    return not (
        _hypothetical_opening().match(lowered)
        or _hypothetical_word().search(lowered)
        or _command().search(lowered)
    )


def _before_the_question(sentence: str) -> str:
    if _MENTIONED.match(sentence):
        return sentence
    asking = _ASKING.search(sentence)
    if asking is None or not _DECLARES.match(sentence):
        return ""
    return sentence[: asking.start()]


def _blank(found: re.Match[str]) -> str:
    """As many spaces; a full stop after an address still ends its sentence."""
    words = found.group()
    kept = words[-1] if words[-1] in ".!?," else " "
    return " " * (len(words) - 1) + kept


def _quoted(found: re.Match[str]) -> str:
    return QUOTED.center(len(found.group()))


@cache
def _hypothetical_opening() -> re.Pattern[str]:
    opened = alternatives(vocabulary().openings)
    return re.compile(
        rf"\W*(?:(?:{opened})\b[\s,]*)*+(?:{alternatives(vocabulary().hypothetical_openings)})\b"
    )


@cache
def _hypothetical_word() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{alternatives(vocabulary().hypothetical_words)})\b")


@cache
def _fiction() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{alternatives(vocabulary().fictions)})\b", re.I)


@cache
def _command() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{alternatives(vocabulary().commands)})\b")
