"""Operations on what is composed from memories: profiles, topics, boxes, guidelines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from datetime import datetime
from typing import Final, NamedTuple

from engram.digests.boxes import Box, BoxReader
from engram.digests.names import name_key, names_in
from engram.digests.profiles import NOBODY, USER_KEY
from engram.domain.access import Access
from engram.domain.digests import (
    BoxDetail,
    EntityKind,
    GuidelineDetail,
    Line,
    Merge,
    ProfileDetail,
    SealReason,
    Tally,
    TopicDetail,
)
from engram.domain.memories import (
    AnyMemory,
    MemoryForm,
    MemoryStatus,
    MemoryType,
    SemanticMemory,
)
from engram.domain.rules import DigestPolicy
from engram.domain.scope import Scope, check_identifier
from engram.errors import InvalidQuery, MemoryNotFound
from engram.lifecycle.policies import is_disputed, is_refuted
from engram.operations.registry import Answered, Operation, Question, Untold, handles
from engram.ports import AnyOf, Between, Clock, Equals, Filter, MemoryRepository, Not
from engram.recall.denials import Negations
from engram.recall.request import Visibility
from engram.storage.updates import every_page

_MOST_DIGESTS = 1000
_PAGE = 200


class ProfileLine(Line):
    """One line of a profile, the memories it rests on, and whether it is in dispute."""

    disputed: bool = False


class Profile(Answered):
    """What is known about one person, place or project, or about the user.

    Attributes:
        memory_id: The version this is; ``history`` shows the others. None while nothing is known
            of the user.
        name: The fullest name.
        aliases: Its other names.
        kind: What it is; "user" for the user.
        lines: What is known, most important first, each with the memories it rests on.
        merges: Which names were taken for one bearer, and what decided it.
        omitted: Memories that found no room in it.
        updated_at: Timestamp of the latest thing it rests on; None while that is nothing.
        generation: Counts its versions, from 0.
    """

    memory_id: str | None
    name: str
    aliases: tuple[str, ...]
    kind: EntityKind
    lines: tuple[ProfileLine, ...]
    merges: tuple[Merge, ...]
    omitted: tuple[str, ...]
    updated_at: datetime | None
    generation: int


class Topic(Answered):
    """What is known under one topic.

    Attributes:
        memory_id: The version this is.
        name: The topic's word.
        member_ids: The memories under it, newest first.
        updated_at: Timestamp of the latest thing it rests on.
        generation: Counts its versions, from 0.
    """

    memory_id: str
    name: str
    member_ids: tuple[str, ...]
    updated_at: datetime
    generation: int


class MemoryBox(Answered):
    """A run of turns on one topic.

    Attributes:
        memory_id: Of the box; what was derived from its turns is linked to it. None until a
            consolidation stores it.
        session_id: The conversation.
        opened: Timestamp of its first turn.
        last: Timestamp of its last turn.
        sealed: Why it takes no further turn; None while it is open.
        topic: The words that tell what it is about.
        episode_ids: Its turns, in order.
        trace_id: Shared by the boxes in which its topic comes back; None until it is stored.
    """

    memory_id: str | None
    session_id: str | None
    opened: datetime
    last: datetime
    sealed: SealReason | None
    topic: tuple[str, ...]
    episode_ids: tuple[str, ...]
    trace_id: str | None


class Guidelines(Answered):
    """What became of earlier memories, and what extractions are told because of it.

    Attributes:
        guidance: Lines that extractions read.
        tallies: What became of memories, by category and predicate.
    """

    guidance: tuple[str, ...] = ()
    tallies: tuple[Tally, ...] = ()
    memory_ids: Untold = ()


class AboutSomebody(Question):
    """A question about one person, place or project.

    Attributes:
        name: Any of its names; None for the user.
        as_of: What was known then; None for now.
    """

    name: str | None = None
    as_of: datetime | None = None


class AboutBoxes(Question):
    """A question about boxes, of one session or of all."""

    session_id: str | None = None


PROFILE: Final = Operation(
    "profile",
    AboutSomebody,
    Profile,
    "What is known about somebody or something, in few lines.",
    access=Access.READ,
)
PROFILES: Final = Operation(
    "profiles",
    Question,
    tuple[Profile, ...],
    "Everyone and everything with a profile.",
    access=Access.READ,
)
TOPICS: Final = Operation(
    "topics", Question, tuple[Topic, ...], "What is known, by topic.", access=Access.READ
)
BOXES: Final = Operation(
    "boxes",
    AboutBoxes,
    tuple[MemoryBox, ...],
    "Runs of turns on one topic; the last of a conversation can be open.",
    access=Access.READ,
)
GUIDELINES: Final = Operation(
    "guidelines",
    Question,
    Guidelines,
    "What consolidation learnt from what became of memories.",
    access=Access.READ,
)


class DigestHandlers:
    """Carries out the operations of this module.

    Args:
        repository: Where memories are kept.
        negations: Tells what was denied since a profile was composed.
        clock: The present.
        policy: What boxes are cut by.
    """

    def __init__(
        self,
        repository: MemoryRepository,
        negations: Negations,
        clock: Clock,
        policy: DigestPolicy | None = None,
    ) -> None:
        self._repository = repository
        self._negations = negations
        self._clock = clock
        self._policy = policy or DigestPolicy()
        self._boxes = BoxReader(repository)

    @handles(PROFILE)
    async def profile(self, scope: Scope, asked: AboutSomebody) -> Profile:
        """The profile of whoever bears a name; the user's own without one, empty at first.

        Raises:
            MemoryNotFound: nobody and nothing of that name has a profile.
            InvalidQuery: several do.
        """
        if asked.name is None:
            found = await self._read(scope, MemoryForm.PROFILE, [USER_KEY], asked.as_of)
        else:
            found = await self._named(scope, asked.name, asked.as_of)
        if not found and asked.name is None:
            return NOTHING_KNOWN
        if not found:
            raise MemoryNotFound(
                "No profile of this user has this name.",
                hint="Try another of their names; a profile appears with the first consolidation "
                "that learns something about somebody.",
            )
        entities = {m.detail.entity for m in found if isinstance(m.detail, ProfileDetail)}
        if len(entities) > 1:
            raise InvalidQuery(
                f"{len(entities)} profiles of this user have this name.",
                allowed="a name that only one of them bears",
                hint="Give their full name.",
            )
        newest = max(found, key=lambda m: (m.generation, m.id))
        return _profile(newest, await self._standing(scope, [newest], asked.as_of))

    @handles(PROFILES)
    async def profiles(self, scope: Scope, _: Question) -> tuple[Profile, ...]:
        """Every profile that tells something, in order of names; the user's first.

        Of whom nothing is told, a profile keeps who is who, and is found by name.
        """
        stored = await self._read(scope, MemoryForm.PROFILE)
        standing = await self._standing(scope, stored)
        found = (_profile(m, standing) for m in stored)
        telling = [p for p in found if p.lines or p.kind is EntityKind.USER]
        return tuple(sorted(telling, key=lambda p: (p.kind is not EntityKind.USER, p.name)))

    @handles(TOPICS)
    async def topics(self, scope: Scope, _: Question) -> tuple[Topic, ...]:
        """Every topic, the largest first."""
        found = [
            Topic(
                memory_id=m.id,
                name=m.detail.name,
                member_ids=m.detail.member_ids,
                updated_at=m.known_at,
                generation=m.generation,
            )
            for m in await self._read(scope, MemoryForm.TOPIC)
            if isinstance(m.detail, TopicDetail)
        ]
        return tuple(sorted(found, key=lambda t: (-len(t.member_ids), t.name)))

    @handles(BOXES)
    async def boxes(self, scope: Scope, asked: AboutBoxes) -> tuple[MemoryBox, ...]:
        """Boxes in order of time, with the runs of turns that are not stored yet.

        Without a session, these are shown of the sessions that were last spoken in.

        Raises:
            InvalidScope: the session id has a form that is refused.
        """
        if asked.session_id is not None:
            check_identifier(asked.session_id, "session id")
        keys = None if asked.session_id is None else [f"session:{asked.session_id}"]
        found = [
            MemoryBox(memory_id=m.id, **m.detail.model_dump(exclude={"about", "keys", "terms"}))
            for m in await self._read(scope, MemoryForm.BOX, keys)
            if isinstance(m.detail, BoxDetail)
        ]
        if self._policy.enabled:
            waiting = await self._boxes.waiting(scope, asked.session_id, self._policy)
            found += [_unsealed(session, box) for session, box in waiting]
        return tuple(sorted(found, key=lambda box: (box.opened, box.memory_id or "")))

    @handles(GUIDELINES)
    async def guidelines(self, scope: Scope, _: Question) -> Guidelines:
        """The guidance, and what it rests on."""
        found = await self._read(scope, MemoryForm.GUIDELINE)
        newest = max(found, key=lambda m: (m.generation, m.id), default=None)
        if newest is None or not isinstance(newest.detail, GuidelineDetail):
            return Guidelines()
        return Guidelines(
            guidance=newest.detail.guidance,
            tallies=newest.detail.tallies,
            memory_ids=(newest.id,),
        )

    async def _named(self, scope: Scope, name: str, as_of: datetime | None) -> list[SemanticMemory]:
        """Who bears exactly this name; else, whose name it is a part of."""
        keys = dict.fromkeys([name_key(name), *(name_key(n.name) for n in names_in(name))])
        exact = await self._read(scope, MemoryForm.PROFILE, [f"name:{k}" for k in keys], as_of)
        if exact or len(keys) > 1 or " " in name.strip():
            return exact
        return await self._read(scope, MemoryForm.PROFILE, [f"part:{name_key(name)}"], as_of)

    async def _standing(
        self, scope: Scope, profiles: Sequence[SemanticMemory], as_of: datetime | None = None
    ) -> _Standing:
        """What became of the memories that the lines of these profiles rest on."""
        details = [m.detail for m in profiles if isinstance(m.detail, ProfileDetail)]
        ids = {one for detail in details for line in detail.lines for one in line.memory_ids}
        behind = await self._repository.get(scope, ids) if ids else {}
        view = Visibility(now=self._clock(), as_of=as_of)
        gone = await self._negations.denied(scope, list(behind.values()), view)
        if as_of is not None:
            # What was known then was not in dispute because of what became known since.
            return _Standing(behind.keys(), gone)
        gone |= {key for key, memory in behind.items() if not _holds(memory)}
        disputed = {key for key, memory in behind.items() if is_disputed(memory)}
        return _Standing(behind.keys(), gone, disputed)

    async def _read(
        self,
        scope: Scope,
        form: MemoryForm,
        keys: Sequence[str] | None = None,
        as_of: datetime | None = None,
    ) -> list[SemanticMemory]:
        where: Filter = (Equals("form", form.value),)
        if keys is not None:
            where = (*where, AnyOf("detail.keys", tuple(keys)))
        if as_of is None:
            where = (*where, Equals("status", MemoryStatus.ACTIVE.value))
        else:
            replaced = Not(Between("superseded_known_at", at_most=as_of))
            where = (*where, Between("known_at", at_most=as_of), replaced)
        found: list[SemanticMemory] = []
        async for page in every_page(
            self._repository, scope, MemoryType.SEMANTIC, where=where, at_once=_PAGE
        ):
            found += [m for m in page if isinstance(m, SemanticMemory)]
            if len(found) >= _MOST_DIGESTS:
                break
        return [memory for memory in found if not memory.is_test]


def _holds(memory: AnyMemory) -> bool:
    return memory.status is MemoryStatus.ACTIVE and not is_refuted(memory)


class _Standing(NamedTuple):
    """What became of the memories behind profiles, by their ids.

    Attributes:
        there: Those that are not forgotten.
        gone: Those that were denied, refuted or replaced since, or have left the answers.
        disputed: Those that something speaks against.
    """

    there: Set[str]
    gone: Set[str]
    disputed: Set[str] = frozenset()

    def shown(self, lines: Sequence[Line]) -> Iterator[ProfileLine]:
        """The lines as things stand: without those that hold no more."""
        for line in lines:
            behind = self.there & set(line.memory_ids)
            if not behind or not behind <= self.gone:
                doubted = not behind.isdisjoint(self.disputed)
                yield ProfileLine(**dict(line), disputed=doubted)


NOTHING_KNOWN: Final = Profile(
    memory_id=None,
    name=NOBODY,
    aliases=(),
    kind=EntityKind.USER,
    lines=(),
    merges=(),
    omitted=(),
    updated_at=None,
    generation=0,
)
"""The profile of a user of whom nothing is known yet."""


def _unsealed(session_id: str, box: Box) -> MemoryBox:
    return MemoryBox(
        memory_id=None,
        session_id=session_id,
        opened=box.opened,
        last=box.last,
        sealed=box.sealed,
        topic=box.topic,
        episode_ids=tuple(turn.id for turn in box.turns),
        trace_id=None,
    )


def _profile(memory: SemanticMemory, standing: _Standing) -> Profile:
    detail = memory.detail
    assert isinstance(detail, ProfileDetail)  # noqa: S101 - for the type checker; only profiles come here
    return Profile(
        memory_id=memory.id,
        name=detail.name,
        aliases=detail.aliases,
        kind=detail.kind,
        lines=tuple(standing.shown(detail.lines)),
        merges=detail.merges,
        omitted=detail.omitted,
        updated_at=memory.known_at,
        generation=memory.generation,
    )
