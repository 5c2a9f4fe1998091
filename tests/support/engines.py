"""The engines under test, and memories to put into them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid4, uuid5

import pytest
from qdrant_client import AsyncQdrantClient, models

from engram.domain.confidence import Confidence, ExtractionMethod
from engram.domain.memories import (
    AnyMemory,
    Episode,
    Fact,
    FactCategory,
    Link,
    MemoryType,
    NegationFact,
    ProceduralMemory,
    SemanticMemory,
    Slot,
)
from engram.domain.scope import Scope
from engram.ports import (
    MaintenanceRepository,
    NewMemory,
    SparseVector,
    Stamp,
    TextVectors,
    unstamped,
)
from engram.settings import Settings
from engram.storage.edge import EdgeRepository
from engram.storage.payload import collection_names
from engram.storage.server import ServerRepository, connect_qdrant
from tests.support.edge_stores import borrow

DIMENSIONS: Final = 4
EMBEDDER: Final = "unit-vectors:1"
T0: Final = datetime(2025, 6, 1, 12, 0, 0, tzinfo=UTC)
ADA: Final = Scope.of("default", "ada")
BOB: Final = Scope.of("default", "bob")

ENGINES: Final = [
    "edge",
    "local",
    *(pytest.param(name, marks=pytest.mark.servers) for name in ("server", "cluster")),
]
"""In-process, the client's stand-in, one real server, and three that keep copies."""
_SHARED: Final = "test-shared"


class Store(ABC):
    """One store that can be opened again and again."""

    engine: str

    @abstractmethod
    async def open(
        self,
        *,
        embedder: str = EMBEDDER,
        dimensions: int = DIMENSIONS,
        stamp: Stamp = unstamped,
    ) -> MaintenanceRepository:
        """Open it; close what was opened before first."""

    async def empty(self) -> MaintenanceRepository:
        """Open and empty, for who does not care about its files."""
        return await self.open()

    @abstractmethod
    async def set_schema_version(self, version: int) -> None:
        """Pretend another version of Engram made it."""

    @abstractmethod
    async def indexes(self, memory_type: MemoryType) -> set[str]:
        """The fields that the engine itself says are indexed. The store is open."""

    async def remove(self) -> None:
        """Leave nothing behind."""
        return


class EdgeStore(Store):
    """In a temporary folder."""

    engine = "edge"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.opened: EdgeRepository | None = None

    async def open(
        self,
        *,
        embedder: str = EMBEDDER,
        dimensions: int = DIMENSIONS,
        stamp: Stamp = unstamped,
    ) -> MaintenanceRepository:
        self.opened = await EdgeRepository.open(
            self.path,
            embedder_identity=embedder,
            dimensions=dimensions,
            settings=Settings.load(),
            stamp=stamp,
        )
        return self.opened

    async def empty(self) -> MaintenanceRepository:
        self.opened = borrow(EMBEDDER, DIMENSIONS)
        return self.opened

    async def set_schema_version(self, version: int) -> None:
        record = self.path / "engram.store.json"
        text = record.read_text()
        assert '"schema_version": 1' in text
        record.write_text(text.replace('"schema_version": 1', f'"schema_version": {version}'))

    async def indexes(self, memory_type: MemoryType) -> set[str]:
        assert self.opened is not None
        return set(self.opened.shards[memory_type].info().payload_schema)


class ServerStore(Store):
    """On a server, or on the client's stand-in for one."""

    def __init__(self, engine: str, client: AsyncQdrantClient, settings: Settings) -> None:
        self.engine = engine
        self.client = client
        self.settings = settings
        self.names = collection_names(settings.collection_prefix)

    async def open(
        self,
        *,
        embedder: str = EMBEDDER,
        dimensions: int = DIMENSIONS,
        stamp: Stamp = unstamped,
    ) -> MaintenanceRepository:
        return await ServerRepository.open(
            self.client,
            embedder_identity=embedder,
            dimensions=dimensions,
            settings=self.settings,
            owns_client=False,
            stamp=stamp,
        )

    async def empty(self) -> MaintenanceRepository:
        if not self.settings.qdrant_url:
            return await self.open()
        # Collections with their indexes take a server seconds: those who do not care share them.
        shared = self.settings.model_copy(update={"collection_prefix": _SHARED})
        opened = await ServerRepository.open(
            self.client,
            embedder_identity=EMBEDDER,
            dimensions=DIMENSIONS,
            settings=shared,
            owns_client=False,
        )
        everything = models.FilterSelector(filter=models.Filter())
        for name in collection_names(_SHARED).values():
            await self.client.delete(name, everything, wait=True)
        return opened

    async def set_schema_version(self, version: int) -> None:
        for name in self.names.values():
            found = (await self.client.get_collection(name)).config.metadata or {}
            record = {**found["engram"], "schema_version": version}
            await self.client.update_collection(name, metadata={"engram": record})

    async def indexes(self, memory_type: MemoryType) -> set[str]:
        return set((await self.client.get_collection(self.names[memory_type])).payload_schema)

    async def remove(self) -> None:
        for name in self.names.values():
            if await self.client.collection_exists(name):
                await self.client.delete_collection(name)
        await self.client.close()


def make_store(engine: str, path: Path, address: str | None) -> Store:
    """A store that is not there yet; the address is a server's, where the engine is one."""
    if engine == "edge":
        return EdgeStore(path / "store")
    settings = Settings.load(
        collection_prefix=f"test-{uuid4().hex[:12]}",
        qdrant_url=address or "",
        qdrant_timeout=60.0,
        qdrant_replication_factor=3 if engine == "cluster" else None,
        qdrant_write_consistency=2 if engine == "cluster" else None,
    )
    if address is None:
        return ServerStore("local", AsyncQdrantClient(":memory:"), settings)
    return ServerStore("server", connect_qdrant(settings), settings)


# --- memories -------------------------------------------------------------------------


def memory_id(name: str) -> str:
    """The id of the memory that a test calls ``name``."""
    return str(uuid5(NAMESPACE_URL, name))


def _common(scope: Scope, name: str, known_at: datetime, more: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": memory_id(name),
        "namespace": scope.namespace,
        "user_id": scope.user_id,
        "content": f"this is {name}",
        "known_at": known_at,
        "created_at": known_at + timedelta(seconds=1),
        "write_id": "first",
        **more,
    }


def episode(scope: Scope, name: str, known_at: datetime = T0, **more: Any) -> Episode:
    """A turn."""
    values = {"role": "user", "timestamp": known_at, "message_id": name, "session_id": "s1"}
    return Episode(**_common(scope, name, known_at, {**values, **more}))


def _derived(known_at: datetime, more: dict[str, Any]) -> dict[str, Any]:
    return {
        "source_episode_ids": (memory_id("source"),),
        "event_at": known_at,
        "derived_at": known_at + timedelta(minutes=1),
        "identity": "what it says",
        "confidence": Confidence(
            method=ExtractionMethod.EXTRACTED, extraction=0.9, last_confirmed=known_at
        ),
        **more,
    }


def semantic(scope: Scope, name: str, known_at: datetime = T0, **more: Any) -> SemanticMemory:
    """A piece of knowledge."""
    return SemanticMemory(**_common(scope, name, known_at, _derived(known_at, more)))


def one_of_each(scope: Scope, known_at: datetime = T0) -> list[AnyMemory]:
    """A memory of every type with every field that can be set."""
    whose = scope.user_id
    link = Link(target_id=memory_id("far"), first_seen=known_at, last_seen=known_at)
    full: dict[str, Any] = {
        "superseded_known_at": known_at + timedelta(days=1),
        "expires_at": known_at + timedelta(days=9, microseconds=7),
        "tags": ("a", "b"),
        "summary": "in short",
        "operation_ids": ("op",),
        "metadata": {"n": None, "big": 2**70, "deep": [{"a.b": 1.5}], "ü": "é"},
    }
    derived = _derived(
        known_at,
        {
            **full,
            "links": (link,),
            "valid_from": known_at,
            "valid_to": known_at,
            "supersedes": (memory_id("old"),),
            "superseded_by": memory_id("new"),
        },
    )

    def build(kind: Any, name: str, values: dict[str, Any]) -> AnyMemory:
        made: AnyMemory = kind(**_common(scope, f"{name} of {whose}", known_at, values))
        return made

    return [
        episode(scope, f"turn of {whose}", known_at, speaker="Ada", consolidated_at=T0, **full),
        build(
            Fact,
            "fact",
            {**derived, "category": FactCategory.EMAIL, "value": "a@b.c", "evidence": "a@b.c"},
        ),
        build(
            SemanticMemory,
            "knowledge",
            {
                **derived,
                "slot": Slot(subject="ada", predicate="lives in", object="Lisbon"),
                "entities": ("ada", "lisbon"),
            },
        ),
        build(ProceduralMemory, "habit", {**derived, "trigger_context": "mornings"}),
        build(
            NegationFact, "negation", {**derived, "negates_pattern": "use mongo", "evidence": "no"}
        ),
    ]


def vectors(
    dense: Sequence[float] = (1.0, 0.0, 0.0, 0.0), terms: dict[int, float] | None = None
) -> TextVectors:
    """Vectors written down by hand."""
    weights = sorted((terms if terms is not None else {1: 1.0}).items())
    sparse = SparseVector(tuple(term for term, _ in weights), tuple(value for _, value in weights))
    return TextVectors(tuple(dense), sparse)


def new(memory: AnyMemory, found_by: TextVectors | None = None) -> NewMemory:
    """A memory with vectors."""
    return NewMemory(memory, found_by or vectors())


async def open_engine_at(folder: Path) -> EdgeRepository:
    """The store in this folder."""
    return await EdgeRepository.open(
        folder, embedder_identity=EMBEDDER, dimensions=DIMENSIONS, settings=Settings.load()
    )
