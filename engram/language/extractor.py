"""Everything that a turn yields without a language model, in one call."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from itertools import zip_longest

from engram.domain.buffer import Signal
from engram.domain.memories import FactCategory
from engram.domain.personal_data import holds_token
from engram.domain.slots import USER
from engram.language.claims import CLAIMED, claim_of
from engram.language.contacts import find_emails, find_phones, find_urls
from engram.language.dates import find as find_dates
from engram.language.found import Extraction, FoundNegation, FoundSpan, Masked, PatternFact
from engram.language.money import find as find_money
from engram.language.names import find as find_names
from engram.language.negation import find_negations
from engram.language.own_words import own_words
from engram.language.personal_data import secrets_in
from engram.language.secrets import tells_a_secret
from engram.language.signals import scan
from engram.language.text import QUOTED, fold, plain, without_quotations
from engram.language.vocabulary import expression
from engram.settings import Settings

# --- pattern facts: what can be recognised by its form, without a language model

_LABELS = {
    FactCategory.EMAIL: "email address",
    FactCategory.PHONE: "phone number",
    FactCategory.URL: "web address",
    FactCategory.DATE: "date",
    FactCategory.NAME: "name",
    FactCategory.MONEY: "amount of money",
}


# What follows is another sentence, or nothing; and it is not asked.
_SAID = re.compile(r"\s*(?:\Z|[,.;!)])")


def extract_facts(
    text: str, timestamp: datetime, *, phone_region: str = "US", speaker: str | None = None
) -> tuple[PatternFact, ...]:
    """The facts in ``text``, in order of appearance, each (category, value) once.

    A stretch that one category explains is hidden from the later ones: digits
    within an address are no phone number, and a date is none either. An address that is
    quoted, or passed on from somebody else, is only mentioned; a name there is left out, or
    mentioned where it is quoted.

    Args:
        text: The turn, verbatim; any Unicode.
        timestamp: When it was said, aware; dates are resolved against it, in its zone.
        phone_region: ISO 3166 code of the country that numbers without "+" belong to.
        speaker: Who speaks, where known: what is said to be "mine" is theirs.
    """
    turn = Masked(text)
    low = turn.low
    found: list[tuple[FoundSpan, FactCategory]] = []

    def take(category: FactCategory, finds: list[FoundSpan]) -> None:
        found.extend((find, category) for find in finds)
        turn.hide(finds)

    take(FactCategory.URL, list(find_urls(turn)))
    take(FactCategory.EMAIL, list(find_emails(turn)))
    take(FactCategory.MONEY, list(find_money(turn)))
    take(FactCategory.DATE, list(find_dates(turn, timestamp)))
    take(FactCategory.PHONE, list(find_phones(turn, phone_region)))
    names = list(find_names(turn))
    of_somebody = names or any(category in CLAIMED for _, category in found)
    own = own_words(text) if of_somebody else ""
    # Who says elsewhere what they are called is not the speaker.
    take(FactCategory.NAME, [one for one in names if own[one.start : one.end].strip()])
    if not found:
        return ()
    said = without_quotations(fold(plain(own)), only_speech=True)
    found.sort(key=lambda item: (item[0].start, item[0].end))
    facts: dict[tuple[FactCategory, str], PatternFact] = {}
    for at, find, category in _without_slips(low, found):
        claim = None
        if _stands(at, said):
            claim = claim_of(said, at.start, at.end, category, find.value, speaker=speaker)
        known = facts.get((category, find.value))
        if known is None:
            known = _fact(category, find, text[find.start : find.end])
        if claim is not None and known.slot is None:
            known = replace(known, slot=claim.slot, over=claim.over)
        facts[category, find.value] = known
    return tuple(facts.values())


def _stands(find: FoundSpan, said: str) -> bool:
    """Whether the find is among what is said there."""
    return bool(said[find.start : find.end].strip(f" {QUOTED}"))


def _without_slips(
    low: str, found: list[tuple[FoundSpan, FactCategory]]
) -> Iterator[tuple[FoundSpan, FoundSpan, FactCategory]]:
    """The finds without those that are taken back at once: "415 555 0123, no sorry, 415 555 0199".

    Each with the one whose place it takes, or itself: what is said around that is said of it.
    """
    instead: FoundSpan | None = None
    for (find, category), after in zip_longest(found, found[1:]):
        if after is not None and after[1] is category and _takes_back(low, find, after[0]):
            instead = instead or find
            continue
        yield instead or find, find, category
        instead = None


def _takes_back(low: str, old: FoundSpan, new: FoundSpan) -> bool:
    slip = expression("corrections", "value_again").fullmatch(low, old.end, new.start)
    return slip is not None and _SAID.match(low, new.end) is not None


def _fact(category: FactCategory, find: FoundSpan, evidence: str) -> PatternFact:
    content = f"{_LABELS[category]}: {find.value}"
    if category is FactCategory.DATE and evidence.strip() != find.value:
        content = f"{content} ({evidence.strip()})"
    return PatternFact(category, find.value, evidence, content, find.event_at)


# --- one call for all that a turn yields without a language model


class Extractor:
    """Applies the deterministic rules to turns. Stateless, safe to share between threads.

    Args:
        settings: ``phone_region`` is read.
    """

    def __init__(self, settings: Settings) -> None:
        self._phone_region = settings.phone_region

    def extract(
        self,
        text: str,
        role: str,
        speaker: str | None,
        timestamp: datetime,
        before: str | None = None,
    ) -> Extraction:
        """Facts, negations and signal of one turn.

        Only what the user says yields facts and negations: an assistant's,
        system's or tool's words are context, not knowledge about the user.

        Args:
            text: The turn, verbatim.
            role: user, assistant, system or tool.
            speaker: The speaker's name where known: a sentence about them by
                name is then one about the user.
            timestamp: When it was said, aware; dates are resolved against it.
            before: What the assistant said right before it, where that is known: of that,
                only what the user says is wrong counts.
        """
        signal = scan(text, role)
        if role != "user":
            return Extraction(signal=signal)
        facts = extract_facts(text, timestamp, phone_region=self._phone_region, speaker=speaker)
        negations = tuple(_of_whom(find_negations(text, user_name=speaker), text))
        if before is not None and may_take_back(text):
            negations = (*negations, *_taken_back(text, before, negations))
        negations = (*negations, *_ended(facts, {one.negates_pattern for one in negations}))
        if holds_token(text):
            # What was masked is no news, neither that it is so nor that it is not.
            facts = tuple(fact for fact in facts if not holds_token(fact.evidence))
            negations = tuple(one for one in negations if not holds_token(one.content))
        if negations:
            secrets = secrets_in(text)
            negations = tuple(o for o in negations if not tells_a_secret(o.content, None, secrets))
        if speaker is not None:
            negations = tuple(_said_by(negation, speaker) for negation in negations)
        return Extraction(facts, negations, _at_least(signal, facts, negations))


_OF_SOMEBODY = frozenset({"he", "she", "they"})


def _of_whom(found: tuple[FoundNegation, ...], text: str) -> Iterator[FoundNegation]:
    """The negations, each with whom it is about: of "he" nobody knows later what it denies."""
    known = {(one.negates_pattern, one.subject) for one in found}
    for negation in found:
        if negation.subject not in _OF_SOMEBODY:
            yield negation
            continue
        from engram.language.statements.notes import person_meant  # noqa: PLC0415 - large, and few turns need it

        who = person_meant(negation.subject, text[: text.find(negation.evidence)])
        if who is not None and (negation.negates_pattern, who.casefold()) not in known:
            known.add((negation.negates_pattern, who.casefold()))
            content = f"{who}{negation.content[len(negation.subject) :]}"
            yield replace(negation, subject=who.casefold(), content=content)


# Some of this is in whatever says that something else was wrong.
_TAKES_BACK = re.compile(
    r"wrong|not (?:right|true|correct|so|what i said)|incorrect|untrue|false|mistaken|"
    r"never|did(?:n[’']?t| not)|have(?:n[’']?t| not)",
    re.I,
)


def may_take_back(text: str) -> bool:
    """Whether a turn can say that what was said right before it is wrong."""
    return _TAKES_BACK.search(text) is not None


def _taken_back(
    text: str, before: str, known: tuple[FoundNegation, ...]
) -> Iterator[FoundNegation]:
    from engram.language import misunderstood  # noqa: PLC0415 - large, and most turns need none of it

    patterns = {one.negates_pattern for one in known}
    found = misunderstood.find(text, before)
    return (one for one in found if one.negates_pattern not in patterns)


def _ended(facts: tuple[PatternFact, ...], denied: set[str]) -> Iterator[FoundNegation]:
    """What a turn says is over, and does not replace, as the denial that it is in use."""
    replaced = {fact.category for fact in facts if fact.slot is not None and not fact.over}
    for fact in facts:
        pattern = f"use {fact.value.casefold()}"
        if fact.over and fact.category not in replaced and pattern not in denied:
            content = f"{fact.value} is no longer in use."
            yield FoundNegation(pattern, USER, content, fact.evidence)


def _said_by(negation: FoundNegation, speaker: str) -> FoundNegation:
    """The negation with the speaker's name for "the user".

    Where speakers have names there may be several of them under one user, and
    what one of them denies says nothing about the others.
    """
    if negation.subject != "user":
        return negation
    return replace(
        negation,
        subject=speaker.casefold(),
        content=re.sub(r"\bthe user\b", lambda _: speaker, negation.content, flags=re.IGNORECASE),
    )


def _at_least(
    signal: Signal, facts: tuple[PatternFact, ...], negations: tuple[FoundNegation, ...]
) -> Signal:
    """The signal, raised by what was found: a denial or a name weighs more than wording tells."""
    if negations or any(fact.category is FactCategory.NAME for fact in facts):
        return Signal.HIGH
    if facts and signal in {Signal.NONE, Signal.LOW}:
        return Signal.MEDIUM
    return signal
