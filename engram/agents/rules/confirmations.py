"""What an assistant says of the user, and the user's next turn plainly confirms."""

from __future__ import annotations

import re
from typing import Final

from engram.agents.rules.expressions import expression

_TABLE: Final = "confirmations"
_FIRST_PERSON: Final = {
    "you're": "I'm", "you are": "I'm", "you've": "I've", "you have": "I have", "you": "I",
    "your": "my", "yours": "mine", "yourself": "myself",
}  # fmt: skip
_ASKED: Final = {"are you": "I'm", "do you": "I", "is your": "my", "have you": "I have"}
_SECOND_PERSON: Final = re.compile(
    r"\b(?:you're|you are|you've|you have|yourself|yours|your|you)\b", re.I
)


def confirmed(asked: str, answer: str) -> str | None:
    """What the answer says yes to, in the first person; None if it is no plain yes.

    Args:
        asked: What was said before: "So you moved to Oslo?"
        answer: What the user said to it: "Yes, exactly."
    """
    if not expression(_TABLE, "yes").match(answer.replace("’", "'")):
        return None
    claims = list(expression(_TABLE, "claim").finditer(asked.replace("’", "'")))
    if len(claims) != 1:
        return None
    claim = claims[0].group("claim")
    question = expression(_TABLE, "asked").match(claim)
    if question:
        head = _ASKED[" ".join(question.group("verb").lower().split())]
        claim = f"{head}{claim[question.end() :]}"
    return f"{_SECOND_PERSON.sub(lambda said: _FIRST_PERSON[said.group().lower()], claim)}."
