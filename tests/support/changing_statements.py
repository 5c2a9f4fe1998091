"""Statements in the third person that change: forms, and what they are filled with."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_DATA: Final = Path(__file__).parents[1] / "data"
PER_FORM: Final = 10
PER_FRESH_FORM: Final = 4


@dataclass(frozen=True, slots=True)
class Update:
    """Something that is said, and later said otherwise.

    Attributes:
        form: How, with {s} and {v} for what it is filled with.
        first: What is said first.
        then: What is said later.
        question: What asks for it.
        old: The value of the first.
        new: The value of the later.
    """

    form: str
    first: str
    then: str
    question: str
    old: str
    new: str


def updates(half: str) -> list[list[Update]]:
    """Those of the seen or the held forms, form by form."""
    return _filled(_lines(f"changes.{half}.jsonl"), "changes.pools.json", PER_FORM)


def fresh_updates(*, reworded: bool) -> list[list[Update]]:
    """Those of the forms by somebody who had not read the rules, with values of their own.

    Args:
        reworded: Whether the later statement uses other words, as it stands in the file, or
            those of the first.

    Returns:
        Form by form, four updates each.
    """
    forms = _lines("changes.fresh.jsonl")
    if not reworded:
        forms = [form | {"then": form["first"]} for form in forms]
    return _filled(forms, "changes.fresh.pools.json", PER_FRESH_FORM)


def _filled(forms: list[dict[str, str]], names: str, count: int) -> list[list[Update]]:
    pools = json.loads((_DATA / names).read_text(encoding="utf-8"))
    return [_of(form, pools, count) for form in forms]


def predicates_of_many() -> list[tuple[str, str]]:
    """Two statements each, of predicates that hold many values: the second ends nothing."""
    return [
        (_sentence(one["says"], "Tom", values[0]), _sentence(one["says"], "Tom", values[1]))
        for one in _lines("changes.many.jsonl")
        for values in [one["values"]]
    ]


def _of(form: dict[str, str], pools: dict[str, list[str]], count: int) -> list[Update]:
    subjects, values = pools[form["subjects"]], pools[form["values"]]
    return [
        Update(
            form=form["first"],
            first=_sentence(form["first"], subjects[n], values[n]),
            then=_sentence(form["then"], subjects[n], values[(n + 1) % len(values)]),
            question=form["question"].format(s=subjects[n]),
            old=values[n],
            new=values[(n + 1) % len(values)],
        )
        for n in range(count)
    ]


def _sentence(form: str, subject: str, value: str) -> str:
    said = form.format(s=subject, v=value)
    return said[:1].upper() + said[1:]


def _lines(name: str) -> list[dict[str, str]]:
    text = (_DATA / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]
