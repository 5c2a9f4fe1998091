"""How a memory store lets memories harden and fade."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from engram.client.facade.base import StoreMethods
from engram.client.operations import lifecycle as operations
from engram.client.operations.acting import Acted, ActOn
from engram.contracts.lifecycle import DecayReport, PromotionReport
from engram.recall.briefing import Briefed


class LifecycleMethods(StoreMethods):
    """What the user says of memories, and passes over them. All may be called again.

    What acts on one memory takes ``dry_run`` (write nothing; say what would change)
    and ``test_only`` (refuse it, with InvalidInput, for what is no test memory).
    """

    async def confirm(
        self, memory_id: str, *, dry_run: bool = False, test_only: bool = False
    ) -> Acted:
        """The user says that it is so: it counts for more, and comes back if it had left.

        Raises:
            MemoryNotFound: no such memory of this user.
            InvalidInput: it is a turn, which was said whatever one thinks of it.
        """
        return await self._perform(operations.CONFIRM, _on(memory_id, dry_run, test_only))

    async def dispute(
        self, memory_id: str, *, dry_run: bool = False, test_only: bool = False
    ) -> Acted:
        """The user says that it is not so: it counts for less, and stays readable.

        Raises:
            MemoryNotFound: no such memory of this user.
            InvalidInput: it is a turn, which was said whatever one thinks of it.
        """
        return await self._perform(operations.DISPUTE, _on(memory_id, dry_run, test_only))

    async def protect(
        self, memory_id: str, *, dry_run: bool = False, test_only: bool = False
    ) -> Acted:
        """No rule may take it away any more. New knowledge still replaces it.

        Raises:
            MemoryNotFound: no such memory of this user.
        """
        return await self._perform(operations.PROTECT, _on(memory_id, dry_run, test_only))

    async def unprotect(
        self, memory_id: str, *, dry_run: bool = False, test_only: bool = False
    ) -> Acted:
        """Rules apply to it again, from when it was last used.

        Raises:
            MemoryNotFound: no such memory of this user.
        """
        return await self._perform(operations.UNPROTECT, _on(memory_id, dry_run, test_only))

    async def demote(
        self, memory_id: str, *, dry_run: bool = False, test_only: bool = False
    ) -> Acted:
        """Put it aside: archived, it answers only where archived memories are asked for.

        Nothing happens to what is protected or has left. :meth:`confirm` brings a
        conclusion back, :meth:`protect` anything.

        Raises:
            MemoryNotFound: no such memory of this user.
        """
        return await self._perform(operations.DEMOTE, _on(memory_id, dry_run, test_only))

    async def force_promote(
        self, memory_id: str, *, dry_run: bool = False, test_only: bool = False
    ) -> Acted:
        """Promote by hand: make a habit of a piece of knowledge, lift anything else one tier.

        Nothing happens to what was promoted already, or stands at the top.

        Raises:
            MemoryNotFound: no such memory of this user.
        """
        return await self._perform(operations.FORCE_PROMOTE, _on(memory_id, dry_run, test_only))

    async def decay(
        self, *, dry_run: bool = False, test_only: bool = False, at: datetime | None = None
    ) -> DecayReport:
        """Run a decay pass now, and wait for its report.

        Args:
            dry_run: Write nothing; say what would happen.
            test_only: Look at test memories only; without it, at all others.
            at: Judge as of then, with ``dry_run`` only: what will have happened by then.

        Raises:
            InvalidQuery: ``at`` without ``dry_run``, or without timezone.
            TemporalUnavailable: Temporal cannot be reached.
        """
        asked = operations.RunDecay(dry_run=dry_run, test_only=test_only, at=at)
        return await self._perform(operations.DECAY, asked)

    async def promote(self, *, dry_run: bool = False, test_only: bool = False) -> PromotionReport:
        """Run a promotion pass now, and wait for its report.

        Args:
            dry_run: Write nothing; say what would happen.
            test_only: Look at test memories only; without it, at all others.

        Raises:
            TemporalUnavailable: Temporal cannot be reached.
        """
        asked = operations.RunPass(dry_run=dry_run, test_only=test_only)
        return await self._perform(operations.PROMOTE, asked)

    async def briefing(self, *, limit: int = 10, include_test: bool = False) -> Sequence[Briefed]:
        """What matters most about this user, for the start of a conversation, best first.

        Conclusions that hold now, by salience, confidence and use, however long ago.

        Args:
            limit: How many at most, 1 to 200.
            include_test: Whether test memories count.

        Raises:
            InvalidQuery: the limit is out of range.
        """
        asked = operations.Brief(limit=limit, include_test=include_test)
        return await self._perform(operations.BRIEFING, asked)


def _on(memory_id: str, dry_run: bool, test_only: bool) -> ActOn:
    return ActOn(memory_id=memory_id, dry_run=dry_run, test_only=test_only)
