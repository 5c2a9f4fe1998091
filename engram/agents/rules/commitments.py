"""Which promises of a conversation were kept or called off later in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from engram.agents.rules.expressions import expression
from engram.agents.rules.sentences import Sentence, sentences
from engram.domain.memories import Resolution
from engram.domain.word_forms import is_past, stem, verb_lemma

_WORD = re.compile(r"[^\W\d_][\w'-]*")
_SHORTEST: Final = 3
# Of the words of a promise that somebody who speaks of its end says again.
_SHARED: Final = 0.5


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a promise.

    Attributes:
        promise: Number of the promise among those that were given.
        resolution: Kept, or come to nothing.
        sentence: Which says so.
    """

    promise: int
    resolution: Resolution
    sentence: Sentence


def ends(text: str, promises: Sequence[str]) -> Iterator[Ended]:
    """What a turn says about the end of promises that were made before it.

    Args:
        text: The turn.
        promises: What was promised: "send Mira the slides".
    """
    for sentence in sentences(text):
        said = _stems(sentence.text)
        for number, promise in enumerate(promises):
            did = _did(sentence.text, promise)
            how = _how(sentence.text, did=did)
            if how is not None and _is_about(promise, said, by_name=did is not None):
                yield Ended(number, how, sentence)


def kept(text: str) -> Iterator[tuple[str, Sentence]]:
    """What was done "as promised", by the speaker's own word: "bring the folding chairs"."""
    for sentence in sentences(text):
        found = expression("commitments", "kept").match(sentence.text)
        verb = found.group("verb").lower() if found else ""
        if found and is_past(verb):
            yield f"{verb_lemma(verb)} {found.group('it').strip()}", sentence


def _how(text: str, *, did: str | None) -> Resolution | None:
    """What becomes of it: done, called off, or nothing yet.

    Args:
        text: The sentence.
        did: The word in it that says it was done, if one does.
    """
    off = expression("commitments", "dropped").search(text)
    # Who promised to cancel, and cancelled, has kept the promise.
    if off and not (did and did in off.group().lower().split()):
        return Resolution.EXPIRED
    if expression("commitments", "open").search(text):
        return None
    done = did or expression("commitments", "done").search(text)
    return Resolution.FULFILLED if done else None


def _did(text: str, promise: str) -> str | None:
    """Its own verb in the past: "Sent off Paolo's reference"."""
    verb = verb_lemma(promise.split(maxsplit=1)[0].lower())
    words = (word.lower() for word in _WORD.findall(text))
    return next((w for w in words if w != verb and is_past(w) and verb_lemma(w) == verb), None)


def _is_about(promise: str, said: frozenset[str], *, by_name: bool) -> bool:
    verb, *rest = promise.split()
    words = _stems(" ".join(rest))
    if not words:
        return _stems(verb) <= said
    shared = len(words & said)
    needed = max(1, round(_SHARED * len(words)))
    return shared >= needed or (by_name and shared > 0)


def _stems(text: str) -> frozenset[str]:
    empty = expression("commitments", "empty")
    return frozenset(
        stem(word.lower().removesuffix("'s"))
        for word in _WORD.findall(text)
        if len(word) >= _SHORTEST and not empty.fullmatch(word)
    )
