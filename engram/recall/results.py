"""Candidates on their way to becoming answers, and the answers."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, tzinfo
from operator import itemgetter
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from engram.domain.memories import (
    AnyMemory,
    DerivedMemory,
    Episode,
    MemoryType,
    Provenance,
    RunLink,
)
from engram.domain.values import Period

# --- what recall gives back

JUST_BELOW: Final = 0.999
"""Of a score: just enough to come after, so that it stays near what it belongs to."""


class _ResultPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ScorePart(_ResultPart):
    """One part of a score.

    Attributes:
        name: What was looked at: `sparse`, `dense`, `around`, `subject`, `advice`, `cue`,
            `period` and `asking` make up the score of a search, which `floor` keeps from going
            below 0; `lifecycle`, `cold`, `confidence`, `faded` and `importance` are what the
            memory is; `context` is when a habit applies; `link`, `answers`, `answered`, `echo`,
            `newest`, `older`, `own`, `outdated`, `replaces`, `replaced`, `negated`, `same_words`,
            `excerpt` and `reranked` moved it.
        raw: What was measured: cosine similarity, BM25 score, confidence of the
            link, number of negations, factor. None where nothing was.
        value: The same, brought to 0 to 1.
        weight: What it was multiplied with.
        contribution: What it added to the score, or took from it.
    """

    name: str
    raw: float | None
    value: float
    weight: float
    contribution: float


class ExplainedLink(_ResultPart):
    """An edge on the way from an answer to this memory.

    Attributes:
        source_id: The memory it leads from.
        kind: Why the two are linked.
        confidence: 0 to 1.
    """

    source_id: str
    kind: str
    confidence: float


class RecallExplanation(_ResultPart):
    """Why a memory came back, and came back where it did.

    ``str()`` of it is for people; the fields, also as JSON, are for programs.

    Attributes:
        parts: What the score is made of; their contributions sum up to it.
        filters: What the request asked for and this memory passed, in words.
        linked_from: The hit whose link led here, where one did.
        links: The whole way there, from an answer on.
        confidence: The composite confidence in one sentence; None for episodes.
        dispute: What speaks against it, in one sentence; None where nothing does.
        period: The time that the question was read to name; None where it names none.
        provenance: The run that wrote the memory.
        run_url: Where the Temporal UI shows that run, when there is a UI.
    """

    parts: tuple[ScorePart, ...]
    filters: tuple[str, ...]
    linked_from: str | None = None
    links: tuple[ExplainedLink, ...] = ()
    confidence: str | None = None
    dispute: str | None = None
    period: Period | None = None
    provenance: Provenance = Provenance()
    run_url: str | None = None

    @property
    def text(self) -> str:
        """The explanation in a few lines."""
        total = sum(part.contribution for part in self.parts)
        lines = [f"score {total:.3f} = {' '.join(map(_said, self.parts)).removeprefix('+ ')}"]
        lines.extend(
            f"linked from {link.source_id} ({link.kind}, conf={link.confidence:.2f})"
            for link in self.links
        )
        lines.append(f"passed: {', '.join(self.filters)}")
        if self.period is not None:
            lines.append(f"asked about {self.period}")
        if self.confidence is not None:
            lines.append(f"confidence {self.confidence}")
        if self.dispute is not None:
            lines.append(self.dispute)
        origin = self.provenance
        if origin.workflow_id is not None:
            written = f"written by {origin.workflow_id}"
            written += f" run {origin.run_id}" if origin.run_id else ""
            written += f" with {origin.model}" if origin.model else ""
            lines.append(written)
        if self.run_url is not None:
            lines.append(f"see {self.run_url}")
        return "\n".join(lines)

    def __str__(self) -> str:
        """See :attr:`text`."""
        return self.text


def _said(part: ScorePart) -> str:
    sign = "-" if part.contribution < 0 else "+"
    raw = "" if part.raw is None else f" ({part.raw:.2f})"
    return f"{sign} {abs(part.contribution):.3f} {part.name}{raw}"


class RecallHit(_ResultPart):
    """One answer.

    Attributes:
        memory: What is remembered. A hit of an episode is that turn, nothing wider.
        score: 0 to 1, best first. Comparable within one answer only.
        confidence: The composite score at the time of asking, 0 to 1; None for episodes.
        sources: The episodes it was concluded from, when asked for.
        negated_by: Negations, known later, that speak against this episode.
        disputed: Whether the user, or another memory that nothing settles, speaks against it;
            of an episode, whether what was concluded from it, all or what the question asks for,
            was replaced, and some of that refuted.
        explanation: When asked for.
        run: What wrote the memory; None of one that no run wrote.
    """

    memory: AnyMemory
    score: float = Field(ge=0, le=1)
    confidence: float | None = Field(default=None, ge=0, le=1)
    sources: tuple[Episode, ...] = ()
    negated_by: tuple[str, ...] = ()
    disputed: bool = False
    explanation: RecallExplanation | None = None
    run: RunLink | None = None


# --- the days that answers are shown with


class Days(NamedTuple):
    """Tells days to a user.

    Attributes:
        zone: Where the user is; UTC if None.
    """

    zone: tzinfo | None = None

    def of(self, moment: datetime) -> str:
        """The day that a moment lies in."""
        return f"{moment if self.zone is None else moment.astimezone(self.zone):%Y-%m-%d}"

    def of_turn(self, turn: Episode) -> str:
        """The day that a turn was said on: where it was said, if that is known.

        "Tomorrow" in it is read by that day.
        """
        return Days().of(turn.said_at) if turn.utc_offset is not None else self.of(turn.timestamp)

    def told(self, at: datetime, memory: DerivedMemory, sources: Iterable[Episode] = ()) -> str:
        """The day of a time that a memory has of a turn, or of what was told in one.

        A day that was told is kept in UTC, and is the same everywhere.
        """
        for turn in sources:
            if turn.timestamp == at:
                return self.of_turn(turn)
        of_a_turn = at in {memory.known_at, memory.superseded_known_at}
        return self.of(at) if of_a_turn else Days().of(at)


# --- a candidate on its way to becoming an answer


class Part(NamedTuple):
    """A part of a score before it is shown: a recall makes a hundred and shows few.

    Attributes:
        name: What was looked at.
        value: What was found, 0 to 1.
        weight: Its share of the score; negative where it takes away.
        raw: What was measured, where that is another number.
    """

    name: str
    value: float
    weight: float
    raw: float | None = None

    @property
    def contribution(self) -> float:
        """What it adds to the score, or takes from it."""
        return self.value * self.weight

    @property
    def shown(self) -> ScorePart:
        """The same for who asks why."""
        return ScorePart(**self._asdict(), contribution=self.contribution)


def change(name: str, by: float, raw: float | None = None) -> Part:
    """A part that adds ``by`` to a score, or takes it away."""
    return Part(name, abs(by), 1.0 if by > 0 else -1.0, raw)


class Ranked(NamedTuple):
    """A memory with its score and what the score is made of; never changed, only replaced.

    Attributes:
        parts: Their contributions sum up to the score; none where nobody asks for them.
        links: The steps by which it was reached, from an answer on.
        negated_by: Negations that speak against it.
        disputed: Whether something speaks against it that nothing settles; of a turn, whether
            what it said was refuted.
        asking: What it takes from the score that it is a question; 0 or less.
        explained: Whether parts are kept.
    """

    memory: AnyMemory
    score: float
    parts: tuple[Part, ...] = ()
    links: tuple[ExplainedLink, ...] = ()
    negated_by: tuple[str, ...] = ()
    disputed: bool = False
    asking: float = 0.0
    explained: bool = True

    @property
    def is_derived(self) -> bool:
        """Whether Engram concluded it, rather than having been told."""
        return self.memory.type is not MemoryType.EPISODIC

    def moved_to(self, score: float, name: str, raw: float | None = None) -> Ranked:
        """The same with another score; the difference becomes a part of this name."""
        if score == self.score:
            return self
        parts = self.parts
        if self.explained:
            parts = (*parts, change(name, score - self.score, raw))
        return self._replace(score=score, parts=parts)

    def behind(self, score: float, name: str) -> Ranked:
        """The same, just below that score where it stands above."""
        return self.moved_to(min(self.score, score * JUST_BELOW), name)

    def times(self, factor: float, name: str) -> Ranked:
        """The same with its score multiplied."""
        return self.moved_to(min(1.0, self.score * factor), name, factor)


_SCORE = itemgetter(Ranked._fields.index("score"))


def by_score(found: Iterable[Ranked]) -> list[Ranked]:
    """Best first, ties by type, so that users with the same memories get the same, then by id."""
    ordered = sorted(found, key=_SCORE, reverse=True)
    if len({*map(_SCORE, ordered)}) < len(ordered):
        # There are ties, which is rare, and to look for them costs a tenth of what ids cost.
        ordered.sort(key=lambda one: (-one.score, one.memory.type, one.memory.id))
    return ordered
