"""Pattern facts: what can be recognised by its form, without a language model."""

from __future__ import annotations

from datetime import datetime

from engram.domain.memories import FactCategory
from engram.extraction.models import PatternFact
from engram.extraction.patterns.dates import find as find_dates
from engram.extraction.patterns.email import find as find_emails
from engram.extraction.patterns.found import Found, Masked
from engram.extraction.patterns.money import find as find_money
from engram.extraction.patterns.name import find as find_names
from engram.extraction.patterns.phone import find as find_phones
from engram.extraction.patterns.url import find as find_urls

_LABELS = {
    FactCategory.EMAIL: "email address",
    FactCategory.PHONE: "phone number",
    FactCategory.URL: "web address",
    FactCategory.DATE: "date",
    FactCategory.NAME: "name",
    FactCategory.MONEY: "amount of money",
}


def extract_facts(
    text: str, timestamp: datetime, *, phone_region: str = "US"
) -> tuple[PatternFact, ...]:
    """The facts in ``text``, in order of appearance, each (category, value) once.

    A stretch that one category explains is hidden from the later ones: digits
    within an address are no phone number, and a date is none either.

    Args:
        text: The turn, verbatim; any Unicode.
        timestamp: When it was said, aware; dates are resolved against it, in its zone.
        phone_region: ISO 3166 code of the country that numbers without "+" belong to.
    """
    turn = Masked(text)
    found: list[tuple[Found, FactCategory]] = []

    def take(category: FactCategory, finds: list[Found]) -> None:
        found.extend((find, category) for find in finds)
        turn.hide(finds)

    take(FactCategory.URL, list(find_urls(turn)))
    take(FactCategory.EMAIL, list(find_emails(turn)))
    take(FactCategory.MONEY, list(find_money(turn)))
    take(FactCategory.DATE, list(find_dates(turn, timestamp)))
    take(FactCategory.PHONE, list(find_phones(turn, phone_region)))
    take(FactCategory.NAME, list(find_names(turn)))
    if not found:
        return ()
    found.sort(key=lambda item: (item[0].start, item[0].end))
    facts: dict[tuple[FactCategory, str], PatternFact] = {}
    for find, category in found:
        if (category, find.value) not in facts:
            facts[category, find.value] = _fact(category, find, text[find.start : find.end])
    return tuple(facts.values())


def _fact(category: FactCategory, find: Found, evidence: str) -> PatternFact:
    content = f"{_LABELS[category]}: {find.value}"
    if category is FactCategory.DATE and evidence.strip() != find.value:
        content = f"{content} ({evidence.strip()})"
    return PatternFact(category, find.value, evidence, content, find.event_at)
