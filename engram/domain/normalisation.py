"""When two texts say the same thing: the normal form behind content hashes."""

from __future__ import annotations

import hashlib
import re
import unicodedata

_QUOTES = "\"'`“”„‟«»‹›‘’‚‛"
# Only what carries no meaning at that edge of a word is stripped. Sign, decimal
# point, plus, hash and currency are meaning: "C++" is not "C", ".NET" is not
# "net", "$1.50" is not "$150", "-5" is not "5".
_LEADING = _QUOTES + "([{<¡¿…"
_TRAILING = _QUOTES + ")]}>.,;:!?…"
_LEADING_DOTS = re.compile(r"\A\.{2,}(?=[^.])")
_FEET_OR_INCHES = re.compile(r"""\d['"′″]+\Z""")


def normalise(content: str) -> str:
    """The form under which two contents count as the same.

    Composed Unicode (NFC), case-folded, whitespace collapsed to single spaces,
    and punctuation stripped at word edges only. A word that is nothing but
    punctuation or symbols stays as it is, so that texts made of symbols
    ("👍", ":-)", "?!") remain different from each other and from nothing.
    """
    # Folding can undo composition ("ŉ" and the like), hence composed again.
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", content).casefold())
    return " ".join(_bare(word) for word in folded.split())


def _bare(word: str) -> str:
    if not any(character.isalnum() for character in word):
        return word
    lead = _LEADING_DOTS.sub("", word.lstrip(_LEADING))
    if not lead or (lead == word and _FEET_OR_INCHES.search(word)):
        return word
    return lead.rstrip(_TRAILING) or word


def content_hash(content: str) -> str:
    """SHA-256 of the normal form, in hexadecimal."""
    return hashlib.sha256(normalise(content).encode("utf-8", "surrogatepass")).hexdigest()
