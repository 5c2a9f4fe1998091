"""Amounts of money."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation

from engram.language.calendar import SCALES, WORDS, small_number
from engram.language.found import FoundSpan, Masked

_CODES = (
    "USD EUR GBP JPY CHF CAD AUD NZD CNY INR KRW SEK NOK DKK PLN CZK HUF RON BGN TRY BRL MXN ZAR "
    "SGD HKD TWD THB IDR MYR PHP VND ILS AED SAR EGP NGN KES ARS CLP COP PEN UAH RUB ISK"
).split()
_SYMBOLS = {
    "us$": "USD", "c$": "CAD", "ca$": "CAD", "a$": "AUD", "au$": "AUD", "nz$": "NZD",
    "hk$": "HKD", "s$": "SGD", "r$": "BRL", "$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY",
    "₹": "INR", "₩": "KRW", "₺": "TRY", "₽": "RUB", "₴": "UAH", "₪": "ILS", "₫": "VND",
    "₱": "PHP", "₦": "NGN", "฿": "THB", "zł": "PLN",
}  # fmt: skip
# Written small, the others are words ("try", "cop") or too rare to be meant.
_CODES_IN_ANY_CASE = frozenset("usd eur gbp jpy chf inr aud pln sek nok dkk czk".split())
_NAMES = {
    "us dollars": "USD", "u.s. dollars": "USD", "american dollars": "USD",
    "canadian dollars": "CAD", "australian dollars": "AUD", "new zealand dollars": "NZD",
    "singapore dollars": "SGD", "hong kong dollars": "HKD", "dollars": "USD", "dollar": "USD",
    "bucks": "USD", "euros": "EUR", "euro": "EUR", "pounds sterling": "GBP", "pounds": "GBP",
    "british pounds": "GBP", "quid": "GBP", "japanese yen": "JPY", "yen": "JPY",
    "swiss francs": "CHF", "rupees": "INR", "yuan": "CNY", "renminbi": "CNY", "rand": "ZAR",
    "korean won": "KRW", "zloty": "PLN", "zlotys": "PLN", "złoty": "PLN", "reais": "BRL",
    "mexican pesos": "MXN", "swedish kronor": "SEK", "norwegian kroner": "NOK",
    "danish kroner": "DKK", "kronor": "SEK", "baht": "THB", "shekels": "ILS", "forints": "HUF",
}  # fmt: skip
_NO_DECIMALS = {"JPY", "KRW", "VND", "ISK", "CLP"}
_MULTIPLIERS = {
    "k": 1_000, "thousand": 1_000, "m": 1_000_000, "mn": 1_000_000, "mio": 1_000_000,
    "mil": 1_000_000, "million": 1_000_000, "bn": 1_000_000_000, "b": 1_000_000_000,
    "billion": 1_000_000_000, "hundred": 100, "trillion": 10**12, "lakh": 100_000,
    "crore": 10_000_000,
}  # fmt: skip
# Where a dot before three digits separates thousands, as "1.200 €" does.
_DOT_GROUPS = {"EUR", "CHF", "BRL", "DKK", "NOK", "SEK", "TRY", "IDR", "VND", "PLN", "ARS", "CLP"}


def _any(words: list[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


_NUMBER = r"\d{1,3}(?:[,.' ]\d{3}){1,5}(?:[.,]\d{1,2})?(?!\d)|\d{1,12}(?:[.,]\d{1,3})?(?!\d)"
_SCALE = r"(?:\s?(?:k|m|mn|mio|bn|b)|\s(?:thousand|million|billion|trillion|mil|lakh|crore))(?!\w)"
_SIGN = _any(list(_SYMBOLS))
_CURRENCY_CODE = "|".join(code.lower() for code in _CODES)
_CURRENCY_WORD = _any(list(_NAMES))
_PREFIXED = re.compile(
    rf"(?<!\w)(?:(?P<sign>{_SIGN})\s?|(?P<code>{_CURRENCY_CODE})\s?)(?P<number>{_NUMBER})"
    rf"(?P<scale>{_SCALE})?"
    rf"(?:\s?(?:-|to)\s?(?P<to>{_NUMBER})(?P<to_scale>{_SCALE})?(?!\s?(?:{_SIGN}|{_CURRENCY_CODE}|[%:/\w])))?"
)
_SUFFIXED = re.compile(
    rf"(?<![\w.,$€£])(?P<number>{_NUMBER})(?P<scale>{_SCALE})?"
    rf"(?:\s?(?P<sign>[€£¥₹₩₺₽₴₪₫₱₦฿]|zł)|\s?(?P<code>{_CURRENCY_CODE})(?!\w)|\s(?P<word>{_CURRENCY_WORD})(?!\w|-\w))"
)
_SPELT = re.compile(
    rf"(?<![\w-])(?P<half>half\s)?(?P<lead>(?:an?|{WORDS})(?:[\s-](?:hundred|thousand|million|billion))"
    rf"{{0,2}}|(?:{WORDS})(?:\s(?:{WORDS}))?)\s(?P<word>{_CURRENCY_WORD})(?!\w|-\w)"
)
_MONEY_GATE = re.compile(
    rf"[$€£¥₹₩₺₽₴₪₫₱₦฿]|\b(?:{_CURRENCY_CODE})(?![a-z])|\d(?:{_CURRENCY_CODE})\b|\b(?:{_CURRENCY_WORD})\b|\d\s?zł"
)
_FIGURE_OF_SPEECH = re.compile(r"(?:like|feels?|looks?|for|not)\s\Z")
_SPENDING = re.compile(
    r"\b(?:cost|costs|costing|pay|pays|paid|paying|price|priced|prices|rent|budget|worth|spent|"
    r"spend|earn|earns|earning|earned|salary|charge|charges|charged|owe|owes|owed|fee|fees|"
    r"deposit|bill|invoice|quote|quoted|sold|sell|selling|bought|buy|buying|income|wage|wages|"
    r"mortgage|loan|lend|lent|borrow|borrowed|save|saved|savings|refund|refunded|donate|"
    r"donated|raise|raised|fine|fined|bet|won|cash|money|a month|a year|per month|per year|"
    r"an hour|per hour|tip|tipped|expensive|cheap)\b"
)
_WEIGHING = re.compile(
    r"\b(?:weigh|weighs|weighed|weighing|weight|lose|losing|gain|gained|gaining|heavy|lifted|lift|"
    r"lifting|bench|deadlift|squat|overweight|diet|heavier|lighter|flour|meat|potatoes|apples|"
    r"beef|turkey|baby|lost)\b|\bpounds of\b"
)
_PROGRAM_TALK = re.compile(
    r"`|\b(?:regex|script|shell|bash|argument|variable|capture|sed|awk|perl)\b"
)
# "Lost -$20"; at the start of a line it is a bullet, and glued to another amount it is "to".
_MINUS = re.compile(r"(?:(?:\S[^\S\n]{1,3}|\()(?P<sign>[-−])|\b(?P<word>minus|negative)\s)\Z")
_CENTS = re.compile(rf"\s(?:and\s)?(?P<cents>\d{{1,2}}|{WORDS})\s(?:cents?|pence)(?!\w)")
_MOST_AMOUNTS = 100
_AROUND = 80
_LOOK_BACK = 12


def find(turn: Masked) -> Iterator[FoundSpan]:
    """Amounts with a currency that is told; "50 cents" or "10 grand" name none."""
    low = turn.low
    if not _MONEY_GATE.search(low):
        return
    taken: list[tuple[int, int]] = []
    for pattern in (_PREFIXED, _SUFFIXED, _SPELT):
        for count, match in enumerate(pattern.finditer(low)):
            if count >= _MOST_AMOUNTS:
                break
            start, end = match.span()
            if any(start < other_end and other < end for other, other_end in taken):
                continue
            finds = [_signed(one, low) for one in _amounts(match, low, turn.text)]
            if finds:
                taken.append((start, end))
                yield from finds


def _signed(found: FoundSpan, low: str) -> FoundSpan:
    """The amount as what is owed or lost, where a minus stands before it."""
    minus = _MINUS.search(low, max(0, found.start - _LOOK_BACK), found.start)
    if minus is None:
        return found
    start = max(minus.start("sign"), minus.start("word"))
    currency, _, amount = found.value.partition(" ")
    return FoundSpan(start, found.end, f"{currency} -{amount}")


def _amounts(match: re.Match[str], low: str, text: str) -> Iterator[FoundSpan]:
    groups = match.groupdict()
    currency = _currency(groups)
    code = groups.get("code")
    if code and code not in _CODES_IN_ANY_CASE and not text[match.start("code")].isupper():
        return
    around = low[max(0, match.start() - _AROUND) : match.end() + _AROUND]
    if groups.get("word") == "pounds" and not _is_money(around):
        return
    if "lead" in groups:
        spelt = _spelt(groups["lead"], half=bool(groups["half"]))
        if spelt is None or _FIGURE_OF_SPEECH.search(
            low[max(0, match.start() - 12) : match.start()]
        ):
            return
        yield _with_cents(match, match.end(), currency, spelt)
        return
    one_digit = groups.get("sign") == "$" and len(groups["number"] or "") == 1
    if one_digit and groups["scale"] is None and _PROGRAM_TALK.search(around):
        return
    yield from _figures(match, groups, currency)


def _figures(
    match: re.Match[str], groups: dict[str, str | None], currency: str
) -> Iterator[FoundSpan]:
    to, scale = groups.get("to"), groups["scale"]
    if not to and match.end() < len(match.string) and match.string[match.end()].isalnum():
        # "$5abc": a price is not glued to letters, but "5m" may have been cut short.
        return
    last = _amount(to, groups.get("to_scale"), currency) if to else None
    if last is not None and scale is None:
        # "$50-60k": the scale belongs to both.
        scale = groups.get("to_scale")
    first = _amount(groups["number"], scale, currency)
    if first is None:
        return
    if last is None or last <= first:
        yield _with_cents(match, match.end("number") if to else match.end(), currency, first)
        return
    yield FoundSpan(match.start(), match.start("to"), _canonical(currency, first))
    yield FoundSpan(match.start("to"), match.end(), _canonical(currency, last))


def _with_cents(match: re.Match[str], end: int, currency: str, value: Decimal) -> FoundSpan:
    """The amount up to there, with the cents that follow it: "5 dollars and 20 cents"."""
    cents = _CENTS.match(match.string, end)
    more = small_number(cents["cents"]) if cents and value == value.to_integral_value() else None
    if cents is not None and more is not None and currency not in _NO_DECIMALS:
        end, value = cents.end(), value + Decimal(more) / 100
    return FoundSpan(match.start(), end, _canonical(currency, value))


def _currency(groups: dict[str, str | None]) -> str:
    if sign := groups.get("sign"):
        return _SYMBOLS[sign]
    if code := groups.get("code"):
        return code.upper()
    return _NAMES[groups["word"] or ""]


def _is_money(low: str) -> bool:
    return _SPENDING.search(low) is not None and _WEIGHING.search(low) is None


def _spelt(lead: str, *, half: bool) -> Decimal | None:
    words = lead.replace("-", " ").split() if any(s in lead for s in SCALES) else [lead]
    scales = [word for word in words if word in SCALES]
    start = small_number(" ".join(word for word in words if word not in SCALES))
    # "a dollar" says no more than "some money"; "half a million" does.
    if start is None or (not scales and lead in {"a", "an"}):
        return None
    value = Decimal(start)
    for scale in scales:
        value *= SCALES[scale]
    return value / 2 if half else value


def _amount(number: str | None, scale: str | None, currency: str) -> Decimal | None:
    if number is None:
        return None
    digits = _western(number.replace(" ", "").replace("'", ""), currency)
    if digits is None:
        return None
    try:
        value = Decimal(digits)
    except InvalidOperation:
        return None
    return value * _MULTIPLIERS[scale.strip()] if scale else value


def _western(number: str, currency: str) -> str | None:
    """Digits with a decimal point; None where the separator could mean either."""
    dots, commas = number.count("."), number.count(",")
    if dots and commas:
        decimal = max(number.rfind("."), number.rfind(","))
        whole = number[:decimal].replace(".", "").replace(",", "")
        return f"{whole}.{number[decimal + 1 :]}"
    if not dots and not commas:
        return number
    mark = "." if dots else ","
    if dots + commas > 1:
        return number.replace(mark, "")
    tail = len(number) - number.rfind(mark) - 1
    if tail != 3:  # noqa: PLR2004 - thousands come in groups of three
        return number.replace(",", ".")
    if mark == "," or currency in _DOT_GROUPS:
        return number.replace(mark, "")
    return None


def _canonical(currency: str, value: Decimal) -> str:
    if currency in _NO_DECIMALS:
        return f"{currency} {value.quantize(Decimal(1))}"
    return f"{currency} {value.quantize(Decimal('0.01'))}"
