"""Boxes: a session cut into runs of turns on one topic, and stored when full."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from operator import itemgetter

from engram.consolidation.apply import PlanWriter, end_links
from engram.contracts.consolidation import PlanOutput
from engram.contracts.messages import Population
from engram.digests.store import DigestStore
from engram.digests.versions import Composer, Draft
from engram.domain.digests import BoxDetail, SealReason
from engram.domain.identity import operation_id
from engram.domain.kept import kept
from engram.domain.memories import (
    DerivedMemory,
    Episode,
    Link,
    LinkKind,
    MemoryForm,
    MemoryType,
    SemanticMemory,
    is_summary,
)
from engram.domain.plan import ConsolidationPlan, LinkGraph
from engram.domain.rules import DigestPolicy
from engram.domain.scope import Scope
from engram.giving_way import computed
from engram.language.personal_data import secrets_in
from engram.language.text import content_words, terms_of
from engram.lifecycle.due import of_population
from engram.lifecycle.links import Observed, is_full
from engram.ports import AnyOf, Between, Condition, Equals, Filter, MemoryRepository
from engram.storage.updates import all_of, episodes_by_id, existing

# --- boxes: a session cut into runs of turns on one topic. Pure and incremental
#
# Whether a turn still belongs to the open box depends on that box and the turn
# alone, and every box starts empty. So cutting what follows the last sealed box
# gives the same boxes as cutting the whole session at once.

_WORDS_THAT_RECUR = 2
_MOST_TOPIC_WORDS = 8
_SHORTEST_KEY = 16


@dataclass(frozen=True, slots=True)
class Said:
    """A turn, as far as boxes look at it."""

    id: str
    at: datetime
    text: str
    sequence: int = 0


@dataclass(frozen=True, slots=True)
class Box:
    """A run of turns on one topic.

    Attributes:
        turns: In order.
        terms: Their content words, stemmed.
        sealed: Why no further turn is taken; None for the one that is still open.
        topic: The words that tell what they are about.
    """

    turns: tuple[Said, ...]
    terms: frozenset[str]
    sealed: SealReason | None
    topic: tuple[str, ...]

    @property
    def opened(self) -> datetime:
        """When its first turn was said."""
        return self.turns[0].at

    @property
    def last(self) -> datetime:
        """When its last turn was said."""
        return self.turns[-1].at


def overlap(box: Set[str], turn: Set[str], smoothing: float = 0.0) -> float:
    """How much of the topic of one is found in the other, 0 to 1.

    The overlap coefficient |A and B| / min(|A|, |B|) of Szymkiewicz and Simpson over
    stemmed content words, names among them. ``smoothing`` counts as so many shared
    words on both sides of the fraction: what says little decides little, and what has
    no content word at all ("ok", "yes, please") overlaps fully.
    """
    smaller = min(len(box), len(turn)) + smoothing
    return (len(box & turn) + smoothing) / smaller if smaller else 1.0


def segment(
    turns: Iterable[Said], policy: DigestPolicy, *, ended: SealReason | None = None
) -> list[Box]:
    """The boxes of these turns, in order; every turn is in exactly one.

    Args:
        turns: Of one session, none of them in a sealed box.
        policy: The thresholds.
        ended: Why the last box takes no further turn; None if it may.
    """
    boxes: list[Box] = []
    run: list[Said] = []
    terms: frozenset[str] = frozenset()
    for turn in sorted(turns, key=in_order):
        words = frozenset(terms_of(turn.text))
        reason = _why_sealed(run, terms, turn, words, policy)
        if reason is not None:
            boxes.append(Box(tuple(run), terms, reason, topic_words(run)))
            run, terms = [], frozenset()
        run.append(turn)
        terms |= words
    if run:
        boxes.append(Box(tuple(run), terms, ended, topic_words(run)))
    return boxes


def in_order(turn: Said) -> tuple[datetime, int, str]:
    """The order of turns within a session."""
    return turn.at, turn.sequence, turn.id


def topic_words(turns: Sequence[Said]) -> tuple[str, ...]:
    """The words that tell what the turns are about: those of most turns first."""
    spread: Counter[str] = Counter()
    for turn in turns:
        spread.update(_told_of(turn.text))
    ranked = sorted(spread, key=lambda word: (-spread[word], -len(word), word))
    seen: dict[str, str] = {}
    for word in ranked:
        seen.setdefault(_traced(word), word)
        if len(seen) == _MOST_TOPIC_WORDS:
            break
    return tuple(seen.values())


def _told_of(text: str) -> Iterator[str]:
    """The content words of a turn; no password, and no key, which is longer than any word."""
    secrets = content_words(" ".join(secrets_in(text)))
    for word in content_words(text):
        is_key = len(word) >= _SHORTEST_KEY and any(map(str.isdigit, word))
        if word not in secrets and not is_key:
            yield word


@kept(4096)
def _traced(word: str) -> str:
    """The stem that a box is looked up by when a word of its topic recurs."""
    return next(iter(terms_of(word)), word)


def recurs(terms: Set[str], earlier: Set[str], policy: DigestPolicy) -> float:
    """How much of an earlier box's topic comes back; 0 below the threshold.

    Without smoothing, and never by a single word: that a topic comes back needs words
    that do.
    """
    if len(terms & earlier) < _WORDS_THAT_RECUR:
        return 0.0
    share = overlap(terms, earlier)
    return share if share >= policy.box_overlap else 0.0


def _why_sealed(
    run: Sequence[Said],
    terms: Set[str],
    turn: Said,
    words: Set[str],
    policy: DigestPolicy,
) -> SealReason | None:
    if not run:
        return None
    if turn.at - run[-1].at >= timedelta(minutes=policy.box_idle_minutes):
        return SealReason.IDLE
    if len(run) >= policy.box_turns:
        return SealReason.FULL
    if overlap(terms, words, policy.box_smoothing) < policy.box_overlap:
        return SealReason.TOPIC
    return None


# --- boxes of a session: what follows the last sealed one is read, cut, and what is full is
# stored

_PAGE = 200
_REAL = of_population(Population.REAL)
# A longer stretch of a session without a sealed box is cut piece by piece.
_MOST_READ = 2000
LATEST_SESSIONS = 20
"""Where no session is named, so many are looked at for runs of turns that are not stored yet."""
# Earlier boxes that a new one is compared with.
_EARLIER = 24
# Both ends of a link keep a bounded number of links.
_MOST_LINKED = 40
# Boxes that are linked by one look at what was derived.
_LINKED_AT_ONCE = 50
# The latest boxes with any of the words of a stretch of a session.
_LOOKED_UP = 8 * _EARLIER


@dataclass(frozen=True, slots=True)
class Sealed:
    """The boxes of a session that were sealed, and how many links were made."""

    boxes: tuple[SemanticMemory, ...] = ()
    linked: int = 0


@dataclass(frozen=True, slots=True)
class _Late:
    """Turns that came after a later box was sealed, and the boxes that such turns are in."""

    turns: tuple[Episode, ...] = ()
    boxes: tuple[SemanticMemory, ...] = ()


@dataclass(frozen=True, slots=True)
class BoxReader:
    """Reads what is in boxes, and what is in none yet."""

    repository: MemoryRepository

    async def waiting(
        self, scope: Scope, session_id: str | None, policy: DigestPolicy
    ) -> list[tuple[str, Box]]:
        """The runs of turns that are not stored as boxes, each with its session, in order.

        The last one of a session is open; those before it are stored by the next consolidation.

        Args:
            scope: Whose.
            session_id: The conversation; None for those that were last spoken in.
            policy: The thresholds.
        """
        sessions = await self._latest_sessions(scope) if session_id is None else [session_id]
        found: list[tuple[str, Box]] = []
        for session in sessions:
            turns, _ = await self.tail(scope, session, _box(await self.last_box(scope, session)))
            cut = await computed(segment, [_said(e) for e in turns], policy)
            found += [(session, box) for box in cut]
        return found

    async def _latest_sessions(self, scope: Scope) -> list[str]:
        page = await self.repository.scroll(
            scope,
            MemoryType.EPISODIC,
            where=(_REAL,),
            order_by="timestamp",
            descending=True,
            limit=_PAGE,
        )
        named = dict.fromkeys(m.session_id for m in page.memories if m.session_id is not None)
        return list(named)[:LATEST_SESSIONS]

    async def last_box(self, scope: Scope, session_id: str) -> SemanticMemory | None:
        """The latest box of a session that is stored."""
        where = _of_session(session_id)
        found = await all_of(self.repository, scope, SemanticMemory, where=where, most=1)
        return found[0] if found else None

    async def all_boxes(self, scope: Scope, session_id: str) -> list[SemanticMemory]:
        """Every box of a session that is stored."""
        where = _of_session(session_id)
        return await all_of(self.repository, scope, SemanticMemory, where=where)

    async def tail(
        self, scope: Scope, session_id: str, last: BoxDetail | None
    ) -> tuple[list[Episode], bool]:
        """The turns after the last sealed box, in order, and whether there are more."""
        where: Filter = (Equals("session_id", session_id), _REAL)
        if last is not None:
            where = (*where, Between("timestamp", at_least=last.last))
        found: list[Episode] = []
        cursor: str | None = None
        while len(found) < _MOST_READ:
            page = await self.repository.scroll(
                scope,
                MemoryType.EPISODIC,
                where=where,
                order_by="timestamp",
                limit=_PAGE,
                cursor=cursor,
            )
            found += [m for m in page.memories if isinstance(m, Episode)]
            cursor = page.cursor
            if cursor is None:
                break
        if last is not None:
            # Turns of one moment can lie on both sides of a border.
            doubtful = [e.id for e in found if e.timestamp == last.last]
            boxed = _turns_of(await self.boxes_of(scope, doubtful))
            found = [episode for episode in found if episode.id not in boxed]
        return found, cursor is not None

    async def boxes_of(self, scope: Scope, episode_ids: Sequence[str]) -> list[SemanticMemory]:
        """The boxes that these turns are in."""
        if not episode_ids:
            return []
        where: Filter = (
            Equals("form", MemoryForm.BOX.value),
            AnyOf("source_episode_ids", tuple(sorted(episode_ids))),
        )
        most = len(episode_ids)
        return await all_of(self.repository, scope, SemanticMemory, where=where, most=most)


@dataclass(frozen=True, slots=True)
class BoxWriter:
    """Seals boxes. Everything may run twice.

    Args:
        repository: Where episodes are read.
        store: Where boxes are kept.
        plans: Links boxes with what was derived from their turns.
    """

    repository: MemoryRepository
    store: DigestStore
    plans: PlanWriter

    @property
    def _reader(self) -> BoxReader:
        return BoxReader(self.repository)

    async def seal(
        self,
        composer: Composer,
        session_id: str,
        episode_ids: Sequence[str],
        policy: DigestPolicy,
        traces: Traces,
        *,
        ended: bool,
    ) -> Sealed:
        """Store every box of a session that takes no further turn.

        Args:
            composer: Whose, when, and by which run.
            session_id: The conversation.
            episode_ids: Those of its turns that are new, whatever their timestamps.
            policy: The thresholds.
            traces: Earlier boxes, shared by the sessions of one stage.
            ended: Whether the session has ended.
        """
        stored: list[SemanticMemory] = []
        linked = 0
        while True:
            before = await self._reader.last_box(composer.scope, session_id)
            last = _box(before)
            tail, more = await self._reader.tail(composer.scope, session_id, last)
            late = await self._late(composer.scope, episode_ids, last, tail)
            # Whoever sealed these may have died before linking them. Once is enough: what this
            # call sealed is linked.
            unlinked = [] if stored else await self._sealed_before(composer, session_id, before)
            linked += await self._link(composer, [*unlinked, *late.boxes])
            why = SealReason.ENDED if ended and not more else None
            # Reads every word of them: not while others wait.
            cut = await computed(segment, [_said(e) for e in tail], policy, ended=why)
            cut += await computed(
                segment, [_said(e) for e in late.turns], policy, ended=SealReason.LATE
            )
            full = [run for run in cut if run.sealed is not None]
            for start in range(0, len(full), _LINKED_AT_ONCE):
                part = full[start : start + _LINKED_AT_ONCE]
                sealed, links = await self._store(composer, session_id, part, policy, traces)
                linked += links
                stored += sealed
            # A run of turns with one timestamp can be longer than what is read at once:
            # reading it again would find the same turns.
            if not more or all(run.sealed is None for run in cut):
                return Sealed(tuple(stored), linked)

    async def _sealed_before(
        self, composer: Composer, session_id: str, last: SemanticMemory | None
    ) -> list[SemanticMemory]:
        """The last box of the session, with all others that this very call stored before."""
        if last is None or last.created_at != composer.now:
            return [] if last is None else [last]
        # An attempt at it died: its moment is the workflow's, and no other call's.
        boxes = await self._reader.all_boxes(composer.scope, session_id)
        return [box for box in boxes if box.created_at == composer.now]

    async def _late(
        self,
        scope: Scope,
        episode_ids: Sequence[str],
        last: BoxDetail | None,
        tail: Iterable[Episode],
    ) -> _Late:
        """New turns of a time before the last sealed box, which are in no box."""
        if last is None:
            return _Late()
        wanted = set(episode_ids) - {e.id for e in tail} - set(last.episode_ids)
        found = await episodes_by_id(self.repository, scope, sorted(wanted))
        early = [m for m in found.values() if not m.is_test and m.timestamp <= last.last]
        boxes = await self._reader.boxes_of(scope, [episode.id for episode in early])
        boxed = _turns_of(boxes)
        return _Late(
            turns=tuple(episode for episode in early if episode.id not in boxed),
            boxes=tuple(boxes),
        )

    async def _store(
        self,
        composer: Composer,
        session_id: str,
        boxes: Sequence[Box],
        policy: DigestPolicy,
        traces: Traces,
    ) -> tuple[list[SemanticMemory], int]:
        """The boxes as they are stored, without those of which all turns were forgotten; the links.

        What was derived from their turns is read once: each box is stored with its own half of
        the links, and the other halves follow.
        """
        scope, keys = composer.scope, [f"box:{box.turns[0].id}" for box in boxes]
        there = {
            memory.detail.keys[0]: memory
            for memory in await self.store.current(scope, MemoryForm.BOX, keys)
            if memory.detail
        }
        topics = [_Topic.of(box) for box in boxes]
        await traces.look_up(word for topic in topics for word in topic.traced)
        drafts: list[Draft] = []
        for key, box, topic in zip(keys, boxes, topics, strict=True):
            known = _box(there.get(key))
            if known is None:
                found = await traces.before(box, topic.traced)
                earlier = [one for one in found if one.keys[0] != key]
                known = _detail(key, session_id, box, topic, policy, earlier)
                drafts.append(_draft(known, box, session_id))
            # The next one may take its topic up again.
            traces.add(known)
        turns = {turn.id for box in boxes for turn in box.turns}
        derived = await self._derived(scope, turns)
        drafts = [_with_members(draft, derived) for draft in drafts]
        written = (await self.store.put(composer, drafts, ())).written if drafts else ()
        there |= {memory.detail.keys[0]: memory for memory in written if memory.detail}
        stored = [there[key] for key in keys if key in there]
        return stored, await self._write_links(scope, stored, derived)

    async def _link(self, composer: Composer, boxes: Sequence[SemanticMemory]) -> int:
        """Link boxes with what was derived from their turns, both ways."""
        linked = 0
        for start in range(0, len(boxes), _LINKED_AT_ONCE):
            part = boxes[start : start + _LINKED_AT_ONCE]
            derived = await self._derived(composer.scope, _turns_of(part))
            linked += await self._write_links(composer.scope, part, derived)
        return linked

    async def _write_links(
        self, scope: Scope, boxes: Sequence[SemanticMemory], derived: Sequence[DerivedMemory]
    ) -> int:
        """Write the halves of links that are not there, and none to what was forgotten."""
        turns = {box.id: frozenset(d.episode_ids) for box in boxes if (d := _box(box))}
        plan = ConsolidationPlan(
            actions=tuple(
                _membership(member.id, box.id)
                for box in boxes
                if box.id in turns
                for member in _members(derived, turns[box.id])
                if member.id not in box.related_ids or box.id not in member.related_ids
            )
        )
        written = await self.plans.write(scope, plan) if plan.actions else PlanOutput()
        # A box is stored with its half; whoever forgets looked perhaps before it was there.
        named = {one for box in boxes for one in box.related_ids} - {m.id for m in derived}
        gone = named - await existing(self.repository, scope, named) | {*written.missing}
        await end_links(self.repository, scope, gone, self.store.new_write_id)
        return written.links

    async def _derived(self, scope: Scope, turns: Set[str]) -> list[DerivedMemory]:
        """What was derived from these turns; of the most important ones first."""
        where: Filter = (AnyOf("source_episode_ids", tuple(sorted(turns))),)
        found = await all_of(self.repository, scope, DerivedMemory, where=where)
        # A summary is made of what others derived, and gives way to the next one.
        own = [m for m in found if not (isinstance(m, SemanticMemory) and m.detail)]
        own = [m for m in own if not is_summary(m)]
        return sorted(own, key=lambda m: (-m.importance, m.known_at, m.id))


@dataclass(slots=True)
class _WithWord:
    """The boxes with one word, in order of their ends; of those that end together, the first last.

    A common word is in a part of all boxes: what is asked of them is found without a look at each.
    """

    _keys: set[str] = field(default_factory=set)
    _in_order: list[tuple[datetime, int, BoxDetail]] = field(default_factory=list)

    def add(self, box: BoxDetail) -> None:
        """Note a box, once."""
        if box.keys[0] not in self._keys:
            insort(self._in_order, (box.last, -len(self._keys), box))
            self._keys.add(box.keys[0])

    def until(self, moment: datetime) -> list[BoxDetail]:
        """The latest that end by then, as many as are compared, the last one first."""
        end = bisect_right(self._in_order, moment, key=itemgetter(0))
        return [box for *_, box in reversed(self._in_order[max(0, end - _EARLIER) : end])]


@dataclass(slots=True)
class Traces:
    """Earlier boxes by the words that they are looked up by, each read once for many boxes.

    Args:
        store: Where boxes are kept.
        scope: Whose they are.
    """

    store: DigestStore
    scope: Scope
    _found: dict[str, _WithWord] = field(default_factory=dict)
    # From when on all boxes with a word are here; None: all there are.
    _since: dict[str, datetime | None] = field(default_factory=dict)

    async def look_up(self, words: Iterable[str]) -> None:
        """Read the latest boxes with these words, as far as that was not done."""
        missing = tuple(sorted({f"word:{word}" for word in words} - self._found.keys()))
        if not missing:
            return
        found = await self._latest(AnyOf("detail.keys", missing), limit=_LOOKED_UP)
        since = found[-1].last if len(found) == _LOOKED_UP else None
        for word in missing:
            boxes = self._found[word] = _WithWord()
            for box in found:
                if word in box.keys:
                    boxes.add(box)
            self._since[word] = since

    def add(self, box: BoxDetail) -> None:
        """Note a box that is stored now, for those that come after it."""
        for word in box.keys:
            known = self._found.get(word)
            if known is not None:
                known.add(box)

    async def before(self, box: Box, traced: Iterable[str]) -> list[BoxDetail]:
        """The latest boxes that end before this one begins and have one of these words."""
        words, opened = [f"word:{word}" for word in traced], box.opened
        found = {
            one.keys[0]: one
            for word in words
            if (boxes := self._found.get(word)) is not None
            for one in boxes.until(opened)
        }
        latest = sorted(found.values(), key=lambda one: one.last, reverse=True)[:_EARLIER]
        open_ends = [since for word in words if (since := self._since.get(word)) is not None]
        enough = len(latest) == _EARLIER and latest[-1].last > max(open_ends, default=opened)
        if enough or not open_ends:
            return latest
        shares = AnyOf("detail.keys", tuple(words))
        before = Between("known_at", at_most=opened)
        return await self._latest(shares, before, limit=_EARLIER)

    async def _latest(self, *conditions: Condition, limit: int) -> list[BoxDetail]:
        where: Filter = (Equals("form", MemoryForm.BOX.value), *conditions)
        found = await self.store.semantic(self.scope, where, limit=limit)
        return [m.detail for m in found if isinstance(m.detail, BoxDetail)]


def _membership(member: str, box: str) -> LinkGraph:
    return LinkGraph(
        why="derived from a turn of this box",
        first_id=member,
        second_id=box,
        kind=LinkKind.BELONGS_TO,
    )


def _with_members(draft: Draft, derived: Sequence[DerivedMemory]) -> Draft:
    """A box that leads to what was derived from its turns, as far as there is room for it."""
    members = _members(derived, frozenset(draft.sources))
    found = draft.known_at
    seen = [(m, Observed.after(found, m)) for m in members if not (is_full(m) or m.is_test)]
    links = tuple(
        Link(
            target_id=member.id,
            kind=LinkKind.BELONGS_TO,
            first_seen=observed.first,
            last_seen=observed.last,
        )
        for member, observed in seen
    )
    return replace(draft, links=links)


def _members(derived: Sequence[DerivedMemory], turns: Set[str]) -> list[DerivedMemory]:
    """The first of those that were derived from these turns."""
    return [m for m in derived if not turns.isdisjoint(m.source_episode_ids)][:_MOST_LINKED]


def _box(memory: SemanticMemory | None) -> BoxDetail | None:
    detail = memory.detail if memory is not None else None
    return detail if isinstance(detail, BoxDetail) else None


def _of_session(session_id: str) -> Filter:
    return (
        Equals("form", MemoryForm.BOX.value),
        Equals("detail.keys", f"session:{session_id}"),
    )


def _turns_of(boxes: Iterable[SemanticMemory]) -> frozenset[str]:
    return frozenset(turn for box in boxes for turn in box.source_episode_ids)


def _said(episode: Episode) -> Said:
    return Said(
        id=episode.id, at=episode.timestamp, text=episode.content, sequence=episode.sequence
    )


@dataclass(frozen=True, slots=True)
class _Topic:
    """What a box is about: in words, and the stems that it is looked up by when it recurs."""

    words: tuple[str, ...]
    traced: tuple[str, ...]

    @classmethod
    def of(cls, box: Box) -> _Topic:
        return cls(box.topic, tuple(map(_traced, box.topic)))


def _detail(
    key: str,
    session_id: str,
    box: Box,
    topic: _Topic,
    policy: DigestPolicy,
    earlier: Sequence[BoxDetail],
) -> BoxDetail:
    # Most share fewer words than that: to look takes less than to make sets of theirs.
    alike = (e for e in earlier if len(box.terms.intersection(e.terms)) >= _WORDS_THAT_RECUR)
    scored = [(recurs(box.terms, frozenset(e.terms), policy), e.last, e.trace_id) for e in alike]
    recurring = max((s for s in scored if s[0]), default=None)
    trace_id = recurring[2] if recurring else operation_id("trace", key)
    assert box.sealed is not None  # noqa: S101 - for the type checker; only sealed ones are stored
    return BoxDetail(
        keys=(
            key,
            f"session:{session_id}",
            f"trace:{trace_id}",
            *(f"word:{word}" for word in topic.traced),
        ),
        session_id=session_id,
        opened=box.opened,
        last=box.last,
        sealed=box.sealed,
        topic=topic.words,
        terms=tuple(sorted(box.terms)),
        episode_ids=tuple(turn.id for turn in box.turns),
        trace_id=trace_id,
    )


def _draft(detail: BoxDetail, box: Box, session_id: str) -> Draft:
    return Draft(
        form=MemoryForm.BOX,
        content=_described(detail, len(box.turns)),
        detail=detail,
        sources=detail.episode_ids,
        known_at=box.last,
        event_at=box.opened,
        session_id=session_id,
    )


def _described(box: BoxDetail, turns: int) -> str:
    about = ", ".join(box.topic) or "small talk"
    return f"{_span(box.opened, box.last)}, {turns} turn{'s' if turns != 1 else ''}: {about}."


def _span(opened: datetime, last: datetime) -> str:
    if opened.date() == last.date():
        return f"{opened:%d %B %Y, %H:%M}-{last:%H:%M}"
    return f"{opened:%d %B %Y, %H:%M} - {last:%d %B %Y, %H:%M}"
