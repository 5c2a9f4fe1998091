"""Entity resolution against labelled pairs: precision and recall of "the same"."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from engram.digests.entities import Entity, resolve
from engram.digests.mentions import MentionEvidence, clues_in
from engram.digests.names import name_key, without_title
from engram.domain.digests import EntityKind, Mention

DATA = Path(__file__).parents[1] / "data"


@dataclass
class Score:
    """How many pairs were decided how."""

    right: int = 0
    missed: list[tuple[str, str]] = field(default_factory=list)
    wrong: list[tuple[str, str]] = field(default_factory=list)
    apart: int = 0

    @property
    def precision(self) -> float:
        """Share of those taken for one that are."""
        return self.right / max(self.right + len(self.wrong), 1)

    @property
    def recall(self) -> float:
        """Share of those that are one that are taken for it."""
        return self.right / max(self.right + len(self.missed), 1)


def score(name: str) -> Score:
    """Every pair of a data file decided from its turns."""
    total = Score()
    for line in (DATA / name).read_text("utf-8").splitlines():
        item = json.loads(line)
        entities = entities_of(item["turns"])
        for group in item["same"]:
            for first, second in combinations(group, 2):
                if are_one(entities, first, second):
                    total.right += 1
                else:
                    total.missed.append((first, second))
        for first, second in item["different"]:
            if are_one(entities, first, second):
                total.wrong.append((first, second))
            else:
                total.apart += 1
    return total


def entities_of(turns: list[dict[str, Any]]) -> tuple[Entity, ...]:
    """What turns tell of who is who."""
    clues = MentionEvidence()
    for number, turn in enumerate(turns):
        clues = clues.plus(clues_in(turn["text"], f"e{number}", turn.get("speaker")))
    return resolve(clues.mentions, clues.equations)


def are_one(entities: tuple[Entity, ...], first: str, second: str) -> bool:
    """Whether both names mean one and the same entity, and nothing else."""
    if not (_is_written(entities, first) and _is_written(entities, second)):
        return False
    one, other = find(entities, first), find(entities, second)
    return len(one) == 1 and one == other


def find(entities: Iterable[Entity], wanted: str) -> tuple[Entity, ...]:
    """The entities that a name, address or description can mean.

    A description is a name with what sets its bearer apart: "aunt Florence", "the
    city of Florence", "John Smith from flat 3".
    """
    asked = _asked(wanted)
    found = [
        entity
        for entity in entities
        if any(_means(mention, asked) for mention in entity.mentions)
        and (EntityKind.UNKNOWN in (asked.kind, entity.kind) or asked.kind is entity.kind)
    ]
    exact = [
        entity
        for entity in found
        if any(_means(m, asked) and m.qualifier == asked.qualifier for m in entity.mentions)
    ]
    return tuple(exact or found) if asked.qualifier else tuple(found)


def _asked(wanted: str) -> Mention:
    mentions = clues_in(wanted, "?").mentions
    if len(mentions) == 1:
        return mentions[0]
    return Mention(name=wanted, source_id="?")


def _means(mention: Mention, asked: Mention) -> bool:
    key = name_key(asked.name)
    known = (
        name_key(mention.name),
        without_title(mention.name),
        *(i.partition(":")[2] for i in mention.identifiers),
    )
    return key in known


def _is_written(entities: tuple[Entity, ...], name: str) -> bool:
    """Whether it is a name in these turns, not a common noun that reads alike."""
    described = bool(clues_in(name, "?").mentions) or "@" in name
    return described or any(m.name == name for e in entities for m in e.mentions)
