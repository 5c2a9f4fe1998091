"""Medicines that somebody takes: which, how much of each, and how often."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Final, NamedTuple

from engram.language.statements.cutting import Thing
from engram.language.statements.objects import MatchContext
from engram.language.vocabulary import expression

_TABLE: Final = "notes"
_AMOUNT: Final = re.compile(r"(?P<amount>\d{1,5}(?:[.,]\d{1,3})?)(?P<unit>[^\d\s]{1,20})")
_THOUSANDS: Final = re.compile(r",(?=\d{3}\Z)")
_MICROGRAMS: Final = {
    **dict.fromkeys(("mcg", "µg", "ug", "microgram", "micrograms"), 1),
    **dict.fromkeys(("mg", "milligram", "milligrams"), 1_000),
    "g": 1_000_000,
}


class Medicine(NamedTuple):
    """A medicine as it is taken.

    Attributes:
        name: What it is called, in lower case: "metformin".
        dose: How much of it each time, without spaces: "500mg"; empty where nobody said.
        times: How often and when, in lower case: "twice a day"; empty where nobody said.
    """

    name: str
    dose: str
    times: str

    def has_another_dose(self, other: Medicine) -> bool:
        """Whether another amount is taken, told in the same kind of unit: 0.05 mg is 50 mcg."""
        mine, theirs = list(_amounts(self.dose)), list(_amounts(other.dose))
        same_units = {unit for _, unit in mine} == {unit for _, unit in theirs}
        return bool(mine) and same_units and mine != theirs

    def is_taken_beside(self, other: Medicine) -> bool:
        """Whether each has its own time of the day: one in the morning, the other at night."""
        part = expression(_TABLE, "time_of_day")
        told = (self.times, other.times)
        return self.times != other.times and all(part.search(times) for times in told)


def _amounts(dose: str) -> Iterator[tuple[Decimal, str]]:
    """Each amount with its unit, whatever is weighed in micrograms."""
    for one in _AMOUNT.finditer(dose):
        amount = Decimal(_THOUSANDS.sub("", one["amount"]).replace(",", "."))
        unit = one["unit"].replace(".", "")
        if unit in _MICROGRAMS:
            yield amount * _MICROGRAMS[unit], "microgram"
        else:
            yield amount, unit.removesuffix("s")


def taken(spoken: MatchContext) -> list[Thing]:
    """Each medicine that is named there, with its dose; none if it is, or may be, another thing.

    Args:
        spoken: What follows "I take".
    """
    one, joint = expression(_TABLE, "a_medicine"), expression(_TABLE, "and_another")
    found: list[Thing] = []
    at = len(spoken.rest) - len(spoken.rest.lstrip())
    end = at
    while (named := one.match(spoken.rest, at)) is not None:
        found.append(Thing(named.group(), named.group("it")))
        end = named.end()
        between = joint.match(spoken.rest, end)
        if between is None:
            break
        at = between.end()
    # "600 mg today" is told in full where it is written down as it was said.
    if _is_taken(spoken.said) and expression(_TABLE, "taken_for_now").match(spoken.rest, end):
        return []
    return found if found and expression(_TABLE, "taken_so").match(spoken.rest, end) else []


def _is_taken(said: str) -> bool:
    """Whether it is said to be taken, not that this began: "I take", but not "they put me on"."""
    return expression(_TABLE, "is_taken").search(said) is not None


def medicine_in(told: str) -> Medicine | None:
    """Which medicine is taken, and how, by what is told of it: "metformin 500 mg twice a day"."""
    found = expression(_TABLE, "a_medicine").fullmatch(told)
    if found is None:
        return None
    name = found["known"] or found["after"] or found["before"]
    dose = expression(_TABLE, "dose")
    doses = ["".join(one.group().split()) for one in dose.finditer(told)]
    times = dose.sub(" ", told).replace(name, " ").replace(" of ", " ")
    return Medicine(name.casefold(), " ".join(doses).casefold(), " ".join(times.split()).casefold())
