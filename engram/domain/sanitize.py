"""Text that others wrote, where it must not act: on one line, in a terminal, between fences.

And whether there is anything to see of it.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

# C0 but tab, DEL, C1 (of which U+009B begins an escape sequence), and Unicode's own line ends.
_CONTROL: Final = "\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029"
# Every character that Unicode lets reorder what stands around it (Bidi_Control).
_BIDI: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_BREAKING: Final = re.compile(f"[{_CONTROL}\t]")
_ACTING: Final = re.compile(f"(?!\n)[{_CONTROL}{_BIDI}]")
# Control and format characters.
_UNSEEN: Final = frozenset({"Cc", "Cf"})
_SHOWN_INSTEAD: Final = "\ufffd"


def has_control_characters(text: str) -> bool:
    """Whether ``text`` holds a control character or anything that ends a line."""
    return _BREAKING.search(text) is not None


def is_visible(text: str) -> bool:
    """Whether ``text`` shows anything, which white space, control and format characters do not."""
    return any(not c.isspace() and unicodedata.category(c) not in _UNSEEN for c in text)


def one_line(text: str) -> str:
    """``text`` on one line: control characters and line ends become spaces, runs of them one."""
    return " ".join(_BREAKING.sub(" ", text).split())


def harmless(text: str) -> str:
    """``text`` as a terminal only shows it: nothing in it moves a cursor or reorders words.

    Line ends and tabs stay; every other control character is replaced by U+FFFD.
    """
    return _ACTING.sub(_SHOWN_INSTEAD, text)


def escaped(document: str) -> str:
    """The JSON document, saying the same, with whatever a terminal would act on escaped."""
    return _ACTING.sub(lambda found: f"\\u{ord(found[0]):04x}", document)
