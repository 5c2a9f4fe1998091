"""What a turn says together with the one before it: a yes to a claim, a bare answer to a question.

A question becomes a sentence of the user with a gap, "I live in _", and the answer fills it; what
that says, the rules read as if the user had said it. Which questions are read is data.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from engram.language.text import plain
from engram.language.vocabulary import expression, expression_text, word_lines

_TABLE: Final = "confirmations"
_ANSWERS: Final = "answers"
# The gaps of a sentence: for a name, for a word, and for a word with its article.
_NAME, _WORD, _OF_A_KIND = "_", "~", "@"
_SAID_IN_THE_QUESTION: Final = re.compile("<([a-z]+)>")
_ONE_OF: Final = {"children": "child", "grandchildren": "grandchild"}
_FROM_FIRST_PERSON: Final = {
    "you're": "I'm", "you are": "I'm", "you've": "I've", "you have": "I have", "you": "I",
    "your": "my", "yours": "mine", "yourself": "myself",
}  # fmt: skip
_ASKED: Final = {"are you": "I'm", "do you": "I", "is your": "my", "have you": "I have"}
_PASTS: Final = {
    "move": "moved", "relocate": "relocated", "switch": "switched", "join": "joined",
    "start": "started", "change": "changed", "adopt": "adopted", "buy": "bought", "sell": "sold",
    "quit": "quit", "leave": "left", "marry": "married", "become": "became", "go back": "went back",
}  # fmt: skip
_SECOND_PERSON: Final = re.compile(
    r"\b(?:you're|you are|you've|you have|yourself|yours|your|you)\b", re.I
)
_LONGEST_ASKED: Final = 2_000
_LONGEST_ANSWER: Final = 100


def confirmed(asked: str, answer: str) -> str | None:
    """What the answer says yes to, in the first person; None if it is no plain yes.

    Args:
        asked: What was said before: "So you moved to Oslo?"
        answer: What the user said to it: "Yes, exactly."
    """
    yes = expression(_TABLE, "yes").match(plain(answer, dashes=False))
    if yes is None:
        return None
    claims = list(expression(_TABLE, "claim").finditer(plain(asked, dashes=False)))
    if len(claims) != 1:
        return None
    claim = claims[0].group("claim")
    if expression(_TABLE, "of_any").search(claim):
        return None
    did = expression(_TABLE, "did_you").fullmatch(claim)
    if did:
        claim = f"I {_PASTS[did['verb'].lower()]}{did['what']}"
    elif claim.lower().startswith("did you"):
        return None
    question = expression(_TABLE, "asked").match(claim)
    if question:
        # Letters that only count as these without regard to case ("\u0131s your") are nobody's.
        head = _ASKED.get(" ".join(question.group("verb").lower().split()))
        if head is None:
            return None
        claim = f"{head}{claim[question.end() :]}"
    since = expression(_TABLE, "since").search(yes.group())
    return f"{in_first_person(claim)}{since.group() if since else ''}."


def in_full(asked: str, answer: str) -> str | None:
    """What a bare answer says as a sentence of the user; None where it says more, or nothing.

    Args:
        asked: What was said before: "Where do you live?"
        answer: What the user said to it: "Lisbon."
    """
    if len(answer) > _LONGEST_ANSWER or "?" not in asked[-_LONGEST_ANSWER:]:
        return None
    question = plain(asked[-_LONGEST_ASKED:], dashes=False)
    if question.count("?") != 1:
        # Which of them is answered, nobody can tell.
        return None
    spoken = plain(answer, dashes=False)
    otherwise = expression(_ANSWERS, "otherwise").match(spoken)
    said = _value(spoken[otherwise.end() :] if otherwise else spoken)
    if said is None:
        return None
    for asks, told in _forms():
        found = asks.search(question)
        if found is None or (otherwise and "other" not in asks.groupindex):
            continue
        full = _filled(told, found.groupdict(), said)
        if full is not None:
            return full
    return None


def in_first_person(claim: str) -> str:
    """What is said of the listener, as the listener would say it."""
    return _SECOND_PERSON.sub(_in_first_person, claim)


def _in_first_person(said: re.Match[str]) -> str:
    return _FROM_FIRST_PERSON.get(said.group().lower(), said.group())


def _value(answer: str) -> str | None:
    """The words of an answer that say which, without "it's" and "in"."""
    found = expression(_ANSWERS, "bare").fullmatch(answer.strip())
    return found.group("it") if found else None


def _filled(told: str, asked: dict[str, str | None], said: str) -> str | None:
    """The sentence with its gap filled; a number alone says how many, and nothing else."""
    parts = {name: value or "" for name, value in asked.items()}
    alone = expression(_ANSWERS, "number").fullmatch(said) is not None
    numbered = parts.get("numbered", "").lower()
    if alone != bool(numbered):
        return None
    if numbered and said.lower() in {"one", "1"}:
        parts["numbered"] = _ONE_OF.get(numbered, numbered.removesuffix("s"))
    sentence = in_first_person(_SAID_IN_THE_QUESTION.sub(lambda one: parts[one[1]], told))
    small = expression(_ANSWERS, "small").match(said) is not None
    # What stands first is no name because it has a capital.
    first = said.split(maxsplit=1)[0]
    spelt_so = (len(first) > 1 and first.isupper()) or (_NAME in told and not small)
    word = said if spelt_so else f"{said[:1].lower()}{said[1:]}"
    kind = word if small else f"{'an' if word[0] in 'aeiou' else 'a'} {word}"
    full = f"{sentence.replace(_NAME, word).replace(_WORD, word).replace(_OF_A_KIND, kind)}."
    # Who writes everything in lower case may write a name so.
    return f"{full[:1].lower()}{full[1:]}" if said.islower() else full


@cache
def _forms() -> tuple[tuple[re.Pattern[str], str], ...]:
    """What is asked, and what the answer to it says."""
    begins, now = (expression_text(_ANSWERS, name) for name in ("begins", "at_present"))
    lines = (line.partition(" : ") for line in word_lines(_ANSWERS, "says"))
    return tuple(
        (
            re.compile(rf"{begins}{expression_text(_ANSWERS, name)}{now}\s*\?\W*\Z", re.I),
            told,
        )
        for name, _, told in lines
    )
