"""From a turn to the clauses in which its speaker states something about themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from engram.agents.rules.vocabulary import alternatives, vocabulary

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`]*`", re.DOTALL)
_DOUBLE_QUOTED = re.compile(r"[\"“”«„][^\"“”»]*[\"“”»]")
_SINGLE_QUOTED = re.compile(r"(?<!\w)['‘](?=\w)[^'‘’\n]*(?:(?<=\w)['’](?=\w)[^'‘’\n]*)*['’](?!\w)")
# Tried once per word: 32 KB without a space, such as an encoded file, cost no time.
_LINK = re.compile(r"(?<!\S)\S+(?:://|@)\S+")
# A full stop ends a sentence only before a space, and not after an initial or a title.
_SENTENCE_END = re.compile(
    r"(?<!\b[A-Z])(?<!\bDr)(?<!\bMr)(?<!\bMs)(?<!\bMrs)(?<!\bSt)(?<!\bProf)(?<!\bJr)"
    r"(?:[.](?=\s|$)|[!?…]+|\.\.+|\n+)"
)
_CLAUSE_BREAK = re.compile(
    r"\s*(?:[,;:()]|\s[-–—]+\s|—|\s/\s)\s*|\s+(?=(?:and|but|so|because|since|though|although|while|or|yet)\s)",
    re.I,
)
# "I quit and started at a bakery": the second verb has the same subject.
_SAME_SUBJECT = re.compile(
    r"(?:now\s+)?(?:moved|relocated|joined|started|switched|became|settled|live|work|study|speak|own|"
    r"use|prefer|stopped|quit|love|hate|like|enjoy)\b",
    re.I,
)
_FIRST_PERSON = re.compile(
    r"(?:i|we|my|our|call\s+me|(?:everyone|everybody|(?:most\s+)?people|friends|folks)"
    r"\s+(?:just\s+)?calls?\s+me)\b",
    re.I,
)
# "Currently living in Kyoto": the subject is left out, at the start of a sentence only.
_LEFT_OUT = re.compile(r"(?:living\s+in|based\s+in|working\s+(?:at|as|for)|studying)\b", re.I)


def sentences(text: str) -> Iterator[str]:
    """Sentences that state something: no questions, quotations, conditions or role play."""
    plain = text.replace("’", "'")
    plain = _LINK.sub(" ", _CODE.sub(" ", plain))
    plain = _SINGLE_QUOTED.sub(" \x00 ", _DOUBLE_QUOTED.sub(" \x00 ", plain))
    start = 0
    for end in [*_SENTENCE_END.finditer(plain), None]:
        mark = end.group() if end else ""
        sentence = plain[start : end.start() if end else len(plain)].strip()
        start = end.end() if end else len(plain)
        if sentence and "?" not in mark and _states(sentence):
            yield sentence


def clauses(sentence: str) -> Iterator[str]:
    """The rests of a sentence that begin with the speaker ("I ...", "my ...").

    A clause is not cut at its end: "I speak Finnish and Estonian" needs both.
    """
    spoken = False
    starts = [0, *(found.end() for found in _CLAUSE_BREAK.finditer(sentence))]
    for number, start in enumerate(starts):
        rest = sentence[start:]
        opened = _opening().match(rest)
        clause = rest[opened.end() :] if opened else rest
        if spoken and rest.lower().startswith(("and ", "but ")) and _SAME_SUBJECT.match(clause):
            clause = f"I {clause}"
        elif number == 0 and _LEFT_OUT.match(clause):
            clause = f"I'm {clause}"
        elif not _FIRST_PERSON.match(clause):
            clause = _after_adverbial(clause)
        before = sentence[starts[number - 1] if number else 0 : start]
        if clause and not _is_reported(before):
            spoken = clause[:2].lower() in {"i ", "i'", "we"}
            yield clause


def own_words(sentence: str) -> bool:
    """Whether nothing in the sentence is quoted."""
    return "\x00" not in sentence


def _states(sentence: str) -> bool:
    lowered = sentence.casefold()
    return not (_hypothetical_opening().match(lowered) or _hypothetical_word().search(lowered))


def _is_reported(before: str) -> bool:
    """Whether the clause before hands over to somebody else's words: "he said, I ..."."""
    words = re.findall(r"[\w']+", before.casefold())
    speakers = {"i", "i've", "i'd", "i'll", "we"}
    return bool(
        words and words[-1] in vocabulary().reporting and not speakers.intersection(words)
    ) or before.rstrip().endswith("\x00")


def _after_adverbial(clause: str) -> str:
    found = _adverbial().match(clause)
    return clause[found.end() :] if found else ""


@cache
def _opening() -> re.Pattern[str]:
    words = alternatives(vocabulary().openings)
    # Bounded: nobody opens a sentence with more, and a page of "and and and" costs no time.
    return re.compile(rf"(?:(?:{words})(?:\s+there)?\b[\s,]*){{1,8}}(?=\S)", re.I)


@cache
def _adverbial() -> re.Pattern[str]:
    """A few words that say when, where or as what: "By trade I'm", "In 2019 we moved"."""
    return re.compile(
        r"(?:in|at|on|by|for|since|after|before|during|from|until|as|last|this|these|next|about|around|over|"
        r"two|three|four|five|six|seven|eight|nine|ten|a|some|\d+)"
        r"(?:\s+(?!that\b|which\b|who\b|if\b|when\b)[\w'-]+){1,4}?\s+(?=(?:i|we|my)\b)",
        re.I,
    )


@cache
def _hypothetical_opening() -> re.Pattern[str]:
    opened = alternatives(vocabulary().openings)
    return re.compile(
        rf"\W*(?:(?:{opened})\b[\s,]*)*(?:{alternatives(vocabulary().hypothetical_openings)})\b"
    )


@cache
def _hypothetical_word() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{alternatives(vocabulary().hypothetical_words)})\b")
