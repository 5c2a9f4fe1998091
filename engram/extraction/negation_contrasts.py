"""Denials by contrast: "X, not Y", and "used to, but not any more"."""

from __future__ import annotations

from collections.abc import Iterator

from engram.domain.word_forms import verb_lemma
from engram.extraction.negation_objects import Span, is_telling, object_at, vocabulary
from engram.extraction.negation_rules import Denial, does_not, governed, is_state, subject_of
from engram.extraction.negation_subjects import skip_on, subject_ending, user
from engram.extraction.negation_tokens import Sentence

_CONTRAST_LONGEST = 4


def contrast(sentence: Sentence, index: int, user_name: str | None) -> Iterator[Denial]:
    """Denials put as "I work in X, not Y", "it's X I run, not Y", "I'm an X, not a Y"."""
    comma = sentence.low(index - 1) == ","
    if sentence.low(index) != "not" or index < 3:  # noqa: PLR2004 - subject, verb and object before it
        return
    denied = object_at(sentence, index + 1)
    ends = sentence.is_boundary(denied.end) or sentence.low(denied.end) in {"and", "but", "anymore"}
    if not ends or not 0 < denied.end - denied.begin <= _CONTRAST_LONGEST:
        return
    stop = index - 1 if comma else index
    begin = stop - 1
    while not sentence.is_boundary(begin - 1) and sentence.low(begin) not in {"but", "because"}:
        begin -= 1
    while begin < stop and sentence.low(begin) in vocabulary("lead_ins"):
        begin += 1
    if stop - begin < 2 or _is_clause(sentence, denied):  # noqa: PLR2004 - subject and verb
        return
    if not comma and not (
        sentence.capital(denied.begin) or sentence.low(denied.begin) in _ARTICLES_OR_PLACES
    ):
        return
    yield from _contrasted(sentence, begin, stop, denied, Span(index, index + 1), user_name)


_ARTICLES_OR_PLACES = frozenset("a an the my our in at".split())
_DETERMINED = frozenset("a an the my our his her their in at on to for with from".split())
_NO_CONTRAST = frozenset(
    (
        "gonna going lying kidding joking because for that to when if since as just only even "
        "really so very too yet bad sure any always necessarily often many much least everyone "
        "all until unless including counting quite exactly "
    ).split()
)


def _is_clause(sentence: Sentence, span: Span) -> bool:
    first = sentence.low(span.begin)
    number = first[0].isdigit() or first in {"two", "three", "four", "five", "six", "ten", "twice"}
    return (
        first in _NO_CONTRAST
        or first.endswith("ly")
        or number
        or first in vocabulary("vague_objects")
    )


def _contrasted(
    sentence: Sentence, begin: int, stop: int, denied: Span, cue: Span, user_name: str | None
) -> Iterator[Denial]:
    first = sentence.low(begin)
    if first in {"it's", "its"} or (first == "it" and sentence.low(begin + 1) == "is"):
        lemma_at = _cleft_verb(sentence, begin, stop)
        if lemma_at is not None:
            lemma = verb_lemma(sentence.low(lemma_at))
            yield Denial(user(begin), lemma, denied, f"does not {lemma}", denied.end, cue)
        return
    last, verb_at, be = _subject_and_verb(sentence, begin, stop)
    if last is None or verb_at >= stop:
        return
    subject = subject_ending(sentence, last, user_name=user_name)
    if subject is None:
        return
    if be:
        affirmed = Span(verb_at, stop)
        if is_state(sentence, denied) and is_state(sentence, affirmed):
            yield Denial(subject, "be", denied, "is not", denied.end, cue)
        return
    lemma = verb_lemma(sentence.low(verb_at))
    empty = vocabulary("empty_verbs") | vocabulary("wished")
    if lemma in empty or sentence.low(verb_at) in vocabulary("reporting"):
        return
    # "My coffee black, not white" contrasts what it is like, not what it is.
    bare = not sentence.capital(denied.begin) and sentence.low(denied.begin) not in _DETERMINED
    if bare and sentence.low(verb_at + 1) in _DETERMINED:
        return
    if stop - verb_at > 1 and is_telling(sentence, denied, led=True):
        yield Denial(subject, lemma, denied, f"{does_not(subject)} {lemma}", denied.end, cue)


def _subject_and_verb(sentence: Sentence, begin: int, stop: int) -> tuple[int | None, int, bool]:
    """Index of the subject's last word, of the verb or complement, and whether it is "be"."""
    if sentence.low(begin).partition("'")[0] in {"i", "we", "he", "she", "they"}:
        return _after_pronoun(sentence, begin)
    for index in range(begin + 1, min(begin + 4, stop)):
        if sentence.low(index) in {"is", "are"}:
            return index - 1, index + 1, True
        if sentence.low(index).endswith("'s") and sentence.low(begin) in {"my", "our"}:
            return index, index + 1, True
    # "My sister lives in Oslo", "Anna lives in Oslo": the verb shows its ending.
    at = begin + (2 if sentence.low(begin) in {"my", "our"} else 1)
    if at < stop and sentence.low(at).isalpha() and sentence.low(at).endswith("s"):
        return at - 1, at, False
    return None, 0, False


def _after_pronoun(sentence: Sentence, begin: int) -> tuple[int | None, int, bool]:
    ending = sentence.low(begin).partition("'")[2]
    at = skip_on(sentence, begin + 1)
    if ending:
        return (begin, at, True) if ending in {"m", "re", "s"} else (None, 0, False)
    if sentence.low(at) in {"am", "is", "are"}:
        return begin, skip_on(sentence, at + 1), True
    return (None, 0, False) if sentence.low(at) in {"was", "were"} else (begin, at, False)


def _cleft_verb(sentence: Sentence, begin: int, stop: int) -> int | None:
    for index in range(stop - 2, begin, -1):
        if sentence.low(index) in {"i", "we"}:
            verb_at = skip_on(sentence, index + 1)
            short = stop - verb_at in {1, 2}
            good = verb_lemma(sentence.low(verb_at)) not in vocabulary("empty_verbs")
            return verb_at if short and good else None
    return None


def used_to(sentence: Sentence, index: int, user_name: str | None) -> Iterator[Denial]:
    """Denials put as "I used to V O, but not any more"."""
    if sentence.low(index) != "used" or sentence.low(index + 1) != "to":
        return
    verb_at = skip_on(sentence, index + 2)
    lemma = sentence.low(verb_at)
    span = object_at(sentence, verb_at + 1)
    if lemma in vocabulary("empty_verbs") or not _no_more(sentence, span.end):
        return
    subject = subject_of(sentence, index, user_name)
    if subject is None:
        return
    cue = Span(index, index + 2)
    said = f"{does_not(subject)} {lemma}"
    if lemma == "be":
        if is_state(sentence, span):
            yield Denial(subject, "be", span, "is not", span.end, cue)
        return
    if span.begin >= span.end:
        yield Denial(subject, lemma, None, said, span.end, cue)
    else:
        yield from governed(sentence, subject, lemma, verb_at + 1, cue, said)


def _no_more(sentence: Sentence, at: int) -> bool:
    while sentence.low(at) in {",", "-", "but", "and", "though"}:
        at += 1
    words = [sentence.low(at + offset) for offset in range(5)]
    if words[0] == "not":
        return words[1] in {"now", "anymore", "today", "these"} or words[1:3] in (
            ["any", "more"],
            ["any", "longer"],
        )
    if words[:2] == ["no", "longer"]:
        return True
    if words[0] in {"i", "we"}:
        rest = words[1:]
        if rest[0] in {"stopped", "quit", "don't", "dont"}:
            return True
        return rest[:2] in (["gave", "up"], ["no", "longer"], ["gave", "it"], ["do", "not"])
    return words[0] in {"stopped", "quit"}
