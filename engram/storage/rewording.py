"""A turn is found by the words of the turn before it, too; not once that is forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from engram.domain.memories import Episode, MemoryType
from engram.domain.scope import Scope
from engram.domain.turns import JUST_BEFORE, SaidAt, is_just_before
from engram.ports import Between, Equals, MemoryRepository, SparseVector
from engram.storage.updates import existing

EncodeTurn: TypeAlias = Callable[[str, str | None], SparseVector]
"""The words by which a turn is found: its own, and those of the turn before it."""
# Turns that were handed over at once can all have the same turn before them.
_MOST_FOLLOWING: Final = 64


async def words_let_go(
    repository: MemoryRepository, scope: Scope, gone: Iterable[SaidAt], encode: EncodeTurn
) -> None:
    """Let no turn be found any more by the words of a turn before it that is forgotten.

    Done before that is deleted, and once more after it for those that were stored meanwhile;
    whoever stores a turn by such words looks after it whether they are still said.

    Args:
        repository: Where turns are kept.
        scope: Whose.
        gone: Where the forgotten turns stood.
        encode: Gives a turn its words.
    """
    places = tuple(gone)
    while places:
        words: dict[str, SparseVector] = {}
        taken: dict[str, Episode] = {}
        for place in places:
            before: Episode | None = None
            for turn in await _following(repository, scope, place):
                said = None
                # A session that was taken up again counts from 0 once more.
                if before is not None and before.sequence < turn.sequence:
                    near = is_just_before(before.timestamp, turn.timestamp)
                    said = before.content if near else None
                    taken[before.id] = before
                words[turn.id] = encode(turn.indexed_text, said)
                before = turn
        if words:
            await repository.reword(scope, MemoryType.EPISODIC, words)
        # What was forgotten meanwhile let its words go before they were written here.
        left = await existing(repository, scope, taken, (MemoryType.EPISODIC,))
        places = tuple(SaidAt.of(turn) for key, turn in taken.items() if key not in left)


async def _following(repository: MemoryRepository, scope: Scope, place: SaidAt) -> list[Episode]:
    """The turns that may have that one before them, in the order in which they were stored."""
    first = place.sequence + 1
    # Numbers are given before storing, and calls that were refused leave holes of any size.
    for last in (place.sequence + _MOST_FOLLOWING, None):
        page = await repository.scroll(
            scope,
            MemoryType.EPISODIC,
            where=(
                Equals("session_id", place.session_id),
                Between("sequence", at_least=first, at_most=last),
                Between("known_at", at_most=place.timestamp + JUST_BEFORE),
            ),
            limit=_MOST_FOLLOWING,
        )
        found = [one for one in page.memories if isinstance(one, Episode)]
        if found:
            return sorted(found, key=lambda one: (one.created_at, one.sequence))
    return []
