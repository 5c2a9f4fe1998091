"""Telephone numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from phonenumbers import Leniency, PhoneNumberFormat, PhoneNumberMatcher, format_number

from engram.extraction.patterns.found import Found, Masked

# The matcher of phonenumbers is thorough and slow; it only sees stretches of digits
# that are long enough, each at most this long, and only so many of them.
_STRETCH = re.compile(r"(?<![\w.])[+(]?\d(?:[ ().\-/]{0,3}\d){6,17}(?!\d)")
_MOST_STRETCHES = 60
_MOST_DIGITS = 15
_CONTEXT = re.compile(
    r"\b(?:call|calls|called|phone|phones|tel|telephone|text|texting|mobile|cell|reach|ring|fax|"
    r"whatsapp|sms|dial|hotline|landline|line|number|signal|handy|contact|callback)\b"
)
_OTHER_NUMBER = re.compile(
    r"(?:order|invoice|ref|reference|case|ticket|account|acct|isbn|issn|barcode|serial|tracking|"
    r"customer|member|membership|booking|confirmation|policy|passport|license|licence|card|"
    r"model|part|item|sku|id|iban|vat|tax|ssn|pin|code|version|build|lottery|record|student|"
    r"employee|case|flight|parcel|shipment|patient)\b(?:\s+(?:number|no|nr|id|code|is|was|says)\b)*"
    r"[\s:#.=]*\Z|#\s*\Z"
)
_LOOK_BACK = 40


def find(turn: Masked, region: str) -> Iterator[Found]:
    """Valid numbers in E.164; without "+", the form or the words around must say phone."""
    text = turn.text
    phone_talk: bool | None = None
    for count, stretch in enumerate(_STRETCH.finditer(text)):
        if count >= _MOST_STRETCHES:
            return
        start, end = stretch.span()
        if _is_other_number(turn.low, start, end):
            continue
        if phone_talk is None:
            phone_talk = _CONTEXT.search(turn.low) is not None
        international = text[start] == "+"
        leniency = Leniency.VALID if international or phone_talk else Leniency.STRICT_GROUPING
        plain_digits = text[start:end].isdigit()
        if plain_digits and not phone_talk:
            continue
        lead = max(0, start - 1)
        for match in PhoneNumberMatcher(text[lead : end + 1], region, leniency, 10):
            value = format_number(match.number, PhoneNumberFormat.E164)
            yield Found(lead + match.start, lead + match.end, value)


def _is_other_number(low: str, start: int, end: int) -> bool:
    digits = sum(letter.isdigit() for letter in low[start:end])
    if digits > _MOST_DIGITS:
        return True
    before = low[max(0, start - _LOOK_BACK) : start]
    return _OTHER_NUMBER.search(before) is not None
