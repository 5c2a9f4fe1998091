"""Ending denials that were taken back: "I don't use Mongo", and later "I use Mongo".

What ends a denial is a conclusion. Where a turn says the opposite and nothing was concluded from
it, because no rule knows the verb or no model thought it worth a memory, that is concluded here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from engram.domain.memories import (
    AnyMemory,
    Episode,
    Evidence,
    MemoryForm,
    MemoryStatus,
    MemoryType,
    NegationFact,
    SemanticMemory,
    not_replaced,
    replaced,
    replacing,
)
from engram.domain.plan import Statement
from engram.domain.scope import Scope
from engram.domain.slots import USER
from engram.domain.turns import is_first_party, without_injected_context
from engram.giving_way import computed
from engram.language.negation import find_negations
from engram.language.negation_scope import (
    affirms,
    brings_about,
    claim_terms,
    covers,
    pattern_terms,
)
from engram.language.periods import starts_told
from engram.language.statements.clauses import Sentence, clauses, is_reported, sentences, verbatim
from engram.language.statements.third_person import as_statement, retold, third_person
from engram.language.vocabulary import expression
from engram.lifecycle.denials import denials_among, sharing_words, standing_denials
from engram.lifecycle.promotion_pass import follow_sources
from engram.ports import (
    AnyOf,
    Between,
    Embedder,
    Equals,
    Filter,
    MemoryRepository,
    Missing,
    Not,
)
from engram.storage.updates import (
    MemoryChange,
    NewWriteId,
    episodes_by_id,
    every_page,
    existing,
    update_memories,
)

_SEMANTIC = (MemoryType.SEMANTIC,)
_DENYING = (MemoryType.NEGATION, MemoryType.SEMANTIC)
_STATED: Filter = (Equals("form", MemoryForm.STATEMENT.value),)
# "I bought a car last month" can be said of the day after "I have no car".
_IMPRECISION = timedelta(days=31)
_USER = re.compile(r"\bthe user(?P<own>'s)?(?!\w)", re.IGNORECASE)
_DOES_NOT = re.compile(r" (?:(?:does|do) not (?P<verb>[a-z]{1,40})|(?P<be>is|are) not)(?=[ .])")
# Who does it again does it; what else is told of it says no more than how.
_PLAINLY = re.compile(r"[,;:]|\bagain\b", re.IGNORECASE)
_SPEAKING = re.compile(r"(?:i|we)(?:'|\b)", re.IGNORECASE)
# The words are the turn's, but put together anew.
_REWORDED = 0.75


class _TakenBack(NamedTuple):
    """What denies, and the turn by which something affirms it."""

    denial: NegationFact | SemanticMemory
    by: SemanticMemory
    turn: Episode


@dataclass(frozen=True, slots=True)
class Denials:
    """Ends denials that were taken back. Every method may run twice.

    A denial ends when the same person says what it denies after the denial was told last. By
    the conversation's time: in which order the turns were read does not show.

    Args:
        repository: Where memories are kept; it stamps what it writes.
        embedder: Knows how long vectors are.
        new_write_id: Makes a fresh value for each write.
    """

    repository: MemoryRepository
    embedder: Embedder
    new_write_id: NewWriteId

    async def end(self, scope: Scope, episode_ids: Collection[str]) -> tuple[str, ...]:
        """End the denials that these turns take back, and those of theirs that others did.

        Args:
            scope: Whose they are.
            episode_ids: Turns; what they state is stored.

        Returns:
            The denials that are ended, and the statements that say the same.
        """
        known = await self.repository.count(scope, MemoryType.NEGATION) if episode_ids else 0
        if not known:
            return ()
        repository = self.repository
        said = _stated(await _drawn(repository, scope, MemoryType.SEMANTIC, episode_ids))
        denied = denials_among(await _drawn(repository, scope, MemoryType.NEGATION, episode_ids))
        standing = await standing_denials(self.repository, self.embedder, scope, said)
        pairs = _opposed(standing, said)
        if denied:
            alike = await sharing_words(
                self.repository, self.embedder, scope, MemoryType.SEMANTIC, denied, _STATED
            )
            pairs += _opposed(denied, _stated(alike))
        if not pairs:
            return ()
        return await self._end(scope, await self._taken_back(scope, pairs))

    async def _taken_back(
        self, scope: Scope, pairs: Sequence[tuple[NegationFact, SemanticMemory]]
    ) -> list[_TakenBack]:
        """Of what was taken back, by which turn first; statements go before the denial itself."""
        turns = await _turns_of(self.repository, scope, (one for pair in pairs for one in pair))
        first: dict[str, tuple[NegationFact, _TakenBack]] = {}
        for denial, affirming in pairs:
            turn = _first_after(affirming, denial, turns)
            if turn is None or not _is_so(denial, affirming, turn):
                continue
            known = first.get(denial.id)
            if known is None or _position(turn) < _position(known[1].turn):
                first[denial.id] = denial, _TakenBack(denial, affirming, turn)
        found: list[_TakenBack] = []
        for denial, ended in first.values():
            found += [*await self._said_as_well(scope, denial, ended), ended]
        return found

    async def _said_as_well(
        self, scope: Scope, denial: NegationFact, ended: _TakenBack
    ) -> list[_TakenBack]:
        """The statements drawn from the same turns that deny the same: "doesn't eat meat"."""
        drawn = await _drawn(self.repository, scope, MemoryType.SEMANTIC, denial.source_episode_ids)
        denying = [
            one
            for one in _stated(drawn)
            if one.status is MemoryStatus.ACTIVE and _denies_the_same(denial, one.content)
        ]
        turns = await _turns_of(self.repository, scope, (*denying, ended.by)) if denying else {}
        return [
            ended._replace(denial=one)
            for one in denying
            if _first_after(ended.by, one, turns) is not None
        ]

    async def _end(self, scope: Scope, ended: Sequence[_TakenBack]) -> tuple[str, ...]:
        """Note each at both ends, first at those that stay."""
        took_over: dict[str, list[str]] = {}
        for one in ended:
            took_over.setdefault(one.by.id, []).append(one.denial.id)

        def staying(memory: AnyMemory) -> AnyMemory | None:
            if not isinstance(memory, SemanticMemory):
                return None
            after = replacing(memory, took_over[memory.id])
            return None if after is memory else after

        going = {one.denial.id: one for one in ended}
        missing = await self._change(scope, took_over, staying)
        going = {key: one for key, one in going.items() if one.by.id not in missing}
        await self._change(scope, going, lambda memory: _replaced(memory, going[memory.id]))
        await follow_sources(self.repository, scope, going, self.new_write_id)
        # Forgotten meanwhile, it leaves nothing in anybody's place.
        left = await existing(self.repository, scope, took_over, _SEMANTIC)
        gone = {key: one.by.id for key, one in going.items() if one.by.id not in left}
        await self._change(scope, gone, lambda memory: _standing(memory, gone[memory.id]))
        return tuple(key for key in going if key not in gone)

    async def _change(
        self, scope: Scope, ids: Iterable[str], change: MemoryChange
    ) -> frozenset[str]:
        """The ids of what is not there."""
        updated = await update_memories(
            self.repository, scope, ids, change, new_write_id=self.new_write_id, types=_DENYING
        )
        return updated.missing


async def affirmations(
    repository: MemoryRepository,
    embedder: Embedder,
    scope: Scope,
    episodes: Sequence[Episode],
    stated: Sequence[Statement],
) -> tuple[Statement, ...]:
    """What turns say against standing denials, where their statements do not say it.

    Also what was said after a denial that comes late: when that turn was read, nothing denied
    what it says, and where no rule knows the verb nothing was concluded.

    Args:
        repository: Where denials are.
        embedder: Knows how long vectors are.
        scope: Whose.
        episodes: The turns.
        stated: What was found in them.

    Returns:
        "The user drinks coffee.", of who denied it before and says so now.
    """
    own = _in_their_own_words(episodes)
    denials = await standing_denials(repository, embedder, scope, own)
    earlier = await _said_before(repository, embedder, scope, denials, own)
    pairs = _possible(denials, own) + earlier
    return await _concluded(repository, scope, pairs, earlier, stated)


async def affirmed_before(
    repository: MemoryRepository,
    embedder: Embedder,
    scope: Scope,
    denials: Sequence[NegationFact],
) -> tuple[Statement, ...]:
    """What turns that are read already say against denials that come late, if nothing else does.

    Args:
        repository: Where the turns are.
        embedder: Knows how long vectors are.
        scope: Whose.
        denials: They stand, and so do the turns that they come from.
    """
    if not denials:
        return ()
    denying = _in_their_own_words((await _turns_of(repository, scope, denials)).values())
    earlier = await _said_before(repository, embedder, scope, denials, denying)
    return await _concluded(repository, scope, earlier, earlier, ())


async def deny_again(
    repository: MemoryRepository,
    scope: Scope,
    affirming: Iterable[AnyMemory],
    new_write_id: NewWriteId,
) -> None:
    """Let denials hold again where the turn that took them back is no source any more.

    Args:
        repository: Where memories are kept.
        scope: Whose.
        affirming: What lost a source, and stays.
        new_write_id: Makes a fresh value for each write.
    """
    by = {m.id: m for m in affirming if isinstance(m, SemanticMemory) and m.supersedes}
    ids = {old for heir in by.values() for old in heir.supersedes}
    found = await repository.get(scope, ids, _DENYING, fresh=True) if ids else {}
    over = [m for m in found.values() if m.superseded_known_at and _heir(m) in by]
    denials = denials_among(over)
    if not denials:
        return
    again = {m.id: _heir(m) for m in denials}
    again |= {
        m.id: _heir(m)
        for m in over
        if any(_heir(m) == _heir(one) and _denies_the_same(one, m.content) for one in denials)
    }
    turns = await _turns_of(repository, scope, (*over, *by.values()))
    again = {
        key: heir
        for key, heir in again.items()
        if _first_after(by[heir], found[key], turns) is None
    }
    await update_memories(
        repository,
        scope,
        again,
        lambda memory: _standing(memory, again[memory.id]),
        new_write_id=new_write_id,
        types=_DENYING,
    )


def _affirmed(
    pairs: Iterable[tuple[NegationFact, Episode]],
    stated: Sequence[Statement | SemanticMemory],
    turns: Mapping[str, Episode],
) -> tuple[Statement, ...]:
    since = (
        (denial, turn)
        for denial, turn in pairs
        if all(_comes_after(turn, turns[e]) for e in denial.source_episode_ids if e in turns)
    )
    made = (
        _affirmation(denial, turn) for denial, turn in since if not _is_stated(denial, turn, stated)
    )
    return tuple(one for one in made if one is not None)


def _in_their_own_words(turns: Iterable[AnyMemory]) -> list[Episode]:
    own = (one for one in turns if isinstance(one, Episode) and is_first_party(one))
    return [without_injected_context(one) for one in own]


async def _said_before(
    repository: MemoryRepository,
    embedder: Embedder,
    scope: Scope,
    denials: Sequence[NegationFact],
    denying: Sequence[Episode],
) -> list[tuple[NegationFact, Episode]]:
    """What may take these denials back, of turns that were read before those that deny."""
    told = {one.id: one for one in denying}
    pairs: list[tuple[NegationFact, Episode]] = []
    for denial in denials:
        for source in _sources(denial):
            if source in told:
                turn = told[source]
                after = await _read_before(repository, embedder, scope, denial, turn)
                pairs += _possible([denial], after)
    return pairs


async def _concluded(
    repository: MemoryRepository,
    scope: Scope,
    pairs: Sequence[tuple[NegationFact, Episode]],
    earlier: Sequence[tuple[NegationFact, Episode]],
    stated: Sequence[Statement],
) -> tuple[Statement, ...]:
    """What follows from the pairs that is neither stated nor, of earlier turns, known."""
    if not pairs:
        return ()
    read_before = {turn.id for _, turn in earlier}
    known = _stated(await _drawn(repository, scope, MemoryType.SEMANTIC, read_before))
    turns = await _turns_of(repository, scope, (denial for denial, _ in pairs))
    return await computed(_affirmed, pairs, (*stated, *known), turns)


async def _read_before(
    repository: MemoryRepository,
    embedder: Embedder,
    scope: Scope,
    denial: NegationFact,
    told: Episode,
) -> list[Episode]:
    """The turns that share words with a denial, were said after it and are read already."""
    # Those that are still to be read will meet the denial.
    where = (Between("timestamp", at_least=told.timestamp), Not(Missing("consolidated_at")))
    return _in_their_own_words(
        await sharing_words(repository, embedder, scope, MemoryType.EPISODIC, [denial], where)
    )


async def _drawn(
    repository: MemoryRepository, scope: Scope, kind: MemoryType, episode_ids: Collection[str]
) -> list[AnyMemory]:
    """What is known from these turns."""
    where = (AnyOf("source_episode_ids", tuple(sorted(episode_ids))),)
    if not episode_ids:
        return []
    return [one async for page in every_page(repository, scope, kind, where=where) for one in page]


def _possible(
    denials: Sequence[NegationFact], turns: Iterable[Episode]
) -> list[tuple[NegationFact, Episode]]:
    return [
        (denial, turn)
        for turn in turns
        for terms in (claim_terms(turn),)
        for denial in denials
        if _may_be_affirmed(denial, turn, terms)
    ]


def _may_be_affirmed(denial: NegationFact, turn: Episode, terms: frozenset[str]) -> bool:
    same = denial.is_test == turn.is_test and denial.subject == (turn.speaker or USER).casefold()
    return same and terms.issuperset(pattern_terms(denial.negates_pattern)[1:])


def _is_stated(
    denial: NegationFact, turn: Episode, stated: Iterable[Statement | SemanticMemory]
) -> bool:
    return any(
        affirms(denial, one.content)
        for one in stated
        if turn.id in (one.episode_ids if isinstance(one, Statement) else _sources(one))
    )


def _affirmation(denial: NegationFact, turn: Episode) -> Statement | None:
    """What a turn says that a denial denies; None where it does not plainly say so."""
    said = _DOES_NOT.search(denial.content)
    where = _where_affirmed(denial, turn) if said else None
    if said is None or where is None:
        return None
    does = said["be"] or third_person(said["verb"])
    content = f"{denial.content[: said.start()]} {does}{denial.content[said.end() :]}"
    known = as_statement(content)
    return Statement(
        content=content,
        subject=denial.subject if known else None,
        predicate=known.predicate if known else None,
        object=known.object if known else None,
        evidence=(Evidence(episode_id=turn.id, words=verbatim(turn.content, where)),),
        confidence=_REWORDED,
        episode_ids=(turn.id,),
    )


def _where_affirmed(denial: NegationFact, turn: Episode) -> Sentence | None:
    """The sentence in which the speaker says of themselves that it is so."""
    who = turn.speaker or "The user"
    for sentence in sentences(turn.content):
        told = (
            retold(one.text, who)
            for one in clauses(sentence)
            if _SPEAKING.match(one.text)
            and not is_reported(sentence.text.removesuffix(one.text))
            and not _is_limited(denial, one.text)
        )
        if any(affirms(denial, one) for one in told) and not _was_long_ago(denial, sentence, turn):
            return sentence
    return None


def _is_limited(denial: NegationFact, clause: str) -> bool:
    """Whether it is said only of some time, place or case: "I take ibuprofen in emergencies"."""
    verb = pattern_terms(denial.negates_pattern)[0]
    # A dog from the shelter is one's own, a car from the rental place is not.
    limits = ("seldom", "lent") if verb == "have" else ("seldom", "limited_to")
    said = _PLAINLY.split(clause, maxsplit=1)[0]
    return any(expression("statements", name).search(said) for name in limits)


def _was_long_ago(denial: NegationFact, sentence: Sentence, turn: Episode) -> bool:
    """Whether it tells of a time before the denial: "In 2015 I bought a car"."""
    told = denial.confidence.last_confirmed - _IMPRECISION
    return any(one.at < told for one in starts_told(sentence.text, turn.said_at))


async def _turns_of(
    repository: MemoryRepository, scope: Scope, memories: Iterable[AnyMemory]
) -> dict[str, Episode]:
    return await episodes_by_id(repository, scope, {e for m in memories for e in _sources(m)})


def _sources(memory: AnyMemory) -> tuple[str, ...]:
    return () if isinstance(memory, Episode) else memory.source_episode_ids


def _heir(memory: AnyMemory) -> str:
    return "" if isinstance(memory, Episode) else memory.superseded_by or ""


def _stated(memories: Iterable[AnyMemory]) -> list[SemanticMemory]:
    return [
        m
        for m in memories
        if isinstance(m, SemanticMemory) and m.form is MemoryForm.STATEMENT and m.refuted_at is None
    ]


def _opposed(
    denials: Iterable[NegationFact], said: Sequence[SemanticMemory]
) -> list[tuple[NegationFact, SemanticMemory]]:
    """Each denial with what says that it is so, whenever either was said."""
    claims = [(one, claim_terms(one)) for one in said]
    return [
        (denial, one)
        for denial in denials
        for terms in (frozenset(pattern_terms(denial.negates_pattern)[1:]),)
        for one, claimed in claims
        if denial.is_test == one.is_test and terms <= claimed and _takes_back(denial, one)
    ]


def _takes_back(denial: NegationFact, one: SemanticMemory) -> bool:
    if one.slot is None:
        return affirms(denial, one.content)
    return covers(denial, one) or brings_about(denial, one)


def _is_so(denial: NegationFact, affirming: SemanticMemory, turn: Episode) -> bool:
    """Whether what was told in that turn was so from then on, as far as was known."""
    until = affirming.superseded_known_at
    if affirming.status is not MemoryStatus.ACTIVE and (until is None or until <= turn.timestamp):
        return False
    told = denial.confidence.last_confirmed
    # "I bought a car in 2015" does not say that there is one now.
    return covers(denial, affirming) or affirming.event_at >= told - _IMPRECISION


def _denies_the_same(denial: NegationFact, content: str) -> bool:
    """Whether a statement, as Engram words it, says what the denial says."""
    said = _USER.sub(lambda found: "my" if found["own"] else "I", content)
    terms = pattern_terms(denial.negates_pattern)
    return any(
        pattern_terms(one.negates_pattern) == terms and one.subject == denial.subject
        for one in find_negations(said)
    )


def _first_after(
    affirming: AnyMemory, denial: AnyMemory, turns: Mapping[str, Episode]
) -> Episode | None:
    """The first turn that affirms after the last one that denies; None where there is none."""
    denying = [turns[e] for e in _sources(denial) if e in turns]
    later = [
        turns[e]
        for e in _sources(affirming)
        if e in turns and denying and all(_comes_after(turns[e], one) for one in denying)
    ]
    return min(later, key=_position, default=None)


def _comes_after(one: Episode, other: Episode) -> bool:
    """Turns of one conversation follow each other, whatever their timestamps."""
    if one.timestamp == other.timestamp:
        return one.session_id == other.session_id and one.sequence > other.sequence
    return one.timestamp > other.timestamp


def _position(turn: Episode) -> tuple[datetime, str, int]:
    return turn.timestamp, turn.session_id or "", turn.sequence


def _replaced(memory: AnyMemory, ended: _TakenBack) -> AnyMemory | None:
    """The denial as history; None where it is that already, or was told again meanwhile."""
    if not isinstance(memory, NegationFact | SemanticMemory) or memory.refuted_at is not None:
        return None
    when, until = ended.turn.timestamp, memory.superseded_known_at
    if memory.source_episode_ids != ended.denial.source_episode_ids:
        return None
    if memory.status is MemoryStatus.SUPERSEDED and (until is None or until <= when):
        return None
    return replaced(memory, ended.by.id, when)


def _standing(memory: AnyMemory, heir: str) -> AnyMemory | None:
    """The denial as it was before this took its place; None where something else did."""
    if not isinstance(memory, NegationFact | SemanticMemory) or memory.superseded_by != heir:
        return None
    return not_replaced(memory)
