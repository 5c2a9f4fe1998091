"""The stages of recall after scoring, in the order in which they run."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

import structlog

from engram.consolidation.amendments import LATEST_KEPT, folded_count
from engram.domain.confidence import Verification
from engram.domain.identity import normalise, stream_safe
from engram.domain.memories import (
    AnyMemory,
    DerivedMemory,
    Episode,
    Fact,
    FactCategory,
    Link,
    MemoryStatus,
    NegationFact,
    SemanticMemory,
    Slot,
    is_excerpt,
    notes_of,
)
from engram.domain.occasions import FOLDED, without_occasions
from engram.domain.rules import EdgeRules
from engram.domain.slots import IS_CALLED, USER, ends_something, held_predicate, is_functional
from engram.errors import EngramError
from engram.language.query import (
    Analysis,
    AskedFor,
    asks_for_own,
    asks_only_of,
    holds_cue,
    in_the_users_place,
    matter_of,
    tells_of_a_change,
)
from engram.language.text import bare_stems, topic_stems
from engram.lifecycle.decisions import taken_back
from engram.lifecycle.links import edge_confidence
from engram.lifecycle.policies import disputed_with
from engram.ports import (
    MemoryRepository,
    Reranker,
)
from engram.recall.request import Visibility
from engram.recall.results import JUST_BELOW, ExplainedLink, Ranked, by_score
from engram.recall.search import PreparedQuery
from engram.storage.updates import episodes_by_id

# --- a question that calls the user by name is one about the user


def asked_of_the_user(query: str, found: Iterable[AnyMemory], now: datetime) -> str | None:
    """``query`` put as one about the user, where it calls him by a name that was ``found``.

    "Where does Kate live?" is "Where does the user live?", once it is known that the user is
    called Kate; the words that hold the name are not what is asked for. None where it asks for
    the name, or where somebody else who is spoken of, or speaks, is called so as well.
    """
    memories = list(found)
    slots = [slot for one in memories if (slot := _told_of(one)) is not None]
    own = {slot.object for slot in slots if (slot.subject, slot.predicate) == (USER, IS_CALLED)}
    others = {slot.subject for slot in slots if slot.subject != USER}
    others |= {one.speaker for one in memories if isinstance(one, Episode) and one.speaker}
    called = {name.casefold().partition(" ")[0] for name in others}
    for name in sorted(own):
        asked = in_the_users_place(query, name, now)
        if asked is not None and name.partition(" ")[0] not in called:
            return asked
    return None


def _told_of(memory: AnyMemory) -> Slot | None:
    if isinstance(memory, Fact):
        return memory.slot if memory.status is MemoryStatus.ACTIVE else None
    return _slot_of(memory)


# --- who asks for their own address asks for none of all those that were ever mentioned

_OWN_FACTS: Mapping[str, FactCategory] = {
    "email": FactCategory.EMAIL,
    "phone": FactCategory.PHONE,
    "site": FactCategory.URL,
    "name": FactCategory.NAME,
}
_OWN_SLOTS: Mapping[str, frozenset[str]] = {
    "email": frozenset({"email is"}),
    "phone": frozenset({"phone number is", "mobile number is", "landline is"}),
    "site": frozenset({"site is", "blog is", "portfolio is"}),
    "name": frozenset({IS_CALLED}),
    "address": frozenset({"address is", "home address is", "postal address is"}),
}


def own_first(question: PreparedQuery, found: Sequence[Ranked]) -> list[Ranked]:
    """Best first, the user's own before all else where that is what is asked for.

    Of several, what the question names comes first: the work email where that is asked for,
    else the one that is called nothing more. Not where what was is asked for.
    """
    kinds = asks_for_own(question.request.query)
    if not kinds or question.analysis.former or question.visibility.valid_at is not None:
        return list(found)
    own = [one for one in found if any(_is_own(one.memory, kind) for kind in kinds)]
    asked = bare_stems(question.request.query)

    def place(one: Ranked) -> tuple[int, int, float, str]:
        slot = _told_of(one.memory)
        called = bare_stems(slot.predicate) if slot is not None else frozenset()
        return len(asked & called), -len(called), one.score, one.memory.id

    known = {one.memory.id: one for one in found}
    best = max((one.score for one in found), default=0.0)
    for one in sorted(own, key=place):
        best = min(1.0, best / JUST_BELOW)
        known[one.memory.id] = one.moved_to(best, "own")
    return by_score(known.values())


def _is_own(memory: AnyMemory, kind: str) -> bool:
    slot = _told_of(memory)
    if slot is None or slot.subject != USER:
        return False
    of_kind = isinstance(memory, Fact) and memory.category is _OWN_FACTS.get(kind)
    return of_kind or slot.predicate in _OWN_SLOTS[kind]


# --- following links: what the answers are connected with
#
# Activation spreads from the best answers along their links. A step passes on a
# share of what it starts from, times how sure the link still is at the moment one
# looks from, less with every step; links under the bound of the settings are not followed.
# A memory that several answers lead to collects from each. Rounds in the manner of
# personalised PageRank (Page et al. 1998) then settle how much each is worth.

HOPS = 2
# What one step is worth, at full confidence of the link.
STEP = 0.5
MOST_NEIGHBOURS = 100


@dataclass(frozen=True, slots=True)
class _Edge:
    source: str
    target: str
    kind: str
    confidence: float


async def follow(
    repository: MemoryRepository,
    question: PreparedQuery,
    found: Sequence[Ranked],
    passes: Callable[[AnyMemory], bool],
    rules: EdgeRules,
) -> list[Ranked]:
    """``found`` and what its best lead to, which passes the same filters, best first.

    What was found as well gains: of what is missing in its score to 1, the share
    that the links hint at. ``rules`` say how links weaken unless they are found again.
    """
    known = {one.memory.id: one for one in found}
    seeds = {one.memory.id: one.score for one in found[: question.request.limit]}
    memories = {one.memory.id: one.memory for one in found}
    edges, paths = await _walk(repository, question, seeds, memories, passes, rules)
    if not edges:
        return list(found)
    for memory_id, hint in _hints(seeds, edges, rules.rounds).items():
        steps = paths.get(memory_id)
        if steps is None or hint <= 0.0:
            continue
        one = known.get(memory_id, Ranked(memories[memory_id], 0.0))
        raised = one.moved_to(one.score + hint * (1.0 - one.score), "link", steps[-1].confidence)
        known[memory_id] = raised._replace(links=steps)
    return by_score(known.values())


async def _walk(
    repository: MemoryRepository,
    question: PreparedQuery,
    seeds: Mapping[str, float],
    memories: dict[str, AnyMemory],
    passes: Callable[[AnyMemory], bool],
    rules: EdgeRules,
) -> tuple[list[_Edge], dict[str, tuple[ExplainedLink, ...]]]:
    """Edges up to ``HOPS`` away, and the surest path to each memory; reads what is missing."""
    edges: list[_Edge] = []
    paths: dict[str, tuple[ExplainedLink, ...]] = {}
    border = sorted(seeds, key=lambda memory_id: (-seeds[memory_id], memory_id))
    walked: set[str] = set()
    for _ in range(HOPS):
        outward = [
            edge
            for memory_id in border
            if memory_id not in walked
            for edge in _edges(question, memories.get(memory_id), rules)
        ]
        walked.update(border)
        outward.sort(key=lambda edge: (-edge.confidence, edge.target, edge.source))
        missing = {edge.target: None for edge in outward if edge.target not in memories}
        wanted = list(missing)[:MOST_NEIGHBOURS]
        if wanted:
            fetched = await repository.get(question.scope, wanted, question.request.types)
            memories |= {key: memory for key, memory in fetched.items() if passes(memory)}
        reached = [edge for edge in outward if edge.target in memories]
        for edge in reached:
            step = ExplainedLink(source_id=edge.source, kind=edge.kind, confidence=edge.confidence)
            # An answer is where a way begins; none leads back to where it began.
            before = () if edge.source in seeds else paths.get(edge.source, ())
            if all(earlier.source_id != edge.target for earlier in before):
                paths.setdefault(edge.target, (*before, step))
        edges.extend(reached)
        border = sorted({edge.target for edge in reached})
    return edges, paths


def _edges(question: PreparedQuery, memory: AnyMemory | None, rules: EdgeRules) -> list[_Edge]:
    if not isinstance(memory, DerivedMemory):
        return []
    moment = question.visibility.moment
    return [
        _Edge(memory.id, link.target_id, link.kind.value, confidence)
        for link in memory.links
        if _known(question, link)
        and (confidence := edge_confidence(link, moment, rules)) >= rules.follow_from
    ]


def _hints(seeds: Mapping[str, float], edges: Sequence[_Edge], rounds: int) -> dict[str, float]:
    """How strongly the links of all others speak for each memory they lead to, 0 to 1.

    What an answer gave to another does not come back to it from there: most links lead both ways.
    """
    hints: dict[str, float] = {}
    targets = {edge.target for edge in edges}
    ways: dict[tuple[str, str], int] = {}
    for edge in edges:
        ways.setdefault((edge.source, edge.target), len(ways))
    # With the way there, and the way back to an answer; where there is none, what stands last.
    steps = [
        (
            edge.source,
            edge.target,
            edge.confidence * STEP,
            ways[edge.source, edge.target],
            ways.get((edge.target, edge.source), -1) if edge.target in seeds else -1,
        )
        for edge in edges
    ]
    given = [1.0] * (len(ways) + 1)
    # Fewer would not reach what is the most steps away.
    for _ in range(max(rounds, HOPS)):
        rest, now = dict.fromkeys(targets, 1.0), [1.0] * (len(ways) + 1)
        for source, target, share, way, back in steps:
            others = 1.0 - (1.0 - hints.get(source, 0.0)) / given[back]
            # What was asked for stays the source of everything.
            worth = max(seeds.get(source, 0.0), others)
            # As independent hints: several add up, and never past 1.
            left = 1.0 - worth * share
            rest[target] *= left
            now[way] *= left
        hints, given = {target: 1.0 - left for target, left in rest.items()}, now
    return hints


def _known(question: PreparedQuery, link: Link) -> bool:
    as_of = question.visibility.as_of
    return as_of is None or link.first_seen <= as_of


# --- what was replaced never stands above what replaced it


def below_successors(found: Sequence[Ranked]) -> list[Ranked]:
    """Best first, each replaced memory after the one that replaced it, where both are there.

    Both are there only when the question is about a time at which either may
    have been true (``valid_at``).
    """
    known = {one.memory.id: one for one in found}
    for memory_id in list(known):
        _lower(memory_id, known, set())
    _endings_last(known)
    return by_score(known.values())


def _endings_last(known: dict[str, Ranked]) -> None:
    """What is no longer so behind what is: "no longer works at Google", "works at Nimbus"."""
    told = [(one, slot) for one in known.values() if (slot := _slot_of(one.memory)) is not None]
    for old, over in told:
        if not ends_something(over) or not is_functional(over):
            continue
        ended = (over.subject, held_predicate(over))
        holding = [new.score for new, slot in told if (slot.subject, slot.predicate) == ended]
        if holding:
            known[old.memory.id] = old.behind(max(holding), "replaced")


def instead_first(question: PreparedQuery, found: Sequence[Ranked]) -> list[Ranked]:
    """What holds before what the same turn says is over, or not so, where nobody asks for that.

    "I don't use Vim any more, I switched to Neovim" answers "Which editor do I use?" with Neovim:
    the two change places where the ending stands first. Who asks for Vim gets the ending.
    """
    if question.analysis.former or question.visibility.valid_at is not None:
        return list(found)
    known = {one.memory.id: one for one in found}
    asked = bare_stems(question.request.query)
    holding = [
        (one.memory, slot)
        for one in found
        if isinstance(one.memory, SemanticMemory)
        and (slot := _slot_of(one.memory)) is not None
        and not ends_something(slot)
        and asked.isdisjoint(bare_stems(slot.object))
    ]
    for over in [one.memory for one in found]:
        gone = _over_unasked(over, asked)
        if gone is None or not isinstance(over, DerivedMemory):
            continue
        turns = set(over.source_episode_ids)
        instead = [
            known[new.id]
            for new, slot in holding
            if gone(slot) and not turns.isdisjoint(new.source_episode_ids)
        ]
        if not instead:
            continue
        new, old = max(instead, key=lambda one: one.score), known[over.id]
        if old.score > new.score * JUST_BELOW:
            best = max(old.score, new.score)
            known[new.memory.id] = new.moved_to(best, "newest")
            known[over.id] = old.moved_to(min(old.score, new.score, best * JUST_BELOW), "replaced")
    return by_score(known.values())


def unasked_endings_last(question: PreparedQuery, found: Sequence[Ranked]) -> list[Ranked]:
    """What is over behind the best that holds of the same kind, where nobody asks for it.

    "No longer uses Helix" tells less to who asks which linter is used than what is used. Who
    asks for Helix gets the ending, and who asks what was given up gets them all.
    """
    if question.analysis.former or question.visibility.valid_at is not None:
        return list(found)
    asked = bare_stems(question.request.query)
    holding: dict[tuple[str, str], float] = {}
    over: list[tuple[Ranked, tuple[str, str]]] = []
    for one in found:
        slot = _slot_of(one.memory)
        if slot is None or not slot.object:
            continue
        kind = slot.subject, held_predicate(slot)
        if not ends_something(slot):
            holding[kind] = max(one.score, holding.get(kind, 0.0))
        elif asked.isdisjoint(bare_stems(slot.object)):
            over.append((one, kind))
    known = {one.memory.id: one for one in found}
    for one, kind in over:
        known[one.memory.id] = one.behind(holding.get(kind, 1.0), "replaced")
    return by_score(known.values())


def _over_unasked(memory: AnyMemory, asked: frozenset[str]) -> Callable[[Slot], bool] | None:
    """What tells the slots that can stand in place of an ending or a denial, if it is one.

    None where the question names what is over.
    """
    if isinstance(memory, NegationFact):
        denied, subject = memory.negates_pattern, memory.subject
        verb = denied.partition(" ")[0]
        if not asked.isdisjoint(bare_stems(denied) - bare_stems(verb)) or " " not in denied:
            return None
        return lambda slot: (
            slot.subject == subject and bool(bare_stems(verb) & bare_stems(slot.predicate))
        )
    ended = _slot_of(memory)
    if ended is None or not ends_something(ended) or asked & bare_stems(ended.object):
        return None
    return lambda slot: (slot.subject, slot.predicate) == (ended.subject, held_predicate(ended))


def _slot_of(memory: AnyMemory) -> Slot | None:
    if not isinstance(memory, SemanticMemory) or memory.status is not MemoryStatus.ACTIVE:
        return None
    return memory.slot


def _lower(memory_id: str, known: dict[str, Ranked], path: set[str]) -> None:
    one = known[memory_id]
    successor = one.memory.superseded_by if isinstance(one.memory, DerivedMemory) else None
    if successor is None or successor not in known or memory_id in path:
        return
    _lower(successor, known, path | {memory_id})
    known[memory_id] = one.behind(known[successor].score, "replaced")


# --- turns that say the same of the same: the newest first

# So much of the words of two turns must be common; the rest is the value that changed.
_ALIKE = 0.5
# An older turn keeps so much of its score, with however many it changes places.
_KEPT_OF_OLDER = 0.5
# A longer turn says more than one thing.
_LONGEST_STATEMENT = 300


def newest_first(found: Sequence[Ranked], query: str, analysis: Analysis) -> list[Ranked]:
    """``found``, where of turns of one voice in nearly the same words the newest stands first.

    "The key lives in Vault" and, a month later, "the key lives in 1Password now" match a
    question equally; no conclusion has to have been drawn from either. An older turn that
    stands before a newer one changes places with it, unless ``query`` names what only the older
    is about: ENG-7, where the newer tells of ENG-17. What tells of a change in other words
    ("moved the key to 1Password") comes just before what it changed, unless ``query`` may ask
    for what was.
    """
    known = list(found)
    had = {one.memory.id: one.score for one in found}
    stated_in = {one.memory.id: _statement(one.memory) for one in found}
    told = [(at, said) for at, one in enumerate(known) if (said := stated_in[one.memory.id])]
    for first, (old, stated) in enumerate(told):
        said = stated
        for then in range(first + 1, len(told)):
            new, later = told[then]
            if (
                later.known_at > said.known_at
                and later.voice == said.voice
                and _alike(later.words, said.words)
                and not asks_only_of(query, said.content, later.content)
            ):
                before, after = known[old], known[new]
                known[old] = after.moved_to(before.score, "newest")
                left = max(after.score, had[before.memory.id] * _KEPT_OF_OLDER)
                known[new] = before.moved_to(min(left, before.score * JUST_BELOW), "older")
                told[then], said = (new, said), later
    known = by_score(known)
    if analysis.former:
        return known
    return _changes_first(known, query, analysis, [stated_in[one.memory.id] for one in known])


# A name may be written without a capital; a number or a time cannot be missed.
_TOLD_BY_LOOKS = frozenset({AskedFor.NUMBER, AskedFor.TIME})


def _lacks(analysis: Analysis, old: str, new: str) -> bool:
    """Whether the newer one has nothing of the kind that is asked for, and the older has."""
    asked = analysis.asked & _TOLD_BY_LOOKS
    return bool(asked) and holds_cue(old, asked) and not holds_cue(new, asked)


def _changes_first(
    found: list[Ranked], query: str, analysis: Analysis, said: list[_Statement | None]
) -> list[Ranked]:
    """What tells of a change before the best older turn about most of what is asked for, too."""
    told = [stated is not None and tells_of_a_change(stated.content) for stated in said]
    if not any(told[1:]):
        return found
    asked = topic_stems(query)
    about = [
        asked & matter_of(one.memory.content) if stated else frozenset()
        for one, stated in zip(found, said, strict=True)
    ]
    for new in range(1, len(found)):
        later = said[new]
        if later is None or not told[new] or 2 * len(about[new]) <= len(asked):
            continue
        for old in range(new):
            both, earlier = about[new] & about[old], said[old]
            if (
                earlier
                and 2 * len(both) > len(asked)
                and later.renews(earlier)
                and not asks_only_of(query, earlier.content, later.content, reworded=True)
                and not _lacks(analysis, earlier.content, later.content)
            ):
                before = found[old]
                found[old] = before.moved_to(before.score * JUST_BELOW, "older")
                found.insert(old, found.pop(new).moved_to(before.score, "newest"))
                about.insert(old, about.pop(new))
                told.insert(old, told.pop(new))
                said.insert(old, said.pop(new))
                break
    return by_score(found)


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    here, there = len(one), len(other)
    if here < _ALIKE * there or there < _ALIKE * here:
        return False  # However many they share.
    common = len(one & other)
    return common > 0 and common >= _ALIKE * (here + there - common)


class _Statement(NamedTuple):
    """A turn that makes one statement: when it was said, in whose voice, in which words."""

    content: str
    known_at: datetime
    voice: tuple[str, str | None]
    words: frozenset[str]

    def renews(self, old: _Statement) -> bool:
        """Whether the same voice said it later."""
        return self.known_at > old.known_at and self.voice == old.voice


def _statement(memory: AnyMemory) -> _Statement | None:
    """What a turn states, if it makes one statement; None of any other memory."""
    if not isinstance(memory, Episode) or len(memory.content) > _LONGEST_STATEMENT:
        return None
    if memory.content.rstrip().endswith("?") or not (words := bare_stems(memory.content)):
        return None
    return _Statement(memory.content, memory.known_at, (memory.role, memory.speaker), words)


# --- one answer per content, and none that another answer says already


def without_repeats(found: Iterable[Ranked]) -> list[Ranked]:
    """The best of each content, in the order given.

    The same words are one answer, whatever holds them; turns of several people
    are not the same. Where an episode and a derived memory say the same, the
    derived one answers: it names its sources and has a confidence. It takes the
    place, and the score, of the better of the two.
    """
    alike: dict[str, list[int]] = {}
    kept: list[Ranked] = []
    for one in found:
        places = alike.setdefault(_outline(one.memory.content), [])
        place = _same(one, kept, places)
        if place is None:
            places.append(len(kept))
            kept.append(one)
        elif one.is_derived and not kept[place].is_derived:
            kept[place] = one.moved_to(kept[place].score, "same_words")
    return kept


def folded(found: Sequence[Ranked]) -> list[Ranked]:
    """Without the notes that a better-ranked summary of them says already."""
    said: set[str] = set()
    kept: list[Ranked] = []
    for one in found:
        if one.memory.id in said:
            continue
        kept.append(one)
        said.update(notes_of(one.memory))
    return kept


def excerpts_behind(found: Sequence[Ranked]) -> list[Ranked]:
    """Best first, quotations, bare dates and sums behind their turn, where both are there.

    Only the turn tells whose words they are, what they are quoted for, and of what day or sum.
    """
    known = {one.memory.id: one for one in found}
    for one in found:
        memory = one.memory
        if not isinstance(memory, DerivedMemory) or not is_excerpt(memory):
            continue
        turns = [known[key].score for key in memory.source_episode_ids if key in known]
        if turns:
            known[memory.id] = one.behind(max(turns), "excerpt")
    return by_score(known.values())


# Of ASCII, what is neither letter nor digit.
_SIGNS = bytes(code for code in range(128) if not chr(code).isalnum())


def _same(one: Ranked, kept: list[Ranked], places: list[int]) -> int | None:
    if not places:
        return None
    content = normalise(one.memory.content)
    return next(
        (
            place
            for place in places
            if normalise(kept[place].memory.content) == content
            and not _of_several(one.memory, kept[place].memory)
        ),
        None,
    )


def _of_several(first: AnyMemory, second: AnyMemory) -> bool:
    """Whether they are turns of different people: each says it of their own."""
    if not isinstance(first, Episode) or not isinstance(second, Episode):
        return False
    return _voice(first) != _voice(second)


def _voice(turn: Episode) -> tuple[str, str | None]:
    return turn.role, None if turn.speaker is None else normalise(turn.speaker)


def _outline(content: str) -> str:
    """Letters and digits only: equal for contents with one normal form, and far cheaper."""
    if content.isascii():
        return content.encode().lower().translate(None, _SIGNS).decode()
    folded = unicodedata.normalize("NFC", stream_safe(content)).casefold()
    folded = unicodedata.normalize("NFC", folded)
    return "".join(filter(str.isalnum, folded))


# --- a second look at the best answers, by a model that reads question and answer together

_log = structlog.get_logger("engram.recall")


async def reranked(
    reranker: Reranker, query: str, found: Sequence[Ranked], limit: timedelta
) -> list[Ranked]:
    """The answers in the reranker's order, each with the score of its new place.

    Scores of models have any scale, so only their order is taken: the best answer
    gets the best score there was, and so on. Recall never fails for the reranker, nor waits
    for it longer than ``limit``: without its word the order stays.
    """
    if len(found) < 2:  # noqa: PLR2004 - one answer has one order
        return list(found)
    try:
        async with asyncio.timeout(limit.total_seconds()):
            said = await reranker.rerank(query, [one.memory.indexed_text for one in found])
    except TimeoutError:
        _log.warning("the reranker failed; the order stays", reason="no answer in time")
        return list(found)
    except Exception as error:  # noqa: BLE001 - logged, and gone on without, whoever wrote it
        reason = error.code if isinstance(error, EngramError) else type(error).__name__
        _log.warning("the reranker failed; the order stays", reason=reason)
        return list(found)
    if len(said) != len(found):
        _log.warning("the reranker failed; the order stays", reason="wrong number of scores")
        return list(found)
    places = sorted((one.score for one in found), reverse=True)
    order = sorted(range(len(found)), key=lambda at: (-said[at], at))
    moved = [
        found[at].moved_to(place, "reranked", said[at])
        for at, place in zip(order, places, strict=True)
    ]
    return by_score(moved)


# --- the episodes that answers were concluded from


async def sources_of(
    repository: MemoryRepository, question: PreparedQuery, memories: Sequence[AnyMemory]
) -> dict[str, tuple[Episode, ...]]:
    """Source episodes by memory id, in one read, each memory's in the order it names them.

    Archived and expired episodes are shown: they are the evidence, not answers.
    Under ``as_of``, an episode that came later is not shown.
    """
    derived = [memory for memory in memories if isinstance(memory, DerivedMemory)]
    wanted = {episode for memory in derived for episode in memory.source_episode_ids}
    found = await episodes_by_id(repository, question.scope, sorted(wanted))
    as_of = question.visibility.as_of
    return {
        memory.id: tuple(
            episode
            for episode_id in memory.source_episode_ids
            if (episode := found.get(episode_id)) is not None
            and (as_of is None or episode.known_at <= as_of)
        )
        for memory in derived
    }


# --- an answer as of an earlier date is as sure as one could be then
#
# What was learnt since speaks neither for a memory nor against it: later sources, a
# confirmation, a dispute with something that nobody knew of. Of sources between the first
# and the latest that are kept, the times are not: they count once one of the latest does.


async def as_sure_as_then(
    repository: MemoryRepository, question: PreparedQuery, memories: Iterable[AnyMemory]
) -> dict[str, AnyMemory]:
    """By id, those of which something was learnt since ``as_of``, with the confidence of then.

    None where it is not asked for. One read, and only where something was learnt since.
    """
    as_of = question.visibility.as_of
    if as_of is None:
        return {}
    grown = [
        memory
        for memory in memories
        if isinstance(memory, DerivedMemory)
        and (memory.confidence.last_confirmed > as_of or disputed_with(memory) or memory.refuted_at)
    ]
    wanted = {other for one in grown for other in (*one.source_episode_ids, *disputed_with(one))}
    read = await repository.get(question.scope, sorted(wanted)) if wanted else {}
    known = {key: memory.known_at for key, memory in read.items()}
    return {one.id: _without_hindsight(one, known, as_of) for one in grown}


def _without_hindsight(
    memory: DerivedMemory, known: Mapping[str, datetime], as_of: datetime
) -> AnyMemory:
    since = {key for key, moment in known.items() if moment > as_of}
    if memory.refuted_at is not None and memory.refuted_at > as_of:
        memory = taken_back(memory)
    before, now = memory.confidence, disputed_with(memory)
    disputed = tuple(one for one in now if one not in since)
    changes: dict[str, object] = {
        "contradictions": max(before.contradictions - (len(now) - len(disputed)), 0)
    }
    unsettled = before.verification is Verification.DISPUTED and disputed != now and not disputed
    confirmed = before.verification is Verification.USER_CONFIRMED
    if unsettled or (confirmed and before.last_confirmed > as_of):
        found = isinstance(memory, SemanticMemory | Fact | NegationFact) and memory.evidence
        changes["verification"] = Verification.EVIDENCE_FOUND if found else Verification.UNCHECKED
    if before.last_confirmed > as_of:
        sources = memory.source_episode_ids
        all_since = since.issuperset(sources[-LATEST_KEPT:])
        gone = {*since, FOLDED} if all_since else since
        supporting = without_occasions(memory, gone)["supporting_episodes"]
        if all_since and not memory.occasions:
            supporting -= folded_count(memory)
        told = [known[source] for source in sources if source in known and source not in since]
        changes["supporting_episodes"] = max(supporting, 1)
        changes["last_confirmed"] = max([memory.known_at, *told])
    then: dict[str, object] = {"confidence": before.model_copy(update=changes)}
    if isinstance(memory, SemanticMemory):
        then["disputed_with"] = disputed
    return memory.model_copy(update=then)  # type: ignore[return-value]  # a copy of an AnyMemory is one


def replaced_then(memories: Iterable[AnyMemory], visibility: Visibility) -> frozenset[str]:
    """What had given way by then to something of these that was refuted since: it came back."""
    as_of = visibility.as_of
    if as_of is None:
        return frozenset()
    refuted_since = (
        one
        for one in memories
        if isinstance(one, DerivedMemory)
        and one.refuted_at is not None
        and one.refuted_at > as_of
        and visibility.counts(one)
    )
    return frozenset(old for one in refuted_since for old in one.supersedes)
