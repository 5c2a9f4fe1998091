"""E-mail addresses, web addresses and telephone numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from phonenumbers import Leniency, PhoneNumberFormat, PhoneNumberMatcher, format_number

from engram.language.found import FoundSpan, Masked

# --- E-mail addresses

_LOCAL_PART = re.compile(r"[A-Za-z0-9._%+'\-]{1,64}\Z")
_DOMAIN = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}(?![\w@])"
)
# What looks like one: "git@github.com:foo/bar.git", "root@host.org:/etc", "logo@2x.png".
_REMOTE_PATH = re.compile(r":(?:[~/]|[\w.~-]{1,100}/)")
_SCALED_IMAGE = re.compile(r"\d(?:\.\d)?x\.(?:png|jpe?g|gif|webp|svg|avif|heic|bmp|tiff?|pdf)\Z")
_LOCAL_LENGTH = 64
_FIRST_CJK = 0x2E80
# A turn with more signs than this is a table or an attack, not somebody's address.
_MOST_SIGNS = 400


def find_emails(turn: Masked) -> Iterator[FoundSpan]:
    """Addresses; value in lower case, as two spellings reach the same mailbox in practice."""
    at = turn.text.find("@")
    earliest = 0
    for _ in range(_MOST_SIGNS):
        if at < 0:
            return
        found = _around(turn.text, at, earliest)
        if found is not None:
            yield found
            earliest = found.end
        at = turn.text.find("@", at + 1)


def _around(text: str, at: int, earliest: int) -> FoundSpan | None:
    domain = _DOMAIN.match(text, at + 1)
    if domain is None or _is_a_file(text, domain):
        return None
    window = max(earliest, at - _LOCAL_LENGTH)
    local = _LOCAL_PART.search(text, window, at)
    if local is None:
        return None
    start = local.start()
    while start < at and not text[start].isalnum():
        start += 1
    before = text[start - 1] if start else ""
    # A letter that could not be taken along belongs to an address we cannot spell.
    cut = before.isalnum() and ord(before) < _FIRST_CJK
    name = text[start:at]
    if not name or cut or before == "@" or ".." in name or name.endswith("."):
        return None
    return FoundSpan(start, domain.end(), text[start : domain.end()].lower())


def _is_a_file(text: str, domain: re.Match[str]) -> bool:
    """Whether it names a file, of another machine or for a sharper screen."""
    scaled = _SCALED_IMAGE.fullmatch(domain.group().lower())
    return scaled is not None or _REMOTE_PATH.match(text, domain.end()) is not None


# --- web addresses

_WEB_ADDRESS = re.compile(r"(?<![\w@.])(?:https?://|www\.)[^\s<>\"`\ufffc]{1,2048}")
_HOST = re.compile(r"(?:[^/?#@]*@)?(?P<host>[^/?#:@]+)(?::\d{1,5})?(?=[/?#]|\Z)")
_HOST_NAME = re.compile(r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.)+[^\W\d_][\w-]{1,23}\Z|localhost\Z")
_IP = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}\Z")
_OPENED_BY = {")": "(", "]": "[", "}": "{"}


def find_urls(turn: Masked) -> Iterator[FoundSpan]:
    """Addresses with a scheme, or beginning with www; a bare domain could be a file name."""
    if "www." not in turn.low and "://" not in turn.low:
        return
    for match in _WEB_ADDRESS.finditer(turn.low):
        start = match.start()
        address = _without_closing(turn.text[start : match.end()])
        value = _canonical(address)
        if value is not None:
            yield FoundSpan(start, start + len(address), value)


def _without_closing(address: str) -> str:
    while address:
        last = address[-1]
        opening = _OPENED_BY.get(last)
        if opening is not None and address.count(opening) >= address.count(last):
            break
        if opening is None and last not in ".,;:!?'*_~>|":
            break
        address = address[:-1]
    return address


def _canonical(address: str) -> str | None:
    if address[:4].lower() == "www.":
        address = f"https://{address}"
    scheme, _, rest = address.partition("://")
    match = _HOST.match(rest)
    if match is None:
        return None
    host = match["host"].lower()
    if not (_HOST_NAME.match(host) or _IP.match(host)):
        return None
    start, end = match.span("host")
    return f"{scheme.lower()}://{rest[:start]}{host}{rest[end:]}"


# --- telephone numbers

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
_EXTENSION = re.compile(r",?\s?(?:ext(?:ension|n)?\.?|x)\s?:?\s?(?P<digits>\d{1,6})(?!\w)")
_LOOK_BACK = 40


def find_phones(turn: Masked, region: str) -> Iterator[FoundSpan]:
    """Valid numbers in E.164; without "+", the form or the words around must say phone.

    An extension follows as in RFC 3966: "+442079460958;ext=5".
    """
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
            begins, ends = lead + match.start, lead + match.end
            extension = _EXTENSION.match(turn.low, ends)
            if extension is not None:
                value, ends = f"{value};ext={extension['digits']}", extension.end()
            yield FoundSpan(begins, ends, value)


def _is_other_number(low: str, start: int, end: int) -> bool:
    digits = sum(letter.isdigit() for letter in low[start:end])
    if digits > _MOST_DIGITS:
        return True
    before = low[max(0, start - _LOOK_BACK) : start]
    return _OTHER_NUMBER.search(before) is not None
