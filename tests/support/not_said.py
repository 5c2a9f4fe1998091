"""Turns with what they say, and do not say, of their speaker: tests/data/*said.*.txt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from engram.agents.requests import StatedKnowledge
from tests.support.slot_labels import answered
from tests.support.statement_labels import DATA

_END: Final = "END "
_MARRIED: Final = frozenset({"is married to", "is engaged to", "wife is", "husband is"})
_LIKE: Final = {
    "has": frozenset({"has", "owns"}),
    "owns": frozenset({"has", "owns"}),
    "uses": frozenset({"uses", "switched to"}),
    "works as": frozenset({"works as", "job is"}),
    "is married to": _MARRIED,
}


def lines(name: str) -> Iterator[tuple[str, ...]]:
    """The parts of each line: what is said, a predicate, and where it is said its object."""
    for line in (DATA / name).read_text("utf-8").splitlines():
        if not line.startswith("#"):
            yield tuple(part.strip() for part in line.split(" ## "))


def concluded(said: str) -> list[StatedKnowledge]:
    """What the last of these turns states as a predicate and its object."""
    turns = said.split(" || ")
    found = answered(*({"text": text} for text in turns))
    return [one for one in found if one.predicate and f"e{len(turns)}" in one.sources]


def states(one: StatedKnowledge, predicate: str) -> bool:
    """Whether that is what a line means by its predicate: "END uses", "has relation"."""
    if predicate == "anything":
        return True
    if one.holds is predicate.startswith(_END):
        return False
    meant, told = predicate.removeprefix(_END), one.predicate or ""
    if meant == "has relation":
        return told.endswith("'s") or told in _MARRIED or (told.endswith(" is") and _is_name(one))
    return told in _LIKE.get(meant, {meant})


def _is_name(one: StatedKnowledge) -> bool:
    return (one.object or "")[:1].isupper()


def names(one: StatedKnowledge, value: str) -> bool:
    """Whether it is about that: in its object, in who it is, or in its sentence."""
    return value.casefold() in f"{one.subject} {one.object} {one.content}".casefold()
