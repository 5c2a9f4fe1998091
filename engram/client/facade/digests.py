"""What a memory store tells about whom and what it knows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from engram.client.facade.base import StoreMethods
from engram.client.operations import digests as operations
from engram.client.operations.digests import (
    AboutBoxes,
    AboutSomebody,
    Guidelines,
    MemoryBox,
    Profile,
    Topic,
)
from engram.client.operations.operation import Question


class DigestMethods(StoreMethods):
    """Profiles, topics, boxes and guidelines, as the last consolidation left them."""

    async def profile(self, name: str | None = None, *, as_of: datetime | None = None) -> Profile:
        """What is known about somebody or something, in few lines.

        Args:
            name: Any name of a person, place or project; None for the user's own
                behavioural profile: current values, preferences, habits, principles, skills.
            as_of: The profile as it was then, by the conversation's own dates.

        Raises:
            MemoryNotFound: nobody and nothing of that name has a profile.
            InvalidQuery: several do.
        """
        return await self._perform(operations.PROFILE, AboutSomebody(name=name, as_of=as_of))

    async def profiles(self) -> Sequence[Profile]:
        """Every profile, the user's first, then in order of names; at most 1,000."""
        return await self._perform(operations.PROFILES, Question())

    async def topics(self) -> Sequence[Topic]:
        """Every topic with the memories under it, the largest first."""
        return await self._perform(operations.TOPICS, Question())

    async def boxes(self, session_id: str | None = None) -> Sequence[MemoryBox]:
        """Runs of turns on one topic that take no further turn, in order of time; at most 1,000.

        Args:
            session_id: Only those of this conversation.
        """
        return await self._perform(operations.BOXES, AboutBoxes(session_id=session_id))

    async def guidelines(self) -> Guidelines:
        """What consolidation learnt from what became of memories; extractions read it."""
        return await self._perform(operations.GUIDELINES, Question())
