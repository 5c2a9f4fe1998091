"""Personal data in what is said: its kinds, what a namespace does about it, what stands for it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Final, Literal, NamedTuple, TypeAlias

PersonalDataRule: TypeAlias = Literal["off", "mark", "mask"]
"""What a namespace does about personal data."""


class PersonalKind(StrEnum):
    """What a stretch of personal data is."""

    EMAIL = "e-mail"
    PHONE = "phone"
    ADDRESS = "address"
    """A postal address: house number and street, with the town where it follows."""
    IP = "ip"
    CARD = "card"
    IBAN = "iban"
    ID = "id"
    """A number by which a state knows somebody: US social security, UK national insurance."""
    SECRET = "secret"  # noqa: S105 - the name of a kind, not a secret
    """A password, key or token."""


class PersonalSpan(NamedTuple):
    """Where personal data stands in a text, as offsets, and what it is."""

    start: int
    end: int
    kind: PersonalKind


TOKENS: Final = {kind: f"[{kind}]" for kind in PersonalKind}
"""What stands in a text in place of what was masked."""
_TOKEN: Final = re.compile(r"\[(?:" + "|".join(re.escape(kind) for kind in PersonalKind) + r")\]")


def with_tokens(text: str, spans: Iterable[PersonalSpan]) -> str:
    """``text`` with a token in place of each span; these are in order and do not overlap."""
    parts: list[str] = []
    at = 0
    for span in spans:
        parts += (text[at : span.start], TOKENS[span.kind])
        at = span.end
    return "".join([*parts, text[at:]])


def holds_token(text: str) -> bool:
    """Whether something was masked in ``text``: what it says of that is no news of anybody."""
    return "[" in text and _TOKEN.search(text) is not None
