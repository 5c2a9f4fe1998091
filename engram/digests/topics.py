"""Topics: terms that set some memories apart, and what is known under them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from engram.digests.profiles import DIGESTED, answers
from engram.digests.store import DigestStore, Put
from engram.digests.versions import Composer, Draft
from engram.domain.digests import TopicDetail
from engram.domain.kept import kept
from engram.domain.memories import MemoryForm, MemoryStatus, MemoryType, SemanticMemory
from engram.domain.rules import DigestPolicy
from engram.domain.scope import Scope
from engram.language.text import content_words, stem, terms_of
from engram.ports import AnyOf, Embedder, Equals, Filter, MemoryRepository, SearchRequest

# --- topics: terms that set some memories apart from the others, and what is known under them

# A topic lists so many memories at most, the newest.
MEMBERS_LISTED = 60
# So many terms of what a pass touched are looked at.
TERMS_LOOKED_AT = 12


@dataclass(frozen=True, slots=True)
class TermMembers:
    """A term and what is known under it, newest first."""

    term: str
    name: str
    members: tuple[SemanticMemory, ...]


def telling_terms(memories: Sequence[SemanticMemory]) -> list[str]:
    """The terms that set memories apart from each other, the most telling first.

    By the weight of BM25: the sum over the memories of saturated term frequency
    times inverse document frequency, counted over these memories alone, so that it
    costs what is looked at and not what is stored.
    """
    counted = [terms_of(memory.content) for memory in memories]
    spread = Counter(term for terms in counted for term in terms)
    total = len(counted)
    weights = {
        term: math.log(1 + (total - df + 0.5) / (df + 0.5))
        * sum(2.2 * terms[term] / (terms[term] + 1.2) for terms in counted)
        for term, df in spread.items()
    }
    return sorted(weights, key=lambda term: (-weights[term], term))[:TERMS_LOOKED_AT]


def topic(
    term: str, memories: Iterable[SemanticMemory], policy: DigestPolicy
) -> TermMembers | None:
    """The topic of a term; None if too little is known under it."""
    under = {m.id: m for m in memories if answers(m) and term in _terms(m.content)}
    if len(under) < policy.topic_members:
        return None
    newest = sorted(under.values(), key=lambda m: m.id)
    newest.sort(key=lambda m: m.known_at, reverse=True)
    return TermMembers(term=term, name=_name(term, newest), members=tuple(newest[:MEMBERS_LISTED]))


@kept(1024)
def _terms(content: str) -> frozenset[str]:
    """The terms of a memory, which each topic asks for."""
    return frozenset(terms_of(content))


def topic_text(found: TermMembers) -> str:
    """The words of a topic: its name, and what is known under it."""
    return "\n".join([f"{found.name}:", *(memory.content for memory in found.members[:10])])


def least(topics: Mapping[str, int], most: int) -> list[str]:
    """Which topics are too many: those with the fewest members, ties in order of their terms."""
    ranked = sorted(topics, key=lambda term: (-topics[term], term))
    return ranked[most:]


def _name(term: str, memories: Sequence[SemanticMemory]) -> str:
    spelled: Counter[str] = Counter()
    for memory in memories:
        spelled.update(word for word in content_words(memory.content) if stem(word) == term)
    return min(spelled, key=lambda word: (-spelled[word], len(word), word), default=term)


# --- the topics of what a pass touched: looked up, gathered, and stored where they changed

# Sources that a topic names itself; its members name all of theirs.
_SOURCES_NAMED = 100
# What is found under a term beside what was touched.
_SEARCHED = 20


@dataclass(frozen=True, slots=True)
class TopicWriter:
    """Rebuilds topics. Everything may run twice.

    Args:
        repository: Where memories are searched.
        embedder: Turns a term into something to search with.
        store: Where topics are kept.
    """

    repository: MemoryRepository
    embedder: Embedder
    store: DigestStore

    async def rebuild(
        self, composer: Composer, touched: Mapping[str, SemanticMemory], policy: DigestPolicy
    ) -> Put:
        """The topics of these memories: those there are, and the most telling new ones."""
        if not touched:
            return Put()
        scope = composer.scope
        terms = sorted({term for m in touched.values() for term in _terms(m.content)})
        current = await self.store.current(
            scope, MemoryForm.TOPIC, [f"topic:{term}" for term in terms]
        )
        there = {m.detail.topic: m for m in current if isinstance(m.detail, TopicDetail)}
        standing = sorted((m for m in touched.values() if answers(m)), key=lambda m: m.id)
        drafts: list[Draft] = []
        for term in dict.fromkeys([*there, *telling_terms(standing)]):
            members = await self._members(scope, term, touched, there.get(term))
            found = topic(term, members.values(), policy)
            if found is not None:
                drafts.append(_draft(found, touched))
        put = await self.store.put(composer, drafts, current)
        if put.written:
            put = put.plus(Put(retired=await self._cut(scope, policy)))
        return put

    async def _members(
        self,
        scope: Scope,
        term: str,
        touched: Mapping[str, SemanticMemory],
        current: SemanticMemory | None,
    ) -> dict[str, SemanticMemory]:
        detail = current.detail if current is not None else None
        listed = detail.member_ids if isinstance(detail, TopicDetail) else ()
        found = await self.store.by_id(scope, set(listed) - touched.keys()) | dict(touched)
        if current is None:
            found = await self._searched(scope, term) | found
        return found

    async def _searched(self, scope: Scope, term: str) -> dict[str, SemanticMemory]:
        where: Filter = (
            Equals("status", MemoryStatus.ACTIVE.value),
            AnyOf("form", tuple(form.value for form in DIGESTED)),
        )
        request = SearchRequest(
            vectors=await self.embedder.embed_query(term),
            types=(MemoryType.SEMANTIC,),
            limit=_SEARCHED,
            where={MemoryType.SEMANTIC: where},
        )
        candidates = await self.repository.search(scope, request)
        return {c.memory.id: c.memory for c in candidates if isinstance(c.memory, SemanticMemory)}

    async def _cut(self, scope: Scope, policy: DigestPolicy) -> tuple[str, ...]:
        """Retire the least topics past the bound."""
        topics = {
            m.detail.topic: m
            for m in await self.store.current(scope, MemoryForm.TOPIC)
            if isinstance(m.detail, TopicDetail)
        }
        sizes = {
            term: len(m.detail.member_ids)
            for term, m in topics.items()
            if isinstance(m.detail, TopicDetail)
        }
        gone = [topics[term] for term in least(sizes, policy.topics)]
        return await self.store.retire(scope, gone)


def _draft(found: TermMembers, touched: Mapping[str, SemanticMemory]) -> Draft:
    members = found.members
    ended = [
        m.superseded_known_at
        for m in touched.values()
        if m.superseded_known_at is not None and found.term in _terms(m.content)
    ]
    return Draft(
        form=MemoryForm.TOPIC,
        content=topic_text(found),
        detail=TopicDetail(
            keys=(f"topic:{found.term}",),
            topic=found.term,
            name=found.name,
            member_ids=tuple(m.id for m in members),
        ),
        sources=tuple(sorted({s for m in members for s in m.source_episode_ids}))[:_SOURCES_NAMED],
        known_at=max([m.known_at for m in members] + ended),
        event_at=min(m.known_at for m in members),
    )
