"""Operations on memories as they are kept: reading, counting, verifying, resolving, their cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Final, cast

from pydantic import AfterValidator, Field

from engram.consolidation.verify import Verification, verify
from engram.contracts.lifecycle import Change
from engram.contracts.messages import Population, UserUsage
from engram.domain.access import Access
from engram.domain.memories import (
    STORED_TYPES,
    AnyMemory,
    DerivedMemory,
    MemoryStatus,
    MemoryType,
    Resolution,
    SemanticMemory,
)
from engram.domain.scope import Scope
from engram.errors import InvalidInput, InvalidQuery, MemoryNotFound
from engram.lifecycle.decisions import resolve
from engram.lifecycle.due import of_population
from engram.operations.registry import AboutMemory, Answered, Http, Operation, Question, handles
from engram.ports import Clock, Equals, Filter, MemoryRepository, Missing
from engram.recall.request import FormNames, RoleNames, Session, Tags, narrowed
from engram.storage.payload import is_memory_id
from engram.storage.updates import NewWriteId, episodes_by_id, one_memory, update_memories

if TYPE_CHECKING:
    # Who only asks for an operation needs nothing of what carries it out.
    from engram.temporal.gateway import SpendingReader

# --- reading memories, and who does it

MAX_LISTED: Final = 1000
_REAL: Final = of_population(Population.REAL)


# There are fewer, and none counts twice.
_MOST_TYPES = 32


def _page_size(limit: int) -> int:
    if not 1 <= limit <= MAX_LISTED:
        raise InvalidQuery("The page size is out of range.", allowed=f"1 to {MAX_LISTED}")
    return limit


def _run(run_id: str | None) -> str | None:
    # An id that is none would list nothing, as a run does that wrote nothing.
    if run_id is not None and not is_memory_id(run_id):
        raise InvalidQuery(
            "What is given for a run is no run's id.",
            allowed="a lower-case UUID, as the Temporal UI and a memory's provenance have it",
            hint="A workflow's id names all of its runs; `engram show` names the one that wrote "
            "a memory.",
        )
    return run_id


RunId = Annotated[str | None, AfterValidator(_run)]


class ListMemories(Question):
    """Which memories are listed."""

    memory_type: tuple[MemoryType, ...] | None = Field(
        default=None, max_length=_MOST_TYPES, description="Only these types; may be repeated."
    )
    status: MemoryStatus | None = Field(default=None, description="Only this status.")
    limit: Annotated[int, AfterValidator(_page_size)] = Field(
        default=100, description="Memories of one page, 1 to 1000."
    )
    cursor: str | None = Field(
        default=None, description="As the page before gives it; the first has none."
    )
    include_test: bool = Field(default=False, description="Test memories too.")
    form: FormNames = Field(
        default=None, description="Of semantic memories, only these forms; may be repeated."
    )
    role: RoleNames = Field(
        default=None, description="Of turns, only those of these roles; may be repeated."
    )
    session_id: Session = Field(default=None, description="Only memories of this session.")
    tag: Tags = Field(
        default=None, description="Only memories with one of these tags; may be repeated."
    )
    without_tag: Tags = Field(
        default=None, description="Only memories without these tags; may be repeated."
    )
    run_id: RunId = Field(default=None, description="Only what this run of a workflow wrote first.")


class CountMemories(Question):
    """Which memories are counted: those for which all of this holds.

    Attributes:
        memory_types: Only these types; all if null.
        status: Only this status; any if null.
        session_id: Only memories of this session.
        tags: Only memories that carry at least one of these.
        include_test: Test memories too.
        without_tags: Only memories that carry none of these.
        forms: Of semantic memories, only these forms.
        roles: Of turns, only those of these roles.
        run_id: Only what this run of a workflow wrote first.
    """

    memory_types: tuple[MemoryType, ...] | None = Field(default=None, max_length=_MOST_TYPES)
    status: MemoryStatus | None = None
    session_id: Session = None
    tags: Tags = None
    include_test: bool = False
    without_tags: Tags = None
    forms: FormNames = None
    roles: RoleNames = None
    run_id: RunId = None


class MemoryPage(Answered):
    """A stretch of a listing, oldest known first; ``cursor`` continues it."""

    memories: tuple[AnyMemory, ...]
    cursor: str | None = None


class MemoryStats(Answered):
    """How much is kept for one user.

    Attributes:
        counts: Memories by type, whatever their status.
        active: Those of them that answer by default.
        waiting: Episodes that consolidation has not seen yet.
    """

    counts: Mapping[MemoryType, int]
    active: Mapping[MemoryType, int]
    waiting: int


LIST_MEMORIES: Final = Operation(
    "list-memories",
    ListMemories,
    MemoryPage,
    "One page, type by type, oldest known first; its cursor leads to the next.",
    access=Access.READ,
    http=Http(
        "GET",
        "memories{?memory_type,status,limit,cursor,include_test,form,role,session_id,tag,without_tag,run_id}",
        summary="List memories",
        tag="memory",
    ),
)
GET_MEMORY: Final = Operation(
    "get-memory",
    AboutMemory,
    # A union is no type to mypy, but is one to Pydantic.
    cast("type[AnyMemory]", AnyMemory),
    "With everything that is known of it.",
    access=Access.READ,
    http=Http("GET", "memories/{memory_id}", summary="Read one memory", tag="memory"),
)
HISTORY: Final = Operation(
    "history",
    AboutMemory,
    list[AnyMemory],
    "What it replaced and what replaced it, oldest first.",
    access=Access.READ,
    http=Http("GET", "memories/{memory_id}/history", summary="A memory's versions", tag="memory"),
)
STATS: Final = Operation(
    "stats",
    Question,
    MemoryStats,
    "By type: all, and those that are active.",
    access=Access.READ,
    http=Http("GET", "stats", summary="How much is kept", tag="memory"),
)
COUNT: Final = Operation(
    "count", CountMemories, int, "How many memories there are of a kind.", access=Access.READ
)
VERIFY: Final = Operation(
    "verify",
    AboutMemory,
    Verification,
    "Check a memory against the turns it was drawn from.",
    access=Access.READ,
)


class MemoryHandlers:
    """Reads memories from the store.

    Args:
        repository: Where memories are kept.
    """

    def __init__(self, repository: MemoryRepository) -> None:
        self._repository = repository

    @handles(LIST_MEMORIES)
    async def page(self, scope: Scope, asked: ListMemories) -> MemoryPage:
        """Memories type by type, each in the order in which they became known.

        Raises:
            InvalidQuery: the cursor is that of another listing.
        """
        named = STORED_TYPES if asked.memory_type is None else asked.memory_type
        # Each once, or a page could lead back to the one before it.
        types = tuple(dict.fromkeys(named))
        at, inner = _parse_cursor(asked.cursor, types)
        found: list[AnyMemory] = []
        common = _of_kind(asked)
        while at < len(types):
            more = narrowed(
                types[at],
                session_id=asked.session_id,
                tags=asked.tag,
                without_tags=asked.without_tag,
                roles=asked.role,
                forms=asked.form,
                run_id=asked.run_id,
            )
            page = await self._repository.scroll(
                scope,
                types[at],
                where=(*common, *more),
                limit=asked.limit - len(found),
                cursor=inner,
            )
            found.extend(page.memories)
            inner = page.cursor
            if inner is None:
                at += 1
            if len(found) >= asked.limit:
                break
        cursor = f"{types[at]}:{inner or ''}" if at < len(types) else None
        return MemoryPage(memories=tuple(found), cursor=cursor)

    @handles(GET_MEMORY)
    async def get(self, scope: Scope, asked: AboutMemory) -> AnyMemory:
        """One memory.

        Raises:
            MemoryNotFound: no such memory of this user.
        """
        return await one_memory(self._repository, scope, asked.memory_id)

    @handles(HISTORY)
    async def history(self, scope: Scope, asked: AboutMemory) -> list[AnyMemory]:
        """What a memory replaced and what replaced it, oldest first.

        Raises:
            MemoryNotFound: no such memory of this user.
        """
        known = {asked.memory_id: await one_memory(self._repository, scope, asked.memory_id)}
        wanted = _neighbours(known.values())
        while missing := wanted - known.keys():
            found = await self._repository.get(scope, missing)
            known |= found
            wanted = _neighbours(found.values())
        return sorted(known.values(), key=lambda memory: (memory.known_at, memory.id))

    @handles(STATS)
    async def stats(self, scope: Scope, _: Question) -> MemoryStats:
        """How much is kept, without test memories."""
        count = self._repository.count
        active = (_REAL, Equals("status", MemoryStatus.ACTIVE.value))
        return MemoryStats(
            counts={kind: await count(scope, kind, (_REAL,)) for kind in STORED_TYPES},
            active={kind: await count(scope, kind, active) for kind in STORED_TYPES},
            waiting=await count(scope, MemoryType.EPISODIC, (_REAL, Missing("consolidated_at"))),
        )

    @handles(COUNT)
    async def count(self, scope: Scope, asked: CountMemories) -> int:
        """How many memories there are for which all of it holds."""
        types = STORED_TYPES if asked.memory_types is None else set(asked.memory_types)
        counts = [
            await self._repository.count(
                scope,
                kind,
                (
                    *_of_kind(asked),
                    *narrowed(
                        kind,
                        session_id=asked.session_id,
                        tags=asked.tags,
                        without_tags=asked.without_tags,
                        roles=asked.roles,
                        forms=asked.forms,
                        run_id=asked.run_id,
                    ),
                ),
            )
            for kind in types
        ]
        return sum(counts)

    @handles(VERIFY)
    async def verify(self, scope: Scope, asked: AboutMemory) -> Verification:
        """Check a memory against its sources.

        Raises:
            MemoryNotFound: no such memory of this user.
        """
        memory = await one_memory(self._repository, scope, asked.memory_id)
        sources = memory.source_episode_ids if isinstance(memory, DerivedMemory) else ()
        origin = memory.promoted_from
        made_of = None
        if origin is not None:
            made_of = (await self._repository.get(scope, (origin,))).get(origin)
        return verify(
            memory,
            await episodes_by_id(self._repository, scope, sources),
            made_of if isinstance(made_of, SemanticMemory) else None,
        )


def _of_kind(asked: ListMemories | CountMemories) -> Filter:
    where: Filter = () if asked.include_test else (_REAL,)
    return where if asked.status is None else (*where, Equals("status", asked.status.value))


def _neighbours(memories: Iterable[AnyMemory]) -> set[str]:
    """What the memories replaced, and what replaced them."""
    found: set[str] = set()
    for memory in memories:
        if isinstance(memory, DerivedMemory):
            found.update(memory.supersedes)
            if memory.superseded_by is not None:
                found.add(memory.superseded_by)
    return found


def _parse_cursor(cursor: str | None, types: Sequence[MemoryType]) -> tuple[int, str | None]:
    if cursor is None:
        return 0, None
    kind, _, inner = cursor.partition(":")
    if kind not in types:
        raise InvalidQuery(
            "The cursor does not belong to this listing.",
            allowed="a cursor that the same listing returned",
        )
    return [str(item) for item in types].index(kind), inner or None


# --- resolving commitments, and who carries it out


class Resolve(Question):
    """How a commitment ended."""

    memory_id: str
    resolution: Resolution


RESOLVE: Final = Operation(
    "resolve",
    Resolve,
    SemanticMemory,
    "Say that a commitment was kept, or came to nothing.",
    access=Access.WRITE,
)


class CommitmentHandlers:
    """Carries out the operations of this module.

    Args:
        repository: Where memories are kept.
        clock: The present.
        new_write_id: Makes a fresh value for each write.
    """

    def __init__(
        self, repository: MemoryRepository, clock: Clock, new_write_id: NewWriteId
    ) -> None:
        self._repository = repository
        self._clock = clock
        self._new_write_id = new_write_id

    @handles(RESOLVE)
    async def resolve(self, scope: Scope, asked: Resolve) -> SemanticMemory:
        """Note how a commitment ended; noting it again changes nothing.

        Raises:
            MemoryNotFound: no such memory of this user.
            InvalidInput: it is no commitment, or tells how one ended.
        """
        now = self._clock()

        def change(memory: AnyMemory) -> AnyMemory | None:
            after = resolve(memory, asked.resolution, now).memory
            return None if after == memory else after

        # Refused before anything is written, where it cannot be resolved.
        change(await one_memory(self._repository, scope, asked.memory_id))
        done = await update_memories(
            self._repository,
            scope,
            [asked.memory_id],
            change,
            new_write_id=self._new_write_id,
            types=(MemoryType.SEMANTIC,),
        )
        if done.missing:
            raise MemoryNotFound(
                "The memory was forgotten while it was being resolved.",
                details={"memory_id": asked.memory_id},
            )
        memory = await one_memory(self._repository, scope, asked.memory_id)
        if not isinstance(memory, SemanticMemory):
            raise InvalidInput("Only commitments can be resolved.")
        return memory


# --- the operation that says what a user's memory took of language models

USAGE: Final = Operation(
    "usage",
    Question,
    UserUsage,
    "What this user's memory took of language models, and its cost.",
    access=Access.READ,
)


class UsageHandlers:
    """Carries out the operations of this module.

    Args:
        spending: Reads what consolidations noted.
    """

    def __init__(self, spending: SpendingReader) -> None:
        self._spending = spending

    @handles(USAGE)
    async def usage(self, scope: Scope, _: Question) -> UserUsage:
        """What models were asked for this user.

        Raises:
            TemporalUnavailable: Temporal cannot be reached.
        """
        return await self._spending.of(scope)


# --- acting on one memory: what is asked, what comes of it, and which memory is meant


class ActOn(AboutMemory):
    """An action on one memory.

    Attributes:
        dry_run: Write nothing; say what would change.
        test_only: Refuse it for a memory that is no test memory.
    """

    dry_run: bool = False
    test_only: bool = False


class Acted(Answered):
    """What an action on one memory did, or would do.

    Attributes:
        memory: As it is now; after a dry run, as it would be.
        changes: The steps that this made: in its life, in that of the habit made of it or of what
            it was made of, and in those of what it refutes; empty if it was so already.
        habit_id: The habit that it became, if it was promoted to one.
        dry_run: Whether nothing was written.
    """

    memory: AnyMemory
    changes: tuple[Change, ...] = ()
    habit_id: str | None = None
    dry_run: bool = False


async def resolve_target(repository: MemoryRepository, scope: Scope, asked: ActOn) -> AnyMemory:
    """The memory that is to be acted on.

    Raises:
        MemoryNotFound: no such memory of this user.
        InvalidInput: it is no test memory, and only those may be acted on.
    """
    memory = await one_memory(repository, scope, asked.memory_id)
    if asked.test_only:
        check_test(memory)
    return memory


def check_test(memory: AnyMemory) -> None:
    """Refuse what is no test memory.

    Raises:
        InvalidInput: it is none.
    """
    if not memory.is_test:
        raise InvalidInput(
            "This is no test memory.",
            allowed="memories that `engram test list` names",
            details={"id": memory.id},
        )
