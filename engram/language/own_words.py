"""What of a turn its speaker says as themselves, and not what they pass on of somebody else."""

from __future__ import annotations

import re
from typing import Final

from engram.domain.kept import kept
from engram.language.text import plain
from engram.language.vocabulary import expression

# The lines of a mail that is answered; what is written between them is the speaker's own.
_ANSWERED: Final = re.compile(r"^[^\S\n]*>[^\n]*", re.M)
# A turn is read for addresses, denials and statements, one after the other.
_TURNS_KEPT: Final = 8


@kept(_TURNS_KEPT)
def own_words(text: str) -> str:
    """The turn up to where it passes on what somebody or something else says.

    Args:
        text: The turn, verbatim.

    Returns:
        What stands there, at the same places, with blanks for lines behind ">" and for the
        tags of lines ("[update]"); nothing where somebody else writes in the speaker's place.
    """
    # In plain signs everything stands where it stood.
    posing = expression("turns", "posing").search(plain(text))
    own = text if posing is None else text[: posing.start()]
    own = _ANSWERED.sub(_blank, own) if ">" in own else own
    return expression("turns", "tagged").sub(_blank, own) if "[" in own else own


def _blank(found: re.Match[str]) -> str:
    return " " * len(found.group())


def names_another(text: str, start: int = 0) -> bool:
    """Whether a label stands there of which the rest is told: "kiln: dropped sqlite"."""
    found = expression("statements", "label").match(text, start)
    own = found and expression("turns", "of_oneself").fullmatch(found["label"])
    return found is not None and own is None
