"""Turns that say what was replaced since: they come after what replaced it.

A turn is outdated when every conclusion drawn from it was replaced. It stays an
answer, for what was said was said, but stands behind the conclusion that holds
now, which is brought up where the search did not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from engram.domain.memories import (
    AnyMemory,
    Episode,
    MemoryStatus,
    MemoryType,
    SemanticMemory,
)
from engram.ports import AnyOf, Equals, Filter, MemoryRepository
from engram.recall.ranked import Ranked, by_score
from engram.recall.search import Question
from engram.recall.succession import JUST_BELOW

# Conclusions of the turns in question; more than this many are not looked through.
_MOST = 200
# A value can be replaced by one that was replaced in turn.
_LONGEST_CHAIN = 16


@dataclass(frozen=True, slots=True)
class Outdated:
    """Finds outdated turns, and puts them in their place.

    Args:
        repository: Where conclusions are.
        factor: What the score of an outdated turn is multiplied with.
    """

    repository: MemoryRepository
    factor: float

    async def put_behind(
        self,
        question: Question,
        found: Sequence[Ranked],
        passes: Callable[[AnyMemory], bool],
    ) -> list[Ranked]:
        """``found``, outdated turns lowered and behind what replaced them, best first."""
        turns = [one.memory.id for one in found if isinstance(one.memory, Episode)]
        if not turns or question.request.valid_at is not None:
            return list(found)
        # Most turns have nothing replaced, which the store tells at once.
        replaced = await self._drawn_from(question, turns, replaced=True)
        if not replaced:
            return list(found)
        suspects = {turn for one in replaced for turn in one.source_episode_ids}
        turns = [turn for turn in turns if turn in suspects]
        drawn = await self._drawn_from(question, turns, replaced=False)
        stale = _all_replaced(drawn, turns, question)
        if not stale:
            return list(found)
        standing = await self._successors(question, stale)
        return _reordered(found, stale, standing, passes, self.factor)

    async def _drawn_from(
        self, question: Question, turns: Sequence[str], *, replaced: bool
    ) -> list[SemanticMemory]:
        """What was concluded from the turns; only what was replaced since, or everything."""
        of_turns: Filter = (AnyOf("source_episode_ids", tuple(turns)),)
        gone: Filter = (Equals("status", MemoryStatus.SUPERSEDED.value),) if replaced else ()
        page = await self.repository.scroll(
            question.scope,
            MemoryType.SEMANTIC,
            where=(*of_turns, *gone),
            descending=True,
            limit=_MOST,
        )
        return [one for one in page.memories if isinstance(one, SemanticMemory)]

    async def _successors(
        self, question: Question, stale: Mapping[str, Sequence[SemanticMemory]]
    ) -> dict[str, SemanticMemory]:
        """What stands today in place of each outdated turn's conclusions, by turn."""
        wanted = {one.superseded_by for old in stale.values() for one in old}
        known: dict[str, SemanticMemory] = {}
        for _ in range(_LONGEST_CHAIN):
            missing = sorted(key for key in wanted if key is not None and key not in known)
            if not missing:
                break
            read = await self.repository.get(question.scope, missing, (MemoryType.SEMANTIC,))
            new = {key: one for key, one in read.items() if isinstance(one, SemanticMemory)}
            known |= new
            wanted = {one.superseded_by for one in new.values() if _replaced(one, question)}
            if not new:
                break
        return {
            turn: standing
            for turn, old in stale.items()
            if (standing := _last(old[0], known, question)) is not None
        }


def _all_replaced(
    drawn: Sequence[SemanticMemory], turns: Sequence[str], question: Question
) -> dict[str, list[SemanticMemory]]:
    wanted = set(turns)
    by_turn: dict[str, list[SemanticMemory]] = {}
    for one in drawn:
        if question.visibility.as_of is not None and one.known_at > question.visibility.as_of:
            continue
        for turn in wanted.intersection(one.source_episode_ids):
            by_turn.setdefault(turn, []).append(one)
    return {
        turn: old for turn, old in by_turn.items() if all(_replaced(one, question) for one in old)
    }


def _replaced(one: SemanticMemory, question: Question) -> bool:
    moment = one.superseded_known_at
    as_of = question.visibility.as_of
    return moment is not None and (as_of is None or moment <= as_of)


def _last(
    old: SemanticMemory, known: Mapping[str, SemanticMemory], question: Question
) -> SemanticMemory | None:
    """The end of the chain that begins with ``old``."""
    one: SemanticMemory | None = old
    for _ in range(_LONGEST_CHAIN):
        if one is None or not _replaced(one, question):
            return one
        one = known.get(one.superseded_by or "")
    return None


def _reordered(
    found: Sequence[Ranked],
    stale: Mapping[str, Sequence[SemanticMemory]],
    standing: Mapping[str, SemanticMemory],
    passes: Callable[[AnyMemory], bool],
    factor: float,
) -> list[Ranked]:
    known = {one.memory.id: one for one in found}
    for one in found:
        if one.memory.id not in stale:
            continue
        lowered = one.times(factor, "outdated")
        successor = standing.get(one.memory.id)
        if successor is not None and (successor.id in known or passes(successor)):
            # The turn answers, so what replaced it answers too, and first.
            ahead = known.get(successor.id, Ranked(successor, 0.0))
            if ahead.score * JUST_BELOW < lowered.score:
                known[successor.id] = ahead.moved_to(max(ahead.score, one.score), "replaces")
        known[one.memory.id] = lowered
        if successor is not None:
            _behind_turns(known, one.memory.id, successor)
    return by_score(list(known.values()))


def _behind_turns(known: dict[str, Ranked], turn: str, successor: SemanticMemory) -> None:
    """The outdated turn behind the best turn that says what holds now, where one was found."""
    newer = [known[key] for key in successor.source_episode_ids if key in known and key != turn]
    if not newer:
        return
    best = max(newer, key=lambda one: one.score)
    old = known[turn]
    if best.score * JUST_BELOW < old.score:
        # They change places: whatever made the old one answer holds for the new one.
        known[best.memory.id] = best.moved_to(old.score, "replaces")
        known[turn] = old.moved_to(old.score * JUST_BELOW, "outdated")
