"""Links between memories: how they are added, and how they weaken with time."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from engram.domain.identity import normalise
from engram.domain.memories import DerivedMemory, Link, LinkKind, MemoryStatus, SemanticMemory
from engram.domain.rules import EdgeRules
from engram.domain.slots import ends_something, timeline_key
from engram.lifecycle.policies import days_between, is_disputed

D = TypeVar("D", bound=DerivedMemory)

# --- links weaken at read time unless they are found again

# What happened stays so: these say how a memory came about.
_LASTING_KINDS = frozenset({LinkKind.PROMOTED_TO, LinkKind.CRYSTALLIZED_INTO, LinkKind.BELONGS_TO})
_DENIAL = re.compile(r"\b(?:no|not|never|no longer|nothing|nobody|without)\b|n't\b", re.I)


def edge_confidence(link: Link, now: datetime, rules: EdgeRules | None = None) -> float:
    """How sure a link is at ``now``, 0 to 1; nothing stored changes.

    A step down for each whole window past the grace period since it was last
    found, never below the floor. A link that was weaker than the floor stays as
    weak. Links that say how a memory came about do not weaken.
    """
    rules = rules or EdgeRules()
    if link.kind in _LASTING_KINDS:
        return link.confidence
    late = days_between(link.last_seen, now) - rules.grace_days
    if late <= 0:
        return link.confidence
    lost = rules.per_window * math.floor(late / rules.window_days)
    return max(link.confidence - lost, min(link.confidence, rules.floor))


def reinforced(link: Link, seen: datetime, rules: EdgeRules | None = None) -> Link:
    """The link, found again at ``seen``: surer by one step, at most 1, and stamped.

    Finding it twice at the same moment, as a repeated write does, counts once.
    """
    rules = rules or EdgeRules()
    if seen <= link.last_seen:
        return link
    surer = min(edge_confidence(link, seen, rules) + rules.reinforcement, 1.0)
    return link.model_copy(update={"confidence": surer, "last_seen": seen})


def reinforces(
    first: SemanticMemory, second: SemanticMemory, similarity: float, rules: EdgeRules
) -> bool:
    """Whether the newer of two pieces of knowledge is so like the older that it strengthens it.

    Likeness alone does not tell support from the opposite: what is told of somebody else,
    what says that something is (no longer) so, and another value of one slot support nothing.

    Args:
        first: One of them.
        second: The other.
        similarity: Cosine similarity of their texts, -1 to 1.
        rules: From where on they are alike.
    """
    if similarity < rules.similarity or first.is_test is not second.is_test:
        return False
    if any(m.status is not MemoryStatus.ACTIVE or is_disputed(m) for m in (first, second)):
        return False
    ours, theirs = first.slot, second.slot
    if ours is None or theirs is None:
        return _DENIAL.search(first.content) is None and _DENIAL.search(second.content) is None
    if ours.subject != theirs.subject or ends_something(ours) or ends_something(theirs):
        return False
    return timeline_key(ours) != timeline_key(theirs)


# --- links between memories: resolving what a model refers to, and adding an edge

# Below this, a substring says too little about which memory is meant.
_SHORTEST_SUBSTRING = 8
# A memory that everything is linked to tells nothing; its first links stay.
MAX_LINKS = 64


def resolve_reference(reference: str, contents: Mapping[str, str]) -> str | None:
    """The alias that a reference means, or None.

    Tried in this order: the alias itself, the exact content, the normalised
    content, and a part of the content. What fits two memories fits none.

    Args:
        reference: What the model wrote.
        contents: Content by alias, as the model was shown.
    """
    wanted = reference.strip()
    if wanted in contents:
        return wanted
    exact = [alias for alias, content in contents.items() if content == reference]
    if exact:
        return _only(exact)
    normal = normalise(wanted)
    if not normal:
        return None
    forms = {alias: normalise(content) for alias, content in contents.items()}
    alike = [alias for alias, form in forms.items() if normal in (form, normalise(alias))]
    if alike:
        return _only(alike)
    if len(normal) < _SHORTEST_SUBSTRING:
        return None
    return _only([a for a, form in forms.items() if _is_part(normal, form)])


@dataclass(frozen=True, slots=True)
class Observed:
    """When a link was found, by the conversation's time, not the machine's.

    Attributes:
        first: From when on both ends were known.
        last: When either was last told.
    """

    first: datetime
    last: datetime

    @classmethod
    def between(cls, one: DerivedMemory, other: DerivedMemory) -> Observed:
        """A link of these two: it is as old, and as fresh, as what it links."""
        seen = cls.after(one.known_at, other)
        return cls(seen.first, max(seen.last, one.confidence.last_confirmed))

    @classmethod
    def after(cls, known_at: datetime, other: DerivedMemory) -> Observed:
        """A link of ``other`` and what became known then, and was not told again since."""
        first = max(known_at, other.known_at)
        return cls(first, max(first, other.confidence.last_confirmed))

    @classmethod
    def at(cls, moment: datetime) -> Observed:
        """A link that is found at one moment, by what happens then."""
        return cls(moment, moment)


def linked(
    memory: DerivedMemory,
    target_id: str,
    kind: LinkKind,
    confidence: float,
    observed: Observed,
    *,
    past_the_bound: bool = False,
    rules: EdgeRules | None = None,
    instructions_version: str | None = None,
) -> DerivedMemory | None:
    """``memory`` with an edge to the target; None if nothing changes.

    Observing an edge again adds none: it grows surer, and the time is stamped. At one
    moment it is observed once, so that a retry changes nothing. A memory has at most
    ``MAX_LINKS`` edges; ``past_the_bound`` adds this one all the same. ``rules`` say how much
    surer an edge grows; ``instructions_version`` by which instructions it was found.
    """
    if target_id == memory.id:
        return None
    same = link_to(memory, target_id, kind)
    if same is None:
        if is_full(memory) and not past_the_bound:
            return None
        edge = Link(
            target_id=target_id,
            kind=kind,
            confidence=confidence,
            first_seen=observed.first,
            last_seen=observed.last,
            instructions_version=instructions_version,
        )
        return memory.model_copy(update={"links": (*memory.links, edge)})
    seen = reinforced(same, observed.last, rules)
    stronger = seen.model_copy(
        update={
            "confidence": max(seen.confidence, confidence),
            # An older source that arrives late makes both ends known earlier.
            "first_seen": min(seen.first_seen, observed.first),
            "instructions_version": instructions_version or seen.instructions_version,
        }
    )
    if stronger == same:
        return None
    kept = tuple(stronger if x is same else x for x in memory.links)
    return memory.model_copy(update={"links": kept})


def is_full(memory: DerivedMemory) -> bool:
    """Whether a further edge finds no room."""
    return len(memory.links) >= MAX_LINKS


def link_to(memory: DerivedMemory, target_id: str, kind: LinkKind) -> Link | None:
    """The edge of that kind to the target, if there is one."""
    return next((x for x in memory.links if x.target_id == target_id and x.kind == kind), None)


def without_links(memory: DerivedMemory, ends: Callable[[Link], bool]) -> DerivedMemory | None:
    """``memory`` without the edges of which that is true; None if it has none of them."""
    kept = tuple(link for link in memory.links if not ends(link))
    return memory.model_copy(update={"links": kept}) if len(kept) < len(memory.links) else None


# --- what leads to memories that are gone


def parted(memory: D, gone: Collection[str], heirs: Mapping[str, str | None]) -> D:
    """``memory`` without what leads to these, its disputes aside.

    Args:
        memory: Stays.
        gone: Ids of what goes.
        heirs: What had replaced each of them, if anything: that replaces what they replaced.
    """
    changes: dict[str, object] = {
        "links": tuple(link for link in memory.links if link.target_id not in gone),
        "supersedes": tuple(one for one in memory.supersedes if one not in gone),
    }
    if memory.superseded_by in gone:
        changes["superseded_by"] = heirs.get(memory.superseded_by or "")
    if isinstance(memory, SemanticMemory):
        changes["settled_with"] = tuple(m for m in memory.settled_with if m not in gone)
        if memory.duplicate_of in gone:
            changes["duplicate_of"] = None
    return memory.model_copy(update=changes)


def heirs_of(gone: Iterable[DerivedMemory]) -> dict[str, str | None]:
    """What replaced each of these, past all that is gone itself; None where nothing did."""
    replaced = {memory.id: memory.superseded_by for memory in gone}
    heirs: dict[str, str | None] = {}
    for memory_id, successor in replaced.items():
        heir = successor
        seen = {memory_id}
        while heir in replaced and heir not in seen:
            seen.add(heir)
            heir = replaced[heir]
        heirs[memory_id] = None if heir in replaced else heir
    return heirs


def referred_to(gone: Iterable[DerivedMemory]) -> frozenset[str]:
    """The memories that refer back to these: links are two-way, and so is history."""
    found: set[str] = set()
    for memory in gone:
        found.update(memory.related_ids, memory.supersedes)
        found.update(one for one in (memory.superseded_by,) if one is not None)
        if isinstance(memory, SemanticMemory):
            found.update(memory.disputed_with, memory.settled_with)
            found.update(one for one in (memory.duplicate_of,) if one is not None)
    return frozenset(found)


def _only(aliases: list[str]) -> str | None:
    return aliases[0] if len(aliases) == 1 else None


def _is_part(wanted: str, form: str) -> bool:
    return f" {wanted} " in f" {form} " or wanted in form
