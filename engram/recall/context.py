"""Recalled memories as a block for a prompt, and a briefing for a conversation's start."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from itertools import islice

from pydantic import BaseModel, ConfigDict, Field

from engram.domain.identity import normalise
from engram.domain.memories import (
    ANSWERING_FORMS,
    DERIVED_TYPES,
    AnyMemory,
    DerivedMemory,
    Episode,
    Fact,
    FactCategory,
    MemoryStatus,
    MemoryType,
    NegationFact,
    SemanticMemory,
    is_excerpt,
    is_summary,
    notes_of,
)
from engram.domain.rules import LifecycleRules
from engram.domain.sanitize import one_line
from engram.domain.scope import Scope
from engram.domain.slots import ends_something
from engram.domain.turns import block_line, context_block
from engram.language.signals import is_small_talk
from engram.language.text import bare_stems, topic_stems
from engram.lifecycle.policies import is_cold, is_disputed, quality
from engram.ports import MemoryRepository
from engram.recall.denials import Negations
from engram.recall.request import Visibility, visible
from engram.recall.results import Days, RecallHit
from engram.recall.shortened import shortened

# --- recalled memories as a block for a prompt: compact, dated, with their sources
#
# What holds now comes first, then what is explicitly not so, then turns as they were
# said, and words that they quote; each group best first. What another line says is left out,
# and one sentence says what several notes would.

CHARACTERS_PER_TOKEN = 4
"""How tokens are estimated: English text has a little over 4 characters per token in the
tokenizers of current models; other scripts have fewer, so leave room for them."""

_LONGEST_LINE = 600
# What is cut to less than this tells nothing.
_LEAST_TOLD = 40
_DISLIKES = "dislikes"
_NEGATED = re.compile(r"n['’]t\b|\b(?:not|no|never|without)\b")
_FEWEST_SUMMED_UP = 3
_EMPTY_BLOCK_CHARACTERS = len(context_block(()))


@dataclass(frozen=True, slots=True)
class _HitLine:
    """A hit as a line: what it says, how much of that there is room for, and whence it is."""

    hit: RecallHit
    said: str
    marks: str
    most: int

    @classmethod
    def of(cls, hit: RecallHit, days: Days) -> _HitLine:
        said = one_line(hit.memory.content)
        if len(said) > _LONGEST_LINE and hit.memory.summary is not None:
            # What its application says that it comes to tells more than a part of it.
            said = f"[summary] {one_line(hit.memory.summary)}"
        said = block_line(said)
        marks = block_line("; ".join(_marks(hit, days)))
        return cls(hit, said, marks, min(len(said), _LONGEST_LINE))

    @property
    def length(self) -> int:
        """In characters, with the end of the line."""
        return self.most + len(f"-  ({self.marks})\n")

    @property
    def is_whole(self) -> bool:
        """Whether it says all that the memory does."""
        return self.is_all_told and len(one_line(self.hit.memory.content)) <= self.most

    @property
    def is_all_told(self) -> bool:
        """Whether there is room for all of its words, be they a summary."""
        return self.most == len(self.said)

    def longer(self, by: int) -> _HitLine:
        """The same with so much more room, or less; never more than it needs."""
        return replace(self, most=min(len(self.said), self.most + by))

    def text(self, asked: frozenset[str]) -> str:
        return f"- {shortened(self.said, self.most, asked)} ({self.marks})"


def block_of(
    hits: Sequence[RecallHit], *, tokens: int, query: str = "", zone: tzinfo | None = None
) -> str:
    """The hits as one fenced block of at most ``tokens`` estimated tokens.

    The best hits are taken as long as there is room, a shorter one in place of one
    that is too long; the best of all is cut to what room there is. What is long is cut around
    the sentence that has the most words of ``query``, and has what room the others leave. Empty
    where nothing fits or nothing was found. Days are those of ``zone``.
    """
    days = Days(zone)
    room = tokens * CHARACTERS_PER_TOKEN - _EMPTY_BLOCK_CHARACTERS
    chosen: list[_HitLine] = []
    told: list[AnyMemory] = []
    for hit in _summaries_first(hits):
        if _is_idle(hit.memory) or _is_told(hit.memory, told):
            continue
        line = _HitLine.of(hit, days)
        if not chosen and line.length > room and not is_summary(hit.memory):
            line = line.longer(by=room - line.length)
        if line.length > room or line.most < min(len(line.said), _LEAST_TOLD):
            continue
        room -= line.length
        chosen.append(line)
        if line.is_whole:
            told.append(hit.memory)
    if not chosen:
        return ""
    asked = topic_stems(query)
    lines: list[_HitLine] = []
    for line in chosen:
        # What has no word of the question would only fill the prompt.
        bears = not line.is_all_told and not asked.isdisjoint(bare_stems(line.said))
        lines.append(line.longer(by=room) if bears else line)
        room -= lines[-1].length - line.length
    # Sorting is stable: within a group the order of the hits stays.
    lines.sort(key=lambda line: _group(line.hit))
    return context_block(line.text(asked) for line in lines)


def _is_idle(memory: AnyMemory) -> bool:
    # "Okay, thanks!" answers no question, and comes up where there is room for everything.
    return isinstance(memory, Episode) and is_small_talk(memory.content)


def without_said(hits: Sequence[RecallHit], said: Iterable[str]) -> list[RecallHit]:
    """The hits without the turns that ``said`` has word for word, and without quotations of them.

    What was concluded from such a turn stays: that is not said anywhere.
    """
    there = {normalise(text) for text in said}
    return [hit for hit in hits if there.isdisjoint(map(normalise, _words_of_turns(hit)))]


def _words_of_turns(hit: RecallHit) -> list[str]:
    if isinstance(hit.memory, Episode):
        return [hit.memory.content]
    return [turn.content for turn in hit.sources] if is_excerpt(hit.memory) else []


def _group(hit: RecallHit) -> int:
    memory = hit.memory
    if isinstance(memory, Episode) or is_excerpt(memory):
        return 3
    if memory.status is not MemoryStatus.ACTIVE:
        return 2
    return 1 if isinstance(memory, NegationFact) else 0


def best_of(hits: Sequence[RecallHit], limit: int) -> list[RecallHit]:
    """The first so many hits, where several notes of a summary come with it before them.

    The notes take no other's place: the summary says what they do, unless it is too long.
    """
    kept: list[RecallHit] = []
    summed_up: set[str] = set()
    for hit in _summaries_first(hits):
        limit -= hit.memory.id not in summed_up
        if limit < 0:
            break
        kept.append(hit)
        summed_up |= notes_of(hit.memory)
    return kept


def _summaries_first(hits: Sequence[RecallHit]) -> list[RecallHit]:
    by_id = {hit.memory.id: hit for hit in hits}
    doubted = {key for key, hit in by_id.items() if hit.disputed}
    ordered = _with_summaries_first([hit.memory for hit in hits], lambda one: one.id in doubted)
    return [by_id[memory.id] for memory in ordered]


def _with_summaries_first(
    memories: Sequence[AnyMemory], is_doubted: Callable[[AnyMemory], bool]
) -> list[AnyMemory]:
    """The memories in their order, a summary before the first of its notes where many come.

    Not where one of these is doubted: only its own line can say so.
    """
    earlier: dict[str, AnyMemory] = {}
    for summary in filter(is_summary, memories):
        come = _notes_among(memories, summary)
        if len(come) >= _FEWEST_SUMMED_UP and not any(map(is_doubted, come)):
            earlier[come[0].id] = summary
    ordered = (one for memory in memories for one in (earlier.get(memory.id, memory), memory))
    return list({one.id: one for one in ordered}.values())


def _notes_among(memories: Iterable[AnyMemory], summary: AnyMemory) -> list[AnyMemory]:
    """Those that the summary says, and that hold, or ended, as it does."""
    notes = notes_of(summary)
    return [one for one in memories if one.id in notes and one.status is summary.status]


def _is_told(memory: AnyMemory, told: Sequence[AnyMemory]) -> bool:
    """Whether other lines say what it does: one of them, or of a summary those of its notes."""
    notes = notes_of(memory)
    if notes and len(_notes_among(told, memory)) == len(notes):
        return True
    return any(_says_already(one, memory) for one in told)


def _says_already(told: AnyMemory, memory: AnyMemory) -> bool:
    """Whether a line has the words of another one, or a denial of the same turn as a statement.

    "The user dislikes gin" is "The user does not like gin", a quotation stands in its turn, and
    a note in its summary.
    """
    if not isinstance(memory, DerivedMemory):
        return False
    if memory.id in notes_of(told):
        return memory.status is told.status and not is_disputed(memory)
    if is_excerpt(memory):
        return isinstance(told, Episode) and told.id in memory.source_episode_ids
    if not isinstance(memory, NegationFact) or not isinstance(told, SemanticMemory):
        return False
    if set(told.source_episode_ids).isdisjoint(memory.source_episode_ids) or not _denies(told):
        return False
    verb, _, what = memory.negates_pattern.partition(" ")
    return bare_stems(what or verb) <= bare_stems(told.content)


def _denies(memory: SemanticMemory) -> bool:
    if memory.slot is not None:
        return ends_something(memory.slot) or memory.slot.predicate == _DISLIKES
    return _NEGATED.search(memory.content) is not None


def _marks(hit: RecallHit, days: Days) -> Iterable[str]:
    memory = hit.memory
    if isinstance(memory, Episode):
        yield f"{one_line(memory.speaker or memory.role)}, {days.of_turn(memory)}"
        if memory.session_id is not None:
            yield f"session {memory.session_id}"
        if hit.negated_by:
            yield "denied later"
        if hit.disputed:
            yield "disputed later"
        return
    yield _since(memory, hit.sources, days)
    if memory.expires_at is not None:
        yield f"until {days.of(memory.expires_at)}"
    if hit.disputed:
        yield "disputed"
    named = [source for source in hit.sources if source.session_id is not None]
    if named:
        yield f"said in {named[0].session_id} on {days.of_turn(named[0])}"
    elif memory.source_episode_ids:
        yield f"from turn {memory.source_episode_ids[0]}"


def _since(memory: DerivedMemory, sources: Sequence[Episode], days: Days) -> str:
    def day(at: datetime) -> str:
        return days.told(at, memory, sources)

    if isinstance(memory, SemanticMemory) and is_excerpt(memory):
        return f"quoted {day(memory.known_at)}"
    if isinstance(memory, NegationFact):
        return f"denied {day(memory.known_at)}"
    if memory.valid_to is not None and memory.status is not MemoryStatus.ACTIVE:
        return f"until {day(memory.valid_to)}"
    return f"since {day(memory.event_at)}"


# --- what matters most about a user, for the start of a conversation

_PAGE = 500


class Briefed(BaseModel):
    """A memory of a briefing.

    Attributes:
        memory: What is known.
        score: Its durable score, 0 to 1: quality without recency.
        explanation: The score with its parts.
        disputed: Whether another memory that nothing settles, or the user, speaks against it.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    memory: AnyMemory
    score: float = Field(ge=0, le=1)
    explanation: str
    disputed: bool = False


@dataclass(frozen=True, slots=True)
class Briefing:
    """Chooses what a conversation should begin with.

    Args:
        repository: Where memories are kept.
        rules: What a memory is worth.
        negations: Tells what was denied.
        candidates: Memories of each type that are compared, the latest known first.
    """

    repository: MemoryRepository
    rules: LifecycleRules
    negations: Negations
    candidates: int

    async def of(
        self, scope: Scope, now: datetime, limit: int, *, include_test: bool = False
    ) -> list[Briefed]:
        """Conclusions that hold, by durable score; what says the same comes once.

        A summary stands in the place of the best of its notes, and for all of them. What is over,
        a kept promise or where somebody no longer works, comes only where what holds does not
        fill the limit, and what is kept cold after it.
        """
        visibility = Visibility(now=now, include_test=include_test)
        ordered = await self._ordered(scope, visibility)
        chosen: dict[str, AnyMemory] = {}
        for start in range(0, len(ordered), limit):
            # So many at a time: only what is asked for is compared with negations.
            next_best = ordered[start : start + limit]
            denied = await self.negations.denied(scope, next_best, visibility)
            for memory in next_best:
                words = normalise(memory.content)
                if words in chosen or memory.id in denied:
                    continue
                if not _is_told(memory, [*chosen.values()]):
                    chosen[words] = memory
            if len(chosen) >= limit:
                break
        return [self._briefed(memory, now) for memory in islice(chosen.values(), limit)]

    async def _ordered(self, scope: Scope, visibility: Visibility) -> list[AnyMemory]:
        """What can be told, the best first; a summary where the first of its notes would be."""

        def place(memory: AnyMemory) -> tuple[bool, bool, float, str]:
            worth = quality(memory, visibility.now, self.rules).durable
            return is_cold(memory, self.rules), _is_over(memory), -worth, memory.id

        found: list[AnyMemory] = []
        for memory_type in DERIVED_TYPES:
            found += await self._latest(scope, memory_type, visibility)
        ordered = sorted(filter(_tells, found), key=place)
        summed_up = {note for one in ordered for note in notes_of(one)}
        notes = [one for one in ordered if one.id in summed_up]
        denied = await self.negations.denied(scope, notes, visibility) if notes else frozenset()
        return _with_summaries_first(ordered, lambda one: is_disputed(one) or one.id in denied)

    def _briefed(self, memory: AnyMemory, now: datetime) -> Briefed:
        worth = quality(memory, now, self.rules)
        return Briefed(
            memory=memory,
            score=worth.durable,
            explanation=worth.explain(),
            disputed=is_disputed(memory),
        )

    async def _latest(
        self, scope: Scope, memory_type: MemoryType, visibility: Visibility
    ) -> list[AnyMemory]:
        found: list[AnyMemory] = []
        cursor: str | None = None
        while len(found) < self.candidates:
            page = await self.repository.scroll(
                scope,
                memory_type,
                where=visible(visibility, memory_type),
                descending=True,
                limit=min(_PAGE, self.candidates - len(found)),
                cursor=cursor,
            )
            found += page.memories
            cursor = page.cursor
            if cursor is None:
                break
        return found


_OF_SOMEBODY = frozenset({FactCategory.EMAIL, FactCategory.PHONE, FactCategory.NAME})
_SAID_BEFORE = frozenset({"he", "she", "it", "they", "this", "that", "these", "those"})


def _tells(memory: AnyMemory) -> bool:
    """Whether it is a statement that says something by itself."""
    if isinstance(memory, Fact) and memory.category in _OF_SOMEBODY and memory.slot is None:
        # Whose it is, nobody said.
        return False
    if isinstance(memory, SemanticMemory) and memory.form not in ANSWERING_FORMS:
        return False
    if memory.content.partition(" ")[0].casefold() in _SAID_BEFORE:
        # Who "she" is stands in another turn.
        return False
    return not is_excerpt(memory)


def _is_over(memory: AnyMemory) -> bool:
    slot = memory.slot if isinstance(memory, SemanticMemory) else None
    return slot is not None and ends_something(slot)
