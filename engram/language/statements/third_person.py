"""Statements as sentences in the third person: "I live in Lisbon" is "The user lives in Lisbon"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from engram.domain.memories import Category
from engram.language.statements.predicates import RuleStatement
from engram.language.text import set_apart
from engram.language.vocabulary import alternatives, expression, predicates, vocabulary

# --- statements as sentences: from "I live in Lisbon" to "The user lives in Lisbon."

_THIRD_PERSON: Mapping[str, str] = MappingProxyType(
    {
        "my": "their",
        "our": "their",
        "mine": "theirs",
        "ours": "theirs",
        "me": "them",
        "us": "them",
        "i": "they",
        "we": "they",
        "i'm": "they are",
        "myself": "themselves",
        "ourselves": "themselves",
    }
)
_FIRST_PERSON = re.compile(
    rf"\b(?:{'|'.join(sorted(_THIRD_PERSON, key=len, reverse=True))})\b(?!-)", re.I
)
_ARTICLE = re.compile(r"(?:a|an|the|my|our|his|her|their|one|two|some)\s", re.I)


_CORRECTION, _PREFERENCE = 0.7, 0.6
# Endings that name nothing: "I quit my job".
_WITHOUT_OBJECT: Mapping[str, str] = MappingProxyType(
    {
        "works at": "has left their job",
        "is married to": "is no longer married",
        "plans to": "no longer plans the trip",
        "studies": "has left their course",
    }
)
_GRADUATED = re.compile(r"\bgraduated\Z", re.I)
_RETIRED = re.compile(r"\bretired?\Z", re.I)
_NOT_SO: Mapping[str, str] = MappingProxyType(
    {"is": "is not", "has": "does not have", "was": "was not"}
)
_FAVOURITE = "favourite "
_PARTED = re.compile(
    r"\b(?:broke up|broken up|no longer together|a couple|an item|split|parted|separated|"
    r"called (?:it quits|off))\b",
    re.I,
)


def weight(stated: RuleStatement) -> tuple[Category, float]:
    """Category and importance of a statement."""
    if stated.corrects or expression("notes", "mends").search(stated.sentence.text):
        return Category.CORRECTION, _CORRECTION
    if stated.predicate.startswith(_FAVOURITE):
        return Category.PREFERENCE, _PREFERENCE
    predicate = predicates()[stated.predicate]
    return _kind(stated) or predicate.category, predicate.importance


def _kind(stated: RuleStatement) -> Category | None:
    """A skill, by what somebody is or has to show for it; None if the predicate tells the kind."""
    if stated.predicate not in {"works as", "has"} or not stated.holds:
        return None
    named = "qualified" if stated.predicate == "works as" else "certificate"
    shown = expression("weights", named).match(stated.thing.phrase)
    return Category.SKILL if shown else None


def sentence(who: str, stated: RuleStatement) -> str:
    """The statement in the third person.

    Args:
        who: "The user", or a name.
        stated: What is stated.
    """
    predicate, what = stated.predicate, in_third_person(stated.thing.phrase)
    if not what:
        return f"{who} {_without_object(stated)}."
    if predicate.startswith(_FAVOURITE):
        verb = "is" if stated.holds else "is no longer"
        return f"{who}'s {predicate} {verb} {what}."
    if predicate == "works as" and not _ARTICLE.match(what):
        what = f"{'an' if what[:1].lower() in 'aeiou' else 'a'} {what}"
    if predicate == "promised to":
        return f"{who} promised{_promised_to(stated.said)} to {what}."
    if predicate == "is married to" and not stated.holds and _PARTED.search(stated.said):
        # Who broke up need not have been married.
        return f"{who} is no longer together with {what}."
    if predicate == "was born":
        return f"{who} was born {what}."
    return f"{who} {_worded_predicate(stated)} {what}."


def _without_object(stated: RuleStatement) -> str:
    """What ended that was not named."""
    if stated.predicate == "works at" and _RETIRED.search(stated.said.strip()):
        return "has retired"
    if stated.predicate == "studies" and _GRADUATED.search(stated.said.strip()):
        return "has graduated"
    if stated.predicate == "is married to" and _PARTED.search(stated.said):
        return "and their partner have broken up"
    return _WITHOUT_OBJECT[stated.predicate]


def _worded_predicate(stated: RuleStatement) -> str:
    """The predicate, or its negation."""
    if stated.predicate == "diet is":
        return "is" if stated.holds else "is not" if stated.denied else "is no longer"
    if stated.holds:
        return stated.predicate
    verb, _, rest = stated.predicate.partition(" ")
    if stated.denied:
        return f"{_NOT_SO.get(verb) or f'does not {_base(verb)}'} {rest}".strip()
    return f"is no longer {rest}" if verb == "is" else f"no longer {stated.predicate}"


def _base(verb: str) -> str:
    """The verb without its third person: "lives" is "live"."""
    if verb.endswith("ies"):
        return f"{verb[:-3]}y"
    return verb[:-1] if verb.endswith("s") else verb


def in_third_person(text: str) -> str:
    """The words with "their car" for "my car"; code and links stay as they are."""
    apart = set_apart(text)
    return apart.put_back(
        _FIRST_PERSON.sub(
            lambda found: _THIRD_PERSON.get(found.group().lower(), found.group()), apart.text
        )
    )


def _promised_to(said: str) -> str:
    found = re.search(
        r"(?:promised?|gave|told|assured)\s+((?:[\w']+\s+){1,4}?)(?:my\s+word\s+)?(?:that\s+)?(?:to|i)\b",
        said,
        re.I,
    )
    whom = found.group(1).strip() if found else ""
    return "" if not whom or whom.lower() == "that" else f" {in_third_person(whom)}"


# --- a whole clause in the third person: "I never lend money" is "The user never lends money"

_LEADING = re.compile(r"(?:i|we)(?P<with>'m|'re|'ve|'ll|'d|\s+am|\s+are|m|ve)?(?![\w'])", re.I)
_WITH = {
    "'m": "is", "'re": "is", "'ve": "has", "'ll": "will", "'d": "would", "m": "is", "ve": "has",
    "am": "is", "are": "is",
}  # fmt: skip
_THIRD_PERSON_WORDS = {
    "i'm": "they are", "i've": "they have", "i'll": "they will", "i'd": "they would", "i": "they",
    "we're": "they are", "we've": "they have", "we'll": "they will", "we'd": "they would",
    "we": "they", "me": "them", "us": "them", "my": "their", "our": "their", "mine": "theirs",
    "ours": "theirs", "myself": "themselves", "ourselves": "themselves", "am": "are",
}  # fmt: skip
_SPEAKER = re.compile(
    rf"\b(?:{'|'.join(sorted(_THIRD_PERSON_WORDS, key=len, reverse=True))})\b(?![-'])", re.I
)
_MODALS = frozenset(
    {"can", "can't", "cannot", "could", "couldn't", "will", "won't", "would", "wouldn't", "should",
     "shouldn't", "must", "mustn't", "may", "might", "had", "was", "were", "is", "has", "ought",
     "did", "didn't"}
)  # fmt: skip
_IRREGULAR = {
    "have": "has", "do": "does", "go": "goes", "don't": "doesn't", "am": "is", "are": "is",
    "haven't": "hasn't", "dont": "doesn't", "weren't": "wasn't",
}  # fmt: skip
_LONGEST_RETOLD = 400


def retold(clause: str, who: str) -> str:
    """The clause as a sentence about ``who``; its code and links stay as they are.

    Args:
        clause: As the speaker said it, from its subject on.
        who: "The user", or a name.
    """
    apart = set_apart(clause)
    text = " ".join(apart.text.split()).strip(" ,;:–—-").rstrip(".!?")[:_LONGEST_RETOLD]
    return apart.put_back(_retold(text, who))


def _retold(text: str, who: str) -> str:
    found = _LEADING.match(text)
    if found is None:
        return _finished(_possessed(text, who))
    rest = text[found.end() :]
    together = (found.group("with") or "").strip().lower()
    if together:
        return _finished(f"{who} {_WITH[together]}{_about(rest)}")
    return _finished(f"{who}{_about(_inflected(rest))}")


def third_person(verb: str) -> str:
    """The verb as it follows "he": "lives", "watches", "carries"."""
    lowered = verb.lower()
    if lowered in _IRREGULAR:
        return _IRREGULAR[lowered]
    if lowered in _MODALS or is_past(lowered) or lowered.endswith("n't"):
        return verb
    if re.search(r"(?:s|x|z|ch|sh|o)\Z", lowered):
        return f"{verb}es"
    if re.search(r"[^aeiou]y\Z", lowered):
        return f"{verb[:-1]}ies"
    return f"{verb}s"


def is_past(verb: str) -> bool:
    """Whether it is a past tense; what could be present too ("put") counts as past."""
    return verb in vocabulary().irregular_pasts or (verb.endswith("ed") and verb != "need")


def _inflected(rest: str) -> str:
    found = _verb_pattern().match(rest)
    if found is None:
        return rest
    return f"{found.group(1)}{third_person(found.group(2))}{rest[found.end() :]}"


def _possessed(text: str, who: str) -> str:
    """So that "My dentist" is "The user's dentist", "Ana and I" is "Ana and the user"."""
    owned = re.match(r"(?:my|our)\b", text, re.I)
    if owned:
        return f"{who}'s{_about(text[owned.end() :])}"
    somebody = "the user" if who == "The user" else who
    owner = re.sub(r"\b(?:my|our)\b(?!-)", f"{somebody}'s", text, flags=re.I)
    spoken = re.sub(
        r"\b(?:i|we) ([a-z]+(?:'t)?)\b",
        lambda m: f"{somebody} {third_person(m[1])}",
        owner,
        flags=re.I,
    )
    joined = re.sub(
        r"\b(?:i|we)('(?:m|re|ve|ll|d))\b",
        lambda m: f"{somebody} {_WITH[m[1].lower()]}",
        spoken,
        flags=re.I,
    )
    return re.sub(r"\b(?:I|me|i)\b(?!')", somebody, joined)


def _about(text: str) -> str:
    return _SPEAKER.sub(
        lambda found: _THIRD_PERSON_WORDS.get(found.group().lower(), found.group()), text
    )


def _finished(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


@cache
def _verb_pattern() -> re.Pattern[str]:
    often = ("never", "always", "usually", "often", "no longer")
    adverbs = alternatives((*vocabulary().adverbs, *often))
    return re.compile(rf"(\s+(?:(?:{adverbs})\s+)*)([a-z][\w'-]*)", re.I)


# --- and back: what a sentence in the third person states


class SentenceParts(NamedTuple):
    """A sentence in the third person, as subject, predicate and object."""

    subject: str | None
    predicate: str
    object: str
    holds: bool = True


def as_statement(text: str) -> SentenceParts | None:
    """What a sentence like "The user lives in Porto." states; the inverse of :func:`sentence`.

    Args:
        text: One sentence. Without a subject ("Lives in Porto") it is about the user.

    Returns:
        None where it is not one sentence with one of the known predicates.
    """
    plain = " ".join(text[: 2 * _LONGEST_RETOLD].split()).rstrip(".!")
    found = _sentence_pattern().fullmatch(plain)
    if found is None or len(plain) > _LONGEST_RETOLD or re.search(r"[.!?;](?:\s|$)", plain):
        return None
    if found["favourite"]:
        predicate = _FAVOURITE + found["favourite"].lower()
    elif found["predicate"]:
        predicate = found["predicate"].lower()
    elif found["being"]:
        predicate = f"is {found['being'].lower()}"
    else:
        predicate = "is called"
    holds = not (found["ended"] or found["being"] or found["over"])
    return SentenceParts(
        found["who"] or found["owner"], predicate, found["it"] or found["of"], holds
    )


@cache
def _sentence_pattern() -> re.Pattern[str]:
    known = tuple(predicates())
    being = tuple(one.removeprefix("is ") for one in known if one.startswith("is "))
    somebody = (
        r"(?:(?:[Tt]he )?[Uu]ser|(?!(?:He|She|It|They|This|That|Who|What|There|The|A|An)\b)"
        r"[A-Z][\w.&-]*(?: [A-Z][\w.&-]*){0,3})"
    )
    return re.compile(
        rf"(?:(?P<who>{somebody}) )?(?i:(?P<ended>no longer )?"
        rf"(?P<predicate>{alternatives(known)})|is no longer (?P<being>{alternatives(being)}))"
        rf" (?P<it>.+)"
        rf"|(?:(?P<owner>{somebody})'s )?"
        rf"(?i:favou?rite (?P<favourite>[\w ]{{1,40}}?)|(?:full )?name)"
        rf" (?i:is (?P<over>no longer )?)(?P<of>.+)"
    )
