"""From what a model answers to statements: quotations checked, context told from testimony."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from engram.agents.answers import StatedKnowledge
from engram.domain.kinds import KindWords, kind_of
from engram.domain.memories import Episode, Evidence
from engram.domain.slots import slot_of
from engram.domain.statements import Statement
from engram.domain.verifying import holds
from engram.domain.witnesses import testifies
from engram.domain.word_forms import stem

_EARLIEST: Final = datetime(1800, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(2200, 1, 1, tzinfo=UTC)
_LONGEST_TAG: Final = 50
_WORD: Final = re.compile(r"\w+")
_SMALL_WORDS: Final = frozenset(
    "a an the and or of in on at to for from with as is was are be has have had".split()
)
# Words that tell of an ending which names nothing: "I retired", "we broke up".
_ENDING_WORDS: Final = frozenset(
    "no not never longer quit retir retire resign leav left lost lose fire laid redund unemploy "
    "jobless divorc separ broke split end stop over done homeless cancel between".split()
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What came of the statements of one answer.

    Attributes:
        statements: Those with a person for a source, in order.
        lost_references: Sources that were not shown.
        lost_quotes: Quotations that stand in none of their sources.
        without_witness: Statements that only context makes: nobody said so of themselves.
    """

    statements: tuple[Statement, ...]
    lost_references: int
    lost_quotes: int
    without_witness: int


def read(
    stated: Sequence[StatedKnowledge], shown: Mapping[str, Episode], words: KindWords
) -> Reading:
    """The statements, with the ids of their sources and the quotations that are there.

    Args:
        stated: As the model answered.
        shown: The turns by alias, as the model saw them.
        words: The vocabulary that tells episodes from notes.
    """
    read_ones = [(one, _sources(one, shown)) for one in stated if one.content.strip()]
    statements = [_statement(one, sources, words) for one, sources in read_ones]
    return Reading(
        statements=tuple(s for s in statements if s is not None),
        lost_references=len(unknown_sources(stated, shown)),
        lost_quotes=sum(len(lost_quotes(one, shown)) for one in stated),
        without_witness=sum(
            bool(sources) and not any(testifies(e) for e in sources) for _, sources in read_ones
        ),
    )


def unknown_sources(stated: Iterable[StatedKnowledge], shown: Mapping[str, Episode]) -> list[str]:
    """Each alias that was not shown, as often as it is named."""
    return [alias for one in stated for alias in one.sources if alias not in shown]


def lost_quotes(stated: StatedKnowledge, shown: Mapping[str, Episode]) -> list[str]:
    """The quotations of a statement that stand in none of its sources."""
    sources = _sources(stated, shown)
    return [
        quote
        for quote in stated.quotes
        if quote.strip() and sources and not any(holds(episode, quote) for episode in sources)
    ]


def _sources(stated: StatedKnowledge, shown: Mapping[str, Episode]) -> list[Episode]:
    return [shown[alias] for alias in dict.fromkeys(stated.sources) if alias in shown]


def _statement(
    stated: StatedKnowledge, sources: Sequence[Episode], words: KindWords
) -> Statement | None:
    # What an assistant or a tool said is context: neither source nor evidence.
    witnesses = [episode for episode in sources if testifies(episode)]
    if not witnesses:
        return None
    evidence = tuple(_evidence(stated.quotes, witnesses))
    content, tags = stated.content.strip(), tuple(_tags(stated.tags))
    attested = says_so(stated, evidence)
    slot = None
    if attested:
        slot = slot_of(stated.subject, stated.predicate, stated.object, holds=stated.holds)
    return Statement(
        content=content,
        category=stated.category,
        kind=kind_of(
            (content, *(quote.words for quote in evidence)),
            words,
            category=stated.category,
            tags=tags,
            slot=slot,
        ),
        subject=stated.subject,
        # Without its words in a turn it has no slot: it is a note that replaces nothing.
        predicate=stated.predicate if attested else None,
        object=stated.object if attested else None,
        holds=stated.holds or not attested,
        begins=stated.begins and attested,
        ended=stated.ended if attested else None,
        entities=tuple(stated.entities),
        tags=tags,
        evidence=evidence,
        event_at=_believable(stated.happened_at),
        confidence=stated.confidence,
        importance=stated.importance,
        episode_ids=tuple(episode.id for episode in witnesses),
    )


def says_so(stated: StatedKnowledge, evidence: Sequence[Evidence]) -> bool:
    """Whether the quoted words name what the statement is about, so that it may replace others.

    A model that is confused, or talked into it, can end anything with a fluent
    sentence; it cannot make the user's own words name it.
    """
    if not evidence:
        return False
    said = set(_stems(" ".join(one.words for one in evidence)))
    named = set(_stems(stated.object or ""))
    if named:
        return not named.isdisjoint(said)
    return not said.isdisjoint({*_stems(stated.predicate or ""), *_ENDING_WORDS})


def _stems(text: str) -> Iterable[str]:
    return (stem(word) for word in _WORD.findall(text.casefold()) if word not in _SMALL_WORDS)


def _evidence(quotes: Sequence[str], sources: Sequence[Episode]) -> Iterable[Evidence]:
    for quote in dict.fromkeys(quote.strip() for quote in quotes):
        source = next((e for e in sources if quote and holds(e, quote)), None)
        if source is not None:
            yield Evidence(episode_id=source.id, words=quote)


def _tags(tags: Sequence[str]) -> Iterable[str]:
    named = (" ".join(tag.casefold().split())[:_LONGEST_TAG] for tag in tags)
    return dict.fromkeys(tag for tag in named if tag)


def _believable(moment: datetime | None) -> datetime | None:
    """The moment with a timezone; models leave it out, and invent the year 1."""
    if moment is None:
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return aware if _EARLIEST <= aware <= _LATEST else None
