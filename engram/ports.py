"""What Engram's core asks of the outside world, as Protocols.

Every storage method takes the scope first: an implementation confines each
read and write to it in one place, so that no caller can forget to.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

from engram.domain.memories import AnyMemory, MemoryType
from engram.domain.personal_data import PersonalSpan
from engram.domain.scope import Scope

if TYPE_CHECKING:
    from engram.contracts.removal import CompactReceipt, ErasureReceipt
    from engram.language.found import Extraction


@dataclass(frozen=True, slots=True)
class SparseVector:
    """Term weights by term id, indices ascending and unique."""

    indices: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class TextVectors:
    """Both vectors of one text."""

    dense: tuple[float, ...]
    sparse: SparseVector


class Embedder(Protocol):
    """Turns text into vectors."""

    @property
    def identity(self) -> str:
        """Names model and version; vectors of different identities never mix."""
        ...

    async def dimensions(self) -> int:
        """Tell the length of dense vectors.

        Returns:
            1 or more; always the same for one identity.

        Raises:
            EmbeddingFailed: the model has to be asked, and does not answer.
        """
        ...

    async def embed_documents(
        self, texts: Sequence[str], before: Sequence[str | None] | None = None
    ) -> list[TextVectors]:
        """Embed texts that are to be stored.

        Args:
            texts: Any number; asked for in bounded batches.
            before: What was said just before each text, as long as ``texts``; words of it
                weigh less in the sparse vector. None: nothing was.

        Returns:
            One pair for each text, in order: ``dense`` has :meth:`dimensions` floats,
            ``sparse`` BM25 weights without document frequencies, which the store adds.

        Raises:
            EmbeddingFailed: the model does not answer, or not in the form it should.
        """
        ...

    async def embed_query(self, text: str) -> TextVectors:
        """Embed a question.

        Args:
            text: The question.

        Returns:
            ``dense`` as for documents; ``sparse`` with weight 1 for each term.

        Raises:
            EmbeddingFailed: the model does not answer, or not in the form it should.
        """
        ...

    def encode_terms(self, text: str) -> SparseVector:
        """Encode the BM25 side of a question alone; asks no model.

        Args:
            text: The question.

        Returns:
            Weight 1 for each term.
        """
        ...


class Reranker(Protocol):
    """Looks at a question and texts together, and says how well each answers."""

    async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Judge how well each text answers a question.

        Args:
            query: The question.
            texts: The contents of the best candidates, best first.

        Returns:
            One number for each text, in order; the higher, the better. Any scale.

        Raises:
            EngramError: it cannot say; recall then leaves the order as it was.
        """
        ...


class TurnExtractor(Protocol):
    """Finds, without a language model, what one turn plainly states."""

    def extract(
        self,
        text: str,
        role: str,
        speaker: str | None,
        timestamp: datetime,
        before: str | None = None,
    ) -> Extraction:
        """Read one turn; the same for the same turn, always.

        Args:
            text: Its words.
            role: ``user``, ``assistant``, ``system`` or ``tool``.
            speaker: Who spoke, where the application names somebody.
            timestamp: When it was said, with its zone: relative dates are resolved against it.
            before: What the assistant said right before it, where that is known.

        Returns:
            Pattern facts, negations and the signal.

        Raises:
            Exception: nothing is raised on purpose; what is fails the storing of the turn.
        """
        ...


class PersonalDataDetector(Protocol):
    """Finds personal data in a text, without asking anybody.

    Clients, doors and workers of a namespace need the same one: what a client left in, a
    worker that finds more refuses.
    """

    def find(self, text: str) -> Sequence[PersonalSpan]:
        """The stretches of personal data in a text; the same for the same text, always.

        Args:
            text: Any Unicode, up to the longest turn.

        Returns:
            In order, as offsets into ``text``; none overlaps another. What stands for masked
            words, such as ``[e-mail]``, is none.

        Raises:
            Exception: nothing is raised on purpose; what is fails the storing of the turn.
        """
        ...


# --- the query vocabulary -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Equals:
    """The field holds this value (for a list: contains it)."""

    field: str
    value: str | int | bool


@dataclass(frozen=True, slots=True)
class AnyOf:
    """The field holds one of these values (for a list: contains one of them)."""

    field: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Between:
    """The field lies within the bounds that are given, both inclusive."""

    field: str
    at_least: datetime | float | None = None
    at_most: datetime | float | None = None


@dataclass(frozen=True, slots=True)
class After:
    """The field lies strictly after the bound."""

    field: str
    bound: datetime | float


@dataclass(frozen=True, slots=True)
class Missing:
    """The field is absent, null or an empty list."""

    field: str


@dataclass(frozen=True, slots=True)
class Not:
    """The condition does not hold."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class Either:
    """At least one of the conditions holds."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class HasId:
    """The memory is one of these."""

    ids: tuple[str, ...]


Condition: TypeAlias = Equals | AnyOf | Between | After | Missing | Not | Either | HasId
Filter: TypeAlias = tuple[Condition, ...]
"""All conditions hold. Empty: everything within the scope."""


Stamp: TypeAlias = Callable[[AnyMemory], AnyMemory]
"""Pure. Adds to a memory, at every write, when it is to be looked at next and by which rules."""


def unstamped(memory: AnyMemory) -> AnyMemory:
    """Leave a memory as it is: the stamp of a store that no pass looks after."""
    return memory


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A memory and the vectors it is to be found by."""

    memory: AnyMemory
    vectors: TextVectors


@dataclass(frozen=True, slots=True)
class Replacement:
    """A memory's successor, to be written only if the stored revision is still the expected one."""

    memory: AnyMemory
    expected_revision: int


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One hybrid search.

    Attributes:
        vectors: Of the question.
        types: Which collections to look into.
        where: Conditions by type; a type that is missing here has none.
        limit: Candidates per type and vector kind.
    """

    vectors: TextVectors
    types: tuple[MemoryType, ...]
    limit: int
    where: Mapping[MemoryType, Filter] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory that a search brought up, with the scores of both sides.

    ``dense`` is the cosine similarity, ``sparse`` the BM25 score with the IDF
    of this scope's own memories; None where that side did not bring it up.
    """

    memory: AnyMemory
    dense: float | None
    sparse: float | None


class Match(NamedTuple):
    """A :class:`Candidate` that was not read yet: which memory it is, and its scores."""

    memory_type: MemoryType
    memory_id: str
    dense: float | None
    sparse: float | None


@dataclass(frozen=True, slots=True)
class Page:
    """A stretch of an ordered listing; ``cursor`` continues it, None ends it.

    Attributes:
        unreadable: Ids of memories that belong here and that this version cannot read.
    """

    memories: tuple[AnyMemory, ...]
    cursor: str | None
    unreadable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """What a store says of itself."""

    engine: Literal["edge", "server", "local"]
    schema_version: int
    embedder: str
    details: Mapping[str, Any] = field(default_factory=dict)


class MemoryRepository(Protocol):
    """Where memories are kept. Two implementations, one conformance suite.

    A repository stamps what it writes, so that no caller can forget to.
    """

    async def insert(
        self,
        scope: Scope,
        memories: Iterable[NewMemory],
        *,
        stamp: Stamp | None = None,
        epoch: int | None = None,
    ) -> frozenset[str]:
        """Store those that are not there yet; what is there stays untouched.

        What was forgotten is not stored, nor what rests on it; forgotten while it is being
        stored, it is taken back.

        Args:
            scope: Whose; nothing of anybody else is touched.
            memories: Any number, with their vectors.
            stamp: In place of the repository's own; for passes, whose rules are fixed when
                they start.
            epoch: The user's :meth:`epoch` when the work began; None: as it is now.

        Returns:
            The ids of those that were not stored because of what was forgotten.

        Raises:
            WrongVectorSize: a vector does not fit its collection; nothing is written.
            UserErased: the user was erased since the work began; nothing stays written.
            StorageUnavailable: the store cannot be reached.
        """
        ...

    async def epoch(self, scope: Scope) -> int:
        """Read how often everything of a user was erased.

        Args:
            scope: Whose; nothing of anybody else is touched.

        Returns:
            0 or more. Work reads it when it begins, and its writes carry it.

        Raises:
            StorageUnavailable: the store cannot be reached; asking again is safe.
        """
        ...

    async def raise_epoch(self, scope: Scope, operation: str, *, key: str) -> int:
        """Let nothing be inserted any more that began before now; forget what was forgotten.

        Args:
            scope: Whose; nothing of anybody else is touched.
            operation: Names the erasure; a repeat of it raises nothing.
            key: A fresh secret, for what is forgotten from now on.

        Returns:
            The epoch that this erasure raised, now or the first time.

        Raises:
            StorageUnavailable: the store cannot be reached; asking again is safe.
        """
        ...

    async def bury(
        self,
        scope: Scope,
        ids: Collection[str],
        *,
        drawn: Mapping[str, Collection[str]],
        key: str,
    ) -> None:
        """Let memories that are about to be deleted never be inserted again; deletes nothing.

        Kept are keyed hashes of the ids, no words. A conclusion may be drawn again, only not
        from the turns that are named.

        Args:
            scope: Whose; nothing of anybody else is touched.
            ids: Turns and conclusions.
            drawn: By the id of a conclusion: turns from which it is not to be drawn again.
            key: A fresh secret, used if the user has none yet.

        Raises:
            StorageUnavailable: the store cannot be reached; asking again is safe.
        """
        ...

    async def get(
        self,
        scope: Scope,
        ids: Iterable[str],
        types: Sequence[MemoryType] | None = None,
        *,
        fresh: bool = False,
    ) -> dict[str, AnyMemory]:
        """Read memories by id, in one batch for each type.

        Args:
            scope: Whose; nothing of anybody else is touched.
            ids: Ids of any types.
            types: Where to look; everywhere if None.
            fresh: Read what most replicas agree on, for callers that write by what they read.

        Returns:
            Those that exist in this scope, by id.

        Raises:
            StorageUnavailable: the store cannot be reached; asking again is safe.
        """
        ...

    async def replace(
        self, scope: Scope, replacements: Iterable[Replacement], *, stamp: Stamp | None = None
    ) -> frozenset[str]:
        """Write successors of existing memories, each only at its expected revision.

        Payload only: vectors stay. Never inserts.

        Args:
            scope: Whose; nothing of anybody else is touched.
            replacements: Successors, each with the revision that it replaces and a fresh
                ``write_id``, which is read back.
            stamp: In place of the repository's own; for passes, whose rules are fixed when
                they start.

        Returns:
            The ids whose write won.

        Raises:
            StorageUnavailable: the store cannot be reached; asking again is safe.
        """
        ...

    async def reword(
        self, scope: Scope, memory_type: MemoryType, words: Mapping[str, SparseVector]
    ) -> None:
        """Let memories be found by other words from now on; all else of them stays.

        Never inserts: what is not there, or goes meanwhile, is left out.

        Args:
            scope: Whose; nothing of anybody else is touched.
            memory_type: Which collection.
            words: The sparse vector of each id.

        Raises:
            StorageUnavailable: the store cannot be reached; asking again is safe.
        """
        ...

    async def rank(self, scope: Scope, request: SearchRequest) -> list[Match]:
        """Search without reading the memories: for many candidates.

        Args:
            scope: Whose; nothing of anybody else is touched.
            request: Vectors, types, conditions and limits.

        Returns:
            What :meth:`search` would find, as ids with scores.

        Raises:
            UnindexedField: a condition names a field without an index.
            StorageUnavailable: the store cannot be reached; asking again is safe.
        """
        ...

    async def search(self, scope: Scope, request: SearchRequest) -> list[Candidate]:
        """Search by both vectors.

        Args:
            scope: Whose; nothing of anybody else is touched.
            request: Vectors, types, conditions and limits.

        Returns:
            Candidates of all asked types with their scores, ordered by type, then id; not fused.

        Raises:
            UnindexedField: a condition names a field without an index.
            StorageUnavailable: the store cannot be reached; asking again is safe.
        """
        ...

    async def scroll(
        self,
        scope: Scope,
        memory_type: MemoryType,
        *,
        where: Filter = (),
        order_by: str = "known_at",
        descending: bool = False,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page:
        """Read one page in order of a time field, ties by id; stable across pages.

        Args:
            scope: Whose; nothing of anybody else is touched.
            memory_type: Which collection.
            where: Conditions on indexed fields, all of which hold.
            order_by: An indexed time field; memories without a value are left out.
            descending: Latest first.
            limit: Memories of a page, 1 or more.
            cursor: Of the page before; None for the first.

        Returns:
            The page, with a cursor if there may be more.

        Raises:
            UnindexedField: the order or a condition names a field without an index.
            InvalidQuery: the cursor is none of this listing.
            StorageUnavailable: the store cannot be reached; asking again is safe.
        """
        ...

    def arrivals(self, scope: Scope, memory_type: MemoryType) -> int | None:
        """Tell whether memories may have come or gone since somebody looked.

        Args:
            scope: Whose.
            memory_type: Which collection.

        Returns:
            A number that grows with each insertion and deletion, not with changes of what is
            there; None where other processes write as well, so that nobody can tell.
        """
        ...

    def arrived(self, scope: Scope, memory_type: MemoryType, since: int) -> list[str] | None:
        """Which memories came since :meth:`arrivals` gave that number.

        Args:
            scope: Whose.
            memory_type: Which collection.
            since: What :meth:`arrivals` gave.

        Returns:
            Their ids, of which some may not have been written in the end; None where nobody can
            tell, so that all have to be read: some have gone, or too many have come.
        """
        ...

    def replacements(self, scope: Scope) -> int | None:
        """Tell whether something may have been replaced by newer knowledge since somebody looked.

        Args:
            scope: Whose.

        Returns:
            A number that grows when a memory is marked as replaced, or one that is marked names
            other sources; None as for :meth:`arrivals`.
        """
        ...

    async def count(self, scope: Scope, memory_type: MemoryType, where: Filter = ()) -> int:
        """Count memories, exactly.

        Args:
            scope: Whose; nothing of anybody else is touched.
            memory_type: Which collection.
            where: Conditions on indexed fields, all of which hold.

        Returns:
            How many there are, 0 or more.

        Raises:
            UnindexedField: a condition names a field without an index.
            StorageUnavailable: the store cannot be reached; asking again is safe.
        """
        ...

    async def delete(self, scope: Scope, memory_type: MemoryType, ids: Iterable[str]) -> None:
        """Remove memories for good; ids of other scopes are left alone.

        Args:
            scope: Whose; nothing of anybody else is touched.
            memory_type: Which collection.
            ids: Which; those that do not exist are ignored.

        Raises:
            StorageUnavailable: the store cannot be reached; asking again is safe.
        """
        ...

    async def erase(self, scope: Scope, *, until: int | None = None) -> dict[MemoryType, int]:
        """Remove everything of one scope.

        Args:
            scope: Whose; nothing of anybody else is touched.
            until: The epoch with which the erasure is over: from then on nothing is removed.

        Returns:
            How many there were of each type.

        Raises:
            UserErased: that epoch has come; what was removed before stays removed.
            StorageUnavailable: the store cannot be reached; asking again is safe.
        """
        ...

    async def info(self) -> StoreInfo:
        """Describe the store, and so find out whether what it holds can be read.

        Returns:
            Engine, schema version and embedder identity.

        Raises:
            StorageUnavailable: the store cannot be reached; asking again is safe.
            StorageError: it refuses access, or a part of it is gone.
        """
        ...

    async def flush(self) -> None:
        """Put on disk what is acknowledged, where the engine leaves that to its caller.

        Raises:
            StorageUnavailable: the store cannot be reached; asking again is safe.
        """
        ...

    async def close(self) -> None:
        """Flush, and let go of files and connections; nothing may be asked afterwards.

        Raises:
            StorageUnavailable: the store cannot be reached; asking again is safe.
        """
        ...


class CrossTenantReads(Protocol):
    """The only reads that are not confined to a scope: they tell nothing that memories hold."""

    async def scopes(
        self,
        memory_type: MemoryType,
        where: Filter,
        *,
        order_by: str,
        limit: int,
        skip: Collection[Scope] = (),
    ) -> tuple[Scope, ...]:
        """List users who have such memories, in order of a time field of their first one.

        Costs what matches, not what is stored, if a condition names few memories.

        Args:
            memory_type: Whose collection.
            where: Conditions on indexed fields.
            order_by: An indexed time field; memories without a value are left out.
            limit: As many users at most.
            skip: Users to leave out.

        Returns:
            Scopes, each once.

        Raises:
            UnindexedField: a condition names a field without an index.
        """
        ...

    async def values(self, memory_type: MemoryType, field: str) -> frozenset[str | None]:
        """List every value of an indexed keyword field over all users.

        For fields with few values. It may name a value that no memory has any more.

        Args:
            memory_type: Whose collection.
            field: The keyword field.

        Returns:
            The values; None among them: some memories have none.

        Raises:
            UnindexedField: the field has no index.
            InvalidQuery: it is not a keyword.
        """
        ...


class MaintenanceRepository(MemoryRepository, CrossTenantReads, Protocol):
    """What passes need: they find out whose memories are due, and remove what is at its end."""

    async def delete_unchanged(
        self, scope: Scope, memory_type: MemoryType, revisions: Mapping[str, int]
    ) -> None:
        """Remove memories for good, each only if it still has the revision given.

        Args:
            scope: Whose; nothing of anybody else is touched.
            memory_type: Which collection.
            revisions: The expected revision of each id.

        Raises:
            StorageUnavailable: the store cannot be reached; asking again is safe.
        """
        ...


class Scrubber(Protocol):
    """Sees to it that what was erased leaves the files too, where they are Engram's own."""

    async def erase(
        self,
        workflow_id: str,
        erasing: Callable[[], Awaitable[ErasureReceipt]],
        erased: Callable[[], Awaitable[ErasureReceipt | None]],
    ) -> ErasureReceipt:
        """Erase by a workflow; behind its receipt, scrub the files.

        Goes on if the caller does not wait, and after a crash at the next start.

        Args:
            workflow_id: Of the workflow that erases.
            erasing: Starts it or finds it, and waits for it.
            erased: Waits for what goes on behind it.

        Returns:
            Its receipt.

        Raises:
            TemporalUnavailable: the workflow cannot be asked; it goes on, and so may the caller.
        """
        ...

    async def erased(
        self, workflow_id: str, erased: Callable[[], Awaitable[ErasureReceipt | None]]
    ) -> ErasureReceipt | None:
        """Wait until histories are deleted and files scrubbed behind an erasure.

        Args:
            workflow_id: Of the workflow that erased.
            erased: Waits for what goes on behind it.

        Returns:
            The receipt, with what was scrubbed; None if there was no erasure.

        Raises:
            TemporalUnavailable: the workflow cannot be asked; it goes on.
        """
        ...

    async def compact(self) -> CompactReceipt:
        """Write all files anew without what was deleted.

        Returns:
            What was rewritten, and what could not be.

        Raises:
            InvalidQuery: the files are not Engram's own.
        """
        ...


@dataclass(frozen=True, slots=True)
class DataKey:
    """A key that payloads are encrypted with.

    Attributes:
        id: Stands readable beside what it encrypted.
        secret: 32 bytes; in no log and in no error.
    """

    id: str
    secret: bytes = field(repr=False)


class KeyStore(Protocol):
    """Keeps the keys that Temporal payloads are encrypted with, for all processes alike.

    An owner is a tenant (``namespace/user``), or what stands for what serves several users.
    """

    @property
    def since(self) -> datetime | None:
        """Since when everything is encrypted; None where nothing ever was not."""
        ...

    async def current(self, owner: str) -> DataKey:
        """Get the key for new payloads, made if there is none; all who ask at once get the same.

        Args:
            owner: Whose payloads they are.

        Returns:
            The same key until it is retired.

        Raises:
            EncryptionKeysUnusable: the store cannot be read or written now.
        """
        ...

    async def find(self, owner: str, key_id: str) -> DataKey | None:
        """Get one key of an owner, retired ones too; None if there is none such, or no more.

        Args:
            owner: Whose payload it is.
            key_id: As it stands beside the payload.

        Returns:
            The key; None also for one of another owner.

        Raises:
            EncryptionKeysUnusable: the store cannot be read now.
        """
        ...

    async def retire(self, owner: str) -> None:
        """Encrypt with a new key from now on; what is encrypted stays readable.

        Args:
            owner: Whose; one without a key is none the worse.

        Raises:
            EncryptionKeysUnusable: the store cannot be written to now.
        """
        ...

    async def shred(self, owner: str) -> int:
        """Delete the retired keys of an owner for good: what they encrypted is noise.

        Args:
            owner: Whose; the key for new payloads stays.

        Returns:
            How many they were; 0 if that was done before.

        Raises:
            EncryptionKeysUnusable: the store cannot be written to now.
        """
        ...


class Clock(Protocol):
    """Where ``now`` comes from; injectable on the client."""

    def __call__(self) -> datetime:
        """The present, aware, in UTC."""
        ...
