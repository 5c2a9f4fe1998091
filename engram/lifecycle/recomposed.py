"""Digests of what is erased: they go with it, and are composed again from what is left."""

from __future__ import annotations

from dataclasses import dataclass, field

from engram.domain.digests import BoxDetail, ProfileDetail, SealReason, TopicDetail
from engram.domain.memories import DerivedMemory, MemoryForm, SemanticMemory
from engram.ports import AnyOf

# Guidance is not among them: it counts, and quotes nobody.
_RECOMPOSED = frozenset({MemoryForm.PROFILE, MemoryForm.TOPIC, MemoryForm.BOX})
RECOMPOSED = AnyOf("form", tuple(sorted(form.value for form in _RECOMPOSED)))
"""Those that are composed again from what is left."""


def is_recomposed(memory: DerivedMemory) -> bool:
    """Whether it is composed from memories, and is composed again from those that are left."""
    return isinstance(memory, SemanticMemory) and memory.form in _RECOMPOSED


@dataclass(slots=True)
class Basis:
    """What digests that go were composed from.

    Attributes:
        composed: Memories and turns whose profiles and topics are composed again.
        boxed: Turns whose boxes are made again.
        ended: Sessions whose last box is among them: they get no further turn.
    """

    composed: set[str] = field(default_factory=set)
    boxed: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)

    def add(self, digest: SemanticMemory) -> None:
        """One more that goes."""
        match digest.detail:
            case ProfileDetail() as profile:
                self.composed |= {one for line in profile.lines for one in line.memory_ids}
                self.composed |= {one.source_id for one in profile.mentions}
                self.composed |= {one.source_id for one in profile.equations}
                self.composed |= set(profile.omitted)
            case TopicDetail() as topic:
                self.composed |= set(topic.member_ids)
            case BoxDetail() as box:
                self.boxed |= set(box.episode_ids)
                if box.sealed is SealReason.ENDED and box.session_id is not None:
                    self.ended.add(box.session_id)
