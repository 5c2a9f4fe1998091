"""What a conclusion says of the time before it was told. Loads nothing: requests need it, too."""

from __future__ import annotations

import re

_IS_OVER = re.compile(r"\b(?:no longer|any ?more)\b")
_PAST_DENIAL = re.compile(r"\b(?:did|has|have|was|were) (?:not|never)\b")


def denies_the_past(content: str) -> bool:
    """Whether it says of the past that it was not so: "has never lived in Paris"."""
    return _PAST_DENIAL.search(content) is not None


def is_over_by_now(content: str) -> bool:
    """Whether it says that something was so before: "doesn't smoke any more"."""
    return _IS_OVER.search(content) is not None
