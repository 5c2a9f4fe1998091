"""Medicines that somebody takes: which, how much of each, and how often."""

from __future__ import annotations

from typing import Final, NamedTuple

from engram.language.statements.cutting import Thing
from engram.language.statements.objects import MatchContext
from engram.language.vocabulary import expression

_TABLE: Final = "notes"


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
    return found if found and expression(_TABLE, "taken_so").match(spoken.rest, end) else []


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
