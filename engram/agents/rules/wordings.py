"""The data file ``wordings.toml`` as values, read once."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from engram.domain.memories import Category


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Wording(_Data):
    """One way to say it.

    Attributes:
        says: A regular expression; see the data file.
        kind: How its object is cut out and checked, where not as the predicate's.
        when: The condition that the clause must meet as well.
        loose: Whether it is less than plain, and counts only for promises.
    """

    says: str
    kind: str | None = None
    when: str | None = None
    loose: bool = False


class Condition(_Data):
    """What must be said as well.

    Attributes:
        of: Whether the clause, its sentence or the whole turn must say it.
        holds: The regular expression.
    """

    of: Literal["clause", "sentence", "turn"]
    holds: str


class Predicate(_Data):
    """What can be stated of somebody, and how.

    Attributes:
        name: What the statement calls it.
        category: Which of the ten it is.
        importance: Of such statements, 0 to 1.
        kind: How its object is cut out and checked, see ``kinds``.
        base: The verb as it follows "I".
        gerund: The verb as it follows "I am".
        can_end: Whether "no longer" makes sense of it.
        can_deny: Whether "not" says something of it.
        past: Wordings after "I" that say it was so, and not that it is.
        says: Further wordings that say that it is so.
        begins: Wordings that say that it began.
        ended: Wordings that say that it is no longer so.
    """

    name: str
    category: Category
    importance: float = Field(ge=0, le=1)
    kind: str
    base: str
    gerund: str
    can_end: bool = True
    can_deny: bool = False
    past: tuple[str, ...] = ()
    says: tuple[str | Wording, ...] = ()
    begins: tuple[str | Wording, ...] = ()
    ended: tuple[str | Wording, ...] = ()


class Templates(_Data):
    """What every predicate can be said with."""

    holds: tuple[str, ...]
    ended: tuple[str, ...]
    ended_any_more: tuple[str, ...]
    denied: tuple[str, ...]
    being_denied: tuple[str, ...]
    being_ended: tuple[str, ...]
    being_ended_any_more: tuple[str, ...]
    was: tuple[str, ...]
    were: tuple[str, ...]


class Wordings(_Data):
    """The data file.

    Attributes:
        conditions: Regular expressions by name.
        topics: By predicate, what is said before "it's ... now" gives it a new value.
        templates: Wordings made for every predicate.
        predicates: In the order in which they are tried.
    """

    conditions: dict[str, Condition]
    topics: dict[str, str]
    templates: Templates
    predicates: tuple[Predicate, ...]


@cache
def wordings() -> Wordings:
    """The data file, checked."""
    text = files("engram.agents.rules").joinpath("wordings.toml").read_text(encoding="utf-8")
    return Wordings.model_validate(tomllib.loads(text))


@cache
def predicates() -> Mapping[str, Predicate]:
    """Every predicate by name."""
    return {one.name: one for one in wordings().predicates}
