"""What is left out of what rules found, though words stand there that say it elsewhere.

Wordings tell what people mean by them most of the time. What else they mean by them is told here,
once for all rules: ``data/doubts.toml``. What is doubtful is not stated at all, as a statement may
end or replace another one.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Annotated, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict

from engram.domain.kept import kept
from engram.language.names import can_name_a_person, tells_where_one_belongs
from engram.language.statements.cutting import Thing
from engram.language.statements.objects import is_origin
from engram.language.statements.predicates import is_firm
from engram.language.vocabulary import (
    alternatives,
    expression_text,
    load,
    vocabulary,
    written_out,
)


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(written_out(_words(), pattern))


@cache
def _words() -> dict[str, str]:
    """What entries name in braces: [words], and what is known by name elsewhere."""
    known = vocabulary()
    return {
        **load("doubts")["words"],
        "known_place": rf"(?:the )?(?:{alternatives(known.places)})",
        "known_tool": alternatives(known.products),
        "medicine": expression_text("notes", "medicine"),
    }


_Words: TypeAlias = Annotated[re.Pattern[str], BeforeValidator(_compiled)]


class Doubt(BaseModel):
    """An entry of ``doubts.toml``; see there."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    of: _Words
    holds: bool | None = None
    no_name: bool = False
    belongs: bool = False
    no_firm: bool = False
    thing: _Words | None = None
    before: _Words | None = None
    after: _Words | None = None
    says: _Words | None = None
    unless: _Words | None = None


class Doubts:
    """What speaks against what is read out of a turn.

    Args:
        turn: All of what was said.
    """

    def __init__(self, turn: str) -> None:
        self._turn = turn
        # A turn may state hundreds of things, and is asked the same of each.
        self._says: dict[re.Pattern[str], bool] = {}

    def are_about(self, predicate: str, thing: str, sentence: str, *, holds: bool) -> bool:
        """Whether a sentence of the turn does not say what it was read as.

        Args:
            predicate: What was read.
            thing: Of what, or of whom.
            sentence: In which words.
            holds: Whether it was read as being so.
        """
        at = sentence.find(thing) if thing else -1
        at = sentence.casefold().find(thing.casefold()) if thing and at < 0 else at
        before = sentence[:at] if at >= 0 else ""
        after = sentence[at + len(thing) :] if at >= 0 else ""
        return any(
            (rule.holds is None or rule.holds is holds)
            and (not rule.no_name or not can_name_a_person(thing))
            and (not rule.belongs or is_origin(thing) or tells_where_one_belongs(thing))
            and (not rule.no_firm or not is_firm(Thing(thing, thing)))
            and (rule.thing is None or rule.thing.search(thing) is not None)
            and (rule.before is None or rule.before.search(before) is not None)
            and (rule.after is None or rule.after.match(after) is not None)
            and (rule.says is None or rule.says.search(sentence) is not None)
            and (rule.unless is None or not self._has(rule.unless))
            for rule in _of(predicate)
        )

    def _has(self, words: re.Pattern[str]) -> bool:
        if words not in self._says:
            self._says[words] = words.search(self._turn) is not None
        return self._says[words]


# Predicates may hold what users said: "favourite painter".
@kept(256)
def _of(predicate: str) -> tuple[Doubt, ...]:
    return tuple(rule for rule in _rules() if rule.of.fullmatch(predicate))


@cache
def _rules() -> tuple[Doubt, ...]:
    return tuple(Doubt.model_validate(entry) for entry in load("doubts")["doubts"])
