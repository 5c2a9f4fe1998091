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
    near = place.sequence + _MOST_FOLLOWING
    soon = Between("known_at", at_least=place.timestamp, at_most=place.timestamp + JUST_BEFORE)
    found = await _turns(repository, scope, place, soon, near)
    if not found:
        # Numbers are given before storing, and calls that were refused leave holes of any size.
        found = await _turns(repository, scope, place, soon, None)
    # A clock may have been set back. Whoever takes a session up again and again says much else
    # under the same numbers: of that, what lies next in time.
    earlier = Between("known_at", at_most=place.timestamp)
    found |= await _turns(repository, scope, place, earlier, near)
    return sorted(found.values(), key=lambda one: (one.created_at, one.sequence))


async def _turns(
    repository: MemoryRepository, scope: Scope, place: SaidAt, when: Between, last: int | None
) -> dict[str, Episode]:
    page = await repository.scroll(
        scope,
        MemoryType.EPISODIC,
        where=(
            Equals("session_id", place.session_id),
            Between("sequence", at_least=place.sequence + 1, at_most=last),
            when,
        ),
        descending=when.at_least is None,
        limit=_MOST_FOLLOWING,
    )
    return {one.id: one for one in page.memories if isinstance(one, Episode)}
