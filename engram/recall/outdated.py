"""Turns that say what was replaced since: they come after what replaced it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias, TypeGuard

from engram.consolidation.amendments import worded_by
from engram.domain.memories import (
    DIGEST_FORMS,
    AnyMemory,
    Episode,
    Fact,
    MemoryStatus,
    MemoryType,
    SemanticMemory,
)
from engram.domain.scope import Scope
from engram.domain.slots import IS_THE_USERS
from engram.language.text import bare_stems
from engram.ports import (
    AnyOf,
    Equals,
    Filter,
    MemoryRepository,
)
from engram.recall.at_hand import AtHand
from engram.recall.current import past_period_end
from engram.recall.results import JUST_BELOW, Ranked, by_score
from engram.recall.search import PreparedQuery

# A turn is outdated when every conclusion drawn from it was replaced, or the one that the
# question asks for: "I'm Nora, I live in Ghent", when Nora has moved and is asked where she
# lives. It stays an answer, for what was said was said, but stands behind the conclusion that
# holds now, which is brought up where the search did not.

# Conclusions of the turns in question; more than this many are not looked through.
_MOST_CONCLUSIONS = 200
_Conclusion: TypeAlias = SemanticMemory | Fact
_CONCLUDED = (MemoryType.SEMANTIC, MemoryType.FACTUAL)
_GONE = Equals("status", MemoryStatus.SUPERSEDED.value)
# A value can be replaced by one that was replaced in turn.
_LONGEST_CHAIN = 16
# Where so many of a user's conclusions of a type were replaced, each question asks for its turns.
_MOST_REPLACED = 256
# Turns from which something replaced was concluded, of all users together.
_SUSPECTS_KEPT = 8192


class Outdated:
    """Finds outdated turns, and puts them in their place.

    Args:
        repository: Where conclusions are.
        factor: What the score of an outdated turn is multiplied with.
    """

    def __init__(self, repository: MemoryRepository, factor: float) -> None:
        self.repository = repository
        self.factor = factor
        self._suspects = AtHand(self._read_suspects, _SUSPECTS_KEPT)

    async def demote_outdated(
        self,
        question: PreparedQuery,
        found: Sequence[Ranked],
        passes: Callable[[AnyMemory], bool],
    ) -> list[Ranked]:
        """``found``, outdated turns lowered and behind what replaced them, best first."""
        turns = [one.memory.id for one in found if isinstance(one.memory, Episode)]
        if not turns or question.request.valid_at is not None:
            return list(found)
        turns = await self._suspected(question.scope, turns)
        if not turns:
            return list(found)
        drawn = await self._drawn_from(question.scope, turns)
        by_turn = _conclusions_of(turns, drawn, question)
        stale = {turn: old for turn, told in by_turn.items() if (old := _stale(told, question))}
        if not stale:
            return list(found)
        standing = await self._successors(question, stale)
        partly = {turn for turn, old in stale.items() if len(old) < len(by_turn[turn])}
        # What ended without a successor leaves the rest of such a turn as true as it was: it is
        # marked where that was refuted, and stays in its place.
        stale = {
            turn: old
            for turn, old in stale.items()
            if turn in standing or turn not in partly or _is_refuted(old)
        }
        factors = {turn: 1.0 if turn in partly else self.factor for turn in stale}
        return _reordered(found, stale, standing, passes, factors)

    async def _suspected(self, scope: Scope, turns: Sequence[str]) -> list[str]:
        """Those of the turns from which something was concluded that was replaced since."""
        suspects = await self._suspects.of(scope, self.repository.replacements(scope))
        if suspects is None:
            # The store counts sooner than it lists, and most turns have nothing replaced.
            where = _drawn_from(turns, replaced=True)
            for kind in _CONCLUDED:
                if await self.repository.count(scope, kind, where):
                    break
            else:
                return []
            replaced = await self._drawn_from(scope, turns, replaced=True)
            suspects = frozenset(turn for one in replaced for turn in one.source_episode_ids)
        return [turn for turn in turns if turn in suspects]

    async def _read_suspects(self, scope: Scope) -> frozenset[str] | None:
        """All turns of a user from which something replaced was concluded, where that is little."""
        turns: set[str] = set()
        for kind in _CONCLUDED:
            page = await self.repository.scroll(scope, kind, where=(_GONE,), limit=_MOST_REPLACED)
            if page.cursor is not None:
                return None
            drawn = (one.source_episode_ids for one in page.memories if _can_be_replaced(one))
            turns.update(*drawn)
        return frozenset(turns)

    async def _drawn_from(
        self, scope: Scope, turns: Sequence[str], *, replaced: bool = False
    ) -> list[_Conclusion]:
        """What was concluded from the turns; only what was replaced since, or everything."""
        found: list[_Conclusion] = []
        for kind in _CONCLUDED:
            page = await self.repository.scroll(
                scope,
                kind,
                where=_drawn_from(turns, replaced=replaced),
                descending=True,
                limit=_MOST_CONCLUSIONS,
            )
            found += [one for one in page.memories if _can_be_replaced(one)]
        return found

    async def _successors(
        self, question: PreparedQuery, stale: Mapping[str, Sequence[_Conclusion]]
    ) -> dict[str, list[_Conclusion]]:
        """What stands today in place of the conclusion each outdated turn is asked for, by turn.

        Several where the question's words fit several of its conclusions alike.
        """
        wanted = {one.superseded_by for old in stale.values() for one in old}
        known: dict[str, _Conclusion] = {}
        for _ in range(_LONGEST_CHAIN):
            missing = sorted(key for key in wanted if key is not None and key not in known)
            if not missing:
                break
            read = await self.repository.get(question.scope, missing, _CONCLUDED)
            new = {key: one for key, one in read.items() if isinstance(one, SemanticMemory | Fact)}
            known |= new
            wanted = {one.superseded_by for one in new.values() if _replaced(one, question)}
            if not new:
                break
        standing: dict[str, list[_Conclusion]] = {}
        for turn, old in stale.items():
            for one in _asked_for(old, question):
                if (last := _last(one, known, question)) is not None:
                    standing.setdefault(turn, []).append(last)
        return standing


def _drawn_from(turns: Sequence[str], *, replaced: bool) -> Filter:
    of_turns = AnyOf("source_episode_ids", tuple(turns))
    return (of_turns, _GONE) if replaced else (of_turns,)


def _can_be_replaced(one: AnyMemory) -> TypeGuard[_Conclusion]:
    """Whether newer words can end it: a date or an amount that a turn names stays one it names.

    What is composed of conclusions (a profile, guidance) says nothing that they do not.
    """
    if isinstance(one, SemanticMemory):
        return one.form not in DIGEST_FORMS
    return isinstance(one, Fact) and one.slot is not None


def _conclusions_of(
    turns: Sequence[str], drawn: Sequence[_Conclusion], question: PreparedQuery
) -> dict[str, list[_Conclusion]]:
    wanted = set(turns)
    by_turn: dict[str, list[_Conclusion]] = {}
    for one in drawn:
        if question.visibility.as_of is not None and one.known_at > question.visibility.as_of:
            continue
        # What only has a turn's words, to say that it is over, is not what the turn tells.
        others = worded_by(one) if isinstance(one, SemanticMemory) else ()
        for turn in wanted.intersection(one.source_episode_ids).difference(others):
            by_turn.setdefault(turn, []).append(one)
    return by_turn


def _stale(told: Sequence[_Conclusion], question: PreparedQuery) -> list[_Conclusion]:
    """Those of a turn's conclusions that were replaced; none if it is asked for one that holds."""
    old = [one for one in told if _replaced(one, question)]
    if not old or len(old) == len(told):
        return old
    asked = bare_stems(question.request.query)
    # "My sister Clara lives in Rome": who asks where their sister lives asks for Clara.
    who = [one for one in told if one not in old and _says_who(one, asked)]
    asked |= {word for one in who for word in bare_stems(one.content)}
    shared = _words_shared(asked, told)
    most = max((shared[one.id] for one in told if one not in (*old, *who)), default=0)
    return [one for one in old if shared[one.id] > most]


def _asked_for(old: Sequence[_Conclusion], question: PreparedQuery) -> list[_Conclusion]:
    """Those that share the most words with the question."""
    shared = _words_shared(bare_stems(question.request.query), old)
    most = max(shared.values())
    return [one for one in old if shared[one.id] == most]


def _words_shared(asked: frozenset[str], told: Iterable[_Conclusion]) -> dict[str, int]:
    """How many of the words asked for each holds, by id."""
    return {one.id: len(asked & bare_stems(one.content)) for one in told}


def _says_who(one: _Conclusion, asked: frozenset[str]) -> bool:
    """Whether it says who somebody is whom the question calls by what they are to the user."""
    slot = one.slot
    if slot is None or slot.predicate != IS_THE_USERS or asked & bare_stems(slot.subject):
        return False
    return bool(asked & bare_stems(slot.object)) and len(asked) > len(bare_stems(slot.object))


def _replaced(one: _Conclusion, question: PreparedQuery) -> bool:
    """By the moment one looks from, and by the end of the time that is asked about."""
    moment, as_of = one.superseded_known_at, question.visibility.as_of
    if moment is None or (as_of is not None and moment > as_of):
        return False
    end = past_period_end(question)
    return end is None or moment < end


def _is_refuted(old: Iterable[_Conclusion]) -> bool:
    return any(one.refuted_at is not None for one in old)


def _last(
    old: _Conclusion, known: Mapping[str, _Conclusion], question: PreparedQuery
) -> _Conclusion | None:
    """The end of the chain that begins with ``old``."""
    one: _Conclusion | None = old
    for _ in range(_LONGEST_CHAIN):
        if one is None or not _replaced(one, question):
            return one
        one = known.get(one.superseded_by or "")
    return None


def _reordered(
    found: Sequence[Ranked],
    stale: Mapping[str, Sequence[_Conclusion]],
    standing: Mapping[str, Sequence[_Conclusion]],
    passes: Callable[[AnyMemory], bool],
    factors: Mapping[str, float],
) -> list[Ranked]:
    known = {one.memory.id: one for one in found}
    for one in found:
        if one.memory.id not in stale:
            continue
        refuted = _is_refuted(stale[one.memory.id])
        lowered = one.times(factors[one.memory.id], "outdated")._replace(disputed=refuted)
        successor = max(
            standing.get(one.memory.id, ()),
            key=lambda held: known[held.id].score if held.id in known else 0.0,
            default=None,
        )
        if successor is not None and (successor.id in known or passes(successor)):
            # The turn answers, so what replaced it answers too, and first.
            ahead = known.get(successor.id, Ranked(successor, 0.0))
            if ahead.score * JUST_BELOW < lowered.score:
                ahead = ahead.moved_to(max(ahead.score, one.score), "replaces")
                known[successor.id] = ahead
                lowered = lowered.behind(ahead.score, "outdated")
        known[one.memory.id] = lowered
        if successor is not None:
            _behind_turns(known, one.memory.id, successor)
    return by_score(known.values())


def _behind_turns(known: dict[str, Ranked], turn: str, successor: _Conclusion) -> None:
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
