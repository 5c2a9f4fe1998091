"""The digest stage of a pass: what is derived from memories follows what the pass touched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from engram.consolidation.apply import PlanWriter
from engram.contracts.consolidation import DigestOutput
from engram.digests.boxes import BoxWriter, Traces
from engram.digests.entities import Entity, Register, resolve
from engram.digests.guidelines import GuidelineWriter
from engram.digests.mentions import (
    MentionEvidence,
    episode_clues,
    memory_clues,
    name_words,
    related_to,
)
from engram.digests.names import name_key
from engram.digests.profiles import (
    DIGESTED,
    GENERAL,
    NOBODY,
    READ_ALWAYS,
    USER_KEY,
    OwnNames,
    Rest,
    Told,
    carried,
    entity_draft,
    is_of_the_user,
    name_keys,
    user_draft,
)
from engram.digests.store import DigestStore, Put
from engram.digests.topics import TopicWriter
from engram.digests.versions import Composer, Draft
from engram.domain.buffer import portions
from engram.domain.digests import ConsolidationEffect, ProfileDetail
from engram.domain.memories import Episode, MemoryForm, MemoryStatus, SemanticMemory
from engram.domain.rules import DigestPolicy
from engram.domain.scope import Scope
from engram.domain.slots import USER, stored_as
from engram.giving_way import computed, give_way, handing_over
from engram.ports import AnyOf, Either, Embedder, Equals, Filter, MemoryRepository
from engram.storage.updates import NewWriteId, episodes_by_id

__all__ = ["Digests"]

# --- profiles of whoever a pass touched: resolved anew, composed, and stored where they changed

# Names that share words with those found are looked up again: so often.
_ROUNDS = 2


@dataclass(frozen=True)
class Touched:
    """What a pass touched."""

    memories: Mapping[str, SemanticMemory]
    episodes: Mapping[str, Episode]

    @cached_property
    def rest(self) -> Rest:
        """When each of it became known, or ceased to hold."""
        times: dict[str, datetime] = {key: e.timestamp for key, e in self.episodes.items()}
        for key, memory in self.memories.items():
            times[key] = max(memory.known_at, memory.superseded_known_at or memory.known_at)
        return Rest(times=times, episodes=frozenset(self.episodes))


@dataclass(frozen=True)
class _KnownProfiles:
    """The active profiles that matter, and what their names rest on."""

    profiles: tuple[SemanticMemory, ...] = ()

    @cached_property
    def _by_name(self) -> Mapping[str, Sequence[tuple[int, ProfileDetail, SemanticMemory]]]:
        found: dict[str, list[tuple[int, ProfileDetail, SemanticMemory]]] = {}
        for place, profile in enumerate(self.profiles):
            if isinstance(profile.detail, ProfileDetail):
                for key in name_keys(profile.detail):
                    found.setdefault(key, []).append((place, profile.detail, profile))
        return found

    def bearing(self, keys: Iterable[str]) -> list[tuple[ProfileDetail, SemanticMemory]]:
        """Those that have one of these names, in order."""
        found = {one[0]: one for key in keys for one in self._by_name.get(key, ())}
        return [(detail, profile) for _, (_, detail, profile) in sorted(found.items())]

    @property
    def details(self) -> list[ProfileDetail]:
        return [m.detail for m in self.profiles if isinstance(m.detail, ProfileDetail)]

    @property
    def clues(self) -> MentionEvidence:
        return MentionEvidence(
            tuple(mention for d in self.details for mention in d.mentions),
            tuple(equation for d in self.details for equation in d.equations),
        )


def _clues(touched: Touched) -> tuple[MentionEvidence, MentionEvidence]:
    """What the memories tell about names, and what the turns do."""
    named = MentionEvidence()
    for memory in touched.memories.values():
        named = named.plus(memory_clues(memory))
    turns = handing_over(touched.episodes.values())
    return named, episode_clues(e for e in turns if not e.is_test)


@dataclass(frozen=True, slots=True)
class _Bearers:
    """Who is who.

    Attributes:
        register: Whose mention is whose.
        touched: By the key of an entity, what was touched and names it: looked through once, not
            once for each entity.
    """

    register: Register
    touched: Mapping[str, Sequence[SemanticMemory]]

    @classmethod
    def of(cls, touched: Touched, told: MentionEvidence) -> _Bearers:
        """As far as this is told."""
        naming: dict[str, list[SemanticMemory]] = {}
        found = cls(Register(resolve(told.mentions, told.equations)), naming)
        for memory in touched.memories.values():
            for key in found.named_in(memory):
                naming.setdefault(key, []).append(memory)
        return found

    def named_in(self, memory: SemanticMemory) -> frozenset[str]:
        """The keys of the entities that it names."""
        borne = (self.register.entity_of(mention) for mention in memory_clues(memory).mentions)
        return frozenset(bearer.key for bearer in borne if bearer is not None)


@dataclass(frozen=True, slots=True)
class ProfileWriter:
    """Rebuilds profiles. Everything may run twice.

    Args:
        store: Where profiles are kept.
    """

    store: DigestStore

    async def rebuild(self, composer: Composer, touched: Touched, policy: DigestPolicy) -> Put:
        """The profiles of everyone and everything that these memories and turns name."""
        own = OwnNames.of(await self.store.called(composer.scope, limit=policy.profile_reads))
        known, told = await self._known(composer.scope, touched)
        entities = Put()
        if told.mentions:
            entities = await self._entities(composer, touched, told, known, own, policy)
        return entities.plus(await self._user(composer, touched, own, policy))

    async def _known(
        self, scope: Scope, touched: Touched
    ) -> tuple[_KnownProfiles, MentionEvidence]:
        """The profiles whose names could be one with those touched; the clues that are new."""
        # Reads every word of them: not while others wait.
        named, said = await computed(_clues, touched)
        words = {word for m in named.mentions for word in name_words(m.name)}
        found: dict[str, SemanticMemory] = {}
        looked: set[str] = set()
        for _ in range(_ROUNDS):
            known = _KnownProfiles(tuple(found.values()))
            keys = _lookup_keys(named.plus(related_to(said, words)).plus(known.clues)) - looked
            if not keys:
                break
            looked |= keys
            current = await self.store.current(scope, MemoryForm.PROFILE, sorted(keys))
            found |= {m.id: m for m in current if _key(m) != USER_KEY}
            known = _KnownProfiles(tuple(found.values()))
            words |= {word for m in known.clues.mentions for word in name_words(m.name)}
        profiles = tuple(sorted(found.values(), key=lambda m: m.id))
        return _KnownProfiles(profiles), named.plus(related_to(said, words))

    async def _entities(
        self,
        composer: Composer,
        touched: Touched,
        told: MentionEvidence,
        known: _KnownProfiles,
        own: OwnNames,
        policy: DigestPolicy,
    ) -> Put:
        # Holds names against names: not while others wait.
        bearers = await computed(_Bearers.of, touched, own.left_of(told.plus(known.clues)))
        affected = _affected(bearers.register, told, known)
        drafts: list[Draft] = []
        for entity in affected:
            # The engine answers without a pause: others wait for the loop meanwhile.
            await give_way()
            draft = await self._draft(composer.scope, entity, bearers, touched, known, policy)
            if draft is not None:
                drafts.append(draft)
        replaced = _replaced(known, bearers.register, affected)
        return await self.store.put(composer, drafts, replaced, _successors(replaced, drafts))

    async def _draft(
        self,
        scope: Scope,
        entity: Entity,
        bearers: _Bearers,
        touched: Touched,
        known: _KnownProfiles,
        policy: DigestPolicy,
    ) -> Draft | None:
        """From what stood in the profile, what is new, and the latest that names the entity."""
        names = {m.name for m in entity.mentions}
        keys = {name_key(name) for name in names}
        before = known.bearing(keys)
        where: Filter = (
            Equals("status", MemoryStatus.ACTIVE.value),
            Either(
                (
                    AnyOf("entities", tuple(sorted(names))),
                    AnyOf("slot.subject", tuple(sorted(keys))),
                )
            ),
        )
        latest = await self.store.semantic(scope, where, limit=policy.profile_reads)
        further = {m.id: m for m in latest if m.id not in touched.memories}
        unread = carried(d for d, _ in before) - further.keys() - touched.memories.keys()
        further |= await self.store.by_id(scope, unread)
        mine = [m for m in further.values() if entity.key in bearers.named_in(m)]
        mine += bearers.touched.get(entity.key, ())
        sources = [source for _, profile in before for source in profile.source_episode_ids]
        rest = touched.rest
        rest = Rest(rest.times, rest.episodes, tuple(sorted(set(sources))))
        return entity_draft(entity, mine, rest, policy)

    async def _user(
        self, composer: Composer, touched: Touched, called: OwnNames, policy: DigestPolicy
    ) -> Put:
        """The profile of the user, where anything in it was touched, or they have another name.

        Habits are made, and end, between consolidations: also where they are others
        than those that stand in it.
        """
        scope = composer.scope
        own = {key: m for key, m in touched.memories.items() if is_of_the_user(m)}
        current = await self.store.current(scope, MemoryForm.PROFILE, [USER_KEY])
        before = [m.detail for m in current if isinstance(m.detail, ProfileDetail)]
        habits = await self.store.habits(scope, limit=policy.profile_reads)
        stood = await self.store.habits_by_id(scope, carried(before))
        names = {name for detail in before for name in name_keys(detail)} - {name_key(NOBODY)}
        alike = names == {name_key(name) for name in called.names}
        if not own and alike and habits.keys() == stood.keys():
            return Put()
        standing: Filter = (
            Equals("status", MemoryStatus.ACTIVE.value),
            Equals("slot.subject", USER),
        )
        found: dict[str, Told] = {**own, **habits}
        for condition in (
            AnyOf("slot.predicate", stored_as(*READ_ALWAYS)),
            AnyOf("category", tuple(category.value for category in GENERAL)),
        ):
            where = (*standing, condition)
            latest = await self.store.semantic(scope, where, limit=policy.profile_reads)
            found |= {m.id: m for m in latest}
        found |= await self.store.by_id(scope, carried(before) - found.keys())
        draft = user_draft(list(found.values()), called, touched.rest, policy)
        if draft is None:
            return Put(retired=await self.store.retire(scope, current))
        return await self.store.put(composer, [draft], current)


def _key(memory: SemanticMemory) -> str:
    return memory.detail.keys[0] if memory.detail else ""


def _lookup_keys(told: MentionEvidence) -> set[str]:
    names = [m.name for m in told.mentions]
    names += [name for e in told.equations for name in (e.first, e.second)]
    identifiers = {i for m in told.mentions for i in m.identifiers}
    return {f"part:{word}" for name in names for word in name_words(name)} | identifiers


def _affected(register: Register, told: MentionEvidence, known: _KnownProfiles) -> list[Entity]:
    """Those that something new names, and those whose names are others than before."""
    new = {e.key for m in told.mentions if (e := register.entity_of(m)) is not None}
    stored = {detail.entity: name_keys(detail) for detail in known.details}
    return [
        entity
        for entity in register.entities
        if entity.key in new or stored.get(entity.key) != frozenset(map(name_key, entity.names))
    ]


def _replaced(
    known: _KnownProfiles, register: Register, affected: Sequence[Entity]
) -> list[SemanticMemory]:
    """The profiles that are composed anew, and those of entities that are no more."""
    anew = {entity.key for entity in affected}
    there = {entity.key for entity in register.entities}
    return [
        profile
        for profile in known.profiles
        if isinstance(profile.detail, ProfileDetail)
        and (profile.detail.entity in anew or profile.detail.entity not in there)
    ]


def _successors(replaced: Sequence[SemanticMemory], drafts: Sequence[Draft]) -> dict[str, str]:
    """By the key of a profile that is no more: of the one that bears its name now."""
    bearers: dict[str, str] = {}
    for draft in drafts:
        if isinstance(draft.detail, ProfileDetail):
            for name in name_keys(draft.detail):
                bearers.setdefault(name, draft.key)
    named = {
        _key(p): name_key(p.detail.name) for p in replaced if isinstance(p.detail, ProfileDetail)
    }
    return {key: bearers[name] for key, name in named.items() if name in bearers}


# --- the digest stage: what is derived from memories follows what a pass touched

# Turns that are sorted by their sessions before these are cut into boxes.
_SORTED_AT_ONCE = 200


class Digests:
    """Rebuilds digests. Every method may run twice, in parts, and beside itself.

    Args:
        repository: Where memories are kept.
        embedder: Gives digests their vectors.
        new_write_id: Makes a fresh value for each write.
    """

    def __init__(
        self, repository: MemoryRepository, embedder: Embedder, new_write_id: NewWriteId
    ) -> None:
        self._repository = repository
        self._store = DigestStore(repository, embedder, new_write_id)
        plans = PlanWriter(repository, embedder, new_write_id)
        self._boxes = BoxWriter(repository, self._store, plans)
        self._profiles = ProfileWriter(self._store)
        self._topics = TopicWriter(repository, embedder, self._store)
        self._guidelines = GuidelineWriter(repository, self._store)

    async def knowledge(
        self,
        composer: Composer,
        memory_ids: Iterable[str],
        episode_ids: Iterable[str],
        policy: DigestPolicy,
    ) -> DigestOutput:
        """Profiles and topics of these memories and turns."""
        composer = await self._begun(composer)
        memories = await self._store.by_id(composer.scope, memory_ids)
        # A digest is made from memories, never from a digest.
        memories = {key: m for key, m in memories.items() if m.form in DIGESTED and not m.is_test}
        episodes = await self._episodes(composer.scope, episode_ids)
        touched = Touched(memories, {e.id: e for e in episodes if not e.is_test})
        profiles = await self._profiles.rebuild(composer, touched, policy)
        topics = await self._topics.rebuild(composer, memories, policy)
        both = profiles.plus(topics)
        return DigestOutput(
            profiles=_count(both, MemoryForm.PROFILE),
            topics=_count(both, MemoryForm.TOPIC),
            retired=len(both.retired),
        )

    async def sessions(
        self,
        composer: Composer,
        episode_ids: Sequence[str],
        ended: Iterable[str],
        policy: DigestPolicy,
    ) -> DigestOutput:
        """Boxes of the sessions that these turns belong to, and of those that ended.

        Test turns are in none.
        """
        composer = await self._begun(composer)
        closed = frozenset(ended)
        by_session: dict[str, list[str]] = {session: [] for session in sorted(closed)}
        left = portions(tuple(episode_ids), _SORTED_AT_ONCE)
        boxes = linked = 0
        traces = Traces(self._store, composer.scope)
        while left or by_session:
            # So many that they are still at hand when their sessions are cut.
            for episode in await self._episodes(composer.scope, left[0] if left else ()):
                if episode.session_id is not None:
                    by_session.setdefault(episode.session_id, []).append(episode.id)
            left = left[1:]
            # Turns of a session come one after the other: more of the last one may be left.
            whole = list(by_session)[:-1] if left else list(by_session)
            for session in whole:
                ids = by_session.pop(session)
                sealed = await self._boxes.seal(
                    composer, session, ids, policy, traces, ended=session in closed
                )
                boxes += len(sealed.boxes)
                linked += sealed.linked
        return DigestOutput(boxes=boxes, linked=linked)

    async def learn(
        self,
        composer: Composer,
        deeds: Sequence[tuple[ConsolidationEffect, str]],
        operation: str,
        policy: DigestPolicy,
    ) -> DigestOutput:
        """The guidance that follows from what became of memories."""
        composer = await self._begun(composer)
        put = await self._guidelines.learn(composer, deeds, operation, policy)
        return DigestOutput(guidelines=len(put.written), retired=len(put.retired))

    async def _begun(self, composer: Composer) -> Composer:
        """With the user's epoch of now: nothing is written once that is raised."""
        return replace(composer, epoch=await self._repository.epoch(composer.scope))

    async def _episodes(self, scope: Scope, ids: Iterable[str]) -> list[Episode]:
        return list((await episodes_by_id(self._repository, scope, ids)).values())


def _count(put: Put, form: MemoryForm) -> int:
    return sum(memory.form is form for memory in put.written)
