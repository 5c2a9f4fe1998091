"""Explicit negations: what a turn says is not so.

Sentences with a negating word are taken apart by rules: whom it is about,
which verb, which object, where the object ends. Anything that is not the
speaker's own plain statement yields nothing: questions, conditions, reported
speech, double negation, manners of speaking. A false negation would hide a
true memory, so every doubt is decided against finding one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from engram.extraction import negation_contrasts as contrasts
from engram.extraction import negation_endings as endings
from engram.extraction.models import FoundNegation
from engram.extraction.negation_objects import ended_cleanly, vocabulary
from engram.extraction.negation_rules import Denial, negated_verb, pattern_of, shown_object
from engram.extraction.negation_tokens import Sentence, sentences, without_quotes

Rule = Callable[[Sentence, int, str | None], Iterator[Denial]]

_CUE = re.compile(
    r"n't\b|\b(?:not|never|no|none|nobody|no-one|neither|cannot|dont|doesnt|didnt|havent|hasnt|isnt|arent|wasnt|"
    r"stopped|quit|gave up|given up|ceased|dropped|ditched|abandoned|left|uninstalled|deleted|"
    r"replaced|"
    r"sold|cancell?ed|cancell?ing|switched|switching|migrated|moved|got rid|getting rid|"
    r"used to|ended up|cant|wont)\b"
)
_JEST = re.compile(r"\b(?:just kidding|only joking|just joking|jk|not really)\b")
_RULES: dict[str, tuple[Rule, ...]] = {
    "not": (negated_verb, contrasts.contrast),
    "never": (negated_verb,),
    "no": (negated_verb, endings.no_thing, endings.nobody),
    "none": (endings.nobody,),
    "nobody": (endings.nobody,),
    "no-one": (endings.nobody,),
    "neither": (endings.neither, endings.nobody),
    "used": (contrasts.used_to,),
    **dict.fromkeys(("stopped", "quit", "ceased", "gave", "given"), (endings.stopped,)),
    **dict.fromkeys(
        "dropped ditched abandoned left uninstalled deleted replaced sold cancelled canceled "
        "switched migrated moved got ended wound".split(),
        (endings.ended,),
    ),
}
_QUESTION_WORDS = frozenset(
    "what which who how where when why can could do does did is are any would will should "
    "have".split()
)
_NEW_CLAUSE = frozenset("and but so because".split())
_TAIL = 4


def find_negations(text: str, *, user_name: str | None = None) -> tuple[FoundNegation, ...]:
    """What ``text`` denies, in order of appearance, each (pattern, subject) once.

    Args:
        text: A turn of the user, verbatim; any Unicode.
        user_name: The user's own name: a sentence about them by name is about the user.
    """
    clean = without_quotes(text)
    lowered = clean.lower()
    if not _CUE.search(lowered) or _JEST.search(lowered):
        return ()
    found: dict[tuple[str, str], FoundNegation] = {}
    for sentence in sentences(clean, _CUE):
        for denial in _denials(sentence, user_name):
            negation = _negation(sentence, denial, text)
            found.setdefault((negation.negates_pattern, negation.subject), negation)
    return tuple(found.values())


def _denials(sentence: Sentence, user_name: str | None) -> Iterator[Denial]:
    contractions = vocabulary("contractions")
    for index, word in enumerate(sentence.words):
        if _in_title(sentence, index):
            continue
        rules = _RULES.get(word.low)
        if rules is None:
            if word.low not in contractions:
                continue
            rules = (negated_verb,)
        for rule in rules:
            for denial in rule(sentence, index, user_name):
                if _stands(sentence, denial):
                    yield denial


def _in_title(sentence: Sentence, index: int) -> bool:
    """Whether the word is part of a name in capitals: "Tomorrow Never Dies"."""
    around = (index - 1, index, index + 1)
    return (
        index > 0 and all(sentence.capital(at) for at in around) and sentence.low(index - 1) != "i"
    )


def _stands(sentence: Sentence, denial: Denial) -> bool:
    """Whether nothing around the denial takes it back."""
    if denial.span is not None and not ended_cleanly(sentence, denial.span):
        return False
    if _asked(sentence, denial) or _conditional(sentence, denial):
        return False
    return not (_doubled(sentence, denial) or _attributed(sentence, denial))


def _asked(sentence: Sentence, denial: Denial) -> bool:
    if not sentence.question:
        return False
    # "I don't eat meat, what can you suggest?" states something before it asks.
    index = denial.end
    while index < len(sentence.words) and sentence.low(index) not in {",", "-", "so", "and"}:
        index += 1
    rest = [word.low for word in sentence.words[index:] if word.low not in {",", "-", "so", "and"}]
    asks = bool(rest) and rest[0] in _QUESTION_WORDS and len(rest) > 2  # noqa: PLR2004 - "do I?" is a tag
    opens = sentence.low(0) in _QUESTION_WORDS
    return opens or not asks or denial.subject.name != "user"


def _conditional(sentence: Sentence, denial: Denial) -> bool:
    before = range(denial.end)
    hypothetical, fiction = vocabulary("hypothetical"), vocabulary("fiction")
    if any(sentence.low(index) in hypothetical for index in before):
        return True
    if any(sentence.low(index) in fiction for index in range(denial.subject.begin)):
        return True
    return sentence.low(denial.end) in vocabulary("conditional_after")


def _doubled(sentence: Sentence, denial: Denial) -> bool:
    """Whether a second negation stands in the same clause."""
    begin = denial.subject.begin
    double, contractions = vocabulary("double"), vocabulary("contractions")
    while begin > max(0, denial.subject.begin - _TAIL):
        if sentence.is_boundary(begin - 1) or sentence.low(begin - 1) in _NEW_CLAUSE:
            break
        begin -= 1
    for index in range(begin, denial.end):
        if denial.cue.begin <= index < denial.cue.end:
            continue
        word = sentence.low(index)
        if word in contractions or (word in double and not _is_pair(sentence, index, denial)):
            return True
    return False


def _is_pair(sentence: Sentence, index: int, denial: Denial) -> bool:
    neither = sentence.low(denial.cue.begin) == "neither"
    return sentence.low(index) == "nor" and neither


def _attributed(sentence: Sentence, denial: Denial) -> bool:
    """Whether ", he said" follows."""
    at = denial.end
    if not sentence.is_boundary(at) or at >= len(sentence.words):
        return False
    tail = [sentence.low(at + offset) for offset in range(1, _TAIL)]
    return any(word in vocabulary("reporting") for word in tail) and not {"i", "i'm"} & set(tail)


def _negation(sentence: Sentence, denial: Denial, text: str) -> FoundNegation:
    begin = min(denial.subject.begin, denial.cue.begin)
    end = max(denial.end, denial.cue.end)
    shown = shown_object(sentence, denial.span)
    content = " ".join(part for part in (denial.subject.shown, denial.verb, shown) if part)
    return FoundNegation(
        negates_pattern=pattern_of(sentence, denial),
        subject=denial.subject.name,
        content=f"{content}.",
        evidence=text[sentence.words[begin].start : sentence.words[end - 1].end],
    )
