"""What is concluded from no turn: passwords, PINs, card numbers and keys.

They stand in the turn that tells them, word for word, and are found there by who asks for them.
What is concluded comes into prompts unasked.
"""

from __future__ import annotations

import re
from collections.abc import Set
from typing import Final

from engram.language.personal_data import secrets_in
from engram.language.text import STREET_WORD, plain
from engram.language.vocabulary import expression, expression_text

# What follows is no part of a value where a sentence was read: "Kaffee!2019Basel".
_CUT: Final = re.compile(r"[.!?…;,:()]")
_SHORTEST_LEFT: Final = 3
_DIGITS: Final = re.compile(r"[0-9]+")
_NAMES_A_CODE: Final = re.compile(
    rf"\b(?:{expression_text('secrets', 'secret')}|code|combination)s?\b", re.I
)


# What an answer may begin with, before it tells what was asked for.
_OPENS: Final = re.compile(
    r"\A\s*(?:(?:sure|ok|okay|yes|yeah|well|here|of course)[,.:!]? )*(?:(?:it|that)(?:'s| is) )?",
    re.I,
)
_LONGEST_ASKED: Final = 200


def secrets_answered(asked: str, answer: str) -> frozenset[str]:
    """The secret that an answer tells by itself: "What is your PIN?", "4471".

    Args:
        asked: What was said right before it.
        answer: What was said then.
    """
    told = _OPENS.sub("", plain(answer), count=1).split(maxsplit=1)[:1]
    question = asked.rstrip(" .?!:")[-_LONGEST_ASKED:]
    if not (told and question):
        return frozenset()
    return frozenset(one for one in secrets_in(f"{question} is {told[0]}") if one in told[0])


def tells_a_secret(said: str, predicate: str | None, secrets: Set[str]) -> bool:
    """Whether a conclusion tells a secret, or as much of it as a sentence has.

    Args:
        said: The conclusion.
        predicate: What it states of somebody; None for a note or a denial.
        secrets: What :func:`engram.language.personal_data.secrets_in` found in its turns, and
            :func:`secrets_answered`.
    """
    if predicate is not None and _is_one(predicate, said):
        return True
    if expression("secrets", "told").search(said):
        return True
    return any(_has(said, one) for one in secrets | secrets_in(said))


def _is_one(predicate: str, said: str) -> bool:
    """Whether what is stated is a secret, and not how it is with one: "the API key is expired"."""
    if expression("secrets", "predicate").fullmatch(predicate):
        return not expression("secrets", "is_how").search(said)
    bare = expression("secrets", "predicate_of_bare").fullmatch(predicate)
    return bare is not None and expression("secrets", "value").search(said) is not None


def _has(said: str, secret: str) -> bool:
    left = _CUT.split(secret, maxsplit=1)[0]
    words = left if len(left) >= _SHORTEST_LEFT else secret
    if _DIGITS.fullmatch(secret) and not _NAMES_A_CODE.search(said):
        said = _of_something_else(secret).sub("", said)
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", said, re.I) is not None


def _of_something_else(digits: str) -> re.Pattern[str]:
    """The same digits where they number a house or a model, or are a year: no code is told there.

    "at Gartenweg 1234", "221 Baker Street", "born in 1985". A capital at the beginning names
    nothing: "Use 4471 for the gate".
    """
    name = r"[^\W\d_a-z][\w'’.-]*"
    return re.compile(
        rf"(?<=\w ){name} {digits}(?!\w)|(?<!\w){digits} (?:{name} ){{1,4}}{STREET_WORD}(?!\w)"
        rf"|\b(?:in|since) (?=(?:19|20)\d\d\b){digits}(?!\w)"
    )
