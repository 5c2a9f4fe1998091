"""Operations that bring memory in and take it out, and who carries them out."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from engram.contracts.importing import FinishImport, ImportBatch, ImportKind, ImportProgress
from engram.domain.access import Access
from engram.domain.memories import STORED_TYPES, MemoryType
from engram.domain.scope import Scope
from engram.operations.registry import Handlers, Operation, Question
from engram.ports import Clock, Embedder, Equals, MemoryRepository, Not
from engram.temporal.importing import ImportGateway
from engram.transfer.batches import check_packed
from engram.transfer.export import EXPORT_VERSION, ExportHeader

_IMPORT_ID: Final = r"^[0-9a-f]{8,64}$"


class AboutImport(Question):
    """Which import is meant.

    Attributes:
        import_id: Derived from the source: the same source names the same import.
    """

    import_id: str = Field(pattern=_IMPORT_ID)


class Begin(AboutImport):
    """A client is about to send.

    Attributes:
        consolidate: Whether the user's consolidation is asked for at the end.
    """

    consolidate: bool = True


class Send(AboutImport):
    """A stretch of the source."""

    batch: ImportBatch


class Finish(AboutImport):
    """All was sent.

    Attributes:
        total: How many entries the source has.
        consolidate: Whether the user's consolidation is asked for; None: as at the beginning.
    """

    total: int = Field(ge=0)
    consolidate: bool | None = None


class AskExport(Question):
    """What an export shall hold.

    Attributes:
        include_test: Test memories too.
    """

    include_test: bool = False


class ImportStages(BaseModel):
    """The operations of one kind of import, in order."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    begin: Operation[Begin, ImportProgress]
    send: Operation[Send, ImportProgress]
    finish: Operation[Finish, ImportProgress]


IMPORTING: Final = ImportStages(
    begin=Operation(
        "import-begin",
        Begin,
        ImportProgress,
        "Begin an import of turns, or ask where it stopped.",
        access=Access.WRITE,
    ),
    send=Operation(
        "import-turns", Send, ImportProgress, "Store a batch of turns.", access=Access.WRITE
    ),
    finish=Operation(
        "import-finish", Finish, ImportProgress, "End an import of turns.", access=Access.WRITE
    ),
)
RESTORING: Final = ImportStages(
    begin=Operation(
        "restore-begin",
        Begin,
        ImportProgress,
        "Begin to restore an export, or ask where it stopped.",
        access=Access.ADMIN,
    ),
    send=Operation(
        "restore-memories",
        Send,
        ImportProgress,
        "Put a batch of exported memories back.",
        access=Access.ADMIN,
    ),
    finish=Operation(
        "restore-finish", Finish, ImportProgress, "End the restoring.", access=Access.ADMIN
    ),
)
EXPORT_HEADER: Final = Operation(
    "export-header", AskExport, ExportHeader, "What an export begins with.", access=Access.READ
)

TRANSFER_OPERATIONS: Final[tuple[Operation[Any, Any], ...]] = (
    IMPORTING.begin,
    IMPORTING.send,
    IMPORTING.finish,
    RESTORING.begin,
    RESTORING.send,
    RESTORING.finish,
    EXPORT_HEADER,
)


class TransferHandlers:
    """Carries out the operations of this module.

    Args:
        gateway: Reaches importing workflows.
        repository: Where memories are counted.
        embedder: Its identity is named in exports.
        clock: The present.
    """

    def __init__(
        self,
        gateway: ImportGateway,
        repository: MemoryRepository,
        embedder: Embedder,
        clock: Clock,
    ) -> None:
        self._gateway = gateway
        self._repository = repository
        self._embedder = embedder
        self._clock = clock

    def register(self, handlers: Handlers) -> None:
        """Add every operation of this module."""
        for stages, kind in ((IMPORTING, ImportKind.TURNS), (RESTORING, ImportKind.MEMORIES)):
            self._register(handlers, stages, kind)
        handlers.add(EXPORT_HEADER, self.export_header)

    def _register(self, handlers: Handlers, stages: ImportStages, kind: ImportKind) -> None:
        # The two kinds never meet: who may only write turns cannot reach a restoring.
        def name(asked: AboutImport) -> str:
            return f"{kind.value}-{asked.import_id}"

        async def begin(scope: Scope, asked: Begin) -> ImportProgress:
            return await self._gateway.begin(
                scope, name(asked), kind, consolidate=asked.consolidate
            )

        async def send(scope: Scope, asked: Send) -> ImportProgress:
            check_packed(asked.batch)
            return await self._gateway.send(scope, name(asked), asked.batch)

        async def finish(scope: Scope, asked: Finish) -> ImportProgress:
            done = FinishImport(total=asked.total, consolidate=asked.consolidate)
            return await self._gateway.finish(scope, name(asked), done)

        handlers.add(stages.begin, begin)
        handlers.add(stages.send, send)
        handlers.add(stages.finish, finish)

    async def export_header(self, scope: Scope, asked: AskExport) -> ExportHeader:
        """What an export begins with: whose, of when, how much."""
        where = () if asked.include_test else (Not(Equals("is_test", value=True)),)
        counts: dict[MemoryType, int] = {
            kind: await self._repository.count(scope, kind, where) for kind in STORED_TYPES
        }
        return ExportHeader(
            engram_export=EXPORT_VERSION,
            engram=version("engram-memory"),
            namespace=scope.namespace,
            user_id=scope.user_id,
            exported_at=self._clock(),
            embedder=self._embedder.identity,
            counts=counts,
            include_test=asked.include_test,
        )
