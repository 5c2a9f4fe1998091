"""Ids derived from content, and the normal form of text behind content hashes."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from uuid import UUID, uuid5

from engram.domain.scope import Scope

# --- ids derived from what a memory is, so that doing a thing twice is doing it once

# Fixed for ever: changing it would give every memory a new id.
_ENGRAM_IDS = UUID("6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11")


def _derive(*parts: str | int) -> str:
    # A JSON array keeps the parts apart whatever characters they hold.
    return str(uuid5(_ENGRAM_IDS, json.dumps(parts, ensure_ascii=True, separators=(",", ":"))))


def episode_id(scope: Scope, session_id: str, message_id: str) -> str:
    """The id of the turn that an application calls ``message_id`` within a session."""
    return _derive("episode", scope.namespace, scope.user_id, session_id, message_id)


def derived_id(scope: Scope, memory_type: str, identity: str, generation: int) -> str:
    """The id of a conclusion.

    Args:
        scope: Whose memory.
        memory_type: factual, semantic, procedural or negation.
        identity: What makes two conclusions the same one: a content
            hash, or category and canonical value of a pattern fact.
        generation: 0 for the first, counting up when it returns after having
            been superseded (Paris, London, Paris again).
    """
    return _derive("derived", scope.namespace, scope.user_id, memory_type, identity, generation)


def with_test_namespace(identity: str, *, is_test: bool) -> str:
    """``identity``, told apart for what test turns state.

    So a test memory and a real one of the same words never meet: neither hides,
    supports nor replaces the other. Those of real memories are as they always were.
    """
    return f"test:{identity}" if is_test else identity


def operation_id(*parts: str | int) -> str:
    """An id for one effect on one memory, so that the memory can tell a repeat from a new one."""
    return _derive("operation", *parts)


# --- when two texts say the same thing: the normal form behind content hashes

_QUOTES = "\"'`“”„‟«»‹›‘’‚‛"
# Only what carries no meaning at that edge of a word is stripped. Sign, decimal
# point, plus, hash and currency are meaning: "C++" is not "C", ".NET" is not
# "net", "$1.50" is not "$150", "-5" and "<5" are not "5".
_LEADING_SIGNS = _QUOTES + "([{<¡¿…"
_TRAILING = _QUOTES + ")]}>.,;:!?…"
_LEADING_DOTS = re.compile(r"\A\.{2,}(?=[^.])")
_AMOUNT = re.compile(r"[=~$€£¥.+-]{0,3}\d[^>]*\Z")
_FEET_OR_INCHES = re.compile(r"""\d['"′″]+\Z""")


# What Unicode's Stream-Safe Text Format allows: no writing system has need of more.
_MOST_MARKS = 30
_MAYBE_MARKS = re.compile(rf"[^\w\s]{{{_MOST_MARKS + 1}}}")
_JOINER = "\u034f"


def stream_safe(text: str) -> str:
    """``text`` with no more than 30 combining marks in a row; others are parted by a joiner.

    Putting marks in order costs the square of their number, so a page of nothing else
    must not reach ``unicodedata.normalize`` or a tokenizer as it is.
    """
    if text.isascii() or not _MAYBE_MARKS.search(text):
        return text
    parts: list[str] = []
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks > _MOST_MARKS:
            parts.append(_JOINER)
            marks = 1
        parts.append(character)
    return "".join(parts)


def normalise(content: str) -> str:
    """The form under which two contents count as the same.

    Composed Unicode (NFC), case-folded, whitespace collapsed to single spaces,
    and punctuation stripped at word edges only. A word that is nothing but
    punctuation or symbols stays as it is, so that texts made of symbols
    ("👍", ":-)", "?!") remain different from each other and from nothing.
    """
    # Folding can undo composition ("ŉ" and the like), hence composed again.
    composed = unicodedata.normalize("NFC", stream_safe(content))
    folded = unicodedata.normalize("NFC", composed.casefold())
    return " ".join(_bare(word) for word in folded.split())


def _bare(word: str) -> str:
    if not any(character.isalnum() for character in word):
        return word
    opened = word.lstrip(_LEADING_SIGNS)
    if word.removesuffix(opened).endswith("<") and _AMOUNT.match(opened):
        opened = f"<{opened}"
    lead = _LEADING_DOTS.sub("", opened)
    if not lead or (lead == word and _FEET_OR_INCHES.search(word)):
        return word
    return lead.rstrip(_TRAILING) or word


def content_hash(content: str) -> str:
    """SHA-256 of the normal form, in hexadecimal."""
    return hashlib.sha256(normalise(content).encode("utf-8", "surrogatepass")).hexdigest()
