"""Personal data, recognised by its form: no model, no list of names, the same answer every time.

Everything here is linear in the length of the text: patterns begin at a literal or at a digit
that follows none, and look no further than a bounded window.
"""

from __future__ import annotations

import ipaddress
import math
import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

from engram.domain.personal_data import PersonalKind, PersonalSpan
from engram.language.calendar import MONTH_NAME
from engram.language.text import STREET_WORD, fold, plain

_Spans: TypeAlias = Iterator[tuple[int, int]]

# --- passwords, keys and tokens

_KNOWN_TOKENS: Final = re.compile(
    r"(?<![A-Za-z0-9_-])(?:"
    # OpenAI, Anthropic and those like them; Stripe
    r"sk-[A-Za-z0-9_-]{16,}|(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9]{16,}"
    # GitHub, GitLab, npm, PyPI, Hugging Face
    r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}"
    r"|npm_[A-Za-z0-9]{20,}|pypi-[A-Za-z0-9_-]{20,}|hf_[A-Za-z0-9]{20,}"
    # Slack, AWS, Google, SendGrid, DigitalOcean, Shopify
    r"|xox[abeoprs]-[A-Za-z0-9-]{10,}|(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Za-z])"
    r"|AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}"
    r"|SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,}"
    r"|do[oprt]_v1_[0-9a-f]{32,}|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{20,}"
    # JSON web tokens, age
    r"|eyJ[A-Za-z0-9_-]{8,4096}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]+)?|AGE-SECRET-KEY-1[0-9A-Z]{20,}"
    r")"
)
# One of these is in each: where none is, nothing has to be searched.
_IN_TOKENS: Final = (
    "sk-", "_live_", "_test_", "whsec_", "gh", "glpat-", "npm_", "pypi-", "hf_", "xox", "AKIA",
    "ASIA", "AIza", "ya29", "SG.", "_v1_", "shp", "eyJ", "AGE-",
)  # fmt: skip
_IN_NAMED: Final = ("pass", "pwd", "key", "secret", "token", "bearer", "credential")
_IN_CODES: Final = ("pin", "puk", "cvv", "cvc", "code", "combination", "wifi", "wi-fi", "wlan")
_KEY_BEGINS: Final = re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_ENDS: Final = re.compile(r"-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_IN_ADDRESS: Final = re.compile(r"://[^\s/@:\[]{0,64}:(?P<value>[^\s/@\[]{1,128})@")
# What is said to be secret, by its name; between name and value a few small words.
_NAMED: Final = re.compile(
    r"(?<![a-z0-9])(?P<name>pass(?:word|wort|wd|phrase|code)|pwd|(?:api|access|private|secret|auth|"
    r"account|license|licence|signing|encryption|webhook)[ _-]?key|secret|client[ _-]?secret|"
    r"(?:api|access|auth|bearer|refresh|session|personal|bot|login|deploy)?[ _-]?token|bearer|"
    r"credentials?)"
    r"(?:[\"'`]? ?(?P<sign>:=|=>|[:=]) ?|"
    # "password tulip44"
    r"(?<=password|passcode) (?=[^\s]{0,64}\d)|(?<=pwd) (?=[^\s]{0,64}\d)|"
    r",?(?: [a-z]{1,12}){0,5}? (?:is|isn't|was|wasn't|to|as|with|be|it's)"
    r"(?: now| still| just| not)?:? )"
    r"[\"'`]?(?P<value>(?!1password\b)[^\s\"'`\[\],;()<>]{6,256})"
)
# "Use Pepper2024! as the wifi password"
_NAMED_AFTER: Final = re.compile(
    r"(?<=\S) (?:is|as|was) (?:(?:the|my|our|his|her|their|your|a|new) ){0,2}"
    r"(?:[a-z-]{1,12} ){0,2}?"
    r"(?:pass(?:word|code|phrase)|pwd)(?![\w-]| ?(?:manager|generator|policy|hash)|"
    # In "Pepper2024! is the password store it well" nothing is a store.
    r" (?:app|tool|vault|store|replacement|keeper|safe)\b(?! (?:it|this|that|to)\b))"
)
# What opens a door, a phone or an account: "PIN for the hotline was 7741", "gate code 4471*".
_LOCKED: Final = (
    r"(?:door|gate|alarm|entry|entrance|garage|safe|lock|locker|lockbox|key ?box|key ?pad|building|"
    r"house|shed|intercom)"
)
_CODE: Final = re.compile(
    r"(?<![a-z0-9-])(?:(?:sim |card |phone )?(?:pin|puk)(?: ?(?:code|number))?|cv[vc]2?|"
    rf"(?:{_LOCKED}|access|security|unlock)[ -]?(?:pin|code|combination)|"
    rf"(?:pin|code|combination) (?:for|of|to) (?:[a-z']{{1,12}} ){{0,3}}?{_LOCKED})"
    r"(?: ?[:=] ?| (?=[#*]?\d)|"
    r",?(?: [a-z']{1,12}){0,5}? (?:is|was|to|it's)(?: now| still| just)?:? )"
    r"[\"'`]?(?P<value>[#*]?(?:\d{1,3}(?:-\d{1,3}){1,3}|[a-z]?\d{3,8}[a-z]?)[#*]?)"
    r"(?![\w%-]|[.,:]\d| ?(?:mm|cm|m|km|ft|feet|inch(?:es)?|volts?|eur|euros?|usd|dollars?|times|"
    r"people|years?|digits?)\b)"
)
_WIFI: Final = re.compile(
    r"(?<![a-z0-9])(?:wi-?fi|wlan)(?: (?:for|at|in|of|to|on)(?: [a-z']{1,12}){1,4}?)?"
    r"(?: ?[:=] ?| (?:is|was)(?: now| still)?:? )[\"'`]?"
    r"(?P<value>(?!wpa|wep|wi-?fi|fritz|ipv)[a-z][^\s\"'`\[\],;()<>]{7,63})"
)
_BEARER: Final = re.compile(r"(?<![a-z0-9])bearer (?P<value>[a-z0-9._~+/=-]{16,4096})")
# Letters and digits in disorder, close behind a word that makes them a key.
_DISORDER: Final = re.compile(r"(?<![A-Za-z0-9+/_=.@-])[A-Za-z0-9+/_-]{20,512}={0,2}(?![\w@]|\.\w)")
_KEY_WORDS: Final = re.compile(
    r"\b(?:pass(?:word|phrase|code)|secrets?|api[ _-]?keys?|keys?|tokens?|credentials?|bearer)\b"
)
_NO_SECRET_KEY: Final = re.compile(
    r"\b(?:public|primary|foreign|cache|sort|partition|idempotency|commit|sha|hash|digest|"
    r"checksum|fingerprint|uuid|guid|id|etag|file|path|branch)\b"
)
_KEY_WINDOW: Final = 48
_HEX: Final = re.compile(r"[0-9a-f-]+|[0-9A-F-]+")
# Bits for each character, of sixteen letters and of sixty and more.
_LEAST_ENTROPY_OF_HEX: Final = 2.8
_LEAST_ENTROPY: Final = 3.6
_SHORTEST_PASSWORD: Final = 6
_LONGEST_AFTER: Final = 64
_LAST_WORD: Final = re.compile(r"(?<![^\s\"'`(])(?P<value>[^\s\"'`(]{6,})[\"'`]?\Z")
_SHORTEST_PHRASE: Final = 16
# "correct-horse-battery": words by which no sentence would be joined.
_JOINED: Final = re.compile(r"[-_][^-_]+[-_][^-_]")
_LIKE_EMAIL: Final = re.compile(r"\w@[\w-]+\.\w")
_MARKS: Final = re.compile(r"[!@#$%^&*?+~]")
_LETTER: Final = re.compile(r"[^\W\d_]")
_DIGIT: Final = re.compile(r"\d")
_DATE_OR_VERSION: Final = re.compile(r"v?\d[\d.:/-]*(?:[a-z]{1,3}\d{0,3})?\Z")


def _secrets(text: str, low: str) -> _Spans:
    if "-----BEGIN" in text:
        yield from _private_keys(text)
    if any(one in text for one in _IN_TOKENS):
        for found in _KNOWN_TOKENS.finditer(text):
            # "sk-learn-and-friends" is no key.
            if found[0][:3] in ("SG.", "eyJ") or _mixed(found[0][3:]):
                yield found.span()
    if "://" in text:
        for found in _IN_ADDRESS.finditer(text):
            yield found.span("value")
    if any(one in low for one in _IN_NAMED):
        yield from _named_secrets(text, low)
    if any(one in low for one in _IN_CODES):
        yield from _codes(text, low)


def _named_secrets(text: str, low: str) -> _Spans:
    for found in _BEARER.finditer(low):
        if _DIGIT.search(found["value"]):
            yield found.span("value")
    for found in _NAMED.finditer(low):
        start, end = found.span("value")
        end = start + len(text[start:end].rstrip(".?:*"))
        # What a sign stands before is a value; behind "is" it may be any word.
        if _is_password(text[start:end], signed=found["sign"] is not None):
            yield start, end
    for found in _NAMED_AFTER.finditer(low):
        before = _LAST_WORD.search(low, max(0, found.start() - _LONGEST_AFTER), found.start())
        if before is not None and _is_password(before["value"], signed=False):
            yield before.span("value")
    for found in _DISORDER.finditer(text):
        if _is_key(text, low, found):
            yield found.span()


def _codes(text: str, low: str) -> _Spans:
    for found in _CODE.finditer(low):
        yield found.span("value")
    for found in _WIFI.finditer(low):
        start, end = found.span("value")
        end = start + len(text[start:end].rstrip(".?:*"))
        if _is_password(text[start:end], signed=False):
            yield start, end


def _private_keys(text: str) -> _Spans:
    at = 0
    while begin := _KEY_BEGINS.search(text, at):
        ends = _KEY_ENDS.search(text, begin.end())
        # Cut off, it is one to the end of the text.
        at = ends.end() if ends else len(text)
        yield begin.start(), at


def _mixed(value: str) -> bool:
    return bool(_LETTER.search(value) and _DIGIT.search(value))


def _is_password(value: str, *, signed: bool) -> bool:
    if (
        len(value) < _SHORTEST_PASSWORD
        or "://" in value
        or _LIKE_EMAIL.search(value)
        or _DATE_OR_VERSION.match(value.lower())
    ):
        return False
    if _mixed(value):
        return True
    inner = value[:-1]
    if _MARKS.search(inner) and _LETTER.search(value):
        return True
    return signed and len(value) >= _SHORTEST_PHRASE and _JOINED.search(value) is not None


def _is_key(text: str, low: str, found: re.Match[str]) -> bool:
    value = found[0]
    least = _LEAST_ENTROPY_OF_HEX if _HEX.fullmatch(value) else _LEAST_ENTROPY
    if not _mixed(value) or _entropy(value) < least:
        return False
    around = low[max(0, found.start() - _KEY_WINDOW) : found.start()]
    # A sentence that ended says nothing of what the next one names.
    around = re.split(r"[.!?] ", around)[-1]
    return bool(_KEY_WORDS.search(around)) and not _NO_SECRET_KEY.search(around)


def _entropy(value: str) -> float:
    """Bits for each character, by how often each occurs."""
    size = len(value)
    return -sum(n / size * math.log2(n / size) for n in Counter(value).values())


# --- e-mail addresses, in any script

_DOMAIN: Final = re.compile(
    r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}(?P<top>[^\W\d_]{2,24}|xn--[a-z0-9-]{2,40})(?![\w@])"
)
_LONGEST_LOCAL: Final = 64
_OF_LOCAL: Final = frozenset(".%+'_-!~")
# "logo@2x.png"
_FILES: Final = frozenset("png jpg jpeg gif svg webp ico css js ts py md json txt pdf zip".split())


def _emails(text: str, low: str) -> _Spans:
    at, earliest = text.find("@"), 0
    while at >= 0:
        domain = _DOMAIN.match(low, at + 1)
        if domain is not None and domain["top"] not in _FILES:
            start = _local_start(text, at, earliest)
            local = text[start:at]
            handle = start > 0 and text[start - 1] == "@"
            # git@host:path names a program, not a person.
            if local and not handle and not (local == "git" and text[domain.end() :][:1] in ":/"):
                yield start, domain.end()
                earliest = domain.end()
        at = text.find("@", at + 1)


def _local_start(text: str, at: int, earliest: int) -> int:
    start = at
    least = max(earliest, at - _LONGEST_LOCAL)
    while start > least and (text[start - 1].isalnum() or text[start - 1] in _OF_LOCAL):
        start -= 1
    while start < at and not text[start].isalnum():
        start += 1
    return start


# --- addresses of machines

_IP4: Final = re.compile(r"(?<![\w.-])\d{1,3}(?:\.\d{1,3}){3}(?![\w-]|\.\d)")
_IP6: Final = re.compile(r"(?<![\w:.])[0-9a-f:]{4,39}(?![\w:])")
# Fewer are times, and names in programs.
_COLONS: Final = 3
_VERSION_BEFORE: Final = re.compile(
    r"(?:(?:\bversions?|\bver\.?|\brelease[ds]?|\bbuild|\bfirmware|\bdriver|\bv|\bsections?|\bchapter|"
    r"\bclause|\bparagraph|§|\boid|\bupgraded? (?:\w+ )?to|\bupdated? (?:\w+ )?to)"
    r"(?: number)?(?: (?:is|was|of|to|from|has|has reached))?:?|==|>=|~=)\s?(?=\d)"
)
# The address of a whole network is nobody's.
_NETWORK: Final = re.compile(r"/(?:[0-9]|[12]\d|30)(?!\d)")
# Four small numbers are a version or a paragraph, unless the words around speak of machines.
_SMALL: Final = 32
_OF_MACHINES: Final = re.compile(
    r"\b(?:ips?|address(?:es)?|hosts?|hosted|servers?|router|gateway|dns|nameserver|ping\w*|ssh|login|"
    r"log(?:ged|s)?|connect\w*|traceroute|firewall|clients?|visitors?|block\w*|bann?\w*|resolves?|"
    r"camera|printer|proxy|vpn|bastion|node|machine|box|traffic|requests?|attack\w*|scan\w*)\b|://"
)
_AROUND: Final = 48
_IP_AFTER: Final = re.compile(r":\d|/[a-z]")


def _told_to_be_versions(low: str, spans: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    """Those of four numbers with points between them that are told to be something else.

    The words around are looked for once in the text, not around each of the numbers.
    """
    versions = {found.end() for found in _VERSION_BEFORE.finditer(low)}
    machines = [found.span() for found in _OF_MACHINES.finditer(low)]

    def is_one(start: int, end: int) -> bool:
        if start in versions or _NETWORK.match(low, end):
            return True
        if any(int(part) >= _SMALL for part in low[start:end].split(".")):
            return False
        # The first that does not begin too far before it: the others lie behind.
        near = bisect_left(machines, (start - _AROUND, 0))
        of_machines = near < len(machines) and machines[near][1] <= end + _AROUND
        return not of_machines and not _IP_AFTER.match(low, end)

    return {span for span in spans if is_one(*span)}


def _ips(text: str, low: str) -> _Spans:
    if spans := [found.span() for found in _IP4.finditer(text) if _is_somebodys(found[0])]:
        versions = _told_to_be_versions(low, spans)
        yield from (span for span in spans if span not in versions)
    for found in _IP6.finditer(low) if low.count(":") >= _COLONS else ():
        value = found[0].rstrip(":")
        if value.count(":") >= _COLONS and _DIGIT.search(value) and _is_somebodys(value):
            yield found.start(), found.start() + len(value)


def _is_somebodys(value: str) -> bool:
    """Whether it is the address of one machine, not of every machine or of none."""
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        return False
    everywhere = address.is_loopback or address.is_unspecified or address.is_multicast
    return not everywhere and not value.startswith(("255.", "0."))


# --- numbers with a checksum

_CARD: Final = re.compile(
    r"(?<![\w.-])(?:"
    r"\d{4}(?P<a>[ .-]?)\d{4}(?P=a)\d{4}(?P=a)\d{4}(?:(?P=a)\d{3})?"
    r"|3[47]\d{2}(?P<b>[ .-]?)\d{6}(?P=b)\d{5}|3[068]\d{2}(?P<c>[ .-]?)\d{6}(?P=c)\d{4}"
    r")(?![\w-]|\.\d)"
)
# By network: how a number begins, and its digits.
_NETWORKS: Final = re.compile(
    r"4(?:\d{15}|\d{18})|5[1-5]\d{14}|2(?:2[2-9]|[3-6]\d|7[01])\d{13}|2720\d{12}|2221\d{12}"
    r"|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|6(?:011|5\d\d|4[4-9]\d)\d{12}|62\d{14}|35\d{14}"
)
_IBAN: Final = re.compile(r"(?<![a-z0-9])[a-z]{2}\d{2}(?:[ -]?[a-z0-9]){11,32}")
# Each country's length, as the registry of SWIFT has them.
_IBAN_LENGTHS: Final = {
    one[:2]: int(one[2:])
    for one in (
        "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 "
        "DK18 DO28 EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 "
        "IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 "
        "MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 "
        "SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20"
    ).split()
}


def _cards(text: str, _: str) -> _Spans:
    for found in _CARD.finditer(text):
        digits = "".join(filter(str.isdigit, found[0]))
        if digits.isascii() and _NETWORKS.fullmatch(digits) and _luhn(digits):
            yield found.span()


def _luhn(digits: str) -> bool:
    numbers = [int(digit) for digit in reversed(digits)]
    doubled = (sum(divmod(2 * one, 10)) for one in numbers[1::2])
    return (sum(numbers[::2]) + sum(doubled)) % 10 == 0 and len(set(digits)) > 1


def _ibans(_: str, low: str) -> _Spans:
    for found in _IBAN.finditer(low):
        length = _IBAN_LENGTHS.get(found[0][:2].upper(), 99)
        letters = [n for n, letter in enumerate(found[0]) if letter.isalnum()]
        if len(letters) < length:
            continue
        end = letters[length - 1] + 1
        value = "".join(letter for letter in found[0][:end] if letter.isalnum())
        after = low[found.start() + end :][:1]
        if not after.isalnum() and value.isascii() and _mod_97(value):
            yield found.start(), found.start() + end


def _mod_97(iban: str) -> bool:
    return int("".join(str(int(one, 36)) for one in iban[4:] + iban[:4])) % 97 == 1


# --- numbers by which states know people

_SOCIAL_SECURITY: Final = re.compile(
    r"(?<![\w.-])(?!000|666|9)\d{3}(?P<s>[ -])(?!00)\d{2}(?P=s)(?!0000)\d{4}(?![\w-])"
)
_SOCIAL_WORDS: Final = re.compile(r"\b(?:ssn|social|tax|itin|taxpayer)\b")
_NATIONAL_INSURANCE: Final = re.compile(
    r"(?<![A-Za-z0-9])(?!BG|GB|NK|KN|TN|NT|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]"
    r"(?P<s> ?)\d{2}(?P=s)\d{2}(?P=s)\d{2}(?P=s)[A-D](?![A-Za-z0-9])"
)
_OTHER_NUMBER: Final = re.compile(
    r"(?:order|invoice|ref|reference|case|ticket|acct|isbn|issn|barcode|serial|tracking|customer|"
    r"member|membership|booking|confirmation|policy|model|part|item|sku|version|build|lottery|"
    r"record|student|employee|flight|parcel|shipment|patient|catalogue|catalog|batch|lot|product|"
    r"doi|article|asset|job|po|ean|upc|imei|vin|claim|registration|protocol|account|code|"
    r"coordinates?|grid|iban|card|vat|pin|id|docket|claims?|meter|chassis|engine|frame|form)\b"
    r"(?:\s+(?:number|no|nr|num|id|code|is|was|says|reads)){0,4}[\s:#.=]{0,4}\Z|#\s?\Z"
)
_LOOK_BACK: Final = 40


def _state_ids(text: str, low: str) -> _Spans:
    for found in _SOCIAL_SECURITY.finditer(text):
        before = low[max(0, found.start() - _LOOK_BACK) : found.start()]
        said = _SOCIAL_WORDS.search(before) is not None
        if said or (found["s"] == "-" and not _OTHER_NUMBER.search(before)):
            yield found.span()
    for found in _NATIONAL_INSURANCE.finditer(text):
        yield found.span()


# --- telephone numbers

# The matcher of phonenumbers is thorough and slow; these are stretches that it would accept.
_STRETCH: Final = re.compile(
    r"(?<![\w.,/$€£+-])(?:\+ ?|00(?=[1-9]))?\(?\d(?:[ ().\-/]{0,3}\d){6,17}(?!\d|[.,]\d|\w)"
)
_SEVEN_DIGITS: Final = re.compile(r"\d(?:[ ().\-/]{0,3}\d){6}")
_GROUPED: Final = re.compile(
    r"(?:1[ .-])?(?:\(\d{3}\) ?\d{3}[-. ]\d{4}|\d{3}[-.]\d{3}[-.]\d{4}|\d{3} \d{3}[ -]\d{4})"
)
_PHONE_TALK: Final = re.compile(
    r"\b(?:call|calls|called|calling|phone|phones|tel|telephone|text|texted|mobile|cell|reach|"
    r"ring|rang|fax|whatsapp|sms|dial|hotline|landline|contact|callback|helpline|pager|voicemail|"
    r"(?:my|your|his|her|our|their) (?:\w{1,12} )?number)\b"
)
_TALK_BEFORE: Final = 64
_TALK_AFTER: Final = 24
# The middle of an IBAN whose checksum is wrong.
_WITHIN_ACCOUNT: Final = re.compile(r"\b[A-Z]{2}\d{2}(?: [A-Z0-9]{4}){0,7} \Z")
_NOT_PLAIN: Final = re.compile(r"\d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}")


def _phones(text: str, low: str, region: str) -> _Spans:
    # Begins at a digit, unlike the pattern itself, which tries each character.
    if not _SEVEN_DIGITS.search(text):
        return
    for found in _STRETCH.finditer(text):
        start, end = found.span()
        before = low[max(0, start - _LOOK_BACK) : start]
        international = text[start] == "+" or text.startswith("00", start)
        if _OTHER_NUMBER.search(before) or _NOT_PLAIN.match(text, start):
            continue
        if _WITHIN_ACCOUNT.search(text, max(0, start - _LOOK_BACK), start):
            continue
        grouped = _GROUPED.search(text, start, end)
        if international or _said_to_be_phone(low, start, end):
            # "call 212 555 0142 10 times": what is too long is one with something behind it.
            ends = [end, *(start + gap.start() for gap in _GAP.finditer(text[start:end]))]
            for one in sorted(ends, reverse=True)[:_MOST_ENDS]:
                if _is_phone(text[start:one], region):
                    yield start, one
                    break
        elif grouped and _is_phone(grouped[0], region):
            yield grouped.span()


_GAP: Final = re.compile(r" ")
_MOST_ENDS: Final = 3


def _said_to_be_phone(low: str, start: int, end: int) -> bool:
    around = low[max(0, start - _TALK_BEFORE) : start], low[end : end + _TALK_AFTER]
    return any(_PHONE_TALK.search(one) for one in around)


def _is_phone(written: str, region: str) -> bool:
    import phonenumbers  # noqa: PLC0415 - a client that only tells secrets has none

    if written.startswith("00"):
        written = "+" + written[2:]
    try:
        number = phonenumbers.parse(written, region)
    except phonenumbers.NumberParseException:
        return False
    return phonenumbers.is_valid_number(number)


# --- postal addresses

_POST_CODE: Final = (
    r"(?:[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}|(?:[A-Z]{2},? )?\d{5}(?:-\d{4})?|[A-Z]\d[A-Z] ?\d[A-Z]\d)"
)
_POSTAL: Final = re.compile(
    r"(?<![\w.,$€£#/-])(?:(?:Flat|Apt\.?|Unit|Suite) ?\d{1,5}[A-Za-z]?,? )?"
    r"(?P<house>\d{1,5})[A-Za-z]? (?:(?:[NSEW]\.?|[A-Z][a-z'’.-]{1,24}) ){1,4}"
    rf"(?:{STREET_WORD}|Pkwy\.?|Hwy\.?)(?![\w])"
    r"(?:,? (?:Flat|Apt\.?|Apartment|Unit|Suite|#) ?\d{1,5}[A-Za-z]?)?"
    rf"(?:, ?[A-Z][a-z'’.-]{{1,24}}(?: [A-Z][a-z'’.-]{{1,24}}){{0,2}}"
    rf"(?:,? ?{_POST_CODE}(?!\w))?)?"
)
_YEAR: Final = re.compile(r"1[0-9]\d\d|20\d\d")
# "In 2008 Wall Street fell", "on 12 May Street View was updated"
_WHEN: Final = re.compile(r"\b(?:in|by|since|until|till|during|around|circa|year)\s\Z")
_MONTH: Final = re.compile(rf"\d{{1,9}} {MONTH_NAME}\b")


def _postal(text: str, low: str) -> _Spans:
    for found in _POSTAL.finditer(text):
        start = found.start()
        year = _YEAR.fullmatch(found["house"]) and _WHEN.search(low, max(0, start - 10), start)
        if not year and not _MONTH.match(low, start):
            # The last stop is the sentence's.
            yield start, start + len(found[0].rstrip("."))


# --- what is written so that a program, or a reader, sees something else than its letters

# "%40"; "%2540" is that once more.
_ENCODED: Final = re.compile(r"%(?:25)*([2-7][0-9A-Fa-f])")


class _AsShown(NamedTuple):
    """A text as it is shown, and the way back.

    Attributes:
        text: Without signs that are not seen, in plain letters, with encoded ones decoded.
        places: For each of its letters, from where to where it stands in the text.
    """

    text: str
    places: list[tuple[int, int]]

    def in_text(self, span: PersonalSpan) -> PersonalSpan:
        """What was found in what is shown, where it stands in the text."""
        return PersonalSpan(self.places[span.start][0], self.places[span.end - 1][1], span.kind)


def _shown(text: str) -> _AsShown | None:
    """``text`` as it is shown; None where that is what is written."""
    plain_letters = text.isascii() or (
        unicodedata.is_normalized("NFKC", text)
        and not any(unicodedata.category(one) == "Cf" for one in text)
    )
    encoded = {found.start(): found for found in _ENCODED.finditer(text)}
    if plain_letters and not encoded:
        return None
    letters: list[str] = []
    places: list[tuple[int, int]] = []
    at = 0
    while at < len(text):
        code = encoded.get(at)
        end = at + 1 if code is None else code.end()
        letter = unicodedata.normalize("NFKC", text[at]) if code is None else _decoded(code)
        if unicodedata.category(text[at]) != "Cf":
            letters.append(letter)
            places += [(at, end)] * len(letter)
        at = end
    return _AsShown("".join(letters), places)


def _decoded(code: re.Match[str]) -> str:
    return chr(int(code[1], 16))


# --- all of it

_Finder: TypeAlias = Callable[[str, str], _Spans]
# The first two; all others begin at a digit.
_WITHOUT_DIGITS: Final = 2


def secrets_in(text: str) -> frozenset[str]:
    """The passwords, keys, PINs and card numbers that a text tells, each as it stands there.

    Args:
        text: Any text.
    """
    written = plain(text)
    spans = chain(_secrets(written, low := fold(written)), _cards(written, low))
    return frozenset(text[start:end] for start, end in spans)


class BuiltInDetector:
    """Finds personal data by its form. Stateless, safe to share between threads.

    Args:
        phone_region: ISO 3166 code of the country that numbers without "+" belong to.
    """

    def __init__(self, phone_region: str = "US") -> None:
        self._finders: tuple[tuple[PersonalKind, _Finder], ...] = (
            # What comes first wins: the password in an address is no e-mail.
            (PersonalKind.SECRET, _secrets),
            (PersonalKind.EMAIL, _emails),
            (PersonalKind.IBAN, _ibans),
            (PersonalKind.CARD, _cards),
            (PersonalKind.IP, _ips),
            (PersonalKind.ID, _state_ids),
            (PersonalKind.PHONE, lambda text, low: _phones(text, low, phone_region)),
            (PersonalKind.ADDRESS, _postal),
        )

    def find(self, text: str) -> tuple[PersonalSpan, ...]:
        """See :meth:`engram.ports.PersonalDataDetector.find`."""
        # One for one: what is found there stands at the same place in the text.
        written = plain(text)
        found = list(self._found(written))
        shown = _shown(written)
        if shown is not None:
            found += [shown.in_text(span) for span in self._found(shown.text)]
            # Of one kind the whole of it first, whichever way it was read.
            ranks = [kind for kind, _ in self._finders]
            found.sort(key=lambda span: (ranks.index(span.kind), span.start - span.end))
        return _apart(found, len(text)) if len(found) > 1 else tuple(found)

    def _found(self, written: str) -> Iterator[PersonalSpan]:
        low = fold(written)
        digits = _DIGIT.search(written) is not None
        for kind, finder in self._finders if digits else self._finders[:_WITHOUT_DIGITS]:
            for start, end in finder(written, low):
                yield PersonalSpan(start, end, kind)


def _apart(found: list[PersonalSpan], length: int) -> tuple[PersonalSpan, ...]:
    """In order, without those that overlap what an earlier finder found."""
    taken = bytearray(length)
    kept: list[PersonalSpan] = []
    for span in found:
        if not any(taken[span.start : span.end]):
            taken[span.start : span.end] = b"\x01" * (span.end - span.start)
            kept.append(span)
    return tuple(sorted(kept))
