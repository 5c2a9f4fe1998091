"""Denials of what an assistant took for true: "You use MongoDB", and then "No, that's wrong".

Found in the turn that says so, and worded by the turn before it. Only where nobody can doubt what
is meant: consolidation, which reads more of the conversation, understands more of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from engram.domain.personal_data import holds_token
from engram.language.found import FoundNegation
from engram.language.negation import find_negations
from engram.language.statements.clauses import sentences, verbatim
from engram.language.statements.corrections import claims
from engram.language.statements.predicates import RuleStatement
from engram.language.statements.reading import everything
from engram.language.statements.taken_back import denied, is_wrong
from engram.language.statements.third_person import sentence
from engram.language.text import split_sentences

# Who takes back says so at once; what an assistant takes for true, it says in few words.
_LONGEST = 2_000
# A sentence that claims one thing of the user and no other: in "You live in Lisbon, so it is 8 pm"
# the hour may be what is wrong.
_ONE_CLAIM = re.compile(
    r"\W{0,9}(?:(?:so|ok(?:ay)?|ah|right|well|got it|noted|i see)\W{1,9})?"
    r"(?:(?:you (?:said|mentioned|told me)|i (?:see|think|believe|understand|gather|remember))"
    r"\s(?:that\s)?)?you(?:r|[’']re)?\b(?:(?!\b(?:so|and|but|which|who|where|because|since)\b)"
    r"[^,;:()])*"
    r"(?:,\s*(?:i (?:take it|think|believe|see|gather|assume|guess)|right|correct|so let[’']?s\b"
    r"[^,;:]*))?\W*",
    re.I,
)
# "I live in a small town near it" names nothing that could take a place.
_SHORT_NAME = re.compile(r"(?!(?:an?|the|my|our|some|this|that)\b)\S+(?:\s\S+)?", re.I)
_USER = re.compile(r"^The user\b")


def find(text: str, before: str) -> Iterator[FoundNegation]:
    """What the turn says is not so of what was said right before it.

    Args:
        text: The turn of the user.
        before: The turn of the assistant that it answers.
    """
    if len(text) > _LONGEST or len(before) > _LONGEST or not is_wrong(text):
        return
    taken_back = list(denied(text, claims(before)))
    # Several are denied together, or one of them: nobody can tell.
    if len(taken_back) != 1 or not (_put_right(text, taken_back[0]) or _all_there_is(text, before)):
        return
    (one,) = taken_back
    said = _USER.sub("I", sentence("The user", one))
    found = find_negations(said)
    if len(found) == 1 and not holds_token(said):
        evidence = verbatim(text, one.sentence)
        yield replace(found[0], evidence=evidence, of_turn_before=True)


def _put_right(text: str, one: RuleStatement) -> bool:
    """Whether the turn says what holds in its place, by name and nothing else of it."""
    return any(
        other.holds
        and other.predicate == one.predicate
        and other.sentence.text.rstrip(" .!").endswith(other.thing.name)
        and (other.thing.name[:1].isupper() or _SHORT_NAME.fullmatch(other.thing.name))
        for other in everything(text)
    )


def _all_there_is(text: str, before: str) -> bool:
    """Whether one thing was said, and nothing else is answered than that it is wrong."""
    if len(list(split_sentences(before))) != 1 or _ONE_CLAIM.fullmatch(before) is None:
        return False
    return all(is_wrong(each.text) for each in sentences(text))
