"""What was said just before a turn: a turn is found by those words too, not only by its own."""

from __future__ import annotations

from collections.abc import Sequence

from engram.domain.memories import Episode, MemoryType
from engram.domain.scope import Scope
from engram.ports import Between, Equals, MemoryRepository

# Numbers are given before storing, and refused turns leave holes.
_FURTHEST_BACK = 4


async def turns_before(
    repository: MemoryRepository,
    scope: Scope,
    episodes: Sequence[Episode],
    together: Sequence[Episode],
) -> list[str | None]:
    """The words of the turn before each of ``episodes``, None where a session begins.

    Args:
        repository: Where earlier turns of the session are.
        scope: Whose.
        episodes: Turns of one session that are about to be stored, in order.
        together: All turns of the same request, also those stored already.
    """
    if not episodes:
        return []
    known = {one.sequence: one.content for one in together}
    first = min(known)
    earlier = await _last_before(repository, scope, episodes[0].session_id, first)
    return [
        next(
            (known[n] for n in range(one.sequence - 1, first - 1, -1) if n in known),
            earlier,
        )
        for one in episodes
    ]


async def _last_before(
    repository: MemoryRepository, scope: Scope, session_id: str | None, sequence: int
) -> str | None:
    if sequence == 0 or session_id is None:
        return None
    page = await repository.scroll(
        scope,
        MemoryType.EPISODIC,
        where=(
            Equals("session_id", session_id),
            Between("sequence", at_least=sequence - _FURTHEST_BACK, at_most=sequence - 1),
        ),
        descending=True,
        limit=_FURTHEST_BACK,
    )
    # A session that was ended and taken up again counts from 0 once more: the latest counts.
    found = [one for one in page.memories if isinstance(one, Episode)]
    last = max(found, key=lambda one: (one.created_at, one.sequence), default=None)
    return None if last is None else last.content
