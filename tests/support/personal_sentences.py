"""A thousand sentences, half of them with personal data and half with what only looks like it.

Made from the lines of ``tests/data/personal_data.txt``: each is one sentence, or two or more with
other values, and always the same ones. Half of the lines are held back from who writes the rules.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain, islice, zip_longest
from pathlib import Path
from random import Random

from engram.domain.personal_data import PersonalKind, PersonalSpan

_LINES = Path(__file__).parents[1] / "data" / "personal_data.txt"
_FRESH = _LINES.with_name("personal_data.fresh.txt")
_PLACE = re.compile(r"{(\w+)}")
_MARKED = re.compile(r"{([a-z-]+):([^}]*)}")
_OF_EACH = 500
_HEX = string.digits + "abcdef"
_WORDS = string.ascii_letters + string.digits


@dataclass(frozen=True)
class Sentence:
    """A sentence, the stretches of personal data in it, and which half it belongs to."""

    text: str
    spans: tuple[PersonalSpan, ...]
    held: bool


def sentences() -> list[Sentence]:
    """All of them, in the order of their lines."""
    blocks = re.split(r"^#.*\n", _LINES.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return [one for block in blocks for one in _filled(block.splitlines())]


def fresh_sentences() -> list[Sentence]:
    """Those by somebody who had not read the rules: their values stand in the lines themselves."""
    lines = _FRESH.read_text(encoding="utf-8").splitlines()
    return [_marked(line) for line in lines if not line.startswith("#")]


def _marked(line: str) -> Sentence:
    parts: list[str] = []
    spans: list[PersonalSpan] = []
    end = 0
    for mark in _MARKED.finditer(line):
        parts += (line[end : mark.start()], mark[2])
        start = sum(map(len, parts)) - len(mark[2])
        spans.append(PersonalSpan(start, start + len(mark[2]), PersonalKind(mark[1])))
        end = mark.end()
    return Sentence("".join((*parts, line[end:])), tuple(spans), held=True)


def _filled(lines: Sequence[str]) -> list[Sentence]:
    """So many sentences of the lines: each once, then each that has values once more, and so on."""
    rounds: list[list[Sentence]] = [[], [], [], []]
    for line in lines:
        seen: set[str] = set()
        for number, made in enumerate(rounds):
            one = _sentence(line, number)
            if one.text not in seen:
                made.append(one)
            seen.add(one.text)
    return list(islice(chain.from_iterable(rounds), _OF_EACH))


def _sentence(line: str, number: int) -> Sentence:
    chance = Random(f"{line} {number}")  # noqa: S311 - always the same values
    parts: list[str] = []
    spans: list[PersonalSpan] = []
    length = 0
    texts = _PLACE.split(line)
    for before, name in zip_longest(texts[::2], texts[1::2]):
        parts.append(before)
        length += len(before)
        if name is None:
            continue
        value = VALUES[name](chance)
        if name in KINDS:
            spans.append(PersonalSpan(length, length + len(value), KINDS[name]))
        parts.append(value)
        length += len(value)
    held = sha256(line.encode()).digest()[0] % 2 == 1
    return Sentence("".join(parts), tuple(spans), held)


# --- values


def _digits(chance: Random, count: int) -> str:
    return "".join(chance.choice(string.digits) for _ in range(count))


def _of(chance: Random, letters: str, count: int) -> str:
    return "".join(chance.choice(letters) for _ in range(count))


def _mixed(chance: Random, letters: str, count: int) -> str:
    """Letters and digits, both certainly."""
    made = [chance.choice(letters) for _ in range(count)]
    for place, kind in zip(
        chance.sample(range(count), 4),
        (string.digits, string.digits, string.ascii_lowercase, string.ascii_lowercase),
        strict=True,
    ):
        made[place] = chance.choice([one for one in kind if one in letters] or list(letters))
    return "".join(made)


def _email(chance: Random) -> str:
    first = chance.choice(
        "ada tom.berg j.ortiz anna_l mia+news sam-k o'neil bj\u00f6rn x99 ADA.Lund".split()
    )
    host = chance.choice(
        "example.com mail.example.org lund.no uni-oslo.edu corp.example.co.uk b\u00fccher.de "
        "my-shop.io example.museum".split()
    )
    return f"{first}@{host}"


def _phone(chance: Random) -> str:
    area = chance.choice("212 415 312 206 617 503 303".split())
    one, two = f"{chance.randint(200, 999)}", _digits(chance, 4)
    if one[1:] == "11":
        one = "234"
    form = chance.choice(
        (
            "{}-{}-{}",
            "({}) {}-{}",
            "+1 {} {} {}",
            "+1-{}-{}-{}",
            "{}.{}.{}",
            "1-{}-{}-{}",
            "+1{}{}{}",
        )
    )
    return form.format(area, one, two)


def _phone_plain(chance: Random) -> str:
    area = chance.choice("212 415 312 206 617".split())
    return f"{area}{chance.randint(220, 299)}{_digits(chance, 4)}"


def _phone_uk(chance: Random) -> str:
    form = chance.choice(
        ("+44 7911 12{}", "+44 20 7946 {}", "0044 20 7946 {}", "+44 (0)20 7946 {}")
    )
    return form.format(_digits(chance, 4))


def _phone_de(chance: Random) -> str:
    return chance.choice(("+49 30 {}", "+49 (0)30 {}", "0049 30 {}", "+49-30-{}")).format(
        f"90{_digits(chance, 4)}{_digits(chance, 2)}"
    )


def _phone_no(chance: Random) -> str:
    return f"+47 22 {chance.randint(10, 99)} {_digits(chance, 2)} {_digits(chance, 2)}"


def _phone_fr(chance: Random) -> str:
    return f"+33 1 42 {_digits(chance, 2)} {_digits(chance, 2)} {_digits(chance, 2)}"


def _check_digit(body: str) -> str:
    total = 0
    for place, digit in enumerate(reversed(body)):
        number = int(digit) * (2 if place % 2 == 0 else 1)
        total += number - 9 if number > 9 else number
    return str(-total % 10)


def _card(chance: Random, *, wrong: int = 0) -> str:
    body = chance.choice(("4539", "4111", "5424", "5555", "2221", "6011")) + _digits(chance, 11)
    whole = body + str((int(_check_digit(body)) + wrong) % 10)
    sign = chance.choice((" ", "-", "", " "))
    return sign.join(whole[at : at + 4] for at in range(0, 16, 4))


def _amex(chance: Random) -> str:
    body = chance.choice(("34", "37")) + _digits(chance, 12)
    whole = body + _check_digit(body)
    sign = chance.choice((" ", "-", ""))
    return sign.join((whole[:4], whole[4:10], whole[10:]))


def _iban(chance: Random, *, wrong: int = 0) -> str:
    country, length = chance.choice(
        (
            ("DE", 22),
            ("GB", 22),
            ("FR", 27),
            ("NO", 15),
            ("NL", 18),
            ("AT", 20),
            ("CH", 21),
            ("ES", 24),
        )
    )
    letters = {"GB": "NWBK", "NL": "ABNA"}.get(country, "")
    body = letters + _digits(chance, length - 4 - len(letters))
    number = "".join(str(int(one, 36)) for one in f"{body}{country}00")
    check = (98 - int(number) % 97 + wrong - 2) % 97 + 2
    whole = f"{country}{check:02}{body}"
    if chance.random() < 0.4:
        return whole
    return " ".join(whole[at : at + 4] for at in range(0, length, 4))


def _ip(chance: Random) -> str:
    first = chance.choice((10, 192, 203, 84, 178, 62))
    return f"{first}.{chance.randint(0, 255)}.{chance.randint(0, 255)}.{chance.randint(1, 254)}"


def _ip6(chance: Random) -> str:
    groups = [_of(chance, _HEX, 4) for _ in range(6)]
    return chance.choice(
        (
            f"2001:db8::{groups[0]}:{groups[1]}",
            f"fe80::1{groups[0][1:]}:{groups[1]}",
            "2a02:" + ":".join(groups) + ":1",
        )
    )


def _ssn(chance: Random) -> str:
    return f"{chance.randint(100, 665)}-{chance.randint(10, 99)}-{chance.randint(1000, 9999)}"


def _nino(chance: Random) -> str:
    form = chance.choice(("{}{}{}{}{}", "{} {} {} {} {}"))
    pairs = (_digits(chance, 2) for _ in range(3))
    return form.format(chance.choice(("AB", "CE", "JT", "PX")), *pairs, chance.choice("ABCD"))


def _token(chance: Random) -> str:
    form, letters, count = chance.choice(
        (
            ("sk-{}", _WORDS, 40), ("sk-proj-{}", _WORDS, 48), ("sk-ant-api03-{}", _WORDS, 40),
            ("ghp_{}", _WORDS, 36), ("xoxb-2345678901-{}", _WORDS, 24), ("glpat-{}", _WORDS, 20),
            ("AKIA{}", string.ascii_uppercase + string.digits, 16), ("sk_live_{}", _WORDS, 24),
            ("AIza{}", _WORDS + "_-", 35), ("hf_{}", _WORDS, 34), ("npm_{}", _WORDS, 36),
        )
    )  # fmt: skip
    return form.format(_mixed(chance, letters, count))


def _jwt(chance: Random) -> str:
    return (
        f"eyJhbGciOiJIUzI1NiJ9.eyJ{_mixed(chance, _WORDS, 30)}.{_mixed(chance, _WORDS + '_-', 43)}"
    )


def _password(chance: Random) -> str:
    word = chance.choice("tulip horse Winter banana kitty Summer dragon".split())
    return chance.choice(
        (
            f"{word}{_digits(chance, 2)}!",
            f"{word}-{_digits(chance, 3)}",
            f"{word}{_digits(chance, 4)}",
            f"{_mixed(chance, _WORDS, 10)}",
            f"{word}#{word}7",
        )
    )


def _pem(chance: Random) -> str:
    kind = chance.choice(
        ("RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "EC PRIVATE KEY")
    )
    lines = "\n".join(_of(chance, _WORDS + "+/", 64) for _ in range(3))
    return f"-----BEGIN {kind}-----\n{lines}\n-----END {kind}-----"


def _address(chance: Random) -> str:
    name = chance.choice(
        ("Baker", "Elm", "North Main", "Queen Anne", "Old Mill", "Park", "St. John's", "W. Oak")
    )
    kind = chance.choice(("Street", "Avenue", "Road", "St", "Lane", "Blvd", "Ave.", "Court"))
    kind = kind.rstrip(".")
    return f"{chance.choice(('7', '12', '221B', '1600', '45'))} {name} {kind}"


def _address_full(chance: Random) -> str:
    place = chance.choice(
        (
            "Springfield, IL 62704",
            "London NW1 6XE",
            "Portland, OR 97205",
            "Leeds",
            "New York, NY 10001",
            "Oxford OX1 2JD",
        )
    )
    return f"{_address(chance)}, {place}"


def _date(chance: Random) -> str:
    day, month, year = chance.randint(1, 28), chance.randint(1, 12), chance.randint(1950, 2030)
    return chance.choice(
        (
            f"{year}-{month:02}-{day:02}",
            f"{day:02}.{month:02}.{year}",
            f"{month}/{day}/{year}",
            f"{day} May {year}",
            f"{day:02}/{month:02}/{year}",
        )
    )


def _sep(number: int) -> str:
    return f"{number:,}"


Value = Callable[[Random], str]
KINDS: Mapping[str, PersonalKind] = {
    "email": PersonalKind.EMAIL,
    **dict.fromkeys(
        ("phone", "phone_plain", "phone_uk", "phone_de", "phone_no", "phone_fr"), PersonalKind.PHONE
    ),
    **dict.fromkeys(("card", "amex"), PersonalKind.CARD),
    "iban": PersonalKind.IBAN,
    **dict.fromkeys(("ip", "ip6"), PersonalKind.IP),
    **dict.fromkeys(("ssn", "nino"), PersonalKind.ID),
    **dict.fromkeys(
        ("token", "jwt", "password", "password_signed", "key", "dsn", "pem"), PersonalKind.SECRET
    ),
    **dict.fromkeys(("address", "address_full"), PersonalKind.ADDRESS),
}
VALUES: Mapping[str, Value] = {
    "email": _email,
    "phone": _phone,
    "phone_plain": _phone_plain,
    "phone_uk": _phone_uk,
    "phone_de": _phone_de,
    "phone_no": _phone_no,
    "phone_fr": _phone_fr,
    "card": _card,
    "amex": _amex,
    "iban": _iban,
    "ip": _ip,
    "ip6": _ip6,
    "ssn": _ssn,
    "nino": _nino,
    "token": _token,
    "jwt": _jwt,
    "password": _password,
    "password_signed": lambda chance: f"{_mixed(chance, _WORDS, 12)}",
    "key": lambda chance: _mixed(
        chance, chance.choice((_WORDS, _HEX)), chance.choice((24, 32, 40))
    ),
    "dsn": lambda chance: _mixed(chance, _WORDS, 12),
    "pem": _pem,
    "address": _address,
    "address_full": _address_full,
    "n_order": lambda chance: _digits(chance, chance.choice((7, 8, 10))),
    "n_tracking": lambda chance: f"1Z{_of(chance, string.ascii_uppercase + string.digits, 16)}",
    "n_invoice": lambda chance: f"{chance.randint(2019, 2026)}-{_digits(chance, 5)}",
    "n_ticket": lambda chance: f"{chance.choice(('INC', 'T-', 'AB-'))}{_digits(chance, 7)}",
    "n_code": lambda chance: _of(chance, string.ascii_uppercase + string.digits, 6),
    "n_flight": lambda chance: f"{chance.choice(('SK', 'LH', 'BA'))}{_digits(chance, 3)}",
    "n_date": _date,
    "n_time": lambda chance: f"{chance.randint(0, 23)}:{chance.randint(0, 59):02}",
    "n_duration": lambda chance: f"{chance.randint(2, 90)} minutes {chance.randint(1, 59)} seconds",
    "n_stamp": lambda chance: (
        f"2024-05-{chance.randint(10, 28)}T12:{chance.randint(10, 59)}:07.{_digits(chance, 6)}Z"
    ),
    "n_version": lambda chance: ".".join(str(chance.randint(0, 20)) for _ in range(4)),
    "n_version3": lambda chance: ".".join(str(chance.randint(0, 20)) for _ in range(3)),
    "n_chrome": lambda chance: (
        f"{chance.randint(90, 130)}.0.{chance.randint(4000, 6999)}.{chance.randint(20, 200)}"
    ),
    "n_section": lambda chance: f"{chance.randint(1, 9)}.{chance.randint(1, 9)}",
    "n_section4": lambda chance: ".".join(str(chance.randint(1, 9)) for _ in range(4)),
    "n_price": lambda chance: chance.choice(
        ("${}.99", "{} euros", "\u20ac{},50", "{}.00 USD")
    ).format(chance.randint(5, 4999)),
    "n_bigmoney": lambda chance: f"${_sep(chance.randint(10**6, 10**10))}",
    "n_isbn": lambda chance: f"0-{_digits(chance, 3)}-{_digits(chance, 5)}-{_digits(chance, 1)}",
    "n_isbn13": lambda chance: (
        f"978-3-{_digits(chance, 2)}-{_digits(chance, 6)}-{_digits(chance, 1)}"
    ),
    "n_ean": lambda chance: f"40{_digits(chance, 11)}",
    "n_sha": lambda chance: _of(chance, _HEX, 40),
    "n_shortsha": lambda chance: _of(chance, _HEX, 9),
    "n_sha256": lambda chance: _of(chance, _HEX, 64),
    "n_md5": lambda chance: _of(chance, _HEX, 32),
    "n_uuid": lambda chance: "-".join(_of(chance, _HEX, count) for count in (8, 4, 4, 4, 12)),
    "n_cachekey": lambda chance: f"user_profile_{_digits(chance, 5)}_settings_v2",
    "n_score": lambda chance: f"{chance.randint(0, 9)}:{chance.randint(0, 9)}",
    "n_coords": lambda chance: f"{chance.uniform(40, 70):.6f}, {chance.uniform(-10, 30):.6f}",
    "n_population": lambda chance: _sep(chance.randint(10**5, 10**8)),
    "n_huge": lambda chance: _digits(chance, 22),
    "n_pi": lambda chance: "3.14159265358979",
    "n_year": lambda chance: str(chance.randint(1901, 2025)),
    "n_km": lambda chance: f"{chance.randint(3, 3000)} km",
    "n_kg": lambda chance: f"{chance.randint(40, 120)}.{_digits(chance, 1)} kg",
    "n_grams": lambda chance: f"{chance.randint(100, 900)} g",
    "n_room": lambda chance: str(chance.randint(10, 999)),
    "n_seat": lambda chance: f"{chance.randint(1, 40)}{chance.choice('ABCDEF')}",
    "n_serial": lambda chance: f"{_of(chance, string.ascii_uppercase, 3)}{_digits(chance, 9)}",
    "n_part": lambda chance: f"{_of(chance, string.ascii_uppercase, 2)}-{_digits(chance, 4)}",
    "n_imei": lambda chance: f"35{_digits(chance, 13)}",
    "n_vin": lambda chance: f"WVWZZZ{_digits(chance, 2)}KW{_digits(chance, 6)}",
    "n_badcard": lambda chance: _card(chance, wrong=1),
    "n_badiban": lambda chance: _iban(chance, wrong=1),
    "n_ratio": lambda chance: (
        f"{chance.randint(1, 9)}:{chance.randint(10, 99)}:{chance.randint(10, 99)}"
    ),
    "n_mac": lambda chance: ":".join(_of(chance, _HEX, 2) for _ in range(6)),
    "n_points": lambda chance: _digits(chance, 6),
    "n_lottery": lambda chance: " ".join(str(chance.randint(1, 49)) for _ in range(6)),
    "n_two": lambda chance: str(chance.randint(2, 20)),
    "n_percent": lambda chance: f"{chance.uniform(0.1, 99):.2f} %",
    "n_arxiv": lambda chance: f"{chance.randint(1901, 2405)}.{_digits(chance, 5)}",
    "n_doi": lambda chance: f"10.1000/{_digits(chance, 3)}.{_digits(chance, 4)}",
    "n_binary": lambda chance: _of(chance, "01", 16),
    "n_hex": lambda chance: _of(chance, _HEX, 8),
    "n_color": lambda chance: _of(chance, _HEX, 6),
    "n_port": lambda chance: str(chance.randint(1024, 65000)),
    "n_bytes": lambda chance: _digits(chance, 10),
    "n_build": lambda chance: f"2024{_digits(chance, 4)}.{_digits(chance, 1)}",
    "n_grid": lambda chance: f"NH {_digits(chance, 5)} {_digits(chance, 5)}",
}
