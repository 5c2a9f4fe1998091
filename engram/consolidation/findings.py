"""Storing what deterministic patterns found: facts and negations, each once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, TypeAlias

from engram.consolidation.amendments import corroborated, traits
from engram.consolidation.forgetting import let_go
from engram.contracts.messages import Population
from engram.domain.confidence import (
    PATTERN_EXTRACTION,
    SEED_FRESH,
    Confidence,
    ExtractionMethod,
    Verification,
)
from engram.domain.identity import content_hash, derived_id, with_test_namespace
from engram.domain.memories import (
    DEFAULT_IMPORTANCE,
    AnyMemory,
    DerivedMemory,
    Episode,
    Fact,
    FactCategory,
    LifecycleState,
    MemoryStatus,
    MemoryType,
    NegationFact,
    Slot,
    replaced,
    replacing,
)
from engram.domain.occasions import occasions_of
from engram.domain.scope import Scope
from engram.domain.slots import stored_as
from engram.giving_way import yielding_to_event_loop
from engram.language.found import Extraction, FoundNegation, PatternFact
from engram.lifecycle.due import of_population
from engram.ports import AnyOf, Embedder, Equals, Filter, MemoryRepository, NewMemory
from engram.storage.updates import all_of, existing, update_memories

_FOUND: Final = (MemoryType.FACTUAL, MemoryType.NEGATION)
ReadEpisode = tuple[Episode, Extraction]
FindingIds = tuple[tuple[str, ...], tuple[str, ...]]
_SlotKey: TypeAlias = tuple[str, str, bool]
"""Of whom something is claimed, as what, and whether in a test."""


class Writing(Protocol):
    """Whose memory is written, when, and by which run."""

    @property
    def scope(self) -> Scope:
        """Whose."""
        ...

    @property
    def now(self) -> datetime:
        """When, by the workflow's clock."""
        ...

    @property
    def workflow_id(self) -> str:
        """By which workflow."""
        ...

    @property
    def run_id(self) -> str:
        """By which run of it."""
        ...

    @property
    def epoch(self) -> int | None:
        """The user's when the work began; see :meth:`engram.ports.MemoryRepository.epoch`."""
        ...


@dataclass
class _Finding:
    """One thing found in one episode, and the memory it would be if it were new.

    Attributes:
        over: Whether the episode says of it that it is not so any more.
    """

    episode: Episode
    memory: Fact | NegationFact
    over: bool = False

    @property
    def claim(self) -> Slot | None:
        """Whose it is said to be here, and which of theirs."""
        return self.memory.slot if isinstance(self.memory, Fact) else None

    @property
    def slot_key(self) -> _SlotKey | None:
        """The slot that it is claimed for."""
        if self.claim is None:
            return None
        return self.claim.subject, self.claim.predicate, self.memory.is_test


class _Ended(NamedTuple):
    """A fact that gave way: to which memory, and when."""

    memory_id: str
    by: str
    when: datetime


class FindingsStore:
    """Keeps findings under ids derived from what they say.

    Args:
        repository: Where memories are kept.
        embedder: Gives them their vectors.
        new_write_id: Gives a fresh id for each write.
        seed: Where the corroboration of what is new starts.
    """

    def __init__(
        self,
        repository: MemoryRepository,
        embedder: Embedder,
        new_write_id: Callable[[], str],
        *,
        seed: float = SEED_FRESH,
    ) -> None:
        self._repository = repository
        self._embedder = embedder
        self._new_write_id = new_write_id
        self._seed = seed

    async def store(
        self,
        request: Writing,
        found: Sequence[ReadEpisode],
        answered: Mapping[str, str] = MappingProxyType({}),
    ) -> list[FindingIds]:
        """Insert what is new, corroborate what is known; the ids by turn.

        Args:
            request: Whose, when, and by which run.
            found: Turns, and what is found in them.
            answered: By turn, the one that it answers: what is found may have its words.
        """
        turns = [
            [
                _Finding(episode, self._fact(request, episode, fact), fact.over)
                for fact in extraction.facts
            ]
            + [
                _Finding(episode, self._negation(request, episode, n, answered.get(episode.id)))
                for n in extraction.negations
            ]
            async for episode, extraction in yielding_to_event_loop(found)
        ]
        if any(turns):
            stored = await self._generations(request, [one for turn in turns for one in turn])
            rounds = list(_rounds(turns, {one.identity for one in stored.values()}))
            ends = await self._settle(request, rounds, stored)
            findings = [one for told in rounds for one in told]
            await self._insert(request, findings, stored)
            await self._corroborate(request, findings)
            await self._replace(request.scope, ends)
            await self._replace_outdated(request, findings, rounds[-1])
            await self._check_sources(request, findings)
        return [
            (
                tuple(f.memory.id for f in turn if isinstance(f.memory, Fact)),
                tuple(f.memory.id for f in turn if isinstance(f.memory, NegationFact)),
            )
            for turn in turns
        ]

    async def _generations(
        self, request: Writing, findings: Sequence[_Finding]
    ) -> dict[str, Fact | NegationFact]:
        """What is stored of these, with the generations after those that are history.

        Each time twice as many are read at once: what returned often takes few reads.
        """
        stored: dict[str, Fact | NegationFact] = {}
        first, many = 0, 1
        while findings:
            numbers = range(first, first + many)
            asked = {
                key: [_generation_id(request, same[0].memory, number) for number in numbers]
                for key, same in _by_memory(findings).items()
            }
            stored |= await self._stored(request, {key for ids in asked.values() for key in ids})
            findings = [f for f in findings if _is_history(stored.get(asked[f.memory.id][-1]), f)]
            first, many = first + many, 2 * many
        return stored

    async def _settle(
        self,
        request: Writing,
        rounds: Sequence[Sequence[_Finding]],
        stored: Mapping[str, Fact | NegationFact],
    ) -> list[_Ended]:
        """Give each finding the generation that is not history yet.

        Returns:
            What gave way in all rounds but the last, which nothing has to wait for.
        """
        slots = _slots_of(one for findings in rounds for one in findings) if rounds[1:] else []
        rivals = {slot: await self._rivals(request.scope, slot) for slot in slots}
        becoming = _Becoming(request, stored, rivals)
        ends: list[_Ended] = []
        async for findings in yielding_to_event_loop(rounds):
            becoming.settle(findings)
            if findings is not rounds[-1]:
                ends += becoming.take_up(findings)
        return ends

    async def _stored(
        self, request: Writing, ids: Collection[str]
    ) -> dict[str, Fact | NegationFact]:
        found = await self._repository.get(request.scope, ids, _FOUND, fresh=True)
        return {key: m for key, m in found.items() if isinstance(m, Fact | NegationFact)}

    async def _insert(
        self,
        request: Writing,
        findings: Sequence[_Finding],
        stored: Collection[str],
    ) -> None:
        fresh: dict[str, list[_Finding]] = {}
        for finding in findings:
            if finding.memory.id not in stored:
                fresh.setdefault(finding.memory.id, []).append(finding)
        if not fresh:
            return
        # What one batch says several times is stored once, with all its sources.
        memories = [self._new(same) for same in fresh.values()]
        vectors = await self._embedder.embed_documents([m.indexed_text for m in memories])
        await self._repository.insert(
            request.scope,
            [NewMemory(memory, vector) for memory, vector in zip(memories, vectors, strict=True)],
            epoch=request.epoch,
        )

    def _new(self, same: Sequence[_Finding]) -> Fact | NegationFact:
        told = _told_by(same[0].memory, same)
        return told.model_copy(update={"write_id": self._new_write_id()})

    async def _corroborate(self, request: Writing, findings: Sequence[_Finding]) -> None:
        """Add the episodes that the stored memories do not name yet.

        Inserting leaves alone what another writer stored a moment before, so
        every finding is read back here, the fresh ones too.
        """
        told = _by_memory(findings)

        def with_sources(memory: AnyMemory) -> AnyMemory | None:
            if not isinstance(memory, Fact | NegationFact):
                return None
            more = _told_by(memory, told[memory.id])
            return None if more is memory else more

        await update_memories(
            self._repository,
            request.scope,
            list(told),
            with_sources,
            new_write_id=self._new_write_id,
            types=_FOUND,
        )

    async def _replace_outdated(
        self, request: Writing, findings: Sequence[_Finding], latest: Sequence[_Finding]
    ) -> None:
        """Note what took the place of what: by the conversation's time, whatever came first here.

        Everything new is stored by now: an attempt that ends between two writes leaves both
        standing, and the next one goes on. Of two writers at once, the later one sees both.

        Args:
            request: Whose, and when.
            findings: All that is stored just now.
            latest: Those of the last round.
        """
        pairs: list[tuple[Fact, Fact]] = []
        for slot in _slots_of(findings):
            rivals = await self._rivals(request.scope, slot)
            # What was refuted neither took anything's place nor gave way.
            pairs += succession([one for one in rivals if one.refuted_at is None])
        await self._replace(request.scope, _ends(pairs, latest))

    async def place_again(self, scope: Scope, fact: Fact) -> None:
        """Give a fact that holds again its place between what was told before it and after it."""
        pairs = succession(await self._in_force(scope, fact))
        # What was told before and after it gave way for good when it was first told after that.
        whens = (n.known_at if n.known_at > _last_told(o) else _last_told(n) for o, n in pairs)
        ends = (
            _Ended(o.id, n.id, when)
            for (o, n), when in zip(pairs, whens, strict=True)
            if not _is_noted(o, n, when)
        )
        await self._replace(scope, list(ends))

    async def told_after(self, scope: Scope, fact: Fact) -> tuple[str, ...]:
        """What was said to be in its place, later than it was; by their ids."""
        return tuple(
            one.id
            for one in await self._in_force(scope, fact)
            if _last_told(one) > _last_told(fact) and not _says_more(fact, one)
        )

    async def _in_force(self, scope: Scope, fact: Fact) -> list[Fact]:
        """What was said of its slot and was not refuted."""
        if fact.slot is None:
            return []
        rivals = await self._rivals(scope, (fact.slot.subject, fact.slot.predicate, fact.is_test))
        return [one for one in rivals if one.refuted_at is None]

    async def _rivals(self, scope: Scope, slot: _SlotKey) -> list[Fact]:
        """Every fact that was said to be this one of this person."""
        subject, predicate, is_test = slot
        where: Filter = (
            Equals("slot.subject", subject),
            AnyOf("slot.predicate", stored_as(predicate)),
            of_population(Population.TEST if is_test else Population.REAL),
        )
        return await all_of(self._repository, scope, Fact, where=where)

    async def _replace(self, scope: Scope, ends: Sequence[_Ended]) -> None:
        """Note each at both ends, first at those that stay."""
        took_over, gave_way = _by_end(ends)

        def staying(memory: AnyMemory) -> AnyMemory | None:
            if not isinstance(memory, Fact | NegationFact):
                return None
            now = _taking_over(memory, took_over[memory.id])
            return None if now is memory else now

        def going(memory: AnyMemory) -> AnyMemory | None:
            if not isinstance(memory, Fact):
                return None
            now = _giving_way(memory, gave_way[memory.id])
            return None if now is memory else now

        for ids, changed in ((took_over, staying), (gave_way, going)):
            await update_memories(
                self._repository,
                scope,
                ids,
                changed,
                new_write_id=self._new_write_id,
                types=_FOUND,
            )

    async def _check_sources(self, request: Writing, findings: Sequence[_Finding]) -> None:
        """Let go of turns that were forgotten while what they state was being stored."""
        wanted = {source for one in findings for source in one.memory.source_episode_ids}
        gone = wanted - await existing(
            self._repository, request.scope, wanted, [MemoryType.EPISODIC]
        )
        if gone:
            ids = {finding.memory.id for finding in findings}
            await let_go(self._repository, request.scope, ids, gone, self._new_write_id)

    def _fact(self, request: Writing, episode: Episode, found: PatternFact) -> Fact:
        # A pattern fact is identified by category and canonical value.
        identity = with_test_namespace(f"{found.category}:{found.value}", is_test=episode.is_test)
        return Fact.model_validate(
            {
                **_common(request, episode, MemoryType.FACTUAL, identity, self._seed),
                "content": found.content,
                "category": found.category,
                "value": found.value,
                "evidence": found.evidence,
                "event_at": found.event_at or episode.timestamp,
                "slot": found.slot,
                "told_at": None if found.slot is None else episode.timestamp,
            }
        )

    def _negation(
        self, request: Writing, episode: Episode, found: FoundNegation, answered: str | None
    ) -> NegationFact:
        words = content_hash(f"{found.subject}: {found.negates_pattern}")
        identity = with_test_namespace(words, is_test=episode.is_test)
        # Forgotten, the turn that it answers takes its words along.
        both = found.of_turn_before and answered is not None
        more = {"source_episode_ids": (episode.id, answered)} if both else {}
        return NegationFact.model_validate(
            {
                **_common(request, episode, MemoryType.NEGATION, identity, self._seed),
                "content": found.content,
                "negates_pattern": found.negates_pattern,
                "subject": found.subject,
                "evidence": found.evidence,
                "event_at": episode.timestamp,
                **more,
            }
        )


# --- which of several addresses holds


def _rounds(
    turns: Iterable[Sequence[_Finding]], known: Collection[str]
) -> Iterator[list[_Finding]]:
    """The findings by their time, so that the same comes of turns however they arrive together.

    What is told again after something took its place begins anew. That is seen by what is
    stored, so it waits for the round after the one in which it gives way.

    Args:
        turns: What was found, by turn.
        known: Identities that are stored already.
    """
    found: list[_Finding] = []
    told = set(known)
    latest: dict[tuple[str, str, bool], str] = {}
    over: set[str] = set()
    for turn in sorted(filter(None, turns), key=lambda turn: turn[0].episode.timestamp):
        claims = {one.slot_key: one.memory.identity for one in turn if one.slot_key is not None}
        again = {what for of, what in claims.items() if latest.get(of, what) != what}
        if again & told or over & set(claims.values()):
            yield found
            found, latest, over = [], {}, set()
        found += turn
        over |= {one.memory.identity for one in turn if one.over}
        told |= set(claims.values())
        latest |= claims
    if found:
        yield found


class _Becoming:
    """What is stored, as one round of findings after another changes it, before it is written.

    However often a batch tells several values in turn, each slot is read once for it.

    Args:
        request: Whose memory.
        stored: What is stored of the findings.
        rivals: All that is stored of their slots; none where nothing waits for what gives way.
    """

    def __init__(
        self,
        request: Writing,
        stored: Mapping[str, Fact | NegationFact],
        rivals: Mapping[_SlotKey, Sequence[Fact]],
    ) -> None:
        self._request = request
        self._memories: dict[str, Fact | NegationFact] = {}
        # The ids of each first generation and of those after it.
        self._generations: dict[str, list[str]] = {}
        self._slots = {
            (subject, name, is_test): (subject, predicate, is_test)
            for subject, predicate, is_test in rivals
            for name in stored_as(predicate)
        }
        # In the order of :func:`_order`.
        self._told: dict[_SlotKey, list[Fact]] = {slot: [] for slot in rivals}
        self._unseen = set(rivals)
        for memory in (*stored.values(), *(one for facts in rivals.values() for one in facts)):
            self._put(memory)

    def settle(self, findings: Sequence[_Finding]) -> None:
        """Give each the generation that is not history yet."""
        for finding in findings:
            memory, number = finding.memory, 0
            ids = self._generations.setdefault(memory.id, [memory.id])
            while _is_history(self._memories.get(ids[number]), finding):
                number += 1
                if number == len(ids):
                    ids.append(_generation_id(self._request, memory, number))
            if number:
                new = {"generation": number, "id": ids[number]}
                finding.memory = memory.model_copy(update=new)

    def take_up(self, findings: Sequence[_Finding]) -> list[_Ended]:
        """Let what one round tells be known; what gives way by it."""
        changed: dict[_SlotKey, set[datetime]] = {slot: set() for slot in _slots_of(findings)}
        for memory_id, same in _by_memory(findings).items():
            before = self._memories.get(memory_id)
            after = _told_by(before or same[0].memory, same)
            self._put(after)
            for one in (before, after):
                slot = self._slot_of(one)
                if slot in changed and isinstance(one, Fact):
                    changed[slot].add(_last_told(one))
        pairs = [pair for slot, times in changed.items() for pair in self._succession(slot, times)]
        ends = _ends(pairs, findings)
        took_over, gave_way = _by_end(ends)
        for memory_id, others in took_over.items():
            self._put(_taking_over(self._memories[memory_id], others))
        for memory_id, of in gave_way.items():
            memory = self._memories[memory_id]
            if isinstance(memory, Fact):
                self._put(_giving_way(memory, of))
        return ends

    def _succession(self, slot: _SlotKey, times: Collection[datetime]) -> list[tuple[Fact, Fact]]:
        """See :func:`succession`: at first of all, then of those to which these times matter."""
        told = self._told[slot]
        if slot in self._unseen:
            self._unseen.discard(slot)
            return _pairs(told, range(len(told)))
        if not times:
            return []
        first = bisect_left(told, min(times), key=_last_told)
        if first:
            # All that were told at the time before.
            first = bisect_left(told, _last_told(told[first - 1]), key=_last_told)
        # What gives way to none of those gives way to no later one, but for a form of a name.
        reaching = (n for n in range(first) if _says_more(told[n], told[first]))
        end = bisect_right(told, max(times), key=_last_told)
        return _pairs(told, (*reaching, *range(first, end)))

    def _put(self, memory: Fact | NegationFact) -> None:
        before = self._memories.get(memory.id)
        slot = self._slot_of(before)
        if slot is not None and isinstance(before, Fact):
            told = self._told[slot]
            del told[bisect_left(told, _order(before), key=_order)]
        self._memories[memory.id] = memory
        slot = self._slot_of(memory)
        if slot is not None and isinstance(memory, Fact):
            insort(self._told[slot], memory, key=_order)

    def _slot_of(self, memory: AnyMemory | None) -> _SlotKey | None:
        """Where it has rivals. What was refuted has none."""
        if not isinstance(memory, Fact) or memory.slot is None or memory.refuted_at is not None:
            return None
        return self._slots.get((memory.slot.subject, memory.slot.predicate, memory.is_test))


def _slots_of(findings: Iterable[_Finding]) -> list[_SlotKey]:
    return sorted({one.slot_key for one in findings if one.slot_key is not None})


def _by_memory(findings: Iterable[_Finding]) -> dict[str, list[_Finding]]:
    found: dict[str, list[_Finding]] = {}
    for finding in findings:
        found.setdefault(finding.memory.id, []).append(finding)
    return found


def _ends(pairs: Iterable[tuple[Fact, Fact]], findings: Sequence[_Finding]) -> list[_Ended]:
    """What gave way, as far as it is not noted: to what is told, or to a denial beside it.

    Args:
        pairs: What took the place of what.
        findings: What is told just now.
    """
    found = _by_memory(findings)
    ends: list[_Ended] = []
    for old, new in pairs:
        when = _first_told(new, old, found)
        if not _is_noted(old, new, when):
            ends.append(_Ended(old.id, new.id, when))
    by_turn: dict[str, list[_Finding]] = {}
    for finding in findings:
        by_turn.setdefault(finding.episode.id, []).append(finding)
    for finding in findings:
        by = _what_ends(finding, by_turn[finding.episode.id]) if finding.over else None
        if by is not None:
            ends.append(_Ended(finding.memory.id, by.memory.id, finding.episode.timestamp))
    return ends


def _by_end(ends: Iterable[_Ended]) -> tuple[dict[str, list[str]], dict[str, list[_Ended]]]:
    """What each memory took the place of, and what each gave way to."""
    took_over: dict[str, list[str]] = {}
    gave_way: dict[str, list[_Ended]] = {}
    for one in ends:
        gave_way.setdefault(one.memory_id, []).append(one)
        if one.by != one.memory_id:
            took_over.setdefault(one.by, []).append(one.memory_id)
    return took_over, gave_way


def succession(rivals: Sequence[Fact]) -> list[tuple[Fact, Fact]]:
    """What took the place of what, among facts of one slot: each gave way to the next told.

    Args:
        rivals: Facts that were said to be the same one of the same person.
    """
    told = sorted(rivals, key=_order)
    return _pairs(told, range(len(told)))


def _pairs(told: Sequence[Fact], numbers: Iterable[int]) -> list[tuple[Fact, Fact]]:
    """Those with these numbers, in the order in which all were told, and what each gave way to."""
    pairs: list[tuple[Fact, Fact]] = []
    for number in numbers:
        old = told[number]
        until = _last_told(old)
        later = (
            new
            for new in islice(told, number + 1, None)
            if _last_told(new) > until and not _says_more(old, new)
        )
        new = next(later, None)
        if new is not None:
            pairs.append((old, new))
    return pairs


def _says_more(old: Fact, new: Fact) -> bool:
    """Whether one is a fuller form of the other: "Ann" and "Ann Lee"."""
    if old.category is not FactCategory.NAME:
        return False
    first, second = set(old.value.casefold().split()), set(new.value.casefold().split())
    return first <= second or second <= first


def _order(one: Fact) -> tuple[datetime, str]:
    return _last_told(one), one.id


def _last_told(one: Fact) -> datetime:
    return one.told_at or one.known_at


def _told_by(memory: Fact | NegationFact, findings: Sequence[_Finding]) -> Fact | NegationFact:
    """The memory with what these turns add to it; itself where they add nothing."""
    more = corroborated(memory, [finding.episode for finding in findings]) or memory
    for finding in findings:
        if finding.claim is not None and isinstance(more, Fact):
            more = _claimed(more, finding)
    return _from_when_known(more)


def _taking_over(memory: Fact | NegationFact, others: Sequence[str]) -> Fact | NegationFact:
    """The memory as that which took the place of others; itself where it says so."""
    return _from_when_known(replacing(memory, others))


def _from_when_known(memory: Fact | NegationFact) -> Fact | NegationFact:
    """The memory as true only since it was first told, where it took the place of another."""
    if not memory.supersedes or memory.valid_from == memory.known_at:
        return memory
    return memory.model_copy(update={"valid_from": memory.known_at})


def _giving_way(memory: Fact, ends: Sequence[_Ended]) -> Fact:
    """The fact as history; itself where it was replaced before, or told again since."""
    for one in ends:
        memory = _replaced(memory, one.by, one.when) or memory
    return memory


def _what_ends(over: _Finding, findings: Sequence[_Finding]) -> _Finding | None:
    """What the turn says in its place; else the denial that it is in use."""
    assert isinstance(over.memory, Fact)  # noqa: S101 - for the type checker; only facts are over
    here = [one for one in findings if one.episode.id == over.episode.id and one is not over]
    category, value = over.memory.category, over.memory.value.casefold()
    in_its_place = (
        one
        for one in here
        if one.claim and isinstance(one.memory, Fact) and one.memory.category is category
    )
    denials = (
        one
        for one in here
        if isinstance(one.memory, NegationFact) and one.memory.negates_pattern.endswith(value)
    )
    return next(in_its_place, None) or next(denials, None)


def _replaced(memory: Fact, by: str, when: datetime) -> Fact | None:
    """The fact as history; None where it was replaced before, or told again since."""
    if memory.superseded_known_at is not None and memory.superseded_known_at <= when:
        return None
    if when < _last_told(memory):
        return None
    return replaced(memory, by, when)


def _first_told(new: Fact, old: Fact, found: Mapping[str, Sequence[_Finding]]) -> datetime:
    """When something was first told after what it replaces, though it was told again since.

    Args:
        new: What took the place.
        old: What gave way.
        found: What is stored just now, by memory.
    """
    until = _last_told(old)
    here = found.get(new.id, ())
    told = [one.episode.timestamp for one in here if one.claim]
    late = any(one.claim for one in found.get(old.id, ()))
    if late and all(one.episode.timestamp != new.known_at for one in here):
        # An older conversation comes after the one that told what took its place.
        told.append(new.known_at)
    return min((at for at in told if at > until), default=_last_told(new))


def _is_noted(old: Fact, new: Fact, when: datetime) -> bool:
    """Whether both say already that one took the other's place; most of what is told again."""
    return old.id in new.supersedes and _replaced(old, new.id, when) is None


def _claimed(memory: Fact, finding: _Finding) -> Fact:
    """The fact as it is said to be somebody's; the latest word counts."""
    when = finding.episode.timestamp
    if memory.told_at is not None and when <= memory.told_at:
        return memory
    return memory.model_copy(update={"slot": finding.claim, "told_at": when})


def _is_history(stored: AnyMemory | None, finding: _Finding) -> bool:
    """Whether the memory has ended before this episode was said, so that saying it begins anew.

    Who only mentions an address that was replaced does not say that it holds again.
    """
    return (
        isinstance(stored, DerivedMemory)
        and stored.status is MemoryStatus.SUPERSEDED
        and finding.episode.id not in stored.source_episode_ids
        and finding.episode.timestamp
        > max(stored.superseded_known_at or stored.known_at, stored.refuted_at or stored.known_at)
        and (finding.claim is not None or not isinstance(stored, Fact))
    )


def _generation_id(request: Writing, memory: Fact | NegationFact, number: int) -> str:
    return derived_id(request.scope, memory.type, memory.identity, number)


def _common(
    request: Writing, episode: Episode, kind: MemoryType, identity: str, seed: float
) -> dict[str, object]:
    return {
        "id": derived_id(request.scope, kind, identity, 0),
        "namespace": request.scope.namespace,
        "user_id": request.scope.user_id,
        "known_at": episode.timestamp,
        "created_at": request.now,
        "derived_at": request.now,
        "session_id": episode.session_id,
        **traits([episode], DEFAULT_IMPORTANCE),
        "is_test": episode.is_test,
        "provenance": episode.provenance.model_copy(
            update={"workflow_id": request.workflow_id, "run_id": request.run_id}
        ),
        "source_episode_ids": (episode.id,),
        "occasions": occasions_of([episode]),
        "identity": identity,
        "lifecycle": LifecycleState.CANDIDATE,
        "confidence": Confidence(
            method=ExtractionMethod.EXTRACTED,
            extraction=PATTERN_EXTRACTION,
            last_confirmed=episode.timestamp,
            verification=Verification.EVIDENCE_FOUND,
            seed=seed,
        ),
    }
